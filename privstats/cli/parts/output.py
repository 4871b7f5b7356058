"""What commands that write a report share: a folder that can be written."""

from __future__ import annotations

from pathlib import Path

from privstats.errors import DataError
from privstats.workflows import report

__all__ = ["prepare"]


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
