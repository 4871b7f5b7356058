"""Every printed number under its name: the law of each P value, and how many records, of all readers in many worlds.

``MAKERS`` are the readers, ``WORLDS`` what their records and promise are. Each fact is a sentence about a table of any
reader, and holds in every world.
"""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib import imputation
from privstats.contrib.site_levels import random_intercept
from privstats.errors import PlanError, ReleaseError
from privstats.inference.counts.averages import average_rows, averages_summary
from privstats.inference.counts.survival import _RISES
from privstats.inference.description import _FALL, Count, Law
from privstats.inference.inversion import quantile, two_sided
from privstats.inference.paragraph import proportions_summary
from privstats.inference.regression.summary import _PARTS_BELOW
from privstats.inference.treatment_effects.influence_sums import InfluenceSums, _difference
from privstats.printable import levels_text
from privstats.randomness import seeded
from privstats.transforms import Centre, ConstantFeature, Levels, Scale
from privstats.workflows.tables.rows import READERS
from tests.made import promise

pandas = pytest.importorskip("pandas")

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning"),
]
inf = ps.inference
ALPHA = 0.05
HIV, ARM = ps.Categories("hiv", ("negative", "positive")), ps.Categories("arm", ("placebo", "drug"))
CONSTANT = ConstantFeature(1.0)

WORLDS: dict[str, tuple[float | None, float]] = {
    "exact": (None, 1.0),
    "epsilon 8": (8.0, 1.0),
    "epsilon 1": (1.0, 1.0),
    "few records": (8.0, 0.15),
}
"""Epsilon, and the share of a maker's records, by world."""


def _released(schema: Any, epsilon: float | None, records: Any, target: Any = None) -> ps.Release:
    n = len(next(iter(records.values())) if isinstance(records, dict) else records)
    terms: Any = ps.NoPrivacy() if epsilon is None else promise(epsilon=epsilon, delta=1e-6)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2 * n), privacy=terms)
    parts = []
    for k in (0, 1):
        part = pandas.DataFrame(records)[k::2] if isinstance(records, dict) else records[k::2]
        parts.append(ps.measure(schema, part, *([] if target is None else [target[k::2]])))
    return ps.session.aggregate_unmasked(plan, parts, seeded(0))


def _course(course: Any, records: Any, target: Any = None) -> list[Any]:
    shards = []
    for k in (0, 1):
        part = pandas.DataFrame(records)[k::2] if isinstance(records, dict) else records[k::2]
        shards.append((part, None if target is None else target[k::2]))
    return list(ps.simulate(course, shards, rng=seeded(0)))


def _people(n: int) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(n)
    age, hiv = rng.uniform(-1, 1, n), rng.choice(HIV.values, n)
    return {"age": age, "hiv": hiv}, 0.5 * age + 0.3 * (hiv == "positive") + rng.normal(size=n) / 2


def _line(folds: int | None) -> Callable[[float | None, float], Any]:
    def made(epsilon: float | None, part: float) -> Any:
        records, y = _people(int(6_000 * part))
        X = np.column_stack([records["age"], records["hiv"] == "positive"])
        named: Any = {"feature_names": ("age", "hiv"), "transform": (CONSTANT,)}
        schema = ps.RidgeSchema(3, clip_norm=3**0.5, target_bound=4.0, **named, **({"folds": folds} if folds else {}))
        return inf.ols(_released(schema, epsilon, X, y))

    return made


def _sites(groups: int) -> Callable[[float | None, float], Any]:
    def made(epsilon: float | None, part: float) -> Any:
        rng, schema = np.random.default_rng(0), ps.SitesSchema(2, clip_norm=2.0, groups=groups)
        terms: Any = ps.NoPrivacy() if epsilon is None else promise(epsilon=epsilon, delta=1e-6)
        plan = ps.Plan(schema=schema, cohort=ps.Cohort(24, 24, 50_000), privacy=terms)
        parts = []
        for _ in range(24):
            x = rng.uniform(-1, 1, (int(600 * part), 1))
            parts.append(ps.measure(schema, x, x[:, 0] / 2 + rng.normal(size=len(x)) / 4))
        return inf.fixed_effects(ps.session.aggregate_unmasked(plan, parts, seeded(0)))

    return made


