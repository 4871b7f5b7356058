"""Private least squares that a user could have instead: DP-GD and Opacus's DP-SGD, tuned at no charge, and diffprivlib.

Not the library. Recipes are chosen on held-out fifths of the training records, which a real user would have to pay for.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from benchmarks.heads.peers import diffprivlib_models
from privstats.contrib.sweep.rivals.private_descent import noise_multiplier

__all__ = [
    "TUNED_ON",
    "Bounds",
    "Recipe",
    "Split",
    "descended",
    "diffprivlib",
    "dp_gd",
    "dp_sgd",
    "held_out",
    "mse",
    "shared",
]

DELTA = 1e-5
RATES, CLIPS, MOMENTA = (0.03, 0.1, 0.3, 1.0, 3.0), (0.01, 0.03, 0.1, 0.3, 1.0), (0.0, 0.9)
FULL_BATCH = tuple((1.0, steps) for steps in (25, 50, 100, 200))
SAMPLED = ((0.1, 100), (0.25, 100))
TUNED_ON = 5
_DIVERGED = 1e9

Split = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""X_train, X_test, y_train, y_test."""


@dataclass(frozen=True)
class Bounds:
    """What is public of a regression: R, the norm of rows, and Y, the size of targets."""

    row: float
    target: float


@dataclass(frozen=True)
class Recipe:
    """Private gradient descent for squares: rate in units of d / R^2, clip in units of R Y.

    Attributes:
        sample: share of the records per step (Poisson); 1 takes all.
        tail: whether the mean of the weights over the last half of the steps is taken, not the last weights.
    """

    rate: float
    clip: float
    momentum: float
    sample: float
    steps: int
    tail: bool = False


def mse(w: NDArray[Any], X: NDArray[Any], y: NDArray[Any]) -> float:
    """Mean squared error of weights ``(d,)``, no more than 1e9."""
    error = float(np.square(y - X @ w).mean())
    return error if error < _DIVERGED else _DIVERGED


def dp_gd(bounds: Bounds, splits: Sequence[Split], epsilon: float, recipe: Recipe | None = None) -> list[float]:
    """Test errors of full-batch DP-GD by this recipe; None: the best of 400 on held-out fifths of these splits."""
    best = recipe or shared([held_out(bounds, splits, epsilon)])
    return [_trained(bounds, split, [best], epsilon, 100 + seed)[best] for seed, split in enumerate(splits)]


def held_out(
    bounds: Bounds, splits: Sequence[Split], epsilon: float, schedules: Sequence[tuple[float, int]] = FULL_BATCH
) -> Mapping[Recipe, float]:
    """Error of every recipe of these schedules on held-out fifths of (at most five of) the training sets, summed."""
    total: dict[Recipe, float] = {}
    for seed, (X, _, y, _) in enumerate(splits[:TUNED_ON]):
        fit, held, fit_y, held_y = train_test_split(X, y, test_size=0.2, random_state=0)
        for schedule in schedules:
            for recipe, error in _trained(bounds, (fit, held, fit_y, held_y), _grid(*schedule), epsilon, seed).items():
                total[recipe] = total.get(recipe, 0.0) + error
    return total


def shared(problems: Sequence[Mapping[Recipe, float]]) -> Recipe:
    """The recipe whose errors over these problems have the least geometric mean."""
    return min(problems[0], key=lambda recipe: sum(math.log(errors[recipe]) for errors in problems))


def dp_sgd(bounds: Bounds, splits: Sequence[Split], epsilon: float) -> list[float]:
    """Test errors of Opacus's DP-SGD at the best of 200 recipes."""
    best = shared([held_out(bounds, splits, epsilon, SAMPLED)])
    return [_opacus(bounds, split, best, epsilon, seed) for seed, split in enumerate(splits)]


def diffprivlib(bounds: Bounds, splits: Sequence[Split], epsilon: float) -> list[float]:
    """Test errors of diffprivlib's linear regression (functional mechanism, pure epsilon-DP); predictions cut to Y.

    Raises:
        ImportError: diffprivlib is not installed.
    """
    model, R, Y = diffprivlib_models().LinearRegression, bounds.row, bounds.target
    errors = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed, (X, X_test, y, y_test) in enumerate(splits):
            fit = model(epsilon=epsilon, bounds_X=(-R, R), bounds_y=(-Y, Y), fit_intercept=False, random_state=seed)
            guess = np.clip(fit.fit(X, y).predict(X_test), -Y, Y)
            errors.append(float(np.square(y_test - guess).mean()))
    return errors


