"""FedPFT: every party sends Gaussian mixtures of its features, class by class; the server trains on what it draws.

Written from Beitollahi et al. 2024 (arXiv:2402.01862): scikit-learn's mixtures, as many synthetic features per class
and party as it has records, a linear head. What is sent is counted as there: (2 d + 1) K numbers per class for
diagonal mixtures, (d + 2) K for spherical ones, (d (d + 3) / 2 + 1) K for full ones.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

from benchmarks.peers import softmax
from benchmarks.peers.interface import Outcome, Part, Shards

__all__ = ["FedPFT", "Shape", "fedpft_grid", "numbers"]

Shape: TypeAlias = Literal["full", "diag", "spherical"]
_SINGLE = 4  # bytes
_RIDGE = 1e-6


@dataclass(frozen=True)
class FedPFT:
    """Mixtures of one shape for every party and class.

    Attributes:
        components: K; a party with fewer records of a class takes as many as it has.
        shape: of their covariances.
        rate: of the head's training at the server.
    """

    components: int
    shape: Shape
    rate: float

    def __str__(self) -> str:
        return f"K = {self.components}, {self.shape}, rate {self.rate:g}"

    def fit(self, shards: Shards) -> Outcome:
        """Fit mixtures, send them, draw, train."""
        began = time.process_time()
        rng = np.random.default_rng(shards.seed)
        drawn, sent = [], 0
        for X, y in shards.parts:
            for label, rows in _by_class(X, y):
                K = min(self.components, len(rows))
                drawn.append((self.synthetic(rows, K, rng), np.full(len(rows), label)))
                sent += _SINGLE * (numbers(shards.features, K, self.shape) + 1)  # and the number of records
        synthetic: Part = (np.concatenate([X for X, _ in drawn]), np.concatenate([y for _, y in drawn]))
        W = softmax.trained(synthetic, shards.classes, self.rate, rng)
        score = shards.accuracy(softmax.scores(W, shards.X_test))
        return Outcome(score, sent, time.process_time() - began, 1)

    def synthetic(self, rows: NDArray[np.float32], K: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """As many features as there were rows, drawn from their mixture."""
        if K == 1:  # the mixture's one step of EM, without its passes over the rows
            return _gaussian(rows, self.shape, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # EM that stops before it has converged
            mixture = GaussianMixture(
                K, covariance_type=self.shape, reg_covar=_RIDGE, max_iter=30, random_state=int(rng.integers(1 << 31))
            ).fit(rows)
        return np.asarray(mixture.sample(len(rows))[0], np.float32)


def numbers(features: int, components: int, shape: Shape) -> int:
    """How many numbers one mixture is: weights, means and covariances."""
    d = features
    own = {"full": d * (d + 1) // 2, "diag": d, "spherical": 1}[shape]
    return components * (1 + d + own)


def _by_class(X: NDArray[np.float32], y: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    for label in np.unique(y):
        yield int(label), X[y == label]


def _gaussian(rows: NDArray[np.float32], shape: Shape, rng: np.random.Generator) -> NDArray[np.float32]:
    n, d = rows.shape
    mean, free = rows.mean(axis=0), rows - rows.mean(axis=0)
    noise = rng.standard_normal((n, d), np.float32)
    if shape == "full":  # free.T @ normal / sqrt(n) has their covariance, whatever its rank
        factor = rng.standard_normal((n, n), np.float32) if n < d else _root(free)
        return np.asarray(mean + (factor @ free / np.sqrt(n) if n < d else noise @ factor) + np.sqrt(_RIDGE) * noise)
    spread = free.var(axis=0) if shape == "diag" else free.var(axis=0).mean()
    return np.asarray(mean + np.sqrt(spread + _RIDGE) * noise, np.float32)


def _root(free: NDArray[np.float32]) -> NDArray[np.float32]:
    values, vectors = np.linalg.eigh(free.T @ free / np.float32(len(free)))
    return np.asarray(np.sqrt(np.maximum(values, 0))[:, None] * vectors.T, np.float32)


def fedpft_grid(*, full: bool) -> tuple[FedPFT, ...]:
    """The shapes of the paper: full covariances with one component, as they are large, or the small ones with more."""
    small: tuple[tuple[int, Shape], ...] = ((5, "diag"), (10, "diag"), (10, "spherical"))
    shapes: tuple[tuple[int, Shape], ...] = ((1, "full"),) if full else small
    return tuple(FedPFT(K, shape, rate) for K, shape in shapes for rate in (16.0, 64.0))
