"""Refinement of a softmax: from (N, A, B) and a few noisy gradients to weights, as functions of real numbers.

The server's computation between rounds, and every number that follows from public values. The course decides who sums,
draws noise and keeps marks; ``moments`` makes records integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privstats.estimates.filter_bank import Filter, advanced
from privstats.estimates.noisy_sums import NoisyClassSums
from privstats.estimates.spectrum import Array, denoise_spectrum

__all__ = [
    "GRADIENT_CLIP",
    "GRADIENT_SHARES",
    "INTERCEPT",
    "SoftmaxRecipe",
    "SoftmaxWhitening",
    "advised_rounds",
    "averaged",
    "balanced",
    "hessian_scale",
    "refined",
    "started",
]

GRADIENT_CLIP = 0.3
"""c: a record's residual ``p - e_y`` is shortened to this norm."""
INTERCEPT = 0.1
"""a: the constant last entry of a whitened row, whose norm is 1 with it."""
GRADIENT_SHARES: Mapping[str, float] = {"g": 0.99, "kappa": 0.01}
"""Shares of a round's mu^2: the gradient's, and that of kappa, the number from which the curvature follows."""

_CAUTION, _MOMENTUM = 0.5, 0.3
_SPARSE, _DENSE = 10.0, 0.2
_RIDGE_FROM = 1.5
_LEAST_CURVATURE = 1.5
_LDA_SHARE = 0.15
_FEW_ROUNDS, _MORE_ROUNDS, _MORE_FROM = 4, 6, 0.7


def advised_rounds(mu: float) -> int:
    """The default T: 4, and 6 from mu .7 on, about epsilon 3 at delta 1e-5.

    With little noise four damped steps end before the optimum. Chosen on parts of the training records of five data
    sets that no weights had seen (docs/refinement_numbers.md).

    Example:
        >>> from privstats.estimates.softmax import advised_rounds
        >>> advised_rounds(0.3), advised_rounds(0.8)
        (4, 6)
    """
    return _MORE_ROUNDS if mu >= _MORE_FROM else _FEW_ROUNDS


