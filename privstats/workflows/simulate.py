"""Simulate a complete aggregation in one process, to try a plan before deployment.

Machines, messages and noise are real; only the network is missing. Not for production: one process sees all parties'
records.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincinv

from privstats import session
from privstats.encoding import RingVector
from privstats.engines import loopback
from privstats.errors import AggregationError, DataError, PlanError, UnreadableRecordsWarning
from privstats.moments import Moments, exact_moments, warn_if_clipped, warn_if_empty
from privstats.plan import Plan
from privstats.progress import progress_bar, track
from privstats.randomness import Generator, checked, uniform
from privstats.records.row_cache import MAX_BYTES, RowCache
from privstats.release import Release
from privstats.secagg.machines import Opening
from privstats.session.machines import Contribution
from privstats.session.validation import required_survivors
from privstats.stopwatch import Stopwatch

if TYPE_CHECKING:
    from privstats.course import Course, DisjointRounds, Round


def dirichlet_partition(y: ArrayLike, clients: int, alpha: float, rng: Generator) -> tuple[NDArray[np.int64], ...]:
    """Return row indices per client: each class is spread in Dirichlet(alpha) proportions.

    Args:
        y: labels, ``(n,)``; for a regression strata, for example quantile bins.
        clients: at least 1.
        alpha: concentration above 0; 0.05 leaves most clients one or two classes, 100 is nearly even.
        rng: random generator.

    Returns:
        One sorted int64 array per client, possibly empty; together every row exactly once.

    Example:
        >>> from privstats import randomness
        >>> from privstats.workflows.simulate import dirichlet_partition
        >>> parts = dirichlet_partition([0, 1] * 50, clients=4, alpha=0.5, rng=randomness.seeded(0))
        >>> len(parts), sorted(np.concatenate(parts)) == list(range(100))
        (4, True)
    """
    labels = np.asarray(y)
    if clients < 1:
        raise DataError(f"clients must be at least 1, got {clients}")
    if not alpha > 0:
        raise DataError(f"alpha must be above 0, got {alpha}")
    owner = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        edges = np.cumsum(_dirichlet(clients, alpha, rng))[:-1]
        owner[rows] = np.searchsorted(edges, uniform(len(rows), rng), side="right")
    return tuple(np.flatnonzero(owner == index) for index in range(clients))


def _dirichlet(size: int, alpha: float, rng: Generator) -> NDArray[np.float64]:
    """Return normalised Gamma(alpha) samples by inversion; if all underflow, one client gets all."""
    draws = np.asarray(gammaincinv(alpha, uniform(size, rng)), np.float64)
    total = draws.sum()
    return np.asarray(draws / total) if total > 0 else np.eye(size)[0]


class NamedShard(tuple[Any, ...]):
    """A party's records with a name, which begins each warning.

    Example:
        >>> from privstats.workflows.simulate import NamedShard
        >>> shard = NamedShard("north.csv", ([[0.5, 0.0]], [0]))
        >>> shard.name, len(shard)
        ('north.csv', 2)
    """

    name: str

    def __new__(cls, name: str, parts: Iterable[Any]) -> Self:
        """Name the parts that ``simulate`` accepts for one party."""
        shard = super().__new__(cls, parts)
        shard.name = name
        return shard


Shard: TypeAlias = Moments | tuple[Any, Any] | tuple[Any, Any, Any]
Dropouts: TypeAlias = Mapping[str, Collection[int]]

_MEANT = "call simulate(plan, [(X, y), ...])"


@dataclass(frozen=True)
class Summed:
    """A session's sum, before its release.

    Attributes:
        exact, bytes_sent: as in :class:`Run`.
    """

    total: RingVector
    survivors: tuple[int, ...]
    exact: bool | None
    bytes_sent: tuple[int, ...]
    openings: Mapping[int, Opening]


def summed(
    plan: Plan,
    moments: Sequence[Moments],
    dropouts: Dropouts | None,
    rng: Generator,
    watch: Stopwatch[str] | None = None,
) -> Summed:
    """Mask, sum and unmask; ``watch`` collects the seconds.

    Raises:
        PlanError: an unknown step or client in dropouts.
        AggregationError: too few survivors.
    """
    dropouts, watch = _checked_dropouts(plan, dropouts), watch or Stopwatch()
    with watch.timing("noise and encode"):
        contributions = [
            session.contribution(plan, each, rng, index=index, allow_reproducible=True)
            for index, each in enumerate(moments)
        ]
    with watch.timing("secagg: all"):
        cast = session.local_parties(plan, contributions, rng)
        with progress_bar("messages") as advance:
            options: Any = {"helpers": cast.helpers, "dropouts": dropouts}
            outcome = loopback.run(cast.server, cast.clients, progress=lambda *_: advance(1), **options)
        watch.seconds.update({f"secagg: {step}": seconds for step, seconds in outcome.seconds.items()})
    noisy = plan.noise is not None and plan.noise.members > 1
    exact = None if noisy else _is_sum(outcome.total, [contributions[index] for index in outcome.survivors])
    return Summed(outcome.total, outcome.survivors, exact, tuple(outcome.bytes_sent), outcome.openings)


def measured(plan: Plan, shards: Sequence[Shard], caches: Mapping[int, RowCache] | None = None) -> list[Moments]:
    """Return all moments; ``caches`` hold an earlier round's rows."""
    _require_shards(shards)
    if len(shards) != plan.cohort.clients:
        raise DataError(
            f"the plan has cohort.clients={plan.cohort.clients} but {len(shards)} shards came; pass one per client"
        )
    for index, shard in enumerate(shards):
        parts, form = 2 if plan.person_clip is None else 3, "(X, y)" if plan.person_clip is None else "(X, y, ids)"
        parted = isinstance(shard, tuple | list) and len(shard) == parts
        if not parted and not isinstance(shard, Moments):
            raise DataError(
                f"shards[{index}] must be {form} or moments, got {type(shard).__name__}; "
                f"{_MEANT.replace('(X, y)', form)}; for counts ps.measure(plan.schema, columns) in place of {form}"
            )
    moments: list[Moments] = []
    for index, shard in enumerate(track("measuring", shards)):
        if not isinstance(shard, Moments):
            with begun_warnings(shard.name) if isinstance(shard, NamedShard) else nullcontext():
                shard = _sums(plan, *shard, cache=(caches or {}).get(index))
        moments.append(shard)
    records = sum(each.counted or 0 for each in moments)
    if records > plan.cohort.max_records:
        raise DataError(
            f"the shards hold more records than cohort.max_records={plan.cohort.max_records}; raise it in the plan"
        )
    return moments


