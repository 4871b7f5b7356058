"""A regression's rounds in small cohorts of made-up records: schedule or filters, with a mean before them or without.

    python -m benchmarks.refinement.small_cohorts --save

Test MSE of central courses of 24 rounds at epsilon .1, in real numbers with the noise of the library's plans; both
recipes of a row get the same records. The spectrum of a design falls as a power of the eigenvalue's number. Of the
recipe's numbers only the bound of 40, and what shortens the steps of the smallest cohorts, were looked for on these
designs.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Row, Tables, command
from benchmarks.refinement.least_squares import DELTA, Split, mse
from benchmarks.refinement.prototype import play_ridge
from privstats.dp import gaussian_mu
from privstats.estimates.recipes import RidgeRecipe

DESIGNS = ((5, 0.0), (20, 0.0), (20, 1.0), (20, 2.0), (60, 1.0), (60, 2.0))
"""Columns, and the power by which the spectrum falls."""
RECORDS = (30, 100, 300, 600, 1_200, 2_400, 4_800)
WITH_MEAN = (
    (5, 1.0, 1_000),
    (20, 0.0, 1_000),
    (20, 1.0, 1_000),
    (60, 1.0, 2_400),
    (100, 0.0, 4_800),
    (100, 1.0, 8_000),
)
"""Columns, power and records where the recipe measures a mean."""
MEANS = (0.0, 0.3, 0.6, 0.9)
"""The part of the rows' mean square that is their mean's."""
EPSILON, ROUNDS, NORM, BOUND = 0.1, 24, 1.5, 3.0
TITLE = "test MSE of regressions of small cohorts at epsilon .1"
MEANS_TITLE = "test MSE of regressions of records with a mean at epsilon .1"
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
    """Two tables, a row longer each time."""
    designs, counts, draws = (DESIGNS[:1], RECORDS[:1], 2) if options.quick else (DESIGNS, RECORDS, options.draws)
    shares, kinds = (MEANS[-1:], WITH_MEAN[:1]) if options.quick else (MEANS, WITH_MEAN)
    rows: list[Row] = []
    for columns, power in designs:
        for records in counts:
            rows.append(compared(columns, power, records, draws))
            yield TITLE, rows
    with_mean: list[Row] = []
    for columns, power, records in kinds:
        for share in shares:
            with_mean.append(compared_means(columns, power, records, share, draws))
            yield MEANS_TITLE, with_mean


def compared(columns: int, power: float, records: int, draws: int) -> Row:
    """Filters and the schedule on the same records."""
    fixed, filtered = (
        _errors(_recipe(columns, records, kind, mean=False), power, 0.0, draws) for kind in (Fixed, Filtered)
    )
    return {**_design(columns, power, records), **_change("filters", filtered, "fixed steps", fixed)}


def compared_means(columns: int, power: float, records: int, share: float, draws: int) -> Row:
    """The recipe with a mean before its rounds and without, on the same records."""
    without, told = (_errors(_recipe(columns, records, mean=mean), power, share, draws) for mean in (False, True))
    design = {**_design(columns, power, records), "mean's part": share}
    return {**design, **_change("without a mean", without, "with a mean", told)}


def _recipe(columns: int, records: int, kind: type[RidgeRecipe] = RidgeRecipe, *, mean: bool) -> RidgeRecipe:
    return kind(columns, records, gaussian_mu(EPSILON, DELTA), NORM, BOUND, ROUNDS, mean=mean)


def _design(columns: int, power: float, records: int) -> Row:
    return {"columns": columns, "power": power, "records": records, "n mu": records * gaussian_mu(EPSILON, DELTA)}


def _change(before: str, old: NDArray[np.float64], after: str, new: NDArray[np.float64]) -> Row:
    """Mean errors, and the change of their geometric mean with its standard error, in percent."""
    change = np.log(new / old)
    return {
        before: float(old.mean()),
        after: float(new.mean()),
        "change, %": 100 * math.expm1(float(change.mean())),
        "se": 100 * math.exp(float(change.mean())) * float(change.std(ddof=1)) / math.sqrt(len(old)),
    }


def _errors(recipe: RidgeRecipe, power: float, share: float, draws: int) -> NDArray[np.float64]:
    errors = []
    for seed in range(draws):
        X, X_test, y, y_test = made(recipe.features, power, recipe.records, seed, share)
        *_, weights = play_ridge(recipe, X, y, np.random.default_rng([seed, 1]))
        errors.append(mse(weights, X_test, y_test))
    return np.array(errors)


def made(columns: int, power: float, records: int, seed: int, share: float = 0.0) -> Split:
    """Gaussian rows of mean square length 1, cut to 1.5; targets of variance 1 and noise of variance .09, cut to 3.

    ``share`` of the rows' mean square is that of their mean, which points along no axis of the spectrum. It adds to the
    targets too, which are then about their own mean, as those of a regression with a constant column are.
    """
    rng, turned = np.random.default_rng([seed, 0]), np.random.default_rng(columns)
    spectrum = np.arange(1, columns + 1) ** -power
    axes = np.linalg.qr(turned.standard_normal((columns, columns)))[0]
    X: NDArray[np.float64] = rng.standard_normal((records + _TESTED, columns)) * np.sqrt(spectrum / spectrum.sum())
    X = math.sqrt(1 - share) * X + math.sqrt(share / columns)
    X = (X * np.minimum(1, NORM / np.linalg.norm(X, axis=1))[:, None]) @ axes
    y = X @ rng.standard_normal(columns)
    y -= y.mean() if share else 0.0
    y = np.clip(y / y.std() + 0.3 * rng.standard_normal(len(y)), -BOUND, BOUND)
    return X[:records], X[records:], y[:records], y[records:]


if __name__ == "__main__":
    command("refinement.small_cohorts", __doc__, tables, options)
