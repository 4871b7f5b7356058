"""Means by group as rows and as a table for publication: test and standardised difference beside the first group."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import Summary, chance_of, ends_of, number_of

if TYPE_CHECKING:
    from privstats.inference.groups.means import GroupMeans

__all__ = ["means_summary", "rows_of"]

_SMD = (
    "SMD: the first group's mean less the second's, over the root of the mean of both variances (Austin 2009); its "
    "interval is about these records, under the noise alone."
)
_SHARES = "n (%): number of ones and their share of the group, with the interval of the %."
_METHODS = (
    "Means of groups have Student's t intervals, and two groups are compared by Welch's test, with the noise of "
    "counts, sums and sums of squares in their errors. Standardised differences are differences of means over the root "
    "of the mean of both variances (Austin 2009), with intervals under the noise alone."
)
_METHODS_OF_SHARES = (
    "Columns of 0 and 1 are given as number and share, with Wilson's intervals widened by the noise, and compared by "
    "the chi-squared test with the noise in its variance."
)


def rows_of(means: GroupMeans) -> list[dict[str, object]]:
    """One row per column and group; test and difference, which are of both groups, beside the first."""
    return [_row(means, j, i) for j in range(len(means.columns)) for i in range(len(means.groups))]


def _row(means: GroupMeans, j: int, i: int) -> dict[str, object]:
    level, records, mean = means.levels[j], float(means.counts[i]), float(means.means[i, j])
    row: dict[str, object] = {"variable": means.columns[j], "level": level, "group": means.groups[i]}
    row |= {"n": records * mean, "proportion": mean} if level else {"n": records, "proportion": math.nan}
    row |= {"mean": math.nan if level else mean, "conf_low": float(means.low[i, j])}
    row |= {"conf_high": float(means.high[i, j]), "std_dev": float(means.deviations[i, j])}
    row["p_value"] = math.nan if i or means.pvalues is None else float(means.pvalues[j])
    apart = [math.nan] * 3 if i or means.differences is None else map(float, means.differences[j])
    row |= dict(zip(("smd", "smd_low", "smd_high"), apart, strict=True))
    return {**row, "told": bool(means.told[i])}


def means_summary(means: GroupMeans) -> Summary:
    """Means by group, one row per column and group."""
    rows = []
    for row in rows_of(means):
        first = row["group"] == means.groups[0]
        compared = (_chance(means, row), _difference(means, row)) if first else ("", "")
        rows.append((str(row["variable"]) if first else "", str(row["group"]), *_numbers(row), *compared))
    source = Source(means.release, means.alpha, "independent records, negligible clipping, honest clients")
    shares = any(means.levels)
    return Summary(
        title=source.title("Means by group"),
        promise=source.promise,
        head=tuple((f"records {group}", f"{n:,.0f}") for group, n in zip(means.groups, means.counts, strict=True)),
        columns=("", "group", "mean or n (%)" if shares else "mean", *ends_of(means.alpha), "std", "P", "SMD"),
        rows=tuple(rows),
        foot=(*source.foot, *(() if means.differences is None else (_SMD,)), *((_SHARES,) if shares else ())),
        methods=source.methods(f"{_METHODS} {_METHODS_OF_SHARES}" if shares else _METHODS),
    )


def _numbers(row: Mapping[str, object]) -> tuple[str, ...]:
    """Mean, interval and deviation as they are printed; of 0 and 1 number and per cent."""
    if not row["told"]:
        return (HIDDEN, *(("0.0", "100.0", "") if row["level"] else ("-inf", "inf", HIDDEN)))
    if not row["level"]:
        return tuple(number_of(float(str(row[name]))) for name in ("mean", "conf_low", "conf_high", "std_dev"))
    share, low, high = (100 * float(str(row[name])) for name in ("proportion", "conf_low", "conf_high"))
    return f"{max(round(float(str(row['n']))), 0):,} ({share:.1f})", f"{low:.1f}", f"{high:.1f}", ""


def _chance(means: GroupMeans, row: dict[str, object]) -> str:
    return "" if means.pvalues is None else chance_of(float(str(row["p_value"])))


def _difference(means: GroupMeans, row: dict[str, object]) -> str:
    if means.differences is None:
        return ""
    value, low, high = (float(str(row[name])) for name in ("smd", "smd_low", "smd_high"))
    if math.isnan(value):
        return HIDDEN
    value, low, high = (round(each, 2) + 0.0 for each in (value, low, high))  # no -0.00
    return f"{value:.2f}" if low == high else f"{value:.2f} ({low:.2f} to {high:.2f})"
