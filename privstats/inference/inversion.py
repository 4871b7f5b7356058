"""Compute confidence intervals by test inversion from normal equations with Gaussian noise of known level.

For ``G b = h`` with observed ``G + E`` and ``h + e`` the score at b is exactly

    (h + e) - (G + E) b = X' eps + (e - E b),   covariance  s2 G + V(b),
    V(b) = (sigma_h^2 + sigma_G^2 |b|^2 / 2) I + (sigma_G^2 / 2) b b',

for E symmetric with variance sigma_G^2 on its diagonal and half of it elsewhere. A value t of a contrast c'b is
accepted where the score along ``a = G^-1 c / c'G^-1 c`` is within its quantile, one quadratic inequality (Fieller
1954). Where the accepted set is unbounded the contrast is *not reported*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import chndtr, chndtrix, fdtrc, ndtr, ndtri, stdtr, stdtrit

from privstats.estimates.denoise import Array
from privstats.inference.hidden_levels import HiddenLevels

_LOST = math.sqrt(np.finfo(np.float64).eps)
_NORMAL = 1e12  # degrees from which F and chi2 agree to every digit
_STUDENT = (1.96**2 + 1) / 4  # of Student's quantile for a variance that is not known exactly
_FAR = 30.0  # standard deviations of bias from which |Z + bias| is |bias| + Z to every digit


class Errors(Protocol):
    """Interface of a regression's errors, per parameter."""

    @property
    def estimate(self) -> Array:
        """Estimates."""

    @property
    def error(self) -> Array:
        """Standard errors."""

    @property
    def noise_error(self) -> Array:
        """Standard errors from noise alone."""

    @property
    def df(self) -> Array:
        """Degrees of freedom of the law of P values and intervals; infinite for the normal law."""

    def reported(self, alpha: float) -> NDArray[np.bool_]:
        """Return whether the interval at this level is bounded."""

    def statistics(self, null: Array | float = 0.0) -> Array:
        """Return test statistics of "parameter == null"."""

    def pvalues(self, null: Array | float = 0.0) -> Array:
        """Return two-sided p-values of "parameter == null"."""

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:
        """Return the intervals' ends."""

    def combined(self, rows: Array) -> Errors:
        """Return the errors of linear combinations."""

    def joint_pvalue(self) -> float:
        """Return the p-value of "all parameters are 0"."""


@dataclass(frozen=True)
class NormalEquations:
    """Least-squares sums G ``(p, p)``, h ``(p,)`` and q, and their noise.

    Attributes:
        sigma_G, sigma_h, sigma_q: noise standard deviations; G's off-diagonal has sigma_G / sqrt 2.
        degrees: records minus columns.
        known_variance: fixed by the model, or None.
        score_variance: J, the score's covariance where it was summed, ``(p, p)``; None: it is the variance times G.
        sigma_J: noise standard deviation on J's diagonal.
    """

    G: Array
    h: Array
    q: float
    sigma_G: float
    sigma_h: float
    sigma_q: float
    degrees: float
    known_variance: float | None = None
    score_variance: Array | None = None
    sigma_J: float = 0.0

    @cached_property
    def eigenvalues(self) -> Array:
        """Eigenvalues of G, ascending, ``(p,)``."""
        return self._eigen[0]

    @property
    def determined(self) -> Array:
        """Ascending eigenvalues of G that are not 0 up to rounding."""
        return self.eigenvalues[~self._null(self.eigenvalues)]

    @cached_property
    def lost(self) -> Array:
        """Orthonormal directions of exactly collinear columns, ``(p, k)``."""
        values, vectors = self._eigen
        return vectors[:, self._null(values)]

    @cached_property
    def regular(self) -> Array:
        """Orthonormal directions of all other columns, ``(p, p - k)``."""
        values, vectors = self._eigen
        return vectors[:, ~self._null(values)]

    @cached_property
    def inverse(self) -> Array:
        """Inverse of G without the lost directions, ``(p, p)``."""
        if not self.lost.size:
            inverse = np.linalg.inv(self.G)
            return np.asarray((inverse + inverse.T) / 2)
        return np.asarray((self.regular / self.determined) @ self.regular.T)

    @cached_property
    def solution(self) -> Array:
        """w = G^-1 h, ``(p,)``."""
        return self.inverse @ self.h

    @cached_property
    def variance(self) -> float:
        """Estimated residual variance s2: ``max(RSS + tr(G^-1 V(w))+, sd) / degrees``.

        The trace undoes the noise's second-order bias. The floor sd is one standard deviation of RSS's own noise, since
        a noisy q may be negative.
        """
        if self.known_variance is not None:
            return self.known_variance
        w, k = self.solution, self.sigma_G**2 / 2
        length = float(w @ w)
        bias = (self.sigma_h**2 + k * length) * float(np.trace(self.inverse)) + k * float(w @ self.inverse @ w)
        deviation = math.sqrt(self.sigma_q**2 + 4 * self.sigma_h**2 * length + self.sigma_G**2 * length**2)
        return max(self.q - float(self.h @ w) + max(bias, 0.0), deviation, 0.0) / self.degrees

    def mapped(self, change: Callable[[Array], Array]) -> NormalEquations:
        """Return these equations with G, h and J replaced by their images."""
        measured = None if self.score_variance is None else change(self.score_variance)
        return replace(self, G=change(self.G), h=change(self.h), score_variance=measured)

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(self.G)
        return values, vectors

    def _null(self, values: Array) -> NDArray[np.bool_]:
        return np.asarray(np.abs(values) <= len(values) * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0))


