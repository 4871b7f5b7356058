"""A table's file in parts of some thousand records: its features or the codes of its declared columns, and its target.

A part holds what its own records say, so where it begins and ends changes nothing. ``record_files`` reads through it.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, RecordError, UnreadableRecordsWarning
from privstats.moments.arrays import listed
from privstats.moments.code_rows import Codes
from privstats.moments.csv_lines import like_a_record, other_separator
from privstats.moments.table_files import TableFile, table_file
from privstats.transforms import Cells
from privstats.transforms.column_names import place_of, places_in
from privstats.transforms.reading import Readings, read, reading

if TYPE_CHECKING:
    from privstats.moments.record_files import RecordFile

__all__ = ["Asked", "Part", "as_labels", "joined", "parts_of", "present"]

Asked: TypeAlias = Cells | tuple[str, ...] | None
"""What is asked for of a table: declared columns, names of features, or all."""


@dataclass(frozen=True, repr=False)
class Part:
    """Some records.

    Attributes:
        X: ``(n, features)``; of declared columns their :class:`~privstats.moments.code_rows.Codes`.
        goals: the target of each, as the file has it; with gaps what it is read as, None where it is missing.
        names: of the features, in the order of the columns of X.
    """

    X: Any
    goals: NDArray[np.object_]
    names: tuple[str, ...]


def parts_of(file: RecordFile, asked: Asked, *, gaps: bool) -> Iterator[Part]:
    """The records of a table, some thousand at a time; at least one part, which may be empty.

    Args:
        file: a CSV or Parquet file.
        asked: what the plan reads.
        gaps: whether a gap, or a text where a number belongs, is NaN, and a missing target None; else it is refused.

    Raises:
        DataError: the file cannot be read, or lacks a column.
        RecordError: without ``gaps``, texts or gaps in a column that is asked for.
        MissingExtraError: a Parquet file, and pyarrow is not installed.
    """
    table = table_file(Path(file.path), file.dialect)
    target = _target(file, table.names)
    if isinstance(asked, Cells):
        names = [column.name for column in asked.columns]
    else:
        names = [name for name in table.names if name != target] if asked is None else list(asked)
    found = _found(file, table.names, names, target)
    if isinstance(asked, Cells):
        yield from _of_cells(file, table, asked, [*found, target], gaps=gaps)
    else:
        yield from _of_features(file, table, names, [*found, target], gaps=gaps)


def joined(parts: Iterable[Part], *, gaps: bool) -> tuple[Any, NDArray[Any], tuple[str, ...]]:
    """All parts as one: X, the labels of all of them in the narrowest kind, and the names of the features."""
    rows, goals, unread, names = list[NDArray[np.float64]](), list[Any](), Counter[str](), tuple[str, ...]()
    coded = False
    for part in parts:
        coded, names = isinstance(part.X, Codes), part.names
        rows.append(part.X.codes if coded else part.X)
        unread.update(part.X.unread if coded else {})
        goals += part.goals.tolist()
    X = np.empty((sum(map(len, rows)), rows[0].shape[1]))
    start = len(X)
    while rows:  # from the last one, so that no more than one part is held twice
        last = rows.pop()
        X[start - len(last) : start] = last
        start -= len(last)
    return Codes(X, unread) if coded else X, _object(goals) if gaps else as_labels(goals), names


def as_labels(values: Sequence[Any]) -> NDArray[Any]:
    """The values of a target's column in the narrowest kind that fits all of them, for what people see and score."""
    if not all(isinstance(value, str) for value in values):
        return np.asarray(values)
    if all(value.lower() in ("true", "false") for value in values):
        return np.array([value.lower() == "true" for value in values])
    found = [reading(value) for value in values]
    if not all(isinstance(number, float) for number in found):
        return np.asarray(values)
    whole = all(value.lstrip("+-").isdecimal() for value in values)
    return np.array(list(map(int, values)) if whole else found)


