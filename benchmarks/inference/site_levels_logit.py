"""Measure intervals of a logistic random intercept's coefficients and tau, beside ``glmer`` of R's ``lme4``.

    python -m benchmarks.inference.site_levels_logit --save --runs 1000
    python -m benchmarks.inference.site_levels_logit --save --runs 3000 --only repeated
    python -m benchmarks.inference.site_levels_logit --save --runs 200 --only lme4

A run has three pooled rounds with a quarter of the promise's mu^2, and the round with a column per site with the rest.
A fifth of the sites has 5 records, but in the unequal world. ``glmer`` (Laplace's approximation) fits the pooled
records, with Wald intervals; a profile interval of tau takes minutes a run, so none is compared.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

import numpy as np
from scipy.special import expit, ndtr

from benchmarks.inference import site_levels
from benchmarks.inference.runs import add_options, others_of
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
_POOLED, _DELTA = 0.25, 1e-6  # the pooled rounds' part of mu^2


Draw: TypeAlias = Callable[[int, np.random.Generator], Array]


@dataclass(frozen=True)
class LogitWorld:
    """A population of :mod:`site_levels` with a binary outcome.

    Attributes:
        start: weights of the round with sites, instead of those of pooled rounds.
        draw: site and two columns of one run's records, ``(n, 3)``, instead of those of ``world``.
        rounds: number of pooled rounds; two more without noise.
    """

    world: World
    coefficients: tuple[float, ...] = HALF
    start: tuple[float, ...] | None = None
    draw: Draw | None = None
    rounds: int = 3


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
    "200 persons a site, averages of 1 to 5 rows": LogitWorld(replace(_FEW, persons=True)),
    "no pooled rounds: weights of 0": LogitWorld(replace(_FEW, sites=(30,)), start=(0.0, 0.0, 0.0)),
}


def _drawn(
    sizes: Callable[[int, np.random.Generator], Array], columns: Callable[[Array, np.random.Generator], Sequence[Array]]
) -> Draw:
    """Return a sampler of records from site sizes, and from columns given each record's site."""

    def draw(sites: int, rng: np.random.Generator) -> Array:
        site: Array = np.repeat(np.arange(sites), sizes(sites, rng))
        return np.column_stack([site, *columns(site, rng)])

    return draw


def _alike(records: int) -> Callable[[int, np.random.Generator], Array]:
    return lambda sites, rng: rng.poisson(records, sites) + 5


def _plain(site: Array, rng: np.random.Generator) -> Sequence[Array]:
    """Two independent columns with one law at all sites."""
    return rng.uniform(-1, 1, len(site)), rng.choice([-1.0, 1.0], len(site))


def _by_site(site: Array, rng: np.random.Generator) -> Sequence[Array]:
    """Columns whose means differ strongly between sites."""
    mean, share = rng.uniform(-0.7, 0.7, site.max() + 1)[site], rng.beta(0.7, 0.7, site.max() + 1)[site]
    return mean + rng.uniform(-0.3, 0.3, len(site)), np.where(rng.random(len(site)) < share, 1.0, -1.0)


def _correlated(site: Array, rng: np.random.Generator) -> Sequence[Array]:
    one, two = rng.normal(size=(2, len(site)))
    return np.clip(0.4 * one, -1, 1), np.clip(0.4 * (0.9 * one + 0.19**0.5 * two), -1, 1)


def _between(site: Array, rng: np.random.Generator) -> Sequence[Array]:
    """A column that is constant within sites, and one that is not."""
    return rng.uniform(-1, 1, site.max() + 1)[site], rng.choice([-1.0, 1.0], len(site))


def _two_groups(site: Array, rng: np.random.Generator) -> Sequence[Array]:
    """A column with one of two means by site, far from each other."""
    mean = rng.choice([-0.7, 0.7], site.max() + 1)[site]
    return mean + rng.uniform(-0.3, 0.3, len(site)), rng.choice([-1.0, 1.0], len(site))


def _heavy(site: Array, rng: np.random.Generator) -> Sequence[Array]:
    """A column with heavy tails, and one of 0 and 1."""
    return np.clip(0.15 * rng.standard_t(2, len(site)), -1, 1), (rng.random(len(site)) < 0.5).astype(float)


def _rare(site: Array, rng: np.random.Generator) -> Sequence[Array]:
    return rng.uniform(-1, 1, len(site)), (rng.random(len(site)) < 0.03).astype(float)


def _skewed(site: Array, rng: np.random.Generator) -> Sequence[Array]:
    return np.minimum(rng.exponential(0.25, len(site)), 1), rng.choice([-1.0, 1.0], len(site))


