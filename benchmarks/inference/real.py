"""Coverage on the columns of real data sets, with known coefficients, and errors that the model does not expect.

    python -m benchmarks.inference.real --save

Columns are a data set's own, records drawn from its rows with replacement; coefficients are known, errors are normal,
heavy-tailed (t with 3 degrees) or grow outward from the middle of a column. By the schema's folds as well, which need
no common variance. Sets come with scikit-learn; diamonds and the like, which do not, are left out.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import privstats as ps
from benchmarks.data import DATA
from benchmarks.inference.coverings import Answer, Array, dealt, plan_of, ran, tallied
from benchmarks.measuring import Row, Tables, command
from privstats import inference as inf
from privstats.randomness import Generator
from privstats.transforms import ConstantFeature

CLIENTS = 4
COLUMNS = 5
BOUND = 4.0
"""Of the targets: sixteen standard deviations of the errors."""
SPREAD = 0.25
SLOPES = np.array([0.2, 0.3, -0.25, 0.15, 0.0, -0.1])  # the intercept first

Errors = Callable[[np.random.Generator, Array], Array]


def _normal(chance: np.random.Generator, X: Array) -> Array:
    return SPREAD * chance.normal(size=len(X))


def _heavy(chance: np.random.Generator, X: Array) -> Array:
    return SPREAD / math.sqrt(3) * chance.standard_t(3, len(X))


def _growing(chance: np.random.Generator, X: Array) -> Array:
    """The standard deviation grows outward from the middle of the first column's range."""
    return SPREAD * (0.3 + 1.7 * np.abs(X[:, 0])) * chance.normal(size=len(X))


ERRORS: Mapping[str, Errors] = {"normal": _normal, "t3": _heavy, "growing outward": _growing}


def tables(options: argparse.Namespace) -> Tables:
    """A row per data set, kind of errors, noise and way to standard errors."""
    runs = 1 if options.quick else options.runs
    records = 1_000 if options.quick else 10_000
    sets = _sets()
    if options.quick:
        sets = {"diabetes": sets["diabetes"]}
    yield (
        f"real columns, {records:,} records",
        [
            row
            for name, columns in sets.items()
            for errors in ERRORS
            for row in (
                covered(name, columns, errors, records, None, "nonrobust", runs),
                covered(name, columns, errors, records, None, "folds", runs),
                covered(name, columns, errors, records, 3.0, "nonrobust", runs),
                covered(name, columns, errors, records, 8.0, "folds", runs),
            )
        ],
    )


def covered(
    name: str,
    columns: Array,
    errors: str,
    records: int,
    epsilon: float | None,
    cov_type: Literal["nonrobust", "folds"],
    runs: int,
) -> Row:
    """Five slopes and the intercept, over ``runs`` draws of records and errors."""
    schema = ps.RidgeSchema(
        COLUMNS + 1,
        clip_norm=math.sqrt(COLUMNS + 1),
        target_bound=BOUND,
        folds=20 if cov_type == "folds" else 1,
        transform=(ConstantFeature(1.0),),
    )
    plan = plan_of(schema, CLIENTS, records, epsilon)

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        X = columns[chance.integers(0, len(columns), records)]
        y = SLOPES[0] + X @ SLOPES[1:] + ERRORS[errors](chance, X)
        table = inf.ols(ran(plan, dealt(X, y, CLIENTS), rng), cov_type=cov_type)
        return Answer.of(np.where(table.reported, table.params, np.nan), table.conf_int(), SLOPES)

    found = tallied(f"{name} {errors} {records}", answer, runs)
    return {"columns": name, "errors": errors, "epsilon": epsilon, "cov_type": cov_type, **found}


def _sets() -> Mapping[str, Array]:
    """The first columns of every set, brought to [-1, 1] by their ranges."""
    diabetes = load_diabetes(scaled=False).data[:, [0, 2, 3, 4, 1]]
    found = {
        "diabetes": diabetes,
        "breast cancer": load_breast_cancer().data[:, [1, 4, 8, 9, 11]],
        "wine": load_wine().data[:, :COLUMNS],
    }
    file = DATA / "cifar10_effnetlite0_rp256.npz"
    if file.exists():
        found["CIFAR-10 features"] = np.load(file)["X_train"][:, :COLUMNS].astype(np.float64)
    else:
        print(f"CIFAR-10 features left out: {file.name} is not there")
    return {name: _ranged(columns) for name, columns in found.items()}


def _ranged(columns: Array) -> Array:
    low, high = columns.min(axis=0), columns.max(axis=0)
    return np.asarray((2 * columns - low - high) / (high - low))


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=100, help="releases per row")


if __name__ == "__main__":
    command("inference.real", __doc__, tables, _options)