@dataclass(frozen=True)
class SoftmaxRecipe:
    """Every constant of the recipe, from what is public. Nothing here is tuned on data.

    Attributes:
        classes: C, at least 2.
        features: d.
        records: n as the owners of the course declare it; never a count of the records.
        mu: Gaussian-DP parameter of the whole course.
        rounds: T, gradient rounds after the class release.

    Example:
        >>> from privstats.estimates.softmax import SoftmaxRecipe
        >>> recipe = SoftmaxRecipe(classes=10, features=64, records=50_000, mu=0.3, rounds=4)
        >>> round(recipe.release_mu**2 + 4 * recipe.round_mu**2, 6)  # all sums together cost mu: 0.3**2
        0.09
    """

    classes: int
    features: int
    records: int
    mu: float
    rounds: int = 4

    @property
    def columns(self) -> int:
        """k = d + 1: whitened features and the intercept."""
        return self.features + 1

    @property
    def signal(self) -> float:
        """s = n mu / (C sqrt d): how well the class means can be known."""
        return self.records * self.mu / (self.classes * math.sqrt(self.features))

    @property
    def release_share(self) -> float:
        """f: the class release's part of mu^2."""
        return 0.2 if self.signal < _SPARSE else 0.15

    @property
    def release_shares(self) -> dict[str, float]:
        """Shares of N, A and B in the class release."""
        if self.signal < _SPARSE:
            return {"N": 0.02, "A": 0.65, "B": 0.33}
        return {"N": 0.02, "A": 0.4, "B": 0.58}

    @property
    def release_mu(self) -> float:
        """mu of the class release: mu_1^2 = f mu^2."""
        return self.mu * math.sqrt(self.release_share)

    @property
    def round_mu(self) -> float:
        """mu of one gradient round: T mu_t^2 = mu^2 - mu_1^2."""
        return self.mu * math.sqrt((1 - self.release_share) / self.rounds)

    @property
    def prior_variance(self) -> float:
        """v = 4 min(1, max(1/2, 2.5 / s))."""
        return 4 * min(1.0, max(0.5, 2.5 / self.signal))

    @property
    def floor(self) -> float:
        """phi: the eigenvalue of B / n, over their mean, below which noise and chance could have made it; at most 1.

        Rows have norm 1, so eigenvalues have the mean 1 / d. About it an entry of B / n has the variance
        ``v = sigma^2 / (2 n^2) + 1 / (d^2 n)``: the noise's, ``sigma = 1 / mu_B``, and the sample's, where rows have no
        direction. A symmetric matrix of such entries has eigenvalues up to ``2 sqrt(d v)`` from those of its mean
        (Wigner's semicircle; for the sample alone the edge of Marchenko and Pastur to first order in sqrt(d / n)), so
        ``phi = 2 d sqrt(d v) = sqrt(4 d / n + 2 d^3 / (n mu_B)^2)``. Above 1, where eigenvalues tell nothing below
        their mean, phi is 1. It follows from public numbers alone, and so does what it changes.

        Example:
            >>> from privstats.estimates.softmax import SoftmaxRecipe
            >>> text, table = SoftmaxRecipe(77, 384, 10_000, mu=0.3), SoftmaxRecipe(2, 20, 4_000, mu=0.3)
            >>> text.floor, round(table.floor, 2)
            (1.0, 0.46)
        """
        d, n = self.features, self.records
        noise = self.release_mu**2 * self.release_shares["B"] * n**2
        return min(1.0, math.sqrt(4 * d / n + 2 * d**3 / noise))

    @property
    def ridge(self) -> float:
        """lambda = rho k / (4 n), rho = min(1, (1.5 / s)^1.5); without noise rho = min(1, 16 / C^2) min(1, n / d)^2.

        Without noise s is infinite and says nothing of how few the records are; with fewer records than features the
        whitening holds them back already. What was tried there: docs/refinement_numbers.md.
        """
        if math.isinf(self.mu):
            rho = min(1.0, 16 / self.classes**2) * min(1.0, self.records / self.features) ** 2
        else:
            rho = min(1.0, (_RIDGE_FROM / self.signal) ** 1.5)
        return float(rho * self.columns / (4 * self.records))


@dataclass(frozen=True)
class SoftmaxWhitening:
    """The public map of all gradient rounds, ``u(x) = (sqrt(1 - a^2) M'x / |M'x|, a)``, and its effect on the noise.

    ``M = V diag P`` with ``P = (l + phi mean l)^(-1/2)``, which is bounded where an eigenvalue is lost: whitening by
    half at ``phi = 1``, and the more of it the surer the eigenvalues are (:attr:`SoftmaxRecipe.floor`). Where the mean
    holds nearly all of the squares, as in a table, hardly any other direction is whitened by half. It is not centred,
    because subtracting a noisy mean would break it. The symmetric form ``V diag P V'`` (and ``W V'``) is published,
    because it does not depend on signs, order or nearly equal eigenvalues. All of it is computed from the class release
    and public numbers, so it costs nothing.

    Attributes:
        vectors: V, ``(d, d)``, orthonormal columns.
        values: l, ``(d,)``, denoised eigenvalues of B / n^.
        scale: P, ``(d,)``, all above 0.
        floor: phi, above 0, at most 1.

    Example:
        >>> from privstats.estimates.noisy_sums import NoisyClassSums
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
        """From a class release; the identity, where noise hides the whole spectrum.

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
        """Weights ``(C, k)`` in the published coordinates: ``W V'``, the last column apart."""
        return np.hstack([weights[:, :-1] @ self.vectors.T, weights[:, -1:]])

    def turned(self, gradient: Array) -> Array:
        """A gradient ``(C, k)`` from the published coordinates back to those of the filter; noise stays as it is."""
        return np.hstack([gradient[:, :-1] @ self.vectors, gradient[:, -1:]])


