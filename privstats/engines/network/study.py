"""The files that the coordinator distributes: the app for the carrier, and folders for server, parties and helpers.

It writes files only; none of them is a key, because each owner makes its own. The command line calls it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path

from privstats.course import Course, Single, document
from privstats.course.kinds import course_kind
from privstats.engines.network.folder_documents import COURSE, check_course
from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.files.atomic import read_whole, write_new
from privstats.moments.code_rows import cells_of
from privstats.plan import Plan
from privstats.schema.public_values import beside
from privstats.secagg import Roster

__all__ = ["write_study"]

_OWNER_ONLY = 0o700


def write_study(
    plan: str | os.PathLike[str], roster: str | os.PathLike[str], study: Path, template: Traversable
) -> tuple[Path, ...]:
    """Write a study's folders: ``app``, ``host``, ``party``, and ``helper`` where the plan has helpers.

    Args:
        plan: the plan's file, or a course's.
        roster: the roster's file.
        study: a folder that does not exist.
        template: the carrier's, with a folder ``app`` and a folder ``party``.

    Returns:
        The folders.

    Raises:
        PlanError, LocalProtocolError: one of the files is invalid, or they do not fit one another.
        SchemaError: cut points of a plan that would run alone are open.
        DataError: an upload is larger than this engine carries.
        PrivstatsError: the folder exists, or cannot be written.
    """
    course, given = _given(plan)
    check_course(course, Roster.load(roster))
    if study.exists():
        raise PrivstatsError(f"{study} exists; name another folder, or move that one away first")
    given["roster.toml"] = read_whole(roster, LocalProtocolError, "privstats roster make")
    homes = ("host", "party", *(("helper",) if course.first.panel else ()))
    contents = {f"app/{name}": data for name, data in _tree(template.joinpath("app"))}
    contents |= {f"{home}/{name}": data for home in homes for name, data in given.items()}
    if course_kind(course).part == "records":  # a stream's parties bring changes, epoch by epoch
        contents |= {f"party/{name}": data for name, data in _tree(template.joinpath("party"))}
    for name, data in contents.items():
        _folder(study, (study / name).parent)
        write_new(study / name, data)
    return tuple(study / name for name in ("app", *homes))


def _given(path: str | os.PathLike[str]) -> tuple[Course, dict[str, bytes]]:
    """The plan or course in a file, and the files of it that all folders get."""
    if document.is_course(path):
        course = document.read(path)
        return course, dict(document.texts(COURSE, course))
    plan = Plan.read(path)
    if plan.schema.open_columns and (cells := cells_of(plan.schema)) is not None:
        cells.require_closed()
    given = {"plan.toml": read_whole(path, LocalProtocolError, "privstats plan init")}
    if beside(path).exists():  # values that a schema reads beside the records
        given["plan.values"] = read_whole(beside(path), LocalProtocolError, "Published.save")
    return Single(plan), given


def _folder(study: Path, folder: Path) -> None:
    try:
        study.mkdir(exist_ok=True)
        for each in (*reversed(folder.relative_to(study).parents), folder.relative_to(study)):
            (study / each).mkdir(mode=_OWNER_ONLY, exist_ok=True)
    except OSError as error:
        raise PrivstatsError(f"cannot make {folder}: {error.strerror}; name another folder") from None


def _tree(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    """Every file below ``folder``, by its path there."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_file():
            yield f"{above}{entry.name}", entry.read_bytes()
        elif entry.name != "__pycache__":  # which installers make beside every module
            yield from _tree(entry, f"{above}{entry.name}/")
