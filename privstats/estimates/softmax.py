"""Compute softmax weights from (N, A, B) and noisy gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, softmax

from privstats.estimates import denoise
from privstats.estimates.denoise import Array, NoisyClassSums, denoise_spectrum
from privstats.estimates.filter_bank import Filter, advanced
from privstats.estimates.recipes import CAUTION, SoftmaxRecipe

INTERCEPT = 0.1
"""a: the constant last entry of a whitened row, whose norm is 1 with it."""

MOMENTUM = 0.3
_LEAST_CURVATURE = 1.5
LDA_SHARE = 0.15
_SPREAD = 0.3
"""Prior standard deviation of the logarithm of a refined softmax's temperature."""
_PLACES = 1001


@dataclass(frozen=True)
class SoftmaxWhitening:
    """The public map of all gradient rounds, ``u(x) = (sqrt(1 - a^2) M'x / |M'x|, a)``, and its effect on the noise.

    ``M = V diag P`` with ``P = (l + phi mean l)^(-1/2)``. The published ``V diag P V'`` is independent of signs and
    order. All follows from the class release and public numbers, so it costs no budget.

    Attributes:
        vectors, values: V, ``(d, d)``, and denoised eigenvalues l of B / n^, ``(d,)``.
        scale: P, ``(d,)``, all above 0.
        floor: phi, above 0, at most 1.

    Example:
        >>> from privstats.estimates.denoise import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxWhitening
        >>> sigma = {"N": 0.1, "A": 0.1, "B": 0.1}
        >>> sums = NoisyClassSums(np.array([60.0, 40.0]), A=np.diag([60.0, 40.0]), B=np.diag([90.0, 10.0]), sigma=sigma)
        >>> np.diag(SoftmaxWhitening.of(sums).matrix).round(1).tolist()  # the short direction is stretched
        [0.8, 1.3]
    """

    vectors: Array
    values: Array
    scale: Array
    floor: float = 1.0

    @classmethod
    def of(cls, sums: NoisyClassSums, floor: float = 1.0) -> SoftmaxWhitening:
        """Compute the whitening from a class release; a multiple of the identity where noise hides all of B.

        ``floor`` (phi) is raised to ``sigma d sqrt(2 d) / n^`` where this release's own noise is larger.
        """
        spectrum = denoise_spectrum(sums.B, sums.sigma["B"], pull=False)
        values = spectrum.values / sums.records
        if not values.mean() > 0:
            values = np.full(len(values), 1 / len(values))
        d = len(values)
        hidden = sums.sigma["B"] * d * math.sqrt(2 * d) / sums.records
        floor = min(1.0, max(floor, hidden))
        return cls(spectrum.vectors, values, (values + floor * values.mean()) ** -0.5, floor)

    @property
    def matrix(self) -> Array:
        """Published matrix V diag P V', ``(d, d)``, symmetric."""
        product = (self.vectors * self.scale) @ self.vectors.T
        return np.asarray((product + product.T) / 2)

    @property
    def spread(self) -> float:
        """sum l P^2, the mean of ``|M'x|^2``."""
        return float(self.values @ np.square(self.scale))

    @property
    def stretch(self) -> float:
        """z = sqrt((1 - a^2) / sum(l P^2)): normalisation's factor on a typical row."""
        return math.sqrt((1 - INTERCEPT**2) / self.spread)

    @property
    def curvature(self) -> Array:
        """Kd, ``(k,)``: the diagonal of E u u', at least 1.5 phi / k for lost directions."""
        K = np.append((1 - INTERCEPT**2) * self.values * np.square(self.scale) / self.spread, INTERCEPT**2)
        return np.asarray(np.maximum(K, _LEAST_CURVATURE * self.floor / len(K)))

    def rows(self, X: Array) -> Array:
        """Return u(x) in the published coordinates, ``(n, k)``, of norm 1; (0, a) where M maps a row to 0."""
        Z = X @ self.matrix
        norm = np.sqrt(np.einsum("ij,ij->i", Z, Z))[:, None]
        unit = np.divide(Z, norm, out=np.zeros_like(Z), where=norm > 0)
        return np.hstack([math.sqrt(1 - INTERCEPT**2) * unit, np.full_like(norm, INTERCEPT)])

    def published(self, weights: Array) -> Array:
        """Return weights ``(C, k)`` in the published coordinates: ``W V'`` and the last column."""
        return np.hstack([weights[:, :-1] @ self.vectors.T, weights[:, -1:]])

    def turned(self, gradient: Array) -> Array:
        """Return a published gradient ``(C, k)`` in the filter's coordinates; noise is unchanged."""
        return np.hstack([gradient[:, :-1] @ self.vectors, gradient[:, -1:]])


