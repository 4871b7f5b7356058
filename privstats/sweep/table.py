"""A sweep as a table: one row per head, one column per epsilon."""

from __future__ import annotations

import math

from rich import box
from rich.table import Table

from privstats.schema import ClassSchema
from privstats.sweep.grid import Point, Sweep

__all__ = ["cell", "table"]


def table(result: Sweep) -> Table:
    """Scores with their spread, without noise first."""
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    out.add_column("head")
    for epsilon in result.epsilons:
        out.add_column("no DP" if math.isinf(epsilon) else f"epsilon {epsilon:g}", justify="right")
    for head in result.heads:
        out.add_row(head, *(cell(result, result.at(head, epsilon)) for epsilon in result.epsilons))
    return out


def cell(result: Sweep, point: Point) -> str:
    """A score for people: accuracy in per cent, R² as it is."""
    form = "{:.1%}" if isinstance(result.plan.schema, ClassSchema) else "{:.3f}"
    text = form.format(point.mean)
    return text if math.isinf(point.epsilon) else f"{text} ± {form.format(point.spread)}"
