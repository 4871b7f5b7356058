"""Design a regression on declared columns from contrasts of cells.

In orthonormal directions V of cell differences and the constant, V'GV carries noise of G's law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.inversion import NormalEquations
from privstats.intake.declared.categories import Categories
from privstats.intake.declared.columns import Column, Dates, Numeric, Truth
from privstats.schema import Schema
from privstats.transforms import Cells, ConstantFeature

_SURE = 3.0
"""Standard deviations of its noise that a cell's count must exceed to hold records."""
_FLAT = 1e-9  # singular values below this part of the largest are rounding
_ROOM = 2.0**-6  # share of the clip that rounding may cost a row


class ColumnCells(NamedTuple):
    """One column's cells in a table of contrasts.

    Attributes:
        cells: names, missing values last.
        places: parameter per cell; -1 for the reference.
        empty: whether noise explains the count.
    """

    name: str
    cells: tuple[str, ...]
    reference: int
    places: tuple[int, ...]
    empty: NDArray[np.bool_]

    @property
    def others(self) -> list[int]:
        """Cells with a parameter."""
        return [cell for cell, place in enumerate(self.places) if place >= 0]


@dataclass(frozen=True, eq=False)
class CellDesign:
    """Parameters of declared columns: the reference record's level, and each cell's contrast.

    Attributes:
        rows: map from weights to parameters, level first, ``(m, d)``.
        basis: orthonormal row differences, ``(d, p)``.
        lost: unread directions of empty cells, ``(p,)``.
        cells: number of declared contrasts.
        complete: declared columns, a gap in any of which excludes its record; empty where gaps have cells.
        hidden: size of G's noise in an empty cell's count, 3 standard deviations; the largest over these cells.
    """

    rows: Array
    basis: Array
    lost: NDArray[np.bool_]
    columns: tuple[ColumnCells, ...]
    cells: int
    complete: tuple[str, ...] = ()
    hidden: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Parameter names, the level first."""
        return ("const", *(f"{each.name}: {each.cells[cell]}" for each in self.columns for cell in each.others))

    @cached_property
    def contrasts(self) -> Array:
        """Map from basis weights to parameters, ``(m, p)``."""
        moved: Array = self.rows @ self.basis
        moved[0, self.lost] = 0.0
        return moved

    @property
    def read(self) -> NDArray[np.bool_]:
        """Parameters of cells that hold records, ``(m,)``."""
        empty = [column.places[cell] for column in self.columns for cell in np.flatnonzero(column.empty)]
        return ~np.isin(np.arange(len(self.names)), empty)

    @property
    def gap_columns(self) -> list[str]:
        """Columns whose gaps bias other columns' contrasts: none where one column is read."""
        return [each.name for each in self.columns if not each.empty[-1]] if len(self.columns) > 1 else []

    @property
    def estimated(self) -> int:
        """Number of estimated parameters."""
        return int((~self.lost).sum())

    def _empty(self, column: ColumnCells) -> list[str]:
        stated = column.cells[:-1] if self.complete else column.cells
        return [cell for cell, is_empty in zip(stated, column.empty, strict=False) if is_empty]

    def gram(self, G: Array) -> Array:
        """Return ``V'GV``, 0 in lost directions; also of each part's G, ``(F, d, d)``."""
        projected = self.basis.T @ G @ self.basis
        projected[..., self.lost, :] = 0.0
        projected[..., :, self.lost] = 0.0
        return np.asarray((projected + np.swapaxes(projected, -1, -2)) / 2)

    def vector(self, h: Array) -> Array:
        """Return ``V'h``, 0 in lost directions; of one target, several, or each part's, ``(F, d, targets)``."""
        projected = np.asarray(self.basis.T @ h)
        by_target = projected if projected.ndim > 1 else projected[:, None]
        by_target[..., self.lost, :] = 0.0
        return projected

    def notes(self, equations: NormalEquations, *, weighted: bool = False) -> list[str]:
        """Return warnings about empty or collinear cells, or hidden G.

        Args:
            weighted: whether G weighs records, so that noise in it hides no number of records that is known.
        """
        notes, empty = list[str](), [f"{each.name}: {cell}" for each in self.columns for cell in self._empty(each)]
        if empty:
            few, assumed = "no records", ""
            if equations.sigma_G:
                number = "" if weighted else f" (about {self.hidden:,.0f})"
                few = f"no more records than noise could show{number}"
                assumed = "; all other rows assume that no record is there"
            notes.append(f"{few} in {', '.join(empty)}: not reported, and excluded from the fit{assumed}")
        if len(equations.lost.T) > self.lost.sum():
            notes.append("cells of different columns are collinear: their contrasts cannot be distinguished")
        elif equations.determined[0] < equations.sigma_G * math.sqrt(2 * self.estimated):
            notes.append(
                "noise hides the Gram matrix: declare fewer cells, read fewer columns, or release more records"
            )
        return notes


