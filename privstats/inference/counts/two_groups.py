"""Compare two groups over time, from noisy counts of time against event."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.counts.entries import with_entries
from privstats.inference.counts.survival import (
    Times,
    at_risk_in,
    checked_times,
    event_tables,
    exposure_in,
    reported_bins,
)
from privstats.inference.counts.table import CountTable, count_table, gradients, spread
from privstats.inference.reporting import listed
from privstats.inference.summary import chance_of
from privstats.records.variables import Variable
from privstats.release import Release

_SURE = 4.0  # standard deviations of noise that a group's events must stand out by
_MOST_SHARE = 0.95  # maximum share of those at risk with the event in a bin, for a smooth logarithm
_FEWEST_BINS = 2


def _unadjusted(name: str, test: LogRank | Proportionality) -> str:
    found = f"P {chance_of(test.p_value)}" if test.reported else "not reported, because noise hides who is at risk"
    return f"{name}, unadjusted for other columns: {found}{without(test) if test.reported else ''}"


def without(test: LogRank | Proportionality) -> str:
    """Return a clause that names strata, or bins of strata, that are in no sum of a test; empty where none is."""
    return f", without {listed(test.hidden)}, where too few of a group are at risk" if test.hidden else ""


class LogRank(NamedTuple):
    """A log-rank test, with lifelines' names.

    Attributes:
        test_statistic: U^2 / V; NaN where not reported.
        p_value: chi-squared; 1 where not reported.
        hidden: strata, or bins of strata, in which noise hides a group: the test is without them.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", ("a", "b"))), (("months", "died", "arm"),))
        >>> records = {"months": [0, 1, 2, 2] * 20, "died": [1, 1, 0, 0] * 20, "arm": ["a", "a", "b", "b"] * 20}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> test = ps.inference.logrank_test(release, time="months", event="died", by="arm", times="discrete")
        >>> test.degrees_freedom, test.p_value < 0.001
        (1, True)
    """

    test_statistic: float
    p_value: float
    degrees_freedom: int = 1
    hidden: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _unadjusted("log-rank test", self)

    @property
    def reported(self) -> bool:
        """Whether noise permits a test."""
        return not math.isnan(self.test_statistic)


def logrank_test(
    release: Release,
    *,
    time: str,
    event: str,
    by: str,
    times: Times | None = None,
    strata: str | None = None,
    entry: str | None = None,
    start: float | None = None,
) -> LogRank:
    """Test whether two groups survive alike, over the bins reported for both, unadjusted for other columns.

    A stratum adds its own bins, and one in which noise hides a group from the first bin on adds none.

    U = sum over bins, and over strata, of d0 - d e0 / e. At discrete times e is the number at risk, and V is U's
    hypergeometric variance plus its noise. At continuous times e is person-time as in :func:`kaplan_meier`, so groups
    may leave at different rates; V is chance and noise. Noise enters by the delta method. Where it hides a group from
    the first bin on in every stratum, the statistic is NaN and the p-value 1.

    Args:
        release, time, event, times: as for :func:`kaplan_meier`; further events count as censored.
        by: a variable of two groups.
        strata: a variable with separate hazards per value.
        entry, start: for late entry, as for :func:`kaplan_meier`; crossed with ``strata`` too. V then holds the chance
            that an event is in the first group, given who is at risk.

    Raises:
        ReleaseError: not exactly two groups, or as for :func:`kaplan_meier`.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", ("a", "b"))), (("months", "died", "arm"),))
        >>> records = {"months": [0, 1, 2, 2] * 20, "died": [1, 1, 0, 0] * 20, "arm": ["a", "a", "b", "b"] * 20}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> ps.inference.logrank_test(release, time="months", event="died", by="arm", times="discrete").p_value < 0.001
        True
    """
    late = entry is not None
    counts, sigma, seen, over = _groups(release, time, event, by, times, strata, "a log-rank test", entry, start)
    if not seen.any() and sigma == 0:
        raise ReleaseError(f"a group of {by!r} has no record at risk; omit its cell from the plan's variable")
    if not seen.any():
        return LogRank(math.nan, 1.0)
    assert times is not None  # noqa: S101  refused before
    difference = partial(_difference, shape=counts.shape, seen=seen, times=times, late=late)
    (value,), (error,) = spread(difference, counts.reshape(-1), sigma)
    variance = float(error) ** 2
    if times == "discrete" or late:
        noise = float(np.square(gradients(difference, counts.reshape(-1))).sum())
        bins = seen.shape[-1]
        chance = _hypergeometric(counts[..., :bins, :], at_risk_in(counts)[..., :bins])
        if times == "continuous":
            chance = _binomial(counts[..., :bins, :], exposure_in(counts, times, late=True)[..., :bins])
        variance = max(float(chance[seen].sum()), 0.0) + sigma**2 * noise
    if not variance > 0:  # without noise only: it gives U a variance of its own
        raise ReleaseError("the bins reported for both groups hold no event, so nothing can be compared")
    statistic = float(value) ** 2 / variance
    return LogRank(statistic, float(chdtrc(1, statistic)), hidden=_hidden_strata(over, seen))


def _groups(
    release: Release,
    time: str,
    event: str,
    by: str,
    times: Times | None,
    strata: str | None,
    needs: str,
    entry: str | None = None,
    start: float | None = None,
) -> tuple[Array, float, NDArray[np.bool_], tuple[Variable, ...]]:
    """Return counts, ``(2, strata, bins, events)``, their noise, the bins reported in both groups, strata and bins."""
    late = entry is not None
    found = event_tables(release, time, event, by, times, causes=not late, entry=entry, start=start)
    tables = list(found.values())
    if len(tables) != 2:
        raise ReleaseError(f"{by!r} has {len(tables)} groups, and {needs} compares two; release such a table")
    if strata is None:
        counts, sigma = np.stack([table.counts[None] for table in tables]), tables[0].sigma
    else:
        every = count_table(release, by, strata, time, event).known()
        if entry is not None:
            every = with_entries(release, every, entry, (by, strata), checked_times(times), start)
        counts, sigma = every.counts, every.sigma
    own = [[reported_bins(CountTable(tables[0].variables, each, sigma, late)) for each in group] for group in counts]
    reported = np.min(own, axis=0)
    seen = np.arange(reported.max()) < reported[:, None]
    return counts, sigma, seen, () if strata is None else every.variables[1:3]


def _hidden_strata(over: tuple[Variable, ...], seen: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the names of strata without bins, and of strata with fewer bins than others, with the first that lacks."""
    if not over:
        return ()
    (strata, clock), names = over, list[str]()
    for cell, shown in zip(strata.cells, seen, strict=False):
        name, count = f"{strata.name}: {cell}", int(shown.sum())
        if count < len(shown):
            names.append(f"{name} from {clock.name} {clock.cells[count]} on" if count else name)
    return tuple(names)


