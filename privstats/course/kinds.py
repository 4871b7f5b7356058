"""The rows of kinds of course; a row loads its class on use, and importing the rows loads nothing that computes."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from privstats.course.terms import (
    BinnedTerms,
    CentredTerms,
    EffectTerms,
    HazardTerms,
    RefinementTerms,
    RegressionTerms,
    StandardisedTerms,
)
from privstats.doors import Door, is_row, resolved
from privstats.errors import PlanError
from privstats.kinds.registry import KINDS
from privstats.plug_ins import definer
from privstats.row_fields import Place, RowError
from privstats.row_options import given
from privstats.tables import by_name

if TYPE_CHECKING:
    from privstats.course.base import Course, Releases
    from privstats.course.effect import Effect
    from privstats.plan import Plan
    from privstats.randomness import Generator
    from privstats.release import Release
    from privstats.schema import Schema

Admits: TypeAlias = Callable[..., None]
"""Checks X and y, with the treatment of unreadable records and the function that measures lazy data."""


def _rounds_ended(course: Course, releases: Releases, home: Path) -> str:  # noqa: ARG001
    have = [str(place) for place, release in enumerate(releases) if release is not None]
    if not have:
        return "the course ended without a sum"
    without = f", {len(releases) - len(have)} without a sum" if len(have) < len(releases) else ""
    return (
        f"the course ended after {len(releases)} rounds{without}: {home.name}/nodes/"
        f"{{{','.join(have)}}}/release.safetensors"
    )


@dataclass(frozen=True)
class Changing:
    """A course to which parties send changes since their last upload, in place of all their records.

    Attributes:
        contribution: returns the clients' contributions between machines, a
            ``privstats.engines.network.parts.Contribution``.
        simulated: runs the course in one process: course, shards, dropouts and generator, as ``ps.simulate``.
        facts: facts of a party's folder for the party, with its ``account``.
        totals: the server's stored sums, where it weighs exact sums with earlier ones before noise is due; else None.
            From the server's folder, the course, and a function from a purpose to its key.
        bring: how a party brings changes, for refusals.
        alone: how the course runs in one process, for refusals.
        persons: how a patient's rows enter, one sentence.
        leaves: whether records can be removed again.
        stays: names in a party's folder that a renewed run leaves in place.
    """

    contribution: Callable[[], Any]
    simulated: Callable[[Any, Any, Any, Generator], list[Release | None]]
    facts: Callable[[Any], Mapping[str, Any]]
    totals: Callable[[Path, Any, Callable[[str], bytes]], Any] = lambda *_: None
    bring: str = "bring what changes by its own command"
    alone: str = "pass each round's own changes"
    persons: Callable[[Any], str] = lambda _: "Each round sums the rows that a patient's party has not sent before."
    leaves: Callable[[Any], bool] = lambda _: False
    stays: tuple[str, ...] = ()


@dataclass(frozen=True)
class CourseKind:
    """A kind of course.

    Attributes:
        name: the class's ``label``, for files.
        what: phrase for ``course init``.
        place: its class, or ``"module:Class"``.
        charge: what a party's ledger is charged: one ``"plan"``; the ``"course"`` before its first round; or the
            course, then records by a ``"registry"``, which keeps rounds disjoint. Another package's kind has
            ``"course"``.
        changing: how parties send changes since their last upload; None: each round sums all their records, as in
            another package's kind.
        gives_back: whether proof that an upload is in no sum returns its cost or records; not in another package's.
        promise: promise in the file's ``[promise]``: the course's ``"own"``, which ``within`` divides, or its
            ``"plan"``'s; None: no file.
        why: reasons for several sessions, for ethics boards, or a function of the course.
        task: a schema task that always means this kind.
        asked: option or flag that means this kind.
        means: whether a schema means this kind, before all else; of privstats' own kinds alone.
        follows: whether plans follow from releases; else from the round's number.
        pauses: whether a run between machines ends before this round.
        ended: sentence at a run's end.
        draws: what is drawn from its releases and may be published with them, such as "rows"; empty for fits alone.
        terms: its options of ``privstats course init``: a frozen dataclass with an ``Option`` on each field, the
            parameters of ``within`` and the flag of ``asked``.
        read_by: the command that reads its releases; ``{path}`` stands for the course's file.
    """

    name: str
    what: str
    place: Place | type[Any]
    charge: Literal["plan", "course", "registry"] = "course"
    changing: Changing | None = None
    gives_back: bool = False
    promise: Literal["own", "plan"] | None = "own"
    why: str | Callable[[Any], str] = ""
    task: str = ""
    asked: str = ""
    means: Callable[[Schema], bool] = lambda _: False
    follows: bool = True
    pauses: Callable[[Any, int], bool] = lambda *_: False
    ended: Callable[[Any, Releases, Path], str] = _rounds_ended
    draws: str = ""
    terms: type[Any] | None = None
    read_by: str = "privstats table"

    @property
    def type(self) -> type[Any]:
        """The class, a :class:`~privstats.course.planned.Planned` dataclass."""
        with COURSE_KINDS.using(self.name):
            course_type: type[Any] = resolved(self.place)
        return course_type

    @property
    def single(self) -> bool:
        """Whether it is one plan, charged as a plan, without a course file."""
        return self.charge == "plan"

    @property
    def within(self) -> Callable[..., Any]:
        """Builder from a full plan and :attr:`options`."""
        divided: Callable[..., Any] = self.type if self.promise == "plan" else self.type.within
        return divided

    @property
    def options(self) -> tuple[str, ...]:
        """Options of :attr:`within`."""
        parameters = signature(self.within).parameters.values()
        return tuple(each.name for each in parameters if each.kind is not each.VAR_KEYWORD)[1:]

    @property
    def needed(self) -> tuple[str, ...]:
        """Options without a default."""
        parameters = signature(self.within).parameters
        return tuple(name for name in self.options if parameters[name].default is parameters[name].empty)

    @property
    def takes_others(self) -> bool:
        """Whether :attr:`within` passes options on to another kind."""
        return any(each.kind is each.VAR_KEYWORD for each in signature(self.within).parameters.values())

    @property
    def full_plan(self) -> Callable[..., Plan]:
        """Builder of the full plan from ``Plan``'s arguments."""
        from privstats.plan import Plan

        make: Callable[..., Plan] = getattr(self.type, "full_plan", Plan)
        return make


