"""Write and read a course's TOML file, which pins its origin's file by digest.

The origin is a plan, or a course of a plan with its own file. ``[promise]`` holds the owners' epsilon and delta for all
rounds; it is in no digest. ``[analysis]`` makes version 3. Reading refuses unknown keys. The file holds no releases and
no values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Any, Protocol

import tomli_w

from privstats.course.analysis import Analysis
from privstats.course.base import Course, checked_mu, position_of
from privstats.course.kinds import COURSE_KINDS, course_kind
from privstats.course.promise import Promise, require_promise
from privstats.dp import Privacy
from privstats.errors import PlanError
from privstats.files.atomic import atomic_write
from privstats.files.text import toml_tables
from privstats.plan import Plan
from privstats.plan.document import read_text
from privstats.plan.position import Position
from privstats.printable import delta_text

VERSION = 2
_DECLARED = 3
"""The version of a file with an analysis."""

_NEARLY = 1 + 1e-6
"""Above the rounding of the sessions' parts."""

_KIND = "kind"
_BASES = ("plan", "course")
"""Keys that name the file of a course's origin; ``*_digest`` next to each holds the origin's digest."""
_PROMISE, _ANALYSIS = "promise", "analysis"


class Written(Course, Protocol):
    """A course with a file; its first field is a plan or course."""

    @property
    def promise(self) -> Promise | None:
        """The owners' promise, if any."""
        ...


def write(path: str | os.PathLike[str], course: Written) -> Path:
    """Write a course, and its origin next to it (``study.toml``, ``study.first.toml``), atomically.

    Returns:
        The path of the origin's file.

    Example:
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAB", 1.0), cohort=ps.Cohort(2, 2, 900), privacy=privacy)
        >>> ps.course.write("ward.toml", ps.Centred.within(plan)).name
        'ward.plan.toml'
        >>> sorted(os.listdir())
        ['ward.plan.toml', 'ward.toml']
    """
    if not isinstance(path, str | os.PathLike):
        raise PlanError(f"a course is written to a path, got {type(path).__name__}: call write(path, course)")
    place = Path(path)
    files = texts(place.name, course)
    for name, text in files.items():
        atomic_write(place.with_name(name), text)
    *_, origin, _ = files
    return place.with_name(origin)


def texts(name: str, course: Written) -> Mapping[str, bytes]:
    """Return a course's files by name: its origin's, innermost first, then its own.

    An origin that is the first session's plan names that session, so its file may be run as it is.
    """
    return _texts(name, course, position_of(course, ()))


def _texts(name: str, course: Written, first: Position | None) -> Mapping[str, bytes]:
    base, *_ = fields(course)  # type: ignore[arg-type]
    origin: Plan | Written = getattr(course, base.name)
    beside = Path(name).with_suffix(f".{base.name}{Path(name).suffix}").name
    key = "plan" if isinstance(origin, Plan) else "course"
    usual = {field.name: field.metadata.get("usual") for field in fields(course)}  # type: ignore[arg-type]
    numbers = {name: getattr(course, name) for name in _numbers(type(course))}
    table = {
        _KIND: course_kind(course).name,
        key: beside,
        f"{key}_digest": origin.digest,
        **{name: value for name, value in numbers.items() if value is not None and value != usual[name]},
    }
    document: dict[str, Any] = {"version": VERSION, "course": table}
    promise = course.promise or Promise.covering(checked_mu(course), course.first)
    require_promise(promise, course.mu)
    _require_spent(course, promise)
    if promise is not None:
        document[_PROMISE] = asdict(promise)
    if analysis := getattr(course, _ANALYSIS, None):
        document |= {"version": _DECLARED, _ANALYSIS: analysis.table}
    if isinstance(origin, Plan):
        inner: Mapping[str, bytes] = {beside: origin.at(first if origin == course.first else None).to_toml().encode()}
    else:
        inner = _texts(beside, origin, None)
    return {**inner, name: tomli_w.dumps(document).encode()}


def is_course(path: str | os.PathLike[str]) -> bool:
    """Return whether a file claims to be a course's."""
    return any(line.strip() == "[course]" for line in read_text(path).splitlines())


def read(path: str | os.PathLike[str]) -> Written:
    """Read a course file and its origin's files.

    Raises:
        PlanError: a file is unreadable or inconsistent, the plan is not the pinned one, or the rounds break the
            promise.

    Example:
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAB", 1.0), cohort=ps.Cohort(2, 2, 900), privacy=privacy)
        >>> _ = ps.course.write("ward.toml", ps.Centred.within(plan))
        >>> ps.course.read("ward.toml").most
        2
    """
    return _with_promise(*stated(path))


def course_beside(path: str | os.PathLike[str]) -> tuple[Path, Written] | None:
    """Return the course built from a plan's file, and its path; None without one."""
    requested = place = Path(path)
    while (above := place.with_suffix("").with_suffix(place.suffix)) != place and above.is_file() and is_course(above):
        place = above
    if place == requested:
        return None
    course = read(place)
    return (place, course) if requested.name in texts(place.name, course) else None


