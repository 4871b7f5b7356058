"""A canary through a whole stream, by way of its party's registry, against the promise of all epochs together.

A server that lies wherever it can plays the worst ways in which a record enters, leaves and is late. What it collects
is released by the real path, and a likelihood ratio over all nodes bounds mu from below as in ``canary``. The canary is
a record, a whole client, or a person of more rows than count in full; under replace-one another takes its place, in the
same epoch or in another one.

A lying server asks for every node again under other runs and is silent after every upload; the party's own ledger, its
registry and the library's checks decide what it sends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.streams import Pending, PersonRegistry, PersonRows, RecordRegistry, Stream
from privstats.course import spend
from privstats.dp import Ledger, gaussian_epsilon
from privstats.errors import LedgerError
from privstats.moments import Moments
from privstats.printable import at_most, delta_text
from privstats.progress import track
from privstats.randomness import Generator
from threat_models.audits.canary import GROUP_MU, lower_bounds
from threat_models.audits.course import canary_of, copies_of
from threat_models.audits.stream_target import StreamTarget, stream_target
from threat_models.audits.verdict import Report
from threat_models.made_up import sums_of

_TOLERANCE = 1e-6
_MOST_ENTRIES = 200_000_000
_COLUMNS = ("what", "sessions", "refused", "mu claimed", "mu moved", "mu at least", "ratio", "verdict")

Integers = NDArray[np.int64]

_DATASET, _RUN = "canary", b"stream under audit"
_RUN_BYTES = 16


@dataclass(frozen=True, eq=False)
class _World:
    """The canary's share of the nodes' sums, or its replacement's: times per node, and the flat vector."""

    stands: Stands
    vector: Integers

    def sums(self, copies: int) -> Integers:
        """``(nodes, size)``, for a group of copies."""
        return copies * np.outer(self.stands.times, self.vector)


