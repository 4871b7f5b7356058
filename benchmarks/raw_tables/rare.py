"""A rare class on raw tables: rounds beside one release, where few records are positive.

    python -m benchmarks.raw_tables.rare --save
    python -m benchmarks.raw_tables.rare --save --tables default mortgages  # measures these, keeps the rest
    python -m benchmarks.raw_tables.rare --save --by-epsilon lending churn  # measures these, keeps the rest

AUC and log loss at epsilon 1, a tenth of the cells missing, columns declared as in ``cells``. Five tables have a rate
of their own; of the others so many records of the larger group are dropped that 4 or 8 % are positive. A second result
has two tables, on which a simpler head was once ahead, by epsilon and on more splits.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.measuring import Row, Tables, command, results, standard_error
from benchmarks.raw_tables.cells import declared, fitted
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.running import SCORES
from benchmarks.raw_tables.sets import TABLES, Classes, splits
from privstats import heads

__all__ = ["BY_EPSILON", "TITLE", "WAYS", "thinned"]

TITLE = "AUC and log loss by the share of positives"
BY_EPSILON = "AUC and log loss by epsilon"
WAYS: Mapping[str, Callable[[], Any]] = {
    "rounds": heads.RefinedSoftmax,
    "LDA": heads.LDA,
    "ridge": heads.RidgeClassifier,
}
EPSILONS = (1.0, 3.0, 8.0)
_ASKED: Mapping[str, tuple[float | None, ...]] = {
    "lending": (None,),
    "default": (None,),
    **dict.fromkeys(("churn", "credit", "monica", "spam", "mortgages"), (0.04, 0.08)),
    **dict.fromkeys(("hdma", "mlc churn", "attrition"), (None,)),
}
"""By table the shares that are made of it; None: its own."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--tables", nargs="+", help="measure these alone, and keep the rest")
    parser.add_argument("--by-epsilon", nargs="+", default=[], metavar="TABLE", help="measure these alone, by epsilon")


def tables(options: argparse.Namespace) -> Tables:
    """A row per table and share; then a row per table and epsilon, twice as many splits of these."""
    there = {table.name: table for table in TABLES}
    kept = {} if options.quick else results("raw_tables.rare")
    if options.by_epsilon:
        yield TITLE, kept[TITLE]
        further = [row for row in kept.get(BY_EPSILON, ()) if row["data"] not in options.by_epsilon]
        for name, epsilon in product(options.by_epsilon, EPSILONS):
            row = _row(*there[name].load(), 2 * options.splits, epsilon)
            further.append({"data": name, "epsilon": epsilon, **row})
            yield BY_EPSILON, further
        return
    asked = {"cancer": (0.2,)} if options.quick else _ASKED
    before = kept.get(TITLE, ()) if options.tables else ()
    rows: dict[str, list[Row]] = {name: [row for row in before if row["data"] == name] for name in asked}
    for name in asked if options.quick or options.tables is None else options.tables:
        columns, y = there[name].load()
        rows[name] = [
            {"data": name, "own": share is None, **_row(*thinned(columns, y, share), options.splits, 1.0)}
            for share in asked[name]
        ]
        yield TITLE, [row for each in rows.values() for row in each]
    if BY_EPSILON in kept:
        yield BY_EPSILON, kept[BY_EPSILON]


def thinned(columns: pd.DataFrame, y: Classes, share: float | None) -> tuple[pd.DataFrame, Classes]:
    """As many records as there can be with this share of positives; all of them without one."""
    if share is None:
        return columns, y
    rng, groups = np.random.default_rng(0), [np.flatnonzero(y == label) for label in (0, 1)]
    most = min(len(groups[1]), round(len(groups[0]) * share / (1 - share)))
    sizes = (round(most * (1 - share) / share), most)
    kept = np.sort(
        np.concatenate(
            [rng.choice(group, min(n, len(group)), replace=False) for group, n in zip(groups, sizes, strict=True)]
        )
    )
    fewer = columns.iloc[kept].reset_index(drop=True)
    return fewer.loc[:, fewer.nunique() > 1], y[kept]


def _row(columns: pd.DataFrame, y: Classes, count: int, epsilon: float) -> Row:
    known = Known.of(columns)
    found: dict[str, dict[str, list[float]]] = {way: {"aucs": [], "losses": []} for way in WAYS}
    for split in splits(columns, y, range(count)):
        for way, head in WAYS.items():
            shares = fitted(head(), declared(known), split, epsilon, len(split.y))
            for name, scores in found[way].items():
                scores.append(SCORES[name](split.y_test, shares))
    row: dict[str, Any] = {"records": len(y), "rate": float(np.mean(y)), "splits": count}
    for way, both in found.items():
        lead: NDArray[Any] = np.subtract(both["aucs"], found["rounds"]["aucs"])
        row |= {way: float(np.mean(both["aucs"])), f"{way}, loss": float(np.mean(both["losses"]))}
        row |= {f"{way}, lead": float(lead.mean()), f"{way}, se": standard_error(lead)}
    return row


if __name__ == "__main__":
    command("raw_tables.rare", __doc__, tables, options)
