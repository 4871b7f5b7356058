"""Estimate risks by group and cumulative incidence by cause from counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.counts.survival import (
    EVEN,
    SurvivalCurve,
    SurvivalCurves,
    Times,
    checked_times,
    curve_description,
    curve_source,
    ends_of_share,
    exposure_in,
    few_at_risk,
    groups_by,
    reported_bins,
    tally_of_curve,
    until,
    worth_of,
)
from privstats.inference.counts.table import CountTable, count_table, gradients, z_of
from privstats.inference.description import Count, Description, numbers_of
from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import RowTable, Summary, ends_of, number_of
from privstats.release import Release
from privstats.schema import Bins, Categories

_SMALL = 1e-4


@dataclass(frozen=True)
class RisksAt(RowTable):
    """Risks up to a time in two groups.

    ``difference`` and ``ratio`` compare the second with the first, with low and high ends; the ratio's is infinite
    where the first risk may be 0, and its estimate not a number where both are.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", ("a", "b"))), (("months", "died", "arm"),))
        >>> records = {"months": [0, 1, 2, 2] * 30, "died": [1, 0, 1, 0] * 30, "arm": ["a", "b", "b", "a"] * 30}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> curves = ps.inference.kaplan_meier(release, time="months", event="died", by="arm", times="discrete")
        >>> round(ps.inference.risks_at(curves, 0).difference[0], 2)
        -0.5
    """

    at: float
    risks: Mapping[str, tuple[float, float, float]]
    difference: tuple[float, float, float]
    ratio: tuple[float, float, float]
    curves: SurvivalCurves = field(repr=False)

    def to_rows(self) -> list[dict[str, object]]:
        """Return groups, difference and ratio."""
        names, (first, second) = ("group", "metric", "estimate", "conf_low", "conf_high"), self.risks
        compared = {"level": second, "compared_with": first, "time": self.at}
        rows: list[dict[str, object]] = [
            {
                **dict(zip(names, (group, "risk", *each), strict=True)),
                **numbers_of(tally_of_curve(self.curves[group], group, "")),
                "time": self.at,
            }
            for group, each in self.risks.items()
        ]
        contrasts = (("", "difference", *self.difference), ("", "ratio", *self.ratio))
        return [*rows, *({**dict(zip(names, row, strict=True)), **compared} for row in contrasts)]

    def summary(self) -> Summary:
        """Return the table."""
        first, second = self.risks
        rows = [(group, *map(number_of, each)) for group, each in self.risks.items()]
        rows += [(f"risk difference, {second} less {first}", *map(number_of, self.difference))]
        ratio, *ends = self.ratio
        shown = HIDDEN if math.isnan(ratio) else number_of(ratio)
        rows += [(f"risk ratio, {second} over {first}", shown, *map(number_of, ends))]
        curve = next(iter(self.curves.values()))
        end = f"{until(curve)} {self.at:g}"
        return curve_source(self.curves).summary(
            f"Risk {end}",
            (groups_by(self.curves), "risk", *ends_of(curve.alpha)),
            rows,
            about=curve_description(self.curves, "risk", f"share of records with {{event}} {end}"),
            methods=f"Risks {end} are 1 minus the survival curve; intervals of their difference and ratio "
            "follow from those of both (Newcombe 1998; Donner and Zou 2012).",
            caution=few_at_risk(self.curves, self.at),
        )


def risks_at(curves: SurvivalCurves | SurvivalCurve, at: float) -> RisksAt:
    """Return two groups' risks at a reported time, with difference and ratio.

    With risks p, q and ends l, u, the difference p - q ends at ``p - q - sqrt((p - l_p)^2 + (u_q - q)^2)`` and ``p - q
    + sqrt((u_p - p)^2 + (q - l_q)^2)``; the ratio by the same rule for ``p - t q`` (Newcombe 1998; Donner and Zou
    2012).

    Raises:
        ReleaseError: not two groups, or an unreported time.

    Example:
        >>> from privstats.inference.counts.risks import contrasts
        >>> difference, ratio = contrasts((0.3, 0.25, 0.35), (0.2, 0.15, 0.25))
        >>> [round(end, 3) for end in difference]
        [0.1, 0.029, 0.171]
    """
    if not isinstance(curves, SurvivalCurves) or len(curves) != 2:
        raise ReleaseError("risks at a time compare two groups: give kaplan_meier(..., by=) of a variable of two")
    risks = {group: _risk(group, curve, at) for group, curve in curves.items()}
    first, second = risks.values()
    return RisksAt(float(at), risks, *contrasts(second, first), curves)


def _risk(group: str, curve: SurvivalCurve, at: float) -> tuple[float, float, float]:
    places = np.flatnonzero(np.isclose(curve.timeline, at))
    if not len(places):
        times = ", ".join(f"{each:g}" for each in curve.timeline) or "none"
        raise ReleaseError(f"the curve of {group!r} is reported at {times}, not at {at:g}: pass one of these times")
    place = int(places[0])
    low, high = curve.confidence_interval_[place]
    return 1 - float(curve.survival_function_[place]), 1 - float(high), 1 - float(low)


def contrasts(
    one: tuple[float, float, float], other: tuple[float, float, float]
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return difference and ratio of independent shares, each with both ends."""
    (p, l, u), (q, k, v) = one, other  # noqa: E741  ends of the interval of p; k and v are those of q
    difference = (p - q, p - q - math.hypot(p - l, v - q), p - q + math.hypot(u - p, q - k))
    low, high = (
        _ratio_end(p * q, l * (2 * p - l), v * (2 * q - v), -1),
        _ratio_end(p * q, u * (2 * p - u), k * (2 * q - k), 1),
    )
    ratio = p / q if q > 0 else math.inf if p > 0 else math.nan
    return difference, (ratio, max(low, 0.0), high if k > 0 else math.inf)


