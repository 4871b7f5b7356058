"""Accuracy and speed of every head, beside scikit-learn.

    python -m benchmarks.heads.compare --save --plot docs/images/heads.png

Without noise heads see raw records; under privacy they see releases of (N, A, B), central model, record level,
add-remove, delta 1e-5. Parts: accuracy, random-features, privacy, speed. RDA and what others train under privacy are in
``benchmarks.refinement.compare``.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import Task, tasks
from benchmarks.heads.peers import SCIKIT_LEARN, scikit_learn_accuracy
from benchmarks.heads.speed import FULL, QUICK, speed
from benchmarks.measuring import RESULTS, Row, Rows, Tables, command, results
from benchmarks.refinement.models import one_shot_plan
from benchmarks.refinement_tables import peers_rows
from privstats import heads
from privstats.contrib.sweep import sweep
from privstats.stopwatch import Stopwatch
from privstats.transforms import RandomReLU

EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
DELTA = 1e-5
EXACT_TITLE = "accuracy without noise, %: "
PRIVACY_TITLE = "accuracy under differential privacy, %: "
HEADS: Mapping[str, Callable[[], Any]] = {
    "NaiveBayes": heads.NaiveBayes,
    "LDA": heads.LDA,
    "LDA, total covariance": lambda: heads.LDA(covariance="total"),
    "QDA": heads.QDA,
    "LowRankQDA": heads.LowRankQDA,
    "LowRankQDA, as published": lambda: heads.LowRankQDA(
        rank=8, basis="features", residual="diagonal", pooled_weight=0.0, shrinkage=None
    ),
    "RDA": heads.RDA,
    "RidgeClassifier": heads.RidgeClassifier,
    "FisherMix": heads.FisherMix,
    "ProtoHyper": heads.ProtoHyper,
}
QUICK_HEADS = {name: HEADS[name] for name in ("LDA", "RidgeClassifier")}
PRIVATE: Mapping[str, Callable[[], Any]] = {
    "LDA": heads.LDA,
    "NaiveBayes": heads.NaiveBayes,
    "RidgeClassifier": heads.RidgeClassifier,
}


PARTS = ("accuracy", "random-features", "privacy", "speed")


def options(parser: argparse.ArgumentParser) -> None:
    """What to compare."""
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--tasks", nargs="+", help="names of the data sets; all if omitted")
    parser.add_argument(
        "--heads",
        nargs="+",
        choices=list(HEADS),
        help="measure these anew, without noise, and keep all else that is saved",
    )
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--repeats", type=int, default=10, help="noise draws")
    parser.add_argument("--keep", action="store_true", help="keep saved tables that this run does not measure")
    parser.add_argument("--plot", type=Path, help="draw accuracy against epsilon from the saved results, and stop")


def tables(options: argparse.Namespace) -> Tables:
    """The parts that were asked for."""
    if options.plot is not None:
        plot(options.json or RESULTS / "heads.compare.json", options.plot)
        return
    warnings.simplefilter("ignore", heads.FewRecordsWarning)
    if options.quick:
        options.epsilons, options.repeats = [1.0], 2
    chosen = [t for t in tasks(bundled_only=options.quick) if not options.tasks or t.name in options.tasks]
    if options.keep:
        own = {title for task in chosen for title in _titles(task, options.parts)}
        yield from ((title, rows) for title, rows in results("heads.compare").items() if title not in {*own, "machine"})
    if options.heads:
        yield from _anew({EXACT_TITLE + task.name: task for task in chosen}, options.heads)
        return
    if "accuracy" in options.parts:
        for task in chosen:
            yield EXACT_TITLE + task.name, without_noise(task, QUICK_HEADS if options.quick else HEADS)
    if "random-features" in options.parts:
        rows = [random_features(task) for task in chosen if task.name in ("banking77", "cifar10")]
        if rows:
            yield "ridge on 4096 public ReLU features and the raw ones, %", rows
    if "privacy" in options.parts:
        for task in (task for task in chosen if task.private):
            yield PRIVACY_TITLE + task.name, under_privacy(task, options.epsilons, options.repeats)
    if "speed" in options.parts:
        size = QUICK if options.quick else FULL
        yield f"speed at {size.features} features and {size.classes} classes", speed(size)


def _titles(task: Task, parts: list[str]) -> list[str]:
    """Titles of a data set's own tables."""
    found = {"accuracy": EXACT_TITLE, "privacy": PRIVACY_TITLE}
    return [title + task.name for part, title in found.items() if part in parts]


