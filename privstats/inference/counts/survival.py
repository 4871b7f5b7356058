"""Estimate survival curves from a table of time against event, with errors by the delta method."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.estimates.score import shrunk_hazards, shrunk_shares
from privstats.inference.counts.entries import greenwood, person_time, with_entries
from privstats.inference.counts.table import CountTable, Interval, count_table, gradients, spread, z_of
from privstats.inference.description import Count, Description, numbers_of
from privstats.inference.reporting import HIDDEN, Source
from privstats.inference.summary import RowTable, Summary, ends_of
from privstats.release import Release
from privstats.schema import Bins, Categories

if TYPE_CHECKING:
    from privstats.inference.counts.table import Interval
    from privstats.inference.summary import Summary


Times: TypeAlias = Literal["discrete", "continuous"]

_SURE = 8.0  # a curve is reported while the number at risk exceeds this many standard deviations of its noise
_FEWEST_AT_RISK = 20.0
_CROWDED = 0.9  # maximum share of those at risk that may leave in a bin, for even rates to give their time in it
_MOST_HAZARD = -math.log(1 - _CROWDED)
_SMALL = 1e-3
EVEN = "hazards even inside a bin, or nobody leaves inside it"
"""The assumption of curves and ratios at continuous times."""

_PRODUCT = "by Kaplan and Meier's product of counts of events and of persons at risk in bins of time"
_EXPONENTIAL = "from counts of events and person-time in bins, in which events and censoring are assumed even"
_LATE = "Records enter late: survival is of those alive at {:g}, and a record is at risk from its entry on."
_AT_RISK = {
    "discrete": '"At risk" is the number of records under observation at the time of the row.',
    "continuous": '"At risk" is the number of records under observation when the bin of the row begins; the time is '
    "the bin's end.",
}
"""Legend of the column of the same name."""
_RISES = "Numbers at risk are noisy too, by the SE beside them, so one may exceed the one before it."
_NAMES = ("time", "n_risk", "n_risk_std_error", "n_event", "n_event_std_error", "survival", "conf_low", "conf_high")


@dataclass(frozen=True, eq=False)
class SurvivalCurve(RowTable):
    """Estimated survival in the reported bins.

    Attributes:
        timeline: a bin's own time, or its right end for continuous times.
        late: whether records enter late; survival is then of those alive at the first edge.
        survival_function_: made decreasing and clipped to 0..1.
        confidence_interval_: ``(k, 2)``. With noise every p = 1 - S with abs(p^ - p) <= z sqrt(p (1 - p) / n + tau^2):
            tau the noise, n the effective persons of Greenwood's variance. Without noise log-log, as lifelines, but
            where S is 1 or 0 the same inversion: log-log has no width there, and no event among few persons does not
            show that none can happen.
        at_risk, events: noisy; at risk when the bin begins.
        reported_to: end of the reported part, or 0.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died), (("months", "died"),))
        >>> counts = ps.measure(schema, {"months": [0, 1, 1, 2], "died": [1, 0, 1, 0]})
        >>> release = ps.Release.exact(schema, counts)
        >>> curve = ps.inference.kaplan_meier(release, time="months", event="died", times="discrete")
        >>> curve.timeline.tolist(), curve.survival_function_.tolist()  # the last bin is open, so not reported
        ([0.0, 1.0], [0.75, 0.5])
    """

    timeline: Array
    survival_function_: Array
    confidence_interval_: Array
    at_risk: Array
    events: Array
    reported_to: float
    release: Release = field(repr=False)
    alpha: float
    _edges: Array = field(repr=False)
    _clock: Array = field(repr=False)
    _counts: Array = field(repr=False)
    _sigma: float = field(repr=False)
    _times: Times = field(repr=False)
    _z: float = field(repr=False)
    late: bool = False
    _known: tuple[str, ...] = field(default=(), repr=False)

    def restricted_mean(self, tau: float) -> Interval:
        """Return the mean survival time up to ``tau``, at most the last edge: the area under the curve.

        The interval holds every mean tau (1 - p) with ``|p^ - p| <= z sqrt(p (1 - p) / n + noise^2)``, as Wilson's of a
        share: Wald's misses too often where few events are, and has no width without any. n is such that p (1 - p) / n
        is Greenwood's variance at hazards shrunk to their mean.

        Raises:
            ReleaseError: another ``tau``, or a curve with late entry, which is of those alive at its start.
        """
        if self.late:
            raise ReleaseError("restricted means need times from 0, and this curve is of those alive at its start")
        if not 0 < tau <= self._edges[-1]:
            raise ReleaseError(f"tau must be above 0 and at most the last edge, {self._edges[-1]:g}, got {tau!r}")
        area, flat = self._area(tau), self._counts.reshape(-1)
        value = float(area(_survival(flat, self._times))[0])
        if tau > self.reported_to:
            return Interval(value, 0.0, tau, False)
        slopes = gradients(lambda counts: area(_survival(counts, self._times)), flat)
        noise, n = self._sigma * float(np.linalg.norm(slopes)) / tau, self._worth_of_mean(area, tau)
        low, high = ends_of_share(np.array(1 - value / tau), np.array(n), noise, self._z)
        return Interval(value, tau * float(1 - high), tau * float(1 - low), True)

    def median(self) -> Interval:
        """Return the time by which half have had the event, or infinity.

        Ends are where the interval first falls to one half and last leaves it; beyond the reported part,
        ``reported_to`` and infinity.
        """
        low, high = self.confidence_interval_.T
        value = self._first_at_half(self.survival_function_)
        if not len(low):
            return Interval(value, 0.0, math.inf, False)
        lower = self._first_at_half(low)
        lower = self.reported_to if math.isinf(lower) else lower
        return Interval(value, lower, self._first_at_half(high), True)

    @property
    def has_few_at_risk(self) -> NDArray[np.bool_]:
        """Whether each bin has fewer than 20 at risk, ``(k,)``; its interval then misses more often than stated."""
        return np.asarray(self.at_risk < _FEWEST_AT_RISK)

    @property
    def median_survival_time_(self) -> float:
        """The median's estimate."""
        return self.median().value

    def risk_table(self) -> tuple[Array, Array, Array]:
        """Return bins' beginnings, numbers at risk, and noise."""
        n_reported, (bins, cells) = len(self.timeline), self._counts.shape
        later = np.arange(bins, bins - n_reported, -1)
        return self._edges[:n_reported], self.at_risk, self._sigma * np.sqrt(cells * later)

    def corners(self) -> tuple[Array, Array, Array, Array]:
        """Return times, survival and both ends to draw, from 1 at time 0.

        Discrete times draw steps, continuous ones lines.
        """
        begun = float(self._edges[0])
        start = np.unique([begun] if self.late else [0.0, begun] if self._times == "continuous" else [0.0])
        low, high = self.confidence_interval_.T
        lines = [np.concatenate([np.ones_like(start), each]) for each in (self.survival_function_, low, high)]
        times = np.concatenate([start, self.timeline])
        if self._times == "continuous":
            return times, lines[0], lines[1], lines[2]
        ends = np.concatenate([self.timeline, [max(self.reported_to, float(times[-1]))]])
        steps = np.stack([times, ends], axis=1).reshape(-1)
        survival, lower, upper = (np.repeat(line, 2) for line in lines)
        return steps, survival, lower, upper

    def to_rows(self) -> list[dict[str, float]]:
        """Return rows from time 0."""
        return rows_of(self)

    def summary(self) -> Summary:
        """Return the table."""
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
        if at <= 0 or before <= at:
            return end if before <= at else start + (before - 0.5) / (before - at) * (end - start)
        return start + math.log(before / 0.5) / math.log(before / at) * (end - start)

    def _worth_of_mean(self, area: Callable[[Array], Array], tau: float) -> float:
        """Return the persons n with ``p (1 - p) / n`` as variance of the mean's share p of lost time."""
        n_bins = len(self.timeline)
        hazards = np.zeros(len(self._counts))
        hazards[:n_bins], variances = _hazards_of(self._counts, self._sigma, self._times, n_bins)

        def mean(rates: Array) -> Array:
            return area(np.exp(-np.cumsum(rates, axis=-1)))

        slopes, kept = gradients(mean, hazards)[:n_bins, 0] / tau, float(mean(hazards)[0]) / tau
        variance = float(np.square(slopes) @ variances)
        return kept * (1 - kept) / variance if variance else math.inf

    def _area(self, tau: float) -> Callable[[Array], Array]:
        """Return the area as a function of the survival after each bin, ``(..., k)``."""
        edges, starts, times = self._edges, self._clock, self._times
        if times == "discrete":
            ends = np.minimum(np.append(starts[1:], max(tau, starts[-1])), tau)
            widths = np.maximum(ends - starts, 0.0)
            first = min(float(starts[0]), tau)

            def steps(after: Array) -> Array:
                return np.asarray(first + np.sum(after * widths, axis=-1, keepdims=True))

            return steps
        # Bins from tau on have no area, and noise can make survival there infinite.
        edges = edges[: int(np.searchsorted(edges, tau)) + 1]
        inside = np.clip((tau - edges[:-1]) / (edges[1:] - edges[:-1]), 0.0, 1.0)
        first = min(float(edges[0]), tau)

        def below(after: Array) -> Array:
            after = after[..., : len(inside)]
            before = np.concatenate([np.ones_like(after[..., :1]), after[..., :-1]], axis=-1)
            rate = np.log(before) - np.log(after)
            even = np.abs(rate) < _SMALL**2
            mean = np.where(even, inside, -np.expm1(-rate * inside) / np.where(even, 1.0, rate))
            return np.asarray(first + np.sum(before * mean * (edges[1:] - edges[:-1]), axis=-1, keepdims=True))

        return below


