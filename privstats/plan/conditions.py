"""State a promise's condition, join those of several plans, and recognise a condition that a file states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from privstats.plan.settings import Assumes, rows

if TYPE_CHECKING:
    from privstats.plan.plan import Plan

MAX_CONDITION = 10_000
"""Maximum number of characters of a condition in a file."""


def condition_of(plan: Plan) -> str:
    """Return the condition of a plan's promise, a clause after "while".

    Noise of the central and local models does not rest on the masking, so there the assumption of the noise comes
    first.
    """
    noise, masks = assumption(plan, "noise"), assumption(plan, "masks")
    return f"{noise}; masks hide each party's sums while {masks}" if noise else masks


def assumption(plan: Plan, of: Literal["noise", "masks"]) -> str:
    """Return what the noise, or the masks, of a plan rest on: the clauses of all its settings."""
    trust = plan.noise.trust.condition if of == "noise" and plan.noise else ""
    stated = (row.condition for row in rows())
    clauses = [each.clause(plan) for each in stated if isinstance(each, Assumes) and each.of == of]
    return " and ".join(clause for clause in (trust, *clauses) if clause)


def joint_condition(plans: Iterable[Plan]) -> str:
    """Return the condition of a promise for all these plans' sessions, a clause after "while"."""
    return "; and ".join(dict.fromkeys(plan.condition for plan in plans))


def is_clause(value: object) -> bool:
    """Return whether a file's value can be a condition: a printable text of bounded length, or empty."""
    return isinstance(value, str) and len(value) <= MAX_CONDITION and (value + " ").isprintable()
