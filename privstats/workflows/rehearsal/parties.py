"""The files of a rehearsal as its parties' records: read once, held out in part, and scored on what is held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.moments.csv_lines import names_told, other_separator
from privstats.moments.labels import places_of
from privstats.moments.person_ids import names_of, persons_held_out
from privstats.moments.record_files import held_out
from privstats.transforms import Cells
from privstats.transforms.column_names import places_in
from privstats.transforms.reading import Readings, read
from privstats.workflows.rehearsal.areas import Held
from privstats.workflows.rehearsal.assumed import Assumed
from privstats.workflows.rehearsal.held_tables import Source, name_of
from privstats.workflows.rehearsal.odd_values import odd

__all__ = ["Found", "Party", "parties_of", "read_file", "shared_names", "tested"]

Columns: TypeAlias = Mapping[str, Readings]

_SPLIT = 0


@dataclass(frozen=True, repr=False)
class Party:
    """One file's records.

    Attributes:
        name: of the file, without its ending.
        table: columns by name, as a party measures them.
        codes: of the columns, ``(n, J)``.
        y: place of each record's class, ``(n,)``.
        test: which of them are held out of every sum.
        untold: records without a class, which are left out.
        broken: lines that are no records.
        ids: whose each of them is, ``(n,)``; None where no column tells.
        unowned: records with a class and without an id, which are left out where a column tells.
        odd: what its holder may want to mend, in sentences.
    """

    name: str
    table: Mapping[str, NDArray[Any]]
    codes: NDArray[np.float64]
    y: NDArray[np.intp]
    test: NDArray[np.bool_]
    untold: int
    broken: int
    ids: NDArray[np.object_] | None = None
    unowned: int = 0
    odd: tuple[str, ...] = ()

    @property
    def shard(self) -> tuple[Any, ...]:
        """What it brings to the sums: columns, classes and, where a column tells, whose each record is."""
        ids = () if self.ids is None else (self.ids[~self.test],)
        return {name: values[~self.test] for name, values in self.table.items()}, self.y[~self.test], *ids

    @property
    def held_out(self) -> dict[str, NDArray[Any]]:
        """What a model is scored on."""
        return {name: values[self.test] for name, values in self.table.items()}

    def persons(self, *, test: bool) -> int:
        """How many persons are held out, or are summed; none where no column tells."""
        return 0 if self.ids is None else len(set(self.ids[self.test == test]))


def shared_names(files: Sequence[Source], target: str, drop: Sequence[str], persons: str | None = None) -> list[str]:
    """The columns that all files have, as the first one writes them, without that of ids; no record is read.

    Raises:
        DataError: a file cannot be read, or lacks the target, a column to leave out or that of ids; or the target tells
            whose a record is.
    """
    headers, ids = [file.columns for file in files], () if persons is None else (persons,)
    for file, names in zip(files, headers, strict=True):
        asked = (target, *drop, *ids)
        for wanted, place in zip(asked, places_in(asked, names), strict=True):
            if place is None:
                hint = other_separator(names, file.separator)
                raise DataError(
                    f"{file.path} has no column {wanted!r}, and a rehearsal needs the same names in every table: name "
                    f"another one in --target, --drop or --persons (in Python target=, drop=, persons=), or its column "
                    f"so; it has {names_told(names)}{hint}"
                )
    if persons is not None and places_in([persons], headers[0]) == places_in([target], headers[0]):
        raise DataError(f"{persons!r} says whose a record is and cannot be predicted; name another column in --target")
    gone = set(places_in((*drop, *ids), headers[0]))
    kept = [name for place, name in enumerate(headers[0]) if place not in gone]
    for names in headers:
        kept = [name for name, place in zip(kept, places_in(kept, names), strict=True) if place is not None]
    return kept


class Found(NamedTuple):
    """What a file holds: columns, how many lines are no records, and whose each record is."""

    columns: Columns
    broken: int
    ids: NDArray[np.object_] | None


def read_file(file: Source, names: Sequence[str], persons: str | None = None) -> Found:
    """The values of some columns, and of another one the ids.

    Raises:
        DataError: the file cannot be read, or has no record.
    """
    table = file.table(names if persons is None else [*names, persons])
    columns = {name: read(values) for name, values in zip(names, table.columns.values(), strict=persons is None)}
    if not len(columns[names[0]].numbers):
        raise DataError(f"{file.path} holds no record; give a file with some")
    ids = None if persons is None else np.array(names_of(table.values(persons)), object)
    return Found(columns, table.left_out, ids)


def parties_of(files: Sequence[Source], found: Sequence[Found], public: Assumed, share: float) -> tuple[Party, ...]:
    """The records of each file, of which about a share is held out: each record by its own values alone, or where ids
    are read all of a person by the id alone.

    Raises:
        DataError: a file has no record to learn from or to score on, or no class of its own two.
    """
    cells = Cells(public.columns)
    named = zip(_names(files), files, found, strict=True)
    return tuple(
        replace(_party(name, each, public, cells, share), odd=odd(file, public.columns, each.columns))
        for name, file, each in named
    )


def _names(files: Sequence[Source]) -> list[str]:
    """What the parties are called; with a number where two have one name."""
    stems = [name_of(file) for file in files]
    return [stem if stems.count(stem) == 1 else f"{stem} {place}" for place, stem in enumerate(stems, 1)]


def _party(name: str, found: Found, public: Assumed, cells: Cells, share: float) -> Party:
    table = {each.name: _values(found.columns[each.name]) for each in public.columns}
    y = places_of(public.classes, _values(found.columns[public.target]))
    told = y >= 0
    kept = told if found.ids is None else told & (found.ids != None)  # noqa: E711 - of each element
    table, y = {key: values[kept] for key, values in table.items()}, y[kept]
    ids, codes = None if found.ids is None else found.ids[kept], cells.codes(table)
    test = held_out(codes, share, _SPLIT) if ids is None else persons_held_out(ids, share, _SPLIT)
    if len(np.unique(y[~test])) < len(public.classes) or len(np.unique(y[test])) < len(public.classes):
        raise DataError(
            f"{name} has too few records of one class to learn it and to score it; give a file with more, or another "
            "--test (in Python test=)"
        )
    return Party(name, table, codes, y, test, int((~told).sum()), found.broken, ids, int((told & ~kept).sum()))


def tested(parties: Sequence[Party]) -> Held:
    """The records that these parties hold out."""
    ids = [party.ids[party.test] for party in parties if party.ids is not None]
    return Held(np.concatenate([party.y[party.test] for party in parties]), np.concatenate(ids) if ids else None)


def _values(found: Readings) -> NDArray[Any]:
    """The readings as one array: of numbers, or of numbers, texts and None."""
    if not found.texts:
        return found.numbers
    out = found.numbers.astype(object)
    out[np.isnan(found.numbers)] = None
    for place, text in found.texts.items():
        out[place] = text
    return out
