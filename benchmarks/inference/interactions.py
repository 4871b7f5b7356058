"""Measure how often intervals of interactions cover, and how often their tests reject what is true.

    python -m benchmarks.inference.interactions --save --only logistic

A treatment, a rarer subgroup and numbers, with products of the treatment and all of them. Records go through every
session of the course, and the public reader. "Worst row" is the coefficient that misses most. Tests are of interactions
that do not exist, where other columns have effects.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import privstats as ps
from benchmarks.inference.runs import add_options, ends, noisy_releases, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats import session
from privstats.moments import exact_moments
from privstats.randomness import Generator, seeded
from privstats.transforms import Centre, ConstantFeature, Interactions, Scale
from threat_models.audits.effect_worlds import played

NAME = "inference.interactions"
NAMES = ("arm", "sex", "age", "former", "current")
PAIRS = (("arm", "sex"), ("arm", "age"), ("arm", "former"), ("arm", "current"))
MAPS = (
    Centre((0.5, 0.5, 55.0, 0.0, 0.0)),
    Scale((0.5, 0.5, 35.0, 1.0, 1.0)),
    Interactions.between(NAMES, PAIRS),
    ConstantFeature(1.0),
)
WIDTH = len(NAMES) + len(PAIRS) + 1
NORM = 8**0.5  # arm, sex, age, smoking, their three products, and the constant: smoking is at most one of its texts
SLOPES = np.array([0.4, -0.3, 0.01, 0.3, 0.5])  # per unit
WITH = np.array([-0.6, 0.01, 0.4, -0.4])  # of the products
ALPHA = 0.05
CELLS = ((5_000, 1.0), (5_000, 8.0), (20_000, 1.0))
Array: TypeAlias = NDArray[np.float64]


def tables(options: argparse.Namespace) -> Tables:
    """Intervals and tests of each model, and tests of equal effects in subgroups."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    for model, (covered, cells) in MODELS.items():
        if options.only in model:
            for moved in (True, False):
                title = f"{model}: {'intervals' if moved else 'tests'}"
                yield from table_of(NAME, title, cells[:few], partial(covered, moved=moved, runs=runs))
    if options.only in "subgroups":
        yield from table_of(NAME, "subgroups: tests", CELLS[:few], partial(equal, runs=runs))


def columns(records: int, chance: np.random.Generator) -> Array:
    """A randomised arm, a fifth of men, ages, and smoking in two columns of 0 and 1."""
    smoking = chance.choice(3, records, p=(0.5, 0.3, 0.2))
    arm, sex = chance.integers(0, 2, records), chance.random(records) < 0.2
    return np.column_stack([arm, sex, chance.uniform(20, 90, records), smoking == 1, smoking == 2]).astype(np.float64)


def linear(X: Array, moved: bool) -> tuple[Array, Array]:
    """The linear predictor about the middle, and the truth in raw units, without the intercept."""
    truth = np.concatenate([SLOPES, WITH * moved])
    products = X[:, :1] * X[:, 1:]
    return np.column_stack([X, products]) @ truth - 0.6, truth


def _counted(found: Iterator[tuple[Any, Array]], moved: bool, runs: int, about: Row) -> Row:
    """Count misses by coefficient, or rejections by test of interactions that do not exist."""
    reported: list[Any] = []
    missed: list[Any] = []
    for table, truth in found:
        if moved:
            low, high = table.conf_int()[-len(truth) :].T
            reported.append(np.asarray(table.reported[-len(truth) :]))
            missed.append((low > truth) | (high < truth))
        else:
            p = np.array([test.p_value for test in table.interactions()], np.float64)  # NaN where hidden
            reported.append(~np.isnan(p))
            missed.append(p < ALPHA)
    worst = float(np.sum(missed, axis=0).max())
    return {
        **about,
        "runs": runs,
        "reported": float(np.mean(reported)),
        "reported and missed": float(np.mean(missed)),
        "worst row": worst / runs,
        **ends(worst, runs),
    }


def _chances(model: str, records: int, epsilon: float, moved: bool) -> tuple[np.random.Generator, Generator]:
    seed = zlib.crc32(repr((model, records, epsilon, moved)).encode())
    return np.random.default_rng(seed), seeded(seed)


def _privacy(epsilon: float) -> ps.Privacy:
    return ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)


