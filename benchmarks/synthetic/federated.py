"""Synthetic rows of many parties on the splits, queries and metrics of HeteroFedSyn (arXiv 2603.08832).

    PRIVSTATS_HETEROFEDSYN=FOLDER python -m benchmarks.synthetic.federated --save [--rows FOLDER]

FOLDER is a checkout of the authors' repository, whose ``datasets`` hold each table's split and its public ranges and
values. Ours reads the training and validation records of 10 or 50 parties of equal size through masked sessions of one
course, with delta 1e-10 as in the authors' settings. A number has at most 100 even cells between its public ends, as
theirs; an integer with fewer values has a cell each. Scores compare the rows with the authors' test records:

- *queries*: mean absolute error of 1,000 random range queries over one, two or three columns, drawn as the authors do:
  a value of a text column, or an interval whose lower end is uniform and whose upper end is uniform above it.
- *fidelity*: mean Wasserstein distance (L1, each number scaled to 0 to 1) of all pairs of numbers, between 1,000 rows
  and 1,000 test records.
- *model*: boosting that learns from rows and predicts test records: F1 (macro) of classes, or RMSE.

``--rows`` scores rows that others' code wrote, from files named ``TABLE,WAY,EPSILON,PARTIES,DRAW.csv``. "independent
columns" shuffles each column of the training records; "real rows" are these records. What is not measured keeps its
saved rows.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import f1_score, root_mean_squared_error

import privstats as ps
from benchmarks.measuring import Row, Tables, command, saved, standard_error
from privstats.contrib.synthetic.columns import Column, coded, schema_of
from privstats.contrib.synthetic.course import Synthetic
from privstats.contrib.synthetic.fit import fit_of

__all__ = ["EPSILONS", "PARTIES", "TABLES", "Split", "distance", "loaded", "query_errors"]

HOME = os.environ.get("PRIVSTATS_HETEROFEDSYN", "")
TABLES = ("adult", "shoppers", "abalone", "obesity", "insurance")
EPSILONS, PARTIES = (0.2, 1.0, 5.0), (10, 50)
DELTA = 1e-10
_MADE_UP = "made up"
_CELLS, _QUERIES, _COMPARED = 100, 1_000, 1_000
_LABEL = "label"


@dataclass(frozen=True, eq=False)
class Split:
    """A table with its public description.

    Attributes:
        numbers: lower and upper end of each column of numbers.
        texts: values of each other column.
        whole: the numbers whose ends are integers.
        train, test: records.
    """

    numbers: Mapping[str, tuple[float, float]]
    texts: Mapping[str, tuple[str, ...]]
    whole: frozenset[str]
    train: pd.DataFrame
    test: pd.DataFrame

    @property
    def columns(self) -> tuple[Column, ...]:
        """The declaration, in the order of the records' columns."""
        return tuple(
            ps.Numeric(name, self._edges(name)) if name in self.numbers else ps.Categories(name, self.texts[name])
            for name in self.train
        )

    def _edges(self, name: str) -> tuple[float, ...]:
        low, high = self.numbers[name]
        if name in self.whole:
            cells = min(int(high - low) + 1, _CELLS)
            return tuple(np.linspace(low, high + 1, cells + 1).tolist())
        return tuple(np.linspace(low, high + (high - low) * 1e-6, _CELLS + 1).tolist())

    def decoded(self, codes: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
        """Return rows of values: a number is uniform in its cell; a missing one is NaN, and a missing text empty."""
        out: dict[str, Any] = {}
        for name, cells in zip(self.train, codes.T, strict=True):
            if name in self.numbers:
                edges = np.array(self._edges(name))
                known = np.minimum(cells, len(edges) - 2)
                values = edges[known] + rng.random(len(cells)) * (edges[known + 1] - edges[known])
                out[name] = np.where(cells > known, np.nan, np.floor(values) if name in self.whole else values)
            else:
                known = np.minimum(cells, len(self.texts[name]))  # the cells behind are of other and missing values
                out[name] = np.array([*self.texts[name], ""], dtype=object)[known]
        return pd.DataFrame(out)


def loaded(name: str, home: str = HOME) -> Split:
    """Read a table of the authors' repository, or make up a small one."""
    if name == _MADE_UP:
        return _made_up()
    folder = Path(home) / "datasets" / name
    described = json.loads((folder / f"{name}.json").read_text())["columns"]
    numbers = {each["name"]: (each["min"], each["max"]) for each in described if each["type"] == "continuous"}
    texts = {each["name"]: tuple(each["i2s"]) for each in described if each["name"] not in numbers}
    whole = frozenset(each for each, ends in numbers.items() if all(isinstance(end, int) for end in ends))
    train, val, test = (
        pd.read_csv(folder / f"{part}.csv", dtype=dict.fromkeys(texts, str), keep_default_na=False)
        for part in ("train", "val", "test")
    )
    return Split(numbers, texts, whole, pd.concat([train, val], ignore_index=True), test)


def _made_up() -> Split:
    rng, records = np.random.default_rng(0), 600
    age = rng.integers(20, 60, records)
    ward = np.where(age + rng.integers(-15, 15, records) > 40, "medicine", "surgery")
    table = pd.DataFrame({"age": age, "weight": rng.normal(70, 8, records).clip(40, 100), "ward": ward})
    table[_LABEL] = np.where(rng.random(records) < np.where(ward == "medicine", 0.7, 0.2), "yes", "no")
    texts = {"ward": ("medicine", "surgery"), _LABEL: ("no", "yes")}
    return Split({"age": (20, 59), "weight": (40.0, 100.0)}, texts, frozenset({"age"}), table[:450], table[450:])


# --- ways


def ours(split: Split, epsilon: float, parties: int, seed: int) -> pd.DataFrame:
    """Return rows of the course, from masked sessions of parties with as many records each."""
    schema, order = schema_of(split.columns), np.random.default_rng(seed).permutation(len(split.train))
    privacy = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=epsilon, delta=DELTA)
    cohort = ps.Cohort(parties, max(2, parties - parties // 5), 1 << 16)
    course = Synthetic.within(ps.Plan(schema=schema, cohort=cohort, privacy=privacy))
    parts = [(coded(split.columns, split.train.iloc[mine]), None) for mine in np.array_split(order, parties)]
    fit, rng = fit_of(course, ps.simulate(course, parts)), np.random.default_rng(seed)
    codes = fit.fine_cells(fit.model.draw(len(split.train), rng), rng)
    return split.decoded(codes.astype(np.int64), rng)


def _independent(split: Split, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.permutation(split.train[name].to_numpy()) for name in split.train})


# --- scores


def query_errors(split: Split, rows: pd.DataFrame, ways: int, rng: np.random.Generator) -> float:
    """Return the mean absolute error of random range queries over ``ways`` columns.

    A query takes columns at random until it has enough of them. Its answer is the share of rows within all conditions.
    """
    names, errors = list(split.train), []
    for _ in range(_QUERIES):
        inside = [np.ones(len(each), bool) for each in (rows, split.test)]
        for place in rng.permutation(len(names))[:ways]:
            name = names[place]
            if name in split.numbers:
                low, high = split.numbers[name]
                low = rng.uniform(low, high)
                high = rng.uniform(low, high)
                found = [((each[name] >= low) & (each[name] <= high)).to_numpy() for each in (rows, split.test)]
            else:
                value = rng.choice(split.texts[name])
                found = [(each[name] == value).to_numpy() for each in (rows, split.test)]
            inside = [one & other for one, other in zip(inside, found, strict=True)]
        errors.append(abs(inside[0].mean() - inside[1].mean()))
    return float(np.mean(errors))


def distance(split: Split, rows: pd.DataFrame, rng: np.random.Generator) -> float:
    """Return the mean Wasserstein distance of all pairs of numbers, between as many rows as test records."""
    size = min(_COMPARED, len(rows), len(split.test))
    one, other = (each.iloc[rng.permutation(len(each))[:size]] for each in (rows, split.test))
    scaled = {
        name: [(np.nan_to_num(each[name].to_numpy(float), nan=low) - low) / (high - low) for each in (one, other)]
        for name, (low, high) in split.numbers.items()
    }
    return float(np.mean([_transport(scaled[a], scaled[b]) for a, b in combinations(scaled, 2)]))


def _transport(first: Sequence[NDArray[Any]], second: Sequence[NDArray[Any]]) -> float:
    """Between samples of one size the best transport is an assignment."""
    costs = cdist(np.column_stack(first), np.column_stack(second), metric="cityblock")
    return float(costs[linear_sum_assignment(costs)].mean())


def model_score(split: Split, rows: pd.DataFrame) -> float:
    """Return the macro F1, or the RMSE of a regression, of boosting on test records."""
    (X, y), (T, truth) = (_encoded(split, each) for each in (rows, split.test))
    if _LABEL in split.numbers:
        known = ~np.isnan(y)
        found = HistGradientBoostingRegressor(random_state=0).fit(X[known], y[known]).predict(T)
        return float(root_mean_squared_error(truth, found))
    known = y >= 0
    if len(np.unique(y[known])) < 2:
        return float(f1_score(truth, np.full(len(truth), y[known][0]), average="macro"))
    found = HistGradientBoostingClassifier(random_state=0).fit(X[known], y[known]).predict(T)
    return float(f1_score(truth, found, average="macro"))


def _encoded(split: Split, table: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[Any]]:
    def codes(name: str) -> NDArray[Any]:
        if name in split.numbers:
            return np.asarray(table[name], float)
        return np.asarray(pd.Index(split.texts[name]).get_indexer(table[name]), float)

    columns = [codes(name) for name in split.train if name != _LABEL]
    return np.column_stack(columns), codes(_LABEL)


def _scored(split: Split, rows: pd.DataFrame, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    queries = {f"{ways}-way": query_errors(split, rows, ways, rng) for ways in (1, 2, 3)}
    return {**queries, "fidelity": distance(split, rows, rng), "model": model_score(split, rows)}


def _row(way: str, epsilon: float | None, parties: int | None, scores: Sequence[Mapping[str, float]]) -> Row:
    means = {name: float(np.mean([each[name] for each in scores])) for name in scores[0]}
    spread = {f"{name} se": standard_error([each[name] for each in scores]) for name in means if len(scores) > 1}
    return {"way": way, "epsilon": epsilon, "parties": parties, "draws": len(scores), **means, **spread}


# --- runs


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--parties", nargs="+", type=int, default=list(PARTIES))
    parser.add_argument("--ways", nargs="+", choices=("ends", "ours"), default=["ends", "ours"])
    parser.add_argument("--draws", type=int, default=3, help="times that each way's rows are drawn, with new noise")
    parser.add_argument("--rows", type=Path, help="a folder of rows that others' code wrote; scores these alone")


def _before(chosen: argparse.Namespace) -> Mapping[str, Any]:
    return {} if chosen.quick else saved("synthetic.federated")


def tables(chosen: argparse.Namespace) -> Tables:
    """Yield one table per way and set, so that a run may be stopped."""
    read = cache(loaded)
    if chosen.rows is not None:
        yield from _others(chosen.rows, read)
        return
    if chosen.quick:
        yield f"ours: {_MADE_UP}, 1, 3", [_ours(_made_up(), 1.0, 3, 1)]
        return
    for name in chosen.tables:
        split, draws = read(name), range(chosen.draws)
        if "ends" in chosen.ways:
            yield from _ends(name, split, draws)
        if "ours" in chosen.ways:
            for epsilon, parties in product(chosen.epsilons, chosen.parties):
                yield f"ours: {name}, {epsilon:g}, {parties}", [_ours(split, epsilon, parties, len(draws))]


def _ends(name: str, split: Split, draws: range) -> Iterator[tuple[str, list[Row]]]:
    blind = [_scored(split, _independent(split, seed), seed) for seed in draws]
    exact = [_scored(split, split.train, seed) for seed in draws]
    yield f"ends: {name}", [_row("independent columns", None, None, blind), _row("real rows", None, None, exact)]


def _ours(split: Split, epsilon: float, parties: int, draws: int) -> Row:
    scores = []
    for seed in range(draws):
        begun = time.perf_counter()
        rows = ours(split, epsilon, parties, seed)
        seconds = time.perf_counter() - begun
        scores.append({**_scored(split, rows, seed), "seconds": seconds})
    return _row("ours", epsilon, parties, scores)


def _others(folder: Path, read: Any) -> Iterator[tuple[str, list[Row]]]:
    found: dict[tuple[str, str], dict[tuple[float, int], list[dict[str, float]]]] = {}
    for path in sorted(folder.glob("*.csv")):
        name, way, budget, count, draw = path.stem.split(",")
        split = read(name)
        rows = pd.read_csv(path, dtype=dict.fromkeys(split.texts, str), keep_default_na=False)[list(split.train)]
        cell = found.setdefault((name, way), {}).setdefault((float(budget), int(count)), [])
        cell.append(_scored(split, rows, int(draw)))
    for (name, way), cells in found.items():
        for (epsilon, parties), scores in sorted(cells.items()):
            yield f"{way}: {name}, {epsilon:g}, {parties}", [_row(way, epsilon, parties, scores)]


if __name__ == "__main__":
    command("synthetic.federated", __doc__, tables, _options, _before)
