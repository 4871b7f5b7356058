"""Ratios of mean outcomes in a trial: bounds, Fieller's ends with the covariance at its largest, refusals, and sites
whose probabilities differ."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.dp import joint_mu
from privstats.errors import DataError, PlanError, ReleaseError, SchemaError
from privstats.inference.treatment_effects.ratios import RatioOfMeans
from privstats.kinds.effect.checks import ratio_cap
from privstats.kinds.effect.sums import mapped_records
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from tests import made
from tests.lengths import checkered
from tests.searched import UNTIL_FOUND, farthest
from threat_models.audits.effect import worst_attempt

RANGES = {"a": (-1.0, 1.0)}
RATIO = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(0, 1), probability=0.5, measure="ratio")
PLACES = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(0, 1), probability=(0.5, 0.1, 0.5))
BOTH = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(0, 1), probability=(0.5, 0.3), measure="ratio")
TWO = replace(RATIO, measure="both")
BALANCED = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(0, 1), probability=0.4, balance=0.2)
OVERLAP = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(0, 1), trim=0.1, estimand="overlap", balance=0.2)
LINE = np.array([0.05, 0.1, -0.02, 0.05, 1.3])


def said(schema: ps.EffectSchema, line: Any = LINE) -> Published:
    values = {"line": Values.rounded(line), "w": Values.rounded([0.4, -0.1])}
    return Published.of({name: values[name] for name in schema.needs})


def run(schema: ps.EffectSchema, X: Any, y: Any, epsilon: float = 8.0, **terms: Any) -> list[Any]:
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 20_000), made.promise(epsilon=epsilon, delta=1e-6), **terms)
    return ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(0))


def records(n: int, risk: float = 0.2, ratio: float = 1.5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    a, arm = chance.uniform(-1, 1, n), chance.integers(0, 2, n)
    return np.c_[a, arm], (chance.random(n) < risk * (1 + 0.5 * a) * np.where(arm, ratio, 1.0)) * 1.0


def test_no_event_is_a_risk_and_a_ratio_of_0() -> None:
    """Noise moves a ratio of 0 below 0, and rounding an arm's risk of 0 to 5.6e-17."""
    for seed in range(4):
        X, y = records(2_000, seed=seed)
        y[X[:, 1] == 1] = 0.0
        rows = ps.inference.effects(run(TWO, X, y, 100.0))
        (_, ratio) = next(iter(rows)).measures[1]
        assert 0 <= ratio.estimate < 0.05
        assert ratio.conf_int()[0] == 0
        treated, _ = rows.by_arm().arms
        assert treated.mean == 0 or treated.mean > 1e-9
    below = RatioOfMeans(1.0, -1.1, 1.0, 0.01, 0.01, 0.0, 0.0, 100.0)
    assert below.estimate == 0
    assert below.error == replace(below, offset=1.1).error


def test_sums_of_a_ratio_are_those_of_the_definition() -> None:
    X, y = records(2_000)
    a, arm = X.T
    line = Values.rounded(LINE).real
    m1, m0 = (np.clip(np.c_[a, np.ones(len(a))] @ b + 0.5, 0, 1) for b in (line[:2], line[2:4]))
    above, below = m1 + arm * (y - m1) / 0.5, m0 + (1 - arm) * (y - m0) / 0.5
    real = ps.measure(RATIO, X, y, published=said(RATIO)).real()
    C, rho = RATIO.unit(Values.rounded(LINE)), RATIO.guess(Values.rounded(LINE))
    assert (C, rho) == (pytest.approx(ratio_cap(0.5, 0.5, 1.3), rel=1e-4), pytest.approx(1.3, rel=1e-4))
    assert C * real.e[0] == pytest.approx((above - rho * below).sum(), abs=0.1)
    assert C**2 * (2_000 - real.e[1]) == pytest.approx(((above - rho * below) ** 2).sum(), rel=1e-3)
    assert 2 * real.W[0] == pytest.approx(below.sum(), abs=0.1)
    assert 4 * (2_000 - real.W[1]) == pytest.approx((below**2).sum(), rel=1e-3)


