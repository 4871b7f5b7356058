"""Add up seconds by name, of wall or processor time."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Stopwatch(Generic[K]):
    """A timer with one total per named part of the work; a part that failed counts, too.

    Args:
        clock: ``time.perf_counter`` for wall time, ``time.process_time`` for processor time.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[K, float] = {}
        self._clock = clock

    @contextmanager
    def timing(self, name: K) -> Iterator[None]:
        """Time a block under ``name``."""
        began = self._clock()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self._clock() - began
