"""The server's side of one session, from its start to its release."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from privstats import session
from privstats.engines.journal import JournaledServer
from privstats.engines.network.driver import Clock, Say, SessionContext, Sleep, drive, gather
from privstats.engines.network.folder import RoundFolder
from privstats.engines.network.nodes import NodeMap, NodeRegistry
from privstats.engines.network.session_end import (
    EndedSession,
    SessionEnd,
    SessionHistory,
    StoredStatements,
    file_digest,
    send_end_notices,
    today,
)
from privstats.engines.network.status_file import Watch
from privstats.engines.network.transport import Deadlines, Transport
from privstats.errors import (
    AggregationError,
    InUseError,
    LocalProtocolError,
    NothingToResumeError,
    PrivstatsError,
    RestoredError,
    SessionEndedError,
)
from privstats.printable.command_line import command_line
from privstats.release import Release
from privstats.secagg import HelperKeys, Offer, Panel
from privstats.secagg.machines import Aggregator, StepStatus
from privstats.secagg.protocols import protocol_of

_NONCE_BYTES = 32
_LASTING_SECONDS = 24 * 3600.0
"""Shortest time for which a helper's box key must last when a run begins."""


@dataclass(frozen=True)
class Ended:
    """The full run has ended.

    Attributes:
        waits: whether a deadline passed with too few answers.
        releases: every round's, in order; None without a sum.
    """

    waits: ClassVar[bool] = False
    releases: tuple[Release | None, ...]
    sentence: str


@dataclass(frozen=True)
class Waiting:
    """A deadline passed with too few answers; the next run continues here."""

    waits: ClassVar[bool] = True
    what: str
    again: str

    @property
    def sentence(self) -> str:
        """Reason and remedy, for the operator."""
        return f"{self.what}. {self.again}"


@dataclass(frozen=True)
class Carrying:
    """The tools with which a session is carried."""

    transport: Transport
    deadlines: Deadlines
    clock: Clock
    sleep: Sleep
    say: Say


class _NoPanel(Exception):  # noqa: N818 - raised inside the lock, caught by its holder
    def __init__(self, missing: list[int]) -> None:
        self.missing = missing
        super().__init__(missing)


