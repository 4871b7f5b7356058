"""Accuracy under privacy: refinement rounds beside one-shot heads, DP-SGD, full-batch DP-GD and diffprivlib.

    python -m benchmarks.refinement.compare --save

Central model except where a row says otherwise, record level, add-remove, delta 1e-5, rows of norm 1. Peers are tuned
for each cell on held-out records at no charge to their budget; everything of privstats runs as it comes. `se` is the
standard error over draws of the noise.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from benchmarks.data import Split, Task, private_tasks
from benchmarks.measuring import Row, Tables, command, results
from benchmarks.refinement.models import MODELS, Draws, Model

EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
TITLE = "accuracy under differential privacy, %: "
QUICK = ("LDA", "refined, T = 4, real numbers")


def options(parser: argparse.ArgumentParser) -> None:
    """What to compare."""
    parser.add_argument("--tasks", nargs="+", help="names of the data sets; all if omitted")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), help="all if omitted")
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--draws", type=int, default=10, help="noise draws; slow models take fewer and say so")
    parser.add_argument("--keep", action="store_true", help="keep saved rows that this run does not measure")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set."""
    if options.quick:
        options.models, options.epsilons, options.draws = list(QUICK), [1.0], 2
    saved = results("refinement.compare") if options.keep else {}
    chosen = {t.name: t for t in private_tasks(bundled_only=options.quick)}
    for name, task in chosen.items():
        old = {row["model"]: row for row in saved.get(TITLE + name, [])}
        if not options.tasks or name in options.tasks:
            new = measured(task, options.models, options.epsilons, options.draws)
            old = {model: new.get(model, old.get(model)) for model in MODELS if model in new or model in old}
        if old:
            yield TITLE + name, list(old.values())


def measured(task: Task, models: list[str], epsilons: list[float], draws: int) -> dict[str, Row]:
    """A row per model."""
    split = task.transformed()
    return {name: row(name, MODELS[name], split, epsilons, draws) for name in models}


def row(name: str, model: Model, split: Split, epsilons: list[float], draws: int) -> Row:
    """Mean and standard error per epsilon, the number of draws and the recipes."""
    try:
        found: list[Draws] = [model(split, epsilon, draws) for epsilon in epsilons]
    except ImportError as error:
        return {"model": name, "recipe": f"not measured: {error}"}
    cells: dict[str, Any] = {"model": name}
    for epsilon, drawn in zip(epsilons, found, strict=True):
        cells[f"eps {epsilon:g}"] = float(np.mean(drawn.accuracies))
        draws = len(drawn.accuracies)
        spread = np.std(drawn.accuracies, ddof=1) / math.sqrt(draws) if draws > 1 else math.nan
        cells[f"se {epsilon:g}"] = float(spread)
    recipes = "; ".join(drawn.recipe for drawn in found if drawn.recipe)
    return {**cells, "draws": len(found[0].accuracies), "recipe": recipes}


if __name__ == "__main__":
    command("refinement.compare", __doc__, tables, options)
