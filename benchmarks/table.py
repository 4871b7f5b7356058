"""A table of a page as a value: which rows of which results, and how each cell is written.

Tables that are no row per row are functions; either is called and gives its lines. Under the modules of each page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.measuring import Row, Rows, results

__all__ = ["Cells", "Shown", "Table", "Tables", "by_name", "titled"]

Cells: TypeAlias = Sequence[Sequence[str]]
Tables: TypeAlias = Mapping[str, Callable[[], Cells]]
Shown: TypeAlias = str | Callable[[Row], str]
"""How a cell is written: a format of the row's fields, such as ``"{seconds:.1f} s"``, or a function of the row."""


@dataclass(frozen=True)
class Table:
    """One line per row of a result.

    Attributes:
        result: the name of the benchmark.
        title: how the titles of its rows begin; the first one counts, all of them where there is a ``group``.
        columns: by heading, how a row's cell is written.
        group: the heading of a first column, and what it says of the rest of a title, beside the first of its rows.
        only: selects the rows that are shown.
    """

    result: str
    title: str
    columns: Mapping[str, Shown]
    group: tuple[str, Callable[[str], str]] | None = None
    only: Callable[[Row], bool] = lambda _: True

    def __call__(self) -> Cells:
        """Heading and lines."""
        found = titled(self.result, self.title)
        if self.group is None:
            return [list(self.columns), *(self._line(row) for row in found[0][1] if self.only(row))]
        heading, name = self.group
        lines = (
            [name(rest) if not place else "", *self._line(row)]
            for rest, rows in found
            for place, row in enumerate(rows)
        )
        return [[heading, *self.columns], *lines]

    def _line(self, row: Row) -> list[str]:
        return [shown.format_map(row) if isinstance(shown, str) else shown(row) for shown in self.columns.values()]


def titled(benchmark: str, start: str = "") -> list[tuple[str, Rows]]:
    """The rest of each title that begins so, and its rows."""
    found = results(benchmark).items()
    return [
        (title.removeprefix(start), rows) for title, rows in found if title.startswith(start) and title != "machine"
    ]


def by_name(*makers: Callable[[], Cells]) -> Tables:
    """Functions under their own names, which stand in the pages."""
    return {make.__name__: make for make in makers}
