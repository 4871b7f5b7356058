"""A report of the edges on a client's own records: which values of a count table lie beyond them.

As of the clip (``clip_report``), it is computed from private data and never sent: only the client that holds the
records may read it. Reports add up like the moments they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privstats.moments.clip_report import PRIVATE
from privstats.schema import Bins, CountSchema
from privstats.transforms.reading import alike

__all__ = ["Beyond", "EdgeReport", "beyond"]

_MANY = 0.1
"""Share of a variable's values that may lie beyond its edges without a remark."""


@dataclass(frozen=True)
class Beyond:
    """One variable of bins: how many of its values are numbers, and how many of these lie beyond an outer edge.

    Attributes:
        name: of the variable.
        numbers: values that are numbers.
        below, above: of these, how many are less than the first edge, and more than the last one.

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
    """How many values lie beyond the outer edges of their bins, by variable. Stays with the client.

    Attributes:
        beyond: one entry per variable of bins, in the schema's order.
        expected: by variable, which of its bins the plan opens; where that was chosen there is no remark.

    Example:
        >>> schema = ps.CountSchema((ps.Bins("months", (0, 6, 12)),), (("months",),))
        >>> report = ps.measure(schema, {"months": [-9.0, *[3.0, 7.0, 12.0] * 5]}).edge_report
        >>> print(report)
        months 6.25% below and 0.00% above
    """

    beyond: tuple[Beyond, ...]
    expected: tuple[str, ...]

    @classmethod
    def of(cls, schema: CountSchema, numbers: Mapping[str, NDArray[np.float64]]) -> Self:
        """The report of the values of every variable of bins; NaN is no number."""
        found = []
        bins = [variable for variable in schema.variables if isinstance(variable, Bins)]
        for variable in bins:
            below, above = beyond(variable, numbers[variable.name])
            known = int(np.count_nonzero(~np.isnan(numbers[variable.name])))
            found.append(Beyond(variable.name, known, int(below.sum()), int(above.sum())))
        return cls(tuple(found), tuple(variable.open for variable in bins))

    def __add__(self, other: EdgeReport) -> EdgeReport:
        """The report of both sets of records together."""
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
        """Sentences for the holder of the records, by variable of which more than a tenth lies beyond the edges.

        They hold exact shares, so they belong in no release, log or message.
        """
        return tuple(
            f"{each.below / each.numbers:.0%} of the values of {each.name} lie below its edges and "
            f"{each.above / each.numbers:.0%} above; each counts in the outer bin, which moves curves, shares and "
            "quantiles: correct them (-9 is a code and no time, days are no months), take wider edges from public "
            f"knowledge, or give the plan's Bins open='above', where only what is larger is expected; {PRIVATE}"
            for each, expected in zip(self.beyond, self.expected, strict=True)
            if expected == "both" and each.below + each.above > _MANY * each.numbers
        )


def beyond(variable: Bins, numbers: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where values lie below the first edge and above the last one, as :func:`alike` reads both; the edges do not."""
    edges = np.array(variable.edges)
    read = alike(numbers, edges)
    return read < edges[0], read > edges[-1]