class SurvivalCurves(RowTable, dict[str, SurvivalCurve]):
    """Survival curves by group.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", ("a", "b"))), (("months", "died", "arm"),))
        >>> records = {"months": [0, 1, 2, 2], "died": [1, 0, 0, 1], "arm": ["a", "a", "b", "b"]}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> curves = ps.inference.kaplan_meier(release, time="months", event="died", by="arm", times="discrete")
        >>> list(curves), curves.to_rows()[0]["time"], curves.to_rows()[0]["survival"]
        (['a', 'b'], 0.0, 1.0)
    """

    def to_rows(self) -> list[dict[str, object]]:
        """Return all groups' rows, with a ``group``."""
        return [{"group": group, **row} for group, curve in self.items() for row in curve.to_rows()]

    def summary(self) -> Summary:
        """Return the table."""
        return curve_summary(self)


def kaplan_meier(
    release: Release,
    *,
    time: str,
    event: str,
    by: str | None = None,
    times: Times | None = None,
    entry: str | None = None,
    start: float | None = None,
    alpha: float = 0.05,
) -> SurvivalCurve | SurvivalCurves:
    """Return survival curves from counts of time against event, at no privacy cost.

    Args:
        release: with a table that crosses these variables.
        time: ``Bins`` with edges at or above 0; 20 to 60 bins, one edge beyond the follow-up.
        event: ``Categories`` with two values, the second is the event.
        by: variable for one curve per group.
        times: required. ``"discrete"``: a bin is one time, those censored in it are at risk, S = prod (1 - d / r)
            (Kaplan and Meier). ``"continuous"``: a bin is a span, S = exp(-sum d / e) with person-time e = r q / -log(1
            - q), q = (d + c) / r: d events and c censored of r leave at even rates.
        entry: for late entry (left truncation), ``Bins`` of the times at which records enter, with the edges of
            ``time``, crossed with ``by`` in a table of its own. At discrete times a record is at risk after its entry.
            At continuous ones entries are even inside a bin. See :func:`~privstats.inference.counts.entries`.
        start: with ``entry``, the edge from which the curve begins: survival of those alive then. None: the first one.

    A curve ends at the first bin with fewer at risk than 20 or 8 standard deviations of their noise; without noise,
    after the last record. A last bin open above is never reported: it holds everyone seen beyond it.

    Raises:
        ReleaseError: other kinds of variables, no such table, or no ``times``.

    Example:
        >>> schema = ps.CountSchema(
        ...     (ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))), (("months", "died"),)
        ... )
        >>> counts = ps.measure(schema, {"months": [0, 1, 1, 2], "died": [1, 0, 1, 0]})
        >>> release = ps.Release.exact(schema, counts)
        >>> curve = ps.inference.kaplan_meier(release, time="months", event="died", times="discrete")
        >>> curve.survival_function_.tolist()
        [0.75, 0.5]
    """
    z = z_of(alpha)
    tables = event_tables(release, time, event, by, times, entry=entry, start=start)
    assert times is not None  # noqa: S101  refused before
    known = _names(time, event, by)
    curves = SurvivalCurves({level: _curve(table, times, release, alpha, z, known) for level, table in tables.items()})
    return curves if by is not None else curves[""]


