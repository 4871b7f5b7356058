"""Measure how far LDA's probabilities can be trusted: from one release, after a noisy mean, and calibrated there.

    python -m benchmarks.heads.calibration --save

Central model, record level, add-remove, delta 1e-5, rows of norm 1, default shares, the library's noise. All sessions
of a course keep the promise together. The expected calibration error is that of 15 bins.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import privstats as ps
from benchmarks.data import Split
from benchmarks.heads.centred import by_task, options, released
from benchmarks.measuring import Rows, Tables, command
from benchmarks.refinement.calibration import EPSILONS, TITLE, averaged, scores
from benchmarks.refinement.library import CENTRAL, Records
from benchmarks.refinement.models import one_shot_plan
from privstats import heads
from privstats.course import Single
from privstats.transforms import UnitNorm


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set, with a row per epsilon and course."""
    epsilons, draws = ((1.0,), 1) if options.quick else (EPSILONS, options.draws)
    return by_task("heads.calibration", TITLE, partial(compared, epsilons=epsilons, draws=draws), options)


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
            ends = (released(course, split, records, seed) for seed in range(draws))
            found = [scores(heads.LDA().fit_release(end), X_test, y_test) for end in ends]
            rows.append({"epsilon": epsilon, "model": model, **averaged(found)})
    return rows


def _of_unit_rows(whole: ps.Plan) -> ps.Plan:
    """The plan of the same rows, which have norm 1 already, as a calibration asks for it."""
    schema: Any = whole.schema
    return replace(whole, schema=replace(schema, transform=(UnitNorm(),)))


if __name__ == "__main__":
    command("heads.calibration", __doc__, tables, options)
