"""Count who enters late: at risk from their entry on (left truncation).

The number at risk at the beginning of a bin is that of records that have entered before it and not left. Exits less
entries of all later bins give the same number, because each record leaves once: ``r_j = sum_(i >= j) (exits_i -
entries_i)``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.counts.table import CountTable, count_table
from privstats.kinds import CountSchema
from privstats.kinds.late_entry import LateEntry
from privstats.release import Release
from privstats.schema import Bins, narrowed

_SMALL = 1e-2
_CROWDED = 0.9  # largest share of those at risk or entering who may leave in a bin, for even rates to give their time
_MAX_ITERATIONS = 30


def with_entries(
    release: Release, table: CountTable, entry: str, groups: tuple[str, ...], times: str, start: float | None
) -> CountTable:
    """Return counts of time against event with minus the entries in each bin, from ``start`` on.

    Args:
        table: the groups, then time and event of two values.
        entry: a variable of ``Bins`` with the edges of the time, crossed with ``groups``.

    Raises:
        ReleaseError: other edges, no such table, a start that is no edge, a plan that may count records that are never
            at risk, or an event with a cell for missing values.
    """
    clock, event = table.variables[-2:]
    assert isinstance(clock, Bins)  # noqa: S101  the reader has refused others
    if table.counts.shape[-1] != 2:
        raise ReleaseError("late entry needs an event of two values: causes that censor are not offered with it")
    if event.missing:
        raise ReleaseError(
            f"late entry needs every record's event, and {event.name!r} has a cell for missing values, whose records "
            "are among the entries; declare it without missing=True"
        )
    entries = count_table(release, *groups, entry).known()
    enters = entries.variables[-1]
    if not isinstance(enters, Bins) or (enters.edges, enters.closed, enters.open) != (
        clock.edges,
        clock.closed,
        clock.open,
    ):
        raise ReleaseError(
            f"entry {entry!r} must be Bins with the edges of {clock.name!r}, so that both are counted in the same bins"
        )
    _require_exclusion(release, LateEntry(entry, clock.name, times))
    counts = np.concatenate([table.counts, -entries.counts[..., None]], axis=-1)
    begins = 0 if start is None else _edge(clock, start)
    edges = clock.edges[begins:]
    later = replace(clock, edges=edges)
    sigma = max(table.sigma, entries.sigma)  # they differ where one table sums over further variables
    return CountTable((*table.variables[:-2], later, table.variables[-1]), counts[..., begins:, :], sigma, late=True)


def _require_exclusion(release: Release, late: LateEntry) -> None:
    """Refuse counts that may hold events of records that are never at risk.

    Exits and entries are in separate tables, which may be the same with and without such records.
    """
    schema = narrowed(release.plan.schema, CountSchema, ReleaseError("late entry is read from count tables"))
    planned = schema.late_entry
    if planned is None:
        raise ReleaseError(
            f"late entry needs a plan with late_entry=LateEntry({late.entry!r}, {late.time!r}, times={late.times!r}), "
            "which excludes records that leave before they enter. This plan has none, as plans of earlier versions, so "
            "its counts may hold events of persons who were never at risk, and no reader removes these: count again "
            "under a plan with late_entry. Tables that need no entry can be read from this release"
        )
    if replace(planned, rounded=False) != late:
        raise ReleaseError(
            f"these counts exclude records that leave before they enter by {planned.entry!r} and {planned.time!r} at "
            f"{planned.times} times, and entry {late.entry!r}, time {late.time!r} and times {late.times!r} were "
            f"requested: pass entry {planned.entry!r}, time {planned.time!r} and times {planned.times!r}"
        )


def _edge(clock: Bins, start: float) -> int:
    if start not in clock.edges[:-1]:
        edges = ", ".join(f"{edge:g}" for edge in clock.edges[:-1])
        raise ReleaseError(f"start must be an edge of {clock.name!r} ({edges}), got {start!r}")
    return clock.edges.index(start)


def person_time(at_risk: Array, entered: Array, gone: Array) -> Array:
    """Return the person-time of a bin in bins, where records enter at an even rate and leave at one rate per person.

    ``r(t)' = E - l r(t)`` from r at risk, with E entries, has the person-time ``e = r f + E (1 - f) / l``, ``f = (1 -
    exp(-l)) / l``; the rate l solves ``l e = gone``. Without entries it is ``r q / -log(1 - q)`` with ``q = gone / r``.
    Where more than .9 of all leave, those who enter or leave count half, and those who must do both one third: the mean
    time between two even times.

    Args:
        at_risk, entered, gone: of each bin, real or complex.

    Example:
        >>> from privstats.inference.counts.entries import person_time
        >>> person_time(np.array([100.0]), np.array([20.0]), np.array([0.0])).tolist()
        [110.0]
    """
    all_of = at_risk + entered
    held = np.real(all_of) > 0
    crowded = ~held | (np.real(gone) > _CROWDED * np.real(all_of)) | (np.real(gone) < -0.5 * np.real(all_of))
    r, E, d = (np.where(crowded, safe, each) for safe, each in ((1.0, at_risk), (0.0, entered), (0.0, gone)))
    middle = r + E / 2
    rate = d / np.where(np.abs(middle) < 1, 1.0, middle)
    for _ in range(_MAX_ITERATIONS):
        f, rest = _shares(rate)
        slope = r * np.exp(-rate) + E * _rest_slope(rate)
        rate = rate - (rate * (r * f + E * rest) - d) / np.where(np.abs(slope) < 1e-9, 1.0, slope)
    f, rest = _shares(rate)
    both = np.where(np.real(gone) > np.real(at_risk), gone - at_risk, 0.0)
    return np.asarray(np.where(crowded, at_risk + (entered - gone) / 2 + both / 3, r * f + E * rest))


def _shares(rate: Array) -> tuple[Array, Array]:
    """Return f = (1 - exp(-l)) / l and (1 - f) / l."""
    small = np.abs(rate) < _SMALL
    l = np.where(small, 1.0, rate)  # noqa: E741
    f = np.where(small, 1 - rate / 2 + rate**2 / 6 - rate**3 / 24 + rate**4 / 120, (1 - np.exp(-l)) / l)
    return f, np.where(small, 0.5 - rate / 6 + rate**2 / 24 - rate**3 / 120 + rate**4 / 720, (1 - f) / l)


def _rest_slope(rate: Array) -> Array:
    """Return the derivative of 1 - f."""
    small = np.abs(rate) < _SMALL
    l = np.where(small, 1.0, rate)  # noqa: E741
    own = ((1 - np.exp(-l)) / l - np.exp(-l)) / l
    return np.where(small, 0.5 - rate / 3 + rate**2 / 8 - rate**3 / 30, own)


def greenwood(counts: Array, exposure: Array, times: str) -> Array:
    """Return the standard error of log S from chance, ``(k,)``: exact counts of events given who is at risk."""
    d, e = np.maximum(counts[..., 1], 0.0), np.maximum(exposure, 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = d / (e * np.maximum(e - d, 0.0)) if times == "discrete" else d / e**2
    return np.asarray(np.sqrt(np.cumsum(np.where(d > 0, each, 0.0))))
