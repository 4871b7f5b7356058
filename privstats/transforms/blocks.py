"""The cells of one column: whole entries of each, in a block of a row that is no longer than its share of 2**bits.

``cells`` puts the blocks of all columns side by side, and proves the norm of a row from theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privstats.transforms.columns import MISSING_CELL, OTHER_CELL, Categories, Column, Dates, Numeric

__all__ = ["Block", "Shape", "block_of", "step_of"]

_RAMP = 16


@dataclass(frozen=True)
class Shape:
    """What all blocks of a row share.

    Attributes:
        columns: J, how many blocks make a row.
        signs: places of a numeric column, at least.
        ramp: half of a numeric block goes to its even steps.
        bits: f; a row is at most 2**f steps long.
    """

    columns: int
    signs: int
    ramp: bool
    bits: int


@dataclass(frozen=True, eq=False)
class Block:
    """One column's cells: the code's edges between them, the whole entries of each, the last of a gap; their names."""

    edges: NDArray[np.float64]
    table: NDArray[np.int64]
    names: tuple[str, ...]
    step: int


def block_of(column: Column, shape: Shape) -> Block:
    """The block of one declared column; none of its cells is longer than 2**bits / sqrt(J)."""
    if isinstance(column, Numeric | Dates):
        return _numeric(column, shape)
    name, one = column.name, step_of(shape.bits, shape.columns)
    if isinstance(column, Categories) and not column.is_scale:
        values = tuple(map(str, column.values))
        rest = (_else(OTHER_CELL, values), _else(MISSING_CELL, values)) if values else ("given", MISSING_CELL)
        return Block(
            _between(len(values)), np.eye(len(values) + 2, dtype=np.int64) * one, _named(name, (*values, *rest)), one
        )
    reached = tuple(map(str, column.values[1:])) if isinstance(column, Categories) else ("true",)
    cuts = len(reached)
    marks, q = _between(cuts), step_of(shape.bits, shape.columns * cuts)
    said = [f"{name} >= {value}" for value in reached] if cuts > 1 else [f"{name}: {reached[0]}"]
    table = _with_gap(_signs(marks, marks, q), one)
    return Block(marks, table, (*said, f"{name}: {_else(MISSING_CELL, reached)}"), q)


def _between(codes: int) -> NDArray[np.float64]:
    """Marks between the codes 0, 1, ..., ``codes``."""
    return np.arange(codes, dtype=np.float64) + 0.5


def step_of(bits: int, parts: int) -> int:
    """The largest whole q with parts q**2 <= 2**(2 bits): so many equal entries make a norm of at most 2**bits."""
    return math.isqrt((1 << 2 * bits) // parts)


def _numeric(column: Numeric | Dates, shape: Shape) -> Block:
    """Signs at the cuts, empty places up to ``signs``, then the ramp, with half of the block's square."""
    edges = column.edges or (0.0,) * shape.signs  # of an open column nobody reads the table, but its step is known
    cuts, places = np.array(edges), max(shape.signs, len(edges))
    parts, marks = shape.columns * (1 + shape.ramp), cuts
    q = step_of(shape.bits, parts * len(edges))
    said = [f"{column.name} >= {column.said(edge)}" for edge in column.edges or ()]
    said += [f"{column.name}: place {place + 1}" for place in range(len(said), places)]
    if shape.ramp:
        steps = _even(edges)
        marks = np.unique(np.concatenate([cuts, steps]))
    signs = _signs(cuts, marks, q)
    entries = [signs, np.zeros((len(signs), places - len(edges)), np.int64)]
    if shape.ramp:
        reached = np.concatenate([[0], (marks[:, None] >= steps).sum(axis=1)])
        whole = (2 * reached - _RAMP) * step_of(shape.bits, parts)
        entries.append((np.sign(whole) * (np.abs(whole) // _RAMP))[:, None])
        said.append(f"{column.name}: ramp")
    table = _with_gap(np.hstack(entries), step_of(shape.bits, shape.columns))
    return Block(marks, table, (*said, f"{column.name}: {MISSING_CELL}"), q)


def _signs(cuts: NDArray[np.float64], marks: NDArray[np.float64], q: int) -> NDArray[np.int64]:
    """Of each cell between marks the signs at the cuts, ``(marks + 1, cuts)``."""
    reached = np.vstack([np.zeros(len(cuts), np.bool_), marks[:, None] >= cuts])
    return np.where(reached, q, -q).astype(np.int64)


def _with_gap(table: NDArray[np.int64], one: int) -> NDArray[np.int64]:
    """The same with an entry for a gap on the right, and its cell as the last row."""
    out = np.zeros((len(table) + 1, table.shape[1] + 1), np.int64)
    out[:-1, :-1], out[-1, -1] = table, one
    return out


def _even(edges: tuple[float, ...]) -> NDArray[np.float64]:
    """16 even edges from the first to the last, each the float64 nearest to it."""
    first, last = Fraction(edges[0]), Fraction(edges[-1])
    return np.array([float(first + (last - first) * i / (_RAMP - 1)) for i in range(_RAMP)])


def _else(cell: str, values: tuple[str, ...]) -> str:
    """The name of a cell for what no value says, where a value is not called so."""
    return f"any {cell}" if cell in values else cell


def _named(name: str, cells: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}: {cell}" for cell in cells)
