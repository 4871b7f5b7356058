"""Measure how often intervals of a random intercept's coefficients and tau hold, beside R's ``lme4``.

    python -m benchmarks.inference.site_levels --save --runs 1000
    python -m benchmarks.inference.site_levels --save --runs 200 --only lme4

A fifth of the sites has 5 records, but in the unequal world. ``lmer`` (Bates et al. 2015) fits the pooled records, with
Wald intervals of coefficients and the profile interval of tau. It needs ``Rscript`` with lme4; without
it the stored rows stay.
"""

from __future__ import annotations

import argparse
import math
import shutil
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, call
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import t as student

from benchmarks.inference.runs import add_options, ends, others_of, stored
from benchmarks.measuring import Row, Tables, child, command
from privstats.contrib.site_levels.fit import Fit, SiteSums, fitted
from privstats.dp import default_shares, gaussian_mu
from privstats.kinds import RidgeSchema

NAME = "inference.site_levels"
EPSILONS = (1.0, 3.0, 8.0, math.inf)
SITES, TAUS = (10, 30, 100), (0.0, 0.3, 1.0)
COEFFICIENTS = (0.5, 0.3, -0.4)
_LME4 = Path(__file__).with_name("site_levels.R")
_SQUARE, _TARGET, _DELTA = (
    3.0,
    36.0,
    1e-6,
)  # squared clip norm, with one for the site's column, and squared target bound
Array: TypeAlias = Any