_UNTUNED = "untuned: "
_THREE = World(sites=(30,), taus=(0.0, 0.3, 1.0))
_HUNDREDS = replace(_THREE, sites=(200,))
_PAIR = replace(_THREE, taus=(0.3, 1.0))
_FOUR = LogitWorld(_THREE, (-3.4, 0.8, -0.4), draw=_drawn(_alike(400), _plain))
WORLDS |= {
    f"{_UNTUNED}{name}": world
    for name, world in {
        "sizes log-normal, median 80, from 5 to 2,000": LogitWorld(
            _THREE, draw=_drawn(lambda n, rng: np.clip(80 * rng.lognormal(0, 1.2, n), 5, 2_000).astype(int), _plain)
        ),
        "200 sites of 5 to 20 records": LogitWorld(
            _HUNDREDS, draw=_drawn(lambda n, rng: rng.integers(5, 21, n), _plain)
        ),
        "8 and 12 sites of 300 records": LogitWorld(replace(_THREE, sites=(8, 12)), draw=_drawn(_alike(300), _plain)),
        "one site with a third of the records": LogitWorld(
            _THREE, draw=_drawn(lambda n, _: np.append(np.full(n - 1, 100), 50 * (n - 1)), _plain)
        ),
        "columns whose means differ between sites": LogitWorld(_THREE, draw=_drawn(_alike(150), _by_site)),
        "columns of correlation .9": LogitWorld(_THREE, draw=_drawn(_alike(150), _correlated)),
        "an outcome of 4 %": _FOUR,
        "an outcome of 4 %, five pooled rounds": replace(_FOUR, rounds=5),
        "a binary column of 3 %": LogitWorld(_THREE, (-0.5, 0.5, 1.0), draw=_drawn(_alike(200), _rare)),
        "a skewed column of slope 3": LogitWorld(_THREE, (-1.0, 3.0, -0.5), draw=_drawn(_alike(200), _skewed)),
    }.items()
}
_HARD = "hard: "
WORLDS |= {
    f"{_HARD}{name}": world
    for name, world in {
        "a column constant within sites of slope 2": LogitWorld(
            replace(_PAIR, sites=(30, 100)), (-1.0, 2.0, -0.5), draw=_drawn(_alike(150), _between)
        ),
        "means of two groups of sites, slope 2": LogitWorld(
            replace(_PAIR, sites=(40,)), (-1.0, 2.0, -0.5), draw=_drawn(_alike(150), _two_groups)
        ),
        "a column with heavy tails of slope 4": LogitWorld(_PAIR, (-1.0, 4.0, -0.5), draw=_drawn(_alike(200), _heavy)),
        "an outcome of 80 %": LogitWorld(_PAIR, (1.7, 1.0, 0.8), draw=_drawn(_alike(200), _plain)),
        "an outcome of 90 %": LogitWorld(_PAIR, (2.6, 1.0, 0.8), draw=_drawn(_alike(300), _plain)),
        "an outcome of 95 %, five pooled rounds": LogitWorld(
            _PAIR, (3.3, 0.8, 0.4), draw=_drawn(_alike(400), _plain), rounds=5
        ),
        "levels with heavy tails": LogitWorld(
            replace(_PAIR, sites=(30, 100), heavy=True), draw=_drawn(_alike(150), _plain)
        ),
        "sizes 3,000 / k": LogitWorld(
            _PAIR, draw=_drawn(lambda n, _: np.maximum(3_000 / np.arange(1, n + 1), 10).astype(int), _plain)
        ),
    }.items()
}
"""By name; no rule of the reader was chosen on the untuned and the hard ones."""
_REPEATED = "largest shares repeated"
_LARGEST = (
    ("a rare outcome, 200 records", 30, 0.0),
    ("a rare outcome, 200 records", 30, 0.5),
    ("a rare outcome, 200 records", 100, 0.5),
    ("a rare outcome, 50 records", 100, 0.0),
    (f"{_UNTUNED}8 and 12 sites of 300 records", 12, 0.3),
)
"""World, sites and tau of the largest shares, to be repeated with other records."""


def tables(options: argparse.Namespace) -> Tables:
    """All worlds, and the first beside glmer."""
    runs, few = (4, 1) if options.quick else (options.runs, None)
    for name, about in WORLDS.items():
        cells = [(sites, tau) for sites in about.world.sites for tau in about.world.taus]
        if options.only in name:
            yield name, [row for cell in cells[:few] for row in measured(name, *cell, runs)]
    if options.only in _REPEATED:
        yield _REPEATED, [row for cell in _LARGEST[:few] for row in measured(*cell, runs, fresh=True)]
    yield from site_levels.beside_lme4(
        options, NAME, lambda: [row for n in SITES[:few] for row in beside_glmer(n, 0.5, runs)]
    )


