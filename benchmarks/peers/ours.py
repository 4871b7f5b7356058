"""privstats as it comes: one masked session and a head, or a course of them and a refined softmax.

Real machines over real bytes, every fit a session of its own (``engines.loopback``), the interactive protocol. Noise is
drawn by the parties ("distributed"), who all survive. Nothing is tuned but the clip that party-level plans must name.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.peers.interface import DELTA, Outcome, Shards
from privstats import heads
from privstats.course import Round, Rounds
from privstats.course import run as follow
from privstats.dp.privacy import Unit
from privstats.engines import loopback
from privstats.randomness import Generator, seeded
from privstats.release import Release
from privstats.transforms import UnitNorm

__all__ = ["HEADS", "OneShot", "Refined", "party_grid", "plan_of"]

HEADS: dict[str, tuple[str, Callable[[], Any]]] = {
    "LDA": ("NAB", heads.LDA),
    "RDA": ("NAS", heads.RDA),
    "FisherMix": ("NAB", heads.FisherMix),
}
"""What a head reads, and the head."""


@dataclass(frozen=True)
class OneShot:
    """One upload, one head.

    Attributes:
        head: of ``HEADS``.
        epsilon: at delta 1e-5, add-remove; infinite for exact sums.
        party_clip: None protects a record; a number protects a whole party, whose vector is shrunk to the norm of so
            many worst-case records.
    """

    head: str
    epsilon: float = math.inf
    party_clip: float | None = None
    means: float | None = None

    def __str__(self) -> str:
        if self.party_clip is None:
            return "nothing tuned"
        return f"client_clip {self.party_clip:g}, share of A {self.means or 'default'}"

    def fit(self, shards: Shards) -> Outcome:
        """Measure, mask, sum, release, fit."""
        began = time.process_time()
        statistics, make = HEADS[self.head]
        shares = None if self.means is None else {"N": 0.02, "A": self.means, "B": 0.98 - self.means}
        plan = plan_of(shards, statistics, self.epsilon, self.party_clip, shares)
        release, sent = _session(plan, shards, seeded(shards.seed))
        score = _scored(make().fit_release(release), shards)
        unit = "" if math.isinf(self.epsilon) else "record" if self.party_clip is None else "party"
        return Outcome(score, sent, time.process_time() - began, 1, self.epsilon, unit)


@dataclass(frozen=True)
class Refined:
    """A release and ``rounds`` masked gradients under one budget.

    Attributes:
        epsilon: of the whole course, for one record.
        rounds: T.
    """

    epsilon: float
    rounds: int = 4

    def __str__(self) -> str:
        return "nothing tuned"

    def fit(self, shards: Shards) -> Outcome:
        """Play the course over all parties."""
        began = time.process_time()
        course = Rounds.within(plan_of(shards, "NAB", self.epsilon, None), self.rounds)
        chance, total = seeded(shards.seed), 0

        def release(round_: Round) -> Release:
            nonlocal total
            given, sent = _session(round_.plan, shards, chance)
            total += sent
            return given

        head = heads.RefinedSoftmax().fit_releases(follow(course, release))
        score = _scored(head, shards)
        return Outcome(score, total, time.process_time() - began, course.most, self.epsilon, "record")


def plan_of(
    shards: Shards,
    statistics: str,
    epsilon: float,
    party_clip: float | None,
    shares: dict[str, float] | None = None,
) -> ps.Plan:
    """Rows of norm 1, all parties survive, none colludes, at most as many records as there are."""
    privacy: Any = ps.NoPrivacy()
    if math.isfinite(epsilon):
        promise: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "adjacency": "add-remove", "shares": shares}
        if party_clip is not None:
            most = max(len(y) for _, y in shards.parts)
            promise |= {"max_records_per_client": most, "client_clip": min(party_clip, float(most))}
        unit: Unit = "record" if party_clip is None else "client"
        privacy = ps.Privacy(model="distributed", unit=unit, **promise)
    schema = ps.ClassSchema(shards.classes, shards.features, statistics, clip_norm=1.0, transform=(UnitNorm(),))
    parties = len(shards.parts)
    return ps.Plan(schema=schema, cohort=ps.Cohort(parties, parties, shards.records), privacy=privacy)


def party_grid(epsilon: float) -> tuple[OneShot, ...]:
    """Clips and shares to choose from where a whole party is protected."""
    return tuple(OneShot("LDA", epsilon, clip, means) for clip in (3.0, 10.0, 30.0) for means in (None, 0.9))


def _session(plan: ps.Plan, shards: Shards, rng: Generator) -> tuple[Release, int]:
    """A release, and the bytes that all parties sent and received for it."""
    parts = [
        ps.session.contribution(plan, ps.measure(plan.schema, X, y, published=plan.published), rng, **_TEST)
        for X, y in shards.parts
    ]
    cast = ps.session.local_parties(plan, parts, rng)
    outcome = loopback.run(cast.server, cast.clients)
    given = ps.session.release(plan, outcome.total, outcome.survivors, rng, charge="uncharged", **_TEST)
    return given, sum(outcome.bytes_sent) + sum(outcome.bytes_received)


_TEST: dict[str, Any] = {"allow_reproducible": True}


def _scored(head: Any, shards: Shards) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", heads.FewRecordsWarning)
        return 100 * float(head.score(shards.X_test.astype(np.float64), shards.y_test))
