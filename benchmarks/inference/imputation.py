"""Measure how often intervals of slopes hold on columns with gaps, beside complete cases.

    python -m benchmarks.inference.imputation --save --runs 1000

Runs are vectorised over the functions that ``contrib.imputation.ols`` calls, with 20 draws each where it takes 100.
"Complete cases" are the records without a gap, under the same noise; "pairwise" uses every pair of observed values,
without noise.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import chi2, t

from benchmarks.inference.runs import add_options, ends, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats.contrib.imputation.completion import Patterns, completed, drawn
from privstats.contrib.imputation.gaps import CONSTANT, SHARES, observed
from privstats.contrib.imputation.linear import positive, solved
from privstats.dp import gaussian_mu

NAME = "inference.imputation"
DRAWS, STEPS = 20, 12
_CLIPPED, _BATCH, _DELTA = 0.001, 400_000, 1e-6
Array: TypeAlias = Any
Drawn: TypeAlias = tuple[list[Array], list[Array]]


@dataclass(frozen=True)
class World:
    """A population: how to sample its columns and the log odds of its gaps; the regression of the last column."""

    draw: Callable[[np.random.Generator, tuple[int, int]], Drawn]
    incomplete: tuple[int, ...]
    regressors: tuple[int, ...]
    slopes: tuple[float, ...]


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


WORLDS = {
    "a covariate": World(_covariate("normal"), (0,), (0, 1), (0.5, -0.4)),
    "two covariates": World(_two, (0, 1), (0, 1, 2), (0.5, -0.4, 0.3)),
    "the outcome": World(_outcome, (3,), (0, 1), (0.5, -0.4)),
    "a binary covariate": World(_covariate("binary"), (0,), (0, 1), (0.5, -0.4)),
    "a skewed covariate": World(_covariate("skewed"), (0,), (0, 1), (0.5, -0.4)),
    "by its own value": World(_covariate("own value"), (0,), (0, 1), (0.5, -0.4)),
}
HELD, BEYOND = tuple(WORLDS)[:4], tuple(WORLDS)[4:]


def tables(options: argparse.Namespace) -> Tables:
    """Worlds in which what the table assumes holds, or nearly; worlds in which it does not."""
    runs = 4 if options.quick else options.runs
    sizes, shares, epsilons = (2_000, 20_000), (0.1, 0.3), (1.0, 3.0, 8.0, math.inf)
    for title, worlds in (("gaps at random", HELD), ("beyond the edge", BEYOND)):
        cells = [(world, n, share, e) for world in worlds for n in sizes for share in shares for e in epsilons]
        if options.only in title:
            yield from table_of(
                NAME, title, [(*each, runs) for each in cells[: 1 if options.quick else None]], measured
            )


def measured(world: str, records: int, missing: float, epsilon: float, runs: int) -> Row:
    """Count intervals that miss a slope."""
    about, rng = WORLDS[world], np.random.default_rng(zlib.crc32(repr((world, records, missing, epsilon)).encode()))
    full, by, square = sums_of(about, rng, (runs, records), missing)
    shown = observed(by.shape[-1] - 1, about.incomplete)
    sigma = 0.0
    if math.isfinite(epsilon):
        sigma = square / (gaussian_mu(epsilon, _DELTA) * math.sqrt(SHARES["S"]))
    sums = Patterns(Patterns(by, shown, CONSTANT).with_noise(rng, sigma, 1).S[0], shown, CONSTANT)
    total, places, truth = completed(sums), [*about.regressors, by.shape[-1] - 1], np.array(about.slopes)
    again = sums.with_noise(rng, sigma, DRAWS)
    modes = completed(again, np.broadcast_to(total, (DRAWS, *total.shape)))
    draws = drawn(again, modes, rng, STEPS)
    told = np.array([
        positive(Patterns(sums.S[k], shown, CONSTANT), total[k], modes[:, k], sigma, places) for k in range(runs)
    ])  # fmt: skip
    found = rubin(total, modes, draws, places)
    complete = rubin(sums.S[:, 0], again.S[:, :, 0], again.S[:, :, 0], places)
    missed = told[:, None] & (np.abs(found[0] - truth) > found[1])
    worst = float(missed.sum(0).max())
    return {
        "world": world,
        "records": records,
        "missing": missing,
        "epsilon": epsilon if math.isfinite(epsilon) else None,
        "runs": runs,
        "told": float(told.mean()),
        "told and missed": float(missed.mean()),
        "worst slope": worst / runs,
        **ends(worst, runs),
        "bias": _bias(found[0][told], truth),
        "half width": float(np.median(found[1][told])) if told.any() else None,
        "complete cases: bias": _bias(complete[0], truth),
        "complete cases miss": float((np.abs(complete[0] - truth) > complete[1]).mean(0).max()),
        "pairwise: bias": _bias(solved(pairwise(by, shown), places, by.shape[-1] - 2)[0][:, :-1], truth),
        "full data: half width": float(np.median(rubin(full, full[None], full[None], places)[1])),
    }


def sums_of(
    world: World, rng: np.random.Generator, shape: tuple[int, int], missing: float
) -> tuple[Array, Array, float]:
    """Return the sums of all records, ``(runs, d, d)``, those by gap pattern, and the squared clip norm."""
    runs, n = shape
    level = [
        brentq(lambda a, score=score: expit(score + a).mean() - missing, -30, 30)
        for score in world.draw(rng, (1, _BATCH))[1]
    ]
    full, by, square = [], [], 0.0
    for start in range(0, runs, step := max(1, _BATCH // n)):
        columns, scores = world.draw(rng, (min(step, runs - start), n))
        z = np.stack([*columns, np.full(columns[0].shape, CONSTANT)], axis=-1)
        full.append(np.swapaxes(z, 1, 2) @ z)
        code = np.zeros(columns[0].shape, int)
        for bit, (score, a) in enumerate(zip(scores, level, strict=True)):
            gone = rng.random(score.shape) < expit(score + a)
            code |= gone.astype(int) << bit
            z[..., world.incomplete[bit]] *= ~gone
        square = CONSTANT**2 + float(chi2.ppf(1 - _CLIPPED, len(columns)))
        z *= np.sqrt(np.minimum(1.0, square / np.square(z).sum(-1, keepdims=True)))
        parts = [np.swapaxes(z, 1, 2) @ (z * (code == p)[..., None]) for p in range(2 ** len(scores))]
        by.append(np.stack(parts, axis=1))
    return np.concatenate(full), np.concatenate(by), square


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
    half = t.ppf(0.975, max(m - 1, 1) / np.square(share)) * np.sqrt(within + between)
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
