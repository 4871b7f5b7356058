"""Limit the cost of one unauthenticated host, or one sender, by counts in memory."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from privstats.contrib.http.exchange import CLOSE, NO_HEADERS, Refused

_MOST_ADDRESSES = 1 << 16
_MOST_OPENINGS, _HOUR = 5, 3600.0


class Penalties:
    """Bad signatures by address, in a bucket that refills in one second.

    A full bucket closes the next bad signature's connection. The address is never blocked, because many people may
    share it.

    Args:
        rate: bad signatures per second.
        clock: monotonic seconds.
    """

    def __init__(self, rate: int, clock: Callable[[], float]) -> None:
        self._rate, self._clock = rate, clock
        self._used: dict[str, tuple[float, float]] = {}  # how full, and when

    def add(self, peer: str) -> Mapping[str, str]:
        """Count a bad signature; return headers that end the connection when full."""
        level = self._level(peer)
        if level > self._rate - 1:
            return CLOSE
        self._used[peer] = level + 1, self._clock()
        if len(self._used) > _MOST_ADDRESSES:
            self._used = {each: used for each, used in self._used.items() if self._level(each) > 0}
        return NO_HEADERS

    def _level(self, peer: str) -> float:
        level, since = self._used.get(peer, (0.0, 0.0))
        return max(0.0, level - self._rate * (self._clock() - since))


class Openings:
    """Unopenable bodies by sender, five an hour; counted after the signature, so no sender can lock out another."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: dict[int, deque[float]] = {}

    def check(self, sender: int) -> None:
        """Raise ``Refused`` for a sender that has used up its openings."""
        times = self._times.get(sender)
        while times and self._clock() - times[0] >= _HOUR:
            times.popleft()
        if times is not None and len(times) >= _MOST_OPENINGS:
            raise Refused("rate")

    def add(self, sender: int) -> None:
        """Count a body that did not open."""
        self._times.setdefault(sender, deque()).append(self._clock())


class BrokenOff:
    """Senders that held room within the hour without an accepted report."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: dict[int, float] = {}

    def lately(self, sender: int) -> bool:
        """Return whether this sender failed within the hour."""
        return self._clock() - self._times.get(sender, -math.inf) < _HOUR

    @contextmanager
    def counting(self, sender: int) -> Iterator[None]:
        """Count this sender until the block completes."""
        self._times[sender] = self._clock()
        yield
        del self._times[sender]


class BytesInFlight:
    """Bytes of bodies being received; excess bodies wait unread, in order.

    Args:
        most: bytes; one body alone may exceed it.
        seconds: limit on a body's wait.
    """

    def __init__(self, most: int, seconds: float = 10.0) -> None:
        self._most, self._seconds = most, seconds
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.held = 0

    async def take(self, size: int) -> None:
        """Wait for room; else raise ``Refused`` (``busy``)."""
        if not self._waiting and self._fits(size):
            self.held += size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            async with asyncio.timeout(self._seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.give_back(size)
            else:
                self._waiting.remove((size, turn))
                self._admit()
            if isinstance(error, TimeoutError):
                raise Refused("busy") from None
            raise

    def give_back(self, size: int) -> None:
        """Free room."""
        self.held -= size
        self._admit()

    def _fits(self, size: int) -> bool:
        return self.held == 0 or self.held + size <= self._most

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size, turn = self._waiting.popleft()
            if not turn.done():
                self.held += size
                turn.set_result(None)


@contextmanager
def one_at_a_time(busy: set[int], sender: int) -> Iterator[None]:
    """Hold a sender's one slot, or raise ``Refused``."""
    if sender in busy:
        raise Refused("in_progress")
    busy.add(sender)
    try:
        yield
    finally:
        busy.discard(sender)
