"""The numbers of a softmax's refinement, from public values alone: the budget's parts, the rounds, the bounds.

``softmax`` has the computation between rounds that they steer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CAUTION", "GRADIENT_CLIP", "GRADIENT_SHARES", "SoftmaxRecipe", "advised_rounds"]

GRADIENT_CLIP = 0.3
"""c: a record's residual ``p - e_y`` is shortened to this norm."""
GRADIENT_SHARES: Mapping[str, float] = {"g": 0.99, "kappa": 0.01}
"""Shares of a round's mu^2: the gradient's, and that of kappa, the number from which the curvature follows."""

CAUTION = 0.5
"""c of the filter (:func:`~privstats.estimates.filter_bank.advanced`)."""

_SPARSE = 10.0
_RIDGE_FROM = 1.5
_FEW_ROUNDS, _MORE_ROUNDS, _MORE_FROM = 4, 6, 0.7


def advised_rounds(mu: float) -> int:
    """The default T: 4, and 6 from mu .7 on, about epsilon 3 at delta 1e-5.

    With little noise four damped steps end before the optimum. Chosen on parts of the training records of five data
    sets that no weights had seen (docs/refinement_numbers.md).

    Example:
        >>> from privstats.estimates.softmax_recipe import advised_rounds
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
        >>> from privstats.estimates.softmax_recipe import SoftmaxRecipe
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
            >>> from privstats.estimates.softmax_recipe import SoftmaxRecipe
            >>> text, table = SoftmaxRecipe(77, 384, 10_000, mu=0.3), SoftmaxRecipe(2, 20, 4_000, mu=0.3)
            >>> text.floor, round(table.floor, 2)
            (1.0, 0.46)
        """
        d, n = self.features, self.records
        noise = self.release_mu**2 * self.release_shares["B"] * n**2
        return min(1.0, math.sqrt(4 * d / n + 2 * d**3 / noise))

    @property
    def least_curvature(self) -> float:
        """The least part of the classes' mean curvature that a round's noise lets one class have; at most 1.

        Where directions are equally long and the weights as wide as their prior, the curvature is ``1 / (C k)`` and the
        bound of :func:`~privstats.estimates.softmax.class_curvature` ``sigma_G / (n sqrt(1.5 v))`` with
        ``sigma_G = c / sqrt(.99 mu_t^2)``. Where that is ``1 / (C k)`` or more, all classes have one curvature. It
        follows from public numbers alone.

        Example:
            >>> from privstats.estimates.softmax_recipe import SoftmaxRecipe
            >>> text, table = SoftmaxRecipe(77, 384, 10_000, mu=0.3), SoftmaxRecipe(4, 27, 10_000, mu=2.0)
            >>> text.least_curvature, round(table.least_curvature, 3)
            (1.0, 0.002)
        """
        noise = GRADIENT_CLIP / (self.round_mu * math.sqrt(GRADIENT_SHARES["g"])) / self.records
        return min(1.0, noise * self.classes * self.columns / math.sqrt((1 + CAUTION) * self.prior_variance))

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
