"""Runs ways over tables, cell by cell, so that a run that is stopped can go on.

A cell is the AUC and the log loss of one way at one epsilon on every split of a table, each the mean over the releases
of that split. Splits are measured in blocks of five, all cells' first block before any second, epsilon 1 first, small
tables first: at whatever moment it stops, cells can be compared.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.measuring import RESULTS, Row, Rows, Tables, standard_error
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.sets import SPLITS, TABLES, RawTable, Split, splits

__all__ = ["DELTA", "EPSILONS", "SCORES", "TITLE", "Way", "Ways", "lines_of", "options", "present", "tables_of"]

Way: TypeAlias = Callable[[Known, Sequence[Split], float], Sequence[NDArray[np.float64]]]
"""From what is known of the table, splits and an epsilon: per split the test records' probabilities of a positive."""

DELTA = 1e-6
_LEAST = 1e-6  # a probability, where a rival's is 0
EPSILONS = (1.0, 3.0, 0.3)
TITLE, ABOUT = "AUC: ", "tables"
_BLOCK = 5
_NEXT_RELEASE = 1_000  # between the seeds of a split's releases


def _loss(y: Any, shares: Any) -> float:
    return float(log_loss(y, np.clip(shares, _LEAST, 1 - _LEAST)))


SCORES: Mapping[str, Callable[[Any, Any], float]] = {
    "aucs": lambda y, shares: float(roc_auc_score(y, shares)),
    "losses": _loss,
    "gaps": lambda y, shares: float(np.mean(shares) - np.mean(y)),
}
"""Of labels and probabilities: AUC, log loss, and how far the mean probability is above the share of positives."""


_MEANS = {"loss": "losses", "gap": "gaps"}


def once(_: int) -> int:
    """Release every split once, whatever the number of records."""
    return 1


@dataclass(frozen=True)
class Ways:
    """Compared methods.

    Attributes:
        private: run at every epsilon.
        exact: run once, without privacy.
        left_out: by name, why a way cannot run here.
        releases: how often each private way releases a split, from the table's number of records.
    """

    private: Mapping[str, Way]
    exact: Mapping[str, Way] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    releases: Callable[[int], int] = once

    def cells(self, names: Sequence[str] | None, epsilons: Sequence[float]) -> Iterator[tuple[str, Way, float | None]]:
        """Ways that can run here, each with an epsilon, in the order of the epsilons."""
        chosen = {
            name: way
            for name, way in {**self.exact, **self.private}.items()
            if name not in self.left_out and (names is None or name in names)
        }
        for epsilon in epsilons:
            for name, way in chosen.items():
                if name in self.private:
                    yield name, way, epsilon
                elif epsilon == epsilons[0]:
                    yield name, way, None


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--tables", nargs="+", help="names of the tables; all if omitted")
    parser.add_argument("--ways", nargs="+", help="all if omitted")
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--keep", action="store_true", help="go on with the saved cells")
    parser.add_argument("--minutes", type=float, help="begin no further table after so many")


def tables_of(ways: Ways, name: str, chosen: argparse.Namespace) -> Tables:
    """What was run on, then a table per raw table, again after every block of splits."""
    there = {each.name: each for each in present(["cancer"] if chosen.quick else chosen.tables)}
    found = _saved(chosen.json or RESULTS / f"{name}.json") if chosen.keep and not chosen.quick else {}
    loaded = {each: table.load() for each, table in there.items()}
    yield ABOUT, [_about(there[each], *loaded[each]) for each in there]
    yield from ((TITLE + each, _in_order(rows, ways)) for each, rows in found.items())
    epsilons, count = ([1.0], 2) if chosen.quick else (chosen.epsilons, chosen.splits)
    begun = time.monotonic()
    for epsilon, start in ((epsilon, start) for epsilon in epsilons for start in range(0, count, _BLOCK)):
        for each in sorted(there, key=lambda table: loaded[table][0].size):
            if chosen.minutes is not None and time.monotonic() - begun > 60 * chosen.minutes:
                return
            rows, until = found.setdefault(each, {}), min(start + _BLOCK, count)
            releases = ways.releases(len(loaded[each][0]))
            cells = [
                (way, run, at)
                for way, run, at in ways.cells(chosen.ways, epsilons)
                if (epsilon if at is None else at) == epsilon and _measured(rows, way, at, releases) < until
            ]
            if cells:
                _measure(rows, cells, loaded[each], until, releases)
                yield TITLE + each, _in_order(rows, ways)


