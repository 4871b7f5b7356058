"""Let a data base count a plan's records: one ``GROUP BY`` statement, whose integers become the party's exact moments.

Under declared columns a record is a cell of each column, so a plan's sums follow from numbers of records: of each cell,
of each pair of cells, and of each class with them. :func:`query_of` writes the statement for DuckDB, PostgreSQL or
Spark; :meth:`Query.moments` reads its rows. A record leaves the data base, as its cells, only where its person has more
rows than count in full: the library clips that person's sums.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.parts.sql_columns import (
    MANY,
    MISTYPED,
    CodedColumn,
    Outcome,
    Written,
    cells_column,
    counted_column,
    label_column,
    presence_column,
    written,
    written_owner,
    written_person,
)
from privstats.contrib.parts.sql_dialects import Dialect, dialect_of
from privstats.errors import DataError, RecordError, SchemaError, UnreadableRecordsWarning
from privstats.extend.kinds import Labels
from privstats.kinds import ClassSchema, CountMoments, CountSchema, row_of
from privstats.moments import Beyond, EdgeReport, Moments, PersonMoments, warn_if_clipped
from privstats.moments.cell_sums import CellAccumulator, sums_by_cells
from privstats.records.labels import listed_classes
from privstats.schema import Schema, is_known, require_schema

if TYPE_CHECKING:
    from privstats.extend.records import Clip, Unreadable
    from privstats.plan import Plan

_LABEL, _EXCLUDED, _NORM, _PERSON, _OWNER = "label", "excluded", "norm", "person", "owner"
_NEEDED = (
    "a column of numbers holds numbers, a column of categories texts, integers, decimals or booleans, and a column of "
    "dates dates or times without a zone"
)
_NEEDED_ID = "an id is an integer in a column of integers (not text, decimal or float)"
_ONLY_THE_LIBRARY = (
    "such as a time of day or an interval where the plan lists one, or in Spark a sign beyond Latin letters, and they "
    "count as texts that the plan does not list: map them in a view, or measure with contrib.parts.measure"
)
_MAX_SETS = 4_096
"""PostgreSQL's maximum number of grouping sets."""

_Counts = dict[tuple[str, ...], dict[tuple[int, ...], int]]
_Owned = dict[int, dict[tuple[int, ...], int]]
"""By the id of a person with more rows than count in full: the number of rows by the cells of all columns."""