def follow_up(
    release: Release,
    *,
    time: str,
    event: str,
    by: str | None = None,
    times: Times | None = None,
    alpha: float = 0.05,
) -> FollowUp:
    """Return the follow-up by group: the time until censoring, by the reverse Kaplan-Meier method (Schemper 1996).

    The event ends the observation of follow-up, as censoring does that of survival: the curve is
    :func:`kaplan_meier`'s with both exchanged. At discrete times those with the event in a bin are at risk of being
    censored in it.

    Raises:
        ReleaseError: as for :func:`kaplan_meier`.

    Example:
        >>> schema = ps.CountSchema(
        ...     (ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))), (("months", "died"),)
        ... )
        >>> counts = ps.measure(schema, {"months": [0, 1, 1, 2], "died": [1, 0, 0, 0]})
        >>> release = ps.Release.exact(schema, counts)
        >>> ps.inference.follow_up(release, time="months", event="died", times="discrete").medians[""].value
        1.0
    """
    z = z_of(alpha)
    tables = event_tables(release, time, event, by, times)
    assert times is not None  # noqa: S101  refused before
    reversed_ = {level: replace(table, counts=table.counts[:, ::-1]) for level, table in tables.items()}
    known = _names(time, event, by)
    curves = {level: _curve(table, times, release, alpha, z, known) for level, table in reversed_.items()}
    return FollowUp(SurvivalCurves(curves))


