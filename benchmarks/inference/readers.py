"""Measure how often the intervals of the other readers cover: score rounds, sites, table one and confusion tables.

    python -m benchmarks.inference.readers --save

Known parameters, records through measuring, summing and noising, the public reader; ``coverage`` has regression and
survival.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import Answer, Array, dealt, plan_of, promise, ran, tallied
from benchmarks.inference.peers_of_sites import Sites, logistic_peers, site_peers
from benchmarks.inference.runs import add_options, others_of
from benchmarks.measuring import Row, Tables, command
from privstats import course as courses
from privstats import inference as inf
from privstats.kinds.score import Family
from privstats.randomness import Generator
from privstats.transforms import ConstantFeature

Way: TypeAlias = Callable[[np.random.Generator, Generator], Answer]

NAME = "inference.readers"
CLIENTS = 4
MEANS = np.array([[0.1, -0.2], [0.3, 0.1]])
GROUPS = ps.ClassSchema(2, 2, "NAD", 2.0)
RECALL = np.array([0.9, 0.7])
GUESSES = ps.CountSchema((ps.Categories("y", (0, 1)), ps.Categories("guess", (0, 1))), (("y", "guess"),))
RATE = np.array([-0.5, 0.4, -0.3])
STRONG = {"logistic": (0.0, 5.0), "poisson": (1.0, -3.0)}  # intercept and slope of one column of 0 and 1
EFFECTS: dict[str, tuple[Family, int]] = {
    "a log odds ratio of 5, four rounds: the slope": ("logistic", 4),
    "a log odds ratio of 5, eight rounds: the slope": ("logistic", 8),
    "a log rate ratio of -3, five rounds: the slope": ("poisson", 5),
    "a log rate ratio of -3, eight rounds: the slope": ("poisson", 8),
}
HELD = 0.15  # share of the records whose column is 1
MANY = 1_000_000  # a cohort for which no bound on counts is refused; noise does not depend on it
FOR_STRONG = 5  # times as many releases: the claim is tight there
EVENTS = ps.ScoreSchema(
    3, math.sqrt(3), family="poisson", target_bound=6.0, transform=(ConstantFeature(1.0),), errors="model"
)


def tables(options: argparse.Namespace) -> Tables:
    """A row per number of records and epsilon."""
    quick = options.quick
    runs = 2 if quick else options.runs
    sizes: Sequence[int] = (1_000,) if quick else (2_000, 10_000)
    epsilons = (3.0,) if quick else (1.0, 3.0, 8.0)
    cells = [(n, epsilon) for n in sizes for epsilon in epsilons]
    strong_runs = runs if quick else FOR_STRONG * runs
    hard = [(1_000, 3.0)] if quick else [(1_000, 8.0), (5_000, 1.0), (5_000, 8.0), (20_000, 8.0)]
    strongly = {title: partial(strong, *how) for title, how in EFFECTS.items()}
    of: dict[str, Callable[..., Row]] = {
        "logistic regression, four rounds: two slopes and the intercept": logit,
        "Poisson regression, five rounds: two slopes and the intercept": poisson,
        **strongly,
        "20 sites with levels of their own: two slopes": sites,
        "table one: two means of two groups": means,
        "confusion: accuracy, two recalls, balanced accuracy": confusion,
    }
    for title, row in of.items():
        chosen, often = (hard, strong_runs) if title in strongly else (cells, runs)
        if options.only in title:
            yield title, [row(*cell, often) for cell in chosen]


def logit(records: int, epsilon: float, runs: int) -> Row:
    """Through ``Newton``, the same model at all sites."""
    (peer,) = logistic_peers(CLIENTS, records // CLIENTS, (epsilon,))[-1:]
    draw = partial(Sites.draw_binary, CLIENTS, records // CLIENTS)
    return _row("logit", records, epsilon, runs, lambda chance, rng: peer.answer(draw(chance), rng))


def sites(records: int, epsilon: float, runs: int) -> Row:
    """Fixed effects over 20 sites."""
    (peer,) = site_peers(20, records // 20, (epsilon,))[-1:]
    draw = partial(Sites.draw, 20, records // 20)
    return _row("sites", records, epsilon, runs, lambda chance, rng: peer.answer(draw(chance), rng))


def poisson(records: int, epsilon: float, runs: int) -> Row:
    """Events at a rate of about .6."""
    course = ps.Newton.start(EVENTS, ps.Cohort(CLIENTS, CLIENTS, MANY), promise(epsilon))

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        X = chance.uniform(-1, 1, (records, 2))
        parts = dealt(X, chance.poisson(np.exp(np.c_[np.ones(records), X] @ RATE)), CLIENTS)
        table = inf.poisson(courses.run(course, lambda node: ran(node.plan, parts, rng)))
        return Answer.of(np.where(table.reported, table.params, np.nan), table.conf_int(), RATE)

    return _row("poisson", records, epsilon, runs, answer)


def strong(family: Family, rounds: int, records: int, epsilon: float, runs: int) -> Row:
    """A column of 0 and 1 that decides nearly everything for the few records that have it."""
    level, slope = STRONG[family]
    bound = 30.0 if family == "poisson" else None
    schema = ps.ScoreSchema(
        2, math.sqrt(2), family=family, target_bound=bound, transform=(ConstantFeature(1.0),), errors="model"
    )
    course = ps.Newton.start(schema, ps.Cohort(CLIENTS, CLIENTS, MANY), promise(epsilon), rounds)

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        X = (chance.random((records, 1)) < HELD) * 1.0
        fitted = level + slope * X[:, 0]
        binary = family == "logistic"
        y = chance.random(records) < 1 / (1 + np.exp(-fitted)) if binary else chance.poisson(np.exp(fitted))
        read, parts = (inf.logit if binary else inf.poisson), dealt(X, y.astype(int), CLIENTS)
        table = read(courses.run(course, lambda node: ran(node.plan, parts, rng)))
        return Answer.of(np.where(table.reported, table.params, np.nan)[1:], table.conf_int()[1:], np.array([slope]))

    return _row(f"{family} {rounds}", records, epsilon, runs, answer)


def means(records: int, epsilon: float, runs: int) -> Row:
    """Means by group."""
    plan = plan_of(GROUPS, CLIENTS, records, epsilon)

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        y = chance.integers(0, 2, records)
        X = MEANS[y] + chance.normal(size=(records, 2)) * 0.3
        found = inf.table_one(ran(plan, dealt(X, y, CLIENTS), rng))
        return Answer(found.means.ravel(), found.low.ravel(), found.high.ravel(), MEANS.ravel())

    return _row("means", records, epsilon, runs, answer)


def confusion(records: int, epsilon: float, runs: int) -> Row:
    """A classifier whose recalls are .9 and .7, three records in four of the first kind."""
    plan = plan_of(GUESSES, CLIENTS, records, epsilon)
    truth = np.array([0.75 * RECALL[0] + 0.25 * RECALL[1], *RECALL, RECALL.mean()])

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        y = (chance.random(records) < 0.25).astype(int)
        guess = np.where(chance.random(records) < RECALL[y], y, 1 - y)
        parts = [({"y": y[k::CLIENTS], "guess": guess[k::CLIENTS]},) for k in range(CLIENTS)]
        found = inf.confusion(ran(plan, parts, rng), "y", "guess")
        return intervals_of([found.accuracy, *found.recall.values(), found.balanced_accuracy], truth)

    return _row("confusion", records, epsilon, runs, answer)


def intervals_of(found: Sequence[inf.Interval], truth: Array) -> Answer:
    """Build an answer from intervals of count readers."""
    value, low, high = (np.array([getattr(each, end) for each in found]) for end in ("value", "low", "high"))
    reported = np.array([each.reported for each in found])
    return Answer(
        np.where(reported, value, np.nan), np.where(reported, low, -np.inf), np.where(reported, high, np.inf), truth
    )


def _row(kind: str, records: int, epsilon: float, runs: int, answer: Way) -> Row:
    name = f"{kind} {records} {epsilon}"
    return {"records": records, "epsilon": epsilon, **tallied(name, answer, runs)}


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
