"""Plan counts, then Newton rounds of proportional hazards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.course.newton import check_numbers, newton_weights
from privstats.course.phases import Past, Phase, Phases
from privstats.course.planned import Phased, require_plan
from privstats.course.promise import Promise, count_plan, part_of, promised
from privstats.dp import Privacy
from privstats.errors import PlanError, ReleaseError, SchemaError
from privstats.estimates.denoise import Array
from privstats.estimates.score import cumulative_half, shrunk_hazards
from privstats.intake.accepted import RecordsLike, TargetsLike
from privstats.kinds import CountSchema, HazardSchema
from privstats.kinds.hazard_sums import PART_BITS
from privstats.moments import Moments, exact_moments
from privstats.plan import Cohort, Plan
from privstats.records.reading import Unreadable
from privstats.release import Release
from privstats.schema import Schema, narrowed
from privstats.schema.public_values import Published, Values
from privstats.transforms import Interactions

_COUNTS = 0.06  # share of mu^2; the ratios are equally good from .02 to .15
_FINE_COUNTS = 0.12  # for continuous times, which have four times as many cells
_ROUNDS = 4
_FEWEST_EARLY = 2


@dataclass(frozen=True)
class Hazard(Phased):
    """Counts of bin, event and arm, then ``rounds`` sums of score and information with equal noise.

    The counts give the starting hazards, survival curves, the log-rank test and the check of proportionality. With
    continuous times a bin has four cells, which give the part of its hazard that had passed at censoring.

    Args:
        plan: a round's plan, as :meth:`start` builds it, of a ``HazardSchema``.
        by: a column of 0 and 1, such as the arm, to cross with bins and events.
        rounds: T; six for a hazard ratio above 2 or below .5.
        retries: budgeted rounds for those without a sum.
        early_bins: two or more bins before the time that splits the follow-up in a further session, which tests
            proportionality; 0: none.

    Guarantee:
        All sessions together are mu-GDP with :attr:`mu`, for the unit and adjacency of the plan: the counts at 6 % of
        mu^2 (12 % at continuous times), and rounds, retries and the check (a round over fewer bins) with equal parts of
        the rest. A round's bound holds for every number of bins, every w and every clock, and sessions compose
        (:class:`Course`).

    Example:
        >>> schema = ps.HazardSchema(
        ...     2,
        ...     clip_norm=2.0,
        ...     bins=ps.Bins("months", (0, 6, 12, 24)),
        ...     event="died",
        ...     feature_names=("arm",),
        ...     transform=(ps.transforms.ConstantFeature(1.0),),
        ...     times="continuous",
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
    early_bins: int = field(default=0, metadata={"usual": 0})

    def _require(self) -> None:
        require_plan("plan", self.plan)
        schema = _require_hazards(self.plan)
        promised(self.plan)
        check_numbers(self.rounds, self.retries)
        _check_early(schema, self.early_bins)
        published = Published.of(first_values(schema))
        if self.plan.published is None or self.plan.published.sha256 != published.sha256:
            raise PlanError("the plan publishes other weights than its schema starts from; use Hazard.start")
        object.__setattr__(self, "plan", replace(self.plan, published=published))
        _ = self.first  # refuses an invalid by, and forces the noise of the counts

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
        early_bins: int = 0,
    ) -> Hazard:
        """Divide a total promise over the sessions."""
        if not isinstance(privacy, Privacy):
            raise PlanError("rounds of hazards need differential privacy: give privacy=Privacy(...)")
        require_times(schema)
        plan = cls.full_plan(schema=schema, cohort=cohort, privacy=privacy)
        return cls.within(plan, by, rounds, retries, early_bins)

    @classmethod
    def within(
        cls, whole: Plan, by: str | None = None, rounds: int = _ROUNDS, retries: int = 0, early_bins: int = 0
    ) -> Hazard:
        """Divide a plan's total promise over the sessions.

        Args:
            whole: a round's plan from :meth:`full_plan`, with the total promise.
        """
        check_numbers(rounds, retries)
        _check_early(schema := _require_hazards(whole), early_bins)
        parts = rounds + retries + bool(early_bins)
        part = part_of(whole, (1 - _share_of_counts(schema)) / parts, getattr(whole.privacy, "shares", None))
        return cls(replace(whole, privacy=part), by, rounds, retries, Promise.of(whole), early_bins)

    @staticmethod
    def full_plan(*, schema: HazardSchema, **terms: Any) -> Plan:
        """Return a plan at its schema's first weights, for :meth:`within`."""
        refusal = PlanError(f"a course of hazards takes a HazardSchema, got {type(schema).__name__}")
        known = narrowed(schema, HazardSchema, refusal)
        return Plan(schema=known, **{**terms, "published": Published.of(first_values(known))})

    @property
    def schema(self) -> HazardSchema:
        """Every round's schema."""
        return _require_hazards(self.plan)

    @cached_property
    def first(self) -> Plan:
        """The plan of the counts."""
        try:
            counted = self.schema.counted(self.by)
        except SchemaError as error:
            raise PlanError(str(error)) from None
        share = _share_of_counts(self.schema)
        equal_parts = self.rounds + self.retries + bool(self.early_bins)
        return count_plan(self.plan, counted, equal_parts * share / (1 - share))

    @cached_property
    def check(self) -> Plan | None:
        """The early bins' plan, if any."""
        if not self.early_bins:
            return None
        early = early_schema(self.schema, self.early_bins)
        return replace(self.plan, schema=early, published=Published.of(first_values(early)))

    @cached_property
    def phases(self) -> Phases:
        """The counts, the rounds and any check. A lost round may use the check's place."""
        counts = Phase("counts", self.first, tries=1)
        rounds = Phase("round", self.plan, self.rounds, published=self._published)
        if self.check is None:
            return Phases((counts, rounds), self.retries)
        check = Phase("early bins", self.check, published=self._published_early)
        return Phases((counts, rounds, check), self.retries)

    def _published(self, past: Past) -> Published:
        counts = past.first("counts")
        weights = hazard_weights(self.schema, counts, past.of("round"))[-1]
        return past.publish({**first_values(self.schema, counts), "w": weights})

    def _published_early(self, past: Past) -> Published:
        values = check_values(self.schema, self.early_bins, past.first("counts"), past.of("round"))
        return past.publish(values)

    @property
    def schema_read(self) -> HazardSchema:
        """The schema with the columns of every session; the counts read fewer."""
        return self.schema

    def admits(
        self,
        X: RecordsLike,
        y: TargetsLike | None,
        unreadable: Unreadable = "refuse",
        measured: Callable[..., Moments] = exact_moments,
    ) -> None:
        """Refuse records early that a round would refuse: counts do not read every column."""
        measured(self.schema, X, y, published=self.plan.published, unreadable=unreadable)


