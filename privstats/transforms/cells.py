"""Map a raw table to rows of norm at most 1, in integers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privstats.errors import RecordError, SchemaError
from privstats.intake.column_names import same_names
from privstats.intake.declared.categories import MISSING_CELL, OTHER_CELL, Categories
from privstats.intake.declared.columns import Column, Dates, Numeric, column_from_plan
from privstats.intake.declared.table import coded, sources_of
from privstats.intake.tables import Codes
from privstats.transforms.base import Transform
from privstats.transforms.exact import Rows, arrays_of

_RAMP = 16


@dataclass(frozen=True)
class Shape:
    """Settings of all blocks.

    Attributes:
        columns, bits: J, the number of blocks, and f; a row is at most 2**f steps long.
        signs, ramp: minimum sign entries of a numeric block, and whether it has a ramp.
    """

    columns: int
    signs: int
    ramp: bool
    bits: int


@dataclass(frozen=True, eq=False)
class Block:
    """One column's cells: edges, integer entries per cell (the gap last), entries' names, and a sign's size."""

    edges: NDArray[np.float64]
    table: NDArray[np.int64]
    names: tuple[str, ...]
    step: int


def block_of(column: Column, shape: Shape) -> Block:
    """Return a block; no cell is longer than 2**bits / sqrt(J)."""
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
    labels = [f"{name} >= {value}" for value in reached] if cuts > 1 else [f"{name}: {reached[0]}"]
    table = _with_gap(_signs(marks, marks, q), one)
    return Block(marks, table, (*labels, f"{name}: {_else(MISSING_CELL, reached)}"), q)


def _between(codes: int) -> NDArray[np.float64]:
    return np.arange(codes, dtype=np.float64) + 0.5


