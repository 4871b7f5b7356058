"""A crash-safe server: it resumes between any two messages and ends in the same sum."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from privstats.engines.journal.base import (
    ServerPlace,
    created_directory,
    held,
    path_of,
    require_aggregator,
    require_callable,
)
from privstats.engines.journal.expiry import look
from privstats.engines.journal.part_sums import PartSums
from privstats.engines.journal.rollback import Counter, server_outside
from privstats.engines.journal.segments import Shelving
from privstats.engines.journal.server_files import ABANDONED, END_STEP, SNAPSHOT, ServerFiles, Snapshot, groups
from privstats.engines.journal.server_view import SessionOutputs
from privstats.engines.records import check_key, overwrite, read_sealed
from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError
from privstats.secagg import Identity, Roster
from privstats.secagg.exclusive import exclusive
from privstats.secagg.machines import ENDS, Aggregator, Masking, Outbox, StepStatus
from privstats.secagg.wire import require_sender, view_of

_COUNT = "server"


class JournaledServer(PartSums):
    """A :class:`~privstats.secagg.Server` that can be killed at any moment and resumed.

    After an interruption send :attr:`outbox` again to the clients in :attr:`waiting_for`.

    Guarantee: the noise that :meth:`release` adds is derived from the sum and from 32 bytes drawn when the journal is
    made. All calls return one release, before and after a crash, so repeated draws cannot average the noise away. A
    copy of the journal that ends in another sum has other noise. A party with key and directory can read the sum, as a
    server can.

    Example:
        >>> from privstats.engines import loopback
        >>> from privstats.engines.journal import JournaledServer
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> parties = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.1, 0.2]], [0])] * 2)
        >>> server = JournaledServer.create("session", os.urandom(32), parties.server)
        >>> loopback.run(server, parties.clients).survivors, server.step
        ((0, 1), 'done')
    """

    def __init__(self, directory: Path, key: bytes, server: Aggregator, files: ServerFiles, *, lock: int) -> None:
        super().__init__(lock, directory)
        self._directory, self._key, self._server, self._files = directory, key, server, files
        self._outputs = SessionOutputs(server, files)
        self._accepted, self._stood = 0, server.step
        if isinstance(server, Shelving):
            server.fetch = self._fetched

    @classmethod
    def create(cls, path: str | os.PathLike[str], key: bytes, server: Aggregator) -> JournaledServer:
        """Start ``server`` and journal it; :attr:`outbox` holds the opening messages.

        Args:
            key: 32 bytes.
            server: a fresh machine, which only the journal may use from now on.

        Raises:
            LocalProtocolError: the directory holds a session, or is in use.
        """
        require_aggregator(server)
        directory = created_directory(path)
        check_key(key)
        with held(directory) as lock:
            if (directory / SNAPSHOT).exists():
                raise LocalProtocolError(f"{directory} already holds a session: resume it, or remove it")
            return cls._created(directory, key, server, lock, _counter(directory, server.parameters, server.roster))

    @staticmethod
    def remove(path: str | os.PathLike[str]) -> None:
        """Overwrite and remove the journal of a dead process, after its session's end; nothing without one."""
        directory = Path(path)
        if directory.exists():
            for file in filter(Path.is_file, directory.iterdir()):
                overwrite(file)
                file.unlink()

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        key: bytes,
        *,
        parameters: Masking,
        roster: Roster,
        identity: Identity,
        threads: int = 1,
        restored: bool = False,
    ) -> JournaledServer:
        """Return the server after its last accepted message, also if the session has ended.

        ``restored=True`` confirms that no other copy continued since: two copies may end in two sums, which differ by a
        few clients.

        Raises:
            NothingToResumeError: there is no journal.
            RestoredError: it was restored or copied, and may not be the only copy.
            LocalProtocolError: bad input, damage, or in use.
        """
        directory, place = path_of(path), ServerPlace(parameters, roster, identity, threads)
        check_key(key)
        if not directory.exists():
            read_sealed(directory / SNAPSHOT, key)
        with held(directory) as lock:
            counter = _counter(directory, parameters, roster)
            return cls._resumed(directory, key, place, lock, counter, restored)

    @classmethod
    def resume_or_create(
        cls,
        path: str | os.PathLike[str],
        key: bytes,
        make: Callable[[], Aggregator],
        *,
        parameters: Masking,
        roster: Roster,
        identity: Identity,
        threads: int = 1,
        restored: bool = False,
    ) -> JournaledServer:
        """Return the server in the journal, or a new one; for a restarted process.

        ``make`` is called only without a journal, under the lock. Raises as :meth:`resume`.
        """
        check_key(key)
        require_callable("make", make)
        place = ServerPlace(parameters, roster, identity, threads)
        directory = created_directory(path)
        counter = _counter(directory, parameters, roster)
        return cls.opened(directory, key, make, place, counter, restored=restored)

    @classmethod
    def opened(
        cls,
        directory: Path,
        key: bytes,
        make: Callable[[], Aggregator],
        place: ServerPlace,
        counter: Counter,
        *,
        restored: bool,
    ) -> JournaledServer:
        """Resume or create with the caller's counter."""
        with held(directory) as lock:
            if (directory / SNAPSHOT).exists():
                return cls._resumed(directory, key, place, lock, counter, restored)
            server = require_aggregator(make())
            if server.parameters != place.parameters:
                raise LocalProtocolError("make gave a server of another plan than the one to be resumed")
            return cls._created(directory, key, server, lock, counter)

    @classmethod
    def _created(cls, directory: Path, key: bytes, server: Aggregator, lock: int, counter: Counter) -> JournaledServer:
        server.start()
        files = ServerFiles.new(directory, key, counter, server.parameters.upload_bytes)
        journaled = cls(directory, key, server, files, lock=lock)
        with journaled._acting():
            journaled._compact()
        return journaled

    @classmethod
    def _resumed(
        cls, directory: Path, key: bytes, place: ServerPlace, lock: int, counter: Counter, restored: bool
    ) -> JournaledServer:
        snapshot = Snapshot.read(directory, key)
        server = place.resumed(snapshot.state, key)
        files = ServerFiles.recovered(directory, key, counter, place.parameters.upload_bytes, snapshot)
        journaled = cls(directory, key, server, files, lock=lock)
        try:
            with journaled._acting():
                files.keep(journaled._shelved)  # by the snapshot on disk: the replay will need them once more
                journaled._replay()
                if restored:
                    journaled._compact()
                else:
                    files.require_newest()
        except BaseException:
            files.close()
            raise
        if journaled.waiting_for and journaled.expired:
            journaled.abandon()  # the missing members can no longer answer
        return journaled

    @property
    def expired(self) -> bool:
        """Whether a box key of the panel has expired, confirmed by a second look at the clock a day later."""
        return self.panel is not None and look(self.panel.until, self._directory) == "passed"

    @exclusive
    def mark_known_noise(self, clients: Iterable[int]) -> None:
        """Mark clients, by roster index, with noise that others may know.

        A release of their sum is then ``reproducible``.

        A one-process engine calls it before the first step; a network server cannot see clients' generators.
        """
        with self._acting():
            known = tuple(sorted({*self._files.known_noise, *clients}))
            if known == self._files.known_noise:
                return
            if self._server.step in ENDS:
                raise LocalProtocolError("the session has ended, and its release may be out: mark clients before that")
            self._files.known_noise = known
            self._compact()

    def _replay(self) -> None:
        for place, sender, message in self._files.records():
            if sender == END_STEP:
                with suppress(AggregationError):  # the replay ends in the same abort
                    self._server.end_step()
            elif sender == ABANDONED:
                self._server.abandon(message.decode())
            elif sender < 0:
                self._outputs.repeat(sender)
            else:
                self._server.receive(sender, message)
                self._shelve({sender: place})

    def _shelve(self, places: dict[int, bytes]) -> None:
        if isinstance(self._server, Shelving):
            self._server.shelve(places)

    @property
    def _shelved(self) -> Iterable[bytes]:
        return self._server.shelved if isinstance(self._server, Shelving) else ()

    def _fetched(self, place: bytes) -> bytes:
        try:
            return self._files.read(place)
        except LocalProtocolError:
            self._give_up("has lost a message that it had answered, so nothing was sent: bring that file back")
            raise

    @property
    def outbox(self) -> Outbox:
        """The messages that opened this step, readable once its start is on disk."""
        return self._guarded(self._server.outbox)

    def _guarded(self, outbox: Outbox) -> Outbox:
        return Outbox(outbox.clients, partial(self._leaving, outbox))

    def _leaving(self, outbox: Outbox, client: int) -> bytes:
        with self._alone(), self._acting():
            self._files.sync()
            return outbox.to(client)

    @exclusive
    def start(self) -> Outbox:
        """Return the messages that opened this step."""
        with self._acting():
            return self.outbox

    @exclusive
    def receive(self, sender: int, data: bytes | bytearray | memoryview) -> Outbox:
        """Process a message; it is on disk when this returns."""
        with self._acting():
            accepted = self._server.accepted
            following = self._server.receive(sender, data)
            if self._server.accepted != accepted:  # a repeat changes nothing
                self._write([(sender, bytes(data))])
            return following

    @exclusive
    def receive_many(
        self, items: Sequence[tuple[int, bytes | bytearray | memoryview]]
    ) -> list[RemoteProtocolError | None]:
        """Receive a group of messages with one wait for the disk; all accepted ones are then on disk.

        Send no answer earlier, because a refusal may depend on another message of the group.

        Returns:
            Per item: None if accepted, now or before, else its refusal.

        Raises:
            LocalProtocolError: wrong types, and nothing was received; or the write failed: answer none of the group.
        """
        for sender, data in items:
            require_sender(sender)
            view_of(data)
        with self._acting(RemoteProtocolError):
            refusals: list[RemoteProtocolError | None] = []
            for group in groups(items):
                refusals += self._received(group)
            return refusals

    def _received(self, group: list[tuple[int, bytes]]) -> list[RemoteProtocolError | None]:
        refusals: list[RemoteProtocolError | None] = []
        recent: list[tuple[int, bytes]] = []
        for sender, data in group:
            accepted, refusal = self._server.accepted, self._refusal(sender, data)
            if refusal is not None and refusal.code == "busy" and recent:  # messages on disk are no longer in memory
                self._write(recent)
                recent, refusal = [], self._refusal(sender, data)
            refusals.append(refusal)
            if self._server.accepted != accepted:  # a repeat changes nothing
                recent.append((sender, data))
        if recent:
            self._write(recent)
        return refusals

    def _refusal(self, sender: int, data: bytes) -> RemoteProtocolError | None:
        try:
            self._server.receive(sender, data)
        except RemoteProtocolError as refusal:
            return refusal
        return None

    @exclusive
    def step_status(self) -> StepStatus:
        """Return the server's step status."""
        with self._acting():
            return self._server.step_status()

    @exclusive
    def end_step(self) -> Outbox:
        """End the step or abort the session; on disk when this returns."""
        with self._acting():
            try:
                following = self._server.end_step()
            except AggregationError:
                self._files.append(END_STEP)
                raise
            if self._server.step in ENDS:
                self._files.append(END_STEP)
            else:
                self._compact()
            return self._guarded(following)

    @exclusive
    def abandon(self, code: str = "abandoned") -> Outbox:
        """Abandon the session with a code of ``messages.ABORTS``; on disk when this returns, so it cannot resume."""
        with self._acting():
            running = self._server.step not in ENDS
            following = self._server.abandon(code)
            if running:
                self._files.append(ABANDONED, code.encode())
            return self._guarded(following)

    @exclusive
    def export(self, key: bytes) -> bytes:
        """Return the server's sealed state."""
        with self._acting():
            return self._server.export(key)

    def _write(self, messages: list[tuple[int, bytes]]) -> None:
        places = self._files.append_many(messages)
        self._accepted += len(messages)
        self._shelve({sender: place for (sender, _), place in zip(messages, places, strict=True)})
        if self._files.is_full and self._server.step not in ENDS:
            self._compact()

    def _compact(self) -> None:
        server, key = self._server, self._key
        state = server.export_shelved(key) if isinstance(server, Shelving) else server.export(key)
        self._files.replace(state, self._shelved)

    @exclusive
    def discard(self) -> None:
        """Remove the journal, after the release is saved or the session abandoned.

        The noise seed is overwritten first; file systems and disks may retain old blocks.
        """
        if self._lock < 0:
            raise LocalProtocolError(f"the journal {self._path} {self._gone}")
        self._files.destroy()
        self._let_go()

    def _let_go(self) -> None:
        self._files.close()
        super()._let_go()


def _counter(directory: Path, parameters: Masking, roster: Roster) -> Counter:
    return Counter.of(directory, _COUNT, outside=server_outside(parameters, roster))