@dataclass(frozen=True)
class Inversion:
    """Tests and intervals of contrasts of the solution, ``(m,)``.

    Where the score's covariance J was summed, its variance along a direction a is the larger of ``a'Ja`` and the
    model's ``s2 a'Ga``. So noise in J never makes an interval narrower than the model's. A variance V that is known up
    to a relative error c needs Student's quantiles with ``2 / c^2`` degrees. At 5 % these are the normal ones of a
    variance larger by ``(z^2 + 1) / 4 c^2``, so V grows by that, with ``c = sigma_J |a|^2 / V``.

    Attributes:
        contrasts: ``(m, p)``: parameter i is ``contrasts[i] @ b``.
        degrees: of the t quantiles; infinite for a known variance.
        bias: for approximate equations with infinite degrees, the largest distance in the norm of G between their b and
            the intended one. Quantiles are those of |Z + ``relative_bias``|, valid for every bias up to it (Armstrong
            and Kolesar 2018).
        residual: largest sum of |residuals| that approximate equations leave out.
        largest: of lines a, ``(m, p)``, the largest |a'x| of a record; without a bias None.
        hidden: levels that the equations leave out, which add bias and noise to every contrast.
    """

    equations: NormalEquations
    contrasts: Array
    degrees: float
    bias: float = 0.0
    residual: float = math.inf
    largest: Callable[[Array], Array] | None = None
    hidden: HiddenLevels | None = None

    @cached_property
    def estimate(self) -> Array:
        """Parameters at the solution."""
        return self.contrasts @ self.equations.solution

    @property
    def df(self) -> Array:
        """Degrees of freedom, ``(m,)``."""
        return np.full(len(self.contrasts), self.degrees)

    @cached_property
    def precision(self) -> Array:
        """D = 1 / c'G^-1 c; 0 where G is not positive along the contrast."""
        product = np.einsum("ij,ij->i", self._spread, self.contrasts)
        length = np.linalg.norm(self.contrasts, axis=1)
        hidden = np.linalg.norm(self.contrasts @ self.equations.lost, axis=1) > _LOST * length
        determined = (product > 0) & ~hidden
        return np.where(determined, 1.0 / np.where(determined, product, 1.0), 0.0)

    @cached_property
    def reach(self) -> Array:
        """Largest quantile that reports the contrast: D / (|a|^2 sigma_G), infinite without noise in G.

        With hidden levels |a|^2 grows by half the squared norm of their share of the line.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.precision > 0, self.precision / np.sqrt(self._curvature), 0.0)

    @cached_property
    def noise_error(self) -> Array:
        """Noise's standard error; infinite where undetermined."""
        return self._over_precision(self._noise)

    @cached_property
    def error(self) -> Array:
        """Standard error, noise included."""
        return self._over_precision(self._noise + self._sampled)

    @cached_property
    def step_bias(self) -> Array:
        """Largest bias of approximate equations in standard errors.

        The score along a is off by at most ``bias sqrt(D)`` (Cauchy and Schwarz) and ``residual`` times the largest
        |a'x|.
        """
        if not self.bias:
            return np.zeros(len(self.contrasts))
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.minimum(self.bias * np.sqrt(self.precision), self._residual)
            return np.where(self.precision > 0, moved / (self.precision * self.error), np.inf)

    @cached_property
    def relative_bias(self) -> Array:
        """Largest bias in standard errors: of the step, and of hidden levels, M times their scores."""
        if self.hidden is None:
            return self.step_bias
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = self._largest @ self.hidden.scores / (self.precision * self.error)
            return np.where(self.precision > 0, self.step_bias + moved, np.inf)

    @cached_property
    def _residual(self) -> Array | float:
        return math.inf if self.largest is None else self.residual * self.largest(self.directions)

    @property
    def _is_biased(self) -> bool:
        return bool(self.bias) or self.hidden is not None

    def reported(self, alpha: float) -> NDArray[np.bool_]:
        """Return whether intervals are bounded."""
        return np.asarray(self.reach > self._quantile(alpha))

    def least_level(self) -> Array:
        """Return the level above which a contrast is reported."""
        return self._tail(self.reach)

    def statistics(self, null: Array | float = 0.0) -> Array:
        """Return scores over standard deviations; without noise t."""
        step = self.estimate - null
        variance = self._noise - step * self._slope + np.square(step) * self._curvature
        scale = np.sqrt(np.maximum(variance + self._sampled, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((step == 0) | (self.precision == 0), 0.0, self.precision * step / scale)

    def pvalues(self, null: Array | float = 0.0) -> Array:
        """Return two-sided p-values: below alpha exactly where the interval is bounded and excludes ``null``."""
        return np.maximum(self._tail(np.abs(self.statistics(null))), self.least_level())

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:
        """Return ends; infinite where not reported.

        ``sampling=False`` is about the exact sums' parameter: no residual variance, normal quantiles, ends moved by the
        bias. Both kinds report the same contrasts.
        """
        reported = self.reported(alpha)
        z2 = np.where(reported, np.square(self._quantile(alpha) if sampling else quantile(alpha, math.inf)), 0.0)
        square = np.where(reported, np.square(self.precision) - z2 * self._curvature, 1.0)
        middle = z2 * self._slope / 2
        free = z2 * (self._noise + (self._sampled if sampling else 0.0))
        root = np.sqrt(np.maximum(np.square(middle) + square * free, 0.0))
        moved = 0.0 if sampling or not self._is_biased else np.where(reported, self.relative_bias * self.error, 0.0)
        low, high = (middle - root) / square - moved, (middle + root) / square + moved
        return np.where(reported, self.estimate + low, -np.inf), np.where(reported, self.estimate + high, np.inf)

    def combined(self, rows: Array) -> Inversion:
        """Return linear combinations, ``(r, m)``."""
        return replace(self, contrasts=rows @ self.contrasts)

    def joint_pvalue(self, null: Array | float = 0.0) -> float:
        """Return the F law's p-value of "linearly independent contrasts are ``null``".

        It uses score and V at the closest b under the null, and is never below the level above which every combination
        is reported. With a bias, the noncentral chi-squared law applies at the largest one. Hidden levels add their
        noise to each contrast's variance, times the number of contrasts: their share of any combination is no larger.
        """
        eq, R = self.equations, self.contrasts
        if not (self.precision > 0).all() or math.isinf(self.bias):
            return 1.0
        inner, step = self._spread @ R.T, self.estimate - null
        nearest = eq.solution - self._spread.T @ np.linalg.solve(inner, step)
        k = eq.sigma_G**2 / 2
        along, across = self._spread @ nearest, self._spread @ self._spread.T
        added = len(R) * np.diag(self._added / np.square(self.precision))
        noise = (eq.sigma_h**2 + k * float(nearest @ nearest)) * (across + added) + k * np.outer(along, along)
        covariance = noise + eq.variance * inner + self._beyond_model(inner)
        if eq.sigma_J:
            c = eq.sigma_J * float(eigh(across, covariance, eigvals_only=True)[-1])
            covariance = covariance * (1 + _STUDENT * c * c)
        score = max(float(step @ np.linalg.solve(covariance, step)), 0.0)
        moved = self._joint_bias(inner, covariance) if self._is_biased else 0.0
        return max(self._joint_tail(score, moved), self._least_joint_level(inner, across + added / 2, moved))

    def _joint_bias(self, inner: Array, covariance: Array) -> float:
        """Return the largest bias of all contrasts together, in the norm of their covariance's inverse."""
        share = float(eigh(inner, covariance, eigvals_only=True)[-1])
        values, vectors = np.linalg.eigh(covariance)
        root = np.abs((vectors / np.sqrt(values)) @ vectors.T)
        moved = min(self.bias * math.sqrt(share), float(np.linalg.norm(root @ (self._residual / self.precision))))
        if self.hidden is None:
            return moved
        return moved + float(np.linalg.norm(root @ (self._largest @ self.hidden.scores / self.precision)))

    def _joint_tail(self, score: float, moved: float) -> float:
        """Return P(chi2 > score) at the largest bias ``moved``."""
        r = len(self.contrasts)
        central = float(fdtrc(r, self._finite_degrees, score / r))
        if moved > _FAR:
            return 1.0
        return max(central, float(1 - chndtr(score, r, moved**2))) if moved else central

    def _least_joint_level(self, inner: Array, across: Array, moved: float) -> float:
        if self.equations.sigma_G == 0:
            return 0.0
        half = np.linalg.inv(np.linalg.cholesky(across))
        least = max(float(np.linalg.eigvalsh(half @ inner @ half.T)[0]), 0.0) / self.equations.sigma_G
        return self._joint_tail(least**2, moved)

    def _beyond_model(self, inner: Array) -> Array:
        """Return the positive part of the measured covariance minus the model's, ``(r, r)``."""
        if self.equations.score_variance is None:
            return np.zeros_like(inner)
        measured = self._spread @ self.equations.score_variance @ self._spread.T
        values, vectors = np.linalg.eigh(measured - self.equations.variance * inner)
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)

    def _quantile(self, alpha: float) -> Array | float:
        return folded_quantile(alpha, self.relative_bias) if self._is_biased else quantile(alpha, self.degrees)

    def _tail(self, statistic: Array) -> Array:
        return folded(statistic, self.relative_bias) if self._is_biased else two_sided(statistic, self.degrees)

    @property
    def _finite_degrees(self) -> float:
        return min(self.degrees, _NORMAL)

    @cached_property
    def _spread(self) -> Array:
        return self.contrasts @ self.equations.inverse

    @cached_property
    def directions(self) -> Array:
        """a = D G^-1 c, ``(m, p)``: only the contrast changes."""
        return self._spread * self.precision[:, None]

    @cached_property
    def _size(self) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.directions, self.directions))

    @cached_property
    def _sampled(self) -> Array:
        """The score's variance along each direction, without noise."""
        model = self.equations.variance * self.precision
        if self.equations.score_variance is None:
            return model
        a = self.directions
        larger = np.maximum(model, np.einsum("ij,jk,ik->i", a, self.equations.score_variance, a))
        total = self._noise + larger
        unknown = np.square(self.equations.sigma_J * self._size) / np.where(total > 0, total, np.inf)
        return np.asarray(larger + _STUDENT * unknown)

    @cached_property
    def _largest(self) -> Array:
        """M, the largest |a'x| of a record of each hidden level, ``(m, k)``."""
        return np.zeros((len(self.contrasts), 0)) if self.hidden is None else self.hidden.largest(self.directions)

    @cached_property
    def _added(self) -> Array | float:
        """Largest squared norm of the hidden levels' share of the line, which is orthogonal to a and to b."""
        return 0.0 if self.hidden is None else self.hidden.noise(self._largest)

    # a'V(w + u a)a = noise + slope u + curvature u^2

    @cached_property
    def _noise(self) -> Array:
        eq, k = self.equations, self.equations.sigma_G**2 / 2
        level = eq.sigma_h**2 + k * float(eq.solution @ eq.solution)
        return (self._size + self._added) * level + k * np.square(self.directions @ eq.solution)

    @cached_property
    def _slope(self) -> Array:
        return self.equations.sigma_G**2 * (2 * self._size + self._added) * (self.directions @ self.equations.solution)

    @cached_property
    def _curvature(self) -> Array:
        return self.equations.sigma_G**2 * self._size * (self._size + self._added / 2)

    def _over_precision(self, variance: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.precision > 0, np.sqrt(np.maximum(variance, 0.0)) / self.precision, np.inf)


