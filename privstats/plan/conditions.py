"""Join the conditions of several plans, and recognise a condition that a file states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privstats.plan.plan import Plan

MAX_CONDITION = 10_000
"""Maximum number of characters of a condition in a file."""


def joint_condition(plans: Iterable[Plan]) -> str:
    """Return the condition of a promise for all these plans' sessions, a clause after "while"."""
    return "; and ".join(dict.fromkeys(plan.condition for plan in plans))


def is_clause(value: object) -> bool:
    """Return whether a file's value can be a condition: a printable text of bounded length, or empty."""
    return isinstance(value, str) and len(value) <= MAX_CONDITION and (value + " ").isprintable()
