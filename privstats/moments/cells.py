"""Assign each value of a column to a cell, and count values beyond the edges of bins.

A value's cell follows from that value and public declarations, never from its column's type or another record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, RecordError
from privstats.intake.column_names import require_records
from privstats.intake.columns import Readings, alike, read
from privstats.intake.meaning import listed
from privstats.intake.tables import is_list, names_of_columns, rectangle, table_of
from privstats.moments.clip_report import PRIVATE
from privstats.schema import Bins, Categories, CountSchema

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
    def of(cls, schema: CountSchema, numbers: Mapping[str, NDArray[np.float64]]) -> Self:
        """Count each binned variable's numbers, and those beyond its outer edges; NaN is no number."""
        result = []
        bins = [variable for variable in schema.variables if isinstance(variable, Bins)]
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


def beyond(variable: Any, numbers: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which values are below the first edge and which above the last."""
    edges = np.array(variable.edges)
    read = alike(numbers, edges)
    return read < edges[0], read > edges[-1]


_OPENED = {"above": "above only", "below": "below only", "none": "at no end"}


def readings_of(X: Any, names: list[str]) -> dict[str, Readings]:
    """Read columns of a table, or of an array with these columns."""
    columns = _columns(X, names)
    for name, column in columns.items():
        if getattr(column, "ndim", 1) != 1:
            raise DataError(f"column {name!r} must have one value per record")
    if len({len(column) for column in columns.values()}) != 1:
        raise DataError("the columns of X have different lengths; give one value per record in each")
    return {name: read(column) for name, column in columns.items()}


def _columns(X: Any, names: list[str]) -> dict[str, Any]:
    known = names_of_columns(X)
    if known is not None and (isinstance(X, Mapping) or known != list(range(len(known)))):
        require_records(known)
        missing = [name for name in names if name not in known]
        if missing:
            raise DataError(f"X lacks the column {missing[0]!r}; give every variable of the plan")
        return {name: X[name] for name in names}
    rows = rectangle(X, len(names)) if is_list(X) else X
    shape: tuple[int, ...] = getattr(rows, "shape", ())
    if len(shape) != 2 or shape[1] != len(names):
        raise DataError(
            f"X must be a DataFrame, a mapping of columns, or an array of shape (records, {len(names)}) with the "
            "variables in order"
        )
    return dict(zip(names, table_of(rows).columns(), strict=True))


def cells_in(variable: Any, column: Readings) -> NDArray[np.intp]:
    """Return each value's cell; -1 without one."""
    gaps = gaps_in(variable, column)
    if isinstance(variable, Categories):
        cells = variable.listed.places_of(column)
        if variable.other:
            cells[cells < 0] = len(variable.values)
    else:
        cells = _bins(variable, column)
    cells[gaps] = len(variable.cells) - 1 if variable.missing else -1
    return cells


def gaps_in(variable: Any, column: Readings) -> NDArray[np.bool_]:
    """Return which values are gaps under the variable's declaration."""
    return variable.decide(column).gaps if isinstance(variable, Categories) else column.missing


def _bins(variable: Any, column: Readings) -> NDArray[np.intp]:
    side: Literal["left", "right"] = "right" if variable.closed == "left" else "left"
    cuts = variable.edges[1:-1]
    cells = np.searchsorted(cuts, alike(column.numbers, cuts or variable.edges), side=side).astype(np.intp)
    below, above = beyond(variable, column.numbers)
    cells[below & (variable.open not in ("both", "below"))] = -1
    cells[above & (variable.open not in ("both", "above"))] = -1
    cells[column.are_texts] = -1
    return cells


def require_cells(variable: Any, column: Readings, cells: NDArray[np.intp]) -> None:
    """Refuse values without a cell, and name a remedy."""
    if (cells >= 0).all():
        return
    if gaps_in(variable, column).any() and not variable.missing:
        raise RecordError(f"column {variable.name!r} has missing values; give the plan's variable missing=True")
    if not isinstance(variable, Bins | Categories):
        raise RecordError(
            f"column {variable.name!r} needs numbers from {variable.low:g} to {variable.high:g}; correct other values"
        )
    if isinstance(variable, Bins):
        if any(side[cells < 0].any() for side in beyond(variable, column.numbers)):
            raise RecordError(
                f"column {variable.name!r} has values beyond the edges of its bins. The bins are open "
                f"{_OPENED[variable.open]}: correct the values, or make codes such as -9 missing values"
            )
        raise RecordError(f"column {variable.name!r} must hold numbers, because the plan counts it in bins")
    raise RecordError(
        f"column {variable.name!r} has a value that is not among the plan's {listed(variable.cells)}; map it "
        "to one of them, or give the plan's variable other=True"
    )
