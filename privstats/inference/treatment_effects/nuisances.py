"""Bound the variance that errors of a propensity and of outcome lines add to an effect.

An influence value has no first-order error in either. Their product has mean 0, because the sessions' noise is
independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privstats.estimates.denoise import Array
from privstats.estimates.effect import ArmSums, penalty
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
        clear: smallest eigenvalue of the last information over its noise.
    """

    variance: float
    most: float
    records: float
    clear: float

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
    information = _Information.of(rounds[-1])
    weights = _covariance_of_weights(rounds[-1])
    lines = [(each.real[:d], each.real[d : 2 * d]) for each in published]
    residual = _residual_variance(schema, outcome, sums, lines)
    total, most, share = 0.0, 0.0, 0.0625 if schema.estimand == "overlap" else 1.0
    for arm in (1,) if schema.estimand == "att" else (0, 1):  # the line of the treated is not read
        spread = _covariance_of_line(own, arm, lines[place][arm], residual)
        unknown = _squared_weights(schema, own.records, arm) * information.largest_hidden(own, spread)
        known, part = information.known(_positive(own.G[1 - arm]), spread, weights)
        total += (np.sqrt(share * known) + np.sqrt(unknown)) ** 2
        most += (np.sqrt(share * part) + np.sqrt(unknown)) ** 2
    return Nuisances(float(total), float(most), records, information.clear)


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
    total, clear = 0.0, np.inf
    for arm, part in enumerate((slice(0, d), slice(d, 2 * d))):
        information = _Information.of(last, part)
        clear, smallest = min(clear, information.clear), chance[arm] * (schema.trim or 1.0)
        spread = _covariance_of_line(sums, arm, own[arm], residual)
        heavy = records + max(sums.records[arm], 0.0) * (1 / smallest - 1) ** 2
        known, _ = information.known(_positive(information.H) / smallest, spread, _covariance_of_weights(last, part))
        total += (np.sqrt(known) + np.sqrt(heavy * information.largest_hidden(sums, spread))) ** 2
    return Nuisances(float(total), float(total), records, clear)


@dataclass(frozen=True)
class _Information:
    """The last round's information H, and which of its eigenvectors noise leaves clear."""

    H: Array
    sigma: float

    @classmethod
    def of(cls, last: Release, part: slice = slice(None)) -> _Information:
        H = np.asarray(last.moments.H)[part, part]
        return cls(np.asarray((H + H.T) / 2), float(last.sigma["H"]))

    @property
    def clear(self) -> float:
        """Smallest eigenvalue over its noise."""
        smallest = float(np.linalg.eigvalsh(self.H)[0])
        return smallest / self.sigma if self.sigma else np.inf

    def _vectors(self, *, hidden: bool) -> Array:
        values, vectors = np.linalg.eigh(self.H)
        return np.asarray(vectors[:, (values <= _CLEAR * self.sigma) == hidden])

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


def _covariance_of_weights(last: Release, part: slice = slice(None)) -> Array:
    """Return sampling and noise of the last round's weights: H^-1 + H^-1 V H^-1."""
    H, g = np.asarray(last.moments.H)[part, part], np.asarray(last.moments.g)[part]
    values, vectors = np.linalg.eigh((H + H.T) / 2)
    values = np.maximum(values, max(float(last.sigma["H"]), _LEAST * float(np.abs(values).max(initial=1.0))))
    inverse = (vectors / values) @ vectors.T
    step = inverse @ g
    return np.asarray(inverse + inverse @ _noise(reckoned_sigma(last)["H"], reckoned_sigma(last)["g"], step) @ inverse)


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
