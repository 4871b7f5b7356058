"""The results of ``privstats table``: a table, the same as rows of numbers and as a picture, and whether it is told."""

from __future__ import annotations

import math
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
from privstats.inference.exponentiated import row_with_ratios
from privstats.inference.summary import proportions_summary
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
    told = table.errors.told(alpha)
    columns = {"coef": np.where(told, table.errors.estimate, np.nan), "std_err": table.bse}
    columns |= {"noise_std_err": table.noise_bse, "pvalue": table.pvalues}
    columns["low"], columns["high"] = table.conf_int(alpha).T
    rows = [
        {"name": name, "told": bool(told[i]), **{key: float(values[i]) for key, values in columns.items()}}
        for i, name in enumerate(table.names)
    ]
    if exponentiate:
        rows = [row_with_ratios(row, table.model) for row in rows if row["name"] != "const"]
    summary = table.summary(alpha, exponentiate=exponentiate)
    return TableResult(summary, rows, bool(told.any()), _forest(table, alpha))


def _forest(table: Regression | EffectTable | Mapping[str, EffectTable], alpha: float) -> Callable[[Path], Any]:
    tables: Any = table
    return lambda path: plot_forest(tables, path, alpha=alpha)


def _cells(table: CellTable, *, exponentiate: bool) -> TableResult:
    """Contrasts by column and cell."""
    columns = {"contrast": table.estimate, "std_err": table.error, "noise_std_err": table.noise_error}
    columns |= {"pvalue": table.pvalue, "low": table.low, "high": table.high}
    rows: list[dict[str, object]] = [
        {
            "column": column,
            "cell": cell,
            "reference": bool(table.reference[i]),
            "told": bool(table.told[i]),
            **{key: float(values[i]) for key, values in columns.items()},
        }
        for i, (column, cell) in enumerate(zip(table.columns, table.cells, strict=True))
    ]
    level = {"column": "", "cell": "all references", "reference": False, "told": table.level.told}
    level |= {"contrast": table.level.value, "pvalue": table.level.pvalue}
    level |= {"low": table.level.low, "high": table.level.high}
    rows = [row_with_ratios(row, table.regression.model) for row in rows] if exponentiate else [level, *rows]
    return TableResult(table.summary(exponentiate=exponentiate), rows, bool(table.told[~table.reference].any()))


def card(points: Scorecard) -> TableResult:
    """Points by outcome, column and step; told where the band of a cell lies on one side of 0."""
    rows: list[dict[str, object]] = [
        {"outcome": outcome, "column": "", "cell": "base", "points": float(base)}
        for outcome, base in zip(points.outcomes, points.base, strict=True)
    ]
    rows += points.to_rows()
    return TableResult(points.summary(), rows, any(bool(column.told.any()) for column in points.columns), points.plot)


def hazard_ratios(table: HazardRatios, alpha: float, *, forest: bool) -> TableResult:
    """Ratios by name, beside their logarithms; no estimate where one is not told. Drawn as survival by arm, if any."""
    found = regression(table, alpha, {})
    low, high = table.ratio_int(alpha).T
    ratios = np.exp(np.where(table.errors.told(alpha), table.errors.estimate, np.nan))
    rows = [
        {**row, "hazard_ratio": float(ratios[i]), "ratio_low": float(low[i]), "ratio_high": float(high[i])}
        for i, row in enumerate(found.rows)
    ]
    by_arm = not forest and table.by is not None and table.counted is not None
    return found._replace(rows=rows, draw=partial(table.plot, alpha=alpha) if by_arm else _forest(table, alpha))


def effects(table: EffectRows, alpha: float) -> TableResult:
    """Effects by outcome and subgroup; no estimate where one is not told. Of one question without their names."""
    rows = table.rows(alpha)
    told = any(bool(row["told"]) for row in rows)
    if len(table) > 1 or table.analysis is not None:
        return TableResult(table.summary(alpha), rows, told, _forest(table.named, alpha))
    (only,) = table
    return TableResult(only.summary(alpha), [only.row(alpha)], told, _forest(only, alpha))


def balance(effects: EffectRows, alpha: float) -> TableResult:
    """Columns of both arms, and their standardised differences; the same for every outcome."""
    table, *_ = effects
    found = table.balance(alpha)
    numbers = {"treated": found.means[:, 0], "others": found.means[:, 1], "difference": found.difference}
    numbers |= {"low": found.low, "high": found.high}
    rows = [
        {"column": column, "told": bool(found.told[i]), **{name: float(each[i]) for name, each in numbers.items()}}
        for i, column in enumerate(found.columns)
    ]
    return TableResult(
        table.balance_summary(alpha), rows, bool(found.told.any()), lambda path: plot_balance(found, path)
    )


def curves(survival: SurvivalCurve | SurvivalCurves, time: str) -> TableResult:
    """Survival by group and time."""
    groups = survival if isinstance(survival, SurvivalCurves) else SurvivalCurves({"": survival})
    told = any(len(curve.timeline) for curve in groups.values())
    return TableResult(groups.summary(), groups.to_rows(), told, partial(plot_survival, survival, xlabel=time))


def score(found: HeadScore) -> TableResult:
    """The measures of a head, by name and class."""
    return TableResult(found.summary(), found.to_rows(), found.told, found.plot)


def shares(cells: dict[str, Interval], release: Release, alpha: float) -> TableResult:
    """Shares by cell."""
    rows = [
        {"cell": cell, **share._asdict(), "value": share.value if share.told else math.nan}
        for cell, share in cells.items()
    ]
    return TableResult(proportions_summary(cells, release, alpha), rows, any(share.told for share in cells.values()))


def table_one(groups: GroupMeans | GroupShares) -> TableResult:
    """Columns by group: means and deviations, or numbers and shares."""
    return TableResult(groups.summary(), groups.to_rows(), bool(np.any(groups.told)))