@given(st.floats(0.05, 0.95), st.floats(0.25, 4.0))
def test_no_outcome_line_or_arm_passes_the_cap_and_some_meet_it(pi: float, rho: float) -> None:
    found = [
        (m1 + arm * (y - m1) / pi) - rho * (m0 + (1 - arm) * (y - m0) / (1 - pi))
        for y, m1, m0, arm in itertools.product((0.0, 1.0), repeat=4)
    ]
    assert max(map(abs, found)) == pytest.approx(ratio_cap(pi, 1 - pi, rho), rel=1e-12)


@pytest.mark.parametrize("bits", range(4, 8))
def test_every_pair_below_the_line_keeps_the_bound_and_the_ends_meet_it(bits: int) -> None:
    for pi in (0.1, 0.5, 0.83):
        schema = replace(RATIO, probability=pi, grid_bits=bits)
        one, w = schema.grid_steps, np.arange(-schema.deepest, schema.grid_steps + 1)
        left = np.trunc((one * one - w * w) / one)
        far = (w[:, None] - w) ** 2 + (left[:, None] - left) ** 2
        assert far.max() == pytest.approx(joint_mu(schema, {"W": 1.0 / one}, "replace-one") ** 2, rel=1e-9)
        assert (w**2 + left**2).max() == one**2


@pytest.mark.parametrize("schema", [RATIO, BOTH, TWO, PLACES, BALANCED, OVERLAP], ids=lambda each: f"{each.statistics}")
@given(st.integers(0, 1 << 16))
def test_whatever_is_published_a_record_keeps_its_bounds(schema: ps.EffectSchema, seed: int) -> None:
    chance = np.random.default_rng(seed)
    wild = {
        name: Values(chance.integers(-(1 << 19) + 1, 1 << 19, shape), int(chance.integers(-8, 30)))
        for name, shape in schema.needs.items()
    }
    X, y = chance.normal(size=(6, 2)), chance.normal(size=6) * 9
    X[:, 1] = chance.integers(0, 2, 6)
    one = float(schema.grid_steps)
    for pi in schema.probabilities or (None,):
        mapped = mapped_records(schema, X, y, wild, pi)
        t, s = mapped.influences["e"].T
        assert (t**2 + s**2 <= one**2).all()
        if schema.measure:
            w, left = mapped.weights.T
            assert (w**2 + left**2 <= one**2).all()
            assert (w >= -schema.deepest).all()
        if mapped.weighted is not None:
            assert ((mapped.weighted**2).sum(axis=1) <= one**2).all()


@pytest.mark.parametrize(
    ("schema", "adjacency"),
    checkered([RATIO, BOTH, TWO, PLACES, BALANCED, OVERLAP], ["add-remove", "replace-one"]),
    ids=lambda each: getattr(each, "statistics", each),
)
@UNTIL_FOUND
def test_the_search_reaches_the_bound_of_every_letter_and_never_passes_it(schema, adjacency, until_found):
    for letter in schema.statistics:
        weights = {letter: 1.0}
        claimed = joint_mu(schema, weights, adjacency)
        least = 0.999 * claimed if letter == "e" and schema is not OVERLAP else 0.0
        found = farthest(
            lambda seed, weights=weights: worst_attempt(schema, weights, adjacency, seeded(seed), 30)[0],
            least,
            until_found=until_found,
        )
        assert least <= found <= claimed * (1 + 1e-12)


def test_at_a_published_ratio_both_opposite_ends_are_two_apart() -> None:
    """A treated record with an outcome and a control with one, no line above 0, at a guess of 1."""
    line = Values(np.array([0, -(1 << 18), 0, -(1 << 18), 1 << 16]), 16)
    mapped = mapped_records(RATIO, np.array([[0.0, 1.0], [0.0, 0.0]]), np.ones(2), {"line": line})
    one = RATIO.grid_steps
    assert mapped.influences["e"].tolist() == [[one, 0], [-one, 0]]
    assert mapped.weights.tolist() == [[0, one], [one, 0]]