def started(recipe: SoftmaxRecipe, sums: NoisyClassSums, whitening: SoftmaxWhitening) -> Filter:
    """Return the filter after its first update, without budget: at W = 0 the gradient follows from N and A.

    There ``p = 1 / C``, so the sum of ``(p - e_y) u'`` is the mean of all class sums minus each, mapped and stretched.

    Example:
        >>> from privstats.estimates.denoise import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxWhitening, started
        >>> from privstats.estimates.recipes import SoftmaxRecipe
        >>> sigma = {"N": 0.1, "A": 0.1, "B": 0.1}
        >>> sums = NoisyClassSums(np.array([60.0, 40.0]), A=np.diag([60.0, 40.0]), B=np.diag([60.0, 40.0]), sigma=sigma)
        >>> recipe, whitening = SoftmaxRecipe(classes=2, features=2, records=100, mu=5.0), SoftmaxWhitening.of(sums)
        >>> state = started(recipe, sums, whitening)
        >>> state.weights.shape, state.weights.sum(axis=0).round(6).tolist()  # centred over the classes
        ((2, 3), [0.0, 0.0, 0.0])
    """
    curvature = whitening.curvature
    empty = np.zeros((recipe.classes, recipe.columns))
    prior = Filter(empty, recipe.prior_variance * curvature.mean() / curvature, empty)
    A = sums.A @ whitening.vectors * (whitening.scale * whitening.stretch)
    both = np.hstack([A, INTERCEPT * sums.N[:, None]])
    stretched = sums.sigma["A"] * whitening.scale * whitening.stretch
    noise = np.append(stretched, INTERCEPT * sums.sigma["N"]) / sums.records
    curvature = (1 / recipe.classes + recipe.ridge) * curvature  # at W = 0 all classes are equally likely
    return _updated(recipe, whitening, prior, (both.mean(axis=0) - both) / sums.records, np.square(noise), curvature)


def refined(
    recipe: SoftmaxRecipe,
    sums: NoisyClassSums,
    whitening: SoftmaxWhitening,
    state: Filter,
    gradient: Array,
    kappa: float,
    sigma: float,
) -> Filter:
    """Return the filter after one gradient round.

    Args:
        gradient: released sum of ``q r u'``, ``(C, k)``, published coordinates.
        kappa: released sum of ``q (1 - |p|^2)``.
        sigma: noise standard deviation of gradient entries.

    Example:
        >>> from privstats.estimates.denoise import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxWhitening, refined, started
        >>> from privstats.estimates.recipes import SoftmaxRecipe
        >>> sigma = {"N": 0.1, "A": 0.1, "B": 0.1}
        >>> sums = NoisyClassSums(np.array([60.0, 40.0]), A=np.diag([60.0, 40.0]), B=np.diag([60.0, 40.0]), sigma=sigma)
        >>> recipe, whitening = SoftmaxRecipe(classes=2, features=2, records=100, mu=5.0), SoftmaxWhitening.of(sums)
        >>> state = started(recipe, sums, whitening)
        >>> after = refined(recipe, sums, whitening, state, np.zeros((2, 3)), kappa=20.0, sigma=0.1)
        >>> bool((after.variance < state.variance).all())  # every round makes the weights better known
        True
    """
    n = sums.records
    scale, noise = hessian_scale(recipe, sums, kappa), (sigma / n) ** 2
    curvature = class_curvature(recipe, sums, whitening, state, scale, noise)
    return _updated(recipe, whitening, state, whitening.turned(gradient) / n, noise, curvature)


