"""The rows of provers of ``[validity]``: each has one level of claims that clients prove about their sums.

Help of the command line reads these rows, so a prover's module loads its proofs on use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from privstats.doors import Door, is_row
from privstats.errors import PlanError

if TYPE_CHECKING:
    from privstats.dp import NoPrivacy, Privacy
    from privstats.plan.cohort import Cohort
    from privstats.plan.validity import Claim, Validity
    from privstats.schema import Schema

ClaimOf: TypeAlias = "Callable[[Validity, Schema, Cohort, Privacy | NoPrivacy, str, int], Claim]"
"""Returns a plan's claim, from its parts, its protocol and its spare bits; raises PlanError with a remedy."""


@dataclass(frozen=True)
class Prover:
    """One level of claims.

    Attributes:
        level: the level's word in plan files.
        meaning: what every client proves, a clause for people; ``{max_records}`` stands for the maximum number of
            records.
        statements: the statements that it proves, by the names in ``Schema.statements``.
        claim_of: returns a plan's claim.
        experimental: where the unproved parts of the argument are listed, a clause; empty for a settled argument.
    """

    level: str
    meaning: str
    statements: tuple[str, ...]
    claim_of: ClaimOf
    experimental: str = ""


PROVERS: Door[Prover] = Door("privstats.provers", "prover", PlanError, is_row(Prover, "level"))
"""The provers by level, as packages and ``privstats.contrib`` announce them."""


def level_for(level: str, statements: Collection[str]) -> str:
    """Return the level at which a further session's sums are proved.

    It is ``level`` where that proves one of the sums' ``statements``, else the first level of privstats that does.
    Without any, it is ``level``, which then refuses the plan.
    """
    rows = chain([PROVERS.needed(level, "a plan with [validity]")], PROVERS.rows(of_others=False).values())
    return next((row.level for row in rows if not set(row.statements).isdisjoint(statements)), level)


def check_prover(level: str, privacy: Privacy | NoPrivacy) -> None:
    """Refuse another package's prover under a promise: its proofs could show a party's sums, and no claim names it."""
    from privstats.dp import NoPrivacy  # which loads what computes

    package = "" if isinstance(privacy, NoPrivacy) else PROVERS.origin(level)
    if package:
        raise PlanError(
            f"validity.level {level!r} is a prover of {package}, and no claim on a plan names the package whose proofs "
            "go with the sums: under a promise choose a level of privstats, or omit validity"
        )
