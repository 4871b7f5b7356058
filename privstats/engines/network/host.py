"""Run the server's folder, round by round, through any kill.

A party refuses a second plan or release for a round, so a server cannot try weights on it. A restarted server reads a
round's plan from disk, because recomputed eigenvectors differ in their last digits.
"""

from __future__ import annotations

import os
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
from privstats.engines.network.session_end import EndedSession, SessionHistory, StoredStatements, file_digest, today
from privstats.engines.network.statements import NO_SUM, RoundAnnouncement, digest_of
from privstats.engines.network.transport import Deadlines, Transport
from privstats.errors import (
    AggregationError,
    LocalProtocolError,
    NothingToResumeError,
    PrivstatsError,
    SessionEndedError,
    TooFewAnswersError,
)
from privstats.printable.command_line import command_line
from privstats.release import Release
from privstats.schema.public_values import Published, Values

_LOST = "its journal was gone after it had begun, and another draw of its noise would be a second release"


@dataclass(frozen=True)
class Host:
    """The server's folder.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import Deadlines, Host, LocalTransport, simulated_study
        >>> _ = Path("records.py").write_text("load = lambda: ([[0.1, 0.2], [0.3, 0.4]], [0, 1])")
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 2, 10), privacy=ps.NoPrivacy())
        >>> simulated_study("study", plan, "records.py")
        >>> nodes = LocalTransport({node: Path("study/parties", str(node)) for node in range(3)})
        >>> (release,) = Host.open("study/host").run(nodes, Deadlines()).releases
        >>> release.survivors
        (0, 1, 2)
    """

    folder: Folder

    @classmethod
    def open(cls, home: str | Path) -> Host:
        """Open a folder.

        Raises:
            LocalProtocolError: the identity is not the server's, or other accounts could read the folder.
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
        """Carry the course on to its end, or to a round with too few parties.

        Args:
            say: called with a line per step and refusal, a :class:`WarningLine` for a refusal; default
                ``privstats.host``'s log.

        Raises:
            SessionEndedError: it ended before; a new session needs a new run name.
            LedgerError: the server's account cannot pay; no party was contacted.
            AggregationError: as for :meth:`RoundHost.run`, for a plan alone; a longer course continues.
            PrivstatsError: in use, or a file error; nothing is lost.
        """
        carrying = Carrying(transport, deadlines, clock, sleep, say or log_line)
        if self.folder.kind.single:
            only = self.folder.round(0)
            if SessionHistory(only.home).of(only.session) is None:
                only.ask_charge()
            return self._run(only, carrying, say=carrying.say)
        return self._run_course(carrying)

    def _run_course(self, carrying: Carrying) -> Ended | Waiting:
        releases: list[Release | None] = []
        checked = False
        for round_ in iter_rounds(self.folder.course, releases):
            if not self._ended(round_.place):
                if checked and self.folder.kind.pauses(self.folder.course, round_.place):
                    return Ended(tuple(releases), self._sentence(releases))
                checked = True
                waiting = self._run_round(round_, releases, carrying)
                if waiting is not None:
                    return waiting
            releases.append(self.folder.release(round_.place))
        if not checked:
            with suppress(SessionEndedError):  # parties that missed the end of the last round are notified now
                last = self.folder.round(len(releases) - 1)
                self._run(last, carrying, say=self._prefixed(last.place, carrying.say))
            raise SessionEndedError(f"{self._sentence(releases)}. A new one needs a new run name")
        return Ended(tuple(releases), self._sentence(releases))

    def give_up(self) -> str:
        """End the current round's session without a sum, and return a sentence for the operator.

        The next run notifies clients and continues the course.

        Raises:
            NothingToResumeError: no round is open.
            SessionEndedError: a plan alone's session ended before.
        """
        if self.folder.kind.single:
            return self._host(self.folder.round(0)).give_up()
        on = [place for place in self.folder.rounds if not self._ended(place)]
        if not on:
            raise NothingToResumeError(f"{self.folder.home.name}: no round of the course is on: nothing to give up")
        return f"{_at(on[-1])}{self._host(self.folder.round(on[-1])).give_up()}"

    def next_step(self, ended: Ended) -> str:
        """Return how a model is fitted on a run's releases; "" where no head is built from them."""
        from privstats.heads.registry import suited

        able = suited([each.plan.schema for each in ended.releases if each is not None])
        return f"fit a model: {command_line('head', 'fit', self.folder.home)}" if able else ""

    @property
    def reached(self) -> int:
        """Number of rounds that have ended."""
        return next(place for place in range(self.folder.course.most + 1) if not self._ended(place))

    def _ended(self, place: int) -> bool:
        if place not in self.folder.rounds:
            return False
        begun = self.folder.round(place)
        history = SessionHistory(begun.home)
        ended_session = history.of(begun.session)
        if ended_session is None and not self.folder.kind.single and history.all():
            raise LocalProtocolError(
                f"{begun.name} holds a session of another course, roster or version of privstats that has ended: bring "
                "that course or roster back, go on with that version, or begin in a new folder"
            )
        if ended_session is not None and not ended_session.release and not self.folder.has_outcome(place):
            self.folder.store_outcome(place, None)
        return ended_session is not None

    def _run_round(self, round_: Round, releases: Releases, carrying: Carrying) -> Waiting | None:
        if round_.place and self.folder.kind.gives_back:
            self._notify_helpers(self.folder.round(round_.place - 1), carrying)
        folder = self._round_folder(round_, releases)
        folder.ask_charge()
        say = self._prefixed(round_.place, carrying.say)
        if self._lost(folder):
            SessionHistory(folder.home).add(EndedSession(folder.session, today(), why=_LOST))
        try:
            result = self._run(folder, carrying, say=say)
        except SessionEndedError as error:
            say(str(error))
        except AggregationError as error:
            say(str(error))
            history = SessionHistory(folder.home)
            if history.of(folder.session) is None:  # a sum that is not released is spent all the same
                history.add(EndedSession(folder.session, today(), why=str(error)))
        else:
            if isinstance(result, Waiting):
                return replace(result, what=f"{_at(round_.place)}{result.what}")
            say(result.sentence)
        self._ended(round_.place)
        return None

    def _run(self, folder: RoundFolder, carrying: Carrying, *, say: Say) -> Ended | Waiting:
        transport = RoundTransport(carrying.transport, self._announcing(folder), folder.publics)
        return self._host(folder).run(replace(carrying, transport=transport, say=say))

    def _round_folder(self, round_: Round, releases: Releases) -> RoundFolder:
        if round_.place not in self.folder.rounds:
            return self.folder.store(round_.place, round_.plan)
        folder = self.folder.round(round_.place)
        verify_next(self.folder.course, folder.plan, releases)
        return folder

    def _host(self, folder: RoundFolder) -> RoundHost:
        """The seed of noise that all rounds share must be on disk before the first round."""
        if folder.totals is not None and self.folder.rounds == (0,):
            folder.totals.seed()
        return RoundHost(folder)

    def _notify_helpers(self, folder: RoundFolder, carrying: Carrying) -> None:
        """Notify helpers that a round was given up, so that they sign that they answered nothing."""
        ended_session = SessionHistory(folder.home).of(folder.session)
        if ended_session is not None and ended_session.panel and not StoredStatements(folder.home).proof:
            with suppress(SessionEndedError):
                self._run(folder, carrying, say=carrying.say)

    def _lost(self, folder: RoundFolder) -> bool:
        return folder.begun and not (folder.home / "journal" / "snapshot").exists()

    def _announcing(self, folder: RoundFolder) -> OutgoingAnnouncement:
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
            plan="" if kind.single else folder.plan.at(None).to_toml(),
            values={name: value.digest for name, value in values.items()},
            outcomes=tuple(NO_SUM if file is None else digest_of(file) for file in files.values()),
        )
        proofs = {place: StoredStatements(above.path(place)).proof for place in files} if kind.gives_back else {}
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
    return f"course, round {place}: "


