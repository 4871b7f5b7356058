"""The file form of a course: a short TOML beside the file of its first plan, which it names and holds by digest.

Reading refuses unknown keys and another plan than the one that was reviewed. No releases and no values: those travel
beside each round's plan.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

import tomli_w

from privstats.course.alignment import Alignment
from privstats.course.newton import Newton
from privstats.course.rounds import Rounds
from privstats.course.stream import Stream
from privstats.errors import PlanError
from privstats.files import write_whole
from privstats.plan import Plan
from privstats.plan.document import read_text

__all__ = ["KINDS", "VERSION", "is_course", "read", "texts", "write"]

VERSION = 1
Written: TypeAlias = Rounds | Alignment | Stream | Newton
KINDS: Mapping[str, type[Written]] = {"rounds": Rounds, "alignment": Alignment, "stream": Stream, "newton": Newton}
"""Courses by the word for them in files; each is a dataclass whose first field is a plan."""

_OWN = ("kind", "plan", "plan_digest")


def write(path: str | os.PathLike[str], course: Written) -> Path:
    """Write a course, and the plan that it was made of beside it (``study.toml``, ``study.first.toml``), both whole.

    Returns:
        Where the plan went.

    Raises:
        PrivstatsError: a file cannot be written.
    """
    place = Path(path)
    (plan, text), (_, said) = texts(place.name, course).items()
    write_whole(place.with_name(plan), text)
    write_whole(place, said)
    return place.with_name(plan)


def texts(name: str, course: Written) -> Mapping[str, bytes]:
    """What is in the files of a course: its plan's, then its own, by their names.

    Args:
        name: of its own file.
        course: the course.
    """
    field_of_plan = _plan_field(type(course))
    own: Plan = getattr(course, field_of_plan)
    plan = Path(name).with_suffix(f".{field_of_plan}{Path(name).suffix}").name
    kind = next(word for word, cls in KINDS.items() if isinstance(course, cls))
    numbers = {field.name: getattr(course, field.name) for field in fields(course)[1:]}
    table = {
        "kind": kind,
        "plan": plan,
        "plan_digest": own.digest,
        **{field: value for field, value in numbers.items() if value is not None},
    }
    return {plan: own.to_toml().encode(), name: tomli_w.dumps({"version": VERSION, "course": table}).encode()}


def is_course(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is a course's; what is in it :func:`read` judges.

    Raises:
        PlanError: it cannot be read.
    """
    return any(line.strip() == "[course]" for line in read_text(path).splitlines())


def read(path: str | os.PathLike[str]) -> Written:
    """Read a course file and the plan that lies beside it.

    Raises:
        PlanError: a file cannot be read or does not hold together, or the plan is not the one that the course names.
    """
    table = _table(read_text(path))
    kind = table.get("kind")
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise PlanError(
            f"course.kind must be one of {', '.join(KINDS)}, got {kind!r}; the course is of another privstats"
        )
    known = {field.name for field in fields(cls)[1:]}
    wrong = sorted(set(table) - known - set(_OWN))
    missing = [name for name in _OWN if not isinstance(table.get(name), str)]
    if wrong or missing:
        said = f"has unknown keys {', '.join(map(repr, wrong))}" if wrong else f"lacks {', '.join(missing)}"
        raise PlanError(f"[course] {said}; `privstats course init` writes one")
    first = Plan.read(_beside(Path(path), table["plan"]))
    if first.digest != table["plan_digest"]:
        raise PlanError(
            f"{table['plan']} is not the plan that the course was written for (its digest is {first.digest[:16]}...); "
            "fetch the right one, or write the course anew with `privstats course init`"
        )
    return cls(first, **{name: table[name] for name in known & set(table)})


def _plan_field(cls: type[Written]) -> str:
    return fields(cls)[0].name


def _table(text: str) -> dict[str, Any]:
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise PlanError(f"the course is not valid TOML: {error}") from None
    if document.get("version") != VERSION or not isinstance(document.get("course"), dict) or len(document) != 2:
        raise PlanError(
            f"a course file holds version = {VERSION} and a table [course]; `privstats course init` writes one"
        )
    table: dict[str, Any] = document["course"]
    return table


def _beside(course: Path, name: str) -> Path:
    """The plan's path; only a file of the same folder, so that a course cannot point anywhere else."""
    if Path(name).name != name:
        raise PlanError(f"course.plan must be the name of a file beside the course, got {name!r:.80}")
    return course.with_name(name)
