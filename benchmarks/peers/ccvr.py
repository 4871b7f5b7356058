"""CCVR: after FedAvg, the head is trained again on virtual features from every class's mean and covariance.

Written from Luo et al., NeurIPS 2021 (arXiv:2106.05001), section 4.2: parties send counts, means and covariances of
their classes, the server puts them together and draws. The features are frozen here, so that FedAvg only gives the
weights that the training begins at. Checked: what is put together are the moments of all records.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import flower, softmax
from benchmarks.peers.flower import Federated
from benchmarks.peers.interface import Outcome, Part, Shards

__all__ = ["CCVR", "ccvr_grid", "moments_of_all"]

_SINGLE = 4  # bytes

Moments: TypeAlias = tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]
"""Counts ``(C,)``, means ``(C, d)``, covariances ``(C, d, d)``."""


@dataclass(frozen=True)
class CCVR:
    """FedAvg, then calibration.

    Attributes:
        before: the FedAvg.
        per_class: virtual features drawn for every class.
        rate: of the training on them.
    """

    before: Federated
    per_class: int
    rate: float

    def __str__(self) -> str:
        return f"{self.per_class} features per class, rate {self.rate:g}, after {self.before.rounds} rounds"

    def fit(self, shards: Shards) -> Outcome:
        """All rounds, the moments up, the training at the server, its head down."""
        began = time.process_time()
        W, sent = flower.train(self.before.strategy(len(shards.parts)), shards, self.before)
        rng = np.random.default_rng(shards.seed)
        virtual = self.virtual(moments_of_all(shards), rng)
        W = softmax.trained(virtual, shards.classes, self.rate, rng, start=W)
        d = shards.features
        classes = sum(len(np.unique(y)) for _, y in shards.parts)
        sent += _SINGLE * classes * (1 + d + d * (d + 1) // 2) + W.nbytes * len(shards.parts)
        score = shards.accuracy(softmax.scores(W, shards.X_test))
        return Outcome(score, sent, time.process_time() - began, self.before.rounds + 1)

    def virtual(self, moments: Moments, rng: np.random.Generator) -> Part:
        """Features from one Gaussian per class that anybody has."""
        N, means, covariances = moments
        rows, labels = [], []
        for label in np.flatnonzero(N):
            values, vectors = np.linalg.eigh(covariances[label])
            normal = rng.standard_normal((self.per_class, len(values)))
            rows.append(means[label] + normal * np.sqrt(np.maximum(values, 0)) @ vectors.T)
            labels.append(np.full(self.per_class, label))
        return np.concatenate(rows).astype(np.float32), np.concatenate(labels)


def moments_of_all(shards: Shards) -> Moments:
    """Counts ``(C,)``, means ``(C, d)`` and covariances ``(C, d, d)`` of all records from those of the parties.

    The covariance of a class is ``sum (N_k - 1) S_k + sum N_k m_k m_k' - N m m'``, over N - 1 (equations 4 and 5).
    """
    C, d = shards.classes, shards.features
    N, A, B = np.zeros(C, np.intp), np.zeros((C, d)), np.zeros((C, d, d))
    for X, y in shards.parts:
        for label in np.unique(y):
            rows = X[y == label].astype(np.float64)
            n, mean = len(rows), rows.mean(axis=0)
            within = (rows - mean).T @ (rows - mean)  # (N_k - 1) S_k
            N[label] += n
            A[label] += n * mean
            B[label] += within + n * np.outer(mean, mean)
    means = A / np.maximum(N, 1)[:, None]
    scatter = B - N[:, None, None] * means[:, :, None] * means[:, None, :]
    return N, means, scatter / np.maximum(N - 1, 1)[:, None, None]


def ccvr_grid(before: Federated) -> tuple[CCVR, ...]:
    """Few and many features per class; rates."""
    return tuple(CCVR(before, many, rate) for many in (100, 1_000) for rate in (16.0, 64.0))
