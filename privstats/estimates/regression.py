"""Compute ridge weights from (G, h, q) and noisy gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from privstats.estimates.denoise import (
    Array,
    NoisyGram,
    NoisyMean,
    denoise_spectrum,
    denoised_solve,
    positive_part,
    seen_share,
)
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

    def whitened(self, weights: Array) -> Array:
        """Return weights in M's coordinates, ``W = B V'w / P``, ``(d,)``."""
        return np.asarray(self.length * (self.vectors.T @ weights) / self.scale)

    def published(self, weights: Array) -> Array:
        """Return weights on the original features, ``w = M W / B``, ``(d,)``."""
        return np.asarray(self.vectors @ (self.scale * weights) / self.length)


@dataclass(frozen=True)
class RidgeState:
    """State of a course whose filters learn from every round.

    Attributes:
        sums, filters, history: the first release's sums, beliefs about the weights, and the gradients so far.
        origin: the weights ``(d,)`` that filters count from, a level alone; all weights are in M's coordinates.
        weights, clip: the next round's weights ``(d,)`` and residual clip.
        deviation: the residuals' standard deviation, from which the clip follows.
        level, levels: variance of the level's error, and rounds for the level so far.

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
    origin: Array
    weights: Array
    deviation: float
    clip: float
    level: float
    levels: int


@dataclass(frozen=True)
class DescentState:
    """State of a fixed schedule.

    Attributes:
        weights, clip: next weights ``(d,)`` in M's coordinates, and the constant clip.
        rounds: past rounds.

    Example:
        >>> from privstats.estimates.regression import DescentState
        >>> DescentState(weights=np.zeros(2), clip=0.05).rounds
        0
    """

    weights: Array
    clip: float
    rounds: int = 0


