"""State a promise's condition, and join those of several plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from privstats.plan.setting import Assumes
from privstats.plan.settings import rows

if TYPE_CHECKING:
    from privstats.plan.plan import Plan


def condition_of(plan: Plan) -> str:
    """Return the condition of a plan's promise, a clause after "while".

    Noise of the central and local models does not rest on the masking, so there the assumption of the noise comes
    first. Elsewhere the noise rests on all clauses.
    """
    noise, masks = clauses(plan, "noise"), clauses(plan, "masks")
    if plan.noise is None or not plan.noise.trust.condition:
        return " and ".join((*noise, *masks))
    return f"{' and '.join(noise)}; masks hide each party's sums while {' and '.join(masks)}"


def assumption(plan: Plan, of: Literal["noise", "masks"]) -> str:
    """Return what the noise, or the masks, of a plan rest on: a clause after "while"."""
    return " and ".join(clauses(plan, of))


def clauses(plan: Plan, of: Literal["noise", "masks"]) -> tuple[str, ...]:
    """Return the clauses of a plan's settings on what its noise, or its masks, rest on."""
    stated = (row.condition for row in rows())
    every = (each.clause(plan) for each in stated if isinstance(each, Assumes) and each.of == of)
    return tuple(clause for clause in every if clause)


def joint_condition(plans: Iterable[Plan]) -> str:
    """Return the condition of a promise for all these plans' sessions, a clause after "while"."""
    return "; and ".join(dict.fromkeys(plan.condition for plan in plans))