@dataclass(frozen=True, repr=False)
class Query:
    """A statement that counts a plan's records, and the reader of its rows.

    Attributes:
        text: the SQL. It depends on the plan, the names and the dialect alone, and reads no record when it is written.
        columns: names of the result's columns, in order; the last is the number of records.
    """

    schema: Schema
    text: str
    columns: tuple[str, ...]
    _unreadable: Unreadable
    _names: Mapping[str, str]
    _outcomes: Mapping[str, tuple[Outcome, ...]]
    _sets: tuple[tuple[str, ...], ...]
    _norms: tuple[int, ...] = ()
    _clip: Clip | None = None

    @classmethod
    def of(
        cls, plan: Plan, table: str | Sequence[str], y: str | None = None, *, dialect: Any, persons: str | None = None
    ) -> Query:
        """Write the statement for a plan, as :func:`query_of` does for its schema.

        Raises:
            DataError: also without ``persons`` where the plan's promise is per person.

        Example:
            >>> from privstats.contrib.parts import sql
            >>> schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
            >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 3, 100), privacy=ps.NoPrivacy())
            >>> print(sql.Query.of(plan, "ward.visits", dialect="postgres").text.splitlines()[3].strip())
            FROM "ward"."visits"
        """
        clip = plan.person_clip
        if clip is not None and persons is None:
            raise DataError("the plan's promise is per person: name the column of ids with --persons (persons=)")
        if clip is None and persons is not None:
            raise DataError("the plan's promise is not per person, so no ids are read: omit --persons (persons=)")
        ids: Any = {"persons": persons, "person_clip": clip}
        return query_of(plan.schema, table, y, dialect=dialect, unreadable=plan.unreadable, **ids)

    def __repr__(self) -> str:
        return f"Query({type(self.schema).__name__}, {len(self._sets)} grouping sets)"

    def moments(self, rows: Iterable[Sequence[Any]]) -> Moments:
        """Return the exact moments of the records that the statement counted.

        Args:
            rows: the statement's result, in any order: ``fetchall()`` of a cursor, or ``csv.reader`` of a CSV file, in
                which an empty field is NULL.

        Guarantee:
            The moments are ``==`` to ``privstats.measure`` of the same table's records, except for texts that SQL
            cannot read as the library does. With ``unreadable="leave out"`` such a text counts as one that the plan
            does not list, and a warning counts it; that text alone decides.

        Warns:
            UnreadableRecordsWarning: records are excluded, or values count as missing because they cannot be read.
            ClippedWarning: as ``privstats.measure``.

        Raises:
            DataError: rows of another statement, groups with different totals, or a column of another type than the
                plan needs.
            RecordError: a record cannot be read, and the plan excludes none.
        """
        counts, owned = self._counts(rows)
        if not any(counts.values()):
            warnings.warn(
                "the statement's result has no row, so these are the moments of no record: the table is empty, or its "
                "rows were read before",
                UnreadableRecordsWarning,
                stacklevel=2,
            )
        self._check_values(counts)
        of_kind = row_of(_MOMENTS, self.schema, "statement in SQL")
        kept = {names[1:]: _included(found) for names, found in counts.items()}
        moments = of_kind(self, kept)
        if isinstance(moments, CountMoments) and not self.schema.transform:
            moments = replace(moments, edge_report=_edges_of(self, counts))
        if self._clip is not None:
            persons = [of_kind(self, self._included_of(rows)) for rows in owned.values()]
            moments = self._of_persons(moments, counts, persons)
        warn_if_clipped(moments)
        return moments

    @property
    def _every(self) -> tuple[str, ...]:
        """The columns that have a code."""
        return self.columns[:-2]

    def cell(self, column: str, code: int) -> int:
        """Return the cell of an outcome's index."""
        return self._outcomes[column][code].cell

    def _counts(self, rows: Iterable[Sequence[Any]]) -> tuple[_Counts, _Owned]:
        counts: _Counts = {names: {} for names in self._sets}
        owned: _Owned = {}
        for row in rows:
            if tuple(row) == self.columns:  # the header of a CSV file
                continue
            values = [_integer(value) for value in row]
            if len(values) != len(self.columns) or values[-1] is None or values[-1] < 0:
                raise _other_rows(f"{len(self.columns)} integers are expected in each row")
            named = {name: value for name, value in zip(self.columns, values, strict=True) if value is not None}
            records, owner = named.pop("records"), named.pop(_OWNER, None)
            names, codes = tuple(named), tuple(named.values())
            if owner is None:
                found = counts.get(names)
            else:
                found = owned.setdefault(owner, {}) if names == self._every else None
            if found is None or codes in found or not self._known(names, codes):
                raise _other_rows("a row is of no group of this statement, or of one that came before")
            found[codes] = records
        if len({sum(found.values()) for found in counts.values()}) > 1:
            raise _other_rows("its groups hold different numbers of records, so rows are missing")
        if self._clip is not None:
            many = self.of_column(_PERSON, counts).get(MANY, 0)
            if many != sum(sum(found.values()) for found in owned.values()):
                raise _other_rows("rows are missing of persons with more rows than count in full")
        return counts, owned

    def _known(self, names: tuple[str, ...], codes: tuple[int, ...]) -> bool:
        sizes = {name: len(outcomes) for name, outcomes in self._outcomes.items()}
        sizes |= {_EXCLUDED: 2, _NORM: len(self._norms)}
        return all(0 <= code < sizes[name] for name, code in zip(names, codes, strict=True))

    def _check_values(self, counts: _Counts) -> None:
        """Refuse undecided values, refuse or warn of unreadable ones."""
        by_column = {name: self.of_column(name, counts) for name in self._outcomes}
        for name, outcomes in by_column.items():
            if number := outcomes.get(MISTYPED):
                needs = _NEEDED_ID if name == _PERSON else _NEEDED
                raise DataError(
                    f"column {self._names[name]!r}: the type of its {number:,} values is none that SQL can read here, "
                    f"where {needs}: cast it in a view, or measure with contrib.parts.measure"
                )
        self._check_persons(by_column.pop(_PERSON, {}))
        excluded = sum(number for (gone, *_), number in counts[self._sets[0]].items() if gone)
        lost = self._named(by_column, lambda outcome: outcome.cell < 0 or outcome.note in ("unread", "undecided"))
        if not lost:
            return
        undecided = self._named(by_column, lambda outcome: outcome.note == "undecided")
        only = f" Only the library can read some ({undecided}), {_ONLY_THE_LIBRARY}." if undecided else ""
        if self._unreadable == "refuse":
            raise RecordError(
                f"values have no cell of the plan, or cannot be read ({lost}): correct them, or have the plan declare "
                f"them; a plan with Privacy would count them as missing or exclude their records.{only}"
            )
        warnings.warn(
            f"{excluded:,} of the records are excluded, and other unreadable values count as missing ({lost}): "
            f"correct them where you can, and do not share these numbers.{only}",
            UnreadableRecordsWarning,
            stacklevel=4,
        )

    def _named(self, by_column: Mapping[str, Mapping[Outcome, int]], are: Callable[[Outcome], bool]) -> str:
        """Return the columns with values of these outcomes, each with their number; "" without one."""
        numbers = {name: sum(n for outcome, n in found.items() if are(outcome)) for name, found in by_column.items()}
        return "; ".join(f"column {self._names[name]!r}: {number:,}" for name, number in numbers.items() if number)

    def _check_persons(self, rows: Mapping[Outcome, int]) -> None:
        if nobody := sum(number for outcome, number in rows.items() if outcome.note == "nobody"):
            warnings.warn(
                f"{nobody:,} of the records have no id of a person, or one from 2**53 on, and are excluded from every "
                "sum. Do not share this number",
                UnreadableRecordsWarning,
                stacklevel=5,
            )

    def _included_of(self, rows: Mapping[tuple[int, ...], int]) -> _Counts:
        """Return the included rows of one person by the statement's groups."""
        kept: _Counts = {}
        for names in self._sets:
            places, found = [self._every.index(name) for name in names[1:]], kept.setdefault(names[1:], {})
            for codes, number in _included(rows).items():
                key = tuple(codes[place - 1] for place in places)
                found[key] = found.get(key, 0) + number
        return kept

    def _of_persons(self, moments: Moments, counts: _Counts, persons: Sequence[Moments]) -> PersonMoments:
        """Return the sums as sums over persons.

        Args:
            persons: moments of each person with more rows than count in full, which ``moments`` contains.
        """
        clip: Any = self._clip
        arrays = {row.letter: moments.sums(row) * row.factor for row in self.schema.sent}
        counted, shrunk = moments.records or 0, 0
        for person in persons:
            if not (rows := person.records or 0):
                continue
            clipped, is_shrunk = clip.clipped(person)
            for row in self.schema.sent:
                arrays[row.letter] += clipped[row.letter] - person.sums(row) * row.factor
            counted, shrunk = counted + min(rows, clip.most_records(self.schema)) - rows, shrunk + is_shrunk
        within = sum(
            number // outcome.cell for outcome, number in self.of_column(_PERSON, counts).items() if outcome.cell > 0
        )
        reports: Any = {name: getattr(moments, name, None) for name in ("clip_report", "edge_report")}
        of_all: Any = {"counted": counted, "shrunk": shrunk, "persons": within + len(persons)}
        return PersonMoments(self.schema, arrays, clip, moments.records, **of_all, **reports)

    def of_column(self, name: str, counts: _Counts) -> dict[Outcome, int]:
        """Return the number of all records, excluded ones included, by the outcome of one column."""
        names = next(each for each in self._sets if name in each)
        place, found = names.index(name), dict[Outcome, int]()
        for codes, number in counts[names].items():
            outcome = self._outcomes[name][codes[place]]
            found[outcome] = found.get(outcome, 0) + number
        return found


