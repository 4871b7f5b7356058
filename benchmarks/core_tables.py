"""The table and sentences of docs/core.md on what one session runs, and on what one commit touches."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.core import commits, lines
from benchmarks.measuring import Row, Rows, results
from benchmarks.table import Cells, Tables, by_name

__all__ = ["MAKERS", "TABLES"]


def lines_run() -> Cells:
    """docs/core.md: lines of each room that one session runs, core and support together at the end."""
    head = ["room", "lines until the release", "until the head", "files", "lines of code in the room"]
    rooms = [_cells(f"`{row['room']}`" + " *" * (row["part"] == "core"), [row]) for row in _rows("core", "outside")]
    sums = {"support": ("support",), "the core *": ("core",), "all of these": ("core", "support", "outside")}
    return [head, *rooms, *(_cells(name, _rows(*parts)) for name, parts in sums.items())]


def _cells(name: str, rows: Sequence[Row]) -> list[str]:
    return [name, *(f"{_sum(rows, key):,}" for key in ("release", "head", "files", "of"))]


def _rows(*parts: str) -> Rows:
    return [row for row in results("core.lines")[lines.TITLE] if row["part"] in parts]


def _sum(rows: Sequence[Row], key: str) -> int:
    return sum(row[key] for row in rows)


def lines_read() -> str:
    """docs/core.md: how many lines one session runs."""
    whole, core = _rows("core", "support", "outside"), _rows("core")
    return (
        f"From the plan to the release a session runs {_sum(whole, 'release'):,} lines of code, "
        f"{_sum(core, 'release'):,} of them in the core, which has {_sum(core, 'of'):,}. With a head it runs "
        f"{_sum(whole, 'head'):,}."
    )


def commits_of_both() -> str:
    """docs/core.md: how many commits touch the core and a contributed room."""
    return "; ".join(_stated(row) for row in results("core.commits")[commits.TITLE]) + "."


def _stated(row: Row) -> str:
    touch, both = row["touch the package"], row["touch both"]
    first, last = row["first day"], row["last day"]
    days = f"on {last}" if first == last else f"from {first} to {last}"
    return f"{both:,} of {touch:,} ({100 * both / touch:.0f} %) in `{row['range']}`, {days}"


TABLES: Tables = by_name(lines_run)
"""By the name in a page's marker."""

MAKERS = (lines_read, commits_of_both)
"""By their names, which stand in the page."""
