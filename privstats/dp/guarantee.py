"""What releases keep together, as a bound on every attacker's test: mu-GDP, and epsilon too where delta is 0.

The one place for ceilings: reports, plan comparisons and the attacks ask it. No noise, no schema.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privstats.dp.gaussian import operating_point

__all__ = ["Guarantee"]


@dataclass(frozen=True)
class Guarantee:
    """A trade-off curve that no test for one unit beats.

    Attributes:
        mu: of Gaussian DP; infinite where exact sums are released.
        pure: epsilon where delta is 0; infinite elsewhere.

    Example:
        >>> [round(value, 3) for value in ps.dp.Guarantee(mu=1.232, pure=1.0).operating_point()]
        [0.027, 0.731, 0.462]
    """

    mu: float
    pure: float = math.inf

    def operating_point(self, false_positive_rate: float = 0.01) -> tuple[float, float, float]:
        """The most that any attacker can reach: (TPR at the given FPR, AUC, advantage TPR - FPR).

        Guarantee:
            The smaller of :func:`operating_point` at ``mu`` and, with delta = 0, of the curve of pure epsilon
            (Kairouz, Oh and Viswanath 2015, theorem 2.1; Dong, Roth and Su 2022, proposition 3):
            ``TPR <= min(e^epsilon FPR, 1 - e^-epsilon (1 - FPR))``, an area of ``e^epsilon / (1 + e^epsilon)`` under
            it, and ``tanh(epsilon / 2)``. A release keeps both curves, so it keeps the smaller one at every rate.

        Raises:
            PlanError: mu is below 0, or the rate is not between 0 and 1.
        """
        found = operating_point(self.mu, false_positive_rate)
        if math.isinf(self.pure):
            return found
        raised = math.exp(min(0.0, self.pure + math.log(false_positive_rate))) if false_positive_rate else 0.0
        missed = math.exp(-self.pure)
        rest = missed * false_positive_rate - math.expm1(-self.pure)
        pure = min(raised, rest), 1 / (1 + missed), math.tanh(self.pure / 2)
        tpr, auc, advantage = map(min, found, pure)
        return tpr, auc, advantage

    def tpr(self, false_positive_rate: float) -> float:
        """The highest true positive rate at this rate of false positives."""
        return self.operating_point(false_positive_rate)[0]

    @property
    def auc(self) -> float:
        """The highest area under the curve of both rates."""
        return self.operating_point()[1]

    def of_group(self, units: float) -> Guarantee:
        """The same for so many units together: mu and epsilon times their number (Dong, Roth, Su 2022, section 2)."""
        return Guarantee(units * self.mu, units * self.pure)

    def repeated(self, releases: int) -> Guarantee:
        """The same for so many such releases: mu adds up in squares, epsilon as it is."""
        return Guarantee(self.mu * math.sqrt(releases), self.pure * releases)
