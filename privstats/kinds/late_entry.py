"""Exclude persons who are never at risk, because they leave before they come under observation (left truncation).

Count tables and hazards share this rule, so both exclude the same records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import RecordError, SchemaError
from privstats.intake.declared.categories import require_switch
from privstats.records.reasons import LATE, LATE_VISIT
from privstats.records.variables import Bins

if TYPE_CHECKING:
    from privstats.kinds.counts import CountSchema

_FEWEST_VISITS = 3


@dataclass(frozen=True)
class LateEntry:
    """Two times of a record, of which the entry must come before the exit.

    A record that is never at risk is unreadable: its event would count for nobody who was there. It is refused or
    excluded as ``unreadable`` states. Whether a record is one follows from its two times and the plan alone.

    Args:
        entry: the ``Bins`` of the times at which records enter.
        time: the ``Bins`` of the times at which they leave, with the same edges.
        times: ``"discrete"``: a bin is one visit, and a record is at risk after its entry's visit. ``"continuous"``: a
            record is at risk from its entry on, also inside one bin.
        rounded: whether continuous times are rounded down, as to full days: with equal times a record then left later
            within that unit, and counts.

    Example:
        >>> late = ps.LateEntry("entered", "visit", times="discrete")
        >>> edges = tuple(range(5))
        >>> schema = ps.CountSchema(
        ...     (ps.Bins("visit", edges), ps.Bins("entered", edges), ps.Categories("died", (0, 1))),
        ...     (("visit", "died"), ("entered",)),
        ...     late_entry=late,
        ... )
        >>> ps.measure(schema, {"visit": [2, 3], "entered": [2, 1], "died": [1, 1]})
        Traceback (most recent call last):
            ...
        privstats.errors.RecordError: X has records that hold a time of entry in the visit of the exit or a later one...
    """

    entry: str
    time: str
    times: str
    rounded: bool = False

    def __post_init__(self) -> None:
        for field in ("entry", "time"):
            if not isinstance(getattr(self, field), str) or not getattr(self, field):
                raise SchemaError(f"{field} of late_entry must be the name of a variable, got {getattr(self, field)!r}")
        if self.entry == self.time:
            raise SchemaError(f"late_entry names {self.entry!r} as entry and as time; name two variables")
        if self.times not in ("discrete", "continuous"):
            raise SchemaError(
                "times of late_entry must be 'discrete' or 'continuous': whether a bin is one visit or a span of time, "
                f"got {self.times!r}"
            )
        require_switch("late_entry", "rounded", self.rounded)
        if self.rounded and self.times == "discrete":
            raise SchemaError("rounded of late_entry is for continuous times: omit it for visits")

    @property
    def reason(self) -> str:
        """Why a record is unreadable, for the data holder."""
        return LATE_VISIT if self.times == "discrete" else LATE

    def never_at_risk(
        self,
        entries: NDArray[np.float64],
        exits: NDArray[np.float64],
        since: NDArray[np.intp],
        until: NDArray[np.intp],
        beyond: int,
    ) -> NDArray[np.bool_]:
        """Return which records are never at risk, ``(n,)``.

        Args:
            entries, exits: times, NaN where unreadable.
            since, until: their bins.
            beyond: the open bin of all later times, which is no single visit: only the times decide there.

        Example:
            >>> late = ps.LateEntry("entered", "visit", times="discrete")
            >>> times, bins = (np.array([2.0, 1.0]), np.array([2.5, 3.0])), (np.array([2, 1]), np.array([2, 3]))
            >>> late.never_at_risk(*times, *bins, beyond=4).tolist()
            [True, False]
        """
        late = exits < entries if self.rounded else exits <= entries
        return late | (until <= since) & (until < beyond) if self.times == "discrete" else late

    def refuse(self, late: NDArray[np.bool_]) -> None:
        """Raise RecordError if a record is never at risk.

        Example:
            >>> ps.LateEntry("entered", "months", times="continuous").refuse(np.array([False])) is None
            True
        """
        if late.any():
            raise RecordError(f"X has records that {self.reason}, in {self.entry!r}; correct or omit them")


def checked_late_entry(schema: CountSchema) -> LateEntry | None:
    """Check and return a schema's late entry, also from a plan file's table."""
    value: Any = schema.late_entry
    if value is None:
        return None
    known = {field.name for field in fields(LateEntry)}
    if isinstance(value, Mapping) and {"entry", "time", "times"} <= set(value) <= known:
        value = LateEntry(**value)
    if type(value) is not LateEntry:
        raise SchemaError("late_entry has entry, time and times, and may have rounded; write [schema.late_entry]")
    if schema.transform:
        raise SchemaError("late_entry compares two times as they are: omit transform")
    columns = {each.name: each for each in schema.variables}
    enters, clock = (columns.get(name) for name in (value.entry, value.time))
    if not isinstance(enters, Bins) or not isinstance(clock, Bins) or enters.missing or clock.missing:
        raise SchemaError(
            f"late_entry names {value.entry!r} and {value.time!r}, which must be Bins of the plan, without "
            "missing=True: a record without one of its times is never known to be at risk"
        )
    if (enters.edges, enters.closed, enters.open) != (clock.edges, clock.closed, clock.open):
        raise SchemaError(
            f"the bins of {value.entry!r} must have the edges of {value.time!r}, so that both are counted in the same "
            "bins"
        )
    if value.times == "discrete" and len(clock.cells) < _FEWEST_VISITS:
        raise SchemaError(
            f"{value.time!r} has {len(clock.cells)} bins, and at discrete times nobody is at risk in the first one: "
            f"give {_FEWEST_VISITS} or more"
        )
    return value


def beyond_of(clock: Bins) -> int:
    """Return the open bin of all later times; one past the last bin where none is open.

    Example:
        >>> from privstats.kinds.late_entry import beyond_of
        >>> [beyond_of(ps.Bins("visit", (0, 1, 2, 3), open=ends)) for ends in ("above", "none")]
        [2, 3]
    """
    return len(clock.cells) - (clock.open in ("above", "both"))