@dataclass(frozen=True)
class World:
    """A population: records of a usual site, levels' law, and whether the first column is constant within sites.

    ``sites`` are numbers of sites. ``heavy`` levels are t with 3 degrees, of variance 1. In an ``unequal`` world two
    sites hold nine tenths of the records. With ``persons`` a site's "records" are persons, of one to five rows each,
    whose rows' products are averaged.
    """

    records: int = 200
    skewed: bool = False
    constant: bool = False
    taus: tuple[float, ...] = (0.3,)
    sites: tuple[int, ...] = SITES
    unequal: bool = False
    persons: bool = False
    heavy: bool = False

    def sizes(self, sites: int, rng: np.random.Generator) -> Array:
        """Return the records of each site, ``(sites,)``."""
        if self.unequal:
            return np.array([9 * self.records * (sites - 2) // 2] * 2 + [self.records] * (sites - 2))
        sizes = np.maximum(rng.lognormal(math.log(self.records) - 0.18, 0.6, sites).astype(int), 5)
        sizes[: sites // 5] = 5
        return sizes


WORLDS = {
    "sites of 200 records": World(taus=TAUS),
    "sites of 50 records": World(records=50, taus=TAUS),
    "a column constant within sites": World(constant=True, taus=(0.3, 1.0)),
    "skewed levels": World(skewed=True),
    "levels with heavy tails": World(heavy=True),
    "two sites hold 90 % of the records, others 25 each": World(records=25, sites=(30,), unequal=True),
    "200 persons a site, averages of 1 to 5 rows": World(taus=(0.3, 1.0), persons=True),
}


def tables(options: argparse.Namespace) -> Tables:
    """All worlds, and the first beside lmer."""
    runs, few = (4, 1) if options.quick else (options.runs, None)
    for world, about in WORLDS.items():
        cells = [(sites, tau) for sites in about.sites for tau in about.taus]
        if options.only in world:
            yield world, [row for cell in cells[:few] for row in measured(world, *cell, runs)]
    yield from beside_lme4(options, NAME, lambda: [row for n in SITES[:few] for row in beside_lmer(n, 0.3, runs)])


def beside_lme4(options: argparse.Namespace, name: str, measure: Callable[[], list[Row]]) -> Tables:
    """Yield the comparison with lme4 where that is installed, and the stored one elsewhere."""
    title = "beside lme4"
    if shutil.which("Rscript") is None or call(["Rscript", "-e", "library(lme4)"], stdout=DEVNULL, stderr=DEVNULL):
        yield from [(title, stored(name)[title])] * (title in stored(name))
    elif options.only in title:
        yield title, measure()


def measured(world: str, sites: int, tau: float, runs: int) -> list[Row]:
    """Count intervals that miss, at every epsilon, over the same records."""
    rng = np.random.default_rng(zlib.crc32(repr((world, sites, tau)).encode()))
    exact = [sums_of(records_of(WORLDS[world], sites, tau, rng), sites) for _ in range(runs)]
    about = {"world": world, "sites": sites, "tau": tau, "runs": runs}
    fits = {e: [fitted(noisy(each, e, rng)) for each in exact] for e in EPSILONS}
    return [{**about, **row_of(found, COEFFICIENTS, tau, e)} for e, found in fits.items()]


def records_of(world: World, sites: int, tau: float, rng: np.random.Generator) -> Array:
    """Sample one run's records: site, two columns, target and weight in sums, ``(n, 5)``."""
    site: Array = np.repeat(np.arange(sites), world.sizes(sites, rng))
    weight: Array = np.ones(len(site))
    own: Array = np.zeros(len(site))
    first: Array = np.arange(len(site))
    if world.persons:  # half of the residual variance is the person's own
        rows = rng.integers(1, 6, len(site))
        first = np.repeat(np.cumsum(rows) - rows, rows)
        site, weight, own = (np.repeat(each, rows) for each in (site, 1 / rows, rng.normal(size=len(site))))
    shift = rng.normal(size=sites)[site]
    x1 = np.clip(0.6 * shift if world.constant else 0.4 * rng.normal(size=len(site)) + 0.3 * shift, -1, 1)
    x2 = rng.choice([-1.0, 1.0], len(site))[first]  # a person has one arm
    levels = levels_of(world, sites, rng)
    residuals = rng.normal(size=len(site))
    residuals = (residuals + own) / 2**0.5 if world.persons else residuals
    y = COEFFICIENTS[0] + COEFFICIENTS[1] * x1 + COEFFICIENTS[2] * x2 + tau * levels[site] + residuals
    return np.column_stack([site, x1, x2, y, weight])


def levels_of(world: World, sites: int, rng: np.random.Generator) -> Array:
    """Sample each site's level, ``(sites,)``, of mean 0 and variance 1."""
    if world.heavy:
        return rng.standard_t(3, sites) / 3**0.5
    return rng.exponential(size=sites) - 1 if world.skewed else rng.normal(size=sites)


def sums_of(records: Array, sites: int) -> SiteSums:
    """Return the exact sums of one run's records."""
    site, X, y, weight = records[:, 0].astype(int), records[:, 1:3], records[:, 3], records[:, 4]
    by: Array = np.column_stack([np.bincount(site, weight * each, sites) for each in (np.ones(len(y)), *X.T, y)])
    weighted = X.T * weight
    square, averaged = float(y @ (weight * y)), bool((weight != 1).any())
    return SiteSums(by[:, :3], by[:, 3], weighted @ X, weighted @ y, square, 0.0, 0.0, 0.0, averaged)


def noisy(sums: SiteSums, epsilon: float, rng: np.random.Generator) -> SiteSums:
    """Add the noise of a release under a record's promise."""
    if math.isinf(epsilon):
        return sums
    shares = default_shares(RidgeSchema(2, clip_norm=_SQUARE**0.5, target_bound=_TARGET**0.5))
    moves = {"G": _SQUARE, "h": math.sqrt(_SQUARE * _TARGET), "q": _TARGET}
    sigma = {s: move / (gaussian_mu(epsilon, _DELTA) * math.sqrt(shares[s])) for s, move in moves.items()}
    of_t = rng.normal(size=sums.t.shape) * sigma["G"] * np.array([1, 0.5**0.5, 0.5**0.5])
    half = np.triu(rng.normal(size=(2, 2)) * sigma["G"] * np.where(np.eye(2), 1, 0.5**0.5))
    return SiteSums(
        sums.t + of_t,
        sums.sy + rng.normal(size=len(sums.sy)) * sigma["h"],
        sums.G + half + np.triu(half, 1).T,
        sums.h + rng.normal(size=2) * sigma["h"],
        sums.q + rng.normal() * sigma["q"],
        sigma["G"],
        sigma["h"],
        sigma["q"],
        sums.averaged,
    )


def row_of(fits: Sequence[Fit], coefficients: tuple[float, ...], tau: float, epsilon: float) -> Row:
    """Count the reported intervals that miss."""
    shown = [fit for fit in fits if fit.reported]
    b = np.array([fit.b for fit in shown]).reshape(-1, 3)
    half = np.array([_half(fit) for fit in shown]).reshape(-1, 3)
    missed = (np.abs(b - coefficients) > half).sum(axis=0)
    found = np.array([fit.tau(0.05) for fit in fits])
    reported = np.isfinite(found[:, 1])
    off = reported & ((found[:, 0] > tau) | (found[:, 1] < tau))
    return {
        "epsilon": epsilon if math.isfinite(epsilon) else None,
        "reported": len(shown) / len(fits),
        "reported and missed": float(missed.mean() / len(fits)),
        "missed": [float(each) for each in missed / len(fits)],
        "worst coefficient": float(missed.max() / len(fits)),
        **ends(float(missed.max()), len(fits)),
        "bias": [float(each) for each in b.mean(axis=0) - coefficients] if shown else None,
        "half widths": [float(each) for each in np.median(half, axis=0)] if shown else None,
        "tau reported": float(reported.mean()),
        "tau reported and missed": float(off.mean()),
        "tau interval": [float(each) for each in np.median(found[reported], axis=0)] if reported.any() else None,
    }


def _half(fit: Fit) -> Array:
    return student.ppf(0.975, np.minimum(fit.degrees(np.eye(3)), 1e6)) * np.sqrt(np.diag(fit.covariance))


def by_lme4(function: str, parts: Sequence[Array]) -> Array:
    """Return a row per run of pooled records, as ``site_levels.R`` prints it; NaN where R has no number.

    Args:
        function: ``lmer`` or ``glmer``.
        parts: site, two columns and outcome of each run, ``(records, 4 or more)``.
    """
    with tempfile.NamedTemporaryFile() as file:
        np.concatenate(parts)[:, :4].tofile(file.name)
        words = ["Rscript", "--vanilla", str(_LME4), function, file.name, *(str(len(each)) for each in parts)]
        lines = [line.replace("NA", "nan").split() for line in child(words).splitlines()]
    return np.array(lines, np.float64)


def beside_lmer(sites: int, tau: float, runs: int) -> list[Row]:
    """Count intervals that miss, and those of lmer on the same records, pooled."""
    rng = np.random.default_rng(zlib.crc32(repr(("lmer", sites, tau)).encode()))
    parts = [records_of(WORLDS["sites of 200 records"], sites, tau, rng) for _ in range(runs)]
    found = by_lme4("lmer", parts)
    b, half, (low, high) = found[:, :3], 1.96 * found[:, 3:6], found[:, 7:9].T
    missed = (np.abs(b - COEFFICIENTS) > half).mean(axis=0)
    reported = np.isfinite(low) & np.isfinite(high)
    off = reported & ((low > tau) | (high < tau))
    about = {"sites": sites, "tau": tau, "runs": runs}
    rows: list[Row] = [
        {**about, "way": "lmer, pooled records", "epsilon": None, "reported": 1.0,
         "worst coefficient": float(missed.max()), "half widths": [float(each) for each in np.median(half, axis=0)],
         "tau reported": float(reported.mean()), "tau reported and missed": float(off.mean()),
         "tau interval": [float(np.median(low[reported])), float(np.median(high[reported]))]}
    ]  # fmt: skip
    exact = [sums_of(each, sites) for each in parts]
    for epsilon in reversed(EPSILONS):
        ours = row_of([fitted(noisy(each, epsilon, rng)) for each in exact], COEFFICIENTS, tau, epsilon)
        rows.append({**about, "way": "site sums", **{key: ours[key] for key in rows[0] if key in ours}})
    return rows


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