@dataclass(frozen=True)
class FollowUp(RowTable):
    """Median follow-up by group, as :func:`follow_up` returns it.

    Attributes:
        curves: share still under observation by time, where ``events`` are those censored.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died), (("months", "died"),))
        >>> release = ps.Release.exact(schema, ps.measure(schema, {"months": [0, 1, 1, 2], "died": [1, 0, 0, 0]}))
        >>> ps.inference.follow_up(release, time="months", event="died", times="discrete").to_rows()[0]["estimate"]
        1.0
    """

    curves: SurvivalCurves = field(repr=False)

    @property
    def medians(self) -> dict[str, Interval]:
        """Median follow-up by group."""
        return {group: curve.median() for group, curve in self.curves.items()}

    def to_rows(self) -> list[dict[str, object]]:
        """Return a row per group."""
        return [
            {
                "group": group,
                "metric": "median follow-up",
                "estimate": median.value if median.reported else math.nan,
                "conf_low": median.low,
                "conf_high": median.high,
                **numbers_of(tally_of_curve(self.curves[group], group, "", 0)),
                "reported": median.reported,
            }
            for group, median in self.medians.items()
        ]

    def summary(self) -> Summary:
        """Return the table."""
        first = next(iter(self.curves.values()))
        rows = [(group, *_ends_of_median(median)) for group, median in self.medians.items()]
        return curve_source(self.curves).summary(
            "Median follow-up",
            (groups_by(self.curves), "median", *ends_of(first.alpha)),
            rows,
            about=curve_description(
                self.curves, "median", "time until half would be censored, were there no {event}", event=0
            ),
            methods="Follow-up was estimated by the reverse Kaplan-Meier method (Schemper and Smith 1996), in which "
            "the event censors the time until censoring.",
            caution=few_at_risk({group: curve for group, curve in self.curves.items() if _rests_on_few(curve)}),
        )


def event_tables(
    release: Release,
    time: str,
    event: str,
    by: str | None,
    times: Times | None,
    *,
    causes: bool = False,
    entry: str | None = None,
    start: float | None = None,
) -> dict[str, CountTable]:
    """Return a table of time against event per group; ``causes`` admits further, censored events.

    With ``entry`` each table is late (:class:`CountTable`), and begins at ``start``.
    """
    checked_times(times)
    if start is not None and entry is None:
        raise ReleaseError("start is for late entry: name the variable of entries in entry, or omit start")
    table = count_table(release, *((by,) if by is not None else ()), time, event).known()
    clock, outcome = table.variables[-2:]
    if not isinstance(clock, Bins) or clock.edges[0] < 0:
        raise ReleaseError(f"time {time!r} must be a variable of Bins with edges at or above 0")
    if not isinstance(outcome, Categories) or outcome.other or not (causes or len(outcome.values) == 2):
        raise ReleaseError(
            f"event {event!r} must have exactly two values, the second of which is the event; for several causes "
            "read cumulative_incidence"
        )
    if entry is not None:
        table = with_entries(release, table, entry, () if by is None else (by,), checked_times(times), start)
        clock = table.variables[-2]
    if by is None:
        return {"": table}
    return {
        level: CountTable((clock, outcome), table.counts[i], table.sigma, table.late)
        for i, level in enumerate(table.variables[0].cells[: len(table.counts)])
    }


