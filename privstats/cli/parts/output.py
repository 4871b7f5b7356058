"""What the long-running commands share: a folder that can be written, a bar that shows progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from privstats.errors import DataError
from privstats.workflows import report

__all__ = ["prepare", "progress_bar"]


def prepare(out: Path, *packages: str) -> None:
    """Make the folder for a report before the work starts.

    Args:
        out: the folder.
        packages: of the report extra that the work needs; all of it if omitted.

    Raises:
        MissingExtraError: they are not installed.
        DataError: the folder cannot be made.
    """
    report.require_extra(*packages)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"--out {out} cannot be a folder: {error.strerror}; name another one") from None


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error; the value is the function that advances it by one."""
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(label, total=total)
        yield lambda: progress.advance(bar)
