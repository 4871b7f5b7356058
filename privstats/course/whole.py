"""The promise for everything that a plan, or the course that it begins, releases together.

Pages, tables and commands take it from here, so that none states what one session is promised for what all are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privstats.course.base import Course, DisjointRounds
from privstats.dp import Guarantee, Privacy
from privstats.plan import Plan

__all__ = ["Whole", "whole_of"]


@dataclass(frozen=True)
class Whole:
    """What one record, person or client is promised of all sessions together.

    Attributes:
        guarantee: what bounds every attacker; its mu is infinite without DP.
        epsilon: at the delta of the noise; infinite without DP.
        delta: of the noise, and the chance that the masks of any session fail on top; 1 without DP.
        sessions: the most that there can be.
    """

    guarantee: Guarantee
    epsilon: float
    delta: float
    sessions: int


def whole_of(subject: Plan | Course) -> Whole:
    """The promise of a plan that stands alone, or of all sessions of a course.

    Guarantee:
        All sessions are mu-GDP with the course's mu, which implies (epsilon, delta) at the delta of the noise. Masks
        show more than a sum with at most the sum of every session's own chance (union bound), which is added to delta.

    Example:
        >>> from privstats.course.whole import whole_of
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> schema = ps.ClassSchema(2, 2, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),))
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 500), privacy=privacy)
        >>> course = ps.Rounds.within(plan)
        >>> round(whole_of(course).epsilon, 3), round(whole_of(course.first).epsilon, 3)
        (3.0, 1.052)
    """
    if isinstance(subject, Plan):
        budget = subject.budget()
        kept = Guarantee(math.inf) if subject.noise is None else subject.noise.guarantee
        return Whole(kept, budget.epsilon, budget.delta, 1)
    first, privacy = subject.first, subject.first.privacy
    if subject.most == 1:
        return whole_of(first)
    if not isinstance(privacy, Privacy):
        return Whole(Guarantee(math.inf), math.inf, 1.0, subject.most)
    times = subject.most if isinstance(subject, DisjointRounds) else 1
    failure = times * sum(plan.masking.failure for plan in subject.priced)
    return Whole(Guarantee(subject.mu), subject.epsilon(privacy.delta), privacy.delta + failure, subject.most)
