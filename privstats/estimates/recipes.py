"""Compute the constants of refinement from public values alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

GRADIENT_CLIP = 0.3
"""c of three classes and more without ``Cells``: a record's residual ``p - e_y`` is shortened to this norm."""
CELL_CLIPS: Mapping[float, float] = {0.0: GRADIENT_CLIP, 12.0: 0.5, 25.0: 0.7, 100.0: 1.0}
"""c for ``Cells`` or two classes, by the s from which each c applies (benchmarks/refinement/numbers.md)."""
EXACT_CLIP = 1.0
"""c of two classes without noise, where a clip protects nobody (benchmarks/refinement/numbers.md has the table)."""
GRADIENT_SHARES: Mapping[str, float] = {"g": 0.99, "kappa": 0.01}
"""Shares of a round's mu^2: the gradient's, and that of kappa, the number from which the curvature follows."""

CAUTION = 0.5
"""c of the filter (:func:`~privstats.estimates.filter_bank.advanced`)."""

_SPARSE = 10.0
_RIDGE_FROM = 1.5
_FEW_ROUNDS, _MORE_ROUNDS, _MORE_FROM = 4, 6, 0.7


def advised_rounds(mu: float) -> int:
    """Return the default T: 4, and 6 from mu .7 on, about epsilon 3 at delta 1e-5 (benchmarks/refinement/numbers.md).

    Example:
        >>> from privstats.estimates.recipes import advised_rounds
        >>> advised_rounds(0.3), advised_rounds(0.8)
        (4, 6)
    """
    return _MORE_ROUNDS if mu >= _MORE_FROM else _FEW_ROUNDS


