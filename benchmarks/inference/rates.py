"""Measure how often intervals of rate ratios per exposure, and quasi-Poisson intervals, miss.

    python -m benchmarks.inference.rates --save

Persons are followed for .1 to 5 years, the treated for half as long, and have events at a rate that follows two
columns; a frailty makes counts vary more than their mean. In the worlds of a multiple the variance is exactly that
multiple of the mean, which quasi-Poisson errors assume.

"Negative binomial counts" have a variance of ``m + alpha m^2`` for a mean m, which a gamma frailty of variance alpha
gives. The same releases are read with both errors. "Pooled" is the half width of a negative binomial regression of the
pooled records, with alpha known.
"""

from __future__ import annotations

import argparse
import math
import zlib
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

import privstats as ps
from benchmarks.inference.runs import add_options, add_row, ends, noisy_releases, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats.errors import ReleaseError
from privstats.randomness import seeded
from privstats.transforms import ConstantFeature

NAME = "inference.rates"
BOUND, COUNTS = 5.0, 20.0
RATE = 0.2
SLOPES = np.array([math.log(RATE), 0.5, 0.4])


@dataclass(frozen=True)
class World:
    """Persons with exposures and a frailty, or counts whose variance is a multiple of their mean."""

    name: str
    records: int
    epsilon: float
    frailty: float = 0.0
    multiple: float = 0.0
    errors: Literal["robust", "quasi-Poisson"] = "robust"


WORLDS = (
    World("rates, counts as a Poisson model has them", 20_000, 8.0),
    World("rates, frailty of variance 1", 20_000, 8.0, frailty=1.0),
    World("rates, frailty of variance 3", 20_000, 8.0, frailty=3.0),
    World("rates, frailty of variance 1", 40_000, 3.0, frailty=1.0),
    World("variance 3 times the mean", 8_000, 8.0, multiple=3.0),
    World("variance 3 times the mean", 8_000, 8.0, multiple=3.0, errors="quasi-Poisson"),
    World("variance 3 times the mean", 20_000, 3.0, multiple=3.0),
    World("variance 3 times the mean", 20_000, 3.0, multiple=3.0, errors="quasi-Poisson"),
)


NEGATIVE = ((1.0, 20_000, 8.0), (3.0, 20_000, 8.0), (1.0, 20_000, 30.0), (3.0, 20_000, 30.0))
"""Alpha, records and epsilon."""


def followed(records: int, frailty: float, chance: np.random.Generator) -> tuple[Any, Any]:
    """Draw columns, counts and years; the treated are followed for half as long."""
    X = np.c_[chance.integers(0, 2, records), chance.uniform(-1, 1, records)] * 1.0
    years = np.exp(chance.uniform(math.log(0.1), math.log(BOUND), records)) * np.where(X[:, 0] == 1, 0.5, 1.0)
    own = chance.gamma(1 / frailty, frailty, records) if frailty else 1.0
    return X, np.c_[chance.poisson(years * np.exp(SLOPES[0] + X @ SLOPES[1:]) * own), years]


def multiples(records: int, multiple: float, chance: np.random.Generator) -> tuple[Any, Any]:
    """Draw counts of mean m and variance ``multiple`` m: negative binomial with a size proportional to m."""
    X = np.c_[chance.integers(0, 2, records), chance.uniform(-1, 1, records)] * 1.0
    mean = np.exp(X @ SLOPES[1:])
    return X, chance.poisson(chance.gamma(mean / (multiple - 1), multiple - 1))


def options(parser: argparse.ArgumentParser) -> None:
    """``--runs``, ``--only`` and ``--row``."""
    add_options(parser)
    add_row(parser)


