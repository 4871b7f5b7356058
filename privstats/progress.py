"""Count work, for the one progress bar: on a terminal only, and only for work that takes longer than two seconds.

All code that counts its work opens a bar, and only the outermost is drawn, so that a sweep shows no bar per fit. The
bar is drawn on standard error; pipes, tests, notebooks and worker processes see nothing. The bar itself is
``printable.bar``.
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
    """Count work, and draw the count on a terminal once the work has taken two seconds.

    Args:
        label: a word or two for the work.
        total: the total amount of work; None where it is unknown.
        at_once: draw from the beginning, and also where standard error is no terminal: the user requested a bar.

    Yields:
        A function that adds an amount of finished work. Inside another bar, and without a terminal, it does nothing.
    """
    if not (at_once or _seen()) or not _DRAWN.acquire(blocking=False):
        yield lambda _: None
        return
    from privstats.printable.bar import Bar  # only where a person watches

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
    """Yield the items one after another, each of them counted by a :func:`progress_bar` when its work is done."""
    with progress_bar(label, len(items)) as advance:
        for item in items:
            yield item
            advance(1)


def _seen() -> bool:
    """Return whether a person can see this process's standard error."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return terminal and parent_process() is None and os.environ.get(SWITCH) != "0"
