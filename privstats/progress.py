"""Count work for the one progress bar.

Only the outermost bar is shown, on standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import parent_process
from threading import Lock, Timer
from typing import TypeVar

Item = TypeVar("Item")

PATIENCE = 2.0
"""Seconds that work may take without a bar."""

SWITCH = "PRIVSTATS_PROGRESS"
"""The environment variable that turns bars off, as ``0``."""

_DRAWN = Lock()  # held by the outermost bar


@contextmanager
def progress_bar(label: str, total: int | None = None, *, at_once: bool = False) -> Iterator[Callable[[int], None]]:
    """Count work, and show the count on a terminal after two seconds.

    Args:
        total: the amount of work, if known.
        at_once: show it from the beginning, also without a terminal.

    Yields:
        A function that adds an amount of finished work.
    """
    if not (at_once or _seen()) or not _DRAWN.acquire(blocking=False):
        yield lambda _: None
        return
    from privstats.printable.bar import Bar  # late: needed only where a person watches

    bar = Bar(label, total, transient=not at_once)
    timer = Timer(PATIENCE, bar.draw)
    timer.daemon = True
    try:
        if at_once:
            bar.draw()
        else:
            timer.start()
        yield bar.advance
    finally:
        timer.cancel()
        bar.close()
        _DRAWN.release()


def track(label: str, items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items, each counted by a :func:`progress_bar` when done."""
    with progress_bar(label, len(items)) as advance:
        for item in items:
            yield item
            advance(1)


def _seen() -> bool:
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return terminal and parent_process() is None and os.environ.get(SWITCH) != "0"
