"""Collect the sentences that packages add to ``privstats plan check``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from privstats.doors import Door, is_row
from privstats.errors import PrivstatsError
from privstats.row_fields import shown

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
    return [sentence for name, note in NOTES.rows().items() for sentence in _sentences(name, note, plan)]


def _sentences(name: str, note: PlanNote, plan: Plan) -> list[str]:
    """Return one note's sentences; where its code fails, a warning that names its package."""
    try:
        with NOTES.using(name):
            sentences = list(note.sentences(plan))
            if wrong := [each for each in sentences if not isinstance(each, str) or len(each) == 1]:
                raise TypeError(f"it returns {shown(wrong[0])} as a sentence; return a list of texts")
    except PrivstatsError as fault:
        return [f"WARNING: {fault}"]
    return sentences
