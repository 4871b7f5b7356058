"""Bound the variance that errors of a propensity and of outcome lines add to an effect.

An influence value has no first-order error in either. Their product has mean 0, because the sessions' noise is
independent.

A declared level that noise hides is left out of the information. Its records' propensities may be anything; all their
errors have one sign, so the released score along the level bounds their sum (:mod:`privstats.inference.hidden_levels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privstats.estimates.denoise import Array
from privstats.estimates.effect import ArmSums, penalty
from privstats.inference.declared_levels import levels_of_arms
from privstats.inference.hidden_levels import HIDES, DeclaredLevels, HiddenLevels
from privstats.inference.releases import reckoned_sigma
from privstats.kinds import EffectSchema
from privstats.release import Release
from privstats.schema.public_values import Values

_LEAST = 1e-9  # of the largest eigenvalue of a matrix that is inverted
_CLEAR = 3.0  # standard deviations of its noise that an eigenvalue of the information must exceed


@dataclass(frozen=True)
class Nuisances:
    """Variance that a published propensity and published lines add to S.

    Attributes:
        variance: sum over arms of tr(M S_a M S_w), in squared outcome units, for the outcome session's records. M is
            the other arm's sum of x x', S_a a line's covariance with its penalty's shrinkage, S_w that of w. Along
            columns where noise hides the information, it is the most that any propensity within the trim could add.
        most: maximum of it over parts of these records: min over both orders of the largest eigenvalue of M^1/2 S_a
            M^1/2 times tr(M S_w), as a part's matrix is M^1/2 P M^1/2 with 0 <= P <= 1.
        records: noisy.
        clear: smallest eigenvalue of the last information over its noise, without hidden levels.
        levels: names of declared levels that noise hides.
    """

    variance: float
    most: float
    records: float
    clear: float
    levels: tuple[str, ...] = ()

    @property
    def hidden(self) -> bool:
        """Whether noise hides the propensity along some column."""
        return not self.clear > _CLEAR

    def of(self, records: float) -> float:
        """Return the variance scaled to another session's records."""
        return self.variance * (records / self.records) ** 2 if self.records > 0 else np.inf

    def of_any_part(self, records: float) -> float:
        """Return the largest variance over parts of ``records`` records."""
        return self.most * (records / self.records) ** 2 if self.records > 0 else np.inf


def nuisances_of(
    schema: EffectSchema,
    rounds: Sequence[Release],
    outcome: Release,
    sums: Sequence[ArmSums],
    published: Sequence[Values],
    place: int = 0,
) -> Nuisances:
    """Compute nuisances from propensity rounds and outcome session."""
    d, own, records = schema.width, sums[place], max(sum(sums[place].records), 1.0)
    information = _Information.of(rounds[-1], levels_of_arms(schema))
    weights = information.covariance()
    lines = [(each.real[:d], each.real[d : 2 * d]) for each in published]
    residual = _residual_variance(schema, outcome, sums, lines)
    total, most, share = 0.0, 0.0, 0.0625 if schema.estimand == "overlap" else 1.0
    heaviest = 1.0 if schema.estimand == "overlap" else 1 / (schema.trim or 1.0)
    for arm in (1,) if schema.estimand == "att" else (0, 1):  # the line of the treated is not read
        spread = _covariance_of_line(own, arm, lines[place][arm], residual)
        unknown = np.sqrt(_squared_weights(schema, own.records, arm) * information.largest_hidden(own, spread))
        unknown += heaviest * information.of_levels(spread, 2 * schema.half)
        known, part = information.known(_positive(own.G[1 - arm]), spread, weights)
        total += (np.sqrt(share * known) + unknown) ** 2
        most += (np.sqrt(share * part) + unknown) ** 2
    return Nuisances(float(total), float(most), records, information.clear, information.levels)


