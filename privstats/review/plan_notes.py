"""Collect the sentences that packages add to ``privstats plan check``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from privstats.doors import Door, is_row
from privstats.errors import PrivstatsError

if TYPE_CHECKING:
    from privstats.plan import Plan

Sentences: TypeAlias = "Callable[[Plan], Sequence[str]]"
"""Returns what is to be known of a plan, in sentences without a full stop; none where nothing is."""


@dataclass(frozen=True)
class PlanNote:
    """A package's sentences about plans. A sentence that begins with ``WARNING:`` is counted as a warning.

    Attributes:
        name: the note's name.
        sentences: returns the sentences about one plan.
    """

    name: str
    sentences: Sentences


NOTES: Door[PlanNote] = Door("privstats.notes", "note on plans", PrivstatsError, is_row(PlanNote))
"""The notes by name, as packages and ``privstats.contrib`` announce them."""


def plan_notes(plan: Plan) -> list[str]:
    """Return every installed package's sentences about a plan."""
    return [sentence for note in NOTES.values() for sentence in note.sentences(plan)]
