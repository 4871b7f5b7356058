"""Poll less often and wait less: a node for messages, and the SuperLink for expired tasks.

Flower's node sleeps 3 s. Here the first wait after a message is short and grows by half: a message waits for at most a
third of the time since the last one.
"""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

IDLE = "PRIVSTATS_IDLE_SECONDS"
"""The variable of a node's environment with its longest polling interval."""

WAKE_UP_PIPE = "PRIVSTATS_WAKE_UP_PIPE"
"""The variable of a node's environment with the path of its executor's :class:`WakeUpPipe`."""

IDLE_SECONDS = 3.0
"""Flower's sleep after it found no message; any other sleep of that module waits for an answer of our own."""

_FIRST_SECONDS = 0.1
_ANSWER_SECONDS = 0.05
_GROWTH = 1.5
_MOST_BYTES = 4096

T = TypeVar("T")


class PollingClock:
    """Replaces ``time`` in Flower's node, to shorten its sleeps during a session.

    Args:
        waits: called before each sleep, with whether the node waits for its own task.
    """

    def __init__(
        self,
        sleep: Callable[[float], None],
        longest: float = IDLE_SECONDS,
        waits: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._sleep, self._longest, self._waits = sleep, longest, waits
        self._next = _FIRST_SECONDS

    def sleep(self, seconds: float) -> None:
        """Replace Flower's ``time.sleep``."""
        self._waits(seconds != IDLE_SECONDS)
        if seconds != IDLE_SECONDS:
            self._next = _FIRST_SECONDS
            self._sleep(min(seconds, _ANSWER_SECONDS))
            return
        self._sleep(min(self._next, self._longest))
        self._next = min(_GROWTH * self._next, self._longest)


class WakeUpPipe:
    """A named pipe by which one process ends another one's sleep; replaces ``time`` in Flower's executor.

    Without a usable pipe, every sleep has its full length.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._end: int | None = None

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Provide the pipe in this block, for this user only, replacing any file of that name."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
            os.mkfifo(self.path, 0o600)
        try:
            yield self
        finally:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)

    def wake(self) -> None:
        """End the current or next sleep of the waiting process."""
        with suppress(OSError):  # no process sleeps, or it has been woken often already
            end = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(end, b"\0")
            finally:
                os.close(end)

    def waking_before(self, call: Callable[..., T]) -> Callable[..., T]:
        """Return ``call`` such that each call first wakes the sleeping process."""

        def waking(*arguments: Any, **named: Any) -> T:
            self.wake()
            return call(*arguments, **named)

        return waking

    def sleep(self, seconds: float) -> None:
        """Replace Flower's ``time.sleep``; a byte in the pipe ends it."""
        with suppress(OSError):
            if self._end is None:
                self._end = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)  # as a writer too, so that it never closes
            if not select.select([self._end], [], [], seconds)[0] or os.read(self._end, _MOST_BYTES):
                return  # a plain file has nothing to read, and ends no sleep
        time.sleep(seconds)


def once_a_second(look: Callable[[Any], None], clock: Callable[[], float] = time.monotonic) -> Callable[[Any], None]:
    """Limit a method to one call a second; an expired task is noticed that much later."""
    last = -math.inf

    def now_and_then(self: Any) -> None:
        nonlocal last
        if (now := clock()) >= last + 1:
            last = now
            look(self)

    return now_and_then
