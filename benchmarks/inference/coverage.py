"""Measure how often intervals from noisy sums cover, how wide they are, and what the textbook's intervals do there.

    python -m benchmarks.inference.coverage --save

Worlds of the inference audit: known coefficients, records through measuring, summing and noising, the public reader.
"""

from __future__ import annotations

import argparse
import math
import zlib

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import textbook
from benchmarks.measuring import Row, Tables, command
from privstats import inference as inf
from privstats import session
from privstats.errors import ReleaseError
from privstats.randomness import Generator, seeded
from privstats.transforms import ConstantFeature
from threat_models.audits.inference import World, released

COLUMNS = 5
SCHEMA = ps.RidgeSchema(COLUMNS + 1, clip_norm=6**0.5, target_bound=2.0, transform=(ConstantFeature(1.0),))
MODELS = {"central": 4, "distributed": 4, "local": 4}
POINTS = 23  # the last of 24 bins is open: it holds every later event, so its point is of another curve
CURVE = ps.CountSchema((ps.Bins("t", tuple(range(25))), ps.Categories("e", (0, 1))), (("t", "e"),))
HAZARD = 0.04


def plan_of(schema: ps.RidgeSchema | ps.CountSchema, records: int, epsilon: float, model: str) -> ps.Plan:
    """A plan of four clients."""
    return ps.Plan(
        schema=schema,
        cohort=ps.Cohort(MODELS[model], MODELS[model], 2 * records),
        privacy=ps.Privacy(model=model, unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6),  # type: ignore[arg-type]
    )


def tables(options: argparse.Namespace) -> Tables:
    """Regression by number of records and epsilon, by trust model, and survival curves."""
    sizes = (500, 2_000) if options.quick else (500, 2_000, 10_000, 50_000)
    epsilons = (1.0, 8.0) if options.quick else (0.1, 0.3, 1.0, 3.0, 8.0)
    runs = 5 if options.quick else options.runs
    yield (
        "regression, central: 95 % intervals of five slopes and the intercept",
        [regression(n, epsilon, "central", runs) for n in sizes for epsilon in epsilons],
    )
    yield (
        "regression by trust model, 10,000 records",
        [
            regression(2_000 if options.quick else 10_000, epsilon, model, runs)
            for model in MODELS
            for epsilon in (1.0, 8.0)
        ],
    )
    yield (
        "Kaplan-Meier, central: 95 % intervals of 23 points",
        [survival(n, epsilon, runs) for n in sizes[1:] for epsilon in epsilons],
    )


def regression(records: int, epsilon: float, model: str, runs: int) -> Row:
    """Reported, reported and missed, naive coverage and width."""
    plan, rng, chance = plan_of(SCHEMA, records, epsilon, model), *_chance(records, epsilon, model)
    reported: list[float] = []
    missed: list[float] = []
    naive: list[float] = []
    widths: list[float] = []
    unread = 0
    for _ in range(runs):
        world = World.draw(SCHEMA, records, chance)
        try:
            table = inf.ols(released(plan, world, rng), cov_type="nonrobust")
        except ReleaseError:
            unread += 1
            continue
        low, high = table.conf_int().T
        reported += table.reported.tolist()
        missed += ((low > world.truth) | (high < world.truth)).tolist()
        naive += _naive(table, world.truth)
        widths += ((high - low) / 2)[table.reported].tolist()
    exact = inf.predicted_half_width(plan, records, variance=_variance(), residual=SCHEMA.target_bound / 8).exact
    return {
        "records": records,
        "epsilon": epsilon,
        "model": model,
        "runs": runs,
        "refused": unread,
        "reported": float(np.mean(reported)) if reported else 0.0,
        "reported and missed": float(np.mean(missed)) if missed else 0.0,
        "naive covers": float(np.mean(naive)) if naive else math.nan,
        "half width": float(np.median(widths)) if widths else math.inf,
        "without noise": exact,
    }


def _variance() -> float:
    """Return the variance of a column of the audit's worlds: normal with a third of its room."""
    return (math.sqrt((SCHEMA.clip_norm**2 - 1) / COLUMNS) / 3) ** 2


def _naive(table: inf.Regression, truth: np.ndarray) -> list[bool]:
    """Whether the textbook's intervals cover."""
    low, high = textbook(table)
    return ((low <= truth) & (high >= truth) & np.isfinite(low)).tolist()  # type: ignore[no-any-return]


def _chance(*cell: object) -> tuple[Generator, np.random.Generator]:
    """Noise and records of a cell, independent of every other cell's."""
    seed = zlib.crc32(repr(cell).encode())
    return seeded(seed), np.random.default_rng(seed)


def survival(records: int, epsilon: float, runs: int) -> Row:
    """Coverage of the reported points of a curve."""
    plan, rng, chance = plan_of(CURVE, records, epsilon, "central"), *_chance(records, epsilon, "survival")
    truth = (1 - HAZARD) ** np.arange(1, POINTS + 1)
    reported = missed = 0
    for _ in range(runs):
        curve = inf.kaplan_meier(_followed(plan, records, chance, rng), time="t", event="e", times="discrete")
        assert isinstance(curve, inf.SurvivalCurve)
        low, high = curve.confidence_interval_[:POINTS].T
        reported += len(low)
        missed += int(((low > truth[: len(low)]) | (high < truth[: len(low)])).sum())
    return {
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "reported": reported / (POINTS * runs),
        "reported and missed": missed / (POINTS * runs),
    }


def _followed(plan: ps.Plan, records: int, chance: np.random.Generator, rng: Generator) -> ps.Release:
    months, until = chance.geometric(HAZARD, records) - 1, chance.integers(6, 40, records)
    data = {"t": np.minimum(months, until), "e": (months <= until).astype(int)}
    clients = plan.cohort.clients
    parts = [{name: column[k::clients] for name, column in data.items()} for k in range(clients)]
    return session.aggregate_unmasked(plan, [ps.measure(plan.schema, part) for part in parts], rng)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=300, help="releases per cell")


if __name__ == "__main__":
    command("inference.coverage", __doc__, tables, _options)