def test_the_interval_holds_every_ratio_that_its_test_does_not_reject() -> None:
    ratio = RatioOfMeans(1.2, 60.0, 800.0, 3_000.0, 900.0, 400.0, 10.0, 500.0)
    low, high = ratio.interval(0.05)
    assert low < ratio.estimate < high
    for end, outside in ((low, low - 0.01), (high, high + 0.01)):
        assert ratio.pvalue(end) == pytest.approx(0.05, abs=1e-9)
        assert ratio.pvalue(outside) < 0.05
    assert ratio.pvalue(ratio.estimate) == pytest.approx(1.0)


def test_far_from_its_guess_a_ratio_s_interval_is_wider_than_with_the_variance_at_the_guess() -> None:
    far = RatioOfMeans(1.0, 800.0, 800.0, 3_000.0, 900.0, 400.0, 10.0, 500.0)
    alone = replace(far, below=0.0)
    assert np.ptp(far.interval(0.05)) > 1.3 * np.ptp(alone.interval(0.05))


def test_a_ratio_below_which_noise_may_leave_nothing_is_not_told() -> None:
    assert not RatioOfMeans(1.0, 5.0, 20.0, 300.0, 90.0, 40.0, 30.0, 50.0).reported(0.05)
    assert RatioOfMeans(1.0, 5.0, -20.0, 300.0, 90.0, 40.0, 3.0, 50.0).pvalue() == 1.0


def test_a_course_reads_the_risk_ratio() -> None:
    X, y = records(8_000)
    course = ps.Effect.start(RATIO, ps.Cohort(2, 2, 20_000), made.promise(epsilon=3.0, delta=1e-6))
    table = ps.inference.effect(ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(1)))
    low, high = table.conf_int()
    assert low < 1.5 < high
    assert high - low < 0.4
    assert table.pvalue < 0.001
    assert table.measure == "ratio"
    assert "of a ratio of 1" in str(table.summary()).replace("\n  ", " ")
    assert ps.Plan.from_toml(course.plan.to_toml()) == course.plan


def test_a_course_s_ratio_holds_what_lies_below_its_line() -> None:
    X, y = records(4_000)
    course = ps.Effect.start(RATIO, ps.Cohort(2, 2, 9_000), made.promise(epsilon=8.0, delta=1e-6))
    releases = ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(1))
    ratio, line = ps.inference.effect(releases).ratio, releases[-1].plan.published.read()["line"].real
    m0 = np.clip(np.c_[X[:, 0], np.ones(len(X))] @ line[2:4] + 0.5, 0, 1)
    below = m0 + (X[:, 1] == 0) * (y - m0) / 0.5
    assert isinstance(ratio, RatioOfMeans)
    assert ratio.below == pytest.approx(len(X) * below.var(), rel=0.05)


def test_balance_after_weighting_is_that_of_weighted_means() -> None:
    chance = np.random.default_rng(4)
    n, a = 20_000, chance.uniform(-1, 1, 20_000)
    arm = (chance.random(n) < 1 / (1 + np.exp(-a))) * 1.0
    X, y = np.c_[a, arm], (chance.random(n) < 0.3 + 0.1 * arm) * 1.0
    course = ps.Effect.start(OVERLAP, ps.Cohort(2, 2, 40_000), made.promise(epsilon=8.0, delta=1e-6))
    releases = ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(1))
    table = ps.inference.effect(releases)
    balance, w = table.balance(), releases[-1].plan.published.read()["w"].real
    e = 1 / (1 + np.exp(-(w[0] * a + w[1])))
    one, other = (np.average(a[arm == k], weights=np.abs(k - e)[arm == k]) for k in (1.0, 0.0))
    deviation = np.sqrt((a[arm == 1].var() + a[arm == 0].var()) / 2)
    found, low, high = balance.weighted[0]
    assert abs(balance.difference[0]) > 0.4
    assert low <= (one - other) / deviation <= high
    assert high - low < 0.02
    assert found == pytest.approx((one - other) / deviation, abs=0.01)
    assert "is larger than 0.0" in str(table.summary())
    assert "weighted" in str(table.balance_summary())


