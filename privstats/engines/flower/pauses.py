"""How long a node of Flower's waits before it looks for a message again.

Flower's node sleeps 3 s whenever it finds none (``flwr/supernode/start_client_internal.py``). A step of a session then
waits for the slowest of n such sleeps. Here the first wait after a message is short, and each one doubles the last.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Pauses"]

_IDLE_SECONDS = 3.0
"""What Flower sleeps where it found no message; any other sleep of that module waits for an answer of our own."""

_FIRST_SECONDS = 0.1
_ANSWER_SECONDS = 0.05


class Pauses:
    """What Flower's node takes for the module ``time``: its sleeps, shortened while a session goes on.

    Args:
        sleep: waits so many seconds.
        longest: seconds between two looks at a server that has had nothing to say for a while.

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

    def __init__(self, sleep: Callable[[float], None], longest: float = _IDLE_SECONDS) -> None:
        self._sleep, self._longest = sleep, longest
        self._next = _FIRST_SECONDS

    def sleep(self, seconds: float) -> None:
        """Wait in place of Flower's ``time.sleep``."""
        if seconds != _IDLE_SECONDS:
            self._next = _FIRST_SECONDS
            self._sleep(min(seconds, _ANSWER_SECONDS))
            return
        self._sleep(min(self._next, self._longest))
        self._next = min(2 * self._next, self._longest)
