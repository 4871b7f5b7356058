"""Survival curves as rows and as a table for publication, from time 0 on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import Summary, ends_of

if TYPE_CHECKING:
    from privstats.inference.counts.survival import SurvivalCurve
    from privstats.inference.counts.table import Interval

__all__ = ["curve_summary", "rows_of"]

_NAMES = ("time", "n_risk", "n_event", "survival", "conf_low", "conf_high")


def rows_of(curve: SurvivalCurve) -> list[dict[str, float]]:
    """A curve by time; the first row is that of time 0, where survival is 1 by definition.

    A bin of time 0, in which somebody may have had the event, is a row of its own behind it. Where no bin is told, the
    number at risk is NaN.
    """
    known = (curve.timeline, curve.at_risk, curve.events, curve.survival_function_, *curve.confidence_interval_.T)
    at_risk = float(curve.at_risk[0]) if len(curve.at_risk) else math.nan
    rows = [(0.0, at_risk, 0.0, 1.0, 1.0, 1.0), *zip(*known, strict=True)]
    return [dict(zip(_NAMES, map(float, row), strict=True)) for row in rows]


def curve_summary(curves: Mapping[str, SurvivalCurve]) -> Summary:
    """Survival curves, one row per group and time that is told."""
    rows = []
    for group, curve in curves.items():
        for row in rows_of(curve):
            at_risk = HIDDEN if math.isnan(row["n_risk"]) else f"{row['n_risk']:,.0f}"
            shares = (f"{row[name]:.3f}" for name in ("survival", "conf_low", "conf_high"))
            rows.append((group, f"{row['time']:g}", at_risk, f"{max(round(row['n_event']), 0):,}", *shares))
    first = next(iter(curves.values()))
    source = Source(first.release, first.alpha, "independent records, censoring that says nothing of the event")
    return Summary(
        title=source.title("Kaplan-Meier estimate"),
        promise=source.promise,
        head=tuple((f"median {group}".strip(), _reached(curve.median())) for group, curve in curves.items()),
        columns=("", "time", "at risk", "events", "survival", *ends_of(first.alpha)),
        rows=tuple(rows),
        foot=tuple(source.foot),
        methods=source.methods(
            "Survival was estimated by Kaplan and Meier's product of counts of events and of persons at risk in bins "
            "of time, with errors by the delta method (Greenwood's formula, and the noise of the counts); a curve ends "
            "where noise hides how many are at risk."
        ),
    )


def _reached(median: Interval) -> str:
    """A median and its interval, in words where the curve does not fall to one half."""
    value, low, high = ("not reached" if math.isinf(each) else f"{each:g}" for each in median[:3])
    return f"{value} ({low} to {high})"
