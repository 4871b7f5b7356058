"""Read records of declared columns from any container, as windows of codes."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, SchemaError, UnreadableRecordsWarning
from privstats.intake.declared.unlisted import NOTHING, Lost, comma_hint, often
from privstats.intake.meaning import has_decimal_comma, shown
from privstats.intake.tables import Codes, as_table, names_of_columns, table_of
from privstats.records.code_rows import CodeRows, pieces
from privstats.records.containers import AnyRecords, rows_of
from privstats.records.emptied import Emptied, Level

if TYPE_CHECKING:
    from privstats.intake.accepted import RecordsLike, TargetsLike
    from privstats.records.code_rows import Source
    from privstats.records.reading import Reading
    from privstats.transforms import Cells


class _Named(Protocol):
    """A declared column."""

    @property
    def name(self) -> str: ...

    @property
    def unread(self) -> str: ...


_SHOWN = 3
_MISSING, _OTHER = "these values count as missing", "These values count as 'other'"


def in_codes(
    reading: Reading, X: RecordsLike, y: TargetsLike | None, *, refuse: bool
) -> tuple[AnyRecords, TargetsLike | None, dict[str, Lost]]:
    """Return X and y with every table of declared columns as rows of codes, and what collects their losses."""
    lost, cells = dict[str, Lost](), reading.declaration
    if cells is None:
        return X, y, lost
    if not reading.open_cells:
        cells.require_closed()
    if y is None and not _is_table(X) and hasattr(X, "__iter__"):
        return _batches(cells, X, lost, refuse), None, lost
    return _rows(cells, X, lost, refuse), y, lost


def code_rows(reading: Reading, X: RecordsLike) -> tuple[CodeRows, dict[str, Lost]]:
    """Return a table of declared columns as rows of codes, and what collects their losses.

    Raises:
        SchemaError: no column is declared, or cut points are open.
    """
    cells, lost = reading.declaration, dict[str, Lost]()
    if cells is None:
        raise SchemaError("the schema declares no columns; measure its rows as they are")
    if not reading.open_cells:
        cells.require_closed()
    return _rows(cells, X, lost, refuse=False), lost


def codes_of(cells: Cells, X: RecordsLike) -> NDArray[np.float64]:
    """Return a table's codes, float64 ``(n, columns)``; an unreadable value counts as missing.

    Warns:
        UnreadableRecordsWarning: counts by column, with the most frequent texts. They are for this screen alone.
    """
    if isinstance(X, Codes):
        return X.codes
    source, lost = _columns(cells, as_table(X)), dict[str, Lost]()
    rows = CodeRows(cells, source, lost, refuse=False)
    codes = rows[0 : len(rows)]
    others = "; ".join(_other_remarks(((each, lost.get(each.name, NOTHING)) for each in cells.columns), few=True))
    remarks = "; ".join(_unread_remarks(cells, source, len(rows))) if any(each.unread for each in lost.values()) else ""
    parts = [f"{start}: {each}" for start, each in ((_MISSING, remarks), (_OTHER, others)) if each]
    if parts:
        text = f"{'. '.join(parts)}. Correct them, and do not share these numbers and texts"
        warnings.warn(text, UnreadableRecordsWarning, stacklevel=5)
    return codes


def _unread_remarks(cells: Cells, source: Source, records: int) -> Iterator[str]:
    columns = source if isinstance(source, list) else pieces(source, slice(0, records))
    for column, values in zip(cells.columns, columns, strict=True):
        readings = column.readings(values)
        codes, count = column.codes_and_unread(readings)
        if count:
            texts = readings.counted(np.isnan(codes) & ~column.decide(readings).gaps)
            frequent = ", ".join(shown(text) for text, _ in texts.most_common(_SHOWN))
            commas = sum(number for text, number in texts.items() if has_decimal_comma(text))
            yield f"{count} of {column.name!r} are {column.unread}, such as {frequent}{comma_hint(commas, count)}"


def lost_remark(declared: Iterable[_Named], lost: Mapping[str, Lost]) -> str:
    """Return the warning for the data holder about values in no cell of their own, or "".

    Args:
        declared: the declared columns.
        lost: these values by column's name.
    """
    columns = [(each, lost[each.name]) for each in declared if each.name in lost]
    if not any(each.unread or each.other or each.words for _, each in columns):
        return ""
    unread = [
        f"{each.unread:,} of {column.name!r} are {column.unread}{_texts(each)}{each.hint}"
        for column, each in columns
        if each.unread
    ]
    parts = [f"{_MISSING}: {'; '.join(unread)}"] if unread else []
    parts += [f"{_OTHER}: {'; '.join(others)}"] if (others := [*_other_remarks(columns)]) else []
    parts += [emptied] if (emptied := _emptied(columns)) else []
    if not parts:
        return ""
    texts = " and texts" * any(often(each.texts + each.words) for _, each in columns)
    return (
        f"{'. '.join(parts)}. Correct the file where you can, or have them declared as gaps or as values, and do not "
        f"share these numbers{texts}"
    )


def _other_remarks(columns: Iterable[tuple[_Named, Lost]], *, few: bool = False) -> Iterator[str]:
    """Yield a remark about each column with noted values in the cell "other"; with ``few`` about any value there."""
    for column, each in columns:
        if each.is_noted or (few and each.other):
            yield f"{each.other:,} of {column.name!r} are not declared{_texts(each)}"


def _texts(lost: Lost) -> str:
    """Return words for the texts that ten records share, and for declared values in another case, which are public."""
    cases = [f", {count:,} hold {value!r} in another case" for value, count in lost.spelled.most_common(_SHOWN)]
    return often(lost.texts) + "".join(cases)


def _emptied(columns: Iterable[tuple[_Named, Lost]]) -> str:
    """Return a sentence that names declared values without records, or nearly so; "" without any."""
    levels, unlisted, texts = dict[tuple[str, str], Level](), dict[str, int](), dict[str, Counter[str]]()
    for column, each in columns:
        name = repr(column.name)
        levels |= {(name, value): Level(count, count) for value, count in each.holders.items()}
        unlisted[name] = each.unread + each.other + each.words.total()
        texts[name] = each.texts + each.words
    remark = Emptied(levels, unlisted, texts).remark()
    return f"{remark[:1].upper()}{remark[1:]}"


def _batches(cells: Cells, X: Any, lost: dict[str, Lost], refuse: bool) -> Iterator[tuple[CodeRows, TargetsLike]]:
    for batch in X:
        pair = isinstance(batch, tuple | list) and len(batch) == 2
        yield (_rows(cells, batch[0], lost, refuse), batch[1]) if pair else batch


def _rows(cells: Cells, X: RecordsLike, lost: dict[str, Lost], refuse: bool) -> CodeRows:
    return CodeRows(cells, X if isinstance(X, Codes) else _columns(cells, X), lost, refuse=refuse)


def _is_table(X: object) -> bool:
    return isinstance(X, Codes | str) or hasattr(X, "shape") or names_of_columns(X) is not None


def _columns(cells: Cells, X: Any) -> Source:
    if isinstance(getattr(getattr(X, "dtype", None), "names", None), tuple):
        X = {name: X[name] for name in X.dtype.names}  # a structured array
    named = names_of_columns(X)
    if isinstance(X, Mapping) or (named is not None and named != list(range(len(cells.columns)))):
        return [X[source] for source in cells.sources(X)]
    if named is not None:
        return table_of(X).columns()
    rows = rows_of(X, len(cells.columns), one_by_one=True)
    if len(rows.shape) != 2 or rows.shape[1] != len(cells.columns):
        raise DataError(
            f"X must be a table with the declared columns, or an array of shape (records, {len(cells.columns)}) with "
            "them in the order of the plan"
        )
    return rows
