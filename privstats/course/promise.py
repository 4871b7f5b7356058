"""Compute a course's total promise, and its rounds' parts, rounded so that all machines agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Context

from privstats.course.base import Course, checked_mu, is_disjoint, plans_by_place
from privstats.dp import Guarantee, Privacy, gaussian_epsilon, gaussian_mu
from privstats.errors import PlanError
from privstats.kinds import CountSchema
from privstats.plan import Plan
from privstats.plan.conditions import joint_condition
from privstats.printable import at_most, delta_text
from privstats.python_values import check_number
from privstats.review.drop_outs import party_factor
from privstats.review.plan_facts import facts_together

CALIBRATION_SHARE = 0.01
"""A calibration's part of the mu^2 of its course."""

_NINE_DIGITS = Context(prec=9, rounding=ROUND_DOWN)


def promised(plan: Plan) -> tuple[Privacy, float]:
    """Return a plan's promise and its noise's mu.

    Raises:
        PlanError: the plan has no DP, or a pure epsilon, which rounds cannot keep.
    """
    if plan.noise is not None and plan.noise.pure:
        raise PlanError("delta = 0 is supported for one release, and rounds compose in mu: give a delta above 0")
    if plan.noise is None or not isinstance(plan.privacy, Privacy):
        raise PlanError(
            "a course needs differential privacy: without noise two of its sums can give a single record; give its "
            "plan a promise (privacy.epsilon)"
        )
    return plan.privacy, plan.noise.mu


def record_mu(plan: Plan) -> float:
    """Return the mu that a plan spends on one record."""
    privacy, mu = promised(plan)
    return mu / privacy.group


def rounded_down(value: float) -> float:
    """Round to nine digits, toward zero: machines' root finders agree in as many."""
    return float(_NINE_DIGITS.create_decimal(value))


_ROUNDING = 1 + 2.0**-40  # of the last operations; epsilon of a part is rounded down


@dataclass(frozen=True)
class Promise:
    """The owners' promise for all rounds of a course; unit and adjacency are the first plan's.

    Attributes:
        epsilon, delta: as the owners wrote them.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        bounds = (("epsilon", "above 0", math.ulp(0.0), math.inf), ("delta", "at least 0", 0.0, 1.0))
        for field, bound, least, most in bounds:
            value = getattr(self, field)
            if type(value) not in (int, float) or not least <= value < most:
                raise PlanError(f"promise.{field} must be a number {bound} and below {most:g}, got {value!r:.40}")

    @classmethod
    def of(cls, plan: Plan) -> Promise | None:
        """Return a plan's promise; None without DP."""
        privacy = plan.privacy
        return cls(privacy.epsilon, privacy.delta) if isinstance(privacy, Privacy) else None

    @classmethod
    def covering(cls, mu: float, first: Plan) -> Promise | None:
        """Return the smallest promise, in nine digits, for this mu at the first plan's delta."""
        privacy = first.privacy
        if not isinstance(privacy, Privacy):
            return None
        epsilon = gaussian_epsilon(mu, privacy.delta * privacy.trust.margin) / privacy.trust.margin
        return cls(rounded_down(epsilon * (1 + 2e-8)), privacy.delta)  # so nine digits round up

    def holds(self, mu: float) -> bool:
        """Return whether mu is at most that of (epsilon, delta), up to rounding.

        Source: Dong, Roth and Su 2022, corollary 1. No mu keeps delta 0.
        """
        return self.delta > 0 and mu <= gaussian_mu(self.epsilon, self.delta) * _ROUNDING


def require_promise(promise: object, mu: float) -> None:
    """Refuse a promise that the rounds break."""
    if promise is None:
        return
    if not isinstance(promise, Promise):
        raise PlanError(
            f"promise must be a Promise(epsilon, delta) or None, got {type(promise).__name__}; leave it out"
        )
    if not promise.holds(mu):
        raise PlanError(
            f"promise says epsilon {promise.epsilon:.4g} at delta {delta_text(promise.delta)}, and all rounds together "
            f"cost epsilon {at_most(epsilon_of(mu, promise.delta))}: let within (`privstats course init`) divide a "
            "plan's promise over them, or state what they cost"
        )


