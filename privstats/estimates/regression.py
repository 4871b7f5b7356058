"""Refinement of a ridge regression: from (G, h, q) and a few noisy gradients to weights, as functions of real numbers.

The server's computation between rounds, and every number that follows from public values. The course decides who sums,
draws noise and keeps marks; ``moments`` makes records integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from privstats.estimates.filter_bank import GradientHistory, KalmanBank
from privstats.estimates.spectrum import Array, NoisyGram, NoisyMean, denoise_spectrum, denoised_solve, positive_part

__all__ = [
    "MEAN_SHARE",
    "DescentState",
    "RidgeRecipe",
    "RidgeState",
    "RidgeWhitening",
    "ridge_refined",
    "ridge_started",
]

MEAN_SHARE = 0.05
"""a: the part of a course's mu^2 that a noisy mean of the rows' directions gets, where there is one."""

_LEAST_EIGENVALUE = 1e-6
_LEAST_CURVATURE = 0.1
_MANY_ROUNDS = 12
_LEAST_SIGNAL = 0.2
_GRAM_SIGNAL = 0.3  # s from which G tells more than a mean
_MEAN_CERTAINTY = 5.0  # n mu over sqrt d from which a schedule gains by a mean
_LEAST_CERTAINTY = 40.0  # n mu below which sizes are fixed, not learned
_LEAST_SHARE = 1 / 64
_SIGN_CLIP = 0.05
_WIDEST_AVERAGED = 1.25
_COUNT_SHARE = 0.05
_UNREAD_SHARE = 0.001  # of a sum that a round has and a fixed schedule does not read


@dataclass(frozen=True)
class RidgeRecipe:
    """Every number of the recipe, from what is public; where constants were chosen, docs/refinement_numbers.md says.

    Attributes:
        features: d, the constant column included.
        records: n as the owners of the course declare it; never a count of the records.
        mu: Gaussian-DP parameter of the whole course.
        clip_norm: R, the norm that rows are clipped to.
        target_bound: Y, the bound that targets are clipped to.
        rounds: T.
        mean: whether a session for a mean may follow the first release; not where parties prove their sums.

    Example:
        >>> from privstats.estimates.regression import RidgeRecipe
        >>> recipe = RidgeRecipe(features=5, records=10_000, mu=1.0, clip_norm=1.0, target_bound=1.0, rounds=24)
        >>> round(recipe.release_mu**2 + 24 * recipe.round_mu**2, 6)  # all sums together cost mu
        1.0
    """

    features: int
    records: int
    mu: float
    clip_norm: float
    target_bound: float
    rounds: int
    mean: bool = True

    @property
    def signal(self) -> float:
        """s = n mu / d^1.5: how well the Gram matrix can be known."""
        return self.records * self.mu / (self.features * math.sqrt(self.features))

    @property
    def descends(self) -> bool:
        """Whether a fixed schedule of steps follows the rounds, and no filters: for n mu below 40.

        All that a sum can tell of one number is known to 1 / (n mu) of its range then, and a round's part of it hides
        how many residuals are within a clip, so filters would guess the size of everything that they need.
        """
        return self.records * self.mu < _LEAST_CERTAINTY

    @property
    def many(self) -> bool:
        """Whether filters average over rounds: from twelve on. Of fewer each has to bring them near."""
        return self.rounds >= _MANY_ROUNDS

    @property
    def mean_share(self) -> float:
        """a = 1/20 where a mean of the rows' directions is measured before the rounds, or 0.

        It stands in for G where noise hides that matrix: in a fixed schedule from n mu = 5 sqrt d on, where a mean of d
        numbers can be known, and of many rounds below s = .3, where both together cost less than G alone. Most of what
        G would tell is one curved direction, and where entries have a sign or there is a constant, the mean points
        along it.
        """
        if self.descends:
            hidden = self.records * self.mu >= _MEAN_CERTAINTY * math.sqrt(self.features)
        else:
            hidden = self.many and self.signal < _GRAM_SIGNAL
        return MEAN_SHARE if self.mean and hidden else 0.0

    @property
    def release_share(self) -> float:
        """f = min(.3, max(.08, .3 sqrt(s / 2))): the part of mu^2 that (G, h, q) gets.

        It is 1/64 of a fixed schedule, and where a mean follows: G then tells little beside its trace.
        """
        if self.descends or self.mean_share:
            return _LEAST_SHARE
        return min(0.3, max(0.08, 0.3 * math.sqrt(self.signal / 2)))

    def stride(self, taken: int, noise: float = 1.0) -> float:
        """The factor of the step after so many, in units of ``Y d / R`` times the mean of ``clip(y - w'x) u / c``.

        It falls as the root of what is left of T, from ``3 z / (8 d T) min(1, z / (2 sqrt d))``, at most 1 / d, with
        z = n mu over ``noise``. All steps together add noise of .27 Y (of 24) to .38 Y (of one) at most to the
        prediction of a row of norm R, and less as z falls; without noise none turns a prediction by more than Y. Behind
        a mean, whose price makes it .28 Y of 24, both hold of a row for which ``|M'x| = B / b``, the map's root mean
        square; across the mean a row of norm R has up to ``1 / sqrt(1 - L^2 / |m|^2)`` times as much
        (:class:`~privstats.estimates.spectrum.NoisyMean`).

        Args:
            taken: rounds before.
            noise: how many times the noise of a central release under add-remove this one holds, at least 1.
        """
        certainty = self.records * self.mu / noise
        first = 0.375 * certainty / (self.features * self.rounds) * min(1.0, certainty / (2 * math.sqrt(self.features)))
        return min(first, 1 / self.features) * math.sqrt(max(0.0, 1 - taken / self.rounds))

    @property
    def release_shares(self) -> dict[str, float]:
        """Shares of G, h and q in the first release."""
        return {"G": 0.6, "h": 0.35, "q": 0.05}

    @property
    def round_shares(self) -> Mapping[str, float]:
        """Shares of a round's mu^2: the gradient's, and that of kappa, the count of residuals within the clip.

        The count gets 1/20, and hardly anything in a fixed schedule, which does not read it.
        """
        count = _UNREAD_SHARE if self.descends else _COUNT_SHARE
        return {"g": 1 - count, "kappa": count}

    @property
    def release_mu(self) -> float:
        """mu of the first release: mu_1^2 = f mu^2."""
        return self.mu * math.sqrt(self.release_share)

    @property
    def round_mu(self) -> float:
        """mu of one gradient round: T mu_t^2 = (1 - f - a) mu^2."""
        return self.mu * math.sqrt((1 - self.release_share - self.mean_share) / self.rounds)

    @cached_property
    def width(self) -> float:
        """g: the residuals' clip, in standard deviations of a residual, that makes a round most informative.

        The error of Newton's estimate of an entry, in units of a Gaussian residual and at mean curvature 1 / d, is the
        noise of the gradient and of the count, and the sampling error, over the share of a gradient that clipping
        leaves. g is where ``(d (g^2 + 1 / (k d^2)) / (m n mu_t^2) + E min(r^2, g^2)) / P(|r| <= g)^2`` is least,
        between 1/4 and 2, with k the count's share and m = 1. Under strong noise g is small, so that little more than
        signs remain; with little noise only outliers are clipped.

        Of many rounds noise averages out, and the sampling error does not. So for these m = sqrt T, as far as that
        widens the clip to 1.25 at most: behind a wider one few residuals are clipped, and the tenth of the records that
        may be missing look like them.
        """
        alone = self._width(1.0)
        return max(alone, min(self._width(math.sqrt(self.rounds)), _WIDEST_AVERAGED)) if self.many else alone

    def _width(self, averaged: float) -> float:
        g, count = np.geomspace(0.25, 2.0, 1_000), self.round_shares["kappa"]
        within = 2 * ndtr(g) - 1
        square = within - 2 * g * np.exp(-np.square(g) / 2) / math.sqrt(2 * math.pi) + np.square(g) * (1 - within)
        told = averaged * self.records * self.round_mu**2
        noise = self.features * (np.square(g) + 1 / (count * self.features**2)) / told
        return float(g[int(((noise + square) / np.square(within)).argmin())])

    @property
    def kept(self) -> float:
        """b = max(1/2, g / 2), and 1 of few rounds: the part of its length that a row of mean square length keeps.

        For a fixed schedule it is 1/4, and the length is R. The noise is that of the longest row. So under strong
        noise, where residuals become signs, rows become directions: all but the shortest get norm 1. With little noise
        only outliers are shortened. Gradients of directions have other curvatures than the first release tells, which
        many rounds find out and few do not.
        """
        if self.descends:
            return 0.25
        return max(0.5, self.width / 2) if self.many else 1.0

    @property
    def single(self) -> bool:
        """Whether the filters consider that one direction alone is curved: of many rounds, from s = .2 on.

        Below, the counts of residuals are so noisy that steps which go on for long can lose hold of their size.
        """
        return self.many and self.signal >= _LEAST_SIGNAL

    def clip(self, deviation: float) -> float:
        """c = min(g deviation, 2 Y): the clip of residuals of this standard deviation."""
        return min(self.width * deviation, 2 * self.target_bound)


@dataclass(frozen=True)
class RidgeWhitening:
    """The public map of all gradient rounds, ``u(x) = M'x / B``, shortened to norm 1 (a regression needs the length).

    ``M = V diag P`` with ``P = (l + .3 mean l)^(-1/2)`` and ``B = b sqrt(sum l P^2)``. What is published is
    ``V diag P V' / B``, which neither signs nor nearly equal eigenvalues move.

    Attributes:
        vectors: V, ``(d, d)``, orthonormal columns.
        values: l, ``(d,)``, denoised eigenvalues of G / n.
        scale: P, ``(d,)``, all above 0.
        kept: b, the part of its length that a row of root mean square length keeps.

    Example:
        >>> from privstats.estimates.regression import RidgeRecipe, RidgeWhitening
        >>> from privstats.estimates.spectrum import NoisyGram
        >>> noise = {"sigma_G": 0.1, "sigma_h": 0.1, "sigma_q": 0.1}
        >>> sums = NoisyGram(G=np.diag([90.0, 10.0]), h=np.array([[25.0], [0.0]]), q=20.0, records=100.0, **noise)
        >>> recipe = RidgeRecipe(features=2, records=100, mu=5.0, clip_norm=1.0, target_bound=1.0, rounds=4)
        >>> np.diag(RidgeWhitening.of(recipe, sums).matrix).round(1).tolist()  # the short direction is stretched
        [0.9, 1.8]
    """

    vectors: Array
    values: Array
    scale: Array
    kept: float

    @classmethod
    def of(cls, recipe: RidgeRecipe, sums: NoisyGram, mean: NoisyMean | None = None) -> RidgeWhitening:
        """From the first release, or from its trace and a mean.

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
        return cls(vectors, values, (values + 0.3 * level) ** -0.5, recipe.kept)

    @property
    def length(self) -> float:
        """B = b sqrt(sum l P^2), the part b of the root mean square of ``|M'x|``."""
        return self.kept * math.sqrt(float(self.values @ np.square(self.scale)))

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
        """Weights on the original features, ``w = M W / B``, ``(d,)``."""
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
        >>> from privstats.estimates.regression import RidgeRecipe, RidgeWhitening, ridge_started
        >>> from privstats.estimates.spectrum import NoisyGram
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
    """Of a fixed schedule of steps: the weights and clip of the next round, and the number of rounds before it.

    Attributes:
        weights: ``(d,)``, in the coordinates of M.
        clip: c, the bound of residuals, the same in every round.
        taken: rounds so far.

    Example:
        >>> from privstats.estimates.regression import DescentState
        >>> DescentState(weights=np.zeros(2), clip=0.05).taken
        0
    """

    weights: Array
    clip: float
    taken: int = 0


def ridge_started(recipe: RidgeRecipe, sums: NoisyGram, whitening: RidgeWhitening) -> RidgeState | DescentState:
    """The state after the first release.

    The first round is measured at the weights of :func:`~privstats.estimates.spectrum.denoised_solve`, ``W = B V'w /
    P``. Filters start from weights on the features with one variance for all, as in ridge regression, and are given h,
    an unclipped gradient at weights 0.

    Args:
        recipe, whitening: the course's.
        sums: of one target.

    Example:
        >>> from privstats.estimates.regression import RidgeRecipe, RidgeWhitening, ridge_started
        >>> from privstats.estimates.spectrum import NoisyGram
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
    """The state after one gradient round.

    By a fixed schedule: ``W <- W + stride Y d b * V'gradient / (n c)``, whatever size residuals have. Else the filters
    take it in.

    For Gaussian residuals clipping scales every gradient by the share within the clip, so a hypothesis about their size
    fixes the length of a step. Shortening the rows scales it by b.

    Args:
        recipe, whitening: the course's.
        state: at whose weights and clip the round was measured.
        gradient: the released sum of ``clip(y - w'x) u``, ``(d,)``, in the published coordinates, in real units.
        within: kappa, the released number of residuals within the clip.
        sigma: noise standard deviations of the gradient's entries and of the count.

    Example:
        >>> from privstats.estimates.regression import RidgeRecipe, RidgeWhitening, ridge_refined, ridge_started
        >>> from privstats.estimates.spectrum import NoisyGram
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
        told = whitening.vectors.T @ gradient / (recipe.records * state.clip)
        step = recipe.stride(state.taken, noise) * recipe.target_bound * recipe.features * whitening.kept * told
        return DescentState(state.weights + step, state.clip, state.taken + 1)
    n, diagonal, point = recipe.records, whitening.curvature, state.weights
    filters = state.filters.counted(point, (within / n, sigma[1] / n), state.clip, n, diagonal)
    shares, whole = filters.within(point, state.clip, diagonal), n * whitening.kept
    told, noise, share = whitening.vectors.T @ gradient / whole, sigma[0] / whole, float(filters.belief @ shares)
    history = state.history.on(point, told / share, noise / share)
    curvature = history.curvature(diagonal)
    filters = filters.pointed(point, curvature.solved(told), curvature.noise(noise), shares, diagonal)
    return RidgeState(filters, history, filters.mean, recipe.clip(filters.deviation(filters.mean, diagonal)))
