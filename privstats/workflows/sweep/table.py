"""A sweep as a table: one row per epsilon, one column per head."""

from __future__ import annotations

import math

from rich import box
from rich.table import Table

from privstats.workflows.score import Point, heading, shown
from privstats.workflows.sweep.grid import Sweep

__all__ = ["cell", "table"]


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