def step_of(bits: int, parts: int) -> int:
    """Return the largest integer q with parts q**2 <= 2**(2 bits)."""
    return math.isqrt((1 << 2 * bits) // parts)


def _numeric(column: Numeric | Dates, shape: Shape) -> Block:
    edges = column.edges or (0.0,) * shape.signs  # a column without edges has no table yet, but its step is known
    cuts, places = np.array(edges), max(shape.signs, len(edges))
    parts, marks = shape.columns * (1 + shape.ramp), cuts
    q = step_of(shape.bits, parts * len(edges))
    labels = [f"{column.name} >= {column.edge_text(edge)}" for edge in column.edges or ()]
    labels += [f"{column.name}: place {place + 1}" for place in range(len(labels), places)]
    if shape.ramp:
        steps = _even(edges)
        marks = np.unique(np.concatenate([cuts, steps]))
    signs = _signs(cuts, marks, q)
    entries = [signs, np.zeros((len(signs), places - len(edges)), np.int64)]
    if shape.ramp:
        reached = np.concatenate([[0], (marks[:, None] >= steps).sum(axis=1)])
        ramp = (2 * reached - _RAMP) * step_of(shape.bits, parts)
        entries.append((np.sign(ramp) * (np.abs(ramp) // _RAMP))[:, None])
        labels.append(f"{column.name}: ramp")
    table = _with_gap(np.hstack(entries), step_of(shape.bits, shape.columns))
    return Block(marks, table, (*labels, f"{column.name}: {MISSING_CELL}"), q)


def _signs(cuts: NDArray[np.float64], marks: NDArray[np.float64], q: int) -> NDArray[np.int64]:
    reached = np.vstack([np.zeros(len(cuts), np.bool_), marks[:, None] >= cuts])
    return np.where(reached, q, -q).astype(np.int64)


def _with_gap(table: NDArray[np.int64], one: int) -> NDArray[np.int64]:
    out = np.zeros((len(table) + 1, table.shape[1] + 1), np.int64)
    out[:-1, :-1], out[-1, -1] = table, one
    return out


def _even(edges: tuple[float, ...]) -> NDArray[np.float64]:
    first, last = Fraction(edges[0]), Fraction(edges[-1])
    return np.array([float(first + (last - first) * i / (_RAMP - 1)) for i in range(_RAMP)])


def _else(cell: str, values: tuple[str, ...]) -> str:
    return f"any {cell}" if cell in values else cell


def _named(name: str, cells: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}: {cell}" for cell in cells)


_MAX_COLUMNS, _MAX_ENTRIES, _MAX_VALUES, _MAX_SIGNS = 500, 4096, 256, 64
_MIN_STEP = 32  # below, rounding it down to an integer could shorten rows by more than 3 %
_BITS = (8, 20)


@dataclass(frozen=True)
class Cells(Transform):
    """Rows of norm at most 1 from a table's declared columns (texts, gaps, any numbers), without a clip norm or range.

    Column j of J has a block b_j of norm at most 1, and the row is (b_1, ..., b_J) / sqrt(J):

    - numeric or dates, K cuts: K signs ``+-1/sqrt(K)``, + where the value has reached the cut, and 0 for "missing". A
      gap has K zeros, and 1 for "missing". K = 1 for a truth and a category of two values, k - 1 for an ordered
      category of k; their other values are missing.
    - with ``ramp``, half of a numeric block's squared norm goes to (2i - 16)/16, if i of 16 even edges are reached.
    - a category of k values: one 1 among k, "other" and "missing".

    In integers, 2**bits for norm 1: a sign is floor(2**bits / sqrt(J K)), with a ramp floor(2**bits / sqrt(2 J K)). So
    a row's square is at most J 2**(2 bits) / J = 2**(2 bits), exactly, whatever the cells hold. Unreadable values count
    as missing. Every value has a cell that follows from that value and this declaration alone.

    Args:
        columns: public declarations of at most 500 columns: :class:`~privstats.Numeric`, :class:`~privstats.Dates`,
            :class:`~privstats.Truth`, :class:`~privstats.Categories`. Others are ignored.
        signs: 1 to 64 entries for an open column's cuts, and the minimum for other numeric columns. So the width is
            public before any cut is known.
        ramp: encode even steps in half of a numeric block.
        missing: ``"left out"``: a record with a gap in any of these columns is in no sum, and every data holder sees
            how many of its own are excluded. Estimates need that, because a cell for gaps biases the effects of all
            columns. None: a gap has a cell, which suits predictions.
        bits: f, between 8 and 20; a row's norm is at most 2**bits grid steps.

    Raises:
        SchemaError: over 256 values or cuts a column or 4,096 entries a row, a duplicate column, or a step below 32.

    Example:
        >>> cells = ps.Cells((ps.Numeric("age", (40, 65)), ps.Categories("sex", ("f", "m"))), signs=2)
        >>> cells.names
        ('age >= 40', 'age >= 65', 'age: ramp', 'age: missing', 'sex: m', 'sex: missing')
        >>> cells.grid_rows(cells.codes({"age": [50, None], "sex": ["f", "m"]})).tolist()
        [[1448, -1448, -256, 0, -2896, 0], [0, 0, 0, 2896, 2896, 0]]
    """

    kind: ClassVar[str] = "cells"
    reads_cells: ClassVar[bool] = True
    unit: ClassVar[bool] = True

    columns: tuple[Column, ...]
    signs: int = field(default=7, kw_only=True)
    ramp: bool = field(default=True, kw_only=True)
    bits: int = field(default=12, kw_only=True)
    missing: Literal["left out"] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.columns, tuple | list) or not self.columns:
            raise SchemaError("columns must be a tuple of declared columns, for example (Numeric('age'),)")
        object.__setattr__(self, "columns", tuple(_with_every_cell(column_from_plan(each)) for each in self.columns))
        _require_between("signs", self.signs, 1, _MAX_SIGNS)
        _require_between("bits", self.bits, *_BITS)
        if not isinstance(self.ramp, bool):
            raise SchemaError(f"ramp must be True or False, got {type(self.ramp).__name__}")
        if self.missing not in (None, "left out"):
            raise SchemaError(f"missing must be 'left out' or None, got {self.missing!r}; None gives gaps a cell")
        _check_columns(self.columns)
        if self.width > _MAX_ENTRIES:
            raise SchemaError(
                f"the columns make {self.width} entries and at most {_MAX_ENTRIES} are allowed; list the frequent "
                "values, the rest is 'other'"
            )
        for block, column in zip(self._blocks, self.columns, strict=True):
            if block.step < _MIN_STEP:
                raise SchemaError(
                    f"a step of {column.name} is {block.step} of 2**{self.bits} and at least {_MIN_STEP} are needed; "
                    "use more bits, or fewer columns"
                )

    @property
    def width(self) -> int:
        """Number of entries of a row, independent of any cut."""
        return int(self.blocks[-1].stop)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Each column's entries."""
        ends = accumulate((block.table.shape[1] for block in self._blocks), initial=0)
        return tuple(slice(start, stop) for start, stop in pairwise(ends))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the entries: ``"age >= 61.5"``, ``"sex: missing"``."""
        return tuple(name for block in self._blocks for name in block.names)

    @cached_property
    def marks(self) -> tuple[NDArray[np.float64], ...]:
        """Codes at which cells begin, per column (closed on the left)."""
        return tuple(block.edges for block in self._blocks)

    @property
    def open(self) -> tuple[str, ...]:
        """Columns without cuts."""
        return tuple(each.name for each in self.columns if isinstance(each, Numeric | Dates) and each.edges is None)

    def with_edges(self, edges: Mapping[str, Sequence[float]]) -> Cells:
        """Return the declaration with cuts for open columns; the width does not change."""
        for name, cuts in edges.items():
            if name not in self.open:
                raise SchemaError(f"{name!r} is no open column; open are {', '.join(self.open) or 'none'}")
            if len(cuts) > self.signs:
                raise SchemaError(f"{name} has {len(cuts)} cuts and places for {self.signs}")
        return replace(self, columns=tuple(_closed(each, edges.get(each.name)) for each in self.columns))

    def codes(self, table: Any) -> NDArray[np.float64]:
        """Return values' codes, float64 ``(n, J)``."""
        return self.read(table).codes

    def read(self, table: Any) -> Codes:
        """Return the codes of records, and the values in no cell of their own. No value of any kind raises.

        Column names are compared normalised (NFC), stripped and in any case.
        """
        return coded(self.columns, table)

    def sources(self, table: Any) -> tuple[Any, ...]:
        """Return the table's names of the columns."""
        return sources_of(self.columns, table)

    def indices(self, codes: Rows) -> NDArray[np.intp]:
        """Return the cell index of every code, ``(n, J)``; a gap has the last.

        Raises:
            RecordError: a gap, where ``missing`` excludes its record.
        """
        if self.missing and np.isnan(codes).any():
            raise RecordError(
                f"a record has a gap in {', '.join(each.name for each in self.columns)}: missing='left out' of these "
                "columns excludes it, so remove it"
            )
        out = np.empty(codes.shape, np.intp)
        for j, block in enumerate(self._blocks):
            out[:, j] = np.searchsorted(block.edges, codes[:, j], side="right")
            out[np.isnan(codes[:, j]), j] = len(block.table) - 1
        return out

    @cached_property
    def tables(self) -> tuple[NDArray[np.int64], ...]:
        """Public integer entries of each column's cells, ``(cells, entries)``."""
        return tuple(block.table for block in self._blocks)

    def grid_rows(self, codes: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return rows in grid steps, int64 ``(n, width)``, each of norm at most 2**bits."""
        self.require_closed()
        return self._filled(codes, self.tables)

    def _filled(self, codes: NDArray[np.float64], tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
        places, out = self.indices(codes), np.empty((len(codes), self.width), tables[0].dtype)
        for j, (block, table) in enumerate(zip(self.blocks, tables, strict=True)):
            out[:, block] = table.take(places[:, j], axis=0)
        return out

    def apply(self, rows: Rows) -> Rows:
        """Return rows of norm at most 1 from codes ``(n, J)``."""
        self.require_closed()
        if type(rows) is np.ndarray:
            return self._filled(rows, [table * 2.0**-self.bits for table in self.tables])
        parts = [self._part(block, rows[:, j : j + 1]) for j, block in enumerate(self._blocks)]
        xp, joined = arrays_of(rows), parts[0]
        for part in parts[1:]:
            joined = xp.hstack(joined, part)
        return joined

    def _part(self, block: Block, codes: Any) -> Any:
        """Return the first cell plus differences at reached edges, exact in integers; NaN for an excluded gap."""
        xp, entries = arrays_of(codes), block.table * 2.0**-self.bits
        present, reached = codes == codes, codes >= xp.like(block.edges[None], codes)
        zero, one = xp.like(np.zeros(1), codes), xp.like(np.ones(1), codes)
        reached = xp.where(reached, one, zero)
        steps = reached @ xp.like(np.diff(entries[:-1], axis=0), codes) + xp.like(entries[:1], codes)
        gap = entries[-1:] if self.missing is None else np.full_like(entries[-1:], np.nan)
        return xp.where(present, steps, xp.like(gap, codes))

    def outputs(self, inputs: int | None) -> int:
        """Return the width."""
        if inputs not in (None, len(self.columns)):
            raise SchemaError(
                f"{len(self.columns)} columns are declared but {inputs} come in; give each once, in order"
            )
        return self.width

    def takes(self, outputs: int) -> int:  # noqa: ARG002 - the signature of Transform
        """Return the number of declared columns."""
        return len(self.columns)

    def plain_table(self) -> dict[str, Any]:
        """Return the fields for a plan file."""
        table = {**super().plain_table(), "columns": [column.to_plan() for column in self.columns]}
        if self.missing is None:
            del table["missing"]  # digests of earlier plans stay
        return table

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        shape = Shape(len(self.columns), self.signs, self.ramp, self.bits)
        return tuple(block_of(column, shape) for column in self.columns)

    def require_closed(self) -> None:
        """Raise SchemaError while cuts are open."""
        if self.open:
            raise SchemaError(
                f"the cut points of {', '.join(self.open)} are open: run Binned, which estimates them "
                "(`privstats course init`), or state their edges"
            )


def _with_every_cell(column: Column) -> Column:
    if not isinstance(column, Categories):
        return column
    for switch in ("other", "missing"):
        if getattr(column, switch) is False:
            raise SchemaError(
                f"{switch} of {column.name} must not be False in Cells: every value has a cell there, for a refusal "
                "would reveal the record that causes it"
            )
    return replace(column, other=True, missing=True)


def _check_columns(columns: tuple[Column, ...]) -> None:
    if len(columns) > _MAX_COLUMNS:
        raise SchemaError(f"{len(columns)} columns are declared and at most {_MAX_COLUMNS} are allowed; declare fewer")
    if twice := same_names([column.name for column in columns]):
        raise SchemaError(f"columns has {twice[0]!r} and {twice[1]!r}, one name in any case; keep one")
    for column in columns:
        what = "values" if isinstance(column, Categories) else "edges"
        listed = getattr(column, what, None) or ()
        if len(listed) > _MAX_VALUES:
            raise SchemaError(
                f"{column.name} has {len(listed)} {what} and at most {_MAX_VALUES} are allowed; list the frequent ones"
            )


def _closed(column: Column, edges: Sequence[float] | None) -> Column:
    if edges is None or not isinstance(column, Numeric | Dates):
        return column
    return replace(column, edges=tuple(edges))


def _require_between(field_name: str, value: Any, minimum: int, maximum: int) -> None:
    if type(value) is not int or not minimum <= value <= maximum:
        raise SchemaError(f"{field_name} must be an integer from {minimum} to {maximum}, got {value!r}")
