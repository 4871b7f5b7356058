"""Read a table of declared columns as rows of numbers (codes), a window at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privstats.errors import DataError, RecordError
from privstats.intake.columns import values_of
from privstats.intake.declared.unlisted import Lost, all_lost
from privstats.intake.tables import Codes, column_of, has_order, table_of

if TYPE_CHECKING:
    from privstats.transforms import Cells


class _Rows(Protocol):
    """Rows ``(n, columns)`` of an opened container."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, where: slice, /) -> Any: ...


Source: TypeAlias = "list[Any] | _Rows | Codes"
"""The declared columns in a list, rows of an array with these columns, or codes."""


class CodeRows:
    """A table's records as rows of codes.

    Args:
        source: the records' columns or rows.
        lost: receives the values in no cell of their own, by column.

    Attributes:
        shape: ``(n, columns)``.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, cells: Cells, source: Source, lost: dict[str, Lost], *, refuse: bool) -> None:
        self._cells, self._refuse, self._lost = cells, refuse, lost
        self.shape = (_records(source), len(cells.columns))
        self._source = [column_of(each) for each in source] if isinstance(source, list) else source
        self._counted = 0
        if isinstance(self._source, Codes):
            self._note(self._source)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, where: slice) -> NDArray[np.float64]:
        if isinstance(self._source, Codes):
            return self._source.codes[where]
        start, stop, _ = where.indices(self.shape[0])
        result = self._read(start, stop)
        fresh = max(start, self._counted)  # a second pass counts nothing again
        if fresh < stop:
            self._note(result if fresh == start else self._read(fresh, stop))
            self._counted = stop
        return result.codes

    def _read(self, start: int, stop: int) -> Codes:
        names = [column.name for column in self._cells.columns]
        return self._cells.read(dict(zip(names, pieces(self._source, slice(start, stop)), strict=True)))

    def _note(self, codes: Codes) -> None:
        if self._refuse and (unread := codes.unread):
            name = next(iter(unread))
            (column,) = (each for each in self._cells.columns if each.name == name)
            raise RecordError(
                f"column {name!r} holds values that are {column.unread}: correct them, or declare them as gaps of the "
                "column; a plan with Privacy would count them as missing"
            )
        self._lost.update(all_lost(self._lost, codes.lost))


def _records(source: Source) -> int:
    if not isinstance(source, list):
        return int(source.shape[0])
    if any(isinstance(each, Mapping) or not has_order(each) for each in source):
        raise DataError("a column of the table has no order (a set, mapping, iterator or single value); give a list")
    lengths = {len(column) if hasattr(column, "__len__") else len(values_of(column)) for column in source}
    if len(lengths) > 1 or any(getattr(column, "ndim", 1) != 1 for column in source):
        raise DataError("the table's columns have different lengths or several axes; give one value per record in each")
    return lengths.pop()


def pieces(source: Source, where: slice) -> list[Any]:
    """Return consecutive values of every declared column."""
    if isinstance(source, list):
        return [column.take(where) for column in source]
    tile = source[where]
    dense = tile.toarray() if isinstance(tile, csr_array) else tile
    return table_of(dense).columns()