def _random_intercept(epsilon: float | None, part: float) -> Any:
    rng = np.random.default_rng(1)
    site = np.repeat(np.arange(12), int(300 * part))
    X = np.column_stack([rng.uniform(-1, 1, len(site)), np.eye(12)[site]])
    y = X[:, 0] / 2 + rng.normal(size=12)[site] / 2 + rng.normal(size=len(site)) / 2
    schema = ps.RidgeSchema(13, clip_norm=2**0.5, target_bound=9.0)
    return random_intercept(_released(schema, epsilon, X, y), sites=range(1, 13))


def _mixed(epsilon: float | None, part: float) -> Any:
    if epsilon is not None:
        raise ReleaseError("a random intercept of several pulls is read from exact sums alone")
    rng = np.random.default_rng(2)
    schema = ps.SitesSchema(3, clip_norm=16.0, pulls=(0.4, 4.0, 30.0, 400.0), transform=(CONSTANT,))
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(20, 20, 2_000), privacy=ps.NoPrivacy())
    X, levels = rng.uniform(-1, 1, (20, 50, 1)), rng.normal(size=(20, 1))
    y = 2 * X[:, :, 0] + levels + rng.normal(size=(20, 50)) / 10
    parts = [ps.measure(schema, *site) for site in zip(X, y, strict=True)]
    return inf.mixed(ps.session.aggregate_unmasked(plan, parts), sizes=(20, 100))


def _private(epsilon: float | None) -> float:
    if epsilon is None:
        raise ReleaseError("rounds need a promise")
    return epsilon


def _rounds(family: str) -> Callable[[float | None, float], Any]:
    def made(epsilon: float | None, part: float) -> Any:
        records, y = _people(int(8_000 * part))
        rng, logs = np.random.default_rng(3), y - 0.5
        target = rng.random(len(y)) < 1 / (1 + np.exp(-logs)) if family == "logistic" else rng.poisson(np.exp(logs))
        more: Any = {} if family == "logistic" else {"target_bound": 6.0}
        named: Any = {"feature_names": ("age", "hiv"), "transform": (Levels((HIV,)), CONSTANT)}
        schema: Any = ps.ScoreSchema(3, clip_norm=3**0.5, family=family, **named, **more)  # type: ignore[arg-type]
        cohort = ps.Cohort(2, 2, 2 * len(y))
        course = ps.Newton.start(schema, cohort, promise(epsilon=_private(epsilon), delta=1e-6))
        read = inf.logit if family == "logistic" else inf.poisson
        return read(_course(course, records, target.astype(int)))

    return made


def _hazards(strata: bool) -> Callable[[float | None, float], Any]:
    def made(epsilon: float | None, part: float) -> Any:
        n = int(8_000 * part)
        rng = np.random.default_rng(4)
        arm, site = rng.choice(ARM.values, n), rng.choice(["north", "south"], n)
        died = rng.exponential(np.where(arm == "drug", 40, 25) * np.where(site == "north", 1.0, 1.5))
        seen = np.minimum(died, rng.uniform(6, 25, n))
        records = {"arm": arm, "site": site, "months": seen, "died": (died <= seen) * 1}
        schema = ps.HazardSchema(
            2,
            clip_norm=2**0.5,
            bins=ps.Bins("months", (0, 6, 12, 18, 24)),
            event="died",
            feature_names=("arm",),
            transform=(Levels((ARM,)), Centre((0.5,)), Scale((0.5,)), CONSTANT),
            times="continuous",
            strata=ps.Categories("site", ("north", "south")) if strata else None,
        )
        terms = promise(epsilon=_private(epsilon), delta=1e-6)
        return inf.hazards(_course(ps.Hazard.start(schema, ps.Cohort(2, 2, 2 * n), terms), records))

    return made