def _with_promise(course: Written, promise: Promise | None) -> Written:
    tables: dict[str, Any] = {"promise": promise}
    own = promise is not None and course_kind(course).promise == "own"  # a stream's plan holds it already
    require_promise(promise, course.mu)  # which a class of another package may not have compared
    return replace(course, **tables) if own else course  # type: ignore[type-var]


def stated(path: str | os.PathLike[str]) -> tuple[Written, Promise | None]:
    """Return a file's course, and the promise it states, whether kept or not."""
    return _stated(Path(path), _BASES)


def _stated(path: Path, bases: Sequence[str]) -> tuple[Written, Promise | None]:
    table, promise, declared = _tables(read_text(path))
    kind = table.get(_KIND)
    row = COURSE_KINDS.get(kind) if isinstance(kind, str) else None
    if row is None or row.promise is None:
        listed = ", ".join(name for name, each in COURSE_KINDS.rows().items() if each.promise is not None)
        raise PlanError(f"course.kind must be one of {listed}, got {kind!r}; the course is of another privstats")
    cls, key = row.type, next((key for key in bases if key in table), "plan")
    known, own = _numbers(cls), (_KIND, key, f"{key}_digest")
    wrong = sorted(set(table).difference(known, own))
    missing = [name for name in own if not isinstance(table.get(name), str)]
    if wrong or missing:
        problem = f"has unknown keys {', '.join(map(repr, wrong))}" if wrong else f"lacks {', '.join(missing)}"
        raise PlanError(f"[course] {problem}; `privstats course init` writes one")
    origin = _origin(_beside(path, key, table[key]), key, table[f"{key}_digest"])
    if declared and not any(field.name == _ANALYSIS for field in fields(cls)):
        raise PlanError(f"[analysis] is of a course of effects, and this one is of kind {kind!r}; delete the table")
    course: Written = cls(origin, **{name: table[name] for name in known if name in table}, **declared)
    _check_promise(course, promise)
    return course, promise


def _origin(path: Path, key: str, digest: str) -> Plan | Written:
    # The origin's own origin must be a plan, so no file can name itself.
    origin = Plan.read(path) if key == "plan" else _with_promise(*_stated(path, ("plan",)))
    if origin.digest != digest:
        raise PlanError(
            f"{path.name} is not the {key} that the course was written for (its digest is {origin.digest[:16]}...); "
            "fetch the right one, or write the course anew with `privstats course init`"
        )
    return origin


def _check_promise(course: Written, promise: Promise | None) -> None:
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
    _require_spent(course, promise)


def _require_spent(course: Written, promise: Promise | None) -> None:
    """Refuse a promise above the sessions' epsilon: the digest covers the sessions, and so the promise."""
    spent = Promise.covering(checked_mu(course), course.first)
    if promise is None or spent is None or course_kind(course).promise == "plan" or not promise.delta:
        return
    if promise.epsilon > spent.epsilon * _NEARLY:
        raise PlanError(
            f"[promise] states epsilon {promise.epsilon:.6g} at delta {delta_text(promise.delta)}, and its sessions "
            f"spend epsilon {spent.epsilon:.6g}: the file was edited; write the course anew with `privstats course "
            "init`"
        )


def _numbers(cls: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls)[1:] if field.name not in (_PROMISE, _ANALYSIS))


def _tables(text: str) -> tuple[dict[str, Any], Promise | None, dict[str, Analysis]]:
    try:
        document = toml_tables(text)
    except TOMLDecodeError as error:
        raise PlanError(f"the course is not valid TOML: {error}") from None
    version, tables = document.get("version"), set(document) - {"version"}
    if {"schema", "cohort"} <= tables:
        raise PlanError(
            "this is a plan and no course: read it with `privstats plan check`, or divide it with course init"
        )
    if version == 1 and type(version) is int:
        raise PlanError(
            "a course file of version 1 is from before the first release of privstats and no longer read: write the "
            "course anew with `privstats course init`"
        )
    fits = type(version) is int and version == (_DECLARED if _ANALYSIS in tables else VERSION)
    if not fits or not tables <= {"course", _PROMISE, _ANALYSIS} or not isinstance(document.get("course"), dict):
        raise PlanError(
            f"a course file holds version = {VERSION}, a table [course] and a table [promise], or version = "
            f"{_DECLARED} and beside them [analysis]; `privstats course init` writes one"
        )
    stated = document.get(_PROMISE)
    if stated is not None and (not isinstance(stated, dict) or set(stated) != {"epsilon", "delta"}):
        raise PlanError("[promise] holds epsilon and delta and nothing else; `privstats course init` writes both")
    declared = {_ANALYSIS: Analysis.of(document[_ANALYSIS])} if _ANALYSIS in tables else {}
    return document["course"], None if stated is None else Promise(**stated), declared


def _beside(course: Path, key: str, name: str) -> Path:
    """Refuse paths outside the folder."""
    if not name or Path(name).name != name:
        raise PlanError(f"course.{key} must be the name of a file beside the course, got {name!r:.80}")
    return course.with_name(name)
