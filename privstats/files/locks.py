"""Lock files or folders for one process at a time; a lock ends with its process, also after a crash."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from privstats import system
from privstats.errors import PrivstatsError

_BESIDE = ".lock"
_LOOKS, _LOOK_SECONDS = 100, 0.01


def lock(path: Path) -> int:
    """Lock a folder, or a file that is created if missing, and return a handle for :func:`unlock`.

    Windows locks no folders: there a file in it is locked.

    Raises:
        BlockingIOError: another process or object holds the lock.
        PrivstatsError: the system has no such locks.
    """
    folder = path.is_dir()
    if folder and system.fcntl is None:
        path, folder = path / _BESIDE, False
    handle = system.open_private(path, os.O_RDONLY if folder else os.O_RDWR | os.O_CREAT)
    try:
        _take(handle)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _take(handle: int) -> None:
    if system.fcntl is not None:
        _take_from_looks(handle, system.fcntl)
        return
    if system.msvcrt is None:
        raise PrivstatsError("this system has no locks that go with their process: run it on Linux, macOS or Windows")
    try:
        system.msvcrt.locking(handle, system.msvcrt.LK_NBLCK, 1)
    except OSError as error:
        raise BlockingIOError(*error.args) from None


def _take_from_looks(handle: int, fcntl: Any) -> None:
    """Wait while :func:`is_locked` holds the lock, for an instant."""
    for _ in range(_LOOKS):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not _is_free(handle, fcntl):
                raise
            time.sleep(_LOOK_SECONDS)
        else:
            return
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_free(handle: int, fcntl: Any) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(handle, fcntl.LOCK_UN)
    return True


def unlock(handle: int) -> None:
    """Release a lock, also where a forked child holds the handle."""
    if system.fcntl is not None:
        system.fcntl.flock(handle, system.fcntl.LOCK_UN)
    elif system.msvcrt is not None:
        os.lseek(handle, 0, os.SEEK_SET)
        system.msvcrt.locking(handle, system.msvcrt.LK_UNLCK, 1)
    os.close(handle)


def is_locked(path: Path) -> bool:
    """Return whether another process or object holds the lock of a folder or file."""
    if not path.exists():
        return False
    if system.fcntl is None:
        try:
            handle = lock(path)
        except BlockingIOError:
            return True
        unlock(handle)
        return False
    handle = os.open(path, os.O_RDONLY)
    try:
        return not _is_free(handle, system.fcntl)
    finally:
        os.close(handle)
