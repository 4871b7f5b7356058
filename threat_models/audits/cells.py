"""A search over records of declared columns: what one of them moves, odd ones among ordinary ones, in typed containers.

The climb over vectors (``sensitivity``) knows no table, so it cannot see a reading by which one text or gap moves the
cells of others. Here whole tables are measured, with a record and without it; no formula of a bound is shared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.dp.privacy import Adjacency
from privstats.randomness import Generator
from privstats.schema import Schema
from privstats.transforms import Categories, Cells, Column, Dates, Numeric
from threat_models.audits.kinds import Outcome, outcome_of
from threat_models.made_up import sums_of

_OTHERS = 40
_ODD: tuple[object, ...] = (None, math.nan, "", "x", "1", "007", 0.5, True, 2**53 + 1, 1e300, math.inf, "9999-12-31")

Table = dict[str, list[object]]
Sums = Mapping[str, NDArray[np.float64]]


def worst_of_tables(schema: Schema, sigmas: Mapping[str, float], rng: Generator) -> dict[Adjacency, float]:
    """The largest mu that a record of the search moves, or a pair of them; empty where no closed table comes in.

    Args:
        schema: of plain sums over records.
        sigmas: noise by statistic, in real units.
        rng: draws the records.
    """
    cells = schema.reading.declaration
    if cells is None or cells.open:
        return {}
    chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    outcome = outcome_of(schema)
    others, beside = _table(cells, chance, _OTHERS), outcome.drawn(_OTHERS + 1, chance)
    before = _sums(schema, others, beside[:-1])
    moved = []
    for record in _records(cells, chance):
        more = {name: [*column, record[name]] for name, column in others.items()}
        for label in _labels(outcome, beside):
            after = _sums(schema, more, np.concatenate([beside[:-1], label]))
            moved.append({name: after[name] - before[name] for name in sigmas})
    return {
        "add-remove": max(_mu(each, sigmas) for each in moved),
        "replace-one": max(
            _mu({name: one[name] - other[name] for name in sigmas}, sigmas) for one in moved for other in moved
        ),
    }


def _records(cells: Cells, chance: np.random.Generator) -> Iterator[dict[str, object]]:
    """Records with one odd value, with that value in every column, ordinary ones, and the two that are furthest apart.

    Under replace-one the bound is that of opposite rows. Blocks of signs are opposite between the lowest and the
    highest value, while two cells of a category are orthogonal: of J columns, m of them such categories, no pair is
    further apart than at a cosine of -(J - m) / J, so the search ends below the bound where m is not 0.
    """
    usual = _table(cells, chance, 1)
    plain = {name: column[0] for name, column in usual.items()}
    ordinary = _table(cells, chance, 8)
    alone = ({**plain, column.name: odd} for column in cells.columns for odd in _ODD)
    everywhere = (dict.fromkeys(plain, odd) for odd in _ODD)
    ends = ({column.name: _end(column, top=top) for column in cells.columns} for top in (False, True))
    return chain(alone, everywhere, ends, ({name: column[k] for name, column in ordinary.items()} for k in range(8)))


def _labels(outcome: Outcome, beside: NDArray[Any]) -> list[NDArray[Any]]:
    """The first label, and the one that was drawn; or numbers far out; and what is none, which leaves a record out."""
    if outcome.classes:
        return [outcome.alike(1), beside[-1:], np.array([None])]
    return [outcome.alike(1, number) for number in (-1e9, 1e9, math.nan)]


def _table(cells: Cells, chance: np.random.Generator, records: int) -> Table:
    """Ordinary values of every column."""
    return {column.name: [_value(column, chance) for _ in range(records)] for column in cells.columns}


def _end(column: Column, *, top: bool) -> object:
    """Return a column's lowest or highest value."""
    match column:
        case Numeric() | Dates():
            edges = column.edges or (0.0,)
            far = edges[-1] + 1 if top else edges[0] - 1
            return far if isinstance(column, Numeric) else column.edge_text(far)
        case Categories():
            return column.values[-1 if top else 0] if column.values else "given" if top else None
    return top


def _value(column: Column, chance: np.random.Generator) -> object:
    match column:
        case Numeric():
            edges = column.edges or (0.0,)
            return float(chance.integers(math.floor(edges[0]) - 2, math.ceil(edges[-1]) + 3))
        case Dates():
            edges = column.edges or (0.0,)
            return column.edge_text(float(chance.integers(int(edges[0]) - 2, int(edges[-1]) + 3)))
        case Categories() if column.values:
            return column.values[int(chance.integers(len(column.values)))]
        case Categories():
            return "given"
    return bool(chance.integers(2))


def _sums(schema: Schema, table: Table, beside: NDArray[Any]) -> Sums:
    """Sum columns with the type that numpy gives all of their values."""
    typed = {name: np.array(column) for name, column in table.items()}
    real: Any = sums_of(schema, typed, beside, unreadable="leave out").real()
    return {name: np.asarray(getattr(real, name), np.float64) for name in schema.statistics}


def _mu(moved: Sums, sigmas: Mapping[str, float]) -> float:
    return math.sqrt(sum(float(np.sum(moved[name] ** 2)) / sigma**2 for name, sigma in sigmas.items()))
