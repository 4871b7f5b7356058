"""Regression under privacy: one release, rounds, and what others train, on five problems.

    python -m benchmarks.refinement.regression --save
    python -m benchmarks.refinement.regression --save --keep --models "refined, T = 24"  # all others as they are saved

Test MSE; record level, add-remove, delta 1e-5. Every draw is another split (another data set, where it is made up) and
another noise. DP-GD and DP-SGD are tuned for each cell on held-out records at no charge, and DP-GD once more by the
other problems; privstats runs as it is. The row "before" is that of the first version that had 24 rounds, measured by
that version; every run but a quick one keeps it.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_friedman2
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split

import privstats as ps
from benchmarks.measuring import Row, Rows, Tables, command, results
from benchmarks.papers.ridge.data import client_rows
from benchmarks.refinement import least_squares
from benchmarks.refinement.least_squares import DELTA, Bounds, Split, mse
from benchmarks.refinement.library import CENTRAL, DISTRIBUTED, Setting, played
from privstats import heads
from privstats.course import Rounds

EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
TITLE = "test MSE under differential privacy: "

_BEFORE, _AFTER = "refined, T = 24, before", "refined, T = 24"

Method: TypeAlias = Callable[["Problem", Sequence[Split], float], list[float]]


@dataclass(frozen=True)
class Problem:
    """A regression with its public bounds.

    Attributes:
        name: of the data.
        draw: a split X_train, X_test, y_train, y_test for a seed; rows end in a constant where there is an intercept.
        bounds: R and Y.
        draws: how many splits and noises; more where errors differ much from one to the other.
    """

    name: str
    draw: Callable[[int], Split]
    bounds: Bounds
    draws: int = 10

    def clipped(self, seed: int) -> Split:
        """The split within its bounds, which is what every method sees."""
        return self.within(self.draw(seed))

    def within(self, split: Split) -> Split:
        """A split brought within the bounds; test targets stay as they are."""
        X, X_test, y, y_test = split
        return self._short(X), self._short(X_test), np.clip(y, -self.bounds.target, self.bounds.target), y_test

    def _short(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        norm = np.linalg.norm(X, axis=1, keepdims=True)
        return np.asarray(X * np.minimum(1, self.bounds.row / norm) * (1 - 2**-40))


def paper(seed: int, clients: int = 20, each: int = 500, d: int = 100, heterogeneity: float = 0.5) -> Split:
    """The one-shot ridge paper's data (section V-A): a mean and mild scales per client, noise variance .01."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(d)
    X = np.vstack([client_rows(rng, each, d, heterogeneity) for _ in range(clients)])
    y = X @ (w / np.linalg.norm(w)) + 0.1 * rng.standard_normal(len(X))
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    return X, X_test, y, y_test


def diabetes(seed: int) -> Split:
    """scikit-learn's 442 patients; the target is centred in its published range and counted in hundreds."""
    X, y = load_diabetes(return_X_y=True)
    return _parted(X, 0.15, (y - (25 + 346) / 2) / 100, seed)


def breast_cancer(seed: int) -> Split:
    """569 tumours: the worst concavity from the 29 other attributes, all scaled to [-1, 1] by their ranges."""
    X = load_breast_cancer().data
    X = 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1
    return _parted(np.delete(X, 26, axis=1), 1.0, X[:, 26], seed)


def digits(seed: int) -> Split:
    """1,797 pictures: how dark the lower half is, from the 32 pixels of the upper."""
    X = load_digits().data / 8 - 1
    return _parted(X[:, :32], 1.0, 3 * X[:, 32:].mean(axis=1) + 1, seed)


def friedman(seed: int) -> Split:
    """Friedman's second problem, 4,000 training records, on 100 random cosines of its four inputs."""
    X, y = make_friedman2(5_000, noise=60.0, random_state=seed)
    unit = (X - [50, 300 * np.pi, 0.5, 6]) / [50, 260 * np.pi, 0.5, 5]
    rng = np.random.default_rng(seed)
    cosines = np.cos(unit @ rng.standard_normal((4, 100)) + rng.uniform(0, 2 * np.pi, 100)) * math.sqrt(2 / 100)
    return _parted(cosines, 0.5, (y - 500) / 400, seed, 0.2)


def _parted(X: NDArray[Any], constant: float, y: NDArray[Any], seed: int, test: float = 0.25) -> Split:
    X = np.hstack([X, np.full((len(X), 1), constant)])
    X, X_test, y, y_test = train_test_split(X, y, test_size=test, random_state=seed)
    return X, X_test, y, y_test


PROBLEMS = (
    Problem("the ridge paper's data", paper, Bounds(11.0, 4.0)),
    Problem("diabetes", diabetes, Bounds(0.25, 1.61), 40),
    Problem("breast cancer", breast_cancer, Bounds(4.5, 1.0), 40),
    Problem("digits", digits, Bounds(5.5, 2.0), 40),
    Problem("Friedman 2, random cosines", friedman, Bounds(1.2, 3.0)),
)