def test_a_site_counts_at_the_probability_of_its_place() -> None:
    X, y = records(500)
    published = said(PLACES)
    measured = ps.measure(PLACES, X, y, published=published)
    for place, pi in enumerate(PLACES.probability):
        alone = replace(PLACES, probability=pi)
        exact, other = measured.for_client(place).real().e, ps.measure(alone, X, y, published=published).real().e
        unit, own = PLACES.unit(published.read()["line"]), alone.unit(published.read()["line"])
        assert unit * exact[0] == pytest.approx(own * other[0], abs=0.2)
    assert measured.for_client(0) == measured.for_client(2) != measured.for_client(1)
    parts = (
        ps.measure(PLACES, X[:200], y[:200], published=published),
        ps.measure(PLACES, X[200:], y[200:], published=published),
    )
    assert all((parts[0] + parts[1]).for_client(place) == measured.for_client(place) for place in range(3))


def test_sums_of_one_place_are_no_other_s() -> None:
    X, y = records(50)
    measured = ps.measure(PLACES, X, y, published=said(PLACES))
    with pytest.raises(DataError, match="by roster index"):
        measured.for_client(None)
    with pytest.raises(DataError, match="0 to 2, got 3"):
        measured.for_client(3)
    with pytest.raises(DataError, match="selected a roster index before"):
        measured.for_client(0).for_client(1)
    with pytest.raises(DataError, match="moments after for_client cannot"):
        measured + measured.for_client(0)


def test_a_trial_whose_sites_assign_differently_is_read_without_bias() -> None:
    chance, shards = np.random.default_rng(3), []
    for pi, level in ((0.5, 0.1), (0.1, 0.6), (0.5, 0.3)):
        arm = (chance.random(3_000) < pi) * 1.0
        shards.append((np.c_[chance.uniform(-1, 1, 3_000), arm], (chance.random(3_000) < level + 0.1 * arm) * 1.0))
    course = ps.Effect.start(PLACES, ps.Cohort(3, 3, 20_000), made.promise(epsilon=8.0, delta=1e-6))
    table = ps.inference.effect(ps.simulate(course, shards, rng=seeded(1)))
    low, high = table.conf_int()
    assert low < 0.1 < high
    assert high - low < 0.15
    assert "0.1 to 0.5, by site" in str(table.summary())
    assert ps.Plan.from_toml(course.plan.to_toml()) == course.plan


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"measure": "odds"}, "measure must be 'difference', 'ratio' or 'both', got 'odds'"),
        ({"outcome": (-1, 1)}, "measure='ratio' needs outcomes from 0"),
        ({"outcome_names": ("a", "b")}, "measure='ratio' needs one outcome"),
        ({"groups": 6}, "measure='ratio' and groups cannot be combined"),
        ({"probability": None, "trim": 0.1}, "measure='ratio' is for trials"),
        ({"probability": (0.5, 0.01)}, "probability must be a number from 0.05 to 0.95, got 0.01"),
        ({"probability": ()}, "probability must be a number from 0.05 to 0.95, got None"),
        (
            {"transform": (*RATIO.transform[:-1], ps.transforms.ByArm(2))},
            "by-arm has column 2, and feature_names has 2",
        ),
        ({"balance": 0.9}, "balance must be 0, or a number from 0.05 to 0.5"),
    ],
)
def test_what_has_no_ratio_or_balance_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        replace(RATIO, **changes)


def test_a_probability_for_every_place_or_one_for_all() -> None:
    with pytest.raises(PlanError, match="3 numbers, .* is 4"):
        ps.Effect.start(PLACES, ps.Cohort(4, 4, 900), made.promise())
    assert replace(PLACES, probability=(0.4, 0.4, 0.4)).probability == 0.4
    assert replace(RATIO, measure="difference").measure is None
    assert replace(BALANCED, balance=0).balance is None


