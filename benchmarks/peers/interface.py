"""What every peer sees and gives back: shards in, an outcome out. The seam of this room.

A peer is a frozen value with its hyperparameters and one method, ``fit(shards) -> Outcome``. It holds no records, and
``Shards`` holds no model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Split
from privstats.randomness import seeded
from privstats.workflows.simulate import dirichlet_partition

__all__ = ["DELTA", "Outcome", "Part", "Peer", "Shards", "dealt"]

DELTA = 1e-5
"""Of every promise."""
Part: TypeAlias = tuple[NDArray[np.float32], NDArray[np.intp]]
"""One party: rows (n_k, d) of norm 1, and labels 0 to C - 1."""


@dataclass(frozen=True)
class Outcome:
    """A peer's result and its cost.

    Attributes:
        score: accuracy on the test records, in percent.
        bytes: what all parties sent and received together, in all rounds.
        seconds: processor seconds of all parties and the server together, in one process with one BLAS thread.
        rounds: how often every party was asked.
        epsilon: of the promise, at delta 1e-5; infinite where none is made.
        unit: whom the promise is for, "record" or "party"; empty where none is made.
    """

    score: float
    bytes: int
    seconds: float
    rounds: int
    epsilon: float = math.inf
    unit: str = ""


@dataclass(frozen=True)
class Shards:
    """Records as their parties hold them, and test records that nobody trains on.

    Attributes:
        parts: one per party, none of them empty.
        X_test, y_test: rows (m, d) and labels.
        classes: C, which everybody knows.
        seed: of the partition, and of whatever the peer draws.
    """

    parts: tuple[Part, ...]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.intp]
    classes: int
    seed: int

    @property
    def features(self) -> int:
        """d."""
        return int(self.X_test.shape[1])

    @property
    def records(self) -> int:
        """n, of all parties."""
        return sum(len(y) for _, y in self.parts)

    @property
    def record_bytes(self) -> int:
        """All records in single precision, and a byte for each label."""
        return self.records * (4 * self.features + 1)

    @cached_property
    def pooled(self) -> Part:
        """All parties' records in one place, for peers that need them there."""
        return np.concatenate([X for X, _ in self.parts]), np.concatenate([y for _, y in self.parts])

    @property
    def split(self) -> Split:
        """The pooled records and the test records as the other benchmarks take them."""
        X, y = self.pooled
        return X.astype(np.float64), self.X_test.astype(np.float64), y, self.y_test

    def accuracy(self, scores: NDArray[Any]) -> float:
        """In percent, of scores ``(m, C)`` of the test records."""
        return 100 * float((scores.argmax(axis=1) == self.y_test).mean())

    def held_out(self, most: int = 10_000) -> Shards:
        """The same parties with every fifth record kept back, which becomes the test: what peers are tuned on.

        Args:
            most: about so many records are kept in all, so that a search on a large set stays affordable.
        """
        rng = np.random.default_rng(self.seed)
        kept, back = [], []
        for X, y in self.parts:
            order = rng.permutation(len(y))[: max(2, math.ceil(len(y) * min(1.0, most / self.records)))]
            fit, held = (order, order[:0]) if len(order) < 2 else np.split(order, [math.ceil(0.8 * len(order))])
            kept.append((X[fit], y[fit]))
            back.append((X[held], y[held]))
        X, y = (np.concatenate([part[place] for part in back]) for place in (0, 1))
        return Shards(tuple(kept), X, y, self.classes, self.seed)


class Peer(Protocol):
    """A system with its hyperparameters."""

    def fit(self, shards: Shards) -> Outcome:
        """Train on the shards as this system does; score on their test records."""
        ...

    def __str__(self) -> str:
        """Its hyperparameters, in words."""
        ...


def dealt(split: Split, parties: int, alpha: float, seed: int) -> Shards:
    """A split dealt to parties, every class in Dirichlet(alpha) shares.

    A party that drew nothing is given one record of the largest, so that all of them can take part.
    """
    X, X_test, y, y_test = split
    owners: list[NDArray[Any]] = list(dirichlet_partition(y, parties, alpha, seeded(seed)))
    for place, mine in enumerate(owners):
        if not len(mine):
            largest = int(np.argmax([len(each) for each in owners]))
            owners[place], owners[largest] = owners[largest][:1], owners[largest][1:]
    parts = tuple((X[mine].astype(np.float32), y[mine]) for mine in owners)
    return Shards(parts, X_test.astype(np.float32), y_test, int(y.max()) + 1, seed)
