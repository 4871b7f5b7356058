"""The rows of persons, and a digest of each person's rows, to verify that the same rows enter and leave a stream.

A digest depends on the values of that person's rows alone, not on other rows, order or container. Ids and rows stay in
this process.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.extend.records import (
    Clip,
    Codes,
    Readings,
    Unreadable,
    is_frame,
    is_list,
    meaning_of,
    names_of_columns,
    ordered_columns,
    read,
    table_of,
)
from privstats.intake.columns import array_rows
from privstats.intake.meaning import word_of
from privstats.intake.person_ids import names_of
from privstats.intake.tables import ReadRows, plain_numbers, row_entries
from privstats.moments import PersonMoments, exact_moments
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.transforms import Cells, Column

_TABLE_AXES = 2  # with more axes each entry of a row is itself a list, which is no number
_Declared: TypeAlias = "Mapping[int, Column]"
"""Columns by their place in X."""


@dataclass(frozen=True, eq=False, repr=False)
class PersonRows:
    """Rows with their persons; rows without a person are excluded.

    Attributes:
        X, y: arrays ``(n, ...)`` and ``(n,)`` or ``(n, targets)``; or lists and frames, as for ``measure``.
        unnamed: number of excluded rows without a person.
        words: words for a gap, such as ``none``, that the plan declares as values: no gap in the digests.
        cells: the declared columns of the plan, by which the digests read X: of codes that are texts, 042 is not 42.

    Example:
        >>> from privstats.contrib.streams import PersonRows
        >>> rows = PersonRows.of([[0.5, 0.0], [0.0, 0.5], [1.0, 1.0]], [0, 0, 1], ["007", "7", "n/a"])
        >>> rows.names, rows.unnamed, rows.digests["7"] == rows.digests["7"]
        (('7',), 1, True)
    """

    X: Any
    y: Any
    persons: tuple[str, ...]
    unnamed: int = 0
    words: frozenset[str] = frozenset()
    cells: Cells | None = None

    @classmethod
    def of(cls, X: Any, y: Any, persons: Any) -> PersonRows:
        """Build the rows from records and their ids.

        Args:
            X, y: arrays, tensors, nested lists, or frames in memory, with columns reordered to the plan's.

        Raises:
            DataError: not one id and one label or target per row.
        """
        if isinstance(persons, str | bytes):
            raise DataError("persons must be an id for each row, got a text: pass the column of ids")
        X, y, names = _held("X", X), _held("y", y), names_of(persons)
        if not len(X) == len(y) == len(names):
            raise DataError(f"persons has {len(names)} ids, and X or y another number of rows; pass one id for each")
        places = [place for place, name in enumerate(names) if name is not None]
        named = tuple(name for name in names if name is not None)
        X, y = _rows_at(X, y, places)
        return cls(X, y, named, len(names) - len(places))

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Number of rows by person, by first occurrence."""
        result = dict.fromkeys(self.persons, 0)
        for name in self.persons:
            result[name] += 1
        return result

    @property
    def names(self) -> tuple[str, ...]:
        """The persons, in order of first occurrence."""
        return tuple(self.sizes)

    @cached_property
    def digests(self) -> Mapping[str, bytes]:
        """SHA-256 of each person's rows, in any order."""
        rows = defaultdict[str, list[bytes]](list)
        declared = _declared(self.X, self.cells)
        for name, digest in zip(self.persons, _row_digests(self.X, self.y, self.words, declared), strict=True):
            rows[name].append(digest)
        return {name: hashlib.sha256(b"".join(sorted(result))).digest() for name, result in rows.items()}

    def only(self, names: Collection[str]) -> PersonRows:
        """Return the rows of these persons."""
        wanted = set(names)
        places = [place for place, name in enumerate(self.persons) if name in wanted]
        X, y = _rows_at(self.X, self.y, places)
        return replace(self, X=X, y=y, persons=tuple(self.persons[place] for place in places), unnamed=0)

    def without(self, names: Collection[str]) -> PersonRows:
        """Return the rows of all other persons."""
        return self.only(set(self.sizes).difference(names))

    def measured(self, schema: Schema, clip: Clip, unreadable: Unreadable) -> PersonMoments:
        """Return ``measure`` of the rows, without the clip's warning."""
        names = names_of(list(self.persons))
        codes = {name: code for code, name in enumerate(dict.fromkeys(filter(None, names)))}
        persons = [None if name is None else codes[name] for name in names]
        result = exact_moments(schema, self.X, self.y, unreadable=unreadable, persons=persons, person_clip=clip)
        assert isinstance(result, PersonMoments)  # noqa: S101  with persons it is
        return result


