"""List every kind by its ``task``: ours, and those that installed packages announce under ``privstats.kinds``."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from privstats.doors import Door
from privstats.errors import SchemaError
from privstats.tables import LazyRows

if TYPE_CHECKING:
    from privstats.kinds.base import Kind


def _is_kind(row: Any, task: str) -> bool:
    # Named by a text, as the kinds below are: what admits a kind imports the base of kinds, which reads this table.
    fits: bool = resolve_name("privstats.kinds.admission:is_kind")(row, task)
    return fits


KINDS: Door[type[Kind]] = Door(
    "privstats.kinds",
    "kind of schema",
    SchemaError,
    _is_kind,
    LazyRows(
        {
            "classes": "privstats.kinds.classes:ClassSchema",
            "ridge": "privstats.kinds.ridge:RidgeSchema",
            "counts": "privstats.kinds.counts:CountSchema",
            "scoring": "privstats.kinds.scoring:ScoringSchema",
            "sites": "privstats.kinds.sites:SitesSchema",
            "score": "privstats.kinds.score:ScoreSchema",
            "hazard": "privstats.kinds.hazard:HazardSchema",
            "effect": "privstats.kinds.effect.schema:EffectSchema",
            "gradients": "privstats.kinds.gradients:GradientSchema",
            "calibration": "privstats.kinds.calibration:CalibrationSchema",
            "mean": "privstats.kinds.mean:MeanSchema",
            "within": "privstats.kinds.within:WithinSchema",
            "gaussians": "privstats.kinds.gaussians:GaussianSchema",
            "party-softmax": "privstats.kinds.party:PartySchema",
            "party-update": "privstats.kinds.party:PartyUpdateSchema",
        }
    ),
)
"""The class of each kind by its ``task`` in plan files; a class is loaded when it is first looked up."""


def is_registered(schema: Any) -> bool:
    """Return whether a value's class is exactly the kind of its task: a bound covers a class alone, and no subclass.

    Example:
        >>> from privstats.kinds.registry import is_registered
        >>> class Twice(ps.MeanSchema):
        ...     pass
        >>> is_registered(ps.MeanSchema(2, 1.0)), is_registered(Twice(2, 1.0))
        (True, False)
    """
    task = getattr(schema, "task", None)
    return type(task) is str and KINDS.get(task) is type(schema)
