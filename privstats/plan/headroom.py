"""How wide the ring must be so that no sum can wrap.

Pure arithmetic on the layout, the record limit and the noise: the proof that the plan prints. Not the ring itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from privstats.encoding import Layout, Ring, Segment
from privstats.errors import PlanError

__all__ = ["WRAP_PROBABILITY", "Headroom", "headroom", "ring_of"]

WRAP_PROBABILITY = 2.0**-40
"""Bound on the probability that noise makes any entry of the sum wrap."""

_MAX_BITS = 62
_SPARE_COUNT_BITS = 8


@dataclass(frozen=True)
class Headroom:
    """The width of one segment and how much of it stays free.

    Attributes:
        segment: the layout segment.
        bits: ring width b; sums lie in [-2**(b-1), 2**(b-1)).
        largest: largest absolute value the noisy sum takes, except with probability ``WRAP_PROBABILITY`` in all.
    """

    segment: Segment
    bits: int
    largest: float

    @property
    def factor(self) -> float:
        """How many times ``largest`` fits below the wrap: at least 1."""
        return float(2.0 ** (self.bits - 1) / self.largest)


def headroom(layout: Layout, max_records: int, noise_std: Callable[[Segment], float]) -> tuple[Headroom, ...]:
    """Choose every segment's width: b >= 1 + ceil(log2(n_max M + z sigma + 1)).

    ``noise_std`` gives the standard deviation, in grid steps, of all noise that can be in the sum. A discrete Gaussian
    is sub-Gaussian and a rounded one differs from a Gaussian by half a step (the ``+ 1``), so with
    z = sqrt(2 ln(2 D / WRAP_PROBABILITY)) over D entries a union bound keeps the wrap probability below
    ``WRAP_PROBABILITY``. The count segment gets 8 spare bits, so that a cohort with up to 256 times the admitted
    records still shows in the counts and is refused.

    Raises:
        PlanError: a segment would need more than 62 bits.
    """
    z = math.sqrt(2 * math.log(2 * layout.size / WRAP_PROBABILITY))
    return tuple(_width(segment, max_records, z * noise_std(segment)) for segment in layout.segments)


def ring_of(rooms: Sequence[Headroom]) -> Ring:
    """The ring with these widths, segment by segment."""
    return Ring(tuple((room.segment.size, room.bits) for room in rooms))


def _width(segment: Segment, max_records: int, tail: float) -> Headroom:
    largest = max_records * segment.bound + (tail + 1 if tail else 0)
    bits = 1 + math.ceil(math.log2(largest + 1))  # + 1: the range is half open, and log2 of a float may round down
    bits += _SPARE_COUNT_BITS if segment.name == "N" else 0
    if bits > _MAX_BITS:
        raise PlanError(
            f"schema.grid_bits is too fine: segment {segment.name} would need {bits} ring bits and {_MAX_BITS} are the "
            "most; lower grid_bits or cohort.max_records"
        )
    return Headroom(segment, bits, largest)
