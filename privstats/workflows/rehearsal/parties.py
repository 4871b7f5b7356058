"""Read a rehearsal's files as parties' records, and hold a part out for scoring."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.intake.column_names import places_in
from privstats.intake.columns import Listed, Readings, read
from privstats.intake.csv_dialect import Dialect, Marks
from privstats.intake.declared.unlisted import often
from privstats.intake.meaning import meaning_of
from privstats.intake.person_ids import names_of
from privstats.intake.record_files import RecordFile
from privstats.intake.shared_ids import id_remarks
from privstats.intake.splits import Split, seed_of_party
from privstats.intake.table_parts import column_hint, misfits
from privstats.records.labels import places_of
from privstats.transforms import Categories, Cells, Column
from privstats.workflows.forms import GAP_CODES, form_remarks, gap_code_question, odd_codes
from privstats.workflows.look import looked, spelled_apart, spellings, unlisted
from privstats.workflows.rehearsal.areas import Held
from privstats.workflows.rehearsal.assumed import Assumed
from privstats.workflows.rehearsal.sources import HeldTable, Source, file_of, name_of
from privstats.workflows.rehearsal.stated import NO_GAPS, StatedGaps


def odd(file: Source, public: Assumed, found: Found) -> tuple[str, ...]:
    """Return a sentence, with the file's name, for excluded records and for each column that may need mending.

    Values of the target that are no class are always odd. In other columns few unlisted values are normal, because a
    rehearsal lists only the first file's frequent ones. Odd are unlisted values of more than a tenth, and values that
    differ from listed ones by case alone.
    """
    name = file.path if isinstance(file, HeldTable) else Path(os.fspath(file.path)).name
    of_columns = (
        remark
        for column in public.columns
        for remark in _of_column(column, found.readings(column.name, column), found.raw.get(column.name, ()))
    )
    excluded = [misfits(found.broken, found.first_broken)] if found.broken else []
    shared = () if found.ids is None else id_remarks(found.ids, named=False)
    labels = _labels(public, found)
    twice = [
        f"{public.target}: {remark}" for remark in _spelled_twice(public.classes, labels, range(len(public.classes)))
    ]
    remarks = (*excluded, *shared, *of_columns, *twice, *_of_target(public, found))
    return tuple(f"{name}: {remark}" for remark in remarks)


def _of_column(column: Column, readings: Readings, written: Sequence[Any]) -> Iterator[str]:
    for remark in form_remarks(column, readings, written):
        yield f"{column.name}: {remark}"
    seen = looked(column, readings)
    if codes := seen.codes or _codes_among(getattr(column, "values", ()), readings):
        yield f"{column.name}: {gap_code_question(column.name, codes, seen.records)}"
    if isinstance(column, Categories) and not seen.unreadable:
        rest = unlisted(column, readings)
        given = seen.records - seen.missing
        if not column.values or not (_is_all(seen.other, given) or spellings(column.values, rest)):
            if seen.other > _MANY * given:
                frequent = ", ".join(value for value, _ in rest.most_common(_SHOWN))
                yield (
                    f"{column.name}: {seen.other:,} of {given:,} values count as other, such as {frequent}: a "
                    "rehearsal lists the most frequent values of the first file alone"
                )
            return
    for remark in seen.oddities:
        yield f"{column.name}: {remark}"


def _codes_among(values: Sequence[Any], readings: Readings) -> dict[float, int]:
    """Count the records with each of a column's values, or of the classes, that looks like a gap code."""
    counts = {code: int((readings.numbers == code).sum()) for code in _like_codes(values)}
    return {code: count for code, count in counts.items() if count}


def _like_codes(values: Sequence[Any]) -> list[float]:
    numbers = [number for value in values if isinstance(number := meaning_of(value), float)]
    texts = len(numbers) < len(values)
    return [number for number in numbers if number in GAP_CODES] if texts else odd_codes(numbers)


def _is_all(other: int, given: int) -> bool:
    return 0 < other == given


