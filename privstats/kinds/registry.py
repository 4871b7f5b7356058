"""List every kind by its ``task``: ours, and those that installed packages announce under ``privstats.kinds``."""

from __future__ import annotations

import re
from inspect import getattr_static
from typing import TYPE_CHECKING, Any

from privstats.doors import Door
from privstats.errors import SchemaError
from privstats.tables import LazyRows

if TYPE_CHECKING:
    from privstats.kinds.base import Kind

GROUP = "privstats.kinds"

_TASK = re.compile("[a-z][a-z0-9-]{0,31}")
"""A task of another package, which claims print."""


def _is_kind(row: Any, task: str) -> bool:
    """Return whether an object is a kind of this task.

    Its class derives from ``Kind``, and from no kind of ours: code that reads ours would take its sums for theirs.
    """
    from privstats.kinds.base import Kind
    from privstats.kinds.clipped_rows import is_clipped, overridden

    # By identity: an abstract class may count others among its subclasses, and a metaclass may define ==.
    if not isinstance(row, type) or not any(each is Kind for each in row.__mro__):
        return False
    if any("task" in vars(each) and each.__module__.startswith("privstats.") for each in row.__mro__[1:]):
        return False
    own = getattr_static(row, "task", None)
    named = type(own) is str and own == task and _TASK.fullmatch(task) is not None
    if not named or getattr(row, "__abstractmethods__", ()) or overridden(row):
        return False
    if not is_clipped(row):
        _check_stated(row, Kind)
    return True


_LEFT = ("nearer", "longest", "move_of_client", "statements", "party_is_record", "scores_head", "suppressible",
    "follows", "followed", "among", "terms_of", "refuses_persons", "refuses_parts", "plain_fields", "unstated",
    "clipping")  # fmt: skip
"""What a promise or a page rests on beside ``move``, and a kind of another package leaves as it is."""


def _check_stated(row: Any, kind: type[Kind]) -> None:
    """Refuse a kind of another package that states more than one record's bound: a claim's clause covers no more."""
    if changed := [name for name in _LEFT if getattr_static(row, name) is not getattr_static(kind, name)]:
        raise SchemaError(
            f"{row.__name__} defines {', '.join(changed)}, which kinds of other packages do not; omit them"
        )
    if not row.no_persons or row.move is kind.move:
        raise SchemaError(
            f"{row.__name__} must state move, and why it bounds no person as no_persons; ClippedRows bounds persons"
        )


KINDS: Door[type[Kind]] = Door(
    GROUP,
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
