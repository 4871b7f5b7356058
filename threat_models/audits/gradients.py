"""A search over records and everything that a lying server may publish, against the sensitivity of a round.

A random climb from the corners moves records, maps and weights, and keeps a move where the weighted distance grows. It
measures by the library's own map, because what is searched is that map; no formula is shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.dp import joint_mu
from privstats.dp.privacy import Adjacency
from privstats.encoding import flatten
from privstats.errors import PlanError
from privstats.kinds import CalibrationSchema, GradientSchema, PartySchema, ScoreSchema
from privstats.progress import track
from privstats.randomness import Generator
from privstats.schema.public_values import VALUE_BITS, Published, Values
from threat_models.audits.climb import Search, most_apart
from threat_models.audits.sensitivity import Finding, report_of
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report
from threat_models.made_up import sums_of

_ADJACENCIES: tuple[Adjacency, ...] = ("add-remove", "replace-one")
_MOST = (1 << (VALUE_BITS - 1)) - 1

Round: TypeAlias = GradientSchema | CalibrationSchema | PartySchema | ScoreSchema


@dataclass(frozen=True, eq=False)
class Attempt:
    """The published values and the records.

    Attributes:
        values: published integers by name, in their exponents.
        X: one record under add-remove, two under replace-one, behind no transform.
        y: their labels or targets.
    """

    values: Mapping[str, Values]
    X: NDArray[np.float64]
    y: NDArray[np.float64]


def audit_gradients(target: Target, rng: Generator, *, moves: int = 200, starts: int = 6) -> Report:
    """Search the worst records and published values, under both adjacencies, against the claimed mu of a round.

    Of whole parties, each of which is one record of its schema, it searches those that hold one row.

    Raises:
        PlanError: not a plan of gradients or of parties.
    """
    schema = target.schema
    if not isinstance(schema, Round):
        raise PlanError("this search is for rounds of a course: give a round's plan, or use `audit sensitivity`")
    schema = behind_the_transform(schema)
    questions = {**{s: {s: 1.0} for s in schema.statistics}, "joint": dict(target.sigma)}
    results = [
        Finding(
            name, adjacency, joint_mu(schema, noise, adjacency), _best(schema, noise, adjacency, rng, moves, starts)
        )
        for (name, noise), adjacency in track("searching", [*product(questions.items(), _ADJACENCIES)])
    ]
    text = f", with every published {' and '.join(schema.needs)}," if schema.needs else ""
    notes = (f"{starts} starts of {moves} moves over records{text} by the library's own map",)
    return report_of("gradients", results, notes)


def behind_the_transform(schema: Round) -> Round:
    """The schema of rows as they come out of the transform, which is where records are searched."""
    match schema:
        case ScoreSchema():
            return replace(schema, transform=(), feature_names=None, rate=None, outcomes=None)
        case GradientSchema(classes=None):
            return replace(schema, transform=(), feature_names=None)
    return schema


def _bound_of(schema: Round) -> float:
    """Return the largest exposure; 0 where records have none."""
    return getattr(schema, "exposure_bound", None) or 0.0


def _labels(schema: Round) -> int | None:
    """Number of classes; None where targets are numbers."""
    match schema:
        case ScoreSchema():
            return 2 if schema.family == "logistic" else None
        case GradientSchema() | CalibrationSchema() | PartySchema():
            return schema.classes


def _best(
    schema: Round, sigmas: Mapping[str, float], adjacency: Adjacency, rng: Generator, moves: int, starts: int
) -> float:
    return max(worst_attempt(schema, sigmas, adjacency, rng, moves)[0] for _ in range(starts))


def _start(schema: Round, adjacency: Adjacency, chance: np.random.Generator) -> Attempt:
    """Records on the sphere, opposed where there are two; values that are small, full or zero."""
    records = 1 if adjacency == "add-remove" else 2
    x = chance.normal(size=(1, schema.features))
    X = np.vstack([x, -x][:records]) * (schema.clip_norm * 2 / np.linalg.norm(x))
    most = getattr(schema, "target_bound", None) or 1.0
    y = np.arange(records) if _labels(schema) else np.array([1.0, -1.0])[:records] * 2 * most
    if schema.party_is_record:  # two parties of one record each, opposed where the label is the same
        y = np.zeros(records)
    if _bound_of(schema):
        y = np.column_stack([y, np.full(records, _bound_of(schema))])
    return Attempt({name: _drawn(name, shape, chance) for name, shape in schema.needs.items()}, X, y.astype(np.float64))


def _drawn(name: str, shape: tuple[int, ...], chance: np.random.Generator) -> Values:
    scale = chance.choice([0.0, 1e-4, 1.0]) if name != "c" else 1e-3
    integers = np.clip(np.rint(chance.normal(size=shape) * scale * _MOST / 4), -_MOST, _MOST).astype(np.int64)
    integers = np.maximum(np.abs(integers), 1) if name == "c" else integers
    if name == "M":
        integers = np.asarray(integers + (np.eye(shape[0]) * _MOST / 2).astype(np.int64) * int(chance.integers(2)))
    return Values(np.asarray(np.clip(integers, -_MOST, _MOST), np.int64), int(chance.integers(-8, 30)))


def _moved(schema: Round, here: Attempt, chance: np.random.Generator) -> Attempt:
    """One of records, targets or values, moved a little or a lot, or drawn anew."""
    which = int(chance.integers(2 + len(here.values)))
    size = 10.0 ** chance.uniform(-3, 1)
    if which == 0:
        return replace(here, X=here.X + size * schema.clip_norm * chance.normal(size=here.X.shape))
    if which == 1:
        if labels := _labels(schema):
            return replace(here, y=chance.integers(0, labels, len(here.y)).astype(np.float64))
        return replace(here, y=here.y + size * chance.normal(size=here.y.shape))
    name = sorted(here.values)[which - 2]
    old = here.values[name]
    if chance.random() < 0.2:
        return replace(here, values={**here.values, name: _drawn(name, schema.needs[name], chance)})
    change = np.rint(
        size * chance.normal(size=old.integers.shape) * max(1.0, float(np.abs(old.integers).max(initial=0)))
    )
    low = 1 if name == "c" else -_MOST
    integers = np.asarray(np.clip(old.integers + change, low, _MOST), np.int64)
    return replace(here, values={**here.values, name: Values(integers, old.exponent)})


def _distance(schema: Round, sigmas: Mapping[str, float], attempt: Attempt) -> float:
    """sqrt of the sum over statistics of (what the record, or the exchange of two, moves)^2 / sigma^2."""
    values = Published.of(attempt.values) if attempt.values else None
    labels = attempt.y.astype(np.int64) if _labels(schema) else attempt.y
    if isinstance(schema, ScoreSchema) and schema.missing:
        labels = np.where(labels == 1, 0.0, np.nan)
    if bound := _bound_of(schema):  # every exposure that the schema admits
        labels = np.column_stack([labels[:, 0], np.clip(np.abs(labels[:, 1]), bound * 1e-6, bound)])
    moved = [
        flatten(sums_of(schema, attempt.X[i : i + 1], labels[i : i + 1], published=values))
        for i in range(len(attempt.X))
    ]
    return most_apart(schema, sigmas, moved)


worst_attempt = Search[Round, Attempt](_start, _moved, _distance).worst
"""One climb of this search; see :meth:`Search.worst`."""
