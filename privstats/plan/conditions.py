"""Word the condition of a promise, for every claim, and join those of several plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from privstats.dp.conditions import MAX_CONDITION
from privstats.dp.privacy import NoPrivacy
from privstats.errors import PlanError
from privstats.plan import packages
from privstats.plan.setting import Assumes
from privstats.plan.settings import rows

if TYPE_CHECKING:
    from privstats.plan.plan import Plan


_ALWAYS = ", always with the same result"
"""A further assumption: a map returns for every record. A record that ends the process would remove its party."""


def condition_of(plan: Plan) -> str:
    """Return the condition of a plan's promise, a clause after "while".

    Noise of the central and local models does not rest on the masking, so there the assumption of the noise comes
    first. Elsewhere the noise rests on all clauses.
    """
    noise, masks = assumption(plan, "noise"), assumption(plan, "masks")
    if plan.noise is None or not plan.noise.trust.condition:
        return ", and ".join(filter(None, (noise, masks)))
    return f"{noise}; masks hide each party's sums while {masks}"


def assumption(plan: Plan, of: Literal["noise", "masks"]) -> str:
    """Return what the noise, or the masks, of a plan rest on: a clause after "while"."""
    assumed = of_packages(plan) if of == "noise" else ()
    return ", and ".join(filter(None, (" and ".join(_of_settings(plan, of)), *assumed)))


def clauses(plan: Plan, of: Literal["noise", "masks"]) -> tuple[str, ...]:
    """Return the clauses of a plan's settings and packages on what its noise, or its masks, rest on."""
    return (*_of_settings(plan, of), *(of_packages(plan) if of == "noise" else ()))


def _of_settings(plan: Plan, of: Literal["noise", "masks"]) -> Iterator[str]:
    stated = (row.condition for row in rows())
    every = (each.clause(plan) for each in stated if isinstance(each, Assumes) and each.of == of)
    return (clause for clause in every if clause)


def of_packages(plan: Plan) -> tuple[str, ...]:
    """Return what a promise assumes of other packages' code, as clauses.

    The bound of one record or person needs a map, a vector or a module's gradient to follow from that record alone. The
    bound of a client holds for any: it covers all records of the client, each clipped after the map. A kind that states
    a bound is believed under every unit.
    """
    if isinstance(plan.privacy, NoPrivacy):
        return ()
    schema, alone = plan.schema, plan.privacy.unit != "client"
    package, clauses = packages.of_kind(schema), []
    if package and packages.states_bound(schema):
        clauses.append(
            f"{package} sums any records of task {schema.task!r} without an error, within the bound that it states and "
            "privstats does not prove"
        )
    elif package and alone:
        clauses.append(f"{package} maps each record of task {schema.task!r} by itself{_ALWAYS}")
    for name, places in packages.of_maps(schema).items() if alone else ():
        clauses.append(f"{name} maps each record by itself in {' and '.join(map(repr, places))}{_ALWAYS}")
    return tuple(clauses)


def joint_condition(plans: Iterable[Plan]) -> str:
    """Return the condition of a promise for all these plans' sessions, a clause after "while"."""
    return "; and ".join(dict.fromkeys(plan.condition for plan in plans))


def check_condition(condition: str) -> None:
    """Refuse a condition that no ledger and no file of a head could hold."""
    if len(condition) > MAX_CONDITION:
        raise PlanError(
            f"the condition of the promise has {len(condition):,} characters, and records hold at most "
            f"{MAX_CONDITION:,}: use fewer maps of other packages"
        )