def query_of(
    schema: Schema,
    table: str | Sequence[str],
    y: str | None = None,
    *,
    dialect: Literal["duckdb", "postgres", "spark"],
    unreadable: Unreadable = "refuse",
    persons: str | None = None,
    person_clip: Clip | None = None,
) -> Query:
    """Write the statement that counts a table's records under a schema.

    Args:
        schema: one of these; others are refused by name, because their sums are of numbers and not of cells.

            - ``ClassSchema`` whose transform is :class:`~privstats.Cells` alone, with ``clip_norm=1``: N counts
              classes, A, D, T and F count cells by class, B counts pairs of cells, and S pairs by class.
            - ``CountSchema`` without ``numbers`` or ``late_entry``: T counts the cells of each table.
        table: the table or view, its parts divided by points (``hospital.patients``); or a sequence of parts.
        y: the name of the column of labels; None for a ``CountSchema``.
        dialect: ``duckdb``, ``postgres`` (from version 13) or ``spark`` (from 3.5).
        unreadable, person_clip: pass the plan's.
        persons: under a promise per person the name of the column of ids, which must be integers. The result has the
            rows of a person with more than count in full, each as its cells with the id: the library clips their sums.

    Guarantee:
        Names and texts of the plan are quoted or written as bytes, so that none of them can end its literal.

    Raises:
        SchemaError: a kind whose sums are no counts, or a declaration that only the library reads.
        DataError: a wrong name or dialect, or ``y`` is missing.

    Example:
        >>> import duckdb
        >>> from privstats.contrib.parts import sql
        >>> schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
        >>> query = sql.query_of(schema, "visits", dialect="duckdb")
        >>> base = duckdb.connect()
        >>> _ = base.execute("CREATE TABLE visits AS SELECT * FROM (VALUES ('f'), (' m'), ('f')) AS t(sex)")
        >>> query.moments(base.execute(query.text).fetchall()).T.tolist()
        [2, 1]
    """
    require_schema(schema, "contrib.parts.sql.query_of(schema, table)")
    engine = dialect_of(dialect)
    if unreadable not in ("refuse", "leave out"):
        raise DataError(f"unreadable must be 'refuse' or 'leave out', got {unreadable!r:.40}; give plan.unreadable")
    columns, groups = _columns_and_groups(schema, y, refuses=unreadable == "refuse")
    _check_names(schema, y, persons)
    people = _person(schema, engine, persons, person_clip)
    groups += [(name,) for name in people]
    sets = tuple(dict.fromkeys((_EXCLUDED, *names) for names in groups))
    if len(sets) > _MAX_SETS:
        raise SchemaError(
            f"this plan needs {len(sets):,} grouping sets and at most {_MAX_SETS:,} fit a statement; declare fewer "
            "columns, or measure with contrib.parts.measure"
        )
    parts = {name: written(column, engine, name) for name, column in columns.items()} | people
    norms = _Norms.of(schema) if isinstance(schema, ClassSchema) else None
    named = (_EXCLUDED, *((_NORM,) if norms else ()), *parts)
    text = _statement(engine.table(table), columns, parts, sets, norms, named)
    return Query(
        schema,
        text,
        (*named, _OWNER, "records"),
        unreadable,
        {name: column.name for name, column in columns.items()} | dict.fromkeys(people, persons or ""),
        {name: part.outcomes for name, part in parts.items()},
        tuple(tuple(sorted(names, key=named.index)) for names in sets),
        () if norms is None else norms.bins,
        person_clip,
    )


