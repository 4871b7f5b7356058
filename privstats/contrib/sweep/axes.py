"""The axes of a study, their points, and the plan at each point, all checked before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.sweep.points import WITHOUT_NOISE
from privstats.dp import NoPrivacy, Privacy
from privstats.errors import DataError, PlanError
from privstats.extend.records import same
from privstats.plan import Cohort, Plan
from privstats.records.table import codes_of
from privstats.transforms import OrthogonalProjection, Transform, output_features

_PROJECTION_SEED = 0


@dataclass(frozen=True)
class Partition:
    """One measurement: how records are dealt, and which statistics are summed.

    Attributes:
        alpha: as in ``Axes``; None deals evenly.
        dimension: as in ``Axes``, or None.
    """

    clients: int
    alpha: float | None
    clip_norm: float
    dimension: int | None
    statistics: str


@dataclass(frozen=True)
class Point:
    """A partition under a promise; without noise, model and unit are ``"none"`` and epsilon is infinite."""

    deal: Partition
    model: str
    unit: str
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class Axes:
    """Values to vary; an empty axis stays as the plan has it.

    Args:
        model: ``"central"``, ``"distributed"``, ``"local"``; ``"panel"`` for a plan with a panel.
        unit: ``"record"``, ``"client"``; for clients see ``records_per_client``.
        clients: parties; survivors and colluders stay in the plan's proportions.
        alpha: Dirichlet concentrations of label skew, above 0.
        dimension: features after a public random projection before the plan's other maps.
        statistics: letters of a class schema, such as ``"NAB"``.
        epsilon: budgets; all axes are crossed.
        records_per_client: maximum records of a party for the client unit, if the plan has none; surplus ones are
            excluded at random.

    Example:
        >>> from privstats.contrib.sweep import Axes
        >>> axes = Axes(epsilon=(0.5, 1.0), clip_norm=(1.0, 2.0, 4.0))
        >>> axes.varied
        ('clip_norm', 'epsilon')
    """

    model: Sequence[str] = ()
    unit: Sequence[str] = ()
    clients: Sequence[int] = ()
    alpha: Sequence[float] = ()
    clip_norm: Sequence[float] = ()
    dimension: Sequence[int] = ()
    statistics: Sequence[str] = ()
    epsilon: Sequence[float] = ()
    records_per_client: int | None = None

    def __post_init__(self) -> None:
        for axis in fields(self):
            if axis.name == "records_per_client":
                continue
            value = getattr(self, axis.name)
            if isinstance(value, str) or not isinstance(value, Sequence):
                raise DataError(
                    f"{axis.name} must be a list of values, for example [{_EXAMPLES[axis.name]}], got "
                    f"{type(value).__name__}"
                )
            object.__setattr__(self, axis.name, tuple(dict.fromkeys(value)))
        if not all(isinstance(value, int | float) and value > 0 and math.isfinite(value) for value in self.alpha):
            raise DataError("alpha must hold numbers above 0; .05 is extreme skew, 100 nearly none")

    def deals(self, plan: Plan) -> Iterator[Partition]:
        """Yield every way to measure, in order."""
        schema = plan.schema
        yield from (
            Partition(*values)
            for values in product(
                self.clients or (plan.cohort.clients,),
                self.alpha or (None,),
                self.clip_norm or (schema.clip_norm,),
                self.dimension or (None,),
                self.statistics or (schema.statistics,),
            )
        )

    def points(self, plan: Plan, deal: Partition) -> Iterator[Point]:
        """Yield promises: no noise first, then weak to strong privacy."""
        privacy = plan.privacy
        if not isinstance(privacy, Privacy):
            raise PlanError(
                "privacy.model is 'none', so there is no epsilon to sweep: choose central, distributed or local"
            )
        yield Point(deal, "none", "none", WITHOUT_NOISE)
        grid = sorted(set(self.epsilon or (privacy.epsilon,)), reverse=True)
        for model, unit, epsilon in product(self.model or (privacy.model,), self.unit or (privacy.unit,), grid):
            yield Point(deal, model, unit, epsilon)

    @property
    def varied(self) -> tuple[str, ...]:
        """Names of axes with several values."""
        return tuple(name for name in AXES if len(getattr(self, name)) > 1)


AXES = ("model", "unit", "clients", "alpha", "clip_norm", "dimension", "statistics", "epsilon")
OF_PROMISE = ("model", "unit", "epsilon")
"""Axes that a point without noise has no value of."""
OF_PARTITION = tuple(name for name in AXES if name not in OF_PROMISE)
_EXAMPLES = {
    "model": "'central'",
    "unit": "'record'",
    "clients": "10",
    "alpha": "0.1",
    "clip_norm": "1.0",
    "dimension": "32",
    "statistics": "'NAB'",
    "epsilon": "1.0",
}


def plan_at(plan: Plan, point: Point, inputs: int, records_per_client: int | None = None) -> Plan:
    """Return the plan at one point; ``inputs`` counts the records' columns."""
    parts = {"schema": _schema(plan, point.deal, inputs), "cohort": _cohort(plan.cohort, point.deal.clients)}
    if math.isinf(point.epsilon):
        return replace(plan, privacy=NoPrivacy(), **parts)
    return replace(plan, privacy=_promise(plan, point, parts["schema"], records_per_client), **parts)


