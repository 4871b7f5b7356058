"""Compare every number that a table prints with a rival's number for the same records.

A table's head and rows are read as text, as a reader of a paper reads them. Each number in them needs the rival's
number, or the reason why no rival has one. So a number that nobody compares is an error, not a gap.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, TypeAlias

from benchmarks.measuring import Row
from privstats.inference import Summary

__all__ = [
    "AGREES",
    "APART",
    "HEAD",
    "IN_ERRORS",
    "NOISE",
    "NO_RIVAL",
    "TOLERANCE",
    "Expected",
    "Key",
    "Number",
    "Printed",
    "Rival",
    "compared",
    "edges",
    "every",
    "group_of",
    "held",
    "numbers",
]

HEAD = "head"
_NUMBER = re.compile(r"<?(?<![\w.])-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?(?!\w)")
AGREES, APART, NO_RIVAL = "agrees", "by design", "no rival"
"""Groups of printed numbers, as :func:`group_of` returns them; ``APART`` differs, for a stated reason."""
IN_ERRORS = "in standard errors"
NOISE = "of the noise alone, which no rival has"
_ROUNDING = 1e-9
_Z = 1.959963984540054
TOLERANCE = 0.02
"""Standard errors of the rival by which two numbers that agree may differ."""

Key: TypeAlias = tuple[str, str]
"""A row's label, :data:`HEAD` for a line above the rows, and a column's heading."""


@dataclass(frozen=True)
class Rival:
    """A rival's number.

    Attributes:
        value: NaN where no rival has one.
        source: whose it is, such as ``"lifelines"``.
        error: the rival's standard error, in which a difference by design is stated.
        design: why the number differs by design, or why no rival has one; empty: it must agree.
        side: ``"low"`` or ``"high"`` where ours is an edge of the bins that hold the rival's number.
    """

    value: float
    source: str
    error: float = math.nan
    design: str = ""
    side: Literal["", "low", "high"] = ""

    @classmethod
    def none(cls, reason: str) -> Rival:
        """Return the place of a number that no rival has."""
        return cls(math.nan, "", design=reason)


Expected: TypeAlias = Mapping[Key, "Sequence[Rival] | Callable[[str], Sequence[Rival]]"]
"""The rival's numbers by cell, in the order of the cell's numbers, or a function of the cell's text."""

Span: TypeAlias = tuple[tuple[str, int], tuple[str, int], tuple[str, int]]
"""A number and both ends of its interval, each as column and index among the numbers of its cell."""


@dataclass(frozen=True)
class Number:
    """A printed number.

    Attributes:
        text: as printed.
        place: index among the numbers of its cell.
    """

    row: str
    column: str
    place: int
    text: str

    @property
    def value(self) -> float:
        """The number; half of the bound for one that is printed as below it."""
        plain = self.text.replace(",", "")
        return float(plain[1:]) / 2 if plain.startswith("<") else float(plain)

    @property
    def unit(self) -> float:
        """One unit of the last printed digit; the bound for a number that is printed as below it."""
        plain = self.text.replace(",", "").lstrip("-")
        if plain.startswith("<"):
            return float(plain[1:])
        digits, _, power = plain.partition("e")
        return float(10.0 ** (int(power or 0) - len(digits.partition(".")[2])))


def numbers(summary: Summary, labels: int = 1) -> Iterator[tuple[Number, str]]:
    """Yield each number above and in the rows, with the text of its cell.

    Args:
        labels: columns that name a row; a name that is printed twice has its number added.

    Example:
        >>> table = Summary("T", (("records", "1,200"),), ("", "mean"), (("f", "1.68 (SE 0.2)"),), foot=())
        >>> [(number.row, number.column, number.text) for number, _ in numbers(table)]
        [('head', 'records', '1,200'), ('f', 'mean', '1.68'), ('f', 'mean', '0.2')]
    """
    for name, value in summary.head:
        yield from _numbers(HEAD, name, value)
    columns, *rows = csv.reader(io.StringIO(summary.as_csv()))
    seen = Counter[str]()
    for cells in rows:
        label = ", ".join(each.strip() for each in cells[:labels])
        seen[label] += 1
        if seen[label] > 1:
            label = f"{label} ({seen[label]})"
        for column, cell in zip(columns[labels:], cells[labels:], strict=True):
            yield from _numbers(label, column, cell)


def _numbers(row: str, column: str, cell: str) -> Iterator[tuple[Number, str]]:
    for place, found in enumerate(_NUMBER.findall(cell)):
        yield Number(row, column, place, found), cell


def edges(value: float, source: str) -> Callable[[str], list[Rival]]:
    """Return the expectation that a cell's bin holds a number: ``"1 to 2"``, ``"below 1"`` or ``"2 or more"``.

    Example:
        >>> [each.side for each in edges(1.5, "pandas")("1 to 2")]
        ['low', 'high']
    """

    def expected(cell: str) -> list[Rival]:
        first: Literal["low", "high"] = "high" if cell.strip().startswith("below") else "low"
        sides: list[Literal["low", "high"]] = [first] if len(_NUMBER.findall(cell)) == 1 else ["low", "high"]
        return [Rival(value, source, side=side) for side in sides]

    return expected


def every(reason: str) -> Callable[[str], list[Rival]]:
    """Return the expectation of a cell whose numbers no rival has, for one reason.

    Example:
        >>> [each.design for each in every("of the plan")("from 0 to 1")]
        ['of the plan', 'of the plan']
    """
    return lambda cell: [Rival.none(reason)] * len(_NUMBER.findall(cell))