def _held(name: str, values: Any) -> Any:
    """Return lists and frames unchanged: an array would change types and hide wrong widths."""
    if is_list(values) or isinstance(values, np.ma.MaskedArray) or is_frame(values):
        return values
    array = array_rows(values, name)
    if not array.ndim:
        raise DataError(f"{name} must be an array with one row for each id, got a {type(values).__name__}")
    return array


def _rows_at(X: Any, y: Any, places: Sequence[int]) -> tuple[Any, Any]:
    where = np.array(places, np.intp)
    return table_of(X).take(where), table_of(y).take(where)


def _plain(values: Any) -> Any:
    plain = plain_numbers(values) if is_list(values) else None
    return values if plain is None or plain.ndim > _TABLE_AXES else plain


def _declared(X: Any, cells: Cells | None) -> _Declared:
    """Return the columns of X, by place, that are declared to be read in a way of their own."""
    if cells is None or isinstance(X, Codes):  # codes are as declared
        return {}
    own = {place: each for place, each in enumerate(cells.columns) if each.reads_otherwise}
    names = names_of_columns(X)
    if not own or names is None or names == list(range(len(cells.columns))):
        return own
    sources = cells.sources(X)
    return {names.index(sources[place]): each for place, each in own.items()}


def _row_digests(X: Any, y: Any, words: Collection[str], declared: _Declared) -> list[bytes]:
    X, y = _plain(X), _plain(y)
    if is_list(X) or is_list(y):  # rows of a list may differ in length
        pairs = zip(_cells(X, words, declared), _cells(y, words, {}), strict=True)
        return [hashlib.sha256(_read(row, target, words, declared)).digest() for row, target in pairs]
    if not len(X):
        return []
    columns, texts = [*_columns(X, declared), *_columns(y, {})], defaultdict[int, list[tuple[int, str]]](list)
    for place, column in enumerate(columns):
        listed = {row: word for row, word in column.words.items() if word in words}
        for row, text in (column.texts | listed).items():
            texts[row].append((place, text))
    numbers = np.column_stack([column.numbers for column in columns]).astype("<f8")
    beside = (json.dumps(texts[row]).encode() if row in texts else b"" for row in range(len(numbers)))
    return [hashlib.sha256(_encoded(row) + each).digest() for row, each in zip(numbers, beside, strict=True)]


def _columns(values: Any, declared: _Declared) -> Sequence[Readings]:
    rows = ordered_columns(values, None, gaps=True)
    held = table_of(values).columns() if declared and is_frame(values) else []
    if isinstance(rows, ReadRows):
        columns = [*rows.readings]
    else:
        array = rows if isinstance(rows, np.ndarray) else array_rows(rows, "a column")
        entries = list(array.reshape(len(array), -1).T)
        columns, held = [*map(read, entries)], held or entries
    for place in declared.keys() & range(len(columns)):
        columns[place] = declared[place].readings(held[place])
    return columns


def _cells(values: Any, words: Collection[str], declared: _Declared) -> list[Sequence[Any]]:
    if is_list(values):
        return [(row,) if (entries := row_entries(row)) is None else entries for row in values]
    columns = [column.keeping(words) for column in _columns(values, declared)] if len(values) else []
    return list(zip(*columns, strict=True)) if columns else [()] * len(values)


def _read(row: Sequence[Any], target: Sequence[Any], words: Collection[str], declared: _Declared) -> bytes:
    result = [_read_one(cell, words, declared.get(place)) for place, cell in enumerate(row)]
    result += [_read_one(cell, words, None) for cell in target]
    numbers = np.array([each if isinstance(each, float) else np.nan for each in result], "<f8")
    texts = [(place, each) for place, each in enumerate(result) if isinstance(each, str)]
    return _encoded(numbers) + (json.dumps(texts).encode() if texts else b"")


def _read_one(cell: Any, words: Collection[str], column: Column | None) -> float | str | None:
    if (word := word_of(cell)) in words:
        return word
    if column is None:
        return meaning_of(cell)
    readings = column.readings([cell])
    return readings.texts.get(0, float(readings.numbers[0]))


def _encoded(numbers: NDArray[np.float64]) -> bytes:
    """Encode both zeros alike, and all non-finite numbers alike."""
    return (np.where(np.isfinite(numbers), numbers, np.nan) + 0.0).tobytes()