def _promise(plan: Plan, point: Point, schema: Any, records_per_client: int | None) -> Privacy:
    privacy: Any = plan.privacy
    most, clip = None, None
    if point.unit == "person":
        raise PlanError("a sweep's rows have no ids, so none of its sums are over persons: sweep unit='record'")
    if point.unit == "client":
        most, clip = privacy.max_records_per_client or records_per_client, privacy.client_clip
        if most is None:
            raise PlanError("unit 'client' needs records_per_client: the maximum number of records of a party")
    return Privacy(
        model=point.model,  # type: ignore[arg-type]  # judged where it is built
        unit=point.unit,  # type: ignore[arg-type]
        adjacency=privacy.adjacency,
        epsilon=point.epsilon,
        delta=privacy.delta,
        shares=privacy.shares if schema.statistics == plan.schema.statistics else None,
        max_records_per_client=most,
        client_clip=clip,
    )


def _schema(plan: Plan, deal: Partition, inputs: int) -> Any:
    schema: Any = plan.schema
    changes: dict[str, Any] = {"clip_norm": deal.clip_norm}
    if deal.dimension is not None:
        maps = _projected(schema.transform, inputs, deal.dimension)
        changes |= {"transform": maps, "features": output_features(maps, inputs)}
    if schema.optional:
        changes["statistics"] = deal.statistics
    elif deal.statistics != schema.statistics:
        raise PlanError(f"statistics are {schema.statistics!r} in every plan of this task; omit the axis")
    return replace(schema, **changes)


def _projected(transform: Sequence[Transform], inputs: int, features: int) -> tuple[Transform, ...]:
    maps: list[Any] = list(transform)
    for place, map_ in enumerate(maps):
        if {"inputs", "features"} <= {each.name for each in fields(map_)}:
            return (*maps[:place], replace(map_, features=features), *maps[place + 1 :])
    return (OrthogonalProjection(_PROJECTION_SEED, inputs, features), *maps)


def _cohort(cohort: Cohort, clients: int) -> Cohort:
    if clients == cohort.clients:
        return cohort
    if not isinstance(clients, int) or isinstance(clients, bool) or clients < 2:
        raise PlanError(f"clients must hold integers of at least 2, got {clients!r}")
    colluders = cohort.colluders * clients // cohort.clients
    survivors = -(-cohort.min_survivors * clients // cohort.clients)
    return Cohort(clients, max(survivors, (clients + colluders) // 2 + 1), cohort.max_records, colluders)


def open_columns(plan: Plan) -> tuple[str, ...]:
    """Return declared columns with open cut points."""
    cells = plan.schema.reading.declaration
    return () if cells is None else cells.open


def with_quantile_cuts(plan: Plan, X: Any) -> Plan:
    """Return the plan with open cut points at the records' quantiles."""
    cells = plan.schema.reading.declaration
    if cells is None or not cells.open:
        return plan
    codes = codes_of(cells, X)
    levels = np.arange(1, cells.signs + 1) / (cells.signs + 1)
    edges = {
        column.name: _quantiles(codes[:, place], levels)
        for place, column in enumerate(cells.columns)
        if column.name in cells.open
    }
    maps = (cells.with_edges(edges), *plan.schema.transform[1:])
    return replace(plan, schema=replace(plan.schema, transform=maps))  # type: ignore[type-var]


def _quantiles(codes: NDArray[np.float64], levels: NDArray[np.float64]) -> Sequence[float]:
    known = codes[np.isfinite(codes)]
    return sorted(set(map(same, np.quantile(known, levels).tolist()))) if len(known) else (0.0,)