def nuisances_of_missing(
    schema: EffectSchema, rounds: Sequence[Release], outcome: Release, sums: ArmSums, line: Values, records: float
) -> Nuisances:
    """Compute the nuisances of a trial with missing outcomes, arm by arm.

    A record within the trim has ``(1 - o) <= o (1 - o) / trim``. M, the sum of (1 - o) x x', is therefore at most the
    last round's information in that arm, over the arm's probability and the trim.

    ``sums`` are of records with an outcome, about the range's middle; ``records`` are all.
    """
    d, last, chance = schema.width, rounds[-1], schema.min_chances
    own = (line.real[:d], line.real[d : 2 * d])
    residual = _residual_variance(schema, outcome, [sums], [own])
    total, clear, levels, names = 0.0, np.inf, levels_of_arms(schema), dict[str, None]()
    for arm, part in enumerate((slice(0, d), slice(d, 2 * d))):
        information = _Information.of(last, levels, part)
        clear, smallest = min(clear, information.clear), chance[arm] * (schema.trim or 1.0)
        names |= dict.fromkeys(information.levels)
        spread = _covariance_of_line(sums, arm, own[arm], residual)
        heavy = records + max(sums.records[arm], 0.0) * (1 / smallest - 1) ** 2
        known, _ = information.known(_positive(information.H) / smallest, spread, information.covariance())
        unknown = np.sqrt(heavy * information.largest_hidden(sums, spread))
        unknown += information.of_levels(spread, 2 * schema.half) / smallest
        total += (np.sqrt(known) + unknown) ** 2
    return Nuisances(float(total), float(total), records, clear, tuple(names))


@dataclass(frozen=True, eq=False)
class _Information:
    """The last round's information H and score g, and which of H's eigenvectors noise leaves clear.

    Attributes:
        sigma: noise standard deviation on H's diagonal.
        reckoned: those of H's diagonal and of g that errors count, as :func:`reckoned_sigma` has them.
        hidden: levels that the eigenvectors leave out; None where no column is declared.
    """

    H: Array
    g: Array
    sigma: float
    reckoned: tuple[float, float]
    hidden: HiddenLevels | None = None

    @classmethod
    def of(cls, last: Release, levels: DeclaredLevels | None, part: slice = slice(None)) -> _Information:
        H, g, sigma = np.asarray(last.moments.H)[part, part], np.asarray(last.moments.g)[part], reckoned_sigma(last)
        own = cls(np.asarray((H + H.T) / 2), g, float(last.sigma["H"]), (sigma["H"], sigma["g"]))
        if levels is None:
            return own
        H = levels.possible(own.H)
        found = [replace(own, H=H, hidden=levels.hidden(H, own.sigma, sure)) for sure in HIDES]
        return next((each for each in found if each.clear > _CLEAR), found[0])

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the hidden levels."""
        return () if self.hidden is None else tuple(self.hidden.names)

    @property
    def clear(self) -> float:
        """Smallest eigenvalue over its noise."""
        smallest = float(self._eigen[0].min(initial=np.inf))
        return smallest / self.sigma if self.sigma else np.inf

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        """H's eigenvalues and eigenvectors without hidden levels, ``(m,)`` and ``(d, m)``."""
        if self.hidden is None or not self.hidden.levels:
            values, vectors = np.linalg.eigh(self.H)
            return values, vectors
        basis = self.hidden.remaining_basis(len(self.H))
        values, vectors = np.linalg.eigh(basis.T @ self.H @ basis)
        return values, basis @ vectors

    @cached_property
    def _step(self) -> Array:
        return self._inverse(*np.linalg.eigh(self.H)) @ self.g

    @cached_property
    def _noise(self) -> Array:
        """The covariance of the noise in the score after the step, ``(d, d)``."""
        return _noise(*self.reckoned, self._step)

    def _inverse(self, values: Array, vectors: Array) -> Array:
        least = max(self.sigma, _LEAST * float(np.abs(values).max(initial=1.0)))
        return np.asarray((vectors / np.maximum(values, least)) @ vectors.T)

    def _vectors(self, *, hidden: bool) -> Array:
        values, vectors = self._eigen
        return np.asarray(vectors[:, (values <= _CLEAR * self.sigma) == hidden])

    def covariance(self) -> Array:
        """Return sampling and noise of the last round's weights: H^-1 + H^-1 V H^-1, without hidden levels."""
        inverse = self._inverse(*self._eigen)
        return np.asarray(inverse + inverse @ self._noise @ inverse)

    def of_levels(self, spread: Array, most: float) -> float:
        """Return the standard deviation that a line's error adds at the records of hidden levels, per unit of weight.

        Errors of a level's propensities have one sign, so their sum is at most the level's released score, up to its
        noise. The line's error is at most ``most``, because lines are truncated to the outcome's range.
        """
        if self.hidden is None or not self.hidden.levels:
            return 0.0
        values, vectors = np.linalg.eigh(spread)
        lines = (vectors * np.sqrt(np.maximum(values, 0.0))).T
        v = self.hidden.directions
        scores = np.square(v @ (self.g - self.H @ self._step)) + np.einsum("ij,jk,ik->i", v, self._noise, v)
        largest = self.hidden.largest(lines)
        return float(np.sqrt(scores * np.minimum(np.square(largest).sum(axis=0), most**2)).sum())

    def known(self, M: Array, spread: Array, weights: Array) -> tuple[float, float]:
        """Return tr(M S_a M S_w) along the clear eigenvectors, over all records and at most over a part."""
        V = self._vectors(hidden=False)
        if not V.shape[1]:
            return 0.0, 0.0
        M, spread, weights = (V.T @ each @ V for each in (M, spread, weights))
        return float(np.trace(M @ spread @ M @ weights)), _of_any_part(M, spread, weights)

    def largest_hidden(self, sums: ArmSums, spread: Array) -> float:
        """Return the largest eigenvalue of G^1/2 S_a G^1/2 along the hidden eigenvectors.

        A line's error b adds the sum of d x'b, of weights d. By Cauchy and Schwarz its variance is at most the sum of
        d^2 times this eigenvalue, G the sum of x x' over both arms.
        """
        V = self._vectors(hidden=True)
        if not V.shape[1]:
            return 0.0
        G = _positive(V.T @ (sums.G[0] + sums.G[1]) @ V) + sums.sigma_G * np.eye(V.shape[1])
        root = np.linalg.cholesky(G + np.finfo(np.float64).tiny * np.eye(len(G)))
        return float(np.linalg.eigvalsh(root.T @ (V.T @ spread @ V) @ root)[-1])


