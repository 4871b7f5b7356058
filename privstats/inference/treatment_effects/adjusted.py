"""Adjusted risks or means by arm of a trial: each arm's outcome line, averaged over the columns of both arms.

This is standardisation, the g-formula of one time point (Robins 1986). The outcome session's sums and the effect hold
all of it: nothing further is released, so nothing further is paid, and unit, adjacency and bound are the course's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privstats.estimates.denoise import Array
from privstats.estimates.effect import ArmSums, penalty
from privstats.inference.inversion import quantile
from privstats.schema import EffectSchema


@dataclass(frozen=True)
class AdjustedMean:
    """One arm's adjusted mean, with its interval.

    With y_a the mean outcome of an arm, x_a and x the mean columns of the arm and of all records, and b_a the arm's
    published line, it is ``y_a + (x - x_a)' b_a``. In a trial its mean is that of the population under the arm,
    whatever the line. Its variance by sampling is ``v(m) / n + (n / n_a - 1) (v(m) - g) / n``, v the variance of
    outcomes and g the part of it that the line explains. The noise is added by the delta method, and the means accepted
    at a level are its interval, as for the plain mean.

    Attributes:
        mean: NaN where it is not reported.
        low, high: ends of its interval; infinite where it is not reported.

    Example:
        >>> from privstats.inference.treatment_effects.adjusted import AdjustedMean
        >>> AdjustedMean(0.3, 0.28, 0.32).reported
        True
    """

    mean: float
    low: float
    high: float

    @property
    def reported(self) -> bool:
        """Whether noise leaves the mean to be read."""
        return math.isfinite(self.high)

    def to_row(self) -> dict[str, object]:
        """Return mean and interval by the names of a frame's columns."""
        return {"estimate": self.mean, "conf_low": self.low, "conf_high": self.high, "told": self.reported}


def has_adjusted_means(schema: EffectSchema) -> bool:
    """Return whether a plan's sums hold adjusted means: a trial with one probability, all outcomes and a difference."""
    return isinstance(schema.probability, float) and not schema.missing and schema.measure != "ratio"


@dataclass(frozen=True, eq=False)
class Standardisation:
    """Both arms' lines and sums, for their means over the columns of all records. The treated come first.

    Attributes:
        sums: of the outcome session, about the middle of the range of outcomes.
        lines: the published lines of both arms.
        middle: the middle of the range of outcomes.
        sigma_G, sigma_h: standard deviations of the noise in the released sums.

    Example:
        >>> from privstats.estimates.effect import ArmSums
        >>> from privstats.inference.treatment_effects.adjusted import Standardisation
        >>> G = np.array([[25.0, 0.0], [0.0, 100.0]])
        >>> sums = ArmSums((G, G), (np.array([0.0, 10.0]), np.array([0.0, 5.0])), 1.0, 0.0, 0.0)
        >>> Standardisation(sums, (np.zeros(2), np.zeros(2)), 0.5, 0.0, 0.0).means.tolist()
        [0.1, 0.05]
    """

    sums: ArmSums
    lines: tuple[Array, Array]
    middle: float
    sigma_G: float
    sigma_h: float

    @property
    def _all(self) -> Array:
        """Mean row of all records, the constant last."""
        total = self.sums.G[0][:, -1] + self.sums.G[1][:, -1]
        return np.asarray(self.sums.constant * total / total[-1])

    def _apart(self, arm: int) -> Array:
        """Mean row of all records less that of an arm."""
        G = self.sums.G[arm]
        return np.asarray(self._all - self.sums.constant * G[:, -1] / G[-1, -1])

    @property
    def means(self) -> Array:
        """Adjusted means of both arms about the middle of the range, ``(2,)``."""
        c = self.sums.constant
        plain = [c * h[-1] / G[-1, -1] for G, h in zip(self.sums.G, self.sums.h, strict=True)]
        return np.array([plain[arm] + float(self._apart(arm) @ self.lines[arm]) for arm in (0, 1)])

    def explained(self, arm: int) -> float:
        """Return the variance of an arm's outcomes that its line explains; below 0 where the line is worse than the
        mean."""
        G, h, line, n = self.sums.G[arm], self.sums.h[arm], self.lines[arm], self.sums.records[arm]
        plain = float(h[-1]) / self.sums.constant / n
        return float(2 * line @ h - line @ G @ line) / n - plain**2

    def noise(self, weights: tuple[float, float]) -> float:
        """Return the variance by noise of a weighted sum of both means, to first order in the noise of G and h.

        The lines follow from the same noisy sums, and the derivative contains them.
        """
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
        """Return the derivatives of one mean: by its arm's G, by either arm's G through the mean row, and by its h."""
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
    """Return the adjusted means of both arms about the middle of the range; their difference is the effect.

    The last session knows the effect far better than the outcome session knows either mean. So each mean is the
    weighted mean of both arms' means, the effect added or subtracted: weights are by the variance of their noise.

    Args:
        both: sums and lines of the outcome session.
        half: half the range of outcomes.
        effect: of the last session, with the standard error from its noise; None where that session summed other
            records, and each mean stands alone.
        squares: the maximum sum of outcomes' squares about their mean; None: what their range allows.
        alpha: level.
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
    """Return the means m with ``(mean - m)^2 <= z^2 (variance(m) + noise)``.

    v(m) is ``half^2 - m^2``, or the outcomes' squares over the records where those are smaller.
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
