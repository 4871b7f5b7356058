"""Diagnose which declared values unreadable records have emptied: for the data holder's screen, and for no release.

An arm without a record, or a class whose records are nearly all excluded, ends a study. Most often another spelling is
the cause, so the commonest texts that a plan does not list are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from privstats.intake.columns import Listed, Readings
from privstats.intake.declared.categories import Categories
from privstats.intake.declared.unlisted import MAX_VALUES, MIN_RECORDS, commonest, often, texts_among
from privstats.intake.meaning import shown

if TYPE_CHECKING:
    from privstats.intake.tables import Selected

NEARLY = 10
"""A value is nearly emptied if at most one in so many of its records counts."""
_MAX_CAUSES, _MAX_REMARKS = 3, 8


class ListedColumn(NamedTuple):
    """A column's listed values, each record's index among them (-1: none, ``(n,)``), and which records are unlisted."""

    values: tuple[object, ...]
    places: NDArray[np.intp]
    unlisted: NDArray[np.bool_]
    readings: Readings

    @classmethod
    def of(cls, values: tuple[object, ...], listed: Listed, readings: Readings) -> Self:
        """Build from a column's readings; an undeclared word for a gap is unlisted, and a blank is not."""
        places, blank = listed.decide(readings).places, np.isnan(readings.numbers) & (readings.places < 0)
        return cls(values, places, (places < 0) & ~blank, readings)

    def texts(self) -> Counter[str]:
        """Count the commonest unlisted values, as texts."""
        return texts_among(self.readings, self.unlisted)


@dataclass(frozen=True)
class Level:
    """Records of one declared value: all, those that count, and the others by the columns that cannot be read."""

    holders: int = 0
    counted: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Level) -> Level:
        names = {**self.unread, **other.unread}
        unread = {name: self.unread.get(name, 0) + other.unread.get(name, 0) for name in names}
        return Level(self.holders + other.holders, self.counted + other.counted, unread)


@dataclass(frozen=True, repr=False)
class Emptied:
    """Records by declared value, and the commonest unlisted texts by column.

    Attributes:
        levels: by column and value.
        unlisted: number of records whose value is not listed, by column.
        texts: their commonest values, by column; private.
    """

    levels: Mapping[tuple[str, str], Level] = field(default_factory=dict)
    unlisted: Mapping[str, int] = field(default_factory=dict)
    texts: Mapping[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        fine: NDArray[np.bool_],
        why: Mapping[tuple[str, str], NDArray[np.bool_]],
        columns: Mapping[str, ListedColumn],
    ) -> Self:
        """Count records, from the mask ``(n,)`` of those that count and masks by column and reason."""
        gone, masks = ~fine, dict[str, NDArray[np.bool_]]()
        for (name, _), mask in why.items():
            masks[name] = masks.get(name, False) | mask[gone]
        levels = dict[tuple[str, str], Level]()
        few = {name: column for name, column in columns.items() if len(column.values) <= MAX_VALUES}
        for name, column in few.items():
            holders, counted = _by_place(column, slice(None)), _by_place(column, fine)
            unread = {other: _by_place(column, gone, mask) for other, mask in masks.items() if mask.any()}
            for place, value in enumerate(column.values):
                because = {other: each[place] for other, each in unread.items() if each[place]}
                levels[name, str(value)] = Level(holders[place], counted[place], because)
        unlisted = {name: int(column.unlisted.sum()) for name, column in few.items()}
        return cls(levels, unlisted, {name: column.texts() for name, column in few.items() if unlisted[name]})

    def __add__(self, other: Emptied) -> Emptied:
        keys = {**self.levels, **other.levels}
        levels = {key: self.levels.get(key, Level()) + other.levels.get(key, Level()) for key in keys}
        names = {**self.unlisted, **other.unlisted}
        unlisted = {name: self.unlisted.get(name, 0) + other.unlisted.get(name, 0) for name in names}
        texts = {
            name: commonest(self.texts.get(name, Counter()) + other.texts.get(name, Counter()))
            for name in {**self.texts, **other.texts}
        }
        return Emptied(levels, unlisted, texts)

    def remark(self) -> str:
        """Return a sentence that names the emptied values and their causes; "" without any."""
        remarks = list(self._remarks())
        more = f"; and {len(remarks) - _MAX_REMARKS} values more" if len(remarks) > _MAX_REMARKS else ""
        return f"{'; '.join(remarks[:_MAX_REMARKS])}{more}"

    def _remarks(self) -> Iterator[str]:
        for (name, value), level in self.levels.items():
            others = self.unlisted.get(name, 0)
            if others >= MIN_RECORDS and others >= (NEARLY - 1) * level.holders:
                many = f"only {level.holders:,}" if level.holders else "no"
                record = "record holds" if level.holders <= 1 else "records hold"
                yield (
                    f"{many} {record} {shown(value)} in {name}, and {others:,} hold values that are not "
                    f"declared{often(self.texts.get(name, Counter()))}"
                )
            elif level.holders >= MIN_RECORDS and NEARLY * level.counted <= level.holders:
                causes = sorted(level.unread.items(), key=lambda item: -item[1])[:_MAX_CAUSES]
                why = ", ".join(f"{count:,} in {other}" for other, count in causes)
                many = f"{level.counted:,} count" if level.counted != 1 else "1 counts"
                yield f"of {level.holders:,} records with {shown(value)} in {name}, {many}; unreadable are {why}"


def _by_place(column: ListedColumn, *which: Selected) -> list[int]:
    places = column.places
    for each in which:
        places = places[each]
    counts: list[int] = np.bincount(places + 1, minlength=len(column.values) + 1)[1:].tolist()
    return counts


def listed_columns(columns: Iterable[object], readings: Mapping[str, Readings]) -> dict[str, ListedColumn]:
    """Return the columns of listed values without a cell for other values, by their quoted names."""
    listed = [each for each in columns if isinstance(each, Categories) and each.values and not each.other]
    return {repr(each.name): ListedColumn.of(each.values, each.listed, readings[each.name]) for each in listed}
