"""Differences between operating systems: locks, permissions of files, and the syncing of folders to the disk.

The only module that tests which system this is. POSIX has all of them. Windows has locks too, but the mode of a file
there does not say who may read it, so no file is refused for its mode.
"""

from __future__ import annotations

import importlib
import os
import stat
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from privstats.errors import PrivstatsError

_OWNER_ONLY = 0o600
_READ, _WRITE = stat.S_IRWXG | stat.S_IRWXO, stat.S_IWGRP | stat.S_IWOTH
_BINARY = getattr(os, "O_BINARY", 0)  # without it Windows changes the line ends of written data
_BESIDE = ".lock"
_LOOKS, _LOOK_SECONDS = 100, 0.01
_MOST_FILES = 1 << 16


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_fcntl, _msvcrt, _resource = _module("fcntl"), _module("msvcrt"), _module("resource")


def require_posix(what: str) -> None:
    """Refuse a feature that only POSIX systems, such as Linux and macOS, have.

    Raises:
        PrivstatsError: this is another system; ``what`` is the subject of the sentence.
    """
    if _fcntl is None:
        raise PrivstatsError(f"{what} needs a POSIX system: run it on Linux or macOS, or in WSL")


def raise_open_files() -> int:
    """Let this process open as many files and connections as the system lets it, 65,536 at most; how many those are.

    The usual limit, 1,024, is for programs that wait with ``select``; each process may raise its own.
    """
    if _resource is None:
        return _MOST_FILES
    soft, hard = _resource.getrlimit(_resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == _resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft == _resource.RLIM_INFINITY or soft >= wanted:
        return _MOST_FILES if soft == _resource.RLIM_INFINITY else int(soft)
    try:
        _resource.setrlimit(_resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # macOS allows less than its hard limit says
        return int(soft)
    return int(wanted)


def lock(place: Path) -> int:
    """Lock a folder, or a file that is created if missing, against every other process and object of this machine.

    The lock is the system's, so it is released when the process ends, however that happens. Windows locks no folders:
    there a file in it is locked.

    Returns:
        A handle for :func:`unlock`.

    Raises:
        BlockingIOError: another process or object holds the lock.
        OSError: there is no such place, or it cannot be opened.
        PrivstatsError: the system has no such locks.
    """
    folder = place.is_dir()
    if folder and _fcntl is None:
        place, folder = place / _BESIDE, False
    handle = os.open(place, os.O_RDONLY if folder else os.O_RDWR | os.O_CREAT | _BINARY, _OWNER_ONLY)
    try:
        _take(handle)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _take(handle: int) -> None:
    if _fcntl is not None:
        _take_from_looks(handle, _fcntl)
        return
    if _msvcrt is None:
        raise PrivstatsError("this system has no locks that go with their process: run it on Linux, macOS or Windows")
    try:
        _msvcrt.locking(handle, _msvcrt.LK_NBLCK, 1)
    except OSError as error:
        raise BlockingIOError(*error.args) from None


def _take_from_looks(handle: int, system: Any) -> None:
    """Take the lock; wait, a second at most, while only :func:`is_locked` has it, which holds it shared for an instant.

    Raises:
        BlockingIOError: another process or object holds it.
    """
    for _ in range(_LOOKS):
        try:
            system.flock(handle, system.LOCK_EX | system.LOCK_NB)
        except BlockingIOError:
            if not _is_free(handle, system):
                raise
            time.sleep(_LOOK_SECONDS)
        else:
            return
    system.flock(handle, system.LOCK_EX | system.LOCK_NB)


def _is_free(handle: int, system: Any) -> bool:
    """Whether no process has the lock for itself."""
    try:
        system.flock(handle, system.LOCK_SH | system.LOCK_NB)
    except BlockingIOError:
        return False
    system.flock(handle, system.LOCK_UN)
    return True


def unlock(handle: int) -> None:
    """Release a lock, also where a forked child holds the handle as well."""
    if _fcntl is not None:
        _fcntl.flock(handle, _fcntl.LOCK_UN)
    elif _msvcrt is not None:
        os.lseek(handle, 0, os.SEEK_SET)
        _msvcrt.locking(handle, _msvcrt.LK_UNLCK, 1)
    os.close(handle)


def is_locked(place: Path) -> bool:
    """Whether another process or object holds the lock of a folder or file.

    It is tried and released at once, on POSIX as a shared lock: one who takes the lock at this instant waits for it.
    """
    if not place.exists():
        return False
    if _fcntl is None:
        try:
            handle = lock(place)
        except BlockingIOError:
            return True
        unlock(handle)
        return False
    handle = os.open(place, os.O_RDONLY)
    try:
        return not _is_free(handle, _fcntl)
    finally:
        os.close(handle)


def open_private(path: Path, flags: int, mode: int = _OWNER_ONLY) -> int:
    """Open a file for bytes that, with the default ``mode``, only its owner may read; return the handle."""
    return os.open(path, flags | _BINARY, mode)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; Windows has no such call, and keeps them in a journal."""
    if _fcntl is None:
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def others_can_read(path: Path) -> bool:
    """Whether the mode of a file or folder gives others than its owner any permission; always False on Windows.

    Raises:
        OSError: there is none.
    """
    return bool(path.stat().st_mode & _READ) and _fcntl is not None


def others_can_write(path: Path) -> bool:
    """Whether the mode of a file lets others than its owner change it; always False on Windows.

    Raises:
        OSError: there is none.
    """
    return bool(path.stat().st_mode & _WRITE) and _fcntl is not None
