"""One-shot federated ridge regression: Tables II to VII, its figures and theorems, each cell beside what is printed.

    python -m benchmarks.papers.one_shot_ridge --save --figures docs/images

The paper's synthetic data, five seeds as it has five trials. Ours runs through plans, integer sums and the heads of the
library; masks are left out where they would add time and no digit, and put in where bytes or vanished clients count.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.measuring import Rows, Tables
from benchmarks.papers.ridge.accuracy import (
    FIGURE_3,
    TABLE_3,
    TABLE_6,
    baselines,
    clients,
    convergence,
    heterogeneity,
)
from benchmarks.papers.ridge.bytes_and_projections import TABLE_4, TABLE_7, communication, projections
from benchmarks.papers.ridge.distances import distances
from benchmarks.papers.ridge.exactness import dropouts, penalties, recovery
from benchmarks.papers.ridge.kernels import kernels
from benchmarks.papers.ridge.perturbed import perturbations
from benchmarks.papers.ridge.privacy import HONEST, TABLE_5, privacy
from benchmarks.papers.ridge.scale import FULL, QUICK, Scale
from benchmarks.papers.ridge.solving import FIGURE_2B, computation, large
from benchmarks.papers.ridge.theory import composition, crossover, first_step, invariance
from benchmarks.papers.running import Parts, Pictures, lines, paper_command

_MEASURES: Sequence[Callable[[Scale], Tables]] = (
    *(recovery, baselines, heterogeneity, communication, computation, convergence),
    *(privacy, clients, projections, distances, dropouts, penalties, large, kernels, perturbations),
    *(invariance, crossover, composition, first_step),
)
PARTS: Parts = {
    measure.__name__: lambda options, measure=measure: measure(QUICK if options.quick else FULL)  # type: ignore[misc]
    for measure in _MEASURES
}


def _heterogeneity(axes: Any, tables: Mapping[str, Rows]) -> None:
    lines(axes, tables[TABLE_3.title], ("One-Shot", "FedAvg", "FedProx"), published=True)
    axes.set(xlabel="heterogeneity gamma", ylabel="test MSE")


def _communication(axes: Any, tables: Mapping[str, Rows]) -> None:
    columns = ("One-Shot", "FedAvg-200", "privstats, masked, all messages")
    lines(axes, tables[TABLE_4.title], columns, published=False)
    axes.set(xlabel="features d", ylabel="MB a client uploads", xscale="log", yscale="log")


def _computation(axes: Any, tables: Mapping[str, Rows]) -> None:
    lines(axes, tables[FIGURE_2B.title], ("server's solve", "sums of 20 clients", "FedAvg-200"), published=False)
    axes.set(xlabel="features d", ylabel="processor seconds", xscale="log", yscale="log")


def _convergence(axes: Any, tables: Mapping[str, Rows]) -> None:
    lines(axes, tables[FIGURE_3.title], ("One-Shot", "FedAvg", "FedProx"), published=False)
    axes.set(xlabel="communication rounds", ylabel="test MSE", xscale="log", yscale="log")


def _privacy(axes: Any, tables: Mapping[str, Rows]) -> None:
    lines(axes, tables[TABLE_5.title], ("One-Shot (Private)",), published=True)
    columns = ("one release, central", "rounds, central", "rounds, distributed", "DP-FedAvg-100, tuned")
    lines(axes, tables[HONEST.title], columns, published=False)
    axes.set(xlabel="epsilon (only as published: claimed, not kept)", ylabel="test MSE", xscale="log", yscale="log")


def _clients(axes: Any, tables: Mapping[str, Rows]) -> None:
    lines(axes, tables[TABLE_6.title], ("One-Shot", "FedAvg"), published=True)
    axes.set(xlabel="clients K", ylabel="test MSE", xscale="log")


def _projections(axes: Any, tables: Mapping[str, Rows]) -> None:
    lines(axes, tables[TABLE_7.title], ("MSE",), published=True)
    axes.set(xlabel="projected features m of 1000", ylabel="test MSE", yscale="log")


PICTURES: Pictures = {
    "ridge_heterogeneity": _heterogeneity,
    "ridge_communication": _communication,
    "ridge_computation": _computation,
    "ridge_convergence": _convergence,
    "ridge_privacy": _privacy,
    "ridge_clients": _clients,
    "ridge_projections": _projections,
}


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    paper_command("one_shot_ridge", __doc__, PARTS, PICTURES)
