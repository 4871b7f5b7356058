"""What models that take numbers alone are given: ranges, medians and lists of a whole table, as nobody knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.raw_tables.sets import Category, code_book

__all__ = ["Known"]

Array = NDArray[np.float64]

_LEVELS = np.arange(1, 8) / 8


@dataclass(frozen=True)
class Known:
    """The true range, median and quantiles of every number, the list of every category, read from all records.

    Attributes:
        book: the category of each column, None for a number.
        ranges: least and largest value of each number.
        medians: of each number.
        edges: its quantiles at k / 8, each once, as a code book with cut points would have them.
    """

    book: Mapping[str, Category | None]
    ranges: Mapping[str, tuple[float, float]]
    medians: Mapping[str, float]
    edges: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(cls, columns: pd.DataFrame) -> Self:
        """Read from the whole table, test records included."""
        book = code_book(columns)
        numbers = [name for name, category in book.items() if category is None]
        ranges = {name: (float(columns[name].min()), float(columns[name].max())) for name in numbers}
        cuts = {name: np.nanquantile(columns[name].to_numpy(np.float64), _LEVELS) for name in numbers}
        return cls(
            book,
            ranges,
            medians={name: float(columns[name].median()) for name in numbers},
            edges={name: tuple(np.unique(each).tolist()) for name, each in cuts.items()},
        )

    def moved(self, columns: pd.DataFrame) -> pd.DataFrame:
        """Every number moved into 999 to 1,001 by its range, so that its octave tells nothing."""
        numbers = {
            name: 999 + 2 * (columns[name].astype(float) - low) / (high - low)
            for name, (low, high) in self.ranges.items()
        }
        return columns.assign(**numbers)

    def filled(self, columns: pd.DataFrame) -> pd.DataFrame:
        """Numbers with the true median in every gap, categories as texts with a category for it."""
        made = {
            name: columns[name].astype(float).fillna(self.medians[name])
            if category is None
            else columns[name].map(_text)
            for name, category in self.book.items()
        }
        return pd.DataFrame(made)

    def scaled(self, columns: pd.DataFrame, wider: float = 1.0) -> Array:
        """Numbers brought to -1 to 1 by their ranges, then one 0 or 1 per listed value, one alone for two values.

        The upper end of the ranges is taken ``wider`` times as far from the lower one as it is. A gap is the middle of
        the range, and none of the values.
        """
        made = []
        for name, category in self.book.items():
            if category is None:
                low, high = self.ranges[name]
                half = wider * (high - low) / 2
                made.append(((columns[name].astype(float) - low) / half - 1).fillna(0.0).to_numpy())
            else:
                values = category.values[:1] if len(category.values) == 2 else category.values
                made.extend((columns[name] == value).to_numpy(float) for value in values)
        return np.column_stack(made).astype(np.float64)


def _text(value: object) -> str:
    return "missing" if pd.isna(value) else str(value)
