"""Draw a progress bar on standard error; rich is loaded when it is drawn."""

from __future__ import annotations

import time
from threading import Lock
from typing import Any

from privstats.printable.pace import duration


class Bar:
    """A count that another thread may draw."""

    def __init__(self, label: str, total: int | None, *, transient: bool) -> None:
        self._label, self._total, self._transient = label, total, transient
        self._lock, self._began, self._done, self._closed = Lock(), time.monotonic(), 0, False
        self._drawn: Any = None

    def advance(self, count: int) -> None:
        """Add finished work."""
        with self._lock:
            self._done += count
            if self._drawn is not None:
                self._drawn.update(self._drawn.task_ids[0], completed=self._done, rest=self._rest)

    @property
    def _rest(self) -> str:
        """The time that the remaining work takes at the pace so far; empty where that is not known."""
        if self._total is None or not 0 < self._done < self._total:
            return ""
        passed = time.monotonic() - self._began
        return f"about {duration(passed * (self._total - self._done) / self._done)} left"

    def draw(self) -> None:
        """Show the count, unless the work has ended."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        counted = TextColumn("{task.completed}") if self._total is None else MofNCompleteColumn()
        rest = TextColumn("{task.fields[rest]}")
        columns = (TextColumn("{task.description}"), BarColumn(), counted, TimeElapsedColumn(), rest)
        with self._lock:
            if self._closed:
                return
            drawn = Progress(*columns, console=Console(stderr=True), transient=self._transient)
            drawn.add_task(self._label, total=self._total, completed=self._done, rest=self._rest)
            drawn.tasks[0].start_time = self._began
            drawn.start()
            self._drawn = drawn

    def close(self) -> None:
        """Remove the bar."""
        with self._lock:
            self._closed = True
            if self._drawn is not None:
                self._drawn.stop()
