"""Output of commands: an existing file is replaced only with ``--force``, and a report's folder can be written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from privstats.errors import DataError
from privstats.files.atomic import require_folder, require_place

__all__ = ["Force", "drawable", "folder_for", "prepare", "writable"]

Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


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
    from privstats.inference.drawing import check_format

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
