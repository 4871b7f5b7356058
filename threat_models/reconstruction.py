"""Scoring reconstructions: the share of the truth that a guess hits, with a release and without.

Only the game calls this; attacks never see a truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from threat_models import bounds
from threat_models.adversary import View
from threat_models.attack import Scored
from threat_models.attacks.images import ssim
from threat_models.attacks.matching import match
from threat_models.report import Example
from threat_models.world import World

NEAR = 0.05
"""Relative distance within which a record, or a value of it, counts as rebuilt."""

_ALIKE = 0.5
_SHOWN = 6
_GUESSES = 200
Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """A way to score rows ``(k, d)`` against a world.

    Attributes:
        metric: its name in a report.
        group: records that one success is about: the guarantee for so many together.
        truth: what must be found in a world.
        rate: share found, in [0, 1].
    """

    metric: str
    group: int
    truth: Callable[[World], Rows]
    guesses: Callable[[World], Rows]
    rate: Callable[[Rows, Rows], float]


def _records(truth: Rows, rows: Rows) -> float:
    return match(truth, rows).within(NEAR) if len(rows) else 0.0


def _pairs(truth: Rows, rows: Rows) -> float:
    """Share of coordinates whose unordered pair is right, within 5 % of the records' typical entry."""
    tolerance = NEAR * float(np.sqrt(np.mean(truth * truth)))
    wrong = np.abs(np.sort(truth, axis=0) - np.sort(np.resize(rows, truth.shape), axis=0)).max(axis=0)
    return float((wrong <= tolerance).mean())


def _images(truth: Rows, rows: Rows) -> float:
    """Share of pictures with a structural similarity above one half."""
    side = math.isqrt(truth.shape[1])
    top = max(float(truth.max()), 1e-12)
    pairs = zip(truth, np.resize(rows, truth.shape), strict=True)
    alike = [ssim(x.reshape(side, side), z.reshape(side, side), top=top) > _ALIKE for x, z in pairs]
    return float(np.mean(alike))


SCORES: Mapping[Scored, Score] = {
    "records": Score("rebuilt", 1, lambda world: world.truth, lambda world: world.public[0], _records),
    "pairs": Score("pairs", 2, lambda world: world.truth, lambda world: world.public[0], _pairs),
    "images": Score("SSIM > .5", 1, lambda world: world.raw, lambda world: world.public_raw, _images),
}
"""By whole records, by unordered pairs of values in every coordinate, or by how alike pictures are."""


class Prior:
    """The hit rate of the best single guess without a release: the public mean, or one of some public records.

    The guess is the same in all worlds, because an attacker without a release cannot distinguish them.
    """

    def __init__(self, score: Score) -> None:
        self._score = score
        self._rates: list[Rows] = []

    def add(self, world: World) -> None:
        """Try every guess on the records of one more world."""
        public = self._score.guesses(world)[:_GUESSES]
        truth = self._score.truth(world)
        guesses = [public.mean(axis=0), *public]
        self._rates.append(np.array([self._score.rate(truth, np.tile(g, (len(truth), 1))) for g in guesses]))

    @property
    def best(self) -> Rows:
        """Per world, what the guess that is best over all worlds hits."""
        table = np.stack(self._rates)
        return np.asarray(table[:, int(table.mean(axis=0).argmax())])

    @property
    def rate(self) -> float:
        """Share that the best guess hits."""
        return float(self.best.mean())

    def interval(self, confidence: float) -> bounds.Interval:
        """Return the success rate's confidence interval; picking the best guess afterwards only raises it."""
        return bounds.proportion(self.best, confidence)


def example(world: World, view: View, rows: Rows) -> Example | None:
    """A few records of a world for a picture; None where no class has a sum to show."""
    if "A" not in view.sums[0] or "class" not in world.plan.schema.sizes:
        return None
    label = int(world.secret[0])
    X, y = world.public
    mine = X[y == label] if (y == label).any() else X
    mean = mine.mean(axis=0)
    prior = mine[np.linalg.norm(mine - mean, axis=1).argmin()]
    raw = view.sums[0]["A"][label] / max(1.0, view.sums[0]["N"][label] if "N" in view.sums[0] else view.records)
    shown = min(_SHOWN, len(world.truth))
    order = match(world.truth, rows).order if len(rows) else np.full(len(world.truth), -1)
    result = np.vstack([rows, np.zeros((1, X.shape[1]))])[order] if len(rows) else np.zeros_like(world.truth)
    return Example(
        truth=_plain(world.truth[:shown]),
        raw=_plain(np.tile(raw, (shown, 1))),
        attack=_plain(result[:shown]),
        mean=_plain(np.tile(mean, (shown, 1))),
        prior=_plain(np.tile(prior, (shown, 1))),
    )


def _plain(rows: Rows) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(f"{value:.4g}") for value in row) for row in rows)
