"""A crash-safe server: it can be killed at any moment, resumes between any two messages and ends in the same sum.

Its messages and decisions are on disk, in ``server_files``, before it sends anything. Wraps the machine of ``secagg``;
sends no bytes itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from privstats.encoding import RingVector
from privstats.engines.journal.base import (
    JournalBase,
    ServerPlace,
    held,
    made_directory,
    path_of,
    require_aggregator,
    require_callable,
)
from privstats.engines.journal.rollback import Counter, server_outside
from privstats.engines.journal.server_files import ABANDONED, END_STEP, SNAPSHOT, ServerFiles, Snapshot
from privstats.engines.journal.session_outputs import SessionOutputs
from privstats.engines.records import check_key, read_sealed
from privstats.errors import AggregationError, LocalProtocolError, PrivstatsError, RemoteProtocolError
from privstats.plan import Plan
from privstats.release import Release
from privstats.secagg import Identity, Panel, Roster
from privstats.secagg.exclusive import exclusive
from privstats.secagg.machines import ENDS, Aggregator, Masking, Outbox, StepStatus
from privstats.secagg.wire import require_sender, view_of
from privstats.session.accounting import Charging

__all__ = ["JournaledServer"]

_COUNT = "server"
_GROUP, _GROUP_BYTES = 256, 8 << 20


class JournaledServer(JournalBase):
    """A :class:`~privstats.secagg.Server` that can be killed at any moment and resumed.

    Made with :meth:`create`, :meth:`resume` or :meth:`resume_or_create`; after an interruption send :attr:`outbox`
    again to the clients in :attr:`waiting_for`: they answer for the first time, or repeat their answer.

    Guarantee: the noise that :meth:`release` adds to a sum is derived from 32 bytes that are drawn when the journal is
    made and from the sum itself, so all calls return one release, before and after a crash; the noise cannot be drawn
    repeatedly and averaged away, and a copy of the journal that ends in another sum has other noise. A party with the
    key and the directory can read the sum, as a server can.

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

    @classmethod
    def create(cls, path: str | os.PathLike[str], key: bytes, server: Aggregator) -> JournaledServer:
        """Start ``server`` and journal it; :attr:`outbox` holds the opening messages.

        Args:
            path: a directory of its own, created if it does not exist; its contents are sealed under ``key``.
            key: 32 bytes.
            server: a fresh machine, which only the journal may use from now on.

        Raises:
            LocalProtocolError: the directory already holds a session, or is in use.
        """
        require_aggregator(server)
        directory = made_directory(path)
        check_key(key)
        with held(directory) as lock:
            if (directory / SNAPSHOT).exists():
                raise LocalProtocolError(f"{directory} already holds a session: resume it, or remove it")
            return cls._created(directory, key, server, lock, _counter(directory, server.parameters, server.roster))

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
        """The server at the state after its last accepted message, also if the session has ended.

        With ``restored=True`` its operator confirms that the directory was restored or copied, and that no
        other copy of it continued since: two copies may end in two sums, whose difference is a few clients.

        Raises:
            NothingToResumeError: there is no journal.
            RestoredError: it was restored or copied, and may not be the only copy.
            LocalProtocolError: another key, plan or roster, a damaged journal, or another process or object uses it.
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
        """For a restarted process: the server in the journal, or a new one if there is no journal.

        ``make`` is called only if there is no journal, and under the lock.

        Raises:
            RestoredError: as for :meth:`resume`.
            LocalProtocolError: as for :meth:`resume`, or ``make`` returned a server of another plan.
        """
        check_key(key)
        require_callable("make", make)
        place = ServerPlace(parameters, roster, identity, threads)
        directory = made_directory(path)
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
        """Like :meth:`resume_or_create`, with the caller's counter: a leader keeps it beside its home."""
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
        files = ServerFiles.found(directory, key, counter, place.parameters.upload_bytes, snapshot)
        journaled = cls(directory, key, server, files, lock=lock)
        try:
            with journaled._acting():
                journaled._replay()
                if restored:
                    journaled._compact()
                else:
                    files.require_newest()
        except BaseException:
            files.close()
            raise
        if journaled.waiting_for and journaled.panel is not None and journaled.panel.ended:
            journaled.abandon()  # the missing members can no longer answer
        return journaled

    def _replay(self) -> None:
        for sender, message in self._files.records():
            if sender == END_STEP:
                with suppress(AggregationError):  # the replay ends in the same abort
                    self._server.end_step()
            elif sender == ABANDONED:
                self._server.abandon(message.decode())
            elif sender < 0:
                self._outputs.repeat(sender)
            else:
                self._server.receive(sender, message)

    @property
    def parameters(self) -> Masking:
        """The public parameters that all parties agreed on."""
        return self._server.parameters

    @property
    def roster(self) -> Roster:
        """The public identities of all parties."""
        return self._server.roster

    @property
    def panel(self) -> Panel | None:
        """Leader and helpers of the run; None if its protocol has none."""
        return getattr(self._server, "panel", None)

    @property
    def noise_due(self) -> bool:
        """See :attr:`Server.noise_due <privstats.secagg.Server.noise_due>`."""
        return self._server.noise_due

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps, in order."""
        return self._server.steps

    @property
    def step(self) -> str:
        """See :attr:`Server.step <privstats.secagg.Server.step>`."""
        return self._server.step

    @property
    def waiting_for(self) -> frozenset[int]:
        """The clients whose answer to this step has not arrived."""
        return self._server.waiting_for

    def awaits(self, client: int) -> bool:
        """Whether the client's answer to this step is still to come."""
        return self._server.awaits(client)

    @property
    def accepted(self) -> int:
        """The number of messages accepted since this object was made; each is on disk."""
        return self._server.accepted

    @property
    def outbox(self) -> Outbox:
        """The messages that opened this step; they can be taken only once the start of the step is on disk."""
        return self._kept(self._server.outbox)

    def _kept(self, outbox: Outbox) -> Outbox:
        return Outbox(outbox.clients, partial(self._leaving, outbox))

    def _leaving(self, outbox: Outbox, client: int) -> bytes:
        with self._alone(), self._acting():
            return outbox.to(client)

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """See :attr:`Server.faults <privstats.secagg.Server.faults>`."""
        return self._server.faults

    @property
    def abandoned(self) -> dict[int, bytes]:
        """The signed statements of helpers that abandoned the run, by place, for ``session.free``."""
        return dict(getattr(self._server, "abandoned", {}))

    @property
    def statements(self) -> dict[int, bytes]:
        """Signed statements that prove to a client that its upload is in no sum, for ``session.free``.

        The helpers' statements on the run's end, by place; in the interactive protocol the clients' signed lists of
        survivors.
        """
        return dict(getattr(self._server, "agreement", None) or getattr(self._server, "statements", {}))

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """See :attr:`Server.result <privstats.secagg.Server.result>`; use :meth:`release` for a release.

        Raises:
            LocalProtocolError: there is no result; or the plan's noise is central, and the exact sum has been released,
                or was handed out before a restart.
        """
        return self._hand_out()

    @exclusive
    def _hand_out(self) -> tuple[RingVector, tuple[int, ...]]:
        with self._acting():
            return self._outputs.hand_out()

    @exclusive
    def release(self, plan: Plan, charge: Charging = None) -> Release:
        """The release of this session's sum: the same in every call, also after crashes.

        Args:
            plan: the plan of the session.
            charge: as for ``session.release``; it is charged once, under the run's name, and may be left out once a
                release under it has returned or aborted: a spend without a release in the ledger can be withdrawn, so
                nothing is returned before the ledger has recorded the release.

        Raises:
            LocalProtocolError: there is no sum, or it is not this plan's.
            AggregationError: as ``session.release``, which is charged too; the same in every call.
            LedgerError, ReleaseError: as ``session.release``.
        """
        with self._acting(PrivstatsError):
            return self._outputs.release(plan, charge)

    @exclusive
    def start(self) -> Outbox:
        """The messages that opened this step: the session started when its journal was made."""
        with self._acting():
            return self.outbox

    @exclusive
    def receive(self, sender: int, data: bytes | bytearray | memoryview) -> Outbox:
        """Like the server's; when it returns, the message is on disk."""
        with self._acting():
            accepted = self._server.accepted
            following = self._server.receive(sender, data)
            if self._server.accepted != accepted:  # a repeat changes nothing
                self._write(sender, bytes(data))
                if self._files.is_full:
                    self._compact()
            return following

    @exclusive
    def receive_many(
        self, items: Sequence[tuple[int, bytes | bytearray | memoryview]]
    ) -> list[RemoteProtocolError | None]:
        """Receive a group of messages with one wait for the disk; when it returns, all that it accepted are on disk.

        A refusal of one message of the group may rest on another of it, so none of the answers may be sent earlier.
        What is to be sent to others afterwards is in :attr:`outbox`.

        Args:
            items: sender and message, in order of arrival.

        Returns:
            For each item None if it was accepted, now or before, or else its refusal.

        Raises:
            LocalProtocolError: an argument is of the wrong type, and nothing was received; or the group could not be
                written, so that none of it may be answered and this object is unusable.

        Example:
            >>> from privstats.engines.journal import JournaledServer
            >>> cohort, schema = ps.Cohort(2, 2, 10), ps.ClassSchema(2, 2, "NA", 1.0)
            >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
            >>> parties = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.1, 0.2]], [0])] * 2)
            >>> server = JournaledServer.create("session", os.urandom(32), parties.server)
            >>> answers = [(index, parties.clients[index].receive(message)[0][1]) for index, message in server.outbox]
            >>> [refusal and refusal.code for refusal in server.receive_many([*answers, (7, answers[0][1])])]
            [None, None, 'stranger']
        """
        for sender, data in items:
            require_sender(sender)
            view_of(data)
        with self._acting(RemoteProtocolError):
            refusals: list[RemoteProtocolError | None] = []
            for group in _groups(items):
                refusals += self._received(group)
            return refusals

    def _received(self, group: list[tuple[int, bytes]]) -> list[RemoteProtocolError | None]:
        refusals: list[RemoteProtocolError | None] = []
        kept: list[tuple[int, bytes]] = []
        for sender, data in group:
            accepted = self._server.accepted
            try:
                self._server.receive(sender, data)
            except RemoteProtocolError as refusal:
                refusals.append(refusal)
                continue
            refusals.append(None)
            if self._server.accepted != accepted:  # a repeat changes nothing
                kept.append((sender, data))
        if kept:
            self._files.append_many(kept)
        if self._files.is_full:
            self._compact()
        return refusals

    @exclusive
    def step_status(self) -> StepStatus:
        """Like the server's."""
        with self._acting():
            return self._server.step_status()

    @exclusive
    def end_step(self) -> Outbox:
        """Like the server's; when it returns or aborts the session, that is on disk."""
        with self._acting():
            try:
                following = self._server.end_step()
            except AggregationError:
                self._write(END_STEP)
                raise
            if self._server.step in ENDS:
                self._write(END_STEP)
            else:
                self._compact()
            return self._kept(following)

    @exclusive
    def abandon(self, code: str = "abandoned") -> Outbox:
        """Like the server's; when it returns, the end of the session is on disk, and it cannot be resumed as running.

        Raises:
            LocalProtocolError: ``code`` is not in ``messages.ABORTS``.
        """
        with self._acting():
            running = self._server.step not in ENDS
            following = self._server.abandon(code)
            if running:
                self._write(ABANDONED, code.encode())
            return self._kept(following)

    @exclusive
    def export(self, key: bytes) -> bytes:
        """Like the server's."""
        with self._acting():
            return self._server.export(key)

    def _write(self, sender: int, data: bytes = b"") -> None:
        self._files.append(sender, data)

    def _compact(self) -> None:
        self._files.replace(self._server.export(self._key))

    @exclusive
    def discard(self) -> None:
        """Remove the journal, after the release is saved or the session abandoned.

        The seed of the noise is overwritten first; file systems and disks may keep old blocks all the same.

        Raises:
            LocalProtocolError: this object has been closed, so another process may hold the journal.
        """
        if self._lock < 0:
            raise LocalProtocolError(f"the journal {self._place} {self._gone}")
        self._files.destroy()
        self._let_go()

    def _let_go(self) -> None:
        self._files.close()
        super()._let_go()


def _groups(items: Sequence[tuple[int, bytes | bytearray | memoryview]]) -> Iterator[list[tuple[int, bytes]]]:
    """The items in their order, in groups that are short enough to be written at once."""
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


def _counter(directory: Path, parameters: Masking, roster: Roster) -> Counter:
    return Counter.of(directory, _COUNT, outside=server_outside(parameters, roster))
