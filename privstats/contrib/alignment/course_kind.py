"""The row of alignments as a kind of course, which loads them on use."""

from dataclasses import dataclass
from typing import Annotated

from privstats.extend.courses import CourseKind
from privstats.extend.doors import Option


@dataclass(frozen=True)
class Terms:
    """Options of ``course init`` for an alignment."""

    step: Annotated[str | None, Option("For an alignment: alvarez-esteban (default) or published.")] = None


KIND = CourseKind(
    "alignment",
    "an alignment",
    "privstats.contrib.alignment.course:Alignment",
    why="Parties are asked again until their measurements can be made alike; each session begins with what "
    "the last one found.",
    task="gaussians",
    terms=Terms,
)
