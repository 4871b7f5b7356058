"""One recipe of DP-SGD and one of DP-GD for every data set and budget: what choosing none costs.

    python -m benchmarks.refinement.one_recipe --save

Every recipe of the search of ``gradient`` is trained for every data set and epsilon and scored on a held-out fifth of
the training records. The recipe of a family is the one that is on average least below the best of its cell; it stands
in ``privstats.workflows.sweep``. What it loses on a set it did not see: the same choice without that set's cells.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from benchmarks.data import Split, agnews, private_tasks
from benchmarks.measuring import Row, Tables, command
from benchmarks.refinement import gradient
from benchmarks.refinement.gradient import Schedule
from privstats.workflows.sweep.private_descent import Recipe, noise_multiplier

EPSILONS = (0.3, 1.0, 3.0, 8.0)
DELTA = 1e-5
FAMILIES: Mapping[str, Sequence[Schedule]] = {
    "dp-sgd": gradient.SAMPLED,
    "dp-gd": ((1.0, 25), (1.0, 50), (1.0, 100)),
}
TASKS = ("digits", "banking77", "cifar10", "fmnist", "agnews")
TITLE = "points below the best recipe of a cell: "
_STEP_ROWS, _MOST_ROWS, _MOST_HELD = 500, 5_000, 2_000


def tables(options: argparse.Namespace) -> Tables:
    """A table per family: its recipe, then what it loses on each data set."""
    tasks = [t for t in (*private_tasks(bundled_only=options.quick), *agnews()) if t.name in TASKS]
    splits = {task.name: task.transformed() for task in (tasks[:1] if options.quick else tasks)}
    for family, schedules in FAMILIES.items():
        tried = schedules[:1] if options.quick else schedules
        recipes = [each for schedule in tried for last in gradient.grid(schedule) for each in (last, tailed(last))]
        lost = {
            name: losses(split, tried, EPSILONS[1:3]) if options.quick else losses(split, tried, EPSILONS)
            for name, split in splits.items()
        }
        yield TITLE + family, list(_rows(recipes, lost))


def tailed(recipe: Recipe) -> Recipe:
    """The same with a tail average."""
    return Recipe(recipe.rate, recipe.clip, recipe.momentum, recipe.steps, recipe.sample, tail=True)


def losses(split: Split, schedules: Sequence[Schedule], epsilons: Sequence[float]) -> NDArray[np.float64]:
    """Points below the best recipe, ``(epsilons, recipes)``; each schedule's last weights and tail averages in turn."""
    X, _, y, _ = split
    fit, held, fit_y, held_y = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    rng, found = np.random.default_rng(0), []
    for epsilon in epsilons:
        scores = []
        for sample, steps in schedules:
            rows = min(int(_STEP_ROWS / sample), _MOST_ROWS)
            inner = (fit[:rows], held[:_MOST_HELD], fit_y[:rows], held_y[:_MOST_HELD])
            noise = noise_multiplier(epsilon, DELTA, sample, steps)
            scores.append(gradient.train(inner, gradient.grid((sample, steps)), noise, rng, records=len(fit)).ravel())
        found.append(100 * np.concatenate(scores))
    points = np.array(found)
    return np.asarray(points.max(axis=1, keepdims=True) - points)


def _rows(recipes: Sequence[Recipe], lost: Mapping[str, NDArray[np.float64]]) -> Sequence[Row]:
    """The choice of all sets on all of them, then on each; ``unseen`` is what the choice of the others loses on it."""
    best = _choice(list(lost.values()))
    rows: list[Row] = []
    for name, own in lost.items():
        unseen = _choice([each for other, each in lost.items() if other != name] or [own])
        said = {"mean": own[:, best].mean(), "worst": own[:, best].max(), "unseen": own[:, unseen].mean()}
        rows.append(
            {"data": name, "recipe": str(recipes[unseen]), **{key: float(value) for key, value in said.items()}}
        )
    means = {key: float(np.mean([row[key] for row in rows])) for key in ("mean", "unseen")}
    worst = max(row["worst"] for row in rows)
    return [{"data": "all", "recipe": str(recipes[best]), **means, "worst": worst}, *rows]


def _choice(lost: Sequence[NDArray[np.float64]]) -> int:
    """The recipe of the least mean loss, every data set counting alike."""
    return int(np.mean([each.mean(axis=0) for each in lost], axis=0).argmin())


if __name__ == "__main__":
    command("refinement.one_recipe", __doc__, tables)
