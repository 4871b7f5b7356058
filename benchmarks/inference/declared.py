"""Measure how often intervals of several outcomes and subgroups cover, and how often Holm's p-values reject what is
true.

    python -m benchmarks.inference.declared --save --only trial

Worlds of the audit with two outcomes and three subgroups of a column: records through every session of the course, the
public reader, and truths over fresh records of each subgroup, at the published weights.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

import privstats as ps
from benchmarks.inference.runs import add_options, ends, others_of
from benchmarks.measuring import Row, Tables, command
from privstats.randomness import seeded
from threat_models.audits.effect_worlds import World, played, population_of, questions_of, worlds_of

NAME = "inference.declared"
RANGES = dict.fromkeys(("a", "b", "c", "d"), (-1.0, 1.0))
THIRDS = (ps.Bins("a", (-1.0, -0.2, 0.2, 1.0)),)
ANALYSIS = ps.course.Analysis(("first",), ("second",), ("a",))
Cells: TypeAlias = tuple[tuple[str, str | None, int, float], ...]
TRIALS: Cells = (("trial", None, 2_000, 1.0), ("trial", None, 10_000, 1.0), ("trial", None, 10_000, 8.0))
OVERLAP: Cells = (("confounded", "overlap", 10_000, 8.0), ("differing", "overlap", 10_000, 8.0))
ALL: Cells = (("differing", "ate", 10_000, 8.0),)
UNMOVED: Cells = (*TRIALS[1:], OVERLAP[0])


def tables(options: argparse.Namespace) -> Tables:
    """Intervals by outcome and subgroup, and families of rows that are all true."""
    runs, few = (3, 1) if options.quick else (options.runs, None)
    groups: dict[str, Callable[[], list[Row]]] = {
        "trials": lambda: [row for cell in TRIALS[:few] for row in covered(*cell, runs)],
        "overlap weights": lambda: [row for cell in OVERLAP[:few] for row in covered(*cell, runs)],
        "all records": lambda: [row for cell in ALL[:few] for row in covered(*cell, runs)],
        "families without an effect": lambda: [rejected(*cell, runs) for cell in UNMOVED[:few]],
    }
    for title, rows in groups.items():
        if options.only in title:
            yield title, rows()


def course_of(estimand: Any, records: int, epsilon: float) -> ps.Effect:
    """Two outcomes in three subgroups; a trial where there is no estimand."""
    design: dict[str, Any] = {"probability": 0.5} if estimand is None else {"estimand": estimand, "trim": 0.1}
    outcome = {"first": (-1.0, 1.0), "second": (-1.0, 1.0)}
    schema = ps.EffectSchema.of(RANGES, treatment="arm", outcome=outcome, subgroups=THIRDS, **design)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    return ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), privacy, analysis=ANALYSIS)


def covered(world: str, estimand: str | None, records: int, epsilon: float, runs: int) -> list[Row]:
    """A cell: its rows over all records, and those of subgroups, with the worst of each."""
    course = course_of(estimand, records, epsilon)
    seed = zlib.crc32(repr((world, estimand, records, epsilon)).encode())
    chance, rng, made = np.random.default_rng(seed), seeded(seed), worlds_of(course.schema)[world]
    asked = questions_of(course.schema)
    reported, missed, widths = np.zeros(len(asked)), np.zeros(len(asked)), list[Any]()
    for _ in range(runs):
        table = ps.inference.effects(played(course, *made.draw(course.schema, records, chance), rng), course)
        ends, w = table.conf_int(), population_of(table.tables[0])
        truths = np.array([made.truth(course.schema, w, place, blocks) for place, blocks in asked])
        reported += [row.reported for row in table]
        missed += (truths < ends[:, 0]) | (truths > ends[:, 1])
        widths.append(np.where([row.reported for row in table], (ends[:, 1] - ends[:, 0]) / 2, math.nan))
    whole = np.array([blocks is None for _, blocks in asked])
    head = {"world": world, "estimand": estimand or "trial", "records": records, "epsilon": epsilon, "runs": runs}
    parts = (("all records", whole), ("subgroups", ~whole))
    return [
        {**head, "rows": name, **_of(reported[at], missed[at], np.array(widths)[:, at], runs)} for name, at in parts
    ]


def _of(reported: Any, missed: Any, widths: Any, runs: int) -> Row:
    """Shares of several rows together, and of the one that misses most."""
    worst = float(missed.max())
    return {
        "reported": float(reported.mean()) / runs,
        "reported and missed": float(missed.mean()) / runs,
        "worst row": worst / runs,
        **ends(worst, runs),
        "half width": float(np.nanmedian(widths)) if np.isfinite(widths).any() else math.inf,
    }


def rejected(world: str, estimand: str | None, records: int, epsilon: float, runs: int) -> Row:
    """Return how often a row of a family has a p-value below .05 though nothing has an effect: Holm's, and
    unadjusted."""
    course = course_of(estimand, records, epsilon)
    seed = zlib.crc32(repr((world, estimand, records, epsilon, "none")).encode())
    chance, rng = np.random.default_rng(seed), seeded(seed)
    made: World = replace(worlds_of(course.schema)[world], effect=lambda u: 0 * u[:, 0])
    hits = np.zeros(3)
    for _ in range(runs):
        table = ps.inference.effects(played(course, *made.draw(course.schema, records, chance), rng), course)
        adjusted, families = table.pvalues_adjusted(), [row.declared for row in table]
        plain = np.array([row.pvalue for row in table])
        for place, (p, family) in enumerate(((adjusted, "primary"), (adjusted, "secondary"), (plain, "secondary"))):
            hits[place] += bool((p[[each == family for each in families]] < 0.05).any())
    names = ("primary", "secondary", "secondary, unadjusted")
    shares = {name: float(hit) / runs for name, hit in zip(names, hits, strict=True)}
    worst = float(hits[:2].max())
    return {
        "world": world,
        "estimand": estimand or "trial",
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        **shares,
        **ends(worst, runs),
    }


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