def checked_times(times: Times | None) -> Times:
    """Return ``times``; raise ``ReleaseError`` unless ``"discrete"`` or ``"continuous"``."""
    if times not in ("discrete", "continuous"):
        raise ReleaseError(
            "times must be 'discrete' or 'continuous': whether a bin is one time, such as a visit, or a span of time, "
            f"got {times!r}"
        )
    return times


def at_risk_in(counts: Array) -> Array:
    """Return records at risk when bins begin, from counts ``(..., k, m)``."""
    return np.flip(np.cumsum(np.flip(counts.sum(axis=-1), axis=-1), axis=-1), axis=-1)


def exposure_in(counts: Array, times: Times, *, late: bool = False) -> Array:
    """Return the divisor of a bin's events: the number at risk, or person-time in bins.

    Person-time is r q / -log(1 - q), as q = (d + c) / r leave evenly; where q is above .9, each who
    leaves counts half. With late entry see :func:`~privstats.inference.counts.entries.person_time`.
    """
    at_risk = at_risk_in(counts)
    if times == "discrete":
        return at_risk
    if late:
        return person_time(at_risk, -counts[..., -1], counts[..., :-1].sum(axis=-1))
    gone = counts.sum(axis=-1)
    q = gone / np.where(at_risk == 0, 1.0, at_risk)
    small, most = np.abs(q) < _SMALL, q.real > _CROWDED
    safe = np.where(small | most, 0.5, q)
    rate = np.where(small, 1 + q / 2 + q * q / 3 + q**3 / 4, -np.log(1 - safe) / safe)
    return np.asarray(np.where(most, at_risk - gone / 2, at_risk / rate))


def _survival(flat: Array, times: Times, *, late: bool = False) -> Array:
    counts = flat.reshape(*flat.shape[:-1], -1, 3 if late else 2)
    exposure = exposure_in(counts, times, late=late)
    nobody = exposure == 0
    hazards = counts[..., 1] / np.where(nobody, 1.0, exposure) * ~nobody
    with np.errstate(over="ignore"):  # noise, in bins behind the reported ones
        return np.cumprod(1 - hazards, axis=-1) if times == "discrete" else np.exp(-np.cumsum(hazards, axis=-1))


def reported_bins(table: CountTable) -> int:
    """Return the number of reported bins."""
    clock, bins = table.variables[0], len(table.counts)
    assert isinstance(clock, Bins)  # noqa: S101  refused before
    at_risk = at_risk_in(table.counts)[: bins - (clock.open in ("above", "both"))]
    if table.sigma == 0:  # with late entry bins without anyone at risk may come before others
        return int(np.flatnonzero(at_risk > 0).max(initial=-1)) + 1
    deviation = table.sigma * np.sqrt(table.counts.shape[-1] * np.arange(bins, 0, -1)[: len(at_risk)])
    few = at_risk < np.maximum(_SURE * deviation, _FEWEST_AT_RISK)
    return int(np.argmax(few)) if few.any() else len(at_risk)


def _names(time: str, event: str, by: str | None) -> tuple[str, ...]:
    return (*(() if by is None else (by,)), time, event)


def _curve(
    table: CountTable, times: Times, release: Release, alpha: float, z: float, known: tuple[str, ...]
) -> SurvivalCurve:
    clock = table.variables[0]
    assert isinstance(clock, Bins)  # noqa: S101  refused before
    edges, n_bins = np.array(clock.edges), reported_bins(table)
    clock_times = edges[:-1] if times == "discrete" and clock.closed == "left" else edges[1:]
    values, errors = spread(partial(_survival, times=times, late=table.late), table.counts.reshape(-1), table.sigma)
    if table.late:  # entries and exits of a record are in two cells, so cells are not independent
        relative = greenwood(table.counts, exposure_in(table.counts, times, late=True), times)
        errors = np.multiply(values, relative, out=np.zeros_like(values), where=values > 0)  # where all have left
    interval = _inverted(table, times, n_bins, z)
    if table.sigma == 0:
        interval = _log_log(values[:n_bins], errors[:n_bins], z, interval)
    shown = np.clip(np.minimum.accumulate(values), 0.0, 1.0)
    return SurvivalCurve(
        timeline=clock_times[:n_bins],
        survival_function_=shown[:n_bins],
        confidence_interval_=interval,
        at_risk=at_risk_in(table.counts)[:n_bins],
        events=table.counts[:n_bins, 1],
        reported_to=float(edges[n_bins]) if n_bins else 0.0,
        release=release,
        alpha=alpha,
        _edges=edges,
        _clock=clock_times,
        _counts=table.counts,
        _sigma=table.sigma,
        _times=times,
        _z=z,
        late=table.late,
        _known=known,
    )


