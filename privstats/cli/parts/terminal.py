"""Print and write for all commands; no file is replaced without ``--force``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    """Return a console on standard output or error that escapes text."""
    from rich.console import Console

    class Terminal(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*map(_shown, objects), **options)

    return Terminal(stderr=errors, highlight=False)


def say(line: str, *, err: bool = False) -> None:
    """Print one line, escaped: texts may hold terminal control codes."""
    typer.echo(printable(line), err=err)


def warn_of_same_files(paths: Sequence[Path]) -> None:
    """Warn on standard error where two parties bring one file, or files with equal bytes."""
    from privstats.files.same_content import same_content

    if same := same_content(paths):
        say(
            f"warning: {same[0]} and {same[1]} hold the same bytes: records that are counted twice make every error "
            "too small; pass each party's own file",
            err=True,
        )


def warned(facts: Sequence[str]) -> str:
    """Return the number of warnings among facts, as the end of a sentence; empty without any."""
    warnings = sum(line.startswith("WARNING") for line in facts)
    return f", with {warnings} warning{'' if warnings == 1 else 's'}: see above" if warnings else ""


def new_table(title: str | None = None, *, header: bool = True) -> Table:
    """Return an empty table without a frame, which escapes its cells; ``title`` may hold markup."""
    from rich import box
    from rich.table import Table

    class Escaped(Table):
        def add_column(self, *headings: Any, **options: Any) -> None:
            super().add_column(*headings, **{"overflow": "fold", **options})  # a narrow terminal cuts no name

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
    """Return a table of plain texts.

    Args:
        title: may hold markup.
        left: headings of columns of words, all by default; other columns are numbers.
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
    """Escape rich markup in a text."""
    from rich import markup

    return markup.escape(text)


def writable(paths: Iterable[Path], force: bool, *, makes: Path | None = None) -> None:
    """Refuse, before the work begins, files that exist without ``force``, or without a writable folder.

    Args:
        makes: a folder that :func:`folder_for` creates.
    """
    for path in paths:
        if path.exists() and not force:
            raise DataError(f"{path} exists; name another file, or pass --force to replace it")
        if path.parent != makes:
            require_place(path)


def drawable(figure: Path | None) -> None:
    """Refuse a picture that cannot be saved, before it is computed."""
    from privstats.inference.figures import check_format

    if figure is not None:
        check_format(figure)
        require_place(figure)


def prepare(out: Path, *packages: str) -> None:
    """Make the folder for a report before the work starts, and check the packages of the report extra."""
    from privstats.workflows import report

    report.require_extra(*packages)
    folder_for(out)


def folder_for(out: Path) -> None:
    """Make a folder for results, before the work starts."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"--out {out} cannot be a folder: {error.strerror}; name another one") from None
    require_folder(out, "cannot write the results")
