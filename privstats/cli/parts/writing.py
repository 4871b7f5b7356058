"""Files that commands write: none that is there is replaced unless ``--force`` says so.

Apart from ``output``, whose progress bars and reports take time to import.
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
    """Refuse to replace files, before anything is written, unless that is wanted.

    Raises:
        DataError: one of them is there.
    """
    for path in paths:
        if path.exists() and not force:
            raise DataError(f"{path} exists; name another file, or pass --force to replace it")
