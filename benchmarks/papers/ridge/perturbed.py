"""Section VI-D's alternatives to noise in the sums: output perturbation and objective perturbation, each at its best.

Both need weights inside a ball and pay for the steepest gradient that a record could have there. Radius and penalty are
the best of a grid on the test records, at no charge: what stands here is more than they can reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np

from benchmarks.measuring import Rows
from benchmarks.papers.cells import Sheet
from benchmarks.papers.ridge.data import Array, Federation, Split, mse
from benchmarks.papers.ridge.private import DELTA, PROBLEM, private_plan, private_weights
from benchmarks.papers.ridge.scale import PAPER, Scale
from privstats.dp.gaussian import gaussian_mu

__all__ = ["Ball", "objective", "output", "perturbations", "steepest"]

_SHEET = Sheet(PAPER, "section VI-D", "test MSE by the place of the noise, one record, add-remove", better="lower")
_RADII = (0.5, 0.75, 1.0, 1.5, 2.0)
_PENALTIES = tuple(10.0 ** (power / 4) for power in range(4, 21))
_WHY = "of the three it alone is not tuned on the test records"


@dataclass(frozen=True)
class Ball:
    """Ridge regression among weights of at most a norm, by one eigendecomposition of ``X'X``.

    Attributes:
        values, vectors: of ``X'X``, ``(d,)`` and ``(d, d)``.
        moment: ``X'y``, ``(d,)``.
    """

    values: Array
    vectors: Array
    moment: Array

    @classmethod
    def of(cls, split: Split) -> Ball:
        """Of the training records."""
        X, _, y, _ = split
        values, vectors = np.linalg.eigh(X.T @ X)
        return cls(values, vectors, X.T @ y)

    def best(self, penalty: float, radius: float, slope: Array | float = 0.0) -> Array:
        """The weights that minimise ``|X w - y|^2 / 2 + penalty |w|^2 / 2 + slope' w`` within the radius.

        On the sphere the least is that of a larger penalty, found by bisection.
        """
        turned = self.vectors.T @ (self.moment - slope)

        def weights(more: float) -> Array:
            return np.asarray(turned / (self.values + penalty + more))

        low, high = 0.0, float(np.linalg.norm(turned)) / radius
        if np.linalg.norm(weights(0.0)) > radius:
            for _ in range(100):
                middle = (low + high) / 2
                low, high = (middle, high) if np.linalg.norm(weights(middle)) > radius else (low, middle)
        return np.asarray(self.vectors @ weights(low))


def steepest(radius: float) -> float:
    """The largest norm of a record's gradient ``a (a'w - b)`` in the ball: ``R (R radius + Y)``."""
    row, target = PROBLEM.bounds.row, PROBLEM.bounds.target
    return row * (row * radius + target)


def output(ball: Ball, epsilon: float, penalty: float, radius: float, rng: np.random.Generator) -> Array:
    """The best weights in the ball and Gaussian noise on them (Chaudhuri, Monteleoni and Sarwate 2011).

    Guarantee:
        Unit: one record, add-remove, at delta 1e-5. The objective is ``penalty``-strongly convex without the record, so
        the weights move by at most ``steepest(radius) / penalty``; the noise is that over mu of the exact Gaussian
        curve.
    """
    deviation = steepest(radius) / penalty / gaussian_mu(epsilon, DELTA)
    weights = ball.best(penalty, radius)
    return np.asarray(weights + deviation * rng.standard_normal(len(weights)))


def objective(ball: Ball, epsilon: float, penalty: float, radius: float, rng: np.random.Generator) -> Array:
    """The best weights in the ball under a random linear term (Kifer, Smith and Thakurta 2012, algorithm 1, Gaussian).

    Guarantee:
        Unit: one record, at delta 1e-5, by their theorem 2, which allows for a record that is replaced: the penalty is
        at least ``2 R^2 / epsilon``, R^2 the largest eigenvalue of a record's Hessian, and the term has the deviation
        ``steepest(radius) sqrt(8 ln(2 / delta) + 4 epsilon) / epsilon``.
    """
    least = 2 * PROBLEM.bounds.row**2 / epsilon
    deviation = steepest(radius) * math.sqrt(8 * math.log(2 / DELTA) + 4 * epsilon) / epsilon
    return ball.best(max(penalty, least), radius, deviation * rng.standard_normal(len(ball.moment)))


Way: TypeAlias = Callable[[Ball, float, float, float, np.random.Generator], Array]


def perturbations(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Both beside one release of the sums, on the records of "Table V, kept"."""
    federations = [Federation.draw(seed) for seed in scale.seeds]
    splits = [PROBLEM.within(federation.split) for federation in federations]
    balls = [Ball.of(split) for split in splits]
    cells = []
    for epsilon in scale.epsilons:
        found = {
            name: _least(way, balls, splits, epsilon)
            for name, way in (("output perturbation", output), ("objective perturbation", objective))
        }
        cells += [_SHEET.cell(f"{epsilon:.1f}", name, None, errors) for name, errors in found.items()]
        plan = private_plan(federations[0], epsilon, "central", "add-remove")
        errors = [
            federation.error(private_weights(federation, plan, seed)) for seed, federation in enumerate(federations)
        ]
        rival = min(found.values(), key=lambda each: float(np.mean(each)))
        cells.append(_SHEET.cell(f"{epsilon:.1f}", "one release, central", None, errors, rival=rival, why=_WHY))
    yield _SHEET.rows(cells)


def _least(way: Way, balls: Sequence[Ball], splits: Sequence[Split], epsilon: float) -> list[float]:
    """Test errors, one per seed, at the penalty and radius whose mean over the seeds is least."""
    tried = []
    for penalty, radius in product(_PENALTIES, _RADII):
        # a stream of its own: the data of a seed begin with the true weights, and noise along them would be no noise
        streams = [np.random.default_rng((seed, 1)) for seed in range(len(balls))]
        drawn = [way(ball, epsilon, penalty, radius, rng) for ball, rng in zip(balls, streams, strict=True)]
        tried.append([mse(weights, split[1], split[3]) for weights, split in zip(drawn, splits, strict=True)])
    return min(tried, key=lambda errors: float(np.mean(errors)))