@dataclass(frozen=True)
class RoundHost:
    """The server's folder of one session."""

    folder: RoundFolder

    def run(self, carrying: Carrying) -> Ended | Waiting:
        """Carry the session from its current state.

        Raises:
            SessionEndedError: it ended before; a new session needs a new run name.
            AggregationError: it ends without a sum; or its sum is refused for release, in this and every later run.
            PrivstatsError: in use, or a file error; nothing is lost.
        """
        nodes, plan = NodeMap(self.folder.home, self._session), self.folder.plan
        watch = Watch(self.folder.base, self.folder.above.roster.run.hex(), self.folder.place)
        context = SessionContext(
            carrying.transport,
            self._places(nodes),
            carrying.clock,
            carrying.sleep,
            carrying.say,
            plan.digest,
            self.folder.max_reply_bytes,
            watch=watch.progress,
        )
        ended_session = SessionHistory(self.folder.home).of(self._session)
        if ended_session is not None:
            send_end_notices(self.folder, context, ended_session)
            raise SessionEndedError(self._ended(ended_session))
        self._make_room(nodes)
        try:
            with self._server(lambda: self._fresh(context, carrying.deadlines)) as server:
                return self._driven(server, context, carrying.deadlines)
        except _NoPanel as lack:
            return self._without_panel(context, lack.missing)

    def give_up(self) -> str:
        """End the session on purpose, and return a sentence for the operator.

        Raises:
            SessionEndedError: it ended before.
            NothingToResumeError: it has not begun.
        """
        ended_session = SessionHistory(self.folder.home).of(self._session)
        if ended_session is not None:
            raise SessionEndedError(f"{ended_session.sentence(self._name)}. There is nothing to give up")
        with self._server(self._nothing, restored=True) as server:  # every copy of it may be ended
            server.abandon()
            return SessionEnd(self.folder).without_sum(server, "it was given up").sentence(self._name)

    def _nothing(self) -> Aggregator:
        raise NothingToResumeError(f"{self._name}/journal holds no session: nothing has begun")

    @property
    def _session(self) -> str:
        return self.folder.session

    @property
    def _name(self) -> str:
        return self.folder.name

    def _places(self, nodes: NodeMap) -> NodeRegistry:
        folder = self.folder
        return NodeRegistry(
            folder.publics, len(folder.roster), names=folder.roster.names, nodes=nodes.load(), store=nodes.store
        )

    def _make_room(self, nodes: NodeMap) -> None:
        journal, history = self.folder.home / "journal", SessionHistory(self.folder.home)
        if (journal / "snapshot").exists() and nodes.session not in ("", self._session):
            if history.of(nodes.session) is None:
                raise LocalProtocolError(
                    f"{self._name}/journal holds a session of another plan, roster or version of privstats that has "
                    "not ended: bring that one back and end it, or move the journal away"
                )
            JournaledServer.remove(journal)
        release = self.folder.release_path
        if release.exists() and file_digest(release) in {ended_session.release for ended_session in history.all()}:
            raise PrivstatsError(f"{self._name}/{release.name} is of a session that has ended: move it away first")
        if nodes.session != self._session:
            StoredStatements(self.folder.home).forget()
            nodes.store({})

    def _server(self, make: Callable[[], Aggregator], *, restored: bool = False) -> JournaledServer:
        folder = self.folder
        try:
            return JournaledServer.resume_or_create(
                folder.home / "journal",
                folder.key,
                make,
                parameters=folder.plan.masking,
                roster=folder.roster,
                identity=folder.identity,
                restored=restored,
            )
        except InUseError:
            raise InUseError(f"{self._name}/journal is in use by another process: let it end first") from None
        except RestoredError:
            end = command_line("flower", "give-up", self.folder.base)
            raise RestoredError(
                f"{self._name}/journal was put back from a backup or copied, and two copies may end in two sums: bring "
                f'the newest one back, or end the session with "{end}"'
            ) from None

    def _fresh(self, context: SessionContext, deadlines: Deadlines) -> Aggregator:
        folder = self.folder
        ended_session = SessionHistory(folder.home).of(self._session)
        if ended_session is not None:  # by a run that ended between the first check and the lock
            raise SessionEndedError(self._ended(ended_session))
        if not folder.plan.panel:
            return self._machine(identity=folder.identity)
        wanted = frozenset(range(len(folder.roster), len(folder.publics)))
        question = folder.header.encode() + os.urandom(_NONCE_BYTES)
        offers = gather(context, question, wanted, deadlines.open_seconds)
        if offers.keys() != wanted:
            raise _NoPanel(sorted(wanted - offers.keys()))
        masking: Any = folder.plan.masking
        keys = HelperKeys(folder.identity, 0, masking, folder.roster)
        identities = tuple(bytes.fromhex(key) for key in folder.plan.panel)
        panel = Panel(identities, (keys.offer, *map(Offer.decode, offers.values())))
        panel.require_lasting(_LASTING_SECONDS)
        return self._machine(keys=keys, panel=panel)

    def _machine(self, **named: Any) -> Aggregator:
        """Return a machine that draws no noise where sums are weighed first."""
        plan, roster = self.folder.plan, self.folder.roster
        if self.folder.totals is None:
            return session.server(plan, roster, **named)
        return protocol_of(plan.masking).machines.server(plan.masking, roster=roster, noise_due=False, **named)

    def _opening(self, server: JournaledServer) -> bytes:
        head = self.folder.header.encode()
        if server.panel is not None:
            return head + b"".join(offer.encode() for offer in server.panel.offers)
        first = server.outbox.clients[:1] if server.step == server.steps[0] else ()
        return head + b"".join(map(server.outbox.to, first))

    def _driven(self, server: JournaledServer, context: SessionContext, deadlines: Deadlines) -> Ended | Waiting:
        try:
            outcome = drive(server, context, deadlines, self._opening(server))
        except AggregationError as error:
            self._fail(server, context, str(error))
            raise
        if outcome.shortfall is not None:
            return Waiting(self._short(outcome.shortfall, context.registry), self._again)
        if server.step == "failed":  # it was killed between its end and the record of it
            why = "it failed, or was given up"
            self._fail(server, context, why)
            raise SessionEndedError(self._ended(EndedSession(self._session, today(), why=why)))
        release, ended_session = SessionEnd(self.folder, context.say).with_release(server)
        send_end_notices(self.folder, context, ended_session)
        return Ended((release,), ended_session.sentence(self._name))

    def _ended(self, ended_session: EndedSession) -> str:
        return f"{ended_session.sentence(self._name)}. A new one needs a new run name"

    def _fail(self, server: JournaledServer, context: SessionContext, why: str) -> None:
        send_end_notices(self.folder, context, SessionEnd(self.folder, context.say).without_sum(server, why))

    def _without_panel(self, context: SessionContext, missing: list[int]) -> Waiting:
        helpers = len(self.folder.plan.panel) - 1
        return Waiting(
            f"{helpers - len(missing)} of {helpers} helpers have offered their keys, the plan needs all; missing: "
            f"{context.registry.listed(missing)}",
            self._again,
        )

    def _short(self, step_status: StepStatus, registry: NodeRegistry) -> str:
        plan = self.folder.plan
        requests = len(step_status.answered) + len(step_status.waiting_for)
        helpers = min(step_status.waiting_for) >= plan.cohort.clients
        needs = f"the plan needs {requests if helpers else plan.masking.min_listed}"
        if step_status.abort is not None and step_status.abort.code not in ("too_few_clients", "too_few_helpers"):
            needs = f"which is not enough ({step_status.abort.code.replace('_', ' ')})"
        return (
            f"step {step_status.step}: {len(step_status.answered)} of {requests} answered, {needs}; missing: "
            f"{registry.listed(step_status.waiting_for)}"
        )

    @property
    def _again(self) -> str:
        study = self.folder.base.parent.name
        return f'Nothing is lost: "flwr run {study}/app {study}" goes on from here'