def started(recipe: SoftmaxRecipe, sums: NoisyClassSums, whitening: SoftmaxWhitening) -> Filter:
    """The filter after its first update, which costs nothing: at W = 0 the gradient follows from N and A.

    There ``p = 1 / C`` for every record, so the sum of ``(p - e_y) u'`` is the mean of all class sums less each,
    mapped by M and stretched to the norm of u; in the last column, ``a`` times the same of the counts.

    Example:
        >>> from privstats.estimates.noisy_sums import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxRecipe, SoftmaxWhitening, started
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
    return _updated(
        recipe, whitening, prior, (both.mean(axis=0) - both) / sums.records, np.square(noise), 1 / recipe.classes
    )


def refined(
    recipe: SoftmaxRecipe,
    sums: NoisyClassSums,
    whitening: SoftmaxWhitening,
    state: Filter,
    gradient: Array,
    kappa: float,
    sigma: float,
) -> Filter:
    """The filter after one gradient round.

    Args:
        recipe, sums, whitening: the course's.
        state: at whose weights the round was measured.
        gradient: the released sum of ``q r u'``, ``(C, k)``, in the published coordinates, in real units.
        kappa: the released sum of ``q (1 - |p|^2)``, from which the Hessian's scale follows.
        sigma: noise standard deviation of the gradient's entries.

    Example:
        >>> from privstats.estimates.noisy_sums import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxRecipe, SoftmaxWhitening, refined, started
        >>> sigma = {"N": 0.1, "A": 0.1, "B": 0.1}
        >>> sums = NoisyClassSums(np.array([60.0, 40.0]), A=np.diag([60.0, 40.0]), B=np.diag([60.0, 40.0]), sigma=sigma)
        >>> recipe, whitening = SoftmaxRecipe(classes=2, features=2, records=100, mu=5.0), SoftmaxWhitening.of(sums)
        >>> state = started(recipe, sums, whitening)
        >>> after = refined(recipe, sums, whitening, state, np.zeros((2, 3)), kappa=20.0, sigma=0.1)
        >>> bool((after.variance < state.variance).all())  # every round makes the weights better known
        True
    """
    n = sums.records
    scale = hessian_scale(recipe, sums, kappa)
    return _updated(recipe, whitening, state, whitening.turned(gradient) / n, (sigma / n) ** 2, scale)


def hessian_scale(recipe: SoftmaxRecipe, sums: NoisyClassSums, kappa: float) -> float:
    """The mean of ``p (1 - p)`` over records and classes, from a round's kappa; held above what noise could hide.

    Example:
        >>> from privstats.estimates.noisy_sums import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxRecipe, hessian_scale
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
    scale: float,
) -> Filter:
    curvature = whitening.curvature
    return advanced(
        state,
        gradient + recipe.ridge * curvature * state.weights,
        noise,
        (scale + recipe.ridge) * curvature,
        caution=_CAUTION,
        momentum=_MOMENTUM,
        centred=True,
    )


def averaged(whitening: SoftmaxWhitening, weights: Array, coef: Array, intercept: Array) -> Array:
    """Weights moved by .15 to those of a linear discriminant of the class release, at the length of the former.

    Args:
        whitening: the course's.
        weights: the filter's, ``(C, k)``.
        coef, intercept: the discriminant on the original features, ``(C, d)`` and ``(C,)``.

    Returns:
        ``.85 W + .15 L sqrt(<W, W> / <L, L>)`` with ``<., .>`` weighted by the curvature; W where L is 0.

    Example:
        >>> from privstats.estimates.noisy_sums import NoisyClassSums
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
    return np.asarray((1 - _LDA_SHARE) * weights + _LDA_SHARE * math.sqrt(own / other) * L)


def balanced(weights: Array, counts: Array) -> Array:
    """Weights ``(C, k)`` for classes that are equally likely: ``log(counts) / a`` is taken from the last column.

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
