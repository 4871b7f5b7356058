"""A session's end on the server's disk: its release or the reason why there is none, its statements, and its history.

Every carrier calls it with the journal of a session that has ended. Each step is repeated to the same bytes after a
kill, and the journal goes last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from msgspec import structs

from privstats.engines.journal import JournaledServer
from privstats.engines.network.folder import RELEASE, RoundFolder
from privstats.engines.network.operator_log import log_line
from privstats.engines.network.session_history import EndedSession, KeptStatements, SessionHistory
from privstats.errors import LocalProtocolError
from privstats.files.atomic import read_whole
from privstats.release import Release
from privstats.session.accounting import Charging

__all__ = ["SessionEnd", "file_digest", "today"]


@dataclass(frozen=True)
class SessionEnd:
    """What ends a session of a server's folder.

    Attributes:
        folder: the server's, of the session.
        say: called with a line for the operator.
    """

    folder: RoundFolder
    say: Callable[[str], None] = log_line

    def with_release(self, server: JournaledServer) -> tuple[Release, EndedSession]:
        """Release the sum, sign and save it, and keep the end.

        Raises:
            AggregationError: the sum is refused for release; the journal stays, and the next call raises it again.
            PrivstatsError: the release is not charged, or a file cannot be written; nothing is lost.
        """
        release, path = self._released(server), self.folder.home / RELEASE
        release.save(path, signer=self.folder.identity)
        ended_session = EndedSession(self.folder.session, today(), release.survivors, file_digest(path))
        return release, self._kept(server, ended_session)

    def without_sum(self, server: JournaledServer, why: str) -> EndedSession:
        """Keep the end of a session that has no sum, and the reason."""
        return self._kept(server, EndedSession(self.folder.session, today(), why=why))

    def _released(self, server: JournaledServer) -> Release:
        """The release of the sum, or of it and those before it; repeated calls give the same release."""
        folder, totals = self.folder, self.folder.totals
        if totals is None:
            return server.release(folder.plan, self._charge(server))
        folder.release_charge()
        before = folder.before
        return totals.weighed(server.result, before)

    def _charge(self, server: JournaledServer) -> Charging:
        """The server's own account, where the server draws the noise; the parties always keep theirs."""
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

    def _kept(self, server: JournaledServer, ended_session: EndedSession) -> EndedSession:
        """Keep signed statements while the journal holds them, then the session's end; only then remove the journal."""
        offers = () if server.panel is None else tuple(offer.encode() for offer in server.panel.offers)
        if len(ended_session.survivors) < len(self.folder.roster):  # some client may be in no sum
            KeptStatements(self.folder.home).add(server.statements, offers)
        if not ended_session.release:
            ended_session = structs.replace(ended_session, panel=tuple(offer.hex() for offer in offers))
        SessionHistory(self.folder.home).add(ended_session)
        server.discard()
        return ended_session


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    return sha256(read_whole(path, LocalProtocolError, "Release.save")).hexdigest()


def today() -> str:
    """The day, ISO 8601."""
    return datetime.now(UTC).date().isoformat()
