"""The part of a study that runs courses: heads that end a course, at a budget that the whole course keeps.

Every round draws its noise as the plan's model does, on the records as they were dealt; no masks, no ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from privstats import course as courses
from privstats import session
from privstats.course import Node, Rounds
from privstats.course.recipes import recipe_for
from privstats.errors import AggregationError
from privstats.moments import measure
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.release import Release
from privstats.transforms import apply
from privstats.workflows.score import NOTHING_RIGHT, Scores

__all__ = ["Shards", "course_scores", "ends_a_course", "played"]

Shards: TypeAlias = Sequence[tuple[Any, Any]]
"""``(X, y)`` of every client."""


def ends_a_course(head: Any) -> bool:
    """Whether a head is made from the releases of a course."""
    return hasattr(head, "fit_releases")


def course_scores(head: Any, plan: Plan, shards: Shards, test: tuple[Any, Any], rng: Generator) -> Scores:
    """The scores of a head at the end of a course whose promise as a whole is the plan's.

    Without noise it is the head of the records themselves, behind the plan's transform; 0 where the first release
    aborted.

    Raises:
        PlanError: no recipe refines what the plan measures.
    """
    if plan.noise is None:
        recipe_for(plan.schema, 1, 1.0, head.rounds or 1)
        rows = np.concatenate([np.asarray(X, np.float64) for X, _ in shards])
        behind, others = (apply(plan.schema.transform, each) for each in (rows, np.asarray(test[0], np.float64)))
        return Scores.of(
            plan.schema, head.fit(behind, np.concatenate([np.asarray(y) for _, y in shards])), others, test[1]
        )
    of_classes = {name: getattr(head, name) for name in ("calibrated", "module") if hasattr(head, name)}
    releases = played(Rounds.within(plan, head.rounds, **of_classes), shards, rng)
    return Scores.of(plan.schema, head.fit_releases(releases), *test) if releases[0] else NOTHING_RIGHT


def played(course: Rounds, shards: Shards, rng: Generator) -> list[Release | None]:
    """The releases of a course."""

    def release(node: Node) -> Release | None:
        parts = [measure(node.plan.schema, *shard, published=node.plan.published) for shard in shards]
        try:
            return session.aggregate_unmasked(node.plan, parts, rng)
        except AggregationError:
            return None

    return courses.run(course, release)