def _ratio_end(product: float, above: float, below: float, side: int) -> float:
    inside = max(product**2 - above * below, 0.0)
    return (product + side * math.sqrt(inside)) / below if below > 0 else (math.inf if side > 0 else 0.0)


@dataclass(frozen=True, eq=False)
class Incidence(RowTable):
    """Cumulative incidence by group and cause, over reported bins.

    Attributes:
        curves: by (group, cause) ``(k, 3)``: estimate, low, high.
        events: likewise, noisy, ``(k,)``.
        timeline: times by group.
        tallies: numbers of records, and of events by cause, by group.
        sigma: standard error of the noise in a number of events.

    Example:
        >>> months, ended = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("ended", ("seen", "relapse", "death"))
        >>> schema = ps.CountSchema((months, ended), (("months", "ended"),))
        >>> records = {"months": [0, 0, 1, 2], "ended": ["relapse", "death", "relapse", "seen"]}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> found = ps.inference.cumulative_incidence(release, time="months", event="ended", times="discrete")
        >>> found.curves["", "relapse"][:, 0].tolist()
        [0.25, 0.5]
    """

    curves: Mapping[tuple[str, str], Array]
    events: Mapping[tuple[str, str], Array]
    timeline: Mapping[str, Array]
    release: Release = field(repr=False)
    alpha: float
    times: Times
    _known: tuple[str, ...] = field(default=(), repr=False)
    tallies: Mapping[str, tuple[Count, ...]] = field(default_factory=dict, repr=False)
    sigma: float = 0.0

    @property
    def reported(self) -> bool:
        """Whether any bin is reported."""
        return any(map(len, self.timeline.values()))

    def to_rows(self) -> list[dict[str, object]]:
        """Return rows by group, cause, time."""
        names = ("incidence", "conf_low", "conf_high")
        return [
            {"group": group, "cause": cause, "time": float(time), "n_event": float(count)}
            | {"n_event_std_error": self.sigma}
            | dict(zip(names, map(float, ends), strict=True))
            for (group, cause), curve in self.curves.items()
            for time, count, ends in zip(self.timeline[group], self.events[group, cause], curve, strict=True)
        ]

    def summary(self) -> Summary:
        """Return the table."""
        rows = [
            (
                f"{row['group']} {row['cause']}".strip(),
                f"{row['time']:g}",
                f"{max(round(float(str(row['n_event']))), 0):,}",
                *(f"{row[name]:.3f}" for name in ("incidence", "conf_low", "conf_high")),
            )
            for row in self.to_rows()
        ]
        assumed = "independent records, censoring independent of the events"
        even = "" if self.times == "discrete" else f", {EVEN}"
        return Source(self.release, self.alpha, assumed + even, known=(self._known,)).summary(
            "Cumulative incidence",
            ("", "time", "events", "incidence", *ends_of(self.alpha)),
            rows or [(HIDDEN, *[HIDDEN] * 5)],
            about=self._description,
            notes=("Causes compete: an incidence is the share of persons who had this cause first.",),
            methods="Cumulative incidence by cause was estimated by Aalen and Johansen (1978) from counts of events "
            "and of persons at risk in bins of time; it ends where noise hides how many are at risk.",
        )

    @property
    def _description(self) -> Description:
        schema: Any = self.release.plan.schema
        if not self._known:
            return Description()
        clock = schema.variable(self._known[-2])
        end = "before" if clock.closed == "left" and self.times == "continuous" else "up to and including"
        events = f"Each number of events has a noise of standard error {self.sigma:,.1f}."
        return Description(
            estimand=("incidence", f"share of records with the cause, before any other, {end} the time"),
            facts=(("time", clock.name),),
            counts=tuple(each for several in self.tallies.values() for each in several),
            notes=(events,) if self.sigma else (),
        )