def _check_names(schema: Schema, y: str | None, persons: str | None) -> None:
    """Refuse a column that would serve as two things."""
    declared = {column.name for column in schema.reading.declared}
    if y is not None and y in declared:
        raise DataError(f"--target (y=) names {y!r}, a declared column of the plan; name the column of labels")
    if persons is not None and persons in {y, *declared}:
        raise DataError(f"--persons (persons=) names {persons!r}, which the plan reads too; name the column of ids")


def _person(schema: Schema, dialect: Dialect, persons: str | None, clip: Clip | None) -> dict[str, Written]:
    if (persons is None) != (clip is None):
        raise DataError("persons= and person_clip= go together: name the column of ids, and pass plan.person_clip")
    if persons is None or clip is None:
        return {}
    if why := schema.refuses_persons(averaged=clip.averaged):
        raise DataError(f"this schema cannot bound a person: {why}; omit persons")
    return {_PERSON: written_person(persons, dialect, _PERSON, int(clip.records))}


def refuses_sql(schema: Schema) -> str:
    """Return why a schema's sums are no counts of cells; "" if they are.

    Example:
        >>> from privstats.contrib.parts.sql import refuses_sql
        >>> refuses_sql(ps.MeanSchema(2, 1.0))
        'its sums are of numbers and not of cells'
    """
    if isinstance(schema, CountSchema):
        if schema.late_entry is not None:
            return "its late_entry compares two times of a record"
        return "its numbers are summed and not counted; omit numbers" if schema.numbers else ""
    if not isinstance(schema, ClassSchema):
        return "its sums are of numbers and not of cells"
    cells = schema.reading.declaration
    if cells is None:
        return "its columns are not declared; put Cells first into its transform"
    if cells.open:
        return f"the cut points of {', '.join(cells.open)} are open; run the course that estimates them first"
    if not sums_by_cells(schema):
        return (
            "its rows are not sums of cells; use Cells alone as transform, clip_norm 1, grid_bits of at least the "
            "cells' bits, and fewer cells with B or S"
        )
    return ""


