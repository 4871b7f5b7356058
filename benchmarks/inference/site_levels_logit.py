"""Measure intervals of a logistic random intercept's coefficients and tau, beside ``glmer`` of R's ``lme4``.

    python -m benchmarks.inference.site_levels_logit --save --runs 1000
    python -m benchmarks.inference.site_levels_logit --save --runs 50 --only lme4

A run has three pooled rounds with a quarter of the promise's mu^2, and the round with a column per site with the rest.
A fifth of the sites has 5 records, but in the unequal world. ``glmer`` (Laplace's approximation) fits the pooled
records, with Wald intervals; a profile interval of tau takes minutes a run, so none is compared.
"""

from __future__ import annotations

import argparse
import math
import shutil
import zlib
from dataclasses import dataclass, replace
from functools import cache
from subprocess import DEVNULL, call

import numpy as np
from scipy.special import expit

from benchmarks.inference import site_levels
from benchmarks.inference.runs import add_options, others_of, stored
from benchmarks.inference.site_levels import EPSILONS, SITES, Array, World, row_of
from benchmarks.measuring import Row, Tables, command
from privstats.contrib.site_levels.fit import SiteSums
from privstats.contrib.site_levels.logit import LogitFit, fitted_logit
from privstats.dp import Privacy, calibrate, gaussian_mu
from privstats.estimates.score import damped_step
from privstats.kinds import ScoreSchema

NAME = "inference.site_levels_logit"
TAUS = (0.0, 0.5, 1.0)
HALF, RARE = (0.5, 0.3, -0.4), (-2.0, 1.0, -0.8)
_ROUNDS, _POOLED, _DELTA = 3, 0.25, 1e-6  # pooled rounds, and their part of mu^2


@dataclass(frozen=True)
class LogitWorld:
    """A population of :mod:`site_levels` with a binary outcome.

    Attributes:
        start: weights of the round with sites, instead of those of pooled rounds.
    """

    world: World
    coefficients: tuple[float, ...] = HALF
    start: tuple[float, ...] | None = None


_FEW = World(taus=(0.5, 1.0))
WORLDS = {
    "sites of 200 records": LogitWorld(World(taus=TAUS)),
    "sites of 50 records": LogitWorld(World(records=50, taus=TAUS)),
    "a rare outcome, 200 records": LogitWorld(World(taus=TAUS), RARE),
    "a rare outcome, 50 records": LogitWorld(World(records=50, taus=TAUS), RARE),
    "a column constant within sites": LogitWorld(replace(_FEW, constant=True)),
    "strong columns, 200 records": LogitWorld(_FEW, (0.5, 2.0, -1.0)),
    "skewed levels": LogitWorld(replace(_FEW, skewed=True)),
    "two sites hold 90 % of the records, others 25 each": LogitWorld(
        World(records=25, sites=(30,), unequal=True, taus=(0.5, 1.0))
    ),
    "no pooled rounds: weights of 0": LogitWorld(replace(_FEW, sites=(30,)), start=(0.0, 0.0, 0.0)),
}


def tables(options: argparse.Namespace) -> Tables:
    """All worlds, and the first beside glmer."""
    runs, few = (4, 1) if options.quick else (options.runs, None)
    for name, about in WORLDS.items():
        cells = [(sites, tau) for sites in about.world.sites for tau in about.world.taus]
        if options.only in name:
            yield name, [row for cell in cells[:few] for row in measured(name, *cell, runs)]
    title = "beside lme4"
    if shutil.which("Rscript") is None or call(["Rscript", "-e", "library(lme4)"], stdout=DEVNULL, stderr=DEVNULL):
        yield from [(title, stored(NAME)[title])] * (title in stored(NAME))
    elif options.only in title:
        yield title, [row for sites in SITES[:few] for row in beside_glmer(sites, 0.5, runs)]


def measured(name: str, sites: int, tau: float, runs: int) -> list[Row]:
    """Count intervals that miss, at every epsilon, over the same records."""
    world, rng = WORLDS[name], np.random.default_rng(zlib.crc32(repr(("logit", name, sites, tau)).encode()))
    found: dict[float, list[LogitFit]] = {epsilon: [] for epsilon in EPSILONS}
    for _ in range(runs):
        records = records_of(world, sites, tau, rng)
        for epsilon, fits in found.items():
            fits.append(fit_of(records, sites, epsilon, rng, world.start))
    about = {"world": name, "sites": sites, "tau": tau, "runs": runs}
    return [{**about, **row_of(fits, world.coefficients, tau, epsilon)} for epsilon, fits in found.items()]


