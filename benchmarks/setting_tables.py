"""The tables of docs/plan.md that follow from the rows of settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from functools import partial
from typing import Any

import privstats as ps
from benchmarks.table import Cells, Tables
from privstats.plan.setting import Setting
from privstats.plan.settings import SETTINGS

__all__ = ["TABLES"]

_CLASSES: Mapping[str, Any] = {
    "cohort": ps.Cohort,
    "privacy": ps.Privacy,
    "aggregation": ps.Plan,
    "validity": ps.plan.Validity,
    "devices": ps.plan.Devices,
}


def _settings(table: str) -> Cells:
    return [["key", "meaning", "bounds", "default"], *(_line(row) for row in SETTINGS[table].values())]


def _line(row: Setting) -> list[str]:
    usual = row.usual or _in_words(row.default(_CLASSES[row.table]))
    if row.new is not None:
        usual += f"; `plan init`, `try` and `score` write {_in_words(row.new)}"
    return [f"`{row.name}`", row.meaning, "; ".join(filter(None, (row.form.bounds, row.bounds))), usual]


def _in_words(value: Any) -> str:
    if value is MISSING or value is None:
        return "none"
    return f'`"{value}"`' if isinstance(value, str) else str(value)


TABLES: Tables = {f"{table}_settings": partial(_settings, table) for table in SETTINGS}