def _effect_why(course: Effect) -> str:
    last = "adds up each record's influence on the effect."
    if course.looks > 1:
        begins = "" if course.outcome is None else "The first session finds how outcomes go with the columns by arm. "
        return (
            f"{begins}Then there are {course.looks} looks: each adds up the influence on the effect of every record so "
            "far, so that the trial can stop early. All looks are charged before the first."
        )
    if course.outcome is None:
        return f"One session {last}" + (" Others are held if it ends without a sum." if course.retries else "")
    whose = "whose outcome is there" if course.schema.missing else "who is treated"
    first = "The first session finds" if course.propensity is None else f"The first sessions find {whose}, the next"
    return f"{first} how outcomes go with the columns among the treated and among the others; the last {last}"


def _is_interim(course: Effect, place: int) -> bool:
    """Return whether a look after the first one begins here, which waits for its records."""
    return course.looks > 1 and (course.look_of(place) or 0) > 0


def _effect_ended(course: Effect, releases: Releases, home: Path) -> str:
    ended = _rounds_ended(course, releases, home)
    if course.looks == 1 or len(releases) == course.most:
        return ended
    look = course.look_of(len(releases) - 1) or 0
    return (
        f"look {look + 1} of {course.looks} has ended; run the same command again once the records of the next look "
        f"are in, or stop here{ended[ended.index(':') :] if ':' in ended else ''}"
    )


