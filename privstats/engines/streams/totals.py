"""The exact sums of a correlated stream's epochs, under seal, and the seed of their noise: what later epochs weigh.

Kept by the server, which sees exact sums in the central model; every other stream needs none of it. Under ``folder``,
and under the server of the same over a network.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from privstats.course import Releases, Stream
from privstats.course.weighing import weighed_release
from privstats.encoding import RingVector
from privstats.engines.records import read_sealed, write_sealed
from privstats.randomness import SEED_BYTES
from privstats.release import Release

__all__ = ["Totals"]


@dataclass(frozen=True)
class Totals:
    """The sums of one run of a stream, as they lie on the server's disk.

    Args:
        home: the server's folder: ``nodes/`` and ``seed`` are in it.
        stream: the stream.
        key: 32 bytes for a purpose, under which things are sealed.
    """

    home: Path
    stream: Stream
    key: Callable[[str], bytes]

    def seed(self) -> None:
        """Make the seed of the noise of all epochs, which must be on the disk before the first; once."""
        if not self._seed.exists():
            write_sealed(self._seed, self.key("seed"), os.urandom(SEED_BYTES))

    def weighed(self, total: RingVector, survivors: tuple[int, ...], before: Releases) -> Release:
        """The release of the node after ``before``: its exact sum is kept, and weighed with those of the others.

        The same however often it is asked for, because the seed is the stream's.

        Raises:
            LocalProtocolError: the seed or an earlier sum is gone, or was written under another key.
            AggregationError, ReleaseError: as for ``weighed_release``.
        """
        self._keep(len(before), total)
        totals = [None if release is None else self._kept(at) for at, release in enumerate(before)]
        return weighed_release(self.stream, read_sealed(self._seed, self.key("seed")), [*totals, total], survivors)

    @property
    def _seed(self) -> Path:
        return self.home / "seed"

    def _keep(self, place: int, total: RingVector) -> None:
        write_sealed(self.home / "nodes" / f"{place}.total", self.key(f"total {place}"), total.pack())

    def _kept(self, place: int) -> RingVector:
        path = self.home / "nodes" / f"{place}.total"
        return self.stream.first.ring.unpack(read_sealed(path, self.key(f"total {place}")))
