"""SLOT-Align's maps on a federation of digits: each client's rows on their way to a common Gaussian.

``benchmarks.alignment`` has the records, the partition and the references; this is only the map itself, so that any
method can stand behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.alignment.digits5 import Digits
from benchmarks.alignment.methods import STRENGTH, Clients
from benchmarks.alignment.partitions import one_a_domain
from benchmarks.papers.slot.downstream import Array, Shards, Train
from privstats.contrib.alignment import distance, transport

__all__ = ["World", "contraction"]


@dataclass(frozen=True)
class World:
    """One draw of the clients, one a source.

    Attributes:
        clients: their training records and Gaussians.
        tests: rows and labels for testing, of every client's source.
    """

    clients: Clients
    tests: Shards

    @classmethod
    def draw(cls, digits: Digits, alpha: float, rng: np.random.Generator) -> World:
        """Labels skewed by a Dirichlet draw per class."""
        parts = one_a_domain(digits.labels, digits.source, np.flatnonzero(~digits.test), alpha, rng)
        rows = tuple(digits.rows[part.train] for part in parts)
        labels = tuple(digits.labels[part.train] for part in parts)
        tested = [np.flatnonzero(digits.test & (digits.source == part.domain)) for part in parts]
        return cls(Clients(rows, labels), [(digits.rows[where], digits.labels[where]) for where in tested])

    @property
    def shards(self) -> Shards:
        """Every client's training rows and labels."""
        return list(zip(self.clients.rows, self.clients.labels, strict=True))

    def maps(self, reference: Array, strength: float = STRENGTH) -> list[Callable[[Array], Array]]:
        """Every client's map, ``strength`` of the way to the reference's covariance and the common mean."""
        return [self._map(client, reference, strength) for client in range(len(self.clients.rows))]

    def accuracy(self, train: Train, reference: Array | None, seed: int, strength: float = STRENGTH) -> float:
        """Mean over the clients of the accuracy on their source's whole test set, %.

        Args:
            train: the method behind the maps.
            reference: where they lead; None leaves every row where it is.
            seed: of what the method draws.
            strength: tau, how much of the way rows go.
        """
        maps = [_stay] * len(self.tests) if reference is None else self.maps(reference, strength)
        moved = [(move(X), y) for move, (X, y) in zip(maps, self.shards, strict=True)]
        predict = train(moved, np.random.default_rng(seed))
        right = [(predict(move(X)) == y).mean() for move, (X, y) in zip(maps, self.tests, strict=True)]
        return 100 * float(np.mean(right))

    def mean_covariance(self) -> Array:
        """The weighted mean of the clients' covariances: what one would take without the geometry."""
        shares = self.clients.counts / self.clients.counts.sum()
        return np.asarray(np.tensordot(shares, np.stack(self.clients.covariances), 1))

    def _map(self, client: int, reference: Array, strength: float) -> Callable[[Array], Array]:
        mean, d = self.clients.means[client], len(reference)
        matrix = (1 - strength) * np.eye(d) + strength * transport(self.clients.covariances[client], reference)
        target = (1 - strength) * mean + strength * self.clients.mean
        return lambda rows: target + (rows - mean) @ matrix


def _stay(rows: Array) -> Array:
    return rows


def contraction(world: World, strength: float) -> float:
    """Largest difference, over the clients, between W_2 after a map and (1 - strength) W_2 before, as a share of it."""
    reference, worst = world.clients.reference(None), 0.0
    for client, covariance in enumerate(world.clients.covariances):
        mean = world.clients.means[client]
        matrix = (1 - strength) * np.eye(len(mean)) + strength * transport(covariance, reference)
        after = (1 - strength) * (mean - world.clients.mean)
        before = np.hypot(distance(covariance, reference), np.linalg.norm(mean - world.clients.mean))
        moved = np.hypot(distance(matrix @ covariance @ matrix, reference), np.linalg.norm(after))
        worst = max(worst, abs(float(moved / ((1 - strength) * before)) - 1))
    return worst