@dataclass(frozen=True)
class SoftmaxRecipe:
    """Constants of the softmax recipe.

    Attributes:
        classes, features: C, at least 2, and d.
        records: n as declared by the course's owners; never a count.
        mu: Gaussian-DP parameter of the complete course.
        rounds, clip: T, gradient rounds after the class release, and c.

    Example:
        >>> from privstats.estimates.recipes import SoftmaxRecipe
        >>> recipe = SoftmaxRecipe(classes=10, features=64, records=50_000, mu=0.3, rounds=4)
        >>> round(recipe.release_mu**2 + 4 * recipe.round_mu**2, 6)  # all sums together cost mu: 0.3**2
        0.09
    """

    classes: int
    features: int
    records: int
    mu: float
    rounds: int = 4
    clip: float = GRADIENT_CLIP

    @property
    def columns(self) -> int:
        """k = d + 1: whitened features and intercept."""
        return self.features + 1

    @property
    def signal(self) -> float:
        """s = n mu / (C sqrt d), the certainty of class means."""
        return self.records * self.mu / (self.classes * math.sqrt(self.features))

    @property
    def cell_clip(self) -> float:
        """Value of c for ``Cells`` or two classes: .3, and .5 from s = 12 on, .7 from 25, 1 from 100.

        Example:
            >>> from privstats.estimates.recipes import SoftmaxRecipe
            >>> [SoftmaxRecipe(2, 16, 1_000, mu).cell_clip for mu in (0.05, 0.1, 0.3, 1.0)]
            [0.3, 0.5, 0.7, 1.0]
        """
        return max(clip for least, clip in CELL_CLIPS.items() if self.signal >= least)

    @property
    def release_share(self) -> float:
        """f: the class release's share of mu^2."""
        return 0.2 if self.signal < _SPARSE else 0.15

    @property
    def release_shares(self) -> dict[str, float]:
        """Shares of N, A and B."""
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

        With an entry's variance ``v = sigma^2 / (2 n^2) + 1 / (d^2 n)`` (noise ``sigma = 1 / mu_B``, and sample),
        Wigner's semicircle yields ``phi = 2 d sqrt(d v) = sqrt(4 d / n + 2 d^3 / (n mu_B)^2)``.
        """
        d, n = self.features, self.records
        noise = self.release_mu**2 * self.release_shares["B"] * n**2
        return min(1.0, math.sqrt(4 * d / n + 2 * d**3 / noise))

    @property
    def least_curvature(self) -> float:
        """Minimum share of the classes' mean curvature that a round's noise lets one class have; at most 1.

        The bound of :func:`~privstats.estimates.softmax.class_curvature`, ``sigma_G / (n sqrt(1.5 v))`` with
        ``sigma_G = c / sqrt(.99 mu_t^2)``, over the curvature ``1 / (C k)`` of equally long directions.
        """
        noise = self.clip / (self.round_mu * math.sqrt(GRADIENT_SHARES["g"])) / self.records
        return min(1.0, noise * self.classes * self.columns / math.sqrt((1 + CAUTION) * self.prior_variance))

    @property
    def ridge(self) -> float:
        """lambda = rho k / (4 n), rho = min(1, (1.5 / s)^1.5); without noise rho = min(1, 16 / C^2) min(1, n / d)^2."""
        if math.isinf(self.mu):
            rho = min(1.0, 16 / self.classes**2) * min(1.0, self.records / self.features) ** 2
        else:
            rho = min(1.0, (_RIDGE_FROM / self.signal) ** 1.5)
        return float(rho * self.columns / (4 * self.records))


MEAN_SHARE = 0.05
"""a: the part of a course's mu^2 that a noisy mean of the rows' directions gets, where there is one."""

_MANY_ROUNDS = 12
_LEAST_SIGNAL = 0.2
_GRAM_SIGNAL = 0.3  # s from which G carries more information than a mean
_MEAN_CERTAINTY = 5.0  # n mu over sqrt d from which a schedule gains by a mean
_LEAST_CERTAINTY = 40.0  # n mu below which sizes are fixed, not learned
_LEAST_SHARE = 1 / 64
_WIDEST_AVERAGED = 1.25
_WIDENING = 0.25
_SIGN_CLIP = 0.05
_NEAR_LEAST_SQUARES = 2.0
_WIDE = 4.0
_ROUNDS_PER_LEVEL = 12
_COUNT_SHARE = 0.05
_UNREAD_SHARE = 0.001  # budget share of a sum that a fixed schedule does not read


@dataclass(frozen=True)
class RidgeRecipe:
    """Constants of the ridge recipe (benchmarks/refinement/numbers.md).

    Attributes:
        features: d, the constant column included.
        records: n as declared by the course's owners; never a count.
        mu: Gaussian-DP parameter of the complete course.
        clip_norm, target_bound: R and Y, the clips.
        rounds: T.
        mean: whether a session for a mean may follow; not where parties prove their sums.
        constant: value of the last column, which is constant; None without an intercept.

    Example:
        >>> from privstats.estimates.recipes import RidgeRecipe
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
    constant: float | None = None

    @property
    def signal(self) -> float:
        """s = n mu / d^1.5, the certainty of the Gram matrix."""
        return self.records * self.mu / (self.features * math.sqrt(self.features))

    @property
    def descends(self) -> bool:
        """Whether a fixed schedule of steps replaces filters: for n mu below 40, where noise hides residual counts."""
        return self.records * self.mu < _LEAST_CERTAINTY

    @property
    def many(self) -> bool:
        """Whether filters average over rounds: from twelve on."""
        return self.rounds >= _MANY_ROUNDS

    @property
    def mean_share(self) -> float:
        """a = 1/20 where a mean of the rows' directions is measured before the rounds, or 0.

        The mean replaces a hidden G: in a fixed schedule from n mu = 5 sqrt d on, and with many rounds below s = .3.
        """
        if self.descends:
            hidden = self.records * self.mu >= _MEAN_CERTAINTY * math.sqrt(self.features)
        else:
            hidden = self.many and self.signal < _GRAM_SIGNAL
        return MEAN_SHARE if self.mean and hidden else 0.0

    @property
    def release_share(self) -> float:
        """f: share of mu^2 for (G, h, q): min(.3, max(.08, .3 sqrt(s / 2))); 1/64 for a fixed schedule or a mean."""
        if self.descends or self.mean_share:
            return _LEAST_SHARE
        return min(0.3, max(0.08, 0.3 * math.sqrt(self.signal / 2)))

    def stride(self, past: int, noise: float = 1.0) -> float:
        """Return the next step's factor, in units of ``Y d / R`` times the mean of ``clip(y - w'x) u / c``.

        The factor falls as the root of the remaining part of T, from ``3 z / (8 d T) min(1, z / (2 sqrt d))``, at most
        1 / d, with z = n mu over ``noise``. All steps together add noise of .27 Y (of 24) to .38 Y (of one) at most to
        the prediction of a row of norm R; without noise none turns a prediction by more than Y. After a mean (.28 Y of
        24) both bounds hold for a row with ``|M'x| = B / b``; across the mean a row of norm R has up to
        ``1 / sqrt(1 - L^2 / |m|^2)`` times as much (:class:`~privstats.estimates.denoise.NoisyMean`).

        ``noise`` is this release's over a central add-remove release's, at least 1.
        """
        certainty = self.records * self.mu / noise
        first = 0.375 * certainty / (self.features * self.rounds) * min(1.0, certainty / (2 * math.sqrt(self.features)))
        return min(first, 1 / self.features) * math.sqrt(max(0.0, 1 - past / self.rounds))

    @property
    def release_shares(self) -> dict[str, float]:
        """Shares of G, h and q."""
        return {"G": 0.6, "h": 0.35, "q": 0.05}

    @property
    def round_shares(self) -> Mapping[str, float]:
        """Shares of a round's mu^2: the gradient's, and kappa's, the count of residuals within the clip."""
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
        """g: the residuals' clip, in residual standard deviations; it grows without bound as noise falls.

        g is the larger of two widths. The first, at most 2, makes a round most informative of Gaussian residuals: it
        minimises ``(d (g^2 + 1 / (k d^2)) / (m n mu_t^2) + E min(r^2, g^2)) / P(|r| <= g)^2``, with k the count's share
        and m = 1. Over many rounds noise averages out, so m = sqrt T, up to g = 1.25: a tenth of the records may be
        missing, which resembles clipping. The second, ``sqrt(n mu / d) / 4``, serves skewed residuals. Clipping moves
        their mean by at most ``1 / (4 g)`` standard deviations, and the noise of all rounds moves a prediction by about
        ``g d / (n mu)``. Both vanish with this width, so that rounds end at least squares (benchmarks/refinement).
        """
        alone = self._width(1.0)
        usual = max(alone, min(self._width(math.sqrt(self.rounds)), _WIDEST_AVERAGED)) if self.many else alone
        return max(usual, self._widening)

    def _width(self, averaged: float) -> float:
        g, count = np.geomspace(0.25, 2.0, 1_000), self.round_shares["kappa"]
        within = 2 * ndtr(g) - 1
        square = within - 2 * g * np.exp(-np.square(g) / 2) / math.sqrt(2 * math.pi) + np.square(g) * (1 - within)
        certainty = averaged * self.records * self.round_mu**2
        noise = self.features * (np.square(g) + 1 / (count * self.features**2)) / certainty
        return float(g[int(((noise + square) / np.square(within)).argmin())])

    @property
    def robust_width(self) -> float | None:
        """The clip in residual standard deviations, where it is below 2; None where rounds end near least squares.

        A fixed schedule knows no deviation, so Y / 4 stands for it, as in ``sign_clip``.

        Example:
            >>> from privstats.estimates.recipes import RidgeRecipe
            >>> recipe = RidgeRecipe(features=30, records=1_000, mu=0.2, clip_norm=1.0, target_bound=1.0, rounds=24)
            >>> round(recipe.robust_width, 2), RidgeRecipe(30, 100_000, 0.2, 1.0, 1.0, 24).robust_width
            (0.65, None)
        """
        width = 4 * self.sign_clip / self.target_bound if self.descends else self.width
        return width if width < _NEAR_LEAST_SQUARES else None

    @property
    def level_rounds(self) -> int:
        """L, the rounds at the end that sum residuals alone, for the level; one more such round is the first.

        L is a twelfth of many rounds where the width is below 4 and rows end in a constant, else 0. There a clip hides
        more of the level than noise does.
        """
        narrow = self.constant is not None and not self.descends and self.width < _WIDE
        return self.rounds // _ROUNDS_PER_LEVEL if narrow else 0

    @property
    def level_width(self) -> float:
        """The clip of these rounds in residual standard deviations: sqrt(n mu) / 2, for the mu of them all.

        It balances the mean's shift of ``1 / (4 g)`` at most against the noise of ``g / (n mu)``, as ``width`` does.
        """
        certainty = self.records * self.round_mu * math.sqrt(self.level_rounds)
        return max(self.width, math.sqrt(certainty) / 2)

    @property
    def sign_clip(self) -> float:
        """c of a fixed schedule: Y / 20, or g times Y / 4, which stands for the unknown standard deviation.

        The second, g = sqrt(n mu / d) / 4 as in ``width``, is larger from n mu = .64 d on.
        """
        return self.target_bound * max(_SIGN_CLIP, self._widening / 4)

    @property
    def _widening(self) -> float:
        return _WIDENING * math.sqrt(self.records * self.mu / self.features)

    @property
    def mean_length(self) -> float:
        """Value of b: rows longer than b times their root mean square length are shortened to it.

        It is max(1/2, g / 2), for few rounds at least 1. So rows stay complete as noise falls: shortened rows weigh
        records unequally, which moves the slopes of a curved relation. For a fixed schedule b is 1/4: under strong
        noise rows become directions.
        """
        if self.descends:
            return 0.25
        return max(0.5 if self.many else 1.0, self.width / 2)

    @property
    def single(self) -> bool:
        """Whether filters consider a single curved direction: for many rounds, from s = .2 on."""
        return self.many and self.signal >= _LEAST_SIGNAL

    def clip(self, deviation: float) -> float:
        """Return c = min(g deviation, 2 Y), from the residuals' standard deviation."""
        return min(self.width * deviation, 2 * self.target_bound)
