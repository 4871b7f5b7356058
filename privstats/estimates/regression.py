"""Compute ridge weights from (G, h, q) and noisy gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privstats.estimates.denoise import Array, NoisyGram, NoisyMean, denoise_spectrum, denoised_solve, positive_part
from privstats.estimates.filter_bank import GradientHistory, KalmanBank
from privstats.estimates.recipes import RidgeRecipe

_LEAST_EIGENVALUE = 1e-6
_LEAST_CURVATURE = 0.1
_LEAST_CLIP = 1.5
_LEAST_DEVIATION = 1e-3
"""Smallest deviation of residuals, as a share of Y."""
_CERTAIN = 2.0
"""Standard deviations of noise beyond which a number is certain."""


@dataclass(frozen=True)
class RidgeWhitening:
    """The public map of all gradient rounds, ``u(x) = M'x / B``, clipped to norm 1.

    ``M = V diag P`` with ``P = (l + .3 mean l)^(-1/2)`` and ``B = b sqrt(sum l P^2)``.

    Attributes:
        vectors, values: V, ``(d, d)``, and denoised eigenvalues l of G / n, ``(d,)``.
        scale: P, ``(d,)``, all above 0.
        mean_length: b, as in ``RidgeRecipe``, and no larger than any row needs.

    Example:
        >>> from privstats.estimates.regression import RidgeWhitening
        >>> from privstats.estimates.recipes import RidgeRecipe
        >>> from privstats.estimates.denoise import NoisyGram
        >>> noise = {"sigma_G": 0.1, "sigma_h": 0.1, "sigma_q": 0.1}
        >>> sums = NoisyGram(G=np.diag([90.0, 10.0]), h=np.array([[25.0], [0.0]]), q=20.0, records=100.0, **noise)
        >>> recipe = RidgeRecipe(features=2, records=100, mu=5.0, clip_norm=1.0, target_bound=1.0, rounds=4)
        >>> np.diag(RidgeWhitening.of(recipe, sums).matrix).round(1).tolist()  # the short direction is stretched
        [0.5, 1.0]
    """

    vectors: Array
    values: Array
    scale: Array
    mean_length: float

    @classmethod
    def of(cls, recipe: RidgeRecipe, sums: NoisyGram, mean: NoisyMean | None = None) -> RidgeWhitening:
        """Build the whitening from the first release, or from its trace and a mean of the rows' directions.

        The mean eigenvalue is at most that of clipped rows: where noise hides G, the map would otherwise stretch rows.
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
        scale = (values + 0.3 * level) ** -0.5
        longest = recipe.clip_norm * float(scale.max()) / math.sqrt(float(values @ np.square(scale)))
        return cls(vectors, values, scale, min(recipe.mean_length, longest))

    @property
    def length(self) -> float:
        """B = b sqrt(sum l P^2), the share b of ``|M'x|``'s root mean square."""
        return self.mean_length * math.sqrt(float(self.values @ np.square(self.scale)))

    @property
    def matrix(self) -> Array:
        """Published matrix V diag P V' / B, ``(d, d)``, symmetric."""
        product = (self.vectors * (self.scale / self.length)) @ self.vectors.T
        return np.asarray((product + product.T) / 2)

    @property
    def curvature(self) -> Array:
        """Kd, ``(d,)``: the diagonal of E u u' for unclipped rows, at least a tenth of its mean."""
        K = self.values * np.square(self.scale / self.length)
        return np.asarray(np.maximum(K, _LEAST_CURVATURE * K.mean()))

    def rows(self, X: Array) -> Array:
        """Return u(x) in the published coordinates, ``(n, d)``."""
        Z = X @ self.matrix
        norm = np.sqrt(np.einsum("ij,ij->i", Z, Z))[:, None]
        return np.asarray(Z / np.maximum(norm, 1.0))

    def published(self, weights: Array) -> Array:
        """Return weights on the original features, ``w = M W / B``, ``(d,)``."""
        return np.asarray(self.vectors @ (self.scale * weights) / self.length)


@dataclass(frozen=True)
class RidgeState:
    """The first release's sums, the filters, the gradients so far, and the next round's weights and residual clip.

    Weights ``(d,)`` are in M's coordinates. ``deviation`` is the residuals' standard deviation, from which the clip
    follows.

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

    sums: NoisyGram
    filters: KalmanBank
    history: GradientHistory
    weights: Array
    deviation: float
    clip: float


@dataclass(frozen=True)
class DescentState:
    """State of a fixed schedule: next weights ``(d,)`` in M's coordinates, the constant clip, and past steps.

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

    The first round uses the weights of :func:`~privstats.estimates.denoise.denoised_solve`, ``W = B V'w / P``.

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
        return DescentState(first, recipe.sign_clip)
    hidden = 1 + sums.sigma_G * math.sqrt(2 * recipe.features) / n / float(whitening.values.mean())
    energy = (sums.q / n, sums.sigma_q / n)
    filters = KalmanBank.of(curvature, whitening.scale**-2.0, hidden, energy, recipe.target_bound, single=recipe.single)
    scale = whitening.scale / (whitening.length * n)
    gradient = (whitening.vectors.T @ sums.h[:, 0]) * scale
    origin = np.zeros(recipe.features)
    filters = filters.pointed(origin, gradient / curvature, sums.sigma_h * scale / curvature, 1.0, curvature)
    return _state(recipe, whitening, sums, filters, GradientHistory.empty(recipe.features), first)


