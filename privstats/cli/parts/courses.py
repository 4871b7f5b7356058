"""The course that ``course init`` writes: of the kind that the plan and the options mean (``course.kinds``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import privstats as ps
from privstats.course.kinds import kind_for
from privstats.errors import PlanError

if TYPE_CHECKING:
    from privstats.course.document import Written

__all__ = ["made", "whole_plan"]


def made(whole: ps.Plan, options: Mapping[str, Any]) -> Written:
    """The course that divides a plan's promise.

    Args:
        whole: the plan.
        options: those of the command, by their names in Python; what is None or False was not given.

    Raises:
        PlanError: options of another kind, one that is needed is missing, or the plan is none of this kind.
    """
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    kind = kind_for(whole.schema, given)
    flags = [kind.asked] if kind.asked and kind.asked not in kind.options else []
    takes = [*flags, *kind.options]
    strangers = [name for name in given if name not in takes]
    if strangers and not kind.takes_others:
        said = f"takes {_flags(takes)}" if takes else "has no options"
        raise PlanError(f"{kind.what}: such a course {said} beside --plan; leave {_flags(strangers)} out")
    if lacking := [name for name in kind.needed if name not in given]:
        raise PlanError(f"{kind.what}: such a course needs {_flags(lacking)}, which only its owners can state")
    course: Written = kind.within(whole, **{name: value for name, value in given.items() if name not in flags})
    return course


def _flags(names: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def whole_plan(path: Path) -> ps.Plan:
    """A plan's file; it need not publish values that follow from its schema alone, as a regression's weights do.

    Raises:
        PlanError: as for ``Plan.read``.
    """
    from privstats.plan.document import from_toml, read_text

    try:
        return ps.Plan.read(path)
    except PlanError:
        terms = from_toml(read_text(path))
        whole = kind_for(terms["schema"], ()).whole
        if terms["published"] is not None or whole is ps.Plan:
            raise
        return whole(**terms)
