"""Select the readable records of any container, for parties under a promise.

A refusal caused by one record would reveal it, because the server sees who is absent. Whether a record is readable
follows from that record and public values alone. Missing columns and wrong shapes, which no single record causes, are
still refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privstats.errors import DataError
from privstats.intake.arrays import is_tensor, repeated_rows
from privstats.intake.columns import Listed, Readings, read
from privstats.intake.declared.unlisted import MIN_RECORDS
from privstats.intake.tables import ReadRows
from privstats.records.containers import (
    AnyRecords,
    CheckedRows,
    Loaded,
    check_shape,
    dense,
    feature_rows,
    numbers_in,
)
from privstats.records.emptied import NEARLY, Emptied, ListedColumn
from privstats.records.labels import Goals, ReadLabels, listed_classes, listed_labels
from privstats.records.reading import Labels, Reading, Targets, Unread
from privstats.records.reasons import (
    ARM,
    COMMA,
    DATE,
    DURATION,
    GAP,
    LABEL,
    TEXT,
    UNCODED,
    WORD,
    Why,
    no_number,
    spelled,
    spelled_among,
)
from privstats.records.tiles import device_checks
from privstats.transforms.base import rows_to_sum

if TYPE_CHECKING:
    from privstats.intake.declared.columns import Column
    from privstats.transforms import Cells

_COLUMNS_SHOWN = 8


@dataclass(frozen=True)
class LeftOut:
    """Unreadable records, which are excluded.

    ``why`` maps (column, reason) to the number of these records; a record may have several reasons. ``read`` is the
    number of all records, and ``emptied`` diagnoses declared values; its texts are private.
    """

    records: int = 0
    why: Mapping[tuple[str, str], int] = field(default_factory=dict)
    read: int = 0
    emptied: Emptied = field(default_factory=Emptied, repr=False)

    @classmethod
    def of(
        cls,
        fine: NDArray[np.bool_],
        why: Mapping[tuple[str, str], NDArray[np.bool_]],
        declared: Mapping[str, ListedColumn] = MappingProxyType({}),
    ) -> LeftOut:
        """Count unreadable records, from masks ``(n,)`` of the readable ones and each reason, and declared columns."""
        counts = {key: int((each & ~fine).sum()) for key, each in why.items()}
        return cls(int((~fine).sum()), counts, read=len(fine), emptied=Emptied.of(fine, why, declared))

    def __add__(self, other: LeftOut) -> LeftOut:
        both = {key: self.why.get(key, 0) + other.why.get(key, 0) for key in {**self.why, **other.why}}
        return LeftOut(self.records + other.records, both, self.read + other.read, self.emptied + other.emptied)

    def remark(self, *, none_left: bool, refused: bool = False) -> str:
        """Return the warning for the data holder, or a refusal's message."""
        by_column: dict[str, list[str]] = {column: [] for column, _ in self.why}
        for (column, what), count in self.why.items():
            by_column[column] += [f"{count:,} {what}"] if count else []
        by_column = {column: reasons for column, reasons in by_column.items() if reasons}
        shown = [f"{column}: {', '.join(reasons)}" for column, reasons in list(by_column.items())[:_COLUMNS_SHOWN]]
        more = f"; and {len(by_column) - _COLUMNS_SHOWN} columns more" if len(by_column) > _COLUMNS_SHOWN else ""
        none = "no record remains: " if none_left else ""
        why = f". {'; '.join(shown)}{more}" if shown else ""
        held = {what for (_, what), count in self.why.items() if count}
        code = ", read the file with --decimal , or write decimals with a point" if COMMA in held else ""
        code += ", write durations and dates as numbers in the plan's unit" if held & {DURATION, DATE} else ""
        code += ", code texts as numbers or have the plan declare them" if TEXT in held else ""
        fate = "" if refused else " and are excluded"
        emptied = "" if refused else self._emptied(none_left=none_left)
        return (
            f"{none}{self.records:,} of the records cannot be read{fate}{why}.{emptied} Correct the "
            f"file where you can{code}, and do not share these numbers{' and texts' * bool(emptied)}"
        )

    def _emptied(self, *, none_left: bool) -> str:
        nearly = not none_left and self.read >= MIN_RECORDS and NEARLY * (self.read - self.records) <= self.read
        remains = f" Nearly no record remains, {self.read - self.records:,} of {self.read:,}." if nearly else ""
        values = self.emptied.remark()
        return remains + (f" {values[0].upper()}{values[1:]}." if values else "")


def named(names: Sequence[str] | None, columns: int) -> list[str]:
    """Return columns' names or positions."""
    return [repr(name) for name in names] if names is not None else [f"column {j + 1}" for j in range(columns)]


Noted: TypeAlias = "Callable[[NDArray[np.bool_], CheckedRows, NDArray[np.bool_]], None]"
"""Receives which records are readable, the rows (NaN where an entry is unreadable), and which y are readable."""
_ListedColumns: TypeAlias = dict[str, ListedColumn]
"""Columns of declared values, by name."""

