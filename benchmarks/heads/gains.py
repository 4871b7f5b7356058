"""Accuracies of models over like draws, and what each gains over the first."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Split, agnews, private_tasks
from benchmarks.measuring import Row, Rows, Tables, results, standard_error

__all__ = ["Scores", "gains", "public_options", "public_tables"]

Scores: TypeAlias = Callable[[Split, int, Sequence[float], int], Iterable[tuple[float, ...]]]
"""From a split, public records per class, epsilons and a seed: accuracies in percent, one per model, per epsilon."""

_TASKS = ("digits", "banking77", "cifar10", "fmnist", "mnist5k", "letter", "agnews")
_PER_CLASS = (1, 5)


def gains(found: NDArray[np.float64], models: Sequence[str], epsilons: Sequence[float]) -> Rows:
    """A row per model: mean and standard error per epsilon, and those of its gain over the first model.

    Args:
        found: accuracies, ``(draws, epsilons, models)``; the models of a draw share its records and noise.
        models: their names.
        epsilons: of the promises.
    """
    rows: list[Row] = []
    for place, model in enumerate(models):
        row: dict[str, object] = {"model": model}
        for at, epsilon in enumerate(epsilons):
            own, gain = found[:, at, place], found[:, at, place] - found[:, at, 0]
            row |= {f"eps {epsilon:g}": float(own.mean()), f"se {epsilon:g}": standard_error(own)}
            row |= {f"gain {epsilon:g}": float(gain.mean()), f"gain se {epsilon:g}": standard_error(gain)}
        rows.append(row)
    return rows


def public_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a comparison with public records."""
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--tasks", nargs="+", choices=_TASKS, default=list(_TASKS))
    parser.add_argument("--keep", action="store_true", help="keep saved tables that this run does not measure")


def public_tables(
    name: str, scores: Scores, models: Sequence[str], epsilons: Sequence[float], options: argparse.Namespace
) -> Tables:
    """A table of :func:`gains` per data set and number of public records of each class.

    Args:
        name: of the saved results, from which ``--keep`` takes the tables that are not measured.
        scores: one draw.
        models: their names.
        epsilons: of the promises; 1 alone in a quick run.
        options: those of :func:`public_options`, and ``quick``.
    """
    draws, names = (2, ["digits"]) if options.quick else (options.draws, options.tasks)
    epsilons = (1.0,) if options.quick else epsilons
    kept = results(name) if options.keep else {}
    for task in chain(private_tasks(bundled_only=options.quick), () if options.quick else agnews()):
        split = task.transformed() if task.name in names else None
        for count in _PER_CLASS:
            title = f"accuracy, %: {task.name}, {count} per class"
            if split is not None:
                found = np.array([list(scores(split, count, epsilons, seed)) for seed in range(draws)])
                yield title, gains(found, models, epsilons)
            elif title in kept:
                yield title, kept[title]
