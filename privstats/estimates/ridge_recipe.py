"""The numbers of a regression's refinement, from public values alone: the budget's parts, the clip, the steps.

``regression`` has the computation between rounds that they steer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

__all__ = ["MEAN_SHARE", "RidgeRecipe"]

MEAN_SHARE = 0.05
"""a: the part of a course's mu^2 that a noisy mean of the rows' directions gets, where there is one."""

_MANY_ROUNDS = 12
_LEAST_SIGNAL = 0.2
_GRAM_SIGNAL = 0.3  # s from which G tells more than a mean
_MEAN_CERTAINTY = 5.0  # n mu over sqrt d from which a schedule gains by a mean
_LEAST_CERTAINTY = 40.0  # n mu below which sizes are fixed, not learned
_LEAST_SHARE = 1 / 64
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
        >>> from privstats.estimates.ridge_recipe import RidgeRecipe
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
