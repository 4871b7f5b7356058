"""Machines that survive being killed: every accepted message is on disk, sealed, before anything leaves the process.

A server resumes between any two messages and ends in the same sum; a client resumes until its unmask message and never
after. Wraps the machines of ``secagg``; moves no bytes itself. POSIX only, one process per directory.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from privstats.encoding import RingVector
from privstats.engines.records import RecordLog, read_sealed, write_sealed
from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.secagg import Client, Identity, Parameters, Roster, Server
from privstats.secagg.server import Outbox
from privstats.secagg.steps import ENDS, StepName

__all__ = ["JournaledClient", "JournaledServer"]

_END_STEP = -1


class _Snapshot(msgspec.Struct, frozen=True):
    """A server's sealed state, the messages that opened its step, and the log that goes on from here."""

    generation: int
    state: bytes
    outbox: list[tuple[int, bytes]]


class JournaledServer:
    """A :class:`~privstats.secagg.Server` that can be killed at any moment.

    Use :meth:`create` once, :meth:`resume` after a crash; then send :attr:`outbox` again to the clients in
    ``waiting_for``: they answer as if for the first time, or repeat their answer, which is refused as not expected.

    Args:
        directory: a directory of its own; what is in it is sealed under ``key``.
        key: 32 bytes.
        server: the machine.
    """

    def __init__(self, directory: Path, key: bytes, server: Server, *, outbox: Outbox, generation: int) -> None:
        self._directory, self._key, self._server = directory, key, server
        self._lock = _lock(directory)
        self._generation = generation
        self._log = RecordLog(directory / f"log.{generation}", key)
        self._log_limit = 4 * server.parameters.ring.wire_bytes + (1 << 20)
        self.outbox = outbox

    @classmethod
    def create(cls, directory: Path, key: bytes, server: Server) -> JournaledServer:
        """Start ``server`` and journal it; :attr:`outbox` holds the opening messages.

        Raises:
            LocalProtocolError: the directory already holds a session: resume it, or discard it.
        """
        directory.mkdir(parents=True, exist_ok=True)
        if (directory / "snapshot").exists():
            raise LocalProtocolError(f"{directory} already holds a session: resume it, or remove it")
        _remove_logs(directory, keep=None)
        journaled = cls(directory, key, server, outbox=server.start(), generation=0)
        journaled._compact()
        return journaled

    @classmethod
    def resume(
        cls,
        directory: Path,
        key: bytes,
        *,
        parameters: Parameters,
        roster: Roster,
        identity: Identity,
        threads: int = 1,
    ) -> JournaledServer:
        """The server as it stood after the last message that it accepted.

        Raises:
            LocalProtocolError: another key, plan or roster, a damaged snapshot, or another process is at it.
        """
        snapshot = msgspec.msgpack.decode(read_sealed(directory / "snapshot", key), type=_Snapshot)
        server = Server.resume(
            snapshot.state, key, parameters=parameters, roster=roster, identity=identity, threads=threads
        )
        journaled = cls(directory, key, server, outbox=snapshot.outbox, generation=snapshot.generation)
        _remove_logs(directory, keep=snapshot.generation)
        for sender, message in journaled._replayed():
            following = server.end_step() if sender == _END_STEP else server.receive(sender, message)
            journaled.outbox = following or journaled.outbox
        return journaled

    def _replayed(self) -> Iterator[tuple[int, bytes]]:
        for record in self._log.records():
            yield int.from_bytes(record[:4], "big", signed=True), record[4:]

    @property
    def step(self) -> StepName:
        """See :attr:`Server.step <privstats.secagg.Server.step>`."""
        return self._server.step

    @property
    def waiting_for(self) -> frozenset[int]:
        """The clients whose answer to this step has not arrived."""
        return self._server.waiting_for

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """See :attr:`Server.result <privstats.secagg.Server.result>`."""
        return self._server.result

    def receive(self, sender: int, data: bytes) -> Outbox:
        """As the server's; what it returns may be sent, because it is already on disk."""
        return self._settle(sender, data, self._server.receive(sender, data))

    def end_step(self) -> Outbox:
        """As the server's."""
        return self._settle(_END_STEP, b"", self._server.end_step())

    def _settle(self, sender: int, data: bytes, following: Outbox) -> Outbox:
        self._log.append(sender.to_bytes(4, "big", signed=True) + data)
        self.outbox = following or self.outbox
        if self._server.step not in ENDS and (following or self._log.size > self._log_limit):
            self._compact()
        return following

    def _compact(self) -> None:
        """Replace snapshot and log by a newer snapshot; the rename decides which of the two is the journal."""
        old = self._log
        self._generation += 1
        (self._directory / f"log.{self._generation}").unlink(missing_ok=True)
        self._log = RecordLog(self._directory / f"log.{self._generation}", self._key)
        snapshot = _Snapshot(self._generation, self._server.export(self._key), self.outbox)
        write_sealed(self._directory / "snapshot", self._key, msgspec.msgpack.encode(snapshot))
        old.remove()

    def discard(self) -> None:
        """Remove the journal: the result has been taken, or the session given up."""
        (self._directory / "snapshot").unlink(missing_ok=True)
        self._log.close()
        _remove_logs(self._directory, keep=None)
        os.close(self._lock)

    def close(self) -> None:
        """Let another process resume."""
        self._log.close()
        os.close(self._lock)

    def __enter__(self) -> JournaledServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Saved(msgspec.Struct, frozen=True):
    """A client's sealed state and the answer that may not have arrived; without a state, the client has ended."""

    state: bytes
    answer: bytes


