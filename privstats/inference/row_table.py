"""What every table of plain rows shows besides: a frame of pandas, and itself in a notebook.

A row maps names of :data:`~privstats.inference.FRAME_COLUMNS` to plain values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privstats import optional_dependencies

if TYPE_CHECKING:
    from privstats.inference.summary import Summary

__all__ = ["Framed", "RowTable", "framed", "rows_by"]


class Framed(ABC):
    """A result with rows of plain values."""

    @abstractmethod
    def to_rows(self) -> Sequence[Mapping[str, object]]:
        """The table as plain values, a mapping per row."""

    def to_frame(self) -> Any:
        """:meth:`to_rows` as a pandas DataFrame; :data:`~privstats.inference.FRAME_COLUMNS` says what a column holds.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return framed(self.to_rows())


class RowTable(Framed):
    """A table that a reader returns: its rows as plain values, and its summary for publication."""

    @abstractmethod
    def summary(self) -> Summary:
        """The table for publication."""

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def framed(rows: Sequence[Mapping[str, object]]) -> Any:
    """Rows as a pandas DataFrame.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    return optional_dependencies.load("pandas", by="to_frame").DataFrame(rows)


def rows_by(columns: Mapping[str, Any]) -> list[dict[str, object]]:
    """One mapping per row from columns of equal length, arrays or sequences, with Python's own values."""
    plain = (np.asarray(values).tolist() for values in columns.values())
    return [dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True)]
