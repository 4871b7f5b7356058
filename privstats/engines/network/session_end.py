"""A session's end on the server's disk, and its last message.

After a kill each step repeats with identical bytes; the journal is removed last. A session in the history is never
reopened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from privstats.engines.network.folder import RoundFolder
from privstats.engines.network.nodes import RequestQueue
from privstats.engines.network.operator_log import log_line
from privstats.engines.network.statements import EndStatements
from privstats.engines.network.transport import OK
from privstats.errors import LocalProtocolError
from privstats.files.atomic import MOST_SIGNED, atomic_write, read_bounded
from privstats.files.decoding import from_json, from_msgpack
from privstats.release import Release
from privstats.session.accounting import Charging

if TYPE_CHECKING:
    from privstats.engines.journal import JournaledServer
    from privstats.engines.network.driver import SessionContext

_SECONDS = 20.0


@dataclass(frozen=True)
class SessionEnd:
    """The end of a session of a server's folder, with a release or without; ``say`` prints a line for the operator.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import Folder, SessionEnd, simulated_study
        >>> _ = Path("records.py").write_text("load = lambda: ([[0.1, 0.2], [0.3, 0.4]], [0, 1])")
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 2, 10), privacy=ps.NoPrivacy())
        >>> simulated_study("study", plan, "records.py")
        >>> end = SessionEnd(Folder.open("study/host").round(0))
        >>> end.known is None, end.proof
        (True, b'')
    """

    folder: RoundFolder
    say: Callable[[str], None] = log_line

    @property
    def known(self) -> EndedSession | None:
        """The end that the folder has stored; None before."""
        return SessionHistory(self.folder.home).of(self.folder.session)

    @property
    def proof(self) -> bytes:
        """Signed statements with which ``session.free`` refunds clients in no sum; empty until complete."""
        return StoredStatements(self.folder.home).proof

    def add_statement(self, ended: EndedSession, helper: int, statement: bytes) -> None:
        """Store a helper's signed statement that it answers nothing, by its panel index; on disk when this returns."""
        StoredStatements(self.folder.home).add({helper: statement}, ended.offers)

    def with_release(self, server: JournaledServer) -> tuple[Release, EndedSession]:
        """Release the sum, sign and save it, and store the end.

        Raises:
            AggregationError: the sum is refused for release; the journal stays, and each call raises it.
            PrivstatsError: the charge or a write failed; nothing is lost.
        """
        release, path = self._released(server), self.folder.release_path
        release.save(path, signer=self.folder.identity)
        ended_session = EndedSession(self.folder.session, today(), release.survivors, file_digest(path))
        return release, self._keep(server, ended_session)

    def without_sum(self, server: JournaledServer, why: str) -> EndedSession:
        """Store the end and the reason of a session without a sum."""
        return self._keep(server, EndedSession(self.folder.session, today(), why=why))

    def _released(self, server: JournaledServer) -> Release:
        release = self._sum_of(server)
        if self.folder.kind.charge != "registry":
            return release
        # A registry accepts the survivors as proof about this round alone.
        return replace(release, run=self.folder.roster.run)

    def _sum_of(self, server: JournaledServer) -> Release:
        folder, totals = self.folder, self.folder.totals
        if totals is None:
            return server.release(folder.plan, self._charge(server))
        charge = folder.release_charge()
        release = totals.weighed(server.result, folder.before)
        charge.finish(folder.plan, folder.roster.run, sha256(release.vector.tobytes()).digest())
        return release

    def _charge(self, server: JournaledServer) -> Charging:
        """The server pays only where it draws the noise or has one account."""
        folder = self.folder
        if folder.plan.noise is None:
            return None
        if server.noise_due or len(folder.ledger.accounts()) == 1:
            return folder.release_charge()
        self.say(
            f"{folder.base.name}/ledger has no account, which is as it should be: the parties draw the noise, and "
            "their ledgers hold this release"
        )
        return "uncharged"

    def _keep(self, server: JournaledServer, ended_session: EndedSession) -> EndedSession:
        offers = () if server.panel is None else tuple(offer.encode() for offer in server.panel.offers)
        if len(ended_session.survivors) < len(self.folder.roster):  # some client may be in no sum
            StoredStatements(self.folder.home).add(server.statements, offers)
        if not ended_session.release:
            ended_session = structs.replace(ended_session, panel=tuple(offer.hex() for offer in offers))
        SessionHistory(self.folder.home).add(ended_session)
        server.discard()
        return ended_session


def file_digest(path: Path) -> str:
    """Return a file's SHA-256, in hex."""
    return sha256(read_bounded(path, LocalProtocolError, "Release.save", MOST_SIGNED)).hexdigest()


def today() -> str:
    """Return the day, ISO 8601."""
    return datetime.now(UTC).date().isoformat()


class EndedSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session that has ended.

    Attributes:
        session: its name, 32 hexadecimal digits.
        ended: the day, ISO 8601.
        release: SHA-256 of its file, in hex; may be empty.
        panel: without a sum, the panel's offers, in hex.

    Example:
        >>> from privstats.engines.carriers import EndedSession
        >>> EndedSession(session="ab" * 16, ended="2027-03-01", why="it was given up").sentence("host")
        'this session ended on 2027-03-01 without a sum: it was given up'
    """

    session: str
    ended: str
    survivors: tuple[int, ...] = ()
    release: str = ""
    why: str = ""
    panel: tuple[str, ...] = ()

    @property
    def offers(self) -> tuple[bytes, ...]:
        """Without a sum, the panel's offers."""
        return tuple(map(bytes.fromhex, self.panel))

    def sentence(self, host: str) -> str:
        """Return a sentence for an operator."""
        if not self.release:
            return f"this session ended on {self.ended} without a sum: {self.why}"
        parties = ", ".join(map(str, self.survivors))
        return f"this session ended on {self.ended} with parties {parties}: {host}/release.safetensors"


class SessionHistory:
    """The sessions of a folder that have ended: ``ended.json``."""

    def __init__(self, home: Path) -> None:
        self._path = home / "ended.json"

    def of(self, session: str) -> EndedSession | None:
        """Return a session's end, if it has ended."""
        return next((ended_session for ended_session in self.all() if ended_session.session == session), None)

    def all(self) -> tuple[EndedSession, ...]:
        """Return all ended sessions, oldest first."""
        if not self._path.exists():
            return ()
        data = read_bounded(self._path, LocalProtocolError, "privstats flower")
        try:
            return from_json(data, tuple[EndedSession, ...])
        except msgspec.DecodeError:
            raise LocalProtocolError(
                f"{self._path.name} is damaged: bring it back from where you keep copies"
            ) from None

    def add(self, ended_session: EndedSession) -> None:
        """Add an ended session; on disk when this returns."""
        others = tuple(each for each in self.all() if each.session != ended_session.session)
        atomic_write(self._path, msgspec.json.format(msgspec.json.encode((*others, ended_session))))


class StoredStatements:
    """Signed statements that let clients in no sum recover their spends: the folder's file ``words``."""

    def __init__(self, home: Path) -> None:
        self._path = home / "words"

    @property
    def proof(self) -> bytes:
        """``EndStatements``, encoded; empty until complete."""
        stored = self._keep()
        helpers = len(stored.offers) - 1
        complete = bool(stored.statements) and (not stored.offers or len(stored.statements) == helpers)
        return msgspec.msgpack.encode(stored) if complete else b""

    def add(self, statements: Mapping[int, bytes], offers: tuple[bytes, ...] = ()) -> None:
        """Add statements; on disk when this returns."""
        if statements:
            stored = EndStatements({**self._keep().statements, **statements}, offers)
            atomic_write(self._path, msgspec.msgpack.encode(stored))

    def forget(self) -> None:
        """Remove an earlier session's statements."""
        self._path.unlink(missing_ok=True)

    def _keep(self) -> EndStatements:
        """A damaged file counts as empty, because a lost proof must not stop a session."""
        if not self._path.exists():
            return EndStatements({})
        try:
            return from_msgpack(read_bounded(self._path, LocalProtocolError, "privstats flower"), EndStatements)
        except msgspec.DecodeError:
            return EndStatements({})


def send_end_notices(folder: RoundFolder, context: SessionContext, ended_session: EndedSession) -> None:
    """Notify every online node that the session has ended, so that it deletes its last answer.

    A client in no sum receives the proof, so that its ledger can refund the spend. A node that misses the notice stores
    its last answer for 30 days, or until the next run of the session.
    """
    nodes, offers = list(context.transport.online()), ended_session.offers
    if offers and folder.kind.gives_back:
        roles = {node: (context.registry.place_of(node) or 0) - context.registry.clients + 1 for node in nodes}
        helpers = {node: place for node, place in roles.items() if place > 0}
        nodes = [node for node in nodes if node not in helpers]
        _ask_helpers(folder, context, helpers, offers)
    proof = StoredStatements(folder.home).proof if folder.kind.gives_back else b""
    counted = {node for node in nodes if context.registry.place_of(node) in ended_session.survivors}
    _send(folder, context, {node: b"" if node in counted else proof for node in nodes}, ended_session.release)


def _ask_helpers(
    folder: RoundFolder, context: SessionContext, helpers: Mapping[int, int], offers: tuple[bytes, ...]
) -> None:
    """Store each helper's signed statement that it will never answer; ``helpers`` maps nodes to panel indices."""
    signed = _send(folder, context, dict.fromkeys(helpers, b"".join(offers)))
    StoredStatements(folder.home).add(
        {helpers[node]: statement for node, statement in signed.items() if statement}, offers
    )


def _send(
    folder: RoundFolder, context: SessionContext, beside: Mapping[int, bytes], release: str = ""
) -> dict[int, bytes]:
    until = context.clock() + _SECONDS
    queue, answers = RequestQueue(context.transport, context.clock, until, context.most), dict[int, bytes]()
    for node, more in beside.items():
        queue.ask(node, "over", partial(folder.signed_end, release, more))
    while len(answers) < len(beside) and context.clock() < until:
        answers.update({node: reply.data if reply.code == OK else b"" for node, _, reply in queue.replies()})
        context.sleep(queue.pause)
    return answers
