"""Counts, then Newton rounds: proportional hazards as a few sums of score and information under one budget.

This module decides the plans, their price and their order; ``estimates.hazard`` computes where the rounds start and
``estimates.score`` the step between them, and ``inference.hazards`` reads the releases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from privstats.course.base import Releases, history
from privstats.course.counting import count_plan
from privstats.course.newton import check_numbers, rounds_of, stepped
from privstats.course.planned import Planned, require_plan
from privstats.course.promise import Promise, part_of, promised
from privstats.dp import Privacy
from privstats.errors import PlanError, ReleaseError, SchemaError
from privstats.estimates.hazard import cumulative_half, shrunk_hazards
from privstats.moments import Moments, exact_moments
from privstats.moments.measurement import Unreadable
from privstats.plan import Cohort, Plan
from privstats.release import Release
from privstats.schema import CountSchema, HazardSchema, narrowed
from privstats.schema.public_values import Published, Values

__all__ = ["Hazard", "first_weights", "hazard_weights"]

_COUNTS = 0.06  # of mu^2; .02 to .15 makes no difference to the ratios
_ROUNDS = 4


@dataclass(frozen=True)
class Hazard(Planned):
    """Counts of bin, event and arm, then ``rounds`` sums of score and information with equal noise.

    The counts give the hazards at which the rounds start, and beside them survival curves, the log-rank test and the
    check of proportionality. One person is one row, over all periods: that is the unit of every session.

    Args:
        plan: the plan of a round, as :meth:`start` builds it: of a ``HazardSchema``, at the weights that follow from
            the schema alone, which are those of the first round where the counts end without a sum.
        by: the column of 0 and 1 that is crossed with bins and events, such as the arm; None for none.
        rounds: T; four, and six where a hazard ratio above 2 or below .5 is expected.
        retries: further rounds that the budget holds, for those that end without a sum.
        promise: the owners' promise for all sessions together, for files and audits.

    Raises:
        PlanError: another schema, other weights, a number out of range, a column that is none, or a promise that the
            sessions do not keep.

    Guarantee:
        All sessions together are mu-GDP with :attr:`mu`, for the unit and adjacency of the plan: the counts at 6 % of
        mu^2, and rounds and retries with equal parts of the rest. The bound of a round holds for every w, and sessions
        compose (see :class:`Course`).

    Example:
        >>> schema = ps.HazardSchema(
        ...     2,
        ...     clip_norm=2.0,
        ...     bins=ps.Bins("months", (0, 6, 12, 24)),
        ...     event="died",
        ...     feature_names=("arm",),
        ...     transform=(ps.transforms.ConstantFeature(1.0),),
        ... )
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-6)
        >>> course = ps.Hazard.start(schema, ps.Cohort(2, 2, 10_000), privacy, by="arm")
        >>> course.most, course.first.schema.tables, round(course.epsilon(1e-6), 3)
        (5, (('months', 'died', 'arm'),), 3.0)
    """

    label = "hazard"
    plan: Plan
    by: str | None = None
    rounds: int = _ROUNDS
    retries: int = 0
    promise: Promise | None = field(default=None, compare=False)

    def _require(self) -> None:
        require_plan("plan", self.plan)
        schema = _require_hazards(self.plan)
        promised(self.plan)
        check_numbers(self.rounds, self.retries)
        published = _published(first_weights(schema))
        if self.plan.published is None or self.plan.published.sha256 != published.sha256:
            raise PlanError("the plan publishes other weights than its schema starts from; use Hazard.start")
        object.__setattr__(self, "plan", replace(self.plan, published=published))
        _ = self.first  # refuses by, and forces the noise of the counts

    @classmethod
    def start(
        cls,
        schema: HazardSchema,
        cohort: Cohort,
        privacy: Privacy,
        *,
        by: str | None = None,
        rounds: int = _ROUNDS,
        retries: int = 0,
    ) -> Hazard:
        """The course that keeps a promise as a whole.

        Args:
            schema: what each round measures.
            cohort: of every session.
            privacy: what all sessions may spend together.
            by, rounds, retries: as for the class.

        Raises:
            PlanError: as for the class.
        """
        if not isinstance(privacy, Privacy):
            raise PlanError("rounds of hazards need differential privacy: give privacy=Privacy(...)")
        whole = cls.whole(schema=schema, cohort=cohort, privacy=privacy)
        return cls.within(whole, by, rounds, retries)

    @classmethod
    def within(cls, whole: Plan, by: str | None = None, rounds: int = _ROUNDS, retries: int = 0) -> Hazard:
        """The course that keeps a plan's promise as a whole.

        Args:
            whole: the plan of every round but for its epsilon, at the weights that its schema starts from, as
                :meth:`whole` builds it: its promise is what all sessions may spend together.
            by, rounds, retries: as for the class.

        Raises:
            PlanError: as for the class.
        """
        _require_hazards(whole)
        check_numbers(rounds, retries)
        part = part_of(whole, (1 - _COUNTS) / (rounds + retries), getattr(whole.privacy, "shares", None))
        return cls(replace(whole, privacy=part), by, rounds, retries, Promise.of(whole))

    @staticmethod
    def whole(*, schema: HazardSchema, **terms: Any) -> Plan:
        """A plan at the weights that follow from its schema alone, for :meth:`within`.

        Args:
            schema: what each round measures.
            terms: the other arguments of ``Plan``, ``cohort`` and ``privacy`` among them.
        """
        refusal = PlanError(f"a course of hazards takes a HazardSchema, got {type(schema).__name__}")
        known = narrowed(schema, HazardSchema, refusal)
        return Plan(schema=known, **{**terms, "published": _published(first_weights(known))})

    @property
    def schema(self) -> HazardSchema:
        """The schema of every round."""
        return _require_hazards(self.plan)

    @cached_property
    def first(self) -> Plan:
        """The plan of the counts."""
        try:
            counted = self.schema.counted(self.by)
        except SchemaError as error:
            raise PlanError(str(error)) from None
        return count_plan(self.plan, counted, (self.rounds + self.retries) * _COUNTS / (1 - _COUNTS))

    @property
    def priced(self) -> tuple[Plan, ...]:
        """The counts, and a plan for every round and retry."""
        return (self.first,) + (self.plan,) * (self.rounds + self.retries)

    def _said(self) -> bytes:
        return msgspec.json.encode((self.plan.digest, self.by, self.rounds, self.retries))

    def next(self, releases: Releases) -> Plan | None:
        """The plan after these sessions; a round that ended without a sum publishes its weights again."""
        if not releases:
            return self.first
        counts, have = releases[0], rounds_of(self.plan, releases[1:])
        if counts is not None and counts.plan != self.first:
            raise PlanError("the first release is not of this course's counts; give the releases in order")
        if len(have) >= self.rounds or len(releases) >= self.most:
            return None
        weights = hazard_weights(self.schema, counts, have)[-1]
        return replace(self.plan, published=_published(weights, history(releases)))

    def admits(
        self, X: Any, y: Any, unreadable: Unreadable = "refuse", measured: Callable[..., Moments] = exact_moments
    ) -> None:
        """Refuse records before the counts that a round would refuse: counts do not read every column.

        ``measured`` measures them where they are, such as ``engines.dask.measure``.

        Raises:
            DataError: records that do not fit the schema.
        """
        measured(self.schema, X, y, published=self.plan.published, unreadable=unreadable)


def _require_hazards(plan: object) -> HazardSchema:
    refusal = PlanError("plan must be a Plan of a HazardSchema; build the course with Hazard.start(schema, ...)")
    if not isinstance(plan, Plan):
        raise refusal
    return narrowed(plan.schema, HazardSchema, refusal)


def first_weights(schema: HazardSchema, counts: Release | None = None) -> Values:
    """The weights of the first round: no ratios, and the hazards that the counts show, or one half over all bins.

    Args:
        schema: of the rounds.
        counts: the release of the counts; None for one without a sum.

    Raises:
        ReleaseError: it is no release of this schema's counts.
    """
    hazards = cumulative_half(schema.periods)
    if counts is not None:
        found = narrowed(counts.plan.schema, CountSchema, ReleaseError(_NO_COUNTS))
        if found.variables[:2] != schema.clock.variables:
            raise ReleaseError(_NO_COUNTS)
        cells = np.asarray(counts.moments.T).reshape(*found.shape(found.tables[0])[:2], -1)
        by_event = cells.sum(axis=2)
        staying = np.cumsum(by_event.sum(axis=1)[::-1])[::-1][:-1]
        sigma = counts.sigma["T"] * cells.shape[2] ** 0.5
        hazards = shrunk_hazards(by_event[:-1, 1], staying, sigma)
    weights = np.log(hazards) / schema.constant
    return Values.rounded(np.concatenate([np.zeros(schema.features - 1), weights]))


_NO_COUNTS = "the first release is no count of this schema's bins and events; give all releases of one course, in order"


def hazard_weights(schema: HazardSchema, counts: Release | None, rounds: Sequence[Release]) -> list[Values]:
    """The weights of every round, and of the next one; steps are shortened to 1 / R, as those of a Poisson regression.

    Args:
        schema: of the rounds.
        counts: the release of the counts; None for one without a sum.
        rounds: those that ended with a sum, in order.

    Raises:
        ReleaseError: releases of another course, or out of order.
    """
    return stepped(schema, rounds, first_weights(schema, counts), schema.clip_norm)


def _published(w: Values, after: bytes = b"") -> Published:
    return Published.of({"w": w}, after)
