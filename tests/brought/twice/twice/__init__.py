"""A course of two looks at the same sums: its row, which loads the course on use."""

from dataclasses import dataclass
from typing import Annotated

from privstats.extend.courses import CourseKind
from privstats.extend.doors import Option


@dataclass(frozen=True)
class Terms:
    """Options of ``course init``."""

    early: Annotated[float | None, Option("For two looks: the part of the promise for the first. Default: .2.")] = None


KIND = CourseKind(
    "twice", "two looks", "twice.course:Twice", why="The sums are seen twice.", asked="early", terms=Terms
)
