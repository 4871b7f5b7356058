"""Which columns of a party's file are predicted: as the plan names them, or as ``--target`` does."""

from __future__ import annotations

from typing import Any

from privstats.errors import PlanError

__all__ = ["targets_of"]


def targets_of(course: Any, said: str | None) -> str | tuple[str, ...] | None:
    """The target of a file of a course: the outcomes that its plan names, in that order, or what is said.

    Args:
        course: a course, or a plan alone.
        said: ``--target``.

    Raises:
        PlanError: one column is said, and the plan names several.
    """
    plans = getattr(course, "priced", (course,))
    named: tuple[str, ...] = getattr(plans[-1].schema, "outcome_names", None) or ()
    if not named or (said is not None and len(named) == 1):
        return said
    if said is not None:
        raise PlanError(f"leave --target out: the plan names its outcomes itself, {', '.join(named)}")
    return named[0] if len(named) == 1 else named
