"""Assign each value of a column to a cell of a variable.

A value's cell follows from that value and public declarations, never from its column's type or another record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, RecordError
from privstats.intake.column_names import require_records
from privstats.intake.columns import Readings, alike, read
from privstats.intake.declared.categories import Categories
from privstats.intake.meaning import listed
from privstats.intake.tables import is_list, names_of_columns, rectangle, table_of
from privstats.records.reasons import looks_of
from privstats.records.variables import Binned, Bins

if TYPE_CHECKING:
    from privstats.records.containers import AnyRecords


def beyond(variable: Binned, numbers: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which values are below the first edge and which above the last."""
    edges = np.array(variable.edges)
    read = alike(numbers, edges)
    return read < edges[0], read > edges[-1]


_OPENED = {"above": "above only", "below": "below only", "none": "at no end"}


def readings_of(X: AnyRecords, names: Sequence[str]) -> dict[str, Readings]:
    """Read columns of a table, or of an array with these columns."""
    columns = _columns(X, names)
    for name, column in columns.items():
        if getattr(column, "ndim", 1) != 1:
            raise DataError(f"column {name!r} must have one value per record")
    if len({len(column) for column in columns.values()}) != 1:
        raise DataError("the columns of X have different lengths; give one value per record in each")
    return {name: read(column) for name, column in columns.items()}


def _columns(X: Any, names: Sequence[str]) -> dict[str, Any]:
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


def cells_in(variable: Categories | Binned, column: Readings) -> NDArray[np.intp]:
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


def gaps_in(variable: object, column: Readings) -> NDArray[np.bool_]:
    """Return which values are gaps under the variable's declaration."""
    return variable.decide(column).gaps if isinstance(variable, Categories) else column.missing


def _bins(variable: Binned, column: Readings) -> NDArray[np.intp]:
    side: Literal["left", "right"] = "right" if variable.closed == "left" else "left"
    cuts = variable.edges[1:-1]
    cells = np.searchsorted(cuts, alike(column.numbers, cuts or variable.edges), side=side).astype(np.intp)
    below, above = beyond(variable, column.numbers)
    cells[below & (variable.open not in ("both", "below"))] = -1
    cells[above & (variable.open not in ("both", "above"))] = -1
    cells[column.are_texts] = -1
    return cells


def require_cells(variable: Categories | Binned, column: Readings, cells: NDArray[np.intp]) -> None:
    """Refuse values without a cell, and name a remedy."""
    if (cells >= 0).all():
        return
    if gaps_in(variable, column).any() and not variable.missing:
        raise RecordError(f"column {variable.name!r} has missing values; give the plan's variable missing=True")
    if not isinstance(variable, Bins | Categories):
        low, high = variable.edges[0], variable.edges[-1]
        raise RecordError(f"column {variable.name!r} needs numbers from {low:g} to {high:g}; correct other values")
    if isinstance(variable, Bins):
        if any(side[cells < 0].any() for side in beyond(variable, column.numbers)):
            raise RecordError(
                f"column {variable.name!r} has values beyond the edges of its bins. The bins are open "
                f"{_OPENED[variable.open]}: correct the values, or make codes such as -9 missing values"
            )
        looks = looks_of(column, cells < 0)
        raise RecordError(f"column {variable.name!r} must hold numbers, because the plan counts it in bins{looks}")
    raise RecordError(
        f"column {variable.name!r} has a value that is not among the plan's {listed(variable.cells)}; map it "
        "to one of them, or give the plan's variable other=True"
    )
