"""Sum settled parts beyond the leader's machine, through a store and a cluster.

The journal stores a part's reports until its sum arrives. The leader sums a part that fails three times, and everything
after three such parts in a row or an unexpected error.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, Protocol, TypeVar

from privstats.contrib.parts.part_store import PartStore, StoredPart
from privstats.engines.carriers import JournaledServer, RoundFolder, WarningLine
from privstats.errors import LocalProtocolError, PrivstatsError

T = TypeVar("T")

_AHEAD = 4
_READ_BYTES = 8 << 20
_TRIES = _MOST_IN_A_ROW = 3
_PATIENCE_SECONDS, _FETCH_SECONDS = 600.0, 60.0
_PAUSE_SECONDS, _BACK_OFF_SECONDS = 0.2, 2.0
_STOP_SECONDS = 2.0


class Run(Protocol):
    """A leader's run: the journal that stores its reports, and whether it leaves settled parts unsummed."""

    defers: bool

    @property
    def folder(self) -> RoundFolder:
        """The leader's folder, with plan and roster."""
        ...

    @property
    def journal(self) -> JournaledServer | None:
        """The journal; None before the reports open and after the run's end."""
        ...

    @property
    def ended(self) -> object | None:
        """How the run ended; None while it goes on."""
        ...

    @property
    def say(self) -> Callable[[str], None]:
        """Log a line for the operator."""
        ...

    def tick(self) -> None:
        """Do what is due."""
        ...


class Call(Protocol):
    """Calls a function in the journal's thread and waits for its result.

    Raises:
        RuntimeError: that thread takes no calls any more.
    """

    def __call__(self, action: Callable[[], T], /) -> T:
        """Return the action's result."""
        ...


class Tasks(Protocol):
    """Sums objects: ``contrib.parts.dask.PartTasks``."""

    def submit(self, part: StoredPart, masking: Any, keys: bytes) -> Any:
        """Return a future of the packed sum."""
        ...

    def close(self) -> None:
        """Disconnect."""
        ...


@dataclass(frozen=True)
class Cluster:
    """A store and tasks."""

    store: PartStore
    tasks: Tasks

    @classmethod
    def at(cls, scheduler: str, store: str, folder: RoundFolder) -> Cluster:
        """Return a run's Dask cluster and store; refuse reports with proofs."""
        from privstats.contrib.parts.dask import PartTasks

        if folder.plan.validity is not None:
            raise LocalProtocolError("with [validity] the leader checks proofs and sums itself: omit --cluster")
        return cls(PartStore(store, folder.roster.run.hex()), PartTasks(scheduler))

    def start(self, run: Run, call: Call) -> PartSums:
        """Hand out settled parts, in a thread."""
        sums = PartSums(run, call, self)
        sums.start()
        return sums


@dataclass(frozen=True)
class _Task:
    part: StoredPart
    future: Any
    since: float


class _GoneError(PrivstatsError):
    """The run has ended, or its process ends."""


class _UselessError(PrivstatsError):
    """Nothing comes of the cluster."""