class JournaledClient:
    """A :class:`~privstats.secagg.Client` that can be killed at any moment before its unmask message.

    Its state is on disk before an answer leaves, and gone from disk before the unmask message leaves: a client killed
    in between counts as vanished, which the protocol allows for, and can never be made to unmask twice.

    Args:
        path: one file, sealed under ``key``.
        key: 32 bytes.
        client: the machine.
    """

    def __init__(self, path: Path, key: bytes, client: Client, *, lock: int, answer: bytes = b"") -> None:
        self._path, self._key, self._client = path, key, client
        self._lock = lock
        self.answer = answer

    @classmethod
    def create(cls, path: Path, key: bytes, client: Client) -> JournaledClient:
        """Journal a fresh client.

        Raises:
            LocalProtocolError: the file exists: one journal serves one session.
        """
        lock = _client_lock(path)
        if path.exists():
            os.close(lock)
            raise LocalProtocolError(f"{path} already holds a client: resume it, or remove it")
        journaled = cls(path, key, client, lock=lock)
        journaled._save()
        return journaled

    @classmethod
    def resume(
        cls, path: Path, key: bytes, *, parameters: Parameters, index: int, identity: Identity, roster: Roster
    ) -> JournaledClient:
        """The client as it stood after its last answer, which is in ``answer`` to be sent again.

        Raises:
            LocalProtocolError: the client has ended, or another process still runs it and could sign another list; or
                another key, plan or place, or damage.
        """
        lock = _client_lock(path)
        try:
            saved = msgspec.msgpack.decode(read_sealed(path, key), type=_Saved)
            if not saved.state:
                raise LocalProtocolError("this client has ended and must not come back: it may have sent its shares")
            client = Client.resume(
                saved.state, key, parameters=parameters, index=index, identity=identity, roster=roster
            )
        except LocalProtocolError:
            os.close(lock)
            raise
        return cls(path, key, client, lock=lock, answer=saved.answer)

    def close(self) -> None:
        """Let another process resume."""
        os.close(self._lock)

    def __enter__(self) -> JournaledClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def step(self) -> StepName:
        """See :attr:`Client.step <privstats.secagg.Client.step>`."""
        return self._client.step

    def receive(self, data: bytes) -> list[tuple[str, bytes]]:
        """As the client's; what it returns may be sent, because what must be on disk is, and what must not is gone."""
        try:
            answers = self._client.receive(data)
        except RemoteProtocolError:
            if self._client.step in ENDS:
                self._save()
            raise
        self.answer = answers[0][1] if answers else b""  # nothing to an abort
        self._save()
        return answers

    def _save(self) -> None:
        ended = self._client.step in ENDS
        saved = _Saved(b"", b"") if ended else _Saved(self._client.export(self._key), self.answer)
        write_sealed(self._path, self._key, msgspec.msgpack.encode(saved))


def _lock(place: Path, flags: int = os.O_RDONLY) -> int:
    """Hold a directory or file for this process; the system lets go when the process dies, however it dies."""
    handle = os.open(place, flags, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise LocalProtocolError(f"{place} is in use by another process: let it end first") from None
    return handle


def _client_lock(path: Path) -> int:
    """A file beside the journal, because the journal itself is replaced at every save."""
    return _lock(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT)


def _remove_logs(directory: Path, keep: int | None) -> None:
    """Remove logs that a process left when it died between a snapshot and the removal of the log before it."""
    for stale in set(directory.glob("log.*")) - {directory / f"log.{keep}"}:
        stale.unlink()
