"""Two rounds of whole parties: one direction of each, then its update to weights that follow from their noisy sum.

This module decides the plans, their price and their order; ``moments.parties`` descends, and
``heads.PartyDiscriminant`` adds the two sums.

A second round of parties is a kind of schema, and not an option of the first. Parties of one plan must send the same,
so another direction has another word, and an older version refuses it by that word. It is a subclass, because bound,
grid and promise are those of the first; what differs is what it reads (``needs``) and that no head is built from it
alone. The start has one length for all data: how long the noisy sum is says more of the number of parties and of the
noise than of the classes. A head computes the second plan again from the first release, so that two rounds are read
together only if one follows from the other; the start is therefore the same bits on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privstats.course.base import PLACEHOLDER, Releases, history
from privstats.course.planned import Planned
from privstats.course.promise import Promise, part_of, record_mu
from privstats.errors import PlanError
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import PartySchema, PartyUpdateSchema
from privstats.schema.public_values import Published, Values

__all__ = ["PartyRounds"]

_ROUNDS = 2
_LENGTH = 16.0  # of the published weights, for every data set (docs/papers_and_peers.md)


@dataclass(frozen=True)
class PartyRounds(Planned):
    """A sum of directions, then one of updates from it: P1, and P2 at ``W = 16 P1 / |P1|``, each at half of mu^2.

    Where noise hides P1, W is a direction by chance, and P1 + P2 still says what one sum of all of mu^2 would.

    Args:
        first: the plan of the first round, of a ``PartySchema``. If the promise of both rounds is given,
            :meth:`within` divides it.
        promise: the owners' promise for both rounds together, for files and audits.

    Raises:
        PlanError: another schema, no DP, or a promise that the rounds do not keep.

    Guarantee:
        Both rounds together are mu-GDP with :attr:`mu` = sqrt(2) times the first plan's, for whole parties and its
        adjacency: the bound of a round holds for every W (:class:`~privstats.PartyUpdateSchema`), and rounds compose
        (see :class:`Course`).

    Example:
        >>> privacy = ps.Privacy(
        ...     model="central",
        ...     unit="client",
        ...     max_records_per_client=1,
        ...     adjacency="add-remove",
        ...     epsilon=8.0,
        ...     delta=1e-5,
        ... )
        >>> whole = ps.Plan(schema=ps.PartySchema(3, 4), cohort=ps.Cohort(20, 20, 20), privacy=privacy)
        >>> course = ps.PartyRounds.within(whole)
        >>> course.most, round(course.epsilon(1e-5), 3)  # of both rounds together
        (2, 8.0)
    """

    label = "parties"
    first: Plan
    promise: Promise | None = field(default=None, compare=False)

    def _require(self) -> None:
        _require_parties(self.first)

    @classmethod
    def within(cls, whole: Plan) -> PartyRounds:
        """The course that keeps a plan's promise as a whole.

        Args:
            whole: the plan but for its epsilon: its promise is what both rounds may spend together.

        Raises:
            PlanError: as for the class.
        """
        _require_parties(whole)
        return cls(replace(whole, privacy=part_of(whole, 1 / _ROUNDS, None)), Promise.of(whole))

    @cached_property
    def update(self) -> Plan:
        """The plan of the second round, at placeholder weights."""
        schema = PartyUpdateSchema.of(_require_parties(self.first))
        return replace(self.first, schema=schema, published=PLACEHOLDER)

    @property
    def priced(self) -> tuple[Plan, ...]:
        """The two plans; an update costs the same at all weights."""
        return (self.first, self.update)

    def _said(self) -> bytes:
        return bytes.fromhex(self.first.digest)

    def next(self, releases: Releases) -> Plan | None:
        """The plan of the directions, that of the updates, then None; without a sum of directions, that plan again.

        Raises:
            PlanError: the release is of another plan than :attr:`first`.
        """
        if len(releases) > 1:
            return None
        first = releases[0] if releases else None
        if first is None:
            return self.first
        if first.plan != self.first:
            raise PlanError("release 0 is not of this course; give the release of its first round")
        return replace(self.update, published=Published.of({"W": _start(first)}, history(releases)))


def _require_parties(plan: object) -> PartySchema:
    """The schema; refuse another plan than one of directions of parties under a promise."""
    if not isinstance(plan, Plan) or type(plan.schema) is not PartySchema:
        raise PlanError(
            "two rounds of parties need a Plan of a PartySchema; use Rounds for a ClassSchema or RidgeSchema"
        )
    record_mu(plan)  # refuses a plan without DP
    return plan.schema


def _start(first: Release) -> Values:
    """The noisy sum, brought to a fixed length: how long it is says more of the cohort and the noise than of classes.

    No sum of floats depends on its order, so every machine gets the same bits.
    """
    total: NDArray[np.float64] = np.asarray(first.moments.P, np.float64)
    length = math.sqrt(math.fsum(np.square(total).ravel()))
    return Values.rounded(_LENGTH * total / (length or 1.0))
