"""Whether the date has passed on which a run stops accepting reports: what closes stays closed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from privstats.engines.carriers import WarningLine, forget_look, look

CONFIRMING_SECONDS = 3600.0
"""Seconds for which a clock that has jumped past the date must show so."""

_TOLERANCE_SECONDS = 60.0


@dataclass
class Closing:
    """A date that two readings of the time must agree has passed.

    The machine's clock alone may be wrong for a minute. The second reading is the time that this process has counted
    since the clock was last before the date. After a start, or where the two differ, it is the clock an hour later.

    Attributes:
        date: Unix seconds.
        note: the path next to which the first of two looks is noted.
        now: Unix seconds, by this machine's clock.
        counted: seconds that no setting of the clock moves.
    """

    date: float
    note: Path
    say: Callable[[str], None]
    now: Callable[[], float] = time.time
    counted: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._before: tuple[float, float] | None = None

    def passed(self) -> bool:
        """Return whether the date has passed, by both readings.

        Raises:
            PrivstatsError: the first of two looks cannot be noted.
        """
        now, counted = self.now(), self.counted()
        if now < self.date:
            self._before = now, counted
        elif self._before is not None and self._counts_to_the_date(*self._before, counted):
            return True
        found = look(self.date, self.note, now=now, confirming=CONFIRMING_SECONDS)
        if found == "seen":
            end = datetime.fromtimestamp(self.date, UTC)
            self.say(
                WarningLine(
                    "by this machine's clock, which jumped or was not read before, reports closed at "
                    f"{end:%Y-%m-%d %H:%M} UTC: they stay open for an hour more. Set the clock if it is wrong; "
                    "`privstats http close` closes them now"
                )
            )
        return found == "passed"

    def forget(self) -> None:
        """Remove the note, once the reports are closed."""
        forget_look(self.note)

    def _counts_to_the_date(self, wall: float, then: float, counted: float) -> bool:
        return wall + (counted - then) >= self.date - _TOLERANCE_SECONDS