def options(parser: argparse.ArgumentParser) -> None:
    """How much to measure."""
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--draws", type=int, help="of every problem [10, and 40 of the small ones]")
    names = [problem.name for problem in PROBLEMS]
    parser.add_argument("--data", nargs="+", default=names, choices=names, metavar="DATA")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS), metavar="MODEL")
    parser.add_argument(
        "--keep", action="store_true", help="keep the saved rows of all models and data that are not named"
    )


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set."""
    if options.quick:
        options.epsilons, options.draws = [3.0], 1
        options.models = ["one release, Wiener", "refined, T = 4", "full-batch DP-GD"]
        options.data = ["diabetes"]
    saved = {} if options.quick else results("refinement.regression")
    for problem in PROBLEMS:
        title = TITLE + problem.name
        rows = [row for row in saved.get(title, ()) if options.keep or row["model"] == _BEFORE]
        if problem.name in options.data:
            rows += compared(problem, options.epsilons, options.draws or problem.draws, options.models)
        found = {row["model"]: row for row in rows}
        if found:
            yield title, [found[name] for name in _ORDER if name in found]


def compared(problem: Problem, epsilons: Sequence[float], draws: int, models: Sequence[str]) -> Rows:
    """A row per model; those that cannot run here are left out."""
    splits = [problem.clipped(seed) for seed in range(draws)]
    rows = []
    for name in models:
        start = time.process_time()
        try:
            found = [MODELS[name](problem, splits, epsilon) for epsilon in epsilons]
        except ImportError:
            continue
        rows.append(_row(name, epsilons, found, time.process_time() - start))
    exact = [mse(Ridge(1e-3, fit_intercept=False).fit(X, y).coef_, X_test, y_test) for X, X_test, y, y_test in splits]
    return [*rows, _row("without privacy", epsilons, [exact] * len(epsilons), 0.0)]


def _row(name: str, epsilons: Sequence[float], found: Sequence[Sequence[float]], seconds: float) -> Row:
    row: dict[str, Any] = {"model": name}
    for epsilon, errors in zip(epsilons, found, strict=True):
        row[f"eps {epsilon:g}"] = float(np.mean(errors))
        row[f"se {epsilon:g}"] = float(np.std(errors, ddof=1) / math.sqrt(len(errors))) if len(errors) > 1 else math.nan
    return {**row, "draws": len(found[0]), "CPU seconds": round(seconds, 1)}


def _whole(problem: Problem, split: Split, epsilon: float, setting: Setting) -> ps.Plan:
    X, bounds = split[0], problem.bounds
    privacy = ps.Privacy(model=setting.model, unit="record", adjacency="add-remove", epsilon=epsilon, delta=DELTA)
    schema = ps.RidgeSchema(X.shape[1], clip_norm=bounds.row, target_bound=bounds.target)
    cohort = ps.Cohort(setting.clients, setting.clients - setting.silent, len(X))
    return ps.Plan(schema=schema, cohort=cohort, privacy=privacy)


def _one_shot(problem: Problem, splits: Sequence[Split], epsilon: float) -> list[float]:
    errors = []
    for seed, (X, X_test, y, y_test) in enumerate(splits):
        plan = _whole(problem, (X, X_test, y, y_test), epsilon, CENTRAL)
        parts = [ps.measure(plan.schema, X[k::2], y[k::2]) for k in range(2)]
        release = ps.session.aggregate_unmasked(plan, parts, ps.randomness.seeded(seed))
        head = heads.Ridge(solver="wiener", fit_intercept=False, records=len(X)).fit_release(release)
        errors.append(mse(head.coef_, X_test, y_test))
    return errors


def refined(problem: Problem, split: Split, epsilon: float, seed: int, setting: Setting, rounds: int = 24) -> float:
    """Test error of a course of the library with the same promise."""
    X, X_test, y, y_test = split
    course = Rounds.within(_whole(problem, split, epsilon, setting), rounds)
    head = heads.RefinedRidge(fit_intercept=False).fit_releases(played(course, X, y, setting, seed))
    return mse(head.coef_, X_test, y_test)


def _refined(rounds: int, setting: Setting) -> Method:
    def method(problem: Problem, splits: Sequence[Split], epsilon: float) -> list[float]:
        return [refined(problem, split, epsilon, seed, setting, rounds) for seed, split in enumerate(splits)]

    return method


def _tuned_elsewhere(problem: Problem, splits: Sequence[Split], epsilon: float) -> list[float]:
    """DP-GD by the recipe that is best on the other problems."""
    others = [_held_out(other, epsilon) for other in PROBLEMS if other != problem]
    return least_squares.dp_gd(problem.bounds, splits, epsilon, least_squares.shared(others))


@cache
def _held_out(problem: Problem, epsilon: float) -> Mapping[least_squares.Recipe, float]:
    splits = [problem.clipped(seed) for seed in range(least_squares.TUNED_ON)]
    return least_squares.held_out(problem.bounds, splits, epsilon)


def _peer(train: Callable[[Bounds, Sequence[Split], float], list[float]]) -> Method:
    return lambda problem, splits, epsilon: train(problem.bounds, splits, epsilon)


MODELS: Mapping[str, Method] = {
    "one release, Wiener": _one_shot,
    "diffprivlib": _peer(least_squares.diffprivlib),
    "Opacus DP-SGD": _peer(least_squares.dp_sgd),
    "full-batch DP-GD": _peer(least_squares.dp_gd),
    "full-batch DP-GD, tuned on the other four": _tuned_elsewhere,
    "refined, T = 4": _refined(4, CENTRAL),
    "refined, T = 6": _refined(6, CENTRAL),
    _AFTER: _refined(24, CENTRAL),
    "refined, T = 48": _refined(48, CENTRAL),
    "refined, T = 6, distributed": _refined(6, DISTRIBUTED),
    "refined, T = 24, distributed": _refined(24, DISTRIBUTED),
}
_ORDER = [row for name in MODELS for row in ((_BEFORE, name) if name == _AFTER else (name,))] + ["without privacy"]


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    command("refinement.regression", __doc__, tables, options)
