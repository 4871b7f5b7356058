"""FedAvg and FedProx with the paper's settings: rate .01, five local epochs, full participation, proximal term .01.

The paper names no batch size; its times (26 us for a local epoch) leave room for a full batch only. So a client's round
is E gradient steps on its mean of half squares, which is an affine map of the global weights, and a round of the
federation is the mean of those maps. :class:`Rounds` forms it once; :func:`stepped` does the same on the records, step
by step, for the times, and a test holds one against the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from benchmarks.papers.ridge.data import Array, Federation

__all__ = ["FEDAVG", "FEDPROX", "Local", "Rounds", "stepped"]


@dataclass(frozen=True)
class Local:
    """What a client does between two messages.

    Attributes:
        rate: eta.
        epochs: E, full-batch steps.
        proximal: mu of FedProx; 0 is FedAvg.
    """

    rate: float = 0.01
    epochs: int = 5
    proximal: float = 0.0


FEDAVG, FEDPROX = Local(), Local(proximal=0.01)


@dataclass(frozen=True)
class Rounds:
    """A federation's rounds as affine maps ``w -> M_k w + c_k`` of its clients, equally weighed.

    Attributes:
        matrices: ``(K, d, d)``.
        shifts: ``(K, d)``.
    """

    matrices: Array
    shifts: Array

    @classmethod
    def of(cls, federation: Federation, local: Local) -> Self:
        """Every client's map."""
        maps = [_map(X, y, local) for X, y in zip(federation.rows, federation.targets, strict=True)]
        return cls(np.stack([matrix for matrix, _ in maps]), np.stack([shift for _, shift in maps]))

    @classmethod
    def together(cls, federation: Federation, local: Local) -> Self:
        """The same with everybody in every round: one map, and one client's memory."""
        d = federation.features
        matrix, shift = np.zeros((d, d)), np.zeros(d)
        for X, y in zip(federation.rows, federation.targets, strict=True):
            own, offset = _map(X, y, local)
            matrix += own / federation.clients
            shift += offset / federation.clients
        return cls(matrix[None], shift[None])

    def after(self, rounds: Iterable[int]) -> Iterator[Array]:
        """Global weights ``(d,)`` after so many rounds from zero, in growing order, everybody in every round."""
        matrix, shift = self.matrices.mean(axis=0), self.shifts.mean(axis=0)
        weights, done = np.zeros(len(shift)), 0
        for wanted in rounds:
            for _ in range(wanted - done):
                weights = matrix @ weights + shift
            done = wanted
            yield weights

    def sampled(self, rounds: int, clients: int, rng: np.random.Generator) -> Array:
        """Global weights after rounds in each of which so many clients take part, drawn anew."""
        weights = np.zeros(self.shifts.shape[1])
        for _ in range(rounds):
            there = rng.choice(len(self.shifts), min(clients, len(self.shifts)), replace=False)
            weights = np.asarray((self.matrices[there] @ weights + self.shifts[there]).mean(axis=0))
        return weights


def stepped(federation: Federation, local: Local, rounds: int) -> Array:
    """Global weights ``(d,)`` after so many rounds, every local step taken on the records."""
    weights = np.zeros(federation.features)
    for _ in range(rounds):
        own = []
        for X, y in zip(federation.rows, federation.targets, strict=True):
            w = weights
            for _ in range(local.epochs):
                gradient = (X @ w - y) @ X / len(y)
                w = w - local.rate * (gradient + local.proximal * (w - weights))
            own.append(w)
        weights = np.asarray(np.mean(own, axis=0))
    return weights


def _map(X: Array, y: Array, local: Local) -> tuple[Array, Array]:
    """Matrix and shift of one client's round.

    One step is ``w <- A w + b`` with ``A = I - eta (H + mu I)`` and ``b = eta (h + mu w0)``; E of them from ``w0`` give
    ``(A^E + eta mu S) w0 + eta S h`` with ``S = I + A + ... + A^(E-1)``.
    """
    d, n = X.shape[1], len(y)
    step = np.eye(d) * (1 - local.rate * local.proximal) - (local.rate / n) * (X.T @ X)
    power, total = np.eye(d), np.zeros((d, d))
    for _ in range(local.epochs):
        total += power
        power = power @ step
    return power + local.rate * local.proximal * total, total @ (X.T @ y) * (local.rate / n)
