"""Declare a course's findings before its first session; the course's digest includes the declaration."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from tomllib import TOMLDecodeError
from typing import Any, Literal, TypeAlias, get_args

from privstats.course.looks import Looks
from privstats.errors import PlanError
from privstats.files.text import toml_tables
from privstats.plan.document import read_text

_NAMES = ("primary", "secondary", "subgroups")
_TEXTS = ("estimand", "date", "assignment", "measured_before", "missing")
_LONGEST = 200
_MOST_ALPHA = 0.5

Measure: TypeAlias = Literal["difference", "ratio"]


@dataclass(frozen=True)
class Margin:
    """A margin that an outcome's effect in all records is compared with.

    One end states non-inferiority, or superiority by a margin. Both ends state equivalence.

    Args:
        outcome: declared as primary or secondary.
        low: the effect is to be above it.
        high: the effect is to be below it.
        measure: ``"difference"`` in outcome units, or ``"ratio"``.

    Example:
        >>> ps.course.Margin("relapse", high=0.05).claim, ps.course.Margin("relapse", -0.05, 0.05).claim
        ('non-inferiority', 'equivalence')
    """

    outcome: str
    low: float | None = None
    high: float | None = None
    measure: Measure = "difference"

    def __post_init__(self) -> None:
        if not isinstance(self.outcome, str) or not self.outcome:
            raise PlanError("a margin's outcome must be the name of a declared outcome, for example 'relapse'")
        if self.measure not in get_args(Measure):
            raise PlanError(f"a margin's measure must be 'difference' or 'ratio', got {self.measure!r}")
        if not self.ends:
            raise PlanError(f"the margin of {self.outcome!r} has no end: state low, high, or both for equivalence")
        least = 0.0 if self.measure == "ratio" else -math.inf
        for end in self.ends:
            if type(end) not in (int, float) or not least < end < math.inf:
                kind = "a ratio above 0" if self.measure == "ratio" else "a finite number"
                raise PlanError(f"the margin of {self.outcome!r} must be {kind}, got {end!r}")
        if self.low is not None and self.high is not None and not self.low < self.null < self.high:
            raise PlanError(
                f"equivalence of {self.outcome!r} needs low below {self.null:g} and high above it, got {self.low:g} "
                f"and {self.high:g}"
            )

    @property
    def ends(self) -> tuple[float, ...]:
        """The stated ends."""
        return tuple(end for end in (self.low, self.high) if end is not None)

    @property
    def null(self) -> float:
        """The measure's value where the arms are alike."""
        return 1.0 if self.measure == "ratio" else 0.0

    @property
    def claim(self) -> str:
        """The claim that holds if the effect is inside the margin."""
        if len(self.ends) > 1:
            return "equivalence"
        inside = self.null > self.ends[0] if self.low is not None else self.null < self.ends[0]
        return "non-inferiority" if inside else "superiority by a margin"

    @property
    def region(self) -> str:
        """The claimed effects in words."""
        if len(self.ends) > 1:
            return f"{self.measure} between {self.low:g} and {self.high:g}"
        return f"{self.measure} {'above' if self.low is not None else 'below'} {self.ends[0]:g}"


