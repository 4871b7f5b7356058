"""Measure what noise costs a regression where nothing can be learned: its test error over that of the records' mean.

    python -m benchmarks.refinement.unlearnable --save

Targets do not depend on the columns, so the mean is the best prediction. Courses run in real numbers with the noise of
the library's plans; one release is read as ``Ridge`` reads it, and by its mean alone.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Row, Tables, command
from benchmarks.refinement.prototype import play_ridge
from privstats.dp import gaussian_mu
from privstats.estimates.recipes import RidgeRecipe
from privstats.heads.evidence import GramEvidence
from privstats.heads.fitting.least_squares import eliminate_constant, solve
from tests.estimates.rounds import symmetric_noise
from tests.heads.worlds import TARGETS, UNLEARNABLE

__all__ = ["CONSTANT", "DELTA", "NORM", "by_its_mean", "by_one_release", "by_rounds", "excess", "tables"]

Array: TypeAlias = NDArray[np.float64]
Way: TypeAlias = Callable[[Array, Array, float, float, np.random.Generator], Array]
"""Weights, the constant's last, from rows with a constant, targets, mu, the bound of targets, and noise."""

TITLE = "test error over that of the records' mean"
CONSTANT, NORM, DELTA = 0.5, 1.25**0.5, 1e-6
_TESTED = 5_000
_SHARES = {"G": 0.5, "h": 0.48, "q": 0.02}
_SETTINGS = ((2_000, 30, 0.3), (2_000, 3, 0.3), (1_500, 30, 0.1), (500, 3, 0.3), (500, 30, 0.3))


def by_rounds(X: Array, y: Array, mu: float, bound: float, rng: np.random.Generator, rounds: int = 24) -> Array:
    """Return the weights of a course."""
    recipe = RidgeRecipe(X.shape[1], len(X), mu, NORM, bound, rounds, constant=CONSTANT)
    *_, weights = play_ridge(recipe, X, y, rng)
    return weights


def _released(X: Array, y: Array, mu: float, bound: float, rng: np.random.Generator) -> GramEvidence:
    bounds = {"G": NORM**2, "h": NORM * bound, "q": bound**2}
    sigma = {name: each / (mu * _SHARES[name] ** 0.5) for name, each in bounds.items()}
    d = X.shape[1]
    return GramEvidence(
        G=X.T @ X + sigma["G"] * symmetric_noise(rng, d),
        h=(X.T @ y + sigma["h"] * rng.standard_normal(d))[:, None],
        q=max(float(y @ y + sigma["q"] * rng.standard_normal()), 0.0),
        records=None,
        **{f"sigma_{name}": level for name, level in sigma.items()},
        feature_means=np.zeros(d),
        target_means=np.zeros(1),
        constant=CONSTANT,
    )


def by_one_release(X: Array, y: Array, mu: float, bound: float, rng: np.random.Generator) -> Array:
    """Return the weights of one release."""
    solution = solve(_released(X, y, mu, bound, rng), "aggregate", "auto")
    return np.append(solution.weights[:-1, 0], solution.intercept / CONSTANT)


def by_its_mean(X: Array, y: Array, mu: float, bound: float, rng: np.random.Generator) -> Array:
    """Return the mean that one release knows, as weights."""
    level = eliminate_constant(_released(X, y, mu, bound, rng)).target_means / CONSTANT
    return np.append(np.zeros(X.shape[1] - 1), level)


WAYS: dict[str, Way] = {
    "mean of one release": by_its_mean,
    "one release": by_one_release,
    "T = 4": partial(by_rounds, rounds=4),
    "T = 24": by_rounds,
}


def excess(way: Way, world: str, n: int, d: int, epsilon: float, draws: int) -> Array:
    """Return by draw the share by which the mean square error exceeds that of the records' mean, ``(draws,)``."""
    chosen, mu, found = TARGETS[world], gaussian_mu(epsilon, DELTA), []
    for seed in range(draws):
        (X, y), (X_test, y_test) = (chosen.records(2 * seed + k, size, d) for k, size in ((0, n), (1, _TESTED)))
        one = [np.hstack([rows, np.full((len(rows), 1), CONSTANT)]) for rows in (X, X_test)]
        weights = way(one[0], y, mu, chosen.bound, np.random.default_rng([seed, n]))
        found.append(np.square(y_test - one[1] @ weights).mean() / np.square(y_test - y.mean()).mean() - 1)
    return np.array(found)


def options(parser: argparse.ArgumentParser) -> None:
    """How often."""
    parser.add_argument("--draws", type=int, default=50)


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row longer each time."""
    settings, draws = (_SETTINGS[-2:-1], 2) if options.quick else (_SETTINGS, options.draws)
    rows: list[Row] = []
    for n, d, epsilon in settings:
        for world in UNLEARNABLE:
            rows.append(_row(world, n, d, epsilon, draws))
            yield TITLE, rows


def _row(world: str, n: int, d: int, epsilon: float, draws: int) -> Row:
    row = {"records": n, "columns": d, "epsilon": epsilon, "n mu": n * gaussian_mu(epsilon, DELTA), "targets": world}
    for name, way in WAYS.items():
        found = excess(way, world, n, d, epsilon, draws)
        row |= {name: 1 + float(found.mean()), f"se {name}": float(found.std(ddof=1)) / math.sqrt(draws)}
    return {**row, "draws": draws}


if __name__ == "__main__":
    command("refinement.unlearnable", __doc__, tables, options)
