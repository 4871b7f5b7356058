"""Do intervals keep their claim where each assumption that a table prints still holds, but only just?

    python -m benchmarks.inference.stretched --save

A row is a printed assumption in a world at its edge: residuals that vary threefold or have long tails, targets clipped
as often as goes without a warning, a column or an outcome that few have, arms of unequal spread or size, who leaves or
has no outcome by arm. Records go through measuring, summing and noising, and the public readers. ``hazards`` has the
worlds of hazard ratios. The last table breaks assumptions: there the claim is none.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.metrics import roc_auc_score

import privstats as ps
from benchmarks.inference import cell_worlds
from benchmarks.inference.coverings import Answer, Array, Way, dealt, plan_of, promise, ran, tallied
from benchmarks.inference.readers import intervals_of
from benchmarks.inference.runs import add_options, add_row, ends, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats import course as courses
from privstats import inference as inf
from privstats.randomness import Generator
from privstats.transforms import Centre, ConstantFeature, Scale
from threat_models.audits.effect_worlds import played

NAME = "inference.stretched"
CLIENTS = 4
Chance: TypeAlias = np.random.Generator
Worlds: TypeAlias = list[tuple[str, str, int, float, Callable[[int, float], Way]]]
"""What is assumed, how it is stretched, records, epsilon, and what makes the world and its reader."""

SLOPES = np.array([0.2, 0.3, 0.4])  # the constant, a column from -1 to 1, and one of 0 and 1
SPREAD = 0.25  # of residuals
RARE = 0.04  # of a column of 0 and 1
TAILS: Mapping[str, Callable[[Chance, int], Array]] = {
    "normal": lambda chance, n: chance.normal(size=n),
    "skewed": lambda chance, n: chance.exponential(size=n) - 1,
    "heavy": lambda chance, n: chance.standard_t(3, n) / math.sqrt(3),
}


def line(tails: str, held: float, factor: float, folds: int, bound: float = 4.0) -> Callable[[int, float], Way]:
    """OLS whose residual variance is ``factor`` times as large under a column that a share ``held`` has."""
    schema = ps.RidgeSchema(
        3, clip_norm=math.sqrt(3), target_bound=bound, folds=folds, transform=(ConstantFeature(1.0),)
    )

    def made(records: int, epsilon: float) -> Way:
        plan = plan_of(schema, CLIENTS, records, epsilon)

        def answer(chance: Chance, rng: Generator) -> Answer:
            X = np.c_[chance.uniform(-1, 1, records), chance.random(records) < held]
            error = SPREAD * np.where(X[:, 1] == 1, math.sqrt(factor), 1.0) * TAILS[tails](chance, records)
            table = inf.ols(ran(plan, dealt(X, SLOPES[0] + X @ SLOPES[1:] + error, CLIENTS), rng))
            return Answer.of(table.params, table.conf_int(), SLOPES)

        return answer

    return made


def sites(groups: int, spread: float, slopes: float) -> Callable[[int, float], Way]:
    """40 sites of 1 to 10 shares of the records; residuals and a column vary more at some, and slopes may differ."""
    schema = ps.SitesSchema(3, clip_norm=math.sqrt(3), target_scale=2.0, feature_names=("a", "b"), groups=groups)
    places, truth = 40, np.array([0.3, -0.2])

    def made(records: int, epsilon: float) -> Way:
        plan = plan_of(schema, places, records, epsilon)
        sizes = np.linspace(1, 10, places)
        each = (records * sizes / sizes.sum()).astype(int)

        def answer(chance: Chance, rng: Generator) -> Answer:
            parts = []
            for size in chance.permutation(each):
                wide = math.exp(spread * chance.uniform(-1, 1))
                X = chance.uniform(-0.5, 0.5, (size, 2)) * [min(wide, 2.0), 1.0]
                own = truth + slopes * chance.normal(size=2)
                y = chance.normal(scale=0.3) + X @ own + 0.15 * wide * chance.normal(size=size)
                parts.append((X, np.clip(y, -2, 2)))
            table = inf.fixed_effects(ran(plan, parts, rng))
            return Answer.of(table.params, table.conf_int(), truth)

        return answer

    return made


def rounds(
    family: Literal["logistic", "poisson"], level: float, held: float, bound: float | None, rate: float | None = None
) -> Any:
    """Score rounds: a column from -1 to 1 with a slope of .7 and one that a share ``held`` has, of 1."""
    schema = ps.ScoreSchema(
        3, math.sqrt(3), family=family, target_bound=bound, rate=rate, transform=(ConstantFeature(1.0),), errors="model"
    )
    truth = np.array([level, 0.7, 1.0])

    def made(records: int, epsilon: float) -> Way:
        course = ps.Newton.start(schema, ps.Cohort(CLIENTS, CLIENTS, 2 * records), promise(epsilon), 6)

        def answer(chance: Chance, rng: Generator) -> Answer:
            X = np.c_[chance.uniform(-1, 1, records), chance.random(records) < held] * 1.0
            fitted, binary = truth[0] + X @ truth[1:], family == "logistic"
            y = chance.random(records) < 1 / (1 + np.exp(-fitted)) if binary else chance.poisson(np.exp(fitted))
            read, parts = (inf.logit if binary else inf.poisson), dealt(X, y.astype(int), CLIENTS)
            table = read(courses.run(course, lambda node: ran(node.plan, parts, rng)))
            return Answer.of(np.where(table.reported, table.params, np.nan), table.conf_int(), truth)

        return answer

    return made


def counts(frailty: float, level: float, bound: float, robust: bool) -> Callable[[int, float], Way]:
    """Counts of a gamma frailty: their variance is their mean plus ``frailty`` times its square; slopes of an age, a
    column that 20 % have and a skewed value."""
    errors: Literal["robust", "model"] = "robust" if robust else "model"
    schema = ps.ScoreSchema(
        4, 2.0, family="poisson", target_bound=bound, rate=0.8, transform=(ConstantFeature(1.0),), errors=errors
    )
    truth = np.array([level, 0.5, 0.0, 0.5])

    def made(records: int, epsilon: float) -> Way:
        course = ps.Newton.start(schema, ps.Cohort(CLIENTS, CLIENTS, 2 * records), promise(epsilon))

        def answer(chance: Chance, rng: Generator) -> Answer:
            age = np.clip(chance.normal(0, 0.4, records), -1, 1)
            value = np.clip(chance.lognormal(-1.5, 0.7, records), 0, 1)
            X = np.c_[age, chance.random(records) < 0.2, value] * 1.0
            own = chance.gamma(1 / frailty, frailty, records) if frailty else 1.0
            y = np.minimum(chance.poisson(np.exp(truth[0] + X @ truth[1:]) * own), bound)
            parts = dealt(X, y.astype(int), CLIENTS)
            table = inf.poisson(courses.run(course, lambda node: ran(node.plan, parts, rng)))
            return Answer.of(np.where(table.reported, table.params, np.nan), table.conf_int(), truth)

        return answer

    return made


def bent(bend: float, level: float, robust: bool) -> Callable[[int, float], Way]:
    """Log odds that bend: ``bend`` times the square of a column, and .7 under a column that 30 % have.

    The truth is the line of log odds that is nearest to them, which the course estimates.
    """
    errors: Literal["robust", "model"] = "robust" if robust else "model"
    schema = ps.ScoreSchema(3, math.sqrt(3), rate=0.05, transform=(ConstantFeature(1.0),), errors=errors)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    grid = np.array([(1.0, x, held) for held in (0, 1) for x in nodes])
    shares = np.concatenate([0.7 * weights, 0.3 * weights]) / 2
    truth = nearest_line(grid, shares, expit(level + bend * grid[:, 1] ** 2 + 0.7 * grid[:, 2]))

    def made(records: int, epsilon: float) -> Way:
        course = ps.Newton.start(schema, ps.Cohort(CLIENTS, CLIENTS, 2 * records), promise(epsilon), 6)

        def answer(chance: Chance, rng: Generator) -> Answer:
            X = np.c_[chance.uniform(-1, 1, records), chance.random(records) < 0.3] * 1.0
            y = chance.random(records) < expit(level + bend * X[:, 0] ** 2 + 0.7 * X[:, 1])
            parts = dealt(X, y.astype(int), CLIENTS)
            table = inf.logit(courses.run(course, lambda node: ran(node.plan, parts, rng)))
            return Answer.of(np.where(table.reported, table.params, np.nan), table.conf_int(), truth)

        return answer

    return made


def nearest_line(grid: Array, shares: Array, odds: Array) -> Array:
    """Return the weights of the logistic regression that is nearest to these probabilities on a grid of rows."""
    w = np.zeros(grid.shape[1])
    for _ in range(50):
        mean = expit(grid @ w)
        information = (grid * (shares * mean * (1 - mean))[:, None]).T @ grid
        w = w + np.linalg.solve(information, grid.T @ (shares * (odds - mean)))
    return w


def bent_hazards(bend: float, robust: bool) -> Callable[[int, float], Way]:
    """Log hazards that bend: ``bend`` times the square of an age; an arm has no effect, and all leave alike.

    Age is as often above its middle as below, so the log ratio that the rounds estimate is 0, as is that of the arm.
    """
    errors: Literal["robust", "model"] = "robust" if robust else "model"
    schema = ps.HazardSchema(
        3,
        math.sqrt(3),
        bins=ps.Bins("months", (0, 6, 12, 18, 24)),
        event="died",
        feature_names=("arm", "age"),
        transform=(Centre((0.5, 0.0)), Scale((0.5, 1.0)), ConstantFeature(1.0)),
        times="continuous",
        errors=errors,
    )
    nodes, weights = np.polynomial.legendre.leggauss(200)
    level = 0.004 / float(weights @ np.exp(bend * nodes**2) / 2)  # events a month, on average

    def made(records: int, epsilon: float) -> Way:
        course = ps.Hazard.start(schema, ps.Cohort(CLIENTS, CLIENTS, 2 * records), promise(epsilon), by="arm", rounds=6)

        def answer(chance: Chance, rng: Generator) -> Answer:
            arm, age = chance.integers(0, 2, records), chance.uniform(-1, 1, records)
            event = chance.exponential(size=records) / (level * np.exp(bend * age**2))
            left = chance.uniform(6, 36, records)
            table = {"arm": arm, "age": age, "months": np.minimum(event, left), "died": (event <= left) * 1}
            parts = [({name: column[k::CLIENTS] for name, column in table.items()},) for k in range(CLIENTS)]
            found = inf.hazards(courses.run(course, lambda node: ran(node.plan, parts, rng)))
            return Answer.of(np.where(found.reported, found.params, np.nan), found.conf_int(), np.zeros(2))

        return answer

    return made


def groups(tails: str, share: float, factor: float) -> Callable[[int, float], Way]:
    """Means of two groups, one of them this share of the records with a spread so many times the other's, and of a
    column of 0 and 1 that few have."""
    schema = ps.ClassSchema(2, 2, "NAD", 2.0)
    truth = np.array([[0.1, RARE], [0.3, RARE]])

    def made(records: int, epsilon: float) -> Way:
        plan = plan_of(schema, CLIENTS, records, epsilon)

        def answer(chance: Chance, rng: Generator) -> Answer:
            y = (chance.random(records) < share).astype(int)
            x = truth[y, 0] + 0.1 * np.where(y, factor, 1.0) * TAILS[tails](chance, records)
            X = np.c_[x, chance.random(records) < RARE]
            found = inf.table_one(ran(plan, dealt(X, y, CLIENTS), rng))
            return Answer(found.means.ravel(), found.low.ravel(), found.high.ravel(), truth.ravel())

        return answer

    return made


def shares(rare: float) -> Callable[[int, float], Way]:
    """A confusion table whose second class is rare; its accuracy and recalls."""
    schema = ps.CountSchema((ps.Categories("y", (0, 1)), ps.Categories("guess", (0, 1))), (("y", "guess"),))
    recall = np.array([0.99, 0.6])
    truth = np.array([(1 - rare) * recall[0] + rare * recall[1], *recall, recall.mean()])

    def made(records: int, epsilon: float) -> Way:
        plan = plan_of(schema, CLIENTS, records, epsilon)

        def answer(chance: Chance, rng: Generator) -> Answer:
            y = (chance.random(records) < rare).astype(int)
            guess = np.where(chance.random(records) < recall[y], y, 1 - y)
            parts = [({"y": y[k::CLIENTS], "guess": guess[k::CLIENTS]},) for k in range(CLIENTS)]
            found = inf.confusion(ran(plan, parts, rng), "y", "guess")
            return intervals_of([found.accuracy, *found.recall.values(), found.balanced_accuracy], truth)

        return answer

    return made


def quantiles(width: float) -> Callable[[int, float], Way]:
    """Quartiles of an exponential law of mean 10 in bins of this width, the last open; even inside a bin is assumed."""
    schema = ps.CountSchema((ps.Bins("days", tuple(np.arange(0, 40 + width, width))),), (("days",),))
    truth = -10 * np.log(1 - np.array([0.25, 0.5, 0.75]))

    def made(records: int, epsilon: float) -> Way:
        plan = plan_of(schema, CLIENTS, records, epsilon)

        def answer(chance: Chance, rng: Generator) -> Answer:
            days = chance.exponential(10, records)
            release = ran(plan, [({"days": days[k::CLIENTS]},) for k in range(CLIENTS)], rng)
            return intervals_of([inf.quantile(release, "days", q).even for q in (0.25, 0.5, 0.75)], truth)

        return answer

    return made


def curve(hazard: float, leaving: float, width: int, shape: float = 1.0) -> Callable[[int, float], Way]:
    """S at the first, the middle and the last edge of 24 months, of a Weibull law; who leaves does so evenly."""
    edges = tuple(range(0, 24 + 2 * width, width))
    schema = ps.CountSchema((ps.Bins("t", edges), ps.Categories("e", (0, 1))), (("t", "e"),))
    at = np.array([0, 12 // width - 1, 24 // width - 1])
    truth = np.exp(-hazard * 24 * (((at + 1) * width) / 24) ** shape)

    def made(records: int, epsilon: float) -> Way:
        plan = plan_of(schema, CLIENTS, records, epsilon)

        def answer(chance: Chance, rng: Generator) -> Answer:
            event = 24 * (chance.exponential(size=records) / (hazard * 24)) ** (1 / shape)
            left = np.minimum(chance.exponential(1 / leaving, records), 24 + width * chance.random(records))
            data = {"t": np.minimum(event, left), "e": (event <= left).astype(int)}
            parts = [({name: column[k::CLIENTS] for name, column in data.items()},) for k in range(CLIENTS)]
            found = inf.kaplan_meier(ran(plan, parts, rng), time="t", event="e", times="continuous")
            bands = np.full((len(edges), 2), [-math.inf, math.inf])
            bands[: len(found.timeline)] = found.confidence_interval_  # type: ignore[union-attr]
            return Answer.of(np.full(3, math.nan), bands[at], truth)

        return answer

    return made


def trial(kind: str, probability: float, factor: float = 1.0, blocks: int = 0) -> Callable[[int, float], Way]:
    """A trial of two columns whose effect is .1, or of a 0/1 outcome, with the spread of the treated ``factor`` times
    that of the others; assigned by a coin, or in permuted blocks."""
    events = kind == "events"
    outcome = (0.0, 1.0) if events else (-4.0, 4.0)
    schema = ps.EffectSchema.of(
        dict.fromkeys("ab", (-1.0, 1.0)), treatment="arm", outcome=outcome, probability=probability
    )

    def made(records: int, epsilon: float) -> Way:
        course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), promise(epsilon))

        def answer(chance: Chance, rng: Generator) -> Answer:
            u = chance.uniform(-1, 1, (records, 2))
            arm = (_permuted(records, blocks, chance) if blocks else chance.random(records) < probability) * 1.0
            if events:
                y = (chance.random(records) < 0.05 + 0.02 * u[:, 0] + 0.1 * arm) * 1.0
            else:
                apart = 0.15 * np.where(arm == 1, factor, 1.0) * TAILS[kind](chance, records)
                y = 0.3 * u[:, 0] + 0.2 * u[:, 1] ** 2 + arm * (0.1 + 0.2 * u[:, 1]) + apart
            table = inf.effect(played(course, np.c_[u, arm], np.clip(y, *outcome), rng))
            return Answer.of(np.array([table.estimate]), np.array([table.conf_int()]), np.array([0.1]))

        return answer

    return made


def early(edges: tuple[int, ...]) -> Callable[[int, float], Way]:
    """Survival at 250 days where a tenth die in the first 30, and a third have left by then."""
    schema = ps.CountSchema((ps.Bins("days", edges, open="above"), ps.Categories("died", (0, 1))), (("days", "died"),))
    truth = np.array([0.9 * math.exp(-250 / 4_000)])

    def made(records: int, epsilon: float) -> Way:
        plan = plan_of(schema, CLIENTS, records, epsilon)

        def answer(chance: Chance, rng: Generator) -> Answer:
            event, first = chance.exponential(4_000, records), chance.random(records) < 0.1
            event = np.where(first, np.minimum(event, chance.uniform(0, 30, records)), event)
            left = np.minimum(chance.exponential(600, records), edges[-1])
            data = {"days": np.minimum(event, left), "died": (event <= left).astype(int)}
            parts = [({name: column[k::CLIENTS] for name, column in data.items()},) for k in range(CLIENTS)]
            found = inf.kaplan_meier(ran(plan, parts, rng), time="days", event="died", times="continuous")
            (ends_at,) = ([row["conf_low"], row["conf_high"]] for row in found.to_rows() if row["time"] == 250)
            return Answer.of(np.full(1, math.nan), np.array([ends_at]), truth)

        return answer

    return made


def smokers(rare: float) -> Callable[[int, float], Way]:
    """A trial whose 0/1 outcome follows a column of three texts, the last of which this share has, as many of them."""
    texts = ("never", "former", "current")
    columns: dict[str, Any] = {"a": (-1.0, 1.0), "smoking": texts}
    schema = ps.EffectSchema.of(columns, treatment="arm", outcome={"well": (0.0, 1.0)}, probability=0.5)
    risks = np.array([0.2, 0.3, 0.7])

    def made(records: int, epsilon: float) -> Way:
        course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), promise(epsilon))

        def answer(chance: Chance, rng: Generator) -> Answer:
            smoking, a = chance.choice(3, records, p=[0.7 - rare, 0.3, rare]), chance.uniform(-1, 1, records)
            arm = chance.integers(0, 2, records)
            y = (chance.random(records) < risks[smoking] + 0.1 * a + 0.1 * arm) * 1.0
            table = pd.DataFrame({"a": a, "smoking": np.array(texts)[smoking], "arm": arm})
            parts = [(table[k::2], y[k::2]) for k in (0, 1)]
            found = inf.effect(courses.run(course, lambda node: ran(node.plan, parts, rng)))
            return Answer.of(np.array([found.estimate]), np.array([found.conf_int()]), np.array([0.1]))

        return answer

    return made


def _permuted(records: int, size: int, chance: Chance) -> Array:
    """Half of every block of so many records."""
    return np.concatenate([chance.permutation(size) < size // 2 for _ in range(-(-records // size))])[:records]


def ratio(risk: float, truth: float, probability: float) -> Callable[[int, float], Way]:
    """A ratio of risks that follow a column."""
    ranges = dict.fromkeys("ab", (-1.0, 1.0))
    schema = ps.EffectSchema.of(ranges, treatment="arm", outcome=(0, 1), probability=probability, measure="ratio")

    def made(records: int, epsilon: float) -> Way:
        course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), promise(epsilon))

        def answer(chance: Chance, rng: Generator) -> Answer:
            u, arm = chance.uniform(-1, 1, (records, 2)), chance.random(records) < probability
            y = chance.random(records) < risk * (1 + 0.8 * u[:, 0]) * np.where(arm, truth, 1.0)
            table = inf.effect(played(course, np.c_[u, arm], y.astype(np.float64), rng))
            return Answer.of(np.array([table.estimate]), np.array([table.conf_int()]), np.array([truth]))

        return answer

    return made


@cache
def population(rare: float) -> tuple[Any, Array]:
    """A head, and its accuracy, recalls and AUC among many of whom this share has the outcome."""
    chance, y = np.random.default_rng(1), np.arange(600) % 2
    head = ps.heads.LDA().fit(_seen(y, chance), y)
    y = (chance.random(400_000) < rare).astype(int)
    X = _seen(y, chance)
    right = head.predict(X) == y
    area = float(roc_auc_score(y, head.predict_proba(X)[:, 1]))
    return head, np.array([right.mean(), right[y == 0].mean(), right[y == 1].mean(), area])


def _seen(y: Any, chance: Chance) -> Array:
    return np.asarray(chance.normal(size=(len(y), 3)) + 1.2 * np.eye(2, 3)[y])


def scored(rare: float) -> Callable[[int, float], Way]:
    """A head that meets an outcome that few have: accuracy, recalls and AUC."""

    def made(records: int, epsilon: float) -> Way:
        head, truth = population(rare)
        plan = ps.Scoring(head, score_bins=10).plan(cohort=ps.Cohort(4, 4, 2 * records), privacy=promise(epsilon))

        def answer(chance: Chance, rng: Generator) -> Answer:
            y = (chance.random(records) < rare).astype(int)
            found = inf.head_score(ran(plan, dealt(_seen(y, chance), y, CLIENTS), rng))
            return intervals_of([found.accuracy, *found.recall.values(), found.auc["1"]], truth)

        return answer

    return made


EDGES: Mapping[str, Worlds] = {
    "linear regression, one residual variance": [
        ("residuals vary alike", "skewed residuals", 500, 8.0, line("skewed", 0.5, 1, 1)),
        ("", "heavy tails (t, 3 degrees)", 500, 8.0, line("heavy", 0.5, 1, 1)),
        ("", "skewed, a column that 2 % have", 5_000, 8.0, line("skewed", 0.02, 1, 1)),
        ("negligible clipping", ".9 % of targets beyond the bound", 5_000, 8.0, line("normal", 0.5, 1, 1, 1.51)),
    ],
    "linear regression, 20 folds": [
        ("a linear model", "thrice the variance under a column that 10 % have", 2_000, 8.0, line("normal", 0.1, 3, 20)),
        ("", "the same", 20_000, 3.0, line("normal", 0.1, 3, 20)),
        ("", "the same, skewed", 20_000, 8.0, line("skewed", 0.1, 3, 20)),
    ],
    "linear regression, 20 folds, a wide group": [
        (
            "a linear model",
            "three times the spread under a column that 5 % have",
            2_000,
            8.0,
            line("normal", 0.05, 9, 20),
        ),
        ("", "the same", 20_000, 8.0, line("normal", 0.05, 9, 20)),
    ],
    "sites": [
        ("the same slopes at all sites", "sites of 1 to 10 shares", 10_000, 8.0, sites(1, 0.0, 0.0)),
        ("slopes may differ by site", "8 groups; sizes, spreads and slopes differ", 20_000, 8.0, sites(8, 0.7, 0.1)),
    ],
    "rounds": [
        ("logistic", "2 % have the outcome, 5 % the column", 20_000, 8.0, rounds("logistic", -4.2, 0.05, None)),
        ("", "the same", 20_000, 3.0, rounds("logistic", -4.2, 0.05, None)),
        ("Poisson", "rates of .3 to 4, bound 20", 10_000, 8.0, rounds("poisson", -0.4, 0.1, 20.0)),
    ],
    "rounds, robust errors": [
        ("log means are linear", "Poisson, variance equal to the mean", 50_000, 8.0, counts(0.0, -0.7, 20.0, True)),
        ("", "a frailty of 3: 2.8 times the mean", 50_000, 8.0, counts(3.0, -0.7, 20.0, True)),
        ("", "the same", 10_000, 8.0, counts(3.0, -0.7, 20.0, True)),
        ("", "a frailty of 1, bound 12: 2.2 times the mean", 50_000, 8.0, counts(1.0, 0.0, 12.0, True)),
    ],
    "bent lines, robust errors": [
        ("independent records", "logistic: log odds bend by 3.5 times a square", 20_000, 8.0, bent(3.5, -5.0, True)),
        ("", "the same", 5_000, 3.0, bent(3.5, -5.0, True)),
        ("independent persons", "hazards: logs bend by 3.5 times a square", 20_000, 8.0, bent_hazards(3.5, True)),
        ("", "the same", 5_000, 8.0, bent_hazards(3.5, True)),
    ],
    "rounds, few records": [
        ("Poisson", "rates of .3 to 4, bound 8, rate 1", 2_000, 8.0, rounds("poisson", -0.4, 0.1, 8.0, 1.0)),
    ],
    "means by group": [
        ("means near normal", "30 % in a group of thrice the spread", 2_000, 8.0, groups("normal", 0.3, 3)),
        ("", "the same, skewed", 2_000, 8.0, groups("skewed", 0.3, 3)),
        ("", "the same", 10_000, 1.0, groups("skewed", 0.3, 3)),
        ("means near normal", "a group of 100; a column that 4 % have", 2_000, 8.0, groups("skewed", 0.05, 3)),
    ],
    "shares and quantiles": [
        ("independent records", "a class of 2 %", 2_000, 8.0, shares(0.02)),
        ("", "the same", 10_000, 1.0, shares(0.02)),
        ("values even inside a bin", "quartiles, mean 10, exponential; bins of 1", 5_000, 8.0, quantiles(1.0)),
    ],
    "survival curves": [
        ("hazards even inside a bin", "20 % leave a month, bins of 6", 20_000, 8.0, curve(0.02, 0.2, 6)),
        ("", "20 % leave a month, few events, bins of 3", 2_000, 8.0, curve(0.0015, 0.2, 3)),
        ("", "5 % leave a month, few events, bins of 1", 1_000, 8.0, curve(0.0015, 0.05, 1)),
        ("", "the same", 1_000, 3.0, curve(0.0015, 0.05, 1)),
    ],
    "trials": [
        ("the plan's probability", "10 % treated, skewed, four times the spread", 4_000, 8.0, trial("skewed", 0.1, 4)),
        ("", "the same", 10_000, 1.0, trial("skewed", 0.1, 4)),
        ("", "the same, heavy tails", 10_000, 8.0, trial("heavy", 0.1, 4)),
        ("permuted blocks", "of four", 2_000, 8.0, trial("normal", 0.5, 1, 4)),
        ("", "of two, four times the spread", 2_000, 8.0, trial("normal", 0.5, 4, 2)),
        ("one outcome per record", "5 % have it, 10 % treated", 2_000, 8.0, trial("events", 0.1)),
        ("", "a ratio of 3 on a risk of 5 %, 20 % treated", 5_000, 8.0, ratio(0.05, 3.0, 0.2)),
        ("", "a ratio of .3 on a risk of 10 %, 20 % treated", 5_000, 8.0, ratio(0.1, 0.3, 0.2)),
    ],
    "trials with a column of three texts": [
        ("the plan's probability", "3 % have the third, whose risk is .5 higher", 4_000, 1.0, smokers(0.03)),
        ("", "the same", 1_000, 8.0, smokers(0.03)),
    ],
    "scores of a head": [
        ("other records than its own", "3 % have the outcome", 4_000, 8.0, scored(0.03)),
        ("", "the same", 4_000, 1.0, scored(0.03)),
    ],
    "gaps of declared columns": [
        (
            "records without gaps",
            "10 % of a confounder, by coin",
            5_000,
            3.0,
            cell_worlds.gaps("linear", 0.1, "coin", "left out"),
        ),
        ("", "30 %, by coin", 20_000, 3.0, cell_worlds.gaps("linear", 0.3, "coin", "left out")),
        ("", "30 %, thrice as many in one arm", 20_000, 3.0, cell_worlds.gaps("linear", 0.3, "arm", "left out")),
        ("", "30 %, thrice as many of one value", 20_000, 3.0, cell_worlds.gaps("linear", 0.3, "value", "left out")),
        ("", "logistic, 10 %, by coin", 20_000, 8.0, cell_worlds.gaps("logistic", 0.1, "coin", "left out")),
        (
            "",
            "logistic, 30 %, thrice as many in one arm",
            20_000,
            8.0,
            cell_worlds.gaps("logistic", 0.3, "arm", "left out"),
        ),
        (
            "gaps are seen",
            "cells for gaps, 10 %, by coin",
            5_000,
            3.0,
            cell_worlds.gaps("linear", 0.1, "coin", "hidden cells"),
        ),
        ("", "cells for gaps, 30 %, by coin", 20_000, 3.0, cell_worlds.gaps("linear", 0.3, "coin", "hidden cells")),
    ],
    "few gaps that noise hides": [
        (
            "gaps are seen",
            f"cells for gaps, {100 * share:g} %, by coin",
            n,
            e,
            cell_worlds.gaps("linear", share, "coin", "hidden cells"),
        )
        for share, n, e in ((0.002, 5_000, 3.0), (0.005, 5_000, 1.0), (0.01, 5_000, 1.0), (0.002, 20_000, 1.0))
    ],
    "quantiles by the ends of their bins": [
        (
            "independent records",
            "four quantiles, mean 20, exponential; bins of 10",
            n,
            e,
            cell_worlds.bin_ends(20.0, 10.0),
        )
        for n, e in ((300, 3.0), (2_000, 8.0), (20_000, 8.0))
    ],
    "means and variances of rare values": [
        ("independent records", ".5 % at the end of the range", 1_000, 8.0, cell_worlds.spikes(0.005)),
        ("", "the same", 1_000, 3.0, cell_worlds.spikes(0.005)),
        ("", "1 % at the end of the range", 300, 8.0, cell_worlds.spikes(0.01)),
        ("", "5 % with a lognormal stay", 1_000, 8.0, cell_worlds.stays()),
        ("", "the same", 5_000, 8.0, cell_worlds.stays()),
    ],
    "few events and sparse tables": [
        ("independent records", "balanced accuracy, 24 events", 1_200, 8.0, cell_worlds.balanced(0.02)),
        ("", "the same", 1_200, 3.0, cell_worlds.balanced(0.02)),
        (
            "",
            "chi-squared, 2 x 10, expected counts from .6",
            1_000,
            30.0,
            cell_worlds.independent((0.99, 0.01), (0.5, *[0.5 / 9] * 9)),
        ),
        (
            "",
            "chi-squared, 5 x 6, expected counts from .1",
            500,
            8.0,
            cell_worlds.independent((0.4, 0.3, 0.2, 0.08, 0.02), (0.5, 0.3, 0.1, 0.06, 0.03, 0.01)),
        ),
    ],
    "beyond the edge": [
        (
            "residuals vary alike",
            "thrice the variance under a column that 10 % have",
            20_000,
            8.0,
            line("normal", 0.1, 3, 1),
        ),
        ("values even inside a bin", "quartiles, mean 10, exponential; bins of 5", 5_000, 8.0, quantiles(5.0)),
        (
            "hazards even inside a bin",
            "Weibull .5, 20 % leave a month, bins of 6",
            20_000,
            8.0,
            curve(0.02, 0.2, 6, 0.5),
        ),
        (
            "residuals vary alike",
            "fixed effects: they vary as a column does, by site",
            20_000,
            8.0,
            sites(1, 0.7, 0.0),
        ),
    ],
    "beyond the edge, a long first bin": [
        (
            "hazards even inside a bin",
            "a tenth die in the first month, bins of 250 days",
            3_000,
            3.0,
            early((0, 250, 500, 750)),
        ),
        ("", "the same, the first bin of 30 days", 3_000, 3.0, early((0, 30, 250, 500, 750))),
    ],
    "beyond the edge, gaps as cells": [
        (
            "no column has gaps",
            "10 % of a confounder, by coin",
            5_000,
            3.0,
            cell_worlds.gaps("linear", 0.1, "coin", "cells"),
        ),
        ("", "10 %, by coin", 20_000, 3.0, cell_worlds.gaps("linear", 0.1, "coin", "cells")),
        ("", "30 %, by coin", 20_000, 3.0, cell_worlds.gaps("linear", 0.3, "coin", "cells")),
        ("", "30 %, thrice as many in one arm", 20_000, 3.0, cell_worlds.gaps("linear", 0.3, "arm", "cells")),
        ("", "logistic, 10 %, by coin", 20_000, 8.0, cell_worlds.gaps("logistic", 0.1, "coin", "cells")),
    ],
    "beyond the edge, variances": [
        ("variance equals the mean", "a frailty of 3: 2.8 times the mean", 50_000, 8.0, counts(3.0, -0.7, 20.0, False)),
        ("", "a frailty of 1, bound 12: 2.2 times the mean", 50_000, 8.0, counts(1.0, 0.0, 12.0, False)),
        (
            "residuals vary alike",
            "three times the spread under a column that 5 % have",
            2_000,
            8.0,
            line("normal", 0.05, 9, 1),
        ),
        ("", "the same", 20_000, 8.0, line("normal", 0.05, 9, 1)),
    ],
    "beyond the edge, bent lines": [
        ("log odds are linear", "logistic: they bend by 3.5 times a square", 20_000, 8.0, bent(3.5, -5.0, False)),
        ("hazards are log-linear", "logs of hazards bend by 3.5 times a square", 20_000, 8.0, bent_hazards(3.5, False)),
    ],
}


def tables(options: argparse.Namespace) -> Tables:
    """A row per world; with ``--row`` that row alone, between the stored ones."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    for title, worlds in EDGES.items():
        if options.only in title:
            yield from table_of(NAME, title, worlds[:few], partial(covered, runs=runs), options.row)


def _options(parser: argparse.ArgumentParser) -> None:
    add_options(parser)
    add_row(parser)


def covered(assumed: str, stretched: str, records: int, epsilon: float, makes: Any, runs: int) -> Row:
    """A world: reported, reported and missed, and of the parameter that is missed most often with its 95 % interval."""
    name = f"{assumed} {stretched} {records} {epsilon} {runs}"
    found = tallied(name, makes(records, epsilon), runs)
    worst = found["worst parameter"] or 0.0
    about = {"assumed": assumed, "world": stretched, "records": records, "epsilon": epsilon}
    return {**about, **found, **ends(round(worst * runs), runs)}


if __name__ == "__main__":
    command(NAME, __doc__, tables, _options, others_of(NAME))
