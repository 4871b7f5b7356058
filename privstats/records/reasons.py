"""State why a record cannot be read, in words for the data holder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.intake.columns import Decided, Readings
from privstats.intake.declared.categories import Categories
from privstats.intake.meaning import MISSING, has_decimal_comma, is_date, is_duration

GAP = "hold nothing"
UNCODED = "hold nothing, or nothing that can be read"  # of codes, in which both are NaN
TEXT = "hold a text where a number belongs"
COMMA = "hold a number with a decimal comma"
DURATION = "hold a duration where a number belongs"
DATE = "hold a date where a number belongs"
WORD = "hold none of the values that the plan declares"
ARM = "hold an arm that is neither 0 nor 1"
LABEL = "hold none of the plan's labels"
NO_CELL = "hold a value that the plan does not list"
EXPOSURE = "hold an exposure that is not above 0 and at most the plan's exposure_bound"
VECTOR = "have no vector of finite numbers under the plan's statistic"
LATE = "hold a time of entry that is not before the exit"
LATE_VISIT = (
    "hold a time of entry in the visit of the exit or a later one (at discrete times nobody is at risk at the visit of "
    "the entry: number visits from 1, so that 0 is before the first)"
)

Why: TypeAlias = dict[tuple[str, str], NDArray[np.bool_]]
"""Masks of unreadable entries ``(n,)``, by column and reason."""


_LOOKS: Mapping[str, Callable[[str], bool]] = {COMMA: has_decimal_comma, DURATION: is_duration, DATE: is_date}
"""What a text in place of a number looks like, by reason; no text fits two."""


def no_number(name: str, readings: Readings, unread: NDArray[np.bool_]) -> Why:
    """Return which unread values of a column of numbers have a decimal comma, and so on, and which are other texts."""
    return _by_looks(name, readings, unread, TEXT)


def no_cell(name: str, variable: object, readings: Readings, outside: NDArray[np.bool_]) -> Why:
    """Return why values have no cell of a variable: they are gaps, or look like something else, or are not listed.

    Args:
        outside: which values have no cell, ``(n,)``.
    """
    values: Sequence[object] = ()
    gaps = readings.missing
    if isinstance(variable, Categories):
        values, gaps = variable.values, variable.decide(readings).gaps
    why: Why = {(name, GAP): (gaps := gaps & outside)}
    if any(isinstance(value, str) for value in values):
        return {**why, (name, NO_CELL): outside & ~gaps}
    return {**why, **_by_looks(name, readings, outside & ~gaps, NO_CELL)}


def _by_looks(name: str, readings: Readings, unread: NDArray[np.bool_], other: str) -> Why:
    """Divide unread values by what they look like; ``other`` is the reason of the rest.

    Every reason has a mask, so that all parts of a table give them in one order.
    """
    none = np.zeros_like(unread)
    if not (unread.any() and readings.distinct):
        return {**{(name, reason): none for reason in _LOOKS}, (name, other): unread}
    why, rest = Why(), unread
    for reason, fits in _LOOKS.items():
        why[name, reason] = here = readings.each([*map(fits, readings.distinct)], nothing=False) & unread
        rest = rest & ~here
    return {**why, (name, other): rest}


def looks_of(readings: Readings, unread: NDArray[np.bool_]) -> str:
    """Return what the first kind of unread values looks like, as the end of a refusal; "" for other texts.

    Example:
        >>> from privstats.intake.columns import read
        >>> from privstats.records.reasons import looks_of
        >>> looks_of(read([61, "61,5"]), np.array([False, True]))
        '; some hold a number with a decimal comma'
    """
    looks = _by_looks("", readings, unread, "").items()
    first = next((reason for (_, reason), mask in looks if mask.any()), "")
    return f"; some {first}" if first else ""


def spelled(name: str, column: object, readings: Readings) -> Why:
    """Return which values are words for a gap, or a declared text in another case, of a column of declared texts.

    Only public texts are named: the words of ``intake.meaning.MISSING``, and the plan's own.
    """
    if not isinstance(column, Categories):
        return {}
    return spelled_among(name, column.values, column.decide(readings), readings)


def spelled_among(name: str, values: Sequence[object], decided: Decided, readings: Readings) -> Why:
    """Return as :func:`spelled` does, of values that are listed beside the columns, such as classes.

    Args:
        decided: which of the column's values are listed, and which are gaps.
    """
    why = Why()
    listed = {str(value).casefold(): value for value in values}
    for place, text in enumerate(readings.distinct):  # a text per record, where a column of notes was named
        value = listed.get(text.casefold())
        if text in MISSING:
            key, chosen = (name, f"hold {text!r}, which means a gap where the plan does not declare it"), decided.gaps
        elif value is not None:
            key, chosen = (name, f"hold {value!r} in another case"), ~decided.gaps
        else:
            continue
        here = (readings.places == place) & (decided.places < 0)
        if here.any():
            why[key] = why.get(key, False) | (here & chosen)
    return why