def _effects(**asked: Any) -> Callable[[float | None, float], Any]:
    def made(epsilon: float | None, part: float) -> Any:
        n = int(4_000 * part)
        rng = np.random.default_rng(5)
        age, arm = rng.uniform(20, 90, n), rng.choice(ARM.values, n)
        well = np.where(rng.random(n) < 0.3 + 0.2 * (arm == "drug"), "yes", "no")
        schema = ps.EffectSchema.of(
            {"age": (20, 90)},
            treatment={"arm": ARM.values},
            outcome={"well": ("no", "yes")},
            **({"probability": 0.5} | asked),
        )
        terms: Any = ps.NoPrivacy() if epsilon is None else promise(epsilon=epsilon, delta=1e-6)
        course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * n), terms)
        return inf.effects(_course(course, {"age": age, "arm": arm}, well))

    return made


_SUBGROUPS = (ps.Bins("age", (20, 55, 90)),)


def _counted(epsilon: float | None, part: float) -> ps.Release:
    n = int(4_000 * part)
    rng = np.random.default_rng(6)
    arm, bmi = rng.choice(ARM.values, n), rng.normal(27, 5, n).clip(15, 45)
    died, left = rng.exponential(np.where(arm == "drug", 25, 15)), rng.uniform(0, 24, n)
    records = {
        "arm": arm,
        "bmi": np.where(rng.random(n) < 0.1, np.nan, bmi),
        "months": np.minimum(died, left).clip(0, 23.9),
        "died": np.where(died <= left, "yes", "no"),
        "ended": np.where(died <= left, rng.choice(["relapse", "death"], n), "no"),
        "hours": rng.uniform(0, 80, n),
    }
    schema = ps.CountSchema(
        variables=(
            ARM,
            ps.Bins("bmi", (15, 20, 25, 30, 45), missing=True),
            ps.Bins("months", tuple(range(0, 27, 3)), open="above"),
            ps.Categories("died", ("no", "yes")),
            ps.Categories("ended", ("no", "relapse", "death")),
        ),
        tables=(("arm", "bmi"), ("arm", "months", "died"), ("arm", "months", "ended")),
        numbers=(ps.Number("hours", 0, 80, by=("arm",)),),
    )
    return _released(schema, epsilon, records)


TIMES: dict[str, Any] = {"time": "months", "event": "died", "times": "continuous"}


def _means(*, tests: bool) -> Callable[[float | None, float], Any]:
    def made(epsilon: float | None, part: float) -> Any:
        n = int(2_000 * part)
        rng = np.random.default_rng(7)
        group, smokes = rng.choice(["ill", "well"], n), rng.integers(0, 2, n)
        X = np.column_stack([rng.uniform(0, 1, n) + 0.1 * (group == "ill"), smokes])
        names: Any = {"class_names": ("ill", "well"), "feature_names": ("dose", "smokes")}
        schema = ps.ClassSchema(2, 2, "NAD", clip_norm=2.0, **names)
        return inf.table_one(_released(schema, epsilon, X, group), binary=["smokes"], tests=tests)

    return made


def _score(epsilon: float | None, part: float) -> Any:
    n = int(2_000 * part)
    y = np.arange(300 + n) % 2
    X = np.random.default_rng(0).normal(size=(len(y), 2)) + 2 * y[:, None]
    scoring = ps.Scoring(ps.heads.LDA().fit(X[:300], y[:300]))
    terms: Any = ps.NoPrivacy() if epsilon is None else promise(epsilon=epsilon, delta=1e-6)
    plan = scoring.plan(cohort=ps.Cohort(2, 2, 2 * n), privacy=terms)
    parts = [(X[300 + k :: 2], y[300 + k :: 2]) for k in (0, 1)]
    return inf.head_score(ps.simulate(plan, parts, rng=seeded(0)))


def _gaps(epsilon: float | None, part: float) -> ps.Release:
    n = int(6_000 * part)
    rng = np.random.default_rng(8)
    dose = rng.choice(["low", "high"], n)
    ill = np.where(rng.random(n) < 0.2 + 0.2 * (dose == "high"), "yes", "no")
    given: Any = np.where(rng.random(n) < 0.2, None, dose)  # type: ignore[call-overload]
    low = ps.Categories("dose", ("low", "high"), missing=True)
    schema = ps.CountSchema((low, ps.Categories("ill", ("no", "yes"))), (("dose", "ill"),))
    return _released(schema, epsilon, {"dose": given, "ill": ill})


def _averages(epsilon: float | None, part: float) -> Any:
    release = _counted(epsilon, part)
    return averages_summary(average_rows({"hours": inf.averages(release, "hours")}), release, ALPHA)


