"""What an audit hands back: a table with a verdict, for people and as JSON.

Every audit ends in one of these; none prints by itself. Nothing is measured here.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

__all__ = ["Report", "Value"]

Value: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True)
class Report:
    """The outcome of one audit.

    Attributes:
        audit: its name.
        columns: headings.
        rows: one tuple per line, as long as ``columns``.
        notes: sentences under the table.
        violated: a measurement contradicts a claim, beyond chance.
    """

    audit: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...]
    violated: bool

    def to_json(self) -> str:
        """One JSON object; numbers that JSON cannot hold become null."""
        rows = [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]
        document = {"audit": self.audit, "violated": self.violated, "rows": rows, "notes": list(self.notes)}
        return json.dumps(document, indent=2)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for i, heading in enumerate(self.columns):
            table.add_column(heading, justify="left" if i == 0 else "right", no_wrap=True)
        for row in self.rows:
            table.add_row(*map(_cell, row))
        yield f"[bold]audit {self.audit}[/]"
        yield table
        yield from self.notes
        yield "[bold red]a claim is VIOLATED[/]" if self.violated else "[bold green]no claim is contradicted[/]"


def _plain(value: Value) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