def gap_note(columns: Sequence[str], gaps_as_cells: bool) -> list[str]:
    """Return a warning on gaps that count as a cell, or none."""
    if not columns:
        return []
    names = ", ".join(columns)
    method = (
        f"gaps in {names} count as a cell of their own (the missing-indicator method), which biases contrasts of all "
        "columns"
    )
    if gaps_as_cells:
        return [f"{method}: intervals are for this regression with its gap cells, and do not cover effects"]
    return [
        f"{method}, so none is reported: plan Cells(..., missing='left out'), or measure only records without gaps in "
        f"{names}; or pass gaps_as_cells=True to report the regression with its gap cells"
    ]


def declared_cells(schema: Schema) -> Cells | None:
    """Return a schema's column declaration, or None; refuse other maps and rows that the clip shortens."""
    match schema.transform:
        case (Cells() as cells, ConstantFeature() as last):
            if math.hypot(1.0, last.value) > schema.clip_norm * (1 + _ROOM):
                raise ReleaseError(
                    f"clip_norm {schema.clip_norm:g} clips every row of Cells and ConstantFeature({last.value:g}); "
                    f"set clip_norm={math.hypot(1.0, last.value):.4g} or more"
                )
            return cells
        case (Cells(), *_):
            raise ReleaseError("a regression on Cells needs ConstantFeature after it, and no other map")
    return None


def design_of(cells: Cells, schema: Schema, G: Array, sigma: float, chosen: Sequence[int]) -> CellDesign:
    """Return the design of the ``chosen`` columns, from sums G of products of rows, the constant last.

    **Each cell is compared with its column's first cell that holds records.** A cell with a count within 3 standard
    deviations of its noise counts as empty: its contrasts are not reported, and its noise stays out of all others.
    The noise is ``sigma`` on G's diagonal, sigma / sqrt 2 elsewhere.
    """
    width, blocks = schema.features, [_read(cells, j, schema) for j in range(len(cells.columns))]
    constant = _constant(schema)
    level, spans, gone = _placed(np.array([constant]), slice(width - 1, width), width), list[Array](), list[Array]()
    rows, columns, hidden = [level], list[ColumnCells](), 0.0
    for j in chosen:
        place, block = cells.blocks[j], blocks[j]
        noise = _SURE * block.noise(sigma / constant, constant)
        holds = block.holds(G[place, -1] / constant, G[-1, -1] / constant**2, noise)
        holds[-1] &= not cells.missing
        hidden = max(hidden, float(noise[~holds].max(initial=0.0)))
        column = block.column(holds, len(rows))
        level[place] = block.means[column.reference]
        moved = np.delete(block.means, column.reference, axis=0) - block.means[column.reference]
        rows += [_placed(each, place, width) for each in moved]
        for rows_of, directions in zip((spans, gone), block.directions(holds), strict=True):
            rows_of += [_placed(each, place, width) for each in directions]
        columns.append(column)
    lost = np.array([False] * len(spans) + [True] * len(gone) + [False])
    every = sum(len(block.names) - 1 for block in blocks)
    basis = np.column_stack([*spans, *gone, np.eye(width)[-1]])
    complete = tuple(each.name for each in cells.columns) if cells.missing else ()
    return CellDesign(np.stack(rows), basis, lost, tuple(columns), every, complete, hidden)


