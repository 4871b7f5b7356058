"""Attack 14, at the end of the protocol: a client that brings the sum to the edge of what an honest cohort can have.

One entry at the bound makes the victim's record decide whether the sum is plausible: an oracle, unless the check is on
the noisy sum. As ``ring_wrap``, with an abort for what is seen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats import session
from privstats.encoding import RingVector, flatten
from privstats.errors import AggregationError
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.attacks.ring_wrap import RingWrap

__all__ = ["SumCheck"]


class SumCheck(RingWrap):
    """Whether the release aborts, with and without the victim's record."""

    name = "sum-check"
    title = "somebody who is a client fills the sum so that one more record makes it implausible"

    def edge(self, plan: Plan, victim: Moments) -> tuple[int, NDArray[np.int64]]:
        """The entry that the victim moves most, and a vector that fills it to the bound."""
        moved = flatten(victim)
        entry = int(np.abs(moved).argmax())
        bounds = np.repeat([room.plausible for room in plan.headroom], [size for size, _ in plan.ring.segments])
        poison = np.zeros(len(moved), np.int64)
        poison[entry] = bounds[entry] if moved[entry] > 0 else -bounds[entry]
        return entry, poison

    def score(
        self,
        plan: Plan,
        victim: Moments,
        poison: NDArray[np.int64],
        entry: int,
        rng: Generator,
    ) -> float:
        """1 for an abort."""
        del entry
        total: RingVector = plan.ring.encode(poison)
        total.add(session.contribution(plan, victim, rng, allow_reproducible=True).take())
        survivors = tuple(range(plan.cohort.clients))
        try:
            session.release(plan, total, survivors, rng, charge="uncharged", allow_reproducible=True)
        except AggregationError:
            return 1.0
        return 0.0
