"""What rounds over a torch module could gain over the rounds of a softmax: a hidden layer, and an adapter.

    python -m benchmarks.refinement.module_rounds --save

A round over a module is one full batch of clipped gradients with Gaussian noise. Opacus sums it in clear here; masks
and integers would not change the weights visibly. The module's T rounds have the whole budget and the best recipe of
a grid, chosen on held-out records at no charge. An adapter is a hidden layer beside the scores of the refined softmax,
and it starts from them at no charge either. So the columns of modules are bounds from above. Beside them stand the
library's own rounds, also behind public random features, and what a hidden layer reaches without privacy. Central,
record level, add-remove, delta 1e-5, rows of norm 1, the first 10,000 training records of a set.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.data import Split, agnews, private_tasks
from benchmarks.measuring import Row, Tables, command
from benchmarks.refinement.library import CENTRAL, course_of, played
from privstats import heads
from privstats.dp import gaussian_epsilon, gaussian_mu
from privstats.transforms import CentreRows, RandomReLU, UnitNorm, apply
from privstats.workflows.sweep.private_descent import Recipe, trained

TITLE = "accuracy under differential privacy with a hidden layer, %: "
DELTA, EPSILONS = 1e-5, (1.0, 8.0)
ROUNDS = (6, 24)
RATES, CLIPS, MOMENTUM = (2.0, 8.0, 32.0), (0.3, 1.0), 0.9
TASKS = ("digits", "cifar10", "agnews")
HIDDEN, FEATURES, SCALE = 64, 512, 8.0
OPEN = Recipe(1.0, 1e6, 0.9, 600, 1.0)
MOST, _TUNED_ON = 10_000, 3_000


@dataclass(frozen=True)
class Records:
    """Rows and labels to train on and to score on; rows of a module with a start hold its scores in front."""

    split: Split
    classes: int

    @property
    def features(self) -> int:
        """Columns of the rows."""
        return int(self.split[0].shape[1])


def hidden(features: int, classes: int) -> Any:
    """A hidden layer of tanh, of rows of norm 1 that are scaled to the size that torch's start is made for."""
    import torch

    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = torch.nn.Linear(features, HIDDEN), torch.nn.Linear(HIDDEN, classes)

        def forward(self, rows: Any) -> Any:
            return self.last(torch.tanh(self.first(SCALE * rows)))

    return Scaled()


def adapter(features: int, classes: int) -> Any:
    """The scores that a row begins with, and beside them a hidden layer of the rest whose last weights are 0."""
    import torch

    class Adapter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.beside = hidden(features - classes, classes)
            for parameter in self.beside.last.parameters():
                torch.nn.init.zeros_(parameter)

        def forward(self, rows: Any) -> Any:
            return rows[:, :classes] + self.beside(rows[:, classes:])

    return Adapter()


Make = Callable[[int, int], Any]
MODULES: Mapping[str, Make] = {"hidden layer": hidden, "adapter": adapter}


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set, a row per epsilon."""
    every = (*private_tasks(bundled_only=options.quick), *([] if options.quick else agnews()))
    for task in (task for task in every if task.name in TASKS):
        X, X_test, y, y_test = task.transformed()
        split = (X[:MOST], X_test, y[:MOST], y_test)
        own = Records(split, int(split[2].max()) + 1)
        epsilons, rounds, draws = ((8.0,), (2,), 1) if options.quick else (EPSILONS, ROUNDS, 2)
        opened = 0.0 if options.quick else accuracy(own, hidden, OPEN, math.inf, 0)
        rows: list[Row] = []
        for epsilon in epsilons:
            rows.append({"epsilon": epsilon, **_row(own, epsilon, rounds, draws), "hidden layer, no DP": opened})
            yield TITLE + task.name, rows


def _row(own: Records, epsilon: float, rounds: Sequence[int], draws: int) -> Row:
    softmax = [refined(own.split, epsilon, seed) for seed in range(draws)]
    started = Records(_beginning(own.split, softmax[0]), own.classes)
    wide = _wide(own.split)
    row: dict[str, object] = {
        "refined softmax": _mean([100 * head.score(own.split[1], own.split[3]) for head in softmax]),
        "refined softmax, random features": _mean(
            [100 * refined(wide, epsilon, seed).score(wide[1], wide[3]) for seed in range(draws)]
        ),
    }
    for (name, make), T in itertools.product(MODULES.items(), rounds):
        records = started if make is adapter else own
        best = tuned(records, make, T, epsilon)
        row[f"{name}, T = {T}"] = _mean([accuracy(records, make, best, epsilon, seed) for seed in range(draws)])
        row[f"recipe of {name}, T = {T}"] = str(best)
    return row


def tuned(records: Records, make: Make, T: int, epsilon: float) -> Recipe:
    """The best recipe on a fifth that is held out; some rows stand for all, with the noise of all."""
    X, _, y, _ = records.split
    fit, held, fit_y, held_y = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    part = Records((fit[:_TUNED_ON], held, fit_y[:_TUNED_ON], held_y), records.classes)
    fewer = gaussian_epsilon(gaussian_mu(epsilon, DELTA) * len(fit) / len(part.split[0]), DELTA)
    recipes = [Recipe(rate, clip, MOMENTUM, T, 1.0) for rate, clip in itertools.product(RATES, CLIPS)]
    return max(recipes, key=lambda recipe: accuracy(part, make, recipe, fewer, 0))


def accuracy(records: Records, make: Make, recipe: Recipe, epsilon: float, seed: int) -> float:
    """Accuracy in percent of a module after its rounds."""
    import torch

    X, X_test, y, y_test = records.split
    module = trained(partial(make, records.features, records.classes), X, y, recipe, epsilon, DELTA, seed)
    with torch.no_grad():
        guess = module(torch.tensor(X_test, dtype=torch.float32)).argmax(dim=1).numpy()
    return 100 * float((guess == y_test).mean())


def refined(split: Split, epsilon: float, seed: int) -> heads.RefinedSoftmax:
    """The head of the library's own rounds."""
    X, _, y, _ = split
    return heads.RefinedSoftmax().fit_releases(played(course_of(split, epsilon, DELTA), X, y, CENTRAL, seed))


def _beginning(split: Split, head: heads.RefinedSoftmax) -> Split:
    """Rows with the head's scores in front."""
    X, X_test, y, y_test = split
    return np.hstack([head.decision_function(X), X]), np.hstack([head.decision_function(X_test), X_test]), y, y_test


def _wide(split: Split) -> Split:
    """The rows behind public random features, again of norm 1."""
    X, X_test, y, y_test = split
    maps = (RandomReLU(seed=0, inputs=X.shape[1], features=FEATURES), CentreRows(), UnitNorm())
    return apply(maps, X), apply(maps, X_test), y, y_test


def _mean(scores: Sequence[float]) -> float:
    return float(np.mean(scores))


if __name__ == "__main__":
    command("refinement.module_rounds", __doc__, tables)
