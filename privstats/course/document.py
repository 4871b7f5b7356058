"""The file form of a course: a short TOML beside the file of its first plan, which it names and holds by digest.

It holds the owners' promise for all rounds together, ``[promise]`` with epsilon and delta, so that an audit can compare
the rounds' sum with it. Version 1, which had none, was before the first release. Reading refuses unknown keys and
another plan than the one that was reviewed. The file holds no releases and no values: those travel beside each round's
plan.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Any, Protocol

import tomli_w

from privstats.course.base import Course
from privstats.course.kinds import KINDS, course_kind
from privstats.course.promise import Promise
from privstats.dp import Privacy
from privstats.errors import PlanError
from privstats.files.atomic import atomic_write
from privstats.files.toml import toml_tables
from privstats.plan import Plan
from privstats.plan.document import read_text

__all__ = ["VERSION", "is_course", "read", "stated", "texts", "write"]

VERSION = 2

_OWN = ("kind", "plan", "plan_digest")
_PROMISE = "promise"


class Written(Course, Protocol):
    """A course that has a file: a dataclass whose first field is a plan, with the promise for all its rounds."""

    @property
    def promise(self) -> Promise | None:
        """Its owners' promise; None without DP, or if none was declared."""
        ...


def write(path: str | os.PathLike[str], course: Written) -> Path:
    """Write a course, and the plan that it was made of beside it (``study.toml``, ``study.first.toml``), both whole.

    Returns:
        The path of the plan's file.

    Raises:
        PrivstatsError: a file cannot be written.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> ps.course.write("ward.toml", ps.Stream(plan, epochs=4)).name
        'ward.plan.toml'
        >>> sorted(os.listdir())
        ['ward.plan.toml', 'ward.toml']
    """
    place = Path(path)
    (plan, text), (_, said) = texts(place.name, course).items()
    atomic_write(place.with_name(plan), text)
    atomic_write(place, said)
    return place.with_name(plan)


def texts(name: str, course: Written) -> Mapping[str, bytes]:
    """The contents of the files of a course by their names: its plan's, then its own.

    Args:
        name: of its own file.
        course: the course.
    """
    field_of_plan = _plan_field(type(course))
    own: Plan = getattr(course, field_of_plan)
    plan = Path(name).with_suffix(f".{field_of_plan}{Path(name).suffix}").name
    usual = {field.name: field.metadata.get("usual") for field in fields(course)}  # type: ignore[arg-type]
    numbers = {name: getattr(course, name) for name in _numbers(type(course))}
    table = {
        "kind": course_kind(course).name,
        "plan": plan,
        "plan_digest": own.digest,
        **{name: value for name, value in numbers.items() if value is not None and value != usual[name]},
    }
    said: dict[str, Any] = {"version": VERSION, "course": table}
    promise = course.promise or Promise.covering(course.mu, course.first)
    if promise is not None:
        said[_PROMISE] = asdict(promise)
    return {plan: own.to_toml().encode(), name: tomli_w.dumps(said).encode()}


def is_course(path: str | os.PathLike[str]) -> bool:
    """Whether a file claims to be a course's; :func:`read` validates its contents.

    Raises:
        PlanError: it cannot be read.
    """
    return any(line.strip() == "[course]" for line in read_text(path).splitlines())


def read(path: str | os.PathLike[str]) -> Written:
    """Read a course file and the plan that lies beside it.

    Raises:
        PlanError: a file cannot be read or does not hold together, the plan is not the one that the course names, or
            the rounds do not keep what the file promises.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> _ = ps.course.write("ward.toml", ps.Stream(plan, epochs=4))
        >>> ps.course.read("ward.toml").epochs
        4
    """
    course, promise = stated(path)
    said: dict[str, Any] = {"promise": promise}
    own = promise is not None and course_kind(course).promise == "own"  # a stream's plan holds it already
    return replace(course, **said) if own else course  # type: ignore[type-var]


def stated(path: str | os.PathLike[str]) -> tuple[Written, Promise | None]:
    """The course of a file without what it promises as a whole, and that promise, kept or not, for those who judge it.

    Raises:
        PlanError: as for :func:`read`, but for a promise that the rounds do not keep.
    """
    table, promise = _tables(read_text(path))
    kind = table.get("kind")
    kinds = {row.name: row for row in KINDS.values() if row.promise is not None}
    row = kinds.get(kind) if isinstance(kind, str) else None
    if row is None:
        raise PlanError(
            f"course.kind must be one of {', '.join(kinds)}, got {kind!r}; the course is of another privstats"
        )
    cls = row.type
    known = _numbers(cls)
    wrong = sorted(set(table).difference(known, _OWN))
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
    course: Written = cls(first, **{name: table[name] for name in known if name in table})
    _check_promise(course, promise)
    return course, promise


def _check_promise(course: Written, promise: Promise | None) -> None:
    """Refuse a promise as a whole that is missing, or contradicts the plan."""
    privacy, of_plan = course.first.privacy, course_kind(course).promise == "plan"
    if of_plan:
        fits = promise == course.promise
    else:
        fits = (promise and promise.delta) == (privacy.delta if isinstance(privacy, Privacy) else None)
    if not fits:
        raise PlanError(
            "[promise] must hold epsilon and delta of the whole course, with the delta of its plan (of a stream both "
            "are its plan's), and must be left out without DP; `privstats course init` writes it"
        )


def _numbers(cls: type[Any]) -> tuple[str, ...]:
    """Names of a course's own numbers: its fields but for the plan and the promise."""
    return tuple(field.name for field in fields(cls)[1:] if field.name != _PROMISE)


def _plan_field(cls: type[Any]) -> str:
    return fields(cls)[0].name


def _tables(text: str) -> tuple[dict[str, Any], Promise | None]:
    """The course's table, and the promise as a whole."""
    try:
        document = toml_tables(text)
    except TOMLDecodeError as error:
        raise PlanError(f"the course is not valid TOML: {error}") from None
    version, tables = document.get("version"), set(document) - {"version"}
    if version == 1 and type(version) is int:
        raise PlanError(
            "a course file of version 1 is from before the first release of privstats and no longer read: write the "
            "course anew with `privstats course init`"
        )
    fits = type(version) is int and version == VERSION and tables <= {"course", _PROMISE}
    if not fits or not isinstance(document.get("course"), dict):
        raise PlanError(
            f"a course file holds version = {VERSION}, a table [course] and a table [promise]; "
            "`privstats course init` writes one"
        )
    said = document.get(_PROMISE)
    if said is not None and (not isinstance(said, dict) or set(said) != {"epsilon", "delta"}):
        raise PlanError("[promise] holds epsilon and delta and nothing else; `privstats course init` writes both")
    return document["course"], None if said is None else Promise(**said)


def _beside(course: Path, name: str) -> Path:
    """The plan's path; only a file of the same folder, so that a course cannot point anywhere else."""
    if Path(name).name != name:
        raise PlanError(f"course.plan must be the name of a file beside the course, got {name!r:.80}")
    return course.with_name(name)
