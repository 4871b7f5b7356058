"""Measure what a noisy mean first is worth to LDA of one release, compared with a refined softmax of as many sessions.

    python -m benchmarks.heads.centred --save

Central model, record level, add-remove, delta 1e-5, rows of norm 1, default shares. Both sessions of a centred course
keep the promise together, as do both of one gradient round. The class sums have the same noise with the mean as
without it, but for its size, so that the gain is of like draws.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.data import Split, agnews, private_tasks
from benchmarks.heads.gains import gains
from benchmarks.measuring import Rows, Tables, command, results
from benchmarks.refinement.calibration import EPSILONS, TASKS
from benchmarks.refinement.library import CENTRAL, Records, course_of, played
from benchmarks.refinement.models import DELTA, one_shot_plan
from privstats import heads
from privstats.course import Round, Single, run
from privstats.randomness import seeded
from privstats.release import Release

MODELS = ("LDA", "LDA, centred", "refined, one round")
FIRST_SEED = {"classes": 0, "mean": 1_000, "calibration": 2_000}
"""Where the seeds of each kind of sums begin."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--keep", action="store_true", help="keep saved tables that this run does not measure")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set."""
    epsilons, draws = ((1.0,), 2) if options.quick else (EPSILONS, options.draws)
    return by_task("heads.centred", "accuracy, %: ", partial(compared, epsilons=epsilons, draws=draws), options)


def by_task(name: str, title: str, measured: Callable[[Split], Rows], options: argparse.Namespace) -> Tables:
    """A table per data set, measured or, with ``--keep``, as it is saved.

    Args:
        name: of the saved results.
        title: of the tables, less the name of the data set.
        measured: the rows of one.
        options: those of :func:`options`, and ``quick``.
    """
    kept = results(name) if options.keep else {}
    for task in chain(private_tasks(bundled_only=options.quick), () if options.quick else agnews()):
        if task.name in options.tasks:
            yield title + task.name, measured(task.transformed())
        elif title + task.name in kept:
            yield title + task.name, kept[title + task.name]


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
    courses = (Single(whole), ps.Centred.within(whole))
    alone, centred = (heads.LDA().fit_release(released(course, split, records, seed)) for course in courses)
    refined = played(course_of(split, epsilon, DELTA, 1), X, y, CENTRAL, seed, records)
    models = (alone, centred, heads.RefinedSoftmax().fit_releases(refined))
    return tuple(100 * model.score(X_test, y_test) for model in models)


def released(course: Single | ps.Centred, split: Split, records: Records, seed: int) -> Any:
    """Return the input of a course's head: the only release, or the list of several.

    A round's noise depends on its kind of sums and the draw alone.
    """
    X, _, y, _ = split

    def release(round_: Round) -> Release:
        schema, published = round_.plan.schema, round_.plan.published
        clients = range(CENTRAL.clients)
        if round_.place == 0:
            parts = [records.measured(round_.plan, k) for k in clients]
        else:  # behind another centre in every draw, so there is nothing to keep
            shards = ((X[k :: CENTRAL.clients], y[k :: CENTRAL.clients]) for k in clients)
            parts = [ps.measure(schema, *shard, published=published) for shard in shards]
        return ps.session.aggregate_unmasked(round_.plan, parts, seeded(seed + FIRST_SEED[schema.task]))

    releases = run(course, release)
    return releases if len(releases) > 1 else releases[0]


if __name__ == "__main__":
    command("heads.centred", __doc__, tables, options)
