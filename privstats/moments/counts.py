"""Count tables as exact whole numbers: the cell of every record in every table.

A cell depends on public values and edges alone, so counts of parts add up to the counts of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.moments.arrays import columns_of, listed
from privstats.moments.base import Moments, RealMoments
from privstats.schema import Bins, Categories, CountSchema, Variable
from privstats.schema.public_values import Values

__all__ = ["CountMoments", "RealCountMoments", "measured_counts"]


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

    Raises:
        DataError: a wrong shape, a negative count, or tables that hold different numbers of records.

    Example:
        >>> schema = ps.CountSchema((ps.Categories("blood", ("0", "A", "B", "AB")),), (("blood",),))
        >>> ps.measure(schema, {"blood": ["A", "0", "A"]}).T.tolist()
        [1, 2, 0, 0]
    """

    shown: ClassVar[tuple[str, ...]] = ("tables",)

    schema: CountSchema
    T: NDArray[np.int64]

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
        DataError: a column is missing, or a value belongs to no cell; no record is counted then.
    """
    del values, progress
    if y is not None:
        raise DataError("count tables have no y; put every variable into X")
    columns = _columns(schema, X)
    sizes = {len(column) for column in columns.values()}
    if len(sizes) != 1:
        raise DataError("the columns of X have different lengths; give one value per record in each")
    codes = {variable.name: _codes(variable, columns[variable.name]) for variable in schema.variables}
    out = np.zeros(schema.sizes["cell"], np.int64)
    for table in schema.tables:
        shape = schema.shape(table)
        cells = np.ravel_multi_index([codes[name] for name in table], shape)
        out[schema.place(table)] = np.bincount(cells, minlength=int(np.prod(shape)))
    return CountMoments(schema, out)


def _columns(schema: CountSchema, X: Any) -> dict[str, NDArray[Any]]:
    names = [variable.name for variable in schema.variables]
    known = list(X) if isinstance(X, Mapping) else columns_of(X)
    if known is not None and (isinstance(X, Mapping) or known != list(range(len(known)))):
        missing = [name for name in names if name not in known]
        if missing:
            raise DataError(f"X lacks the column {missing[0]!r}; give every variable of the plan")
        return {name: np.asarray(X[name]) for name in names}
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != len(names):
        raise DataError(
            f"X must be a DataFrame, a mapping of columns, or an array of shape (records, {len(names)}) with the "
            "variables in order"
        )
    return dict(zip(names, rows.T, strict=True))


def _codes(variable: Variable, column: NDArray[Any]) -> NDArray[np.intp]:
    """The cell of every value."""
    if column.ndim != 1:
        raise DataError(f"column {variable.name!r} must have one value per record")
    empty = _empty(column)
    if empty.any() and not variable.missing:
        raise DataError(f"column {variable.name!r} has missing values; give the plan's variable missing=True")
    codes = np.full(len(column), len(variable.cells) - 1, np.intp)  # the cell for what is missing, where there is one
    match variable:
        case Bins():
            codes[~empty] = _bins(variable, column[~empty])
        case Categories():
            codes[~empty] = _categories(variable, column[~empty])
    return codes


def _empty(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind == "f":
        return np.asarray(np.isnan(column))
    if column.dtype.kind == "O":
        return np.array([value is None or _unequal(value) for value in column.tolist()], np.bool_)
    return np.zeros(len(column), np.bool_)


def _unequal(value: Any) -> bool:
    """Whether a value is missing: NaN, which does not equal itself, or pandas' NA, which cannot be compared."""
    differs = value != value
    return not isinstance(differs, bool | np.bool_) or bool(differs)


def _bins(variable: Bins, column: NDArray[Any]) -> NDArray[np.intp]:
    try:
        numbers = column.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"column {variable.name!r} must hold numbers, for the plan cuts it into bins") from None
    side: Literal["left", "right"] = "right" if variable.closed == "left" else "left"
    return np.asarray(np.searchsorted(np.array(variable.edges[1:-1]), numbers, side=side), np.intp)


def _categories(variable: Categories, column: NDArray[Any]) -> NDArray[np.intp]:
    places: dict[Any, int] = {value: place for place, value in enumerate(variable.values)}
    found, where = np.unique(column if column.dtype.kind != "O" else column.astype(str), return_inverse=True)
    texts = isinstance(variable.values[0], str)
    keys = [str(value) if texts else _whole(value) for value in found.tolist()]
    other = len(variable.values) if variable.other else -1
    codes = np.array([places.get(key, other) for key in keys], np.intp)[where] if len(keys) else np.zeros(0, np.intp)
    if (codes < 0).any():
        raise DataError(
            f"column {variable.name!r} has a value that is not among the plan's {listed(variable.cells)}; map it "
            "before, or give the plan's variable other=True"
        )
    return codes


def _whole(value: Any) -> int | None:
    """A value as a whole number; None where it is not one."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return int(value == "True") if value in ("True", "False") else None
    return int(number) if number.is_integer() else None
