"""How commands print: one terminal, one style of table; rich is loaded to print, but not for a list of commands.

from privstats.cli.parts.terminal import new_table, terminal
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from privstats.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["escape", "new_table", "say", "terminal"]


def terminal(*, errors: bool = False) -> Console:
    """Standard output, or standard error."""
    from rich.console import Console

    class Terminal(Console):
        """Text is escaped, as :func:`say` does, but for its line ends; what rich renders has its own escapes."""

        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*map(_shown, objects), **options)

    return Terminal(stderr=errors)


def say(line: str, *, err: bool = False) -> None:
    """Print one line: a file's name, or a text of others in it, may hold what a terminal acts on."""
    typer.echo(printable(line), err=err)


def new_table(title: str | None = None, *, header: bool = True) -> Table:
    """An empty table without a frame; ``title`` may hold markup."""
    from rich import box
    from rich.table import Table

    class Escaped(Table):
        """Texts in its cells are escaped, but for their line ends."""

        def add_row(self, *cells: Any, **options: Any) -> None:
            super().add_row(*map(_shown, cells), **options)

    return Escaped(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_header=header)


def _shown(value: Any) -> Any:
    return printable_lines(value) if isinstance(value, str) else value


def escape(text: str) -> str:
    """The text with no part of it read as markup."""
    from rich import markup

    return markup.escape(text)
