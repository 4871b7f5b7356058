"""How ``privstats flower`` and ``privstats http`` print a folder's standing, or what a party would take part in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from privstats.cli.parts.terminal import escape, new_table, terminal
from privstats.files.jsonable import json_text
from privstats.printable import printable

__all__ = ["show"]


def show(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the facts as JSON, or as a table with a line per entry of a list; empty facts are left out of it."""
    if as_json:
        typer.echo(json_text(facts))
        return
    table = new_table(header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value not in ("", [], {}):
            table.add_row(name.replace("_", " "), escape(_text(value)))
    terminal().print(table)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    if isinstance(value, list):
        return "\n".join(printable(_line(each) if isinstance(each, Mapping) else each) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _line(entry: Mapping[str, Any]) -> str:
    """A missing party, a closed step, or a helper that dials."""
    if "heard" in entry:
        due = ", and must answer" if entry["must_answer"] else ""
        return f"{entry['who']}: offer {entry['offer']}, heard {entry['heard']}{due}"
    if "who" in entry:
        return f"{entry['who']} {entry['why']}, since {entry['since']}"
    missing = f"; missing: {', '.join(entry['missing'])}" if entry["missing"] else ""
    return (
        f"round {entry['round']}, {entry['step']}: {entry['answered']} answered in {entry['seconds']} s, "
        f"{entry['bytes_received']:,} bytes up, {entry['bytes_sent']:,} down{missing}"
    )