def _proportions(epsilon: float | None, part: float) -> Any:
    release = _counted(epsilon, part)
    return proportions_summary(inf.proportions(release, "bmi"), release, ALPHA)


MAKERS: dict[str, Callable[[float | None, float], Any]] = {
    "line": _line(None),
    "line, 20 folds": _line(20),
    "fixed effects": _sites(1),
    "fixed effects, 8 groups": _sites(8),
    "random intercept": _random_intercept,
    "random intercept, REML": _mixed,
    "odds": _rounds("logistic"),
    "rates": _rounds("poisson"),
    "hazards": _hazards(strata=False),
    "hazards, strata": _hazards(strata=True),
    "effect, both measures": _effects(measure="both"),
    "effects in subgroups": _effects(subgroups=_SUBGROUPS),
    "adjusted difference": _effects(probability=None, estimand="overlap", trim=0.1),
    "arms": lambda *world: _effects(measure="both")(*world).by_arm(),
    "curves": lambda *world: inf.kaplan_meier(_counted(*world), by="arm", **TIMES),
    "risks at a time": lambda *world: inf.risks_at(inf.kaplan_meier(_counted(*world), by="arm", **TIMES), 3),
    "restricted means": lambda *world: inf.restricted_means(inf.kaplan_meier(_counted(*world), by="arm", **TIMES), 3),
    "follow-up": lambda *world: inf.follow_up(_counted(*world), by="arm", **TIMES),
    "incidence": lambda *world: inf.cumulative_incidence(
        _counted(*world), time="months", event="ended", by="arm", times="continuous"
    ),
    "table one of counts": lambda *world: inf.table_one(_counted(*world), by="arm"),
    "table one of counts, tests": lambda *world: inf.table_one(_counted(*world), by="arm", tests=True),
    "table one of means": _means(tests=False),
    "table one of means, tests": _means(tests=True),
    "missing values": lambda *world: inf.missing_values(_counted(*world), by="arm"),
    "averages": _averages,
    "proportions": _proportions,
    "score": _score,
    "imputed odds": lambda *world: imputation.logit(_gaps(*world), outcome="ill"),
    "imputed risks": lambda *world: imputation.risks(_gaps(*world), outcome="ill", by="dose"),
}
"""Readers, by what they print."""

CASES = [pytest.param(maker, world, id=f"{maker}, {world}") for maker in MAKERS for world in WORLDS]


@cache
def _made(maker: str, world: str) -> Any:
    return MAKERS[maker](*WORLDS[world])


def table_in(maker: str, world: str) -> Any:
    """Return a reader's table, or skip where the reader refuses that world."""
    try:
        return _made(maker, world)
    except (PlanError, ReleaseError) as refusal:
        pytest.skip(str(refusal))


def _summary(table: Any) -> Any:
    return table if isinstance(table, inf.Summary) else table.summary()


def _rows(table: Any) -> list[dict[str, Any]]:
    return [] if isinstance(table, inf.Summary) else list(table.to_rows())


def _is_noisy(world: str) -> bool:
    return WORLDS[world][0] is not None


@pytest.mark.parametrize(("maker", "world"), CASES)
def test_each_p_value_has_degrees_or_a_named_law(maker: str, world: str) -> None:
    table = table_in(maker, world)
    summary, rows = _summary(table), _rows(table)
    tested = [row for row in rows if not math.isnan(row.get("p_value", math.nan))]
    if not tested:
        assert not any(column.startswith("P") for column in summary.columns)
        return
    if "test_df" in tested[0]:
        assert all(row["test_df"] > 0 for row in tested)
        assert any(sentence.startswith("P: ") for sentence in summary.foot)
        return
    degrees = [row["df"] for row in tested]
    assert all(each > 0 or math.isnan(each) for each in degrees)
    normal = all(math.isinf(each) or math.isnan(each) for each in degrees)
    assert ("P>|z|" if normal else "P>|t|") in summary.columns
    stated = dict(summary.head).get("degrees of freedom")
    if not normal and stated is None:
        assert "df" in summary.columns
    if stated is not None:
        assert {f"{each:,.0f}" for each in degrees} == {stated}, "the head states the degrees of every row"
    assert any(sentence.startswith("P values and intervals are ") for sentence in summary.foot)