def class_curvature(
    recipe: SoftmaxRecipe,
    sums: NoisyClassSums,
    whitening: SoftmaxWhitening,
    state: Filter,
    scale: float,
    noise: float,
) -> Array:
    """Return each class's curvature, ``(C, k)``, or one for all, ``(k,)``, where noise hides differences.

    A common class has the mean curvature ``(h + lambda) Kd``, with h from :func:`hessian_scale`; a rare one
    ``(h r_c + lambda) Kd`` with ``r_c = v_c / mean v``, ``v_c = pi_c (1 - pi_c)``.

    The filter's step ``S cur / (1.5 S cur^2 + s^2)`` is longest at ``cur = s / sqrt(1.5 S)``; with less curvature steps
    are noise, so no class has less. ``s^2`` is ``noise`` plus the sampling variance ``c^2 v_c Kd / n``.

    Example:
        >>> from privstats.estimates.denoise import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxWhitening, class_curvature, started
        >>> from privstats.estimates.recipes import SoftmaxRecipe
        >>> sigma = {"N": 0.1, "A": 0.1, "B": 0.1}
        >>> N, A = np.array([6_000.0, 3_900.0, 100.0]), np.diag([6_000.0, 3_900.0, 100.0])
        >>> sums = NoisyClassSums(N, A, B=A, sigma=sigma)
        >>> recipe, whitening = SoftmaxRecipe(3, 3, 10_000, mu=5.0), SoftmaxWhitening.of(sums)
        >>> state = started(recipe, sums, whitening)
        >>> quiet, loud = (class_curvature(recipe, sums, whitening, state, 0.3, noise) for noise in (1e-12, 1.0))
        >>> (quiet / quiet[0]).round(2)[:, 0].tolist()  # of a class of 1 %, its share
        [1.0, 1.0, 0.06]
        >>> (loud / loud[0]).round(2)[:, 0].tolist()  # where noise hides the gradient, no less than that of the others
        [1.0, 1.0, 1.0]
    """
    Kd = whitening.curvature
    mean = (scale + recipe.ridge) * Kd
    if recipe.least_curvature == 1:
        return mean
    counts = denoise.counts(sums.N, sums.sigma["N"])[:, None]
    share = counts / counts.sum()
    own = share * (1 - share)
    rate = np.minimum(1.0, own / own.mean()) if own.mean() > 0 else np.ones_like(own)
    chance = recipe.clip**2 * own * Kd / sums.records
    least = np.sqrt((noise + chance) / ((1 + CAUTION) * state.variance))
    return np.asarray(np.minimum(mean, np.maximum((scale * rate + recipe.ridge) * Kd, least)))


def hessian_scale(recipe: SoftmaxRecipe, sums: NoisyClassSums, kappa: float) -> float:
    """Return the records' mean of ``(1 - |p|^2) / (C - 1)`` from kappa, above the level that noise could hide.

    Example:
        >>> from privstats.estimates.denoise import NoisyClassSums
        >>> from privstats.estimates.softmax import hessian_scale
        >>> from privstats.estimates.recipes import SoftmaxRecipe
        >>> sigma = {"N": 0.1, "A": 0.1, "B": 0.1}
        >>> sums = NoisyClassSums(np.array([60.0, 40.0]), A=np.diag([60.0, 40.0]), B=np.diag([60.0, 40.0]), sigma=sigma)
        >>> hessian_scale(SoftmaxRecipe(classes=2, features=2, records=100, mu=5.0), sums, kappa=20.0)
        0.2
    """
    C = recipe.classes
    least = max(0.2, 0.087 * math.log(C)) / C
    return min(max(kappa / (sums.records * (C - 1)), least), 1 / C)


def _updated(
    recipe: SoftmaxRecipe,
    whitening: SoftmaxWhitening,
    state: Filter,
    gradient: Array,
    noise: Array | float,
    curvature: Array,
) -> Filter:
    return advanced(
        state,
        gradient + recipe.ridge * whitening.curvature * state.weights,
        noise,
        curvature,
        caution=CAUTION,
        momentum=MOMENTUM,
        centred=True,
    )


def averaged(whitening: SoftmaxWhitening, weights: Array, coef: Array, intercept: Array) -> Array:
    """Return weights moved by .15 to those of the class release's linear discriminant, at the length of W.

    ``.85 W + .15 L sqrt(<W, W> / <L, L>)`` with ``<., .>`` weighted by the curvature; W where L is 0.

    Example:
        >>> from privstats.estimates.denoise import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxWhitening, averaged
        >>> sigma = {"N": 0.1, "A": 0.1, "B": 0.1}
        >>> sums = NoisyClassSums(np.array([60.0, 40.0]), A=np.diag([60.0, 40.0]), B=np.diag([60.0, 40.0]), sigma=sigma)
        >>> weights = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]])
        >>> whitening = SoftmaxWhitening.of(sums)
        >>> averaged(whitening, weights, coef=np.zeros((2, 2)), intercept=np.zeros(2)).tolist()  # L is 0
        [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]]
    """
    inner = coef @ whitening.vectors / (whitening.scale * whitening.stretch)
    L = np.hstack([inner, intercept[:, None] / INTERCEPT])
    L = L - L.mean(axis=0)
    own, other = (float((np.square(X) * whitening.curvature).sum()) for X in (weights, L))
    if not other > 0:
        return weights
    return np.asarray((1 - LDA_SHARE) * weights + LDA_SHARE * math.sqrt(own / other) * L)