def _inverted(table: CountTable, times: Times, n_bins: int, z: float) -> Array:
    """Return every p = 1 - S accepted under noise tau, ``(n_bins, 2)``.

    n of :func:`worth_of` has hazards shrunk to their mean: a few noisy events do not set their own width.
    """
    survival = partial(_survival, times=times, late=table.late)
    noise = table.sigma * np.linalg.norm(gradients(survival, table.counts.reshape(-1))[:, :n_bins], axis=0)
    low, high = ends_of_share(1 - survival(table.counts.reshape(-1))[:n_bins], worth_of(table, times, n_bins), noise, z)
    return np.stack([1 - high, 1 - low], axis=1)


def worth_of(table: CountTable, times: Times, n_bins: int) -> Array:
    """Return the effective persons per bin, ``(e^H - 1) / sum of variances``, at hazards shrunk to their mean."""
    hazards, variances = _hazards_of(table.counts, table.sigma, times, n_bins, late=table.late)
    return np.asarray(np.expm1(np.cumsum(hazards)) / np.cumsum(variances))


def _hazards_of(counts: Array, sigma: float, times: Times, n_bins: int, *, late: bool = False) -> tuple[Array, Array]:
    """Return bins' hazards, shrunk to their mean, and the variances of unshrunk ones, each ``(n_bins,)``."""
    exposure = np.maximum(exposure_in(counts, times, late=late)[:n_bins], 1.0)
    events, left = counts[:n_bins, 1], counts[:n_bins, :2].sum(axis=1)
    if not n_bins:
        return exposure, exposure
    if times == "discrete":
        hazards = shrunk_hazards(events, exposure, sigma)
    else:  # events over person-time are hazards, not shares
        hazards = shrunk_shares(events, exposure, sigma, _MOST_HAZARD)
    return hazards, hazard_variances(hazards, left, exposure, times)


def hazard_variances(hazards: Array, left: Array, exposure: Array, times: Times) -> Array:
    """Return the variance of the estimated hazard of each bin, from chance.

    At discrete times it is Greenwood's ``(e^h - 1) / r``. At continuous ones g of r at risk leave a bin, d of them with
    the event, and ``h = l d / g`` with ``l = g / e = -log(1 - g / r)``. Given r, g is binomial of share 1 - e^-l; given
    g, d is binomial of share h / l. By the delta method the variance is ``h / e (1 + h / l ((2 sinh(l / 2) / l)^2 -
    1))``. With late entry this is the variance to within a few percent.

    Args:
        hazards: above 0, at most log(10) at continuous times.
        left: all who leave, with or without the event.
        exposure: number at risk, or person-time.

    Example:
        >>> from privstats.inference.counts.survival import hazard_variances
        >>> h, left, time = np.array([0.5]), np.array([50.0]), np.array([100.0])
        >>> hazard_variances(h, left, time, "continuous").round(6).tolist()  # without grouping, h / e
        [0.005105]
    """
    if times == "discrete":
        return np.asarray(np.expm1(hazards) / exposure)
    rates = np.clip(left / exposure, hazards, _MOST_HAZARD)
    grouped = np.square(2 * np.sinh(rates / 2) / rates) - 1
    return np.asarray(hazards / exposure * (1 + hazards / rates * grouped))


def ends_of_share(share: Array, n: Array, noise: Array | float, z: float) -> tuple[Array, Array]:
    """Return the range of p with ``abs(share - p) <= z sqrt(p (1 - p) / n + noise^2)``."""
    k = z * z / n
    root = np.sqrt(np.maximum(k * k + 4 * k * share * (1 - share) + 4 * (1 + k) * (z * noise) ** 2, 0.0))
    low, high = ((2 * share + k + sign * root) / (2 * (1 + k)) for sign in (-1, 1))
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _log_log(values: Array, errors: Array, z: float, at_ends: Array) -> Array:
    inner = (values > 0) & (values < 1)
    safe = np.where(inner, values, 0.5)
    margin = z * errors / (safe * np.log(safe))
    ends = np.stack([safe ** np.exp(-margin), safe ** np.exp(margin)], axis=1)
    return np.where(inner[:, None], ends, at_ends)


