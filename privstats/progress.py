"""Count work for the one progress bar, which also states the seconds left.

Only the outermost bar is shown, on standard error. A command that runs without a terminal states the same in lines.
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
_SPEAKING: list[Callable[[str], None]] = []  # at most one: what prints a command's lines


@contextmanager
def speaking(say: Callable[[str], None]) -> Iterator[None]:
    """Have long work state in lines how long it takes, where standard error is no terminal.

    Example:
        >>> from privstats.progress import progress_bar, speaking
        >>> with speaking(print), progress_bar("adding", total=2) as advance:
        ...     advance(1)  # within two seconds nothing is printed
    """
    before = _SPEAKING[:]
    _SPEAKING[:] = [say]
    try:
        yield
    finally:
        _SPEAKING[:] = before


@contextmanager
def progress_bar(
    label: str, total: int | None = None, *, at_once: bool = False, lines: bool = True
) -> Iterator[Callable[[int], None]]:
    """Count work, and show the count on a terminal after two seconds.

    Args:
        total: the amount of work, if known.
        at_once: show it from the beginning, also without a terminal.
        lines: whether a command without a terminal states in lines how long it takes; False where the caller does.

    Yields:
        A function that adds an amount of finished work.
    """
    seen = at_once or _seen()
    if not (seen or (lines and _heard())) or not _DRAWN.acquire(blocking=False):
        yield lambda _: None
        return
    if not seen:
        from privstats.printable.pace import Pace

        try:
            yield Pace(label, total, patience=PATIENCE, say=_SPEAKING[0]).advance
        finally:
            _DRAWN.release()
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
    return sys.stderr is not None and sys.stderr.isatty() and _wanted()


def _heard() -> bool:
    return bool(_SPEAKING) and sys.stderr is not None and _wanted()


def _wanted() -> bool:
    return parent_process() is None and os.environ.get(SWITCH) != "0"