@contextmanager
def begun_warnings(name: str) -> Iterator[None]:
    """Begin each warning about unreadable records with their party's name.

    Example:
        >>> import warnings
        >>> from privstats.workflows.simulate import begun_warnings
        >>> with warnings.catch_warnings(record=True) as caught, begun_warnings("north.csv"):
        ...     warnings.warn("one record is left out", ps.errors.UnreadableRecordsWarning)
        ...
        >>> str(caught[0].message)
        'north.csv: one record is left out'
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for each in caught:
        prefix = f"{name}: " if issubclass(each.category, UnreadableRecordsWarning) else ""
        warnings.warn(f"{prefix}{each.message}", each.category, stacklevel=2)


def _sums(plan: Plan, X: Any, y: Any, persons: Any = None, *, cache: Any) -> Moments:
    terms: Any = {"published": plan.published, "unreadable": plan.unreadable, "cache": cache}
    return exact_moments(plan.schema, X, y, persons=persons, person_clip=plan.person_clip, **terms)


def _require_shards(shards: object) -> None:
    if not isinstance(shards, Sequence):
        raise DataError(
            f"shards must be a list with one (X, y) or moments per client, got {type(shards).__name__}; {_MEANT}"
        )


def _checked_dropouts(plan: Plan, dropouts: Dropouts | None) -> Dropouts:
    """Return the dropouts, none for None.

    Raises:
        PlanError: they name an unknown step or client.
    """
    dropouts = {} if dropouts is None else dropouts
    if not isinstance(dropouts, Mapping) or not all(isinstance(gone, Collection) for gone in dropouts.values()):
        example = f'{{"{plan.masking.upload_step}": {{1, 4}}}}'
        raise PlanError(f"dropouts must map steps to sets of clients, for example {example}; {_MEANT}")
    steps = plan.masking.steps
    for step, gone in dropouts.items():
        if step not in steps:
            raise PlanError(f"dropouts names the unknown step {step!r}; the steps are {', '.join(steps)}")
        peers = plan.cohort.clients + plan.helpers
        unknown = sorted(set(gone) - set(range(peers)), key=repr)
        if unknown:
            also = f", and {peers - 1} is the last helper" if plan.helpers else ""
            raise PlanError(
                f"dropouts names clients {unknown} at step {step!r}; clients are 0..{plan.cohort.clients - 1}{also}"
            )
    return dropouts


def _is_sum(total: RingVector, parts: Sequence[Contribution]) -> bool:
    plain = total.ring.zeros()
    for part in parts:
        plain.add(part.vector)
    return plain.pack() == total.pack()


@dataclass(frozen=True)
class Run:
    """A release, with its session's cost and correctness.

    Attributes:
        release: what the server may publish.
        exact: whether the unmasked total equals the survivors' sum on every integer; None where helpers add noise, so
            that no party sees the exact total.
        bytes_sent: per client.
        seconds: wall time per stage.

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
    plan: DisjointRounds,
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


