"""Finer ends beside even cut points, through whole courses, on tables that neither found nor chose them.

    python -m benchmarks.raw_tables.finer_ends --save --keep

Both courses estimate their cut points under the promise; pairs follow their public rule. A tenth of the cells is
missing. s is n mu / (C sqrt d) of the rounds with even cut points. Rows are at epsilon 1, 3 and 8 from s = 30 on, and
at the epsilons at which s is 60 and 80, so that every table is on either side of a threshold.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from benchmarks.measuring import RESULTS, Row, Tables, command, standard_error
from benchmarks.raw_tables.cells import declared
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.pairs import course_of, fitted
from benchmarks.raw_tables.running import DELTA, SCORES
from benchmarks.raw_tables.sets import TABLES, RawTable, Split, splits
from privstats.dp import gaussian_epsilon, gaussian_mu

__all__ = ["CHOSEN_ON", "FIXED", "TITLE"]

TITLE = "AUC and log loss with even cut points and with finer ends"
FIXED = "the same at fixed s"
CHOSEN_ON = (
    *("mlc churn", "mortgages", "lending", "fertil2", "thornton"),
    *("default", "cps", "cps, with family income", "flchain", "churn", "spam", "credit", "hdma"),
    *("rotterdam", "monica", "recid", "health insurance", "randhie", "fair"),
)
"""Tables that were looked at before the threshold was set."""
_WAYS: Mapping[str, bool] = {"even": False, "finer": True}
_EPSILONS, _SCORES = (1.0, 3.0, 8.0), ("aucs", "losses")
_SIGNALS = (80.0, 60.0)


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--splits", type=int, default=12)
    parser.add_argument("--least", type=float, default=30.0, help="measure rows from this s on")
    parser.add_argument("--keep", action="store_true", help="go on with the saved rows")
    parser.add_argument("--minutes", type=float, help="begin no further row after so many")


def tables(chosen: argparse.Namespace) -> Tables:
    """A row per table and epsilon, and a row per table and s."""
    path, begun = chosen.json or RESULTS / "raw_tables.finer_ends.json", time.monotonic()
    kept = json.loads(path.read_text()) if chosen.keep and not chosen.quick and path.exists() else {}
    found: dict[str, list[Row]] = {title: kept.get(title, []) for title in (TITLE, FIXED)}
    yield from found.items()
    for title, table, epsilon, known in _asked(chosen):
        if any((row["data"], row["epsilon"]) == (table.name, epsilon) for row in found[title]):
            continue
        if chosen.minutes is not None and time.monotonic() - begun > 60 * chosen.minutes:
            return
        columns, y = table.load()
        there = list(splits(columns, y, range(2 if chosen.quick else chosen.splits)))
        found[title].append(_row(table, known, there, epsilon))
        yield title, found[title]


def _asked(chosen: argparse.Namespace) -> Iterator[tuple[str, RawTable, float, Known]]:
    """Tables that may be asked, with epsilons."""
    there = [table for table in TABLES if (table.name == "cancer" if chosen.quick else table.name not in CHOSEN_ON)]
    read = {table.name: (Known.of(columns), 3 * len(y) // 4) for table in there for columns, y in [table.load()]}
    open_ = [table for table in there if declared(read[table.name][0]).open]
    for table, epsilon in product(open_, (8.0,) if chosen.quick else _EPSILONS):
        known, records = read[table.name]
        if chosen.quick or _signal(known, epsilon, records) >= chosen.least:
            yield TITLE, table, epsilon, known
    for signal, table in product(_SIGNALS[:1] if chosen.quick else _SIGNALS, open_):
        known, records = read[table.name]
        mu = gaussian_mu(1.0, DELTA) * signal / _signal(known, 1.0, records)
        yield FIXED, table, float(f"{gaussian_epsilon(mu, DELTA):.3g}"), known


def _signal(known: Known, epsilon: float, records: int) -> float:
    return float(course_of(known, epsilon, records, None, finer_ends=False).then.recipe.constants.signal)


def _row(table: RawTable, known: Known, there: list[Split], epsilon: float) -> Row:
    signal = _signal(known, epsilon, len(there[0].y))
    row: dict[str, Any] = {"data": table.name, "epsilon": epsilon, "signal": signal, "splits": len(there)}
    for way, finer in _WAYS.items():
        shares = [fitted(known, split, epsilon, None, finer)[0] for split in there]
        for name in _SCORES:
            row[f"{way}, {name}"] = [
                round(SCORES[name](split.y_test, each), 5) for split, each in zip(there, shares, strict=True)
            ]
    for name in _SCORES:
        gaps = np.subtract(row[f"finer, {name}"], row[f"even, {name}"])
        row |= {f"{name}, gap": float(gaps.mean()), f"{name}, se": standard_error(gaps)}
    return row


if __name__ == "__main__":
    command("raw_tables.finer_ends", __doc__, tables, options)
