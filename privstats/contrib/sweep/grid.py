"""The smallest study: heads against epsilon, everything else as the plan has it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.table import Table

from privstats.contrib.sweep.axes import Axes
from privstats.contrib.sweep.experiment import Study, study
from privstats.contrib.sweep.points import WITHOUT_NOISE, heading, scored, shown
from privstats.errors import DataError
from privstats.plan import Plan
from privstats.workflows.report import Point


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep: points in the order of epsilons and heads.

    Attributes:
        missing: each excluded head's sentence on the statistic it lacks.
        repeats: noise replicates per epsilon.
        dropped: mean number of classes that ``min_count`` dropped, by epsilon.

    Example:
        >>> from privstats.workflows.report import Point
        >>> from privstats.contrib.sweep import Sweep
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> points = (Point("LDA", float("inf"), 0.9, 0.0), Point("LDA", 1.0, 0.81, 0.02))
        >>> result = Sweep(plan, points, missing={}, repeats=5)
        >>> result.heads, result.epsilons, result.at("LDA", 1.0).mean
        (('LDA',), (inf, 1.0), 0.81)
    """

    plan: Plan
    points: tuple[Point, ...]
    missing: Mapping[str, str]
    repeats: int
    dropped: Mapping[float, float] = field(default_factory=dict)

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the scored heads."""
        return tuple(dict.fromkeys(point.head for point in self.points))

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Epsilons from infinity (no noise) downward."""
        return tuple(sorted({point.epsilon for point in self.points}, reverse=True))

    def has(self, head: str, epsilon: float) -> bool:
        """Return whether a head has a point; a rival without privacy has the one without noise alone."""
        return any((point.head, point.epsilon) == (head, epsilon) for point in self.points)

    def at(self, head: str, epsilon: float) -> Point:
        """Return one head's point."""
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
        plan: its epsilon is replaced.
        train, test, heads, tick: as for ``study``; ``train`` is dealt evenly.
        epsilons: the grid, each above 0.
        repeats: noise replicates per epsilon, at least 2.
        seed: as for ``study``; fixes the noise.

    Raises:
        PlanError: the plan cannot meet its promise at some epsilon.
        DataError: invalid arguments or records.

    Example:
        >>> from privstats.contrib.sweep import sweep
        >>> X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
        >>> X[:, 0] += 4.0 * y
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAB", 8.0), cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
        >>> result = sweep(plan, (X, y), (X, y), {"LDA": ps.heads.LDA}, [1.0, 8.0], repeats=2)
        >>> result.at("LDA", float("inf")).mean > 0.9  # without noise
        True
    """
    _check_grid(epsilons, repeats)
    axes = Axes(epsilon=epsilons)
    return over_epsilon(
        study(plan, train, test, heads, axes, repeats=repeats, seed=seed, with_baselines=False, tick=tick)
    )


def over_epsilon(result: Study) -> Sweep:
    """Return the points of a study over epsilon alone.

    Example:
        >>> from privstats.contrib.sweep import Axes, over_epsilon, study
        >>> X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAB", 8.0), cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
        >>> found = study(plan, (X, y), (X, y), {"LDA": ps.heads.LDA}, Axes(epsilon=(8.0,)), repeats=2)
        >>> over_epsilon(found).epsilons
        (inf, 8.0)
    """
    scores: dict[tuple[float, str], list[float]] = {}
    beside: dict[tuple[float, str], Mapping[str, float | None]] = {}
    dropped: dict[float, float] = {}
    for row in result.summary:
        epsilon = WITHOUT_NOISE if row["epsilon"] is None else row["epsilon"]
        scores[epsilon, row["head"]] = result.draws.where(epsilon=row["epsilon"], head=row["head"])["score"]
        beside[epsilon, row["head"]] = {name: row[name] for name in ("balanced", "auc", "sensitivity", "specificity")}
        if row["dropped"]:
            dropped[epsilon] = row["dropped"]
    order = sorted(scores, key=lambda point: -point[0])  # stable: heads stay in their order
    points = tuple(scored(head, epsilon, scores[epsilon, head], **beside[epsilon, head]) for epsilon, head in order)
    missing = {name.partition(" from ")[0]: why for name, why in result.missing.items()}
    return Sweep(result.plan, points, missing, result.repeats, dropped)


def _check_grid(epsilons: Any, repeats: Any) -> None:
    if isinstance(epsilons, str) or not isinstance(epsilons, Sequence):
        raise DataError(f"epsilons must be a list of numbers, for example [1.0], got {type(epsilons).__name__}")
    if isinstance(repeats, bool) or not isinstance(repeats, int):
        raise DataError(f"repeats must be an integer of at least 2, got {type(repeats).__name__}; 5 is usual")
    if not epsilons or repeats < 2:
        raise DataError("a sweep needs at least one epsilon and repeats of at least 2, so that there is a spread")
    if any(isinstance(epsilon, float) and math.isinf(epsilon) for epsilon in epsilons):
        raise DataError("epsilons must be finite; the point without noise is always included")


def table(result: Sweep) -> Table:
    """Return a table of scores with their spread.

    Example:
        >>> from privstats.workflows.report import Point
        >>> from privstats.contrib.sweep import Sweep, table
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> points = (Point("LDA", float("inf"), 0.9, 0.0), Point("LDA", 1.0, 0.81, 0.02))
        >>> [column.header for column in table(Sweep(plan, points, missing={}, repeats=5)).columns]
        ['epsilon', 'LDA']
    """
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    out.add_column("epsilon", justify="right", overflow="fold")
    for head in result.heads:
        out.add_column(head, justify="right")
    for epsilon in result.epsilons:
        name = heading(epsilon).removeprefix("epsilon ")  # the column says it
        out.add_row(name, *(cell_at(result, head, epsilon) for head in result.heads))
    return out


def cell_at(result: Sweep, head: str, epsilon: float) -> str:
    """Return a cell, or a dash where a rival without privacy has no score at an epsilon."""
    return cell(result, result.at(head, epsilon)) if result.has(head, epsilon) else "-"


def cell(result: Sweep, point: Point) -> str:
    """Return a score for people, with its spread, balanced accuracy, AUC, sensitivity and specificity.

    Example:
        >>> from privstats.workflows.report import Point
        >>> from privstats.contrib.sweep import Sweep, cell
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> point = Point("LDA", epsilon=1.0, mean=0.81, spread=0.02)
        >>> cell(Sweep(plan, (point,), missing={}, repeats=5), point)
        '81.0% ±2.0%'
        >>> cell(Sweep(plan, (point,), missing={}, repeats=5), Point("LDA", 1.0, 0.81, 0.02, balanced=0.6))
        '81.0% ±2.0% (60.0%)'
        >>> rare = Point("LDA", 1.0, 0.81, 0.02, balanced=0.6, auc=0.77, sensitivity=0.7, specificity=0.75)
        >>> cell(Sweep(plan, (point,), missing={}, repeats=5), rare)
        '81.0% ±2.0% (60.0%, AUC .770, sens./spec. 70.0% / 75.0%)'
    """
    schema = result.plan.schema
    spread = "" if math.isinf(point.epsilon) and not point.spread else f" ±{shown(schema, point.spread)}"
    area = "" if point.auc is None else f", AUC {point.auc:.3f}".replace("0.", ".", 1)
    both = [shown(schema, each) for each in (point.sensitivity, point.specificity) if each is not None]
    flagged = f", sens./spec. {' / '.join(both)}" if both else ""
    classes = "" if point.balanced is None else f" ({shown(schema, point.balanced)}{area}{flagged})"
    return f"{shown(schema, point.mean)}{spread}{classes}"


def means(result: Study) -> Table:
    """Return a table of a study's points, for two classes with sensitivity and specificity by
    ``predict(threshold="prevalence")``.

    The interval is a normal mean's, truncated to possible scores; ``result.summary`` has untruncated ends.

    Example:
        >>> from privstats.contrib.sweep import means, study
        >>> X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAB", 8.0), cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
        >>> found = study(plan, (X, y), (X, y), {"LDA": ps.heads.LDA}, repeats=2, with_baselines=False)
        >>> [column.header for column in means(found).columns]
        ['epsilon', 'accuracy', 'deviation', '95 % interval', 'balanced', 'AUC', 'sens./spec.']
    """
    varied = [name for name in result.axes.varied if name != "epsilon"]
    varied += ["head"] * (len(set(result.draws["head"])) > 1)
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in varied:
        out.add_column(name.replace("_", " "), overflow="fold")
    of_classes = ("balanced",) * (result.metric == "accuracy")
    areas = ("AUC",) * len(of_classes)
    flagged = ("sens./spec.",) * any(row["sensitivity"] is not None for row in result.summary)
    for name in ("epsilon", result.metric, "deviation", "95 % interval", *of_classes, *areas, *flagged):
        out.add_column(name, justify="right", overflow="fold")
    for row in result.summary:
        epsilon = "no DP" if row["epsilon"] is None else f"{row['epsilon']:g}"
        classes = (shown(result.plan.schema, row[name]) for name in of_classes)
        auc = ("-" if row["auc"] is None else f"{row['auc']:.3f}" for _ in areas)
        rare = (_flagged(result, row) for _ in flagged)
        out.add_row(*(_formatted(row[name]) for name in varied), epsilon, *_scores(result, row), *classes, *auc, *rare)
    return out


def _scores(result: Study, row: Mapping[str, Any]) -> tuple[str, str, str]:
    schema = result.plan.schema
    if row["deviation"] is None:
        return shown(schema, row["mean"]), "-", "-"
    least = 0.0 if result.metric == "accuracy" else -math.inf
    between = f"{shown(schema, max(row['low'], least))} to {shown(schema, min(row['high'], 1.0))}"
    return shown(schema, row["mean"]), shown(schema, row["deviation"]), between


def _flagged(result: Study, row: Mapping[str, Any]) -> str:
    both = row["sensitivity"], row["specificity"]
    return "-" if None in both else " / ".join(shown(result.plan.schema, each) for each in both)


def _formatted(value: Any) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
