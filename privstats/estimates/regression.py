"""Refinement of a ridge regression: from (G, h, q) and a few noisy gradients to weights, as functions of real numbers.

The server's computation between rounds; ``recipes`` has every number of it. The course decides who sums, draws
noise and keeps marks; ``moments`` makes records integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privstats.estimates.denoise import Array, NoisyGram, NoisyMean, denoise_spectrum, denoised_solve, positive_part
from privstats.estimates.filter_bank import GradientHistory, KalmanBank
from privstats.estimates.recipes import RidgeRecipe

_LEAST_EIGENVALUE = 1e-6
_LEAST_CURVATURE = 0.1
_SIGN_CLIP = 0.05


@dataclass(frozen=True)
class RidgeWhitening:
    """The public map of all gradient rounds, ``u(x) = M'x / B``, shortened to norm 1 (a regression needs the length).

    ``M = V diag P`` with ``P = (l + .3 mean l)^(-1/2)`` and ``B = b sqrt(sum l P^2)``. The published matrix is
    ``V diag P V' / B``, which neither signs nor nearly equal eigenvalues change.

    Attributes:
        vectors: V, ``(d, d)``, orthonormal columns.
        values: l, ``(d,)``, denoised eigenvalues of G / n.
        scale: P, ``(d,)``, all above 0.
        mean_length: b, the part of its length that a row of root mean square length keeps.

    Example:
        >>> from privstats.estimates.regression import RidgeWhitening
        >>> from privstats.estimates.recipes import RidgeRecipe
        >>> from privstats.estimates.denoise import NoisyGram
        >>> noise = {"sigma_G": 0.1, "sigma_h": 0.1, "sigma_q": 0.1}
        >>> sums = NoisyGram(G=np.diag([90.0, 10.0]), h=np.array([[25.0], [0.0]]), q=20.0, records=100.0, **noise)
        >>> recipe = RidgeRecipe(features=2, records=100, mu=5.0, clip_norm=1.0, target_bound=1.0, rounds=4)
        >>> np.diag(RidgeWhitening.of(recipe, sums).matrix).round(1).tolist()  # the short direction is stretched
        [0.9, 1.8]
    """

    vectors: Array
    values: Array
    scale: Array
    mean_length: float

    @classmethod
    def of(cls, recipe: RidgeRecipe, sums: NoisyGram, mean: NoisyMean | None = None) -> RidgeWhitening:
        """Build the whitening from the first release, or from its trace and a mean.

        The mean eigenvalue is its posterior mean given that it is not negative, the trace and its noise, and is at most
        what clipped rows allow: where noise hides G, the map would otherwise stretch rows, and predictions with them.
        A fixed schedule takes it from R alone. The denoised eigenvalues, or the mean, give the shape of the spectrum
        only; a mean that is missing gives none.

        Args:
            recipe: the course's.
            sums: the first release.
            mean: of the rows' directions; None where there is no release of it.
        """
        n, d, most = recipe.records, recipe.features, recipe.clip_norm**2 / recipe.features
        if mean is not None:
            vectors, values = mean.spectrum
        elif recipe.descends or recipe.mean_share:
            vectors, values = np.eye(d), np.ones(d)
        else:
            spectrum = denoise_spectrum(sums.G, sums.sigma_G, pull=True)
            vectors, values = spectrum.vectors, spectrum.values / n if spectrum.values.any() else np.ones(d)
        level = most
        if not recipe.descends:
            trace = float(positive_part(np.trace(sums.G) / (n * d), sums.sigma_G / (n * math.sqrt(d))))
            level = min(max(trace, _LEAST_EIGENVALUE * recipe.clip_norm**2), most)
        values = values * (level / values.mean())
        return cls(vectors, values, (values + 0.3 * level) ** -0.5, recipe.mean_length)

    @property
    def length(self) -> float:
        """B = b sqrt(sum l P^2), the part b of the root mean square of ``|M'x|``."""
        return self.mean_length * math.sqrt(float(self.values @ np.square(self.scale)))

    @property
    def matrix(self) -> Array:
        """V diag P V' / B, ``(d, d)``, symmetric: the published matrix."""
        product = (self.vectors * (self.scale / self.length)) @ self.vectors.T
        return np.asarray((product + product.T) / 2)

    @property
    def curvature(self) -> Array:
        """Kd, ``(d,)``: the diagonal of E u u' if no row is shortened, no less than a tenth of its mean."""
        K = self.values * np.square(self.scale / self.length)
        return np.asarray(np.maximum(K, _LEAST_CURVATURE * K.mean()))

    def rows(self, X: Array) -> Array:
        """u(x) in the published coordinates, ``(n, d)``, of norm at most 1."""
        Z = X @ self.matrix
        norm = np.sqrt(np.einsum("ij,ij->i", Z, Z))[:, None]
        return np.asarray(Z / np.maximum(norm, 1.0))

    def published(self, weights: Array) -> Array:
        """Return weights on the original features, ``w = M W / B``, ``(d,)``."""
        return np.asarray(self.vectors @ (self.scale * weights) / self.length)


