"""Read a table's file in parts.

A part follows from its own records, so its boundaries change nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import CopiedFilesWarning, DataError, RecordError, UnreadableRecordsWarning
from privstats.intake.column_names import place_of, places_in
from privstats.intake.columns import Readings, read
from privstats.intake.csv_dialect import Marks
from privstats.intake.csv_lines import names_below, other_separator
from privstats.intake.meaning import listed, meaning_of
from privstats.intake.person_ids import typed_ids
from privstats.intake.sources import Declaration, columns_named
from privstats.intake.table_sources import TableSource, csv_files
from privstats.intake.tables import Codes, side_by_side

if TYPE_CHECKING:
    from privstats.intake.record_files import RecordFile
    from privstats.intake.splits import Split

Requested: TypeAlias = Declaration | tuple[str, ...] | None
"""The requested columns of a table: declared ones, names of features, or None for all."""


@dataclass(frozen=True, repr=False)
class Part:
    """Some records of a table's file.

    Attributes:
        X, persons: as in :class:`~privstats.moments.Records`.
        goals: targets, ``(n,)`` or ``(n, targets)``, as in the file; with gaps as read, None where missing.
        readings: of X's columns, where they are not codes, and of the targets, whatever X and goals keep of them.
    """

    X: Any
    goals: NDArray[np.object_]
    names: tuple[str, ...]
    persons: NDArray[np.object_] | None
    readings: tuple[tuple[Readings, ...] | Codes, tuple[Readings, ...]]

    def held_out(self, split: Split) -> NDArray[np.bool_]:
        """Return which records a split holds out, ``(n,)``."""
        return split.held_out(*self.readings, self.persons)


def parts_of(file: RecordFile, requested: Requested, *, gaps: bool, words: Collection[str] = ()) -> Iterator[Part]:
    """Yield a table's records, some thousand at a time; at least one part, which may be empty.

    Args:
        gaps: a gap is NaN, a missing target None, and a text stays as it is; else these are refused.
        words: words for a gap that stay texts, because the plan declares them as values of some column.
    """
    table = file.opened_by(columns_named(requested, file.targets, file.persons))
    warn_of_copies(table)
    targets, persons = _targets(file, table), persons_column(file, table)
    names = columns_named(requested)
    if names is None:
        names = [name for name in table.names if name not in (*targets, persons)]
    features = _present(file, table, names, targets)
    if persons in (*features, *targets):
        raise DataError(f"{file.path}: {persons!r} holds the person ids, and the plan reads it; name another column")
    columns = _Columns(tuple(features), tuple(targets), persons)
    if requested is None or isinstance(requested, tuple):
        try:
            yield from _of_features(file, table, names, columns, words, gaps=gaps)
        except RecordError:
            if requested is None and (doubt := file.doubt):  # the error names columns as the file does
                raise DataError(doubt) from None
            raise
    else:
        yield from _of_cells(file, table, requested, columns, words, gaps=gaps)


@dataclass(frozen=True)
class _Columns:
    features: tuple[str, ...]
    targets: tuple[str, ...]
    persons: str | None

    @property
    def all(self) -> list[str]:
        return [*self.features, *self.targets, *([] if self.persons is None else [self.persons])]

    def ids(self, part: Mapping[str, Any]) -> NDArray[np.object_] | None:
        return None if self.persons is None else _object(typed_ids(part[self.persons]))


def persons_column(file: RecordFile, table: TableSource) -> str | None:
    """Return the column of ids as the table's header has it."""
    lacks = f" has no column {file.persons!r} of person ids"
    return None if file.persons is None else _column(file, table, file.persons, lacks)


def _column(file: RecordFile, table: TableSource, name: str | None, lacks: str) -> str:
    place = None if name is None else place_of(name, table.names)
    if place is None:
        shown, hint = table.doubt or "it has " + ", ".join(table.names), column_hint(file, table, name)
        raise DataError(f"{file.path}{lacks}; {shown}{'' if hint in shown else hint}")
    return table.names[place]


def column_hint(file: RecordFile, table: TableSource, name: str | None) -> str:
    """Return where a lacking column may be: in other files, behind another separator, in a lower line; else ""."""
    if name is not None and (lacking := table.lacking(name)):
        return f" ({lacking})"
    files = csv_files(Path(file.path))
    if (hint := other_separator(table.names, file.separator)) or name is None or not files:
        return hint
    return names_below(files[0], file.dialect, name)


