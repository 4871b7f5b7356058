"""Accuracy under privacy: refinement rounds beside one-shot heads, DP-SGD, full-batch DP-GD and diffprivlib.

    python -m benchmarks.refinement.compare --save
    python -m benchmarks.refinement.compare --save --keep  # go on with a run that was stopped
    python -m benchmarks.refinement.compare --figures docs/images  # draw the saved results

Central model except where a row says otherwise, record level, add-remove, delta 1e-5, rows of norm 1. Peers are tuned
for each cell on held-out records at no charge to their budget, in one way for all data sets; everything of privstats
runs as it comes. Every cell has as many draws of the noise as any other, and `se` is their standard error. The file is
written after every cell; small data sets come first, then the large ones model by model. It says which commit measured
each data set, and a run that goes on with it keeps the data sets of other commits as they are.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import Split, agnews, private_tasks
from benchmarks.measuring import RESULTS, Row, Rows, Tables, command
from benchmarks.refinement import peers
from benchmarks.refinement.models import MODELS

EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
TITLE = "accuracy under differential privacy, %: "
RUN = "run"
QUICK = ("LDA", "refined")
_LARGE = 110_000_000  # records x features x classes from which on a data set waits for the others
_LAST = ("full-batch DP-GD", "Opacus DP-SGD", "RDA", "refined, T = 4", "diffprivlib GaussianNB")


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--tasks", nargs="+", help="names of the data sets; all if omitted")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), help="all if omitted")
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--draws", type=int, default=10, help="of the noise, in every cell")
    parser.add_argument(
        "--keep", action="store_true", help="go on with the saved runs; refused if they differ from this"
    )
    parser.add_argument("--figures", type=Path, help="draw the saved results into this folder, and stop")


def tables(options: argparse.Namespace) -> Tables:
    """The run, then a table per data set, again after every cell that was added."""
    if options.figures is not None:
        from benchmarks.refinement.story import draw

        draw(options.json or RESULTS / "refinement.compare.json", options.figures)
        return
    if options.quick:
        options.models, options.epsilons, options.draws = list(QUICK), [1.0], 2
    run = {"commit": _commit(), "draws": options.draws, "search": peers.SEARCH}
    runs, saved = _saved(options, run) if options.keep else ({}, {})
    known = chain(private_tasks(bundled_only=options.quick), () if options.quick else agnews())
    splits = {
        task.name: task.transformed()
        for task in known
        if runs.get(task.name, run)["commit"] == run["commit"] and task.name in (options.tasks or [task.name])
    }
    found = {name: {row["model"]: dict(row) for row in rows} for name, rows in saved.items()}
    yield RUN, list((runs | {name: {"data": name, **run} for name in splits}).values())
    yield from ((TITLE + name, rows) for name, rows in saved.items())
    for name, model, epsilon in _cells(splits, options.models, options.epsilons):
        row = found.setdefault(name, {}).setdefault(model, {"model": model})
        if f"eps {epsilon:g}" not in row and "not measured" not in row:
            row.update(cell(splits[name], model, epsilon, options.draws))
            yield TITLE + name, _in_order(found[name])


def _cells(splits: dict[str, Split], models: list[str], epsilons: list[float]) -> Iterator[tuple[str, str, float]]:
    """Data sets, models and epsilons in the order in which they are measured."""
    small = [name for name, split in splits.items() if _size(split) < _LARGE]
    large = [name for name in splits if name not in small]
    ordered = [model for model in models if model not in _LAST] + [model for model in _LAST if model in models]
    places = [(name, model) for name in small for model in ordered]
    places += [(name, model) for model in ordered for name in large]
    for name, model in places:
        for epsilon in epsilons:
            yield name, model, epsilon


def _size(split: Split) -> int:
    return split[0].size * (int(split[2].max()) + 1)


def _in_order(rows: dict[str, dict[str, Any]]) -> list[Row]:
    return [rows[model] for model in MODELS if model in rows]


def cell(split: Split, model: str, epsilon: float, draws: int) -> dict[str, Any]:
    """Mean and standard error over draws, and the recipe that was found; or why there is none."""
    try:
        drawn = MODELS[model](split, epsilon, draws)
    except ImportError as error:
        return {"not measured": str(error)}
    accuracies = drawn.accuracies
    if len(accuracies) != draws:
        raise ValueError(f"{model} has {len(accuracies)} draws, not {draws}")
    spread = float(np.std(accuracies, ddof=1) / math.sqrt(draws)) if draws > 1 else math.nan
    name = f"{epsilon:g}"
    return {f"eps {name}": float(np.mean(accuracies)), f"se {name}": spread, f"recipe {name}": drawn.recipe}


def _saved(options: argparse.Namespace, run: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, Rows]]:
    """By the name of each data set in the file, the run that measured it and its rows."""
    path = options.json or RESULTS / "refinement.compare.json"
    saved: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    runs = {each["data"]: each for each in saved.get(RUN, [])}
    for each in runs.values():
        if any(each[name] != run[name] for name in ("draws", "search")):
            raise SystemExit(f"{path} holds another run: {each}, not {run}; measure all anew without --keep")
    return runs, {title.removeprefix(TITLE): rows for title, rows in saved.items() if title.startswith(TITLE)}


def _commit() -> str:
    """What was measured: the commit, and whether code differed from it."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = [line for line in git("status", "--porcelain").splitlines() if line.endswith(".py")]
    return (git("rev-parse", "HEAD") or "unknown") + " and changes" * bool(changed)


if __name__ == "__main__":
    command("refinement.compare", __doc__, tables, options)
