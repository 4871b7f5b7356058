"""The server's folder: the next plan, its session, its release on the disk, and on to the next, through any kill.

It asks the course for the next plan and lets ``RoundHost`` carry its session; work whose result is on the disk is never
repeated. A plan alone is a course of one round, and its session's result is the run's. ``course.kinds`` holds the
differences between kinds of courses.

Every session between machines is a course of one round, or a round of a longer one. ``course.iter_rounds`` is the one
runner: a simulation, a stream in a folder and the server of a study take the next round from it and return the
outcome. The folder of a round is durable: ``nodes/2`` has its own plan, run name and journal, and its owner's
identity, key and ledger, so ``RoundHost``, ``RoundParty`` and the loop carry its session without knowing that there
are others. ``Host``, ``Party`` and ``Folder`` stand around them, with an envelope that holds a message's round, and
an announcement, signed by the server, that goes with a round's first message and costs no round trip. A party keeps
the releases it was shown; it refuses a second plan or release for a round even if it follows from the course, so a
server cannot try weights on a party that has not answered yet. A restarted server takes the plan in the round's
folder and does not compute it again: eigenvectors have other last digits on another machine, and one round has one
plan.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from privstats.course import Releases, Round, iter_rounds, verify_next
from privstats.engines.network.driver import Clock, Say, Sleep
from privstats.engines.network.folder import Folder, RoundFolder
from privstats.engines.network.operator_log import log_line
from privstats.engines.network.round_host import Carrying, Ended, RoundHost, Waiting
from privstats.engines.network.round_transport import OutgoingAnnouncement, RoundTransport
from privstats.engines.network.session_end import today
from privstats.engines.network.session_history import EndedSession, KeptStatements, SessionHistory
from privstats.engines.network.statements import NO_SUM, RoundAnnouncement, digest_of
from privstats.engines.network.transport import Deadlines, Transport
from privstats.errors import AggregationError, LocalProtocolError, NothingToResumeError, SessionEndedError
from privstats.release import Release
from privstats.schema.public_values import Published, Values

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
            LocalProtocolError: the identity is not the server's, or other accounts could read the folder.
            PrivstatsError: its files do not fit each other.
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
        """Carry the course from its current round to its end, or to a round with too few parties.

        Args:
            transport: carries messages.
            deadlines: the seconds of a step, in every session.
            clock, sleep: monotonic seconds, and a wait.
            say: called with a line per step and per refusal, a :class:`WarningLine` one for a refusal; by default
                they are logged as ``privstats.host``.

        Raises:
            SessionEndedError: it ended before; a new session needs a roster with a new run name.
            LedgerError: the server's account is to be charged and cannot pay; no party was asked for anything.
            AggregationError: as for :meth:`RoundHost.run`, for a plan alone; a longer course continues.
            PrivstatsError: another process runs it, or a file cannot be read or written; nothing is lost.
        """
        carrying = Carrying(transport, deadlines, clock, sleep, say or log_line)
        if self.folder.kind.single:
            only = self.folder.round(0)
            if SessionHistory(only.home).of(only.session) is None:
                only.ask_charge()
            return self._run(only, carrying, say=carrying.say)
        releases: list[Release | None] = []
        asked = False
        for round_ in iter_rounds(self.folder.course, releases):
            if not self._ended(round_.place):
                if asked and self.folder.kind.pauses(self.folder.course, round_.place):
                    return Ended(tuple(releases), self._sentence(releases))
                asked = True
                waiting = self._carried(round_, releases, carrying)
                if waiting is not None:
                    return waiting
            releases.append(self.folder.release(round_.place))
        if not asked:
            with suppress(SessionEndedError):  # parties that missed the end of the last round are notified now
                last = self.folder.round(len(releases) - 1)
                self._run(last, carrying, say=self._prefixed(last.place, carrying.say))
            raise SessionEndedError(f"{self._sentence(releases)}. A new one needs a new run name")
        return Ended(tuple(releases), self._sentence(releases))

    def give_up(self) -> str:
        """End the current round's session without a sum; the next run continues the course.

        The next run notifies its clients.

        Returns:
            A sentence for the operator.

        Raises:
            NothingToResumeError: no round is open.
            SessionEndedError: the session of a plan alone ended before.
            LocalProtocolError: another process runs it now.
        """
        if self.folder.kind.single:
            return self._host(self.folder.round(0)).give_up()
        on = [place for place in self.folder.rounds if not self._ended(place)]
        if not on:
            raise NothingToResumeError(f"{self.folder.home.name}: no round of the course is on: nothing to give up")
        return f"{_at(on[-1])}{self._host(self.folder.round(on[-1])).give_up()}"

    @property
    def reached(self) -> int:
        """Number of rounds that have ended."""
        return next(place for place in range(self.folder.course.most + 1) if not self._ended(place))

    def _ended(self, place: int) -> bool:
        """Whether a round's outcome is on the disk."""
        if place not in self.folder.rounds:
            return False
        begun = self.folder.round(place)
        ended_session = SessionHistory(begun.home).of(begun.session)
        if ended_session is not None and not ended_session.release and not self.folder.has_outcome(place):
            self.folder.keep_outcome(place, None)
        return ended_session is not None

    def _carried(self, round_: Round, releases: Releases, carrying: Carrying) -> Waiting | None:
        """Run one round's session to its end; its outcome is on the disk then."""
        if round_.place and self.folder.kind.gives_back:
            self._parted(self.folder.round(round_.place - 1), carrying)
        folder = self._begun(round_, releases)
        folder.ask_charge()
        say = self._prefixed(round_.place, carrying.say)
        if self._lost(folder):
            SessionHistory(folder.home).add(EndedSession(folder.session, today(), why=_LOST))
        try:
            found = self._run(folder, carrying, say=say)
        except SessionEndedError as error:
            say(str(error))
        except AggregationError as error:
            say(str(error))
            if (
                SessionHistory(folder.home).of(folder.session) is None
            ):  # a sum that is not released is spent all the same
                SessionHistory(folder.home).add(EndedSession(folder.session, today(), why=str(error)))
        else:
            if isinstance(found, Waiting):
                return replace(found, what=f"{_at(round_.place)}{found.what}")
            say(found.sentence)
        self._ended(round_.place)
        return None

    def _run(self, folder: RoundFolder, carrying: Carrying, *, say: Say) -> Ended | Waiting:
        """Run one round's session, or the rest of it."""
        transport = RoundTransport(carrying.transport, self._announcing(folder), folder.publics)
        return self._host(folder).run(replace(carrying, transport=transport, say=say))

    def _begun(self, round_: Round, releases: Releases) -> RoundFolder:
        """The round's folder, with the plan under which it began, which may differ from this machine's in rounding."""
        if round_.place not in self.folder.rounds:
            return self.folder.keep(round_.place, round_.plan)
        folder = self.folder.round(round_.place)
        verify_next(self.folder.course, folder.plan, releases)
        return folder

    def _host(self, folder: RoundFolder) -> RoundHost:
        """The host of one round's session; the seed of noise that all rounds share is on the disk before the first."""
        if folder.totals is not None and self.folder.rounds == (0,):
            folder.totals.seed()
        return RoundHost(folder)

    def _parted(self, folder: RoundFolder, carrying: Carrying) -> None:
        """Notify helpers that a round was given up, so that they sign that they answered nothing."""
        ended_session = SessionHistory(folder.home).of(folder.session)
        if ended_session is not None and ended_session.panel and not KeptStatements(folder.home).proof:
            with suppress(SessionEndedError):
                self._run(folder, carrying, say=carrying.say)

    def _lost(self, folder: RoundFolder) -> bool:
        return folder.begun and not (folder.home / "journal" / "snapshot").exists()

    def _announcing(self, folder: RoundFolder) -> OutgoingAnnouncement:
        """The announcement of a round; of a plan alone, which all parties have, only its digest."""
        above, kind = self.folder, self.folder.kind
        files = {place: above.outcome_bytes(place) for place in range(folder.place)}
        values = {} if kind.single or folder.plan.published is None else folder.plan.published.read()
        last = above.values(folder.place - 1) if folder.place else {}
        before = {value.digest for value in last.values()}
        fresh = {name: value for name, value in values.items() if value.digest not in before}
        announcement = RoundAnnouncement(
            course=bytes.fromhex(above.digest),
            roster=above.roster.digest,
            place=folder.place,
            plan="" if kind.single else folder.plan.to_toml(),
            values={name: value.digest for name, value in values.items()},
            outcomes=tuple(NO_SUM if file is None else digest_of(file) for file in files.values()),
        )
        proofs = {place: KeptStatements(above.path(place)).proof for place in files} if kind.gives_back else {}
        return OutgoingAnnouncement(
            announcement,
            above.identity,
            _file_of(values),
            _file_of(fresh),
            {place: file for place, file in files.items() if file},
            {place: proof for place, proof in proofs.items() if proof},
        )

    def _prefixed(self, place: int, say: Say) -> Say:
        return lambda line: say(type(line)(f"{_at(place)}{line}"))

    def _sentence(self, releases: Sequence[Release | None]) -> str:
        return self.folder.kind.ended(self.folder.course, releases, self.folder.home)


def _file_of(values: Mapping[str, Values]) -> bytes:
    return Published.of(values).encode() if values else b""


def _at(place: int) -> str:
    """The beginning of a line about one round of the course."""
    return f"course, round {place}: "
