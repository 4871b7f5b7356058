"""Call a run's journal in one thread: reports in groups with one disk wait, other calls in between.

A group, refusals and repeats included, is answered once all of it is on the disk: an earlier answer could vouch for
data that a kill loses.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from privstats.contrib.http.exchange import Refused
from privstats.errors import PrivstatsError

TAKEN, AGAIN = "taken", "again"
"""A report is on the disk; and it was there before. Every other verdict is a code of ``exchange.CODES``."""
CONFIRMED: Final = frozenset({TAKEN, AGAIN})

Verdict: TypeAlias = str
T = TypeVar("T")

_MOST_REPORTS, _MOST_BYTES = 256, 8 << 20


class Reports(Protocol):
    """Accepts a group of reports."""

    def receive(self, reports: Sequence[tuple[int, bytes | bytearray]]) -> list[Verdict]:
        """Return verdicts, with accepted reports on the disk."""
        ...


@dataclass
class GroupSizes:
    """Totals so far: groups, their reports, and their seconds."""

    groups: int = 0
    reports: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class _Report:
    sender: int
    data: bytes | bytearray
    answer: asyncio.Future[Verdict]


@dataclass(frozen=True)
class _Call:
    action: Callable[[], Any]
    answer: asyncio.Future[Any]


class _Stop:
    """The last entry."""


_STOP: Final = _Stop()


class Owner:
    """The journal's thread, called from an event loop; it calls ``failed`` there when the journal cannot be written."""

    def __init__(self, reports: Reports, failed: Callable[[Exception], None] = lambda _: None) -> None:
        self._reports, self._failed = reports, failed
        self._queue: SimpleQueue[_Report | _Call | _Stop] = SimpleQueue()
        self._thread = Thread(target=self._work, name="privstats-owner", daemon=True)
        self._gone = self._stopped = False
        self.sizes = GroupSizes()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    async def stop(self) -> None:
        """Finish waiting entries, accept no others, and end the thread."""
        self._stopped = True
        self._queue.put(_STOP)
        while self._thread.is_alive():
            await asyncio.sleep(0.01)

    async def report(self, sender: int, data: bytes | bytearray) -> Verdict:
        """Return the verdict on a report, with its data on the disk."""
        verdict: Verdict = await self._enqueued(lambda answer: _Report(sender, data, answer))
        return verdict

    async def call(self, action: Callable[[], T]) -> T:
        """Return the result of a call in the thread, after all earlier entries.

        Raises:
            Refused: ``restarting``: the journal could not be written.
        """
        result: T = await self._enqueued(lambda answer: _Call(action, answer))
        return result

    def caller(self, loop: asyncio.AbstractEventLoop) -> Callable[[Callable[[], T]], T]:
        """Return a function for other threads that waits for the result of :meth:`call`.

        The function raises ``RuntimeError`` once the journal takes no calls any more.
        """

        def call(action: Callable[[], T]) -> T:
            try:
                return asyncio.run_coroutine_threadsafe(self.call(action), loop).result()
            except Refused as refused:
                raise RuntimeError(f"the journal takes no calls any more: {refused.code}") from None

        return call

    async def _enqueued(self, entry: Callable[[asyncio.Future[Any]], _Report | _Call]) -> Any:
        if self._stopped:
            raise Refused("restarting")
        answer = asyncio.get_running_loop().create_future()
        self._queue.put(entry(answer))
        return await answer

    def _work(self) -> None:
        for batch in self._batches():
            try:
                if self._gone:
                    raise Refused("restarting")
                outcomes: Sequence[Any] = self._outcomes(batch)
            except BaseException as error:  # the caller gets the error; in tests also that of a kill
                outcomes = [self._verdict(error, batch)] * len(batch)
            _deliver(batch, outcomes)

    def _batches(self) -> Iterator[list[_Report] | list[_Call]]:
        entry = self._queue.get()
        while not isinstance(entry, _Stop):
            if isinstance(entry, _Call):
                yield [entry]
                entry = self._queue.get()
                continue
            group, following = self._group(entry)
            yield group
            entry = self._queue.get() if following is None else following

    def _group(self, first: _Report) -> tuple[list[_Report], _Report | _Call | _Stop | None]:
        group, size = [first], len(first.data)
        with suppress(Empty):
            while len(group) < _MOST_REPORTS and size < _MOST_BYTES:
                following = self._queue.get_nowait()
                if not isinstance(following, _Report):
                    return group, following
                group.append(following)
                size += len(following.data)
        return group, None

    def _outcomes(self, batch: list[_Report] | list[_Call]) -> Sequence[Any]:
        if isinstance(batch[0], _Call):
            return [batch[0].action()]
        began = time.perf_counter()
        verdicts = self._reports.receive([(each.sender, each.data) for each in batch])
        self.sizes.groups += 1
        self.sizes.reports += len(batch)
        self.sizes.seconds += time.perf_counter() - began
        return verdicts

    def _verdict(self, error: BaseException, batch: list[_Report] | list[_Call]) -> Exception:
        expected = isinstance(error, Refused | PrivstatsError) and isinstance(batch[0], _Call)
        if expected and isinstance(error, Exception) and not isinstance(error.__cause__, OSError):
            return error
        if not self._gone:
            self._gone = True
            with suppress(RuntimeError):  # the loop has ended
                why = error if isinstance(error, Exception) else RuntimeError(type(error).__name__)
                batch[0].answer.get_loop().call_soon_threadsafe(self._failed, why)
        return Refused("restarting")


def _deliver(batch: Sequence[_Report | _Call], outcomes: Sequence[Any]) -> None:
    def settle() -> None:
        for entry, outcome in zip(batch, outcomes, strict=True):
            if entry.answer.done():  # the caller has gone
                continue
            if isinstance(outcome, Exception):
                entry.answer.set_exception(outcome)
            else:
                entry.answer.set_result(outcome)

    with suppress(RuntimeError):  # the loop has ended
        batch[0].answer.get_loop().call_soon_threadsafe(settle)