def exact_gradient(rows: Array, y: NDArray[np.intp], weights: Array, clip: float) -> tuple[Array, float]:
    """Return a round's exact sums: of ``q r u'``, ``(C, k)``, and of ``q (1 - |p|^2)``.

    ``rows`` are u, ``weights`` W in the published coordinates, ``clip`` the limit on residual norms.

    Example:
        >>> from privstats.estimates.softmax import exact_gradient
        >>> rows, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 1])
        >>> gradient, kappa = exact_gradient(rows, y, np.zeros((2, 2)), clip=1.0)
        >>> gradient.tolist(), kappa
        ([[-0.5, 0.5], [0.5, -0.5]], 1.0)
    """
    p = softmax(rows @ weights.T, axis=1)
    kappa = 1 - np.square(p).sum(axis=1)
    p[np.arange(len(p)), y] -= 1
    q = clip / np.maximum(np.sqrt(np.square(p).sum(axis=1)), clip)
    return (p * q[:, None]).T @ rows, float(kappa @ q)


def coefficients(weights: Array) -> tuple[Array, Array]:
    """Split published weights of rows u into coefficients of ``Mx / |Mx|``, ``(C, d)``, and an intercept, ``(C,)``.

    Example:
        >>> from privstats.estimates.softmax import coefficients
        >>> [part.round(2).tolist() for part in coefficients(np.array([[1.0, 2.0]]))]
        [[[0.99]], [0.2]]
    """
    return weights[:, :-1] * math.sqrt(1 - INTERCEPT**2), weights[:, -1] * INTERCEPT


def balanced(weights: Array, counts: Array) -> Array:
    """Return weights ``(C, k)`` for equally likely classes: ``log(counts) / a`` is subtracted from the last column.

    Example:
        >>> from privstats.estimates.softmax import balanced
        >>> even = balanced(np.zeros((2, 3)), np.array([90.0, 10.0]))
        >>> (even[1] - even[0]).round(2).tolist()  # the rare class gains in the last column, the intercept
        [0.0, 0.0, 21.97]
    """
    return np.hstack([weights[:, :-1], weights[:, -1:] - np.log(counts)[:, None] / INTERCEPT])


def temperature(
    sums: Array, sigma: float, factors: Sequence[float], spread: float = _SPREAD, centre: float = 1.0
) -> float:
    """Return 1 / s, s the factor on scores at which total confidence equals the number of hits.

    The gap between hits and confidence is linear in log s between two factors. Without noise s is its root nearest to
    1, or the nearest factor. With noise, log s is its posterior mean: the gap at the true s is noise of variance i
    sigma^2 at the i-th factor.

    Args:
        sums: hits minus confidence at the first factor, then gains of confidence at the others, ``(k,)``.
        sigma: noise standard deviation of each.
        factors: k increasing numbers above 0.
        spread, centre: prior standard deviation of log s, and prior temperature.

    Example:
        >>> from privstats.estimates.softmax import temperature
        >>> sums = np.array([20.0, 10.0, 30.0])  # the gaps are 20, 10 and -20
        >>> [round(temperature(sums, sigma, (0.5, 1.0, 4.0)), 2) for sigma in (0.0, 1.0, 1000.0)]
        [0.63, 0.64, 1.03]
    """
    logs, gaps = np.log(factors), sums[0] - np.append(0.0, sums[1:].cumsum())
    if sigma == 0:
        level = logs[gaps == 0]
        return math.exp(-(np.clip(0.0, level[0], level[-1]) if level.size else np.interp(0.0, -gaps, logs)))
    place = np.linspace(logs[0], logs[-1], _PLACES)
    gap = np.interp(place, logs, gaps)
    gap[0], gap[-1] = max(gap[0], 0.0), min(gap[-1], 0.0)
    variance = np.interp(place, logs, sigma**2 * np.arange(1, len(logs) + 1))
    edges = (np.r_[-np.inf, (place[1:] + place[:-1]) / 2, np.inf] + math.log(centre)) / spread
    prior = np.maximum(np.diff(ndtr(edges)), np.finfo(np.float64).tiny)
    weights = softmax(np.log(prior) - np.square(gap) / (2 * variance) - np.log(variance) / 2)
    return math.exp(-float(weights @ place))