def _require_hazards(plan: object) -> HazardSchema:
    refusal = PlanError("plan must be a Plan of a HazardSchema; build the course with Hazard.start(schema, ...)")
    if not isinstance(plan, Plan):
        raise refusal
    return narrowed(plan.schema, HazardSchema, refusal)


def _check_early(schema: HazardSchema, early_bins: object) -> None:
    if type(early_bins) is not int or (early_bins != 0 and not _FEWEST_EARLY <= early_bins < schema.periods):
        raise PlanError(
            f"early_bins must be an integer from {_FEWEST_EARLY} to {schema.periods - 1}, the bins before the time "
            f"that splits the follow-up for the check of proportionality, or 0 for no check; got {early_bins!r}"
        )
    if early_bins and schema.ratios:
        raise PlanError("early_bins compares cause-specific ratios: omit it with ratios='subdistribution'")
    if early_bins and any(isinstance(map_, Interactions) for map_ in schema.transform):
        raise PlanError(
            "early_bins and interactions cannot be combined: a column with a product has no single ratio to compare "
            "before and after; omit one of both"
        )


def early_schema(schema: HazardSchema, early_bins: int) -> HazardSchema:
    """Return the schema over the first bins: persons observed beyond are censored at their end."""
    return replace(schema, bins=replace(schema.bins, edges=schema.bins.edges[: early_bins + 1]))


def require_times(schema: Schema) -> None:
    """Refuse a new course of hazards without ``times``."""
    if isinstance(schema, HazardSchema) and schema.times is None:
        raise PlanError(
            "times must be stated: HazardSchema(..., times='continuous') where people leave at any time in a bin, "
            "'discrete' where a bin is one visit; otherwise a person who leaves inside a bin would count as at risk "
            "for all of it"
        )


def _share_of_counts(schema: HazardSchema) -> float:
    return _FINE_COUNTS if schema.times == "continuous" else _COUNTS


def first_values(schema: HazardSchema, counts: Release | None = None) -> dict[str, Values]:
    """Return the first round's weights, without hazard ratios, and clock c for continuous times.

    Without counts: a hazard of one half over all bins, and even cells.
    """
    hazards, passing, leaving = cumulative_half(schema.periods), np.diff(schema.marks), np.zeros(len(schema.in_bin))
    if counts is not None:
        hazards, passing, leaving = _hazards_of(schema, counts)
    every = (hazards, passing, leaving)
    hazards, passing, leaving = (np.broadcast_to(each, (schema.baselines, each.shape[-1])) for each in every)
    weights = np.concatenate([np.zeros(schema.features - 1), np.log(hazards).ravel() / schema.constant])
    clock = {"c": _clock(passing, schema.in_bin)} if schema.times == "continuous" else {}
    return {"w": Values.rounded(weights), **clock, **({"G": _staying(leaving, schema.times)} if schema.ratios else {})}


