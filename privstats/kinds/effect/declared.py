"""Build an effect's schema fields from declared columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from privstats.errors import SchemaError
from privstats.intake.declared.categories import Categories
from privstats.kinds.effect.checks import checked_range
from privstats.transforms import ByArm, Centre, ConstantFeature, Levels, Numeric, Scale


def fields_of(
    columns: Mapping[str, Any], treatment: str | Mapping[str, Any], outcome: Any, clip_norm: float | None
) -> dict[str, Any]:
    """Return the fields that ``EffectSchema.of`` determines."""
    if not isinstance(columns, Mapping) or not columns:
        raise SchemaError("columns must give a public range (low, high) by name, such as {'age': (20, 90)}")
    levels = _levels_of(columns, treatment, outcome)
    (arm,) = (treatment,) if isinstance(treatment, str) else treatment
    if arm in columns:
        raise SchemaError(f"treatment {arm!r} must not be among the columns: name it in treatment alone")
    ranges = [_range_of(each, f"the range of {name!r}") for name, each in columns.items()]
    width, further = len(ranges), levels[0].further if levels else 0
    behind = (0.0,) * (1 + further)  # the arm, and texts beyond the second of a column
    shared, names = _shared_range(outcome)
    centred = Centre((*((low + high) / 2 for low, high in ranges), *behind))
    scaled = Scale((*((high - low) / 2 for low, high in ranges), *(1.0 for _ in behind)))
    return {
        "features": 2 * (width + further + 1),
        "clip_norm": math.sqrt(width + 1) if clip_norm is None else clip_norm,
        "outcome": shared,
        "outcome_names": names,
        "transform": (*levels, centred, scaled, ConstantFeature(1.0), ByArm(width)),
        "feature_names": (*columns, arm),
    }


def _is_worded(declared: Any, maximum: float = math.inf) -> bool:
    texts = isinstance(declared, tuple | list) and all(isinstance(each, str) for each in declared)
    return texts and 2 <= len(declared) <= maximum


def _levels_of(columns: Mapping[str, Any], treatment: str | Mapping[str, Any], outcome: Any) -> tuple[Levels, ...]:
    arm = {} if isinstance(treatment, str) else treatment
    two = isinstance(arm, Mapping) and all(_is_worded(each, 2) for each in arm.values())
    if not isinstance(arm, Mapping) or (arm == treatment and (len(arm) != 1 or not two)):
        raise SchemaError(
            "treatment must name the column of arms, whose values are 0 and 1, or both its texts, that of the others "
            "first: {'arm': ('placebo', 'drug')}"
        )
    if _is_worded(outcome, 2):
        raise SchemaError("outcome must name the column of these two texts: {'recovered': ('no', 'yes')}")
    if not any(map(_is_worded, (*columns.values(), *arm.values(), *_goals_of(outcome).values()))):
        return ()
    worded = tuple(Categories(name, tuple(each)) for name, each in {**columns, **arm}.items() if _is_worded(each))
    spread = tuple(place for place, each in enumerate(columns.values()) if _is_worded(each) and len(each) > 2)
    outcomes = _goals_of(outcome) if any(map(_is_worded, _goals_of(outcome).values())) else {}
    goals = (Categories(name, tuple(each)) if _is_worded(each) else Numeric(name) for name, each in outcomes.items())
    return (Levels(worded, tuple(goals), spread),)


def _goals_of(outcome: Any) -> Mapping[str, Any]:
    return outcome if isinstance(outcome, Mapping) else {}


def _shared_range(outcome: Any) -> tuple[Any, tuple[str, ...] | None]:
    if not isinstance(outcome, Mapping):
        return outcome, None
    for name, each in outcome.items():
        if _is_worded(each) and not _is_worded(each, 2):
            raise SchemaError(f"outcome {name!r} must be a range or two texts, got {len(each)} texts")
    ranges = {name: _range_of(each, f"the range of {name!r}") for name, each in outcome.items()}
    if len(set(ranges.values())) != 1:
        raise SchemaError(
            "outcomes must share one public range, because one sum fits all their models: divide each by a public "
            "number"
        )
    return next(iter(ranges.values())), tuple(ranges)


def _range_of(declared: Any, field: str) -> tuple[float, float]:
    """Return a declared range; -1 to 1 leaves the 0/1 columns of several texts unscaled."""
    if _is_worded(declared):
        return (0.0, 1.0) if len(declared) == 2 else (-1.0, 1.0)
    return checked_range(declared, field)