def lines_of(
    title: str,
    name: str,
    chosen: argparse.Namespace,
    asked: Iterable[tuple[float, RawTable]],
    measured: Callable[[RawTable, float], Row],
    enough: Callable[[Row], bool] | None = None,
) -> Tables:
    """Yield one table, a row per epsilon and raw table, after each new row; saved rows stay where they are enough."""
    path, begun = chosen.json or RESULTS / f"{name}.json", time.monotonic()
    saved = json.loads(path.read_text()) if chosen.keep and not chosen.quick and path.exists() else {}
    found = {(row["data"], row["epsilon"]): row for row in saved.get(title, ())}
    if found:
        yield title, list(found.values())
    for epsilon, table in asked:
        there = found.get((table.name, epsilon))
        if there is not None and (enough is None or enough(there)):
            continue
        if chosen.minutes is not None and time.monotonic() - begun > 60 * chosen.minutes:
            return
        found[table.name, epsilon] = measured(table, epsilon)
        yield title, list(found.values())


def present(names: Sequence[str] | None) -> Iterator[RawTable]:
    """Yield the tables with these names, or all; one whose package is missing is left out with the reason."""
    for table in TABLES:
        if names is None or table.name in names:
            try:
                table.frame()
            except ImportError as error:
                print(f"{table.name} left out: {error}")
            else:
                yield table


def _measure(
    rows: dict[tuple[str, float | None], dict[str, Any]],
    cells: Sequence[tuple[str, Way, float | None]],
    table: tuple[Any, Any],
    until: int,
    releases: int,
) -> None:
    """Bring these cells to so many splits."""
    known, (columns, y) = Known.of(table[0]), table
    first = min(_measured(rows, way, at, releases) for way, _, at in cells)
    made = list(splits(columns, y, range(first, until)))
    for way, run, epsilon in cells:
        times, before = (1 if epsilon is None else releases), _measured(rows, way, epsilon, releases)
        if not before:
            rows[way, epsilon] = {"way": way, "epsilon": epsilon, **{name: [] for name in SCORES}, "seconds": 0.0}
            rows[way, epsilon] |= {"releases": times} if times > 1 else {}
        row, there = rows[way, epsilon], made[before - first :]
        begun = time.perf_counter()
        found = [run(known, _seeded(there, _NEXT_RELEASE * each), epsilon or 0.0) for each in range(times)]
        row["seconds"] += time.perf_counter() - begun
        for split, shares in zip(there, zip(*found, strict=True), strict=True):
            for name, score in SCORES.items():
                mean = float(np.mean([score(split.y_test, each) for each in shares]))
                row.setdefault(name, []).append(round(mean, 5))


def _seeded(there: Sequence[Split], later: int) -> list[Split]:
    return [replace(split, seed=split.seed + later) for split in there]


def _measured(rows: Mapping[tuple[str, float | None], Row], way: str, epsilon: float | None, releases: int) -> int:
    """Return the number of splits that a saved cell has; none where each was released too rarely."""
    row = rows.get((way, epsilon))
    if row is None or (epsilon is not None and row.get("releases", 1) < releases):
        return 0
    return len(row["aucs"])


def _in_order(rows: Mapping[tuple[str, float | None], Row], ways: Ways) -> Rows:
    """Rows with mean and standard error, in the order of the ways; those that cannot run here say why."""
    names = list(ways.private) + list(ways.exact)
    ordered = sorted(rows.values(), key=lambda row: (names.index(row["way"]), row["epsilon"] or 0.0))
    return [
        {
            **row,
            "mean": float(np.mean(row["aucs"])),
            "se": standard_error(row["aucs"]) if len(row["aucs"]) > 1 else None,
            **{mean: float(np.mean(row[many])) for mean, many in _MEANS.items() if row.get(many)},
        }
        for row in ordered
    ]


def _about(table: RawTable, columns: Any, y: Any) -> Row:
    book = Known.of(columns).book
    return {
        "data": table.name,
        "role": table.role,
        "source": table.source,
        "records": len(columns),
        "numbers": sum(category is None for category in book.values()),
        "categories": sum(category is not None for category in book.values()),
        "own gaps": int(columns.isna().to_numpy().sum()),
        "positive": float(np.mean(y)),
    }


def _saved(path: Path) -> dict[str, dict[tuple[str, float | None], dict[str, Any]]]:
    document: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return {
        title.removeprefix(TITLE): {(row["way"], row["epsilon"]): dict(row) for row in rows}
        for title, rows in document.items()
        if title.startswith(TITLE)
    }
