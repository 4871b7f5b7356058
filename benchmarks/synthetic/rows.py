"""Models learnt from synthetic rows and scored on real ones, and distances of two-way and three-way tables.

    PRIVSTATS_MBI=PYTHON PRIVSTATS_MBI_MECHANISMS=FOLDER python -m benchmarks.synthetic.rows --save

Raw tables of ``benchmarks.raw_tables`` and Adult, a quarter held out. Every way gets the same public cells: 32 even
ones for a number, the twelve most frequent values of a text. "ours" is the course of three sessions. The others are run
by one curator who sees all records, at the same epsilon and delta: "AIM" and "MST" over this library's fit
(``one_curator``); "mbi AIM" and "mbi MST", the authors' code, in an interpreter with ``mbi`` (the folder is
``mechanisms`` of a checkout of ``ryan112358/mbi``); "OpenDP AIM" and "OpenDP MST" with ``PRIVSTATS_OPENDP_MBI``, an
interpreter with ``opendp[mbi]``. Adult is ``data/adult.csv`` of the same checkout; name it in ``PRIVSTATS_ADULT``.
"rule" is a made-up table in which one number follows from another; it is measured where ``--tables`` names it. "ours at
16 cells" merges each column to at most 16 cells in a pair, as the course did at any epsilon before noise alone decided.
"independent columns" are the real columns, each shuffled. "real rows" are the records; their distances are those
between the held-out records and the others. What is not measured keeps its saved rows.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import privstats as ps
from benchmarks.measuring import Row, Tables, child, command, saved, standard_error
from benchmarks.raw_tables.sets import TABLES, code_book
from benchmarks.synthetic.one_curator import aim, mst
from privstats.contrib.synthetic.choice import Screened, chosen_pairs
from privstats.contrib.synthetic.columns import Column, coded, schema_of
from privstats.contrib.synthetic.course import Synthetic
from privstats.contrib.synthetic.fit import fit_of
from privstats.intake.columns import read
from privstats.randomness import seeded
from privstats.records.cells import cells_in

__all__ = ["DATA", "EPSILONS", "MBI", "WAYS", "Coded", "coded_table", "course_of"]

Codes: TypeAlias = NDArray[np.int64]

MBI = os.environ.get("PRIVSTATS_MBI", "")
"""An interpreter that has mbi."""
OPENDP = os.environ.get("PRIVSTATS_OPENDP_MBI", "")
"""An interpreter that has OpenDP with mbi."""
ADULT = os.environ.get("PRIVSTATS_ADULT", "")
EPSILONS = (0.3, 1.0, 3.0, 10.0)
DATA = ("adult", "fair", "health insurance", "default", "credit", "flchain", "churn")
RULE = "rule"
DELTA = 1e-6
CURATORS = {"AIM": aim, "MST": mst}
AUTHORS = ("mbi AIM", "mbi MST")
OPENDP_PEERS = ("OpenDP AIM", "OpenDP MST")
MOST_CELLS = {"ours": None, "ours at 16 cells": 16}
WAYS = ("independent columns", *MOST_CELLS, *CURATORS, *AUTHORS, *OPENDP_PEERS, "real rows")
_CELLS, _TARGET, _TRIPLES, _PARTIES = 32, "target", 60, 20
_HELD_OUT, _SEEDS_APART = 0.25, 1000
_SCREENED_SIGMA = 115.0
_ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")


@dataclass(frozen=True, eq=False)
class Coded:
    """A raw table in public cells.

    Attributes:
        name: of the table.
        columns: declared; the target is the last.
        records: of each declared column, its values as count tables read them.
    """

    name: str
    columns: tuple[Column, ...]
    records: Mapping[str, Any]

    @cached_property
    def schema(self) -> ps.CountSchema:
        """The one-way tables."""
        return schema_of(self.columns)

    @cached_property
    def codes(self) -> Codes:
        """The cell of every value, ``(n, columns)``."""
        cells = [cells_in(each, read(self.records[each.name])) for each in self.schema.variables]
        return np.column_stack(cells).astype(np.int64)

    @property
    def sizes(self) -> list[int]:
        """Number of cells of each column."""
        return [len(each.cells) for each in self.schema.variables]

    def part(self, chosen: NDArray[Any]) -> dict[str, Any]:
        """Some of the records."""
        return {name: np.asarray(values)[chosen] for name, values in self.records.items()}


def coded_table(name: str) -> Coded:
    """Load a table with cells as a code book would have them: 32 even ones between the ends of each number."""
    if name == RULE:
        return _ruled()
    frame, y = _adult() if name == "adult" else next(each for each in TABLES if each.name == name).load()
    columns: list[Column] = []
    for column, category in code_book(frame).items():
        if category is None:
            low, high = float(frame[column].min()), float(frame[column].max())
            columns.append(ps.Numeric(column, tuple(np.linspace(low, high + (high - low) * 1e-6, _CELLS + 1))))
        else:
            columns.append(ps.Categories(column, _texts(category.values)))
    columns.append(ps.Truth(_TARGET))
    table = {**{str(each): _worded(frame[each]) for each in frame}, _TARGET: y}
    return Coded(name, tuple(columns), coded(columns, table))


def _ruled() -> Coded:
    """Make 45,000 rows with an offset and the quarter that follows from it, each in 32 cells."""
    rng, records = np.random.default_rng(0), 45_000
    offset = np.minimum(rng.gamma(3.0, 20.0, records), 159.9)
    quarter = np.floor(offset / 5) % 4
    values = {
        "offset": offset,
        "quarter": 8 * quarter + 0.99 * rng.integers(0, 8, records),
        "age": rng.normal(50, 15, records).clip(0, 99.9),
        "site": rng.choice(["a", "b", "c"], records, p=[0.5, 0.3, 0.2]),
        _TARGET: (rng.random(records) < np.where(quarter < 2, 0.2, 0.5)).astype(int),
    }
    ends = {"offset": 160.0, "quarter": 32.0, "age": 100.0}
    numbers = [ps.Numeric(each, tuple(np.linspace(0, most, _CELLS + 1))) for each, most in ends.items()]
    columns: tuple[Column, ...] = (*numbers, ps.Categories("site", ("a", "b", "c")), ps.Truth(_TARGET))
    return Coded(RULE, columns, coded(columns, values))


def _adult() -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Load Adult: codes as numbers and as words, and whether the income exceeds 50,000."""
    frame = pd.read_csv(ADULT)
    y = frame.pop("income>50K").to_numpy(np.intp)
    return frame.astype({name: str for name in frame if name not in _ADULT_NUMBERS}), y


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(f"v {value}" for value in values)


