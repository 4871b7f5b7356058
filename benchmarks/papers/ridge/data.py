"""The paper's synthetic data (section V-A), client by client.

What the paper leaves open is settled here: the noise "N(0, 0.1)" has standard deviation .1, because every error that
the paper prints is near .01; "mild variance heterogeneity" is a scale between .8 and 1.2 for every feature of every
client; the held-out fifth is taken from each client.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Federation", "Split", "client_rows", "mse"]

Array: TypeAlias = NDArray[np.float64]
Split: TypeAlias = tuple[Array, Array, Array, Array]

_NOISE = 0.1
_HELD_OUT = 5  # one record in so many is for testing


@dataclass(frozen=True)
class Federation:
    """What the clients hold, and the held-out records.

    Attributes:
        rows: ``(n_k, d)`` per client.
        targets: ``(n_k,)`` per client.
        X_test, y_test: held out.
    """

    rows: tuple[Array, ...]
    targets: tuple[Array, ...]
    X_test: Array
    y_test: Array

    @classmethod
    def draw(
        cls, seed: int, *, clients: int = 20, each: int = 500, d: int = 100, heterogeneity: float = 0.5
    ) -> Federation:
        """Section V-A with its default settings.

        Args:
            seed: of everything.
            clients: K.
            each: records of a client before a fifth of them is held out.
            d: features.
            heterogeneity: gamma, the length of every client's mean.
        """
        rng = np.random.default_rng(seed)
        w = rng.standard_normal(d)
        w /= np.linalg.norm(w)
        held = each // _HELD_OUT
        X = [client_rows(rng, each, d, heterogeneity) for _ in range(clients)]
        y = [rows @ w + _NOISE * rng.standard_normal(each) for rows in X]
        return cls(
            tuple(rows[held:] for rows in X),
            tuple(targets[held:] for targets in y),
            np.concatenate([rows[:held] for rows in X]),
            np.concatenate([targets[:held] for targets in y]),
        )

    @property
    def features(self) -> int:
        """d."""
        return int(self.X_test.shape[1])

    @property
    def clients(self) -> int:
        """K."""
        return len(self.rows)

    @cached_property
    def all_rows(self) -> Array:
        """Everybody's training rows, one client after the other."""
        return np.concatenate(self.rows)

    @cached_property
    def all_targets(self) -> Array:
        """Everybody's training targets."""
        return np.concatenate(self.targets)

    @property
    def split(self) -> Split:
        """Training rows, test rows, training targets, test targets."""
        return self.all_rows, self.X_test, self.all_targets, self.y_test

    def oracle(self, penalty: float) -> Array:
        """Centralised ridge in float64, ``(d,)``: the paper's upper bound."""
        X, y = self.all_rows, self.all_targets
        return np.asarray(np.linalg.solve(X.T @ X + penalty * np.eye(X.shape[1]), X.T @ y), np.float64)

    def error(self, weights: Array) -> float:
        """Test MSE."""
        return mse(weights, self.X_test, self.y_test)

    def among(self, present: NDArray[np.intp]) -> Federation:
        """The same with some of the clients only; the held-out records stay."""
        chosen = [int(client) for client in present]
        return Federation(
            tuple(self.rows[k] for k in chosen), tuple(self.targets[k] for k in chosen), self.X_test, self.y_test
        )


def client_rows(rng: np.random.Generator, each: int, d: int, heterogeneity: float) -> Array:
    """One client's features ``(each, d)``: a mean of length gamma in a random direction, mild scales per feature."""
    direction = rng.standard_normal(d)
    mean = heterogeneity * direction / np.linalg.norm(direction)
    return np.asarray(mean + rng.uniform(0.8, 1.2, d) * rng.standard_normal((each, d)))


def mse(weights: Array, X: Array, y: Array) -> float:
    """Mean squared error of a linear model without intercept."""
    return float(np.square(y - X @ weights).mean())
