"""Count values beyond the edges of bins, and warn the data holder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from privstats.moments.clip_report import PRIVATE
from privstats.records.cells import beyond
from privstats.records.variables import Bins

if TYPE_CHECKING:
    from privstats.intake.declared.columns import Column
    from privstats.records.variables import Variable

_MANY = 0.1
"""Share of a variable's values that may be beyond its edges without a remark."""


@dataclass(frozen=True)
class Beyond:
    """A binned variable's values beyond its outer edges.

    Attributes:
        below, above: number of values below the first edge, above the last.

    Example:
        >>> print(ps.moments.Beyond("months", numbers=200, below=30, above=1))
        months 15.00% below and 0.50% above
    """

    name: str
    numbers: int
    below: int
    above: int

    def __str__(self) -> str:
        of = max(self.numbers, 1)
        return f"{self.name} {self.below / of:.2%} below and {self.above / of:.2%} above"


@dataclass(frozen=True)
class EdgeReport:
    """A report of values beyond the outer edges, by variable; it is never sent.

    Attributes:
        beyond: one entry per binned variable.
        expected: each variable's ``open``; settings other than the default "both" are deliberate and get no warning.

    Example:
        >>> schema = ps.CountSchema((ps.Bins("months", (0, 6, 12)),), (("months",),))
        >>> report = ps.measure(schema, {"months": [-9.0, *[3.0, 7.0, 12.0] * 5]}).edge_report
        >>> print(report)
        months 6.25% below and 0.00% above
    """

    beyond: tuple[Beyond, ...]
    expected: tuple[str, ...]

    @classmethod
    def of(cls, variables: Iterable[Column | Variable], numbers: Mapping[str, NDArray[np.float64]]) -> Self:
        """Count each binned variable's numbers, and those beyond its outer edges; NaN is no number."""
        result = []
        bins = [variable for variable in variables if isinstance(variable, Bins)]
        for variable in bins:
            below, above = beyond(variable, numbers[variable.name])
            known = int(np.count_nonzero(~np.isnan(numbers[variable.name])))
            result.append(Beyond(variable.name, known, int(below.sum()), int(above.sum())))
        return cls(tuple(result), tuple(variable.open for variable in bins))

    def __add__(self, other: EdgeReport) -> EdgeReport:
        if not isinstance(other, EdgeReport):
            return NotImplemented
        pairs = zip(self.beyond, other.beyond, strict=True)
        counts = ((a.numbers + b.numbers, a.below + b.below, a.above + b.above) for a, b in pairs)
        named = (Beyond(a.name, *each) for a, each in zip(self.beyond, counts, strict=True))
        return EdgeReport(tuple(named), self.expected)

    def __str__(self) -> str:
        return "; ".join(map(str, self.beyond))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings for the data holder: variables open at both ends with over a tenth of their values beyond the edges.

        They hold exact shares, so they belong in no release, log or message.
        """
        return tuple(
            f"{each.below / each.numbers:.0%} of the values of {each.name} are below its edges and "
            f"{each.above / each.numbers:.0%} above; each counts in an outer bin, which moves curves, shares and "
            "quantiles: correct them (a code such as -9, days in place of months), choose wider edges from public "
            f"knowledge, or give the plan's Bins open='above' if only larger values are expected; {PRIVATE}"
            for each, expected in zip(self.beyond, self.expected, strict=True)
            if expected == "both" and each.below + each.above > _MANY * each.numbers
        )
