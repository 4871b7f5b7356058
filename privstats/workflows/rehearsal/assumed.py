"""What a rehearsal takes for public: read here from a file itself, where a study must know it without a record.

Kinds of columns, values of texts, classes and the number of records are looked up in whole columns of the first file.
Under a promise that is a leak, so nothing of this module stands in a plan, and each of its findings is said first, with
where a study finds it instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from privstats.errors import DataError, SchemaError
from privstats.transforms import Categories, Column, Dates, Numeric, Truth
from privstats.transforms.columns import days_of
from privstats.transforms.one_value import LOST
from privstats.transforms.reading import Readings

__all__ = ["Assumed", "Sentence", "assumed_of", "kinds_of"]

_VALUES = 12
"""Texts of a column that are listed: the most frequent ones; the rest are "other"."""
_FEW = 6
"""Different whole numbers that are still names of categories."""
_NEARLY_ALL = 0.95
_FREE = 0.5
_TOLD = 0.1
"""The least share of a column's texts that those listed hold; less is an id that recurs."""
_RECURS = 0.9
"""Of the texts that are given, as many different ones at most recur, as an id of persons with several rows does."""
_IDS = "names, ids or free text"
_RECURRING = f"{_IDS} that recur"
_WHOSE = "whose a record is"
_WHO = {_RECURRING: f"{_RECURRING}; name it with --persons (in Python persons=) if it tells {_WHOSE}"}
_MOST_CLASSES = 20
_SHOWN = 8
_SIZE = "the size that the protocol plans with"
_BOOK = "its code book; here the first file alone, and what another file has beside these is other"


class Sentence(NamedTuple):
    """One thing that is taken for public."""

    what: str
    taken: str
    elsewhere: str


@dataclass(frozen=True)
class Assumed:
    """What is taken for public.

    Attributes:
        columns: what each column holds.
        left_out: columns that are not read, each with the reason.
        target: the column that is predicted.
        classes: its values, in order.
        records: how many records are summed, over all files.
        persons: whose they are, likewise; None where no column tells.
    """

    columns: tuple[Column, ...]
    left_out: Mapping[str, str]
    target: str
    classes: tuple[str, ...]
    records: int
    persons: int | None = None

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """Each thing, what it was taken to be, and where a study finds it."""
        named = {kind: [each.name for each in self.columns if isinstance(each, kind)] for kind in _SAID}
        kinds = "; ".join(f"{said}: {_few(named[kind])}" for kind, said in _SAID.items() if named[kind])
        lists = [each for each in self.columns if isinstance(each, Categories)]
        found = [
            Sentence("columns", _few([each.name for each in self.columns]), "the data dictionary that all parties use"),
            Sentence("their kinds", kinds, "the same data dictionary"),
            *(
                Sentence(f"values of {each.name}", ", ".join(map(str, each.values)) or "any text", _BOOK)
                for each in lists
            ),
            Sentence(f"classes of {self.target}", ", ".join(self.classes), "the protocol's definition of the outcome"),
            *(Sentence(f"number of {what}", f"{size:,}", _SIZE) for what, size in self._sizes.items()),
        ]
        left = "; ".join(f"{name}: {why}" for name, why in self.left_out.items())
        return (*found, Sentence("not read", left, "your own choice")) if left else tuple(found)

    @property
    def _sizes(self) -> dict[str, int]:
        found = {"persons": self.persons, "records": self.records}
        return {what: size for what, size in found.items() if size is not None}


_SAID: Mapping[type, str] = {Numeric: "numbers", Dates: "dates", Truth: "yes or no", Categories: "categories"}


def assumed_of(table: Mapping[str, Readings], target: str, records: int, *, persons: str | None = None) -> Assumed:
    """What the columns of a table seem to hold.

    Args:
        table: values of one file, as they are read, by name.
        target: one of the names.
        records: of all files together.
        persons: the column that tells whose a record is, which is not in the table.

    Raises:
        DataError: the target has one value or too many, or no column is left.
    """
    found = kinds_of({name: values for name, values in table.items() if name != target})
    columns = tuple(each for each in found.values() if not isinstance(each, str))
    if not columns:
        raise DataError(
            "no column beside the target holds what a model could read: dates, numbers, or texts that recur"
        )
    left_out = {name: why for name, why in found.items() if isinstance(why, str)}
    if persons is None:
        left_out = {name: _WHO.get(why, why) for name, why in left_out.items()}
    else:
        left_out[persons] = _WHOSE
    return Assumed(columns, left_out, target, _classes(target, table[target]), records)


def kinds_of(table: Mapping[str, Readings]) -> dict[str, Column | str]:
    """The declaration that fits each column, or why it is left out."""
    return {name: _accepted(name, values) for name, values in table.items()}


def _accepted(name: str, found: Readings) -> Column | str:
    try:
        return _kind_of(name, found)
    except SchemaError:
        return "its name or values are none that a plan can list"


def _kind_of(name: str, found: Readings) -> Column | str:
    """The declaration of a column, or why it is left out."""
    given = len(found.numbers) - int(found.missing.sum())
    if not given:
        return "empty"
    numbers = found.numbers[~np.isnan(found.numbers)]
    if len(np.unique(numbers)) + len(set(found.texts.values())) == 1:
        return "one value alone" if given == len(found.numbers) else Categories(name, ())
    days = [text for text in found.texts.values() if np.isfinite(days_of(text))]
    if len(numbers) >= _NEARLY_ALL * given:
        return _of_numbers(name, numbers)
    if len(days) >= _NEARLY_ALL * given:
        return Dates(name)
    return _of_texts(name, found, given)


def _of_numbers(name: str, numbers: Any) -> Column | str:
    different = np.unique(numbers)
    if not (different % 1 == 0).all():
        return Numeric(name)
    if set(different.tolist()) == {0.0, 1.0}:
        return Truth(name)
    if len(different) <= _FEW:
        return _first_accepted(lambda: Categories(name, tuple(map(int, different.tolist()))), lambda: Numeric(name))
    if len(different) == len(numbers) and all(low < high for low, high in pairwise(numbers.tolist())):
        return "a running number"
    return Numeric(name)


def _of_texts(name: str, found: Readings, given: int) -> Column | str:
    counts = Counter(found.texts.values())
    listed = sum(times for _, times in counts.most_common(_VALUES))
    if len(counts) > max(_VALUES, _FREE * given) or listed < _TOLD * given:
        return _RECURRING if len(counts) <= _RECURS * given else _IDS
    told = sorted(((text, times) for text, times in counts.items() if LOST not in text), key=_by_count)
    frequent = tuple(sorted(text for text, _ in told[:_VALUES]))
    return _first_accepted(lambda: Categories(name, frequent), lambda: Categories(name, ()))


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _first_accepted(whole: Callable[[], Column], less: Callable[[], Column]) -> Column:
    """The first declaration, or the second where its values are none that a plan may list."""
    try:
        return whole()
    except SchemaError:
        return less()


def _classes(target: str, found: Readings) -> tuple[str, ...]:
    numbers = np.unique(found.numbers[~np.isnan(found.numbers)])
    classes = (*(f"{each:.15g}" for each in numbers.tolist()), *sorted(set(found.texts.values())))
    if not 2 <= len(classes) <= _MOST_CLASSES:
        many = "one value" if len(classes) < 2 else f"more than {_MOST_CLASSES} different values"
        raise DataError(
            f"{target} has {many}, and a rehearsal predicts one of a few classes: name another column with --target"
        )
    return classes


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
