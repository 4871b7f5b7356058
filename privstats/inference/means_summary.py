"""Means by group as rows and as a table for publication: test and standardised difference beside the first group."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import Summary, chance_of, ends_of, number_of

if TYPE_CHECKING:
    from privstats.inference.group_means import GroupMeans

__all__ = ["means_summary", "rows_of"]

_SMD = (
    "SMD: the first group's mean less the second's, over the root of the mean of both variances (Austin 2009); its "
    "interval is about these records, under the noise alone."
)


def rows_of(means: GroupMeans) -> list[dict[str, object]]:
    """One row per column and group; test and difference, which are of both groups, beside the first."""
    rows: list[dict[str, object]] = []
    for j, column in enumerate(means.columns):
        for i, group in enumerate(means.groups):
            numbers = {"mean": means.means, "conf_low": means.low, "conf_high": means.high}
            numbers["std_dev"] = means.deviations
            row: dict[str, object] = {"variable": column, "group": group, "n": float(means.counts[i])}
            row |= {name: float(values[i, j]) for name, values in numbers.items()}
            tested = means.pvalues is not None and not i
            row["p_value"] = float(means.pvalues[j]) if tested and means.pvalues is not None else math.nan
            apart = means.differences[j] if not i and means.differences is not None else [math.nan] * 3
            row |= dict(zip(("smd", "smd_low", "smd_high"), map(float, apart), strict=True))
            rows.append({**row, "told": bool(means.told[i])})
    return rows


def means_summary(means: GroupMeans) -> Summary:
    """Means by group, one row per column and group."""
    rows = []
    for row in rows_of(means):
        first = row["group"] == means.groups[0]
        values = (number_of(float(str(row[name]))) for name in ("mean", "conf_low", "conf_high", "std_dev"))
        cells = tuple(values) if row["told"] else (HIDDEN, "-inf", "inf", HIDDEN)
        compared = (_chance(means, row), _difference(means, row)) if first else ("", "")
        rows.append((str(row["variable"]) if first else "", str(row["group"]), *cells, *compared))
    source = Source(means.release, means.alpha, "independent records, negligible clipping, honest clients")
    return Summary(
        title=source.title("Means by group"),
        promise=source.promise,
        head=tuple((f"records {group}", f"{n:,.0f}") for group, n in zip(means.groups, means.counts, strict=True)),
        columns=("", "group", "mean", *ends_of(means.alpha), "std", "P", "SMD"),
        rows=tuple(rows),
        foot=(*source.foot, *(() if means.differences is None else (_SMD,))),
        methods=source.methods(
            "Means of groups have Student's t intervals, and two groups are compared by Welch's test, with the noise "
            "of counts, sums and sums of squares in their errors. Standardised differences are differences of means "
            "over the root of the mean of both variances (Austin 2009), with intervals under the noise alone."
        ),
    )


def _chance(means: GroupMeans, row: dict[str, object]) -> str:
    return "" if means.pvalues is None else chance_of(float(str(row["p_value"])))


def _difference(means: GroupMeans, row: dict[str, object]) -> str:
    if means.differences is None:
        return ""
    value, low, high = (float(str(row[name])) for name in ("smd", "smd_low", "smd_high"))
    if math.isnan(value):
        return HIDDEN
    return f"{value:.2f}" if low == high else f"{value:.2f} ({low:.2f} to {high:.2f})"