def run_releases(
    host: Host,
    transport: Transport,
    deadlines: Deadlines,
    *,
    again: str,
    say: Say | None = None,
    sleep: Sleep = time.sleep,
) -> tuple[Release | None, ...]:
    """Run a host's session or course to its end, or return its earlier releases.

    Args:
        transport: carries the messages.
        again: the operator's remedy for too few answers.
        deadlines, say, sleep: as for :meth:`Host.run`.

    Raises:
        TooFewAnswersError: a deadline passed with too few answers; the next call continues.
        SessionEndedError: the session ended before, and its release is missing.
        AggregationError: it ends now, without a sum.
        PrivstatsError: as for :meth:`Host.run`.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import Deadlines, Host, LocalTransport, run_releases, simulated_study
        >>> _ = Path("records.py").write_text("load = lambda: ([[0.1, 0.2], [0.3, 0.4]], [0, 1])")
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 2, 10), privacy=ps.NoPrivacy())
        >>> simulated_study("study", plan, "records.py")
        >>> nodes = LocalTransport({node: Path("study/parties", str(node)) for node in range(3)})
        >>> (release,) = run_releases(Host.open("study/host"), nodes, Deadlines(), again="start it again")
        >>> release.moments.N
        array([3., 3.])
    """
    say = say or log_line
    try:
        outcome = host.run(transport, deadlines, sleep=sleep, say=say)
    except SessionEndedError as ended:
        before = _released(host.folder)
        if before is None:
            raise
        say(str(ended))
        return before
    if isinstance(outcome, Waiting):
        raise TooFewAnswersError(f"{outcome.what}. Nothing is lost: {again}")
    for line in filter(None, (outcome.sentence, host.next_step(outcome))):
        say(line)
    return outcome.releases


def named_home(home: str | os.PathLike[str] | None, environment: Mapping[str, str], variable: str) -> Path:
    """Return the absolute folder named by a program or its environment."""
    named = environment.get(variable) if home is None else home
    if named is None:
        raise PrivstatsError(f"no folder is named: give its path, or set {variable} before the server starts")
    if not Path(named).is_absolute():
        raise PrivstatsError(
            f"a folder is named by an absolute path, got {os.fspath(named)!r}: give Path(...).absolute()"
        )
    return Path(named)


def _released(folder: Folder) -> tuple[Release | None, ...] | None:
    """Return an ended run's outcomes; None without a release, or if its file was replaced."""
    if not folder.kind.single:
        return tuple(folder.releases_so_far())
    session = folder.round(0)
    ended = SessionHistory(session.home).of(session.session)
    path = session.release_path
    if ended is None or not path.exists() or file_digest(path) != ended.release:
        return None
    return (folder.release(0),)
