"""Ridge regression under privacy: one release, rounds, and a tuned DP-GD, on the ridge paper's data and diabetes.

    python -m benchmarks.refinement.regression --save

Test MSE; record level, add-remove, delta 1e-5. Every draw is another split (and another data set, where it is made up)
and another noise. DP-GD is tuned for each cell on held-out records at no charge; privstats runs as it comes.
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split

import privstats as ps
from benchmarks.measuring import Row, Rows, Tables, command
from benchmarks.papers.ridge.data import client_rows
from benchmarks.refinement.library import CENTRAL, DISTRIBUTED, Setting, played
from privstats import heads
from privstats.course import Rounds
from privstats.dp.gaussian import gaussian_mu
from privstats.estimates.regression import RidgeRecipe

EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
DELTA = 1e-5
TITLE = "test MSE under differential privacy: "
RATES, CLIPS, MOMENTA, STEPS = (0.03, 0.1, 0.3, 1.0, 3.0), (0.01, 0.03, 0.1, 0.3, 1.0), (0.0, 0.9), (25, 50, 100, 200)

Split = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Problem:
    """A regression with its public bounds.

    Attributes:
        name: of the data.
        draw: a split X_train, X_test, y_train, y_test for a seed; rows end in a constant where there is an intercept.
        clip_norm: R.
        target_bound: Y.
    """

    name: str
    draw: Callable[[int], Split]
    clip_norm: float
    target_bound: float

    def clipped(self, seed: int) -> Split:
        """The split within its bounds, which is what every method sees."""
        return self.within(self.draw(seed))

    def within(self, split: Split) -> Split:
        """A split brought within the bounds; test targets stay as they are."""
        X, X_test, y, y_test = split
        return self._short(X), self._short(X_test), np.clip(y, -self.target_bound, self.target_bound), y_test

    def _short(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        norm = np.linalg.norm(X, axis=1, keepdims=True)
        return np.asarray(X * np.minimum(1, self.clip_norm / norm) * (1 - 2**-40))


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
    X, y = np.hstack([X, np.full((len(X), 1), 0.15)]), (y - (25 + 346) / 2) / 100
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
    return X, X_test, y, y_test


PROBLEMS = (Problem("the ridge paper's data", paper, 11.0, 4.0), Problem("diabetes", diabetes, 0.25, 1.61))


def options(parser: argparse.ArgumentParser) -> None:
    """How much to measure."""
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--draws", type=int, default=10)


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set."""
    if options.quick:
        options.epsilons, options.draws = [3.0], 1
    for problem in PROBLEMS[-1:] if options.quick else PROBLEMS:
        yield TITLE + problem.name, compared(problem, options.epsilons, options.draws)


def compared(problem: Problem, epsilons: Sequence[float], draws: int) -> Rows:
    """A row per method."""
    splits = [problem.clipped(seed) for seed in range(draws)]
    exact = [_mse(Ridge(1e-3, fit_intercept=False).fit(X, y).coef_, X_test, y_test) for X, X_test, y, y_test in splits]
    methods: dict[str, Callable[[float], list[float]]] = {
        "one release, Wiener": lambda epsilon: [_one_shot(problem, s, epsilon, k) for k, s in enumerate(splits)],
        "refined": lambda epsilon: [refined(problem, s, epsilon, k, CENTRAL) for k, s in enumerate(splits)],
        "refined, distributed": lambda epsilon: [
            refined(problem, s, epsilon, k, DISTRIBUTED) for k, s in enumerate(splits)
        ],
        "DP-GD, tuned": lambda epsilon: _dp_gd(problem, splits, epsilon),
    }
    rows = [_row(name, epsilons, [method(epsilon) for epsilon in epsilons]) for name, method in methods.items()]
    return [*rows, _row("without privacy", epsilons, [exact] * len(epsilons))]


def _row(name: str, epsilons: Sequence[float], found: Sequence[Sequence[float]]) -> Row:
    row: dict[str, Any] = {"model": name}
    for epsilon, errors in zip(epsilons, found, strict=True):
        row[f"eps {epsilon:g}"] = float(np.mean(errors))
        row[f"se {epsilon:g}"] = float(np.std(errors, ddof=1) / math.sqrt(len(errors))) if len(errors) > 1 else math.nan
    return {**row, "draws": len(found[0])}


def _mse(w: NDArray[Any], X: NDArray[Any], y: NDArray[Any]) -> float:
    return float(np.square(y - X @ w).mean())


