"""Define what a session's reports must prove: a level, and one client's maximum records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from privstats.encoding import Layout, Segment
from privstats.encoding.ring import Group
from privstats.plan import settings
from privstats.plan.cohort import Headroom
from privstats.plan.provers import PROVERS, Prover, level_for
from privstats.python_values import python_fields
from privstats.schema import Schema
from privstats.secagg import statements


class Claim(statements.Claim, Protocol):
    """The claim that a plan's reports prove, as the prover of its level implements it."""

    @property
    def tolerance(self) -> float:
        """Number of records by which a liar can exceed one client's maximum, because the grid is coarse."""

    def group(self, schema: Schema, layout: Layout) -> Group:
        """Return the algebraic group in which the statement reads wire entries."""

    def headroom(
        self, rooms: tuple[Headroom, ...], group: Group, clients: int, tail: Callable[[Segment], float]
    ) -> tuple[Headroom, ...]:
        """Return every segment's room; raise PlanError where the sums of ``clients`` clients do not fit."""


@dataclass(frozen=True)
class Validity:
    """The claim that every client proves of its sums in its one message; experimental, see docs/proofs/reports.md.

    Args:
        level: word of an installed prover (``privstats.provers``), which states what every client proves.
        most_records: maximum records of one client; public. It determines how far any liar can move the sums.

    Example:
        >>> panel = [ps.secagg.Identity.generate(os.urandom).public.hex() for _ in range(2)]
        >>> named = {"privacy": ps.NoPrivacy(), "protocol": "split", "panel": panel}
        >>> validity = ps.plan.Validity("moments", most_records=50)
        >>> schema, cohort = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0), ps.Cohort(3, 3, 100)
        >>> ps.Plan(schema=schema, cohort=cohort, validity=validity, **named).masking.statement.name
        'moments'
    """

    level: str
    most_records: int

    def __post_init__(self) -> None:
        python_fields(self)
        settings.check("validity", self)

    @property
    def prover(self) -> Prover:
        """The prover of this level."""
        return PROVERS.needed(self.level, "a plan with [validity]")

    def about(self, schema: Schema) -> Validity:
        """Return the claim about a further session's sums, whose level :func:`level_for` states."""
        return replace(self, level=level_for(self.level, schema.statements))
