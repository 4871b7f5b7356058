"""The loop that carries a session of any protocol.

Closing a step with too few answers would lose all vectors, so it stays open: the run ends, the journal stays, and the
next run asks the missing parties.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from privstats.engines.network.nodes import NodeRegistry, Request, RequestQueue
from privstats.engines.network.operator_log import WarningLine
from privstats.engines.network.statements import read_signed_reply, to_helper
from privstats.engines.network.status_file import ASKED, OFFLINE, UNSEEN, StepProgress
from privstats.engines.network.transport import (
    CODES,
    NODES,
    OK,
    SILENT,
    SOON,
    Deadlines,
    MessageKind,
    Reply,
    Transport,
    code_of,
    short,
)
from privstats.errors import RemoteProtocolError
from privstats.secagg.machines import ENDS, Aggregator, StepStatus

_GATHERING = "offer"
_BUSY = "busy"  # a leader that waits for its helpers: no fault

Clock: TypeAlias = Callable[[], float]
Sleep: TypeAlias = Callable[[float], None]
Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class StepReport:
    """The result of a step.

    Attributes:
        answered, missing: peer indices.
        sent, received: bytes, without the carrier's overhead.
    """

    step: str
    answered: tuple[int, ...]
    missing: tuple[int, ...]
    seconds: float
    sent: int
    received: int


@dataclass(frozen=True)
class StepReports:
    """The result of a run of the loop.

    Attributes:
        shortfall: the step that stayed open, if any.
    """

    steps: tuple[StepReport, ...]
    shortfall: StepStatus | None = None


@dataclass(frozen=True)
class SessionContext:
    """The loop's parties and clock.

    Attributes:
        say: prints a line for the operator, without data.
        plan: the beginning of the plan's digest.
        most: maximum bytes of one reply.
    """

    transport: Transport
    registry: NodeRegistry
    clock: Clock
    sleep: Sleep
    say: Say
    plan: str
    most: int
    printed: set[tuple[int, str]] = field(default_factory=set)
    watch: Callable[[StepProgress], None] = lambda _: None
    refusals: Counter[str] = field(default_factory=Counter)

    def tell(self, node: int, place: int | None, code: str) -> None:
        """Print, once, a node's status code for the operator."""
        code = code_of(code)
        self.refusals[code] += 1
        who = f"node {self.transport.name(node)}"
        if place is not None and code not in NODES:
            who = self.registry.title(place)
        self.once(node, f"{who} {CODES[code].sentence.format(plan=short(self.plan))}")

    def once(self, node: int, line: str) -> None:
        """Print a line about a node, unless printed before."""
        if (node, line) not in self.printed:
            self.printed.add((node, line))
            self.say(WarningLine(line))

    def tell_suspicions(self, faults: Sequence[RemoteProtocolError]) -> None:
        """Print, once, the unproven accusations among parties."""
        for fault in faults:
            if not fault.proven and isinstance(fault.peer, int):
                title = self.registry.title(fault.peer)
                self.once(fault.peer, f"{title}, unproven, {fault.code} at step {fault.step}: {fault.detail}")

    def absent(self, queue: RequestQueue, places: Collection[int], online: Collection[int]) -> dict[int, str]:
        """Return why each of these parties has not answered."""
        return {place: self._why(queue, self.registry.node_of(place), online) for place in places}

    @staticmethod
    def _why(queue: RequestQueue, node: int | None, online: Collection[int]) -> str:
        if node is None:
            return UNSEEN
        return queue.refusal(node) or (ASKED if node in online else OFFLINE)

    def progress(
        self, step: str, answered: Sequence[int], missing: Mapping[int, str], queue: RequestQueue
    ) -> StepProgress:
        """Return a step's state, with the session's refusals."""
        return StepProgress(step, tuple(answered), missing, queue.sent, queue.received, dict(self.refusals))

    def proved(self, node: int, asked: Request, reply: Reply, queue: RequestQueue) -> tuple[int | None, bytes]:
        """Return the index that a reply proves, and its payload; else delay or end requests to the node."""
        signed = read_signed_reply(reply.data, asked.digest, reply.code, self.registry.publics)
        if signed is None:
            self.once(node, f"node {self.transport.name(node)}: malformed")
            queue.later(node, SILENT)
            return None, b""
        if not self.registry.claim(node, signed.place):
            holder, title = self.registry.node_of(signed.place) or 0, self.registry.title(signed.place)
            who, other = self.transport.name(node), self.transport.name(holder)
            self.once(node, f"node {who} claims to be {title}, which node {other} has proved to be")
            queue.never(node)
            return None, b""
        return signed.place, signed.payload


