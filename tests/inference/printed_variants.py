"""Tables whose sentences differ from the usual ones of their kind: other courses, hidden rows, broken assumptions."""

from collections.abc import Callable
from typing import Any

import numpy as np

import privstats as ps
from privstats.inference.counts.averages import average_rows, averages_summary
from privstats.randomness import seeded
from privstats.transforms import ConstantFeature
from tests.hazard import test_causes as causes
from tests.hazard import test_entry as entering
from tests.hazard import worlds as hazards
from tests.inference import test_effects as trials
from tests.inference import test_heterogeneity as between
from tests.inference import test_interactions as products
from tests.inference import test_late_entry as late
from tests.inference import test_left_out as excluded
from tests.inference import test_missing_outcomes as missing
from tests.inference import test_risk_ratios as ratios
from tests.inference import test_survival as survival
from tests.inference.level_worlds import TABLES, World
from tests.made import promise
from threat_models.audits.effect_worlds import played

inf = ps.inference
CONSTANT = (ConstantFeature(1.0),)


def _hazards(records: int, epsilon: float, world: Any = None, **options: Any) -> Any:
    people = hazards.world(records, **(world or {}))
    return inf.hazards(hazards.played(hazards.course_of(records, epsilon, **options), people, 1))


def _whole_bins() -> Any:
    whole = ps.Hazard.full_plan(schema=hazards.schema(), cohort=ps.Cohort(2, 2, 16_000), privacy=promise(epsilon=8.0))
    return inf.hazards(hazards.played(ps.Hazard.within(whole, "arm"), hazards.world(8_000), 1))


def _causes() -> Any:
    people = causes.people(6_000, np.random.default_rng(0))
    parts = [({name: column[k::2] for name, column in people.items()}, None) for k in (0, 1)]
    return inf.hazards(ps.simulate(causes.course(6_000), parts, rng=seeded(0)))


def _adjusted(estimand: str, records: int = 8_000, epsilon: float = 3.0) -> Any:
    X, y = trials.confounded(records, np.random.default_rng(5))
    course = trials.course_of(records, epsilon, trials.observed_schema(estimand, trim=0.1))
    return inf.effect(trials.played(course, X, y, seeded(8)))


def _missing(records: int, epsilon: float) -> Any:
    return inf.effect(played(missing.course_of(records, epsilon), *missing.drawn(records, 0), seeded(1)))


def _ridge(y: Any, **changes: Any) -> ps.Release:
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    schema = ps.RidgeSchema(3, clip_norm=2.0, target_bound=4.0, transform=CONSTANT, **changes)
    return ps.Release.exact(schema, ps.measure(schema, X, y(X)))


def _gaps(**options: Any) -> Any:
    cells = ps.Cells((ps.Truth("smoker"), ps.Categories("sex", ("f", "m"))))
    schema = ps.RidgeSchema(cells.width + 1, clip_norm=1.5, target_bound=4.0, transform=(cells, *CONSTANT))
    table: dict[str, Any] = {"smoker": [0, 1, 1, 0, None, 1] * 9, "sex": ["f", "f", "m", "m", "m", "f"] * 9}
    return inf.ols(ps.Release.exact(schema, ps.measure(schema, table, [1.0, 2.1, 2.5, 1.4, 1.0, 2.0] * 9)), **options)


def _cells(columns: Any, table: Any, epsilon: float | None = None, **options: Any) -> Any:
    cells = ps.Cells(columns, **options)
    schema = ps.RidgeSchema(cells.width + 1, clip_norm=1.5, target_bound=4.0, transform=(cells, *CONSTANT))
    y = np.resize([1.0, 2.1, 2.5, 1.4, 1.0, 2.0], len(table["smoker"]))
    if epsilon is None:
        return inf.ols(ps.Release.exact(schema, ps.measure(schema, table, y, unreadable="leave out"))).cells()
    cohort = ps.Cohort(2, 2, 1_000)
    plan = ps.Plan(schema=schema, cohort=cohort, privacy=promise(epsilon=epsilon, delta=1e-6))
    parts = [ps.measure(schema, {name: each[k::2] for name, each in table.items()}, y[k::2]) for k in (0, 1)]
    return inf.ols(ps.session.aggregate_unmasked(plan, parts, seeded(0))).cells()


