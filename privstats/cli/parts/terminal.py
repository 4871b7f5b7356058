"""Print and write for all commands: one terminal, one style of table, and no file replaced without ``--force``.

Rich is loaded to print, but not for a list of commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from privstats.errors import DataError
from privstats.files.atomic import require_folder, require_place
from privstats.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def terminal(*, errors: bool = False) -> Console:
    """Return standard output, or standard error."""
    from rich.console import Console

    class Terminal(Console):
        """Text is escaped, as :func:`say` does, but for its line ends; what rich renders has its own escapes."""

        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*map(_shown, objects), **options)

    return Terminal(stderr=errors, highlight=False)


def say(line: str, *, err: bool = False) -> None:
    """Print one line: a file's name, or a text of others in it, may hold what a terminal acts on."""
    typer.echo(printable(line), err=err)


def new_table(title: str | None = None, *, header: bool = True) -> Table:
    """Return an empty table without a frame; ``title`` may hold markup."""
    from rich import box
    from rich.table import Table

    class Escaped(Table):
        """Texts in its cells are escaped, but for their line ends."""

        def add_row(self, *cells: Any, **options: Any) -> None:
            super().add_row(*map(_shown, cells), **options)

    return Escaped(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_header=header)


def table_of(
    headings: Iterable[str],
    rows: Iterable[Iterable[str]],
    *,
    title: str | None = None,
    left: Iterable[str] | None = None,
    **how: Any,
) -> Table:
    """Return a table of plain texts, in which no part of a cell is markup.

    Args:
        headings: of the columns.
        rows: as wide as these.
        title: it may hold markup.
        left: headings of columns of words; the others are of numbers. All are of words if omitted.
        how: of every column, as rich takes it.
    """
    table, words = new_table(title), None if left is None else tuple(left)
    for heading in headings:
        table.add_column(heading, justify="left" if words is None or heading in words else "right", **how)
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _shown(value: Any) -> Any:
    return printable_lines(value) if isinstance(value, str) else value


def escape(text: str) -> str:
    """Return the text with no part of it read as markup."""
    from rich import markup

    return markup.escape(text)


def writable(paths: Iterable[Path], force: bool, *, makes: Path | None = None) -> None:
    """Refuse files that cannot be written, before the work begins: those in a folder that is not there, and without
    ``force`` those that exist.

    Args:
        paths: the files.
        force: whether existing ones are replaced.
        makes: a folder of results that is made where it is not there (:func:`folder_for`).

    Raises:
        DataError: one of them is there.
        PrivstatsError: one of them has no folder that can be written to.
    """
    for path in paths:
        if path.exists() and not force:
            raise DataError(f"{path} exists; name another file, or pass --force to replace it")
        if path.parent != makes:
            require_place(path)


def drawable(figure: Path | None) -> None:
    """Refuse a picture that cannot be saved, before what it shows is computed; it replaces an earlier one.

    Raises:
        ReleaseError: its name ends in none of the formats.
        PrivstatsError: it has no folder that can be written to.
    """
    from privstats.inference.figures import check_format

    if figure is not None:
        check_format(figure)
        require_place(figure)


def prepare(out: Path, *packages: str) -> None:
    """Make the folder for a report before the work starts.

    Args:
        out: the folder.
        packages: of the report extra that the work needs; all of it if omitted.

    Raises:
        MissingExtraError: they are not installed.
        DataError: the folder cannot be made.
    """
    from privstats.workflows import report

    report.require_extra(*packages)
    folder_for(out)


def folder_for(out: Path) -> None:
    """Make a folder for results, before the work starts.

    Raises:
        DataError: the folder cannot be made.
        PrivstatsError: it is there and cannot be written to.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"--out {out} cannot be a folder: {error.strerror}; name another one") from None
    require_folder(out, "cannot write the results")
