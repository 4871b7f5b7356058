"""Hold a ledger's file, clock and expected head, and open its transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Self

from privstats.dp.ledger.accounts import LedgerState, Spend, stored_entry
from privstats.dp.ledger.file import Log, reading, writing
from privstats.dp.ledger.records import Head
from privstats.errors import LedgerError


def now() -> datetime:
    """Return the system's time, UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class LedgerPlace:
    """A ledger's file, which every use opens again; :class:`~privstats.dp.Ledger` documents the arguments."""

    path: str | PathLike[str]
    timeout: float = 10.0
    clock: Callable[[], datetime] = now
    expected_head: str | None = None
    asks: bool = field(default=False, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | PathLike):
            raise LedgerError(f"a ledger is a file: give its path, got {type(self.path).__name__}")
        if self.expected_head is not None:
            Head.parse(self.expected_head, "expected_head")

    @property
    def file(self) -> Path:
        """The path."""
        return Path(self.path)

    @property
    def expected(self) -> Head | None:
        """The parsed ``expected_head``."""
        return None if self.expected_head is None else Head.parse(self.expected_head, "expected_head")

    def stamp(self) -> str:
        """Return the time for a new record."""
        time = self.clock()
        if not isinstance(time, datetime):
            raise LedgerError(f"clock must return a datetime, got {type(time).__name__}; leave it out for the system's")
        return time.isoformat(timespec="milliseconds")

    def asking(self) -> Self:
        """Return this ledger for questions: every call answers, and writes nothing.

        Example:
            >>> ledger = ps.dp.Ledger.create("ledger.sqlite")
            >>> ledger.asking().set_cap("clinic", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
            >>> ledger.accounts()
            ()
        """
        return replace(self, asks=True)

    def accept_restored(self) -> int:
        """Go on with an older copy of this ledger, restored with its folder.

        The ledger forgets every spend after the copy. If anything was sent under those spends, releases of these data
        may exceed the cap by their cost, and a run's name may be used twice. The owner confirms that nothing was sent.
        From the next spend on newer copies are refused. Returns the minimum number of missing records.

        Example:
            >>> ledger = ps.dp.Ledger.create("ledger.sqlite")
            >>> ledger.accept_restored()
            0
        """
        with writing(self.file, self.timeout, expected=self.expected, restored=True) as log:
            return log.missing

    @contextmanager
    def _writing(self) -> Iterator[Log]:
        transaction = reading if self.asks else writing  # a read-only transaction is rolled back
        with transaction(self.file, self.timeout, expected=self.expected) as log:
            yield log

    @contextmanager
    def _reading(self) -> Iterator[Log]:
        with reading(self.file, self.timeout, expected=self.expected) as log:
            yield log

    def _stored(self, log: Log, entry: Spend) -> Spend:
        return stored_entry(LedgerState.of(log.records), entry, self.path)
