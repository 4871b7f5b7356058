"""Output files of commands: an existing one is replaced only with ``--force``.

It is separate from ``output``, whose progress bars and reports take time to import.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from privstats.errors import DataError

__all__ = ["Force", "writable"]

Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


def writable(paths: Iterable[Path], force: bool) -> None:
    """Refuse to replace existing files, before anything is written, unless ``force`` is set.

    Raises:
        DataError: one of them is there.
    """
    for path in paths:
        if path.exists() and not force:
            raise DataError(f"{path} exists; name another file, or pass --force to replace it")
