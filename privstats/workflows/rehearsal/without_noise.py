"""Fit a rehearsal's model on exact sums: the same sessions of the same course, with no mask and no noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from privstats.course import Binned, Course, Round, Rounds
from privstats.course import run as follow
from privstats.encoding import flatten
from privstats.plan import Cohort, Plan
from privstats.records.row_cache import MAX_BYTES, RowCache
from privstats.release import Release
from privstats.workflows.simulate import Shard, measured

_LOOSE = 100.0
"""The largest epsilon of a plan: a fit behind it allows for next to no noise, and its sums have none."""
_LEAST_CLIENTS = 2


def exact_alone(course: Course, whole: Plan, shards: Sequence[Any], size: int) -> list[Release]:
    """Return exact sums of a course of the same structure over some parties; a fit allows for next to no noise.

    Args:
        course: whose cut points, rounds and pairs are repeated.
        whole: the plan that the course divides.
        shards: records of some parties.
        size: their number of records, or of persons.
    """
    clients = max(len(shards), _LEAST_CLIENTS)
    privacy: Any = whole.privacy
    plan = replace(
        whole,
        cohort=Cohort(clients, clients, max(whole.cohort.max_records, 2 * size)),
        privacy=replace(privacy, model="central", epsilon=_LOOSE),
    )
    same = _like(course, plan, size)
    empty = [tuple(_none_of(part) for part in shards[0])] * (clients - len(shards))
    return exact_sums(same, [*shards, *empty])


def _like(course: Course, plan: Plan, size: int) -> Course:
    """Return a course over another plan with the same cut points, rounds and pairs."""
    inner: Any = course.then if isinstance(course, Binned) else course
    own: dict[str, Any] = {"rounds": inner.rounds, "pairs": inner.pairs} if isinstance(inner, Rounds) else {}
    if isinstance(course, Binned):
        return Binned.within(plan, inner.label, expected_records=size, finer_ends=course.finer_ends, **own)
    made: Course = type(inner).within(plan, expected_records=size, **own)
    return made


def exact_sums(course: Course, shards: Sequence[Shard]) -> list[Release]:
    """Return exact sums of every session of a course, one shard per client; they are no releases to publish."""
    caches = {index: RowCache(MAX_BYTES // len(shards)) for index in range(len(shards))}

    def summed(round_: Round) -> Release:
        first, *rest = measured(round_.plan, shards, caches)
        return Release(round_.plan, flatten(sum(rest, first)), tuple(range(len(shards))))

    return [each for each in follow(course, summed) if each is not None]


def _none_of(part: Any) -> Any:
    """Return no record of a table's columns, or of labels."""
    return {name: values[:0] for name, values in part.items()} if isinstance(part, dict) else part[:0]
