"""One masked session of a simulation: from shards to the unmasked sum and its cost.

A plan and a node of a stream share this step, which makes no release and adds no server's noise. One data set can be
split over simulated clients with label skew, reproducibly from a seed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincinv

from privstats import session
from privstats.encoding import RingVector
from privstats.engines import loopback
from privstats.errors import DataError, PlanError
from privstats.moments import Moments, exact_moments
from privstats.moments.kept_rows import KeptRows
from privstats.plan import Plan
from privstats.progress import progress_bar, track
from privstats.randomness import Generator, uniform
from privstats.secagg.noise_layers import Opening
from privstats.session.vector import Contribution
from privstats.stopwatch import Stopwatch

__all__ = [
    "Dropouts",
    "Shard",
    "Summed",
    "checked_dropouts",
    "dirichlet_partition",
    "measured",
    "require_shards",
    "summed",
]


def dirichlet_partition(y: ArrayLike, clients: int, alpha: float, rng: Generator) -> tuple[NDArray[np.int64], ...]:
    """Row indices per client: each class is spread over the clients in Dirichlet(alpha) proportions.

    Args:
        y: labels, shape ``(n,)``; for a regression pass strata, for example quantile bins of the target.
        clients: parties to split over, at least 1.
        alpha: concentration above 0; 0.05 leaves most clients with one or two classes, 100 is nearly even.
        rng: where the randomness comes from.

    Returns:
        One sorted int64 array per client; together they are every row exactly once. A client may be empty.

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
    """Normalised Gamma(alpha) draws by inversion; in the rare case that all underflow, one client takes all."""
    draws = np.asarray(gammaincinv(alpha, uniform(size, rng)), np.float64)
    total = draws.sum()
    return np.asarray(draws / total) if total > 0 else np.eye(size)[0]


Shard: TypeAlias = Moments | tuple[Any, Any] | tuple[Any, Any, Any]
Dropouts: TypeAlias = Mapping[str, Collection[int]]

_MEANT = "call simulate(plan, [(X, y), ...])"


@dataclass(frozen=True)
class Summed:
    """The outcome of a session.

    Attributes:
        total: the unmasked sum.
        survivors: the clients in it.
        exact: it equals the sum of the survivors' vectors, with ``==`` on every integer; None where helpers add noise
            to it, so that no party sees the exact one.
        bytes_sent: by client.
        openings: by client, the layers of noise in the sum that it opened.
    """

    total: RingVector
    survivors: tuple[int, ...]
    exact: bool | None
    bytes_sent: tuple[int, ...]
    openings: Mapping[int, Opening]


def summed(plan: Plan, moments: Sequence[Moments], dropouts: Dropouts, rng: Generator, watch: Stopwatch[str]) -> Summed:
    """Mask, sum and unmask.

    Args:
        plan: the plan.
        moments: one per client.
        dropouts: checked by :func:`checked_dropouts`.
        rng: where noise shares and keys come from.
        watch: the stopwatch that the seconds are added to.

    Raises:
        AggregationError: too few survivors; there is no sum then.
    """
    with watch.timing("noise and encode"):
        contributions = [
            session.contribution(plan, each, rng, index=index, allow_reproducible=True)
            for index, each in enumerate(moments)
        ]
    with watch.timing("secagg: all"):
        cast = session.local_parties(plan, contributions, rng)
        with progress_bar("messages") as advance:
            given: Any = {"helpers": cast.helpers, "dropouts": dropouts}
            outcome = loopback.run(cast.server, cast.clients, progress=lambda *_: advance(1), **given)
        watch.seconds.update({f"secagg: {step}": seconds for step, seconds in outcome.seconds.items()})
    noisy = plan.noise is not None and plan.noise.members > 1
    exact = None if noisy else _is_sum(outcome.total, [contributions[index] for index in outcome.survivors])
    return Summed(outcome.total, outcome.survivors, exact, tuple(outcome.bytes_sent), outcome.openings)


def measured(plan: Plan, shards: Sequence[Shard], kept: Mapping[int, KeptRows] | None = None) -> list[Moments]:
    """Moments of every shard.

    Args:
        plan, shards: as for ``simulate``.
        kept: by shard, what its records became in a round before.

    Raises:
        DataError: shards that do not fit the plan.
    """
    require_shards(shards)
    if len(shards) != plan.cohort.clients:
        raise DataError(
            f"the plan has cohort.clients={plan.cohort.clients} but {len(shards)} shards came; give one each"
        )
    for index, shard in enumerate(shards):
        parts, given = 2 if plan.person_clip is None else 3, "(X, y)" if plan.person_clip is None else "(X, y, ids)"
        whole = isinstance(shard, tuple | list) and len(shard) == parts
        if not whole and not isinstance(shard, Moments):
            raise DataError(
                f"shards[{index}] must be {given} or moments, got {type(shard).__name__}; "
                f"{_MEANT.replace('(X, y)', given)}, or with ps.measure(plan.schema, columns) in place of {given}"
            )
    moments: list[Moments] = []
    for index, shard in enumerate(track("measuring", shards)):
        if not isinstance(shard, Moments):
            shard = _sums(plan, *shard, kept=(kept or {}).get(index))
        moments.append(shard)
    records = sum(each.counted or 0 for each in moments)
    if records > plan.cohort.max_records:
        raise DataError(
            f"the shards hold more records than cohort.max_records={plan.cohort.max_records}; raise it in the plan"
        )
    return moments


def _sums(plan: Plan, X: Any, y: Any, persons: Any = None, *, kept: Any) -> Moments:
    terms: Any = {"published": plan.published, "unreadable": plan.unreadable, "kept": kept}
    return exact_moments(plan.schema, X, y, persons=persons, person_clip=plan.person_clip, **terms)


def require_shards(shards: object) -> None:
    """Refuse a value that is no list of shards, with ``DataError``, whatever the other arguments are."""
    if not isinstance(shards, Sequence):
        raise DataError(
            f"shards must be a list with one (X, y) or moments per client, got {type(shards).__name__}; {_MEANT}"
        )


def checked_dropouts(plan: Plan, dropouts: Dropouts | None) -> Dropouts:
    """The dropouts, none for None.

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
        strangers = sorted(set(gone) - set(range(peers)), key=repr)
        if strangers:
            also = f", and {peers - 1} is the last helper" if plan.helpers else ""
            raise PlanError(
                f"dropouts names clients {strangers} at step {step!r}; clients are 0..{plan.cohort.clients - 1}{also}"
            )
    return dropouts


def _is_sum(total: RingVector, parts: Sequence[Contribution]) -> bool:
    plain = total.ring.zeros()
    for part in parts:
        plain.add(part.vector)
    return plain.pack() == total.pack()
