"""Accuracy against the number of rounds that share a budget.

    python -m benchmarks.refinement.rounds --save --plot docs/images/rounds.png

Central model, record level, add-remove, delta 1e-5, the library's noise; every T is a course of its own, which shares
its budget among T rounds.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import private_tasks
from benchmarks.measuring import RESULTS, Rows, Tables, command
from benchmarks.refinement.library import CENTRAL, Records, course_of, played
from benchmarks.refinement.models import DELTA
from privstats import heads

ROUNDS = (1, 2, 4, 6, 8)
EPSILONS = (0.3, 1.0, 8.0)
TASKS = ("digits", "banking77", "cifar10")
TITLE = "accuracy by number of rounds, %: "


def options(parser: argparse.ArgumentParser) -> None:
    """What to measure."""
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--plot", type=Path, help="draw the saved results, and stop where nothing is to be saved")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set: a row per epsilon and number of rounds."""
    if options.plot is not None and not (options.save or options.json):
        plot(RESULTS / "refinement.rounds.json", options.plot)
        return
    rounds, epsilons, draws = ((1, 2), (1.0,), 1) if options.quick else (ROUNDS, EPSILONS, options.draws)
    for task in private_tasks(bundled_only=options.quick):
        if task.name in TASKS:
            yield TITLE + task.name, by_rounds(task.transformed(), rounds, epsilons, draws)
    if options.plot is not None and options.json is not None:
        plot(options.json, options.plot)


def by_rounds(split: Any, rounds: tuple[int, ...], epsilons: tuple[float, ...], draws: int) -> Rows:
    """Rows: epsilon, T, mean accuracy and its standard error."""
    X, X_test, y, y_test = split
    records = Records(X, y, CENTRAL.clients)
    rows = []
    for epsilon in epsilons:
        for T in rounds:
            course = course_of(split, epsilon, DELTA, T)
            scores = []
            for seed in range(draws):
                releases = played(course, X, y, CENTRAL, seed, records)
                scores.append(100 * heads.RefinedSoftmax().fit_releases(releases).score(X_test, y_test))
            spread = float(np.std(scores, ddof=1) / math.sqrt(draws)) if draws > 1 else math.nan
            rows.append({"epsilon": epsilon, "T": T, "accuracy": float(np.mean(scores)), "se": spread, "draws": draws})
    return rows


def plot(results: Path, path: Path) -> None:
    """Accuracy against T, a panel per data set, a line per epsilon."""
    from matplotlib.figure import Figure

    document = json.loads(results.read_text())
    found = {title.removeprefix(TITLE): rows for title, rows in document.items() if title.startswith(TITLE)}
    figure = Figure(figsize=(3.2 * len(found), 3.2), layout="constrained")
    for axes, (name, rows) in zip(figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True):
        for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
            chosen = [row for row in rows if row["epsilon"] == epsilon]
            T, mean, error = (np.array([row[key] for row in chosen], float) for key in ("T", "accuracy", "se"))
            axes.errorbar(T, mean, np.nan_to_num(error), marker="o", markersize=3, label=f"epsilon {epsilon:g}")
        axes.set(title=name, xlabel="rounds T", xticks=ROUNDS)
    figure.axes[0].set_ylabel("test accuracy, %")
    figure.axes[-1].legend(fontsize="x-small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    command("refinement.rounds", __doc__, tables, options)
