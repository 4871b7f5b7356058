"""Worlds in which an attacker lacks one unit alone: sums under any kind of plan, with that unit and without.

The attacker knows the plan, what it publishes, every other record, and a list of units of which at most one is in the
sums. Sums come from the library's own measuring, contribution and release, in the worst session that the plan admits.
A unit is what the plan promises about: a record, all rows of a person, or all records of a client.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.dp import clip_client
from privstats.encoding import flatten
from privstats.errors import PlanError
from privstats.kinds import HazardSchema
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary
from threat_models.audits.records import drawn_records
from threat_models.audits.target import Target
from threat_models.made_up import sums_of

Integers: TypeAlias = NDArray[np.int64]
Records: TypeAlias = tuple[Any, Any]
"""X and y, or columns by name and None."""
Exchange: TypeAlias = tuple[int, int | None]
"""A unit, and the one whose place it takes; None where it is added."""
End: TypeAlias = tuple[Moments, Integers]
"""One client's moments, and their exact vector."""

_KNOWN = 3
"""Records of the same client that the attacker knows."""
_ROWS = 2
"""Rows of a unit that may have several."""
_BEYOND = 1.2
"""Times of made-up persons reach this far, in units of the last edge."""


@dataclass(frozen=True, eq=False)
class OneMissing:
    """One client, whose known records stand beside one of several units, or beside none.

    Attributes:
        target: the plan and its worst session.
        absent: the client's moments without a unit.
        present: its moments with each of the units; no two move the sums alike.
        places: the first record of each of these units, in the records that the world was built from.
    """

    target: Target
    absent: Moments
    present: tuple[Moments, ...]
    places: tuple[int, ...]

    @classmethod
    def of_records(cls, plan: Plan, records: Records) -> OneMissing:
        """Build the world from the client's known records, ``known_of(plan)`` many, and the units' after them.

        Units that move the sums as an earlier one does are left out, because no attacker can distinguish them.

        Raises:
            PlanError: fewer than two units differ.
        """
        target, known, rows = Target(plan), known_of(plan), rows_of(plan)
        starts = range(known, _count(records) - rows + 1, rows)
        several = [measured(plan, records, [*range(known), *range(start, start + rows)], known) for start in starts]
        vectors = np.stack([exact(plan, each) for each in several])
        first = np.sort(np.unique(vectors, axis=0, return_index=True)[1])
        if len(first) < 2:
            raise PlanError("no two made-up units of this plan move its sums differently, so none can be recognised")
        absent = measured(plan, records, [*range(known)], known) if known else target.empty
        return cls(target, absent, tuple(several[k] for k in first), tuple(starts[k] for k in first))

    @classmethod
    def drawn(cls, plan: Plan, units: int, rng: Generator) -> OneMissing:
        """Build the world from random records.

        Raises:
            PlanError: no two of the units differ.
            SchemaError: no records are made up for schemas of this kind.
        """
        return cls.of_records(plan, drawn(plan, known_of(plan) + units * rows_of(plan), rng))

    @property
    def plan(self) -> Plan:
        """The plan under attack."""
        return self.target.plan

    @cached_property
    def without(self) -> Integers:
        """The exact sum without a unit, in wire steps, ``(size,)``."""
        return exact(self.plan, self.absent)

    @cached_property
    def sums(self) -> Integers:
        """The exact sum with each unit, ``(units, size)``."""
        return np.stack([exact(self.plan, each) for each in self.present])

    @cached_property
    def levels(self) -> NDArray[np.float64]:
        """Noise of every entry that the attacker cannot take off, in wire steps, as the plan states it; without noise
        one step."""
        noise, segments = self.plan.noise, self.plan.layout.segments
        if noise is None:
            return np.ones(self.plan.layout.size)
        scale = [noise.scales[each.statistic] if noise.pure else noise.grid_sigma(each) for each in segments]
        return np.repeat(scale, [each.size for each in segments])

    def released(self, moments: Moments, rng: Generator) -> Integers:
        """Return what the attacker sees where the client has these moments: the worst session's release.

        Raises:
            PlanError: the session aborts.
        """
        others = 0 if self.plan.noise is None else max(0, self.target.worst_noise - 1)
        total = self.target.sum_of([moments, *[self.target.empty] * others], rng)
        seen = self.target.seen(total, rng)
        if isinstance(seen, str):
            raise PlanError(f"a session of this plan aborts over {_KNOWN + 1} records: {seen}")
        return seen.vector

    def misfit(self, seen: Integers, sums: Integers) -> Mapping[str, float]:
        """Return minus the log-likelihood of what is seen if these are the exact sums, by letter, up to a constant.

        Gaussian noise, and Laplace noise where delta is 0, of the level that the plan states.
        """
        gap = np.abs(seen - sums) / self.levels
        losses = gap if self.plan.noise is not None and self.plan.noise.pure else gap * gap / 2
        parts = zip(self.plan.layout.segments, self.plan.layout.slices, strict=True)
        totals = dict.fromkeys(self.plan.schema.statistics, 0.0)
        for segment, place in parts:
            totals[segment.statistic] += float(losses[place].sum())
        return totals

    def most_visible(self, letters: str = "") -> Exchange:
        """Return the unit that moves these statistics furthest, all if empty.

        Under replace-one it comes with the unit whose place it takes, else with None.
        """
        read = np.repeat(
            [letters in ("", each.statistic) for each in self.plan.layout.segments],
            [each.size for each in self.plan.layout.segments],
        )
        scaled, none = self.sums[:, read] / self.levels[read], self.without[read] / self.levels[read]
        if getattr(self.plan.privacy, "adjacency", "") != "replace-one":
            return int(np.linalg.norm(scaled - none, axis=1).argmax()), None
        gaps = np.linalg.norm(scaled[:, None] - scaled[None], axis=2)
        mine, other = np.unravel_index(int(gaps.argmax()), gaps.shape)
        return int(mine), int(other)

    def ends(self, exchange: Exchange) -> tuple[End, End]:
        """Return the client's moments and its exact sums with a unit, and the same without it."""
        mine, other = exchange
        without = (self.absent, self.without) if other is None else (self.present[other], self.sums[other])
        return (self.present[mine], self.sums[mine]), without