def _columns_and_groups(
    schema: Schema, y: str | None, *, refuses: bool
) -> tuple[dict[str, CodedColumn], list[tuple[str, ...]]]:
    if not is_known(schema) or (why := refuses_sql(schema)):
        raise SchemaError(
            f"a {type(schema).__name__} cannot be counted in SQL: {why}; or measure with contrib.parts.measure"
        )
    if isinstance(schema, CountSchema):
        if y is not None:
            raise DataError("a CountSchema reads no y; omit it")
        return _of_tables(schema, refuses=refuses)
    if y is None:
        raise DataError("the column of labels is missing: name it with --target (y=)")
    cells: Any = schema.reading.declaration
    goal: Any = schema.reading.goal
    listed = listed_classes(tuple(goal.classes)) if isinstance(goal, Labels) else None
    if listed is None:
        raise SchemaError(f"a {type(schema).__name__} reads no labels")
    columns = {_LABEL: label_column(y, listed, schema.sizes["class"])}
    columns |= {f"c{place}": cells_column(cells, place) for place in range(len(cells.columns))}
    names, letters = list(columns)[1:], schema.statistics
    groups: list[tuple[str, ...]] = [(_LABEL,), (_NORM,), *((_LABEL, name) for name in names)]
    if "S" in letters:
        groups += [(_LABEL, *pair) for pair in combinations(names, 2)]
    elif "B" in letters:
        groups += [*combinations(names, 2)]
    return columns, groups


def _of_tables(schema: CountSchema, *, refuses: bool) -> tuple[dict[str, CodedColumn], list[tuple[str, ...]]]:
    cells: Any = schema.reading.declaration
    declared = {} if cells is None else {column.name: column for column in cells.columns}
    gaps = cells is None or not cells.missing
    coded = [counted_column(each, declared.get(each.name), gaps=gaps, refuses=refuses) for each in schema.variables]
    known = {variable.name for variable in schema.variables}
    if not gaps:
        coded += [presence_column(column) for name, column in declared.items() if name not in known]
    columns = {f"c{place}": column for place, column in enumerate(coded)}
    at = {column.name: name for name, column in columns.items()}
    groups = [tuple(at[name] for name in table) for table in schema.tables]
    return columns, [*groups, *((name,) for name in columns)]


