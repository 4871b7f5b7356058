"""Files that appear whole or not at all.

Not a storage layer: one function that writes next to the target and renames. At the bottom, beside the errors.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from privstats.errors import PrivstatsError

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path`` atomically: readers see the old file or the new one, never a part.

    Raises:
        PrivstatsError: the folder is missing, not writable, or the disk is full; the old file stays as it was.
    """
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise PrivstatsError(f"cannot write {target}: {error.strerror}; nothing was written") from None