def exact(plan: Plan, moments: Moments) -> Integers:
    """Return the first client's exact vector, behind the clip of a whole client where there is one."""
    vector = flatten(moments.for_client(0))
    return vector if plan.noise is None else clip_client(plan.schema, Target(plan).privacy, vector)


def whole_client(plan: Plan) -> bool:
    """Whether the unit of a plan is all that a client holds."""
    of_clients = getattr(plan.privacy, "unit", "") == "client"
    return of_clients or plan.schema.party_is_record or bool(plan.schema.refusal("record"))


def rows_of(plan: Plan) -> int:
    """Return the number of rows of one unit."""
    several = whole_client(plan) or getattr(plan.privacy, "unit", "") == "person"
    return min(_ROWS, _room(plan)) if several else 1


def known_of(plan: Plan) -> int:
    """Return the number of the client's records that the attacker knows."""
    return 0 if whole_client(plan) else max(0, min(_KNOWN, _room(plan) - rows_of(plan)))


def attacker_of(plan: Plan) -> Adversary:
    """Return the attacker who lacks one unit, with all colluders that the plan counts with."""
    divided = plan.noise is not None and plan.noise.trust.divided
    local = plan.noise is not None and not divided and plan.noise.trust.drawn_by == "client"
    return Adversary(
        sees="cohort" if local else "release",
        knows="all-but-one",
        colluders=plan.cohort.colluders if divided else 0,
        unit="client" if whole_client(plan) else "record",
    )


def drawn(plan: Plan, count: int, rng: Generator) -> Records:
    """Draw so many records as a file states them; times of persons fall into every bin and beyond.

    Where records that are left out are counted, every fourth has no outcome.

    Raises:
        SchemaError: no records are made up for schemas of this kind.
    """
    schema, chance = plan.schema, np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    X, y = drawn_records(schema, count, chance)
    if isinstance(schema, HazardSchema):
        X[schema.bins.name] = chance.uniform(0, _BEYOND * schema.bins.edges[-1], count)
        if schema.strata is not None:
            X[schema.strata.name] = chance.choice(np.array(schema.strata.values, object), count)
        if schema.entry is not None:
            X[schema.entry] = X[schema.bins.name] * chance.random(count)
    if getattr(schema, "left_out", None) is not None:
        y[_KNOWN :: _ROWS * 2] = math.nan
    return X, y


def _room(plan: Plan) -> int:
    return min(
        plan.cohort.max_records, getattr(plan.privacy, "max_records_per_client", None) or plan.cohort.max_records
    )


def measured(plan: Plan, records: Records, rows: list[int], known: int) -> Moments:
    """Return the client's moments over some records, of which those after the known ones are of one person."""
    at, clip = np.array(rows, np.intp), plan.person_clip
    persons: dict[str, Any] = {}
    if clip is not None:
        persons = {"persons": np.minimum(np.arange(len(rows)), known), "person_clip": clip}
    X, y = (_taken(each, at) for each in records)
    return sums_of(plan.schema, X, y, published=plan.published, unreadable=plan.unreadable, **persons)


def _taken(values: Any, places: NDArray[np.intp]) -> Any:
    if isinstance(values, Mapping):
        return {name: _taken(column, places) for name, column in values.items()}
    if values is None or isinstance(values, np.ndarray):
        return None if values is None else values[places]
    return np.array(values, object)[places]


def _count(records: Records) -> int:
    X = records[0]
    return len(next(iter(X.values()))) if isinstance(X, Mapping) else len(X)
