"""Adjust a trial's risks or means by arm: standardisation (the g-formula; Robins 1986).

Released sums suffice, so nothing further is paid: unit, adjacency and bound are the course's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privstats.estimates.denoise import Array
from privstats.estimates.effect import ArmSums, penalty
from privstats.inference.inversion import quantile
from privstats.kinds import EffectSchema


@dataclass(frozen=True)
class AdjustedMean:
    """One arm's adjusted mean, with its interval.

    The mean is ``y_a + (x - x_a)' b_a``: the arm's mean outcome y_a, mean columns x_a of the arm and x of all records,
    and the arm's published line b_a. In a trial its expectation is the population's mean under the arm, whatever the
    line. Its sampling variance is ``v(m) / n + (n / n_a - 1) (v(m) - g) / n``, with v the outcomes' variance and g the
    part that the line explains. The delta method adds the noise.

    Attributes:
        mean: NaN where not reported.
        low, high: infinite where not reported.
    """

    mean: float
    low: float
    high: float

    @property
    def reported(self) -> bool:
        """Whether the interval is finite."""
        return math.isfinite(self.high)

    def to_row(self) -> dict[str, object]:
        """Return values by column name."""
        return {"estimate": self.mean, "conf_low": self.low, "conf_high": self.high, "reported": self.reported}


def has_adjusted_means(schema: EffectSchema) -> bool:
    """Return whether sums hold adjusted means: one probability, no missing outcomes, no ratio."""
    return isinstance(schema.probability, float) and not schema.missing and schema.measure != "ratio"


@dataclass(frozen=True, eq=False)
class Standardisation:
    """Lines and sums of both arms, the treated first.

    Sums are about ``middle``, that of the outcome range.
    """

    sums: ArmSums
    lines: tuple[Array, Array]
    middle: float
    sigma_G: float
    sigma_h: float

    @property
    def _all(self) -> Array:
        total = self.sums.G[0][:, -1] + self.sums.G[1][:, -1]
        return np.asarray(self.sums.constant * total / total[-1])

    def _apart(self, arm: int) -> Array:
        G = self.sums.G[arm]
        return np.asarray(self._all - self.sums.constant * G[:, -1] / G[-1, -1])

    @property
    def means(self) -> Array:
        """Adjusted means about the range's middle, ``(2,)``."""
        c = self.sums.constant
        plain = [c * h[-1] / G[-1, -1] for G, h in zip(self.sums.G, self.sums.h, strict=True)]
        return np.array([plain[arm] + float(self._apart(arm) @ self.lines[arm]) for arm in (0, 1)])

    def explained(self, arm: int) -> float:
        """Return an arm's explained variance; negative if worse than the mean."""
        G, h, line, n = self.sums.G[arm], self.sums.h[arm], self.lines[arm], self.sums.records[arm]
        plain = float(h[-1]) / self.sums.constant / n
        return float(2 * line @ h - line @ G @ line) / n - plain**2

    def noise(self, weights: tuple[float, float]) -> float:
        """Return a weighted sum's noise variance, to first order, lines' noise included."""
        G_slopes, of_h = [np.zeros_like(each) for each in self.sums.G], 0.0
        for arm, weight in enumerate(weights):
            own, shared, slope_h = self._slopes(arm)
            G_slopes[arm] += weight * own
            for each in G_slopes:
                each += weight * shared
            of_h += weight**2 * float(slope_h @ slope_h)
        squares = sum(float(np.square((each + each.T) / 2).sum()) for each in G_slopes)
        return self.sigma_h**2 * of_h + self.sigma_G**2 * squares

    def _slopes(self, arm: int) -> tuple[Array, Array, Array]:
        """Return one mean's derivatives by its G, by either G via the mean row, and by h."""
        G, h, line, c = self.sums.G[arm], self.sums.h[arm], self.lines[arm], self.sums.constant
        apart, one, N = self._apart(arm), np.eye(len(line))[-1], float(G[-1, -1])
        values, vectors = np.linalg.eigh(G)
        raised = np.maximum(values, 0.0) + penalty(self.sums.sigma_G, len(G))
        clear = raised > 1e-12 * float(np.abs(values).max(initial=0.0))
        through = vectors @ (np.where(clear, 1 / np.where(clear, raised, 1.0), 0.0) * (vectors.T @ apart))
        slope_h = c / N * one + through
        residual = float(h[-1] - G[:, -1] @ line)
        column = -c / N * line - c * residual / N**2 * one - self.middle / c * slope_h
        total = float(self.sums.G[0][-1, -1] + self.sums.G[1][-1, -1])
        shared = (c * line - float(self._all @ line) * one) / total
        return np.outer(column, one) - np.outer(through, line), np.outer(shared, one), slope_h


def adjusted_means(
    both: Standardisation, half: float, effect: tuple[float, float] | None, squares: float | None, alpha: float
) -> tuple[AdjustedMean, AdjustedMean]:
    """Return both arms' adjusted means about the range's middle; their difference is the effect.

    The last session estimates the effect far better than the outcome session estimates either mean. Each mean therefore
    averages both arms' means, shifted by the effect and weighted by noise variance.

    Args:
        half: half the outcome range.
        effect: with its noise error; None where the last session summed other records.
        squares: maximum sum of squares about the outcomes' mean, or None.
    """
    numbers = np.array(both.sums.records)
    share = float(numbers[0] ** 2 / (numbers**2).sum())
    means, results = both.means, list[AdjustedMean]()
    for arm, part in enumerate((1 - share, -share)):
        weights = (share, 1 - share) if effect else ((1.0, 0.0), (0.0, 1.0))[arm]
        difference, error = effect or (0.0, 0.0)
        mean = float(means @ weights) + part * difference
        noise = both.noise(weights) + (part * error) ** 2
        low, high = _interval(both, arm, mean, noise, half, squares, alpha)
        results.append(AdjustedMean(min(max(mean, -half), half), max(low, -half), min(high, half)))
    return results[0], results[1]


def _interval(
    both: Standardisation, arm: int, mean: float, noise: float, half: float, squares: float | None, alpha: float
) -> tuple[float, float]:
    """Return the m with ``(mean - m)^2 <= z^2 (variance(m) + noise)``.

    v(m) is the smaller of ``half^2 - m^2`` and the outcomes' squares over the records.
    """
    n, own, z2 = sum(both.sums.records), both.sums.records[arm], quantile(alpha, math.inf) ** 2
    others = (n / own - 1) * own / max(own - len(both.lines[arm]), 1.0) / n
    v = min(half**2 - min(abs(mean), half) ** 2, math.inf if squares is None else squares / own)
    explained = others * min(both.explained(arm), v)
    part = z2 * (1 / n + others)
    rest = z2 * (noise - explained)
    inside = mean**2 - (1 + part) * (mean**2 - part * half**2 - rest)
    root = math.sqrt(max(inside, 0.0))
    low, high = (mean - root) / (1 + part), (mean + root) / (1 + part)
    if squares is not None:
        reach = math.sqrt(max(part * squares / own + rest, 0.0))
        low, high = max(low, mean - reach), min(high, mean + reach)
    return low, high