_MANY = 0.1
"""Share of a column's values beyond which those without a listed value are remarked."""
_SPLIT = 0
_SHOWN = 3


@dataclass(frozen=True, repr=False)
class Party:
    """One file's records.

    Attributes:
        name: file name without ending.
        codes: ``(n, J)``.
        y: index of each record's class, ``(n,)``.
        test: whether held out, ``(n,)``.
        unlabelled: excluded records without a class.
        ids: each record's person, ``(n,)``, or None.
        unowned: excluded records with a class but no id.
    """

    name: str
    table: Mapping[str, NDArray[Any]]
    codes: NDArray[np.float64]
    y: NDArray[np.intp]
    test: NDArray[np.bool_]
    unlabelled: int
    broken: int
    ids: NDArray[np.object_] | None = None
    unowned: int = 0
    odd: tuple[str, ...] = ()

    @property
    def shard(self) -> tuple[Any, ...]:
        """Summed columns, classes and any persons' ids."""
        ids = () if self.ids is None else (self.ids[~self.test],)
        return {name: values[~self.test] for name, values in self.table.items()}, self.y[~self.test], *ids

    @property
    def held_out(self) -> dict[str, NDArray[Any]]:
        """Columns of the held-out records."""
        return {name: values[self.test] for name, values in self.table.items()}

    def lacks(self, classes: Sequence[str], *, test: bool) -> tuple[str, ...]:
        """Return the classes without a record among those held out or summed."""
        present = set(self.y[self.test == test].tolist())
        return tuple(name for place, name in enumerate(classes) if place not in present)

    def persons(self, *, test: bool) -> int:
        """Return the number of persons held out or summed."""
        return 0 if self.ids is None else len(set(self.ids[self.test == test]))


def shared_names(
    files: Sequence[Source], target: str, drop: Sequence[str], persons: str | None = None, wanted: Sequence[str] = ()
) -> list[str]:
    """Return the columns that all files have, without dropped ones and ids.

    Raises:
        DataError: a file cannot be read, lacks a named column or a row of names, or the target is the id column.
    """
    headers, ids = [file.columns for file in files], () if persons is None else (persons,)
    for file, names in zip(files, headers, strict=True):
        required = (target, *drop, *ids, *wanted)
        for name, place in zip(required, places_in(required, names), strict=True):
            if place is None:
                hint = column_hint(file, file.opened, name) if isinstance(file, RecordFile) else ""
                shown = file.doubt or "it has " + ", ".join(names)
                raise DataError(
                    f"{file.path} has no column {name!r}, and a rehearsal needs the same names in every table: "
                    "name another one in --target, --drop, --persons or --read (in Python target=, drop=, persons=, "
                    f"read=), or rename its column; {shown}{'' if hint in shown else hint}"
                )
    if doubt := next((doubt for file in files if (doubt := file.doubt)), ""):
        raise DataError(doubt)
    if persons is not None and places_in([persons], headers[0]) == places_in([target], headers[0]):
        raise DataError(f"{persons!r} holds the person ids and cannot be predicted; name another column in --target")
    gone = set(places_in((*drop, *ids), headers[0]))
    common = [name for place, name in enumerate(headers[0]) if place not in gone]
    for names in headers:
        common = [name for name, place in zip(common, places_in(common, names), strict=True) if place is not None]
    return common


