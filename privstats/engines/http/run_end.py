"""The end of a run as helpers and devices hear it, and what a killed process leaves of its journal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from privstats.engines.network.folder import RoundFolder
from privstats.engines.network.statements import session_ended
from privstats.engines.records import overwrite

__all__ = ["End", "clear_journal"]

_NO_RELEASE = bytes(32)


@dataclass(frozen=True)
class End:
    """The signed end of a run, as a helper or a device hears it."""

    data: bytes

    @classmethod
    def of(cls, folder: RoundFolder, release: str, beside: bytes) -> End:
        """The leader's statement.

        Args:
            folder: the leader's, of the session.
            release: SHA-256 of the release's file, in hex; empty where there is none.
            beside: the offers for which reports of a run without a sum were sealed.
        """
        return cls(session_ended(folder.identity, folder.header, bytes.fromhex(release) or _NO_RELEASE, beside))


def clear_journal(journal: Path) -> None:
    """Remove what a process left that died between the end in the history and the removal of the journal."""
    if journal.exists():
        for path in filter(Path.is_file, journal.iterdir()):
            overwrite(path)
            path.unlink()
