"""The rows of what computes a record's scores under a published head, by the task of the plan's schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from privstats.doors import Door, is_row
from privstats.errors import PlanError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privstats.kinds.scoring import ScoresAndShares, ScoringSchema

Reader: TypeAlias = "Callable[[ScoringSchema, bytes], Callable[[NDArray[Any]], ScoresAndShares]]"
"""Returns, from a schema and a published head's bytes, the function from rows ``(n, d)`` to ``(n, C)`` each."""


@dataclass(frozen=True)
class Scorer:
    """A reader of published heads.

    Attributes:
        task: the schema's ``task`` in plan files.
        reader: returns the function that scores rows, each record alone; raises PlanError.
        package: returns, from a published head's bytes, name and version of another package whose code scores; empty
            for privstats. Under a promise such a head is refused.
    """

    task: str
    reader: Reader
    package: Callable[[bytes], str] = lambda _: ""


SCORERS: Door[Scorer] = Door("privstats.published", "scorer of published heads", PlanError, is_row(Scorer, "task"))
"""The scorers by task, as ``privstats.heads`` and packages announce them. Their group names what they read."""


def scored_by(task: str, head: bytes) -> str:
    """Return name and version of another package whose code scores under a published head; empty for privstats."""
    return SCORERS.origin(task) or SCORERS.needed(task, "a plan of a score").package(head)