def drive(server: Aggregator, context: SessionContext, deadlines: Deadlines, opening: bytes) -> StepReports:
    """Carry a session from its current step to its end, or to a deadline with too few answers.

    Args:
        server: journaled, so that a killed run loses nothing.
        opening: the first message to every client, with its header.

    Raises:
        AggregationError: the session ended without a sum; no further answer could have changed that.
        LocalProtocolError: an accepted answer could not be saved; the next run continues.
    """
    reports: list[StepReport] = []
    while server.step not in ENDS:
        first = server.step == server.steps[0]
        seconds = deadlines.open_seconds if first else deadlines.step_seconds
        step = _Step(server, context, opening, first, seconds)
        step.wait()
        step_status = server.step_status()
        report = step.report(step_status)
        if step_status.waiting_for and step_status.abort is not None:
            return StepReports(tuple(reports), step_status)
        server.end_step()
        context.tell_suspicions(server.faults)
        reports.append(report)
        context.watch(replace(step.progress, closed_after=report.seconds))
        context.say(_line(report, context.registry))
    return StepReports(tuple(reports))


def gather(context: SessionContext, question: bytes, wanted: frozenset[int], seconds: float) -> Mapping[int, bytes]:
    """Ask all nodes for their identity until all of ``wanted`` have answered.

    Args:
        question: a new message, so that no old answer fits.

    Returns:
        Payloads by index; incomplete after a timeout.
    """
    until = context.clock() + seconds
    queue, payloads = RequestQueue(context.transport, context.clock, until, context.most), dict[int, bytes]()
    while True:
        online = context.transport.online()
        missing = context.absent(queue, wanted - payloads.keys(), online)
        context.watch(context.progress(_GATHERING, sorted(wanted & payloads.keys()), missing, queue))
        for node in online:
            if context.registry.place_of(node) not in payloads:
                queue.ask(node, "hello", lambda: question)
        for node, request, reply in queue.replies():
            if reply.code != OK:
                _refused(context, queue, node, request, reply)
                continue
            place, payload = context.proved(node, request, reply, queue)
            if place is not None:
                payloads[place] = payload
                queue.done(node)
        if wanted <= payloads.keys() or context.clock() >= until:
            return {place: payloads[place] for place in sorted(wanted & payloads.keys())}
        context.sleep(queue.pause)


def _refused(context: SessionContext, queue: RequestQueue, node: int, asked: Request, reply: Reply) -> None:
    """Ask again after an unsigned refusal: it may come from a damaged folder that is repaired since.

    A refusal that another party signed shows that the carrier had mixed up the replies of two nodes.
    """
    registry = context.registry
    signed = read_signed_reply(reply.data, asked.digest, reply.code, registry.publics)
    before = registry.place_of(node)
    if signed is not None and before not in (None, signed.place):
        who, title = context.transport.name(node), registry.title(signed.place)
        context.once(node, f"node {who} is {title}: replies were mixed up on their way")
        registry.correct(node, signed.place)
    proven = signed is not None and registry.claim(node, signed.place)
    context.tell(node, registry.place_of(node), reply.code)
    if not proven and registry.place_of(node) is not None and queue.final(node):
        queue.later(node, SILENT)


def _line(report: StepReport, registry: NodeRegistry) -> str:
    requests = len(report.answered) + len(report.missing)
    missing = f"; missing: {registry.listed(report.missing)}" if report.missing else ""
    return (
        f"step {report.step}: {len(report.answered)} of {requests} answered in {report.seconds:.1f} s, "
        f"{report.received:,} bytes up, {report.sent:,} down{missing}"
    )