@dataclass(frozen=True)
class RidgeState:
    """The filters, the gradients so far, and the weights and clip of the next round.

    Attributes:
        filters: filters of weights ``(d,)`` in the coordinates of M, one per hypothesis.
        history: the rounds so far.
        weights: at which the next round is measured, ``(d,)``, in the coordinates of M.
        clip: c, the bound of its residuals; above 0.

    Example:
        >>> from privstats.estimates.regression import RidgeWhitening, ridge_started
        >>> from privstats.estimates.recipes import RidgeRecipe
        >>> from privstats.estimates.denoise import NoisyGram
        >>> noise = {"sigma_G": 0.1, "sigma_h": 0.1, "sigma_q": 0.1}
        >>> sums = NoisyGram(G=np.eye(2) * 50, h=np.array([[25.0], [0.0]]), q=20.0, records=100.0, **noise)
        >>> recipe = RidgeRecipe(features=2, records=100, mu=5.0, clip_norm=1.0, target_bound=1.0, rounds=4)
        >>> state = ridge_started(recipe, sums, RidgeWhitening.of(recipe, sums))
        >>> state.weights.shape, state.clip > 0
        ((2,), True)
    """

    filters: KalmanBank
    history: GradientHistory
    weights: Array
    clip: float


@dataclass(frozen=True)
class DescentState:
    """State of a fixed schedule of steps: the weights and clip of the next round, and the number of rounds before it.

    Attributes:
        weights: ``(d,)``, in the coordinates of M.
        clip: c, the bound of residuals, the same in every round.
        steps: number of steps so far.

    Example:
        >>> from privstats.estimates.regression import DescentState
        >>> DescentState(weights=np.zeros(2), clip=0.05).steps
        0
    """

    weights: Array
    clip: float
    steps: int = 0


def ridge_started(recipe: RidgeRecipe, sums: NoisyGram, whitening: RidgeWhitening) -> RidgeState | DescentState:
    """Return the state after the first release.

    The first round is measured at the weights of :func:`~privstats.estimates.denoise.denoised_solve`, ``W = B V'w /
    P``. Filters start from weights on the features with one variance for all, as in ridge regression, and are given h,
    an unclipped gradient at weights 0.

    Args:
        recipe, whitening: the course's.
        sums: of one target.

    Example:
        >>> from privstats.estimates.regression import RidgeWhitening, ridge_started
        >>> from privstats.estimates.recipes import RidgeRecipe
        >>> from privstats.estimates.denoise import NoisyGram
        >>> noise = {"sigma_G": 0.1, "sigma_h": 0.1, "sigma_q": 0.1}
        >>> sums = NoisyGram(G=np.eye(2) * 50, h=np.array([[25.0], [0.0]]), q=20.0, records=100.0, **noise)
        >>> recipe = RidgeRecipe(features=2, records=100, mu=5.0, clip_norm=1.0, target_bound=1.0, rounds=4)
        >>> state = ridge_started(recipe, sums, RidgeWhitening.of(recipe, sums))
        >>> np.abs(state.weights).round(1).tolist()
        [0.5, 0.0]
    """
    curvature, n = whitening.curvature, recipe.records
    first = whitening.length * (whitening.vectors.T @ denoised_solve(sums).weights[:, 0]) / whitening.scale
    if recipe.descends:
        return DescentState(first, _SIGN_CLIP * recipe.target_bound)
    hidden = 1 + sums.sigma_G * math.sqrt(2 * recipe.features) / n / float(whitening.values.mean())
    energy = (sums.q / n, sums.sigma_q / n)
    filters = KalmanBank.of(curvature, whitening.scale**-2.0, hidden, energy, recipe.target_bound, single=recipe.single)
    scale = whitening.scale / (whitening.length * n)
    gradient = (whitening.vectors.T @ sums.h[:, 0]) * scale
    origin = np.zeros(recipe.features)
    filters = filters.pointed(origin, gradient / curvature, sums.sigma_h * scale / curvature, 1.0, curvature)
    return RidgeState(
        filters, GradientHistory.empty(recipe.features), first, recipe.clip(filters.deviation(first, curvature))
    )