def tables(options: argparse.Namespace) -> Tables:
    """Rates and multiples."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    if options.only in "rates and multiples":
        cells = [(world,) for world in WORLDS[:few]]
        yield from table_of(NAME, "rates and multiples", cells, partial(measured, runs=runs), options.row)
    if options.only in (title := "negative binomial counts"):
        yield from table_of(NAME, title, NEGATIVE[:few], partial(negative, runs=runs), options.row)


def course_of(records: int, epsilon: float, *, rates: bool) -> ps.Newton:
    """Return a course of six rounds."""
    more: dict[str, Any] = {"exposure": "years", "exposure_bound": BOUND} if rates else {}
    schema = ps.ScoreSchema(
        3,
        math.sqrt(3),
        family="poisson",
        target_bound=COUNTS,
        rate=RATE if rates else 1.0,
        transform=(ConstantFeature(1.0),),
        **more,
    )
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    return ps.Newton.start(schema, ps.Cohort(2, 2, 2 * records), privacy, 6)


def _halves(X: Any, y: Any) -> list[tuple[Any, Any]]:
    return [(X[k::2], y[k::2]) for k in (0, 1)]


def negative(alpha: float, records: int, epsilon: float, runs: int) -> Row:
    """Count intervals that miss with both errors, over the intercept and both slopes of negative binomial counts."""
    course = course_of(records, epsilon, rates=True)
    seed = zlib.crc32(repr((alpha, records, epsilon)).encode())
    chance, rng = np.random.default_rng(seed), seeded(seed)
    reported, missed = np.zeros((2, 3)), np.zeros((2, 3))
    widths: list[list[float]] = []
    for _ in range(runs):
        X, y = followed(records, alpha, chance)
        releases = noisy_releases(course, _halves(X, y), rng)
        own = []
        for place, quasi in enumerate((False, True)):
            try:
                found = ps.inference.poisson(releases, quasi_poisson=quasi)
            except ReleaseError:  # noise hides the variance over the mean
                own.append(math.inf)
                continue
            low, high = found.conf_int().T
            reported[place] += found.reported
            missed[place] += (low > SLOPES) | (high < SLOPES)
            own.append(float(high[1] - low[1]) / 2)
        widths.append([*own, _negative_binomial(alpha, X, y[:, 1])])
    robust, quasi_, pooled = np.median(widths, axis=0)
    worst = missed.max(axis=1)
    return {
        "alpha": alpha,
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        **{f"{name}: reported": float(each.mean()) / runs for name, each in zip(_ERRORS, reported, strict=True)},
        **{f"{name}: worst row": float(each) / runs for name, each in zip(_ERRORS, worst, strict=True)},
        **{
            f"{name}: {end}": x
            for name, each in zip(_ERRORS, worst, strict=True)
            for end, x in ends(each, runs).items()
        },
        "robust: half width": _finite(robust),
        "quasi-Poisson: half width": _finite(quasi_),
        "pooled": pooled,
    }


_ERRORS = ("robust", "quasi-Poisson")


def _finite(width: float) -> float | None:
    return float(width) if math.isfinite(width) else None


def _negative_binomial(alpha: float, X: Any, years: Any) -> float:
    """Return the half width of the first slope at the true parameters, without noise."""
    U = np.c_[np.ones(len(X)), X]
    m = years * np.exp(U @ SLOPES)
    covariance = np.linalg.inv((U * (m / (1 + alpha * m))[:, None]).T @ U)
    return 1.959964 * math.sqrt(float(covariance[1, 1]))


def measured(world: World, runs: int) -> Row:
    """Count intervals that miss, over the intercept and both slopes."""
    rates = not world.multiple
    course = course_of(world.records, world.epsilon, rates=rates)
    seed = zlib.crc32(repr(world).encode())
    chance, rng = np.random.default_rng(seed), seeded(seed)
    truth = SLOPES if rates else np.array([0.0, *SLOPES[1:]])
    reported, missed, widths = np.zeros(3), np.zeros(3), []
    for _ in range(runs):
        X, y = (
            followed(world.records, world.frailty, chance)
            if rates
            else multiples(world.records, world.multiple, chance)
        )
        releases = noisy_releases(course, _halves(X, y), rng)
        try:
            found = ps.inference.poisson(releases, quasi_poisson=world.errors != "robust")
        except ReleaseError:  # noise hides the variance over the mean, so nothing is reported
            widths.append(math.inf)
            continue
        low, high = found.conf_int().T
        reported, missed = reported + found.reported, missed + ((low > truth) | (high < truth))
        widths.append((high - low)[1] / 2)
    worst, width = float(missed.max()), float(np.median(widths))
    return {
        "world": world.name,
        "errors": world.errors,
        "records": world.records,
        "epsilon": world.epsilon,
        "runs": runs,
        "reported": float(reported.mean()) / runs,
        "reported and missed": float(missed.mean()) / runs,
        "worst row": worst / runs,
        **ends(worst, runs),
        "half width": width if math.isfinite(width) else None,
    }


if __name__ == "__main__":
    command(NAME, __doc__, tables, options, others_of(NAME))
