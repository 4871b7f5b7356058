"""One set of names for the columns of every ``to_frame``: what a name means is written once."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import privstats as ps
import threat_models
from privstats import randomness
from privstats.contrib import imputation
from privstats.contrib.site_levels import random_intercept
from privstats.contrib.synthetic.rows import SyntheticRows
from privstats.inference.frame_columns import FRAME_COLUMNS
from privstats.transforms import ConstantFeature
from tests.contrib.imputation import counts as gap_counts
from tests.without import needing

pandas = pytest.importorskip("pandas")
inf = ps.inference

TERMS: dict[str, Any] = {"model": "central", "unit": "record", "adjacency": "add-remove", "epsilon": 8.0, "delta": 1e-6}


def _ridge() -> ps.Release:
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    schema = ps.RidgeSchema(3, clip_norm=2.0, target_bound=4.0, transform=(ConstantFeature(1.0),))
    return ps.Release.exact(schema, ps.measure(schema, X, X @ [1.0, 0.5] + X[:, 0] ** 2))


def _mixed() -> Any:
    pulls, sites = (0.4, 4.0, 30.0, 400.0), np.random.default_rng(0)
    schema = ps.SitesSchema(3, clip_norm=16.0, pulls=pulls, transform=(ConstantFeature(1.0),))
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(20, 20, 2_000), privacy=ps.NoPrivacy())
    X, levels = sites.uniform(-1, 1, (20, 50, 1)), sites.normal(size=(20, 1))
    y = 2 * X[:, :, 0] + levels + sites.normal(size=(20, 50)) / 10
    parts = [ps.measure(schema, *site) for site in zip(X, y, strict=True)]
    return inf.mixed(ps.session.aggregate_unmasked(plan, parts), sizes=(20, 100))


def _levels() -> Any:
    """A random intercept by site, from a column per site."""
    site, rng = np.repeat(np.arange(20), 50), np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, 1_000), np.eye(20)[site]])
    y = 2 * X[:, 0] + rng.normal(size=20)[site] / 2 + rng.normal(size=1_000)
    schema = ps.RidgeSchema(21, clip_norm=2**0.5, target_bound=9.0)
    return random_intercept(ps.Release.exact(schema, ps.measure(schema, X, y)), sites=range(1, 21))


def _cells() -> Any:
    cells = ps.Cells((ps.Truth("smoker"), ps.Categories("sex", ("f", "m"))))
    map_ = (cells, ConstantFeature(1.0))
    schema = ps.RidgeSchema(cells.width + 1, clip_norm=1.5, target_bound=4.0, transform=map_)
    table = {"smoker": [0, 1, 1, 0] * 9, "sex": ["f", "f", "m", "m"] * 9}
    return inf.ols(ps.Release.exact(schema, ps.measure(schema, table, [1.0, 2.1, 2.5, 1.4] * 9))).cells()


def _logit(family: str = "logistic") -> Any:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (4_000, 1))
    y = (rng.random(4_000) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    bound: dict[str, Any] = {} if family == "logistic" else {"family": family, "target_bound": 1.0}
    schema = ps.ScoreSchema(2, clip_norm=2**0.5, transform=(ConstantFeature(1.0),), **bound)
    course = ps.Newton.start(schema, ps.Cohort(2, 2, 8_000), ps.Privacy(**TERMS))
    releases = ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=randomness.seeded(0))
    return (inf.logit if family == "logistic" else inf.poisson)(releases)


def _hazards() -> Any:
    bins = ps.Bins("months", (0, 6, 12, 18))
    last = (ConstantFeature(1.0),)
    names = {"event": "died", "feature_names": ("arm",), "times": "continuous"}
    schema = ps.HazardSchema(2, clip_norm=2.0, bins=bins, transform=last, **names)
    course = ps.Hazard.start(schema, ps.Cohort(2, 2, 4_000), ps.Privacy(**TERMS), by="arm")
    arm = np.arange(2_000) % 2
    died = np.random.default_rng(0).exponential(30 / np.exp(0.7 * arm))
    table = {"arm": arm, "months": np.minimum(died, 20.0), "died": (died <= 20.0) * 1}
    parts = [({name: values[k::2] for name, values in table.items()}, None) for k in (0, 1)]
    return inf.hazards(ps.simulate(course, parts, rng=randomness.seeded(0)))


def _effects() -> Any:
    asked: dict[str, Any] = {"treatment": "arm", "outcome": {"relapse": (0, 1), "death": (0, 1)}, "probability": 0.5}
    schema = ps.EffectSchema.of({"age": (20, 90)}, subgroups=(ps.Bins("age", (20, 50, 90)),), **asked)
    declared = ps.course.Analysis(primary=("relapse",))
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 4_000), ps.Privacy(**TERMS), analysis=declared)
    place, arm = np.arange(2_000) // 2 % 10, np.arange(2_000) % 2
    X, y = np.column_stack([np.linspace(20, 90, 2_000), arm]), np.column_stack([place < 3 + 2 * arm, place < 2])
    releases = ps.simulate(course, [(X[::3], y[::3]), (X[1::3], y[1::3])], rng=randomness.seeded(0))
    return inf.effects(releases, course)


def _looks() -> Any:
    schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"relapse": (0, 1)}, probability=0.5)
    declared = ps.course.Analysis(primary=("relapse",), looks=ps.course.Looks(2, "pocock"))
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2_000), ps.Privacy(**TERMS), analysis=declared)
    arm, y = np.arange(2_000) % 2, np.arange(2_000) // 2 % 10 < 3
    X = np.column_stack([np.linspace(20, 90, 2_000), arm])
    releases = ps.simulate(course, [(X[::3], y[::3]), (X[1::3], y[1::3])], rng=randomness.seeded(0))
    return inf.looks(releases, course)


def _balance() -> Any:
    ends = np.array([0.1, -0.2]), np.array([0.3, 0.0])
    weighted = np.array([[0.0, -0.1, 0.1], [0.05, 0.0, 0.1]])
    found = (np.ones((2, 2)), np.array([0.2, -0.1]), *ends, np.array([True, True]))
    return inf.Balance(("age", "bmi"), *found, weighted=weighted)


def _means() -> Any:
    names: dict[str, Any] = {"class_names": ("ill", "well"), "feature_names": ("dose", "age")}
    schema = ps.ClassSchema(2, 2, "NAD", clip_norm=4.0, **names)
    X = [[1.0, 0.5], [2.0, 0.7], [1.5, 0.6], [0.2, 0.4], [0.1, 0.5], [0.3, 0.3]]
    return inf.table_one(ps.Release.exact(schema, ps.measure(schema, X, ["ill"] * 3 + ["well"] * 3)))


def _counted(tables: tuple[tuple[str, ...], ...]) -> ps.Release:
    months, died = ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1))
    schema = ps.CountSchema((months, died, ps.Categories("arm", ("a", "b"))), tables)
    records = {"months": [0, 1, 2, 2] * 20, "died": [1, 0, 0, 1] * 20, "arm": ["a", "a", "b", "b"] * 20}
    return ps.Release.exact(schema, ps.measure(schema, records))


def _curves(by: str | None) -> Any:
    return inf.kaplan_meier(
        _counted((("months", "died", "arm"),)), time="months", event="died", by=by, times="discrete"
    )


def _follow_up() -> Any:
    return inf.follow_up(_counted((("months", "died", "arm"),)), time="months", event="died", times="discrete")


def _gaps() -> Any:
    schema = ps.CountSchema((ps.Bins("bmi", (15, 25, 45), missing=True),), (("bmi",),))
    return inf.missing_values(ps.Release.exact(schema, ps.measure(schema, {"bmi": [20.0, None, 30.0, 22.0] * 25})))


def _incidence() -> Any:
    release = _counted((("months", "died"),))
    return inf.cumulative_incidence(release, time="months", event="died", times="discrete")


def _score() -> Any:
    y = np.arange(900) % 2
    X = np.random.default_rng(0).normal(size=(900, 2)) + 2 * y[:, None]
    scoring = ps.Scoring(ps.heads.LDA().fit(X[:300], y[:300]))
    plan = scoring.plan(cohort=ps.Cohort(2, 2, 600), privacy=ps.NoPrivacy())
    return inf.head_score(ps.simulate(plan, [(X[300:600], y[300:600]), (X[600:], y[600:])]))


def _card() -> Any:
    cells = ps.Cells((ps.Numeric("age", (40, 65)), ps.Truth("smoker")))
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,), class_names=("well", "ill"))
    table = {"age": [30, 50, 70, 80, 35, 45] * 9, "smoker": [0, 0, 1, 1, 1, 0] * 9}
    release = ps.Release.exact(schema, ps.measure(schema, table, ["well", "well", "ill", "ill", "ill", "well"] * 9))
    return inf.scorecard(ps.heads.LDA().fit_release(release), release)


EXAMPLES: dict[str, Callable[[], Any]] = {
    "Regression": lambda: inf.ols(_ridge()),
    "LevelsRegression": _levels,
    "Regression of odds": _logit,
    "Regression of rates": lambda: _logit("poisson"),
    "MixedRegression": _mixed,
    "CellTable": _cells,
    "HazardRatios": _hazards,
    "EffectRows": _effects,
    "ArmTable": lambda: _effects().by_arm(),
    "LookTable": _looks,
    "EffectTable": lambda: _effects()["relapse"],
    "Balance": _balance,
    "GroupMeans": _means,
    "GroupShares": lambda: inf.table_one(_counted((("months", "arm"),)), by="arm"),
    "SurvivalCurve": lambda: _curves(None),
    "SurvivalCurves": lambda: _curves("arm"),
    "FollowUp": _follow_up,
    "MissingTable": _gaps,
    "RestrictedMeans": lambda: inf.restricted_means(_curves("arm"), 2.0),
    "RisksAt": lambda: inf.risks_at(_curves("arm"), 0.0),
    "Incidence": _incidence,
    "HeadScore": _score,
    "Scorecard": _card,
    "ImputedOdds": lambda: imputation.logit(gap_counts.noisy(gap_counts.records(6_000), 0.3), outcome="ill"),
    "Risks": lambda: imputation.risks(gap_counts.noisy(gap_counts.records(6_000), 0.3), outcome="ill", by="dose"),
}


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith("__main__"):
            try:
                yield importlib.import_module(found.name)
            except ImportError:
                continue


def frames() -> set[str]:
    """Every class of both packages that has ``to_frame`` and can be made; synthetic rows have a user's columns."""
    return {
        each.__name__
        for package in (ps, threat_models)
        for module in _modules(package)
        for _, each in inspect.getmembers(module, inspect.isclass)
        if hasattr(each, "to_frame") and each.__module__ == module.__name__ and not inspect.isabstract(each)
        if each is not SyntheticRows
    }


@needing("threat_models", *(f"privstats.contrib.{room}" for room in ("imputation", "site_levels", "synthetic")))
def test_every_class_with_to_frame_has_an_example_here() -> None:
    assert frames() == {name.split()[0] for name in EXAMPLES}


def _frames_of(found: Any) -> Iterator[Any]:
    yield found.to_frame()
    ratios = getattr(found, "model", getattr(getattr(found, "regression", None), "model", ""))
    if ratios in (
        "Logistic regression",
        "Logistic regression with imputed gaps",
        "Poisson regression",
        "Hazard ratios",
    ):
        yield found.to_frame(exponentiate=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_columns_are_those_of_the_dictionary(name: str) -> None:
    for frame in _frames_of(EXAMPLES[name]()):
        assert len(frame) > 0
        assert list(frame.index) == list(range(len(frame))), "names stand in columns, so that frames can be stacked"
        assert set(frame.columns) <= set(FRAME_COLUMNS), set(frame.columns) - set(FRAME_COLUMNS)
