"""Hold the records of one call: every sum pulls from here what it reads, and knows no container.

A record that cannot be read either raises an error, or is excluded and counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from privstats.intake.tables import ReadRows, is_list, ordered_columns
from privstats.moments.input_validation import Tile, count_of, pairs, tiles
from privstats.moments.readable import LeftOut, Noted, Readable, readable_rows
from privstats.schema.reading import Reading

if TYPE_CHECKING:
    from privstats.moments.record_sums import RecordTerms
    from privstats.moments.row_cache import RowCache


def _unnoted(*_: Any) -> None:
    """Ignore which records are readable."""


class Excluded:
    """The records of one reading that cannot be read, and so are in no sum.

    Args:
        marked: keep which records are read, for :meth:`among`; the memory grows with the records.
    """

    def __init__(self, *, marked: bool = False) -> None:
        self._fine: list[NDArray[np.bool_]] | None = [] if marked else None
        self._readable: Readable | None = None
        self._further = LeftOut()

    @property
    def left_out(self) -> LeftOut:
        """The excluded records so far."""
        return (LeftOut() if self._readable is None else self._readable.left_out) + self._further

    def add(self, left_out: LeftOut) -> None:
        """Count further excluded records."""
        self._further += left_out

    def readable(self, reading: Reading, noted: Noted) -> Readable:
        """Return the reader of records that counts the unreadable ones here; ``noted`` as in :class:`Readable`."""

        def note(fine: NDArray[np.bool_], rows: Any, has_y: NDArray[np.bool_]) -> None:
            if self._fine is not None:
                self._fine.append(fine)
            noted(fine, rows, has_y)

        self._readable = Readable(reading, note)
        return self._readable

    def among(self, terms: RecordTerms) -> RecordTerms:
        """Return the readable records' terms with a mark for each record; unchanged where the kind set all marks."""
        return terms.among(np.concatenate(self._fine)) if self._fine else terms


@dataclass(frozen=True, eq=False, repr=False)
class Opened:
    """The records of one call.

    Attributes:
        reading: what is read of each record.
        X, y: rows, and labels or targets; without ``y``, batches of both, or columns by name.
        progress: whether a progress bar shows at once.
        cache: rows that earlier rounds mapped.
        excluded: takes records that cannot be read, in one pass; None: such a record raises RecordError.
    """

    reading: Reading
    X: Any
    y: Any
    progress: bool = False
    cache: RowCache | None = None
    excluded: Excluded | None = None

    @property
    def count(self) -> int | None:
        """Number of records, where a shape or header shows it and all are read."""
        return None if self.y is None or self.excluded is not None else count_of(self.X)

    @property
    def likely_readable(self) -> bool:
        """Whether all are read at once first: no column holds texts, and no record can change the shape."""
        lists = is_list(self.X) or is_list(self.y)
        return self.y is not None and not lists and not isinstance(self.X, ReadRows)

    def ordered(self) -> Self:
        """Return the records with a frame's columns in order, each read once; columns by name as they are."""
        if self.reading.columns:
            return self
        return replace(self, X=ordered_columns(self.X, self.reading.names, gaps=True))

    def over(self, batches: Iterable[tuple[Any, Any]]) -> Self:
        """Return batches that were made of these records, in which every record can be read."""
        return replace(self, X=batches, y=None, excluded=None)

    def pairs(self, noted: Noted = _unnoted) -> Iterator[tuple[Any, Any]]:
        """Yield containers and their labels or targets: all, or readable records where others are excluded.

        Args:
            noted: receives which records are readable.
        """
        if self.excluded is not None:
            yield from self.excluded.readable(self.reading, noted).of(self.X, self.y)
        elif self.y is not None:
            yield self.X, self.y
        else:
            yield from pairs(self.X)

    def tiles(
        self, reading: Reading | None = None, *, grouped: bool = False, sparse_rows: int | None = None
    ) -> Iterator[Tile]:
        """Yield tiles of numeric rows and checked labels or targets, as ``input_validation.tiles``.

        Args:
            reading: how the rows are read; None: these records' own.
            sparse_rows: maximum rows of a sparse tile; None: all rows are dense.
        """
        X, y = (self.X, self.y) if self.excluded is None else (self.pairs(), None)
        thin = sparse_rows if issparse(X) else None
        return tiles(self.reading if reading is None else reading, X, y, grouped=grouped, thin_rows=thin)

    def whole(self) -> Any:
        """Return all rows, which can be read several times; no y is read."""
        if self.excluded is None:
            return self.X
        rows, left_out = readable_rows(self.reading, self.X)
        self.excluded.add(left_out)
        return rows
