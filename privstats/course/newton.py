"""Plan Newton rounds of a logistic or Poisson regression."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from privstats.course.phases import Past, Phase, Phases
from privstats.course.planned import Phased
from privstats.course.promise import Promise, part_of
from privstats.dp import NoPrivacy, Privacy
from privstats.errors import PlanError, ReleaseError
from privstats.estimates.score import damped_step, start
from privstats.kinds import ScoreSchema
from privstats.plan import Cohort, Plan
from privstats.release import Release
from privstats.schema import Schema, narrowed
from privstats.schema.public_values import Published, Values

_MOST_ROUNDS = 64
_REPORTED = 1.5  # minimum ratio of a column's information to the noise matrix's size, as measured
# Without a stated rate counts are taken to average so much, or a sixtieth of their bound if that is more.
_USUAL_MEAN, _GENEROUS = 0.4, 60.0


@dataclass(frozen=True)
class Newton(Phased):
    """``rounds`` sums of score and information with equal noise, each at weights from the rounds before.

    Args:
        first: the first round's plan, as :meth:`start` builds it, of a ``ScoreSchema``.
        rounds: T; four suit a logistic, five a Poisson regression, more suit rare outcomes.
        retries: budgeted rounds for those without a sum.

    Guarantee:
        All rounds and retries together are mu-GDP with :attr:`mu` = sqrt(rounds + retries) times the first plan's, for
        its unit and adjacency: a round's bound holds for every w, and rounds compose (:class:`Course`).

    Example:
        >>> schema = ps.ScoreSchema(2, clip_norm=2.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> course = ps.Newton.start(schema, ps.Cohort(2, 2, 1_000), privacy)
        >>> course.rounds, round(course.epsilon(1e-6), 3)  # of all rounds together
        (4, 8.0)
    """

    label = "newton"
    first: Plan
    rounds: int = 4
    retries: int = 0
    promise: Promise | None = field(default=None, compare=False)

    def _require(self) -> None:
        _require_intercept(_require_scores(self.first))
        check_numbers(self.rounds, self.retries)
        published = _first_weights(self.schema)
        if self.first.published is None or self.first.published.sha256 != published.sha256:
            raise PlanError("the first plan publishes other weights than its schema starts from; use Newton.start")
        object.__setattr__(self, "first", replace(self.first, published=published))

    @classmethod
    def start(
        cls, schema: ScoreSchema, cohort: Cohort, privacy: Privacy, rounds: int | None = None, *, retries: int = 0
    ) -> Newton:
        """Divide a total promise over the rounds.

        Args:
            privacy: the promise, retries included.
            rounds: as in :meth:`within`.
        """
        if isinstance(privacy, NoPrivacy) or not isinstance(privacy, Privacy):
            raise PlanError("rounds of scores need differential privacy: give privacy=Privacy(...)")
        return cls.within(cls.full_plan(schema=schema, cohort=cohort, privacy=privacy), rounds, retries=retries)

    @classmethod
    def within(cls, whole: Plan, rounds: int | None = None, *, retries: int = 0) -> Newton:
        """Divide a plan's total promise over the rounds.

        Args:
            whole: a round's plan from :meth:`full_plan`, with the total promise.
            rounds: T; None: 4 for a logistic, 5 for a Poisson regression.

        Raises:
            PlanError: also where noise would hide a Poisson regression's coefficients.
        """
        schema = _require_scores(whole)
        rounds = (5 if schema.family == "poisson" else 4) if rounds is None else rounds
        check_numbers(rounds, retries)
        part = part_of(whole, 1 / (rounds + retries), getattr(whole.privacy, "shares", None))
        course = cls(replace(whole, privacy=part), rounds, retries, Promise.of(whole))
        _refuse_bound(schema, course.first)
        return course

    @staticmethod
    def full_plan(*, schema: ScoreSchema, **terms: Any) -> Plan:
        """Return a plan at its schema's first weights, for :meth:`within`."""
        return Plan(schema=schema, **{**terms, "published": _first_weights(schema)})

    @property
    def schema(self) -> ScoreSchema:
        """Every round's schema."""
        return _require_scores(self.first)

    @cached_property
    def phases(self) -> Phases:
        """The rounds."""
        return Phases((Phase("round", self.first, self.rounds, published=self._published),), self.retries)

    def _published(self, past: Past) -> Published:
        return past.publish({"w": weights_after(self.schema, past.of("round"))[-1]})


def _refuse_bound(schema: ScoreSchema, plan: Plan) -> None:
    """Refuse a bound on counts under which noise hides the coefficients.

    Noise grows with the bound Y. Information n m R^2 / 3 d per column (m the mean count) must pass 1.5 sigma sqrt(2 d),
    the noise matrix's size (benchmarks/inference/numbers.md).
    """
    if schema.family != "poisson" or plan.noise is None:
        return
    records, d = plan.cohort.max_records, schema.features
    sigma = plan.noise.released_sigma(plan.cohort.min_survivors)["H"]
    least = 3 * _REPORTED * d * sigma * math.sqrt(2 * d) / (records * schema.clip_norm**2)
    if least > (_at_most(schema) or max(schema.outcome / _GENEROUS, _USUAL_MEAN)):
        stated = f", and rate is {schema.rate:g}" if schema.rate else ""
        known = "" if schema.rate else ", or rate= the mean count where counts are so large"
        raise PlanError(
            f"target_bound {schema.outcome:g} would hide most coefficients: noise grows with it, and counts must "
            f"average {least:.2g} or more over {records:,} records{stated}; take a smaller target_bound, which clips "
            f"counts beyond it, fewer columns, more records, a larger epsilon{known}"
        )


def _require_intercept(schema: ScoreSchema) -> None:
    if schema.exposure is not None and schema.constant is None:
        raise PlanError("exposure needs an intercept, the log of the rate: end the transform in ConstantFeature")
    if schema.overdispersion is not None and schema.constant is None:
        raise PlanError("overdispersion needs an intercept, which counts events: end the transform in ConstantFeature")


def _at_most(schema: ScoreSchema) -> float | None:
    """Return the stated mean count, at the largest exposure where the rate is per exposure."""
    return None if schema.rate is None else schema.rate * (schema.exposure_bound or 1.0)


def _require_scores(plan: object) -> ScoreSchema:
    refusal = PlanError("first must be a Plan of a ScoreSchema; build the course with Newton.start(schema, ...)")
    if not isinstance(plan, Plan):
        raise refusal
    return narrowed(plan.schema, ScoreSchema, refusal)


def check_numbers(rounds: object, retries: object) -> None:
    """Refuse numbers out of range."""
    for name, value, least in (("rounds", rounds, 1), ("retries", retries, 0)):
        if type(value) is not int or not least <= value <= _MOST_ROUNDS:
            raise PlanError(f"{name} must be an integer from {least} to {_MOST_ROUNDS}, got {value!r}")


def weights_after(schema: ScoreSchema, releases: Sequence[Release]) -> list[Values]:
    """Return every round's weights and the next."""
    first = Values.rounded(start(schema.features, schema.family, _at_most(schema), schema.constant))
    radius = schema.clip_norm if schema.family == "poisson" else None
    return newton_weights(schema, releases, {"w": first}, radius, schema.parts)


def newton_weights(
    schema: Schema,
    releases: Sequence[Release],
    first: Mapping[str, Values],
    radius: float | None,
    parts: Sequence[slice] = (slice(None),),
) -> list[Values]:
    """Return every round's weights and the next.

    Published values near the recomputed ones are used as they are; a digest alone must match.

    Args:
        releases: those with a sum, in order.
        first: the first round's w, and values that every round publishes.
        radius: R, where steps are shortened to 1 / R.
        parts: slices of w with separate steps; information between slices is noise alone.
    """
    weights = [first["w"]]
    for place, release in enumerate(releases):
        held = release.plan.published
        if held is None or release.plan.schema != schema:
            raise ReleaseError(
                f"release {place} is no round of this regression; give all releases of one Newton course"
            )
        if held.values is not None:
            if not held.values["w"].near(weights[-1]):
                raise ReleaseError(
                    f"release {place} was made at other weights than follow from those before it: the "
                    "releases are out of order, or of different courses"
                )
            weights[-1] = held.values["w"]
        elif held.sha256 != Published.of({**first, "w": weights[-1]}).sha256:
            raise ReleaseError(
                f"release {place} was made at other weights than follow from those before it: the releases are out of "
                "order, of different courses, or made on a machine that rounds otherwise"
            )
        g, H = np.asarray(release.moments.g), np.asarray(release.moments.H)
        step = np.concatenate([damped_step(g[part], H[part, part], release.sigma["H"], radius) for part in parts])
        weights.append(Values.rounded(weights[-1].real + step))
    return weights


def _first_weights(schema: ScoreSchema) -> Published:
    return Published.of({"w": weights_after(schema, ())[-1]})