def _worded(column: Any) -> Any:
    """Numbers as they are where many differ; else each as a text, as the code book lists it."""
    if code_book(column.to_frame())[str(column.name)] is None:
        return column.to_numpy()
    return [None if pd.isna(value) else f"v {value}" for value in column]


# --- ways


@dataclass(frozen=True)
class Drawn:
    """Rows in public cells, and the seconds that they took."""

    codes: Codes
    seconds: float


def ours(table: Coded, train: NDArray[Any], epsilon: float, seed: int, most_cells: int | None = None) -> Drawn:
    """Rows of the course."""
    course = course_of(table, epsilon, "central", 2, most_cells)
    begun = time.perf_counter()
    noise = seeded(seed)  # so that the rows can be drawn again
    releases = ps.private_releases(course, table.part(train), ledger="uncharged", rng=noise, allow_reproducible=True)
    fit, rng = fit_of(course, releases), np.random.default_rng(seed)
    rows = fit.fine_cells(fit.model.draw(len(train), rng), rng)
    return Drawn(rows.astype(np.int64), time.perf_counter() - begun)


def course_of(table: Coded, epsilon: float, model: Any, parties: int, most_cells: int | None = None) -> Synthetic:
    """The course of a table's one-way tables, with the promise of this epsilon."""
    levels: Any = {} if most_cells is None else {"levels": most_cells}
    privacy = ps.Privacy(model=model, unit="record", adjacency="add-remove", epsilon=epsilon, delta=DELTA)
    cohort = ps.Cohort(parties, max(2, parties - parties // 5), 1 << 17)
    return Synthetic.within(ps.Plan(schema=table.schema, cohort=cohort, privacy=privacy), **levels)


def masked_seconds(table: Coded, parties: int) -> tuple[float, float]:
    """Seconds of all sessions of parties that mask, in one process; and of one curator."""
    chosen = np.arange(len(table.codes))
    parts = [(table.part(chosen[k::parties]), None) for k in range(parties)]
    course = course_of(table, 1.0, "distributed", parties)
    begun = time.perf_counter()
    ps.simulate(course, parts)
    masked = time.perf_counter() - begun
    begun = time.perf_counter()
    ps.private_releases(course_of(table, 1.0, "central", 2), table.part(chosen), ledger="uncharged")
    return masked, time.perf_counter() - begun


def peer(way: str, codes: Codes, sizes: Sequence[int], epsilon: float, seed: int) -> Drawn:
    """Rows of a mechanism of one curator; others' code runs in an interpreter that has it."""
    if way in CURATORS:
        begun = time.perf_counter()
        rows = CURATORS[way](codes, sizes, rho_of(epsilon, DELTA), np.random.default_rng(seed))
        return Drawn(rows, time.perf_counter() - begun)
    job: dict[str, Any] = {"codes0": codes, "sizes0": np.array(sizes), "way0": way, "seed0": seed}
    with tempfile.TemporaryDirectory() as folder:
        jobs, out = Path(folder) / "jobs.npz", Path(folder) / "rows.npz"
        np.savez(jobs, **job, rho0=rho_of(epsilon, DELTA))
        interpreter = OPENDP if way in OPENDP_PEERS else MBI
        child([interpreter, str(Path(__file__).with_name("mbi_peer.py")), str(jobs), str(out)])
        with np.load(out) as found:
            return Drawn(found["rows0"], float(found["seconds0"]))


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose zero-concentrated privacy implies (epsilon, delta) (Canonne, Kamath, Steinke 2020)."""

    def beyond(rho: float) -> float:
        def log_delta(alpha: float) -> float:
            return (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)

        found = minimize_scalar(lambda log: log_delta(1 + math.exp(log)), bounds=(-5, 12), method="bounded")
        return float(found.fun) - math.log(delta)

    return float(brentq(beyond, 1e-8, 100.0))


# --- scores


def distances(table: Coded, rows: Codes, real: Codes) -> tuple[float, float]:
    """Mean total variation distance of all two-way tables, and of random three-way ones."""
    d = len(table.sizes)
    triples = list(combinations(range(d), 3))
    chosen = np.random.default_rng(0).permutation(len(triples))[:_TRIPLES]
    two = [_distance(rows, real, table.sizes, pair) for pair in combinations(range(d), 2)]
    three = [_distance(rows, real, table.sizes, triples[place]) for place in chosen]
    return float(np.mean(two)), float(np.mean(three))


def _distance(rows: Codes, real: Codes, sizes: Sequence[int], axes: Sequence[int]) -> float:
    shape = [sizes[axis] for axis in axes]
    one, other = (
        np.bincount(np.ravel_multi_index([codes[:, axis] for axis in axes], shape), minlength=math.prod(shape))
        / len(codes)
        for codes in (rows, real)
    )
    return float(np.abs(one - other).sum() / 2)


def features(table: Coded, codes: Codes) -> NDArray[np.float64]:
    """Of numbers the middle of the cell and whether it is missing, of others an indicator per cell."""
    blocks = []
    for variable, cells in zip(table.schema.variables[:-1], codes.T, strict=False):
        if isinstance(variable, ps.Bins):
            middle = np.append((np.arange(_CELLS) + 0.5) / _CELLS, 0.5)
            blocks.append(np.column_stack([middle[cells], cells == _CELLS]))
        else:
            blocks.append(np.eye(len(variable.cells))[cells])
    return np.hstack(blocks)


_LEARNERS: Mapping[str, Callable[[], Any]] = {
    "logistic": lambda: LogisticRegression(max_iter=300),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0, max_iter=40),
}


def aucs(table: Coded, rows: Codes, test: Codes) -> dict[str, float]:
    """AUC on real held-out records of models that were fitted to rows."""
    out = {}
    X, y, T, truth = features(table, rows), rows[:, -1], features(table, test), test[:, -1]
    X, y = X[y < 2], y[y < 2]  # a row without a target teaches nothing
    for name, learner in _LEARNERS.items():
        constant = len(np.unique(y)) < 2
        scores = np.zeros(len(T)) if constant else learner().fit(X, y).predict_proba(T)[:, 1]
        out[name] = float(roc_auc_score(truth, scores))
    return out


def _scored(table: Coded, drawn: Drawn, real: Codes, test: Codes) -> dict[str, float]:
    two, three = distances(table, drawn.codes, real)
    first = {"first pair": _distance(drawn.codes, real, table.sizes, (0, 1))} if table.name == RULE else {}
    return {**aucs(table, drawn.codes, test), "two-way": two, "three-way": three, **first, "seconds": drawn.seconds}


@dataclass(frozen=True, eq=False)
class _Split:
    train: NDArray[Any]
    real: Codes
    test: Codes


def _split(table: Coded, seed: int) -> _Split:
    order = np.random.default_rng(seed).permutation(len(table.codes))
    held = int(_HELD_OUT * len(order))
    return _Split(order[held:], table.codes[order[held:]], table.codes[order[:held]])


def _ends(table: Coded, splits: Sequence[int]) -> list[Row]:
    """Independent columns, and the records themselves."""
    blind, exact = [], []
    for seed in splits:
        split, rng = _split(table, seed), np.random.default_rng(seed)
        shuffled = np.column_stack([rng.permutation(column) for column in split.real.T])
        blind.append(_scored(table, Drawn(shuffled, 0.0), split.real, split.test))
        apart = dict(zip(("two-way", "three-way"), distances(table, split.test, split.real), strict=True))
        exact.append({**_scored(table, Drawn(split.real, 0.0), split.real, split.test), **apart})
    return [_row(None, WAYS[0], blind), _row(None, WAYS[-1], exact)]


def _way_rows(table: Coded, epsilon: float, way: str, splits: Sequence[int], draws: int) -> list[Row]:
    """Mean scores of each split over draws, each with its own noise."""
    scores = []
    for place in splits:
        split, drawn = _split(table, place), []
        for seed in (place + _SEEDS_APART * draw for draw in range(draws)):
            if way in MOST_CELLS:
                rows = ours(table, split.train, epsilon, seed, MOST_CELLS[way])
            else:
                rows = peer(way, split.real, table.sizes, epsilon, seed)
            drawn.append(_scored(table, rows, split.real, split.test))
        scores.append({name: float(np.mean([each[name] for each in drawn])) for name in drawn[0]})
    return [{**_row(epsilon, way, scores), "draws": draws}]


_MEANS = (*_LEARNERS, "two-way", "three-way", "first pair", "seconds")


def _row(epsilon: float | None, way: str, scores: Sequence[Mapping[str, float]]) -> Row:
    """Means over the splits, and the AUCs of each split, from split 0."""
    means = {name: float(np.mean([each[name] for each in scores])) for name in scores[0]}
    spread = standard_error([each["logistic"] for each in scores]) if len(scores) > 1 else None
    each = {f"{name} by split": [score[name] for score in scores] for name in _LEARNERS}
    return {"epsilon": epsilon, "way": way, **means, "logistic se": spread, "seeds": len(scores), **each}


def joined(before: Sequence[Row], found: Sequence[Row]) -> list[Row]:
    """Return the row of the splits of two rows of one way, whose means weigh each split alike."""
    if not before:
        return list(found)
    (one,), (other,) = before, found
    counts = one["seeds"], other["seeds"]
    means = {name: (one[name] * counts[0] + other[name] * counts[1]) / sum(counts) for name in _MEANS if name in one}
    each = {name: [*one[name], *other[name]] for name in (f"{learner} by split" for learner in _LEARNERS)}
    spread = standard_error(each["logistic by split"])
    return [{**other, **means, **each, "logistic se": spread, "seeds": sum(counts)}]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", default=list(DATA), help="names of raw tables, or adult")
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument(
        "--ways", nargs="+", default=["ends", "ours", *CURATORS, "masks", "choice"], help="what to measure"
    )
    parser.add_argument("--seeds", type=int, default=3, help="splits of each way")
    parser.add_argument("--draws", type=int, default=3, help="times that each split's rows are drawn, with new noise")
    parser.add_argument("--missing", action="store_true", help="measure only splits that have no saved numbers")


def _before(chosen: argparse.Namespace) -> Mapping[str, Any]:
    return {} if chosen.quick else saved("synthetic.rows")


def tables(chosen: argparse.Namespace) -> Tables:
    """Rows by table, epsilon and way, then the price of masks; one by one, so that a run may be stopped."""
    names = [name for name in chosen.tables if name != "adult" or ADULT]
    epsilons, splits, draws, parties = chosen.epsilons, range(chosen.seeds), chosen.draws, _PARTIES
    if chosen.quick:
        names, epsilons, splits, draws, parties = [name for name in names if name != "adult"][:1], [1.0], range(1), 1, 3
    saved = _before(chosen) if chosen.missing else {}
    loaded = cache(coded_table)
    if "ends" in chosen.ways:
        for name in names:
            if f"ends: {name}" not in saved:
                yield f"ends: {name}", _ends(loaded(name), splits)
    for way, epsilon, name in product(chosen.ways, epsilons, names):
        able = way in (*MOST_CELLS, *CURATORS) or bool(MBI and way in AUTHORS) or bool(OPENDP and way in OPENDP_PEERS)
        title = f"{way}: {name}, {epsilon:g}"
        before = saved.get(title, [])
        lacking, each = (splits[before[0]["seeds"] :], before[0]["draws"]) if before else (splits, draws)
        if able and lacking and not (chosen.quick and way != "ours"):
            yield title, joined(before, _way_rows(loaded(name), epsilon, way, lacking, each))
    if "masks" in chosen.ways:
        yield "seconds of all sessions", [_masks(loaded(name), parties) for name in names]
    if "choice" in chosen.ways:
        yield "seconds of the choice", [_choice(columns) for columns in ((8,) if chosen.quick else (15, 30, 60))]


def _choice(columns: int) -> Row:
    """Seconds of a party's choice of pairs: made-up columns of four values, of which every sixth go together."""
    rng, values, records = np.random.default_rng(0), 4, 20_000
    shared = rng.integers(0, values, (records, 6))
    own = [rng.integers(0, values, records) for _ in range(columns)]
    codes = [np.where(rng.random(records) < 0.5, shared[:, k % 6], each) for k, each in enumerate(own)]
    tables = {
        (a, b): np.bincount(codes[a] * values + codes[b], minlength=values**2).reshape(values, values)
        + rng.normal(0, _SCREENED_SIGMA, (values, values)).round()
        for a, b in combinations(range(columns), 2)
    }
    begun = time.process_time()
    pairs = chosen_pairs(Screened(tables, _SCREENED_SIGMA, (8,) * columns, _SCREENED_SIGMA / 2))
    return {"columns": columns, "pairs": len(pairs), "seconds": time.process_time() - begun}


def _masks(table: Coded, parties: int) -> Row:
    masked, alone = masked_seconds(table, parties)
    about = {"table": table.name, "records": len(table.codes), "columns": len(table.columns), "parties": parties}
    return {**about, "masked s": masked, "one curator s": alone}


if __name__ == "__main__":
    command("synthetic.rows", __doc__, tables, _options, _before)
