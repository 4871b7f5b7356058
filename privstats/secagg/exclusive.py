"""Exclusive use of a machine: it refuses a concurrent call, a copy of itself and use in a forked process.

Two concurrent calls could both pass a check that only one may pass, and add an upload twice or sign two lists. The
machines and their journals derive from this module; it does not depend on messages.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, NoReturn, ParamSpec, Self, SupportsIndex, TypeVar

from privstats.errors import LocalProtocolError

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound="Exclusive")


class Exclusive:
    """An object that is used by one caller at a time, in the process that made it, and is never copied.

    A concurrent call raises an error and does not block, because its caller has lost track of the session (a caller
    that is ``waiting`` to close it does block). Read-only properties are snapshots and may be read at any time.
    """

    _turn: threading.Lock
    _process: int

    def __new__(cls, *_: object, **__: object) -> Self:
        """The object with its lock, which every way of constructing it needs."""
        self = super().__new__(cls)
        self._turn, self._process = threading.Lock(), os.getpid()
        return self

    @contextmanager
    def _alone(self, *, waiting: bool = False) -> Iterator[None]:
        what = type(self).__name__
        if os.getpid() != self._process:
            raise LocalProtocolError(
                f"this {what} was made in another process and its forked twin would be a second one: make it in the "
                "process that uses it, or export it there and resume it here"
            )
        if not self._turn.acquire(blocking=waiting):
            raise LocalProtocolError(f"this {what} takes one call at a time and is in one: let that one end first")
        try:
            yield
        finally:
            self._turn.release()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse ``copy``, ``deepcopy`` and ``pickle``, which all come here."""
        raise LocalProtocolError(
            f"a copy of a {type(self).__name__} would be a second one in the same session: "
            "export it, give this one up, and resume the other"
        )


def exclusive(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
    """Return a method that raises ``LocalProtocolError`` while another exclusive method of the same object runs."""

    @wraps(method)
    def alone(self: M, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._alone():
            return method(self, *args, **kwargs)

    return alone