_ROWS = 1 << 14
_ENTRIES = 1 << 22  # entries of dense rows at once: one gap must not expand all sparse rows in memory


def readable_rows(reading: Reading, X: AnyRecords) -> tuple[NDArray[Any], LeftOut]:
    """Return the readable rows of X where no y is read, and the excluded records."""
    readable, rows = Readable(reading), feature_rows(reading, X, one_by_one=True)
    parts = [dense(part[0 : part.shape[0]]) for part, _ in readable.of([(rows, np.zeros(rows.shape[0]))])]
    return np.concatenate(parts), readable.left_out


class Readable:
    """The readable records of containers, and the records that are excluded.

    Args:
        noted: receives which records are readable.
        later: yield records on an accelerator unchecked; the caller calls :meth:`exclude` for its tiles.

    Attributes:
        left_out: unreadable records so far.
    """

    def __init__(self, reading: Reading, noted: Noted = lambda *_: None, *, later: bool = False) -> None:
        self._reading, self._noted, self._later = reading, noted, later
        self.left_out = LeftOut()

    def of(self, containers: Iterable[tuple[CheckedRows, Goals]]) -> Iterator[tuple[CheckedRows, Goals]]:
        """Yield batches of readable records and their labels or targets."""
        for rows, rest in containers:
            yield from self._windows(check_shape(self._reading, rows), rest)

    def exclude(self, rows: NDArray[Any], rest: NDArray[Any]) -> None:
        """Count records that the caller of ``later`` could not read, with their reasons."""
        _, _, why, declared = _features(self._reading, rows)
        _, _, y_why, y_declared = self._read(rest)
        left_out = LeftOut.of(np.zeros(len(rows), np.bool_), {**why, **y_why}, {**declared, **y_declared})
        self.left_out += replace(left_out, read=0)  # they were counted when they were yielded

    # Yield readable records, window by window; all at once where every entry is certainly readable.
    def _windows(self, rows: CheckedRows, rest: Goals) -> Iterator[tuple[CheckedRows, Goals]]:
        if not rest.shape or rows.shape[0] != rest.shape[0]:
            raise DataError(f"X has {rows.shape[0]} rows and y has shape {tuple(rest.shape)}; give one for each row")
        if self._later and device_checks(self._reading, rows, rest):
            self.left_out += LeftOut(read=rows.shape[0])
            yield rows, rest
            return
        if self._is_plain(rows, rest):
            self._noted(np.ones(rows.shape[0], np.bool_), rows, np.ones(rows.shape[0], np.bool_))
            yield rows, rest
            return
        at_once = max(1, min(_ROWS, _ENTRIES // max(rows.shape[1], 1)))
        for start in range(0, max(rows.shape[0], 1), at_once):  # runs once without records
            at = slice(start, min(start + at_once, rows.shape[0]))
            X, fine, why, declared = _features(self._reading, rows[at])
            y, readable, y_why, y_declared = self._read(rest[at])
            fine &= readable
            self.left_out += LeftOut.of(fine, {**why, **y_why}, {**declared, **y_declared})
            self._noted(fine.copy(), X, readable)
            yield X[fine], ReadLabels(y[fine]) if isinstance(self._reading.goal, Labels) else y[fine]

    def _is_plain(self, rows: CheckedRows, rest: Goals) -> bool:
        if self._reading.maps or not (_is_finite(rows) and _is_finite(rest)):
            return False
        match self._reading.goal:
            case Labels(classes):
                plain = isinstance(classes, range) and len(rest.shape) == 1 and not _is_real(rest)
                return plain and (not rest.shape[0] or bool(rest.min() >= 0 and rest.max() < len(classes)))
            case Targets() | Unread():
                return True

    def _read(self, rest: Loaded) -> tuple[NDArray[Any], NDArray[np.bool_], Why, _ListedColumns]:
        match goal := self._reading.goal:
            case Labels():
                if len(rest.shape) != 1:
                    raise DataError(f"y must have shape (records,), got {len(rest.shape)} dimensions")
                declared = listed_labels(goal.classes, rest)
                places, readings = declared.places, declared.readings
                why: Why = {("the label", LABEL): places < 0}
                if not isinstance(goal.classes, range):
                    decided = listed_classes(goal.classes).decide(readings)
                    why |= spelled_among("the label", goal.classes, decided, readings)
                return places, places >= 0, why, {"the label": declared}
            case Targets():
                levels = self._reading.levels
                goals = levels.outcomes if levels is not None else ()
                columns = rest if isinstance(rest, csr_array) or len(rest.shape) > 1 else rest.reshape(-1, 1)
                numbers, why, outcomes = _parsed(columns, _of_targets(columns.shape[1], goals, goal.names), goals)
                readable = np.isfinite(numbers).all(axis=1)
                if goal.gaps:
                    gaps = [key for key in why if key[1] == GAP]
                    readable |= np.logical_or.reduce([why.pop(key) for key in gaps])
                return numbers.reshape(rest.shape), np.asarray(readable), why, outcomes
            case Unread():
                return np.zeros(rest.shape[0], np.intp), np.ones(rest.shape[0], np.bool_), {}, {}


def _is_finite(rows: object) -> TypeGuard[Loaded]:
    if is_tensor(rows):
        return not rows.is_complex() and bool(rows.isfinite().all())
    if isinstance(rows, csr_array):
        return rows.dtype.kind in "fiub" and rows.has_canonical_format and bool(np.isfinite(rows.data).all())
    return (
        type(rows) is np.ndarray and rows.dtype.kind in "fiub" and rows.itemsize <= 8 and bool(np.isfinite(rows).all())
    )


def _is_real(rest: Loaded) -> bool:
    return bool(rest.is_floating_point()) if is_tensor(rest) else rest.dtype.kind == "f"


def _features(
    reading: Reading, tile: Loaded | ReadRows
) -> tuple[NDArray[np.float64], NDArray[np.bool_], Why, _ListedColumns]:
    cells, levels, names = reading.declaration, reading.levels, reading.names
    of = () if levels is None else tuple(map(levels.of, names or ()))
    columns, declared = named(names, tile.shape[1]), _ListedColumns()
    if cells is None:
        X, why, declared = _parsed(tile, columns, of)
    else:
        X = numbers_in(_dense(tile))[0]
        why = _gaps(cells, X) if cells.missing else {}
    # A later map may make a cell's row infinite.
    fine = np.ones(len(X), np.bool_) if reading.gaps_have_cells else np.asarray(np.isfinite(X).all(axis=1))
    if len(reading.maps) > (cells is not None):
        mapped = np.isfinite(rows_to_sum(reading.maps, np.where(fine[:, None], X, 0.0))).all(axis=1)
        if getattr(last := reading.maps[-1], "kind", "") == "by-arm":
            arm = columns[last.column]  # type: ignore[attr-defined]
            why[arm, ARM] = fine & ~mapped
            if arm not in declared:
                declared[arm] = ListedColumn.of((0, 1), Listed.of((0, 1)), _column(tile, last.column))  # type: ignore[attr-defined]
        fine &= mapped
    return X, fine, why, declared


def _gaps(cells: Cells, codes: NDArray[np.float64]) -> Why:
    columns = zip(cells.columns, codes.T, strict=True)
    return {(repr(column.name), UNCODED): np.isnan(each) for column, each in columns}


def _parsed(
    tile: Loaded | ReadRows, names: Sequence[str], declared: Sequence[Column | None]
) -> tuple[NDArray[np.float64], Why, _ListedColumns]:
    """Return entries as float64, NaN where unreadable; which records are unreadable; and columns of declared values."""
    if isinstance(tile, ReadRows):
        columns: Iterable[Readings] = tile.readings
    else:
        raw = _dense(tile)
        if raw.dtype.kind in "biuf" and not declared:
            X = numbers_in(raw)[0]
            return X, {(name, GAP): np.isnan(column) for name, column in zip(names, X.T, strict=True)}, {}
        columns = map(read, raw.T)
    X, why, values = np.empty(tile.shape), Why(), _ListedColumns()
    each = zip(names, declared or [None] * len(names), columns, strict=True)
    for j, (name, column, result) in enumerate(each):
        words = getattr(column, "values", ())
        codes = result.numbers if column is None else column.codes_and_unread(result)[0]
        # Code len(words) marks an unlisted text.
        X[:, j] = np.where(codes == (len(words) or np.nan), np.nan, codes)
        why[name, GAP] = gone = result.missing if column is None else column.decide(result).gaps
        unread = np.isnan(X[:, j]) & ~gone
        why |= {(name, WORD): unread} if words else no_number(name, result, unread)
        why |= spelled(name, column, result)
        if column is not None and words:
            values[name] = ListedColumn.of(words, column.listed, result)
    return X, why, values


def _column(tile: Loaded | ReadRows, place: int) -> Readings:
    return tile.readings[place] if isinstance(tile, ReadRows) else read(_dense(tile)[:, place])


def _of_targets(targets: int, declared: Sequence[Column], names: Sequence[str]) -> list[str]:
    if declared:
        return [repr(each.name) for each in declared]
    if len(names) == targets:
        return [*names]
    return ["the outcome"] if targets == 1 else [f"outcome {place + 1}" for place in range(targets)]


def _dense(tile: Loaded | ReadRows) -> NDArray[Any]:
    """Return a tile as an array; a sparse row in which one entry occurs twice becomes NaN."""
    if not isinstance(tile, csr_array):
        return dense(tile)
    rows: NDArray[Any] = tile.toarray()
    if len(repeated := repeated_rows(tile)):
        rows = rows.astype(np.float64)
        rows[repeated] = np.nan
    return rows
