"""The polling intervals of a Flower node.

Flower's node sleeps 3 s whenever it finds no message (``flwr/supernode/start_client_internal.py``). A step of a session
then waits for the slowest of n such sleeps. Here the first wait after a message is short, and each further one doubles.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["IDLE", "IDLE_SECONDS", "Pauses"]

IDLE = "PRIVSTATS_IDLE_SECONDS"
"""The variable of a node's environment with its longest polling interval."""

IDLE_SECONDS = 3.0
"""Flower's sleep after it found no message; any other sleep of that module waits for an answer of our own."""

_FIRST_SECONDS = 0.1
_ANSWER_SECONDS = 0.05


class Pauses:
    """A replacement for the module ``time`` in Flower's node, which shortens its sleeps during a session.

    Args:
        sleep: waits for a number of seconds.
        longest: the longest polling interval in seconds, for a server without messages.

    Example:
        >>> waited = []
        >>> pauses = Pauses(waited.append, longest=0.4)
        >>> for _ in range(4):
        ...     pauses.sleep(3)
        >>> pauses.sleep(0.5)  # an answer is on its way
        >>> pauses.sleep(3)
        >>> waited
        [0.1, 0.2, 0.4, 0.4, 0.05, 0.1]
    """

    def __init__(self, sleep: Callable[[float], None], longest: float = IDLE_SECONDS) -> None:
        self._sleep, self._longest = sleep, longest
        self._next = _FIRST_SECONDS

    def sleep(self, seconds: float) -> None:
        """Replacement for Flower's ``time.sleep``."""
        if seconds != IDLE_SECONDS:
            self._next = _FIRST_SECONDS
            self._sleep(min(seconds, _ANSWER_SECONDS))
            return
        self._sleep(min(self._next, self._longest))
        self._next = min(2 * self._next, self._longest)
