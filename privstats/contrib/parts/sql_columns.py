"""Write the cell of a declared column's value as SQL, from the library's own reading of values.

No rule of reading is written twice. A column's rule is asked for the cells of public values: each listed text, each
word for a gap, and numbers or times between which the cell changes, which bisection finds to the last float64 or
microsecond.

A text that SQL cannot read as the library does counts as one that the plan does not list, and is noted: that value
alone decides. A column whose type is none that the plan needs has the outcome :data:`MISTYPED` in every row.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.parts.sql_dialects import Dialect
from privstats.errors import SchemaError
from privstats.extend.records import DAY_MICROSECONDS, EPOCH, Readings, meaning_of, read
from privstats.intake.columns import TRUTHS, Listed
from privstats.intake.meaning import LONGEST, MISSING, text_meaning_of
from privstats.records.cells import beyond, cells_in
from privstats.schema import Bins, Categories
from privstats.transforms import Dates, Numeric

_MAX = sys.float_info.max
_NEAR = 2.0**-40  # relative: more than the 15 digits in which values are compared
# A later value is of the year 10000, or within the last second and read as its first microsecond.
_FIRST, _LAST = (
    round((at - EPOCH).total_seconds()) * 1_000_000 for at in (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59))
)
_END = datetime.max
_BEYOND = np.datetime64("10000-01-01", "us")
_OTHERWISE = "\x02"  # no public value equals it, because those are printable

_DATE, _INTERVAL = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}"), re.compile("[\\[(]")
_TIME_OF_DAY = "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}"
_DECIMAL = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_MAX_DIGITS = 15
# Signs that Unicode's normal form NFC never changes.
_UNSTABLE = "[^ -~\u00c0-\u017f]"
_WORDS_OF_TRUTH = ("true", "false", "yes", "no", "y", "n", "t", "f")


class Outcome(NamedTuple):
    """The cell of a value.

    Attributes:
        cell: -1 excludes the record.
        note: "" or why a data holder should look at the value: ``unread``, ``gap``, ``below``, ``above``; ``undecided``
            of a text that only the library can read.
    """

    cell: int
    note: str = ""


MISTYPED = Outcome(-1, "mistyped")
"""The outcome of every value of a column whose type is none that the plan needs."""
MANY = Outcome(0, "many")
"""The outcome of an id of a person with more rows than count in full."""

Reader: TypeAlias = Callable[[Any], list[Outcome]]
"""Returns the outcomes of several values."""


@dataclass(frozen=True)
class CodedColumn:
    """A column whose values have cells.

    Attributes:
        kind: ``number`` and ``time`` columns have such a type in the table; a ``word`` column has texts, integers or
            booleans; ``code`` is a word whose numbers are texts.
        cells: number of cells.
        outcomes: the library's reading.
        marks: float64 numbers, or microseconds, near which the cell changes.
        texts: texts with a cell of their own, case-sensitive.
        words: texts that are read in any case, in lower case.
    """

    name: str
    kind: Literal["number", "time", "word", "code"]
    cells: int
    outcomes: Reader
    marks: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    words: tuple[str, ...] = field(default=(), repr=False)


def cells_column(cells: Any, place: int) -> CodedColumn:
    """Return a column of :class:`~privstats.Cells`; its cells are those of its block, the gap last.

    Raises:
        SchemaError: only the library can read such a column, by its declaration.
    """
    column, marks = cells.columns[place], cells.marks[place]
    _require_typed(column)
    gap = len(cells.tables[place]) - 1

    def outcomes(values: Any) -> list[Outcome]:
        readings = column.readings(values)
        codes = column.codes_and_unread(readings)[0]
        unread = np.isnan(codes) & ~column.decide(readings).gaps
        index = np.where(np.isnan(codes), -1 if cells.missing else gap, np.searchsorted(marks, codes, side="right"))
        return [
            Outcome(cell, "unread" if lost else "gap" if nothing else "")
            for cell, lost, nothing in zip(index.tolist(), unread.tolist(), np.isnan(codes).tolist(), strict=True)
        ]

    return _declared(column, gap + 1, outcomes, marks.tolist())


def presence_column(column: Any) -> CodedColumn:
    """Return a declared column of which only gaps count, because a gap excludes its record."""
    _require_typed(column)

    def outcomes(values: Any) -> list[Outcome]:
        return [
            Outcome(-1, "gap") if math.isnan(code) else Outcome(0)
            for code in column.codes_and_unread(column.readings(values))[0]
        ]

    return _declared(column, 1, outcomes, getattr(column, "edges", None) or ())


def _declared(column: Any, cells: int, outcomes: Reader, marks: Sequence[float]) -> CodedColumn:
    if isinstance(column, Dates):
        return CodedColumn(column.name, "time", cells, outcomes, _micros(column, marks))
    gaps = Listed.of(column.gaps, texts=column.marks == "text")
    if isinstance(column, Numeric):
        return CodedColumn(column.name, "number", cells, outcomes, (*marks, *gaps.numbers.tolist()))
    return _words(column.name, cells, outcomes, (column.listed, gaps), code=column.marks == "text")


def _require_typed(column: Any) -> None:
    """Refuse a column whose values are texts that SQL cannot read as its declaration does."""
    if isinstance(column, Dates) and column.reads_otherwise:
        raise SchemaError(
            f"{column.name} is declared as {column.written!r}, which SQL cannot read alike in every engine; store "
            "dates in a view, or measure with contrib.parts.measure"
        )
    if isinstance(column, Numeric) and column.marks == "affixed":
        raise SchemaError(
            f"{column.name} is declared with a suffix or with signs such as <, so its values are texts; store numbers "
            "in a view, or measure with contrib.parts.measure"
        )


def counted_column(variable: Any, declared: Any, *, gaps: bool, refuses: bool) -> CodedColumn:
    """Return a variable of a table of counts.

    Args:
        declared: the column of Cells whose codes are counted; None where values are.
        gaps: whether a gap may count; otherwise it excludes its record.
        refuses: whether a value without a cell is refused; otherwise a declared cell for gaps also counts it.
    """
    counted = variable if refuses or isinstance(variable, Categories) or not variable.missing else None

    def outcomes(values: Any) -> list[Outcome]:
        readings = (
            read(values) if declared is None else Readings.of(declared.codes_and_unread(declared.readings(values))[0])
        )
        cells = cells_in(variable, readings)
        if counted is None:
            cells[cells < 0] = len(variable.cells) - 1
        if not gaps:
            cells[np.isnan(readings.numbers)] = -1
        notes = np.full(len(cells), "", object)
        if isinstance(variable, Bins):
            below, above = beyond(variable, readings.numbers)
            notes[below], notes[above], notes[np.isnan(readings.numbers)] = "below", "above", "gap"
        return [*map(Outcome, cells.tolist(), notes.tolist())]

    name, cells = variable.name, len(variable.cells)
    if declared is not None:
        _require_typed(declared)
        return _declared(declared, cells, outcomes, (*variable.edges, *(declared.edges or ())))
    if isinstance(variable, Bins):
        return CodedColumn(name, "number", cells, outcomes, variable.edges)
    return _words(name, cells, outcomes, (variable.listed,))


def label_column(name: str, listed: Listed, classes: int) -> CodedColumn:
    """Return the column of labels."""

    def outcomes(values: Any) -> list[Outcome]:
        return [Outcome(place, "unread" if place < 0 else "") for place in listed.places_of(read(values)).tolist()]

    return _words(name, classes, outcomes, (listed,))


def _words(name: str, cells: int, outcomes: Reader, listed: Sequence[Listed], *, code: bool = False) -> CodedColumn:
    read_alike = text_meaning_of if code else meaning_of
    usual = any(each is TRUTHS for each in listed)
    words = {*MISSING, *(() if code else ("true", "false")), *(_WORDS_OF_TRUTH if usual else ())}
    texts = tuple(text for each in listed if each is not TRUTHS for text in each.texts if text not in words)
    if odd := [text for text in texts if read_alike(text) != text]:
        raise SchemaError(
            f"{name} lists {odd[0]!r}, which SQL cannot compare; choose another text, or measure in parts"
        )
    marks = tuple(number for each in listed for number in each.numbers.tolist())
    return CodedColumn(name, "code" if code else "word", cells, outcomes, marks, texts, tuple(sorted(words)))


def _micros(column: Dates, days: Iterable[float]) -> tuple[float, ...]:
    """Return the microseconds of cut points and of gap codes."""
    at: list[float] = [day * DAY_MICROSECONDS for day in days]
    for gap in column.gaps:
        try:
            at.append((datetime.fromisoformat(str(meaning_of(gap))) - EPOCH).total_seconds() * 1_000_000)
        except (ValueError, TypeError):  # a gap code that no date equals
            continue
    return tuple(at)


def changes(outcomes: Reader, marks: Collection[float], *, times: bool = False) -> list[tuple[Any, Outcome]]:
    """Return where the outcome changes: the first value of each stretch of values, and its outcome.

    Args:
        marks: numbers, between any two of which the outcome changes at most at one place on each side of their middle.
        times: values are microseconds since 1970, else float64.

    Example:
        >>> from privstats.contrib.parts.sql_columns import Outcome, changes
        >>> changes(lambda values: [Outcome(int(value >= 0.5)) for value in values], (0.5,))[1]
        (0.5, Outcome(cell=1, note=''))
    """
    first, last = (float(_FIRST), float(_LAST)) if times else (-_MAX, _MAX)
    around = [mark * (1 + side) for mark in marks for side in (-_NEAR, 0.0, _NEAR)]
    around += [
        mark + side
        for mark in marks
        for side in ((-DAY_MICROSECONDS, DAY_MICROSECONDS) if times else (-math.ulp(mark), math.ulp(mark)))
    ]
    inside = sorted({first, last, 0.0, *(each for each in around if first < each < last)})
    middles = [low / 2 + high / 2 for low, high in pairwise(inside)]
    places = _places(np.array(sorted({*inside, *middles})), times)
    values, back = _from_places(places, times)
    found = outcomes(values)
    change = [at for at, (left, right) in enumerate(pairwise(found)) if left != right]
    low, high = places[change], places[[at + 1 for at in change]]
    before = [found[at] for at in change]
    while (high - low > 1).any():
        middle = low // 2 + high // 2 + (low & high & 1)
        same = np.array([a == b for a, b in zip(outcomes(_from_places(middle, times)[0]), before, strict=True)])
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    starts = _from_places(high, times)[0]
    after = outcomes(starts) if len(starts) else []
    return [(back(values[0]), found[0]), *zip(map(back, starts), after, strict=True)]


def _places(values: NDArray[np.float64], times: bool) -> NDArray[np.int64]:
    """Return integers in the order of values, one for each value that there is."""
    if times:
        return np.unique(np.rint(values).astype(np.int64))
    bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, -(bits & np.int64(_MAX_INT)), bits)


_MAX_INT = (1 << 63) - 1


def _from_places(places: NDArray[np.int64], times: bool) -> tuple[Any, Callable[[Any], Any]]:
    if times:
        return places.astype("datetime64[us]"), lambda value: int(value.astype(np.int64))
    return np.where(places < 0, -np.abs(places).view(np.float64), places.view(np.float64)) + 0.0, float


@dataclass(frozen=True)
class Written:
    """A column in SQL.

    Attributes:
        value: the quoted column of the table, and the name that ``stages`` use for it.
        stages: expressions with their names; those of the second stage use those of the first.
        case: an integer expression over both, the index of the value's outcome.
        outcomes: by that index.
    """

    value: tuple[str, str]
    stages: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
    case: str
    outcomes: tuple[Outcome, ...]


def written(column: CodedColumn, dialect: Dialect, suffix: str) -> Written:
    """Write a column as SQL.

    Args:
        suffix: a suffix that no other column of the statement has.
    """
    write = {"number": _number, "time": _time}.get(column.kind, _word)
    first, second, lines, outcomes = write(column, dialect, suffix)
    case = "CASE\n" + "\n".join(f"      {line}" for line in lines) + "\n    END"
    return Written((dialect.name(column.name), f"value_{suffix}"), (tuple(first), tuple(second)), case, outcomes)


def written_person(name: str, dialect: Dialect, suffix: str, most: int) -> Written:
    """Write a column of ids, which must be integers; the outcome's cell is the number of the person's rows.

    Args:
        most: number of rows up to which a person counts in full; more have the outcome :data:`MANY`.
    """
    value, person, odd = f"value_{suffix}", f"id_{suffix}", f"odd_{suffix}"
    rows, whole = f"count(*) OVER (PARTITION BY {person})", dialect.is_type(value, dialect.integers)
    case = (
        f"CASE WHEN {odd} = 1 THEN 0 WHEN {person} IS NULL OR {person} <= -{_MAX_ID} OR {person} >= {_MAX_ID} THEN 1 "
        f"WHEN {rows} > {most} THEN 2 ELSE 2 + {rows} END"
    )
    first = (
        (f"CASE WHEN {whole} THEN CAST({value} AS BIGINT) END", person),
        (f"CASE WHEN {whole} THEN 0 ELSE 1 END", odd),
    )
    outcomes = (MISTYPED, Outcome(-1, "nobody"), MANY, *(Outcome(rows) for rows in range(1, most + 1)))
    return Written((dialect.name(name), value), (first, ()), case, outcomes)


def written_owner(suffix: str) -> str:
    """Write the id that :func:`written_person` decided at this place, for persons with more rows than count in full."""
    return f"id_{suffix}"


_MAX_ID = 1 << 53
_Pairs: TypeAlias = list[tuple[str, str]]
_Lines: TypeAlias = list[str]
_Parts: TypeAlias = tuple[_Pairs, _Pairs, _Lines, tuple[Outcome, ...]]


class _Codes(dict[Outcome, int]):
    """Indices of outcomes, in the order of first use."""

    def __missing__(self, outcome: Outcome) -> int:
        return self.setdefault(outcome, len(self))


def _number(column: CodedColumn, dialect: Dialect, suffix: str) -> _Parts:
    value, number, odd, codes = f"value_{suffix}", f"number_{suffix}", f"odd_{suffix}", _Codes()
    (gap,) = column.outcomes([None])
    plain, over_text = (*dialect.numbers, *dialect.singles), dialect.decimals
    cast = f"CASE WHEN {dialect.is_type(value, plain)} THEN CAST({value} AS {dialect.number_type})"
    if over_text:
        text = dialect.to_number.format(f"CAST({value} AS {dialect.text_type})")
        cast += f" WHEN {dialect.is_type(value, over_text)} THEN {text}"
    first = [(f"{cast} END", number), (_unless(dialect, value, (*plain, *over_text)), odd)]
    lines = [
        f"WHEN {odd} = 1 THEN {codes[MISTYPED]}",
        f"WHEN {number} IS NULL THEN {codes[gap]}",
        *_stretches(column, dialect, number, codes, gap),
    ]
    return first, [], lines, tuple(codes)


def _time(column: CodedColumn, dialect: Dialect, suffix: str) -> _Parts:
    value, time, odd, codes = f"value_{suffix}", f"time_{suffix}", f"odd_{suffix}", _Codes()
    (gap,), (beyond,) = column.outcomes([None]), column.outcomes([_BEYOND])
    zoned, in_utc = dialect.zoned
    types = dialect.is_type(value, dialect.times)
    if zoned:
        types = f"({types} OR ({dialect.is_type(value, zoned)} AND {in_utc}))"
    first = [
        (f"CASE WHEN {types} THEN {dialect.to_time.format(value)} END", time),
        (f"CASE WHEN {types} THEN 0 ELSE 1 END", odd),
    ]
    starts = changes(column.outcomes, column.marks, times=True)
    outside = f"{time} IS NULL OR {time} < {_moment(dialect, _FIRST)} OR {time} > {_literal(dialect, _END)}"
    lines = [
        f"WHEN {odd} = 1 THEN {codes[MISTYPED]}",
        f"WHEN {value} IS NULL THEN {codes[gap]}",
        f"WHEN {outside} THEN {codes[beyond]}",
    ]
    lines += [
        f"WHEN {time} < {_moment(dialect, end)} THEN {codes[outcome]}" for (_, outcome), (end, _) in pairwise(starts)
    ]
    return first, [], [*lines, f"ELSE {codes[starts[-1][1]]}"], tuple(codes)


def _word(column: CodedColumn, dialect: Dialect, suffix: str) -> _Parts:
    value, word, number, odd = f"value_{suffix}", f"word_{suffix}", f"number_{suffix}", f"odd_{suffix}"
    (gap, otherwise), codes = column.outcomes([None, _OTHERWISE]), _Codes()
    text = dialect.stripped(dialect.as_text.format(value))
    text = dialect.stripped(dialect.normal.format(text)) if dialect.normal else text
    is_text = dialect.is_type(value, dialect.texts)
    numeric = f"{is_text} AND length({word}) <= {LONGEST} AND {dialect.holds(word, _DECIMAL)}"
    undecided = [f"{is_text} AND {each}" for each in _undecided(column, dialect, word)]
    lines = [f"WHEN {odd} = 2 THEN {codes[MISTYPED]}", f"WHEN {word} IS NULL THEN {codes[gap]}"]
    if column.kind == "code":
        others = dialect.is_type(value, dialect.integers)
        # An integer of more digits is read as a number with an exponent.
        undecided.append(f"{others} AND length({word}) > {_MAX_DIGITS}")
        lines.append(f"WHEN {_infinite(dialect, number)} THEN {codes[gap]}")
    else:
        numbers = [each for each in (*dialect.numbers, *dialect.decimals) if each not in dialect.truths]
        others = f"{dialect.is_type(value, numbers)} OR {dialect.is_type(value, dialect.truths)}"
        numeric = f"{dialect.is_type(value, numbers)} OR ({numeric})"
        inner = "\n".join(f"        {line}" for line in _stretches(column, dialect, number, codes, gap))
        lines.append(f"WHEN {number} IS NOT NULL THEN CASE\n{inner}\n      END")
    lines += [
        f"WHEN {word} IN ({dialect.listed(texts)}) THEN {codes[outcome]}"
        for outcome, texts in _grouped(column.outcomes, column.texts).items()
    ]
    lines += [
        f"WHEN {dialect.folded(word)} IN ({dialect.listed(texts)}) THEN {codes[outcome]}"
        for outcome, texts in _grouped(column.outcomes, column.words).items()
    ]
    lines += [f"WHEN {odd} = 1 THEN {codes[Outcome(otherwise.cell, 'undecided')]}", f"ELSE {codes[otherwise]}"]
    known = f"WHEN {' OR '.join(f'({each})' for each in undecided)} THEN 1 " if undecided else ""
    second = [
        (f"CASE WHEN {numeric} THEN {dialect.to_number.format(word)} END", number),
        (f"CASE WHEN NOT ({is_text} OR {others}) THEN 2 {known}ELSE 0 END", odd),
    ]
    return [(text, word)], second, lines, tuple(codes)


def _undecided(column: CodedColumn, dialect: Dialect, word: str) -> list[str]:
    """Return the conditions of texts that the library may read as one that the column lists, and SQL as another."""
    conditions = [] if dialect.normal else [dialect.holds(word, _UNSTABLE)]
    if any(map(_DATE.match, column.texts)):
        conditions.append(dialect.holds(word, _TIME_OF_DAY))
    if any(map(_INTERVAL.match, column.texts)):
        conditions.append(f"substring({word}, 1, 1) IN ('(', '[')")
    return conditions


def _unless(dialect: Dialect, value: str, types: Iterable[str]) -> str:
    return f"CASE WHEN {dialect.is_type(value, types)} THEN 0 ELSE 1 END"


def _grouped(outcomes: Reader, texts: Sequence[str]) -> dict[Outcome, list[str]]:
    grouped: dict[Outcome, list[str]] = {}
    for text, outcome in zip(texts, outcomes([*texts]) if texts else [], strict=True):
        grouped.setdefault(outcome, []).append(text)
    return grouped


def _stretches(column: CodedColumn, dialect: Dialect, number: str, codes: _Codes, gap: Outcome) -> _Lines:
    """Return the lines of a number's cell; NaN is above every number in each of the engines."""
    starts = changes(column.outcomes, column.marks)
    lines = [f"WHEN {_infinite(dialect, number)} THEN {codes[gap]}"]
    lines += [
        f"WHEN {number} < {dialect.number(end)} THEN {codes[outcome]}" for (_, outcome), (end, _) in pairwise(starts)
    ]
    return [*lines, f"ELSE {codes[starts[-1][1]]}"]


def _infinite(dialect: Dialect, number: str) -> str:
    return f"{number} < {dialect.number(-_MAX)} OR {number} > {dialect.number(_MAX)}"


def _moment(dialect: Dialect, micros: int) -> str:
    return _literal(dialect, np.datetime64(micros, "us").astype(object))


def _literal(dialect: Dialect, at: datetime) -> str:
    return f"{dialect.time_type} '{at.isoformat(sep=' ', timespec='microseconds')}'"
