"""Whether a date has passed, before anything that cannot be taken back is done because of it.

One look at a clock is not enough: a clock that is wrong for a minute would destroy a run's keys, and with them its sum.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal, TypeAlias

from privstats.errors import LocalProtocolError
from privstats.files.atomic import atomic_write
from privstats.system import open_plain

CONFIRMING_SECONDS = 24 * 3600
"""Seconds between the first look at a clock after a date, and the earliest one that confirms it."""

Look: TypeAlias = Literal["before", "seen", "waiting", "passed"]
"""A date lies ahead; has passed as seen now for the first time; as seen less than a day ago; has passed."""

_SUFFIX = ".ends"
_MOST_DIGITS = 40


class UnconfirmedEndError(LocalProtocolError):
    """A secret's date has passed by this machine's clock alone: it answers nothing, and is not destroyed yet.

    Attributes:
        first: whether this was seen for the first time.

    Example:
        >>> from privstats.engines.carriers import UnconfirmedEndError
        >>> UnconfirmedEndError("the box key has ended by this machine's clock", first=True).first
        True
    """

    def __init__(self, sentence: str, *, first: bool) -> None:
        self.first = first
        super().__init__(sentence)


def look(until: float, path: Path, *, now: float | None = None, confirming: float | None = None) -> Look:
    """Look at the clock; the first look after a date is noted next to ``path``, which the date is of.

    Guarantee: ``"passed"`` only if two looks at least ``confirming`` seconds apart both found the date passed, and no
    look between them found that it lies ahead.

    Args:
        until: Unix time in seconds; 0 has always passed, whatever the clock shows.
        now: Unix time in seconds; by default that of this machine's clock.
        confirming: seconds between the two looks; by default a day.

    Raises:
        PrivstatsError: the first look cannot be noted.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import look
        >>> look(until=1 << 40, path=Path("key")), look(until=1, path=Path("key")), look(until=1, path=Path("key"))
        ('before', 'seen', 'waiting')
    """
    if not until:
        return "passed"
    mark, now = path.with_name(path.name + _SUFFIX), time.time() if now is None else now
    first = _noted(mark)
    if now < until:
        mark.unlink(missing_ok=True)
        return "before"
    if not until <= first <= now:
        atomic_write(mark, f"{now!r}\n".encode())
        return "seen"
    return "passed" if now >= first + (CONFIRMING_SECONDS if confirming is None else confirming) else "waiting"


def forget_look(path: Path) -> None:
    """Remove the note of an earlier look.

    Example:
        >>> from pathlib import Path
        >>> from privstats.engines.carriers import forget_look, look
        >>> _ = look(until=1, path=Path("key"))
        >>> forget_look(Path("key"))
        >>> look(until=1, path=Path("key"))
        'seen'
    """
    path.with_name(path.name + _SUFFIX).unlink(missing_ok=True)


def _noted(mark: Path) -> float:
    try:
        with open_plain(mark) as file:
            return float(file.read(_MOST_DIGITS))
    except (OSError, ValueError):
        return -1.0
