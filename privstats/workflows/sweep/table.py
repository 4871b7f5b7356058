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
    """Scores with their spread, without noise first."""
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    out.add_column("epsilon", justify="right", no_wrap=True)
    for head in result.heads:
        out.add_column(head, justify="right")
    for epsilon in result.epsilons:
        name = heading(epsilon).removeprefix("epsilon ")  # the column says it
        out.add_row(name, *(cell(result, result.at(head, epsilon)) for head in result.heads))
    return out


def cell(result: Sweep, point: Point) -> str:
    """A score for people, with its spread where there is noise."""
    schema = result.plan.schema
    text = shown(schema, point.mean)
    return text if math.isinf(point.epsilon) else f"{text} ±{shown(schema, point.spread)}"


def means(found: Study) -> Table:
    """Every point of a study: what was varied, the mean, its standard deviation and its interval."""
    varied = [name for name in found.axes.varied if name != "epsilon"]
    varied += ["head"] * (len(set(found.draws["head"])) > 1)
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in varied:
        out.add_column(name.replace("_", " "), no_wrap=True)
    for name in ("epsilon", found.metric, "deviation", "95 % interval"):
        out.add_column(name, justify="right", no_wrap=True)
    for row in found.summary:
        epsilon = "no DP" if row["epsilon"] is None else f"{row['epsilon']:g}"
        out.add_row(*(_told(row[name]) for name in varied), epsilon, *_scores(found, row))
    return out


def _scores(found: Study, row: Mapping[str, Any]) -> tuple[str, str, str]:
    schema = found.plan.schema
    if row["deviation"] is None:
        return shown(schema, row["mean"]), "-", "-"
    between = f"{shown(schema, row['low'])} to {shown(schema, row['high'])}"
    return shown(schema, row["mean"]), shown(schema, row["deviation"]), between


def _told(value: Any) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
