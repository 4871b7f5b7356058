"""The results of ``privstats table``: a table, the same as rows of numbers, and whether noise hides all of it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from privstats.inference import GroupMeans, Interval, Regression, Summary, SurvivalCurve
from privstats.inference.summary import curve_summary, means_summary, proportions_summary
from privstats.release import Release

__all__ = ["TableResult", "curves", "means", "regression", "shares"]


class TableResult(NamedTuple):
    """A table to print, the same as rows of numbers, and whether noise leaves any of it readable."""

    summary: Summary
    rows: list[dict[str, object]]
    told: bool


def regression(table: Regression, alpha: float) -> TableResult:
    """Coefficients by name; no estimate where one is not told."""
    told = table.errors.told(alpha)
    columns = {"coef": np.where(told, table.errors.estimate, np.nan), "std_err": table.bse}
    columns |= {"noise_std_err": table.noise_bse, "pvalue": table.pvalues}
    columns["low"], columns["high"] = table.conf_int(alpha).T
    rows = [
        {"name": name, "told": bool(told[i]), **{key: float(values[i]) for key, values in columns.items()}}
        for i, name in enumerate(table.names)
    ]
    return TableResult(table.summary(alpha), rows, bool(told.any()))


def curves(survival: SurvivalCurve | dict[str, SurvivalCurve], release: Release, alpha: float) -> TableResult:
    """Survival by group and time."""
    groups = survival if isinstance(survival, dict) else {"": survival}
    rows: list[dict[str, object]] = []
    for group, curve in groups.items():
        columns = (curve.timeline, curve.at_risk, curve.events, curve.survival_function_, *curve.confidence_interval_.T)
        keys = ("time", "at_risk", "events", "survival", "low", "high")
        rows += [
            {"group": group} | dict(zip(keys, map(float, values), strict=True)) for values in zip(*columns, strict=True)
        ]
    return TableResult(curve_summary(groups, release, alpha), rows, bool(rows))


def shares(cells: dict[str, Interval], release: Release, alpha: float) -> TableResult:
    """Shares by cell."""
    rows = [
        {"cell": cell, **share._asdict(), "value": share.value if share.told else math.nan}
        for cell, share in cells.items()
    ]
    return TableResult(proportions_summary(cells, release, alpha), rows, any(share.told for share in cells.values()))


def means(groups: GroupMeans, release: Release, alpha: float) -> TableResult:
    """Means and deviations by column and group."""
    rows = [
        {
            "column": column,
            "group": group,
            "told": bool(groups.told[i]),
            "mean": float(groups.means[i, j]),
            "low": float(groups.low[i, j]),
            "high": float(groups.high[i, j]),
            "std": float(groups.deviations[i, j]),
        }
        for j, column in enumerate(groups.columns)
        for i, group in enumerate(groups.groups)
    ]
    return TableResult(means_summary(groups, release, alpha), rows, bool(groups.told.any()))