def logistic(records: int, epsilon: float, moved: bool, runs: int) -> Row:
    """Odds ratios."""
    schema = ps.ScoreSchema(WIDTH, NORM, transform=MAPS, feature_names=NAMES)
    course = ps.Newton.start(schema, ps.Cohort(2, 2, 2 * records), _privacy(epsilon))
    chance, rng = _chances("logistic", records, epsilon, moved)

    def found() -> Iterator[tuple[Any, Array]]:
        for _ in range(runs):
            X = columns(records, chance)
            score, truth = linear(X, moved)
            y = (chance.random(records) < expit(score)).astype(np.int64)
            yield ps.inference.logit(noisy_releases(course, [(X[k::2], y[k::2]) for k in (0, 1)], rng)), truth

    return _counted(found(), moved, runs, {"records": records, "epsilon": epsilon})


def least_squares(records: int, epsilon: float, moved: bool, runs: int) -> Row:
    """Differences of means, of a target with errors of standard deviation 1."""
    schema = ps.RidgeSchema(WIDTH, clip_norm=NORM, target_bound=8.0, transform=MAPS, feature_names=NAMES)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2 * records), privacy=_privacy(epsilon))
    chance, rng = _chances("least squares", records, epsilon, moved)

    def found() -> Iterator[tuple[Any, Array]]:
        for _ in range(runs):
            X = columns(records, chance)
            mean, truth = linear(X, moved)
            y = mean + chance.normal(size=records)
            moments = [exact_moments(schema, X[k::2], y[k::2]) for k in (0, 1)]
            yield ps.inference.ols(session.aggregate_unmasked(plan, moments, rng)), truth

    return _counted(found(), moved, runs, {"records": records, "epsilon": epsilon})


def hazards(records: int, epsilon: float, moved: bool, runs: int) -> Row:
    """Hazard ratios where treated men leave four times as fast."""
    schema = ps.HazardSchema(
        WIDTH,
        NORM,
        bins=ps.Bins("months", (0, 4, 8, 12, 16, 20, 24)),
        event="died",
        feature_names=NAMES,
        transform=MAPS,
        times="continuous",
    )
    course = ps.Hazard.start(schema, ps.Cohort(2, 2, 2 * records), _privacy(epsilon), by="arm", rounds=6)
    chance, rng = _chances("hazards", records, epsilon, moved)

    def found() -> Iterator[tuple[Any, Array]]:
        for _ in range(runs):
            X = columns(records, chance)
            score, truth = linear(X, moved)
            died = chance.exponential(60 / np.exp(score))
            left = chance.exponential(np.where(X[:, 0] * X[:, 1] > 0, 15.0, 60.0))
            months = np.minimum(np.minimum(died, left), 24.5)
            table = dict(zip(NAMES, X.T, strict=True)) | {"months": months, "died": (died <= months).astype(np.int64)}
            parts = [({name: column[k::2] for name, column in table.items()}, None) for k in (0, 1)]
            yield ps.inference.hazards(noisy_releases(course, parts, rng)), truth

    return _counted(found(), moved, runs, {"records": records, "epsilon": epsilon})


def equal(records: int, epsilon: float, runs: int) -> Row:
    """Return how often Welch's test rejects equal effects in subgroups of 80, 15 and 5 % with other variances."""
    ward = ps.Categories("ward", (0, 1, 2))
    schema = ps.EffectSchema.of(
        {"ward": (0, 2)}, treatment="arm", outcome=(-1.0, 1.0), probability=0.5, subgroups=(ward,)
    )
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), _privacy(epsilon))
    chance, rng = _chances("subgroups", records, epsilon, False)
    reported = rejected = 0
    for _ in range(runs):
        of = chance.choice(3, records, p=(0.8, 0.15, 0.05))
        arm = chance.integers(0, 2, records)
        spread = np.array([0.1, 0.3, 0.9])[of]
        y = np.clip(0.1 * arm + 0.2 * (of == 2) - 0.1 + spread * chance.uniform(-1, 1, records), -1, 1)
        (test,) = ps.inference.effects(played(course, np.column_stack([of, arm]), y, rng), course).interactions()
        reported += test.p_value is not None
        rejected += test.p_value is not None and test.p_value < ALPHA
    shares = {"reported": reported / runs, "reported and missed": rejected / runs, "worst row": rejected / runs}
    return {"records": records, "epsilon": epsilon, "runs": runs, **shares, **ends(rejected, runs)}


MODELS: dict[str, tuple[Callable[..., Row], tuple[tuple[int, float], ...]]] = {
    "logistic": (logistic, CELLS),
    "least squares": (least_squares, CELLS),
    "hazards": (hazards, ((20_000, 3.0), (20_000, 8.0))),
}


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