def condition(values: Array) -> float | None:
    """Return sqrt(largest / smallest) of ascending eigenvalues; None unless all are positive."""
    return math.sqrt(float(values[-1]) / float(values[0])) if len(values) and values[0] > 0 else None


def quantile(alpha: float, degrees: float) -> float:
    """Return Student's two-sided t quantile; normal for infinite degrees."""
    return float(ndtri(1 - alpha / 2) if math.isinf(degrees) else stdtrit(degrees, 1 - alpha / 2))


def two_sided(statistic: Array, degrees: float) -> Array:
    """Return P(|T| > statistic) for statistics >= 0."""
    return np.asarray(2 * (ndtr(-statistic) if math.isinf(degrees) else stdtr(degrees, -statistic)))


def folded(statistic: Array, bias: Array) -> Array:
    """Return P(|Z + bias| > statistic) for normal Z and statistics >= 0."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(bias), ndtr(bias - statistic) + ndtr(-bias - statistic), 1.0)


def folded_quantile(alpha: float, bias: Array) -> Array:
    """Return the value that |Z + bias| exceeds with probability alpha."""
    near = bias < _FAR
    exact = np.sqrt(chndtrix(1 - alpha, 1, np.square(np.where(near, bias, 0.0))))
    return np.where(near, exact, bias + quantile(2 * alpha, math.inf))


def holm(pvalues: Array) -> Array:
    """Adjust by Holm (1979): family-wise error is at most alpha under any dependence."""
    order = np.argsort(pvalues, kind="stable")
    steps = pvalues[order] * np.arange(len(pvalues), 0, -1)
    adjusted = np.empty_like(pvalues)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