def rows_of(curve: SurvivalCurve) -> list[dict[str, float]]:
    """Return a curve's rows from time 0, where survival is 1.

    A bin of time 0, which may hold events, is the second row.
    """
    noise, sigma = curve.risk_table()[2], np.full(len(curve.timeline), curve._sigma)
    numbers = (curve.timeline, curve.at_risk, noise, curve.events, sigma)
    known = (*numbers, curve.survival_function_, *curve.confidence_interval_.T)
    first = (float(curve.at_risk[0]), float(noise[0])) if len(curve.at_risk) else (math.nan, math.nan)
    begun = float(curve._edges[0]) if curve.late else 0.0
    rows = [(begun, *first, 0.0, 0.0, 1.0, 1.0, 1.0), *zip(*known, strict=True)]
    return [dict(zip(_NAMES, map(float, row), strict=True)) for row in rows]


def curve_source(curves: Mapping[str, SurvivalCurve]) -> Source:
    """Return the curves' release and assumptions."""
    first = next(iter(curves.values()))
    assumed = "independent records, censoring independent of the event"
    if first.late:
        assumed += (
            ", entry independent of the event among those still alive, "
            f"{'entry before the bin of the exit' if first._times == 'discrete' else 'entries even inside a bin'}"
        )
    assumed = assumed if first._times == "discrete" else f"{assumed}, {EVEN}"
    return Source(first.release, first.alpha, assumed, known=(first._known,))


def until(curve: SurvivalCurve) -> str:
    """Return which events a row counts: those before its time, or also those at it."""
    clock = _variable(curve, -2)
    open_ended = isinstance(clock, Bins) and clock.closed == "left" and curve._times == "continuous"
    return "before" if open_ended else "up to and including"


def event_of(curve: SurvivalCurve) -> str:
    """Return the event as a table names it, such as ``"died: yes"``."""
    outcome = _variable(curve, -1)
    return "the event" if outcome is None else f"{outcome.name}: {outcome.cells[1]}"


def groups_by(curves: Mapping[str, SurvivalCurve]) -> str:
    """Return the variable of the groups, or an empty text."""
    known = next(iter(curves.values()))._known
    return known[0] if len(known) > 2 else ""  # groups, times, events


def _variable(curve: SurvivalCurve, place: int) -> Any:
    """Return the variable of times (-2) or of events (-1); None for a curve that does not name it."""
    return curve.release.plan.schema.variable(curve._known[place]) if curve._known else None  # type: ignore[attr-defined]


def tally_of_curve(curve: SurvivalCurve, group: str, by: str, event: int = 1) -> tuple[Count, Count]:
    """Return a group's numbers of records and of events.

    Args:
        curve: the group's.
        group, by: the group and its variable; empty for all records.
        event: column of the events in the curve's counts.
    """
    known, of = curve._counts[:, :2], f", {by}: {group}" if by else ""  # late entry has a third column
    records = Count(f"records{of}", float(known.sum()), curve._sigma * math.sqrt(known.size))
    return records, Count(f"events{of}", float(known[:, event].sum()), curve._sigma * math.sqrt(len(known)))


def curve_description(curves: Mapping[str, SurvivalCurve], what: str, of: str, event: int = 1) -> Description:
    """Return what the rows of a table of curves are.

    Args:
        curves: by group.
        what: heading of the estimates.
        of: the estimand, with ``{event}`` and ``{until}``.
        event: column of the events in the curves' counts; 0 where the curve is of censoring.
    """
    first, by = next(iter(curves.values())), groups_by(curves)
    clock = _variable(first, -2)
    return Description(
        estimand=(what, of.format(event=event_of(first), until=until(first))),
        facts=() if clock is None else (("time", clock.name),),
        counts=tuple(each for group, curve in curves.items() for each in tally_of_curve(curve, group, by, event)),
    )