def joined(
    parts: Iterable[Part], *, gaps: bool, texts: bool = False
) -> tuple[Any, NDArray[Any], tuple[str, ...], NDArray[np.object_] | None]:
    """Join parts: X (texts are NaN unless requested), labels, names and ids."""
    rows, goals, lost, names = list[NDArray[Any]](), list[NDArray[np.object_]](), dict[str, Any](), tuple[str, ...]()
    ids = list[NDArray[np.object_]]()
    coded = False
    for part in parts:
        coded, names = isinstance(part.X, Codes), part.names
        rows.append(part.X.codes if coded else part.X if texts else _numbers(part.X))
        for name, each in part.X.lost.items() if coded else ():
            lost[name] = lost[name] + each if name in lost else each
        goals.append(part.goals)
        ids += [] if part.persons is None else [part.persons]
    X = np.empty(
        (sum(map(len, rows)), rows[0].shape[1]), object if any(each.dtype == object for each in rows) else float
    )
    start = len(X)
    while rows:  # from the last, so that at most one part is in memory twice
        last = rows.pop()
        X[start - len(last) : start] = last
        start -= len(last)
    y = np.concatenate(goals)
    return Codes(X, lost) if coded else X, y if gaps else labels_of(y), names, np.concatenate(ids) if ids else None


def _numbers(rows: NDArray[Any]) -> NDArray[np.float64]:
    return rows if rows.dtype != object else read(rows.reshape(-1)).numbers.reshape(rows.shape)


def labels_of(goals: NDArray[np.object_]) -> NDArray[Any]:
    """Return each target's values in the narrowest kind that fits them."""
    if goals.ndim == 1:
        return _as_labels(goals.tolist())
    return np.column_stack([_as_labels(column.tolist()) for column in goals.T])


def _as_labels(values: Sequence[Any]) -> NDArray[Any]:
    if not all(isinstance(value, str) for value in values):
        return np.asarray(values)
    if all(value.lower() in ("true", "false") for value in values):
        return np.array([value.lower() == "true" for value in values])
    readings = [meaning_of(value) for value in values]
    if not all(isinstance(number, float) for number in readings):
        return np.asarray(values)
    integral = all(value.lstrip("+-").isdecimal() for value in values)
    return np.array(list(map(int, values)) if integral else readings)


def present(file: RecordFile, table: TableSource, wanted: Sequence[str]) -> list[str]:
    """Return the plan's columns as the header has them."""
    names = table.names
    places = places_in(wanted, names)
    if lacking := [name for name, place in zip(wanted, places, strict=True) if place is None]:
        raise DataError(
            table.lacking(lacking[0])
            or f"{file.path} lacks {listed(lacking)} of the plan's columns; rename its "
            f"columns{other_separator(names, file.separator)}"
        )
    return [names[place] for place in places if place is not None]


def _of_features(
    file: RecordFile, table: TableSource, names: Sequence[str], columns: _Columns, words: Collection[str], *, gaps: bool
) -> Iterator[Part]:
    """Exclude and count records that do not fit the header."""
    broken, targets, before = 0, columns.targets, 0
    for part in table.parts(columns.all, gaps=gaps):
        records = table.records(part)
        readings = {name: read(records[place]) for name, place in zip(names, columns.features, strict=True)}
        X = side_by_side(list(readings.values()), words) if readings else np.empty((0, 0))
        goals = {target: read(records[target]) for target in targets}
        if not gaps:
            _require_numbers(_Place(file, table, before), readings, goals, words)
        before += len(records[targets[0]])
        broken += len(part[targets[0]]) - len(records[targets[0]])
        keys = tuple(readings.values()), tuple(goals.values())
        yield Part(X, _goals(records, goals, words, gaps=gaps), tuple(names), columns.ids(records), keys)
    _warn_of_misfits(broken, file, table)


def _of_cells(
    file: RecordFile, table: TableSource, cells: Declaration, columns: _Columns, words: Collection[str], *, gaps: bool
) -> Iterator[Part]:
    """Exclude and count records that do not fit the header."""
    names, broken, targets, before = tuple(column.name for column in cells.columns), 0, columns.targets, 0
    marks: dict[str, Marks] = {
        place: getattr(column, "marks", "number") for column, place in zip(cells.columns, columns.features, strict=True)
    }
    for part in table.parts(columns.all, gaps=gaps, marks=marks):
        records = table.records(part)
        coded = cells.read({name: records[place] for name, place in zip(names, columns.features, strict=True)})
        goals = {target: read(records[target]) for target in targets}
        if not gaps:
            missing = _any_of({target: _gaps_in(each, words) for target, each in goals.items()})
            _require_none(_Place(file, table, before), missing, "has missing values in", "omit these records first")
        before += len(records[targets[0]])
        broken += len(part[targets[0]]) - len(records[targets[0]])
        keys = coded, tuple(goals.values())
        yield Part(coded, _goals(records, goals, words, gaps=gaps), names, columns.ids(records), keys)
    _warn_of_misfits(broken, file, table)