SMOKER, SEX = ps.Truth("smoker"), ps.Categories("sex", ("f", "m"))
PEOPLE: dict[str, Any] = {"smoker": [0, 1, 1, 0, 0, 1] * 60, "sex": ["f", "f", "m", "m", "m", "f"] * 60}


def _odds_of_cells() -> Any:
    cells = ps.Cells((SMOKER, SEX))
    schema = ps.ScoreSchema(clip_norm=2**0.5, transform=(cells, *CONSTANT))
    course = ps.Newton.start(schema, ps.Cohort(2, 2, 8_000), promise(epsilon=8.0, delta=1e-6))
    people = {name: each * 10 for name, each in PEOPLE.items()}
    y = (np.random.default_rng(0).random(3_600) < 0.3 + 0.2 * np.array(people["smoker"])).astype(int)
    parts = [({name: each[k::2] for name, each in people.items()}, y[k::2]) for k in (0, 1)]
    return inf.logit(ps.simulate(course, parts, rng=seeded(0))).cells().summary(exponentiate=True)


def _shares_of_ones() -> Any:
    names: dict[str, Any] = {"class_names": ("ill", "well"), "feature_names": ("smoker", "age")}
    schema = ps.ClassSchema(2, 2, "NAD", clip_norm=4.0, **names)
    X = np.c_[np.resize([1.0, 0, 0, 1, 1], 50), np.linspace(0, 1, 50)]
    release = ps.Release.exact(schema, ps.measure(schema, X, ["ill", "well"] * 25))
    return inf.table_one(release, binary=["smoker"])


def _one_class() -> Any:
    rng = np.random.default_rng(0)
    y, X = (np.arange(3_000) % 20 == 0).astype(int), rng.normal(size=(3_000, 2))
    scoring = ps.Scoring(ps.heads.LDA().fit(X[:1_000], y[:1_000]))
    plan = scoring.plan(cohort=ps.Cohort(2, 2, 2_000), privacy=ps.NoPrivacy())
    return inf.head_score(ps.simulate(plan, [(X[1_000:2_000], y[1_000:2_000]), (X[2_000:], y[2_000:])]))


def _noisy_line(epsilon: float, **changes: Any) -> Any:
    X = np.random.default_rng(0).uniform(-1, 1, (2_000, 2))
    schema = ps.RidgeSchema(3, clip_norm=2.0, target_bound=4.0, transform=CONSTANT, **changes)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 4_000), privacy=promise(epsilon=epsilon, delta=1e-6))
    parts = [ps.measure(schema, X[k::2], X[k::2, 0]) for k in (0, 1)]
    return inf.ols(ps.session.aggregate_unmasked(plan, parts, seeded(0)))


def _undeclared() -> Any:
    course = ps.Effect.start(ratios.TWO, ps.Cohort(2, 2, 20_000), promise(epsilon=8.0, delta=1e-6))
    X, y = ratios.records(8_000)
    return inf.effects(ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(0)), course)


def _rare_treatment() -> Any:
    rng = np.random.default_rng(0)
    x = np.clip(rng.normal(size=(4_000, 4)) * 0.4, -1, 1)
    arm = (rng.random(4_000) < 0.06) * 1.0
    X, y = np.c_[x, arm], np.clip(0.1 * arm + 0.3 * x[:, 0] + rng.normal(size=4_000) * 0.15, -1, 1)
    course = trials.course_of(4_000, 8.0, trials.observed_schema("ate", trim=0.02))
    return inf.effect(trials.played(course, X, y, seeded(8)))


def _averages() -> Any:
    number = ps.Number("dose", 0, 10, by=("arm",))
    schema = ps.CountSchema((ps.Categories("arm", ("a", "b")),), (("arm",),), numbers=(number,))
    records = {"arm": ["a", "b"] * 100, "dose": np.linspace(0, 10, 200)}
    release = ps.Release.exact(schema, ps.measure(schema, records))
    return averages_summary(average_rows({"dose": inf.averages(release, "dose")}), release, 0.05)


