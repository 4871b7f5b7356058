"""All clients and the server of one plan in one process.

The machines, the messages and the noise are the real ones; only the network is missing. Not for production: one
process sees the records of all parties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from privstats import session
from privstats.errors import AggregationError, DataError, PlanError
from privstats.moments import warn_if_clipped, warn_if_empty
from privstats.moments.kept_rows import MOST_BYTES, KeptRows
from privstats.plan import Plan
from privstats.randomness import Generator, checked
from privstats.release import Release
from privstats.session.validation import required_survivors
from privstats.stopwatch import Stopwatch
from privstats.tables import LazyRows
from privstats.workflows.simulate.summed import Dropouts, Shard, checked_dropouts, measured, require_shards, summed

if TYPE_CHECKING:
    from privstats.course import Course, Round, Stream

__all__ = ["Run", "run", "simulate"]

_Through: TypeAlias = Callable[[Any, Any, Any, Generator | None], list[Release | None]]


@dataclass(frozen=True)
class Run:
    """A release, with the cost and the correctness of its session.

    Attributes:
        release: what the server may publish.
        exact: the unmasked total equals the sum of the survivors' vectors, with ``==`` on every integer; None where
            helpers add noise to it, so that no party sees the exact one.
        bytes_sent: bytes each client sent, all messages together.
        seconds: wall time per stage of the flow of the data.

    Example:
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(2, 2, 100)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
        >>> run = ps.workflows.simulate.run(plan, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])])
        >>> run.exact, len(run.bytes_sent), run.release.survivors
        (True, 2, (0, 1))
    """

    release: Release
    exact: bool | None
    bytes_sent: tuple[int, ...]
    seconds: Mapping[str, float]


@overload
def simulate(
    plan: Plan, shards: Sequence[Shard], dropouts: Dropouts | None = None, rng: Generator | None = None
) -> Release: ...


@overload
def simulate(
    plan: Stream,
    shards: Sequence[Sequence[Shard]],
    dropouts: Sequence[Dropouts | None] | None = None,
    rng: Generator | None = None,
) -> list[Release | None]: ...


@overload
def simulate(
    plan: Course,
    shards: Sequence[Shard],
    dropouts: Sequence[Dropouts | None] | None = None,
    rng: Generator | None = None,
) -> list[Release | None]: ...


def simulate(plan: Any, shards: Any, dropouts: Any = None, rng: Generator | None = None) -> Any:
    """Run a plan over shards and return the release. No ledger is charged: the shards are experiments, or public.

    Args:
        plan: the plan, or a course of plans.
        shards: one ``(X, y)`` pair or measured moments per client of the cohort; under a promise per person ``(X, y,
            ids)``. For a stream a list of these, one per
            epoch, with what entered in it; ``moments.MomentsDelta`` where records leave as well.
        dropouts: ``{step: {client, ...}}`` with steps of ``plan.masking.steps``; a client that vanishes at a step never
            sends that step's message. Helper j of a panel is number ``plan.cohort.clients + j - 1``. For a course a
            list of these, one per round; None and missing ones mean that no client vanishes.
        rng: a generator of test randomness, which marks the release; the operating system's when omitted.

    Returns:
        The release; for a course a list with the release of every round, or None where a round ended without a sum.

    Raises:
        DataError: shards that do not fit the plan.
        PlanError: dropouts that name an unknown step or client, or a course that departs from its own declaration or
            has no row in ``course.kinds``.
        AggregationError: too few survivors; there is no sum then.

    Example:
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(3, 2, 100)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
        >>> shards = [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1]), ([[0.0, 0.5]], [1])]
        >>> release = ps.simulate(plan, shards, dropouts={"mask": {0}})
        >>> release.survivors, release.moments.A.tolist()
        ((1, 2), [[0.0, 0.0], [0.0, 0.75]])
    """
    if _is_course(plan):
        from privstats.course.kinds import course_kind

        return _THROUGH[course_kind(plan).part](plan, shards, dropouts, rng)
    return _ran(plan, shards, dropouts, rng).release


def _is_course(plan: object) -> bool:
    if isinstance(plan, Plan):
        return False
    from privstats.course import Course

    return isinstance(plan, Course)


def _follow(course: Course, shards: Sequence[Shard], dropouts: Any, rng: Generator | None) -> list[Release | None]:
    from privstats.course import run as follow

    gone = () if dropouts is None else dropouts
    if not isinstance(gone, Sequence) or len(gone) > course.most:
        raise PlanError(
            f"dropouts of a course must be a list of at most {course.most} mappings, one per round, for example "
            "[{}, {step: {1, 4}}]"
        )

    require_shards(shards)
    kept = {index: KeptRows(MOST_BYTES // len(shards)) for index in range(len(shards))}

    def release(round_: Round) -> Release | None:
        try:
            absent = _sitting_out(round_.plan, gone[round_.place : round_.place + 1])
            return _ran(round_.plan, shards, absent, rng, tell=round_.place == 0, kept=kept).release
        except AggregationError:
            return None

    return follow(course, release)


def _epoch_by_epoch() -> _Through:
    from privstats.workflows.simulate.epochs import stream_through

    return stream_through


_THROUGH: Mapping[str, _Through] = LazyRows({"records": lambda: _follow, "changes": _epoch_by_epoch})
"""How a course is simulated, by what a party contributes to a round."""


def _sitting_out(plan: Plan, gone: Sequence[Dropouts | None]) -> Dropouts | None:
    """The dropouts of a round and, from its first step, the clients that were not in the sum that it refers to."""
    given, among = next(iter(gone), None), required_survivors(plan)
    outside = set() if among is None else set(range(plan.cohort.clients)).difference(among)
    if not outside or not isinstance(given, Mapping | None):
        return given
    first = plan.masking.steps[0]
    return {**(given or {}), first: outside.union((given or {}).get(first, ()))}


def run(plan: Plan, shards: Sequence[Shard], dropouts: Dropouts | None = None, rng: Generator | None = None) -> Run:
    """Like :func:`simulate`; also return the cost and whether the sum is exact.

    Example:
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(2, 2, 100)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
        >>> run = ps.workflows.simulate.run(plan, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])])
        >>> run.exact, run.release.moments.N.tolist()
        (True, [1.0, 1.0])
    """
    return _ran(plan, shards, dropouts, rng)


def _ran(
    plan: Plan,
    shards: Sequence[Shard],
    dropouts: Dropouts | None,
    rng: Generator | None,
    *,
    tell: bool = True,
    kept: Mapping[int, KeptRows] | None = None,
) -> Run:
    """A run, which tells the caller what the clip did: once for all parties, in the first round of a course."""
    rng = checked(rng, allow_reproducible=True)
    if not isinstance(plan, Plan):
        raise DataError(f"plan must be a Plan, got {type(plan).__name__}; build one with Plan(...) or Plan.read(path)")
    require_shards(shards)
    watch: Stopwatch[str] = Stopwatch()
    dropouts = checked_dropouts(plan, dropouts)
    with watch.timing("measure"):
        moments = measured(plan, shards, kept)
    warn_if_empty(*moments)
    if tell:
        warn_if_clipped(*moments, stacklevel=4)
    outcome = summed(plan, moments, dropouts, rng, watch)
    with watch.timing("release"):
        given: dict[str, Any] = {"charge": "uncharged", "openings": outcome.openings, "allow_reproducible": True}
        release = session.release(plan, outcome.total, outcome.survivors, rng, **given)
    return Run(release=release, exact=outcome.exact, bytes_sent=outcome.bytes_sent, seconds=watch.seconds)
