"""State how long counted work takes, in lines: for a log, where no terminal shows a bar."""

from __future__ import annotations

import time
from collections.abc import Callable

_LONG_MINUTES = 2
_OFTEN = 30.0
"""Seconds between two lines."""


def duration(seconds: float) -> str:
    """Return a duration in words, rounded.

    Example:
        >>> from privstats.printable.pace import duration
        >>> duration(0.4), duration(95), duration(540), duration(9_000)
        ('1 second', '95 seconds', '9 minutes', '2.5 hours')
    """
    if seconds < 60 * _LONG_MINUTES:
        whole = max(1, round(seconds))
        return f"{whole} second{'' if whole == 1 else 's'}"
    return f"{seconds / 60:.0f} minutes" if seconds < 3600 * _LONG_MINUTES else f"{seconds / 3600:.1f} hours"


class Pace:
    """A count of finished work that states in lines how long the rest takes.

    Args:
        patience: seconds without a line at the beginning.
        say: accepts one line.
        clock: the time in seconds.

    Example:
        >>> from privstats.printable.pace import Pace
        >>> times = iter([0.0, 1.0, 10.0, 20.0, 50.0])
        >>> pace = Pace("sweeping", 80, patience=2.0, say=print, clock=lambda: next(times))
        >>> for _ in range(4):
        ...     pace.advance(10)
        sweeping: 20 of 80, about 30 seconds left
        sweeping: 40 of 80, about 50 seconds left
    """

    def __init__(
        self,
        label: str,
        total: int | None,
        *,
        patience: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label, self._total, self._say, self._clock = label, total, say, clock
        self._began, self._done = clock(), 0
        self._next = self._began + patience

    def advance(self, count: int) -> None:
        """Add finished work; print a line after the patience, and then every half minute."""
        self._done += count
        now = self._clock()
        if now < self._next or self._done == self._total:
            return
        self._next = now + _OFTEN
        if self._total is None or not self._done:
            self._say(f"{self._label}: {self._done:,} so far, in {duration(now - self._began)}")
            return
        left = (now - self._began) * (self._total - self._done) / self._done
        self._say(f"{self._label}: {self._done:,} of {self._total:,}, about {duration(left)} left")
