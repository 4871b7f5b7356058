"""The results of ``privstats table``: a table, the same as rows of numbers and as a picture, and whether it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from privstats.inference import (
    CellTable,
    EffectRows,
    EffectTable,
    GroupMeans,
    GroupShares,
    HazardRatios,
    HeadScore,
    Interval,
    Regression,
    Scorecard,
    Summary,
    SurvivalCurve,
    SurvivalCurves,
    plot_balance,
    plot_forest,
    plot_survival,
)
from privstats.inference.counts.summary import proportions_summary
from privstats.inference.groups.shares import proportion_row
from privstats.release import Release

__all__ = [
    "TableResult",
    "balance",
    "card",
    "curves",
    "effects",
    "hazard_ratios",
    "regression",
    "score",
    "shares",
    "table_one",
]


class TableResult(NamedTuple):
    """A table to print, the same as rows of numbers, whether noise leaves any of it readable, and how it is drawn."""

    summary: Summary
    rows: list[dict[str, object]]
    told: bool
    draw: Callable[[Path], Any] | None = None


def regression(
    table: Regression, alpha: float, reference: Mapping[str, str], *, exponentiate: bool = False
) -> TableResult:
    """Coefficients by name; no estimate where one is not told. Of declared columns contrasts of their cells."""
    if table.column_cells or reference:
        return _cells(table.cells(reference=reference, alpha=alpha), exponentiate=exponentiate)
    summary, rows = table.summary(alpha, exponentiate=exponentiate), table.to_rows(alpha, exponentiate=exponentiate)
    return TableResult(summary, rows, bool(table.errors.told(alpha).any()), _forest(table, alpha))


def _forest(table: Regression | EffectTable | Mapping[str, EffectTable], alpha: float) -> Callable[[Path], Any]:
    tables: Any = table
    return lambda path: plot_forest(tables, path, alpha=alpha)


def _cells(table: CellTable, *, exponentiate: bool) -> TableResult:
    """Contrasts by column and cell."""
    level = {"variable": "", "level": "all references", "reference": False, "told": table.level.told}
    level |= {"estimate": table.level.value, "p_value": table.level.pvalue}
    level |= {"conf_low": table.level.low, "conf_high": table.level.high}
    rows = [*([] if exponentiate else [level]), *table.to_rows(exponentiate=exponentiate)]
    return TableResult(table.summary(exponentiate=exponentiate), rows, bool(table.told[~table.reference].any()))


def card(points: Scorecard) -> TableResult:
    """Points by outcome, column and step; told where the band of a cell lies on one side of 0."""
    rows: list[dict[str, object]] = [
        {"class": outcome, "variable": "", "level": "base", "points": float(base)}
        for outcome, base in zip(points.outcomes, points.base, strict=True)
    ]
    rows += points.to_rows()
    return TableResult(points.summary(), rows, any(bool(column.told.any()) for column in points.columns), points.plot)


def hazard_ratios(table: HazardRatios, alpha: float, *, forest: bool) -> TableResult:
    """Ratios by name, beside their logarithms; no estimate where one is not told. Drawn as survival by arm, if any."""
    by_arm = not forest and table.by is not None and table.counted is not None
    draw = partial(table.plot, alpha=alpha) if by_arm else _forest(table, alpha)
    return regression(table, alpha, {}, exponentiate=True)._replace(draw=draw)


def effects(table: EffectRows, alpha: float) -> TableResult:
    """Effects by outcome and subgroup; no estimate where one is not told. Of one question without their names."""
    rows = table.to_rows(alpha)
    told = any(bool(row["told"]) for row in rows)
    if len(table) > 1 or table.analysis is not None:
        return TableResult(table.summary(alpha), rows, told, _forest(table.named, alpha))
    (only,) = table
    return TableResult(only.summary(alpha), only.to_rows(alpha), told, _forest(only, alpha))


def balance(effects: EffectRows, alpha: float) -> TableResult:
    """Columns of both arms, and their standardised differences; the same for every outcome."""
    table, *_ = effects
    found = table.balance(alpha)
    draw = partial(plot_balance, found)
    return TableResult(table.balance_summary(alpha), found.to_rows(), bool(found.told.any()), draw)


def curves(survival: SurvivalCurve | SurvivalCurves, time: str) -> TableResult:
    """Survival by group and time."""
    groups = survival if isinstance(survival, SurvivalCurves) else SurvivalCurves({"": survival})
    told = any(len(curve.timeline) for curve in groups.values())
    return TableResult(groups.summary(), groups.to_rows(), told, partial(plot_survival, survival, xlabel=time))


def score(found: HeadScore) -> TableResult:
    """The measures of a head, by name and class."""
    return TableResult(found.summary(), found.to_rows(), found.told, found.plot)


def shares(name: str, cells: dict[str, Interval], release: Release, alpha: float) -> TableResult:
    """Shares of a variable by cell."""
    rows = [{"variable": name, "level": cell, **proportion_row(share)} for cell, share in cells.items()]
    return TableResult(proportions_summary(cells, release, alpha), rows, any(share.told for share in cells.values()))


def table_one(groups: GroupMeans | GroupShares) -> TableResult:
    """Columns by group: means and deviations, or numbers and shares."""
    return TableResult(groups.summary(), groups.to_rows(), bool(np.any(groups.told)))