def simulate(
    plan: Plan | Course | DisjointRounds,
    shards: Sequence[Shard] | Sequence[Sequence[Shard]],
    dropouts: Dropouts | Sequence[Dropouts | None] | None = None,
    rng: Generator | None = None,
) -> Release | list[Release | None]:
    """Run a plan over shards and return the release.

    No ledger is charged: the shards are experiments, or public.

    Args:
        plan: the plan, or a course of plans.
        shards: one ``(X, y)`` pair or measured moments per client; under a guarantee per person ``(X, y, ids)``. For a
            stream one such list of new records per epoch; ``contrib.streams.MomentsDelta`` where records also leave.
        dropouts: ``{step: {client, ...}}`` with steps of ``plan.masking.steps``; the client never sends that step's
            message. Helper j of a panel is number ``plan.cohort.clients + j - 1``. For a course one per round; None and
            missing ones mean no dropouts.
        rng: test randomness, which marks the release; the operating system's when omitted.

    Returns:
        The release; for a course one per round, or None where a round ended without a sum.

    Raises:
        DataError: shards that do not fit the plan.
        PlanError: an unknown step or client in dropouts, or a course that departs from its declaration or has no row in
            ``course.kinds``.
        AggregationError: too few survivors; no sum exists.

    Example:
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), ps.Cohort(3, 2, 100)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
        >>> shards = [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1]), ([[0.0, 0.5]], [1])]
        >>> release = ps.simulate(plan, shards, dropouts={"mask": {0}})
        >>> release.survivors, release.moments.A.tolist()
        ((1, 2), [[0.0, 0.0], [0.0, 0.75]])
    """
    subject: Any = plan
    records: Any = shards
    absent: Any = dropouts
    if _is_course(plan):
        from privstats.course.kinds import course_kind

        changing = course_kind(subject).changing
        if changing is None:
            return _follow(subject, records, absent, rng)
        return changing.simulated(subject, records, absent, checked(rng, allow_reproducible=True))
    return _ran(subject, records, absent, rng).release


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

    _require_shards(shards)
    caches = {index: RowCache(MAX_BYTES // len(shards)) for index in range(len(shards))}

    def release(round_: Round) -> Release | None:
        try:
            absent = _sitting_out(round_.plan, gone[round_.place : round_.place + 1])
            # To the caller of simulate, over the course's runner.
            level = 7 if round_.place == 0 else None
            return _ran(round_.plan, shards, absent, rng, stacklevel=level, caches=caches).release
        except AggregationError:
            return None

    return follow(course, release)


def _sitting_out(plan: Plan, gone: Sequence[Dropouts | None]) -> Dropouts | None:
    """Return a round's dropouts, with clients outside its required sum absent from the start."""
    step, among = next(iter(gone), None), required_survivors(plan)
    outside = set() if among is None else set(range(plan.cohort.clients)).difference(among)
    if not outside or not isinstance(step, Mapping | None):
        return step
    first = plan.masking.steps[0]
    return {**(step or {}), first: outside.union((step or {}).get(first, ()))}


def run(plan: Plan, shards: Sequence[Shard], dropouts: Dropouts | None = None, rng: Generator | None = None) -> Run:
    """Simulate a plan as :func:`simulate`, and also return cost and exactness.

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
    stacklevel: int | None = 4,
    caches: Mapping[int, RowCache] | None = None,
) -> Run:
    # Warn once about clipping, in a course's first round: later ones have no stack level.
    rng = checked(rng, allow_reproducible=True)
    if not isinstance(plan, Plan):
        raise DataError(f"plan must be a Plan, got {type(plan).__name__}; build one with Plan(...) or Plan.read(path)")
    _require_shards(shards)
    watch: Stopwatch[str] = Stopwatch()
    dropouts = _checked_dropouts(plan, dropouts)  # before any record is read
    with watch.timing("measure"):
        moments = measured(plan, shards, caches)
    warn_if_empty(*moments)
    if stacklevel is not None:
        warn_if_clipped(*moments, stacklevel=stacklevel)
    outcome = summed(plan, moments, dropouts, rng, watch)
    with watch.timing("release"):
        arguments: dict[str, Any] = {"charge": "uncharged", "openings": outcome.openings, "allow_reproducible": True}
        release = session.release(plan, outcome.total, outcome.survivors, rng, **arguments)
    return Run(release=release, exact=outcome.exact, bytes_sent=outcome.bytes_sent, seconds=watch.seconds)
