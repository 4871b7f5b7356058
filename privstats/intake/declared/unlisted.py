"""Count a column's values that its declaration does not list, with their commonest texts: for the data holder alone.

A text is named only if ten records share it, so that it is hardly one person's. Nothing here is released.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privstats.intake.meaning import LOST, UNREADABLE, has_decimal_comma, shown

if TYPE_CHECKING:
    from privstats.intake.columns import Readings

MIN_RECORDS = 10
"""Fewer records are no diagnosis, and a text is named only if as many hold it."""
MAX_VALUES = 64
"""A column with more listed values gets no diagnosis by value."""
_MAX_TEXTS, _MAX_STORED = 3, 32
_NONE = Counter[str]()  # never changed: a reading of one record builds no counter


def texts_among(readings: Readings, chosen: NDArray[np.bool_]) -> Counter[str]:
    """Count the commonest of the chosen values, as texts.

    Example:
        >>> from privstats.intake.columns import read
        >>> texts_among(read(["verum", "Verum", "verum", 7]), np.ones(4, bool))
        Counter({'verum': 2, 'Verum': 1, '7': 1})
    """
    texts, words = Counter[str](), readings.places[chosen]
    for place, count in zip(*np.unique(words[words >= 0], return_counts=True), strict=True):
        text = readings.distinct[place]
        if text != UNREADABLE and LOST not in text:
            texts[text] = int(count)
    numbers = readings.numbers[chosen]
    for number, count in zip(*np.unique(numbers[~np.isnan(numbers)], return_counts=True), strict=True):
        texts[f"{number:.15g}"] = int(count)
    return commonest(texts)


def commonest(texts: Counter[str]) -> Counter[str]:
    """Bound what is stored: a text that ten records of a tile share is among its commonest."""
    return Counter(dict(texts.most_common(_MAX_STORED)))


def often(texts: Counter[str]) -> str:
    """Return words for the commonest texts that ten records share; "" without any.

    Example:
        >>> often(Counter({"verum": 60, "Anna": 1}))
        ", most often 'verum' (60)"
    """
    common = [f"{shown(text)} ({count:,})" for text, count in texts.most_common(_MAX_TEXTS) if count >= MIN_RECORDS]
    return f", most often {', '.join(common)}" if common else ""


def comma_hint(commas: int, unread: int) -> str:
    """Return what to do where most of the unread values have a decimal comma; else "".

    Example:
        >>> from privstats.intake.declared.unlisted import comma_hint
        >>> comma_hint(3, 4), comma_hint(1, 4)
        (' (write decimals with a point, or read their file with --decimal ,)', '')
    """
    return " (write decimals with a point, or read their file with --decimal ,)" if 2 * commas > unread else ""


@dataclass(frozen=True, repr=False)
class Lost:
    """Values of a declared column that are in no cell of their own.

    Attributes:
        unread: number of values that count as missing because they cannot be read.
        other: number of values in the cell "other".
        texts: the commonest of both; private.
        words: undeclared words for a gap, such as ``none``.
        commas: number of unread values that are numbers with a decimal comma.
        spelled: by listed value, the number of values that differ from it in their case alone.
        values, counts: the listed values, and the number of values equal to each; empty and None beyond
            :data:`MAX_VALUES`.

    Example:
        >>> column = ps.Categories("smoking", ("never", "light", "heavy"))
        >>> _, lost = column.codes_and_lost(column.readings(["Light", "heavy", "pipe", None]))
        >>> lost.unread, lost.other, dict(lost.spelled)
        (0, 2, {'light': 1})
    """

    unread: int = 0
    other: int = 0
    texts: Counter[str] = field(default_factory=lambda: _NONE)
    words: Counter[str] = field(default_factory=lambda: _NONE)
    spelled: Counter[str] = field(default_factory=lambda: _NONE)
    values: tuple[Any, ...] = ()
    counts: NDArray[np.int64] | None = field(default=None, compare=False)
    commas: int = 0

    @classmethod
    def of(
        cls,
        readings: Readings,
        unread: NDArray[np.bool_],
        other: NDArray[np.bool_] | None,
        words: NDArray[np.bool_] | None,
        places: NDArray[np.intp],
        values: tuple[Any, ...],
    ) -> Lost:
        """Build from masks ``(n,)`` of a column's values, and each value's index among the listed ones.

        Args:
            other: None where the column has no such cell.
            words: undeclared words for a gap; declared gap codes are none. None without any.
        """
        chosen = unread if other is None else unread | other
        any_chosen = bool(chosen.any())
        if not values and not any_chosen:
            return NOTHING
        few = values if len(values) <= MAX_VALUES else ()
        counts = np.bincount(places + 1, minlength=len(few) + 1)[1:] if few else None
        words_here = _NONE if words is None else texts_among(readings, words)
        if not any_chosen:
            return cls(words=words_here, values=few, counts=counts)
        known = {str(value).casefold(): str(value) for value in values}
        spelled = Counter[str]()
        for number, text in enumerate(readings.distinct):
            if (value := known.get(text.casefold())) is not None:
                spelled[value] += int((chosen & (readings.places == number)).sum())
        unreadable = int(unread.sum())
        commas = readings.each([*map(has_decimal_comma, readings.distinct)], nothing=False) if unreadable else unread
        return cls(
            unreadable,
            int(chosen.sum()) - unreadable,
            texts_among(readings, chosen),
            words_here,
            +spelled,
            few,
            counts,
            int((commas & unread).sum()),
        )

    def __add__(self, more: Lost) -> Lost:
        if more is NOTHING or self is NOTHING:
            return self if more is NOTHING else more
        counts = [each.counts for each in (self, more) if each.counts is not None]
        return Lost(
            self.unread + more.unread,
            self.other + more.other,
            commonest(self.texts + more.texts),
            commonest(self.words + more.words),
            self.spelled + more.spelled,
            more.values or self.values,
            sum(counts[1:], counts[0]) if counts else None,
            self.commas + more.commas,
        )

    @property
    def hint(self) -> str:
        """What to do where most unread values have a decimal comma; else ""."""
        return comma_hint(self.commas, self.unread)

    @property
    def holders(self) -> dict[str, int]:
        """Number of values equal to each listed value."""
        counts = [] if self.counts is None else self.counts.tolist()
        return {str(value): count for value, count in zip(self.values, counts, strict=True)}

    @property
    def is_noted(self) -> bool:
        """Whether values count as "other" that a data holder should look at: of one text, or of another case."""
        return bool(self.other and (self.spelled or often(self.texts)))


NOTHING = Lost()
"""No value is lost."""


def all_lost(first: Mapping[str, Lost], second: Mapping[str, Lost]) -> dict[str, Lost]:
    """Add losses by column."""
    both = {name: first[name] + second[name] for name in first.keys() & second.keys()}
    return {**first, **second, **both}