def cumulative_incidence(
    release: Release, *, time: str, event: str, by: str | None = None, times: Times | None = None, alpha: float = 0.05
) -> Incidence:
    """Compute the cumulative incidence of competing causes (Aalen and Johansen 1978).

    In a bin with d_c events of cause c, d of all causes, and e at risk (or person-time, as in :func:`kaplan_meier`),
    c's incidence grows by ``S d_c / e`` at discrete times and ``S (d_c / d) (1 - exp(-d / e))`` at continuous ones, S
    the survival before. Intervals invert ``|p^ - p| <= z sqrt(p (1 - p) / n + tau^2)``: tau is the noise by the delta
    method, n Greenwood's effective sample size.

    The first category of ``event`` means no event; others are causes. All else is as for :func:`kaplan_meier`.

    Example:
        >>> months, ended = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("ended", ("seen", "relapse", "death"))
        >>> schema = ps.CountSchema((months, ended), (("months", "ended"),))
        >>> records = {"months": [0, 0, 1, 2], "ended": ["relapse", "death", "relapse", "seen"]}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> found = ps.inference.cumulative_incidence(release, time="months", event="ended", times="discrete")
        >>> len(found.to_rows())
        4
    """
    times, z = checked_times(times), z_of(alpha)
    names = (*(() if by is None else (by,)), time, event)
    table = count_table(release, *names).known()
    clock, outcome = table.variables[-2:]
    if not isinstance(clock, Bins) or clock.edges[0] < 0:
        raise ReleaseError(f"time {time!r} must be a variable of Bins with edges at or above 0")
    if not isinstance(outcome, Categories) or len(outcome.values) < 2 or outcome.other:
        raise ReleaseError(f"event {event!r} must have two values or more, the first that there was no event")
    ends = clock.edges[:-1] if times == "discrete" and clock.closed == "left" else clock.edges[1:]
    groups = {"": table.counts} if by is None else dict(zip(table.variables[0].cells, table.counts, strict=False))
    curves: dict[tuple[str, str], Array] = {}
    events: dict[tuple[str, str], Array] = {}
    timeline, tallies = {}, dict[str, tuple[Count, ...]]()
    for group, counts in groups.items():
        several = math.sqrt(len(outcome.values) / 2)  # the noise of a bin's cells is in the number at risk
        collapsed = CountTable((clock, outcome), _collapsed(counts), table.sigma * several)
        n_bins = reported_bins(collapsed)
        timeline[group] = np.array(ends)[:n_bins]
        of, bins = f", {by}: {group}" if by else "", len(counts)
        tallies[group] = (
            Count(f"records{of}", float(counts.sum()), table.sigma * math.sqrt(counts.size)),
            *(
                Count(f"events{of}, {event}: {cause}", float(number), table.sigma * math.sqrt(bins))
                for cause, number in zip(outcome.cells[1:], counts[:, 1:].sum(axis=0), strict=False)
            ),
        )
        for place, cause in enumerate(map(str, outcome.values[1:]), start=1):
            curves[group, cause] = _curve(counts, place, collapsed, table.sigma, n_bins, times, z)
            events[group, cause] = counts[:n_bins, place]
    return Incidence(curves, events, timeline, release, alpha, times, names, tallies, table.sigma)


def _curve(counts: Array, place: int, whole: CountTable, sigma: float, n_bins: int, times: Times, z: float) -> Array:
    rises = partial(_incidence, place=place, shape=counts.shape, times=times)
    noise = sigma * np.linalg.norm(gradients(rises, counts.reshape(-1)), axis=0)[:n_bins]
    estimate = np.real(rises(counts.reshape(-1)))[:n_bins]
    low, high = ends_of_share(estimate, worth_of(whole, times, n_bins), noise, z)
    return np.stack([np.clip(np.maximum.accumulate(estimate), 0.0, 1.0), low, high], axis=1)


def _collapsed(counts: Array) -> Array:
    return np.stack([counts[..., 0], counts[..., 1:].sum(axis=-1)], axis=-1)


def _incidence(flat: Array, place: int, shape: tuple[int, ...], times: Times) -> Array:
    counts = flat.reshape(*flat.shape[:-1], *shape)
    both = _collapsed(counts)
    exposure = exposure_in(both, times)
    nobody = exposure == 0
    safe = np.where(nobody, 1.0, exposure)
    every, own = both[..., 1] / safe * ~nobody, counts[..., place] / safe * ~nobody
    if times == "discrete":
        after, grown = np.cumprod(1 - every, axis=-1), own
    else:
        small = np.abs(every) < _SMALL
        held = np.where(small, 1.0, every)
        after = np.exp(-np.cumsum(every, axis=-1))
        grown = own * np.where(small, 1 - every / 2 + every * every / 6, (1 - np.exp(-held)) / held)
    before = np.concatenate([np.ones_like(after[..., :1]), after[..., :-1]], axis=-1)
    return np.asarray(np.cumsum(before * grown, axis=-1))
