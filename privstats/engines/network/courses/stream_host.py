"""The server of a stream: one epoch a run, and after each node what others signed of it, for whoever was left out.

Of a correlated stream it weighs the exact sum of every epoch before noise. Over ``host``, which carries nodes.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from privstats.course import Node, Releases, Stream
from privstats.engines.journal import JournaledServer
from privstats.engines.network.courses.folder import CourseFolder, NodeFolder
from privstats.engines.network.courses.host import Carrying, CourseHost
from privstats.engines.network.courses.transport import NodeTransport, OutgoingAnnouncement
from privstats.engines.network.driver import SessionContext
from privstats.engines.network.host import Host, Waiting
from privstats.engines.network.session_history import KeptWords, SessionHistory
from privstats.engines.network.streams import Totals
from privstats.errors import SessionEndedError
from privstats.release import Release
from privstats.secagg.machines import Aggregator
from privstats.secagg.protocols import protocol_of

__all__ = ["StreamHost"]


@dataclass(frozen=True)
class _NodeHost(Host):
    """The server of one node of a stream."""

    folder: NodeFolder

    @property
    def _stream(self) -> Stream:
        course = self.folder.above.course
        assert isinstance(course, Stream)  # noqa: S101
        return course

    def _machine(self, **named: Any) -> Aggregator:
        """Of a correlated stream the sum is weighed before noise is due, and may be read again after a kill."""
        plan, roster = self.folder.plan, self.folder.roster
        if not self._stream.row.correlated:
            return super()._machine(**named)
        return protocol_of(plan.masking).server(plan.masking, roster=roster, noise_due=False, **named)

    def _released(self, server: JournaledServer, context: SessionContext) -> Release:
        if not self._stream.row.correlated:
            return super()._released(server, context)
        self.folder.release_charge()
        above = self.folder.above
        before = [above.release(place) for place in range(self.folder.place)]
        return _totals(above).weighed(server.result, before)


@dataclass(frozen=True)
class StreamHost(CourseHost):
    """The server's folder of a stream."""

    def _host(self, folder: NodeFolder) -> Host:
        stream = self.folder.course
        if isinstance(stream, Stream) and stream.row.correlated and self.folder.nodes == (0,):
            _totals(self.folder).seed()
        return _NodeHost(folder)

    def _carried(self, node: Node, releases: Releases, carrying: Carrying) -> Waiting | None:
        if node.place:
            self._parted(self.folder.node(node.place - 1), carrying)
        return super()._carried(node, releases, carrying)

    def _parted(self, node: NodeFolder, carrying: Carrying) -> None:
        """Say that a node that was given up is over, so that helpers sign that they answered nothing."""
        ended_session = SessionHistory(node.home).of(node.session)
        if ended_session is not None and ended_session.panel and not KeptWords(node.home).proof:
            transport = NodeTransport(carrying.transport, self._announcing(node))
            with suppress(SessionEndedError):
                self._host(node).run(
                    transport, carrying.deadlines, clock=carrying.clock, sleep=carrying.sleep, say=carrying.say
                )

    def _pauses(self, place: int) -> bool:
        """One epoch a run."""
        places = self.folder.course.places  # type: ignore[attr-defined]
        return bool(places[place].epoch != places[place - 1].epoch)

    def _announcing(self, folder: NodeFolder) -> OutgoingAnnouncement:
        proofs = {place: KeptWords(self.folder.path(place)).proof for place in range(folder.place)}
        return replace(super()._announcing(folder), words={place: proof for place, proof in proofs.items() if proof})

    def _sentence(self, releases: Sequence[Release | None]) -> str:
        stream, name = self.folder.course, self.folder.home.name
        assert isinstance(stream, Stream)  # noqa: S101
        last = stream.places[len(releases) - 1].epoch
        nodes = [place for place, each in enumerate(stream.places[: len(releases)]) if each.epoch == last]
        without = sum(releases[place] is None for place in nodes)
        said = "" if not without else f", {without} of its {len(nodes)} nodes without a sum"
        ended = ", and with it the stream" if len(releases) == stream.most else ""
        return f"epoch {last} of {stream.epochs} ended{said}{ended}: privstats stream show {name}"


def _totals(folder: CourseFolder) -> Totals:
    course = folder.course
    assert isinstance(course, Stream)  # noqa: S101
    return Totals(folder.home, course, lambda purpose: hmac.digest(folder.key, purpose.encode(), "sha256"))
