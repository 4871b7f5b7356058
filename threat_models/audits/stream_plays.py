"""How a record may come, go and be late in a stream, and in which nodes its party's registry lets it stand.

The server lies: it asks for every node again under other runs and is silent after every upload. The party's own ledger,
its registry and the library's checks decide what it sends. Built on ``stream_target``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.course import Pending, RecordRegistry, spend
from privstats.dp import Ledger, gaussian_epsilon
from privstats.errors import LedgerError
from privstats.moments import Moments, exact_moments
from privstats.randomness import Generator
from threat_models.audits.stream_target import StreamTarget

__all__ = ["Play", "Stands", "plays", "stands"]

_DATASET, _RUN = "canary", b"stream under audit"
_RUN_BYTES = 16


@dataclass(frozen=True)
class Play:
    """A record's way through a stream.

    Attributes:
        name: in words.
        enters: the epoch at which it comes.
        leaves: the epoch at which it goes; None where it stays.
        away: epochs in which its party takes part in nothing, and catches up later.
    """

    name: str
    enters: int
    leaves: int | None = None
    away: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class Stands:
    """The result of a play.

    Attributes:
        times: how often the record was added to each node less how often it was taken off, ``(nodes,)``.
        sessions, refused: vectors that left with the record in them, and asks that the party refused.
    """

    times: NDArray[np.int64]
    sessions: int
    refused: int


def plays(target: StreamTarget) -> tuple[Play, ...]:
    """The worst ways: a record that stays, one that is late and, where records may leave, one that leaves.

    Worst by the columns of the mechanism: the longest one, and the two that are farthest apart.
    """
    gram = target.columns.T @ target.columns
    squares, last = np.diagonal(gram), target.stream.epochs - 1
    longest = int(np.argmax(squares))
    found = [Play("stays", longest)]
    if last:
        late = frozenset({min(longest, last - 1)})
        found.append(Play("late", min(longest, last - 1), away=late))
    if last and target.stream.deletions:
        apart = np.triu(squares[:, None] + squares[None, :] - 2 * gram, 1)
        enters, leaves = (int(each) for each in np.unravel_index(np.argmax(apart), apart.shape))
        found.append(Play("leaves", enters, leaves))
        if leaves < last:
            found.append(Play("leaves late", enters, leaves, frozenset({leaves})))
    return tuple(found)


def stands(target: StreamTarget, play: Play, records: tuple[Any, Any], rng: Generator, asks: int) -> Stands:
    """The nodes in which the party's registry admits a record, or the records of one client.

    Args:
        target: the stream.
        play: when they come and go.
        records: X and y; all of them enter and leave together.
        rng: for keys and noise.
        asks: how often the server asks for every node.
    """
    with TemporaryDirectory() as folder:
        party = _Party(target, Path(folder) / "party.db", records, rng)
        times = np.zeros(target.stream.most, np.int64)
        refused = 0
        for node, place in enumerate(target.stream.nodes):
            party.note(play, place.epoch)
            if place.epoch in play.away:
                continue
            for pending in party.asked(node, asks):
                if pending is None:
                    refused += 1
                else:
                    times[node] += bool(pending.entering) - bool(pending.leaving)
        return Stands(times, int(np.abs(times).sum()), refused)


class _Party:
    """An honest party: it enters and sends as it should, and its ledger and registry decide what it may."""

    def __init__(self, target: StreamTarget, path: Path, records: tuple[Any, Any], rng: Generator) -> None:
        self._stream, self._rng = target.stream, rng
        self._X, self._y = records
        self._ids = [f"canary {place}" for place in range(len(self._X))]
        privacy = target.node.privacy
        ledger = Ledger.create(path)
        cap = {"epsilon": min(100.0, 2 * gaussian_epsilon(self._stream.mu, privacy.delta) + 1), "delta": privacy.delta}
        ledger.set_cap(_DATASET, unit=privacy.unit, adjacency=privacy.adjacency, **cap)
        entry = spend(self._stream, ledger, _DATASET, _RUN)
        self._book = RecordRegistry.open(self._stream, ledger, entry, rng.bytes(32))

    def note(self, play: Play, epoch: int) -> None:
        """Write into the book who has come or gone by this epoch."""
        state = self._book.state(self._ids[0])
        if state == "new" and epoch >= play.enters:
            self._book.enter(self._ids)
        elif state == "in" and play.leaves is not None and epoch >= play.leaves:
            self._book.leave(self._ids)

    def asked(self, node: int, asks: int) -> Iterator[Pending | None]:
        """The party's changes for a node at each request of the server; None where the party refuses."""
        pending = self._book.pending(node, self._ids)
        if not pending.entering and not pending.leaving:
            return
        for ask in range(asks):
            try:
                self._upload(node, self._book.pending(node, self._ids) if ask else pending)
            except LedgerError:
                yield None
                continue
            yield pending
            with suppress(LedgerError):  # a server that is silent has it all the same; paid repeats are taken
                self._book.lose(node)

    def _upload(self, node: int, pending: Pending) -> None:
        """The calls of ``session.client`` on its charge, before its vector is made and as it is sent; every run is
        new."""
        plan = self._stream.first
        entering, leaving = (self._measured(each) for each in (pending.entering, pending.leaving))
        charge = self._book.charge(plan, [None] * node, pending)
        run = self._rng.bytes(_RUN_BYTES)
        charge.check_moments(self._book.delta(pending, entering, leaving))
        charge.spend(plan, run)
        charge.finish(plan, run, upload=run)

    def _measured(self, ids: Sequence[str]) -> Moments | None:
        rows = [self._ids.index(each) for each in ids]
        return exact_moments(self._stream.first.schema, self._X[rows], self._y[rows]) if rows else None