class Found(NamedTuple):
    """A file's values as it has them, its format, persons, and what of it was not read."""

    values: Mapping[str, Any]
    dialect: Dialect
    broken: int
    ids: NDArray[np.object_] | None
    first_broken: str
    nameless: tuple[int, ...]

    @property
    def raw(self) -> Mapping[str, Sequence[Any]]:
        """The columns whose values are not typed by their container."""
        return {name: values for name, values in self.values.items() if isinstance(values, list)}

    def readings(self, name: str, column: Column | None = None) -> Readings:
        """Return one column's readings, by its declaration if there is one."""
        if column is None:
            return read(self._marked(name, "number"))
        return column.readings(self._marked(name, column.marks))

    def affixed(self, names: Sequence[str]) -> Mapping[str, Readings]:
        """Return the readings of columns whose numbers may have signs around them, in a file of other decimal marks."""
        return {} if self.dialect.is_plain else {name: read(self._marked(name, "affixed")) for name in names}

    def _marked(self, name: str, marks: Marks) -> Any:
        values = self.values[name]
        if self.dialect.is_plain:
            return values
        return [self.dialect.read(each, marks) if isinstance(each, str) else each for each in values]


def read_file(file: Source, names: Sequence[str], persons: str | None = None, gaps: StatedGaps = NO_GAPS) -> Found:
    """Return some columns' values, with None for stated gap codes, and any ids.

    Raises:
        DataError: the file cannot be read, or has no record.
    """
    wanted = names if persons is None else [*names, persons]
    table = file.table(wanted, ["text"] * len(wanted))
    whole = zip(names, table.columns.values(), strict=persons is None)
    columns = {name: gaps.blanked(name, values) for name, values in whole}
    if not len(columns[names[0]]):
        why = f": {misfits(table.left_out, table.first_left_out)}" if table.left_out else ""
        raise DataError(f"{file.path} holds no record{why}; pass a file with records")
    ids = None if persons is None else np.array(names_of(table.values(persons)), object)
    return Found(columns, file.dialect, table.left_out, ids, table.first_left_out, table.nameless)


def parties_of(files: Sequence[Source], sources: Sequence[Found], public: Assumed, share: float) -> tuple[Party, ...]:
    """Return each file's records, with about a share held out.

    A record is held out by its own coin, or by its person's (``intake.splits``). Records that equal another file's have
    coins of their own, and a person has one coin in all files. A file may lack classes, or have no
    record left.

    Raises:
        DataError: all files together have too few records of a class to learn or to score; or a file has a class in
            another spelling only.
    """
    cells = Cells(public.columns)
    named = enumerate(zip(_names(files), sources, strict=True))
    parties = [_party(place, *each, public, cells, share) for place, each in named]
    for party, each in zip(parties, sources, strict=True):
        _require_one_spelling(party, public, each)
    _require_classes(parties, public)
    read = zip(parties, files, sources, strict=True)
    return tuple(replace(party, odd=(*odd(file, public, each), *party.odd)) for party, file, each in read)


def _require_one_spelling(party: Party, public: Assumed, file: Found) -> None:
    """Refuse a file that spells a class in another way, if it has no record in the listed spelling."""
    lacking = [name for place, name in enumerate(public.classes) if not (party.y == place).any()]
    readings = file.readings(public.target)
    others = readings.counted((_labels(public, file) < 0) & ~readings.missing)
    if spellings(lacking, others) or (others and len(lacking) == len(public.classes)):
        why = "; ".join(_of_target(public, file))
        raise DataError(f"{party.name} has no record of the {public.target} {', '.join(lacking)} ({why}): correct it")


def _require_classes(parties: Sequence[Party], public: Assumed) -> None:
    """Refuse a class without a record to learn from, or without one to score on, in all files together."""
    missing = [
        set.intersection(*(set(party.lacks(public.classes, test=test)) for party in parties)) for test in (False, True)
    ]
    rare = [place for place, name in enumerate(public.classes) if name in missing[0] | missing[1]]
    if not rare:
        return
    y = np.concatenate([party.y for party in parties])
    counts = ", ".join(f"{public.classes[place]} ({(y == place).sum():,})" for place in rare)
    apart = "".join(f"{remark}, or " for remark in _spelled_twice(public.classes, y, rare))
    like_codes = {f"{code:.15g}" for code in _like_codes(public.classes)} & {public.classes[place] for place in rare}
    options = " ".join(f"--gaps {quote(f'{public.target}={code}')}" for code in sorted(like_codes))
    gaps = f"pass {options} (in Python gaps=) if that is no class, " if options else ""
    raise DataError(
        f"all files together have too few records to fit and to score of the {public.target} {counts}; {apart}pass "
        f"files with more, omit these records, {gaps}or pass another --test (in Python test=)"
    )


