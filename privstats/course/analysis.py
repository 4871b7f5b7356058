"""Declare a course's findings before its first session; the course's digest includes the declaration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from tomllib import TOMLDecodeError
from typing import Any

from privstats.errors import PlanError
from privstats.files.text import toml_tables
from privstats.plan.document import read_text

_NAMES = ("primary", "secondary", "subgroups")
_TEXTS = ("estimand", "date", "assignment", "measured_before", "missing")
_LONGEST = 200
_MOST_ALPHA = 0.5


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

    @classmethod
    def of(cls, table: object) -> Analysis:
        """Build an analysis from a table ``[analysis]``."""
        known = [field.name for field in fields(cls)]
        if not isinstance(table, Mapping) or "primary" not in table or not set(table) <= set(known):
            raise PlanError(f"[analysis] holds primary, and beside it {', '.join(known[1:])} alone")
        return cls(**table)

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
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items() if v not in ("", ())}

    def family(self, outcome: str, subgroup: str) -> str:
        """Return a row's family: ``"primary"``, ``"secondary"`` or ``"exploratory"``.

        Args:
            subgroup: the dividing variable; empty for all records.
        """
        if subgroup:
            return "secondary" if outcome in self.primary and subgroup in self.subgroups else "exploratory"
        return next((name for name in ("primary", "secondary") if outcome in getattr(self, name)), "exploratory")

    def check(self, outcomes: tuple[str, ...], subgroups: tuple[str, ...], estimand: str) -> None:
        """Refuse outcomes, variables or an estimand that the schema lacks."""
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


def _checked_names(field: str, names: Any) -> tuple[str, ...]:
    several = tuple(names) if isinstance(names, tuple | list) else (None,)
    fine = all(isinstance(name, str) and name and len(name) <= _LONGEST and name.isprintable() for name in several)
    if not fine or len(set(several)) < len(several):
        raise PlanError(f"analysis.{field} must be a list of different names, for example ['relapse']")
    return several
