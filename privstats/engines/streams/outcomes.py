"""What the nodes of a stream came to, at its server: signed releases, exact sums under seal, the seed of their noise.

Files and names; nothing is decided here. Under ``folder``, and under the server of the same over a network.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from privstats.course import Stream
from privstats.course.weighing import weighed_release
from privstats.encoding import RingVector
from privstats.engines.records import read_sealed, write_sealed
from privstats.files import write_whole
from privstats.randomness import SEED_BYTES
from privstats.release import Release
from privstats.secagg import Identity

__all__ = ["Outcomes"]


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of one run of a stream, as they lie on the server's disk.

    Args:
        home: the server's folder: ``nodes/`` and ``seed`` are in it.
        stream: the stream.
        key: 32 bytes for a purpose, under which is sealed what nobody else may read.
        identity: signs releases.
    """

    home: Path
    stream: Stream
    key: Callable[[str], bytes]
    identity: Identity

    @property
    def nodes(self) -> Path:
        """Where they are."""
        return self.home / "nodes"

    def make(self) -> None:
        """Make the folder, and the seed of the noise of all epochs, which must be on the disk before the first."""
        self.nodes.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._seed.exists() and not any(self.nodes.iterdir()):
            write_sealed(self._seed, self.key("seed"), os.urandom(SEED_BYTES))

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

    def end(self, place: int, release: Release | None) -> None:
        """Keep what a node came to."""
        if release is None:
            write_whole(self._none_path(place), b"")
        else:
            release.save(self.release_path(place), self.identity)

    def weighed(self, total: RingVector, survivors: tuple[int, ...], place: int) -> Release:
        """The release of a correlated stream's node: its exact sum is kept, and weighed with those before it.

        The same however often it is asked for, because the seed is the stream's.

        Raises:
            LocalProtocolError: the seed or an earlier sum is gone, or was written under another key.
            AggregationError, ReleaseError: as for ``weighed_release``.
        """
        write_sealed(self._total_path(place), self._total_key(place), total.pack())
        ring = self.stream.first.ring
        before = [
            None if release is None else ring.unpack(read_sealed(self._total_path(at), self._total_key(at)))
            for at, release in enumerate(self.releases()[:place])
        ]
        return weighed_release(self.stream, read_sealed(self._seed, self.key("seed")), [*before, total], survivors)

    @property
    def _seed(self) -> Path:
        return self.home / "seed"

    def _none_path(self, place: int) -> Path:
        return self.nodes / f"{place}.none"

    def _total_path(self, place: int) -> Path:
        return self.nodes / f"{place}.total"

    def _total_key(self, place: int) -> bytes:
        return self.key(f"total {place}")
