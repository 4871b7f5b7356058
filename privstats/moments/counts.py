"""Count tables as exact whole numbers: the cell of every record in every table.

A value's cell follows from that value, as :mod:`privstats.transforms.one_value` reads it, and from public values and
edges: never from its column's type or from another record. So counts of parts add up to the counts of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, RecordError
from privstats.moments.arrays import columns_of, is_list, listed, rectangle, values_of
from privstats.moments.base import Moments, RealMoments
from privstats.moments.code_rows import CodeRows, Codes, cells_of
from privstats.moments.edge_report import EdgeReport, beyond
from privstats.moments.readable import NO_CELL, LeftOut
from privstats.moments.record_terms import RecordTerms, Term
from privstats.schema import Bins, Categories, CountSchema, ScoringSchema, Variable
from privstats.schema.public_values import Values
from privstats.transforms.reading import Listed, Readings, alike, read

__all__ = [
    "CountMoments",
    "RealCountMoments",
    "cells_in",
    "count_terms",
    "count_terms_of_readable",
    "counted_terms",
    "counts_of_readable",
    "measured_counts",
    "readings_of",
    "require_cells",
]

_WINDOW = 1 << 16
_OPENED = {"above": "above alone", "below": "below alone", "none": "nowhere"}


@dataclass(frozen=True, eq=False)
class RealCountMoments(RealMoments):
    """Counts in records, float64, with noise or without: ``T``, all tables one after the other.

    Example:
        >>> schema = ps.CountSchema((ps.Categories("blood", ("0", "A", "B", "AB")),), (("blood",),))
        >>> ps.measure(schema, {"blood": ["A", "0", "A"]}).real().T.tolist()
        [1.0, 2.0, 0.0, 0.0]
    """

    T: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class CountMoments(Moments):
    """Exact counts, int64 ``(cells,)``: all tables one after the other, each row by row.

    Attributes:
        edge_report: values beyond the edges of their bins; stays with the client and is ignored by ``==``.

    Raises:
        DataError: a wrong shape, a negative count, or tables that hold different numbers of records.

    Example:
        >>> schema = ps.CountSchema((ps.Categories("blood", ("0", "A", "B", "AB")),), (("blood",),))
        >>> ps.measure(schema, {"blood": ["A", "0", "A"]}).T.tolist()
        [1, 2, 0, 0]
    """

    shown: ClassVar[tuple[str, ...]] = ("tables",)

    schema: CountSchema | ScoringSchema
    T: NDArray[np.int64]
    edge_report: EdgeReport | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        totals = {int(self.T[self.schema.place(table)].sum()) for table in self.schema.tables}
        if self.T.min() < 0 or len(totals) > 1:
            raise DataError("T must hold counts of the same records in every table; build moments with measure()")

    @property
    def records(self) -> int:
        """Records measured. Private, though every table's sum reveals it."""
        return int(self.T[self.schema.place(self.schema.tables[0])].sum())

    def real(self) -> RealCountMoments:
        """The same as float64."""
        return RealCountMoments.of_sums(self.schema, self.wire())


