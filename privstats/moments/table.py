"""Read records of declared columns from any container, as windows of codes."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, UnreadableRecordsWarning
from privstats.intake.meaning import has_decimal_comma, shown
from privstats.intake.tables import Codes, as_table, is_list, names_of_columns, rectangle, table_of
from privstats.moments.code_rows import CodeRows, pieces
from privstats.moments.input_validation import as_rows

if TYPE_CHECKING:
    from privstats.schema.reading import Reading
    from privstats.transforms import Cells

_SHOWN = 3


def in_codes(reading: Reading, X: Any, y: Any, *, refuse: bool) -> tuple[Any, Any, Counter[str]]:
    """Return X and y with every table of declared columns as rows of codes, and the counter of unreadable values."""
    unread: Counter[str] = Counter()
    cells = reading.cells
    if cells is None:
        return X, y, unread
    if not reading.open_cells:
        cells.require_closed()
    if y is None and not _is_table(X) and hasattr(X, "__iter__"):
        return _batches(cells, X, unread, refuse), None, unread
    return _rows(cells, X, unread, refuse), y, unread


def codes_of(cells: Cells, X: Any) -> NDArray[np.float64]:
    """Return a table's codes, float64 ``(n, columns)``; an unreadable value counts as missing.

    Warns:
        UnreadableRecordsWarning: counts by column, with the most frequent texts. They are for this screen alone.
    """
    if isinstance(X, Codes):
        return X.codes
    source, unread = _columns(cells, as_table(X)), Counter[str]()
    rows = CodeRows(cells, source, unread, refuse=False)
    codes = rows[0 : len(rows)]
    if unread:
        remarks = "; ".join(_unread_remarks(cells, source, len(rows)))
        text = f"these values count as missing: {remarks}. Correct them, and do not share these numbers and texts"
        warnings.warn(text, UnreadableRecordsWarning, stacklevel=5)
    return codes


def _unread_remarks(cells: Cells, source: Any, records: int) -> Iterator[str]:
    columns = source if isinstance(source, list) else pieces(source, slice(0, records))
    for column, values in zip(cells.columns, columns, strict=True):
        readings = column.readings(values)
        codes, count = column.codes(readings)
        if count:
            texts = readings.counted(np.isnan(codes) & ~column.decide(readings).gaps)
            frequent = ", ".join(shown(text) for text, _ in texts.most_common(_SHOWN))
            commas = sum(number for text, number in texts.items() if has_decimal_comma(text))
            hint = " (write decimals with a point)" if 2 * commas > count else ""
            yield f"{count} of {column.name!r} are {column.unread}, such as {frequent}{hint}"


def unread_remark(reading: Reading, unread: Mapping[str, int]) -> str:
    """Return the warning for the data holder about values that count as missing, or ""."""
    columns = () if reading.cells is None else reading.cells.columns
    remarks = [f"{unread[each.name]} of {each.name!r} are {each.unread}" for each in columns if unread[each.name]]
    if not remarks:
        return ""
    return (
        f"these values count as missing: {', '.join(remarks)}. Correct the file where you can, or have them declared "
        "as gaps, and do not share these numbers"
    )


def _batches(cells: Cells, X: Any, unread: Counter[str], refuse: bool) -> Iterator[Any]:
    for batch in X:
        pair = isinstance(batch, tuple | list) and len(batch) == 2
        yield (_rows(cells, batch[0], unread, refuse), batch[1]) if pair else batch


def _rows(cells: Cells, X: Any, unread: Counter[str], refuse: bool) -> CodeRows:
    return CodeRows(cells, X if isinstance(X, Codes) else _columns(cells, X), unread, refuse=refuse)


def _is_table(X: Any) -> bool:
    return isinstance(X, Codes | str) or hasattr(X, "shape") or names_of_columns(X) is not None


def _columns(cells: Cells, X: Any) -> Any:
    if isinstance(getattr(getattr(X, "dtype", None), "names", None), tuple):
        X = {name: X[name] for name in X.dtype.names}  # a structured array
    named = names_of_columns(X)
    if isinstance(X, Mapping) or (named is not None and named != list(range(len(cells.columns)))):
        return [X[source] for source in cells.sources(X)]
    if named is not None:
        return table_of(X).columns()
    rows = (
        rectangle(X, len(cells.columns)) if is_list(X) else X if isinstance(X, np.ma.MaskedArray) else as_rows(X, "X")
    )
    if len(rows.shape) != 2 or rows.shape[1] != len(cells.columns):
        raise DataError(
            f"X must be a table with the declared columns, or an array of shape (records, {len(cells.columns)}) with "
            "them in the order of the plan"
        )
    return rows