def epsilon_of(mu: float, delta: float) -> float:
    """Return all rounds' epsilon at a delta; infinite without DP or at delta 0."""
    if math.isinf(mu):
        return math.inf
    check_number("delta", delta, "at least 0 and below 1", 0, 1, ends="[)")
    return gaussian_epsilon(mu, delta) if delta else math.inf


def part_of(plan: Plan, part: float, shares: Mapping[str, float] | None) -> Privacy:
    """Return the promise with this part of a plan's mu^2, at its delta; epsilon is rounded down.

    Args:
        part: above 0.
        shares: the part's division over statistics; None: the default.
    """
    privacy, most = promised(plan)
    mu, margin = most * math.sqrt(part), privacy.trust.margin
    epsilon = rounded_down(gaussian_epsilon(mu, privacy.delta * margin) / margin)
    return _promised(privacy, epsilon, shares)


def _promised(privacy: Privacy, epsilon: float, shares: Mapping[str, float] | None) -> Privacy:
    try:
        return replace(privacy, epsilon=epsilon, shares=shares)
    except PlanError:
        raise PlanError(
            f"a round would have epsilon {epsilon:.3g}, which no plan can promise: take more epsilon, or a smaller "
            "delta, or fewer rounds"
        ) from None


def count_plan(plan: Plan, schema: CountSchema, part: float) -> Plan:
    """Return a plan of counts for the same parties, trust model, unit and adjacency.

    Args:
        part: the counts' mu^2 over the plan's.
    """
    proved = None if plan.validity is None else plan.validity.about(schema)
    privacy = part_of(plan, part, None)
    return replace(plan, schema=schema, privacy=privacy, min_count=0, merge={}, published=None, validity=proved)


@dataclass(frozen=True)
class Total:
    """Promise to one unit and message size of one party, for a plan or all of a course.

    Attributes:
        guarantee: bound on every attacker; infinite mu without DP.
        epsilon: at the noise's delta; infinite without DP.
        delta: the noise's, plus the probability that any session's masks fail; 1 without DP.
        sessions: maximum number.
        numbers: maximum that one party sends in all sessions.
        upload_bytes: their maximum masked size.
        condition: the assumptions of the sessions' promises, each once: a clause that follows "while".
        toward_party: bound on another party, which may subtract its own noise; ``guarantee`` where it gains nothing.
        party_epsilon: epsilon toward another party, at the noise's delta.
        conditions: sentences on the assumptions of epsilon outside the plans, each once; empty without DP.
    """

    guarantee: Guarantee
    epsilon: float
    delta: float
    sessions: int
    numbers: int
    upload_bytes: int
    condition: str
    toward_party: Guarantee
    party_epsilon: float
    conditions: tuple[str, ...] = ()

    @property
    def claim(self) -> str:
        """Epsilon and delta with their condition, and epsilon toward another party where it differs, in words."""
        if math.isinf(self.epsilon):
            return f"no differential privacy; masks hide each party's sums while {self.condition}"
        claim = f"epsilon {at_most(self.epsilon)} at delta {delta_text(self.delta)}, while {self.condition}"
        if not self.weaker_toward_party:
            return claim
        return f"{claim}; toward another party, which can subtract its own noise, epsilon {at_most(self.party_epsilon)}"

    @property
    def weaker_toward_party(self) -> bool:
        """Whether another party learns more than the promise says, by subtracting its own noise."""
        return self.toward_party.mu > self.guarantee.mu


