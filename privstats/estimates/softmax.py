"""Refinement of a softmax: from (N, A, B) and a few noisy gradients to weights, as functions of real numbers.

The server's computation between rounds; ``recipes`` has the numbers that follow from public values alone. The
course decides who sums, draws noise and keeps marks; ``moments`` makes records integers.
"""

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

    ``M = V diag P`` with ``P = (l + phi mean l)^(-1/2)``, which is bounded where an eigenvalue is lost: whitening by
    half at ``phi = 1``, and the more of it the surer the eigenvalues are
    (:attr:`~privstats.estimates.recipes.SoftmaxRecipe.floor`). Where the mean holds nearly all of the squares,
    as in a table, hardly any other direction is whitened by half. It is not centred, because subtracting a noisy mean
    would break it. The symmetric form ``V diag P V'`` (and ``W V'``) is published, because it does not depend on signs,
    order or nearly equal eigenvalues. All of it is computed from the class release and public numbers, so it costs
    nothing.

    Attributes:
        vectors: V, ``(d, d)``, orthonormal columns.
        values: l, ``(d,)``, denoised eigenvalues of B / n^.
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
        """Compute the whitening from a class release; the identity, where noise hides the complete spectrum.

        Args:
            sums: of the class release.
            floor: phi of the recipe; it is raised to what the release's own noise hides, ``sigma d sqrt(2 d) / n^``,
                where parties that add noise of their own, or a number of records stated too large, make that more.
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
        """V diag P V', ``(d, d)``, symmetric: the published matrix."""
        product = (self.vectors * self.scale) @ self.vectors.T
        return np.asarray((product + product.T) / 2)

    @property
    def spread(self) -> float:
        """sum l P^2, the mean of ``|M'x|^2``."""
        return float(self.values @ np.square(self.scale))

    @property
    def stretch(self) -> float:
        """z = sqrt((1 - a^2) / sum(l P^2)): the factor of normalisation on a typical row."""
        return math.sqrt((1 - INTERCEPT**2) / self.spread)

    @property
    def curvature(self) -> Array:
        """Kd, ``(k,)``: the diagonal of E u u', no less than 1.5 phi / k, which lost directions may have."""
        K = np.append((1 - INTERCEPT**2) * self.values * np.square(self.scale) / self.spread, INTERCEPT**2)
        return np.asarray(np.maximum(K, _LEAST_CURVATURE * self.floor / len(K)))

    def rows(self, X: Array) -> Array:
        """u(x) in the published coordinates, ``(n, k)``, all of norm 1; a row that M sends to 0 gives (0, a)."""
        Z = X @ self.matrix
        norm = np.sqrt(np.einsum("ij,ij->i", Z, Z))[:, None]
        unit = np.divide(Z, norm, out=np.zeros_like(Z), where=norm > 0)
        return np.hstack([math.sqrt(1 - INTERCEPT**2) * unit, np.full_like(norm, INTERCEPT)])

    def published(self, weights: Array) -> Array:
        """Return weights ``(C, k)`` in the published coordinates: ``W V'``, the last column apart."""
        return np.hstack([weights[:, :-1] @ self.vectors.T, weights[:, -1:]])

    def turned(self, gradient: Array) -> Array:
        """Return a gradient ``(C, k)`` from the published coordinates back to those of the filter; noise stays as it
        is."""
        return np.hstack([gradient[:, :-1] @ self.vectors, gradient[:, -1:]])


def started(recipe: SoftmaxRecipe, sums: NoisyClassSums, whitening: SoftmaxWhitening) -> Filter:
    """Return the filter after its first update, which costs nothing: at W = 0 the gradient follows from N and A.

    There ``p = 1 / C`` for every record, so the sum of ``(p - e_y) u'`` is the mean of all class sums less each,
    mapped by M and stretched to the norm of u; in the last column, ``a`` times the same of the counts.

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
        recipe, sums, whitening: the course's.
        state: the weights at which the round was measured.
        gradient: the released sum of ``q r u'``, ``(C, k)``, in the published coordinates, in real units.
        kappa: the released sum of ``q (1 - |p|^2)``, from which the Hessian's scale follows.
        sigma: noise standard deviation of the gradient's entries.

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
    """Return the curvature of each class's weights, ``(C, k)``, or one for all, ``(k,)``, where noise hides the
    differences.

    The Hessian of class c is ``E p_c (1 - p_c) u u'``. A common class has the mean curvature, ``(h + lambda) Kd``; a
    rare one has ``(h r_c + lambda) Kd`` with ``r_c = v_c / mean v``, ``v_c = pi_c (1 - pi_c)`` of the noisy counts, so
    its steps have the length that its own loss requires.

    The steps are so long only where a gradient exceeds its noise. A step of the filter is
    ``S cur / (1.5 S cur^2 + s^2)`` times the gradient: as a function of cur it is longest at ``cur = s / sqrt(1.5 S)``,
    below which less curvature means less of a step, made of noise. So no class has less. ``s^2`` is the noise of the
    round and what chance leaves of the sample, ``c^2 v_c Kd / n``: no residual is longer than c. That bound rises with
    every round, as S falls.

    Everything here is computed from earlier releases and public numbers, so it costs nothing.

    Args:
        recipe, sums, whitening, state: as for :func:`refined`.
        scale: h, :func:`hessian_scale`.
        noise: variance of an entry of the round's mean gradient.

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
    """Return the mean of ``p (1 - p)`` over records and classes, from a round's kappa; kept above the level that noise
    could hide.

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
    """Return weights moved by .15 to those of a linear discriminant of the class release, at the length of the former.

    Args:
        whitening: the course's.
        weights: the filter's, ``(C, k)``.
        coef, intercept: the discriminant on the original features, ``(C, d)`` and ``(C,)``.

    Returns:
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
    """Return the sums of a gradient round over exact records: of ``q r u'``, ``(C, k)``, and of ``q (1 - |p|^2)``.

    Args:
        rows: u, ``(n, k)``.
        y: index of each record's class, ``(n,)``.
        weights: W in the published coordinates, ``(C, k)``.
        clip: c, the norm that residuals are clipped to.

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
    """Return weights ``(C, k)`` for classes that are equally likely: ``log(counts) / a`` is subtracted from the last
    column.

    Args:
        weights: for classes as likely as they were among the records.
        counts: ``(C,)``, all above 0.

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
    """1 / s, s the factor on the scores at which the confidence of all records adds up to their hits.

    The gap between hits and confidence falls with the factor, and is taken to be linear in log s between two of
    them. Without noise s is where it is 0, of several such places the one nearest to 1, or else the nearest factor.
    With noise, log s is the mean of its posterior: a priori normal around that of ``centre``, and the gap at the true s
    is noise alone, of variance i sigma^2 at the i-th factor. So a gap that noise explains leaves the temperature near
    there, and no threshold is needed. An s beyond the outermost factors counts as the outermost; a gap on that side is
    then no evidence against it.

    Args:
        sums: hits less confidence at the first factor, then the gains of confidence at the others, ``(k,)``.
        sigma: noise standard deviation of each; 0 without noise.
        factors: rising, above 0, as many.
        spread: prior standard deviation of log s, above 0.
        centre: the temperature that is likely beforehand.

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
