"""A treatment effect in two sessions: the outcome lines of both arms, then each record's influence on the effect.

This module decides the plans, their price and their order; ``inference.effect`` reads the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from privstats.course.base import Releases, history
from privstats.course.planned import Planned, require_plan
from privstats.course.promise import Promise, part_of
from privstats.dp import NoPrivacy, Privacy
from privstats.errors import PlanError, RecordError, ReleaseError
from privstats.estimates.effect import ArmSums, outcome_lines
from privstats.moments import Moments, exact_moments
from privstats.moments.measurement import Unreadable
from privstats.plan import Cohort, Plan
from privstats.release import Release
from privstats.schema import EffectSchema, RidgeSchema, narrowed
from privstats.schema.public_values import Published, Values
from privstats.transforms import ByArm, ConstantFeature

__all__ = ["Effect", "arm_sums", "published_line"]

_MOST_RETRIES = 16
_MOST_SHARE = 0.5


@dataclass(frozen=True)
class Effect(Planned):
    """The outcome lines of both arms, then influence values at those lines: the effect of a randomised treatment.

    The lines only make the interval shorter: it holds whether they are right or wrong, or left out with ``share=0``,
    which is narrower below some 500 records at epsilon 1.

    Args:
        plan: the plan of the last session, as :meth:`start` builds it: of an ``EffectSchema``, at lines of 0.
        share: the outcome session's part of mu^2, up to .5; 0 leaves that session out.
        retries: further sessions that the budget holds, each at the price of the last, for those without a sum.
        promise: the owners' promise for all sessions together, for files and audits.

    Raises:
        PlanError: another schema, one without a known probability, a number out of range, or a promise that the
            sessions do not keep.

    Guarantee:
        All sessions and retries together are mu-GDP with :attr:`mu`, for the plan's unit and adjacency: the bound of
        the last session holds for every published line, and sessions compose (:class:`Course`).

    Example:
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-6)
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 5_000), privacy)
        >>> [plan.schema.task for plan in course.priced], round(course.epsilon(1e-6), 3)
        (['ridge', 'effect'], 3.0)
    """

    label = "effect"
    plan: Plan
    share: float = field(default=0.1, metadata={"usual": 0.1})
    retries: int = field(default=0, metadata={"usual": 0})
    promise: Promise | None = field(default=None, compare=False)

    def _require(self) -> None:
        schema = _require_effect(self.plan)
        _check_numbers(self.share, self.retries)
        started = Published.of(_zero(schema))
        if self.plan.published is None or self.plan.published.sha256 != started.sha256:
            raise PlanError("the plan publishes other lines than the course starts from; use Effect.start")
        object.__setattr__(self, "plan", replace(self.plan, published=started))
        _ = self.outcome  # forces the noise of both

    @classmethod
    def start(
        cls,
        schema: EffectSchema,
        cohort: Cohort,
        privacy: Privacy,
        *,
        adjust: bool = True,
        share: float = 0.1,
        retries: int = 0,
    ) -> Effect:
        """The course that keeps a promise as a whole.

        Args:
            schema: of the last session; :meth:`EffectSchema.of` builds it from public ranges.
            cohort: of every session.
            privacy: what all sessions and retries may spend together.
            adjust: False leaves the outcome lines out, as ``share=0`` does.
            share, retries: as for the class.

        Raises:
            PlanError: as for the class.
        """
        if isinstance(privacy, NoPrivacy) or not isinstance(privacy, Privacy):
            raise PlanError("influence values need differential privacy: give privacy=Privacy(...)")
        whole = cls.whole(schema=schema, cohort=cohort, privacy=privacy)
        return cls.within(whole, share=share if adjust else 0.0, retries=retries)

    @classmethod
    def within(cls, whole: Plan, *, share: float = 0.1, retries: int = 0) -> Effect:
        """The course that keeps a plan's promise as a whole.

        Args:
            whole: the plan of the last session but for its epsilon, at lines of 0, as :meth:`whole` builds it: its
                promise is what all sessions and retries may spend together.
            share, retries: as for the class.

        Raises:
            PlanError: as for the class.
        """
        _require_effect(whole)
        _check_numbers(share, retries)
        part = part_of(whole, (1 - share) / (1 + retries), getattr(whole.privacy, "shares", None))
        return cls(replace(whole, privacy=part), float(share), retries, Promise.of(whole))

    @staticmethod
    def whole(*, schema: EffectSchema, **terms: Any) -> Plan:
        """A plan at lines of 0, for :meth:`within`.

        Args:
            schema: of the last session.
            terms: the other arguments of ``Plan``, ``cohort`` and ``privacy`` among them.
        """
        return Plan(schema=schema, **{**terms, "published": Published.of(_zero(schema))})

    @property
    def schema(self) -> EffectSchema:
        """The schema of the last session."""
        return _require_effect(self.plan)

    @cached_property
    def outcome(self) -> Plan | None:
        """The plan of the outcome lines; None where they are left out."""
        if not self.share:
            return None
        privacy = part_of(self.plan, self.share * (1 + self.retries) / (1 - self.share), None)
        return replace(self.plan, schema=self.schema.rows, privacy=privacy, published=None)

    @property
    def first(self) -> Plan:
        """The plan of the first session."""
        return self.plan if self.outcome is None else self.outcome

    @property
    def priced(self) -> tuple[Plan, ...]:
        """A plan for every session and retry."""
        return (*([] if self.outcome is None else [self.outcome]), *[self.plan] * (1 + self.retries))

    def _said(self) -> bytes:
        return msgspec.json.encode((self.plan.digest, self.share, self.retries))

    def next(self, releases: Releases) -> Plan | None:
        """The plan of session ``len(releases)``; one that ended without a sum is held again while retries last.

        Raises:
            PlanError: a release is of another plan than this course's.
        """
        if not releases:
            return self.first
        have = [each for each in releases if each is not None]
        if len(releases) - len(have) > self.retries or len(have) > (self.outcome is not None):
            return None
        if have and have[0].plan != self.outcome:
            raise PlanError("release 0 is not of this course; give the releases of its own sessions, in order")
        if not have and self.outcome is not None:
            return self.outcome
        return replace(self.plan, published=Published.of(_published(self.schema, have), history(releases)))

    def admits(
        self, X: Any, y: Any, unreadable: Unreadable = "refuse", measured: Callable[..., Moments] = exact_moments
    ) -> None:
        """Refuse records before the first session that a later one would refuse.

        ``measured`` measures them where they are, such as ``engines.dask.measure``.

        Raises:
            DataError: records that do not fit the plan's schema.
            RecordError: one that cannot be read, or whose arm is neither 0 nor 1.
        """
        try:
            measured(self.schema.rows, X, y, unreadable=unreadable)
        except RecordError as error:
            raise RecordError(f"{error}; the arm {self._arm} must be 0 or 1 in every record") from None

    @property
    def _arm(self) -> str:
        names, last = self.schema.feature_names, self.schema.transform[-1]
        column = last.column if isinstance(last, ByArm) else 0
        return repr(names[column]) if names else f"in column {column}"


def _require_effect(plan: object) -> EffectSchema:
    require_plan("plan", plan)
    assert isinstance(plan, Plan)  # noqa: S101  refused before
    refusal = PlanError("plan must be of an EffectSchema; build the course with Effect.start(schema, ...)")
    schema = narrowed(plan.schema, EffectSchema, refusal)
    if schema.probability is None:
        raise PlanError("give the schema the probability of treatment: this course is of a randomised trial")
    if not schema.transform:
        raise PlanError("the schema must have a transform that ends in ByArm; build it with EffectSchema.of")
    return schema


def _check_numbers(share: object, retries: object) -> None:
    if type(share) not in (int, float) or not 0 <= share <= _MOST_SHARE:  # type: ignore[operator]
        raise PlanError(f"share must be a number from 0 to {_MOST_SHARE:g}, got {share!r}; .1 is usual")
    if type(retries) is not int or not 0 <= retries <= _MOST_RETRIES:
        raise PlanError(f"retries must be a whole number from 0 to {_MOST_RETRIES}, got {retries!r}")


def _zero(schema: EffectSchema) -> dict[str, Values]:
    return {name: Values(np.zeros(shape, np.int64), 0) for name, shape in schema.needs.items()}


def _published(schema: EffectSchema, have: Sequence[Release]) -> dict[str, Values]:
    return {"line": published_line(schema, have[0])} if have else _zero(schema)


def published_line(schema: EffectSchema, outcome: Release) -> Values:
    """Both lines and the guess of the effect from the release of the outcome session, in one array.

    In one, because two machines may differ by a part of its largest entry (:meth:`Values.near`), and the guess is a
    small difference of large numbers.
    """
    return Values.rounded(outcome_lines(arm_sums(schema, outcome), schema.half))


def arm_sums(schema: EffectSchema, outcome: Release) -> ArmSums:
    """The outcome session's sums about the middle of the range of outcomes, by arm.

    Raises:
        ReleaseError: a release of another schema.
    """
    refusal = ReleaseError("this release is of no outcome session; give the releases of one Effect course, in order")
    if narrowed(outcome.plan.schema, RidgeSchema, refusal) != schema.rows:
        raise refusal
    *_, constant, _ = schema.transform
    assert isinstance(constant, ConstantFeature)  # noqa: S101  the schema has refused others
    G, h = np.asarray(outcome.moments.G), np.asarray(outcome.moments.h).reshape(-1)
    d, sigma = schema.width, outcome.sigma
    blocks = [(G[part, part] + G[part, part].T) / 2 for part in (slice(0, d), slice(d, 2 * d))]
    centred = [each[:, -1] * (schema.middle / constant.value) for each in blocks]
    return ArmSums(
        G=(blocks[0], blocks[1]),
        h=(h[:d] - centred[0], h[d:] - centred[1]),
        constant=constant.value,
        sigma_G=float(sigma.get("G", 0.0)),
        sigma_h=float(sigma.get("h", 0.0)),
    )