def records_of(world: LogitWorld, sites: int, tau: float, rng: np.random.Generator) -> Array:
    """Sample one run's records: site, two columns, outcome, ``(n, 4)``."""
    site, x1, x2, _, _ = site_levels.records_of(world.world, sites, tau, rng).T
    levels = rng.exponential(size=sites) - 1 if world.world.skewed else rng.normal(size=sites)
    level, first, second = world.coefficients
    odds = level + first * x1 + second * x2 + tau * levels[site.astype(int)]
    return np.column_stack([site, x1, x2, rng.random(len(site)) < expit(odds)])


@cache
def _sigma(epsilon: float) -> tuple[float, float]:
    """Return the noise of g and H at mu = 1."""
    promise = Privacy(
        model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=_DELTA
    )  # any: noise is proportional to 1 / mu
    rows = calibrate(ScoreSchema(3, clip_norm=3**0.5, errors="model"), promise, honest_shares=2).rows
    of = {row.statistic: row.sigma * gaussian_mu(8.0, _DELTA) for row in rows}
    return of["g"] / gaussian_mu(epsilon, _DELTA), of["H"] / gaussian_mu(epsilon, _DELTA)


def fit_of(
    records: Array, sites: int, epsilon: float, rng: np.random.Generator, start: tuple[float, ...] | None = None
) -> LogitFit:
    """Fit one run's records after pooled rounds."""
    site, y = records[:, 0].astype(int), records[:, 3]
    X = np.column_stack([np.ones(len(y)), records[:, 1:3]])
    exact = math.isinf(epsilon)
    sigma = np.zeros(2) if exact else np.array(_sigma(epsilon))
    each, last = sigma / math.sqrt(_POOLED / _ROUNDS), sigma / math.sqrt(1 - _POOLED)
    w = np.array(start or (0.0, 0.0, 0.0))
    for _ in range(0 if start else _ROUNDS + 2 * exact):
        mean = expit(X @ w)
        g = X.T @ (y - mean) + rng.normal(size=3) * each[0]
        w = w + damped_step(g, _shaken((X.T * (mean * (1 - mean))) @ X, each[1], rng), each[1], None)
    mean = expit(X @ w)
    variance, residuals = mean * (1 - mean), y - mean
    columns = (*(X.T * variance), residuals)
    by: Array = np.column_stack([np.bincount(site, column, sites) for column in columns])
    scale = np.array([last[1], last[1] / 2**0.5, last[1] / 2**0.5, last[0]])
    by += rng.normal(size=by.shape) * scale
    G = _shaken((X[:, 1:].T * variance) @ X[:, 1:], last[1], rng)
    h = X[:, 1:].T @ residuals + rng.normal(size=2) * last[0]
    return fitted_logit(SiteSums(by[:, :3], by[:, 3], G, h, 0.0, last[1], last[0], 0.0), w)


def _shaken(H: Array, sigma: float, rng: np.random.Generator) -> Array:
    half = np.triu(rng.normal(size=H.shape) * sigma * np.where(np.eye(len(H)), 1, 0.5**0.5))
    return H + half + np.triu(half, 1).T


def beside_glmer(sites: int, tau: float, runs: int) -> list[Row]:
    """Count intervals that miss, and those of glmer on the same records, pooled."""
    rng = np.random.default_rng(zlib.crc32(repr(("glmer", sites, tau)).encode()))
    parts = [records_of(WORLDS["sites of 200 records"], sites, tau, rng) for _ in range(runs)]
    found = site_levels.by_lme4("glmer", parts)
    half = 1.96 * found[:, 3:6]
    missed = (np.abs(found[:, :3] - HALF) > half).mean(axis=0)
    about = {"sites": sites, "tau": tau, "runs": runs}
    rows: list[Row] = [
        {**about, "way": "glmer, pooled records", "epsilon": None, "told": 1.0,
         "missed": [float(each) for each in missed],
         "half widths": [float(each) for each in np.median(half, axis=0)], "estimate": float(np.median(found[:, 6]))}
    ]  # fmt: skip
    for epsilon in reversed(EPSILONS):
        fits = [fit_of(each, sites, epsilon, rng) for each in parts]
        ours = row_of(fits, HALF, tau, epsilon)
        told = [math.sqrt(fit.level) for fit in fits if fit.reported]
        kept = ("epsilon", "told", "missed", "half widths", "tau told", "tau told and missed")
        estimate = float(np.median(told)) if told else None
        rows.append({**about, "way": "site sums", **{key: ours[key] for key in kept}, "estimate": estimate})
    return rows


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
