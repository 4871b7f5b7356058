"""Fit a logistic random intercept from noisy site sums of one round.

benchmarks/inference/site_level_numbers.md has the derivation.

All sites have one published intercept, so the residual sum of a site has mean 0 at the *marginal* log odds, which
average over levels. The linear score of :mod:`fit` then applies, with the information matrix in place of products of
columns. No level is estimated, so noise cannot shrink one. Quadrature over normal levels maps marginal coefficients and
the variance of the sites' residual sums to the coefficients of a usual site and to tau.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, expit

from privstats.contrib.site_levels.fit import FEWEST_DEGREES, Fit, SiteSums, clear_sites, fitted, generalised_q
from privstats.extend.support import Array

FEWEST_EFFECTIVE = 4.0
"""Minimum number of sites of equal information that the sites must amount to."""
_POINTS, _MASS = np.polynomial.hermite_e.hermegauss(24)
_MASS = _MASS / _MASS.sum()
_MAX_ITERATIONS = 30
_ATTENUATION = (16 * math.sqrt(3) / (15 * math.pi)) ** 2  # Zeger, Liang and Albert 1988
_MAX_TAU = 5.0  # in log odds: beyond it most sites have one outcome only
_MAX_ODDS, _SPREADS = 5.0, (0.05, 3.0)
_LEAST = 0.05  # variance of a residual inside a site, over the marginal one
_NEAR = 1.0  # root mean square of the change of log odds since the published weights
_BENT = 1 / 3  # standard errors by which the change's square may move a coefficient
_RARE = 2.5  # mean log odds beyond which an outcome is rare, so that its step must be clear of noise
_SURE = 2.0  # standard errors of the noise that the step of a rare outcome must allow for
_MOVE = 0.1  # step of tau in derivatives
_FLATTEST = -1.0  # excess kurtosis of a level's residuals


@dataclass(frozen=True)
class Odds:
    """Marginal log odds of records, normal under their weights v = m (1 - m).

    Attributes:
        mean, spread: weighted mean and standard deviation.
    """

    mean: float
    spread: float

    @property
    def variance(self) -> float:
        """Variance of an outcome at the mean log odds."""
        return float(expit(self.mean) * expit(-self.mean))

    @cached_property
    def _marginal(self) -> tuple[Array, Array]:
        mean = expit(self.mean + self.spread * _POINTS)
        return mean, mean * (1 - mean)

    def usual(self, tau: float) -> tuple[float, float]:
        """Return intercept and factor of a usual site's log odds: ``intercept + factor * (marginal - mean)``.

        They solve the two equations by which a logistic regression fits the mean over levels of standard deviation
        ``tau``: residuals, and their products with log odds, have mean 0.
        """
        (marginal, variance), away = self._marginal, self.spread * _POINTS
        factor = math.sqrt(1 + _ATTENUATION * tau**2)
        both, design = np.array([self.mean * factor, factor]), np.column_stack([np.ones(len(away)), away])
        for _ in range(_MAX_ITERATIONS):
            inside = expit((design @ both)[:, None] + tau * _POINTS)
            residuals, slopes = (inside @ _MASS - marginal) / variance, (inside * (1 - inside)) @ _MASS / variance
            step = np.linalg.solve(design.T @ ((_MASS * slopes)[:, None] * design), design.T @ (_MASS * residuals))
            both -= step
            if np.abs(step).max() < 1e-10:
                break
        return float(both[0]), float(both[1])

    def law(self, tau: float) -> Law:
        """Return the law of a site's residuals where levels have the standard deviation ``tau``."""
        if tau == 0:
            return Law(0.0, 0.0)
        own, factor = self.usual(tau)
        inside = expit((own + factor * self.spread * _POINTS)[:, None] + tau * _POINTS)
        residuals = (inside - (inside @ _MASS)[:, None]) / self._marginal[1][:, None]
        square, fourth = (float(_MASS @ (_MASS @ residuals) ** power) for power in (2, 4))
        return Law(square, max(fourth / square**2 - 3, _FLATTEST))

    def tau(self, level: float) -> float:
        """Return the standard deviation of levels at which residuals' means have this variance; infinite beyond 5."""
        if level <= 0:
            return 0.0
        if self.law(_MAX_TAU).level <= level:
            return math.inf
        return float(brentq(lambda tau: self.law(tau).level - level, 0.0, _MAX_TAU, xtol=1e-9))