def _has_open_columns(schema: Schema) -> bool:
    return any(getattr(map_, "open", ()) for map_ in schema.transform)


_OWN = by_name(
    [
        CourseKind(
            "single",
            "one plan",
            "privstats.course.planned:Single",
            why="There is one session.",
            charge="plan",
            gives_back=True,
            promise=None,
        ),
        CourseKind(
            "rounds",
            "refinement rounds",
            "privstats.course.rounds:Rounds",
            why="The first session makes a model, and each of the others improves it a step.",
            terms=RefinementTerms,
        ),
        CourseKind(
            "newton",
            "rounds of a logistic or Poisson regression",
            "privstats.course.newton:Newton",
            why="The regression is found in steps; each session begins with what the last one found.",
            task="score",
            terms=RegressionTerms,
        ),
        CourseKind(
            "hazard",
            "counts, then rounds of proportional hazards",
            "privstats.course.hazard:Hazard",
            why="The first session counts; the others find the survival analysis in steps.",
            task="hazard",
            terms=HazardTerms,
        ),
        CourseKind(
            "centred",
            "a mean first",
            "privstats.course.centred:Centred",
            why="The first session finds the average of every column; the next measures from there, which needs less "
            "noise for the same promise.",
            asked="centred",
            terms=CentredTerms,
        ),
        CourseKind(
            "effect",
            "a treatment effect",
            "privstats.course.effect:Effect",
            why=_effect_why,
            task="effect",
            pauses=_is_interim,
            ended=_effect_ended,
            terms=EffectTerms,
        ),
        CourseKind(
            "standardised",
            "ranges first",
            "privstats.course.standardised:Standardised",
            why="The first session finds the ranges of the columns; the second makes the regression within them.",
            asked="standardised",
            terms=StandardisedTerms,
        ),
        CourseKind(
            "parties",
            "two rounds of whole parties",
            "privstats.course.rounds:PartyRounds",
            why="Each party is asked twice for one direction: the first makes a model, the second improves it.",
            task="party-softmax",
        ),
        CourseKind(
            "binned",
            "cut points, then a plan or a course",
            "privstats.course.binned:Binned",
            why="The first sessions count, to find where columns are cut into groups; then the study itself begins.",
            means=_has_open_columns,
            terms=BinnedTerms,
        ),
    ],
    lambda kind: kind.name,
    "course kind",
)


_OURS_ALONE = "charge", "changing", "gives_back"
"""Fields that form sums, noise or charges, which no claim on a plan names."""
_is_course = is_row(CourseKind, options="terms")


def _is_kind(row: Any, name: str) -> bool:
    """Return whether an announced object is a kind of course; refuse one of another package that does more."""
    good = _is_course(row, name)
    if row.task and row.task not in KINDS:
        raise RowError(f"its task is {row.task!r:.80}, and must be one of {', '.join(KINDS)}")
    if row.asked and row.terms is not None and row.asked not in (known := [each.name for each in fields(row.terms)]):
        raise RowError(f"its asked is {row.asked!r:.80}, and must be an option of its terms: {', '.join(known)}")
    if COURSE_KINDS.origin(name):
        _check_anothers(row)
    return good


def _check_anothers(row: CourseKind) -> None:
    """Refuse a row of another package that decides what is charged, or that means an option of a kind of ours."""
    if type(row) is not CourseKind:  # a property such as ``single`` decides what a ledger is charged
        raise RowError(f"it is of the class {type(row).__name__} over CourseKind, and must be a CourseKind itself")
    if stated := [each for each in _OURS_ALONE if getattr(row, each) != getattr(CourseKind, each)]:
        raise RowError(
            f"it states {', '.join(stated)}, and only kinds of privstats form sums, noise or charges themselves: leave "
            "it out there"
        )
    COURSE_KINDS.require_own(row.name, row.asked, "asked", "terms")


