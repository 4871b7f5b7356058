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
from privstats.release import Release
from privstats.schema import EffectSchema
from privstats.schema.public_values import Values

_LEAST = 1e-9  # of the largest eigenvalue of a matrix that is inverted
_CLEAR = 3.0  # standard deviations of its noise that the smallest eigenvalue of the information must exceed


@dataclass(frozen=True)
class Nuisances:
    """Variance that a published propensity and published lines add to S.

    Attributes:
        variance: sum over arms of tr(M S_a M S_w), in squared outcome units, for the outcome session's records. M is
            the other arm's sum of x x', S_a a line's covariance with its penalty's shrinkage, S_w that of w.
        most: maximum of it over parts of these records: min over both orders of the largest eigenvalue of M^1/2 S_a
            M^1/2 times tr(M S_w), as a part's matrix is M^1/2 P M^1/2 with 0 <= P <= 1.
        bound: the largest variance under any propensity within the trim, however wrong: a line's error b adds the sum
            of d x'b, d at most the largest weight. So its variance is at most the sum of d^2 times the largest
            eigenvalue of G^1/2 S_a G^1/2.
        records: noisy.
        clear: smallest eigenvalue of the last information over its noise.
    """

    variance: float
    most: float
    bound: float
    records: float
    clear: float

    @property
    def hidden(self) -> bool:
        """Whether noise hides the propensity along some column, so that ``bound`` counts."""
        return not self.clear > _CLEAR

    def of(self, records: float) -> float:
        """Return the variance scaled to another session's records."""
        return self._scaled(self.variance, records)

    def of_any_part(self, records: float) -> float:
        """Return the largest variance over parts of ``records`` records."""
        return self._scaled(self.most, records)

    def _scaled(self, variance: float, records: float) -> float:
        own = self.bound if self.hidden else min(variance, self.bound)
        return own * (records / self.records) ** 2 if self.records > 0 else np.inf


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
    information = np.asarray(rounds[-1].moments.H)
    smallest = float(np.linalg.eigvalsh((information + information.T) / 2)[0])
    sigma = float(rounds[-1].sigma["H"])
    weights = _covariance_of_weights(rounds[-1])
    lines = [(each.real[:d], each.real[d : 2 * d]) for each in published]
    residual = _residual_variance(schema, outcome, sums, lines)
    total, most, bound, share = 0.0, 0.0, 0.0, 0.0625 if schema.estimand == "overlap" else 1.0
    for arm in (1,) if schema.estimand == "att" else (0, 1):  # the line of the treated is not read
        other = _positive(own.G[1 - arm])
        spread = _covariance_of_line(own, arm, lines[place][arm], residual)
        total += share * float(np.trace(other @ spread @ other @ weights))
        most += share * _of_any_part(other, spread, weights)
        bound += _squared_weights(schema, own.records, arm) * _largest(own, spread)
    return Nuisances(total, most, bound, records, smallest / sigma if sigma else np.inf)


def nuisances_of_missing(
    schema: EffectSchema, rounds: Sequence[Release], outcome: Release, sums: ArmSums, line: Values, records: float
) -> Nuisances:
    """Compute the nuisances of a trial with missing outcomes, arm by arm.

    A record within the trim has ``(1 - o) <= o (1 - o) / trim``. M, the sum of (1 - o) x x', is therefore at most the
    last round's information in that arm, over the arm's probability and the trim.

    ``sums`` are of records with an outcome, about the range's middle; ``records`` are all.
    """
    d, last, chance = schema.width, rounds[-1], schema.min_chances
    sigma, own = float(last.sigma["H"]), (line.real[:d], line.real[d : 2 * d])
    residual = _residual_variance(schema, outcome, [sums], [own])
    total, bound, clear = 0.0, 0.0, np.inf
    for arm, part in enumerate((slice(0, d), slice(d, 2 * d))):
        information = np.asarray(last.moments.H)[part, part]
        smallest = float(np.linalg.eigvalsh((information + information.T) / 2)[0])
        clear = min(clear, smallest / sigma if sigma else np.inf)
        M = _positive((information + information.T) / 2) / (chance[arm] * (schema.trim or 1.0))
        spread = _covariance_of_line(sums, arm, own[arm], residual)
        total += float(np.trace(M @ spread @ M @ _covariance_of_weights(last, part)))
        heaviest = 1 / (chance[arm] * (schema.trim or 1.0)) - 1
        bound += (records + max(sums.records[arm], 0.0) * heaviest**2) * _largest(sums, spread)
    return Nuisances(total, total, bound, records, clear)


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


def _largest(sums: ArmSums, spread: Array) -> float:
    """Return the largest eigenvalue of G^1/2 S G^1/2, G of both arms and not below its noise."""
    G = _positive(sums.G[0]) + _positive(sums.G[1]) + sums.sigma_G * np.eye(len(spread))
    root = np.linalg.cholesky(G + _LEAST * float(np.trace(G)) * np.eye(len(spread)))
    return float(np.linalg.eigvalsh(root.T @ spread @ root)[-1])


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
