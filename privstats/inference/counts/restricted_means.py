"""Compare two groups by their mean survival time up to a horizon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from privstats.errors import ReleaseError
from privstats.inference.counts.risks import contrasts
from privstats.inference.counts.survival import (
    SurvivalCurve,
    SurvivalCurves,
    curve_description,
    curve_source,
    groups_by,
    tally_of_curve,
)
from privstats.inference.counts.table import Interval
from privstats.inference.description import numbers_of
from privstats.inference.reporting import HIDDEN
from privstats.inference.summary import RowTable, Summary, ends_of, number_of


@dataclass(frozen=True)
class RestrictedMeans(RowTable):
    """Mean survival times up to ``tau`` in two groups.

    ``difference`` and ``ratio`` compare the second group with the first; the ratio's high end is infinite where the
    first mean may be 0. They are not reported where a group's mean is not.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", ("a", "b"))), (("months", "died", "arm"),))
        >>> records = {"months": [0, 1, 2, 2] * 30, "died": [1, 0, 1, 0] * 30, "arm": ["a", "b", "b", "a"] * 30}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> curves = ps.inference.kaplan_meier(release, time="months", event="died", by="arm", times="discrete")
        >>> means = ps.inference.restricted_means(curves, 2)
        >>> [round(mean.value, 2) for mean in means.means.values()], round(means.difference.value, 2)
        ([1.0, 2.0], 1.0)
    """

    tau: float
    means: Mapping[str, Interval]
    difference: Interval
    ratio: Interval
    curves: SurvivalCurves = field(repr=False)

    def to_rows(self) -> list[dict[str, object]]:
        """Return groups, difference and ratio."""
        first, second = self.means
        compared: dict[str, object] = {"level": second, "compared_with": first}
        rows = [
            (group, "restricted mean", each, numbers_of(tally_of_curve(self.curves[group], group, "")))
            for group, each in self.means.items()
        ]
        rows += [("", "difference", self.difference, compared), ("", "ratio", self.ratio, compared)]
        return [
            {
                "group": group,
                "metric": metric,
                "estimate": each.value if each.reported else math.nan,
                "conf_low": each.low,
                "conf_high": each.high,
                "time": self.tau,
                **more,
                "reported": each.reported,
            }
            for group, metric, each, more in rows
        ]

    def summary(self) -> Summary:
        """Return the table."""
        first, second = self.means
        named = {**self.means, f"difference, {second} less {first}": self.difference}
        named |= {f"ratio, {second} over {first}": self.ratio}
        rows = [
            (name, number_of(each.value) if each.reported else HIDDEN, number_of(each.low), number_of(each.high))
            for name, each in named.items()
        ]
        alpha = next(iter(self.curves.values())).alpha
        return curve_source(self.curves).summary(
            f"Mean survival time up to {self.tau:g}",
            (groups_by(self.curves), "mean", *ends_of(alpha)),
            rows,
            about=curve_description(
                self.curves, "mean", f"time without {{event}} up to {self.tau:g}, in the unit of the times"
            ),
            methods=f"Restricted mean survival times are the areas under the survival curves up to {self.tau:g}; "
            "intervals of their difference and ratio follow from those of both (Zou and Donner 2008).",
        )


def restricted_means(curves: SurvivalCurves | SurvivalCurve, tau: float) -> RestrictedMeans:
    """Return two groups' mean survival times up to ``tau``, with difference and ratio.

    Each mean is :meth:`SurvivalCurve.restricted_mean`. Intervals of difference and ratio follow from both intervals, as
    those of :func:`risks_at` do.

    Raises:
        ReleaseError: not two groups, or ``tau`` beyond the last edge.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", ("a", "b"))), (("months", "died", "arm"),))
        >>> records = {"months": [0, 1, 2, 2] * 30, "died": [1, 0, 1, 0] * 30, "arm": ["a", "b", "b", "a"] * 30}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> curves = ps.inference.kaplan_meier(release, time="months", event="died", by="arm", times="discrete")
        >>> round(ps.inference.restricted_means(curves, 2).ratio.value, 2)
        2.0
    """
    if not isinstance(curves, SurvivalCurves) or len(curves) != 2:
        raise ReleaseError("restricted means compare two groups: give kaplan_meier(..., by=) of a variable of two")
    means = {group: curve.restricted_mean(tau) for group, curve in curves.items()}
    first, second = means.values()
    if not (first.reported and second.reported):
        tau = float(tau)
        hidden = Interval(math.nan, -tau, tau, False), Interval(math.nan, 0.0, math.inf, False)
        return RestrictedMeans(tau, means, *hidden, curves)
    apart, ratio = contrasts(second[:3], first[:3])
    return RestrictedMeans(float(tau), means, Interval(*apart, True), Interval(*ratio, True), curves)