COURSE_KINDS: Door[CourseKind] = Door("privstats.courses", "kind of course", PlanError, _is_kind, _OWN)
"""The kinds by name: this room's, then those that packages and ``privstats.contrib`` announce."""


def course_kind(course: Course) -> CourseKind:
    """Return a course's row."""
    row = _row_of(course)
    if row is None:
        raise PlanError(
            f"{type(course).__name__} is not a known kind of course ({', '.join(COURSE_KINDS)}); a package announces "
            f"one by an entry point of {COURSE_KINDS.group}"
        )
    return row


def kind_for(schema: Schema, asked: Container[str], without: Container[str] = ()) -> CourseKind:
    """Return the kind that a full plan's schema and the given options mean.

    Args:
        schema: the full plan's.
        asked: names of the given options.
        without: kinds whose options the command left out.

    The order is: kinds that the plan requires, an option of one kind alone, the schema's task, a flag, refinement
    rounds. A kind of another package counts only where its ``asked`` is given, or for a task of another package.
    """
    written = [kind for kind in COURSE_KINDS.rows().values() if kind.promise is not None]
    ours = [kind for kind in written if not COURSE_KINDS.origin(kind.name)]
    needed = (kind for kind in ours if kind.means(schema))
    flagged = [kind for kind in written if kind.asked in asked and kind.name not in without]
    by_option = (kind for kind in flagged if kind.asked in kind.options)
    by_task = (kind for kind in (written if KINDS.origin(schema.task) else ours) if kind.task == schema.task)
    return next(chain(needed, by_option, by_task, flagged), COURSE_KINDS["rounds"])


def converted(options: Any) -> dict[str, Any]:
    """Return a command's options as ``within`` accepts them, without those that have their defaults."""
    read = {each.name: each.metadata.get("read", _unchanged) for each in fields(options)}
    return {name: read[name](value) for name, value in given(options).items()}


def _unchanged(value: Any) -> Any:
    return value


def labels_of(course: Course) -> Sequence[str]:
    """Return the names of a course's priced plans in a table."""
    course_kind(course)  # refuses a class without a row
    planned: Any = course
    labels: Sequence[str] = planned.labels
    return labels


def admits_of(course: Course) -> Admits | None:
    """Return the course's method ``admits``, which refuses records early that only a later round would refuse.

    None: the first round reads all that later rounds read.

    Raises:
        PlanError: another package defines the method, and the course has a promise.
    """
    return _reading(course, "admits")


def schema_read(course: Course) -> Schema:
    """Return the schema whose columns ``admits`` reads; a course whose first round reads fewer states its own."""
    schema: Schema = getattr(course, "schema_read", course.first.schema)
    return schema


def file_of(course: Course, file: Any) -> Any:
    """Return a party's file as the course's declared columns read it; without declared columns the file itself.

    Raises:
        PlanError: another package defines the method ``reads``, and the course has a promise.
    """
    reads = _reading(course, "reads")
    return file if reads is None else reads(file)


def _reading(course: Course, name: str) -> Callable[..., Any] | None:
    """Return a course's method that reads records; refuse another package's under a promise, which has no claim."""
    from privstats.dp import NoPrivacy  # which loads what computes

    owner = next((cls for cls in type(course).__mro__ if name in vars(cls)), None)
    if owner is None:
        return None
    package = "" if isinstance(course.first.privacy, NoPrivacy) else definer(owner)
    if package:
        raise PlanError(
            f"{package} defines the method {name} of {type(course).__name__}, which reads a party's records, and no "
            f"claim on a plan names that package: omit {name} there, or agree on a course without a promise"
        )
    method: Callable[..., Any] = getattr(course, name)
    return method


def _row_of(course: Course) -> CourseKind | None:
    own = type(course)
    places = (own, f"{own.__module__}:{own.__qualname__}")
    return COURSE_KINDS.first(lambda kind: kind.place in places and kind.type is own)
