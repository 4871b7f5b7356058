"""Handle differences between operating systems.

On Windows a file's mode does not show who may read it, so no file is refused for its mode.
"""

from __future__ import annotations

import errno
import importlib
import os
import stat
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from privstats.errors import PrivstatsError

_OWNER_ONLY = 0o600
_READ, _WRITE = stat.S_IRWXG | stat.S_IRWXO, stat.S_IWGRP | stat.S_IWOTH
_BINARY = getattr(os, "O_BINARY", 0)  # without it Windows changes the line ends of written data
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # without it a pipe that nobody else has open is waited for


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl, msvcrt, resource = _module("fcntl"), _module("msvcrt"), _module("resource")
"""Modules of the system; None where it has none."""


def require_posix(what: str) -> None:
    """Refuse a feature that only POSIX systems have; ``what`` is the sentence's subject."""
    if fcntl is None:
        raise PrivstatsError(f"{what} needs a POSIX system: run it on Linux or macOS, or in WSL")


def open_private(path: Path, flags: int, mode: int = _OWNER_ONLY) -> int:
    """Open a file that, with the default ``mode``, only its owner may read; return the handle."""
    return os.open(path, flags | _AT_ONCE | _BINARY, mode)


def open_plain(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a plain file to read its bytes.

    Every file that someone else may have written is opened by this function or by :mod:`privstats.files.atomic`.

    Raises:
        OSError: it cannot be opened, or it is a folder, a pipe or a device, on which reading may never end.
    """
    handle = os.open(path, os.O_RDONLY | _AT_ONCE | _BINARY)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a plain file", os.fspath(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk; Windows keeps them in a journal."""
    if fcntl is None:
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@cache
def keep_freed_memory() -> None:
    """Let glibc keep up to 62 MiB of freed memory in this process, so that a tile of records reuses that of the last.

    glibc returns freed memory at the heap's end to the system once that exceeds twice the largest array freed so far,
    and each tile then costs its page faults again. Arrays of up to 32 MiB count (mallopt(3), ``M_MMAP_THRESHOLD``).
    Other allocators, and a process whose environment sets these limits, stay as they are.
    """
    import numpy as np

    np.empty(31 << 20, np.uint8)  # freed at once, and no page of it is touched


def others_can_read(path: Path) -> bool:
    """Return whether the mode gives others than the owner any permission; always False on Windows."""
    return bool(path.stat().st_mode & _READ) and fcntl is not None


def others_can_write(path: Path) -> bool:
    """Return whether the mode lets others than the owner write."""
    return bool(path.stat().st_mode & _WRITE) and fcntl is not None
