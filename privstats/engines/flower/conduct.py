"""The loop: an aggregator, a mailbox and a clock in, an outcome out; the same for every protocol of the plan.

It asks whom the machine waits for, asks again, and closes a step only where that cannot cost the session. It knows no
protocol, no number of steps, no folder and no Flower. Between ``host`` and whoever carries the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from privstats.engines.flower.codes import CODES, NODES, SILENT, SOON, code_of, short
from privstats.engines.flower.mail import OK, Deadlines, Kind, Mailbox, Reply
from privstats.engines.flower.places import Places
from privstats.engines.flower.post import Asked, Post
from privstats.engines.flower.words import read_word, to_helper
from privstats.errors import RemoteProtocolError
from privstats.secagg.machines import ENDS, Aggregator, Outlook

__all__ = ["Outcome", "Shortfall", "StepReport", "Talk", "conduct", "gather"]

POLL_SECONDS = 0.5
"""Seconds between two looks at the mailbox."""
_BUSY = "busy"  # a leader whose helpers are behind: no fault

Clock: TypeAlias = Callable[[], float]
Sleep: TypeAlias = Callable[[float], None]
Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class StepReport:
    """What a step came to.

    Attributes:
        step: its name.
        answered, missing: places.
        seconds: how long it took.
        sent, received: bytes, of the machines and of what is around them, without the carrier's.
    """

    step: str
    answered: tuple[int, ...]
    missing: tuple[int, ...]
    seconds: float
    sent: int
    received: int


@dataclass(frozen=True)
class Shortfall:
    """A step that could not be closed: nothing is lost, and the next run goes on from there."""

    outlook: Outlook


@dataclass(frozen=True)
class Outcome:
    """What a run of the loop came to.

    Attributes:
        steps: a report of each step that this run closed, in order.
        shortfall: what it ended in, if not at the session's end.
    """

    steps: tuple[StepReport, ...]
    shortfall: Shortfall | None = None


@dataclass(frozen=True)
class Talk:
    """Whom the loop talks to, and by what time.

    Attributes:
        mailbox: who carries messages.
        places: which node is which party.
        clock: seconds, of a clock that only goes forward.
        sleep: waits that many seconds.
        say: prints a line for the operator; no data is ever in one.
        plan: the beginning of the plan's digest, for whoever runs another plan.
        most: bytes that one reply may have under that plan, see :func:`words.most_bytes`.
        said: what the operator has been told, and is not told again.
    """

    mailbox: Mailbox
    places: Places
    clock: Clock
    sleep: Sleep
    say: Say
    plan: str
    most: int
    said: set[tuple[int, str]] = field(default_factory=set)

    def tell(self, node: int, place: int | None, code: str) -> None:
        """Tell the operator, once, what a node answered in place of an answer."""
        code = code_of(code)
        who = f"node {self.mailbox.name(node)}"
        if place is not None and code not in NODES:
            who = self.places.title(place)
        self.once(node, f"{who} {CODES[code].sentence.format(plan=short(self.plan))}")

    def once(self, node: int, line: str) -> None:
        """Say a line about a node, unless it was said before."""
        if (node, line) not in self.said:
            self.said.add((node, line))
            self.say(line)

    def proved(self, node: int, asked: Asked, reply: Reply, post: Post) -> tuple[int | None, bytes]:
        """The place that a reply proves and what goes with it; None, and asked again or never, where it proves none."""
        word = read_word(reply.data, asked.digest, reply.code, self.places.publics)
        if word is None:
            self.once(node, f"node {self.mailbox.name(node)}: malformed")
            post.later(node, SILENT)
            return None, b""
        if not self.places.claim(node, word.place):
            holder, title = self.places.node_of(word.place) or 0, self.places.title(word.place)
            who, other = self.mailbox.name(node), self.mailbox.name(holder)
            self.once(node, f"node {who} claims to be {title}, which node {other} has proved to be")
            post.never(node)
            return None, b""
        return word.place, word.payload


def conduct(server: Aggregator, talk: Talk, deadlines: Deadlines, opening: bytes) -> Outcome:
    """Carry a session from where its server stands to its end, or to a deadline with too few.

    Args:
        server: journaled, so that a run that is killed costs nothing.
        talk: whom to talk to.
        deadlines: the seconds of a step.
        opening: what every client is sent at first, header and all.

    Raises:
        AggregationError: the session has ended without a sum, and nobody's answer could have helped.
        LocalProtocolError: what was accepted could not be kept; nothing is lost, the next run goes on.
    """
    reports: list[StepReport] = []
    while server.step not in ENDS:
        first = server.step == server.steps[0]
        seconds = deadlines.open_seconds if first else deadlines.step_seconds
        step = _Step(server, talk, opening, first, seconds)
        step.wait()
        outlook = server.outlook()
        report = step.report(outlook)
        if outlook.waiting_for and outlook.abort is not None:
            return Outcome(tuple(reports), Shortfall(outlook))
        server.end_step()
        reports.append(report)
        talk.say(_line(report, talk.places))
    return Outcome(tuple(reports))


def gather(talk: Talk, question: bytes, wanted: frozenset[int], seconds: float) -> Mapping[int, bytes]:
    """Ask who is there until all of ``wanted`` have said what they have to say, and remember who else is who.

    Args:
        talk: whom to talk to.
        question: the message; it must never have been asked before, so that no old answer fits.
        wanted: places.
        seconds: how long to wait.

    Returns:
        What each of ``wanted`` sent with its answer, by place; less than all where the time was up.
    """
    until = talk.clock() + seconds
    post, found = Post(talk.mailbox, talk.clock, until, talk.most), dict[int, bytes]()
    while True:
        for node in talk.mailbox.online():
            if talk.places.place_of(node) not in found:
                post.ask(node, "hello", lambda: question)
        for node, asked, reply in post.replies():
            if reply.code != OK:
                _refused(talk, post, node, asked, reply)
                continue
            place, payload = talk.proved(node, asked, reply, post)
            if place is not None:
                found[place] = payload
                post.done(node)
        if wanted <= found.keys() or talk.clock() >= until:
            return {place: found[place] for place in sorted(wanted & found.keys())}
        talk.sleep(POLL_SECONDS)


def _refused(talk: Talk, post: Post, node: int, asked: Asked, reply: Reply) -> None:
    """Tell the operator of a refusal; only one that a party has signed means that it will not answer.

    A place that the refusal proves is the node's from now on. A node that is a party's and refuses in nobody's name is
    asked again: its folder may have been damaged, and mended since.
    """
    word = read_word(reply.data, asked.digest, reply.code, talk.places.publics)
    proven = word is not None and talk.places.claim(node, word.place)
    talk.tell(node, talk.places.place_of(node), reply.code)
    if not proven and talk.places.place_of(node) is not None and post.final(node):
        post.later(node, SILENT)


def _line(report: StepReport, places: Places) -> str:
    asked = len(report.answered) + len(report.missing)
    missing = f"; missing: {places.listed(report.missing)}" if report.missing else ""
    return (
        f"step {report.step}: {len(report.answered)} of {asked} answered in {report.seconds:.1f} s, "
        f"{report.received:,} bytes up, {report.sent:,} down{missing}"
    )


class _Step:
    """One step of the session: whom to ask, what to make of what comes, when it is enough."""

    def __init__(self, server: Aggregator, talk: Talk, opening: bytes, first: bool, seconds: float) -> None:
        self._server, self._talk, self._opening, self._first = server, talk, opening, first
        self._began = talk.clock()
        self._until = self._began + seconds
        self._post = Post(talk.mailbox, talk.clock, self._until, talk.most)

    def wait(self) -> None:
        """Ask and hear until everybody has answered, nobody who is missing will, or the time is up."""
        while True:
            self._ask()
            for node, asked, reply in self._post.replies():
                self._hear(node, asked, reply)
            missing = self._server.waiting_for
            if not missing or self._talk.clock() >= self._until or self._hopeless(missing):
                return
            self._talk.sleep(POLL_SECONDS)

    def report(self, outlook: Outlook) -> StepReport:
        """What the step came to."""
        seconds, post = self._talk.clock() - self._began, self._post
        return StepReport(outlook.step, outlook.answered, outlook.waiting_for, seconds, post.sent, post.received)

    def _wanted(self) -> frozenset[int]:
        """Everybody who has something to answer: whom the step waits for, and whoever is asked beside that."""
        asked = (peer for peer in self._server.outbox.clients if self._server.awaits(peer))
        return self._server.waiting_for.union(asked)

    def _ask(self) -> None:
        wanted, places, online = self._wanted(), self._talk.places, self._talk.mailbox.online()
        lost = any(places.node_of(place) is None for place in wanted)
        for peer in sorted(wanted):
            away = places.node_of(peer)
            if away is not None and away not in online:
                self._post.returns(away)
                self._talk.once(away, f"{places.title(peer)} is offline, asked again when it returns")
        for node in online:
            place = places.place_of(node)
            if place is None and lost:
                self._post.ask(node, "open" if self._first else "hello", lambda: self._opening)
            elif place is not None and place in wanted:
                self._post.ask(node, self._kind(place), partial(self._message, place))

    def _kind(self, place: int) -> Kind:
        if place >= self._server.parameters.clients:
            return "helper"
        return "open" if self._first else "step"

    def _message(self, place: int) -> bytes:
        kind = self._kind(place)
        if kind == "open":
            return self._opening
        message = self._server.outbox.to(place)
        return to_helper(self._opening, message) if kind == "helper" else message

    def _hear(self, node: int, asked: Asked, reply: Reply) -> None:
        if reply.code != OK:
            _refused(self._talk, self._post, node, asked, reply)
            return
        place, data = self._talk.places.place_of(node), reply.data
        if asked.kind in ("hello", "open"):
            place, data = self._talk.proved(node, asked, reply, self._post)
        if place is None:
            return
        if self._kind(place) != asked.kind or not self._server.awaits(place):
            self._post.done(node)  # it has told who it is, or comes too late
        elif not data:
            self._post.later(node, SILENT)
        else:
            self._take(node, place, data)

    def _take(self, node: int, place: int, data: bytes) -> None:
        try:
            self._server.receive(place, data)
        except RemoteProtocolError as refusal:
            if refusal.code == _BUSY:
                self._post.later(node, SOON)
            else:
                self._talk.once(node, f"{self._talk.places.title(place)}: {refusal.code} at step {refusal.step}")
                self._post.later(node, SILENT)
        else:
            self._post.done(node)

    def _hopeless(self, missing: frozenset[int]) -> bool:
        """Whether all who are missing have said, each under its own signature, that they will not answer.

        What a node says that has proved no place counts for nobody: whoever is registered could close an opening with
        it, and cost parties that are slow their turn.
        """
        nodes = [self._talk.places.node_of(place) for place in missing]
        return all(node is not None and self._post.final(node) for node in nodes)
