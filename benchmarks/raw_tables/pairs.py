"""Pairs of columns on raw tables, beside the same head without pairs, wherever the public rule turns pairs on.

    python -m benchmarks.raw_tables.pairs --save --keep

Columns are declared as in ``cells``, a tenth of the cells is missing. Both heads get the same splits and promise.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.measuring import RESULTS, Row, Tables, command, standard_error
from benchmarks.raw_tables.cells import Array, declared
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.running import DELTA, SCORES
from benchmarks.raw_tables.sets import TABLES, RawTable, Split, splits
from privstats import heads
from privstats.course.alone import single_party_plan

__all__ = ["EPSILONS", "TITLE", "course_of", "fitted"]

TITLE = "AUC and log loss without pairs and with them"
EPSILONS = (1.0, 3.0, 8.0)
_WAYS: Mapping[str, bool | None] = {"additive": False, "pairs": None}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="go on with the saved rows")
    parser.add_argument("--minutes", type=float, help="begin no further row after so many")


def tables(chosen: argparse.Namespace) -> Tables:
    """A row per table and epsilon."""
    path, begun = chosen.json or RESULTS / "raw_tables.pairs.json", time.monotonic()
    kept = chosen.keep and not chosen.quick and path.exists()
    rows: list[Row] = json.loads(path.read_text()).get(TITLE, []) if kept else []
    yield TITLE, rows
    done = {(row["data"], row["epsilon"]) for row in rows}
    for epsilon in (8.0,) if chosen.quick else EPSILONS:
        for table in TABLES:
            if (table.name, epsilon) in done or (chosen.quick and table.name != "cancer"):
                continue
            if chosen.minutes is not None and time.monotonic() - begun > 60 * chosen.minutes:
                return
            rows.append(_row(table, epsilon, 1 if chosen.quick else chosen.splits))
            yield TITLE, rows


def _row(table: RawTable, epsilon: float, count: int) -> Row:
    columns, y = table.load()
    known = Known.of(columns)
    usual = {"data": table.name, "role": table.role, "epsilon": epsilon}
    course = course_of(known, epsilon, 3 * len(y) // 4, None)
    rounds: Any = getattr(course, "then", course)
    row: dict[str, Any] = {**usual, "on": rounds.pairs, "signal": rounds.recipe.constants.signal, "splits": count}
    if not rounds.pairs:
        return row
    found: dict[str, list[float]] = {f"{way}, {name}": [] for way in _WAYS for name in ("aucs", "losses", "passed")}
    for split in splits(columns, y, range(count)):
        for way, pairs in _WAYS.items():
            shares, passed = fitted(known, split, epsilon, pairs)
            for name in ("aucs", "losses"):
                found[f"{way}, {name}"].append(round(SCORES[name](split.y_test, shares), 5))
            found[f"{way}, passed"].append(passed)
    for name in ("aucs", "losses"):
        gaps = np.subtract(found[f"pairs, {name}"], found[f"additive, {name}"])
        row |= {f"{name}, gap": float(gaps.mean()), f"{name}, se": standard_error(gaps) if count > 1 else None}
    return {**row, **found}


def course_of(known: Known, epsilon: float, records: int, pairs: bool | None, finer_ends: bool | None = None) -> Any:
    """Return the course of one party: counts of cut points where a column has none, then rounds."""
    cells = declared(known)
    schema = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(cells,))
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=DELTA)
    plan = single_party_plan(schema, privacy)
    if cells.open:
        return ps.Binned.within(plan, "rounds", expected_records=records, pairs=pairs, finer_ends=finer_ends)
    return ps.Rounds.within(plan, expected_records=records, pairs=pairs)


def fitted(
    known: Known, split: Split, epsilon: float, pairs: bool | None, finer_ends: bool | None = None
) -> tuple[Array, int]:
    """Return the test records' probabilities of a positive, and how many pairs have passed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as where nothing is chosen
        course = course_of(known, epsilon, len(split.y), pairs, finer_ends)
        releases: Sequence[Any] = ps.private_releases(course, split.gaps, split.y, ledger="uncharged")
        head = heads.RefinedSoftmax().fit_releases(releases)
        return np.asarray(head.predict_proba(split.gaps_test)[:, 1]), len(head.pairs_)


if __name__ == "__main__":
    command("raw_tables.pairs", __doc__, tables, options)
