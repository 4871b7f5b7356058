"""Published heads back to moments, the last digits of float noise, and one lying client.

python -m benchmarks.attacks.models --save
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata
from sklearn.covariance import ledoit_wolf
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

from benchmarks.attacks.doubles import double_gaussian
from benchmarks.measuring import Row, Tables, command
from privstats import heads as ours
from privstats.dp import gaussian_mu, rounded_gaussian
from privstats.randomness import seeded
from threat_models.attacks.float_digits import digit_scores
from threat_models.attacks.heads import baseline as public_moment
from threat_models.attacks.heads import (
    from_quadratic_rule,
    moments_of_variances,
    pooled_moment,
    ridge_sums,
    unshrink,
    unshrink_singular,
)
from threat_models.attacks.poisoning import Lie, Moments, accuracy, check_total, poisoned

Array: TypeAlias = NDArray[np.float64]

COORDINATES, EPSILON, DELTA = 4096, 1.0, 1e-5
CLIENTS = 20


def tables(options: argparse.Namespace) -> Tables:
    """Heads first, then noise, then a lie."""
    yield "heads of digits back to moments: relative error", list(heads())
    yield "noise of epsilon 1 on 4096 coordinates: AUC of the attack", list(noise(100 if options.quick else 1000))
    scales = (1.0, 20.0) if options.quick else (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
    yield "one lying client of twenty: accuracy (%)", list(lies(scales))


def heads() -> Iterator[Row]:
    """One row per published model; the baseline has the second moment of other people's records."""
    X, y = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 0] / 16
    public, X, y = X[900:], X[:900], y[:900]
    B = X.T @ X
    S = np.stack([X[y == c].T @ X[y == c] for c in range(10)])
    N, Y = np.bincount(y), np.eye(10)[y]
    prior = relative(len(X) * public_moment(public), B)
    bayes = GaussianNB().fit(X, y)
    found = moments_of_variances(bayes.class_count_, bayes.theta_, bayes.var_, added=bayes.epsilon_).second
    yield {"head": "naive Bayes (scikit-learn)", "sum": "D", "measured": relative(found, np.einsum("cii->ci", S))}
    plain = X[:, np.stack([X[y == c].std(axis=0) for c in range(10)]).min(axis=0) > 0.05]
    T = np.stack([plain[y == c].T @ plain[y == c] for c in range(10)])
    quadratic = from_quadratic_rule(ours.QDA(shrinkage=None).fit(plain, y).rule_.arrays(), len(plain))
    yield {"head": f"QDA (ours, {plain.shape[1]} features)", "sum": "S", "measured": relative(quadratic.second, T)}
    lda = ours.LDA().fit(X, y)
    found = pooled_moment(N, lda.means_, unshrink(lda.covariance_, lda.shrinkage_))
    yield {"head": "LDA (ours, automatic shrinkage)", "sum": "B", "measured": relative(found, B), "baseline": prior}
    for m in (2, 4, 6, 7, 8, 12):
        penalties = np.geomspace(0.1, 1e4, m)
        path = [Ridge(p, fit_intercept=False, solver="cholesky").fit(X, Y).coef_.T for p in penalties]
        found = ridge_sums(penalties, np.stack(path), prior=len(X) * public_moment(public)).G
        yield {"head": f"ridge at {m} penalties", "sum": "G", "measured": relative(found, B), "baseline": prior}
    for n in (40, 200):
        shrunk, intensity = ledoit_wolf(X[:n])
        truth = np.cov(X[:n].T, bias=True)
        yield {
            "head": f"Ledoit-Wolf of {n} records",
            "sum": "S",
            "measured": relative(unshrink(shrunk, intensity), truth),
        }
        if n < X.shape[1]:
            measured = relative(unshrink_singular(shrunk)[0], truth)
            yield {"head": f"Ledoit-Wolf of {n} records, intensity unknown", "sum": "S", "measured": measured}


def noise(trials: int) -> Iterator[Row]:
    """A record of norm 1 joins others, under noise in doubles and under the library's noise on a grid of 2^-12."""
    mu = gaussian_mu(EPSILON, DELTA)
    ceiling = float(norm.cdf(mu / math.sqrt(2)))
    rng, sigma = np.random.default_rng(0), 1 / mu
    x = rng.standard_normal(COORDINATES)
    x /= np.linalg.norm(x)
    for others in (0, 100, 10_000, 1_000_000):
        without = math.sqrt(others / COORDINATES) * rng.standard_normal(COORDINATES)
        scores = [
            digit_scores(double_gaussian(v, sigma, trials, rng), without, without + x, sigma)
            for v in (without, without + x)
        ]
        yield {"noise": "Gaussian in doubles", "other records": others, "measured": auc(*scores), "ceiling": ceiling}
    grid = np.rint(x * 2**12)
    steps, nothing, stream = float(np.linalg.norm(grid) / mu), np.zeros(COORDINATES), seeded(0)
    scores = []
    for v in (nothing, grid):
        drawn = rounded_gaussian(steps, COORDINATES * trials, stream).reshape(trials, COORDINATES)
        scores.append(digit_scores(drawn + v, nothing, grid, steps))
    error = math.sqrt(1 / (6 * trials))
    yield {"noise": "ours, integers", "other records": 0, "measured": auc(*scores), "ceiling": ceiling, "error": error}


def lies(scales: tuple[float, ...]) -> Iterator[Row]:
    """Accuracy against scale, and the checks of the total, for every lie."""
    X, y = load_digits(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    shards = [Moments.of(X[i:1400:CLIENTS], y[i:1400:CLIENTS], 10) for i in range(CLIENTS)]
    others = shards[1]
    for shard in shards[2:]:
        others = others + shard
    honest = 100 * accuracy(others + shards[0], X[1400:], y[1400:])
    for lie in get_args(Lie):
        for scale in scales:
            total = others + poisoned(shards[0], lie, scale)
            caught = check_total(total, 1.0).caught_by
            measured = 100 * accuracy(total, X[1400:], y[1400:])
            seen = ", ".join(caught) or "none"
            yield {"lie": lie, "scale": scale, "measured": measured, "honest": honest, "seen by": seen}


def relative(found: Any, truth: Any) -> float:
    """Norm of the error over norm of the truth."""
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def auc(without: Array, with_target: Array) -> float:
    """Chance that a trial with the target scores above one without, ties half."""
    ranks = rankdata(np.concatenate([without, with_target]))
    m, n = len(without), len(with_target)
    return float((ranks[m:].sum() - n * (n + 1) / 2) / (m * n))


if __name__ == "__main__":
    command("attacks.models", __doc__, tables)