def _rare() -> Any:
    y = (np.arange(3_000) % 20 == 0).astype(int)
    X = np.random.default_rng(0).normal(size=(3_000, 2)) + 3 * y[:, None]
    scoring = ps.Scoring(ps.heads.LDA().fit(X[:1_000], y[:1_000]))
    plan = scoring.plan(cohort=ps.Cohort(2, 2, 2_000), privacy=ps.NoPrivacy())
    return inf.head_score(ps.simulate(plan, [(X[1_000:2_000], y[1_000:2_000]), (X[2_000:], y[2_000:])]))


def _odds(releases: int, epsilon: float, records: int = 4_000) -> Any:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (records, 1))
    y = (rng.random(records) < 1 / (1 + np.exp(-4 * X[:, 0]))).astype(int)
    schema = ps.ScoreSchema(2, clip_norm=2**0.5, transform=CONSTANT)
    course = ps.Newton.start(schema, ps.Cohort(2, 2, 2 * records), promise(epsilon=epsilon, delta=1e-6), releases)
    return inf.logit(ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(0)))


def _entering() -> Any:
    course = ps.Hazard.start(
        entering.SCHEMA, ps.Cohort(2, 2, 20_000), promise(epsilon=30.0, delta=1e-6), by="arm", rounds=6
    )
    return inf.hazards(entering.played(course, entering.persons(8_000)))


def _late(times: str) -> Any:
    release = late.exact(late.persons(), late.schema_at(times))
    return inf.kaplan_meier(release, **{**late.WORDS, "times": times}, entry="enters", start=1)


def _gaps_in_times() -> Any:
    months, died = ps.Bins("months", (0, 1, 2, 3), missing=True), ps.Categories("died", (0, 1), missing=True)
    schema = ps.CountSchema((months, died), (("months", "died"),))
    records: dict[str, Any] = {"months": [0, 1, 2, None] * 40, "died": [0, 1, None, 1] * 40}
    release = ps.Release.exact(schema, ps.measure(schema, records))
    return inf.kaplan_meier(release, time="months", event="died", times="discrete")