@dataclass(frozen=True)
class Law:
    """The law of a site's weighted mean residual over its level, in units of an outcome's variance.

    Attributes:
        level: variance of the mean residual.
        kurtosis: its excess kurtosis.
    """

    level: float
    kurtosis: float


@dataclass(frozen=True, eq=False)
class LogitFit(Fit):
    """A fitted logistic random intercept: coefficients of a usual site, and the variance of levels in log odds.

    Attributes:
        marginal: the fit of marginal coefficients' change since the published weights.
        odds: marginal log odds of records.
        near: whether the published weights are near enough for one step.
        effective: number of sites of equal information that have as large a sum of squares.
    """

    marginal: Fit
    odds: Odds
    near: bool
    effective: float

    @property
    def spread(self) -> bool:
        """Whether the information is spread over enough sites."""
        return self.effective >= FEWEST_EFFECTIVE

    @property
    def reported(self) -> bool:
        """Whether noise and the published weights determine the coefficients, and tau is at most 5."""
        return self.marginal.reported and self.near and self.spread and math.isfinite(self.level)

    def tau(self, alpha: float) -> tuple[float, float]:
        """Return the interval of tau by inverting Q, whose law has the kurtosis of levels; as :meth:`Fit.tau`.

        Where persons' rows are averaged, an end has the fewest degrees of both residual variances.
        """
        places = clear_sites(self.sums)
        free = len(places) - self.sums.t.shape[1]
        if not self.reported or free < FEWEST_DEGREES:
            return 0.0, math.inf

        def excess(tau: float, part: float, share: float) -> float:
            law = self.odds.law(tau)
            inside = _inside(self.odds, law.level)
            shares = [_share(self.sums, self.marginal.b, law.level, each * inside) for each in (1.0, self.sums.least)]
            degrees = free / (1 + max(law.kurtosis / 2 * each for each in shares))
            q = generalised_q(self.sums, self.marginal.b, part * inside, places)(law.level)
            return float(q * degrees / free - chdtri(degrees, share))

        parts = ((1.0, alpha / 2), (self.sums.least, 1 - alpha / 2))
        low, high = (_end(partial(excess, part=part, share=share)) for part, share in parts)
        return (low, high) if 0 < high < math.inf else (0.0, math.inf)


def _end(excess: Callable[[float], float]) -> float:
    """Return the root of a decreasing function of tau: 0 where it starts below 0, infinity where it stays above."""
    if excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, _MAX_TAU, xtol=1e-6)) if excess(_MAX_TAU) < 0 else math.inf


def _inside(odds: Odds, level: float) -> float:
    """Return the variance of a residual inside a site, over the marginal one."""
    return max(1 - level * odds.variance, _LEAST)


def _share(sums: SiteSums, b: Array, level: float, inside: float) -> float:
    """Return the mean square of the levels' share in the variance of clear sites' residual sums."""
    n = sums.t[clear_sites(sums), 0]
    if not len(n):
        return 0.0
    return float(np.square(n**2 * level / (n * inside + n**2 * level + sums.site_noise(b))).mean())


def _moments(sums: SiteSums, b: Array) -> tuple[float, float]:
    """Return the weighted mean and standard deviation of the log odds with coefficients b."""
    mean = float(sums.gram[0] @ b / sums.gram[0, 0])
    return mean, math.sqrt(max(float(b @ sums.gram @ b / sums.gram[0, 0]) - mean**2, 0.0))


def _odds(sums: SiteSums, b: Array) -> Odds:
    mean, spread = _moments(sums, b)
    return Odds(float(np.clip(mean, -_MAX_ODDS, _MAX_ODDS)), float(np.clip(spread, *_SPREADS)))


