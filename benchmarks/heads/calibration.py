"""How far the probabilities of LDA can be trusted: of one release, behind a noisy mean, and calibrated there.

    python -m benchmarks.heads.calibration --save

Central model, record level, add-remove, delta 1e-5, rows of norm 1, default shares, the library's noise. All sessions
of a course keep the promise together. The expected calibration error is that of 15 bins.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import privstats as ps
from benchmarks.data import Split, agnews, private_tasks
from benchmarks.heads.centred import TASKS
from benchmarks.measuring import Rows, Tables, command, results
from benchmarks.refinement.calibration import EPSILONS, TITLE, averaged, scores
from benchmarks.refinement.library import CENTRAL, Records
from benchmarks.refinement.models import one_shot_plan
from privstats import heads
from privstats.course import Node, Single, run
from privstats.randomness import seeded
from privstats.release import Release
from privstats.transforms import UnitNorm

FIRST_SEED = {"classes": 0, "mean": 1_000, "calibration": 2_000}


def options(parser: argparse.ArgumentParser) -> None:
    """How often, and of what."""
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--keep", action="store_true", help="keep saved tables that this run does not measure")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set, with a row per epsilon and course."""
    epsilons, draws = ((1.0,), 1) if options.quick else (EPSILONS, options.draws)
    kept = results("heads.calibration") if options.keep else {}
    for task in chain(private_tasks(bundled_only=options.quick), () if options.quick else agnews()):
        title = TITLE + task.name
        if task.name in options.tasks:
            yield title, compared(task.transformed(), epsilons, draws)
        elif title in kept:
            yield title, kept[title]


def compared(split: Split, epsilons: Sequence[float], draws: int) -> Rows:
    """A row per epsilon and course: means over draws, which share their noise but for its size."""
    X, X_test, y, y_test = split
    records, rows = Records(X, y, CENTRAL.clients), []
    for epsilon in epsilons:
        whole = one_shot_plan(split, "NAB", epsilon, None)
        courses: dict[str, Single | ps.Centred] = {
            "LDA": Single(whole),
            "LDA, centred": ps.Centred.within(whole),
            "LDA, centred and calibrated": ps.Centred.within(_of_unit_rows(whole), calibrated=True),
        }
        for model, course in courses.items():
            ends = (played(course, split, records, seed) for seed in range(draws))
            found = [scores(heads.LDA().fit_release(end), X_test, y_test) for end in ends]
            rows.append({"epsilon": epsilon, "model": model, **averaged(found)})
    return rows


def _of_unit_rows(whole: ps.Plan) -> ps.Plan:
    """The plan of the same rows, which have norm 1 already, as a calibration asks for it."""
    schema: Any = whole.schema
    return replace(whole, schema=replace(schema, transform=(UnitNorm(),)))


def played(course: Single | ps.Centred, split: Split, records: Records, seed: int) -> Any:
    """What the head of a course reads: the release of one, and of more their list.

    A round's noise depends on its kind of sums and the draw alone.
    """
    X, _, y, _ = split

    def release(node: Node) -> Release:
        schema, published = node.plan.schema, node.plan.published
        if node.place == 0:
            parts = [records.measured(node.plan, k) for k in range(CENTRAL.clients)]
        else:
            parts = [ps.measure(schema, X[k::2], y[k::2], published=published) for k in range(CENTRAL.clients)]
        return ps.session.aggregate_unmasked(node.plan, parts, seeded(seed + FIRST_SEED[schema.task]))

    releases = run(course, release)
    return releases if len(releases) > 1 else releases[0]


if __name__ == "__main__":
    command("heads.calibration", __doc__, tables, options)
