"""What missing records cost a course: silent parties, other ones or the same each time, and less of the budget.

    python -m benchmarks.refinement.missing --save

Twenty parties, central model, record level, add-remove, delta 1e-5, the library's noise and rounds. A party that is
silent in a round is missing from its sum, under the same noise. Beside it stands the course of all records with as much
less mu as records are missing, which divides signal and noise alike.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.data import Split, private_tasks
from benchmarks.measuring import Row, Rows, Tables, command, standard_error
from benchmarks.refinement.library import Records, Setting, course_of
from benchmarks.refinement.models import DELTA
from privstats import heads
from privstats.course import Round, run
from privstats.dp import gaussian_epsilon, gaussian_mu
from privstats.randomness import seeded
from privstats.release import Release

EPSILONS = (0.1, 0.3, 1.0)
TASKS = ("digits", "banking77")
CLIENTS, MOST_SILENT = 20, 4


@dataclass(frozen=True)
class Way:
    """A way to have less.

    Attributes:
        name: for the table.
        silent: parties that send nothing.
        anew: whether they are others in every round.
        left: the part of mu that is left.
    """

    name: str
    silent: int = 0
    anew: bool = False
    left: float = 1.0


WAYS = (
    Way("none"),
    Way("2, others each time", 2, anew=True),
    Way("2, the same", 2),
    Way("none, mu a tenth less", left=0.9),
    Way("4, others each time", 4, anew=True),
    Way("4, the same", 4),
    Way("none, mu a fifth less", left=0.8),
)


def options(parser: argparse.ArgumentParser) -> None:
    """How often."""
    parser.add_argument("--draws", type=int, default=10)


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set."""
    epsilons, draws = ((1.0,), 2) if options.quick else (EPSILONS, options.draws)
    for task in private_tasks(bundled_only=options.quick):
        if task.name in TASKS:
            yield f"accuracy with missing records, %: {task.name}", missing(task.transformed(), epsilons, draws)


def missing(split: Split, epsilons: Sequence[float], draws: int) -> Rows:
    """A row per way to have less: mean accuracy, and what it loses against all records with its standard error."""
    X, _, y, _ = split
    records = Records(X, y, CLIENTS)
    rows: list[Row] = []
    base: dict[float, NDArray[np.float64]] = {}
    for way in WAYS:
        row: dict[str, object] = {"silent of 20": way.name}
        for epsilon in epsilons:
            own = np.array([score(split, epsilon, way, seed, records) for seed in range(draws)])
            lost = own - base.setdefault(epsilon, own)
            row |= {f"eps {epsilon:g}": float(own.mean()), f"lost {epsilon:g}": float(lost.mean())}
            row |= {f"se {epsilon:g}": standard_error(lost)}
        rows.append(row)
    return rows


def score(split: Split, epsilon: float, way: Way, seed: int, records: Records) -> float:
    """Accuracy in percent of one draw."""
    _, X_test, _, y_test = split
    whole = epsilon if way.left == 1 else gaussian_epsilon(way.left * gaussian_mu(epsilon, DELTA), DELTA)
    course = course_of(split, whole, DELTA, setting=Setting("central", CLIENTS, MOST_SILENT))
    rng, noise = np.random.default_rng(seed), seeded(seed)
    there = rng.permutation(CLIENTS)

    def release(round_: Round) -> Release:
        come = np.sort((rng.permutation(CLIENTS) if way.anew else there)[way.silent :])
        return ps.session.aggregate_unmasked(round_.plan, [records.measured(round_.plan, int(k)) for k in come], noise)

    return 100 * heads.RefinedSoftmax().fit_releases(run(course, release)).score(X_test, y_test)


if __name__ == "__main__":
    command("refinement.missing", __doc__, tables, options)
