"""The part of a sweep that asks again: heads that end a course, at a budget that the whole course keeps.

Every node draws its noise as the plan's model does, on records that are dealt as for the other heads; no masks, no
ledger. Under ``grid``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privstats import course as courses
from privstats import session
from privstats.course import Node, Releases, Rounds
from privstats.course.recipes import recipe_for
from privstats.errors import AggregationError
from privstats.moments import measure
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.release import Release
from privstats.transforms import apply

__all__ = ["ends_a_course", "exact_score", "played"]


def ends_a_course(head: Any) -> bool:
    """Whether a head is made from the releases of a course."""
    return hasattr(head, "fit_releases")


def played(plan: Plan, train: tuple[Any, Any], rounds: int, rng: Generator) -> Releases:
    """What a course of rounds releases whose promise as a whole is the plan's.

    Raises:
        PlanError: no recipe refines what the plan measures.
    """
    clients = plan.cohort.clients
    shards = [(train[0][k::clients], train[1][k::clients]) for k in range(clients)]

    def release(node: Node) -> Release | None:
        parts = [measure(node.plan.schema, *shard, published=node.plan.published) for shard in shards]
        try:
            return session.in_clear(node.plan, parts, rng)
        except AggregationError:
            return None

    return courses.run(Rounds.within(plan, rounds), release)


def exact_score(head: Any, plan: Plan, train: tuple[Any, Any], test: tuple[Any, Any]) -> float:
    """The score of a head that is fitted on the records themselves, behind the plan's transform.

    Raises:
        PlanError: no recipe refines what the plan measures.
    """
    recipe_for(plan.schema, 1, 1.0, head.rounds)
    rows, others = (apply(plan.schema.transform, np.asarray(X, np.float64)) for X in (train[0], test[0]))
    return float(head.fit(rows, train[1]).score(others, test[1]))