@pytest.mark.parametrize(("maker", "world"), CASES)
def test_p_value_and_interval_follow_from_the_printed_row(maker: str, world: str) -> None:
    table = table_in(maker, world)
    law = getattr(_summary(table).about, "law", None)
    for row in _rows(table):
        if law is None or not row.get("reported") or not {"std_error", "df", "p_value"} <= set(row):
            continue
        null = 1.0 if row.get("measure") == "ratio" else 0.0
        estimate, error, p = row["estimate"], row["std_error"], row["p_value"]
        low, high = row["conf_low"], row["conf_high"]
        if math.isnan(p):
            continue
        assert low <= estimate <= high
        if abs(p - ALPHA) > 1e-9:
            assert (p < ALPHA) == (not low <= null <= high), "a P value below alpha is an interval without the null"
        if row.get("measure") == "ratio" and "group" in row:
            continue  # on the scale of logarithms, which the foot states
        again = float(two_sided(np.asarray(abs(estimate - null) / error), row["df"]))
        reach = quantile(ALPHA, row["df"]) * error
        if not law.inverted:
            assert p == pytest.approx(again, rel=1e-6, abs=1e-12) or (_is_noisy(world) and p >= again)
            assert (low, high) == pytest.approx((estimate - reach, estimate + reach), rel=1e-6, abs=1e-9)
        else:
            assert high - low >= 2 * reach * (1 - 1e-6), "inversion is never narrower than the printed std err"


_MEDIAN = re.compile(r"\d+ to \d+ \[\d+ to \d+; \d+ (to \d+|or more)\]")
_NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


def _is_among(text: str, values: list[float]) -> bool:
    """Return whether a printed number is one of these values, or 100 times one, to its digits."""
    number = float(text.replace(",", ""))
    mantissa, _, exponent = text.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    near = [k * each for value in values for each in (value, max(value, 0.0)) for k in (1, 100)]
    return any(abs(number - each) <= 0.5001 * unit for each in near)


@pytest.mark.parametrize(("maker", "world"), CASES)
def test_printed_numbers_are_those_of_the_data(maker: str, world: str) -> None:
    table = table_in(maker, world)
    summary, rows = _summary(table), _rows(table)
    if not rows:
        return
    values = [
        float(value)
        for row in rows
        for value in row.values()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    ]
    names = {str(value) for row in rows for value in row.values() if isinstance(value, str)}
    for name, *cells in summary.rows:
        for cell in cells:
            if cell in names or "<" in cell or cell in ("-inf", "inf"):
                continue
            for number in _NUMBER.findall(cell):
                assert _is_among(number.rstrip(","), values), (name, cell, number)


@pytest.mark.parametrize(("maker", "world"), CASES)
def test_every_form_has_the_number_of_records(maker: str, world: str) -> None:
    summary = _summary(table_in(maker, world))
    stated = [value for name, value in summary.head if name.startswith("records")]
    columns = [column for column in summary.columns if column in ("records", "n", "analysed")]
    assert stated or columns
    for text in (summary.as_text(), summary.as_html(), summary.as_latex(), summary.as_markdown()):
        assert all(value.partition(" (")[0] in text for value in stated)
    assert summary.about is not None
    data = summary.about.data
    assert len(data["counts"]) == len(summary.about.counts)
    if summary.methods:
        assert all(count.text in summary.methods for count in summary.about.counts if count.value is not None)


@pytest.mark.parametrize(("maker", "world"), CASES)
def test_a_count_says_that_it_is_noisy_exactly_where_it_is(maker: str, world: str) -> None:
    table, noisy = table_in(maker, world), _is_noisy(world)
    summary = _summary(table)
    assert summary.about is not None
    known = [each for each in summary.about.counts if each.value is not None]
    assert all((each.sigma > 0) == noisy and ("noisy" in each.text) == noisy for each in known), known
    for row in _rows(table):
        for name in ("n", "n_event", "n_risk"):
            if name in row and not math.isnan(row[name]):
                error = row[f"{name}_std_error"]
                assert (error > 0) == noisy or (name == "n_event" and row.get("time") == 0), (name, row)
    if not noisy:
        text = summary.as_text()
        assert "(SE " not in text
        assert "noise hides" not in text
        assert "SE" not in summary.columns
    if noisy and maker == "curves":
        assert "SE" in summary.columns
        assert _RISES in summary.foot


