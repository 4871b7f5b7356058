"""Survival curves from a table of time against event: Kaplan-Meier, restricted mean, median.

Everything is a function of the events and the censored records of every bin; standard errors come from the delta
method, which without noise is Greenwood's formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.spectrum import Array
from privstats.inference.counts.table import CountTable, Interval, count_table, spread, z_of
from privstats.inference.row_table import RowTable
from privstats.release import Release
from privstats.schema import Bins, Categories

if TYPE_CHECKING:
    from privstats.inference.summary import Summary

__all__ = ["SurvivalCurve", "SurvivalCurves", "Times", "at_risk_in", "event_tables", "kaplan_meier", "told_bins"]

Times: TypeAlias = Literal["discrete", "continuous"]

_SURE = 8.0  # standard deviations of noise in the number at risk up to which a curve is told
_FEWEST_AT_RISK = 20.0


@dataclass(frozen=True, eq=False)
class SurvivalCurve(RowTable):
    """A Kaplan-Meier estimate; arrays have one entry per bin that is told.

    Attributes:
        timeline: where the curve stands: a bin's own time, or its right end where times are continuous.
        survival_function_: the estimate, made decreasing and cut to 0..1 for reading.
        confidence_interval_: ``(k, 2)``. Log-log without noise, as lifelines has it; under noise plain, estimate +- z
            se, because a noisy estimate may be 1 or more and has no logarithm of its logarithm then.
        at_risk, events: noisy numbers behind the estimate.
        told_to: the time up to which the curve is told; 0 where no part of it is.
        release: the one that it was read from.
        alpha: level of the intervals.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died), (("months", "died"),))
        >>> counts = ps.measure(schema, {"months": [0, 1, 1, 2], "died": [1, 0, 1, 0]})
        >>> curve = ps.inference.kaplan_meier(ps.Release.exact(schema, counts), time="months", event="died")
        >>> curve.timeline.tolist(), curve.survival_function_.tolist()
        ([0.0, 1.0, 2.0], [0.75, 0.5, 0.5])
    """

    timeline: Array
    survival_function_: Array
    confidence_interval_: Array
    at_risk: Array
    events: Array
    told_to: float
    release: Release = field(repr=False)
    alpha: float
    _edges: Array = field(repr=False)
    _clock: Array = field(repr=False)
    _counts: Array = field(repr=False)
    _sigma: float = field(repr=False)
    _times: Times = field(repr=False)
    _z: float = field(repr=False)

    def restricted_mean(self, tau: float) -> Interval:
        """Mean survival time up to ``tau``: the area under the curve.

        Raises:
            ReleaseError: tau is not above 0, or beyond the last edge.
        """
        if not 0 < tau <= self._edges[-1]:
            raise ReleaseError(f"tau must be above 0 and at most the last edge, {self._edges[-1]:g}, got {tau!r}")
        value, error = spread(self._area(tau), self._counts.reshape(-1), self._sigma)
        if tau > self.told_to:
            return Interval(float(value[0]), 0.0, tau, False)
        low, high = np.clip([value[0] - self._z * error[0], value[0] + self._z * error[0]], 0.0, tau)
        return Interval(float(value[0]), float(low), float(high), True)

    def median(self) -> Interval:
        """The time at which half have had the event; infinite where the curve stays above one half.

        Ends are where the interval of the curve first falls to one half and where it last leaves it; an end that the
        told part does not reach is the end of the told part below, and infinite above.
        """
        low, high = self.confidence_interval_.T
        value = self._first_at_half(self.survival_function_)
        if not len(low):
            return Interval(value, 0.0, math.inf, False)
        lower = self._first_at_half(low)
        lower = self.told_to if math.isinf(lower) else lower
        return Interval(value, lower, self._first_at_half(high), True)

    @property
    def median_survival_time_(self) -> float:
        """The median's estimate."""
        return self.median().value

    def corners(self) -> tuple[Array, Array, Array, Array]:
        """Times, survival, and lower and upper ends of the line to draw, from 1 at time 0 to ``told_to``.

        Steps where times are discrete, straight between the ends of bins where they are continuous; 1 up to the first
        edge, as in :meth:`restricted_mean`.
        """
        start = np.unique([0.0, float(self._edges[0])] if self._times == "continuous" else [0.0])
        low, high = self.confidence_interval_.T
        lines = [np.concatenate([np.ones_like(start), each]) for each in (self.survival_function_, low, high)]
        times = np.concatenate([start, self.timeline])
        if self._times == "continuous":
            return times, lines[0], lines[1], lines[2]
        ends = np.concatenate([self.timeline, [max(self.told_to, float(times[-1]))]])
        steps = np.stack([times, ends], axis=1).reshape(-1)
        survival, lower, upper = (np.repeat(line, 2) for line in lines)
        return steps, survival, lower, upper

    def to_rows(self) -> list[dict[str, float]]:
        """The curve as it is printed: ``time``, ``n_risk``, ``n_event``, ``survival`` and its interval.

        It begins at time 0, where nobody has had the event and survival is 1 by definition.
        """
        from privstats.inference.counts.survival_summary import rows_of

        return rows_of(self)

    def summary(self) -> Summary:
        """The table for publication: ``print(curve.summary())``, or its ``as_html``, ``as_latex``, ``as_csv``."""
        return SurvivalCurves({"": self}).summary()

    def _first_at_half(self, curve: Array) -> float:
        falls = np.flatnonzero(curve <= 0.5)
        if not len(falls):
            return math.inf
        place = int(falls[0])
        if self._times == "discrete":
            return float(self.timeline[place])
        before, at = (1.0 if place == 0 else float(curve[place - 1])), float(curve[place])
        start, end = float(self._edges[place]), float(self._edges[place + 1])
        return end if before <= at else start + (before - 0.5) / (before - at) * (end - start)

    def _area(self, tau: float) -> Callable[[Array], Array]:
        edges, starts, times = self._edges, self._clock, self._times
        if times == "discrete":
            ends = np.minimum(np.append(starts[1:], max(tau, starts[-1])), tau)
            widths = np.maximum(ends - starts, 0.0)
            first = min(float(starts[0]), tau)

            def steps(flat: Array) -> Array:
                return np.asarray(first + np.sum(_survival(flat, times) * widths, axis=-1, keepdims=True))

            return steps
        left, right = edges[:-1], np.minimum(edges[1:], tau)
        widths = np.maximum(right - left, 0.0)
        inside = widths / (edges[1:] - edges[:-1])
        first = min(float(edges[0]), tau)

        def trapezoids(flat: Array) -> Array:
            after = _survival(flat, times)
            before = np.concatenate([np.ones_like(after[..., :1]), after[..., :-1]], axis=-1)
            cut = before + (after - before) * inside
            return np.asarray(first + np.sum((before + cut) / 2 * widths, axis=-1, keepdims=True))

        return trapezoids


