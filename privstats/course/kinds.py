"""One row per kind of course: the properties that engines, commands, pages and audits read beside its plans.

Code that runs, charges, shows or audits a course reads its row and never tests its class, so that a new kind is one
more row and no kind is mistaken for another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from privstats.course.alignment import Alignment
from privstats.course.base import Course, Releases, Single
from privstats.course.centred import Centred
from privstats.course.newton import Newton
from privstats.course.party_rounds import PartyRounds
from privstats.course.rounds import Rounds
from privstats.course.stream import Stream
from privstats.errors import PlanError
from privstats.moments.measurement import Unreadable

__all__ = ["KINDS", "CourseKind", "admits_of", "course_kind", "register"]


def _never(_: Any, place: int) -> bool:  # noqa: ARG001
    return False


def _numbered(course: Course) -> Sequence[str]:
    return [str(place) for place in range(len(course.priced))]


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
class CourseKind:
    """A kind of course.

    Attributes:
        name: the word for it, in files and in sentences.
        type: its class, a dataclass whose first field is a plan.
        charge: what is charged to a party's ledger: its one ``"plan"``; the ``"course"``, as a whole before its first
            round; or the course as a whole, and then every record by a ``"registry"``, which keeps rounds apart.
        part: what a party contributes to a round: all its ``"records"``, or the ``"changes"`` since it last sent any.
        gives_back: whether proof that an upload is in no sum gives something back: what it cost, or its records.
        promise: whose promise the table ``[promise]`` of its file holds: the course's ``"own"``, or its ``"plan"``'s;
            None for a kind that has no file.
        follows: whether a round's plan follows from what was released before; else from its number alone.
        pauses: whether a run between machines ends before the round at this place; the next run goes on with it.
        weighs: whether the server weighs exact sums with those of earlier rounds before noise is due.
        labels: the names of its priced plans in a table.
        ended: the sentence at the end of a run, from the course, the releases of its rounds, and its folder.
        admits: refuses records, before anything is spent, that a later round would refuse and the first does not read
            to the end; None where the first reads all.
    """

    name: str
    type: type[Any]
    charge: Literal["plan", "course", "registry"]
    part: Literal["records", "changes"]
    gives_back: bool
    promise: Literal["own", "plan"] | None
    follows: bool = True
    pauses: Callable[[Any, int], bool] = _never
    weighs: Callable[[Any], bool] = lambda _: False
    labels: Callable[[Any], Sequence[str]] = _numbered
    ended: Callable[[Any, Releases, Path], str] = _rounds_ended
    admits: Callable[[Any, Any, Any, Unreadable], None] | None = None

    @property
    def single(self) -> bool:
        """Whether it is one plan, charged as a plan: it has no course file, and one session is all of it."""
        return self.charge == "plan"


def _epoch_begins(stream: Stream, place: int) -> bool:
    """Whether the round is the first of its epoch: a run carries one epoch."""
    return stream.nodes[place].epoch != stream.nodes[place - 1].epoch


def _epoch_ended(stream: Stream, releases: Releases, home: Path) -> str:
    last = stream.nodes[len(releases) - 1].epoch
    nodes = [place for place, each in enumerate(stream.nodes[: len(releases)]) if each.epoch == last]
    without = sum(releases[place] is None for place in nodes)
    said = "" if not without else f", {without} of its {len(nodes)} rounds without a sum"
    ended = ", and with it the stream" if len(releases) == stream.most else ""
    folder = quote(f"{home.parent.name}/{home.name}")
    return f"epoch {last} of {stream.epochs} ended{said}{ended}: privstats stream show {folder}"


KINDS: dict[str, CourseKind] = {}
"""The kinds by name."""


def register(kind: CourseKind) -> CourseKind:
    """Add a kind.

    Raises:
        PlanError: its name or its class has a row.
    """
    if kind.name in KINDS or any(kind.type is each.type for each in KINDS.values()):
        raise PlanError(f"a course kind {kind.name!r}, or one of {kind.type.__name__}, is there; name another")
    KINDS[kind.name] = kind
    return kind


def course_kind(course: Course) -> CourseKind:
    """The row of a course.

    Raises:
        PlanError: its class has none.
    """
    found = next((kind for kind in KINDS.values() if type(course) is kind.type), None)
    if found is None:
        raise PlanError(
            f"{type(course).__name__} is no kind of course that is known here ({', '.join(KINDS)}): "
            "privstats.course.kinds.register adds one"
        )
    return found


def admits_of(course: Course) -> Callable[[Any, Any, Any, Unreadable], None] | None:
    """What refuses records before the first round; None for a course of one's own, too."""
    return next((kind.admits for kind in KINDS.values() if type(course) is kind.type), None)


register(CourseKind("single", Single, charge="plan", part="records", gives_back=True, promise=None))
register(CourseKind("rounds", Rounds, charge="course", part="records", gives_back=False, promise="own"))
register(CourseKind("alignment", Alignment, charge="course", part="records", gives_back=False, promise="own"))
register(
    CourseKind(
        "stream",
        Stream,
        charge="registry",
        part="changes",
        gives_back=True,
        promise="plan",
        follows=False,
        pauses=_epoch_begins,
        weighs=lambda stream: stream.row.correlated,
        labels=lambda stream: [f"each of {stream.most}"],
        ended=_epoch_ended,
    )
)
register(CourseKind("newton", Newton, charge="course", part="records", gives_back=False, promise="own"))
register(
    CourseKind(
        "centred",
        Centred,
        charge="course",
        part="records",
        gives_back=False,
        promise="own",
        admits=Centred.admits,
    )
)
register(CourseKind("parties", PartyRounds, charge="course", part="records", gives_back=False, promise="own"))
