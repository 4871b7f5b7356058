"""Output of commands: an existing file is replaced only with ``--force``, and a report's folder can be written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from privstats.errors import DataError

__all__ = ["Force", "folder_for", "prepare", "writable"]

Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


def writable(paths: Iterable[Path], force: bool) -> None:
    """Refuse to replace existing files, before anything is written, unless ``force`` is set.

    Raises:
        DataError: one of them is there.
    """
    for path in paths:
        if path.exists() and not force:
            raise DataError(f"{path} exists; name another file, or pass --force to replace it")


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
    """Make a folder for results.

    Raises:
        DataError: the folder cannot be made.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"--out {out} cannot be a folder: {error.strerror}; name another one") from None
