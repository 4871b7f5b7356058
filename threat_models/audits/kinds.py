"""The kinds of schemas as the audits know them, one row each: made-up records, scales, searches and canaries.

A kind that lacks a part is refused by its name: records of one kind planted under another would audit nothing. What is
defined here is the auditor's own and shares no formula with the library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.kinds import KINDS, GradientSchema, HazardSchema, ScoreSchema, row_of
from privstats.schema import Categories, Schema
from privstats.schema.base import INFLUENCES
from privstats.transforms import ByArm, Centre, Levels, Scale, input_features

Values: TypeAlias = NDArray[Any]
COUNT_SCALE = 4096.0
"""Grid steps of one record in a count."""


@dataclass(frozen=True)
class Outcome:
    """Labels, by name where the schema names them, or numbers.

    Attributes:
        classes: how many labels there are; None: numbers.
        targets: how many numbers a record has.
        names: of the labels.
        exposure_bound: the largest exposure, where each record has a number and then an exposure.
    """

    classes: int | None = None
    targets: int = 1
    names: tuple[str, ...] | None = None
    exposure_bound: float | None = None

    def alike(self, count: int, number: float = 0.0) -> Values:
        """The first label, or this number, for every record."""
        if self.classes is not None:
            return self._labels(np.zeros(count, np.int64))
        if self.exposure_bound is not None:
            return np.column_stack([np.full(count, number), np.full(count, self.exposure_bound)])
        return np.full((count, self.targets) if self.targets > 1 else count, number)

    def drawn(self, count: int, chance: np.random.Generator) -> Values:
        """Random labels or numbers."""
        if self.classes is not None:
            return self._labels(chance.integers(0, self.classes, count))
        if self.exposure_bound is not None:
            return np.column_stack([chance.normal(size=count), self.exposure_bound * chance.uniform(0.1, 1.0, count)])
        return chance.normal(size=(count, self.targets) if self.targets > 1 else count)

    def _labels(self, numbers: NDArray[np.int64]) -> Values:
        return numbers if self.names is None else np.array(self.names)[numbers]


def outcome_of(schema: Schema) -> Outcome:
    """Return what a record of a schema has next to its row.

    Raises:
        SchemaError: no records are made up for schemas of this kind.
    """
    result: Outcome = row_part("outcome", schema, "record to make up")(schema)
    return result


def columns_of(schema: Schema) -> int:
    """Return the number of input columns."""
    return input_features(schema.transform, schema.features - schema.appended)


def in_arms(schema: Schema, X: Values) -> Values:
    """Made-up rows whose column of arms, where the transform takes one out, says 0 or 1, and codes of subgroups one
    that is listed."""
    last = schema.transform[-1] if schema.transform else None
    if isinstance(last, ByArm):
        X[:, last.column] = X[:, last.column] > 0
    for variable in getattr(schema, "subgroups", None) or ():
        if isinstance(variable, Categories):
            place = (schema.feature_names or ()).index(variable.name)
            X[:, place] = np.where(X[:, place] > 0, *variable.values[:2])
    return X


Records: TypeAlias = Values | Mapping[str, Values]
"""Rows, or columns by name."""


def as_declared(schema: Schema, X: Values, y: Values) -> tuple[Records, Values | None]:
    """Return made-up rows and outcomes as a file states them: numbers at their ranges' ends, and declared texts.

    Of hazards, columns by name with times and events, and None.

    Args:
        X: signs, ``(n, columns)``; a text is the first or the second that is declared.
        y: outcomes; of hazards, above 0 for an event, in the middle of the first bin in which anyone is at risk.
    """
    levels = next((map_ for map_ in schema.transform if isinstance(map_, Levels)), None)
    if levels is None and not isinstance(schema, HazardSchema):
        return X, y
    texts = {each.name: each for each in (*levels.columns, *levels.outcomes)} if levels else {}
    names = schema.feature_names or ()
    ends = _ends(schema, len(names))
    table = {
        name: _text(texts[name], X[:, j]) if name in texts else np.where(X[:, j] > 0, *ends[j])
        for j, name in enumerate(names)
    }
    if not isinstance(schema, HazardSchema):
        outcomes = levels.outcomes if levels else ()
        several = y if y.ndim == 2 else y[:, None]
        stated = [_text(each, column) for each, column in zip(outcomes, several.T, strict=False)] or list(several.T)
        rows = np.column_stack([column.astype(object) for column in table.values()])
        return rows, stated[0] if y.ndim == 1 else np.stack(stated, axis=1)
    first = int(schema.entry is not None and schema.times == "discrete")  # nobody is at risk at the entry's visit
    table[schema.bins.name] = np.full(len(X), sum(schema.bins.edges[first : first + 2]) / 2)
    table[schema.event] = _text(texts[schema.event], y) if schema.event in texts else (y > 0).astype(np.int64)
    if schema.strata is not None:
        table[schema.strata.name] = np.full(len(X), schema.strata.values[0], object)
    if schema.entry is not None:
        table[schema.entry] = np.zeros(len(X))
    return table, None


def _text(column: Any, values: Values) -> Values:
    """Texts of a declared column, or the numbers of one that declares none."""
    return np.where(values > 0, *map(str, column.values[1::-1])) if isinstance(column, Categories) else values


def _ends(schema: Schema, columns: int) -> list[tuple[float, float]]:
    """The highest and lowest value of every column that the transform centres and scales."""
    found = {type(map_): map_ for map_ in schema.transform if isinstance(map_, Centre | Scale)}
    centre = getattr(found.get(Centre), "centre", (0.0,) * columns)
    per = getattr(found.get(Scale), "per", (schema.clip_norm,) * columns)
    return [(middle + half, middle - half) for middle, half in zip(centre[:columns], per[:columns], strict=True)]


def _labelled(schema: Any) -> Outcome:
    return Outcome(schema.classes, names=schema.class_names)


def _unread(_: Schema) -> Outcome:
    """Labels that are given and not read."""
    return Outcome(1)


def _scored(schema: ScoreSchema) -> Outcome:
    if schema.missing:  # a number, which is not read, or none
        return Outcome()
    if schema.exposure_bound is not None:
        return Outcome(exposure_bound=schema.exposure_bound)
    return {"logistic": Outcome(2), "poisson": Outcome()}[schema.family]


def _by_classes(schema: GradientSchema) -> Outcome:
    return Outcome() if schema.classes is None else _labelled(schema)


def _of_goals(schema: Any, one: float, feature: float) -> Mapping[str, float]:
    goal = one / schema.target_bound
    return {"G": feature * feature, "h": feature * goal, "q": goal * goal}


def _of_scores(one: float, feature: float, outcome: float = 1.0) -> Mapping[str, float]:
    per = feature / outcome
    return {"g": one * per, "H": feature * per, "J": per * per}


@dataclass(frozen=True)
class Shape:
    """Shape of a kind's records, for the search for a worst pair by definition.

    Attributes:
        letters: statistics that the search may read; under another kind a letter may mean another sum.
        cells: classes or folds; of more than one, two records may share theirs or not.
        targets: entries of a record beside its features.
        bound: their largest norm.
    """

    letters: str
    cells: int = 1
    targets: int = 0
    bound: float = 0.0


@dataclass(frozen=True)
class AuditKind:
    """Facts of one kind of schema for the audits; a kind with a missing field is refused by name.

    Functions of other modules of this room are named ``"module:function"`` and load on use.

    Attributes:
        outcome: what a record has beside its row.
        scales: from the schema, the grid steps in 1 and in a feature's unit: grid steps per real unit of each letter.
        shape: of its records, where ``sensitivity`` searches their worst pair.
        search: the audit of its sensitivity, of target, generator and ``starts``.
        declared: mu that the declared noise leaves to the worst unit, of target, generator and number of starts.
        canary: one client's moments with a unit and without it, of target, sigmas and generator.
        party: the moments of a client of so many known records, of target, number and generator.
        beside: labels or targets next to known rows, of schema, number and generator.
        single: under delta = 0, single records for the search in L1.
    """

    outcome: Callable[[Any], Outcome] | None = None
    scales: Callable[[Any, float, float], Mapping[str, float]] | None = None
    shape: Callable[[Any], Shape] | None = None
    search: str = ""
    declared: str = ""
    canary: str = ""
    party: str = ""
    beside: str = ""
    single: str = ""


AUDIT_KINDS: Mapping[str, AuditKind] = {
    "classes": AuditKind(
        outcome=_labelled,
        scales=lambda _, __, feature: {"N": COUNT_SCALE, "A": feature, **dict.fromkeys("BSD", feature * feature)},
        shape=lambda schema: Shape("NABSD", schema.classes),
        search="sensitivity:audit_sensitivity",
        declared="sensitivity:worst_mu",
        canary="canary_unit:of_records",
        party="records:of_rows",
        beside="records:labels",
        single="pure:CLASSES",
    ),
    "ridge": AuditKind(
        outcome=lambda schema: Outcome(targets=schema.targets),
        scales=_of_goals,
        shape=lambda schema: Shape("Ghq", schema.folds, schema.targets, schema.target_bound),
        search="sensitivity:audit_sensitivity",
        declared="sensitivity:worst_mu",
        canary="canary_unit:of_records",
        party="records:of_rows",
        beside="records:targets",
    ),
    "counts": AuditKind(
        scales=lambda _, __, feature: {"T": COUNT_SCALE, "x": feature, "q": feature * feature},
        search="counts:audit_counts",
        declared="searches:of_tables",
        party="records:of_tables",
        single="pure:TABLES",
    ),
    "scoring": AuditKind(
        outcome=_labelled,
        scales=lambda *_: {"T": COUNT_SCALE},
        search="counts:audit_counts",
        declared="searches:of_tables",
        party="records:of_tables",
        single="pure:TABLES",
    ),
    "sites": AuditKind(outcome=lambda _: Outcome(), search="sites:audit_sites", declared="searches:of_sites"),
    "score": AuditKind(
        outcome=_scored,
        scales=lambda schema, one, feature: _of_scores(one, feature, schema.target_bound or 1.0),
        search="gradients:audit_gradients",
        declared="searches:of_rounds",
    ),
    "hazard": AuditKind(
        outcome=lambda _: Outcome(),
        scales=lambda _, one, feature: _of_scores(one, feature),
        search="hazards:audit_hazards",
        declared="searches:of_hazards",
    ),
    "effect": AuditKind(
        outcome=lambda schema: Outcome(targets=schema.outcomes),
        scales=lambda _, one, __: {**dict.fromkeys("NO", COUNT_SCALE), **dict.fromkeys(f"Wb{INFLUENCES}", one)},
        search="effect:audit_effects",
        declared="searches:of_effects",
    ),
    "gradients": AuditKind(
        outcome=_by_classes,
        scales=lambda schema, one, _: {"g": one * one / schema.residual_norm, "k": one},
        search="gradients:audit_gradients",
        declared="searches:of_rounds",
    ),
    "calibration": AuditKind(
        outcome=_labelled,
        scales=lambda _, one, __: {"t": one},
        search="gradients:audit_gradients",
        declared="searches:of_rounds",
    ),
    "mean": AuditKind(
        outcome=_unread,
        scales=lambda _, __, feature: {"x": feature},
        shape=lambda _: Shape("x"),
        search="sensitivity:audit_sensitivity",
        declared="sensitivity:worst_mu",
    ),
    "within": AuditKind(outcome=_labelled, search="within:audit_within", declared="searches:of_within"),
    "gaussians": AuditKind(outcome=_unread, declared="searches:of_aligned"),
    "party-softmax": AuditKind(
        outcome=_labelled,
        scales=lambda _, one, __: {"P": one},
        search="gradients:audit_gradients",
        declared="searches:of_parties",
        canary="canary_unit:of_parties",
        party="records:of_rows",
        beside="records:labels",
    ),
    "party-update": AuditKind(
        outcome=_labelled,
        scales=lambda _, one, __: {"P": one},
        search="gradients:audit_gradients",
        declared="searches:of_parties",
    ),
}
"""By the schema's task."""


def row_part(field: str, schema: Schema, what: str) -> Any:
    """A field of the row of a schema's kind.

    Args:
        field: its name.
        schema: of any kind.
        what: what the field holds, for the message.

    Raises:
        SchemaError: the kind has no row, or nothing in this field of it.
    """
    parts = {KINDS[task]: part for task, row in AUDIT_KINDS.items() if (part := getattr(row, field))}
    result = row_of(parts, schema, what)
    return resolve_name(f"{__package__}.{result}") if isinstance(result, str) else result
