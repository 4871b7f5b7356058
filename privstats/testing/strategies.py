"""Strategies for schemas, records, partitions, plans, and clients that drop out.

Values are drawn at the edges of bounds; plans are small.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.dp import NoPrivacy, Privacy
from privstats.dp.privacy import MODELS
from privstats.errors import PlanError
from privstats.kinds import ClassSchema, RecordSchema, RidgeSchema, of_records
from privstats.plan import Cohort, Plan
from privstats.schema import Schema
from privstats.testing.extra import arrays, hypothesis
from privstats.testing.extra import strategies as st

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Records: TypeAlias = tuple[NDArray[np.float64], NDArray[Any]]

_FINEST = {"T": 17, "F": 13}
"""The most grid bits of a schema with one of these letters; 20 for the others."""
_CLIP_NORMS = st.one_of(st.sampled_from([1.0, 0.5, 3.0, 1e-6, 1e6]), st.floats(1e-3, 1e3))
Schedule = dict[str, set[int]]


def entries(bound: float, spacing: float) -> SearchStrategy[float]:
    """Draw floats awkward for a clip at ``bound`` on a grid of ``spacing``: edges, ties, subnormals, huge, -0.0."""
    edges = [0.0, -0.0, bound, -bound, bound / math.sqrt(2), math.nextafter(bound, math.inf), math.nextafter(bound, 0)]
    ties = st.integers(-9, 9).map(lambda k: (k + 0.5) * spacing)
    tiny, huge = [5e-324, -2.2e-308, 1e-300], [1.7e308, -1.7e308, 1e200]
    return st.one_of(st.sampled_from(edges), ties, st.sampled_from(tiny + huge), st.floats(-2 * bound, 2 * bound))


def records(schema: RecordSchema, *, min_records: int = 0, max_records: int = 12) -> SearchStrategy[Records]:
    """Draw ``(X, y)`` that ``measure(schema, X, y)`` must accept: float64 ``(n, features)``, labels or targets.

    For schemas without a transform.
    """

    @st.composite
    def build(draw: st.DrawFn) -> Records:
        count = draw(st.integers(min_records, max_records))
        X = draw(_rows(count, schema.features, schema.clip_norm, schema.grid_steps))
        if isinstance(schema, ClassSchema):
            return X, draw(arrays.arrays(np.int64, count, elements=st.integers(0, schema.classes - 1)))
        return X, draw(_rows(count, schema.targets, schema.target_bound, schema.grid_steps))

    return build()


def chunkings(count: int) -> SearchStrategy[list[slice]]:
    """Draw cuts of ``count`` records into consecutive batches, some empty."""

    def cut(ends: list[int]) -> list[slice]:
        edges = [0, *sorted(ends), count]
        return [slice(a, b) for a, b in pairwise(edges)]

    return st.lists(st.integers(0, count), max_size=8).map(cut)


def partitions(count: int, clients: int) -> SearchStrategy[list[NDArray[np.intp]]]:
    """Draw assignments of ``count`` records to clients: index arrays, disjoint, complete, some empty."""
    owners = arrays.arrays(np.intp, count, elements=st.integers(0, clients - 1))
    return owners.map(lambda owner: [np.flatnonzero(owner == client) for client in range(clients)])


def _rows(count: int, columns: int, bound: float, grid_steps: int) -> SearchStrategy[NDArray[np.float64]]:
    return arrays.arrays(np.float64, (count, columns), elements=entries(bound, bound / grid_steps))


def class_schemas(
    *, max_classes: int = 5, max_features: int = 6, statistics: str = "NABSD"
) -> SearchStrategy[ClassSchema]:
    """Draw class schemas with any of the statistics besides N and A; T and F are for plans without DP."""

    @st.composite
    def build(draw: st.DrawFn) -> ClassSchema:
        features = draw(st.integers(2, max_features))
        optional = sorted(set(statistics) - set("NA"))
        chosen = draw(st.sets(st.sampled_from(optional))) if optional else set()
        finest = min((_FINEST[letter] for letter in chosen & set(_FINEST)), default=20)
        return ClassSchema(
            classes=draw(st.integers(2, max_classes)),
            features=features,
            statistics="NA" + "".join(sorted(chosen)),
            clip_norm=draw(_CLIP_NORMS),
            grid_bits=draw(st.integers(_fewest_bits(features), finest)),
            nonnegative=draw(st.booleans()),
        )

    return build()


def ridge_schemas(*, max_features: int = 6, max_targets: int = 3, max_folds: int = 4) -> SearchStrategy[RidgeSchema]:
    """Draw ridge schemas with one or several targets and folds."""

    @st.composite
    def build(draw: st.DrawFn) -> RidgeSchema:
        features, targets = draw(st.integers(2, max_features)), draw(st.integers(1, max_targets))
        return RidgeSchema(
            features,
            targets,
            clip_norm=draw(_CLIP_NORMS),
            target_bound=draw(_CLIP_NORMS),
            grid_bits=draw(st.integers(_fewest_bits(max(features, targets)), 20)),
            folds=draw(st.integers(1, max_folds)),
            nonnegative=draw(st.booleans()),
        )

    return build()


def schemas() -> SearchStrategy[Schema]:
    """Draw schemas of both kinds."""
    return st.one_of(class_schemas(), ridge_schemas())


def _fewest_bits(columns: int) -> int:
    """Return the coarsest grid on which rounding cannot pass the clip norm."""
    return max(2, math.floor(math.log2(math.sqrt(columns) / 2)) + 1)


def cohorts(*, max_clients: int = 5, max_records: int = 60) -> SearchStrategy[Cohort]:
    """Draw cohorts of 3 or more clients, with or without colluders; a majority always survives."""

    @st.composite
    def build(draw: st.DrawFn) -> Cohort:
        clients = draw(st.integers(3, max_clients))
        survivors = draw(st.integers(clients // 2 + 1, clients))
        colluders = draw(st.integers(0, min(2 * survivors - clients - 1, clients - 2)))  # a threshold's maximum
        return Cohort(clients=clients, min_survivors=survivors, max_records=max_records, colluders=colluders)

    return build()


def privacies(*, panel: bool = False) -> SearchStrategy[Privacy | NoPrivacy]:
    """Draw no privacy, or any trust model at the record unit, with a budget from strict to loose.

    Args:
        panel: include the trust model that needs a plan with a panel.
    """
    models = tuple(name for name, row in MODELS.items() if panel or row.drawn_by != "member")
    return st.one_of(
        st.just(NoPrivacy()),
        st.builds(
            Privacy,
            model=st.sampled_from(models),
            unit=st.just("record"),
            adjacency=st.sampled_from(["add-remove", "replace-one"]),
            epsilon=st.sampled_from([0.1, 1.0, 8.0]),
            delta=st.sampled_from([1e-6, 1e-3]),
        ),
    )


def plans(
    *,
    schema: SearchStrategy[Schema] | None = None,
    cohort: SearchStrategy[Cohort] | None = None,
    privacy: SearchStrategy[Privacy | NoPrivacy] | None = None,
) -> SearchStrategy[Plan]:
    """Draw valid plans."""

    schemas_, cohorts_ = schemas() if schema is None else schema, cohorts() if cohort is None else cohort
    privacies_ = privacies() if privacy is None else privacy

    @st.composite
    def build(draw: st.DrawFn) -> Plan:
        try:
            return Plan(schema=draw(schemas_), cohort=draw(cohorts_), privacy=draw(privacies_))
        except PlanError:
            hypothesis.reject()
            raise

    return build()


def shards(plan: Plan, *, max_records: int = 20) -> SearchStrategy[list[Records]]:
    """Draw one ``(X, y)`` per client of the plan, some empty."""

    @st.composite
    def build(draw: st.DrawFn) -> list[Records]:
        X, y = draw(records(of_records(plan.schema), max_records=min(max_records, plan.cohort.max_records)))
        return [(X[part], y[part]) for part in draw(partitions(len(X), plan.cohort.clients))]

    return build()


def dropout_schedules(plan: Plan, *, survivable: bool = True) -> SearchStrategy[Schedule]:
    """Draw schedules ``{step: {client, ...}}`` for ``simulate``: clients that send nothing from that step on.

    Args:
        survivable: whether the plan admits the dropouts; otherwise the session must end without a sum.
    """
    clients, spare = plan.cohort.clients, plan.cohort.clients - plan.cohort.min_survivors
    least, most = (0, spare) if survivable else (spare + 1, clients)
    steps = plan.masking.steps
    if not survivable:
        steps = steps[: steps.index(plan.masking.upload_step) + 1]

    @st.composite
    def build(draw: st.DrawFn) -> Schedule:
        gone = draw(st.sets(st.integers(0, clients - 1), min_size=least, max_size=most))
        schedule: Schedule = {}
        for client in sorted(gone):
            schedule.setdefault(draw(st.sampled_from(steps)), set()).add(client)
        return schedule

    return build()
