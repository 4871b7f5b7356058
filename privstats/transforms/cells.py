"""A raw table to rows of norm 1 in integers: each declared column is encoded by the cell that a value falls into.

A row's norm does not depend on what the columns hold, so there is no clip norm or range to choose; the width follows
from the declaration alone, not from the cut points. ``columns`` defines the code of a value.

The cells of one column are integers in a block of a row that is no longer than its share of 2**bits; the blocks of all
columns lie side by side, and the norm of a row is proved from theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, SchemaError
from privstats.intake.column_names import places_in, same_names
from privstats.intake.columns import read
from privstats.intake.tables import Codes
from privstats.transforms.base import Transform
from privstats.transforms.categories import MISSING_CELL, OTHER_CELL, Categories
from privstats.transforms.columns import Column, Dates, Numeric, column_of, table_of
from privstats.transforms.exact import Rows, arrays_of

_RAMP = 16


@dataclass(frozen=True)
class Shape:
    """Settings that all blocks of a row share.

    Attributes:
        columns: J, the number of blocks in a row.
        signs: minimum number of places of a numeric column.
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
    labels = [f"{name} >= {value}" for value in reached] if cuts > 1 else [f"{name}: {reached[0]}"]
    table = _with_gap(_signs(marks, marks, q), one)
    return Block(marks, table, (*labels, f"{name}: {_else(MISSING_CELL, reached)}"), q)


def _between(codes: int) -> NDArray[np.float64]:
    """Marks between the codes 0, 1, ..., ``codes``."""
    return np.arange(codes, dtype=np.float64) + 0.5