def _staying(leaving: Array, times: str | None) -> Values:
    """Return the share of persons who have not left by the middle of a cell, or at discrete times before its visit."""
    before = np.cumsum(leaving, axis=1) - leaving * (1.0 if times == "discrete" else 0.5)
    shares = np.rint(np.exp(-before) * (1 << PART_BITS)).astype(np.int64)
    return Values(np.maximum(shares, 1).ravel(), PART_BITS)


def _hazards_of(schema: HazardSchema, counts: Release) -> tuple[Array, Array, Array]:
    released, known = narrowed(counts.plan.schema, CountSchema, ReleaseError(_NO_COUNTS)), schema.counted().variables
    if released.variables[: len(known)] != known:
        raise ReleaseError(_NO_COUNTS)
    exits, *enters = released.tables
    T = np.asarray(counts.moments.T)
    cells = T[released.place(exits)].reshape(*released.shape(exits)[:2], schema.baselines, -1)
    sigma = counts.sigma["T"] * cells.shape[3] ** 0.5
    entries = np.zeros((schema.baselines, len(cells)))
    if enters:
        entries = T[released.place(enters[0])].reshape(len(cells), schema.baselines, -1).sum(axis=2).T
    by_stratum = zip(np.moveaxis(cells.sum(axis=3), 2, 0), entries, strict=True)
    several = [_hazards_in(schema, each, sigma, entered) for each, entered in by_stratum]
    bins, marks, leaving = (np.stack([each[place] for each in several]) for place in range(3))
    return bins, marks, leaving


def _hazards_in(schema: HazardSchema, by_event: Array, sigma: float, entries: Array) -> tuple[Array, Array, Array]:
    """Return bins' and cells' hazards, and cells' hazards of leaving without an event.

    Who enters in a cell is at risk for half of it if times are continuous.
    """
    staying, events = np.cumsum((by_event.sum(axis=1) - entries)[::-1])[::-1][:-1], by_event[:-1, 1]
    if schema.times == "continuous":
        staying = staying + entries[:-1] / 2
    of = schema.in_bin
    starts, within = np.searchsorted(of, np.arange(schema.periods)), float(np.bincount(of).max()) ** 0.5
    widths = np.diff(schema.marks) / np.diff(schema.marks).mean()
    hazards = shrunk_hazards(np.add.reduceat(events, starts), staying[starts], sigma * within)
    # Who has an event in a cell could have left before it, for half of the cell if times are continuous.
    could = staying - by_event[:-1, 1:].sum(axis=1) * (1.0 if schema.times == "discrete" else 0.5)
    leaving = shrunk_hazards(by_event[:-1, 0], could * widths, sigma) * widths
    return hazards, shrunk_hazards(events, staying * widths, sigma) * widths, leaving


def _clock(hazards: Array, of: NDArray[np.intp]) -> Values:
    passed = np.cumsum(hazards, axis=1)
    ends = passed[:, np.searchsorted(of, of, side="right") - 1]
    totals = np.stack([np.bincount(of, each)[of] for each in hazards])
    parts = np.rint((1 - (ends - passed) / totals) * (1 << PART_BITS))
    return Values(np.clip(parts, 0, 1 << PART_BITS).astype(np.int64).ravel(), PART_BITS)


_NO_COUNTS = "the first release is no count of this schema's bins and events; give all releases of one course, in order"


def hazard_weights(schema: HazardSchema, counts: Release | None, rounds: Sequence[Release]) -> list[Values]:
    """Return the weights of every round and the next; steps are shortened to 1 / R.

    Args:
        counts: the counts' release; None: no sum.
        rounds: those with a sum, in order.
    """
    return newton_weights(schema, rounds, first_values(schema, counts), schema.clip_norm)


def check_values(
    schema: HazardSchema, early_bins: int, counts: Release | None, rounds: Sequence[Release]
) -> dict[str, Values]:
    """Return the last round's weights and clock, restricted to the early bins."""
    weights = hazard_weights(schema, counts, rounds)[len(rounds) - 1]
    columns, clock = schema.features - 1, first_values(schema, counts).get("c")
    of_bins = weights.integers[columns:].reshape(schema.baselines, -1)[:, :early_bins]
    values = {"w": Values(np.r_[weights.integers[:columns], of_bins.ravel()], weights.exponent)}
    if clock is None:
        return values
    cells = clock.integers.reshape(schema.baselines, -1)[:, schema.in_bin < early_bins]
    return {**values, "c": Values(np.ascontiguousarray(cells).ravel(), clock.exponent)}
