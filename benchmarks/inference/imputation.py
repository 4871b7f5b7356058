"""Measure how often intervals of slopes hold on columns with gaps, beside complete cases and R's ``mice``.

    python -m benchmarks.inference.imputation --save --runs 1000
    python -m benchmarks.inference.imputation --save --runs 200 --only mice

Runs are vectorised over the functions that ``contrib.imputation.ols`` calls.
"Complete cases" are the records without a gap, under the same noise; "pairwise" uses every pair of observed values,
without noise. ``mice`` (van Buuren and Groothuis-Oudshoorn 2011) imputes the pooled records 20 times by its method
``norm``. It needs ``Rscript`` with that package; without it the stored rows stay.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import chi2, t

from benchmarks.inference.imputation_runs import tables_of
from benchmarks.inference.runs import add_options, ends, others_of
from benchmarks.measuring import Row, Tables, child, command
from privstats.contrib.imputation.completion import (
    Mode,
    Patterns,
    completed,
    completed_again,
    drawn,
    missing_information,
)
from privstats.contrib.imputation.gaps import CONSTANT, observed
from privstats.contrib.imputation.linear import DRAWS, barnard_rubin, hides, solved
from privstats.contrib.imputation.table_reader import SHARES
from privstats.dp import gaussian_mu

NAME = "inference.imputation"
EPSILONS = (1.0, 3.0, 8.0, math.inf)
_MICE = Path(__file__).with_name("imputation_mice.R")
_CLIPPED, _BATCH, _DELTA = 0.001, 400_000, 1e-6
Array: TypeAlias = Any
Drawn: TypeAlias = tuple[list[Array], list[Array]]


@dataclass(frozen=True)
class World:
    """A population: how to sample its columns and the log odds of its gaps; the regression of the last column.

    ``clip_norm`` is None where it follows from normal columns: one row in a thousand is clipped then.
    """

    draw: Callable[[np.random.Generator, tuple[int, int]], Drawn]
    incomplete: tuple[int, ...]
    regressors: tuple[int, ...]
    slopes: tuple[float, ...]
    clip_norm: float | None = None


def _covariate(kind: str) -> Callable[[np.random.Generator, tuple[int, int]], Drawn]:
    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Drawn:
        x2 = rng.standard_normal(shape)
        x1 = 0.6 * x2 + 0.8 * (rng.exponential(size=shape) - 1 if kind == "skewed" else rng.standard_normal(shape))
        if kind == "binary":
            x1 = np.where(rng.random(shape) < expit(1.2 * x2), 1.0, -1.0)
        y = 0.5 * x1 - 0.4 * x2 + 0.9 * rng.standard_normal(shape)
        return [x1, x2, y], [1.5 * x1 if kind == "own value" else 1.5 * y - 0.5 * x2]

    return draw


def _outcome(rng: np.random.Generator, shape: tuple[int, int]) -> Drawn:
    x2, e = rng.standard_normal((2, *shape))
    x1 = 0.6 * x2 + 0.8 * rng.standard_normal(shape)
    helper = 0.7 * e + math.sqrt(0.51) * rng.standard_normal(shape)
    return [x1, x2, helper, 0.5 * x1 - 0.4 * x2 + 0.9 * e], [1.5 * helper + x1]


def _two(rng: np.random.Generator, shape: tuple[int, int]) -> Drawn:
    x3 = rng.standard_normal(shape)
    x1 = 0.5 * x3 + math.sqrt(0.75) * rng.standard_normal(shape)
    x2 = 0.4 * x3 + 0.3 * x1 + 0.8 * rng.standard_normal(shape)
    y = 0.5 * x1 - 0.4 * x2 + 0.3 * x3 + 0.9 * rng.standard_normal(shape)
    return [x1, x2, x3, y], [1.2 * y, -y + 0.5 * x3]


def _heavy(rng: np.random.Generator, shape: tuple[int, int]) -> Drawn:
    """Columns of t laws with 5 degrees, residuals with 4; all have the variances of the normal worlds."""
    z1, x2 = rng.standard_t(5, (2, *shape)) * math.sqrt(3 / 5)
    x1 = 0.8 * x2 + 0.6 * z1
    y = 0.5 * x1 - 0.4 * x2 + 0.9 * rng.standard_t(4, shape) / math.sqrt(2)
    return [x1, x2, y], [1.0 * y - 0.3 * x2]


def _product(rng: np.random.Generator, shape: tuple[int, int]) -> Drawn:
    """The outcome depends on a product that no model has; the slopes are still those of the best line."""
    x1, x2 = rng.standard_normal((2, *shape))
    y = 0.5 * x1 - 0.4 * x2 + 0.4 * x1 * x2 + 0.8 * rng.standard_normal(shape)
    return [x1, x2, y], [1.5 * x2]


WORLDS = {
    "a covariate": World(_covariate("normal"), (0,), (0, 1), (0.5, -0.4)),
    "two covariates": World(_two, (0, 1), (0, 1, 2), (0.5, -0.4, 0.3)),
    "the outcome": World(_outcome, (3,), (0, 1), (0.5, -0.4)),
    "a binary covariate": World(_covariate("binary"), (0,), (0, 1), (0.5, -0.4)),
    "a skewed covariate": World(_covariate("skewed"), (0,), (0, 1), (0.5, -0.4)),
    "by its own value": World(_covariate("own value"), (0,), (0, 1), (0.5, -0.4)),
    "heavy tails": World(_heavy, (0,), (0, 1), (0.5, -0.4), clip_norm=12.0),
    "a product in no model": World(_product, (0,), (0, 1), (0.5, -0.4), clip_norm=6.0),
}
TITLES = {
    "gaps in covariates": ("a covariate", "two covariates"),
    "gaps in the outcome": ("the outcome",),
    "other columns": ("a binary covariate", "a skewed covariate", "by its own value"),
    "beyond the model": ("heavy tails", "a product in no model"),
}


def tables(options: argparse.Namespace) -> Tables:
    """Worlds in which what the table assumes holds, others, and the former beside mice."""
    return tables_of(NAME, options, TITLES, measured, beside_mice)


def measured(world: str, records: int, missing: float, runs: int) -> list[Row]:
    """Count intervals that miss a slope, at every epsilon."""
    rng = np.random.default_rng(zlib.crc32(repr((world, records, missing)).encode()))
    found = sums_of(WORLDS[world], rng, (runs, records), missing)
    about = {"world": world, "records": records, "missing": missing, "runs": runs}
    return [{**about, **_measured(WORLDS[world], found, epsilon, rng)} for epsilon in EPSILONS]


def _measured(about: World, found: Sums, epsilon: float, rng: np.random.Generator) -> Row:
    runs, by = len(found.by), found.by
    shown = observed(by.shape[-1] - 1, about.incomplete)
    sigma = 0.0
    if math.isfinite(epsilon):
        sigma = found.square / (gaussian_mu(epsilon, _DELTA) * math.sqrt(SHARES["S"]))
    sums = Patterns(Patterns(by, shown, CONSTANT).with_noise(rng, sigma, 1).S[0], shown, CONSTANT)
    mode, places, truth = completed(sums), [*about.regressors, by.shape[-1] - 1], np.array(about.slopes)
    again = sums.with_noise(rng, sigma, DRAWS)
    modes = completed_again(again, np.broadcast_to(mode.T, (DRAWS, *mode.T.shape)), sigma)
    reported = np.array([
        not hides(
            Patterns(sums.S[k], shown, CONSTANT),
            Mode(mode.T[k], mode.converged[k]),
            Mode(modes.T[:, k], modes.converged[:, k]),
            sigma,
            places,
        )
        for k in range(runs)
    ])  # fmt: skip
    draws = drawn(Patterns(again.S[:, reported], shown, CONSTANT), modes.T[:, reported], rng)
    slopes, half = rubin(mode.T[reported], modes.T[:, reported], draws, places)
    complete = rubin(sums.S[:, 0], again.S[:, :, 0], again.S[:, :, 0], places)
    missed = (np.abs(slopes - truth) > half).sum(0) / runs
    worst = float(missed.max() * runs)
    lost = missing_information(Patterns(sums.S[reported], shown, CONSTANT), mode.T[reported])
    return {
        "epsilon": epsilon if math.isfinite(epsilon) else None,
        "reported": float(reported.mean()),
        "reported and missed": float(missed.mean()),
        "worst slope": worst / runs,
        **ends(worst, runs),
        "bias": _bias(slopes, truth),
        "half width": float(np.median(half)) if reported.any() else None,
        "missing information": float(np.median(lost)) if reported.any() else None,
        "complete cases: bias": _bias(complete[0], truth),
        "complete cases miss": float((np.abs(complete[0] - truth) > complete[1]).mean(0).max()),
        "pairwise: bias": _bias(solved(pairwise(by, shown), places, by.shape[-1] - 2)[0][:, :-1], truth),
        "full data: half width": float(np.median(rubin(found.full, found.full[None], found.full[None], places)[1])),
    }


def beside_mice(world: str, records: int, missing: float, runs: int) -> list[Row]:
    """Count intervals that miss a slope, and those of mice on the same records, pooled."""
    about, rng = WORLDS[world], np.random.default_rng(zlib.crc32(repr(("mice", world, missing)).encode()))
    found = sums_of(about, rng, (runs, records), missing, raw=True)
    names = [f"V{place + 1}" for place in range(found.by.shape[-1] - 1)]
    model = f"{names[-1]} ~ {' + '.join(names[place] for place in about.regressors)}"
    with tempfile.NamedTemporaryFile() as file:
        np.concatenate(found.rows)[..., :-1].tofile(file.name)
        words = ["Rscript", "--vanilla", str(_MICE), file.name, *map(str, (runs, records, len(names))), model]
        printed = np.array(child(words).split(), float).reshape(runs, 3, -1)[:, :, 1:]
    truth = np.array(about.slopes)
    slopes, missed = printed[:, 0], (printed[:, 1] > truth) | (printed[:, 2] < truth)
    shared = {"world": world, "missing": missing, "runs": runs}
    rows: list[Row] = [
        {**shared, "way": "mice, pooled records", "epsilon": None, "reported": 1.0, "bias": _bias(slopes, truth),
         "reported and missed": float(missed.mean()), "worst slope": float(missed.mean(0).max()),
         "half width": float(np.median(printed[:, 2] - printed[:, 1]) / 2)}
    ]  # fmt: skip
    for epsilon in reversed(EPSILONS):
        ours = _measured(about, found, epsilon, rng)
        rows.append({**shared, "way": "imputed on sums", **{key: ours[key] for key in rows[0] if key in ours}})
    return rows


@dataclass(frozen=True)
class Sums:
    """Sums of many runs.

    Attributes:
        full: sums of all records, ``(runs, d, d)``.
        by: those by gap pattern, ``(runs, patterns, d, d)``.
        square: the squared clip norm.
        rows: if raw, the records with NaN for gaps, in parts of runs.
    """

    full: Array
    by: Array
    square: float
    rows: list[Array]


def sums_of(world: World, rng: np.random.Generator, shape: tuple[int, int], missing: float, raw: bool = False) -> Sums:
    """Sample records of many runs, and sum them."""
    runs, n = shape
    level = [
        brentq(lambda a, score=score: expit(score + a).mean() - missing, -30, 30)
        for score in world.draw(rng, (1, _BATCH))[1]
    ]
    full, by, kept, square = [], [], [], 0.0
    for start in range(0, runs, step := max(1, _BATCH // n)):
        columns, scores = world.draw(rng, (min(step, runs - start), n))
        z = np.stack([*columns, np.full(columns[0].shape, CONSTANT)], axis=-1)
        full.append(np.swapaxes(z, 1, 2) @ z)
        code, gaps = np.zeros(columns[0].shape, int), np.zeros(z.shape, bool)
        for bit, (score, a) in enumerate(zip(scores, level, strict=True)):
            gone = rng.random(score.shape) < expit(score + a)
            code |= gone.astype(int) << bit
            gaps[..., world.incomplete[bit]] = gone
        if raw:
            kept.append(np.where(gaps, np.nan, z))
        z[gaps] = 0
        square = CONSTANT**2 + float(chi2.ppf(1 - _CLIPPED, len(columns)))
        square = square if world.clip_norm is None else world.clip_norm**2
        z *= np.sqrt(np.minimum(1.0, square / np.square(z).sum(-1, keepdims=True)))
        parts = [np.swapaxes(z, 1, 2) @ (z * (code == p)[..., None]) for p in range(2 ** len(scores))]
        by.append(np.stack(parts, axis=1))
    return Sums(np.concatenate(full), np.concatenate(by), square, kept)


def rubin(total: Array, modes: Array, draws: Array, places: list[int]) -> tuple[Array, Array]:
    """Return slopes and half widths of 95 % intervals, as ``RubinErrors`` computes them, for many runs."""
    outcome = total.shape[-1] - 2
    b, inverse, residual = solved(total, places, outcome)
    corrected = np.maximum(2 * residual - solved(modes, places, outcome)[2].mean(0), 0.1 * np.abs(residual))
    degrees = total[:, -1, -1] / CONSTANT**2 - len(places)
    within = np.diagonal(inverse, axis1=-2, axis2=-1) * (corrected / degrees)[:, None]
    m = len(draws)
    between = (1 + 1 / m) * solved(draws, places, outcome)[0].var(0, ddof=1) if m > 1 else np.zeros_like(within)
    share = np.maximum(between / (within + between), 1e-6)
    half = t.ppf(0.975, barnard_rubin(share, max(m, 2), degrees[:, None])) * np.sqrt(within + between)
    return b[:, :-1], half[:, :-1]


def pairwise(by: Array, shown: Array) -> Array:
    """Return second moments, per record, of pairwise-complete means and covariances."""
    pairs = np.einsum("rp,pj,pk->rjk", by[..., -1, -1] / CONSTANT**2, shown, shown)
    first = np.einsum("rpj,pj,pk->rjk", by[..., -1, :] / CONSTANT, shown, shown)
    mean = np.einsum("rjj->rj", first) / np.einsum("rjj->rj", pairs)
    covariance = by.sum(1) / pairs - first / pairs * np.swapaxes(first / pairs, 1, 2)
    return covariance + mean[:, :, None] * mean[:, None, :]


def _bias(slopes: Array, truth: Array) -> float | None:
    return float(np.abs(slopes.mean(0) - truth).max()) if len(slopes) else None


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
