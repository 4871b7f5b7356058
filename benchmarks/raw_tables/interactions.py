"""Pairs by the public rule, beside the head without them, DP-EBM, boosted private trees, and boosting without privacy.

    python -m benchmarks.raw_tables.interactions --save --keep   # go on with the rows and ways that are not there yet
    python -m benchmarks.raw_tables.interactions --save --keep --splits 36 --tables monica  # again where fewer

Columns are declared as in ``cells``, and a tenth of the cells is missing. All ways get the same records and splits.
DP-EBM is told the true ranges, and the true median for each gap; the trees are told the true quantiles. "trees" are
100 of depth 2; for "trees, tuned" the recipe with the best AUC on a fifth of the first split's training records is
chosen for every table and epsilon, at no charge. Boosting without privacy has 200 trees of
8 leaves at a rate of .05; without interactions, each of them reads one column.
The last rows give ours the true quantiles too: the eighths, then two more at either end.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

import privstats as ps
from benchmarks.measuring import RESULTS, Row, Tables, command
from benchmarks.raw_tables import pairs
from benchmarks.raw_tables.cells import declared, fitted
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.private_trees import Recipe, best, boosted, coded, noise
from benchmarks.raw_tables.rivals import coded_numbers, ebm_gaps
from benchmarks.raw_tables.running import DELTA, SCORES
from benchmarks.raw_tables.sets import TABLES, RawTable, Split, splits
from privstats import heads

__all__ = ["CHOSEN_ON", "ENDS", "EXACT", "TITLE", "TOLD", "TREES"]

Array: TypeAlias = NDArray[np.float64]

TITLE, EXACT = "beside rivals: AUC and log loss by split", "without privacy: AUC and log loss by split"
TOLD = "told cuts: AUC and log loss by split"
ENDS = (1 / 32, 1 / 16, 15 / 16, 31 / 32)
"""Quantiles that are added to the eighths."""
CHOSEN_ON = ("mlc churn", "mortgages", "lending", "fertil2", "thornton")
"""Tables that had a part in the design of pairs."""
TREES = Recipe(100, 2)
_SCORES = ("aucs", "losses")


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--tables", nargs="+", help="measure these alone, and keep the rest")
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(pairs.EPSILONS))
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--keep", action="store_true", help="go on with the saved rows")
    parser.add_argument("--minutes", type=float, help="begin no further row after so many")


def tables(chosen: argparse.Namespace) -> Tables:
    """A row per table without privacy, and rows per table and epsilon beside rivals and with told cuts."""
    path, begun = chosen.json or RESULTS / "raw_tables.interactions.json", time.monotonic()
    kept = json.loads(path.read_text()) if chosen.keep and not chosen.quick and path.exists() else {}
    found: dict[str, list[Row]] = {title: kept.get(title, []) for title in (EXACT, TITLE, TOLD)}
    yield from found.items()
    count = 1 if chosen.quick else chosen.splits
    for title, table, epsilon in _rows(chosen):
        rows = found[title]
        place = next(
            (n for n, row in enumerate(rows) if (row["data"], row.get("epsilon")) == (table.name, epsilon)), None
        )
        before = {} if place is None else rows[place]
        if before.get("splits", 0) < count:
            before = {}
        elif title != TITLE or "ours, aucs" in before:
            continue
        if chosen.minutes is not None and time.monotonic() - begun > 60 * chosen.minutes:
            return
        row = _MEASURED[title](table, epsilon, count, before)
        found[title] = [*rows, row] if place is None else [*rows[:place], row, *rows[place + 1 :]]
        yield title, found[title]


def _rows(chosen: argparse.Namespace) -> Iterator[tuple[str, RawTable, float | None]]:
    names = ["cancer"] if chosen.quick else chosen.tables
    there = [table for table in TABLES if names is None or table.name in names]
    yield from ((EXACT, table, None) for table in there)
    for epsilon in (8.0,) if chosen.quick else chosen.epsilons:
        yield from ((title, table, epsilon) for title in (TITLE, TOLD) for table in there)


@cache
def _loaded(table: str, count: int) -> tuple[Known, list[Split]]:
    columns, y = next(each for each in TABLES if each.name == table).load()
    return Known.of(columns), list(splits(columns, y, range(count)))


def _exact(table: RawTable, _: float | None, count: int, __: Row) -> Row:
    known, there = _loaded(table.name, count)
    ways = {"boosting": partial(_boosting, pairs=True), "boosting, no pairs": partial(_boosting, pairs=False)}
    usual = {"data": table.name, "records": sum(len(each) for each in (there[0].y, there[0].y_test))}
    return {
        **usual,
        "columns": len(known.book),
        **_measured(there, {way: partial(run, known) for way, run in ways.items()}),
    }


def _boosting(known: Known, split: Split, pairs: bool) -> Array:
    """Small boosted trees without privacy, over all columns or one column each."""
    model = HistGradientBoostingClassifier(
        learning_rate=0.05,
        max_iter=200,
        max_leaf_nodes=8,
        categorical_features=[category is not None for category in known.book.values()],
        interaction_cst=None if pairs else "no_interactions",
        random_state=split.seed,
    )
    model.fit(coded_numbers(known, split.gaps), split.y)
    return np.asarray(model.predict_proba(coded_numbers(known, split.gaps_test))[:, 1])


def _private(table: RawTable, epsilon: float, count: int, before: Row) -> Row:
    """A row; ways that ``before`` holds are not run again."""
    known, there = _loaded(table.name, count)
    course, even = (pairs.course_of(known, epsilon, len(there[0].y), None, ends) for ends in (None, False))
    rounds: Any = getattr(course, "then", course)
    tuned, passed = Recipe(**before["recipe"]) if before else best(known, there[0], epsilon, DELTA), list[int]()

    def ours(split: Split) -> Array:
        shares, many = pairs.fitted(known, split, epsilon, None)
        passed.append(many)
        return shares

    ways: dict[str, Callable[[Split], Array]] = {"ours": ours}
    if rounds.pairs:  # else it is the same head
        ways["no pairs"] = lambda split: pairs.fitted(known, split, epsilon, False)[0]
    if find_spec("interpret"):
        ways["DP-EBM"] = lambda split: ebm_gaps(known, split, epsilon)
    ways["trees"] = lambda split: _trees(known, split, epsilon, TREES)
    ways["trees, tuned"] = lambda split: _trees(known, split, epsilon, tuned)
    missing = {way: run for way, run in ways.items() if f"{way}, aucs" not in before}
    usual = {"data": table.name, "epsilon": epsilon, "on": rounds.pairs, "finer": getattr(course, "finer_ends", False)}
    signal = getattr(even, "then", even).recipe.constants.signal  # by which finer ends are on
    row = {**usual, "signal": signal, "recipe": asdict(tuned), **before, **_measured(there, missing)}
    return {**row, **usual, "signal": signal, "passed": passed}


def _told(table: RawTable, epsilon: float, count: int, _: Row) -> Row:
    known, there = _loaded(table.name, count)
    ways = {"eighths": declared(known, known.edges), "finer ends": declared(known, _with_ends(known, there[0]))}
    usual = {"data": table.name, "epsilon": epsilon}
    fit = {way: partial(_with_cuts, cells=cells, epsilon=epsilon) for way, cells in ways.items()}
    return {**usual, **_measured(there, fit)}


def _with_cuts(split: Split, cells: ps.Cells, epsilon: float) -> Array:
    return fitted(heads.RefinedSoftmax(), cells, split, epsilon, len(split.y))


def _with_ends(known: Known, split: Split) -> dict[str, tuple[float, ...]]:
    whole = pd.concat([split.whole, split.whole_test])
    ends = {name: np.nanquantile(whole[name].to_numpy(np.float64), ENDS) for name in known.edges}
    return {name: tuple(np.unique([*cuts, *ends[name]]).tolist()) for name, cuts in known.edges.items()}


def _trees(known: Known, split: Split, epsilon: float, recipe: Recipe) -> Array:
    columns, codes, test = coded(known, split)
    rng = np.random.default_rng([split.seed, 1])
    return boosted(columns, codes, split.y, test, recipe, noise(recipe, epsilon, DELTA), rng)


def _measured(there: list[Split], ways: Mapping[str, Callable[[Split], Array]]) -> Row:
    """AUC and log loss of every way on every split, and the seconds of a split."""
    row: dict[str, Any] = {"splits": len(there)}
    for way, run in ways.items():
        begun = time.perf_counter()
        shares = [run(split) for split in there]
        row[f"{way}, seconds"] = round((time.perf_counter() - begun) / len(there), 2)
        for name in _SCORES:
            scored = (SCORES[name](split.y_test, each) for split, each in zip(there, shares, strict=True))
            row[f"{way}, {name}"] = [round(score, 5) for score in scored]
    return row


_MEASURED: Mapping[str, Callable[[RawTable, Any, int, Row], Row]] = {EXACT: _exact, TITLE: _private, TOLD: _told}


if __name__ == "__main__":
    command("raw_tables.interactions", __doc__, tables, options)
