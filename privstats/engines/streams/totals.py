"""The exact sums of a correlated stream's epochs, under seal, and the seed of their noise: what later epochs weigh.

Kept by the server, which sees exact sums in the central model; every other stream needs none of it. Under ``folder``,
and under the server of the same over a network.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from privstats.course import Releases, Stream
from privstats.course.weighing import Summed, said_by, weighed_release
from privstats.encoding import RingVector
from privstats.engines.records import read_sealed, write_sealed
from privstats.errors import LocalProtocolError
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

    def weighed(self, summed: Summed, before: Releases) -> Release:
        """The release of the node after ``before``: its exact sum is kept, and weighed with those of the others.

        The same however often it is asked for, because the seed is the stream's and the noise is bound to the sums.
        Other sums for an epoch that was weighed before would be a second draw, for which nobody has paid: refused.

        Raises:
            LocalProtocolError: the seed or an earlier sum is gone, or was written under another key; or this epoch's
                noise was drawn for other sums.
            AggregationError, ReleaseError: as for ``weighed_release``.
        """
        earlier = [None if each is None else (self._kept(at), each.survivors) for at, each in enumerate(before)]
        sums = [*earlier, summed]
        self._bind(len(before), said_by(sums))
        self._keep(len(before), summed[0])
        return weighed_release(self.stream, read_sealed(self._seed, self.key("seed")), sums)

    @property
    def _seed(self) -> Path:
        return self.home / "seed"

    def _bind(self, place: int, said: bytes) -> None:
        """Note, before its noise is drawn, what the release of an epoch is made of; once."""
        path, key = self.home / "nodes" / f"{place}.drawn", self.key(f"drawn {place}")
        if not path.exists():
            write_sealed(path, key, said)
        elif not hmac.compare_digest(read_sealed(path, key), said):
            raise LocalProtocolError(
                f"the noise of node {place} was drawn for other sums than these, and a second draw is a second "
                "release that nobody has paid for: keep the first release, or go on from the folder it was made in"
            )

    def _keep(self, place: int, total: RingVector) -> None:
        write_sealed(self.home / "nodes" / f"{place}.total", self.key(f"total {place}"), total.pack())

    def _kept(self, place: int) -> RingVector:
        path = self.home / "nodes" / f"{place}.total"
        return self.stream.first.ring.unpack(read_sealed(path, self.key(f"total {place}")))
