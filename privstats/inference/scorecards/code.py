"""A scorecard as code that a clinic can read and run without this library: a Python function, an SQL query."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.transforms.columns import Categories, Column, Dates, Numeric, Truth
from privstats.transforms.one_value import MISSING, same

if TYPE_CHECKING:
    from privstats.inference.scorecards.table import Scorecard

__all__ = ["python_of", "sql_of"]

_PYTHON = '''"""{title}

{notes}
"""

import re
from bisect import bisect_right
from datetime import datetime, timezone
from math import exp, isfinite
from unicodedata import normalize

BASE = {base!r}
COLUMNS = {columns}
MISSING = {missing}
PLAIN = re.compile(r"[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?")
DATE = re.compile(r"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:[T ][0-9]{{2}}:[0-9]{{2}}.*)?")


def text_of(value):
    """A value as text, normalised and without space at its ends."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return normalize("NFC", text.replace("\\0", "").strip()).strip()


def number(value):
    """A plain number in 15 digits, or None."""
    text = text_of(int(value) if isinstance(value, bool) else value)
    found = float(text) if PLAIN.fullmatch(text) else None
    return float("%.15g" % found) if found is not None and isfinite(found) else None


def day(value):
    """Days since 1970-01-01 of an ISO date with hyphens, or None."""
    text = text_of(value)
    try:
        at = datetime.fromisoformat(text) if DATE.fullmatch(text) else None
    except ValueError:
        return None
    if at is None:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
    return (at - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds() / 86400


def same(value, listed):
    """Whether two values are one: numbers as numbers, texts as texts."""
    a, b = number(value), number(listed)
    return a == b if a is not None or b is not None else text_of(value) == text_of(listed)


def points_of(column, value):
    """The points of a column's value."""
    *points, gap = column["points"]
    if value is None or text_of(value).lower() in MISSING or any(same(value, each) for each in column["gaps"]):
        return gap
    if column["kind"] == "listed":
        places = [place for place, each in enumerate(column["values"]) if same(value, each)]
        if places:
            return points[places[0]]
        return points[-1] if len(points) > len(column["values"]) else gap
    if column["kind"] == "truth":
        value = {{"true": 1, "false": 0}}.get(text_of(value).lower(), value)
        found = number(value)
        return points[int(found)] if found in (0, 1) else gap
    found = day(value) if column["kind"] == "dates" else number(value)
    return gap if found is None else points[bisect_right(column["from"], found)]


def score(record):
    """Log odds of {outcome}: the base and the points of every column."""
    return BASE + sum(points_of(column, record.get(name)) for name, column in COLUMNS.items())


def probability(record):
    """Chance of {outcome}."""
    return 1 / (1 + exp(-score(record)))
'''


def python_of(card: Scorecard, row: int) -> str:
    """A Python file with ``score(record)`` and ``probability(record)``, which needs the standard library alone."""
    columns = {
        column.name: {**_kind(column, marks), "gaps": list(column.gaps), "points": _rounded(shown.points[row])}
        for column, marks, shown in zip(card.cells.columns, card.cells.marks, card.columns, strict=True)
    }
    body = "{\n" + "".join(f"    {name!r}: {table!r},\n" for name, table in columns.items()) + "}"
    return _PYTHON.format(
        title=_title(card, row),
        notes=_inside(card.promise),
        missing=_lines(sorted(MISSING)),
        base=float(card.base[row]),
        columns=body,
        outcome=_inside(card.outcomes[row]),
    )


def sql_of(card: Scorecard, row: int, table: str) -> str:
    """A query in standard SQL, over a table whose columns have the types that were declared: NULL is a gap.

    Raises:
        DataError: a listed value has a backslash, or a name cannot be printed.
    """
    parts = [
        _case(column, marks, _rounded(shown.points[row]))
        for column, marks, shown in zip(card.cells.columns, card.cells.marks, card.columns, strict=True)
    ]
    head = f"-- {_title(card, row)}\n-- {_inside(card.promise)}\n-- A gap is NULL; texts must be as listed here.\n"
    body = "\n".join(f"    + {part}" for part in parts)
    return f"{head}SELECT t.*, {float(card.base[row])!r}\n{body}\n    AS log_odds\nFROM {_identifier(table)} AS t;\n"


def _lines(texts: list[str]) -> str:
    return (
        "{\n" + textwrap.fill(", ".join(map(repr, texts)), 100, initial_indent="    ", subsequent_indent="    ") + "\n}"
    )


def _title(card: Scorecard, row: int) -> str:
    return f"Log odds of {_inside(card.outcomes[row])}, from plan {card.releases[0].plan.digest[:16]}."


def _kind(column: Column, marks: NDArray[np.float64]) -> dict[str, object]:
    match column:
        case Numeric():
            return {"kind": "numbers", "from": [same(mark) for mark in marks.tolist()]}
        case Dates():
            return {"kind": "dates", "from": marks.tolist()}
        case Truth():
            return {"kind": "truth"}
        case Categories(values=()):
            return {"kind": "listed", "values": []}
        case Categories():
            return {"kind": "listed", "values": list(column.values)}


def _case(column: Column, marks: NDArray[np.float64], points: list[float]) -> str:
    name = f"t.{_identifier(column.name)}"
    gaps = [f"WHEN {name} IS NULL THEN {points[-1]!r}"]
    gaps += [f"WHEN {name} = {_literal(gap)} THEN {points[-1]!r}" for gap in column.gaps]
    match column:
        case Numeric() | Dates():
            said = [column.said(float(mark)).replace("T", " ") for mark in marks]
            literal = (lambda text: f"'{text}'") if isinstance(column, Dates) else str
            steps = [
                f"WHEN {name} >= {literal(text)} THEN {value!r}"
                for text, value in reversed(list(zip(said, points[1:-1], strict=True)))
            ]
            rest = points[0]
        case Truth():
            steps = [f"WHEN CAST({name} AS INTEGER) = {place} THEN {points[place]!r}" for place in (0, 1)]
            rest = points[-1]
        case Categories():
            steps = [
                f"WHEN {name} = {_literal(value)} THEN {points[place]!r}" for place, value in enumerate(column.values)
            ]
            rest = points[-1] if column.is_scale else points[-2]
    return f"CASE {' '.join([*gaps, *steps])} ELSE {rest!r} END"


def _rounded(points: NDArray[np.float64]) -> list[float]:
    return [float(f"{value:.10g}") for value in points]


def _identifier(name: str) -> str:
    if not name.isprintable():
        raise DataError(f"a name in SQL must be printable, got {name!r}")
    return '"' + name.replace('"', '""') + '"'


def _literal(value: object) -> str:
    if not isinstance(value, str):
        return repr(value)
    if "\\" in value:  # some dialects take it for an escape, in which a quotation mark would end the text
        raise DataError(
            f"the listed value {value!r} has a backslash, which SQL's dialects read differently: take Python"
        )
    return "'" + value.replace("'", "''") + "'"


def _inside(text: str) -> str:
    """Text for a comment or a docstring: one line, and nothing in it that ends either."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return line.replace("\\", "/").replace('"""', "'''")
