"""Sum rows of cells by counting how often pairs of cells occur together.

With one-hot rows H, and all columns' public cell entries in one block-diagonal matrix P, the sums of
:class:`~privstats.Cells` are B = P' (H'H) P. H'H holds integer counts, so B equals the dense sum bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privstats.errors import SchemaError
from privstats.moments.adders import POWERS, ClassAdder
from privstats.moments.base import Moments, Summed, require_room
from privstats.moments.clip_report import NORM_BINS, ClipTally, norm_histogram
from privstats.moments.grid import require_known

if TYPE_CHECKING:
    from privstats.schema import Schema
    from privstats.transforms import Cells

_MAX_PAIRS = 1 << 25  # counts in memory at once


def sums_by_cells(schema: Summed) -> bool:
    """Return whether the schema's records are summed by counting cells.

    No clip follows, so the longest row of the public cells must be within the clip norm. A declaration of another
    package has its own entries, and its rows may be longer: these are formed and clipped as any others.
    """
    cells = schema.reading.declaration
    if cells is None or len(schema.transform) > 1 or not schema.adder().counts_cells:
        return False
    blocks = schema.sizes["class"] if "S" in schema.statistics else 1
    pairs = sum(len(table) for table in cells.tables) ** 2 * blocks
    longest = sum(np.square(table, dtype=np.float64).sum(axis=1).max() for table in cells.tables)
    fits = schema.grid_bits >= cells.bits and longest <= 1 << 2 * cells.bits
    return schema.clip_norm == 1.0 and fits and pairs <= _MAX_PAIRS


class CellAccumulator:
    """Sums over the codes seen so far."""

    def __init__(self, schema: Summed) -> None:
        require_known([row.letter for row in schema.sent], ClassAdder.letters)
        self._schema = schema
        cells = self._cells = _cells(schema)
        self._tables = [table << (schema.grid_bits - cells.bits) for table in cells.tables]
        self._squares = [(table**2).sum(axis=1) for table in self._tables]
        self._counts = np.zeros(schema.sizes["class"], np.int64)
        self._each = [np.zeros((schema.sizes["class"], len(table)), np.int64) for table in self._tables]
        self._blocks = schema.sizes["class"] if "S" in schema.statistics else int("B" in schema.statistics)
        sizes = [len(table) for table in self._tables] if self._blocks else []
        self._together: dict[tuple[int, int], NDArray[np.int64]] = {
            (i, j): np.zeros((self._blocks * sizes[i], sizes[j]), np.int64)
            for i, j in combinations(range(len(sizes)), 2)
        }
        self._records, self._tally = 0, ClipTally(schema.features, schema.grid_steps)

    @staticmethod
    def norm_bin(schema: Schema, square: int) -> int:
        """Return the bin of ``ClipReport.norm_counts`` for a record's squared norm in squared grid steps."""
        return int(norm_histogram(np.sqrt(np.array([square])), schema.grid_steps).argmax())

    def add(self, codes: NDArray[np.float64], labels: NDArray[np.intp]) -> None:
        """Add codes and their labels."""
        require_room(self._records + len(codes), self._schema.bound)
        labels = labels.astype(np.intp)
        places = np.ascontiguousarray(self._cells.indices(codes).T)
        self._records += len(codes)
        self._counts += np.bincount(labels, minlength=self._schema.sizes["class"])
        for counts, place in zip(self._each, places, strict=True):
            counts += _counted(labels, place, counts.shape)
        block = labels if self._blocks > 1 else np.zeros(1, np.intp)
        firsts = [block * table.shape[0] + place for table, place in zip(self._tables, places, strict=True)]
        for (i, j), counts in self._together.items():
            counts += _counted(firsts[i], places[j], counts.shape)
        squares = sum(square[place] for square, place in zip(self._squares, places, strict=True))
        self._tally.add(np.sqrt(squares), clipped=0, energy=int(np.sum(squares)))

    def add_counts(
        self,
        labels: NDArray[np.int64],
        columns: Sequence[NDArray[np.int64]],
        together: Callable[[int, int], NDArray[np.int64]],
        norms: Mapping[int, int],
    ) -> None:
        """Add records that were counted elsewhere.

        Args:
            labels: number of records by class, ``(classes,)``.
            columns: by column, by class and cell, ``(classes, cells)``.
            together: the numbers for two columns, by the cells of both, ``(cells, cells)``; with S by class first.
                Called only where B or S is summed.
            norms: number of records by :meth:`norm_bin`.
        """
        records = int(labels.sum())
        require_room(self._records + records, self._schema.bound)
        self._records += records
        self._counts += labels
        for total, counts in zip(self._each, columns, strict=True):
            total += counts
        for (i, j), total in self._together.items():
            total += together(i, j).reshape(total.shape)
        cells = zip(self._squares, columns, strict=True)
        binned = np.zeros(NORM_BINS, np.int64)
        binned[list(norms)] = list(norms.values())
        self._tally.add_counted(binned, sum(int(counts.sum(axis=0) @ squares) for squares, counts in cells))

    def moments(self) -> Moments:
        """Return the exact moments."""
        sent = {row.letter for row in self._schema.sent}
        totals = {
            letter: np.hstack([each @ table**power for each, table in zip(self._each, self._tables, strict=True)])
            for letter, power in POWERS.items()
            if letter in sent
        }
        if self._blocks:
            second = self._second()
            totals |= {"S": second} if "S" in sent else {"B": second[0]}
        return self._schema.exact({"N": self._counts, **totals}, clip_report=self._tally.report())

    def _second(self) -> NDArray[np.int64]:
        out = np.zeros((self._blocks, self._schema.features, self._schema.features), np.int64)
        at = self._cells.blocks
        for j, table in enumerate(self._tables):
            alone = self._each[j] if self._blocks > 1 else self._each[j].sum(axis=0, keepdims=True)
            out[:, at[j], at[j]] = table.T @ (alone[:, :, None] * table)
        for (i, j), counts in self._together.items():
            both = counts.reshape(self._blocks, len(self._tables[i]), -1)
            block = self._tables[i].T @ both @ self._tables[j]
            out[:, at[i], at[j]], out[:, at[j], at[i]] = block, block.transpose(0, 2, 1)
        return out


def _cells(schema: Summed) -> Cells:
    cells = schema.reading.declaration
    if cells is None:
        raise SchemaError("sums by cells need declared columns: put Cells first into the transform")
    return cells


def _counted(first: NDArray[np.intp], second: NDArray[np.intp], shape: tuple[int, int]) -> NDArray[np.int64]:
    return np.bincount(first * shape[-1] + second, minlength=shape[0] * shape[1]).reshape(shape)