def _whole(problem: Problem, split: Split, epsilon: float, setting: Setting) -> ps.Plan:
    X = split[0]
    privacy = ps.Privacy(model=setting.model, unit="record", adjacency="add-remove", epsilon=epsilon, delta=DELTA)
    schema = ps.RidgeSchema(X.shape[1], clip_norm=problem.clip_norm, target_bound=problem.target_bound)
    cohort = ps.Cohort(setting.clients, setting.clients - setting.silent, len(X))
    return ps.Plan(schema=schema, cohort=cohort, privacy=privacy)


def _one_shot(problem: Problem, split: Split, epsilon: float, seed: int) -> float:
    X, X_test, y, y_test = split
    plan = _whole(problem, split, epsilon, CENTRAL)
    parts = [ps.measure(plan.schema, X[k::2], y[k::2]) for k in range(2)]
    release = ps.session.in_clear(plan, parts, ps.randomness.seeded(seed))
    return _mse(heads.Ridge(fit_intercept=False, records=len(X)).fit_release(release).coef_, X_test, y_test)


def refined(problem: Problem, split: Split, epsilon: float, seed: int, setting: Setting) -> float:
    """Test error of a course of the library with the same promise, as it comes."""
    X, X_test, y, y_test = split
    recipe = RidgeRecipe(X.shape[1], len(X), gaussian_mu(epsilon, DELTA), problem.clip_norm, problem.target_bound)
    course = Rounds.within(_whole(problem, split, epsilon, setting), recipe.steps)
    head = heads.RefinedRidge(fit_intercept=False).fit_releases(played(course, X, y, setting, seed))
    return _mse(head.coef_, X_test, y_test)


@dataclass(frozen=True)
class Recipe:
    """DP-GD for squares: rate in units of d / R^2, clip in units of R Y, momentum, steps, last weights or tail."""

    rate: float
    clip: float
    momentum: float
    steps: int
    tail: bool = False


def _dp_gd(problem: Problem, splits: Sequence[Split], epsilon: float) -> list[float]:
    """Errors at the recipe that is best on held-out fifths of (at most five of) the training sets."""
    total: dict[Recipe, float] = {}
    for seed, (X, _, y, _) in enumerate(splits[:5]):
        fit, held, fit_y, held_y = train_test_split(X, y, test_size=0.2, random_state=0)
        for recipe, error in _trained(problem, (fit, held, fit_y, held_y), list(_grid()), epsilon, seed):
            total[recipe] = total.get(recipe, 0.0) + error
    best = min(total, key=total.__getitem__)
    both = (dict(_trained(problem, split, [best], epsilon, 100 + seed)) for seed, split in enumerate(splits))
    return [errors[best] for errors in both]


def _grid() -> Iterator[Recipe]:
    return (Recipe(*chosen) for chosen in itertools.product(RATES, CLIPS, MOMENTA, STEPS))


def _trained(
    problem: Problem, split: Split, recipes: Sequence[Recipe], epsilon: float, seed: int
) -> Iterator[tuple[Recipe, float]]:
    """Test errors of recipes, all that share their steps side by side."""
    rng = np.random.default_rng(seed)
    for steps in dict.fromkeys(recipe.steps for recipe in recipes):
        chosen = [recipe for recipe in recipes if recipe.steps == steps]
        last, tail = descended(problem, split, chosen, math.sqrt(steps) / gaussian_mu(epsilon, DELTA), rng)
        for place, recipe in enumerate(chosen):
            for averaged, weights in ((False, last), (True, tail)):
                if len(recipes) > 1 or averaged == recipe.tail:
                    error = _mse(weights[place], split[1], split[3])
                    named = Recipe(recipe.rate, recipe.clip, recipe.momentum, steps, averaged)
                    yield named, error if math.isfinite(error) else 1e9


def descended(
    problem: Problem, split: Split, recipes: Sequence[Recipe], noise: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights after the last step and their mean over the last half, ``(recipes, d)``."""
    X, _, y, _ = split
    (n, d), R, Y = X.shape, problem.clip_norm, problem.target_bound
    rate, clip, momentum = (
        np.array([getattr(recipe, name) for recipe in recipes])[:, None] for name in ("rate", "clip", "momentum")
    )
    rate, clip, length = rate * d / R**2, clip * R * Y, np.linalg.norm(X, axis=1)
    w, velocity, tail = (np.zeros((len(recipes), d)) for _ in range(3))
    for step in range(recipes[0].steps):
        residual = w @ X.T - y
        residual *= np.minimum(1, clip / np.maximum(np.abs(residual) * length, 1e-300))
        G = (residual @ X + noise * clip * rng.standard_normal(w.shape)) / n
        velocity = momentum * velocity + G
        w = np.clip(w - rate * velocity, -1e6, 1e6)  # rates that diverge lose, and need not overflow
        if 2 * step >= recipes[0].steps:
            tail += w / (recipes[0].steps // 2)
    return w, tail


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    command("refinement.regression", __doc__, tables, options)
