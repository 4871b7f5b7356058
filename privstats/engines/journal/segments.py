"""The log of a server's journal in segments, and the mark of the records that have been answered.

Each snapshot begins a segment and names the places (segment, record, tag) of messages still needed, so a message is
written once. The mark counts the live segment's answered records; damage among them is refused.
Later records, up to the first damage, are copied into a new segment at opening and never overwritten, because after a
power cut the mark may be older than the answers.
"""

from __future__ import annotations

import io
import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from privstats import domains
from privstats.engines.records import At, RecordLog, read_record
from privstats.errors import LocalProtocolError
from privstats.system import open_private, sync_folder

_SEGMENT, _MARK = "segment", "mark"
_NAMED = re.compile(rf"{_SEGMENT}\.(\d+)")
_UNSYNCED_BYTES: Final = 64 << 20
_PLACE, _MARKED, _CHECK_BYTES = struct.Struct(">QQQ16s"), struct.Struct(">QQ"), 8


class HighWater:
    """A file of 24 bytes: a segment's number, and its number of records that a peer may hold an answer to."""

    def __init__(self, directory: Path) -> None:
        path = directory / _MARK
        new = not path.exists()
        self._file = io.FileIO(open_private(path, os.O_RDWR | os.O_CREAT), "r+b")
        self._dirty = False
        if new:
            sync_folder(directory)

    def read(self) -> tuple[int, int] | None:
        """Return segment and count; None for an incomplete or damaged file."""
        self._file.seek(0)
        stored = self._file.read(_MARKED.size + _CHECK_BYTES) or b""
        content = stored[: _MARKED.size]
        if len(content) < _MARKED.size or stored[_MARKED.size :] != _check(content):
            return None
        segment, count = _MARKED.unpack(content)
        return segment, count

    def write(self, segment: int, count: int) -> None:
        """Replace the mark; until :meth:`sync`, a power cut can undo it."""
        content = _MARKED.pack(segment, count)
        self._file.seek(0)
        self._file.write(content + _check(content))
        self._dirty = True

    def sync(self) -> None:
        """Wait until the last :meth:`write` is on disk."""
        if self._dirty:
            os.fsync(self._file.fileno())
            self._dirty = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Segments:
    """The records since a snapshot, and those before it that its state names.

    Args:
        live: number of the segment that is appended to.
        closed: segments to read before it, with their record counts.
    """

    def __init__(self, directory: Path, key: bytes, live: int, closed: tuple[tuple[int, int], ...] = ()) -> None:
        self._directory, self._key = directory, key
        self.live, self.closed = live, closed
        self._log, self._water = RecordLog(self.path(live), key), HighWater(directory)
        self._unsynced = 0

    def path(self, number: int) -> Path:
        """Return a segment's file."""
        return self._directory / f"{_SEGMENT}.{number}"

    @property
    def size(self) -> int:
        """Bytes in the live segment."""
        return self._log.size

    def append_many(self, records: Sequence[bytes]) -> list[bytes]:
        """Write a group of records with one wait for the disk, then the mark; return their places."""
        before = self._log.size
        places = self._log.append_many(records)
        self._water.write(self.live, self._log.count)
        self._unsynced += self._log.size - before
        if self._unsynced > _UNSYNCED_BYTES:
            self.sync()
        return [self._packed(self.live, at) for at in places]

    def sync(self) -> None:
        """Wait until the mark is on disk: call it before anything is sent that a peer stores."""
        self._water.sync()
        self._unsynced = 0

    def copy_tail(self) -> bool:
        """Copy records after the mark, if any, to a new segment that a snapshot must name.

        Raises:
            LocalProtocolError: records are missing, or the snapshot is older than the mark.
        """
        known = self._known()
        if known is None:
            return False
        tail = self._log.tail(known)
        self._require_all(self.live, tail.present, known)
        if not tail.size:
            return False
        self.begin(closed=(*self.closed, (self.live, known)) if known else self.closed)
        self._log.append_many(tail.records)
        return True

    def _known(self) -> int | None:
        marked = self._water.read()
        if marked is None:
            return None
        segment, count = marked
        if segment > self.live:
            raise LocalProtocolError(
                f"{self._directory} has a snapshot from before segment {segment}, of which it has answered {count} "
                "records: it was put back from a backup; bring the newest snapshot back"
            )
        return count if segment == self.live else 0

    def begin(self, closed: tuple[tuple[int, int], ...] = ()) -> None:
        """Begin a segment with an unused number; a snapshot must name it."""
        self._log.close()
        number = 1 + max([self.live, *(each for each, _ in files_of(self._directory))])
        self.live, self.closed = number, closed
        self._log = RecordLog(self.path(number), self._key)

    def acknowledge(self) -> None:
        """Mark all records of the live segment on disk; call it after the snapshot that names it."""
        self._water.write(self.live, self._log.count)
        self.sync()

    def located(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield each record in order, with its place; read all before any write."""
        for number, count in self.closed:
            yield from self._closed(number, count)
        for at, record in self._log.located():
            yield self._packed(self.live, at), record

    def _closed(self, number: int, count: int) -> Iterator[tuple[bytes, bytes]]:
        self._require(number)
        log = RecordLog(self.path(number), self._key)
        try:
            self._require_all(number, log.present(count), count)
            for at, record in islice(log.located(), count):
                yield self._packed(number, at), record
        finally:
            log.close()

    def read(self, place: bytes) -> bytes:
        """Return the record at a place from :meth:`append_many` or :meth:`located`."""
        segment, number, offset, tag = _PLACE.unpack(place)
        return read_record(self.path(segment), self._key, At(number, offset, tag))

    def keep(self, needed: Iterable[bytes]) -> None:
        """Keep only replayed segments and those with a needed place, which must exist."""
        numbers = {_PLACE.unpack(place)[0] for place in needed}
        for number in numbers:
            self._require(number)
        numbers |= {self.live, *(number for number, _ in self.closed)}
        for number, path in files_of(self._directory):
            if number not in numbers:
                path.unlink()

    def _require_all(self, number: int, present: int, known: int) -> None:
        if present < known:
            raise LocalProtocolError(
                f"{self.path(number)} ends after {present} of the {known} records that were answered: it was damaged, "
                "or put back from a backup; bring the newest file back"
            )

    def _require(self, number: int) -> None:
        if not self.path(number).exists():
            raise LocalProtocolError(f"{self.path(number)} is missing, and with it what was accepted")

    def close(self) -> None:
        """Close the files."""
        self._log.close()
        self._water.close()

    @staticmethod
    def _packed(segment: int, at: At) -> bytes:
        return _PLACE.pack(segment, at.number, at.offset, at.tag)


def files_of(directory: Path) -> Iterator[tuple[int, Path]]:
    """Yield a directory's segments, with their numbers."""
    for path in sorted(directory.iterdir()):
        if named := _NAMED.fullmatch(path.name):
            yield int(named[1]), path


def remove_all(directory: Path) -> None:
    """Remove all segments and the mark."""
    for _, path in files_of(directory):
        path.unlink()
    (directory / _MARK).unlink(missing_ok=True)


def _check(content: bytes) -> bytes:
    return sha256(domains.JOURNAL_MARK + content).digest()[:_CHECK_BYTES]


@runtime_checkable
class Shelving(Protocol):
    """An aggregator that can leave messages it needs later to a journal."""

    fetch: Callable[[bytes], bytes]
    """The message at a place; an error of it ends the machine in memory, and the journal has what it needs."""

    def shelve(self, places: Mapping[int, bytes]) -> None:
        """Note the journal's places of these clients' messages."""

    @property
    def shelved(self) -> Iterable[bytes]:
        """The places that are still needed."""

    def export_shelved(self, key: bytes) -> bytes:
        """Return the sealed state, with places instead of shelved messages."""
