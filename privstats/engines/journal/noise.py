"""The generator of a journaled server's noise: the journal's seed, bound to the sum that the noise hides.

A copy of a journal that ends in another sum draws other noise, so the difference of the two releases is not the
difference of the sums. ``course.weighing`` binds the correlated noise of a stream.
"""

from __future__ import annotations

import msgspec

from privstats.encoding import RingVector
from privstats.plan import Plan
from privstats.randomness import Generator, bound_to

__all__ = ["noise_of"]

_LABEL = b"privstats/journal/noise/2"  # /1 was the seed itself, not bound to the sum


def noise_of(seed: bytes, plan: Plan, run: bytes, total: RingVector, survivors: tuple[int, ...]) -> Generator:
    """The generator of one release: the same for the same sum, run and clients, and unrelated for any others."""
    return bound_to(seed, _LABEL, msgspec.msgpack.encode((plan.digest, run, survivors)), total.pack())