class SurvivalCurves(RowTable, dict[str, SurvivalCurve]):
    """Survival curves by group.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", ("a", "b"))), (("months", "died", "arm"),))
        >>> records = {"months": [0, 1, 2, 2], "died": [1, 0, 0, 1], "arm": ["a", "a", "b", "b"]}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> curves = ps.inference.kaplan_meier(release, time="months", event="died", by="arm")
        >>> list(curves), curves.to_rows()[0]["time"], curves.to_rows()[0]["survival"]
        (['a', 'b'], 0.0, 1.0)
    """

    def to_rows(self) -> list[dict[str, object]]:
        """:meth:`SurvivalCurve.to_rows` of all groups, with the name of each as ``group``."""
        return [{"group": group, **row} for group, curve in self.items() for row in curve.to_rows()]

    def summary(self) -> Summary:
        """The table for publication: ``print(curves.summary())``, or its ``as_html``, ``as_latex``, ``as_csv``."""
        from privstats.inference.counts.survival_summary import curve_summary

        return curve_summary(self)


def kaplan_meier(
    release: Release,
    *,
    time: str,
    event: str,
    by: str | None = None,
    times: Times = "discrete",
    alpha: float = 0.05,
) -> SurvivalCurve | SurvivalCurves:
    """Survival curves from counts of time against event; post-processing, so it costs no privacy.

    Args:
        release: of a ``CountSchema`` with a table that crosses these variables.
        time: a variable of ``Bins``, edges at or above 0; 20 to 60 bins, the last one open.
        event: a variable of two ``Categories``, the second of which is the event.
        by: a variable of groups; then a curve for every group.
        times: ``"discrete"``: a bin is one time, censored records are at risk in their bin. ``"continuous"``: half of
            the records that are censored in a bin are at risk in it.
        alpha: level of the intervals.

    A curve is told up to the first bin where the number at risk is below 20 or 8 standard deviations of its noise;
    without noise up to the last bin in which a record is at risk.

    Raises:
        ReleaseError: other kinds of variables, or no table that crosses them.

    Example:
        >>> schema = ps.CountSchema(
        ...     (ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))), (("months", "died"),)
        ... )
        >>> counts = ps.measure(schema, {"months": [0, 1, 1, 2], "died": [1, 0, 1, 0]})
        >>> curve = ps.inference.kaplan_meier(ps.Release.exact(schema, counts), time="months", event="died")
        >>> curve.survival_function_.tolist()
        [0.75, 0.5, 0.5]
    """
    z = z_of(alpha)
    tables = event_tables(release, time, event, by, times)
    curves = SurvivalCurves({level: _curve(table, times, release, alpha, z) for level, table in tables.items()})
    return curves if by is not None else curves[""]