class _Step:
    def __init__(
        self, server: Aggregator, context: SessionContext, opening: bytes, first: bool, seconds: float
    ) -> None:
        self._server, self._context, self._opening, self._first = server, context, opening, first
        self._began = context.clock()
        self._until = self._began + seconds
        self._queue = RequestQueue(context.transport, context.clock, self._until, context.most)
        self._online: Sequence[int] = ()
        self.progress = context.progress("", (), {}, self._queue)

    def wait(self) -> None:
        while True:
            self._ask()
            for node, request, reply in self._queue.replies():
                self._hear(node, request, reply)
            missing = self._server.waiting_for
            self._look(missing)
            if not missing or self._context.clock() >= self._until or self._hopeless(missing):
                return
            self._context.sleep(self._queue.pause)

    def report(self, step_status: StepStatus) -> StepReport:
        seconds, queue = self._context.clock() - self._began, self._queue
        return StepReport(
            step_status.step, step_status.answered, step_status.waiting_for, seconds, queue.sent, queue.received
        )

    def _look(self, missing: frozenset[int]) -> None:
        context, before = self._context, self.progress
        answered = before.answered
        if before.step == "" or before.missing.keys() != missing:
            answered = self._server.step_status().answered
        absent = context.absent(self._queue, missing, self._online)
        self.progress = context.progress(self._server.step, answered, absent, self._queue)
        context.watch(self.progress)

    def _wanted(self) -> frozenset[int]:
        awaited = (peer for peer in self._server.outbox.clients if self._server.awaits(peer))
        return self._server.waiting_for.union(awaited)

    def _ask(self) -> None:
        wanted, registry = self._wanted(), self._context.registry
        online = self._online = self._context.transport.online()
        lost = any(registry.node_of(place) is None for place in wanted)
        for peer in sorted(wanted):
            away = registry.node_of(peer)
            if away is not None and away not in online:
                self._queue.returns(away)
                self._context.once(away, f"{registry.title(peer)} is offline, asked again when it returns")
        for node in online:
            place = registry.place_of(node)
            if place is None and lost:
                self._queue.ask(node, "open" if self._first else "hello", lambda: self._opening)
            elif place is not None and place in wanted:
                self._queue.ask(node, self._kind(place), partial(self._message, place))

    def _kind(self, place: int) -> MessageKind:
        if place >= self._server.parameters.clients:
            return "helper"
        return "open" if self._first else "step"

    def _message(self, place: int) -> bytes:
        kind = self._kind(place)
        if kind == "open":
            return self._opening
        message = self._server.outbox.to(place)
        return to_helper(self._opening, message) if kind == "helper" else message

    def _hear(self, node: int, asked: Request, reply: Reply) -> None:
        if reply.code != OK:
            _refused(self._context, self._queue, node, asked, reply)
            return
        place, data = self._context.registry.place_of(node), reply.data
        if asked.kind in ("hello", "open"):
            place, data = self._context.proved(node, asked, reply, self._queue)
        if place is None:
            return
        if self._kind(place) != asked.kind or not self._server.awaits(place):
            self._queue.done(node)  # it has proved its place, or comes too late
        elif not data:
            self._queue.later(node, SILENT)
        else:
            self._take(node, place, data)

    def _take(self, node: int, place: int, data: bytes) -> None:
        try:
            self._server.receive(place, data)
        except RemoteProtocolError as refusal:
            if refusal.code == _BUSY:
                self._queue.later(node, SOON)
            else:
                self._context.refusals[refusal.code] += 1
                self._context.once(
                    node, f"{self._context.registry.title(place)}: {refusal.code} at step {refusal.step}"
                )
                self._queue.later(node, SILENT)
        else:
            self._queue.done(node)

    def _hopeless(self, missing: frozenset[int]) -> bool:
        """Return whether all missing parties have refused for good, under their own signatures.

        Otherwise any registered node could close the opening and exclude slow parties.
        """
        nodes = [self._context.registry.node_of(place) for place in missing]
        return all(node is not None and self._queue.final(node) for node in nodes)