def warn_of_copies(table: TableSource) -> None:
    """Warn of files with equal bytes."""
    for one, other in table.copies:
        remark = f"{other} has the same bytes as {one}, and its records count again: move it away if it is a copy"
        warnings.warn(remark, CopiedFilesWarning, stacklevel=5)


def _warn_of_misfits(broken: int, file: RecordFile, table: TableSource) -> None:
    if broken:
        remark = misfits(broken, table.misfit, f" of {file.path}")
        warnings.warn(remark, UnreadableRecordsWarning, stacklevel=5)


def misfits(count: int, first: str, of: str = "") -> str:
    """Return how many lines of a file do not fit its table, with the possible causes and the first such line.

    Args:
        first: that line's number, and its cause.

    Example:
        >>> from privstats.intake.table_parts import misfits
        >>> misfits(1200, "line 6 has 4 fields for 3 names", " of north.csv").partition(" (")[0]
        '1,200 lines of north.csv do not fit the table'
    """
    lines, do, are = ("line", "does", "is") if count == 1 else ("lines", "do", "are")
    causes = "a wrong number of fields, a stray quote, the header once more, or no JSON object"
    return f"{count:,} {lines}{of} {do} not fit the table ({causes}) and {are} excluded, first: {first}"


@dataclass(frozen=True)
class _Place:
    """A part of a file, which begins after ``before`` of its records."""

    file: RecordFile
    table: TableSource
    before: int

    def of(self, record: int) -> str:
        """Return where a record of the part is, for an error."""
        return self.table.place(self.before + record)


def _require_numbers(
    place: _Place, columns: Mapping[str, Readings], goals: Mapping[str, Readings], words: Collection[str]
) -> None:
    gaps = {name: column.missing for name, column in columns.items()}
    gaps |= {name: _gaps_in(column, words) for name, column in goals.items()}
    _require_none(place, _any_of(gaps), "has missing values in", "omit or impute these records first")
    texts = _any_of({name: column.are_texts for name, column in columns.items()})
    _require_none(place, texts, "holds no numbers in", "encode these columns, or omit them")


def _require_none(place: _Place, concerned: Mapping[str, NDArray[np.bool_]], what: str, remedy: str) -> None:
    """Refuse columns by name, with the place of the first record concerned."""
    if concerned:
        first = min(int(np.argmax(each)) for each in concerned.values())
        raise RecordError(f"{place.file.path} {what} {', '.join(concerned)}, first in {place.of(first)}; {remedy}")


def _any_of(masks: Mapping[str, NDArray[np.bool_]]) -> dict[str, NDArray[np.bool_]]:
    return {name: mask for name, mask in masks.items() if mask.any()}


def _gaps_in(column: Readings, words: Collection[str]) -> NDArray[np.bool_]:
    return np.asarray(column.missing & ~_known(column, words))


def _known(column: Readings, words: Collection[str]) -> NDArray[np.bool_]:
    return np.asarray(column.each([text in words for text in column.distinct], nothing=False), np.bool_)


def _goals(
    part: Mapping[str, Any], goals: Mapping[str, Readings], words: Collection[str], *, gaps: bool
) -> NDArray[np.object_]:
    columns = [_read(each, words) if gaps else _object(part[target]) for target, each in goals.items()]
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def _read(readings: Readings, words: Collection[str]) -> NDArray[np.object_]:
    out = readings.keeping(words).astype(object)
    out[readings.missing & ~_known(readings, words)] = None
    return out


def _targets(file: RecordFile, table: TableSource) -> list[str]:
    how = ": name the column to predict with --target (in Python target=)"
    wanted = [(target, "" if target is None else f" has no column {target!r}") for target in file.targets or (None,)]
    return [_column(file, table, target, f"{lacks}{how}") for target, lacks in wanted]


def _present(file: RecordFile, table: TableSource, features: list[str], targets: Sequence[str]) -> list[str]:
    present_names = present(file, table, features)
    for target in targets:
        if target in present_names:
            raise DataError(f"{file.path}: the target {target!r} is among the plan's columns; name another one")
    return present_names


def _object(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.object_]:
    return np.fromiter(values, object, len(values))  # numpy alone would make numbers of times, and rows of lists
