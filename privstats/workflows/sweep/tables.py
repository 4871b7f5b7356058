"""A sweep as a table, one row per epsilon and one column per head; a study as a table, one row per point."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from privstats.workflows.score import Point, heading, shown
from privstats.workflows.sweep.experiment import Study
from privstats.workflows.sweep.grid import Sweep

__all__ = ["cell", "means", "table"]


def table(result: Sweep) -> Table:
    """Scores with their spread, without noise first.

    Example:
        >>> from privstats.workflows.score import Point
        >>> from privstats.workflows.sweep import Sweep, table
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> points = (Point("LDA", float("inf"), 0.9, 0.0), Point("LDA", 1.0, 0.81, 0.02))
        >>> [column.header for column in table(Sweep(plan, points, missing={}, repeats=5)).columns]
        ['epsilon', 'LDA']
    """
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    out.add_column("epsilon", justify="right", no_wrap=True)
    for head in result.heads:
        out.add_column(head, justify="right")
    for epsilon in result.epsilons:
        name = heading(epsilon).removeprefix("epsilon ")  # the column says it
        out.add_row(name, *(cell(result, result.at(head, epsilon)) for head in result.heads))
    return out


def cell(result: Sweep, point: Point) -> str:
    """A score for people, with its spread where there is noise, and balanced accuracy and AUC in brackets.

    Example:
        >>> from privstats.workflows.score import Point
        >>> from privstats.workflows.sweep import Sweep, cell
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> point = Point("LDA", epsilon=1.0, mean=0.81, spread=0.02)
        >>> cell(Sweep(plan, (point,), missing={}, repeats=5), point)
        '81.0% ±2.0%'
        >>> cell(Sweep(plan, (point,), missing={}, repeats=5), Point("LDA", 1.0, 0.81, 0.02, balanced=0.6))
        '81.0% ±2.0% (60.0%)'
        >>> cell(Sweep(plan, (point,), missing={}, repeats=5), Point("LDA", 1.0, 0.81, 0.02, balanced=0.6, auc=0.77))
        '81.0% ±2.0% (60.0%, AUC .770)'
    """
    schema = result.plan.schema
    spread = "" if math.isinf(point.epsilon) else f" ±{shown(schema, point.spread)}"
    area = "" if point.auc is None else f", AUC {point.auc:.3f}".replace("0.", ".", 1)
    classes = "" if point.balanced is None else f" ({shown(schema, point.balanced)}{area})"
    return f"{shown(schema, point.mean)}{spread}{classes}"


def means(found: Study) -> Table:
    """Every point of a study: what was varied, the mean, its deviation and interval, balanced accuracy and AUC.

    The interval is that of a normal mean, cut to the scores that there can be; ``found.summary`` has its ends uncut.

    Example:
        >>> from privstats.workflows.sweep import means, study
        >>> X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAB", 8.0), cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
        >>> found = study(plan, (X, y), (X, y), {"LDA": ps.heads.LDA}, repeats=2, with_baselines=False)
        >>> [column.header for column in means(found).columns]
        ['epsilon', 'accuracy', 'deviation', '95 % interval', 'balanced', 'AUC']
    """
    varied = [name for name in found.axes.varied if name != "epsilon"]
    varied += ["head"] * (len(set(found.draws["head"])) > 1)
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in varied:
        out.add_column(name.replace("_", " "), no_wrap=True)
    of_classes = ("balanced",) * (found.metric == "accuracy")
    for name in ("epsilon", found.metric, "deviation", "95 % interval", *of_classes, *("AUC" for _ in of_classes)):
        out.add_column(name, justify="right", no_wrap=True)
    for row in found.summary:
        epsilon = "no DP" if row["epsilon"] is None else f"{row['epsilon']:g}"
        classes = (shown(found.plan.schema, row[name]) for name in of_classes)
        areas = ("-" if row["auc"] is None else f"{row['auc']:.3f}" for _ in of_classes)
        out.add_row(*(_told(row[name]) for name in varied), epsilon, *_scores(found, row), *classes, *areas)
    return out


def _scores(found: Study, row: Mapping[str, Any]) -> tuple[str, str, str]:
    schema = found.plan.schema
    if row["deviation"] is None:
        return shown(schema, row["mean"]), "-", "-"
    least = 0.0 if found.metric == "accuracy" else -math.inf
    between = f"{shown(schema, max(row['low'], least))} to {shown(schema, min(row['high'], 1.0))}"
    return shown(schema, row["mean"]), shown(schema, row["deviation"]), between


def _told(value: Any) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
