"""Worlds in which the level of a model is easily wrong: skewed targets, rare classes, curves, and nothing to learn.

Every world draws records of any number, so that a head's estimand is known: its mean prediction is the targets' mean,
and its slopes are those of least squares, both computed from the same records. A class's mean probability is its share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class World:
    """Targets of uniform rows.

    Attributes:
        draw: targets ``(n,)`` from a generator and the first column ``(n,)``, which is uniform in -1 to 1.
        bound: public bound of targets.
    """

    draw: Draw
    bound: float

    def records(self, seed: int, n: int, features: int = 3) -> tuple[np.ndarray, np.ndarray]:
        """Return n rows ``(n, features)`` of norm at most 1, and their targets ``(n,)``."""
        rng = np.random.default_rng(seed)
        rows = rng.uniform(-1, 1, (n, features))
        return rows / features**0.5, self.draw(rng, rows[:, 0]).clip(-self.bound, self.bound)


def _cost(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return rng.lognormal(0, 1, len(z)) * (1 + 0.8 * z)


def _stay(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return rng.exponential(5, len(z)) * (1 + 0.5 * z)


def _mostly_zero(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return np.where(rng.random(len(z)) < 0.25 * (1 + 0.6 * z), rng.lognormal(1, 1, len(z)), 0.0)


def _pareto(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return rng.pareto(1.8, len(z)) * (1 + 0.5 * z)


def _rare_event(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return (rng.random(len(z)) < 0.03 * (1 + 0.9 * z)).astype(float)


def _curve(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return np.exp(1.5 * z) + 0.3 * rng.standard_normal(len(z))


def _heavy_tails(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return z + 0.3 * rng.standard_t(2.2, len(z))


def _normal(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return z + 0.5 * rng.standard_normal(len(z))


def _nothing(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return rng.standard_normal(len(z))


def _uncentred_nothing(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return 2 + rng.standard_normal(len(z))


def _skewed_nothing(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return rng.lognormal(0, 1, len(z))


TARGETS: Mapping[str, World] = {
    "cost": World(_cost, 20.0),
    "stay": World(_stay, 30.0),
    "mostly zero": World(_mostly_zero, 50.0),
    "pareto": World(_pareto, 50.0),
    "rare event": World(_rare_event, 1.0),
    "curve": World(_curve, 10.0),
    "heavy tails": World(_heavy_tails, 20.0),
    "normal": World(_normal, 3.0),
    "nothing": World(_nothing, 5.0),
    "skewed, nothing": World(_skewed_nothing, 20.0),
    "uncentred, nothing": World(_uncentred_nothing, 6.0),
}
"""Targets by the name of their world."""

UNLEARNABLE = ("nothing", "skewed, nothing", "uncentred, nothing")


@dataclass(frozen=True)
class ClassWorld:
    """Classes of uniform rows, whose log odds are linear in the first column.

    Attributes:
        shares: each class's share where the first column is 0.
        signal: slope of the log odds between the last class and the first, halved.
    """

    shares: tuple[float, ...]
    signal: float

    def records(self, seed: int, n: int, features: int = 3) -> tuple[np.ndarray, np.ndarray]:
        """Return n rows ``(n, features)`` of norm at most 1, and their classes ``(n,)``."""
        rng = np.random.default_rng(seed)
        rows = rng.uniform(-1, 1, (n, features))
        raised = np.exp(self.signal * np.outer(rows[:, 0], np.linspace(-1, 1, len(self.shares)))) * self.shares
        below = (raised / raised.sum(axis=1, keepdims=True)).cumsum(axis=1)[:, :-1]
        return rows / features**0.5, (below < rng.random((n, 1))).sum(axis=1)


UNEVEN = (0.6, 0.3, 0.08, 0.02)
CLASSES: Mapping[str, ClassWorld] = {
    "even": ClassWorld((0.5, 0.5), 2.0),
    "rare": ClassWorld((0.98, 0.02), 2.0),
    "very rare": ClassWorld((0.995, 0.005), 2.0),
    "uneven": ClassWorld(UNEVEN, 1.0),
    "nothing": ClassWorld((0.7, 0.3), 0.0),
    "rare, nothing": ClassWorld((0.98, 0.02), 0.0),
    "uneven, nothing": ClassWorld(UNEVEN, 0.0),
}
"""Classes by the name of their world."""
