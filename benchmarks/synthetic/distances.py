"""How often the printed distance of synthetic rows from exact tables holds, and how near the estimate is.

    python -m benchmarks.synthetic.distances --save --runs 1000

A world is a fixed table, since the interval is for noise alone: each run draws the noise of all sessions and the rows
anew. Every released table has an interval. "cases": the columns of the tests, of which some go together. "rule": one
number follows from another. "few": the cases with 1,445 records. Distances in declared cells are those of the rows
from the records in the finest cells; the printed line bounds them by the upper end and what merging can add.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import seed_of
from benchmarks.inference.runs import add_options, ends, others_of
from benchmarks.measuring import Row, Tables, command
from benchmarks.synthetic.rows import Coded, coded_table, course_of
from privstats.contrib.synthetic.columns import coded
from privstats.contrib.synthetic.course import tables_of
from privstats.contrib.synthetic.fit import fit_of
from privstats.moments import exact_moments
from privstats.randomness import seeded

__all__ = ["held"]

NAME = "synthetic.distances"
WORLDS = (
    ("cases", 10_000, 1.0),
    ("few", 1_445, 1.0),
    ("rule", 10_000, 1.0),
    ("rule", 10_000, 3.0),
)


@cache
def world(name: str, records: int) -> Coded:
    """The first records of a made-up table."""
    if name == "rule":
        ruled = coded_table("rule")
        return Coded(name, ruled.columns, ruled.part(np.arange(records)))
    rng = np.random.default_rng(1)
    age = rng.uniform(0, 100, records)
    ward = np.digitize(age + rng.normal(0, 8, records), (33, 66))
    table: Mapping[str, Any] = {
        "age": np.where(rng.random(records) < 0.05, np.nan, age),
        "ward": np.array(["a", "b", "c"])[ward],
        "code": np.where(rng.random(records) < 0.8, ward, rng.integers(0, 8, records)).astype(float),
        "smoker": rng.random(records) < 0.3,
        "death": rng.random(records) < age / 120,
    }
    columns = (
        ps.Numeric("age", tuple(range(0, 101, 5))),
        ps.Categories("ward", ("a", "b", "c")),
        ps.Numeric("code", tuple(range(9))),
        ps.Truth("smoker"),
        ps.Truth("death"),
    )
    return Coded(name, columns, coded(columns, table))


def held(name: str, records: int, epsilon: float, runs: int) -> Row:
    """Misses of the printed intervals, errors of the estimate and of the distance from the noisy table."""
    table = world(name, records)
    course = course_of(table, epsilon, "central", 2)
    missed, beyond, lines, printed = np.zeros(runs), np.zeros(runs), 0, list[tuple[float, ...]]()
    for run in range(runs):
        seed = seed_of(f"distances {name} {records} {epsilon}", run)
        found, true, fine = _distances(table, course, seed)
        lines += len(found)
        low, high, merging = (np.array([getattr(each, end) for each in found]) for end in ("low", "high", "merging"))
        missed[run] = ((true < low) | (true > high)).mean()
        beyond[run] = (fine > high + merging).mean()
        printed += [
            (each.exact, each.value, true_one, each.high - each.low) for each, true_one in zip(found, true, strict=True)
        ]
    exact, noisy, true, width = np.array(printed).T
    return {
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "lines": lines,
        "missed": float(missed.mean()),
        "runs with a miss": float((missed > 0).mean()),
        **ends(int((missed > 0).sum()), runs),
        "beyond in declared cells": float(beyond.mean()),
        "distance": float(true.mean()),
        "estimate": float(exact.mean()),
        "error": float(np.abs(exact - true).mean()),
        "noisy distance": float(noisy.mean()),
        "width": float(width.mean()),
    }


def _distances(table: Coded, course: Any, seed: int) -> tuple[list[Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Printed distances of one run, the true ones, and the true ones in declared cells."""
    releases: Any = ps.private_releases(
        course, table.records, ledger="uncharged", rng=seeded(seed), allow_reproducible=True
    )
    fit, rng = fit_of(course, releases), np.random.default_rng(seed)
    rows = fit.fine_cells(fit.model.draw(len(table.codes), rng), rng)
    found, names = list(fit.distances(rows)), [each.name for each in table.schema.variables]
    exact = [
        counts
        for release in releases
        for counts in tables_of(
            ps.Release.exact(release.plan.schema, exact_moments(release.plan.schema, table.records))
        ).values()
    ]
    true = [np.abs(own.rows - counts / counts.sum()).sum() / 2 for own, counts in zip(found, exact, strict=True)]
    fine = []
    for own in found:
        axes = [names.index(column) for column in own.columns]
        one, other = (
            np.histogramdd(codes[:, axes], [np.arange(table.sizes[axis] + 1) for axis in axes])[0] / len(codes)
            for codes in (rows, table.codes)
        )
        fine.append(np.abs(one - other).sum() / 2)
    return found, np.array(true), np.array(fine)


def tables(options: argparse.Namespace) -> Tables:
    """A table per world."""
    runs, worlds = (2, WORLDS[:1]) if options.quick else (options.runs, WORLDS)
    for name, records, epsilon in worlds:
        if options.only in (title := f"{name}: {records:,} records, epsilon {epsilon:g}"):
            yield title, [held(name, records, epsilon, runs)]


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