def event_tables(release: Release, time: str, event: str, by: str | None, times: Times) -> dict[str, CountTable]:
    """A table of time against event for every group; one without a name where there are no groups.

    Raises:
        ReleaseError: other kinds of variables, or no table that crosses them.
    """
    if times not in ("discrete", "continuous"):
        raise ReleaseError(f"times must be 'discrete' or 'continuous', got {times!r}")
    table = count_table(release, *((by,) if by is not None else ()), time, event).known()
    clock, outcome = table.variables[-2:]
    if not isinstance(clock, Bins) or clock.edges[0] < 0:
        raise ReleaseError(f"time {time!r} must be a variable of Bins with edges at or above 0")
    if not isinstance(outcome, Categories) or len(outcome.values) != 2 or outcome.other:
        raise ReleaseError(f"event {event!r} must have exactly two values, the second of which is the event")
    if by is None:
        return {"": table}
    return {
        level: CountTable((clock, outcome), table.counts[i], table.sigma)
        for i, level in enumerate(table.variables[0].cells[: len(table.counts)])
    }


def at_risk_in(counts: Array, times: Times) -> Array:
    """Records at risk in every bin, from counts ``(..., k, 2)`` of the censored and of events."""
    left = np.flip(np.cumsum(np.flip(counts.sum(axis=-1), axis=-1), axis=-1), axis=-1)
    return left - counts[..., 0] / 2 if times == "continuous" else left


def _survival(flat: Array, times: Times) -> Array:
    counts = flat.reshape(*flat.shape[:-1], -1, 2)
    at_risk = at_risk_in(counts, times)
    nobody = at_risk == 0
    return np.cumprod(1 - counts[..., 1] / np.where(nobody, 1.0, at_risk) * ~nobody, axis=-1)


def told_bins(table: CountTable) -> int:
    """Number of bins that are told."""
    at_risk, bins = at_risk_in(table.counts, "discrete"), len(table.counts)
    if table.sigma == 0:
        return int((at_risk > 0).sum())
    deviation = table.sigma * np.sqrt(2 * np.arange(bins, 0, -1))
    few = at_risk < np.maximum(_SURE * deviation, _FEWEST_AT_RISK)
    return int(np.argmax(few)) if few.any() else bins


def _curve(table: CountTable, times: Times, release: Release, alpha: float, z: float) -> SurvivalCurve:
    clock = table.variables[0]
    assert isinstance(clock, Bins)  # noqa: S101  refused before
    edges, told = np.array(clock.edges), told_bins(table)
    clock_times = edges[:-1] if times == "discrete" and clock.closed == "left" else edges[1:]
    values, errors = spread(lambda flat: _survival(flat, times), table.counts.reshape(-1), table.sigma)
    interval = _log_log(values, errors, z) if table.sigma == 0 else _plain(values, errors, z)
    shown = np.clip(np.minimum.accumulate(values), 0.0, 1.0)
    return SurvivalCurve(
        timeline=clock_times[:told],
        survival_function_=shown[:told],
        confidence_interval_=interval[:told],
        at_risk=at_risk_in(table.counts, times)[:told],
        events=table.counts[:told, 1],
        told_to=float(edges[told]) if told else 0.0,
        release=release,
        alpha=alpha,
        _edges=edges,
        _clock=clock_times,
        _counts=table.counts,
        _sigma=table.sigma,
        _times=times,
        _z=z,
    )


def _plain(values: Array, errors: Array, z: float) -> Array:
    return np.clip(np.stack([values - z * errors, values + z * errors], axis=1), 0.0, 1.0)


def _log_log(values: Array, errors: Array, z: float) -> Array:
    """S^exp(+- z se / (S log S)), and S itself where it is 0 or 1."""
    inner = (values > 0) & (values < 1)
    safe = np.where(inner, values, 0.5)
    margin = z * errors / (safe * np.log(safe))
    ends = np.stack([safe ** np.exp(-margin), safe ** np.exp(margin)], axis=1)
    return np.where(inner[:, None], ends, values[:, None])
