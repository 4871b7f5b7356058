"""A canary through a whole stream, by way of its party's registry, against the promise of all epochs together.

A server that lies wherever it can plays the worst ways of a record to come, go and be late. What it collects is
released by the real path, and a likelihood ratio over all nodes bounds mu from below as in ``canary``. The canary is a
record or a whole client; under replace-one another takes its place, in the same epoch or in another one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.course import Stream
from privstats.dp import gaussian_epsilon
from privstats.moments import exact_moments
from privstats.progress import track
from privstats.randomness import Generator
from threat_models.audits.canary import GROUP_MU, lower_bounds
from threat_models.audits.course import canary_of, copies_of
from threat_models.audits.stream_plays import Play, Stands, plays, stands
from threat_models.audits.stream_target import StreamTarget, stream_target
from threat_models.audits.verdict import Report

__all__ = ["audit_stream"]

_TOLERANCE = 1e-6
_MOST_ENTRIES = 200_000_000
_COLUMNS = ("what", "sessions", "refused", "mu claimed", "mu moved", "mu at least", "ratio", "verdict")

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _World:
    """The canary's share of the nodes' sums, or its replacement's: times per node, and the flat vector."""

    stands: Stands
    vector: Whole

    def sums(self, copies: int) -> Whole:
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
    each = 1 - (1 - confidence) / len(pairs)
    rows = []
    for name, present, absent in pairs:
        moved, found = _found(target, present, absent, rng, trials, each)
        wrong = max(found, moved / (1 + _TOLERANCE)) > claimed * (1 + _TOLERANCE)
        counts = (present.stands.sessions, present.stands.refused)
        rows.append((name, *counts, claimed, moved, found, found / claimed, "violates" if wrong else "no evidence"))
    violated = any(row[-1] == "violates" for row in rows)
    hidden = ("mu moved", "verdict")
    return Report("stream", _COLUMNS, tuple(rows), _notes(target, trials, asks, confidence), violated, json_only=hidden)


def _pairs(target: StreamTarget) -> list[tuple[Play, Play]]:
    """Every play of the canary, and that of what is in its place; under replace-one also in another epoch."""
    found = [(play, play) for play in plays(target)]
    if target.promise.adjacency == "replace-one" and target.stream.epochs > 1:
        first = found[0][0]
        other = replace(first, enters=0 if first.enters else target.stream.epochs - 1)
        found.append((replace(first, name="replaced in another epoch"), other))
    return found


def _worlds(target: StreamTarget, play: Play, other: Play, rng: Generator, asks: int) -> tuple[_World, _World]:
    """The world with the canary, and the one with nothing, or with another record, in its place."""
    schema, copies = target.stream.first.schema, copies_of(target.node.privacy)
    X, y = canary_of(schema, rng)
    found = []
    for which, way in ((0, play), (1, other)):
        records = np.repeat(X[which : which + 1], copies, axis=0), np.repeat(y[which : which + 1], copies, axis=0)
        vector = target.node.exact(exact_moments(schema, *records))
        found.append(_World(stands(target, way, records, rng, asks), vector))
    present, absent = found
    if target.promise.adjacency == "add-remove":
        absent = replace(absent, vector=np.zeros_like(absent.vector))
    return present, absent


def _found(
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


def _score(target: StreamTarget, nodes: list[int], sums: Whole, mean: Any, weights: Any, rng: Generator) -> float:
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
        f"claimed: mu of the stream's own epsilon {target.promise.epsilon:g} at delta {privacy.delta:g}; its price is "
        f"mu {stream.mu:.4g}, epsilon {gaussian_epsilon(stream.mu, privacy.delta):.4g}",
        f"worst sessions of the {privacy.model} model; the canary is one {privacy.unit}, {privacy.adjacency}; "
        f"{confidence:.0%} confidence for the table",
    )
