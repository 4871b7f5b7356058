"""The server's folder: a journaled server, its run over a mailbox, the release, and what is left when it is over.

It opens the folder, makes or resumes the session, hands it to the loop, and writes what came of it. No Flower here:
``server_app`` brings the mailbox.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import structs

from privstats import session
from privstats.charging import Charging
from privstats.engines.flower import words
from privstats.engines.flower.conduct import POLL_SECONDS, Clock, Outcome, Say, Shortfall, Sleep, Talk, conduct, gather
from privstats.engines.flower.folder import Folder
from privstats.engines.flower.mail import OK, Deadlines, Mailbox
from privstats.engines.flower.places import Places
from privstats.engines.flower.post import Post
from privstats.engines.flower.tombs import KeptWords, NodeMap, Tomb, Tombs
from privstats.engines.journal import JournaledServer
from privstats.engines.records import overwrite
from privstats.errors import (
    AggregationError,
    InUseError,
    LocalProtocolError,
    NothingToResumeError,
    PrivstatsError,
    RestoredError,
    SessionEndedError,
)
from privstats.files import read_whole
from privstats.release import Release
from privstats.secagg import HelperKeys, Offer, Panel
from privstats.secagg.machines import Aggregator

__all__ = ["Ended", "Host", "Waiting", "printed", "today"]

RELEASE = "release.safetensors"
_FAREWELL_SECONDS = 20.0
_NONCE_BYTES = 32
_NO_RELEASE = bytes(32)


@dataclass(frozen=True)
class Ended:
    """The session has ended in a release.

    Attributes:
        release: what it holds; its file is ``release.safetensors`` in the server's folder.
        outcome: what the steps of this run came to.
        sentence: for the operator.
    """

    release: Release
    outcome: Outcome
    sentence: str


@dataclass(frozen=True)
class Waiting:
    """The time was up with too few; nothing is lost, and the next run goes on from here.

    Attributes:
        outcome: what the steps of this run came to.
        sentence: who is missing, and what to do.
    """

    outcome: Outcome
    sentence: str


class _NoPanel(Exception):  # noqa: N818 - from under a lock to whoever holds it
    """Helpers that have not offered their keys in time."""

    def __init__(self, missing: list[int]) -> None:
        self.missing = missing
        super().__init__(missing)


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
        mailbox: Mailbox,
        deadlines: Deadlines,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = time.sleep,
        say: Say | None = None,
    ) -> Ended | Waiting:
        """Carry the session from wherever it stands: from nothing, from a journal, or from a release not yet written.

        Args:
            mailbox: who carries messages.
            deadlines: the seconds of a step.
            clock, sleep: seconds that go forward, and a wait.
            say: told a line per step and per refusal; standard output when omitted.

        Raises:
            SessionEndedError: it has ended before; a new one needs a roster with a new run name.
            AggregationError: it ends now, without a sum; or the sum is one that is not released, and then the journal
                stays, and the next run says so again.
            PrivstatsError: another process is at it, or a file cannot be read or written; nothing is lost.
        """
        nodes = NodeMap(self.folder.home, self._session)
        plan = self.folder.plan
        talk = Talk(mailbox, self._places(nodes), clock, sleep, say or printed, plan.digest, words.most_bytes(plan))
        tomb = Tombs(self.folder.home).of(self._session)
        if tomb is not None:
            self._farewell(talk, tomb)
            raise SessionEndedError(self._ended(tomb))
        self._make_room(nodes)
        try:
            server = self._server(lambda: self._made(talk, deadlines))
        except _NoPanel as lack:
            return self._without_panel(talk, lack.missing)
        with server:
            return self._carried(server, talk, deadlines)

    def give_up(self) -> str:
        """End the session on purpose; its clients are told by the next run.

        Returns:
            What to tell the operator.

        Raises:
            SessionEndedError: it has ended before.
            NothingToResumeError: it has not begun.
            LocalProtocolError: a run is at it now.
        """
        tomb = Tombs(self.folder.home).of(self._session)
        if tomb is not None:
            raise SessionEndedError(f"{tomb.sentence(self._name)}. There is nothing to give up")
        with self._server(self._nothing, restored=True) as server:  # every copy of it may be ended
            server.abandon()
            return self._bury(server, Tomb(self._session, today(), why="it was given up")).sentence(self._name)

    def _nothing(self) -> Aggregator:
        raise NothingToResumeError(f"{self._name}/journal holds no session: nothing has begun")

    @property
    def _session(self) -> str:
        return self.folder.session

    @property
    def _name(self) -> str:
        return self.folder.name

    def _places(self, nodes: NodeMap) -> Places:
        folder = self.folder
        return Places(
            folder.publics, len(folder.roster), names=folder.roster.names, nodes=nodes.load(), store=nodes.store
        )

    def _make_room(self, nodes: NodeMap) -> None:
        """Refuse what would be lost by a new session; take away what one that has ended has left."""
        journal, tombs = self.folder.home / "journal", Tombs(self.folder.home)
        if (journal / "snapshot").exists() and nodes.session not in ("", self._session):
            if tombs.of(nodes.session) is None:
                raise LocalProtocolError(
                    f"{self._name}/journal holds a session of another plan or roster that has not ended: bring that "
                    "one back and end it, or move the journal away"
                )
            for path in journal.iterdir():
                overwrite(path)
                path.unlink()
        release = self.folder.home / RELEASE
        if release.exists() and _digest(release) in {tomb.release for tomb in tombs.all()}:
            raise PrivstatsError(f"{self._name}/{RELEASE} is of a session that has ended: move it away first")
        if nodes.session != self._session:
            KeptWords(self.folder.home).forget()
            nodes.store({})

    def _server(self, make: Callable[[], Aggregator], *, restored: bool = False) -> JournaledServer:
        """The journaled session, locked; ``make`` makes it where there is none."""
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
            raise RestoredError(
                f"{self._name}/journal was put back from a backup or copied, and two copies may end in two sums: bring "
                f'the newest one back, or end the session with "privstats flower give-up {self._name}"'
            ) from None

    def _made(self, talk: Talk, deadlines: Deadlines) -> Aggregator:
        """A fresh machine; where the plan has a panel, once all its helpers have offered their keys for this run."""
        folder = self.folder
        tomb = Tombs(folder.home).of(self._session)
        if tomb is not None:  # by a run that ended between the first look and the lock
            raise SessionEndedError(self._ended(tomb))
        if not folder.plan.panel:
            return self._machine(identity=folder.identity)
        wanted = frozenset(range(len(folder.roster), len(folder.publics)))
        question = folder.header.encode() + os.urandom(_NONCE_BYTES)
        offers = gather(talk, question, wanted, deadlines.open_seconds)
        if offers.keys() != wanted:
            raise _NoPanel(sorted(wanted - offers.keys()))
        masking: Any = folder.plan.masking
        keys = HelperKeys(folder.identity, 0, masking, folder.roster)
        identities = tuple(bytes.fromhex(key) for key in folder.plan.panel)
        panel = Panel(identities, (keys.offer, *map(Offer.decode, offers.values())))
        return self._machine(keys=keys, panel=panel)

    def _machine(self, **named: Any) -> Aggregator:
        """The server's machine, fresh."""
        return session.server(self.folder.plan, self.folder.roster, **named)

    def _opening(self, server: JournaledServer) -> bytes:
        """What every client is sent at first: the panel's offers, or else the message that is alike for all."""
        head = self.folder.header.encode()
        if server.panel is not None:
            return head + b"".join(offer.encode() for offer in server.panel.offers)
        first = server.outbox.clients[:1] if server.step == server.steps[0] else ()
        return head + b"".join(map(server.outbox.to, first))

    def _carried(self, server: JournaledServer, talk: Talk, deadlines: Deadlines) -> Ended | Waiting:
        try:
            outcome = conduct(server, talk, deadlines, self._opening(server))
        except AggregationError as error:
            self._fail(server, talk, str(error))
            raise
        if outcome.shortfall is not None:
            return Waiting(outcome, self._short(outcome.shortfall, talk.places))
        if server.step == "failed":  # it was killed between its end and the word of it
            why = "it failed, or was given up"
            self._fail(server, talk, why)
            raise SessionEndedError(self._ended(self._tomb(why)))
        release = self._released(server, talk)
        path = self.folder.home / RELEASE
        release.save(path, signer=self.folder.identity)
        tomb = self._bury(server, Tomb(self._session, today(), release.survivors, _digest(path)))
        self._farewell(talk, tomb)
        return Ended(release, outcome, tomb.sentence(self._name))

    def _released(self, server: JournaledServer, talk: Talk) -> Release:
        """What is released of the sum: the same whenever it is asked for."""
        return server.release(self.folder.plan, self._charge(server, talk))

    def _charge(self, server: JournaledServer, talk: Talk) -> Charging:
        """The server's own account where it is the one who draws the noise; the parties keep theirs in every case."""
        folder = self.folder
        if folder.plan.noise is None:
            return None
        if server.noise_due or len(folder.ledger.accounts()) == 1:
            return folder.release_charge()
        talk.say(
            f"{folder.base.name}/ledger has no account, so this release is written down in the parties' ledgers only"
        )
        return "uncharged"

    def _ended(self, tomb: Tomb) -> str:
        return f"{tomb.sentence(self._name)}. A new one needs a new run name"

    def _tomb(self, why: str) -> Tomb:
        return Tomb(self._session, today(), why=why)

    def _fail(self, server: JournaledServer, talk: Talk, why: str) -> None:
        self._farewell(talk, self._bury(server, self._tomb(why)))

    def _bury(self, server: JournaledServer, tomb: Tomb) -> Tomb:
        """First what others signed, while the journal has it, and that it has ended; then that nothing is resumed."""
        offers = () if server.panel is None else tuple(offer.encode() for offer in server.panel.offers)
        if len(tomb.survivors) < len(self.folder.roster):  # somebody may be in no sum
            KeptWords(self.folder.home).add(server.statements, offers)
        if not tomb.release:
            tomb = structs.replace(tomb, panel=tuple(offer.hex() for offer in offers))
        Tombs(self.folder.home).add(tomb)
        server.discard()
        return tomb

    def _farewell(self, talk: Talk, tomb: Tomb) -> None:
        """Tell every node that is there that it is over, so that nobody keeps a last answer; nobody is waited for long.

        Whoever is in no sum is sent what others signed of that, so that its ledger has back what it cost. Who hears
        nothing keeps its answer for a month, or until somebody runs the session once more.
        """
        release, nodes = bytes.fromhex(tomb.release) or _NO_RELEASE, list(talk.mailbox.online())
        offers, gives_back = tuple(map(bytes.fromhex, tomb.panel)), self.folder.gives_back
        if offers and gives_back:
            seats = {node: (talk.places.place_of(node) or 0) - talk.places.clients + 1 for node in nodes}
            helpers = {node: place for node, place in seats.items() if place > 0}
            nodes = [node for node in nodes if node not in helpers]
            self._ask_helpers(talk, helpers, offers)
        proof = KeptWords(self.folder.home).proof if gives_back else b""
        counted = {node for node in nodes if talk.places.place_of(node) in tomb.survivors}
        self._tell(talk, {node: b"" if node in counted else proof for node in nodes}, release)

    def _ask_helpers(self, talk: Talk, helpers: Mapping[int, int], offers: tuple[bytes, ...]) -> None:
        """Keep what helpers sign of a run without a sum: those that gave no answer, that they never will.

        Args:
            talk: whom to talk to.
            helpers: their places on the panel, by node.
            offers: the panel's.
        """
        said = self._tell(talk, dict.fromkeys(helpers, b"".join(offers)), _NO_RELEASE)
        KeptWords(self.folder.home).add({helpers[node]: word for node, word in said.items() if word}, offers)

    def _tell(self, talk: Talk, beside: Mapping[int, bytes], release: bytes) -> dict[int, bytes]:
        """Tell nodes that it is over, and each what stands beside that; what they answer within a while."""
        until = talk.clock() + _FAREWELL_SECONDS
        post, told = Post(talk.mailbox, talk.clock, until, talk.most), dict[int, bytes]()
        for node, more in beside.items():
            post.ask(node, "over", partial(words.over, self.folder.identity, self.folder.header, release, more))
        while len(told) < len(beside) and talk.clock() < until:
            told.update({node: reply.data if reply.code == OK else b"" for node, _, reply in post.replies()})
            talk.sleep(POLL_SECONDS)
        return told

    def _without_panel(self, talk: Talk, missing: list[int]) -> Waiting:
        helpers = len(self.folder.plan.panel) - 1
        return Waiting(
            Outcome(()),
            f"{helpers - len(missing)} of {helpers} helpers have offered their keys, the plan needs all; missing: "
            f"{talk.places.listed(missing)}. {self._again}",
        )

    def _short(self, shortfall: Shortfall, places: Places) -> str:
        outlook, cohort = shortfall.outlook, self.folder.plan.cohort
        asked = len(outlook.answered) + len(outlook.waiting_for)
        helpers = min(outlook.waiting_for) >= cohort.clients
        needs = f"the plan needs {asked if helpers else cohort.min_survivors}"
        if outlook.abort is not None and outlook.abort.code not in ("too_few_clients", "too_few_helpers"):
            needs = f"which is not enough ({outlook.abort.code.replace('_', ' ')})"
        return (
            f"step {outlook.step}: {len(outlook.answered)} of {asked} answered, {needs}; missing: "
            f"{places.listed(outlook.waiting_for)}. {self._again}"
        )

    @property
    def _again(self) -> str:
        study = self.folder.base.parent.name
        return f'Nothing is lost: "flwr run {study}/app {study}" goes on from here'


def _digest(path: Path) -> str:
    return sha256(read_whole(path, PrivstatsError, "privstats flower")).hexdigest()


def today() -> str:
    """The day, ISO 8601, UTC."""
    return datetime.now(UTC).date().isoformat()


def printed(line: str) -> None:
    """A line for the operator, on standard output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