def total_of(subject: Plan | Course) -> Total:
    """Return a plan's or a course's total.

    Guarantee:
        All sessions are mu-GDP with the course's mu, compared with its plans
        (:func:`~privstats.course.base.checked_mu`), which implies (epsilon, delta) at the noise's delta. Masks show
        more than a sum with at most the sum of every session's chance (union bound), which is added to delta.
    """
    if isinstance(subject, Plan):
        budget, noise, factor = subject.budget(), subject.noise, party_factor(subject)
        guarantee = Guarantee(math.inf) if noise is None else noise.guarantee
        toward = guarantee if noise is None or factor == 1 else Guarantee(noise.mu * factor)
        epsilon = budget.epsilon if noise is None or toward == guarantee else gaussian_epsilon(toward.mu, noise.delta)
        sizes = _sent([subject])
        return Total(
            guarantee, budget.epsilon, budget.delta, 1, *sizes, subject.condition, toward, epsilon, budget.conditions
        )
    first, privacy, mu = subject.first, subject.first.privacy, checked_mu(subject)
    if subject.most == 1:
        return total_of(first)
    plans = subject.priced * subject.most if is_disjoint(subject) else longest(subject)
    condition = joint_condition(plan for place in plans_by_place(subject) for plan in place)
    if not isinstance(privacy, Privacy):
        nothing = Guarantee(math.inf)
        return Total(nothing, math.inf, 1.0, subject.most, *_sent(plans), condition, nothing, math.inf)
    delta = privacy.delta + sum(plan.masking.failure for plan in plans)
    every = every_plan(subject)
    toward = Guarantee(mu * max(map(party_factor, every)))
    epsilon = epsilon_of(mu, privacy.delta)
    weaker = epsilon if toward.mu == mu else epsilon_of(toward.mu, privacy.delta)
    return Total(
        Guarantee(mu),
        epsilon,
        delta,
        subject.most,
        *_sent(plans),
        condition,
        toward,
        weaker,
        tuple(dict.fromkeys(sentence for plan in every for sentence in plan.budget().conditions)),
    )


def promise_facts(course: Course) -> list[str]:
    """Return what a reviewer reads about all sessions of a course together, one sentence per fact, warnings first."""
    total, privacy = total_of(course), course.first.privacy
    if course.most == 1 or not isinstance(privacy, Privacy):
        return facts_together(every_plan(course), total.epsilon, total.delta)
    return facts_together(
        every_plan(course), total.epsilon, total.delta, lambda factor: epsilon_of(course.mu * factor, privacy.delta)
    )


def unlike_session(course: Course, plan: Plan) -> str:
    """Return why a plan is of no session of the course; empty where it is of one, whatever was published before.

    The plan names its session. It has that session's parties, promise, protocol and statistics. Only the earlier
    releases show whether published values, cut points and maps follow from them.
    """
    position = plan.position
    places = plans_by_place(course)
    if position is None or position.course != course.digest or position.place >= len(places):
        return f"it names {position or 'no course'}, and not a session of course {course.digest[:16]}..."
    for own in places[position.place]:
        letters = own.schema.statistics == plan.schema.statistics
        same = type(own.schema) is type(plan.schema) and letters
        if same and replace(plan, schema=own.schema, published=own.published) == own:
            return ""
    return f"no session {position.place} of the course has the plan {plan.digest[:16]}..., whatever is published before"


def longest(course: Course) -> Sequence[Plan]:
    """Return the plan of the longest message at each place of a course."""
    return [max(plans, key=lambda plan: plan.masking.upload_bytes) for plans in _messages(course)]


def every_plan(course: Course) -> Sequence[Plan]:
    """Return the plans of all sessions that a course may have, as it prices them and with their longest messages.

    A check that must hold in each session walks these: one priced plan per place leaves out the cheaper sessions that a
    retry may move there.
    """
    places = (*plans_by_place(course), *_messages(course))
    return list({plan.digest: plan for plans in places for plan in plans}.values())


def _messages(course: Course) -> Sequence[Sequence[Plan]]:
    messages: Sequence[Sequence[Plan]] = getattr(course, "messages", plans_by_place(course))
    return messages


def _sent(plans: Sequence[Plan]) -> tuple[int, int]:
    return sum(plan.layout.size for plan in plans), sum(plan.masking.upload_bytes for plan in plans)
