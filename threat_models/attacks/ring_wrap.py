"""Attack 14, at the end of the protocol: a client that brings the sum to the edge of the ring.

One entry just below the wrap makes the victim's record move the lifted value by the whole ring, unless the noise is in
the sum before it is lifted. The server is honest here and its noise central; the attacker is a client who reads the
release. ``SumCheck`` brings it to the edge of what an honest cohort can have, so that the victim's record decides
whether the sum is plausible: an oracle, unless the check is on the noisy sum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats import session
from privstats.encoding import RingVector, flatten
from privstats.errors import AggregationError
from privstats.kinds import RecordSchema
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.release import Release
from threat_models import bounds, ceilings
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.data import synthetic_pool
from threat_models.report import Row, judge, stated


class RingWrap(Examination):
    """The sign of one entry, or an abort, with and without the victim's record."""

    name = "ring-wrap"
    number = 14
    goal = "membership"
    title = "an attacker who is a client fills the ring so that one more record wraps it"
    needs = Adversary(knows="all-but-one", active=True)

    def refusal(self, plan: Plan) -> str | None:
        """Needs records, and central noise: elsewhere noise is in what is summed, before any party sees a sum."""
        if not isinstance(plan.schema, RecordSchema):
            return f"fills sums of records, and the plan measures a {type(plan.schema).__name__}"
        central = plan.noise is not None and plan.noise.trust.drawn_by == "server"
        return None if central else "needs central noise; here noise is in the sum before any party sees it"

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row: AUC against the plan's ceiling."""
        pool = synthetic_pool(plan, rng)
        victim, empty = pool.measure(plan, np.arange(1)), pool.measure(plan, np.arange(0))
        entry, poison = self.edge(plan, victim)
        inside = np.array([self.score(plan, victim, poison, entry, rng) for _ in range(trials)])
        outside = np.array([self.score(plan, empty, poison, entry, rng) for _ in range(trials)])
        won = np.array([bounds.wins(a, b, rng) for a, b in zip(inside[:, None], outside[:, None], strict=True)])
        promised, interval = ceilings.guaranteed(plan, self.needs), bounds.proportion(won, confidence)
        ceiling = None if promised is None else promised.auc
        return (
            Row(
                attack=self.name,
                number=self.number,
                goal=self.goal,
                adversary=f"{self.needs.describe()}; is a client",
                sees=self.needs.sees,
                metric="AUC",
                measured=float(won.mean()),
                interval=interval,
                baseline=0.5,
                ceiling=ceiling,
                verdict=judge(interval, (0.5, 0.5), ceiling),
                worlds=trials,
                **stated(promised),
            ),
        )

    def edge(self, plan: Plan, victim: Moments) -> tuple[int, NDArray[np.int64]]:
        """The entry that the victim moves most, and a vector that fills it as far as the sum may go without it."""
        moved = flatten(victim)
        entry = int(np.abs(moved).argmax())
        poison = np.zeros(len(moved), np.int64)
        poison[entry] = self.filling(plan, entry, int(moved[entry]))
        return entry, poison

    def filling(self, plan: Plan, entry: int, moved: int) -> int:
        """To just below the wrap, from which half of what the victim adds would carry it over."""
        sizes, bits = zip(*plan.ring.segments, strict=True)
        half = 1 << int(np.repeat(bits, sizes)[entry]) - 1
        return half - 1 - abs(moved) // 2 if moved > 0 else abs(moved) // 2 - half

    def score(self, plan: Plan, victim: Moments, poison: NDArray[np.int64], entry: int, rng: Generator) -> float:
        """1 where the entry has wrapped, 0 where it has not, and a half for an abort."""
        release = _released(plan, victim, poison, rng)
        return 0.5 if release is None else float((release.vector[entry] < 0) == (poison[entry] > 0))


class SumCheck(RingWrap):
    """Whether the release aborts, with and without the victim's record."""

    name = "sum-check"
    title = "an attacker who is a client fills the sum so that one more record makes it implausible"

    def filling(self, plan: Plan, entry: int, moved: int) -> int:
        """To the bound of what an honest cohort can have."""
        most = np.repeat([room.plausible for room in plan.headroom], [size for size, _ in plan.ring.segments])[entry]
        return int(most if moved > 0 else -most)

    def score(self, plan: Plan, victim: Moments, poison: NDArray[np.int64], entry: int, rng: Generator) -> float:
        """1 for an abort."""
        del entry
        return float(_released(plan, victim, poison, rng) is None)


def _released(plan: Plan, victim: Moments, poison: NDArray[np.int64], rng: Generator) -> Release | None:
    """The release of the poison and one victim's contribution; None where it is refused."""
    total: RingVector = plan.ring.encode(poison)
    total.add(session.contribution(plan, victim, rng, allow_reproducible=True).take())
    survivors = tuple(range(plan.cohort.clients))
    try:
        return session.release(plan, total, survivors, rng, charge="uncharged", allow_reproducible=True)
    except AggregationError:
        return None