def ridge_started(recipe: RidgeRecipe, sums: NoisyGram, whitening: RidgeWhitening) -> RidgeState | DescentState:
    """Return the state after the first release.

    Filters count from the level that it knows: the mean target D, of noise v, times ``E / (E + v^2)``, with E the
    largest mean square of targets that the release and Y allow. The first gradient is at the weights of
    :func:`~privstats.estimates.denoise.denoised_solve` about it, ``W = B V'w / P``; a first round for the level is at
    the level alone.

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
    if recipe.descends:
        return DescentState(whitening.whitened(denoised_solve(sums).weights[:, 0]), recipe.sign_clip)
    row, level = np.zeros(recipe.features), 0.0
    if recipe.constant is not None:
        mean, noise = (float(each) / (recipe.constant * recipe.records) for each in (sums.h[-1, 0], sums.sigma_h))
        most = min((max(sums.q, 0.0) + _CERTAIN * sums.sigma_q) / recipe.records, recipe.target_bound**2)
        gain = most / (most + noise**2) if most > 0 else 0.0
        row[-1], level = gain * mean / recipe.constant, gain * noise**2
    return _begun(recipe, whitening, sums, row, level, 0)


def _begun(
    recipe: RidgeRecipe, whitening: RidgeWhitening, sums: NoisyGram, row: Array, level: float, levels: int
) -> RidgeState:
    """Return the state before any gradient, with filters of what remains of the targets about a level.

    Weights vary by the level's error too, along the constant column: as slopes alone they would keep most of it.
    """
    curvature, n, about = whitening.curvature, recipe.records, sums.about(row)
    hidden = 1 + sums.sigma_G * math.sqrt(2 * recipe.features) / n / float(whitening.values.mean())
    energy = (about.q / n, about.sigma_q / n)
    filters = KalmanBank.of(curvature, whitening.scale**-2.0, hidden, energy, recipe.target_bound, single=recipe.single)
    scale = whitening.scale / (whitening.length * n)
    gradient = (whitening.vectors.T @ about.h[:, 0]) * scale
    zero, origin = np.zeros(recipe.features), whitening.whitened(row)
    unsure = level * np.square(whitening.length * whitening.vectors[-1] / (whitening.scale * (recipe.constant or 1.0)))
    filters = replace(
        filters,
        variance=filters.variance + unsure,
        others=filters.others + unsure,
        prior=filters.prior + unsure,
    )
    filters = filters.pointed(zero, gradient / curvature, about.sigma_h * scale / curvature, 1.0, curvature)
    history = GradientHistory.empty(recipe.features)
    first = zero if _of_level(recipe, history, levels) else whitening.whitened(denoised_solve(about).weights[:, 0])
    state = RidgeState(sums, filters, history, origin, origin + first, 0.0, 0.0, level, levels)
    return _clipped(recipe, whitening, state)


def _clipped(recipe: RidgeRecipe, whitening: RidgeWhitening, state: RidgeState) -> RidgeState:
    """Return the state with the residuals' deviation at its weights, and with the clip that follows.

    The filters compute the deviation from counts, as for Gaussian residuals. That is too little where few residuals are
    large, and too much where the clip is far above all of them. So it stays within two standard deviations of the mean
    square of residuals that the first release knows. In a round for the level the clip covers the level's error too:
    otherwise it would hide the mean residual that the round is to measure.
    """
    about = state.sums.about(whitening.published(state.weights))
    low, high = (math.sqrt(max(0.0, about.q + sign * _CERTAIN * about.sigma_q) / recipe.records) for sign in (-1, 1))
    high = max(high, _LEAST_DEVIATION * recipe.target_bound)
    deviation = min(max(state.filters.deviation(state.weights - state.origin, whitening.curvature), low), high)
    clip = recipe.clip(deviation)
    if _of_level(recipe, state.history, state.levels):
        clip = min(recipe.level_width * math.sqrt(deviation**2 + state.level), 2 * recipe.target_bound)
    return replace(state, deviation=deviation, clip=clip)


def _of_level(recipe: RidgeRecipe, history: GradientHistory, levels: int) -> bool:
    """Return whether the next round is for the level: the first one and the last ones."""
    most = recipe.level_rounds
    return most > 0 and (levels == 0 or recipe.rounds - 1 - len(history.noise) <= most)


def _retained(recipe: RidgeRecipe, whitening: RidgeWhitening, state: RidgeState) -> Array:
    """Return the filters' weights without doubtful slopes; the prediction at the mean row stays.

    Chance among n records counts as noise, up to twice the standard deviation of the noise itself.
    """
    weights, n, c = state.filters.mean, recipe.records, recipe.constant
    share, noise = state.filters.learned
    deviation = state.filters.deviation(weights, whitening.curvature)
    chance = np.square(share * deviation) / (n * whitening.curvature)
    doubtful = _doubtful(whitening, weights, noise + np.minimum(4 * noise, chance), c)
    weights = np.asarray(state.origin + weights - doubtful)
    if c is None:
        return weights
    row = np.append(np.zeros(len(weights) - 1), state.sums.G[:-1, -1] @ whitening.published(doubtful)[:-1] / (n * c**2))
    return weights + whitening.whitened(row)


def _doubtful(whitening: RidgeWhitening, weights: Array, noise: Array, constant: float | None) -> Array:
    """Return the part of the slopes that noise of this variance per weight may explain, in M's coordinates.

    It is what :func:`~privstats.estimates.denoise.seen_share` excludes, from the mean square of predictions by slopes.
    """
    level = np.zeros(len(weights)) if constant is None else whitening.vectors[-1]
    slopes = (np.eye(len(weights)) - np.outer(level, level)) * (whitening.scale / whitening.scale[:, None])
    own, by_noise = slopes @ weights, whitening.curvature * (np.square(slopes) @ noise)
    return np.asarray((1 - seen_share(float(whitening.curvature @ np.square(own)), by_noise)) * own)


def ridge_map(recipe: RidgeRecipe, whitening: RidgeWhitening, state: RidgeState | DescentState) -> Array:
    """Return the next round's public map ``(d, d)``: M, or the constant column alone in a round for the level.

    Such a row is 1, so that the round sums residuals, and noise moves the level no more than it must.

    Example:
        >>> from privstats.estimates.regression import RidgeWhitening, ridge_map, ridge_refined, ridge_started
        >>> from privstats.estimates.recipes import RidgeRecipe
        >>> from privstats.estimates.denoise import NoisyGram
        >>> noise = {"sigma_G": 0.1, "sigma_h": 0.1, "sigma_q": 0.1}
        >>> sums = NoisyGram(G=np.eye(2) * 50, h=np.array([[25.0], [0.0]]), q=20.0, records=100.0, **noise)
        >>> public = {"clip_norm": 1.0, "target_bound": 1.0, "rounds": 12, "constant": 0.5}
        >>> recipe = RidgeRecipe(features=2, records=100, mu=1.0, **public)
        >>> whitening = RidgeWhitening.of(recipe, sums)
        >>> state = ridge_started(recipe, sums, whitening)
        >>> for _ in range(recipe.rounds - recipe.level_rounds):
        ...     state = ridge_refined(recipe, whitening, state, np.zeros(2), within=95.0, sigma=(0.1, 0.1))
        >>> ridge_map(recipe, whitening, state).tolist()
        [[0.0, 0.0], [0.0, 2.0]]
    """
    if isinstance(state, DescentState) or recipe.constant is None or not _of_level(recipe, state.history, state.levels):
        return whitening.matrix
    matrix = np.zeros_like(whitening.vectors)
    matrix[-1, -1] = 1 / recipe.constant
    return matrix


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
        length = recipe.stride(state.rounds, noise) * recipe.target_bound / state.clip
        step = length * recipe.features * whitening.mean_length / recipe.records
        weights = state.weights + step * (whitening.vectors.T @ gradient)
        return DescentState(weights, state.clip, state.rounds + 1)
    if _of_level(recipe, state.history, state.levels):
        return _levelled(recipe, whitening, state, gradient[-1] / recipe.records, sigma[0] / recipe.records)
    n, diagonal, point = recipe.records, whitening.curvature, state.weights - state.origin
    filters = state.filters.counted(point, (within / n, sigma[1] / n), state.clip, n, diagonal)
    shares, scale = filters.within(point, state.clip, diagonal), n * min(1.0, whitening.mean_length)
    direction, noise, share = whitening.vectors.T @ gradient / scale, sigma[0] / scale, float(filters.belief @ shares)
    history = state.history.on(point, direction / share, noise / share)
    curvature = history.curvature(diagonal)
    filters = filters.pointed(point, curvature.solved(direction), curvature.noise(noise), shares, diagonal)
    after = replace(state, filters=filters, history=history, weights=state.origin + filters.mean)
    if not _of_level(recipe, history, state.levels):
        return _clipped(recipe, whitening, after)
    level = _level_error(recipe, whitening, after)
    return _clipped(recipe, whitening, replace(after, weights=_retained(recipe, whitening, after), level=level))


def _clip_shift(state: RidgeState) -> float:
    """Return the square of the largest shift of a mean by a clip at c: ``s^2 / (4 c)``, and s / 6 at most."""
    return (state.deviation**2 / (4 * max(state.clip, _LEAST_CLIP * state.deviation))) ** 2


def _level_error(recipe: RidgeRecipe, whitening: RidgeWhitening, state: RidgeState) -> float:
    """Return the variance of the level's error after the last gradient.

    Filters leave the part 1 - A of the error before them and add their noise, and the clip adds its shift.
    """
    row, (share, noise) = whitening.vectors[-1], state.filters.learned
    remaining = (1 - float(np.square(row) @ share)) ** 2 * state.level
    added = (recipe.constant or 1.0) ** 2 * float(np.square(row * whitening.scale / whitening.length) @ noise)
    return remaining + added + _clip_shift(state)


def _levelled(
    recipe: RidgeRecipe, whitening: RidgeWhitening, state: RidgeState, residual: float, noise: float
) -> RidgeState:
    """Return the state whose level moved by Kalman's gain of a mean residual, given the level's variance."""
    gain = state.level / (state.level + noise**2) if state.level > 0 else 0.0
    row, level = np.zeros(len(state.weights)), state.level * (1 - gain)
    row[-1] = gain * residual / (recipe.constant or 1.0)
    if state.levels == 0:
        return _begun(recipe, whitening, state.sums, whitening.published(state.weights) + row, level, 1)
    weights = state.weights + whitening.whitened(row)
    return _clipped(recipe, whitening, replace(state, weights=weights, level=level, levels=state.levels + 1))


def ridge_settled(recipe: RidgeRecipe, whitening: RidgeWhitening, state: RidgeState | DescentState) -> Array:
    """Return a head's weights ``(d,)`` on the original features: certain slopes, and the level that all sums support.

    Filters exclude slopes that noise may explain (:func:`~privstats.estimates.denoise.seen_share`), so that a
    head of theirs is close to the mean where nothing can be learned. A fixed schedule does not know how large residuals
    are, so it cannot state its own noise. Its head has all slopes, and the level at which steps end.

    Clipping at c moves the mean of skewed residuals by at most ``t = s^2 / (4 c)``, with s their standard deviation; t
    counts as s / 6 at most, and t^2 as what rounds for the level have left of it. The first release is unclipped: its
    mean residual D errs by its noise v alone. So the intercept moves by ``D t^2 / (t^2 + v^2)``, the posterior mean of
    a shift of standard deviation t. If D exceeds two deviations of its noise by more than t explains, ``D^2 / 4 - v^2``
    replaces t^2, up to s^2: no clip moves a mean by more. Where v is above s, no shift explains such a D, and t stays.
    Without noise the mean residual becomes 0, as in least squares with an intercept.

    Args:
        whitening, state: of the last round.

    Example:
        >>> from privstats.estimates.regression import RidgeWhitening, ridge_settled, ridge_started
        >>> from privstats.estimates.recipes import RidgeRecipe
        >>> from privstats.estimates.denoise import NoisyGram
        >>> noise = {"sigma_G": 0.0, "sigma_h": 0.0, "sigma_q": 0.0}
        >>> sums = NoisyGram(G=np.diag([9.0, 100.0]), h=np.array([[0.0], [30.0]]), q=20.0, records=100.0, **noise)
        >>> public = {"clip_norm": 2.0, "target_bound": 1.0, "rounds": 4, "constant": 1.0}
        >>> recipe = RidgeRecipe(features=2, records=100, mu=5.0, **public)
        >>> whitening = RidgeWhitening.of(recipe, sums)
        >>> ridge_settled(recipe, whitening, ridge_started(recipe, sums, whitening)).round(6).tolist()
        [0.0, 0.3]
    """
    if isinstance(state, DescentState):
        return whitening.published(state.weights)
    constant = recipe.constant
    begun = len(state.history.noise) > 0
    levelled = begun and _of_level(recipe, state.history, state.levels)
    if begun:
        weights = whitening.published(state.weights if levelled else _retained(recipe, whitening, state))
    else:
        weights = whitening.published(state.origin)
        weights += denoised_solve(state.sums.about(weights)).weights[:, 0]
    if constant is None:
        return weights
    about = state.sums.about(weights)
    records = max(about.G[-1, -1], 2 * about.sigma_G) / constant**2
    shift, error = (float(each) / (constant * records) for each in (about.h[-1, 0], about.sigma_h))
    explained = state.level if levelled else _clip_shift(state)
    if error < state.deviation:
        explained = max(explained, min((shift / _CERTAIN) ** 2 - error**2, state.deviation**2))
    weights[-1] += shift / constant * explained / (explained + error**2)
    return weights