def test_both_measures_are_those_of_the_records_and_cost_no_more() -> None:
    """From nearly exact sums: the difference is the mean influence, the ratio the one of both means."""
    both = replace(RATIO, measure="both")
    X, y = records(6_000)
    line = Values.rounded(LINE)
    assert both.guess(line) == 1.0, "whatever was published"
    assert joint_mu(both, {"N": 1.0, "W": 1.0, "e": 1.0}, "add-remove") == joint_mu(
        RATIO, {"N": 1.0, "W": 1.0, "e": 1.0}, "add-remove"
    )
    table = ps.inference.effects(run(both, X, y, epsilon=100.0))
    rows = {row["metric"]: row for row in table.by_arm().to_rows() if not row["group"]}
    arm, truth = X[:, 1] == 1, 0.2 * (1.5 - 1)
    assert rows["difference"]["estimate"] == pytest.approx(y[arm].mean() - y[~arm].mean(), abs=0.01)
    assert rows["ratio"]["estimate"] == pytest.approx(y[arm].mean() / y[~arm].mean(), abs=0.05)
    assert rows["difference"]["conf_low"] < truth < rows["difference"]["conf_high"]
    only = ps.inference.effect(run(replace(RATIO, measure=None), X, y, epsilon=100.0))
    assert table.tables[0].bse == pytest.approx(only.bse, rel=0.02)
    text = str(table.summary())
    assert "difference" in text
    assert "ratio" in text
    assert ps.Plan.from_toml(ps.Effect.full_plan(**_terms(both)).to_toml()).schema == both


def test_both_measures_of_a_declared_outcome_have_one_adjusted_p_value() -> None:
    X, y = records(2_000)
    outcome = {"relapse": (0, 1)}
    schema = ps.EffectSchema.of(RANGES, treatment="arm", outcome=outcome, probability=0.5, measure="both")
    terms = {"analysis": ps.course.Analysis(primary=("relapse",))}
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 20_000), made.promise(epsilon=8.0, delta=1e-6), **terms)
    table = ps.inference.effects(ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], rng=seeded(0)), course)
    rows = table.summary().rows
    assert [row[0] for row in rows] == ["relapse, difference", "relapse, ratio"]
    assert rows[0][-1] == rows[1][-1]
    data = table.to_rows()
    assert [row["measure"] for row in data] == ["difference", "ratio"]
    assert [row["estimate"] for row in data] == [each.estimate for _, each in table.tables[0].measures]
    assert data[0]["adj_p_value"] == data[1]["adj_p_value"]
    assert table.tables[0].to_rows() == [table.tables[0].to_row(), table.tables[0].as_ratio.to_row()]
    assert "a difference and a ratio" in str(table)


def _terms(schema: ps.EffectSchema) -> dict[str, Any]:
    return {"schema": schema, "cohort": ps.Cohort(2, 2, 100), "privacy": made.promise(epsilon=1.0, delta=1e-6)}


@pytest.mark.parametrize("spread", [None, 4.0])
def test_outcomes_by_arm_are_those_of_the_records_and_the_arms_add_up(spread: float | None) -> None:
    """A 0/1 outcome, and a measured one whose spread is four times as large in one arm."""
    X, y = records(6_000)
    arm = X[:, 1] == 1
    if spread is not None:
        y = np.clip(15 + 2 * arm + np.random.default_rng(1).normal(size=6_000) * np.where(arm, spread, 1.0), 0, 30)
    schema = replace(RATIO, measure=None, outcome=(0, 1) if spread is None else (0, 30))
    table = ps.inference.effects(run(schema, X, y, epsilon=100.0)).by_arm()
    treated, others = table.arms
    assert treated.analysed.value + others.analysed.value == pytest.approx(table.effects[0].nobs)
    for row, here in ((treated, y[arm]), (others, y[~arm])):
        assert row.analysed.value == pytest.approx(len(here), abs=5)
        assert row.mean == pytest.approx(here.mean(), abs=0.01 if spread is None else 0.05)
        half, exact = (row.high - row.low) / 2, 1.96 * here.std() / len(here) ** 0.5
        assert exact <= half * 1.01, "never too short"
        assert spread is not None or half == pytest.approx(exact, rel=0.02)
    assert (treated.events is None) == (spread is not None)


def test_no_outcomes_by_arm_without_lines() -> None:
    X, y = records(400)
    with pytest.raises(ReleaseError, match="which share=0 omits"):
        ps.inference.effects(run(replace(RATIO, measure=None), X, y, adjust=False)).by_arm()