def test_folds_print_their_own_degrees_and_not_those_of_the_records() -> None:
    summary = table_in("line, 20 folds", "epsilon 8").summary()
    place = summary.columns.index("df")
    assert {row[place] for row in summary.rows} == {"19"}
    assert "degrees of freedom" not in dict(summary.head)
    law = summary.about.law
    assert law.reason == "20 folds less 1"
    assert set(law.sentences) <= set(summary.foot)


def test_an_effect_of_few_degrees_prints_them_and_uses_them() -> None:
    """A variance that is mostly estimated from noisy squares may have four degrees, where 1,567 records are counted."""
    table = table_in("effects in subgroups", "epsilon 8").tables[0]
    few = replace(table, ratio=replace(table.ratio, degrees=4.031))
    (row,), summary = few.to_rows(), few.summary()
    (printed,) = summary.rows
    assert row["df"] == 4.031
    assert printed[summary.columns.index("df")] == "4.031"
    statistic = np.asarray(row["estimate"] / row["std_error"])
    assert row["p_value"] == pytest.approx(float(two_sided(statistic, 4.031)), rel=0.01)
    assert row["conf_high"] - row["conf_low"] == pytest.approx(2 * quantile(ALPHA, 4.031) * row["std_error"], rel=0.01)


def test_degrees_fall_as_noise_leaves_the_variance_and_rise_again() -> None:
    """As the foot of effects states: the variance of 1,566 influences under noise of three sizes."""
    found = [
        _difference(InfluenceSums(1_566.0, 1_566.0, 0.0, 1_565.0, sigma, sigma, sigma), 1.0, 1).degrees
        for sigma in (6.0, 0.7, 1e-3)
    ]
    assert found[1] < found[0]
    assert found[1] < found[2]
    assert _FALL in table_in("effects in subgroups", "epsilon 8").summary().foot
    assert _FALL not in table_in("effects in subgroups", "exact").summary().foot


def test_a_standard_error_of_few_parts_can_be_below_that_of_the_noise() -> None:
    fits = [table_in("fixed effects, 8 groups", world) for world in ("epsilon 8", "epsilon 1", "few records")]
    fits += [table_in("line, 20 folds", world) for world in ("epsilon 8", "epsilon 1", "few records")]
    below = [bool((fit.noise_bse > fit.bse)[fit.reported].any()) for fit in fits]
    said = [_PARTS_BELOW in fit.summary().foot for fit in fits]
    assert below == said


def test_a_column_of_two_texts_names_the_text_that_it_counts() -> None:
    table = table_in("odds", "epsilon 8")
    assert [row[0] for row in table.summary().rows] == ["const", "age", "hiv: positive"]
    last = table.to_rows()[-1]
    assert (last["term"], last["level"], last["compared_with"]) == ("hiv", "positive", "negative")


def test_an_effect_names_its_direction_and_arms_their_column() -> None:
    head = dict(table_in("effects in subgroups", "epsilon 8").summary().head)
    assert head["effect"].startswith("difference in risk of well: ")
    assert head["effect"].endswith("arm: drug less arm: placebo")
    arms = table_in("arms", "epsilon 8").summary()
    names = [row[0].strip() for row in arms.rows]
    assert {"arm: drug", "arm: placebo", "risk difference, drug less placebo"} <= set(names)
    assert "risk ratio, drug over placebo" in names
    assert "+-" not in str(arms)


