"""A server that can be killed at any moment: it resumes between any two messages and ends in the same sum.

What it is sent and decides is on disk, in ``server_files``, before anything leaves. Wraps the machine of ``secagg``;
moves no bytes itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from privstats.encoding import RingVector
from privstats.engines.journal.argument_checks import require_aggregator, require_callable
from privstats.engines.journal.lock import JournalBase, ServerPlace, held, made_directory, path_of
from privstats.engines.journal.releasing import Releasing
from privstats.engines.journal.rollback import Counter
from privstats.engines.journal.server_files import ABANDONED, END_STEP, SNAPSHOT, ServerFiles, Snapshot
from privstats.engines.records import check_key, read_sealed
from privstats.errors import AggregationError, LocalProtocolError, PrivstatsError, RemoteProtocolError
from privstats.plan import Plan
from privstats.release import Release
from privstats.secagg import Identity, Panel, Roster
from privstats.secagg.exclusive import exclusive
from privstats.secagg.machines import ENDS, Aggregator, Masking, Outbox, StepStatus
from privstats.session.accounting import Charging

__all__ = ["JournaledServer"]

_COUNT = "server"


class JournaledServer(JournalBase):
    """A :class:`~privstats.secagg.Server` that can be killed at any moment.

    Made with :meth:`create`, :meth:`resume` or :meth:`resume_or_create`; after an interruption send :attr:`outbox`
    again to the clients in :attr:`waiting_for`: they answer as if for the first time, or repeat their answer.

    Guarantee: the noise that :meth:`release` adds to a sum comes from 32 bytes that are drawn when the journal is
    made and from the sum itself, so there is one release however often it is asked for, before and after a crash;
    nobody can draw the noise again until it averages away, and a copy of the journal that ends in another sum has
    other noise. Whoever holds the key and the directory can read the sum, as a server can.

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
        self._releasing = Releasing(server, files)

    @classmethod
    def create(cls, path: str | os.PathLike[str], key: bytes, server: Aggregator) -> JournaledServer:
        """Start ``server`` and journal it; :attr:`outbox` holds the opening messages.

        Args:
            path: a directory of its own, made if need be; what is in it is sealed under ``key``.
            key: 32 bytes.
            server: a fresh machine; nobody else may use it from here on.

        Raises:
            LocalProtocolError: the directory already holds a session, or is in use.
        """
        require_aggregator(server)
        directory = made_directory(path)
        check_key(key)
        with held(directory) as lock:
            if (directory / SNAPSHOT).exists():
                raise LocalProtocolError(f"{directory} already holds a session: resume it, or remove it")
            return cls._created(directory, key, server, lock, Counter.of(directory, _COUNT))

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
        """The server as it stood after the last message that it accepted, also where the session has ended.

        With ``restored=True`` its operator confirms that the directory was restored or copied, and that no
        other copy of it went on since: two copies may end in two sums, whose difference is a few clients.

        Raises:
            NothingToResumeError: there is no journal.
            RestoredError: it was restored or copied, and is not known to be the only one.
            LocalProtocolError: another key, plan or roster, a damaged journal, or somebody else is at it.
        """
        directory, place = path_of(path), ServerPlace(parameters, roster, identity, threads)
        check_key(key)
        if not directory.exists():
            read_sealed(directory / SNAPSHOT, key)
        with held(directory) as lock:
            return cls._resumed(directory, key, place, lock, Counter.of(directory, _COUNT), restored)

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
        """What a restarted process calls: the server that is journaled, or else a new one.

        ``make`` is called only where there is no journal, and while nobody else can make one.

        Raises:
            RestoredError: as for :meth:`resume`.
            LocalProtocolError: as for :meth:`resume`, or ``make`` gave a server of another plan.
        """
        check_key(key)
        require_callable("make", make)
        place = ServerPlace(parameters, roster, identity, threads)
        directory = made_directory(path)
        return cls.opened(directory, key, make, place, Counter.of(directory, _COUNT), restored=restored)

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
        """As :meth:`resume_or_create`, with the count at a place of the caller's, for a leader beside its home."""
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
            journaled.abandon()  # who is waited for can answer no more
        return journaled

    def _replay(self) -> None:
        for sender, message in self._files.records():
            if sender == END_STEP:
                with suppress(AggregationError):  # it ended in the same abort before
                    self._server.end_step()
            elif sender == ABANDONED:
                self._server.abandon(message.decode())
            elif sender < 0:
                self._releasing.repeat(sender)
            else:
                self._server.receive(sender, message)

    @property
    def parameters(self) -> Masking:
        """What all parties agreed on."""
        return self._server.parameters

    @property
    def roster(self) -> Roster:
        """Everybody's public identities."""
        return self._server.roster

    @property
    def panel(self) -> Panel | None:
        """Leader and helpers of the run; None where its protocol has none."""
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
        """How many messages have been taken since this object was made; each is on disk."""
        return self._server.accepted

    @property
    def outbox(self) -> Outbox:
        """The messages that opened this step; none can be taken before it is on disk that the step has begun."""
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
        """What helpers signed that gave up, by their place, for ``session.free``; empty where there are no helpers."""
        return dict(getattr(self._server, "abandoned", {}))

    @property
    def statements(self) -> dict[int, bytes]:
        """What others signed that proves to a client that its upload is in no sum, for ``session.free``.

        What helpers signed of the run's end, by their place; in the interactive protocol clients' words on who was in.
        """
        return dict(getattr(self._server, "agreement", None) or getattr(self._server, "statements", {}))

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """See :attr:`Server.result <privstats.secagg.Server.result>`; most want :meth:`release`.

        Raises:
            LocalProtocolError: there is none; or the plan's noise is central, and the exact sum has been released, or
                was handed out before a restart.
        """
        return self._hand_out()

    @exclusive
    def _hand_out(self) -> tuple[RingVector, tuple[int, ...]]:
        with self._acting():
            return self._releasing.hand_out()

    @exclusive
    def release(self, plan: Plan, charge: Charging = None) -> Release:
        """The release of this session's sum: the same every time, however often the process was killed in between.

        Args:
            plan: the plan of the session.
            charge: as for ``session.release``; it is charged once, under the run's name, and may be left out once a
                release under it has returned or aborted: a spend of which the ledger never heard that it was released
                can be withdrawn, so nothing comes out before the ledger has heard.

        Raises:
            LocalProtocolError: there is no sum, or it is not this plan's.
            AggregationError: as ``session.release``, which is charged too, and then every time the same.
            LedgerError, ReleaseError: as ``session.release``.
        """
        with self._acting(PrivstatsError):
            return self._releasing.release(plan, charge)

    @exclusive
    def start(self) -> Outbox:
        """The messages that opened this step: the session started when its journal was made."""
        with self._acting():
            return self.outbox

    @exclusive
    def receive(self, sender: int, data: bytes | bytearray | memoryview) -> Outbox:
        """As the server's; when it returns, the message is on disk."""
        with self._acting():
            accepted = self._server.accepted
            following = self._server.receive(sender, data)
            if self._server.accepted != accepted:  # a repeat of an earlier message answers nothing
                self._write(sender, bytes(data))
                if self._files.is_full:
                    self._compact()
            return following

    @exclusive
    def step_status(self) -> StepStatus:
        """As the server's."""
        with self._acting():
            return self._server.step_status()

    @exclusive
    def end_step(self) -> Outbox:
        """As the server's; when it returns, or aborts the session, that is on disk."""
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
        """As the server's; when it returns, it is on disk that the session has ended, and nobody resumes it.

        Raises:
            LocalProtocolError: ``code`` is no word of ``messages.ABORTS``.
        """
        with self._acting():
            running = self._server.step not in ENDS
            following = self._server.abandon(code)
            if running:
                self._write(ABANDONED, code.encode())
            return self._kept(following)

    @exclusive
    def export(self, key: bytes) -> bytes:
        """As the server's."""
        with self._acting():
            return self._server.export(key)

    def _write(self, sender: int, data: bytes = b"") -> None:
        self._files.append(sender, data)

    def _compact(self) -> None:
        self._files.replace(self._server.export(self._key))

    @exclusive
    def discard(self) -> None:
        """Remove the journal: the release has been taken, or the session given up.

        The seed of the noise is overwritten first; file systems and disks may keep old blocks all the same.

        Raises:
            LocalProtocolError: this object has been closed, so the journal may be somebody else's by now.
        """
        if self._lock < 0:
            raise LocalProtocolError(f"the journal {self._place} {self._gone}")
        self._files.destroy()
        self._let_go()

    def _let_go(self) -> None:
        self._files.close()
        super()._let_go()
