"""One process per folder that keeps a party's node connected, or the server's carrier running: a lock that ends with
it, and its standing beside the lock.

A carrier's ``join`` and ``serve`` hold it; ``folder_status`` asks for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from privstats.errors import InUseError, LocalProtocolError, PrivstatsError
from privstats.files.atomic import atomic_write, read_whole
from privstats.system import is_locked, lock, unlock

__all__ = ["Supervision", "Task", "supervised", "supervision"]

Task: TypeAlias = Literal["joined", "served"]
"""What is done with the folder; the name of its files as well."""


class Supervision(msgspec.Struct, frozen=True):
    """The process that holds a folder.

    Attributes:
        process: its id.
        since: the time at which it began (Unix).
        address: ``HOST:PORT``, of the server that a party has joined, or on which parties reach this one.
        connected: whether a party's node is connected, as far as the node has said.
        certificate_ends: the time at which the TLS certificates end that the process was given (Unix); 0 without them.
    """

    process: int
    since: float
    address: str
    connected: bool = False
    certificate_ends: float = 0.0


@contextmanager
def supervised(
    home: Path, task: Task, address: str, certificate_ends: datetime | None = None
) -> Iterator[Callable[[bool], None]]:
    """Keep a folder to this process in the block; the block's value keeps whether the node is connected.

    Raises:
        InUseError: another process has the folder.
        PrivstatsError: the folder cannot be written.
    """
    ends = 0.0 if certificate_ends is None else certificate_ends.timestamp()
    place, own = _lock_of(home, task), Supervision(os.getpid(), time.time(), address, certificate_ends=ends)
    try:
        handle = lock(place)
    except BlockingIOError:
        raise InUseError(f"{home} is {task} already by {_holder(home, task)}: end it first") from None
    except OSError as error:
        raise PrivstatsError(f"cannot write {place}: {error.strerror}; nothing was started") from None

    def keep(connected: bool) -> None:
        with suppress(PrivstatsError):  # a full disk ends no node
            _write(home, task, msgspec.structs.replace(own, connected=connected))

    try:
        _write(home, task, own)
        yield keep
    finally:
        _file_of(home, task).unlink(missing_ok=True)
        unlock(handle)


def supervision(home: Path, task: Task) -> Supervision | None:
    """The process that holds a folder for ``task``; None where none does, also after one was killed."""
    return _read(home, task) if is_locked(_lock_of(home, task)) else None


def _lock_of(home: Path, task: Task) -> Path:
    return home / f".{task}.lock"


def _file_of(home: Path, task: Task) -> Path:
    return home / f".{task}"  # a file of its own: Windows lets nobody read what another process has locked


def _write(home: Path, task: Task, held: Supervision) -> None:
    atomic_write(_file_of(home, task), msgspec.json.encode(held), durable=False)


def _read(home: Path, task: Task) -> Supervision | None:
    with suppress(LocalProtocolError, msgspec.DecodeError, UnicodeDecodeError):
        data = read_whole(_file_of(home, task), LocalProtocolError, "privstats flower")
        return msgspec.json.decode(data, type=Supervision)
    return None


def _holder(home: Path, task: Task) -> str:
    """The process that holds the lock; it writes its id just after it took it."""
    held = _read(home, task)
    return "another process" if held is None else f"process {held.process}"
