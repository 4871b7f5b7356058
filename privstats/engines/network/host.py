"""The server's folder: the next plan, its session, its release on the disk, and on to the next, through any kill.

It asks the course what follows and lets ``NodeHost`` carry that; what is on the disk is never done twice. A plan alone
is a course of one node, and what its session comes to is what the run comes to. What differs from kind to kind is in
``course.kinds``. Over ``node_host``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from privstats.course import Node, Releases, nodes, verify_next
from privstats.engines.network.announcement import NO_SUM, RoundAnnouncement, digest_of
from privstats.engines.network.driver import Clock, Say, Sleep
from privstats.engines.network.folder import Folder, NodeFolder
from privstats.engines.network.node_host import Carrying, Ended, NodeHost, Waiting, today
from privstats.engines.network.node_transport import NodeTransport, OutgoingAnnouncement
from privstats.engines.network.session_history import EndedSession, KeptWords, SessionHistory
from privstats.engines.network.transport import Deadlines, Transport
from privstats.errors import AggregationError, LocalProtocolError, NothingToResumeError, SessionEndedError
from privstats.release import Release
from privstats.schema.public_values import beside

__all__ = ["Ended", "Host", "Waiting"]

_LOST = "its journal was gone after it had begun, and another draw of its noise would be a second release"


@dataclass(frozen=True)
class Host:
    """The server's folder."""

    folder: Folder

    @classmethod
    def open(cls, home: str | Path) -> Host:
        """Open a folder.

        Raises:
            LocalProtocolError: the identity is not the server's, or others could read what is in the folder.
            PrivstatsError: what is in it does not fit.
        """
        folder = Folder.open(home)
        if folder.identity.public != folder.roster.server:
            raise LocalProtocolError(
                "identity.pem is not the server's on roster.toml: make a roster with this key, or bring the right one"
            )
        return cls(folder)

    def run(
        self,
        transport: Transport,
        deadlines: Deadlines,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = time.sleep,
        say: Say | None = None,
    ) -> Ended | Waiting:
        """Carry the course from wherever it stands to its end, or to a node for which there are too few.

        Args:
            transport: who carries messages.
            deadlines: the seconds of a step, in every session.
            clock, sleep: seconds that go forward, and a wait.
            say: told a line per step and per refusal; standard output when omitted.

        Raises:
            SessionEndedError: it has ended before; a new one needs a roster with a new run name.
            AggregationError: as for :meth:`NodeHost.run`, where a plan is alone; else the course goes on.
            PrivstatsError: another process is at it, or a file cannot be read or written; nothing is lost.
        """
        carrying = Carrying(transport, deadlines, clock, sleep, say or _printed)
        if self.folder.kind.single:
            return self._run(self.folder.node(0), carrying, say=carrying.say)
        releases: list[Release | None] = []
        asked = False
        for node in nodes(self.folder.course, releases):
            if not self._ended(node.place):
                if asked and self.folder.kind.pauses(self.folder.course, node.place):
                    return Ended(tuple(releases), self._sentence(releases))
                asked = True
                waiting = self._carried(node, releases, carrying)
                if waiting is not None:
                    return waiting
            releases.append(self.folder.release(node.place))
        if not asked:
            with suppress(SessionEndedError):  # who did not hear the end of the last node hears it now
                last = self.folder.node(len(releases) - 1)
                self._run(last, carrying, say=self._prefixed(last.place, carrying.say))
            raise SessionEndedError(f"{self._sentence(releases)}. A new one needs a new run name")
        return Ended(tuple(releases), self._sentence(releases))

    def give_up(self) -> str:
        """End the session of the node that is on, without a sum; the course goes on with the next run.

        Its clients are told by the next run.

        Returns:
            What to tell the operator.

        Raises:
            NothingToResumeError: no node has begun that has not ended.
            SessionEndedError: the session of a plan alone has ended before.
            LocalProtocolError: a run is at it now.
        """
        if self.folder.kind.single:
            return self._host(self.folder.node(0)).give_up()
        on = [place for place in self.folder.nodes if not self._ended(place)]
        if not on:
            raise NothingToResumeError(f"{self.folder.home.name}: no node of the course is on: nothing to give up")
        return f"{_at(on[-1])}{self._host(self.folder.node(on[-1])).give_up()}"

    @property
    def reached(self) -> int:
        """How many nodes have ended, for good."""
        return next(place for place in range(self.folder.course.most + 1) if not self._ended(place))

    def _ended(self, place: int) -> bool:
        """Whether it is on the disk, for good, what came of a node."""
        if place not in self.folder.nodes:
            return False
        node = self.folder.node(place)
        ended_session = SessionHistory(node.home).of(node.session)
        if ended_session is not None and not ended_session.release and not self.folder.told(place):
            self.folder.keep_shown(place, None)
        return ended_session is not None

    def _carried(self, node: Node, releases: Releases, carrying: Carrying) -> Waiting | None:
        """Run one node's session to its end; what it ended in is on the disk then."""
        if node.place and self.folder.kind.gives_back:
            self._parted(self.folder.node(node.place - 1), carrying)
        folder = self._begun(node, releases)
        told = self._prefixed(node.place, carrying.say)
        if self._lost(folder):
            SessionHistory(folder.home).add(EndedSession(folder.session, today(), why=_LOST))
        try:
            found = self._run(folder, carrying, say=told)
        except SessionEndedError as error:
            told(str(error))
        except AggregationError as error:
            told(str(error))
            if (
                SessionHistory(folder.home).of(folder.session) is None
            ):  # a sum that is not released: it is spent all the same
                SessionHistory(folder.home).add(EndedSession(folder.session, today(), why=str(error)))
        else:
            if isinstance(found, Waiting):
                return Waiting(f"{_at(node.place)}{found.sentence}")
            told(found.sentence)
        self._ended(node.place)
        return None

    def _run(self, folder: NodeFolder, carrying: Carrying, *, say: Say) -> Ended | Waiting:
        """Run one node's session, or what is left of it."""
        transport = NodeTransport(carrying.transport, self._announcing(folder), folder.publics)
        return self._host(folder).run(replace(carrying, transport=transport, say=say))

    def _begun(self, node: Node, releases: Releases) -> NodeFolder:
        """The node's folder: with the plan that it was begun with, which may differ from this machine's in rounding."""
        if node.place not in self.folder.nodes:
            return self.folder.keep(node.place, node.plan)
        folder = self.folder.node(node.place)
        verify_next(self.folder.course, folder.plan, releases)
        return folder

    def _host(self, folder: NodeFolder) -> NodeHost:
        """Who carries one node's session; the seed of noise that all nodes share is on the disk before the first."""
        if folder.totals is not None and self.folder.nodes == (0,):
            folder.totals.seed()
        return NodeHost(folder)

    def _parted(self, folder: NodeFolder, carrying: Carrying) -> None:
        """Say that a node that was given up is over, so that helpers sign that they answered nothing."""
        ended_session = SessionHistory(folder.home).of(folder.session)
        if ended_session is not None and ended_session.panel and not KeptWords(folder.home).proof:
            with suppress(SessionEndedError):
                self._run(folder, carrying, say=carrying.say)

    def _lost(self, folder: NodeFolder) -> bool:
        return folder.begun and not (folder.home / "journal" / "snapshot").exists()

    def _announcing(self, folder: NodeFolder) -> OutgoingAnnouncement:
        """What parties are told of a node; of a plan alone, which all of them have, its digest."""
        above, kind = self.folder, self.folder.kind
        files = {place: above.shown(place) for place in range(folder.place)}
        plan = above.path(folder.place) / "plan.toml"
        values = beside(plan).read_bytes() if not kind.single and beside(plan).exists() else b""
        announcement = RoundAnnouncement(
            course=bytes.fromhex(above.digest),
            roster=above.roster.digest,
            place=folder.place,
            plan="" if kind.single else folder.plan.to_toml(),
            values=digest_of(values),
            outcomes=tuple(NO_SUM if file is None else digest_of(file) for file in files.values()),
        )
        proofs = {place: KeptWords(above.path(place)).proof for place in files} if kind.gives_back else {}
        return OutgoingAnnouncement(
            announcement,
            above.identity,
            values,
            {place: file for place, file in files.items() if file},
            {place: proof for place, proof in proofs.items() if proof},
        )

    def _prefixed(self, place: int, say: Say) -> Say:
        return lambda line: say(f"{_at(place)}{line}")

    def _sentence(self, releases: Sequence[Release | None]) -> str:
        return self.folder.kind.ended(self.folder.course, releases, self.folder.home.name)


def _at(place: int) -> str:
    """The beginning of a line about one node of the course; nodes of Flower's are something else."""
    return f"course, node {place}: "


def _printed(line: str) -> None:
    """A line for the operator, on standard output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
