"""Scoring reconstructions: how near the nearest guess comes to each record, and what a guess without a release hits.

Only the game calls this; attacks never see a truth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.schema import ClassSchema
from threat_models import bounds
from threat_models.adversary import View
from threat_models.report import Example
from threat_models.world import World

__all__ = ["NEAR", "Prior", "errors", "example"]

NEAR = 0.05
"""Relative distance within which a record counts as reconstructed."""

_SHOWN = 6


def errors(truth: NDArray[np.float64], guesses: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Relative error of the nearest guess for each true record, and that guess; infinite without guesses."""
    if not guesses.size:
        return np.full(len(truth), np.inf), np.zeros_like(truth)
    gaps = np.linalg.norm(truth[:, None, :] - guesses[None, :, :], axis=2)
    best = gaps.argmin(axis=1)
    return gaps.min(axis=1) / np.maximum(np.linalg.norm(truth, axis=1), 1e-12), guesses[best]


class Prior:
    """How often the best single guess without a release hits a record: the public mean or any public record."""

    def __init__(self) -> None:
        self._hits = np.zeros(0)
        self._seen = 0

    def add(self, world: World) -> None:
        """Try every guess on the records of one more world."""
        X = world.public[0]
        guesses = np.vstack([X.mean(axis=0, keepdims=True), X])
        gaps = np.linalg.norm(world.truth[:, None, :] - guesses[None, :, :], axis=2)
        near = (gaps <= NEAR * np.linalg.norm(world.truth, axis=1)[:, None]).sum(axis=0)
        self._hits = near if not self._seen else self._hits + near
        self._seen += len(world.truth)

    @property
    def rate(self) -> float:
        """Share of records that the best guess hit."""
        return float(self._hits.max() / self._seen)

    def interval(self, confidence: float) -> bounds.Interval:
        """Its confidence interval; that the best guess was picked afterwards only raises it."""
        return bounds.clopper_pearson(float(self._hits.max()), self._seen, confidence)


def example(world: World, view: View, nearest: NDArray[np.float64]) -> Example | None:
    """A few records of a world for a picture; None where no class has a sum to show."""
    if "A" not in view.sums[0] or not isinstance(world.plan.schema, ClassSchema):
        return None
    label = int(world.labels[0])
    X, y = world.public
    mine = X[y == label] if (y == label).any() else X
    mean = mine.mean(axis=0)
    prior = mine[np.linalg.norm(mine - mean, axis=1).argmin()]
    raw = view.sums[0]["A"][label] / max(1.0, view.sums[0]["N"][label] if "N" in view.sums[0] else view.records)
    shown = min(_SHOWN, len(world.truth))
    return Example(
        truth=_plain(world.truth[:shown]),
        raw=_plain(np.tile(raw, (shown, 1))),
        attack=_plain(nearest[:shown]),
        mean=_plain(np.tile(mean, (shown, 1))),
        prior=_plain(np.tile(prior, (shown, 1))),
    )


def _plain(rows: NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(f"{value:.4g}") for value in row) for row in rows)