def _squared_weights(schema: EffectSchema, arms: tuple[float, float], arm: int) -> float:
    """Return the largest sum of squared weights d of one arm's line, for any propensity within the trim.

    d is 1 - a / e for the line of the treated (``arm`` 0) and 1 - (1 - a) / (1 - e) for the others', times e (1 - e)
    for overlap weights, and times e for the treated as the population.
    """
    own, other = max(arms[arm], 0.0), max(arms[1 - arm], 0.0)
    low = schema.trim or 0.0
    if schema.estimand == "overlap":
        return own * (1 - low) ** 4 + other / 16
    return own * (1 / low - 1) ** 2 + other


def _of_any_part(M: Array, spread: Array, weights: Array) -> float:
    """Return the maximum of tr(A S_a A S_w) over 0 <= A <= M."""
    values, vectors = np.linalg.eigh(M)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    first, second = (np.linalg.eigvalsh(root @ each @ root) for each in (spread, weights))
    return float(min(first.max() * second.sum(), second.max() * first.sum()))


def _covariance_of_line(sums: ArmSums, arm: int, line: Array, residual: float) -> Array:
    G, size = _positive(sums.G[arm]), penalty(sums.sigma_G, len(line))
    raised = G + (size + _LEAST * float(np.trace(G)) + np.finfo(np.float64).tiny) * np.eye(len(line))
    inverse = np.linalg.inv(raised)
    shrunk = size * inverse @ line
    spread = residual * G + _noise(sums.sigma_G, sums.sigma_h, line)
    return np.asarray(inverse @ spread @ inverse + np.outer(shrunk, shrunk))


def _noise(sigma_G: float, sigma_h: float, b: Array) -> Array:
    """Return the covariance of the noise in h - G b."""
    half = sigma_G**2 / 2
    return np.asarray((sigma_h**2 + half * float(b @ b)) * np.eye(len(b)) + half * np.outer(b, b))


def _residual_variance(
    schema: EffectSchema, outcome: Release, sums: Sequence[ArmSums], lines: Sequence[tuple[Array, Array]]
) -> float:
    """Return outcomes' variance about both lines, from its noise to B^2; for several outcomes their sum."""
    middle, (first, *_) = schema.middle, sums
    records = max(sum(first.records), 1.0)
    squares = float(outcome.moments.q)
    for each, both in zip(sums, lines, strict=True):
        totals = sum(float(h[-1]) for h in each.h) / each.constant  # of outcomes about the middle
        squares -= 2 * middle * totals + middle**2 * sum(each.records)
        squares -= sum(float(line @ h) for line, h in zip(both, each.h, strict=True))
    return min(max(squares, float(outcome.sigma.get("q", 0.0))) / records, schema.half**2)


def _positive(G: Array) -> Array:
    values, vectors = np.linalg.eigh(G)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