def _anew(chosen: Mapping[str, Task], names: list[str]) -> Tables:
    """The saved tables, with some heads of some tasks measured again."""
    for title, rows in results("heads.compare").items():
        if title in chosen:
            makers = {name: HEADS[name] for name in names}
            measured = {row["model"]: row for row in without_noise(chosen[title], makers, peers={})}
            yield title, [measured.get(row["model"], row) for row in rows]
        elif title != "machine":
            yield title, rows


def without_noise(
    task: Task, makers: Mapping[str, Callable[[], Any]], peers: Mapping[str, Callable[[], Any]] = SCIKIT_LEARN
) -> Rows:
    """Rows of one data set: our heads, then scikit-learn's."""
    split = task.load()
    X, X_test, y, y_test = split
    rows = []
    for name, make in makers.items():
        watch: Stopwatch[str] = Stopwatch()
        with watch.timing("fit"):
            head = make().fit(X, y)
        with watch.timing("predict"):
            accuracy = 100 * head.score(X_test, y_test)
        fit, predict = watch.seconds["fit"], watch.seconds["predict"]
        rows.append(_row(f"privstats {name}", accuracy, fit, predict, head, X_test, y_test))
    for name, make in peers.items():
        watch = Stopwatch()
        with watch.timing("fit"):
            accuracy = scikit_learn_accuracy(make, split)
        rows.append(_row(f"scikit-learn {name}", accuracy, watch.seconds["fit"], float("nan")))
    return rows


def _row(
    model: str,
    accuracy: float | str,
    fit: float,
    predict: float,
    head: Any = None,
    X: Any = None,
    y: Any = None,
) -> Row:
    return {
        "model": model,
        "accuracy": accuracy,
        "calibration error": heads.expected_calibration_error(head, X, y) if head is not None else float("nan"),
        "log-likelihood": heads.log_likelihood(head, X, y) if head is not None else float("nan"),
        "fit s": fit,
        "predict s": predict,
    }


def random_features(task: Task) -> Row:
    """Ridge by GCV from (N, A, B) of random features, which no client's records are needed for at the server."""
    X, X_test, y, y_test = task.load()
    expand = RandomReLU(seed=0, inputs=X.shape[1], features=4096, keep_inputs=True)
    head = heads.RidgeClassifier(penalty="gcv").fit(expand.apply(X), y)
    return {
        "data": task.name,
        "accuracy": 100 * head.score(expand.apply(X_test), y_test),
        "raw features only": 100 * heads.RidgeClassifier(penalty="gcv").fit(X, y).score(X_test, y_test),
        "penalty": head.penalty_,
    }


def under_privacy(task: Task, epsilons: list[float], repeats: int) -> Rows:
    """Rows of one data set: one per head of (N, A, B), mean and standard error per epsilon."""
    split = task.transformed()
    plan = one_shot_plan(split, "NAB", 1.0, None)
    X, X_test, y, y_test = split
    result = sweep(plan, (X, y), (X_test, y_test), PRIVATE, epsilons, repeats=repeats)
    return [
        {
            "model": f"privstats {name}",
            **_columns("eps", epsilons, [100 * result.at(name, epsilon).mean for epsilon in epsilons]),
            **_columns("se", epsilons, [100 * result.at(name, e).spread / math.sqrt(repeats) for e in epsilons]),
            "recipe": f"no tuning; {100 * result.at(name, float('inf')).mean:.1f} without noise",
        }
        for name in PRIVATE
    ]


def _columns(name: str, epsilons: list[float], values: list[Any]) -> dict[str, Any]:
    return {f"{name} {epsilon:g}": value for epsilon, value in zip(epsilons, values, strict=True)}


def plot(results: Path, path: Path) -> None:
    """Accuracy against epsilon, a panel per data set whose table under privacy is among the results."""
    from matplotlib.figure import Figure

    document = json.loads(results.read_text())
    tables = {k.removeprefix(PRIVACY_TITLE): v for k, v in document.items() if k.startswith(PRIVACY_TITLE)}
    figure = Figure(figsize=(3.6 * len(tables), 3.4), layout="constrained")
    panels = figure.subplots(1, len(tables), squeeze=False)[0]
    for axes, (name, rows) in zip(panels, tables.items(), strict=True):
        for row in (*rows, *peers_rows(name)):
            points = [(float(k[4:]), v) for k, v in row.items() if k.startswith("eps ") and not isinstance(v, str)]
            x, y = np.array(points).reshape(-1, 2).T  # without points too, so that colours mean the same in every panel
            axes.plot(x, y, marker="o", markersize=3, label=row["model"])
        axes.set(title=name, xscale="log", xlabel="epsilon (delta 1e-5)", ylim=(0, 100))
    figure.axes[0].set_ylabel("test accuracy, %")
    figure.axes[0].legend(fontsize="x-small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    command("heads.compare", __doc__, tables, options)
