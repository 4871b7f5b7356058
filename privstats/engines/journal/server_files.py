"""The files of a server's journal: the snapshot of its sealed state, the log of later events, and their counter.

A newer snapshot comes with a log of its own; the rename of the snapshot decides which of the two is the journal. The
seed of the release's noise has a file of its own that is written once, because the former content of a replaced file
cannot be overwritten. This module is independent of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from privstats.engines.journal.base import remove_logs
from privstats.engines.journal.rollback import Counter, Mark, require_counted
from privstats.engines.records import RecordLog, overwrite, read_sealed, write_sealed
from privstats.errors import LocalProtocolError
from privstats.randomness import SEED_BYTES
from privstats.secagg.wire import HiddenRepr

__all__ = [
    "ABANDONED",
    "END_STEP",
    "HANDED_OUT",
    "RELEASED",
    "RELEASED_BY_SEED",
    "SETTLED",
    "SNAPSHOT",
    "ServerFiles",
    "Snapshot",
]

END_STEP, HANDED_OUT, RELEASED_BY_SEED, ABANDONED, RELEASED, SETTLED = -1, -2, -3, -4, -5, -6
"""Codes of decisions, in place of a sender, for records that are not messages; only decisions are counted."""

SNAPSHOT = "snapshot"
_SEED = "seed"
_SENDER_BYTES = 4
_LEAST_LIMIT = 1 << 20


class Snapshot(HiddenRepr, msgspec.Struct, frozen=True):
    """A server's sealed state, the seed of the release's noise, and the number of the log that continues it.

    ``mark`` identifies this copy.
    """

    generation: int
    seed: bytes
    state: bytes
    mark: Mark = Mark()

    @classmethod
    def read(cls, directory: Path, key: bytes) -> Snapshot:
        """Read the snapshot in a directory.

        Raises:
            NothingToResumeError: there is no snapshot.
            LocalProtocolError: another key, or damage, or the seed is missing; or no release wrote it.
        """
        kept = msgspec.msgpack.decode(read_sealed(directory / SNAPSHOT, key), type=cls)
        require_counted(kept.mark, directory)
        if not (directory / _SEED).exists():
            raise LocalProtocolError(f"{directory / _SEED} is missing, and with it the noise of the release")
        return msgspec.structs.replace(kept, seed=read_sealed(directory / _SEED, key))

    def write(self, directory: Path, key: bytes) -> int:
        """Replace the snapshot and return the size of the sealed content."""
        seedless = msgspec.msgpack.encode(msgspec.structs.replace(self, seed=b""))
        write_sealed(directory / SNAPSHOT, key, seedless)
        return len(seedless)


class ServerFiles:
    """Snapshot and log of one session in a directory of their own; every write is on disk when its call returns.

    Made with :meth:`new` or :meth:`found`, and used under the directory's lock.

    The counter counts snapshots and decisions, not single messages: a log that was restored within a step lacks
    answers as if they had not arrived, and their clients repeat them.
    """

    def __init__(
        self, directory: Path, key: bytes, counter: Counter, *, seed: bytes, generation: int, mark: Mark, largest: int
    ) -> None:
        self._directory, self._key, self._counter = directory, key, counter
        self.seed, self._generation, self._mark = seed, generation, mark
        self._log = RecordLog(directory / f"log.{generation}", key)
        self._limit = self._least_limit = 4 * largest + _LEAST_LIMIT

    @classmethod
    def new(cls, directory: Path, key: bytes, counter: Counter, largest: int) -> ServerFiles:
        """The files of a new session, with a fresh seed; there is no journal before :meth:`replace` is called.

        Args:
            directory: the directory of the files.
            key: 32 bytes under which they are sealed.
            counter: their counter, outside of the directory.
            largest: the bytes of the session's largest message.
        """
        remove_logs(directory, keep=None)
        seed = os.urandom(SEED_BYTES)
        write_sealed(directory / _SEED, key, seed)  # before any snapshot
        return cls(directory, key, counter, seed=seed, generation=0, mark=Mark(), largest=largest)

    @classmethod
    def found(cls, directory: Path, key: bytes, counter: Counter, largest: int, snapshot: Snapshot) -> ServerFiles:
        """The files of the session of ``snapshot``; stale logs that a kill has left are removed.

        Raises:
            LocalProtocolError: the log is missing.
        """
        generation = snapshot.generation
        log = directory / f"log.{generation}"
        if not log.exists():
            raise LocalProtocolError(f"{log} is missing, and with it what was accepted")
        files = cls(
            directory, key, counter, seed=snapshot.seed, generation=generation, mark=snapshot.mark, largest=largest
        )
        remove_logs(directory, keep=generation)
        return files

    @property
    def is_full(self) -> bool:
        """Whether the log is so long that a newer snapshot would be shorter."""
        return self._log.size > self._limit

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Sender and message of each record since the snapshot; read all before any write."""
        for record in self._log.records():
            sender = int.from_bytes(record[:_SENDER_BYTES], "big", signed=True)
            if sender < 0:
                self._mark = self._mark.next
            yield sender, record[_SENDER_BYTES:]

    def require_newest(self) -> None:
        """Refuse a journal that was restored or copied; raises as :meth:`Counter.require_newest`."""
        self._counter.require_newest(self._mark, self._directory, "server", "it was written")

    def append(self, sender: int, data: bytes = b"") -> None:
        """Append one message or one decision to the log."""
        self.append_many([(sender, data)])
        if sender < 0:
            self._mark = self._mark.next
            self._counter.keep(self._mark.count)

    def append_many(self, messages: Sequence[tuple[int, bytes]]) -> None:
        """Append a group of messages to the log, with one wait for the disk."""
        self._log.append_many([sender.to_bytes(_SENDER_BYTES, "big", signed=True) + data for sender, data in messages])

    def replace(self, state: bytes) -> None:
        """Replace snapshot and log by a newer snapshot, so that every existing copy becomes an older one."""
        old, self._generation = self._log, self._generation + 1
        (self._directory / f"log.{self._generation}").unlink(missing_ok=True)
        self._log = RecordLog(self._directory / f"log.{self._generation}", self._key)
        self._mark = self._counter.after(self._mark)
        size = Snapshot(self._generation, self.seed, state, self._mark).write(self._directory, self._key)
        self._counter.keep(self._mark.count)
        self._limit = max(self._least_limit, size)  # so that a message is written only a few times
        old.remove()

    def destroy(self) -> None:
        """Overwrite seed and state, and remove all files; any copy that is restored later counts as older.

        A reader of the seed could remove the noise from the release.
        """
        for name in (_SEED, SNAPSHOT):
            overwrite(self._directory / name)
        for name in (SNAPSHOT, _SEED):
            (self._directory / name).unlink(missing_ok=True)
        remove_logs(self._directory, keep=None)
        self._counter.keep(self._counter.after(self._mark).count)

    def close(self) -> None:
        """Close the log."""
        self._log.close()