def audit_stream(
    stream: Stream, rng: Generator, *, asks: int = 4, trials: int = 2000, confidence: float = 0.95
) -> Report:
    """Lower bounds on mu of everything that a lying server gets of one record over all epochs.

    A row is violated when what the canary moves, or what trials prove, is above the mu of the stream's own epsilon and
    delta. The confidence is that of the whole table.

    Args:
        asks: how often the server asks for every node.
        trials: plays of the whole stream with the canary and without it, at most.

    Raises:
        PlanError: a stream without DP.
    """
    target = stream_target(stream)
    claimed = target.promise.mu
    pairs = [(play.name, *_worlds(target, play, other, rng, asks)) for play, other in _pairs(target)]
    trials = max(100, min(trials, _MOST_ENTRIES // _cost(target)))
    level = 1 - (1 - confidence) / len(pairs)
    rows = []
    for name, present, absent in pairs:
        moved, result = _measured(target, present, absent, rng, trials, level)
        wrong = max(result, moved / (1 + _TOLERANCE)) > claimed * (1 + _TOLERANCE)
        counts = (present.stands.sessions, present.stands.refused)
        rows.append((name, *counts, claimed, moved, result, result / claimed, "violates" if wrong else "no evidence"))
    violated = any(row[-1] == "violates" for row in rows)
    hidden = ("mu moved", "verdict")
    return Report("stream", _COLUMNS, tuple(rows), _notes(target, trials, asks, confidence), violated, json_only=hidden)


def _pairs(target: StreamTarget) -> list[tuple[Play, Play]]:
    """Every play of the canary, and that of what is in its place; under replace-one also in another epoch."""
    results = [(play, play) for play in plays(target)]
    if target.promise.adjacency == "replace-one" and target.stream.epochs > 1:
        first = results[0][0]
        other = replace(first, enters=0 if first.enters else target.stream.epochs - 1)
        results.append((replace(first, name="replaced in another epoch"), other))
    return results


def _worlds(target: StreamTarget, play: Play, other: Play, rng: Generator, asks: int) -> tuple[_World, _World]:
    """The world with the canary, and the one with nothing, or with another record, in its place."""
    schema, copies = target.stream.first.schema, copies_of(target.node.privacy)
    X, y = canary_of(schema, rng)
    results = []
    for which, way in ((0, play), (1, other)):
        records = np.repeat(X[which : which + 1], copies, axis=0), np.repeat(y[which : which + 1], copies, axis=0)
        vector = target.node.exact(_moments(target, *records))
        results.append(_World(stands(target, way, records, rng, asks), vector))
    present, absent = results
    if target.promise.adjacency == "add-remove":
        absent = replace(absent, vector=np.zeros_like(absent.vector))
    return present, absent


def _moments(target: StreamTarget, X: Any, y: Any) -> Moments:
    """The canary's sums: of one person under a promise per person."""
    clip = target.stream.first.person_clip
    named: Any = {} if clip is None else {"persons": ["canary"] * len(X), "person_clip": clip}
    return sums_of(target.stream.first.schema, X, y, **named)


def _measured(
    target: StreamTarget, present: _World, absent: _World, rng: Generator, trials: int, confidence: float
) -> tuple[float, float]:
    """mu by what the canary moves in declared deviations, and the mu that trials prove."""
    levels = target.levels()
    shift = np.outer(target.moved(present.stands.times.tolist()), present.vector) - np.outer(
        target.moved(absent.stands.times.tolist()), absent.vector
    )
    moved = float(np.linalg.norm(shift / levels))
    if not moved:
        return 0.0, 0.0
    copies, weights = max(1, round(GROUP_MU / moved)), shift / levels**2 / moved
    nodes = [place for place in range(len(shift)) if target.correlated or shift[place].any()]
    scores = []
    for world in (absent, present):
        sums = world.sums(copies)
        mean = np.outer(target.moved(world.stands.times.tolist()), copies * world.vector)
        played = (_score(target, nodes, sums, mean, weights, rng) for _ in track("playing", range(trials)))
        scores.append(np.fromiter(played, np.float64, trials))
        scores[-1] += float(np.sum(mean * weights))
    return moved, lower_bounds(scores[0], scores[1], confidence, target.promise.delta).mu / copies


def _score(target: StreamTarget, nodes: list[int], sums: Integers, mean: Any, weights: Any, rng: Generator) -> float:
    """One play of the stream, less what its world puts there: so large a mean would cost the sum its last digits."""
    seen = target.seen([sums[node] for node in nodes], rng)
    return float(np.sum((seen - mean[nodes]) * weights[nodes]))


def _cost(target: StreamTarget) -> int:
    """Entries that one trial draws and adds up."""
    nodes, size = target.stream.most, target.node.layout.size
    return 2 * size * (nodes * nodes // 2 if target.correlated else (1 + target.node.worst_noise) * min(nodes, 32))


def _notes(target: StreamTarget, trials: int, asks: int, confidence: float) -> tuple[str, ...]:
    privacy, stream = target.node.privacy, target.stream
    return (
        f"{trials} plays of {stream.epochs} epochs ({stream.mechanism}), with and without; the server asks {asks} "
        "times for each node and is silent after every upload; the party's registry decides what is sent",
        f"claimed: mu of the stream's own epsilon {target.promise.epsilon:g} at delta {delta_text(privacy.delta)}; its "
        f"price is mu {at_most(stream.mu)}, epsilon {at_most(gaussian_epsilon(stream.mu, privacy.delta))}",
        f"worst sessions of the {privacy.model} model; the canary is one {privacy.unit}, {privacy.adjacency}; "
        f"{confidence:.0%} confidence for the table",
    )


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
    results = [Play("stays", longest)]
    if last:
        late = frozenset({min(longest, last - 1)})
        results.append(Play("late", min(longest, last - 1), away=late))
    if last and target.stream.deletions:
        apart = np.triu(squares[:, None] + squares[None, :] - 2 * gram, 1)
        enters, leaves = (int(each) for each in np.unravel_index(np.argmax(apart), apart.shape))
        results.append(Play("leaves", enters, leaves))
        if leaves < last:
            results.append(Play("leaves late", enters, leaves, frozenset({leaves})))
    return tuple(results)


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
        privacy = target.node.privacy
        self._persons = privacy.unit == "person"
        self._ids = ["canary"] if self._persons else [f"canary {place}" for place in range(len(self._X))]
        ledger = Ledger.create(path)
        cap = {"epsilon": min(100.0, 2 * gaussian_epsilon(self._stream.mu, privacy.delta) + 1), "delta": privacy.delta}
        ledger.set_cap(_DATASET, unit=privacy.unit, adjacency=privacy.adjacency, **cap)
        entry = spend(self._stream, ledger, _DATASET, _RUN)
        kind: Any = PersonRegistry if self._persons else RecordRegistry
        self._book = kind.open(self._stream, ledger, entry, rng.bytes(32))

    def note(self, play: Play, epoch: int) -> None:
        """Write into the book who has come or gone by this epoch."""
        state = self._book.state(self._ids[0])
        if state == "new" and epoch >= play.enters:
            self._book.enter(self._rows if self._persons else self._ids)
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
        charge = self._book.charge(plan, [None] * node, pending)
        run = self._rng.bytes(_RUN_BYTES)
        charge.check_moments(self._delta(pending))
        charge.spend(plan, run)
        charge.finish(plan, run, upload=run)

    @property
    def _rows(self) -> PersonRows:
        """All rows of the one person that the canary is."""
        return PersonRows.of(self._X, self._y, self._ids * len(self._X))

    def _delta(self, pending: Pending) -> Moments:
        if self._persons:
            return self._book.delta(pending, self._rows)  # type: ignore[no-any-return]
        return self._book.delta(  # type: ignore[no-any-return]
            pending, *(self._measured(each) for each in (pending.entering, pending.leaving))
        )

    def _measured(self, ids: Sequence[str]) -> Moments | None:
        rows = [self._ids.index(each) for each in ids]
        return sums_of(self._stream.first.schema, self._X[rows], self._y[rows]) if rows else None