def present(file: RecordFile, names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Columns of the plan, as the table's header has them.

    Raises:
        DataError: one is not there.
    """
    places = places_in(wanted, names)
    if lacking := [name for name, place in zip(wanted, places, strict=True) if place is None]:
        raise DataError(
            f"{file.path} lacks {listed(lacking)} of the plan's columns; name its columns like these"
            f"{other_separator(names, file.separator)}"
        )
    return [names[place] for place in places if place is not None]


def _of_features(
    file: RecordFile, table: TableFile, names: Sequence[str], found: Sequence[str], *, gaps: bool
) -> Iterator[Part]:
    """Features as numbers, each value read by itself; no other column is looked at."""
    *features, target = found
    for part in table.parts(found, gaps=gaps):
        columns = {name: read(part[place]) for name, place in zip(names, features, strict=True)}
        numbers = [column.numbers for column in columns.values()]
        X = np.column_stack(numbers) if numbers else np.empty((0, 0))
        if not gaps:
            _require_numbers(file, columns, target, part[target])
        yield Part(X, _goals(part[target], gaps=gaps), tuple(names))


def _of_cells(file: RecordFile, table: TableFile, cells: Cells, found: Sequence[str], *, gaps: bool) -> Iterator[Part]:
    """Codes of the declared columns; a line that is no record is left out, and counted."""
    names, broken = tuple(column.name for column in cells.columns), 0
    *features, target = found
    for part in table.parts(found, gaps=gaps):
        whole = table.records(part)
        coded = cells.read({name: whole[place] for name, place in zip(names, features, strict=True)})
        if not gaps and _lacks(whole[target]):
            raise RecordError(f"{file.path} has missing values in {target}; leave out these records first")
        broken += len(part[target]) - len(whole[target])
        yield Part(Codes(coded.codes, coded.unread), _goals(whole[target], gaps=gaps), names)
    if broken:
        warnings.warn(
            f"{broken} lines of {file.path} have not one field for each name and are left out: one line is one record",
            UnreadableRecordsWarning,
            stacklevel=4,
        )


def _require_numbers(file: RecordFile, columns: Mapping[str, Readings], target: str, goals: Any) -> None:
    missing = [name for name, column in columns.items() if column.missing.any()]
    missing += [target] if _lacks(goals) else []
    if missing:
        gone = ", ".join(missing)
        raise RecordError(f"{file.path} has missing values in {gone}; leave out or impute these records first")
    if texts := ", ".join(name for name, column in columns.items() if column.texts):
        raise RecordError(f"{file.path} holds no numbers in {texts}; encode these columns, or leave them out")


def _lacks(goals: Any) -> bool:
    return bool(read(goals).missing.any())


def _goals(values: Any, *, gaps: bool) -> NDArray[np.object_]:
    """A target's values as they stand; with gaps as they are read."""
    if not gaps:
        return _object(values)
    found = read(values)
    out = found.numbers.astype(object)
    out[found.missing] = None
    for place, text in found.texts.items():
        out[place] = text
    return out


def _target(file: RecordFile, names: list[str]) -> str:
    place = None if file.target is None else place_of(file.target, names)
    if place is None:
        asked = "" if file.target is None else f" has no column {file.target!r}"
        has = "no row of names, or names that are numbers" if like_a_record(names) else ", ".join(names)
        raise DataError(
            f"{file.path}{asked}: say with --target (in Python target=) which column is predicted; it has {has}"
            f"{other_separator(names, file.separator)}"
        )
    return names[place]


def _found(file: RecordFile, names: list[str], features: list[str], target: str) -> list[str]:
    """The features, as the table's header has them."""
    if target in (found := present(file, names, features)):
        raise DataError(f"{file.path} lacks {target!r} of the plan's columns beside the target; name another one")
    return found


def _object(values: Sequence[Any]) -> NDArray[np.object_]:
    out = np.empty(len(values), object)
    for place, value in enumerate(values):  # numpy would make numbers of times, and rows of lists
        out[place] = value
    return out
