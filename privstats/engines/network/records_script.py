"""A party's ``records.py``, written for it where its records are one file, and checked by reading that file once."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from privstats.course import Course
from privstats.course.kinds import admits_of, schema_read
from privstats.engines.network.folder import Folder
from privstats.engines.network.measuring import (
    SCRIPT,
    admit_persons,
    bind_split,
    forget_moments,
    own_seed,
    require_hidden,
    require_unseen,
    sums_of_persons,
)
from privstats.errors import DataError, PlanError
from privstats.files.atomic import atomic_write, read_bounded
from privstats.intake.csv_dialect import Dialect
from privstats.moments import Moments, RecordFile, exact_moments, remarks_on
from privstats.plan import Plan
from privstats.records.from_file import records_in
from privstats.records.outside_ranges import outside_remarks

_BEFORE, _BEHIND = "from privstats.moments import RecordFile\n\n\ndef load():\n    return RecordFile(", ")\n"
_WRITTEN = re.compile(rf"{re.escape(_BEFORE)}[^\n]*{re.escape(_BEHIND)}")


@dataclass(frozen=True)
class Named:
    """Outcome of naming a file.

    Attributes:
        held_out: records that the split excludes from every sum.
        remarks: clip notes for the data holder, with exact shares.
    """

    script: Path
    summed: int
    held_out: int
    remarks: tuple[str, ...] = ()


def name_file(folder: Folder, file: RecordFile, untouched: bytes, *, seeded: bool = True) -> Named:
    """Write the ``records.py`` of a party that provides a file.

    Args:
        file: named from the current folder; the script names it from the party's.
        untouched: an unedited ``records.py``, which may be replaced.
        seeded: whether the party chose the file's seed; otherwise it is :func:`own_seed`.

    Raises:
        PlanError: the parties of the course send changes, as those of a stream do.
        DataError: the folder is no client's, the records do not fit the plan, their split breaks the guarantee or lets
            a head be scored on its own records, or ``records.py`` was edited; nothing is written.
    """
    kind = folder.kind
    if kind.changing is not None:
        raise PlanError(f"{folder.home} is of {kind.what}: {kind.changing.bring}")
    if folder.identity.public not in folder.roster.publics:
        raise DataError(f"{folder.home} brings no records: its identity.pem is a helper's, or not on roster.toml")
    if not seeded:
        file = replace(file, seed=own_seed(folder, file))
    script = folder.home / SCRIPT
    if script.exists() and not _replaceable(script, untouched):
        raise DataError(f"{script} was edited; name the file in its load(), or move it away first")
    if file.split is not None:
        require_hidden(folder.course)
    plan = folder.course.first
    require_unseen(folder, plan, file)
    _require_admitted(folder.course, file)
    moments = _summed(plan, file)
    remarks = remarks_on(moments)  # apart from refusals, the only use of these sums
    believed = bind_split(folder, file)
    forget_moments(folder)  # they belong to an earlier file of this name
    atomic_write(script, f"{_BEFORE}{_arguments(file, folder.home)}{_BEHIND}".encode())
    counted = None if plan.schema.predicts == "parties" else moments.records  # without what cannot be read
    held_out = 0 if file.split is None else _rows(replace(file, split=None, kept_out=False), plan) - _rows(file, plan)
    beyond = outside_remarks(file, folder.course.priced[-1].schema.reading)
    remarks = (*([believed] if believed else []), *beyond, *remarks)
    return Named(script, _rows(file, plan) if counted is None else counted, held_out, remarks)


def _require_admitted(course: Course, file: RecordFile) -> None:
    """Counts read no labels, but a later round does."""
    plan = course.first
    if plan.person_clip is not None:
        admit_persons(course, file)
    elif admits := admits_of(course):
        admits(*records_in(file, schema_read(course).reading, plan.unreadable), plan.unreadable)


def _summed(plan: Plan, file: RecordFile) -> Moments:
    if plan.person_clip is not None:
        return sums_of_persons(plan, file)
    if file.persons is not None and file.split is None:
        raise DataError(
            "the plan promises no persons, so no column of ids is read but for a split that keeps their rows together: "
            "leave --persons out, or add --split"
        )
    options: Any = {"published": plan.published, "unreadable": plan.unreadable}
    return exact_moments(plan.schema, *records_in(file, plan.schema.reading, plan.unreadable), **options)


def _rows(file: RecordFile, plan: Plan) -> int:
    if named := plan.schema.reading.columns:
        return len(file.table(named).values(named[0]))
    return sum(len(X) for X, _ in file.batches(plan.schema.reading.source, unreadable=plan.unreadable))


def _replaceable(script: Path, untouched: bytes) -> bool:
    text = read_bounded(script, DataError, "privstats flower new")
    return text == untouched or _WRITTEN.fullmatch(text.decode("utf-8", "replace")) is not None


def _arguments(file: RecordFile, home: Path) -> str:
    path = Path(file.path).absolute()
    near = path.relative_to(home) if path.is_relative_to(home) else path
    arguments: dict[str, object] = {"target": file.target, "split": file.split}
    arguments["seed"] = file.seed if file.split is not None else None
    arguments["kept_out"], arguments["persons"] = file.kept_out or None, file.persons
    arguments |= {name: value for name, value in asdict(file.dialect).items() if value != getattr(Dialect, name)}
    named = [f"{name}={value!r}" for name, value in arguments.items() if value is not None]
    return ", ".join([repr(os.fspath(near)), *named])