def ridge_refined(
    recipe: RidgeRecipe,
    whitening: RidgeWhitening,
    state: RidgeState | DescentState,
    gradient: Array,
    within: float,
    sigma: tuple[float, float],
) -> RidgeState | DescentState:
    """Return the state after one gradient round.

    A fixed schedule steps ``W <- W + stride Y d b * V'gradient / (n c)``, whatever size residuals have. Otherwise the
    filters process the gradient.

    For Gaussian residuals clipping scales every gradient by the share within the clip, so a hypothesis about their size
    fixes the length of a step. Shortening the rows scales it by b.

    Args:
        recipe, whitening: the course's.
        state: the weights and clip at which the round was measured.
        gradient: the released sum of ``clip(y - w'x) u``, ``(d,)``, in the published coordinates, in real units.
        within: kappa, the released number of residuals within the clip.
        sigma: noise standard deviations of the gradient's entries and of the count.

    Example:
        >>> from privstats.estimates.regression import RidgeWhitening, ridge_refined, ridge_started
        >>> from privstats.estimates.recipes import RidgeRecipe
        >>> from privstats.estimates.denoise import NoisyGram
        >>> noise = {"sigma_G": 0.1, "sigma_h": 0.1, "sigma_q": 0.1}
        >>> sums = NoisyGram(G=np.eye(2) * 50, h=np.array([[25.0], [0.0]]), q=20.0, records=100.0, **noise)
        >>> recipe = RidgeRecipe(features=2, records=100, mu=5.0, clip_norm=1.0, target_bound=1.0, rounds=4)
        >>> whitening = RidgeWhitening.of(recipe, sums)
        >>> state = ridge_started(recipe, sums, whitening)
        >>> ridge_refined(recipe, whitening, state, np.zeros(2), within=95.0, sigma=(0.1, 0.1)).weights.shape
        (2,)
    """
    if isinstance(state, DescentState):
        noise = max(1.0, sigma[0] * recipe.round_mu * math.sqrt(recipe.round_shares["g"]) / state.clip)
        direction = whitening.vectors.T @ gradient / (recipe.records * state.clip)
        length = recipe.stride(state.steps, noise) * recipe.target_bound * recipe.features * whitening.mean_length
        return DescentState(state.weights + length * direction, state.clip, state.steps + 1)
    n, diagonal, point = recipe.records, whitening.curvature, state.weights
    filters = state.filters.counted(point, (within / n, sigma[1] / n), state.clip, n, diagonal)
    shares, scale = filters.within(point, state.clip, diagonal), n * whitening.mean_length
    direction, noise, share = whitening.vectors.T @ gradient / scale, sigma[0] / scale, float(filters.belief @ shares)
    history = state.history.on(point, direction / share, noise / share)
    curvature = history.curvature(diagonal)
    filters = filters.pointed(point, curvature.solved(direction), curvature.noise(noise), shares, diagonal)
    return RidgeState(filters, history, filters.mean, recipe.clip(filters.deviation(filters.mean, diagonal)))
