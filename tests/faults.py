"""Faults that a test orders: a disk that is full, a call that is interrupted, a process that dies at its n-th write.

A place is named as ``monkeypatch.setattr`` names it: ``"os.fsync"``, or ``Ledger, "withdraw"``.
"""

import os
import pkgutil
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

import pytest

WRITES = ("os.fsync", "pathlib.Path.replace")


class Killed(BaseException):
    """Stands for SIGKILL in this process: nothing handles it."""


def sigkill() -> None:
    """End this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def fails(error: BaseException | type[BaseException], *place: Any) -> Iterator[None]:
    """Inside, every use of a place raises ``error``."""

    def failing(*_: object, **__: object) -> NoReturn:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*place, failing)
        yield


def full_disk(*place: Any) -> AbstractContextManager[None]:
    """Inside, a place, by default ``os.fsync``, fails as a write does where there is no room."""
    return fails(OSError(28, "No space left on device"), *(place or ("os.fsync",)))


@contextmanager
def interrupted(*place: Any) -> Iterator[None]:
    """The block ends where it comes to a place, as by Ctrl-C; a block that never comes there fails the test."""
    with pytest.raises(KeyboardInterrupt), fails(KeyboardInterrupt, *place):
        yield


class Fuse:
    """Ends a process, or what stands for it, before the n-th use of some places.

    Args:
        patch: puts the places back when the test is over.
        places: what is counted, by dotted names; by default what every durable write goes through.
        end: what ends it; raises ``Killed`` by default.
        all_threads: whether uses by other threads than the one that makes this count, as where a server writes.
    """

    def __init__(self, patch, *places, end=Killed, all_threads=False):
        self.left = 0
        """Uses until the end, the last one included; 0 where it does not burn."""
        self.stack = ""
        """The calls that led to the last end; empty if there was none."""
        self._end = end
        self._thread = None if all_threads else threading.get_ident()
        for place in places or WRITES:
            patch.setattr(place, self._counting(pkgutil.resolve_name(place)))

    def _counting(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **named: Any) -> Any:
            if self._thread in (None, threading.get_ident()):
                self.left -= 1
                if self.left == 0:
                    self.stack = "".join(traceback.format_stack())
                    self._ends()
            return real(*arguments, **named)

        return counting

    def _ends(self) -> None:
        if isinstance(self._end, type):
            raise self._end
        self._end()


@contextmanager
def killed(place: str, at: int = 1) -> Iterator[None]:
    """The block ends before its ``at``-th use of a place, as by SIGKILL; one that never comes there fails the test."""
    with pytest.MonkeyPatch.context() as patch:
        Fuse(patch, place).left = at
        with pytest.raises(Killed):
            yield


def killed_in_a_child(act: Callable[[], object], at: int, *places: str) -> None:
    """Do it in a forked child, which SIGKILL ends before its ``at``-th use of ``places``; surviving fails the test."""
    child = os.fork()
    if not child:
        try:
            fuse = Fuse(pytest.MonkeyPatch(), *places, end=sigkill)
            fuse.left = at
            act()
        finally:
            os._exit(3)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