class PartSums:
    """Hands out parts, and collects sums."""

    def __init__(
        self,
        run: Run,
        call: Call,
        cluster: Cluster,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run, self._call, self._store, self._tasks = run, call, cluster.store, cluster.tasks
        masking: Any = run.folder.plan.masking
        self._masking, self._at_once = masking, max(1, _READ_BYTES // masking.upload_bytes)
        self._clock, self._pending = clock, dict[int, _Task]()
        self._failures, self._not_before = Counter[int](), dict[int, float]()
        self._in_a_row, self._stopping = 0, Event()
        self._thread = Thread(target=self._work, name="privstats-part-sums", daemon=True)

    def start(self) -> None:
        """Start the thread, which removes objects of earlier processes."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the next process sums waiting parts."""
        self._stopping.set()
        self._thread.join(_STOP_SECONDS)
        self._tasks.close()

    def _work(self) -> None:
        self._store.clear()
        try:
            while not self._stopping.is_set():
                if not self._turn():
                    self._stopping.wait(_PAUSE_SECONDS)
        except _GoneError:
            pass
        except Exception as error:  # a thread that ends in silence would hold the run up for good
            self._run.say(WarningLine(f"no further sums by the cluster, so the leader sums the rest: {_logged(error)}"))
            with suppress(PrivstatsError):
                self._sum_the_rest()
        finally:
            self._store.clear()

    def _sum_the_rest(self) -> None:
        self._run.defers = False
        self._journal(lambda journal: journal.defer(False))
        for number in self._journal(lambda journal: list(journal.unsummed)):
            self._journal(lambda journal, number=number: journal.sum_part(number))  # type: ignore[misc]
        self._called(self._run.tick)

    def _turn(self) -> bool:
        if self._run.ended is not None:
            raise _GoneError("the run has ended")
        waiting = self._called(lambda: {} if self._run.journal is None else dict(self._run.journal.unsummed))
        done = [number for number in self._pending if number not in waiting or self._is_due(self._pending[number])]
        for number in done:
            self._collect(number)
        ready = [number for number in waiting if number not in {*self._pending, *done} and self._may_begin(number)]
        for number in ready[: max(0, _AHEAD - len(self._pending))]:
            self._begin(number, waiting[number])
        return bool(done or ready)

    def _is_due(self, task: _Task) -> bool:
        return bool(task.future.done()) or self._clock() - task.since > _PATIENCE_SECONDS

    def _may_begin(self, number: int) -> bool:
        return self._clock() >= self._not_before.get(number, 0.0)

    def _begin(self, number: int, senders: Sequence[int]) -> None:
        try:
            part, keys = self._stored(number, senders)
            self._pending[number] = _Task(part, self._tasks.submit(part, self._masking, keys), self._clock())
        except _GoneError:
            raise
        except Exception as error:
            self._failed(number, error)

    def _stored(self, number: int, senders: Sequence[int]) -> tuple[StoredPart, bytes]:
        """Write a few bodies at a time, so that reports are accepted in between."""
        keys: list[bytes] = []

        def pieces() -> Iterator[bytes | memoryview]:
            for first in range(0, len(senders), self._at_once):
                some = senders[first : first + self._at_once]
                for body in self._journal(lambda journal, some=some: journal.sealed(number, some)):  # type: ignore[misc]
                    keys.append(body.opener)
                    yield body.content

        return self._store.put(number, pieces()), b"".join(keys)

    def _collect(self, number: int) -> None:
        task = self._pending.pop(number)
        try:
            if not task.future.done():
                raise TimeoutError
            summed = task.future.result(timeout=_FETCH_SECONDS)
            self._journal(lambda journal: journal.add_part_sum(number, summed))
            self._called(self._run.tick)
            self._in_a_row = 0
        except _GoneError:
            raise
        except Exception as error:
            self._failed(number, error)
        finally:
            task.future.cancel()
            self._store.remove(task.part)

    def _failed(self, number: int, error: Exception) -> None:
        self._failures[number] += 1
        tries = self._failures[number]
        self._not_before[number] = self._clock() + _BACK_OFF_SECONDS * tries
        self._run.say(WarningLine(f"part {number}: not summed by the cluster, try {tries}: {_logged(error)}"))
        if tries >= _TRIES:
            self._journal(lambda journal: journal.sum_part(number) if number in journal.unsummed else None)
            self._run.say(WarningLine(f"part {number}: summed by the leader itself"))
            self._called(self._run.tick)
            self._in_a_row += 1
            if self._in_a_row >= _MOST_IN_A_ROW and self._run.ended is None:
                raise _UselessError(f"nothing came of {self._in_a_row} parts in a row")

    def _journal(self, act: Callable[[JournaledServer], T]) -> T:
        def called() -> T:
            if self._run.journal is None:
                raise _GoneError("the run has ended")
            return act(self._run.journal)

        return self._called(called)

    def _called(self, action: Callable[[], T]) -> T:
        if self._stopping.is_set():
            raise _GoneError("the process ends")
        try:
            return self._call(action)
        except RuntimeError:
            raise _GoneError("the journal takes no calls any more") from None
        except LocalProtocolError as error:
            if self._run.journal is None:
                raise _GoneError(str(error)) from None
            raise


def _logged(error: Exception) -> str:
    """Log our own text, or the error's type: other texts may hold addresses and keys."""
    return str(error) if isinstance(error, PrivstatsError) else type(error).__name__