@dataclass(frozen=True)
class _Norms:
    """Squared norms of records, and the stretches of squares that one bin of norms holds.

    Attributes:
        squares: by column and cell.
        ends: the largest square of each stretch but the last.
        bins: the bin of each stretch.
    """

    squares: tuple[NDArray[np.int64], ...]
    ends: tuple[int, ...]
    bins: tuple[int, ...]

    @classmethod
    def of(cls, schema: ClassSchema) -> _Norms:
        cells: Any = schema.reading.declaration
        shift = schema.grid_bits - cells.bits
        squares = tuple(((table << shift) ** 2).sum(axis=1) for table in cells.tables)
        low, high = (int(sum(extreme(each) for each in squares)) for extreme in (np.min, np.max))
        ends, bins = list[int](), [_bin(schema, low)]
        while _bin(schema, low) != _bin(schema, high):
            first, last = low, high
            while last - first > 1:
                middle = (first + last) // 2
                first, last = (middle, last) if _bin(schema, middle) == _bin(schema, low) else (first, middle)
            ends.append(first)
            bins.append(_bin(schema, last))
            low = last
        return cls(squares, tuple(ends), tuple(bins))


def _bin(schema: Schema, square: int) -> int:
    return CellAccumulator.norm_bin(schema, square)


def _statement(
    table: str,
    columns: Mapping[str, CodedColumn],
    parts: Mapping[str, Written],
    sets: Sequence[tuple[str, ...]],
    norms: _Norms | None,
    named: tuple[str, ...],
) -> str:
    first, second = ([pair for part in parts.values() for pair in part.stages[stage]] for stage in (0, 1))
    excluded = [
        f"{name} IN ({', '.join(map(str, codes))})"
        for name, part in parts.items()
        if (codes := [code for code, outcome in enumerate(part.outcomes) if outcome.cell < 0])
    ]
    owners = [(written_owner(_PERSON), _OWNER)] if _PERSON in parts else []
    marked = [(f"CASE WHEN {' OR '.join(excluded) or '1 = 0'} THEN 1 ELSE 0 END", _EXCLUDED)]
    binned: list[tuple[str, str]] = []
    if norms is not None:
        cases = zip(list(columns)[1:], norms.squares, strict=True)
        squares = " + ".join(f"({_square_case(parts[name], name, each)})" for name, each in cases)
        marked.append((f"CAST(0 AS BIGINT) + {squares}", "square"))
        binned = [(_bin_case(norms.ends), _NORM)]
    stages = (
        _raw([part.value[0] for part in parts.values()], table),
        _stage("named", "", [part.value for part in parts.values()], "raw"),
        _stage("typed", "named.*", first, "named"),
        _stage("decided", "typed.*", second, "typed"),
        _stage("coded", "", [*((part.case, name) for name, part in parts.items()), *owners], "decided"),
        _stage("marked", "coded.*", marked, "coded"),
        _stage("binned", "marked.*", binned, "marked"),
    )
    grouped = ",\n".join(f"  ({', '.join(names)})" for names in sets)
    every, nobody = ", ".join(named), f"CAST(NULL AS BIGINT) AS {_OWNER}"
    counted = f"SELECT {every}, {nobody}, count(*) AS records\nFROM binned\nGROUP BY GROUPING SETS (\n{grouped}\n)"
    if owners:
        many = parts[_PERSON].outcomes.index(MANY)
        counted += (
            f"\nUNION ALL\nSELECT {every}, {_OWNER}, count(*) AS records\nFROM binned\nWHERE {_PERSON} = {many}\n"
            f"GROUP BY {every}, {_OWNER}"
        )
    return f"WITH {', '.join(stages)}\n{counted}"


def _stage(name: str, every: str, expressions: Iterable[tuple[str, str]], source: str) -> str:
    """Return one step of the statement: all columns of the step before, or none, and further expressions."""
    shown = ",\n    ".join(([every] if every else []) + [f"{text} AS {alias}" for text, alias in expressions])
    return f"{name} AS (\n  SELECT\n    {shown}\n  FROM {source}\n)"


def _raw(columns: Iterable[str], table: str) -> str:
    """Return the step that reads the table, without an alias, which engines read for a missing column."""
    shown = ",\n    ".join(dict.fromkeys(columns))
    return f"raw AS (\n  SELECT\n    {shown}\n  FROM {table}\n)"


