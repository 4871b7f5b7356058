"""Write a scorecard as an SQL expression that computes the head's own score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from privstats.errors import HeadError
from privstats.intake.declared.columns import Column, Dates, Numeric, Truth
from privstats.transforms import Categories

if TYPE_CHECKING:
    from privstats.inference.row_lengths import Lengths
    from privstats.inference.scorecard_table import Scorecard

_MAX_ENTRIES = 160
"""Limit on the entries of a row whose length a query computes: it has half their square as many terms."""


def scorecard_sql(card: Scorecard, table: str) -> str:
    """Return a query that adds the head's log odds to every row of a typed table.

    A comment in the query states by column what the table must hold, because a query compares values and reads no
    declared form of them (``written``, ``suffix``, ``censored``). A gap is NULL or a declared code. ``table`` is
    written as passed, so quote it where SQL needs it.

    Raises:
        HeadError: more than two classes, or rows too wide for a query with their length; export to ONNX.
    """
    if len(card.outcomes) > 1:
        raise HeadError("a query has one score, and this head has more than two classes: use heads.to_onnx")
    names = [column.name for column in card.columns]
    points = [_case(card, j, column.points[0]) for j, column in enumerate(card.columns)]
    score = f"{_number(card.base[0])} + {' + '.join(points)}"
    if card.lengths is not None:
        constant, inside = card.intercept[0], card.base[0] - card.intercept[0]
        factor = _factor(card, card.lengths)
        score = f"{_number(constant)} + {factor} * ({_number(inside)} + {' + '.join(points)})"
    for pair in card.pairs:  # groups of cells, numbered below 5; a gap adds nothing
        one, other = (
            _case(card, names.index(name), groups, integers=True)
            for name, groups in zip(pair.names, pair.groups, strict=True)
        )
        cells = " ".join(f"WHEN {5 * i + j} THEN {_number(value)}" for (i, j), value in np.ndenumerate(pair.points))
        score += f" + CASE 5 * {one} + {other} {cells} ELSE 0e0 END"
    return f"SELECT {_comment(card)} t.*, {score} AS log_odds FROM {table} AS t"  # noqa: S608  the caller's own words


def _comment(card: Scorecard) -> str:
    """Return a comment on what each column must hold for the query to read it as the head does."""
    held = "; ".join(f'"{_doubled(each.name)}" {_held(each)}' for each in card.cells.columns)
    text = f"{held}; NULL or a declared code where a value is missing"
    return f"/* columns must hold: {text.replace('*/', '* /').replace('/*', '/ *')} */"


def _held(column: Column) -> str:
    if isinstance(column, Numeric):
        suffix, censored = ", without suffix" * bool(column.suffix), ", just below or above a limit" * column.censored
        return f"numbers{suffix}{censored}"
    if isinstance(column, Dates):
        return f"dates, or times in {column.zone} without a zone, of such a type or ISO texts like 2020-01-31T09:30:00"
    if column.values:
        return "values as declared"
    return "1 or 0" if isinstance(column, Truth) else "any value"


def _factor(card: Scorecard, lengths: Lengths) -> str:
    """Return the typical length over the row's, from entries that a correlated subquery computes."""
    width = card.cells.width
    if width > _MAX_ENTRIES:
        raise HeadError(
            f"this head divides by the length of rows of {width} entries, and a query supports {_MAX_ENTRIES}: declare "
            "fewer columns or cells, or use heads.to_onnx"
        )
    entries = []
    for j, (block, steps) in enumerate(zip(card.cells.blocks, card.cells.tables, strict=True)):
        values = steps * 2.0**-card.cells.bits - lengths.shift[block]
        entries += [
            f"{_case(card, j, each)} AS x{place}" for place, each in zip(range(width)[block], values.T, strict=True)
        ]
    gram = lengths.gram
    terms = [
        f"r.x{i} * ({' + '.join(f'{_number(gram[i, j] * (1 if i == j else 2))} * r.x{j}' for j in range(i, width))})"
        for i in range(width)
    ]
    typical = _number(lengths.typical)
    squares = f"SELECT {' + '.join(terms)} AS s FROM (SELECT {', '.join(entries)}) AS r"  # noqa: S608
    return f"(SELECT CASE WHEN q.s > 0e0 THEN {typical} / SQRT(q.s) ELSE 0e0 END FROM ({squares}) AS q)"  # noqa: S608


def _case(card: Scorecard, j: int, values: Sequence[float] | np.ndarray, *, integers: bool = False) -> str:
    """Return an expression of a column's value by its cell, the gap's last in ``values``."""
    column, marks, name = card.cells.columns[j], card.cells.marks[j], f't."{_doubled(card.columns[j].name)}"'
    *shown, gap = [str(int(value)) if integers else _number(value) for value in values]
    if isinstance(column, Categories):  # the last place of unordered values is any other text
        tests = [f"= {_literal(value)}" for value in column.values]
        rest = gap if column.is_scale else shown[-1]
    elif isinstance(column, Truth):
        tests, rest = [f"= {_literal(value)}" for value in column.values or (0, 1)], gap
    else:
        cuts = [mark if isinstance(column, Numeric) else column.edge_text(mark) for mark in marks.tolist()]
        tests, rest, shown = [f">= {_literal(cut)}" for cut in cuts[::-1]], shown[0], shown[:0:-1]
    gaps = "".join(f" OR {name} = {_literal(code)}" for code in column.gaps)
    steps = " ".join(f"WHEN {name} {test} THEN {value}" for test, value in zip(tests, shown, strict=False))
    return f"CASE WHEN {name} IS NULL{gaps} THEN {gap} {steps} ELSE {rest} END"


def _literal(value: object) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def _doubled(name: str) -> str:
    return name.replace('"', '""')


def _number(value: float) -> str:
    """Return a number as a double, so that no engine reads a decimal of limited digits."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"
