"""Measure how often intervals of rate ratios per exposure, and quasi-Poisson intervals, miss.

    python -m benchmarks.inference.rates --save

Persons are followed for .1 to 5 years, the treated for half as long, and have events at a rate that follows two
columns; a frailty makes counts vary more than their mean. In the worlds of a multiple the variance is exactly that
multiple of the mean, which quasi-Poisson errors assume.
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
from benchmarks.inference.runs import add_options, ends, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats import course as courses
from privstats import session
from privstats.errors import ReleaseError
from privstats.moments import exact_moments
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


def tables(options: argparse.Namespace) -> Tables:
    """Rates and multiples."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    cells = [(world,) for world in WORLDS[:few]]
    yield from table_of(NAME, "rates and multiples", cells, partial(measured, runs=runs))


def measured(world: World, runs: int) -> Row:
    """Count intervals that miss, over the intercept and both slopes."""
    rates = not world.multiple
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
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=world.epsilon, delta=1e-6)
    course = ps.Newton.start(schema, ps.Cohort(2, 2, 2 * world.records), privacy, 6)
    seed = zlib.crc32(repr(world).encode())
    chance, rng = np.random.default_rng(seed), seeded(seed)
    truth = SLOPES if rates else np.array([0.0, *SLOPES[1:]])
    told, missed, widths = np.zeros(3), np.zeros(3), []
    for _ in range(runs):
        X, y = (
            followed(world.records, world.frailty, chance)
            if rates
            else multiples(world.records, world.multiple, chance)
        )
        parts = [(X[k::2], y[k::2]) for k in (0, 1)]

        def release(node: Any, parts: Any = parts) -> ps.Release:
            moments = [exact_moments(node.plan.schema, *each, published=node.plan.published) for each in parts]
            return session.aggregate_unmasked(node.plan, moments, rng)

        releases = courses.run(course, release)
        try:
            found = ps.inference.poisson(releases, quasi_poisson=world.errors != "robust")
        except ReleaseError:  # noise hides the variance over the mean, so nothing is reported
            widths.append(math.inf)
            continue
        low, high = found.conf_int().T
        told, missed = told + found.reported, missed + ((low > truth) | (high < truth))
        widths.append((high - low)[1] / 2)
    worst, width = float(missed.max()), float(np.median(widths))
    return {
        "world": world.name,
        "errors": world.errors,
        "records": world.records,
        "epsilon": world.epsilon,
        "runs": runs,
        "told": float(told.mean()) / runs,
        "told and missed": float(missed.mean()) / runs,
        "worst row": worst / runs,
        **ends(worst, runs),
        "half width": width if math.isfinite(width) else None,
    }


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
