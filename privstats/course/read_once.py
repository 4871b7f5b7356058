"""Read a party's table of declared columns once for all sessions of a course."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import replace

import numpy as np

from privstats.intake.accepted import RecordsLike, TargetsLike
from privstats.intake.declared.columns import Column, Dates, Numeric, at_edges
from privstats.intake.tables import Codes
from privstats.records.row_cache import MAX_BYTES
from privstats.records.table import code_rows
from privstats.schema import Schema

_LIBRARIES = frozenset(("pandas", "polars", "pyarrow"))
_WINDOW = 1 << 14


class ReadOnce:
    """A table in memory, whose declared columns are read with the first session.

    Later sessions get codes, which equal a second reading bit for bit: a cut point changes a code by replacing numbers
    that equal it at 15 digits, and codes of other columns do not change.

    Args:
        X, y: any records; only a mapping of columns, or a frame in memory, beside its labels is read once.
        most_bytes: size of the codes beyond which every session reads the table.

    Example:
        >>> cells = ps.Cells((ps.Numeric("age"),))
        >>> schema = ps.ClassSchema(2, cells.width, "NAB", clip_norm=1.0, transform=(cells.with_edges({"age": [40]}),))
        >>> ReadOnce({"age": [39, "41", None]}, [0, 1, 1]).rows(schema).codes.tolist()
        [[39.0], [41.0], [nan]]
    """

    def __init__(self, X: RecordsLike, y: TargetsLike | None, most_bytes: int = MAX_BYTES) -> None:
        self._X, self._most = X, most_bytes
        self._labels = len(y) if isinstance(y, Sized) and not isinstance(y, str) else None
        self._read: tuple[tuple[Column, ...], Codes] | None = None
        self._latest: tuple[tuple[Column, ...], Codes] | None = None

    def rows(self, schema: Schema) -> RecordsLike:
        """Return the records in a form that ``measure`` accepts under this schema."""
        cells = schema.reading.declaration
        if cells is None or self._labels is None or not _is_table(self._X):
            return self._X
        codes = self._known(cells.columns)
        if codes is None:
            rows, lost = code_rows(schema.reading, self._X)
            if len(rows) != self._labels or 8 * len(rows) * rows.shape[1] > self._most:
                return self._X
            whole = np.empty(rows.shape)
            for start in range(0, len(rows), _WINDOW):
                part = slice(start, start + _WINDOW)
                whole[part] = rows[part]
            codes = Codes(whole, lost)
            self._read = cells.columns, codes
        self._latest = cells.columns, codes
        return codes

    def _known(self, columns: tuple[Column, ...]) -> Codes | None:
        """Return the codes of these columns, if they follow from codes at hand."""
        for columns_of, codes in filter(None, (self._latest, self._read)):
            if columns_of == columns:
                return codes
        if self._read is None or len(columns) != len(self._read[0]):
            return None
        before, codes = self._read
        changes = {}
        for place, (old, new) in enumerate(zip(before, columns, strict=True)):
            if old == new:
                continue
            if not isinstance(new, Numeric | Dates) or replace(new, edges=None) != old:
                return None
            changes[place] = new.edges
        whole = codes.codes.copy()
        for place, edges in changes.items():
            whole[:, place] = at_edges(whole[:, place], edges)
        return Codes(whole, codes.lost)


def _is_table(X: object) -> bool:
    return isinstance(X, Mapping) or (type(X).__module__.partition(".")[0] in _LIBRARIES and hasattr(X, "shape"))