def curve_summary(curves: Mapping[str, SurvivalCurve]) -> Summary:
    """Return the table of survival curves."""
    rows, noisy = [], any(curve._sigma > 0 for curve in curves.values())
    for group, curve in curves.items():
        for row in rows_of(curve):
            at_risk = HIDDEN if math.isnan(row["n_risk"]) else f"{row['n_risk']:,.0f}"
            error = HIDDEN if math.isnan(row["n_risk"]) else f"{row['n_risk_std_error']:,.1f}"
            shares = (f"{row[name]:.3f}" for name in ("survival", "conf_low", "conf_high"))
            events = f"{max(round(row['n_event']), 0):,}"
            rows.append((group, f"{row['time']:g}", at_risk, *([error] if noisy else []), events, *shares))
    first = next(iter(curves.values()))
    discrete = first._times == "discrete"
    about = curve_description(curves, "survival", "share of records without {event} {until} the time")
    events = f"Each number of events has a noise of standard error {first._sigma:,.1f}."
    return curve_source(curves).summary(
        "Kaplan-Meier estimate" if discrete else "Survival",
        (groups_by(curves), "time", "at risk", *(["SE"] if noisy else []), "events", "survival", *ends_of(first.alpha)),
        rows,
        about=replace(about, notes=(_RISES, events) if noisy else ()),
        head=((f"median {group}".strip(), _reached(curve.median())) for group, curve in curves.items()),
        methods=f"Survival was estimated {_PRODUCT if discrete else _EXPONENTIAL}, with errors by the delta method "
        "(Greenwood's formula, and the noise of the counts); a curve ends where noise hides how many are at risk."
        + (f" {_LATE.format(float(first._edges[0]))}" if first.late else ""),
        notes=(_AT_RISK[first._times], *((_LATE.format(float(first._edges[0])),) if first.late else ())),
        caution=" ".join(filter(None, (_unstarted(curves), few_at_risk(curves)))),
    )


def _unstarted(curves: Mapping[str, SurvivalCurve]) -> str:
    """Name the missing start where a curve with late entry ends in its first bin, because nearly nobody has entered."""
    empty = [group for group, curve in curves.items() if curve.late and not len(curve.timeline)]
    if not empty:
        return ""
    begun = float(next(iter(curves.values()))._edges[0])
    where = f" of {', '.join(empty)}" if any(empty) else ""
    return (
        f"The curve{where} ends where it begins, at {begun:g}: too few records have entered by then. Pass start "
        "(--start on the command line), an edge from which enough are at risk."
    )


def few_at_risk(curves: Mapping[str, SurvivalCurve], at: float | None = None) -> str:
    """Return a caution that names the reported rows with fewer than 20 at risk, or an empty text.

    Only exact counts have such rows: under noise a curve ends before them. How often their intervals miss is measured
    in benchmarks/inference/margins.py.

    Args:
        at: a time; other rows are not named.
    """
    named = []
    for group, curve in curves.items():
        few = curve.has_few_at_risk if at is None else curve.has_few_at_risk & np.isclose(curve.timeline, at)
        if few.any():
            named.append(f"{_runs(curve.timeline, few)}{f' of {group}' if group else ''}")
    if not named:
        return ""
    return (
        f"Fewer than {_FEWEST_AT_RISK:g} records are at risk at {', and '.join(named)}. Do not rely on intervals "
        "there: where 5% was stated, up to 13% missed, and up to 22% of a median's."
    )


def _runs(times: Array, chosen: NDArray[np.bool_]) -> str:
    """Return the chosen times, and for neighbours the first and the last."""
    places = np.flatnonzero(chosen)
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    ends = [(f"{times[run[0]]:g}", f"{times[run[-1]]:g}") for run in runs]
    return ", ".join(first if first == last else f"{first} to {last}" for first, last in ends)


def _rests_on_few(curve: SurvivalCurve) -> bool:
    """Return whether the interval of the median reaches a row with few at risk."""
    few, high = curve.has_few_at_risk, curve.median().high
    before = np.concatenate([curve._edges[:1], curve.timeline[:-1]])[: len(few)]
    return bool((few & (before < high)).any())


def _reached(median: Interval) -> str:
    value, low, high = _ends_of_median(median)
    return f"{value} ({low} to {high})"


def _ends_of_median(median: Interval) -> tuple[str, str, str]:
    value, low, high = ("not reached" if math.isinf(each) else f"{each:g}" for each in median[:3])
    return value if median.reported else HIDDEN, low, high