def measured(name: str, sites: int, tau: float, runs: int, *, fresh: bool = False) -> list[Row]:
    """Count intervals that miss, at every epsilon, over the same records; ``fresh`` are other records."""
    seed = repr(("repeated" if fresh else "logit", name, sites, tau)).encode()
    world, rng = WORLDS[name], np.random.default_rng(zlib.crc32(seed))
    epsilons = (
        (3.0, 8.0, math.inf) if fresh else (1.0, 3.0, math.inf) if name.startswith((_UNTUNED, _HARD)) else EPSILONS
    )
    found: dict[float, list[LogitFit]] = {epsilon: [] for epsilon in epsilons}
    for _ in range(runs):
        records = records_of(world, sites, tau, rng)
        for epsilon, fits in found.items():
            fits.append(fit_of(records, sites, epsilon, rng, world.start, world.rounds))
    about = {"world": name, "sites": sites, "tau": tau, "runs": runs}
    return [{**about, **row_of(fits, world.coefficients, tau, epsilon)} for epsilon, fits in found.items()]


def records_of(world: LogitWorld, sites: int, tau: float, rng: np.random.Generator) -> Array:
    """Sample one run's records: site, two columns, outcome and weight in sums, ``(n, 5)``.

    A row of a person has its outcome where the normal residual of :mod:`site_levels`, half of whose variance is the
    person's own, is below a quantile: rows of one person go together, and each alone is logistic.
    """
    linear = 0.0 if world.world.persons else tau
    drawn = world.draw(sites, rng) if world.draw else site_levels.records_of(world.world, sites, linear, rng)
    site, x1, x2 = drawn.T[:3]
    levels = site_levels.levels_of(world.world, sites, rng)
    level, first, second = world.coefficients
    odds = level + first * x1 + second * x2 + tau * levels[site.astype(int)]
    if world.world.persons:
        residual = drawn[:, 3] - np.column_stack([np.ones(len(site)), x1, x2]) @ site_levels.COEFFICIENTS
        return np.column_stack([site, x1, x2, ndtr(residual) < expit(odds), drawn[:, 4]])
    return np.column_stack([site, x1, x2, rng.random(len(site)) < expit(odds), np.ones(len(site))])


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
    records: Array,
    sites: int,
    epsilon: float,
    rng: np.random.Generator,
    start: tuple[float, ...] | None = None,
    rounds: int = 3,
) -> LogitFit:
    """Fit one run's records after pooled rounds."""
    site, y, weight = records[:, 0].astype(int), records[:, 3], records[:, 4]
    X = np.column_stack([np.ones(len(y)), records[:, 1:3]])
    exact = math.isinf(epsilon)
    sigma = np.zeros(2) if exact else np.array(_sigma(epsilon))
    each, last = sigma / math.sqrt(_POOLED / rounds), sigma / math.sqrt(1 - _POOLED)
    w = np.array(start or (0.0, 0.0, 0.0))
    for _ in range(0 if start else rounds + 2 * exact):
        mean = expit(X @ w)
        g = X.T @ (weight * (y - mean)) + rng.normal(size=3) * each[0]
        w = w + damped_step(g, _shaken((X.T * (weight * mean * (1 - mean))) @ X, each[1], rng), each[1], None)
    mean = expit(X @ w)
    variance, residuals = weight * mean * (1 - mean), weight * (y - mean)
    columns = (*(X.T * variance), residuals)
    by: Array = np.column_stack([np.bincount(site, column, sites) for column in columns])
    scale = np.array([last[1], last[1] / 2**0.5, last[1] / 2**0.5, last[0]])
    by += rng.normal(size=by.shape) * scale
    G = _shaken((X[:, 1:].T * variance) @ X[:, 1:], last[1], rng)
    h = X[:, 1:].T @ residuals + rng.normal(size=2) * last[0]
    averaged = bool((weight != 1).any())
    return fitted_logit(SiteSums(by[:, :3], by[:, 3], G, h, 0.0, last[1], last[0], 0.0, averaged), w)


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
        {**about, "way": "glmer, pooled records", "epsilon": None, "reported": 1.0,
         "missed": [float(each) for each in missed],
         "half widths": [float(each) for each in np.median(half, axis=0)], "estimate": float(np.median(found[:, 6]))}
    ]  # fmt: skip
    for epsilon in reversed(EPSILONS):
        fits = [fit_of(each, sites, epsilon, rng) for each in parts]
        ours = row_of(fits, HALF, tau, epsilon)
        reported = [math.sqrt(fit.level) for fit in fits if fit.reported]
        kept = ("epsilon", "reported", "missed", "half widths", "tau reported", "tau reported and missed")
        estimate = float(np.median(reported)) if reported else None
        rows.append({**about, "way": "site sums", **{key: ours[key] for key in kept}, "estimate": estimate})
    return rows


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
