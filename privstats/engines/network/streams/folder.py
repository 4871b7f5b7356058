"""Where a stream's folder keeps what: the stream, the parties' ledgers and records, and what every node came to.

Files and names; nothing is decided here. Under ``epoch``.
"""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from privstats.course import RecordRegistry, Stream, document, spend
from privstats.dp import Ledger, Privacy, Spend
from privstats.engines.network.streams.inbox import RecordInbox
from privstats.engines.network.streams.totals import Totals
from privstats.errors import PlanError
from privstats.files.atomic import atomic_write
from privstats.randomness import SEED_BYTES
from privstats.release import Release
from privstats.secagg import Identity, Roster

__all__ = ["DATASET", "RUN", "Folder"]

DATASET = "stream"
"""The account of a folder's ledgers."""
RUN = b"stream"
"""The run of the stream that a folder is of; another run is another folder."""

_SERVER = "server"


@dataclass(frozen=True)
class Folder:
    """One run of a stream, as it lies on the disk.

    Args:
        path: the folder; ``stream.toml`` in it is the stream.
    """

    path: Path

    @classmethod
    def create(cls, path: Path, stream: Stream) -> Folder:
        """Make the folder: secrets first, then a ledger per party with the whole stream spent on it.

        Raises:
            PlanError: the folder is there and not empty, or the plan's protocol needs a panel.
            LedgerError: a ledger cannot be made.
        """
        if stream.plan.panel:
            raise PlanError("streams in a folder are summed interactively; a panel sits on machines of its own")
        if path.exists() and any(path.iterdir()):
            raise PlanError(f"{path} is not empty; name a new folder")
        folder = cls(path)
        path.mkdir(parents=True, exist_ok=True)
        atomic_write(path / "secret", os.urandom(SEED_BYTES))
        folder.nodes.mkdir()
        Totals(path, stream, folder.key).seed()
        for party in (*map(str, range(stream.plan.cohort.clients)), _SERVER):
            (path / party / "records").mkdir(parents=True)
            ledger = Ledger.create(path / party / "ledger.db")
            if isinstance(stream.plan.privacy, Privacy):
                ledger.set_cap(DATASET, **_cap(stream.plan.privacy))
            spend(stream, ledger, DATASET, RUN, sums_only=party == _SERVER)
        document.write(path / "stream.toml", stream)  # last: a folder without it is none
        return folder

    @cached_property
    def stream(self) -> Stream:
        """The stream.

        Raises:
            PlanError: there is none here.
        """
        course = document.read(self.path / "stream.toml")
        if not isinstance(course, Stream):
            raise PlanError(f"{self.path} holds another course; `privstats stream new` makes the folder of a stream")
        return course

    @property
    def clients(self) -> int:
        """Parties in the plan."""
        return self.stream.plan.cohort.clients

    @property
    def nodes(self) -> Path:
        """Where outcomes and journals of nodes are."""
        return self.path / "nodes"

    @property
    def totals(self) -> Totals:
        """The exact sums of a correlated stream, for the server alone."""
        return Totals(self.path, self.stream, self.key)

    def inbox(self, index: int) -> RecordInbox:
        """What a party has brought."""
        return RecordInbox(self.path / str(index), self.stream)

    def key(self, purpose: str) -> bytes:
        """32 bytes for one purpose, from the folder's secret."""
        return hmac.digest((self.path / "secret").read_bytes(), purpose.encode(), "sha256")

    def identity(self, party: str) -> Identity:
        """The signing key of a party, or of ``"server"``."""
        return Identity(self.key(f"identity {party}"))

    def roster(self, run: bytes) -> Roster:
        """Everybody, for one session."""
        publics = [self.identity(str(index)).public for index in range(self.clients)]
        return Roster(publics, server=self.identity(_SERVER).public, run=run)  # type: ignore[arg-type]

    def entry(self, party: str) -> tuple[Ledger, Spend]:
        """A party's ledger and what the stream was spent under in it."""
        ledger = Ledger.open(self.path / party / "ledger.db")
        return ledger, spend(self.stream, ledger, DATASET, RUN, sums_only=party == _SERVER)

    @property
    def server(self) -> tuple[Ledger, Spend]:
        """The server's, for the model in which it draws."""
        return self.entry(_SERVER)

    def registry(self, index: int) -> RecordRegistry:
        """A party's book."""
        return RecordRegistry.open(self.stream, *self.entry(str(index)), self.key(f"holding {index}"))

    def releases(self) -> list[Release | None]:
        """What the nodes came to, in order, as far as the stream has come."""
        found: list[Release | None] = []
        for place in range(self.stream.most):
            if self.release_path(place).exists():
                found.append(Release.load(self.release_path(place), plan=self.stream.first))
            elif self._none_path(place).exists():
                found.append(None)
            else:
                break
        return found

    def release_path(self, place: int) -> Path:
        """Where a node's release is, or goes."""
        return self.nodes / f"{place}.release"

    def _none_path(self, place: int) -> Path:
        return self.nodes / f"{place}.none"

    def end(self, place: int, release: Release | None) -> None:
        """Keep what a node came to."""
        if release is None:
            atomic_write(self._none_path(place), b"")
        else:
            release.save(self.release_path(place), self.identity(_SERVER))


def _cap(privacy: Privacy) -> dict[str, Any]:
    return {
        "unit": privacy.unit,
        "adjacency": privacy.adjacency,
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
    }
