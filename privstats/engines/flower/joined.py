"""One ``join`` at a time in a party's folder: a lock that ends with its process, and the process's id beside it.

``launch`` takes it for as long as it keeps a node connected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privstats.errors import InUseError, PrivstatsError
from privstats.files.atomic import atomic_write
from privstats.system import lock, unlock

__all__ = ["joined_once"]

_LOCK = ".joined.lock"
_PROCESS = ".joined"  # a file of its own: Windows lets nobody read what another process has locked


@contextmanager
def joined_once(home: Path) -> Iterator[None]:
    """Keep a party's folder to this process in the block.

    Raises:
        InUseError: another process has joined with it.
        PrivstatsError: the folder cannot be written.
    """
    try:
        handle = lock(home / _LOCK)
    except BlockingIOError:
        raise InUseError(f"{home} is joined already by {_holder(home)}: end it first") from None
    except OSError as error:
        raise PrivstatsError(f"cannot write {home / _LOCK}: {error.strerror}; nothing was started") from None
    try:
        atomic_write(home / _PROCESS, str(os.getpid()).encode())
        yield
    finally:
        (home / _PROCESS).unlink(missing_ok=True)
        unlock(handle)


def _holder(home: Path) -> str:
    """The process that holds the lock; it writes its id just after it took it."""
    try:
        return f"process {int((home / _PROCESS).read_text('ascii'))}"
    except (OSError, ValueError):
        return "another process"