def _grid(sample: float, steps: int) -> list[Recipe]:
    return [Recipe(*chosen, sample, steps) for chosen in itertools.product(RATES, CLIPS, MOMENTA)]


def _trained(
    bounds: Bounds, split: Split, recipes: Sequence[Recipe], epsilon: float, seed: int
) -> Mapping[Recipe, float]:
    """Test errors of recipes that share their schedule, of the last weights and of the tail's mean."""
    first = recipes[0]
    noise = noise_multiplier(epsilon, DELTA, first.sample, first.steps)
    ends = descended(bounds, split, recipes, noise, np.random.default_rng(seed))
    return dict(_errors(split, recipes, ends))


def _errors(split: Split, recipes: Sequence[Recipe], ends: Sequence[NDArray[np.float64]]) -> Iterator[Any]:
    for tail, weights in enumerate(ends):
        for recipe, w in zip(recipes, weights, strict=True):
            yield replace(recipe, tail=bool(tail)), mse(w, split[1], split[3])


def descended(
    bounds: Bounds, split: Split, recipes: Sequence[Recipe], noise: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights after the last step and their mean over the last half, ``(recipes, d)``; all share a schedule.

    Args:
        bounds, split: of the problem; rows and targets within the bounds.
        recipes: with the same sample and steps.
        noise: noise multiplier.
        rng: of noise and samples.
    """
    X, _, y, _ = split
    (n, d), R, Y, sample, steps = X.shape, bounds.row, bounds.target, recipes[0].sample, recipes[0].steps
    rate, clip, momentum = (
        np.array([getattr(recipe, name) for recipe in recipes])[:, None] for name in ("rate", "clip", "momentum")
    )
    rate, clip, length = rate * d / R**2, clip * R * Y, np.linalg.norm(X, axis=1)
    w, velocity, tail = (np.zeros((len(recipes), d)) for _ in range(3))
    for step in range(steps):
        chosen = slice(None) if sample == 1 else np.flatnonzero(rng.random(n) < sample)
        rows = X[chosen]
        residual = w @ rows.T - y[chosen]
        residual *= np.minimum(1, clip / np.maximum(np.abs(residual) * length[chosen], 1e-300))
        G = (residual @ rows + noise * clip * rng.standard_normal(w.shape)) / (sample * n)
        velocity = momentum * velocity + G
        w = np.clip(w - rate * velocity, -1e6, 1e6)  # rates that diverge lose, and need not overflow
        if 2 * step >= steps:
            tail += w / (steps - (steps + 1) // 2)
    return w, tail


def _opacus(bounds: Bounds, split: Split, recipe: Recipe, epsilon: float, seed: int) -> float:
    """Test error of a linear layer that Opacus trains, starting from 0."""
    import torch

    torch.manual_seed(seed)
    X, X_test, y, y_test = split
    model = torch.nn.Linear(X.shape[1], 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    mean, kept = np.zeros(X.shape[1]), 0
    for step in _steps(torch, model, torch.tensor(X, dtype=torch.float32), torch.tensor(y), bounds, recipe, epsilon):
        if 2 * step >= recipe.steps:
            kept += 1
            mean += (model.weight.detach().numpy()[0] - mean) / kept
    return mse(mean if recipe.tail else model.weight.detach().numpy()[0], X_test, y_test)


def _steps(torch: Any, model: Any, rows: Any, targets: Any, bounds: Bounds, recipe: Recipe, epsilon: float) -> Any:
    """Train; yield the number of each step after it."""
    from opacus import PrivacyEngine

    n, d = rows.shape
    batch = math.ceil(n / round(1 / recipe.sample))  # Opacus samples each record with chance 1 / batches
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows, targets.float()), batch_size=batch)
    rate = recipe.rate * d / bounds.row**2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private, optimiser, sampled = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=rate, momentum=recipe.momentum),
            data_loader=loader,
            noise_multiplier=noise_multiplier(epsilon, DELTA, recipe.sample, recipe.steps),
            max_grad_norm=recipe.clip * bounds.row * bounds.target,
        )
        done = 0
        while done < recipe.steps:
            for batch_rows, batch_targets in sampled:
                if done == recipe.steps:
                    break
                optimiser.zero_grad()
                (torch.nn.functional.mse_loss(private(batch_rows)[:, 0], batch_targets) / 2).backward()
                optimiser.step()
                yield done
                done += 1
