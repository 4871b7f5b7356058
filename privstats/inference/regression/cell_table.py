"""Tabulate contrasts of declared columns' cells with a reference cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.cell_design import ColumnCells
from privstats.inference.description import numbers_of
from privstats.inference.regression.summary import cells_as_ratios, cells_summary, with_ratios
from privstats.inference.summary import RowTable, Summary, framed, rows_by

if TYPE_CHECKING:
    from privstats.inference.regression.table import ContrastTest, Regression


@dataclass(frozen=True, eq=False)
class CellTable(RowTable):
    """Each cell against its column's reference cell, ``(k,)``.

    Under the assumptions, at most a fraction alpha of releases report an interval that misses. A cell is hidden where
    noise hides its contrast or could alone explain its record count. A reference cell is 0 by definition, with the
    interval 0 to 0.

    Attributes:
        estimate: NaN where not reported.
        error, noise_error: in total, and from noise alone.
        low, high: infinite where not reported.
        pvalue: two-sided, for no difference; NaN for a reference.
        level: of a record in all reference cells.

    Example:
        >>> cells = ps.Cells((ps.Truth("smoker"), ps.Categories("sex", ("f", "m"))))
        >>> map_ = (cells, ps.transforms.ConstantFeature(1.0))
        >>> schema = ps.RidgeSchema(cells.width + 1, clip_norm=1.5, target_bound=4.0, transform=map_)
        >>> table = {"smoker": [0, 1, 1, 0] * 9, "sex": ["f", "f", "m", "m"] * 9}
        >>> moments = ps.measure(schema, table, [1.0, 2.1, 2.5, 1.4] * 9)
        >>> found = ps.inference.ols(ps.Release.exact(schema, moments)).cells(reference={"sex": "m"})
        >>> [(cell, round(float(value), 1)) for cell, value in zip(found.cells, found.estimate) if value]
        [('true', 1.1), ('missing', nan), ('f', -0.4), ('missing', nan)]
    """

    columns: tuple[str, ...]
    cells: tuple[str, ...]
    reference: NDArray[np.bool]
    estimate: Array
    error: Array
    noise_error: Array
    low: Array
    high: Array
    pvalue: Array
    reported: NDArray[np.bool]
    alpha: float
    level: ContrastTest
    regression: Regression

    @property
    def df(self) -> Array:
        """Degrees of freedom of each cell's P value, ``(k,)``; NaN for a reference, infinite for the normal law."""
        return np.where(self.reference, np.nan, self.regression.df[0])

    def summary(self, *, exponentiate: bool = False) -> Summary:
        """Return the table; ``exponentiate`` yields ratios."""
        return cells_as_ratios(self) if exponentiate else cells_summary(self)

    def to_frame(self, *, exponentiate: bool = False) -> Any:
        """Return a ``DataFrame`` of :meth:`to_rows`."""
        return framed(self.to_rows(exponentiate=exponentiate))

    def to_rows(self, *, exponentiate: bool = False) -> list[dict[str, object]]:
        """Return rows by cell; ``exponentiate`` adds ratios."""
        columns: dict[str, Any] = {"variable": self.columns, "level": self.cells, "reference": self.reference}
        columns |= {"estimate": self.estimate, "std_error": self.error, "noise_std_error": self.noise_error}
        columns |= {"df": self.df, "p_value": self.pvalue, "conf_low": self.low, "conf_high": self.high}
        rows = rows_by({**columns, "reported": self.reported})
        rows = [{**row, **numbers_of(self.regression.tally)} for row in rows]
        return with_ratios(rows, self.regression.model) if exponentiate else rows


def cell_table(fit: Regression, reference: Mapping[str, str], alpha: float) -> CellTable:
    """Return a fit's contrasts; see :meth:`Regression.cells`."""
    if not fit.column_cells:
        raise ReleaseError("cells() reads a regression on declared columns: map records by Cells, ConstantFeature")
    known = {each.name for each in fit.column_cells}
    if unknown := set(reference) - known:
        raise ReleaseError(f"reference names {min(unknown)!r}; declared and read are {', '.join(sorted(known))}")
    references = [_reference(each, reference.get(each.name)) for each in fit.column_cells]
    blocks = list(zip(fit.column_cells, references, strict=True))
    rows = np.vstack([_rows(each, first, len(fit.names)) for each, first in blocks])
    itself = np.concatenate([np.arange(len(each.cells)) == first for each, first in blocks])
    errors = fit.errors.combined(rows[~itself])
    reported, (low, high) = errors.reported(alpha), errors.interval(alpha)
    shown = {"estimate": np.where(reported, errors.estimate, math.nan), "error": errors.error, "low": low, "high": high}
    shown |= {"noise_error": errors.noise_error}
    return CellTable(
        columns=tuple(each.name for each in fit.column_cells for _ in each.cells),
        cells=tuple(cell for each in fit.column_cells for cell in each.cells),
        reference=itself,
        **{name: _beside(itself, values, 0.0) for name, values in shown.items()},
        pvalue=_beside(itself, errors.pvalues(), math.nan),
        reported=_beside(itself, reported.astype(np.float64), 1.0) > 0,
        alpha=alpha,
        level=fit.t_test(_reference_weights(fit, blocks), alpha=alpha),
        regression=fit,
    )


def _beside(reference: NDArray[np.bool], values: Array, otherwise: float) -> Array:
    entries = np.full(len(reference), otherwise)
    entries[~reference] = values
    return entries


def _reference_weights(fit: Regression, blocks: Sequence[tuple[ColumnCells, int]]) -> Array:
    row = np.zeros(len(fit.names))
    row[0] = 1.0
    for column, first in blocks:
        if (place := column.places[first]) >= 0:
            row[place] = 1.0
    return row


def _reference(column: ColumnCells, cell: str | None) -> int:
    if cell is None:
        return column.reference
    if cell not in column.cells:
        raise ReleaseError(f"{column.name} has no cell {cell!r}; it has {', '.join(column.cells)}")
    return column.cells.index(cell)


def _rows(column: ColumnCells, reference: int, parameters: int) -> Array:
    """Return the matrix from parameters to contrasts with the reference, ``(cells, m)``."""
    rows = np.zeros((len(column.cells), parameters))
    for cell, place in enumerate(column.places):
        if place >= 0:
            rows[cell, place] = 1.0
    return np.asarray(rows - rows[reference])