def step_of(bits: int, parts: int) -> int:
    """Return the largest integer q with parts q**2 <= 2**(2 bits): ``parts`` entries of q have norm at most 2**bits."""
    return math.isqrt((1 << 2 * bits) // parts)


def _numeric(column: Numeric | Dates, shape: Shape) -> Block:
    """Signs at the cuts, empty places up to ``signs``, then the ramp, with half of the block's square."""
    edges = column.edges or (0.0,) * shape.signs  # of an open column nobody reads the table, but its step is known
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
    """Return the signs at the cuts of each cell between marks, ``(marks + 1, cuts)``."""
    reached = np.vstack([np.zeros(len(cuts), np.bool_), marks[:, None] >= cuts])
    return np.where(reached, q, -q).astype(np.int64)


def _with_gap(table: NDArray[np.int64], one: int) -> NDArray[np.int64]:
    """Return the table with an entry for a gap on the right, and the gap's cell as the last row."""
    out = np.zeros((len(table) + 1, table.shape[1] + 1), np.int64)
    out[:-1, :-1], out[-1, -1] = table, one
    return out


def _even(edges: tuple[float, ...]) -> NDArray[np.float64]:
    """16 even edges from the first to the last, each the float64 nearest to it."""
    first, last = Fraction(edges[0]), Fraction(edges[-1])
    return np.array([float(first + (last - first) * i / (_RAMP - 1)) for i in range(_RAMP)])


def _else(cell: str, values: tuple[str, ...]) -> str:
    """Return a name for the cell of other or missing values that differs from every value."""
    return f"any {cell}" if cell in values else cell


def _named(name: str, cells: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}: {cell}" for cell in cells)


_MOST_COLUMNS, _MOST_ENTRIES, _MOST_VALUES, _MOST_SIGNS = 500, 4096, 256, 64
_LEAST_STEP = 32  # below, cutting it to a whole number would shorten rows by more than 3 %
_BITS = (8, 20)


@dataclass(frozen=True)
class Cells(Transform):
    """Rows of norm 1 from the declared columns of a table: texts, gaps and numbers of any size.

    Column j of J has a block b_j of norm 1, and the row is (b_1, ..., b_J) / sqrt(J):

    - a numeric column or dates of K cut points: K signs ``+-1/sqrt(K)``, + where the value has reached the cut, and 0
      for "missing"; a gap is 0 there and 1 for "missing". K = 1 for a truth and a category of two values, and an
      ordered category of k values has the k - 1 signs between neighbours; another value is missing in these.
    - half of a numeric block's square is a ramp, (2i - 16)/16, i the number of 16 even edges from the first to the last
      cut that the value has reached: what is linear in a column costs one weight. ``ramp=False`` leaves it out.
    - a category of k values: one 1 among k, "other" and "missing".

    In integers, 2**bits for norm 1: a sign is floor(2**bits / sqrt(J K)), with a ramp floor(2**bits / sqrt(2 J K)).
    So the square of a row is at most J 2**(2 bits) / J = 2**(2 bits), exactly, whatever the cells hold. No float enters
    after the comparison with the cuts, and nothing needs a clip norm or a range.

    Every value has a cell, and it follows from that value and this declaration alone
    (:mod:`privstats.intake.meaning`). Values that a column cannot read count as missing.

    Args:
        columns: the columns that are read, as public words: :class:`~privstats.Numeric`, :class:`~privstats.Dates`,
            :class:`~privstats.Truth`, :class:`~privstats.Categories`. Others of a table are never read. At most 500.
        signs: places for the cuts of a numeric column, 1 to 64: the width is public before any cut is known. A column
            of more public edges has a place for each.
        ramp: half of a numeric block goes to its even steps (benchmarks/raw_tables/numbers.md has what they gain).
        bits: f, between 8 and 20; a row is 2**bits grid steps long.

    Raises:
        SchemaError: a bound is passed (256 values or cuts a column, 4,096 entries a row), a column is listed twice, or
            a step would be below 32: use more bits, or fewer columns.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.columns, tuple | list) or not self.columns:
            raise SchemaError("columns must be a tuple of declared columns, for example (Numeric('age'),)")
        object.__setattr__(self, "columns", tuple(_with_every_cell(column_of(each)) for each in self.columns))
        _require_between("signs", self.signs, 1, _MOST_SIGNS)
        _require_between("bits", self.bits, *_BITS)
        if not isinstance(self.ramp, bool):
            raise SchemaError(f"ramp must be True or False, got {type(self.ramp).__name__}")
        _check_columns(self.columns)
        if self.width > _MOST_ENTRIES:
            raise SchemaError(
                f"the columns make {self.width} entries and at most {_MOST_ENTRIES} are allowed; list the frequent "
                "values, the rest is 'other'"
            )
        for block, column in zip(self._blocks, self.columns, strict=True):
            if block.step < _LEAST_STEP:
                raise SchemaError(
                    f"a step of {column.name} is {block.step} of 2**{self.bits} and at least {_LEAST_STEP} are needed; "
                    "use more bits, or fewer columns"
                )

    @property
    def width(self) -> int:
        """Entries of a row: public, for it follows from the declaration without any cut."""
        return int(self.blocks[-1].stop)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """The entries of each column."""
        ends = accumulate((block.table.shape[1] for block in self._blocks), initial=0)
        return tuple(slice(start, stop) for start, stop in pairwise(ends))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the entries: ``"age >= 61.5"``, ``"sex: missing"``."""
        return tuple(name for block in self._blocks for name in block.names)

    @cached_property
    def marks(self) -> tuple[NDArray[np.float64], ...]:
        """Codes at which each column's cells begin, except the first cell; cells are closed on the left."""
        return tuple(block.edges for block in self._blocks)

    @property
    def open(self) -> tuple[str, ...]:
        """Names of the columns with cuts that are still to be estimated."""
        return tuple(each.name for each in self.columns if isinstance(each, Numeric | Dates) and each.edges is None)

    def with_edges(self, edges: Mapping[str, Sequence[float]]) -> Cells:
        """Return the declaration with cuts for open columns; the width does not change.

        Raises:
            SchemaError: a column that is not open, or more cuts than ``signs``.
        """
        for name, cuts in edges.items():
            if name not in self.open:
                raise SchemaError(f"{name!r} is no open column; open are {', '.join(self.open) or 'none'}")
            if len(cuts) > self.signs:
                raise SchemaError(f"{name} has {len(cuts)} cuts and places for {self.signs}")
        return replace(self, columns=tuple(_closed(each, edges.get(each.name)) for each in self.columns))

    def codes(self, table: Any) -> NDArray[np.float64]:
        """The code of every value, float64 ``(n, J)``; see :meth:`read`."""
        return self.read(table).codes

    def read(self, table: Any) -> Codes:
        """The codes of records, and how many values could not be read. No value of any kind raises.

        Args:
            table: a mapping from names to values, or a frame that gives a column by its name. Names are compared
                normalised (NFC), stripped and in any case; other columns are not read.

        Raises:
            DataError: a declared column is missing or there twice, or columns have different lengths.
        """
        coded = [
            column.codes(read(table[name])) for column, name in zip(self.columns, self.sources(table), strict=True)
        ]
        if len({len(codes) for codes, _ in coded}) > 1:
            raise DataError("the columns of the table have different lengths; give one value per record in each")
        unread = {column.name: count for column, (_, count) in zip(self.columns, coded, strict=True) if count}
        return Codes(np.column_stack([codes for codes, _ in coded]), unread)

    def sources(self, table: Any) -> tuple[Any, ...]:
        """The table's own names of the declared columns, in their order.

        Raises:
            DataError: one is missing, or there twice.
        """
        named = table if isinstance(table, Mapping) else getattr(table, "column_names", None) or table.columns
        names, wanted = list(named), [column.name for column in self.columns]
        places = places_in(wanted, names)
        if None in places:
            raise DataError(f"the table lacks the column {wanted[places.index(None)]!r}; give every column of the plan")
        return tuple(names[place] for place in places if place is not None)

    def indices(self, codes: Rows) -> NDArray[np.intp]:
        """The cell of every code in its column's table, ``(n, J)``; the last one is that of a gap."""
        out = np.empty(codes.shape, np.intp)
        for j, block in enumerate(self._blocks):
            out[:, j] = np.searchsorted(block.edges, codes[:, j], side="right")
            out[np.isnan(codes[:, j]), j] = len(block.table) - 1
        return out

    @cached_property
    def tables(self) -> tuple[NDArray[np.int64], ...]:
        """Integer entries of each column's cells, ``(cells, entries)``: public; the last cell is a gap."""
        return tuple(block.table for block in self._blocks)

    def grid_rows(self, codes: NDArray[np.float64]) -> NDArray[np.int64]:
        """Rows in grid steps, int64 ``(n, width)``, each of norm at most 2**bits.

        Raises:
            SchemaError: cuts of a column are still open.
        """
        self.require_closed()
        return self._filled(codes, self.tables)

    def _filled(self, codes: NDArray[np.float64], tables: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the table row of every code, column after column."""
        places, out = self.indices(codes), np.empty((len(codes), self.width), tables[0].dtype)
        for j, (block, table) in enumerate(zip(self.blocks, tables, strict=True)):
            out[:, block] = table.take(places[:, j], axis=0)
        return out

    def apply(self, rows: Rows) -> Rows:
        """Rows of norm 1 at most from codes ``(n, J)``: numpy array, tensor, or a graph that is recorded.

        Raises:
            SchemaError: cuts of a column are still open.
        """
        self.require_closed()
        if type(rows) is np.ndarray:
            return self._filled(rows, [table * 2.0**-self.bits for table in self.tables])
        parts = [self._part(block, rows[:, j : j + 1]) for j, block in enumerate(self._blocks)]
        xp, joined = arrays_of(rows), parts[0]
        for part in parts[1:]:
            joined = xp.hstack(joined, part)
        return joined

    def _part(self, block: Block, codes: Any) -> Any:
        """Return a block: its first cell plus the difference at each reached edge, exact because all are integers."""
        xp, entries = arrays_of(codes), block.table * 2.0**-self.bits
        given, reached = codes == codes, codes >= xp.like(block.edges[None], codes)
        zero, one = xp.like(np.zeros(1), codes), xp.like(np.ones(1), codes)
        reached = xp.where(reached, one, zero)
        steps = reached @ xp.like(np.diff(entries[:-1], axis=0), codes) + xp.like(entries[:1], codes)
        return xp.where(given, steps, xp.like(entries[-1:], codes))

    def outputs(self, inputs: int | None) -> int:
        """The width, of one code per declared column."""
        if inputs not in (None, len(self.columns)):
            raise SchemaError(
                f"{len(self.columns)} columns are declared but {inputs} come in; give each once, in order"
            )
        return self.width

    def takes(self, outputs: int) -> int:  # noqa: ARG002 - the signature of Transform
        """One code per declared column."""
        return len(self.columns)

    def plain_table(self) -> dict[str, Any]:
        """The fields as a plan file holds them: columns as tables with their kind."""
        return {**super().plain_table(), "columns": [table_of(column) for column in self.columns]}

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        shape = Shape(len(self.columns), self.signs, self.ramp, self.bits)
        return tuple(block_of(column, shape) for column in self.columns)

    def require_closed(self) -> None:
        """Refuse a declaration with open cuts, before any record is mapped.

        Raises:
            SchemaError: cuts of a column are still open.
        """
        if self.open:
            raise SchemaError(
                f"the cut points of {', '.join(self.open)} are open: run Binned, which estimates them "
                "(`privstats course init`), or state their edges"
            )


def _with_every_cell(column: Column) -> Column:
    """Categories with a cell for any other value and for a gap: here every value has one."""
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
    if len(columns) > _MOST_COLUMNS:
        raise SchemaError(f"{len(columns)} columns are declared and at most {_MOST_COLUMNS} are allowed; declare fewer")
    if twice := same_names([column.name for column in columns]):
        raise SchemaError(f"columns has {twice[0]!r} and {twice[1]!r}, one name in any case; keep one")
    for column in columns:
        what = "values" if isinstance(column, Categories) else "edges"
        listed = getattr(column, what, None) or ()
        if len(listed) > _MOST_VALUES:
            raise SchemaError(
                f"{column.name} has {len(listed)} {what} and at most {_MOST_VALUES} are allowed; list the frequent ones"
            )


def _closed(column: Column, edges: Sequence[float] | None) -> Column:
    if edges is None or not isinstance(column, Numeric | Dates):
        return column
    return replace(column, edges=tuple(edges))


def _require_between(field_name: str, value: Any, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise SchemaError(f"{field_name} must be a whole number from {least} to {most}, got {value!r}")
