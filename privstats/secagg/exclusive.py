"""Refuse concurrent calls, copies and forks of a party's state machine.

Two concurrent calls could both pass a check that only one may pass, and sign two lists.
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
    """An object for one caller at a time, in the process that built it, that is never copied.

    A concurrent call raises ``LocalProtocolError``; only a ``waiting`` one, which closes the object, blocks. Read-only
    properties may be read at any time.
    """

    _turn: threading.Lock
    _process: int

    def __new__(cls, *_: object, **__: object) -> Self:
        """Create the lock."""
        self = super().__new__(cls)
        self._turn, self._process = threading.Lock(), os.getpid()
        return self

    @contextmanager
    def _alone(self, *, waiting: bool = False) -> Iterator[None]:
        what = type(self).__name__
        if os.getpid() != self._process:
            raise LocalProtocolError(
                f"this {what} belongs to another process, and a forked copy would be a second {what}: make it in the "
                "process that uses it, or export it there and resume it here"
            )
        if not self._turn.acquire(blocking=waiting):
            raise LocalProtocolError(f"this {what} accepts one call at a time: wait until the present call has ended")
        try:
            yield
        finally:
            self._turn.release()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise LocalProtocolError(
            f"a copy of a {type(self).__name__} would be a second one in the same session: "
            "export this one, discard it, and resume the export"
        )


def exclusive(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
    """Make a method raise ``LocalProtocolError`` while another exclusive method of its object runs."""

    @wraps(method)
    def alone(self: M, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._alone():
            return method(self, *args, **kwargs)

    return alone
