"""Score heads over a grid of epsilons, each with repeated noise.

Records are dealt evenly to the cohort and measured once; every grid point draws its noise as the plan's model does and
builds a real release. Masks are left out, because they cancel to the last bit: a sweep says nothing about the protocol
or about dropouts. It charges no ledger, so it is for data that you may look at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from privstats import session
from privstats.errors import DataError, MissingStatisticError, PlanError
from privstats.moments import measure
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.release import Release
from privstats.schema import ClassSchema, of_records
from privstats.workflows.score import WITHOUT_NOISE, Point, at_epsilon, noise_draw, scored, without_noise
from privstats.workflows.sweep.courses import ends_a_course, exact_score, played

__all__ = ["Sweep", "sweep"]


@dataclass(frozen=True)
class Sweep:
    """The result: points in the order of heads and epsilons, and the heads that the statistics cannot feed.

    Attributes:
        plan: the plan that was varied; its own epsilon is not used.
        points: one per head and epsilon.
        missing: for each head left out, the sentence that says which statistic it lacks.
        repeats: noise draws per epsilon.
        dropped: per epsilon, the mean number of classes that ``min_count`` dropped; only where it dropped any.
    """

    plan: Plan
    points: tuple[Point, ...]
    missing: Mapping[str, str]
    repeats: int
    dropped: Mapping[float, float] = field(default_factory=dict)

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the heads that were scored, in order."""
        return tuple(dict.fromkeys(point.head for point in self.points))

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The grid, without noise first, then from weak to strong privacy."""
        return tuple(sorted({point.epsilon for point in self.points}, reverse=True))

    def at(self, head: str, epsilon: float) -> Point:
        """The point of one head at one epsilon."""
        return next(point for point in self.points if (point.head, point.epsilon) == (head, epsilon))


def sweep(
    plan: Plan,
    train: tuple[Any, Any],
    test: tuple[Any, Any],
    heads: Mapping[str, Callable[[], Any]],
    epsilons: Sequence[float],
    *,
    repeats: int = 5,
    seed: int = 0,
    tick: Callable[[], None] = lambda: None,
) -> Sweep:
    """Score ``heads`` without noise and at every epsilon.

    Args:
        plan: schema, cohort, trust model, unit, adjacency and delta; its epsilon is replaced by each of the grid.
        train: ``(X, y)`` that the cohort holds together.
        test: ``(X, y)`` to score on.
        heads: a fresh head per call, by name; one that ends a course has a course of its own, whose promise as a whole
            is the grid's epsilon.
        epsilons: the grid, each above 0.
        repeats: noise draws per epsilon, at least 2.
        seed: fixes the noise. Reproducible noise protects nothing: for experiments on data you may look at.
        tick: called after each release.

    Raises:
        PlanError: the plan is without DP, or cannot keep its promise at some epsilon.
        DataError: an empty grid, too few repeats, heads that are none, no records, or records that do not fit the plan.
    """
    _check_arguments(plan, heads, epsilons, repeats)
    varied = {epsilon: at_epsilon(plan, epsilon) for epsilon in sorted(set(epsilons), reverse=True)}
    grid = {WITHOUT_NOISE: without_noise(plan), **varied}
    _check_records(plan, "train", train)
    _check_records(plan, "test", test)
    clients = plan.cohort.clients
    moments = [measure(plan.schema, train[0][k::clients], train[1][k::clients]) for k in range(clients)]
    scores: dict[tuple[str, float], list[float]] = {}
    missing: dict[str, str] = {}
    dropped: dict[float, float] = {}
    for epsilon, at in grid.items():
        for repeat in range(1 if math.isinf(epsilon) else repeats):
            release = session.in_clear(at, moments, noise_draw(seed, repeat))
            if release.suppressed:
                share = len(release.suppressed) / (1 if math.isinf(epsilon) else repeats)
                dropped[epsilon] = dropped.get(epsilon, 0.0) + share
            for name, head in heads.items():
                if name not in missing:
                    values = scores.setdefault((name, epsilon), [])
                    if ends_a_course(fresh := head()):
                        _score_course(at, name, fresh, (train, test), noise_draw(seed, repeat), values, missing)
                    else:
                        _score(release, name, fresh, test, values, missing)
            tick()
    points = tuple(scored(name, epsilon, values) for (name, epsilon), values in scores.items() if values)
    return Sweep(plan, points, missing, repeats, dropped)


def _check_arguments(plan: Any, heads: Any, epsilons: Any, repeats: Any) -> None:
    if not isinstance(plan, Plan):
        raise DataError(f"plan must be a Plan, got {type(plan).__name__}; build one with Plan(...) or Plan.read(path)")
    if not isinstance(heads, Mapping):
        raise DataError(f"heads must map names to heads, for example {{'LDA': LDA}}, got {type(heads).__name__}")
    for name, head in heads.items():
        if not callable(head):
            raise DataError(
                f"heads[{name!r}] must make a fresh head when called, got {type(head).__name__}; give a class"
            )
    if isinstance(epsilons, str) or not isinstance(epsilons, Sequence):
        raise DataError(f"epsilons must be a list of numbers, for example [1.0], got {type(epsilons).__name__}")
    if isinstance(repeats, bool) or not isinstance(repeats, int):
        raise DataError(f"repeats must be a whole number of at least 2, got {type(repeats).__name__}; 5 is usual")
    if not epsilons or repeats < 2:
        raise DataError("a sweep needs at least one epsilon and repeats of at least 2, so that there is a spread")


def _check_records(plan: Plan, field: str, records: Any) -> None:
    """Refuse what cannot be measured before any noise is drawn."""
    if not isinstance(records, tuple | list) or len(records) != 2:
        raise DataError(
            f"{field} must be a pair (X, y), got {type(records).__name__}; give features and labels together"
        )
    try:
        report = measure(of_records(plan.schema), *records).clip_report
    except DataError as error:
        raise DataError(f"{field}: {error}") from None
    if report is None or not report.records:
        raise DataError(f"{field} holds no records; give at least one")


def _score(
    release: Release,
    name: str,
    head: Any,
    test: tuple[Any, Any],
    values: list[float],
    missing: dict[str, str],
) -> None:
    if isinstance(release.plan.schema, ClassSchema) and len(release.suppressed) == release.plan.schema.classes:
        values.append(0.0)  # nothing is left to predict
        return
    try:
        values.append(float(head.fit_release(release).score(*test)))
    except MissingStatisticError as error:
        missing[name] = str(error)


def _score_course(
    plan: Plan,
    name: str,
    head: Any,
    records: tuple[tuple[Any, Any], tuple[Any, Any]],
    rng: Generator,
    values: list[float],
    missing: dict[str, str],
) -> None:
    """A head that ends a course, whose promise as a whole is the plan's; without noise the head of the records."""
    train, test = records
    try:
        if plan.noise is None:
            values.append(exact_score(head, plan, train, test))
            return
        releases = played(plan, train, head.rounds, rng)
    except PlanError as error:
        missing[name] = str(error)
        return
    values.append(float(head.fit_releases(releases).score(*test)) if releases[0] else 0.0)