def _state(
    recipe: RidgeRecipe,
    whitening: RidgeWhitening,
    sums: NoisyGram,
    filters: KalmanBank,
    history: GradientHistory,
    weights: Array,
) -> RidgeState:
    """Return the state whose clip follows from the residuals' deviation.

    The filters compute it from counts, as for Gaussian residuals. That is too little where few residuals are large, and
    too much where the clip is far above all of them. So it stays within two standard deviations of the mean square of
    residuals that the first release knows.
    """
    about = sums.about(whitening.published(weights))
    low, high = (math.sqrt(max(0.0, about.q + sign * _CERTAIN * about.sigma_q) / recipe.records) for sign in (-1, 1))
    high = max(high, _LEAST_DEVIATION * recipe.target_bound)
    deviation = min(max(filters.deviation(weights, whitening.curvature), low), high)
    return RidgeState(sums, filters, history, weights, deviation, recipe.clip(deviation))


def ridge_refined(
    recipe: RidgeRecipe,
    whitening: RidgeWhitening,
    state: RidgeState | DescentState,
    gradient: Array,
    within: float,
    sigma: tuple[float, float],
) -> RidgeState | DescentState:
    """Return the state after one gradient round.

    A fixed schedule steps ``W <- W + stride Y d b * V'gradient / (n c)``. Otherwise the filters process the gradient,
    which clipping scales by the share of residuals within the clip, and shortening of rows by b.

    Args:
        gradient: released sum of ``clip(y - w'x) u``, ``(d,)``, published coordinates.
        within: kappa, the released number of residuals within the clip.
        sigma: noise standard deviations of both.

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
    shares, scale = filters.within(point, state.clip, diagonal), n * min(1.0, whitening.mean_length)
    direction, noise, share = whitening.vectors.T @ gradient / scale, sigma[0] / scale, float(filters.belief @ shares)
    history = state.history.on(point, direction / share, noise / share)
    curvature = history.curvature(diagonal)
    filters = filters.pointed(point, curvature.solved(direction), curvature.noise(noise), shares, diagonal)
    return _state(recipe, whitening, state.sums, filters, history, filters.mean)


def ridge_settled(whitening: RidgeWhitening, state: RidgeState | DescentState, constant: float | None) -> Array:
    """Return the weights ``(d,)`` on the original features, with the level that unclipped sums support.

    Clipping at c moves the mean of skewed residuals by at most ``t = s^2 / (4 c)``, with s their standard deviation;
    t counts as s / 6 at most. The first release is unclipped: its mean residual D errs by its noise v alone. So the
    intercept moves by ``D t^2 / (t^2 + v^2)``, the posterior mean of a shift of standard deviation t. If D exceeds two
    deviations of its noise by more than t explains, ``D^2 / 4 - v^2`` replaces t^2. Without noise the mean residual
    becomes 0, as in least squares with an intercept. A fixed schedule, whose first release knows no level, stays as it
    is.

    Args:
        whitening, state: of the last round.
        constant: value of the last feature, which is constant; None without an intercept.

    Example:
        >>> from privstats.estimates.regression import RidgeWhitening, ridge_settled, ridge_started
        >>> from privstats.estimates.recipes import RidgeRecipe
        >>> from privstats.estimates.denoise import NoisyGram
        >>> noise = {"sigma_G": 0.0, "sigma_h": 0.0, "sigma_q": 0.0}
        >>> sums = NoisyGram(G=np.diag([9.0, 100.0]), h=np.array([[0.0], [30.0]]), q=20.0, records=100.0, **noise)
        >>> recipe = RidgeRecipe(features=2, records=100, mu=5.0, clip_norm=2.0, target_bound=1.0, rounds=4)
        >>> whitening = RidgeWhitening.of(recipe, sums)
        >>> ridge_settled(whitening, ridge_started(recipe, sums, whitening), constant=1.0).round(6).tolist()
        [0.0, 0.3]
    """
    weights = whitening.published(state.weights)
    if isinstance(state, DescentState) or constant is None:
        return weights
    about = state.sums.about(weights)
    records = max(about.G[-1, -1], 2 * about.sigma_G) / constant**2
    shift, error = (float(each) / (constant * records) for each in (about.h[-1, 0], about.sigma_h))
    usual = state.deviation**2 / (4 * max(state.clip, _LEAST_CLIP * state.deviation))
    explained = max(usual**2, (shift / _CERTAIN) ** 2 - error**2)
    weights[-1] += shift / constant * explained / (explained + error**2)
    return weights