@dataclass(frozen=True, eq=False)
class _Block:
    """A column's cells.

    ``entries`` are those of each code, ``means`` each interval's, ``plain`` entries are constant over an interval.
    """

    name: str
    names: tuple[str, ...]
    entries: Array
    of_codes: NDArray[np.intp]
    means: Array
    plain: NDArray[np.bool_]

    @cached_property
    def _counts(self) -> Array:
        """Map from sums of the block's entries, and of records, to the cells' counts."""
        return np.asarray(np.linalg.pinv(np.vstack([self.means[:, self.plain].T, np.ones(len(self.names))])))

    def noise(self, sigma: float, constant: float) -> Array:
        """Return the standard deviation of each cell's count, ``(cells,)``."""
        entries = np.linalg.norm(self._counts[:, :-1], axis=1) / math.sqrt(2)
        return np.asarray(sigma * np.hypot(entries, self._counts[:, -1] / constant))

    def holds(self, sums: Array, total: float, fewest: Array) -> NDArray[np.bool_]:
        """Return which cells hold more than the fewest records that noise shows."""
        filled = np.asarray(self._counts @ np.append(sums[self.plain], total) > np.maximum(fewest, 0.5))
        return filled if filled.any() else np.arange(len(filled)) == 0

    def column(self, holds: NDArray[np.bool_], first: int) -> ColumnCells:
        reference = int(holds.argmax())
        places = first + np.arange(len(holds)) - (np.arange(len(holds)) > reference)
        places[reference] = -1
        return ColumnCells(self.name, self.names, reference, tuple(places.tolist()), ~holds)

    def directions(self, holds: NDArray[np.bool_]) -> tuple[Array, Array]:
        filled = holds[self.of_codes]
        differences = self.entries - self.entries[int(filled.argmax())]
        spanned = _span(differences[filled], float(np.abs(differences).max()))
        return spanned, _span(differences - differences @ spanned.T @ spanned, float(np.abs(differences).max()))


def _read(cells: Cells, j: int, schema: Schema) -> _Block:
    intervals = Intervals.of(cells.columns[j], cells.marks[j])
    entries, of_codes = _on_grid(np.ldexp(cells.tables[j], -cells.bits), schema), intervals.of_codes
    means = np.stack([entries[of_codes == place].mean(axis=0) for place in range(len(intervals.names))])
    plain = np.ones(entries.shape[1], np.bool_)
    if has_ramp(cells.columns[j], cells):
        plain[-2] = False
    return _Block(cells.columns[j].name, intervals.names, entries, of_codes, means, plain)


def _constant(schema: Schema) -> float:
    last = schema.transform[-1]
    assert isinstance(last, ConstantFeature)  # noqa: S101  declared_cells has refused others
    return schema.on_grid(last.value)


def _on_grid(entries: Array, schema: Schema) -> Array:
    return np.rint(entries * schema.scale) / schema.scale


def _placed(entries: Array, block: slice, width: int) -> Array:
    row = np.zeros(width)
    row[block] = entries
    return row


def _span(rows: Array, size: float) -> Array:
    _, values, directions = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(directions[values > _FLAT * size])


@dataclass(frozen=True, eq=False)
class Intervals:
    """One column's cells as people read them, missing values last; ``of_codes`` has the cell of each code."""

    names: tuple[str, ...]
    of_codes: NDArray[np.intp]

    @classmethod
    def of(cls, column: Column, marks: Array) -> Intervals:
        """Return intervals that begin at these codes."""
        cuts = np.array(column.edges) if isinstance(column, Numeric | Dates) and column.edges else marks
        places = np.searchsorted(cuts, marks, side="right")
        return cls(_names(column, cuts), np.concatenate([[0], places, [len(cuts) + 1]]))


def has_ramp(column: Column, cells: Cells) -> bool:
    """Return whether a ramp distinguishes values inside an interval."""
    return cells.ramp and isinstance(column, Numeric | Dates)


def _names(column: Column, cuts: Array) -> tuple[str, ...]:
    match column:
        case Numeric() | Dates():
            cut_names = [column.edge_text(float(cut)) for cut in cuts] if isinstance(column, Dates) else _distinct(cuts)
            inner = [f"{low} to < {high}" for low, high in pairwise(cut_names)]
            return (f"< {cut_names[0]}", *inner, f">= {cut_names[-1]}", "missing")
        case Truth():
            return ("false", "true", "missing")
        case Categories(values=()):
            return ("given", "missing")
        case Categories():
            return (*map(str, column.values), *(() if column.is_scale else ("other",)), "missing")


def _distinct(cuts: Array) -> list[str]:
    gaps = np.diff(cuts, prepend=-np.inf, append=np.inf)
    near = np.minimum(gaps[:-1], gaps[1:]) / 10
    return [_rounded(float(cut), float(room)) for cut, room in zip(cuts, near, strict=True)]


def _rounded(cut: float, room: float) -> str:
    words = (f"{cut:.{digits}g}" for digits in range(4, 18))
    return next(text for text in words if abs(float(text) - cut) <= room)
