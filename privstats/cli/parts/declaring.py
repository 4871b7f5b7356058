"""Read the declaration of a table's columns for ``plan init`` from a public file, never from private records.

From a private file only the column names are used. All else comes from ``columns.toml``, filled in by a person, or from
a fully public table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privstats.cli.parts.questions import GAPS
from privstats.errors import DataError, PlanError
from privstats.printable import first_few
from privstats.transforms import Categories, Cells, Column, ConstantFeature, Numeric, Truth

if TYPE_CHECKING:
    from privstats.cli.parts.plan_tasks import Declared
    from privstats.moments import RecordFile

_CONSTANT = 1.0
_PAIR, _NAMED = 2, 6


@dataclass(frozen=True)
class Declaration:
    """The columns of a plan; the target is separate.

    Attributes:
        left_out: columns of a public file that are not declared, with reasons.
    """

    columns: tuple[Column, ...]
    target: Column
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def cells(self) -> Cells:
        """The declared columns as a map; gaps have cells."""
        return Cells(self.columns)

    @property
    def task(self) -> str:
        """Kind of model that the target implies."""
        return "ridge" if isinstance(self.target, Numeric) else "classes"

    @property
    def answers(self) -> dict[str, Any]:
        """Answers to questions that the columns determine."""
        width = self.cells.width
        if self.task == "ridge":  # norm 1, plus a constant of length 1
            norm = math.sqrt(1 + _CONSTANT**2)
            return {"task": self.task, "features": width + 1, "clip_norm": norm, "declared": "regression"}
        return {"task": self.task, "classes": self._classes, "features": width, "clip_norm": 1.0}

    def fields(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return schema fields that follow from the columns and the answers."""
        if self.task == "ridge":
            gaps = answers["gaps"]
            if gaps not in GAPS:
                raise PlanError(f"gaps must be {' or '.join(GAPS)}, got {gaps!r}")
            return {"transform": (replace(self.cells, missing=GAPS[gaps]), ConstantFeature(_CONSTANT))}
        names = tuple(map(str, getattr(self.target, "values", ())))
        return {"transform": (self.cells,), "class_names": names or None}

    @property
    def names(self) -> list[str]:
        """The columns' names, the target's last."""
        return [each.name for each in (*self.columns, self.target)]

    @property
    def open(self) -> tuple[str, ...]:
        """Columns without cut points, which a course must estimate first."""
        return self.cells.open

    @property
    def named(self) -> str:
        """The first open columns, and how many follow."""
        return first_few(self.open, _NAMED)

    @property
    def then(self) -> str:
        """The course after cut points: a mean first for more than two classes, else rounds."""
        return "centred" if self.task == "classes" and self._classes > _PAIR else "rounds"

    @property
    def _classes(self) -> int:
        if isinstance(self.target, Truth):
            return 2
        if isinstance(self.target, Categories) and self.target.values:
            return len(self.target.values)
        raise PlanError(
            f"the target {self.target.name!r} must be declared as truth, as categories with its values, or as numeric"
        )


def declaration(public: Path, target: str | None, drop: Sequence[str]) -> Declaration:
    """Read a file of declared columns."""
    from privstats.cli.parts.declared_columns import read_columns
    from privstats.intake.column_names import place_of

    columns = read_columns(public)
    names = [each.name for each in columns]
    predicted = None if target is None else place_of(target, names)
    if target is not None and predicted is None:
        raise PlanError(
            f"the target {target!r} is not among the columns of {public}: add it, or name one of {', '.join(names)}"
        )
    if predicted is None:
        raise PlanError(f"name the column of {public} to predict with --target{_without_target()}: {', '.join(names)}")
    gone = {place_of(name, names) for name in drop}
    if None in gone or predicted in gone:
        raise PlanError(f"--drop must name columns of {public} other than the target: {', '.join(names)}")
    remaining = tuple(each for place, each in enumerate(columns) if place != predicted and place not in gone)
    return Declaration(remaining, columns[predicted])


def _without_target() -> str:
    from privstats.cli.parts.plan_tasks import TASKS

    return "".join(f", or pass --task {name} for {task.makes}" for name, task in TASKS.rows().items() if task.declared)


def of_public_file(file: RecordFile, drop: Sequence[str], trusted: Sequence[str] = ()) -> Declaration:
    """Declare the columns of a public table from all of its rows.

    Args:
        trusted: columns that name no person or record, although their values look like ids.
    """
    from privstats.intake.column_names import place_of, places_in
    from privstats.workflows.rehearsal.assumed import kinds_of
    from privstats.workflows.rehearsal.parties import read_file

    names = names_of(file, drop)
    found = read_file(file, names)
    predicted = next((place_of(target, names) for target in file.targets), None)
    if predicted is None:
        raise DataError(f"name the column of {file.path} to predict with --target: {', '.join(names)}")
    places = places_in(trusted, names)
    if None in places:
        raise DataError(
            f"{file.path} has no column {trusted[places.index(None)]!r} that --read names; correct the name"
        )
    wanted = {names[place] for place in (predicted, *places) if place is not None}
    table = {name: found.readings(name) for name in names}
    kinds = kinds_of(table, found.raw, affixed=found.affixed(names), trusted=wanted)
    target = kinds.pop(names[predicted])
    if isinstance(target, str):
        raise DataError(f"the target {names[predicted]!r} cannot be predicted: {target}; name another one")
    columns = tuple(each for each in kinds.values() if not isinstance(each, str))
    return Declaration(columns, target, {name: why for name, why in kinds.items() if isinstance(why, str)})


def require_names_alone(path: Path, given: Mapping[str, Any], *, force: bool) -> None:
    """Refuse answers given with --from alone, which would be dropped, and refuse to overwrite a declaration."""
    if given.get("task") in ("effect", "hazard", "score") or "ranges" in given:
        raise PlanError("--from is for classes and ridge: omit it, and name columns in --ranges, or --head")
    if path.exists() and not force:
        raise PlanError(f"{path} exists: once it is filled in, pass --public {path}; --force writes it anew")
    if given:
        raise PlanError(
            f"--from alone writes {path} and would drop the other answers: run it without them, fill {path} in, "
            f"and pass them with --public {path}"
        )


def names_of(file: RecordFile, drop: Sequence[str] = ()) -> list[str]:
    """Return a table's column names; the first records are compared with them, and used for nothing else.

    Raises:
        DataError: the first line may be a record, which is not shown; or the file does not fit.
    """
    from privstats.intake.column_names import place_of

    names = file.columns
    if doubt := file.doubt:
        raise DataError(doubt)
    gone = {name: place_of(name, names) for name in drop}
    if unknown := [name for name, place in gone.items() if place is None]:
        raise DataError(f"{file.path} has no column {', '.join(unknown)} that --drop names; correct the name")
    return [name for place, name in enumerate(names) if place not in gone.values()]


def check_header(columns: Declaration | Declared, file: RecordFile) -> None:
    """Refuse a table that lacks a declared column."""
    from privstats.intake.column_names import places_in

    places = places_in(columns.names, names_of(file))
    if lacking := [name for name, place in zip(columns.names, places, strict=True) if place is None]:
        raise DataError(f"{file.path} lacks {', '.join(map(repr, lacking))}, which are declared: rename its columns")