def _names(files: Sequence[Source]) -> list[str]:
    stems, paths = [name_of(file) for file in files], [file_of(file) for file in files]
    named = zip(stems, paths, strict=True)
    return [
        stem if stems.count(stem) == 1 else path if paths.count(path) == 1 else f"{stem} {place}"
        for place, (stem, path) in enumerate(named, 1)
    ]


def _labels(public: Assumed, file: Found) -> NDArray[np.intp]:
    """Return each record's class, -1 for none."""
    return places_of(public.classes, _values(file.readings(public.target), Listed.of(public.classes).words))


def _of_target(public: Assumed, file: Found) -> Iterator[str]:
    """Name the commonest values of the target that are no class, and classes like gap codes."""
    readings = file.readings(public.target)
    others = readings.counted((_labels(public, file) < 0) & ~readings.missing)
    for gap in public.gaps.get(public.target, ()):
        del others[gap]
    if others:
        apart = spelled_apart(public.classes, others)
        yield (
            f"{public.target}: {others.total():,} records hold none of the classes {', '.join(public.classes)} and are "
            f"excluded{often(others)}{'.' if apart else ''}{apart}"
        )
    if codes := _codes_among(public.classes, readings):
        yield f"{public.target}: among the classes {gap_code_question(public.target, codes, len(readings.numbers))}"


def _party(place: int, name: str, file: Found, public: Assumed, cells: Cells, share: float) -> Party:
    table = {each.name: _values(file.readings(each.name, each), each.words) for each in public.columns}
    y = _labels(public, file)
    labelled = y >= 0
    counted = labelled if file.ids is None else labelled & (file.ids != None)  # noqa: E711 - of each element
    table, y = {key: values[counted] for key, values in table.items()}, y[counted]
    ids, codes = None if file.ids is None else file.ids[counted], cells.codes(table)
    split = Split(share, seed_of_party(_SPLIT, place, persons=ids is not None))
    test = split.held_out(codes, (file.readings(public.target).take(np.flatnonzero(counted)),), ids)
    unlabelled, unowned = int((~labelled).sum()), int((labelled & ~counted).sum())
    uneven = tuple(f"{name}: {remark}" for remark in [split.remark()] if remark)
    return Party(name, table, codes, y, test, unlabelled, file.broken, ids, unowned, uneven)


def _spelled_twice(classes: Sequence[str], y: NDArray[np.intp], of: Iterable[int]) -> Iterator[str]:
    """Yield a sentence for each of some classes that differs by case alone from a class of more records."""
    sizes = np.bincount(y[y >= 0], minlength=len(classes))
    for place in of:
        alike = [at for at, each in enumerate(classes) if each.casefold() == classes[place].casefold()]
        most = max(alike, key=lambda at: sizes[at])
        if sizes[most] > sizes[place] > 0:
            yield f"{classes[place]!r} differs from {classes[most]!r} by case alone: correct it"


def target_of(sources: Sequence[Found], target: str) -> Readings:
    """Return the target's readings in several files together."""
    if len(sources) == 1:
        return sources[0].readings(target)
    return read([value for each in sources for value in each.readings(target).plain.tolist()])


def tested(parties: Sequence[Party]) -> Held:
    """Return the records that these parties hold out."""
    ids = [party.ids[party.test] for party in parties if party.ids is not None]
    return Held(np.concatenate([party.y[party.test] for party in parties]), np.concatenate(ids) if ids else None)


def _values(readings: Readings, words: Collection[str]) -> NDArray[Any]:
    out = readings.keeping(words)
    if out.dtype == object:
        out[[isinstance(value, float) and math.isnan(value) for value in out]] = None
    return out