def measured_counts(
    schema: CountSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> CountMoments:
    """Counts of records: X is a DataFrame, a mapping of columns, or an array with the variables in order.

    Raises:
        DataError: y is given, a column is missing, or columns have different lengths.
        RecordError: a value has no cell; no record is counted then.
    """
    if schema.transform and not isinstance(X, Codes):
        return _sum(measured_counts(schema, part, None, values) for part in _windows(X))
    del values, progress
    codes, report = _all_codes(schema, X, y)
    return replace(_counted(schema, codes), edge_report=report)


def count_terms(schema: CountSchema, X: Any, y: Any, *_: Any) -> RecordTerms:
    """What each record adds.

    Raises:
        DataError, RecordError: as :func:`measured_counts`.
    """
    if schema.transform and not isinstance(X, Codes):
        return RecordTerms.joined(count_terms(schema, part, None) for part in _windows(X))
    codes, report = _all_codes(schema, X, y)
    cells = _cells(schema, codes)
    return counted_terms(schema, np.ones(len(cells[0]), np.bool_), cells, report)


def _all_codes(schema: CountSchema, X: Any, y: Any) -> tuple[dict[str, NDArray[np.intp]], EdgeReport | None]:
    """The cell of every value of records that all have one, and the report on their edges."""
    columns = _columns(schema, X, y)
    codes = _codes(schema, columns)
    for variable in schema.variables:
        require_cells(variable, columns[variable.name], codes[variable.name])
    return codes, _report(schema, columns)


def counts_of_readable(
    schema: CountSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> tuple[CountMoments, LeftOut]:
    """Counts of the records of which every value has a cell, and which others were left out.

    In a :class:`~privstats.Bins` that has a cell for what is missing, a value that is no number counts there, and so
    does one beyond an edge that is not open.

    Raises:
        DataError: y is given, a column is missing, or columns have different lengths.
    """
    if schema.transform and not isinstance(X, Codes):
        parts = [counts_of_readable(schema, part, None, values) for part in _windows(X)]
        return _sum(counts for counts, _ in parts), sum((left_out for _, left_out in parts), LeftOut())
    del values, progress
    codes, _, left_out, report = _readable_codes(schema, X, y)
    return replace(_counted(schema, codes), edge_report=report), left_out


def count_terms_of_readable(schema: CountSchema, X: Any, y: Any, *_: Any) -> tuple[RecordTerms, LeftOut]:
    """What each record adds of which every value has a cell, and which others were left out.

    Raises:
        DataError: as :func:`counts_of_readable`.
    """
    if schema.transform and not isinstance(X, Codes):
        parts = [count_terms_of_readable(schema, part, None) for part in _windows(X)]
        return RecordTerms.joined(terms for terms, _ in parts), sum((left_out for _, left_out in parts), LeftOut())
    codes, fine, left_out, report = _readable_codes(schema, X, y)
    return counted_terms(schema, fine, _cells(schema, codes), report), left_out


def _readable_codes(
    schema: CountSchema, X: Any, y: Any
) -> tuple[dict[str, NDArray[np.intp]], NDArray[np.bool_], LeftOut, EdgeReport | None]:
    """The cell of every value of records that have one in all columns, which these are, the others, and the report."""
    columns = _columns(schema, X, y)
    codes = _codes(schema, columns)
    for variable in schema.variables:
        if isinstance(variable, Bins) and variable.missing:
            codes[variable.name][codes[variable.name] < 0] = len(variable.cells) - 1
    fine = np.logical_and.reduce([each >= 0 for each in codes.values()])
    left_out = LeftOut.of(fine, {(repr(name), NO_CELL): each < 0 for name, each in codes.items()})
    return {name: each[fine] for name, each in codes.items()}, fine, left_out, _report(schema, columns)


def _report(schema: CountSchema, columns: Mapping[str, Readings]) -> EdgeReport | None:
    if schema.transform:
        return None
    return EdgeReport.of(schema, {name: column.numbers for name, column in columns.items()})


def _cells(schema: CountSchema, codes: Mapping[str, NDArray[np.intp]]) -> list[NDArray[np.intp]]:
    """The cell of every record in each table."""
    return [
        np.asarray(np.ravel_multi_index([codes[name] for name in table], schema.shape(table)))
        for table in schema.tables
    ]


def _counted(schema: CountSchema, codes: Mapping[str, NDArray[np.intp]]) -> CountMoments:
    out = np.zeros(schema.sizes["cell"], np.int64)
    for table, cells in zip(schema.tables, _cells(schema, codes), strict=True):
        there = schema.place(table)
        out[there] = np.bincount(cells, minlength=there.stop - there.start)
    return CountMoments(schema, out)


def counted_terms(
    schema: CountSchema | ScoringSchema,
    kept: NDArray[np.bool_],
    cells: list[NDArray[np.intp]],
    report: EdgeReport | None = None,
) -> RecordTerms:
    """One in a cell of each table, ``(n,)`` each, of the records that are kept."""
    ones = np.ones((int(kept.sum()), 1))
    places = (schema.place(table).start for table in schema.tables)
    terms = (Term({"T": (ones, None)}, start + each) for start, each in zip(places, cells, strict=True))
    return RecordTerms(kept, tuple(terms), {} if report is None else {"edge_report": report})


def _columns(schema: CountSchema, X: Any, y: Any) -> dict[str, Readings]:
    """The readings of every variable, of equal length."""
    if y is not None:
        raise DataError("count tables have no y; put every variable into X")
    if isinstance(X, Codes):
        return _coded(schema, X)
    return readings_of(X, [variable.name for variable in schema.variables])


def readings_of(X: Any, names: list[str]) -> dict[str, Readings]:
    """The readings of columns of a DataFrame, of a mapping, or of an array that has them in this order.

    Raises:
        DataError: a column is missing, or columns have different lengths.
    """
    arrays = _arrays(X, names)
    for name, array in arrays.items():
        if array.ndim != 1:
            raise DataError(f"column {name!r} must have one value per record")
    if len({len(array) for array in arrays.values()}) != 1:
        raise DataError("the columns of X have different lengths; give one value per record in each")
    return {name: read(array) for name, array in arrays.items()}


def _windows(X: CodeRows | Iterable[Any]) -> Iterator[Codes]:
    """Windows of codes, of every batch; targets, which other sessions of a course sum, are not read."""
    for rows in (X,) if isinstance(X, CodeRows) else (rows for rows, _ in X):
        for start in range(0, max(len(rows), 1), _WINDOW):  # once for no records
            yield Codes(rows[start : start + _WINDOW], {})


def _sum(parts: Iterable[CountMoments]) -> CountMoments:
    first, *others = parts
    return sum(others, first)


def _coded(schema: CountSchema, X: Codes) -> dict[str, Readings]:
    """The codes of declared columns: numbers, and nothing where a value is missing or cannot be read."""
    cells = cells_of(schema)
    names = [] if cells is None else [column.name for column in cells.columns]
    return {variable.name: Readings(X.codes[:, names.index(variable.name)], {}) for variable in schema.variables}


def _arrays(X: Any, names: list[str]) -> dict[str, NDArray[Any]]:
    known = list(X) if isinstance(X, Mapping) else columns_of(X)
    if known is not None and (isinstance(X, Mapping) or known != list(range(len(known)))):
        missing = [name for name in names if name not in known]
        if missing:
            raise DataError(f"X lacks the column {missing[0]!r}; give every variable of the plan")
        return {name: values_of(X[name]) for name in names}
    rows = rectangle(X, len(names)) if is_list(X) else values_of(X)
    if rows.ndim != 2 or rows.shape[1] != len(names):
        raise DataError(
            f"X must be a DataFrame, a mapping of columns, or an array of shape (records, {len(names)}) with the "
            "variables in order"
        )
    return dict(zip(names, rows.T, strict=True))


def _codes(schema: CountSchema, columns: Mapping[str, Readings]) -> dict[str, NDArray[np.intp]]:
    """The cell of every value, by variable; -1 where it has none."""
    return {variable.name: cells_in(variable, columns[variable.name]) for variable in schema.variables}


def cells_in(variable: Variable, column: Readings) -> NDArray[np.intp]:
    """The cell of every value of a column; -1 where it has none."""
    match variable:
        case Bins():
            cells = _bins(variable, column)
        case Categories():
            cells = Listed.of(variable.values).places_of(column)
            if variable.other:
                cells[cells < 0] = len(variable.values)
    cells[column.missing] = len(variable.cells) - 1 if variable.missing else -1
    return cells


def _bins(variable: Bins, column: Readings) -> NDArray[np.intp]:
    side: Literal["left", "right"] = "right" if variable.closed == "left" else "left"
    cuts = variable.edges[1:-1]
    cells = np.searchsorted(cuts, alike(column.numbers, cuts), side=side).astype(np.intp)
    below, above = beyond(variable, column.numbers)
    cells[below & (variable.open not in ("both", "below"))] = -1
    cells[above & (variable.open not in ("both", "above"))] = -1
    cells[list(column.texts)] = -1
    return cells


def require_cells(variable: Variable, column: Readings, cells: NDArray[np.intp]) -> None:
    """Refuse values without a cell, by what their variable lacks.

    Raises:
        RecordError: one has none.
    """
    if (cells >= 0).all():
        return
    if column.missing.any() and not variable.missing:
        raise RecordError(f"column {variable.name!r} has missing values; give the plan's variable missing=True")
    if isinstance(variable, Bins):
        if any(side[cells < 0].any() for side in beyond(variable, column.numbers)):
            raise RecordError(
                f"column {variable.name!r} has values beyond the edges of its bins, which the plan opens "
                f"{_OPENED[variable.open]}; correct them, or map what is no number to a missing value"
            )
        raise RecordError(f"column {variable.name!r} must hold numbers, for the plan cuts it into bins")
    raise RecordError(
        f"column {variable.name!r} has a value that is not among the plan's {listed(variable.cells)}; map it "
        "before, or give the plan's variable other=True"
    )