def _square_case(part: Written, name: str, squares: NDArray[np.int64]) -> str:
    of_code = [int(squares[outcome.cell]) if outcome.cell >= 0 else 0 for outcome in part.outcomes]
    usual = max(of_code, key=of_code.count)
    others = {
        square: [code for code, each in enumerate(of_code) if each == square] for square in set(of_code) - {usual}
    }
    lines = [f"WHEN {name} IN ({', '.join(map(str, codes))}) THEN {square}" for square, codes in others.items()]
    return f"CASE {' '.join(lines)} ELSE {usual} END" if lines else str(usual)


def _bin_case(ends: Sequence[int]) -> str:
    lines = " ".join(f"WHEN square <= {end} THEN {place}" for place, end in enumerate(ends))
    return f"CASE {lines} ELSE {len(ends)} END" if lines else "0"


def _included(counts: Mapping[tuple[int, ...], int]) -> dict[tuple[int, ...], int]:
    return {codes[1:]: number for codes, number in counts.items() if not codes[0]}


def _table(query: Query, kept: Any, names: tuple[str, ...], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return numbers of records by the cells of some columns."""
    out = np.zeros(shape, np.int64)
    for codes, number in kept[names].items():
        out[tuple(query.cell(name, code) for name, code in zip(names, codes, strict=True))] += number
    return out


def _tables_of(query: Query, kept: Any) -> CountMoments:
    schema: Any = query.schema
    at = {label: name for name, label in query._names.items()}
    T = np.zeros(schema.sizes["cell"], np.int64)
    for table in schema.tables:
        names, shape = tuple(at[each] for each in table), schema.shape(table)
        order = tuple(sorted(names, key=query.columns.index))
        sizes = dict(zip(names, shape, strict=True))
        found = _table(query, kept, order, tuple(sizes[name] for name in order))
        T[schema.place(table)] = found.transpose([order.index(name) for name in names]).reshape(-1)
    return CountMoments(schema, T)


def _edges_of(query: Query, counts: _Counts) -> EdgeReport:
    schema: Any = query.schema
    at = {label: name for name, label in query._names.items()}
    bins = [each for each in schema.variables if hasattr(each, "edges")]
    beyond = []
    for variable in bins:
        notes: dict[str, int] = {}
        for outcome, number in query.of_column(at[variable.name], counts).items():
            notes[outcome.note] = notes.get(outcome.note, 0) + number
        known = sum(notes.values()) - notes.get("gap", 0)
        beyond.append(Beyond(variable.name, known, notes.get("below", 0), notes.get("above", 0)))
    return EdgeReport(tuple(beyond), tuple(each.open for each in bins))


def _cells_of(query: Query, kept: Any) -> Moments:
    schema: Any = query.schema
    sizes = [len(table) for table in schema.reading.declaration.tables]
    classes, several = schema.sizes["class"], "S" in schema.statistics
    norms = {query._norms[stretch]: number for (stretch,), number in kept[(_NORM,)].items()}
    counts = CellAccumulator(schema)
    counts.add_counts(
        _table(query, kept, (_LABEL,), (classes,)),
        [_table(query, kept, (_LABEL, f"c{j}"), (classes, size)) for j, size in enumerate(sizes)],
        lambda i, j: _table(
            query,
            kept,
            (*((_LABEL,) if several else ()), f"c{i}", f"c{j}"),
            (*((classes,) if several else ()), sizes[i], sizes[j]),
        ),
        norms,
    )
    return counts.moments()


def _integer(value: Any) -> int | None:
    if value is None or value == "" or value != value:
        return None
    try:
        number = int(value)
        same = isinstance(value, str | Decimal | int | np.integer) or number == value
    except (TypeError, ValueError, OverflowError):
        same = False
    if not same:
        raise _other_rows("a field is no integer")
    return number


def _other_rows(why: str) -> DataError:
    return DataError(f"these rows are not the result of this statement: {why}; pass every row that it returned")


_MOMENTS: Mapping[type[Schema], Callable[[Query, Any], Moments]] = {
    CountSchema: _tables_of,
    ClassSchema: _cells_of,
}
"""The moments that a kind's counts become."""
