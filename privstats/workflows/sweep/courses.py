"""The part of a study that runs courses: heads that end a course or read sums behind a mean, at a budget of the whole.

Every round draws its noise as the plan's model does, on the records as they were dealt; no masks, no ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from privstats import course as courses
from privstats import session
from privstats.course import Centred, Course, Round, Rounds
from privstats.course.centred import centred_by, require_centrable, shrunk_mean
from privstats.course.recipes import recipe_for
from privstats.errors import AggregationError
from privstats.moments import exact_moments
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.release import Release
from privstats.transforms import apply
from privstats.workflows.score import NOTHING_RIGHT, Scores

__all__ = ["BehindMean", "Shards", "behind_means", "course_scores", "ends_a_course", "played"]

Shards: TypeAlias = Sequence[tuple[Any, Any]]
"""``(X, y)`` of every client."""


@dataclass(frozen=True)
class BehindMean:
    """A head of one release that reads the sums behind a noisy mean, both under the plan's promise (``Centred``).

    Attributes:
        make: gives a fresh head.

    Example:
        >>> from privstats.workflows.sweep import BehindMean
        >>> BehindMean(ps.heads.LDA).make()
        LDA()
    """

    make: Callable[[], Any]

    def release(self, plan: Plan, shards: Shards, rng: Generator) -> Release | None:
        """The release behind the mean, without noise behind that of the records; None where it aborted.

        Raises:
            PlanError: no mean can be taken out of the plan's rows.
        """
        require_centrable(plan)
        if plan.noise is not None:
            return played(Centred.within(plan), shards, rng)[-1]
        rows = np.concatenate([apply(plan.schema.transform, np.asarray(X, np.float64)) for X, _ in shards])
        return _aggregated(centred_by(plan, shrunk_mean(rows.sum(axis=0), 0.0, len(rows))), shards, rng)


def behind_means(heads: Mapping[str, Callable[[], Any]]) -> dict[str, Callable[[], BehindMean]]:
    """Each head of one release once more, behind a mean, as ``"NAME, centred"``.

    Example:
        >>> from privstats.workflows.sweep import behind_means
        >>> list(behind_means({"LDA": ps.heads.LDA, "RefinedSoftmax": ps.heads.RefinedSoftmax}))
        ['LDA, centred']
    """
    alone = {name: make for name, make in heads.items() if not ends_a_course(make())}
    return {f"{name}, centred": partial(BehindMean, make) for name, make in alone.items()}


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
        recipe_for(plan, 1, 1.0, head.rounds or 1)
        rows = np.concatenate([np.asarray(X, np.float64) for X, _ in shards])
        behind, others = (apply(plan.schema.transform, each) for each in (rows, np.asarray(test[0], np.float64)))
        return Scores.of(
            plan.schema, head.fit(behind, np.concatenate([np.asarray(y) for _, y in shards])), others, test[1]
        )
    of_classes = {name: getattr(head, name) for name in ("calibrated", "module") if hasattr(head, name)}
    releases = played(Rounds.within(plan, head.rounds, **of_classes), shards, rng)
    return Scores.of(plan.schema, head.fit_releases(releases), *test) if releases[0] else NOTHING_RIGHT


def played(course: Course, shards: Shards, rng: Generator) -> list[Release | None]:
    """The releases of a course."""

    def release(round_: Round) -> Release | None:
        return _aggregated(round_.plan, shards, rng)

    return courses.run(course, release)


def _aggregated(plan: Plan, shards: Shards, rng: Generator) -> Release | None:
    parts = [exact_moments(plan.schema, *shard, published=plan.published) for shard in shards]
    try:
        return session.aggregate_unmasked(plan, parts, rng)
    except AggregationError:
        return None
