"""The files of a server's journal: the snapshot of its sealed state, the log of later events, and their counter.

The noise seed's file is written once, because a replaced file's former content cannot be overwritten.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from privstats.engines.journal.rollback import Counter, Mark, require_counted
from privstats.engines.journal.segments import Segments, remove_all
from privstats.engines.records import overwrite, read_sealed, write_sealed
from privstats.errors import LocalProtocolError
from privstats.files.decoding import from_msgpack
from privstats.randomness import SEED_BYTES
from privstats.secagg.wire import HiddenRepr

END_STEP, HANDED_OUT, RELEASED_BY_SEED, ABANDONED, RELEASED, SETTLED = -1, -2, -3, -4, -5, -6
"""Codes of decisions, in place of a sender, for records that are not messages; unlike those, decisions are counted."""

SNAPSHOT = "snapshot"
_SEED = "seed"
_SENDER_BYTES = 4
_LEAST_LIMIT = 1 << 20
_GROUP, _GROUP_BYTES = 256, 8 << 20
_SNAPSHOT_SHARE = 10
"""A snapshot is written after ten times its bytes, so that snapshots are a tenth of all bytes written."""


class Snapshot(HiddenRepr, msgspec.Struct, frozen=True, omit_defaults=True):
    """A server's sealed state, the release's noise seed, and the number of the segment that continues it.

    ``mark`` identifies this copy. ``closed`` lists earlier segments, with record counts. ``segmented`` is always True:
    versions before segments refuse such a snapshot. ``known_noise`` lists clients with noise that others may know.
    """

    generation: int
    seed: bytes
    state: bytes
    mark: Mark = Mark()
    closed: tuple[tuple[int, int], ...] = ()
    segmented: bool = False
    known_noise: tuple[int, ...] = ()

    @classmethod
    def read(cls, directory: Path, key: bytes) -> Snapshot:
        """Read the snapshot in a directory.

        Raises as :func:`~privstats.engines.records.read_sealed`, also without a seed.
        """
        snapshot = from_msgpack(read_sealed(directory / SNAPSHOT, key), cls)
        require_counted(snapshot.mark, directory)
        if not (directory / _SEED).exists():
            raise LocalProtocolError(f"{directory / _SEED} is missing, and with it the noise of the release")
        return msgspec.structs.replace(snapshot, seed=read_sealed(directory / _SEED, key))

    def write(self, directory: Path, key: bytes) -> int:
        """Replace the snapshot and return its unsealed size in bytes."""
        seedless = msgspec.msgpack.encode(msgspec.structs.replace(self, seed=b""))
        write_sealed(directory / SNAPSHOT, key, seedless)
        return len(seedless)


class ServerFiles:
    """Snapshot and log of one session in a directory of their own; records are on disk when a call returns.

    Used under the directory's lock. The counter counts snapshots and decisions, not messages: a log restored within a
    step only lacks answers, which their clients repeat.
    """

    def __init__(
        self,
        directory: Path,
        key: bytes,
        counter: Counter,
        segments: Segments,
        *,
        seed: bytes,
        mark: Mark,
        largest: int,
    ) -> None:
        self._directory, self._key, self._counter, self._segments = directory, key, counter, segments
        self.seed, self._mark = seed, mark
        self.known_noise: tuple[int, ...] = ()  # the clients whose noise others may know, for the next snapshot
        self._limit = self._least_limit = 4 * largest + _LEAST_LIMIT

    @classmethod
    def new(cls, directory: Path, key: bytes, counter: Counter, largest: int) -> ServerFiles:
        """Return a new session's files with a fresh seed; the journal begins with :meth:`replace`.

        ``largest`` is the size of the session's largest message, in bytes.
        """
        remove_all(directory)
        seed = os.urandom(SEED_BYTES)
        write_sealed(directory / _SEED, key, seed)  # before any snapshot
        return cls(directory, key, counter, Segments(directory, key, 0), seed=seed, mark=Mark(), largest=largest)

    @classmethod
    def recovered(cls, directory: Path, key: bytes, counter: Counter, largest: int, snapshot: Snapshot) -> ServerFiles:
        """Return the files of a snapshot's session, once all that they show is on disk.

        Raises:
            LocalProtocolError: the log is missing, or lacks answered records.
        """
        log = directory / f"segment.{snapshot.generation}"
        if not log.exists():
            raise LocalProtocolError(f"{log} is missing, and with it what was accepted")
        segments = Segments(directory, key, snapshot.generation, snapshot.closed)
        if segments.copy_tail():
            named = {"generation": segments.live, "closed": segments.closed}
            msgspec.structs.replace(snapshot, **named).write(directory, key)
            segments.acknowledge()
        files = cls(directory, key, counter, segments, seed=snapshot.seed, mark=snapshot.mark, largest=largest)
        files.known_noise = snapshot.known_noise
        files._limit_by((directory / SNAPSHOT).stat().st_size)
        return files

    def _limit_by(self, size: int) -> None:
        self._limit = max(self._least_limit, _SNAPSHOT_SHARE * size)

    @property
    def is_full(self) -> bool:
        """Whether a new snapshot would be much shorter than the log."""
        return self._segments.size > self._limit

    def records(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Yield each later record's place, sender and message; read all before any write."""
        for place, record in self._segments.located():
            sender = int.from_bytes(record[:_SENDER_BYTES], "big", signed=True)
            if sender < 0:
                self._mark = self._mark.next
            yield place, sender, record[_SENDER_BYTES:]

    def read(self, place: bytes) -> bytes:
        """Return the message at a place."""
        return self._segments.read(place)[_SENDER_BYTES:]

    def keep(self, needed: Iterable[bytes]) -> None:
        """Remove unneeded segments."""
        self._segments.keep(needed)

    def require_newest(self) -> None:
        """See :meth:`Counter.require_newest`."""
        self._counter.require_newest(self._mark, self._directory, "server", "it was written")

    def append(self, decision: int, data: bytes = b"") -> None:
        """Append one decision to the log, marked and counted."""
        self.append_many([(decision, data)])
        self.sync()
        self._mark = self._mark.next
        self._counter.keep(self._mark.count)

    def append_many(self, messages: Sequence[tuple[int, bytes]]) -> list[bytes]:
        """Append a group of messages with one wait for the disk; return their places."""
        return self._segments.append_many(
            [sender.to_bytes(_SENDER_BYTES, "big", signed=True) + data for sender, data in messages]
        )

    def sync(self) -> None:
        """Wait until the mark of answered records is on disk."""
        self._segments.sync()

    def replace(self, state: bytes, needed: Iterable[bytes]) -> None:
        """Replace snapshot and log, so that every existing copy becomes an older one."""
        self._segments.begin()
        self._mark = self._counter.after(self._mark)
        snapshot = Snapshot(
            self._segments.live, self.seed, state, self._mark, segmented=True, known_noise=self.known_noise
        )
        size = snapshot.write(self._directory, self._key)
        self._segments.acknowledge()
        self._counter.keep(self._mark.count)
        self._limit_by(size)
        self.keep(needed)

    def destroy(self) -> None:
        """Overwrite seed and state, and remove all files; any copy restored later counts as older.

        A reader of the seed could remove the noise from the release.
        """
        count = self._counter.after(self._mark).count
        for name in (_SEED, SNAPSHOT):
            overwrite(self._directory / name)
        for name in (SNAPSHOT, _SEED):
            (self._directory / name).unlink(missing_ok=True)
        remove_all(self._directory)
        self._counter.keep(count)

    def close(self) -> None:
        """Close the log."""
        self._segments.close()


def groups(items: Sequence[tuple[int, bytes | bytearray | memoryview]]) -> Iterator[list[tuple[int, bytes]]]:
    """Yield the items in groups short enough to write at once."""
    group: list[tuple[int, bytes]] = []
    size = 0
    for sender, data in items:
        group.append((sender, bytes(data)))
        size += len(data)
        if len(group) == _GROUP or size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
