"""The exact sums of a correlated stream, which its server weighs: sealed on its disk, with the seed of their noise."""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from privstats import domains
from privstats.contrib.streams.stream import Stream, Summed, bytes_of_sums, weighed_release
from privstats.course import Course, Releases
from privstats.encoding import RingVector
from privstats.engines.carriers import read_sealed, write_sealed
from privstats.errors import LocalProtocolError, PlanError
from privstats.randomness import SEED_BYTES
from privstats.release import Release

_DRAWN, _TOTAL = ".drawn", ".total"


def totals_of(home: Path, course: Course, key: Callable[[str], bytes]) -> Totals:
    """Return a weighed stream's sums; arguments as for :class:`Totals`."""
    if not isinstance(course, Stream):
        raise PlanError(f"a server weighs the sums of a stream only; {type(course).__name__} declares that it weighs")
    return Totals(home, course, key)


@dataclass(frozen=True)
class Totals:
    """The sums of one run of a stream, on the server's disk.

    Args:
        home: the server's folder, with ``nodes/`` and ``seed``.
        key: function from a purpose to its 32-byte sealing key.
    """

    home: Path
    stream: Stream
    key: Callable[[str], bytes]

    def seed(self) -> None:
        """Create the seed of all epochs' noise, once, before the first epoch.

        Raises:
            LocalProtocolError: it is lost, and noise was sampled from it.
        """
        if self._seed.exists():
            return
        if any(path.suffix in (_DRAWN, _TOTAL) for path in self._nodes.glob("*")):
            raise LocalProtocolError(
                f"{self._seed} is missing, and noise was sampled from it: another seed would be a second sample, "
                "which is not charged; restore the file, or keep the earlier releases and begin a new stream"
            )
        write_sealed(self._seed, self.key("seed"), os.urandom(SEED_BYTES))

    def weighed(self, summed: Summed, before: Releases) -> Release:
        """Store the exact sum of the round after ``before``, and return its weighed release.

        Repeated calls return the same release. Other sums for a weighed epoch would be a second, unpaid noise sample,
        and are refused.

        Raises:
            LocalProtocolError: a missing or foreign seed, sum or record, or noise sampled for other sums or another
                seed.
            AggregationError, ReleaseError: as for ``weighed_release``.
        """
        earlier = [None if each is None else (self._stored(at), each.survivors) for at, each in enumerate(before)]
        sums, seed = [*earlier, summed], read_sealed(self._seed, self.key("seed"))
        self._bind(len(before), sha256(domains.STREAM_SAMPLED + seed + bytes_of_sums(sums)).digest())
        self._keep(len(before), summed[0])
        return weighed_release(self.stream, seed, sums)

    @property
    def _seed(self) -> Path:
        return self.home / "seed"

    @property
    def _nodes(self) -> Path:
        return self.home / "nodes"

    def _bind(self, place: int, digest: bytes) -> None:
        """Record an epoch's sums and seed once, before its noise is sampled."""
        path, key = self._nodes / f"{place}{_DRAWN}", self.key(f"drawn {place}")
        if not path.exists() and not (self._nodes / f"{place}{_TOTAL}").exists():
            write_sealed(path, key, digest)
        elif not path.exists() or not hmac.compare_digest(read_sealed(path, key), digest):
            raise LocalProtocolError(
                f"the noise of round {place} was sampled for other sums or from another seed, and a second sample is "
                "a second release, which is not charged: keep the first release, or go on from its folder"
            )

    def _keep(self, place: int, total: RingVector) -> None:
        write_sealed(self._nodes / f"{place}{_TOTAL}", self.key(f"total {place}"), total.pack())

    def _stored(self, place: int) -> RingVector:
        path = self._nodes / f"{place}{_TOTAL}"
        return self.stream.first.ring.unpack(read_sealed(path, self.key(f"total {place}")))
