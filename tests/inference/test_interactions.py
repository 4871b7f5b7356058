"""Products of columns: exact maps back to raw units, bounds for all values, tests at their level."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.duration.hazard_regression import PHReg

import privstats as ps
from benchmarks.inference import interactions as bench
from privstats import course as courses
from privstats import inference as inf
from privstats import session
from privstats.errors import PlanError, ReleaseError, SchemaError
from privstats.inference.forecasts import forecast
from privstats.moments import exact_moments
from privstats.randomness import seeded
from privstats.transforms import Centre, ConstantFeature, Interactions, Levels, Scale
from privstats.workflows.tables.regressions import regression
from tests import made
from tests.made import refused

NAMES = ("arm", "sex", "age")
MAPS = (
    Centre((0.5, 0.5, 55.0)),
    Scale((0.5, 0.5, 35.0)),
    Interactions.between(NAMES, [("arm", "sex"), ("arm", "age")]),
    ConstantFeature(1.0),
)
NORM = math.sqrt(6)


def trial(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"arm": rng.integers(0, 2, n), "sex": rng.integers(0, 2, n), "age": rng.uniform(20, 90, n)})
    score = 0.5 * frame.arm + 0.3 * frame.sex - 0.6 * frame.arm * frame.sex + 0.01 * (frame.age - 55) - 0.5
    frame["better"] = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    frame["gain"] = score + rng.normal(size=n) / 2
    died, left = rng.exponential(40 / np.exp(score)), rng.uniform(6, 30, n)
    frame["months"], frame["died"] = np.minimum(died, left), (died <= left).astype(int)
    return frame


def rounds(course: object, frame: pd.DataFrame, target: str | None, seed: int = 1) -> list[ps.Release | None]:
    rng = seeded(seed)

    def release(node: courses.Round) -> ps.Release:
        columns = list(NAMES) if target else [*NAMES, "months", "died"]
        given = [(each[columns], None if target is None else each[target]) for each in (frame[::2], frame[1::2])]
        moments = [exact_moments(node.plan.schema, *each, published=node.plan.published) for each in given]
        return session.aggregate_unmasked(node.plan, moments, rng)

    return courses.run(course, release)


def slopes(n: int = 600) -> inf.Regression:
    frame = trial(n)
    schema = ps.RidgeSchema(
        6, clip_norm=NORM, target_bound=8.0, grid_bits=20, transform=MAPS, feature_names=NAMES, folds=1
    )
    return inf.ols(ps.Release.exact(schema, ps.measure(schema, frame[list(NAMES)], frame["gain"])))


def test_exact_sums_are_statsmodels_on_the_pooled_records() -> None:
    table, peer = slopes(), smf.ols("gain ~ arm + sex + age + arm:sex + arm:age", trial(600)).fit()
    assert table.names == ("const", "arm", "sex", "age", "arm x sex", "arm x age")
    np.testing.assert_allclose(table.params, peer.params, atol=2e-5)
    np.testing.assert_allclose(table.bse, peer.bse, rtol=1e-3)
    tests = {each.columns: each.p_value for each in table.interactions()}
    assert tests["arm", "sex"] == pytest.approx(peer.pvalues["arm:sex"], rel=1e-2)
    assert tests["arm", "age"] == pytest.approx(peer.pvalues["arm:age"], rel=1e-2)
    men = peer.t_test("arm + arm:sex + 50 * arm:age")
    found = table.slope_at("arm", {"sex": 1, "age": 50})
    assert found.value == pytest.approx(float(men.effect[0]), abs=1e-4)
    np.testing.assert_allclose([found.low, found.high], men.conf_int()[0], atol=1e-3)


def test_tests_are_rows_of_data_in_csv_and_json() -> None:
    result = regression(slopes(), 0.05, {})
    assert [row["term"] for row in result.tests] == ["arm x sex", "arm x age"]
    assert {name for row in result.tests for name in row} <= set(inf.FRAME_COLUMNS)
    *_, last = result.csv.splitlines()
    assert last.startswith("arm x age,NA,")
    assert last.endswith(",interaction")


def test_a_logistic_course_is_statsmodels_within_its_noise() -> None:
    frame = trial(20_000)
    schema = ps.ScoreSchema(6, NORM, transform=MAPS, feature_names=NAMES, errors="model")
    course = ps.Newton.start(schema, ps.Cohort(2, 2, 40_000), made.promise(epsilon=8.0), 6)
    table = inf.logit(rounds(course, frame, "better"))
    peer = smf.logit("better ~ arm + sex + age + arm:sex + arm:age", frame).fit(disp=0)
    assert (np.abs(table.params - peer.params) < 4 * table.noise_bse + 0.05 * table.bse).all()
    np.testing.assert_allclose(table.bse, peer.bse, rtol=0.03)
    assert "interaction, arm x sex" in str(table.summary())
    assert "its own row" in " ".join(str(table.summary(exponentiate=True)).split())


def test_hazard_ratios_are_near_coxs() -> None:
    frame = trial(6_000)
    schema = ps.HazardSchema(
        6,
        NORM,
        bins=ps.Bins("months", tuple(range(0, 25, 2))),
        event="died",
        feature_names=NAMES,
        transform=MAPS,
        times="continuous",
    )
    course = ps.Hazard.start(schema, ps.Cohort(2, 2, 12_000), made.promise(epsilon=8.0), by="arm")
    table = inf.hazards(rounds(course, frame, None))
    frame["months"], frame["died"] = frame.months.clip(upper=24), frame.died * (frame.months <= 24)
    X = np.column_stack([frame[list(NAMES)], frame.arm * frame.sex, frame.arm * frame.age])
    peer = PHReg(frame["months"], X, frame["died"], ties="efron").fit(start_params=table.params)  # few steps from there
    assert table.names == ("arm", "sex", "age", "arm x sex", "arm x age")
    apart = np.abs(table.params - peer.params)
    assert (apart < 0.3 * table.bse + 3 * table.noise_bse).all()
    head = str(table.summary())
    assert "interaction, arm x age" in head
    assert "A course with early_bins" not in head


def test_a_column_of_three_texts_has_one_joint_test() -> None:
    rng, n = np.random.default_rng(3), 20_000
    texts = ("never", "former", "current")
    frame = {"arm": rng.integers(0, 2, n), "smoking": np.array(texts)[rng.integers(0, 3, n)]}
    score = 0.4 * frame["arm"] + 0.5 * (frame["smoking"] == "current") * frame["arm"]
    died = rng.exponential(30 / np.exp(score))
    frame |= {"months": np.minimum(died, 24.0), "died": (died <= 24).astype(int)}
    levels = Levels((ps.Categories("smoking", texts),), (), (1,))
    products = Interactions.between(("arm", "smoking"), [("arm", "smoking")], levels)
    assert products.pairs == ((0, 1), (0, 2))
    schema = ps.HazardSchema(
        6,
        2.0,
        bins=ps.Bins("months", (0, 6, 12, 18, 24)),
        event="died",
        feature_names=("arm", "smoking"),
        transform=(levels, Centre((0.5, 0.0, 0.0)), Scale((0.5, 1.0, 1.0)), products, ConstantFeature(1.0)),
        times="continuous",
    )
    course = ps.Hazard.start(schema, ps.Cohort(2, 2, 2 * n), made.promise(epsilon=8.0), rounds=6)
    parts = [({name: column[k::2] for name, column in frame.items()}, None) for k in (0, 1)]
    table = inf.hazards(ps.simulate(course, parts, rng=seeded(0)))
    (test,) = table.interactions()
    assert test.columns == ("arm", "smoking")
    assert test.terms == ("arm x smoking: former", "arm x smoking: current")
    assert test.p_value < 0.001
    assert "(Wald, 2 degrees of freedom)" in str(table.summary())
    low, high = (table.slope_at("arm", {"smoking: former": 0, "smoking: current": each}).value for each in (0, 1))
    assert high - low == pytest.approx(table.params[table.names.index("arm x smoking: current")])


def test_a_hidden_product_has_no_p_value_in_the_table() -> None:
    frame, schema = trial(60), ps.ScoreSchema(6, NORM, transform=MAPS, feature_names=NAMES)
    course = ps.Newton.start(schema, ps.Cohort(2, 2, 200), made.promise(epsilon=0.5), rounds=2)
    table = inf.logit(rounds(course, frame, "better"))
    assert {test.p_value for test in table.interactions()} == {None}
    text = " ".join(str(table.summary()).split())
    assert "arm x sex not tested" in text
    assert "P = 1.0000" not in text


_NUMBERS = st.floats(-1e6, 1e6)
_PAIRS = st.sets(st.sampled_from([(0, 1), (0, 2), (1, 2), (3, 1), (2, 3)]), min_size=1)


@pytest.mark.filterwarnings("ignore::privstats.errors.ClippedWarning")
@given(st.lists(_NUMBERS, min_size=4, max_size=4), _PAIRS)
def test_no_values_move_the_sums_beyond_the_bound_of_any_row(row: list[float], pairs: set[tuple[int, int]]) -> None:
    """Rows far beyond their ranges have long products, and are shortened as a whole: in integers, |x|^2 <= 4^f."""
    products, width = Interactions(tuple(sorted(pairs))), 5 + len(pairs)
    schema = ps.RidgeSchema(
        width, clip_norm=math.sqrt(width), target_bound=1.0, transform=(products, ConstantFeature(1.0))
    )
    moments = ps.measure(schema, np.array([row]), np.array([1e9]))
    assert np.trace(moments.G).item() <= 4**schema.grid_bits
    score = ps.ScoreSchema(width, math.sqrt(width), transform=(products, ConstantFeature(1.0)))
    course = ps.Newton.start(score, ps.Cohort(2, 2, 10), made.promise(epsilon=1.0))
    g = np.asarray(ps.measure(score, np.array([row]), np.array([1]), published=course.first.published).g, object)
    assert (g**2).sum() <= 16**score.grid_bits  # g is in steps of a row's times a residual's


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4), _PAIRS)
def test_rows_inside_their_ranges_are_never_clipped(row: list[float], pairs: set[tuple[int, int]]) -> None:
    products = Interactions(tuple(sorted(pairs)))
    mapped = ps.transforms.apply((products, ConstantFeature(1.0)), np.array([row]))
    assert np.square(mapped).sum() <= mapped.shape[1]


def test_the_worst_row_attains_the_bound() -> None:
    """A row of ones with all products and the constant is as long as the clip norm."""
    products = Interactions(((0, 1), (0, 2)))
    schema = ps.RidgeSchema(6, clip_norm=NORM, target_bound=1.0, transform=(products, ConstantFeature(1.0)))
    moments = ps.measure(schema, np.ones((1, 3)), np.array([0.0]))
    assert np.trace(moments.G).item() >= 0.995 * 4**schema.grid_bits


def test_a_plan_file_keeps_the_pairs() -> None:
    schema = ps.ScoreSchema(6, NORM, transform=MAPS, feature_names=NAMES)
    plan = ps.Newton.start(schema, ps.Cohort(2, 2, 100), made.promise()).first
    assert "pairs" in plan.to_toml()
    assert ps.Plan.from_toml(plan.to_toml()).schema == schema


def test_a_forecast_reads_products() -> None:
    schema = ps.HazardSchema(
        6,
        NORM,
        bins=ps.Bins("months", (0, 12, 24)),
        event="died",
        feature_names=NAMES,
        transform=MAPS,
        times="continuous",
        expected_events=8_000,
    )
    course = ps.Hazard.start(schema, ps.Cohort(2, 2, 20_000), made.promise(epsilon=8.0), by="arm")
    assert [row.name for row in forecast(course, records=20_000, draws=4).rows] == [
        "arm",
        "sex",
        "age",
        "arm x sex",
        "arm x age",
    ]
    ridge = ps.RidgeSchema(6, clip_norm=NORM, target_bound=8.0, transform=MAPS, feature_names=NAMES)
    plan = ps.Plan(schema=ridge, cohort=ps.Cohort(2, 2, 5_000), privacy=made.promise(epsilon=8.0))
    assert len(forecast(plan, records=5_000, draws=4).rows) == 5


WRONG = [
    (lambda: Interactions(()), SchemaError, "two indices of columns each"),
    (lambda: Interactions(((0, 0),)), SchemaError, "two different columns"),
    (lambda: Interactions(((0, 1), (1, 0))), SchemaError, "name each pair once"),
    (lambda: Interactions(((0, 1.0),)), SchemaError, "two indices of columns each"),
    (lambda: Interactions("01"), SchemaError, "two indices of columns each"),
    (lambda: Interactions(tuple((0, j) for j in range(1, 70))), SchemaError, "at most 64"),
    (lambda: Interactions(((0, 5),)).outputs(3), SchemaError, "column 5, and 3 columns come in"),
    (lambda: Interactions.between(NAMES, [("arm", "dose")]), SchemaError, "'dose', and the columns are arm, sex, age"),
    (lambda: slopes().slope_at("dose", {}), ReleaseError, "column must be one of arm, sex, age"),
    (lambda: slopes().slope_at("arm", {"sex": 1}), ReleaseError, "for each column that has a product with 'arm'"),
    (lambda: slopes().slope_at("arm", {"sex": math.nan, "age": 1}), ReleaseError, "a finite number for 'sex'"),
]


@pytest.mark.parametrize(("call", "error", "words"), WRONG)
def test_wrong_pairs_and_values_are_one_clear_sentence(call: object, error: type, words: str) -> None:
    refused(error, words, call)


def test_a_product_needs_both_its_columns_and_its_place() -> None:
    schema = ps.RidgeSchema(6, clip_norm=NORM, target_bound=8.0, transform=MAPS, feature_names=NAMES)
    frame = trial(600)
    release = ps.Release.exact(schema, ps.measure(schema, frame[list(NAMES)], frame["gain"]))
    refused(ReleaseError, "'arm x sex' without 'sex'", inf.ols, release, columns=["arm", "arm x sex"])
    assert inf.ols(release, columns=["arm", "age"]).interactions() == ()
    part = inf.ols(release, columns=["arm", "sex", "arm x sex"])
    peer = smf.ols("gain ~ arm*sex", frame).fit()
    np.testing.assert_allclose(part.params, peer.params, atol=5e-3)
    late = ps.RidgeSchema(
        4, clip_norm=2.0, target_bound=8.0, transform=(Interactions(((0, 1),)), Scale((1.0,) * 3), MAPS[-1])
    )
    moments = ps.measure(late, frame[["arm", "sex"]].to_numpy(float), frame["gain"])
    refused(ReleaseError, "must follow Centre and Scale", inf.ols, ps.Release.exact(late, moments))


def test_what_products_do_not_go_with_is_refused_before_anything_is_spent() -> None:
    schema = ps.HazardSchema(
        6,
        NORM,
        bins=ps.Bins("months", (0, 6, 12, 18)),
        event="died",
        feature_names=NAMES,
        transform=MAPS,
        times="continuous",
    )
    start = ps.Hazard.start
    refused(PlanError, "early_bins", start, schema, ps.Cohort(2, 2, 100), made.promise(), early_bins=2)
    maps = (Interactions(((0, 1),)), ConstantFeature(1.0), ps.transforms.ByArm(1))
    refused(SchemaError, "name subgroups=", ps.EffectSchema, 6, 2.0, outcome=(0, 1), probability=0.5, transform=maps)


def effects(n: int, differing: float, seed: int) -> inf.EffectRows:
    rng = np.random.default_rng(seed)
    ward, arm = rng.choice(3, n, p=(0.8, 0.15, 0.05)), rng.integers(0, 2, n)
    y = np.clip(
        0.1 * arm + differing * arm * (ward == 1) + np.array([0.1, 0.3, 0.9])[ward] * rng.uniform(-1, 1, n), -1, 1
    )
    subgroups = (ps.Categories("ward", (0, 1, 2)),)
    schema = ps.EffectSchema.of(
        {"ward": (0, 2)}, treatment="arm", outcome=(-1, 1), probability=0.5, subgroups=subgroups
    )
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * n), made.promise(epsilon=8.0))
    X = np.column_stack([ward, arm])
    return inf.effects(ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(seed)))


def test_equal_effects_are_tested_as_statsmodels_compares_unequal_variances() -> None:
    from statsmodels.stats.oneway import anova_generic

    rows = effects(10_000, 0.1, 0)
    (test,) = rows.interactions()
    parts = [row for row in rows if row.subgroup]
    n = np.array([row.ratio.degrees + 1 for row in parts])
    variances = np.array([row.bse**2 for row in parts]) * n
    peer = anova_generic(np.array([row.estimate for row in parts]), variances, n, use_var="unequal")
    assert (test.outcome, test.by) == ("", "ward")
    assert test.p_value == pytest.approx(peer.pvalue, rel=1e-6)
    assert test.p_value < 0.001
    assert "with ward: P = <.0001" in " ".join(str(rows.summary()).split())


def test_hidden_subgroups_have_no_test_and_an_observational_study_none() -> None:
    hidden = effects(100, 0.0, 1)
    (test,) = hidden.interactions()
    assert test.p_value is None
    text = " ".join(str(hidden.summary()).split())
    assert "with ward: not tested" in text
    assert "1.0000 (Welch" not in text
    subgroups = (ps.Categories("ward", (0, 1)),)
    schema = ps.EffectSchema.of({"ward": (0, 1)}, treatment="arm", outcome=(0, 1), trim=0.1, subgroups=subgroups)
    rng, n = np.random.default_rng(0), 4_000
    X, y = np.column_stack([rng.integers(0, 2, n), rng.integers(0, 2, n)]), rng.integers(0, 2, n)
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * n), made.promise(epsilon=8.0))
    assert inf.effects(ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])])).interactions() == ()


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("measured", [bench.logistic, bench.least_squares])
@pytest.mark.parametrize("moved", [True, False])
def test_intervals_and_tests_keep_their_level(measured: object, moved: bool) -> None:
    row = measured(5_000, 8.0, moved, 200)
    assert row["reported"] > 0.5
    assert row["worst row"] <= 0.11  # 22 of 200: with probability 4e-4 at a rate of .05


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_equal_effects_are_rarely_rejected() -> None:
    row = bench.equal(5_000, 8.0, 200)
    assert row["reported"] > 0.9
    assert row["worst row"] <= 0.11
