"""The tables of docs/plan.md that follow from the rows of settings."""

from __future__ import annotations

from typing import Any

from benchmarks.table import Cells, Tables, by_name
from privstats.plan import Plan
from privstats.plan.settings import AGGREGATION, Setting

__all__ = ["TABLES"]


def aggregation_settings() -> Cells:
    """docs/plan.md: how the sum is formed."""
    return [["key", "meaning", "bounds", "default"], *map(_line, AGGREGATION.values())]


def _line(row: Setting) -> list[str]:
    usual = row.usual or _in_code(row.default(Plan))
    if row.new is not None:
        usual += f"; `plan init`, `try` and `score` write {_in_code(row.new)}"
    return [f"`{row.name}`", row.meaning, "; ".join(filter(None, (row.form.bounds, row.bounds))), usual]


def _in_code(value: Any) -> str:
    return f'`"{value}"`' if isinstance(value, str) else str(value)


TABLES: Tables = by_name(aggregation_settings)
