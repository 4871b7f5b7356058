"""Hold the records of one call: every sum pulls from here what it reads, and knows no container.

A record that cannot be read either raises an error, or is excluded and counted here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from privstats.errors import DataError, RecordError
from privstats.intake.arrays import is_tensor
from privstats.intake.columns import Readings
from privstats.intake.declared.unlisted import Lost, all_lost
from privstats.progress import progress_bar
from privstats.records.cells import readings_of
from privstats.records.code_rows import CodeRows
from privstats.records.containers import (
    AnyRecords,
    CheckedRows,
    check_shape,
    count_of,
    dense,
    feature_rows,
    pairs,
)
from privstats.records.labels import AnyTargets, Goals, goals_of
from privstats.records.positions import Cursor
from privstats.records.readable import LeftOut, Noted, Readable, readable_rows
from privstats.records.reading import Reading, Targets
from privstats.records.reasons import Why
from privstats.records.table import in_codes, lost_remark
from privstats.records.tiles import Tile, tiles

if TYPE_CHECKING:
    from torch import Tensor

    from privstats.intake.accepted import Batches, RecordsLike, TargetsLike
    from privstats.records.emptied import ListedColumn
    from privstats.records.row_cache import MappedRows, RowCache

_ROWS = 4096  # of a piece, unless a sum requests fewer
_CODES = 1 << 16  # rows of codes at once


class Counted(Protocol):
    """Sums of records, with the number of these records."""

    @property
    def records(self) -> int | None:
        """Number of records; None: unknown."""


_Result = TypeVar("_Result", bound=Counted)


def _unnoted(*_: object) -> None:
    """Ignore which records are readable."""


class Excluded:
    """The records of one reading that cannot be read, and so are in no sum.

    Args:
        marked: keep which records are read, as ``marks``; the memory grows with the records.
    """

    def __init__(self, *, marked: bool = False) -> None:
        self._fine: list[NDArray[np.bool_]] | None = [] if marked else None
        self._readable: Readable | None = None
        self._further = LeftOut()

    @property
    def left_out(self) -> LeftOut:
        """The excluded records so far."""
        return (LeftOut() if self._readable is None else self._readable.left_out) + self._further

    @property
    def marks(self) -> NDArray[np.bool_] | None:
        """Which records are readable, ``(n,)``; None where marks are not kept, or a kind read the records itself."""
        return np.concatenate(self._fine) if self._fine else None

    @property
    def counted(self) -> int:
        """Number of records that were read and are in the sums; where marks are kept."""
        return sum(int(each.sum()) for each in self._fine or ()) - self._further.records

    def add(
        self, fine: NDArray[np.bool_], why: Why, listed: Mapping[str, ListedColumn] | None = None, *, seen: bool = False
    ) -> None:
        """Count records that a kind reads itself, or excludes further.

        Args:
            fine: which of them are readable, ``(n,)``.
            why: masks of the others by column and reason, from :mod:`~privstats.records.reasons`.
            listed: columns of declared values, whose emptied ones are named.
            seen: whether these records were read before, as a part of the reading.
        """
        left_out = LeftOut.of(fine, why, listed or {})
        self.count(replace(left_out, read=0) if seen else left_out)

    def count(self, left_out: LeftOut) -> None:
        """Count further excluded records."""
        self._further += left_out

    def exclude(self, rows: NDArray[Any], rest: NDArray[Any]) -> None:
        """Count records of ``readable(later=True)`` that cannot be read, with their reasons."""
        if self._readable is not None:
            self._readable.exclude(rows, rest)

    def readable(self, reading: Reading, noted: Noted, *, later: bool = False) -> Readable:
        """Return the reader of records that counts the unreadable ones here; as :class:`Readable`, with its options."""

        def note(fine: NDArray[np.bool_], rows: CheckedRows, has_y: NDArray[np.bool_]) -> None:
            if self._fine is not None:
                self._fine.append(fine)
            noted(fine, rows, has_y)

        self._readable = Readable(reading, note, later=later and self._fine is None)
        return self._readable


@dataclass(frozen=True, eq=False, repr=False)
class Opened:
    """The records of one call.

    Attributes:
        reading: what is read of each record.
        X, y: opened rows (``CheckedRows``), and labels or targets (``Goals``); without ``y``, batches in containers, or
            columns by name.
        progress: whether a progress bar shows at once.
        cache: rows that earlier rounds mapped.
        excluded: takes records that cannot be read, in one pass; None: such a record raises RecordError.
        cursor: follows batches, so that an error can name a record.
    """

    reading: Reading
    X: Any
    y: Any
    progress: bool = False
    cache: RowCache | None = None
    excluded: Excluded | None = None
    cursor: Cursor = field(default_factory=Cursor)

    @property
    def count(self) -> int | None:
        """Number of records, where a shape or header shows it and all are read."""
        return None if self.y is None or self.excluded is not None else count_of(self.X)

    @property
    def likely_readable(self) -> bool:
        """Whether all are read at once first: each column's type is of numbers, and nothing is masked."""
        masked = isinstance(self.X, np.ma.MaskedArray) or isinstance(self.y, np.ma.MaskedArray)
        return self.y is not None and not masked and getattr(self.X, "dtype", None) != np.dtype(object)

    def over(self, batches: Batches) -> Self:
        """Return batches that were made of these records, in which every record can be read."""
        return replace(self, X=batches, y=None, excluded=None, cursor=Cursor())

    def pairs(self, noted: Noted = _unnoted, *, later: bool = False) -> Iterator[tuple[CheckedRows, Goals]]:
        """Yield opened rows and their labels or targets: all, or readable records where others are excluded.

        Args:
            noted: receives which records are readable.
            later: yield records on an accelerator unchecked; the caller excludes unreadable ones.
        """
        if self.excluded is None:
            return self._containers()
        return self.excluded.readable(self.reading, noted, later=later).of(self._containers())

    def _containers(self) -> Iterator[tuple[CheckedRows, Goals]]:
        if self.y is not None:
            yield self.X, self.y
            return
        one_by_one = self.excluded is not None
        for X, y in self.cursor.over(self.X):
            rows = feature_rows(self.reading, X, one_by_one=one_by_one)
            yield rows, goals_of(self.reading, y, one_by_one=one_by_one)

    def tiles(
        self,
        reading: Reading | None = None,
        *,
        grouped: bool = False,
        sparse_rows: int | None = None,
        device_labels: bool = False,
    ) -> Iterator[Tile]:
        """Yield tiles of numeric rows and checked labels or targets, under a bar, as ``records.tiles.tiles``.

        Where the reading admits records without a target, a tile has them apart, as its ``gone``.

        Args:
            reading: how the rows are read; None: these records' own.
            sparse_rows: maximum rows of a sparse tile; None: all rows are dense.
            device_labels: yield integer labels on an accelerator unchecked, and where others are excluded, records
                there unchecked.
        """
        reading = self.reading if reading is None else reading
        gaps = isinstance(reading.goal, Targets) and reading.goal.gaps
        at_once = self.y is not None and self.excluded is None
        thin = sparse_rows if at_once and issparse(self.X) else None
        how: Any = {"grouped": grouped and at_once, "thin_rows": thin, "device_labels": device_labels}
        with progress_bar("records", self.count, at_once=self.progress) as advance:
            for tile in tiles(reading, self.pairs(later=device_labels), **how):
                yield tile.observed() if gaps else tile
                advance(tile.rows.shape[0])

    def pieces(self, max_rows: int | None = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield rows and their targets in host memory, at most 4,096 records at a time, or ``max_rows`` if fewer.

        Records without a target are among them.
        """
        size = _ROWS if max_rows is None else min(max_rows, _ROWS)
        yield from self._pieces(tiles(self.reading, self.pairs()), size)

    def placed_pieces(self) -> Iterator[tuple[NDArray[Any] | Tensor, NDArray[Any] | Tensor]]:
        """Yield pieces as :meth:`pieces` does, but records on an accelerator as tensors there, a tile at a time.

        The tensors are unchecked, as those of :meth:`tiles` with ``device_labels``.
        """
        yield from self._pieces(tiles(self.reading, self.pairs(later=True), device_labels=True), _ROWS, placed=True)

    def _pieces(self, tiles: Iterator[Tile], size: int, *, placed: bool = False) -> Iterator[tuple[Any, Any]]:
        with progress_bar("records", self.count, at_once=self.progress) as advance:
            for rows, targets, *_ in tiles:
                at_once = len(rows) if placed and is_tensor(rows) else size
                for start in range(0, len(rows), max(at_once, 1)):
                    piece = rows[start : start + at_once], targets[start : start + at_once]
                    yield piece if placed and is_tensor(rows) else (dense(piece[0]), dense(piece[1]))
                advance(len(rows))

    def columns(self, names: Sequence[str]) -> Iterator[dict[str, Readings]]:
        """Yield columns by name: a table's all at once; declared columns in windows, as codes.

        Args:
            names: the columns to read of a table without declared columns.
        """
        cells = self.reading.declaration
        if cells is not None:
            for codes in self._codes():
                yield {column.name: Readings.of(codes[:, place]) for place, column in enumerate(cells.columns)}
            return
        if self.y is not None:
            raise DataError(f"no y is read under this schema; put {', '.join(names)} into X")
        yield readings_of(self.X, names)

    def _codes(self) -> Iterator[NDArray[np.float64]]:
        for rows in (self.X,) if isinstance(self.X, CodeRows) else (rows for rows, _ in pairs(self.X)):
            for start in range(0, max(len(rows), 1), _CODES):  # one empty window without records
                yield rows[start : start + _CODES]

    def mapped(self, map_: object, index: int, rows: NDArray[Any], form: Callable[[], MappedRows]) -> MappedRows:
        """Return a piece's rows after a published map: those of an earlier round, or from ``form``.

        Args:
            map_: what decides the map; another one drops all earlier rows.
            index: the piece's index among these records.
        """
        return form() if self.cache is None else self.cache.mapped(map_, index, rows, form)

    def again(self, reading: Reading) -> Self:
        """Return the records as ``reading`` reads them, each with a target of 1; these can be read several times."""
        X = self.X
        if self.excluded is not None:
            X, left_out = readable_rows(self.reading, X)
            self.excluded.count(left_out)
        ones = np.ones(check_shape(self.reading, X).shape[0])
        return replace(self, reading=reading, X=X, y=ones, excluded=None)


class Formed(NamedTuple, Generic[_Result]):
    """Sums or terms of records, and what was not read.

    Attributes:
        left_out: records that are in no sum.
        marks: which records are readable, ``(n,)``; None: the result states it, or all are.
    """

    result: _Result
    left_out: LeftOut
    marks: NDArray[np.bool_] | None = None


@dataclass(eq=False, repr=False)
class Reader:
    """How the records of one call are read, at once or person by person.

    Attributes:
        reading: what is read of each record.
        refuse: whether an unreadable record raises RecordError.
        progress, cache: as in :class:`Opened`.
        positions: whether an error names the record by its position among all records of the call.
        checked: whether the sums raise RecordError at an unreadable record; else they receive readable records alone,
            whose number is stated for them.
        lost: values so far in no cell of their own, by column.
    """

    reading: Reading
    refuse: bool
    progress: bool = False
    cache: RowCache | None = None
    positions: bool = True
    checked: bool = True
    lost: dict[str, Lost] = field(default_factory=dict)

    def settled(
        self, X: RecordsLike, y: TargetsLike | None, closing: ExitStack
    ) -> tuple[RecordsLike, TargetsLike | None]:
        """Return X and y as containers that can be read: a lazy table becomes batches, a named target its column.

        Args:
            closing: closes the batches.
        """
        reading = self.reading
        if isinstance(X, np.ndarray) and (y is None or isinstance(y, np.ndarray)) and not reading.columns:
            return X, y
        from privstats.intake.frames import batches_of, in_memory, named_target, opened_file, require_here
        from privstats.intake.sources import columns_named

        X, y = opened_file(X, y, columns_named(reading.columns or reading.source, y))
        require_here(X, y)
        if reading.columns:
            return in_memory(X, reading.columns), y
        several = reading.width > 1
        if reading.batches:
            batches = batches_of(X, y, reading.source, several=several)
            if batches is not None:
                closing.callback(batches.close)
                return batches, None
        return named_target(X, y, reading.source, several=several)

    def formed(
        self, form: Callable[[Opened], _Result], X: RecordsLike, y: TargetsLike | None, *, marked: bool = False
    ) -> Formed[_Result]:
        """Form sums or terms of all records, or of the readable ones where a record may be unreadable.

        Both yield equal sums of readable records.

        Args:
            form: forms them of opened records; called again where an attempt over all records fails.
            X, y: as :meth:`settled` returns them, or a part.
            marked: whether the result needs marks.
        """
        rows, targets, lost = in_codes(self.reading, X, y, refuse=self.refuse)
        formed = self._formed(form, rows, targets, marked=marked)
        if lost:
            self.lost.update(all_lost(self.lost, lost))
        return formed

    def _formed(
        self, form: Callable[[Opened], _Result], X: AnyRecords, y: AnyTargets | None, *, marked: bool
    ) -> Formed[_Result]:
        reading, cursor = self.reading, Cursor()
        # A number must not pass for a declared text, and a gap must not count where its record is excluded.
        one_by_one = reading.levels is not None or (reading.declaration is not None and not reading.gaps_have_cells)
        one_by_one |= not self.checked
        if self.refuse and not one_by_one:
            try:
                return Formed(form(self._opened(X, y, cursor, one_by_one=False)), LeftOut())
            except RecordError as error:
                if not self.positions:
                    raise
                raise cursor.placed(error, reading, X, y) from None
        records = self._opened(X, y, cursor, one_by_one=True)
        if not one_by_one and records.likely_readable:
            try:
                result = form(records)
                if not _lacks_records(result, records.X):
                    return Formed(result, LeftOut())
            except RecordError:
                pass
        excluded = Excluded(marked=marked or not self.checked)
        result = form(replace(records, excluded=excluded))
        left_out = excluded.left_out
        if not (self.checked or marked):
            result = _counted(result, excluded.counted)
        if left_out.records and self.refuse:
            raise RecordError(left_out.remark(none_left=False, refused=True))
        return Formed(result, left_out, excluded.marks)

    def _opened(self, X: AnyRecords, y: AnyTargets | None, cursor: Cursor, *, one_by_one: bool) -> Opened:
        """Return a container's records as rows, and batches or columns by name as they are."""
        reading = self.reading
        if not (reading.columns or (y is None and reading.batches)):
            X = feature_rows(reading, X, one_by_one=one_by_one)
            y = None if y is None else goals_of(reading, y, one_by_one=one_by_one)
        return Opened(reading, X, y, self.progress, self.cache, cursor=cursor)

    def remark(self) -> str:
        """Return the warning for the data holder about values in no cell of their own, or ""."""
        return lost_remark(self.reading.declared, self.lost) if self.lost else ""


def _counted(sums: Any, records: int) -> Any:
    """Return another package's sums with the number of records that they received.

    A comparison would end the session of a party with a record that the package omits itself.
    """
    try:
        return replace(sums, records=records)
    except (TypeError, ValueError):
        raise DataError(f"a {type(sums).__name__} has no field records; report it to its package") from None


def _lacks_records(result: Counted, X: object) -> bool:
    count = count_of(X)
    return count is not None and result.records is not None and result.records < count
