"""How commands print: one terminal, one style of table; rich is loaded to print, but not for a list of commands.

from privstats.cli.parts.terminal import new_table, terminal
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["escape", "new_table", "terminal"]


def terminal(*, errors: bool = False) -> Console:
    """Standard output, or standard error."""
    from rich.console import Console

    return Console(stderr=errors)


def new_table(title: str | None = None, *, header: bool = True) -> Table:
    """An empty table without a frame; ``title`` may hold markup."""
    from rich import box
    from rich.table import Table

    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_header=header)


def escape(text: str) -> str:
    """The text with no part of it read as markup."""
    from rich import markup

    return markup.escape(text)
