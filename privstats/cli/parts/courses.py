"""The courses that ``course init`` writes: a row per kind, with the options that it takes and what they build.

Which kind is meant follows from the plan's schema, or from the option that only one kind has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import privstats as ps
from privstats.errors import PlanError
from privstats.tables import by_name

if TYPE_CHECKING:
    from privstats.course.document import Written

__all__ = ["WRITTEN", "Kind", "made", "whole_plan"]


_ASKED = "centred"  # the option that asks for a kind and says no more


@dataclass(frozen=True)
class Kind:
    """A kind of course as the command writes it.

    Attributes:
        name: as in ``course.kinds``.
        what: the words for it.
        options: those that it takes, by their names in Python.
        make: the course of a whole plan and the options that were given.
        of: the task of the plans that mean this kind.
    """

    name: str
    what: str
    options: tuple[str, ...]
    make: Callable[..., Written]
    of: str | None = None


WRITTEN: Mapping[str, Kind] = by_name(
    (
        Kind(
            "rounds",
            "refinement rounds",
            ("rounds", "expected_records", "retries", "calibrated", "module"),
            ps.Rounds.within,
        ),
        Kind(
            "centred",
            "a mean first",
            ("centred", "expected_records", "calibrated"),
            ps.Centred.within,
        ),
        Kind(
            "stream",
            "a stream",
            ("epochs", "mechanism", "deletions", "repeats", "allow_disclosing_leavers"),
            ps.Stream,
        ),
        Kind("parties", "two rounds of whole parties", (), ps.PartyRounds.within, "party-softmax"),
        Kind(
            "newton",
            "rounds of a logistic or Poisson regression",
            ("rounds", "retries"),
            ps.Newton.within,
            "score",
        ),
        Kind("alignment", "an alignment", ("step",), ps.Alignment.within, "gaussians"),
    ),
    lambda kind: kind.name,
    "course",
)
"""The kinds by name."""


def made(whole: ps.Plan, options: Mapping[str, Any]) -> Written:
    """The course that divides a plan's promise.

    Args:
        whole: the plan.
        options: those of the command, by their names in Python; what is None or False was not given.

    Raises:
        PlanError: options of another kind, or the plan is none of this kind.
    """
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    kind = _meant(whole, given)
    strangers = [name for name in given if name not in kind.options]
    if strangers:
        takes = f"takes {_flags(kind.options)}" if kind.options else "has no options"
        raise PlanError(f"{kind.what}: such a course {takes} beside --plan; leave {_flags(strangers)} out")
    return kind.make(whole, **{name: value for name, value in given.items() if name != _ASKED})


def _meant(whole: ps.Plan, given: Mapping[str, Any]) -> Kind:
    if "epochs" in given:
        return WRITTEN["stream"]
    of_schema = (kind for kind in WRITTEN.values() if kind.of == whole.schema.task)
    return next(of_schema, WRITTEN["centred" if _ASKED in given else "rounds"])


def _flags(names: Any) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def whole_plan(path: Path) -> ps.Plan:
    """A plan's file; of a ``ScoreSchema`` it need not publish the weights, which follow from the schema alone.

    Raises:
        PlanError: as for ``Plan.read``.
    """
    from privstats.plan.document import from_toml, read_text

    try:
        return ps.Plan.read(path)
    except PlanError:
        terms = from_toml(read_text(path))
        if terms["published"] is not None or not isinstance(terms["schema"], ps.ScoreSchema):
            raise
        return ps.Newton.whole(**terms)
