"""All clients and the server of one plan in one process.

The machines, the messages and the noise are the real ones; only the network is missing. Not for production: one
process sees everybody's records here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

from privstats import session
from privstats.admission import listed_in
from privstats.course import Course, Node
from privstats.course import run as follow
from privstats.encoding import RingVector
from privstats.engines import loopback
from privstats.errors import AggregationError, DataError, PlanError
from privstats.moments import Moments, measure
from privstats.plan import Plan
from privstats.randomness import Generator, checked
from privstats.release import Release
from privstats.stopwatch import Stopwatch

__all__ = ["Run", "run", "simulate"]

Shard: TypeAlias = Moments | tuple[Any, Any]
Dropouts: TypeAlias = Mapping[str, Collection[int]]

_MEANT = "call simulate(plan, [(X, y), ...])"


@dataclass(frozen=True)
class Run:
    """A release and how it came about.

    Attributes:
        release: what the server may publish.
        exact: the unmasked total equals the sum of the survivors' vectors, with ``==`` on every integer.
        bytes_sent: bytes each client sent, all messages together.
        seconds: wall time per stage of the way of the data.
    """

    release: Release
    exact: bool
    bytes_sent: tuple[int, ...]
    seconds: Mapping[str, float]


@overload
def simulate(
    plan: Plan, shards: Sequence[Shard], dropouts: Dropouts | None = None, rng: Generator | None = None
) -> Release: ...


@overload
def simulate(
    plan: Course,
    shards: Sequence[Shard],
    dropouts: Sequence[Dropouts | None] | None = None,
    rng: Generator | None = None,
) -> list[Release | None]: ...


def simulate(plan: Any, shards: Any, dropouts: Any = None, rng: Generator | None = None) -> Any:
    """Run a plan over shards and give the release. No ledger is charged: the shards are experiments, or public.

    Args:
        plan: the plan, or a course of plans.
        shards: one ``(X, y)`` pair or measured moments per client of the cohort.
        dropouts: ``{step: {client, ...}}`` with steps of ``plan.masking.steps``; a client that vanishes at a step never
            sends that step's message. Helper j of a panel is number ``plan.cohort.clients + j - 1``. For a course a
            list of these, one per node; None and missing ones mean nobody.
        rng: a generator of test randomness, which marks the release; the operating system's when omitted.

    Returns:
        The release; for a course a list with the release of every node, or None where a node ended without a sum.

    Raises:
        DataError: shards that do not fit the plan.
        PlanError: dropouts that name an unknown step or client, or a course that breaks its word.
        AggregationError: too few survivors; there is no sum then.
    """
    if isinstance(plan, Course):
        return _follow(plan, shards, dropouts, rng)
    return run(plan, shards, dropouts, rng).release


def _follow(course: Course, shards: Sequence[Shard], dropouts: Any, rng: Generator | None) -> list[Release | None]:
    gone = () if dropouts is None else dropouts
    if not isinstance(gone, Sequence) or len(gone) > course.most:
        raise PlanError(
            f"dropouts of a course must be a list of at most {course.most} mappings, one per node, for example "
            "[{}, {step: {1, 4}}]"
        )

    def release(node: Node) -> Release | None:
        try:
            return run(node.plan, shards, _sitting_out(node.plan, gone[node.place : node.place + 1]), rng).release
        except AggregationError:
            return None

    return follow(course, release)


def _sitting_out(plan: Plan, gone: Sequence[Dropouts | None]) -> Dropouts | None:
    """The dropouts of a node, and from its first step those who were not in the sum that it is about."""
    given, among = next(iter(gone), None), listed_in(plan)
    outside = set() if among is None else set(range(plan.cohort.clients)).difference(among)
    if not outside or not isinstance(given, Mapping | None):
        return given
    first = plan.masking.steps[0]
    return {**(given or {}), first: outside.union((given or {}).get(first, ()))}


def run(plan: Plan, shards: Sequence[Shard], dropouts: Dropouts | None = None, rng: Generator | None = None) -> Run:
    """Like :func:`simulate`, and tell what it cost and whether the sum is exact."""
    rng = checked(rng, allow_reproducible=True)
    if not isinstance(plan, Plan):
        raise DataError(f"plan must be a Plan, got {type(plan).__name__}; build one with Plan(...) or Plan.read(path)")
    if not isinstance(shards, Sequence):
        raise DataError(
            f"shards must be a list with one (X, y) or moments per client, got {type(shards).__name__}; {_MEANT}"
        )
    dropouts = {} if dropouts is None else dropouts
    _check_dropouts(plan, dropouts)
    watch: Stopwatch[str] = Stopwatch()
    with watch.timing("measure"):
        moments = _measure(plan, shards)
    with watch.timing("noise and encode"):
        contributions = [session.contribution(plan, each, rng, allow_reproducible=True) for each in moments]
    with watch.timing("secagg: all"):
        cast = session.cast(plan, contributions, rng)
        outcome = loopback.run(cast.server, cast.clients, helpers=cast.helpers, dropouts=dropouts)
        watch.seconds.update({f"secagg: {step}": seconds for step, seconds in outcome.seconds.items()})
    total, survivors = outcome.total, outcome.survivors
    with watch.timing("release"):
        release = session.release(plan, total, survivors, rng, charge="uncharged", allow_reproducible=True)
    return Run(
        release=release,
        exact=_is_sum(total, [contributions[index].vector for index in survivors]),
        bytes_sent=tuple(outcome.bytes_sent),
        seconds=watch.seconds,
    )


def _measure(plan: Plan, shards: Sequence[Shard]) -> list[Moments]:
    if len(shards) != plan.cohort.clients:
        raise DataError(
            f"the plan has cohort.clients={plan.cohort.clients} but {len(shards)} shards came; give one each"
        )
    for index, shard in enumerate(shards):
        pair = isinstance(shard, tuple | list) and len(shard) == 2
        if not pair and not isinstance(shard, Moments):
            raise DataError(f"shards[{index}] must be (X, y) or moments, got {type(shard).__name__}; {_MEANT}")
    moments = [
        shard if isinstance(shard, Moments) else measure(plan.schema, *shard, published=plan.published)
        for shard in shards
    ]
    records = sum(each.records or 0 for each in moments)
    if records > plan.cohort.max_records:
        raise DataError(
            f"the shards hold more records than cohort.max_records={plan.cohort.max_records}; raise it in the plan"
        )
    return moments


def _is_sum(total: RingVector, vectors: Sequence[RingVector]) -> bool:
    plain = total.ring.zeros()
    for vector in vectors:
        plain.add(vector)
    return plain.pack() == total.pack()


def _check_dropouts(plan: Plan, dropouts: Dropouts) -> None:
    if not isinstance(dropouts, Mapping) or not all(isinstance(gone, Collection) for gone in dropouts.values()):
        example = f'{{"{plan.masking.upload_step}": {{1, 4}}}}'
        raise PlanError(f"dropouts must map steps to sets of clients, for example {example}; {_MEANT}")
    steps = plan.masking.steps
    for step, gone in dropouts.items():
        if step not in steps:
            raise PlanError(f"dropouts names the unknown step {step!r}; the steps are {', '.join(steps)}")
        helpers = max(0, len(plan.panel) - 1)
        strangers = sorted(set(gone) - set(range(plan.cohort.clients + helpers)), key=repr)
        if strangers:
            also = f", and {plan.cohort.clients + helpers - 1} is the last helper" if helpers else ""
            raise PlanError(
                f"dropouts names clients {strangers} at step {step!r}; clients are 0..{plan.cohort.clients - 1}{also}"
            )