@pytest.mark.parametrize(
    ("times", "closed", "title"),
    [
        ("continuous", "left", "Risk before 3"),
        ("continuous", "right", "Risk up to and including 3"),
        ("discrete", "left", "Risk up to and including 3"),
    ],
)
def test_a_risk_at_a_time_states_whether_events_at_that_time_count(times: Any, closed: str, title: str) -> None:
    months, died = ps.Bins("months", tuple(range(7)), closed=closed), ps.Categories("died", (0, 1))
    schema = ps.CountSchema((months, died, ARM), (("months", "died", "arm"),))
    rng = np.random.default_rng(0)
    at, dead = rng.integers(1, 6, 4_000), rng.integers(0, 2, 4_000)
    records = {"months": at, "died": dead, "arm": np.resize(ARM.values, 4_000)}
    release = ps.Release.exact(schema, ps.measure(schema, records))
    found = inf.risks_at(inf.kaplan_meier(release, time="months", event="died", by="arm", times=times), 3)
    assert found.summary().title.startswith(title)
    share = {arm: ((at < 3) & (dead == 1) & (np.asarray(records["arm"]) == arm)).sum() for arm in ARM.values}
    counted = {arm: curve.events[: list(curve.timeline).index(3.0) + 1].sum() for arm, curve in found.curves.items()}
    at_3 = {arm: ((at == 3) & (dead == 1) & (np.asarray(records["arm"]) == arm)).sum() for arm in ARM.values}
    included = 0 if "before" in title else 1
    assert counted == {arm: share[arm] + included * at_3[arm] for arm in ARM.values}


def test_subdistribution_texts_say_who_stays_at_risk_as_the_foot_does() -> None:
    levels = Levels((), (ps.Categories("ended", ("no", "relapse", "death")),))
    assert "'death' stays at risk" in levels_text(levels, stays=True)
    assert "'no', 'death' end the time" in levels_text(levels)


@pytest.mark.parametrize("world", ["exact", "epsilon 8"])
def test_medians_of_bins_are_the_bins_and_their_columns_have_a_denominator(world: str) -> None:
    table = table_in("table one of counts", world)
    names = [row[0].strip() for row in table.summary().rows]
    printed = table.summary().rows[names.index("median [IQR]")]  # of the first variable, bmi
    medians = [row for row in table.to_rows() if (row["variable"], row["level"]) == ("bmi", "median")]
    for place, (group, row) in enumerate(zip(table.groups, medians, strict=True)):
        assert row["conf_low"] <= 27 <= row["conf_high"]
        assert _MEDIAN.fullmatch(printed[1 + place])
        assert printed[1 + place].startswith(f"{row['conf_low']:g} to {row['conf_high']:g} [")
        cells = [each for each in table.to_rows() if (each["variable"], each["group"]) == ("bmi", group)]
        known = [
            each for each in cells if each["level"] not in ("median", "missing") and "quartile" not in each["level"]
        ]
        total = sum(each["n"] for each in known)
        assert all(each["n_group"] == pytest.approx(total) for each in known)
        assert table.summary().rows[names.index("bmi")][1 + place].startswith(Count("", total).short)


@pytest.mark.parametrize("maker", ["table one of counts", "table one of means"])
def test_baseline_differences_have_p_values_on_request_alone(maker: str) -> None:
    plain, asked = (table_in(name, "epsilon 8") for name in (maker, f"{maker}, tests"))
    assert "P" not in plain.summary().columns
    assert "P" in asked.summary().columns
    assert not any("p_value" in row for row in plain.to_rows())
    assert any(row["p_value"] >= 0 for row in asked.to_rows())
    assert "test" not in plain.summary().methods


def test_a_law_states_nothing_beside_the_head_that_rows_do_not_have() -> None:
    assert Law((4.0, 4.0), stated=4.0).columns == ()
    assert Law((4.0, 5.0), stated=4.0).columns == ("df",)
    assert Law((math.inf, math.nan)).heading == "P>|z|"
    assert "noise" not in " ".join(Law((4.0,), stated=4.0).sentences)


def test_no_reader_is_left_out_here() -> None:
    """Each reader of ``privstats table`` has a maker, or is a table of them."""
    held = {
        "ols": "line", "fixed-effects": "fixed effects", "mixed": "random intercept, REML", "averages": "averages",
        "km": "curves", "proportions": "proportions", "missing": "missing values", "score": "score",
        "table-one": "table one of means", "effect": "effect, both measures", "logit": "odds", "poisson": "rates",
        "hazards": "hazards", "imputed": "imputed odds", "site-levels": "random intercept",
    }  # fmt: skip
    assert set(held.values()) <= set(MAKERS)
    assert set(READERS) - set(held) == {"scorecard"}, "points have no P value, and the test of cards has their records"