def fitted_logit(sums: SiteSums, weights: Array) -> LogitFit:
    """Fit by one step from the published weights, in which tau and the variance inside sites alternate.

    Of persons' averages, tau is known up to the residual variance alone: coefficients are at the middle of what it may
    be, and the largest distance to one of its ends adds to the errors as a bias does.

    Args:
        sums: of scores and information: ``sy`` and ``h`` hold scores, ``t`` and ``G`` information.
        weights: intercept and slopes at which the scores were measured, ``(p + 1,)``.
    """
    found = fitted(sums, known=partial(_inside, _odds(sums, weights)))
    odds = _odds(sums, weights + found.b)
    near, effective, tau = _near(sums, found, odds), _effective(sums), odds.tau(found.level)
    ends = [odds.tau(max(found.level + gap, 0.0)) for gap in (-found.gap, found.gap)] if found.gap else [tau]
    if math.isinf(ends[-1]):
        fields = {**vars(found), "level": math.inf}
        return LogitFit(**fields, marginal=found, odds=odds, near=near, effective=effective)

    def own(tau: float) -> Array:
        intercept, factor = odds.usual(tau)
        shift = np.append(intercept - factor * odds.mean, np.zeros(len(found.b) - 1))
        return np.asarray(factor * (weights + found.b) + shift)

    law, factor = odds.law(tau), odds.usual(tau)[1]
    below, above = math.sqrt(max(tau**2 - _MOVE**2, 0.0)), math.hypot(tau, _MOVE)
    per_level = (own(above) - own(below)) / (odds.law(above).level - odds.law(below).level)
    of_level = found.variances[1] * (1 + law.kurtosis / 2 * _share(sums, found.b, found.level, found.residual))
    square = factor**2
    bias = max((own(end) - own(tau) for end in ends), key=np.linalg.norm)
    return LogitFit(
        sums,
        own(tau),
        square * found.covariance + of_level * np.outer(per_level, per_level) + np.outer(bias, bias),
        square * found.noise,
        (square * found.parts[0], square * found.parts[1]),
        (0.0, of_level),
        found.residual,
        tau**2,
        found.solved,
        found.clear,
        found.gap,
        found,
        odds,
        near,
        effective,
    )


def _effective(sums: SiteSums) -> float:
    n = np.maximum(sums.t[:, 0], 0.0)
    return float(n.sum() ** 2 / max(np.maximum(n**2 - sums.sigma_G**2, 0.0).sum(), 1e-12))


def _near(sums: SiteSums, fit: Fit, odds: Odds) -> bool:
    """Return whether the second order of the step from the published weights is small beside standard errors.

    A change d of log odds moves the mean outcome by ``v d + v (1 - 2 m) d**2 / 2``. The second term counts as
    intercept by ``1 - 2 m`` at the mean log odds, and as slopes by the derivative ``-2 v`` times their spread. Rounds
    of a rare outcome converge slowly: there the upper end of d under noise counts, and for slopes also the product of
    the changes of intercept and slopes.
    """
    means = sums.gram[0] / sums.gram[0, 0]
    deviations = np.sqrt(np.maximum(np.diag(sums.gram) / sums.gram[0, 0] - means**2, 0.0))[1:]
    change, spread = np.abs(_moments(sums, fit.b))
    level = _BENT * math.sqrt(max(float(means @ fit.covariance @ means), 0.0))
    slopes = _BENT * float((np.sqrt(np.maximum(np.diag(fit.covariance)[1:], 0.0)) * deviations).min())
    curvature, crossed = math.tanh(abs(odds.mean) / 2), 0.0
    if abs(odds.mean) > _RARE:
        change += _SURE * math.sqrt(max(float(means @ fit.noise @ means), 0.0))
        spread += _SURE * math.sqrt(max(float(np.diag(fit.noise)[1:] @ deviations**2), 0.0))
        crossed = curvature * change * spread
    moved = change**2 + spread**2
    bent = curvature * moved / 2, odds.variance * odds.spread * moved + crossed
    return bool(moved <= _NEAR and bent[0] <= level and bent[1] <= slopes)