@dataclass(frozen=True)
class Analysis:
    """The declared findings of a course; every other row is exploratory.

    Args:
        primary: outcomes with primary findings in all records.
        secondary: outcomes with secondary findings.
        subgroups: variables; primary outcomes have secondary findings in each of their subgroups.
        alpha: each family's level, up to .5.
        estimand: the schema's, if declared.
        date: as text; the digest is evidence of the declaration, a date in a file is none.
        assignment, measured_before, missing: sentences on treatment assignment, when columns were measured, and missing
            outcomes.
        margins: margins of declared outcomes, each tested at the one-sided level ``alpha / 2``.
        looks: interim looks at the one primary outcome, over which its alpha is spent; None: one look at the end.

    Example:
        >>> analysis = ps.course.Analysis(primary=("relapse",), secondary=("death",), subgroups=("age",))
        >>> analysis.family("relapse", ""), analysis.family("relapse", "age"), analysis.family("death", "age")
        ('primary', 'secondary', 'exploratory')
    """

    primary: tuple[str, ...]
    secondary: tuple[str, ...] = ()
    subgroups: tuple[str, ...] = ()
    alpha: float = 0.05
    estimand: str = ""
    date: str = ""
    assignment: str = ""
    measured_before: str = ""
    missing: str = ""
    margins: tuple[Margin, ...] = ()
    looks: Looks | None = None

    def __post_init__(self) -> None:
        for field in _NAMES:
            object.__setattr__(self, field, _checked_names(field, getattr(self, field)))
        if not self.primary:
            raise PlanError("analysis.primary must name an outcome: what is not primary can be secondary")
        if both := set(self.primary) & set(self.secondary):
            raise PlanError(f"analysis names {min(both)!r} as primary and as secondary; it can be one of the two")
        if type(self.alpha) not in (int, float) or not 0 < self.alpha <= _MOST_ALPHA:
            raise PlanError(f"analysis.alpha must be a number above 0 and up to {_MOST_ALPHA}, got {self.alpha!r}")
        for field in _TEXTS:
            text = getattr(self, field)
            if not isinstance(text, str) or len(text) > _LONGEST or not text.isprintable():
                raise PlanError(
                    f"analysis.{field} must be a text of one line, up to {_LONGEST} characters; of a date write the "
                    "text '2026-11-23'"
                )
        object.__setattr__(self, "margins", self._checked_margins())
        self._check_looks()

    def _check_looks(self) -> None:
        if self.looks is None:
            return
        if not isinstance(self.looks, Looks):
            raise PlanError("analysis.looks must be Looks, for example Looks(3, 'obrien-fleming')")
        if len(self.primary) > 1 or self.margins:
            other = "margins, which are tested once: omit them" if self.margins else "one primary outcome"
            raise PlanError(f"analysis.looks spends the alpha of one test over the looks: it needs {other}")

    def _checked_margins(self) -> tuple[Margin, ...]:
        margins = tuple(self.margins) if isinstance(self.margins, tuple | list) else (None,)
        if not all(isinstance(each, Margin) for each in margins) or len(set(margins)) < len(margins):
            raise PlanError("analysis.margins must be different margins, for example [Margin('relapse', high=0.05)]")
        declared = {*self.primary, *self.secondary}
        for each in margins:
            if each.outcome not in declared:
                raise PlanError(
                    f"analysis.margins names {each.outcome!r}, which is neither primary nor secondary: declare it"
                )
        return margins

    @classmethod
    def of(cls, table: object) -> Analysis:
        """Build an analysis from a table ``[analysis]``."""
        known = [field.name for field in fields(cls)]
        if not isinstance(table, Mapping) or "primary" not in table or not set(table) <= set(known):
            raise PlanError(f"[analysis] holds primary, and beside it {', '.join(known[1:])} alone")
        margins = table.get("margins", [])
        if not isinstance(margins, list):
            raise PlanError("analysis.margins must be a list of tables: write [[analysis.margins]]")
        looks = {"looks": Looks.of(table["looks"])} if "looks" in table else {}
        return cls(**{**table, "margins": tuple(_margin(each) for each in margins), **looks})

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Analysis:
        """Read an analysis from a file of one table ``[analysis]``."""
        try:
            document = toml_tables(read_text(path))
        except TOMLDecodeError as error:
            raise PlanError(f"{path} is not valid TOML: {error}") from None
        if set(document) != {"analysis"}:
            raise PlanError(f"{path} must hold a table [analysis] and nothing else")
        return cls.of(document["analysis"])

    @property
    def table(self) -> dict[str, Any]:
        """The nonempty fields, for a file."""
        empty = ("", (), None)
        stated = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items() if v not in empty}
        if self.looks is not None:
            stated["looks"] = self.looks.table
        if self.margins:
            stated["margins"] = [{name: v for name, v in each.items() if v is not None} for each in stated["margins"]]
        return stated

    def family(self, outcome: str, subgroup: str) -> str:
        """Return a row's family: ``"primary"``, ``"secondary"`` or ``"exploratory"``.

        Args:
            subgroup: the dividing variable; empty for all records.
        """
        if subgroup:
            return "secondary" if outcome in self.primary and subgroup in self.subgroups else "exploratory"
        return next((name for name in ("primary", "secondary") if outcome in getattr(self, name)), "exploratory")

    def check(self, outcomes: tuple[str, ...], subgroups: tuple[str, ...], estimand: str, measure: str) -> None:
        """Refuse outcomes, variables, an estimand or a measure that the schema lacks."""
        known = {"primary": outcomes, "secondary": outcomes, "subgroups": subgroups}
        for field, names in known.items():
            strange = [name for name in getattr(self, field) if name not in names]
            if strange:
                raise PlanError(
                    f"analysis.{field} names {strange[0]!r}, of which the plan has no sum: it has "
                    f"{', '.join(names) or 'none by name'}; name it in the schema"
                )
        if self.estimand not in ("", estimand):
            raise PlanError(f"analysis.estimand is {self.estimand!r} and the plan's is {estimand!r}; make them one")
        for margin in self.margins:
            if measure not in (margin.measure, "both"):
                raise PlanError(
                    f"the margin of {margin.outcome!r} is of a {margin.measure}, and the plan estimates the {measure} "
                    "alone: set the schema's measure, or the margin's"
                )


def _margin(table: object) -> Margin:
    known = [field.name for field in fields(Margin)]
    if not isinstance(table, Mapping) or "outcome" not in table or not set(table) <= set(known):
        raise PlanError(f"[[analysis.margins]] holds outcome, and beside it {', '.join(known[1:])} alone")
    return Margin(**table)


def _checked_names(field: str, names: Any) -> tuple[str, ...]:
    several = tuple(names) if isinstance(names, tuple | list) else (None,)
    fine = all(isinstance(name, str) and name and len(name) <= _LONGEST and name.isprintable() for name in several)
    if not fine or len(set(several)) < len(several):
        raise PlanError(f"analysis.{field} must be a list of different names, for example ['relapse']")
    return several