VARIANTS: dict[str, Callable[[], Any]] = {
    "hazards of persons who enter late": _entering,
    "curves of persons who enter late": lambda: _late("discrete"),
    "curves of persons who enter late, by spans": lambda: _late("continuous"),
    "curves of records with gaps": _gaps_in_times,
    "curves with few at risk": lambda: inf.kaplan_meier(
        survival.exact(survival.falling((60, 20, 9), (90, 60, 40)), survival.CROWD), **survival.CURVE, by="sex"
    ).summary(),
    "line with products": products.slopes,
    "subgroups that differ": lambda: products.effects(4_000, 0.1, 0),
    "hazards of three columns": lambda: _hazards(8_000, 8.0),
    "hazards with a check by column": lambda: _hazards(8_000, 8.0, early_bins=2),
    "hazards that noise hides": lambda: _hazards(400, 0.5),
    "hazards after one round": lambda: _hazards(
        20_000, 100.0, {"beta": np.array([2.5, 0.0, 0.0]), "hazard": 0.01}, rounds=1
    ),
    "hazards in whole bins": _whole_bins,
    "hazards of one cause": _causes,
    "adjusted difference, all": lambda: _adjusted("ate"),
    "adjusted difference, treated": lambda: _adjusted("att"),
    "adjusted difference, overlap": lambda: _adjusted("overlap"),
    "adjusted difference that noise hides": lambda: _adjusted("overlap", 1_000, 0.5),
    "balance after weighting": lambda: inf.effect(ratios.run(ratios.OVERLAP, *ratios.records(8_000))).balance_summary(),
    "effect with its weighted balance": lambda: inf.effect(ratios.run(ratios.OVERLAP, *ratios.records(8_000))),
    "ratio": lambda: inf.effect(ratios.run(ratios.RATIO, *ratios.records(8_000))),
    "difference and ratio": lambda: inf.effects(ratios.run(ratios.TWO, *ratios.records(8_000))),
    "missing outcomes": lambda: _missing(6_000, 8.0),
    "missing outcomes that noise hides": lambda: _missing(1_500, 0.5),
    "effect between sites": lambda: between.table(18, 0.2),
    "effect with excluded records": lambda: inf.effects(excluded.played(60.0, 1)),
    "arms with excluded records": lambda: inf.effects(excluded.played(60.0, 1)).by_arm(),
    "few in one arm": lambda: inf.effect(
        trials.played(trials.course_of(600, 8.0, trials.schema_of(0.05)), *_few(600), seeded(2))
    ),
    "targets beyond the bound": lambda: inf.ols(
        _ridge(lambda X: 3 * X[:, 0] + np.random.default_rng(1).normal(size=400))
    ),
    "collinear columns": lambda: inf.ols(_collinear()),
    "two targets": lambda: inf.ols(_ridge(lambda X: np.c_[X[:, 0], X[:, 1]] / 2, targets=2), target=0),
    "gaps as cells": _gaps,
    "gaps as cells, on request": lambda: _gaps(gaps_as_cells=True),
    "gaps excluded": lambda: _cells(
        (SMOKER, SEX), {**PEOPLE, "smoker": [None, *PEOPLE["smoker"][1:]]}, missing="left out"
    ),
    "cells that say the same": lambda: _cells(
        (SMOKER, ps.Truth("again")), {**PEOPLE, "again": PEOPLE["smoker"]}, missing="left out"
    ),
    "cells under much noise": lambda: _cells((SMOKER, SEX), PEOPLE, 2.0),
    "odds ratios of cells": _odds_of_cells,
    "shares of ones": _shares_of_ones,
    "a head that predicts one class": _one_class,
    "line under much noise": lambda: _noisy_line(0.05),
    "line on a coarse grid": lambda: _noisy_line(8.0, grid_bits=4),
    "nothing declared": _undeclared,
    "few treated": _rare_treatment,
    "few records in a trial": lambda: inf.effect(
        trials.played(trials.course_of(60, 0.05), *trials.world(60, np.random.default_rng(0)), seeded(0))
    ),
    "arms that the probability does not give": lambda: inf.effect(
        trials.played(trials.course_of(4_000, 8.0), *trials.world(4_000, np.random.default_rng(0), 0.2), seeded(0))
    ),
    "odds that a next round could move": lambda: _odds(3, 8.0),
    "odds ratios": lambda: _odds(4, 8.0).summary(exponentiate=True),
    "odds after one round": lambda: _odds(1, 100.0),
    "odds with a first text that nobody has": lambda: TABLES["logit"](World(0, 1), "first", 8.0),
    "odds with two levels of the same records": lambda: TABLES["logit, two columns alike"](World(200, 1), "last", 8.0),
    "odds with a level in which nobody is ill": lambda: TABLES["logit"](World(400, 1, events=False), "last", 8.0),
    "odds with a cell in which nobody is ill": lambda: TABLES["logit of cells"](
        World(400, 1, events=False), "last", 8.0
    ),
    "treated by choice, and a level that nobody has": lambda: TABLES["effect, not randomised"](
        World(0, 1), "last", 8.0
    ),
    "missing outcomes, and a level that nobody has": lambda: TABLES["effect, missing outcomes"](
        World(0, 1), "last", 8.0
    ),
    "odds that noise hides": lambda: _odds(4, 0.3, 300),
    "averages": _averages,
    "rare outcomes of a head": _rare,
}
"""Tables by what makes them print something else."""


def _few(records: int) -> tuple[Any, Any]:
    return trials.world(records, np.random.default_rng(3), 0.05)


def _collinear() -> ps.Release:
    x = np.random.default_rng(0).uniform(-1, 1, (400, 1))
    schema = ps.RidgeSchema(3, clip_norm=2.0, target_bound=4.0, transform=CONSTANT)
    return ps.Release.exact(schema, ps.measure(schema, np.c_[x, x], x[:, 0]))
