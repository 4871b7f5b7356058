"""What a noisy mean first is worth to LDA of one release, beside a refined softmax of as many sessions.

    python -m benchmarks.heads.centred --save

Central model, record level, add-remove, delta 1e-5, rows of norm 1, default shares. Both sessions of a centred course
keep the promise together, as do both of one gradient round. The class sums have the same noise with the mean as
without it, but for its size, so that the gain is of like draws.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import chain

import numpy as np

import privstats as ps
from benchmarks.data import Split, agnews, private_tasks
from benchmarks.heads.gains import gains
from benchmarks.measuring import Rows, Tables, command, results
from benchmarks.refinement.library import CENTRAL, Records, course_of, played
from benchmarks.refinement.models import DELTA, one_shot_plan
from privstats import heads
from privstats.course import Node, run
from privstats.randomness import seeded
from privstats.release import Release

EPSILONS = (0.1, 0.3, 1.0, 3.0, 8.0)
TASKS = ("digits", "banking77", "banking77 whole", "cifar10", "fmnist", "mnist5k", "letter", "agnews")
MODELS = ("LDA", "LDA, centred", "refined, one round")
_OF_MEANS = 1_000  # seeds of the means begin here


def options(parser: argparse.ArgumentParser) -> None:
    """How often, and of what."""
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--keep", action="store_true", help="keep saved tables that this run does not measure")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set."""
    epsilons, draws, names = ((1.0,), 2, ["digits"]) if options.quick else (EPSILONS, options.draws, options.tasks)
    kept = results("heads.centred") if options.keep else {}
    for task in chain(private_tasks(bundled_only=options.quick), () if options.quick else agnews()):
        title = f"accuracy, %: {task.name}"
        if task.name in names:
            yield title, compared(task.transformed(), epsilons, draws)
        elif title in kept:
            yield title, kept[title]


def compared(split: Split, epsilons: Sequence[float], draws: int) -> Rows:
    """A row per model: mean and standard error per epsilon, and those of its gain over the first."""
    X, _, y, _ = split
    records = Records(X, y, CENTRAL.clients)
    found = np.array([[scores(split, epsilon, seed, records) for epsilon in epsilons] for seed in range(draws)])
    return gains(found, MODELS, epsilons)


def scores(split: Split, epsilon: float, seed: int, records: Records) -> tuple[float, ...]:
    """Accuracies in percent of one draw, one per model."""
    X, X_test, y, y_test = split
    whole = one_shot_plan(split, "NAB", epsilon, None)

    def released(plan: ps.Plan, noise: int) -> Release:
        parts = [records.measured(plan, k) for k in range(CENTRAL.clients)]
        return ps.session.aggregate_unmasked(plan, parts, seeded(noise))

    def fresh(node: Node) -> Release:
        if node.place == 0:
            return released(node.plan, seed + _OF_MEANS)
        parts = [ps.measure(node.plan.schema, X[k :: CENTRAL.clients], y[k :: CENTRAL.clients]) for k in (0, 1)]
        return ps.session.aggregate_unmasked(node.plan, parts, seeded(seed))

    alone = heads.LDA().fit_release(released(whole, seed))
    centred = heads.LDA().fit_release(run(ps.Centred.within(whole), fresh))
    refined = played(course_of(split, epsilon, DELTA, 1), X, y, CENTRAL, seed, records)
    models = (alone, centred, heads.RefinedSoftmax().fit_releases(refined))
    return tuple(100 * model.score(X_test, y_test) for model in models)


if __name__ == "__main__":
    command("heads.centred", __doc__, tables, options)
