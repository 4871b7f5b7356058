"""OpenDP's linear regression, a private Theil-Sen for one feature, beside a private ridge of the same feature.

Central, record level, on one party's records: OpenDP has no federation. Its promise is pure epsilon, ours has delta
1e-5. Bounds of both columns are public. Disease progression from the body mass index, scikit-learn's diabetes set.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

import privstats as ps
from benchmarks.measuring import Row, Rows
from benchmarks.peers.interface import DELTA
from privstats import heads
from privstats.randomness import seeded

__all__ = ["opendp_scale", "regressions"]

BMI, TARGET = (15.0, 45.0), (0.0, 350.0)
RUNS = (1, 2, 4)
"""How often OpenDP pairs the records; the best is shown."""

Lines: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""Body mass indices to train and to test on, ``(n,)``, and targets."""


def regressions(epsilons: Sequence[float], draws: int) -> Rows:
    """Root of the mean squared test error, mean and standard deviation over draws, a row per model and epsilon."""
    lines = _lines()
    rows: list[Row] = [{"model": "least squares", "epsilon": None, "RMSE": _rmse(_least_squares(lines), lines)}]
    for epsilon in epsilons:
        theirs = [
            _row("OpenDP Theil-Sen", epsilon, partial(_opendp, lines, epsilon, runs), lines, draws) for runs in RUNS
        ]
        best = min(theirs, key=lambda row: float(row["RMSE"]))  # by the test rows: as generous as can be
        rows += [best, _row("privstats ridge", epsilon, partial(_ridge, lines, epsilon), lines, draws)]
    return rows


def opendp_scale(epsilon: float, runs: int) -> float:
    """The scale at which OpenDP's regression is epsilon-DP for one record added or removed."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    spent: float = _model(1.0, runs).measurement.map(1)
    return spent / epsilon * (1 + 1e-9)


def _model(scale: float, runs: int) -> Any:
    from opendp import prelude

    dp: Any = prelude
    return dp.sklearn.linear_model.LinearRegression(
        dp.max_divergence(), x_bounds=[BMI], y_bounds=TARGET, scale=scale, runs=runs
    )


Line: TypeAlias = tuple[float, float]
"""Slope and intercept."""


def _opendp(lines: Lines, epsilon: float, runs: int, seed: int) -> Line:
    """OpenDP's noise is the operating system's; its pairs are numpy's."""
    np.random.seed(seed)
    x, _, y, _ = lines
    with np.errstate(divide="ignore", invalid="ignore"):  # pairs of equal features, which it leaves out
        fitted = _model(opendp_scale(epsilon, runs), runs).fit(X=x[:, None], y=y)
    return float(fitted.coef_[0]), float(fitted.intercept_)


def _ridge(lines: Lines, epsilon: float, seed: int) -> Line:
    """Both columns brought to [-1, 1] by their public bounds, a one beside the feature."""
    x, _, y, _ = lines
    (x0, xr), (y0, yr) = _middle(BMI), _middle(TARGET)
    X = np.stack([(x - x0) / xr, np.ones_like(x)], axis=1)
    promise: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "unit": "record", "adjacency": "add-remove"}
    plan = ps.Plan(
        schema=ps.RidgeSchema(2, clip_norm=math.sqrt(2), target_bound=1.0),
        cohort=ps.Cohort(2, 2, len(x)),
        privacy=ps.Privacy(model="central", **promise),
    )
    parts = [ps.measure(plan.schema, X[k::2], (y[k::2] - y0) / yr) for k in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = ps.session.aggregate_unmasked(plan, parts, seeded(seed))
        weights = heads.Ridge(solver="wiener", fit_intercept=False, records=len(x)).fit_release(release).coef_
    slope, level = float(weights[0]) * yr / xr, float(weights[1]) * yr + y0
    return slope, level - slope * x0


def _least_squares(lines: Lines) -> Line:
    fitted = LinearRegression().fit(lines[0][:, None], lines[2])
    return float(fitted.coef_[0]), float(fitted.intercept_)


def _middle(bounds: tuple[float, float]) -> tuple[float, float]:
    return (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2


def _row(model: str, epsilon: float, fit: Callable[[int], Line], lines: Lines, draws: int) -> Row:
    errors = [_rmse(fit(seed), lines) for seed in range(draws)]
    return {
        "model": model,
        "epsilon": epsilon,
        "RMSE": float(np.mean(errors)),
        "sd": float(np.std(errors, ddof=1)),
        "draws": draws,
    }


def _rmse(line: Line, lines: Lines) -> float:
    return float(np.sqrt(np.square(lines[3] - line[0] * lines[1] - line[1]).mean()))


def _lines() -> Lines:
    X, y = load_diabetes(return_X_y=True, scaled=False)
    x, x_test, y, y_test = train_test_split(np.clip(X[:, 2], *BMI), np.clip(y, *TARGET), test_size=0.25, random_state=0)
    return x, x_test, y, y_test