def compared(table: str, summary: Summary, expected: Expected, labels: int = 1) -> list[Row]:
    """Return a row per printed number: ours, the rival's, and whether both agree.

    Two numbers agree where they differ by at most one unit of the last printed digit, or by at most
    :data:`TOLERANCE` of the rival's standard error.

    Raises:
        KeyError: a printed number has no entry, or an entry has no printed number.
        ValueError: two numbers differ, and no reason is stated.
    """
    rows, used, found = [], set[Key](), dict[Key, list[Rival]]()
    for number, cell in numbers(summary, labels):
        key = number.row, number.column
        if key not in expected:
            raise KeyError(f"{table}: nobody compares {number.text} in {key}")
        each = expected[key]
        found.setdefault(key, list(each(cell) if callable(each) else each))
        if number.place >= len(found[key]):
            raise KeyError(f"{table}: nobody compares {number.text}, number {number.place} of {cell!r} in {key}")
        used.add(key)
        rows.append(_row(table, number, found[key][number.place]))
    if left := set(expected) - used:
        raise KeyError(f"{table}: no number is printed in {sorted(left)}")
    for row in rows:
        group_of(row)
    return rows


def group_of(row: Row) -> str:
    """Return whether a row of :func:`compared` agrees, differs by design, or has no rival.

    Raises:
        ValueError: the numbers differ, and the row states no reason.

    Example:
        >>> group_of({"agrees": True, "by design": ""})
        'agrees'
    """
    if row["agrees"]:
        return AGREES
    if not row["by design"]:
        raise ValueError(f"{row['ours']} is not the rival's {row['rival']}, and no reason is stated: {dict(row)}")
    return NO_RIVAL if row["agrees"] is None else APART


def _row(table: str, number: Number, rival: Rival) -> Row:
    apart, known = number.value - rival.value, math.isfinite(rival.value)
    row: dict[str, Any] = {"table": table, "row": number.row, "column": number.column, "ours": number.text}
    row |= {"rival": rival.value if known else None, "source": rival.source}
    row |= {"agrees": _agrees(number, rival) if known else None}
    row |= {"in units of the last digit": apart / number.unit if known and not rival.side else None}
    error = rival.error if known and math.isfinite(rival.error) and rival.error > 0 else math.nan
    return {**row, IN_ERRORS: None if math.isnan(error) else abs(apart) / error, "by design": rival.design}


def _agrees(number: Number, rival: Rival) -> bool:
    if rival.side:
        return number.value <= rival.value if rival.side == "low" else number.value >= rival.value
    if number.text.startswith("<"):
        return rival.value < number.unit
    allowed = max(number.unit, TOLERANCE * rival.error if math.isfinite(rival.error) else 0.0)
    return abs(number.value - rival.value) <= allowed * (1 + _ROUNDING)


@dataclass(frozen=True)
class Printed:
    """A printed table and the rivals' numbers for it.

    Attributes:
        name: as the page prints it.
        summary: the table as printed.
        expected: rivals' numbers by cell; without a line for what noise adds.
        labels: columns that name a row.
        spans: numbers with an interval.
        noise_of: column of the numbers whose noise has a column of its own.
    """

    name: str
    summary: Summary
    expected: Expected
    labels: int = 1
    spans: tuple[Span, ...] = ()
    noise_of: str = ""

    @property
    def rows(self) -> list[Row]:
        """Every printed number next to the rival's."""
        return compared(self.name, self.summary, self.expected, self.labels)


def held(tables: Sequence[Printed]) -> Row:
    """Count the rival's numbers that printed intervals and standard errors of the noise hold.

    Args:
        tables: one table of several releases.
    """
    ends = [each for table in tables for each in _ends(table)]
    known = [each for each in ends if each is not None]
    noisy = [each for table in tables for each in _noisy(table)]
    widths = [width for _, width in known if math.isfinite(width)]
    return {
        "table": tables[0].name,
        "releases": len(tables),
        "intervals": len(known),
        "hidden": len(ends) - len(known),
        "hold the rival's": sum(inside for inside, _ in known),
        "width over the rival's": median(widths) if widths else None,
        "numbers with noise": len(noisy),
        "within 1.96 of its error": sum(noisy),
    }


def _ends(table: Printed) -> Iterator[tuple[bool, float] | None]:
    """Yield whether each interval holds the rival's number, and its width over the rival's; None: hidden."""
    printed, rivals = _by_place(table), _by_cell(table)
    for row in dict.fromkeys(row for row, _ in rivals):
        for span in table.spans:
            if any(len(rivals.get((row, column), ())) <= place for column, place in span):
                continue
            own, low, high = (rivals[row, column][place].value for column, place in span)
            least, most = (printed.get((row, *place)) for place in span[1:])
            if least is None or most is None:
                yield None
                continue
            inside = least.value - least.unit / 2 <= own <= most.value + most.unit / 2
            yield inside, (most.value - least.value) / (high - low) if high > low else math.nan


def _noisy(table: Printed) -> Iterator[bool]:
    """Yield whether the rival's number is within 1.96 printed standard errors of the noise, for each that has one."""
    printed = _by_place(table)
    for (row, column), rivals in _by_cell(table).items():
        counted = len(rivals) == 2 and rivals[1].design == NOISE
        error = printed.get((row, column, 1) if counted else (row, "noise SE", 0))
        own = printed.get((row, column, 0))
        if own is not None and error is not None and (counted or column == table.noise_of):
            rounded = own.unit / 2 + _Z * error.unit / 2
            yield abs(own.value - rivals[0].value) <= _Z * error.value + rounded


def _by_place(table: Printed) -> dict[tuple[str, str, int], Number]:
    return {(each.row, each.column, each.place): each for each, _ in numbers(table.summary, table.labels)}


def _by_cell(table: Printed) -> dict[Key, Sequence[Rival]]:
    return {key: each for key, each in table.expected.items() if not callable(each)}
