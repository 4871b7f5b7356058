"""Rows of a study as a frame, and as CSV text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privstats.errors import DataError
from privstats.printable import csv_text


@dataclass(frozen=True)
class Frame:
    """Rows of equal keys, in order.

    Example:
        >>> from privstats.contrib.sweep import Frame
        >>> frame = Frame(("head", "score"), (("LDA", 0.9), ("RDA", 0.95)))
        >>> frame.where(head="RDA").rows
        (('RDA', 0.95),)
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Frame:
        """Return a frame of mappings."""
        return cls(tuple(columns), tuple(tuple(row[name] for name in columns) for row in rows))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        place = self._place(column)
        return [row[place] for row in self.rows]

    def where(self, **values: Any) -> Frame:
        """Return the rows with these values."""
        places = {self._place(name): value for name, value in values.items()}
        return Frame(self.columns, tuple(row for row in self.rows if all(row[at] == v for at, v in places.items())))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns by name, for ``pandas.DataFrame``."""
        return {name: self[name] for name in self.columns}

    def to_csv(self) -> str:
        """Return comma-separated text: numbers with every digit, missing values empty.

        A text that a spreadsheet would run as a formula has an apostrophe before it.
        """
        return csv_text([self.columns, *([_cell(value) for value in row] for row in self.rows)])

    def _place(self, column: str) -> int:
        if column not in self.columns:
            raise DataError(f"there is no column {column!r}; the columns are {', '.join(self.columns)}")
        return self.columns.index(column)


def _cell(value: Any) -> Any:
    missing = value is None or (isinstance(value, float) and not math.isfinite(value))
    return "" if missing else repr(value) if isinstance(value, float) else value
