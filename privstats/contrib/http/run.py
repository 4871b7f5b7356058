"""The leader's folder of one run: the panel's offers, the journal of its session, and the end.

It survives any kill. Call it in one thread, except where a method admits any.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privstats import session
from privstats.contrib.http.closing import Closing
from privstats.contrib.http.exchange import CODES, Refused
from privstats.contrib.http.folders import Answered, End, Manifest, PanelOffers, leader_folder, named
from privstats.contrib.http.owner import AGAIN, TAKEN, Verdict
from privstats.contrib.http.settings import Settings
from privstats.engines.carriers import (
    EndedSession,
    Folder,
    JournaledLeader,
    JournaledServer,
    RoundFolder,
    SessionEnd,
    WarningLine,
    log_line,
    reason_of,
)
from privstats.errors import (
    AggregationError,
    NothingToResumeError,
    PrivstatsError,
    RemoteProtocolError,
    SessionEndedError,
)
from privstats.secagg import Panel

_HOME = "leader"
_GRACE_SECONDS = 60.0
_MOST_STATEMENT = 256


@dataclass
class CurrentStep:
    """The current step; ``offer`` before the panel is complete. ``since`` is its Unix time."""

    name: str = "offer"
    since: float = 0.0


@dataclass
class LeaderRun:
    """A leader's run, opened with :meth:`open`.

    Attributes:
        now: Unix seconds.
        counted: seconds that no setting of the clock moves.
        defers: ``part_sums`` sums settled parts; checks wait for them.
        manifest: for devices; None until the panel is complete.
        trouble: why the sum is not released; else empty.
        refusals: refused messages of helpers, by code.
    """

    folder: RoundFolder
    settings: Settings
    now: Callable[[], float] = time.time
    counted: Callable[[], float] = time.monotonic
    say: Callable[[str], None] = log_line
    defers: bool = False
    manifest: Manifest | None = None
    ended: EndedSession | None = None
    trouble: str = ""
    refusals: Counter[str] = field(default_factory=Counter)
    step: CurrentStep = field(default_factory=CurrentStep)

    def __post_init__(self) -> None:
        self._leader: JournaledLeader | None = None
        self._server: JournaledServer | None = None
        self._parameters: Any = self.folder.plan.masking
        self._ending = SessionEnd(self.folder, self.say)
        self._offers = PanelOffers(self.folder, self.settings, self.say)
        self._answered = Answered(self._run_home, self.folder.key)
        self._closing = False
        date = self.settings.closes.timestamp() + _GRACE_SECONDS
        self._date = Closing(date, self._run_home / "closes", self.say, self.now, self.counted)

    @classmethod
    def open(cls, home: str | os.PathLike[str], **named: Any) -> LeaderRun:
        """Resume a folder's run before its offers, in its journal, or at its end.

        Raises:
            LedgerError: the leader's noise has no account to charge.
            LocalProtocolError: no leader's folder, or an unsupported plan or course.
            PrivstatsError: its files are invalid, restored from a backup, or in use.
        """
        run = cls(leader_folder(Folder.open(home)), Settings.read(home), **named)
        run._begin()
        return run

    def close(self) -> None:
        """Release the folder's locks."""
        for journal in (self._server, self._leader):
            if journal is not None:
                journal.close()
        self._server = self._leader = None

    def heard(self, sender: int) -> bytes | None:
        """Return the sender's report's name, or None; callable from any thread."""
        return self._answered.of(sender)

    @property
    def journal(self) -> JournaledServer | None:
        """The journal, for its one thread; None before the panel is complete and after the end."""
        return self._server

    @property
    def reports(self) -> int:
        """Number of senders with a report; after the end, in the release."""
        return len(self.ended.survivors) if self.ended is not None else len(self._answered)

    @property
    def end(self) -> End | None:
        """The signed end for any client; None before."""
        return None if self.ended is None else self._signed_end(self.ended)

    @property
    def release(self) -> bytes | None:
        """The release's file; None before, or without one."""
        if self.ended is None or not self.ended.release:
            return None
        return self.folder.release_bytes("privstats http lead")

    @property
    def statements(self) -> bytes:
        """Signed statements about the end for ``session.free``, or empty."""
        return self._ending.proof

    @property
    def offering(self) -> list[int]:
        """Helpers without an offer yet."""
        if self._server is not None or self.ended is not None:
            return []
        return self._offers.missing

    def offered(self, place: int) -> bytes | None:
        """Return an index's offer; callable from any thread."""
        return self._offers.of(place)

    def take_offer(self, place: int, data: bytes) -> bool:
        """Store a helper's offer once; return whether new.

        Raises:
            Refused: ``bad_offer``, ``other_offer``, ``over``, or ``stranger``.
        """
        if self.ended is not None:
            raise Refused("over")
        if not self._offers.add(place, data):
            return False
        self._lead()
        return True

    def receive(self, reports: Sequence[tuple[int, bytes | bytearray]]) -> list[Verdict]:
        """Return verdicts, with accepted reports on the disk."""
        if self._server is None:
            return [self._verdict_without_journal(sender, data) for sender, data in reports]
        known = [(sender, data) for sender, data in reports if sender < self._parameters.clients]
        refusals = iter(self._server.receive_many(known))
        verdicts = [
            self._verdict(sender, data, next(refusals)) if sender < self._parameters.clients else "stranger"
            for sender, data in reports
        ]
        if len(self._answered) == self._parameters.clients or self._closing:
            self.tick()
        return verdicts

    def exchange(self, place: int, payload: bytes) -> bytes | End | None:
        """Process any message of a helper; return its next one."""
        if payload and self.ended is None and self._server is not None:
            self._take(place, payload)
        elif payload and self.ended is not None and self.ended.panel and len(payload) <= _MOST_STATEMENT:
            self._ending.add_statement(self.ended, place, payload)
        self.tick()
        if self.ended is not None:
            return self._signed_end(self.ended, b"".join(self.ended.offers))
        peer = self._peer(place)
        if self._server is None or peer not in self._server.outbox.clients or not self._server.awaits(peer):
            return None
        return self._server.outbox.to(peer)

    def waits_for(self, place: int) -> bool:
        """Return whether a helper must answer."""
        server, peer = self._server, self._peer(place)
        return server is not None and peer in server.outbox.clients and server.awaits(peer)

    def tick(self) -> None:
        """Close due steps; release the sum and store the end."""
        while self._server is not None and self._closed_one(self._server):
            pass
        name = "offer" if self._server is None else self._server.step
        name = "over" if self.ended is not None else name
        if name != self.step.name or not self.step.since:
            self.step = CurrentStep(name, self.now())

    def close_reports(self) -> None:
        """Accept no further reports; raise ``PrivstatsError`` for too few."""
        server = self._running()
        if server.step == server.steps[0]:
            abort = server.step_status().abort
            if abort is not None:
                raise PrivstatsError(f"reports stay open: {abort}")
        self._closing = True
        self.tick()

    def give_up(self) -> str:
        """End the run permanently without a sum; helpers sign that they answered nothing."""
        server = self._running()
        server.abandon()
        self._keep(self._ending.without_sum(server, "it was given up"))
        return self.sentence

    @property
    def sentence(self) -> str:
        """The run's end, for operators; else empty."""
        return "" if self.ended is None else self.ended.sentence(self.folder.name)

    def _begin(self) -> None:
        release, self.ended = self.folder.release_path, self._ending.known
        if self.ended is not None:
            JournaledServer.remove(self._run_home / "server")
            self._answered.read()
            self._offers.read()
            self._show(self._offers.panel)
            self.tick()
            return
        if release.exists() and not (self._run_home / "server").exists():
            raise PrivstatsError(f"{self.folder.name}/{release.name} is of another run: move it away first")
        self._leader = self._member()  # before the offers, so that a key of an earlier version is destroyed
        self._offers.read()
        if self._leader.state != "leading":
            self._offers.lead(self._leader.offered)
        self._lead()
        self.tick()

    @property
    def _run_home(self) -> Path:
        return self.folder.home / _HOME / self.folder.roster.digest.hex()

    def _member(self) -> JournaledLeader:
        folder = self.folder
        named: dict[str, Any] = {"identity": folder.identity, "parameters": self._parameters, "roster": folder.roster}
        try:
            return JournaledLeader.resume(folder.home / _HOME, folder.key, **named)
        except NothingToResumeError:
            return JournaledLeader.offer(folder.home / _HOME, folder.key, until=self.settings.box_keys_end, **named)

    def _lead(self) -> None:
        panel = self._offers.panel
        if self._leader is None or panel is None:
            return
        folder = self.folder
        self._server = self._leader.lead(
            panel, lambda keys: session.server(folder.plan, folder.roster, keys=keys, panel=panel)
        )
        self._server.defer(self.defers)
        clients = self._parameters.clients
        self._answered.take({sender: tail for sender, tail in self._server.heard.items() if sender < clients})
        self._show(panel)

    def _show(self, panel: Panel | None) -> None:
        if panel is not None:
            closes = int(self.settings.closes.timestamp())
            self.manifest = Manifest.of(self.folder.plan, self.folder.roster, panel, closes)

    def _verdict(self, sender: int, data: bytes | bytearray, refusal: RemoteProtocolError | None) -> Verdict:
        if refusal is None:
            return TAKEN if self._answered.add(sender, data) else AGAIN
        if refusal.code == "not_expected":
            return "over" if self._server is None or self._server.is_over else "closed"
        return refusal.code if refusal.code in CODES else "malformed"

    def _verdict_without_journal(self, sender: int, data: bytes | bytearray) -> Verdict:
        if self.ended is None:
            return "no_panel"
        return AGAIN if self._answered.of(sender) == named(data) else "over"

    def _take(self, place: int, payload: bytes) -> None:
        try:
            self._running().receive(self._peer(place), payload)
        except RemoteProtocolError as refusal:
            self.refusals[refusal.code] += 1
            if refusal.code != "not_expected":  # a late repeat of an answer is harmless
                self.say(WarningLine(f"helper {place}: {refusal.code} at step {refusal.step}"))

    def _closed_one(self, server: JournaledServer) -> bool:
        if server.is_over:
            self._finish(server)
            return False
        first = server.step == server.steps[0]
        if server.expired:
            server.abandon()
            return True
        if first and not (len(self._answered) == self._parameters.clients or self._due):
            return False
        status = server.step_status()
        if status.waiting_for and (status.abort is not None or not first):
            return False
        if self.defers and not first and server.unsummed:
            return False
        try:
            server.end_step()
        except AggregationError as error:
            self._keep(self._ending.without_sum(server, str(error)))
            return False
        requests = len(status.answered) + len(status.waiting_for)
        self.say(f"step {status.step}: {len(status.answered)} of {requests} answered")
        return True

    @property
    def _due(self) -> bool:
        return self._closing or self._date.passed()

    def _finish(self, server: JournaledServer) -> None:
        if server.step == "failed":
            self._keep(self._ending.without_sum(server, "it failed, or was given up"))
            return
        try:
            self._answered.keep()
            _, ended = self._ending.with_release(server)
        except PrivstatsError as error:
            if reason_of(error) != self.trouble:
                self.trouble = reason_of(error)
                self.say(WarningLine(f"the sum is here and not released: {self.trouble}"))
        else:
            self.trouble = ""
            self._keep(ended)

    def _keep(self, ended: EndedSession) -> None:
        self.ended = ended
        if not ended.release:
            self._answered.forget()
        self._date.forget()
        self.close()
        self.say(self.sentence)

    def _running(self) -> JournaledServer:
        if self.ended is not None:
            raise SessionEndedError(f"{self.sentence}. A new one needs a new run name")
        if self._server is None:
            raise NothingToResumeError(f"the run has not begun: offers are missing of helpers {self.offering}")
        return self._server

    def _signed_end(self, ended: EndedSession, beside: bytes = b"") -> End:
        return End(self.folder.signed_end(ended.release, beside))

    def _peer(self, place: int) -> int:
        return int(self._parameters.clients) + place - 1
