"""The result of an audit: a table with a verdict, for people and as JSON.

Every audit returns one; none prints by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from privstats.files.text import json_text
from privstats.printable import at_most

Value: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True)
class Report:
    """The outcome of one audit.

    Attributes:
        audit: its name.
        columns: headings of the table, keys of the JSON.
        rows: one tuple per line, as long as ``columns``.
        notes: sentences under the table.
        violated: a measurement contradicts a claim, beyond chance.
        table_only, json_only: columns that only people, or only programs, get: a table has 80 columns to fit in.
        bounds: columns of upper bounds, which people see rounded up.
    """

    audit: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...]
    violated: bool
    table_only: tuple[str, ...] = ()
    json_only: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()

    def to_json(self) -> str:
        """One JSON object; numbers that JSON cannot hold become null."""
        rows = [dict(self._without(self.table_only, row)) for row in self.rows]
        document = {"audit": self.audit, "violated": self.violated, "rows": rows, "notes": list(self.notes)}
        return json_text(document)

    @property
    def shown(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """Headings and cells for people."""
        headings = tuple(name for name, _ in self._without(self.json_only, self.columns))
        return headings, tuple(
            tuple(self._cell(name, value) for name, value in self._without(self.json_only, row)) for row in self.rows
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
        headings, rows = self.shown
        for i, heading in enumerate(headings):
            if i == 0:
                table.add_column(heading, overflow="fold")  # the only one that may be as long as its owner likes
            else:
                table.add_column(heading, justify="right", overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        yield f"[bold]audit {self.audit}[/]"
        yield table
        yield from map(Text, self.notes)
        yield "[bold red]a claim is VIOLATED[/]" if self.violated else "[bold green]no claim is contradicted[/]"

    def _without(self, hidden: tuple[str, ...], row: tuple[Value, ...]) -> list[tuple[str, Value]]:
        return [(name, value) for name, value in zip(self.columns, row, strict=True) if name not in hidden]

    def _cell(self, name: str, value: Value) -> str:
        if value is None:
            return "-"
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, float):
            return at_most(value) if name in self.bounds else f"{value:.4g}"
        return str(value)