def _hypergeometric(counts: Array, at_risk: Array) -> Array:
    """Return the variance of the first group's events by stratum and bin, given all events and who is at risk."""
    r, d = at_risk.sum(axis=0), counts[..., 1].sum(axis=0)
    several = r > 1
    share = at_risk[0] / np.where(several, r, 1.0)
    return np.where(several, d * share * (1 - share) * (r - d) / np.where(several, r - 1, 1.0), 0.0)


def _binomial(counts: Array, exposure: Array) -> Array:
    """Return the variance of the first group's events by stratum and bin, given all events and person-time."""
    e, d = np.maximum(exposure.sum(axis=0), 1.0), counts[..., 1].sum(axis=0)
    share = np.clip(exposure[0] / e, 0.0, 1.0)
    return np.asarray(d * share * (1 - share))


def _difference(
    flat: Array, shape: tuple[int, ...], seen: NDArray[np.bool_], times: Times, *, late: bool = False
) -> Array:
    counts, bins = flat.reshape(*flat.shape[:-1], *shape), seen.shape[-1]
    exposure, died = exposure_in(counts, times, late=late)[..., :bins], counts[..., :bins, 1]
    e, d = np.where(seen, exposure.sum(axis=-3), 1.0), died.sum(axis=-3)
    return _total(np.where(seen, died[..., 0, :, :] - d * exposure[..., 0, :, :] / e, 0.0))


def _total(values: Array) -> Array:
    return np.asarray(values.sum(axis=(-2, -1))[..., None])


class Proportionality(NamedTuple):
    """A test of "the hazard ratio is the same at all times".

    Not rejecting is no evidence for it.

    Attributes:
        test_statistic: U^2 / V; NaN where not reported.
        p_value: chi-squared; 1 where not reported.
        rises: whether the second group's later hazards exceed one ratio's.
        bins: number of bins compared, the most of a stratum.
        hidden: strata, or bins of strata, in which noise hides a group: the test is without them.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", (0, 1))), (("months", "died", "arm"),))
        >>> records = {"months": [0, 1, 2, 2] * 40, "died": [1, 0, 1, 0] * 40, "arm": [0, 1] * 80}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> names = {"time": "months", "event": "died", "by": "arm"}
        >>> found = ps.inference.proportionality_test(release, **names, times="discrete")
        >>> found.reported, found.degrees_freedom
        (False, 1)
    """

    test_statistic: float
    p_value: float
    rises: bool
    bins: int
    degrees_freedom: int = 1
    hidden: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _unadjusted(f"check of proportional curves over {self.bins} bins", self)

    @property
    def reported(self) -> bool:
        """Whether noise permits a test."""
        return not math.isnan(self.test_statistic)


