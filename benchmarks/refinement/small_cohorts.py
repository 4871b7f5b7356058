"""The fixed schedule and the filters of a regression's rounds, in small cohorts of made-up records.

    python -m benchmarks.refinement.small_cohorts --save

Test MSE of central courses of 24 rounds at epsilon .1, in real numbers with the noise of the library's plans; both
recipes get the same records. The spectrum of a design falls as a power of the eigenvalue's number. Of the recipe's
numbers only the bound of 40, and what shortens the steps of the smallest cohorts, were looked for on these designs.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Row, Tables, command
from benchmarks.refinement.least_squares import DELTA, Split, mse
from benchmarks.refinement.prototype import play_ridge
from privstats.dp import gaussian_mu
from privstats.estimates.regression import RidgeRecipe

DESIGNS = ((5, 0.0), (20, 0.0), (20, 1.0), (20, 2.0), (60, 1.0), (60, 2.0))
"""Columns, and the power by which the spectrum falls."""
RECORDS = (30, 100, 300, 600, 1_200, 2_400, 4_800)
EPSILON, ROUNDS, NORM, BOUND = 0.1, 24, 1.5, 3.0
TITLE = "test MSE of regressions of small cohorts at epsilon .1"
_TESTED = 2_000


class Fixed(RidgeRecipe):
    """The recipe with the schedule, however large the cohort."""

    descends = True


class Filtered(RidgeRecipe):
    """The recipe with filters, however small the cohort."""

    descends = False


def options(parser: argparse.ArgumentParser) -> None:
    """How often."""
    parser.add_argument("--draws", type=int, default=15)


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row longer each time."""
    designs, counts, draws = (DESIGNS[:1], RECORDS[:1], 2) if options.quick else (DESIGNS, RECORDS, options.draws)
    rows: list[Row] = []
    for columns, power in designs:
        for records in counts:
            rows.append(compared(columns, power, records, draws))
            yield TITLE, rows


def compared(columns: int, power: float, records: int, draws: int) -> Row:
    """Both recipes on the same records: mean errors, and the change of their geometric mean, in percent."""
    mu = gaussian_mu(EPSILON, DELTA)
    fixed, filtered = (np.array(list(_errors(kind, columns, power, records, draws))) for kind in (Fixed, Filtered))
    change = np.log(fixed / filtered)
    return {
        "columns": columns,
        "power": power,
        "records": records,
        "n mu": records * mu,
        "filters": float(filtered.mean()),
        "fixed steps": float(fixed.mean()),
        "change, %": 100 * math.expm1(float(change.mean())),
        "se": 100 * math.exp(float(change.mean())) * float(change.std(ddof=1)) / math.sqrt(draws),
    }


def _errors(kind: type[RidgeRecipe], columns: int, power: float, records: int, draws: int) -> Iterator[float]:
    recipe = kind(columns, records, gaussian_mu(EPSILON, DELTA), NORM, BOUND, ROUNDS)
    for seed in range(draws):
        X, X_test, y, y_test = made(columns, power, records, seed)
        *_, weights = play_ridge(recipe, X, y, np.random.default_rng([seed, 1]))
        yield mse(weights, X_test, y_test)


def made(columns: int, power: float, records: int, seed: int) -> Split:
    """Gaussian rows of mean square length 1, cut to 1.5; targets of variance 1 and noise of variance .09, cut to 3."""
    rng, turned = np.random.default_rng([seed, 0]), np.random.default_rng(columns)
    spectrum = np.arange(1, columns + 1) ** -power
    axes = np.linalg.qr(turned.standard_normal((columns, columns)))[0]
    X: NDArray[np.float64] = rng.standard_normal((records + _TESTED, columns)) * np.sqrt(spectrum / spectrum.sum())
    X = (X * np.minimum(1, NORM / np.linalg.norm(X, axis=1))[:, None]) @ axes
    y = X @ rng.standard_normal(columns)
    y = np.clip(y / y.std() + 0.3 * rng.standard_normal(len(y)), -BOUND, BOUND)
    return X[:records], X[records:], y[:records], y[records:]


if __name__ == "__main__":
    command("refinement.small_cohorts", __doc__, tables, options)