def proportionality_test(
    release: Release,
    *,
    time: str,
    event: str,
    by: str,
    bins: int | None = None,
    times: Times | None = None,
    strata: str | None = None,
) -> Proportionality:
    """Test whether the hazard ratio of two groups changes with time, from counts, unadjusted for other columns.

    Where other columns act on the event, or on who leaves, the two curves are not proportional although hazards are
    proportional given these columns: the test then rejects, and says nothing about a model with the columns.

    U = sum_j t_j w_j (L1_j - c L0_j): t_j are the bins' positions from -1 to 1, L = -log(1 - d / r) a group's hazard in
    a bin, or d / e at continuous times, and w_j = e0 e1 / (e0 + e1). c is the one ratio for which the sum without t_j,
    over all strata, is 0. e is r, or person-time as in :func:`kaplan_meier`. U's variance by the delta method holds
    chance and noise.

    Args:
        release, time, event, times: as for :func:`logrank_test`.
        by: a variable of two groups; the second is compared with the first.
        bins: number to compare, from the first; None: all reported.
        strata: a variable with separate hazards per value and one ratio.

    Raises:
        ReleaseError: not exactly two groups, or as for :func:`kaplan_meier`.

    Example:
        >>> months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
        >>> schema = ps.CountSchema((months, died, ps.Categories("arm", (0, 1))), (("months", "died", "arm"),))
        >>> months, died = [0] * 30 + [1] * 80 + [2] * 90, [1] * 30 + [0] * 60 + [1] * 20 + [0] * 90
        >>> later = [0] * 40 + [1] * 60 + [2] * 100, [1] * 5 + [0] * 35 + [1] * 30 + [0] * 30 + [1] * 50 + [0] * 50
        >>> records = {"months": months + later[0], "died": died + later[1], "arm": [0] * 200 + [1] * 200}
        >>> release = ps.Release.exact(schema, ps.measure(schema, records))
        >>> names = {"time": "months", "event": "died", "by": "arm"}
        >>> found = ps.inference.proportionality_test(release, **names, bins=2, times="discrete")
        >>> found.rises, found.p_value < 0.001
        (True, True)
    """
    counts, sigma, seen, over = _groups(release, time, event, by, times, strata, "a hazard ratio")
    seen = seen[:, : bins or None]
    reported = seen.shape[-1]
    at_risk, died = at_risk_in(counts)[..., :reported], counts[..., :reported, 1]
    crowded = (seen & (died > _MOST_SHARE * at_risk)).any(axis=(0, 1))
    reported = int(np.argmax(crowded)) if crowded.any() else reported
    seen = seen[:, :reported]
    compared = max(int(seen.sum()), 1)
    least = max(_SURE * sigma * math.sqrt(compared), 1.0)
    if reported < _FEWEST_BINS or ((died[..., :reported] * seen).sum(axis=(1, 2)) < least).any():
        return Proportionality(math.nan, 1.0, False, reported)
    assert times is not None  # noqa: S101  refused before
    trend = partial(_trend, shape=counts.shape, seen=seen, times=times)
    (value,), (error,) = spread(trend, counts.reshape(-1), sigma)
    statistic = float(value / error) ** 2 if error > 0 else math.nan
    if math.isnan(statistic):
        return Proportionality(math.nan, 1.0, False, reported)
    hidden = _hidden_strata(over, seen)
    return Proportionality(statistic, float(chdtrc(1, statistic)), bool(value > 0), reported, hidden=hidden)


def _trend(flat: Array, shape: tuple[int, ...], seen: NDArray[np.bool_], times: Times) -> Array:
    counts, bins = flat.reshape(*flat.shape[:-1], *shape), seen.shape[-1]
    exposure = np.where(seen, exposure_in(counts, times)[..., :bins], 1.0)
    shares = np.where(seen, counts[..., :bins, 1] / exposure, 0.0)
    hazards = -np.log(1 - shares) if times == "discrete" else shares
    weights = exposure[..., 0, :, :] * exposure[..., 1, :, :] / exposure.sum(axis=-3)
    first, second = weights * hazards[..., 0, :, :], weights * hazards[..., 1, :, :]
    ratio = (_total(second) / _total(first))[..., None]
    return _total(np.linspace(-1, 1, bins) * (second - ratio * first))
