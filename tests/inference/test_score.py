"""Logistic and Poisson regression: integers, bounds, the course, and intervals."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats import course as courses
from privstats import inference as inf
from privstats import session
from privstats.course import document
from privstats.course.promise import Promise
from privstats.dp import joint_mu
from privstats.errors import PlanError, RecordError, ReleaseError, SchemaError
from privstats.estimates.score import damped_step
from privstats.kinds.score_sums import _mapped
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from privstats.transforms import Centre, ConstantFeature, Scale
from tests import made

CONSTANT = (ConstantFeature(1.0),)
LOGISTIC = ps.ScoreSchema(4, 2.0, transform=CONSTANT)
POISSON = ps.ScoreSchema(4, 2.0, family="poisson", target_bound=8.0, transform=CONSTANT)
SLOPES = np.array([-0.3, 0.6, -0.4, 0.2])  # the intercept first
GOLDEN = (11 + 5 * math.sqrt(5)) / 2


def world(n, seed=0, family="logistic", slopes=SLOPES):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, 3)) * 0.6, -1, 1)
    fitted = slopes[0] + X @ slopes[1:]
    return X, rng.poisson(np.exp(fitted)) if family == "poisson" else (rng.random(n) < 1 / (1 + np.exp(-fitted))) * 1


def privacy(epsilon, **changes):
    return made.promise(**{"epsilon": epsilon, "delta": 1e-6, **changes})


def course_of(schema, records, epsilon, rounds=None):
    return ps.Newton.start(schema, ps.Cohort(2, 2, 2 * records), privacy(epsilon), rounds)


def played(course, X, y, seed):
    """All releases of a course, without the masking protocol."""
    rng = seeded(seed)

    def release(node):
        parts = [ps.measure(node.plan.schema, X[k::2], y[k::2], published=node.plan.published) for k in range(2)]
        return session.aggregate_unmasked(node.plan, parts, rng)

    return courses.run(course, release)


def at(w):
    return Published.of({"w": Values.rounded(w)})


def plan_at(w, promise):
    return ps.Plan(schema=LOGISTIC, cohort=ps.Cohort(2, 2, 9), privacy=promise, published=at(w))


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_sums_are_score_and_information_to_the_grid(family):
    schema = LOGISTIC if family == "logistic" else POISSON
    X, y = world(2_000, family=family)
    w = np.array([0.3, -0.1, 0.2, 0.1])
    moments = ps.measure(schema, X, y, published=at(w))
    U, cut = np.c_[X, np.ones(len(X))], np.minimum(y, schema.outcome)
    w = Values.rounded(w).real
    m = np.minimum(np.exp(U @ w), 8.0) if family == "poisson" else 1 / (1 + np.exp(-U @ w))
    v = m if family == "poisson" else m * (1 - m)
    assert np.abs(moments.real().g - (cut - m) @ U).max() < 2e-4 * len(X) * schema.outcome
    assert np.abs(moments.real().H - (U * v[:, None]).T @ U).max() < 1e-3 * len(X) * schema.outcome
    halves = [ps.measure(schema, X[k::2], y[k::2], published=at(w)) for k in range(2)]
    assert halves[0] + halves[1] == moments
    assert moments.records == 2_000


@given(st.data())
def test_every_record_keeps_the_three_bounds_whatever_is_published(data):
    schema = data.draw(st.sampled_from([LOGISTIC, POISSON]))
    whole = st.integers(-(1 << 19) + 1, (1 << 19) - 1)
    w = Values(np.array(data.draw(st.lists(whole, min_size=4, max_size=4)), np.int64), data.draw(st.integers(-8, 30)))
    rows = np.array(data.draw(st.lists(st.lists(st.floats(-9, 9), min_size=3, max_size=3), min_size=1, max_size=5)))
    y = np.array(data.draw(st.lists(st.sampled_from([0, 1]), min_size=len(rows), max_size=len(rows))))
    y = y if schema is LOGISTIC else y * 30.0
    (unit, residuals, roots, _), _ = _mapped(schema, rows, y, w)
    steps = schema.grid_steps
    assert (np.vecdot(unit, unit) <= steps**2).all()
    assert (np.abs(residuals) <= steps).all()
    share = np.abs(residuals) / steps
    size = np.vecdot(roots, roots) / steps**2
    # with |r| = p, the information is at most p (1 - p), up to the steps that both were cut to
    assert schema is POISSON or (size <= share * (1 - share) + 4 / steps).all()
    assert (size <= 1).all()


def test_a_record_that_is_not_finite_counts_as_zero():
    X, y = world(10)
    X[3] = np.nan
    without = ps.measure(LOGISTIC, np.delete(X, 3, axis=0), np.delete(y, 3), published=at(np.zeros(4)))
    assert ps.measure(LOGISTIC, X, y, published=at(np.zeros(4))) == without


def test_the_information_is_free_up_to_the_golden_bound():
    score = {"g": 1.0}
    free = 2.0 / math.sqrt(GOLDEN)  # sigma_H = sigma_g R / sqrt rho
    assert joint_mu(LOGISTIC, score, "add-remove") == 2.0
    assert joint_mu(LOGISTIC, score | {"H": free * (1 + 1e-9)}, "add-remove") == pytest.approx(2.0, rel=1e-8)
    assert joint_mu(LOGISTIC, score | {"H": free / math.sqrt(1.05)}, "add-remove") > 2.0
    assert joint_mu(LOGISTIC, {"H": 1.0}, "add-remove") == 1.0  # R^2 / 4


def test_default_shares_are_on_the_free_side():
    plan = course_of(replace(LOGISTIC, errors="model"), 1_000, 1.0).first
    noise = {row.statistic: row.sigma for row in plan.noise.rows}
    assert joint_mu(plan.schema, {"g": noise["g"]}, "add-remove") == pytest.approx(plan.noise.mu, rel=1e-9)


def test_bounds_hold_on_a_grid_of_all_means():
    p = np.linspace(0, 1, 20_001)
    for rho in (1.0, 9.0, GOLDEN, 20.0, 200.0):
        claimed = joint_mu(LOGISTIC, {"g": 2.0, "H": 4.0 / math.sqrt(rho)}, "add-remove") ** 2
        assert claimed == pytest.approx((p**2 + rho * (p * (1 - p)) ** 2).max(), rel=1e-6)
    y, m, c = np.meshgrid(np.linspace(0, 1, 21), np.linspace(0, 1, 21), np.linspace(-1, 1, 41))
    for score, information in ((1.0, 0.2), (1.0, 0.5), (1.0, 3.0)):
        sigmas = {"g": 16.0 / math.sqrt(score), "H": 32.0 / math.sqrt(information)}
        claimed = joint_mu(POISSON, sigmas, "replace-one") ** 2
        best = 0.0
        for y2, m2 in ((0, 0), (0, 1), (1, 0), (1, 1), (0.5, 0.5)):
            r, r2 = y - m, y2 - m2
            moved = score * (r**2 + r2**2 - 2 * r * r2 * c) + information * (m**2 + m2**2 - 2 * m * m2 * c**2)
            best = max(best, float(moved.max()))
        assert best <= claimed * (1 + 1e-9)
        assert best > 0.99 * claimed


@pytest.mark.ci
@pytest.mark.parametrize("schema", [LOGISTIC, POISSON], ids=["logistic", "poisson"])
def test_the_audit_s_search_does_not_beat_the_bound(schema, privstats, tmp_path):
    (tmp_path / "round.toml").write_text(course_of(schema, 10_000, 1.0).first.to_toml())
    done = privstats(
        "audit", "sensitivity", "round.toml", "--starts", "2", "--seed", "1", "--json", cwd=tmp_path, code=0
    )
    (report,) = json.loads(done.stdout)
    assert all(row["ratio"] <= 1 for row in report["rows"])
    assert max(row["ratio"] for row in report["rows"] if row["adjacency"] == "add-remove") > 0.95


def test_damped_steps_arrive_at_the_maximum_of_the_likelihood():
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    X, y = world(3_000)
    U, w = np.c_[np.ones(len(X)), X], np.zeros(4)
    for _ in range(5):
        m = 1 / (1 + np.exp(-U @ w))
        w = w + damped_step(U.T @ (y - m), (U * (m * (1 - m))[:, None]).T @ U, 0.0, None)
    theirs = sm.Logit(y, U).fit(disp=0)
    assert np.abs(w - theirs.params).max() < 1e-7 * theirs.bse.min()


def test_little_noise_gives_statsmodels_table():
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    X, y = world(6_000)
    table = inf.logit(played(course_of(LOGISTIC, 6_000, 100.0, 6), X, y, 1))
    theirs = sm.Logit(y, sm.add_constant(X)).fit(disp=0)
    assert np.abs(table.params - theirs.params).max() < 0.3 * theirs.bse.min()
    assert np.allclose(table.bse, theirs.bse, rtol=0.05)
    assert table.reported.all()


def test_a_masked_course_is_read_the_same_from_files(tmp_path):
    X, y = world(3_000)
    course = course_of(LOGISTIC, 3_000, 8.0)
    releases = ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])], dropouts=[{}, {}, {}, {}], rng=seeded(1))
    for place, release in enumerate(releases):
        release.save(tmp_path / f"{place}.privstats")
    loaded = [ps.Release.load(tmp_path / f"{place}.privstats") for place in range(4)]
    assert np.array_equal(inf.logit(loaded).params, inf.logit(releases).params)
    for several in (loaded, releases):
        with pytest.raises(ReleaseError, match="not the next"):
            inf.logit([several[1], several[0], *several[2:]])
        nameless = list(map(made.unnamed, several))
        with pytest.raises(ReleaseError, match="it names no course"):
            inf.logit([nameless[1], nameless[0], *nameless[2:]])


@pytest.mark.ci
@pytest.mark.parametrize(
    ("family", "n", "epsilon", "rounds"), [("logistic", 4_000, 3.0, None), ("poisson", 4_000, 8.0, 6)]
)
def test_intervals_cover(family, n, epsilon, rounds):
    schema, missed, reported = (LOGISTIC if family == "logistic" else POISSON), [], []
    for run in range(50):
        X, y = world(n, run, family)
        table = inf.logit if family == "logistic" else inf.poisson
        found = table(played(course_of(schema, n, epsilon, rounds), X, y, run))
        low, high = found.conf_int().T
        missed.append((low > SLOPES) | (high < SLOPES))
        reported.append(found.reported)
    assert np.mean(missed) < 0.1
    assert np.mean(reported) > 0.8


@pytest.mark.ci
def test_rounds_that_end_too_early_tell_nothing():
    """At a rate of 2 % four rounds from 0 have not arrived; with a public guess of the rate and six they have."""
    rare, missed, reported = np.array([-4.0, 0.5, -0.3, 0.2]), {}, {}
    guessed = replace(LOGISTIC, rate=0.02)
    for name, schema, rounds in (("from 0", LOGISTIC, 4), ("guessed", guessed, 6)):
        missed[name], reported[name] = [], []
        for run in range(25):
            X, y = world(10_000, run, slopes=rare)
            found = inf.logit(played(course_of(schema, 10_000, 3.0, rounds), X, y, run))
            low, high = found.conf_int().T
            missed[name].append((low > rare) | (high < rare))
            reported[name].append(found.reported)
    assert np.mean(reported["from 0"]) < 0.1
    assert np.mean(reported["guessed"]) > 0.5
    assert max(np.mean(each) for each in missed.values()) < 0.1


def test_a_small_p_value_is_an_interval_that_leaves_zero_out():
    for run in range(20):
        X, y = world(2_000, run)
        found = inf.logit(played(course_of(LOGISTIC, 2_000, 3.0), X, y, run))
        for alpha in (0.2, 0.05, 0.01):
            low, high = found.conf_int(alpha).T
            outside = found.errors.reported(alpha) & ((low > 0) | (high < 0))
            assert ((found.pvalues < alpha) == outside).all()


def test_raw_units_are_read_through_the_maps():
    X, y = world(4_000)
    maps = (Centre((10.0,) * 3), Scale((2.0,) * 3), ConstantFeature(1.0))
    raw = inf.logit(played(course_of(replace(LOGISTIC, transform=maps), 4_000, 20.0), 10 + 2 * X, y, 1))
    plain = inf.logit(played(course_of(LOGISTIC, 4_000, 20.0), X, y, 1))
    assert np.allclose(raw.params[1:], plain.params[1:] / 2)
    assert raw.params[0] == pytest.approx(plain.params[0] - 5 * plain.params[1:].sum())
    assert (raw.t_test([0, 1, -1, 0]).value, raw.wald_test([[0, 1, -1, 0]])) == pytest.approx(
        (plain.t_test([0, 1, -1, 0]).value / 2, plain.wald_test([[0, 1, -1, 0]])), rel=1e-6
    )


def test_all_rounds_together_keep_the_promise_and_the_table_says_so():
    course = course_of(LOGISTIC, 1_000, 3.0)
    assert course.epsilon(1e-6) <= 3.0
    assert course.mu == pytest.approx(math.hypot(*(plan.noise.mu for plan in course.priced)))
    text = str(inf.logit(played(course, *world(1_000), 1)).summary())
    assert "epsilon 3, delta 1e-06, all 4 rounds" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("changed", [{"rounds": 40}, {"retries": 1}, {"promise": Promise(2.999, 1e-6)}])
def test_a_promise_that_the_rounds_do_not_keep_is_refused(changed):
    course = course_of(LOGISTIC, 1_000, 3.0)
    with pytest.raises(PlanError, match="promise says epsilon .* and all rounds together cost epsilon"):
        replace(course, **changed)


def test_a_round_without_a_sum_publishes_its_weights_again():
    course = ps.Newton.start(LOGISTIC, ps.Cohort(2, 2, 2_000), privacy(3.0), 3, retries=1)
    X, y = world(1_000)
    first = played(course, X, y, 1)[0]
    assert course.next((None,)).published.sha256 == course.first.published.sha256
    assert course.next((first, None)).published.sha256 == course.next((first,)).published.sha256
    assert course.next((None, None, None, None)) is None


def test_a_course_is_the_same_from_its_file(tmp_path):
    course = ps.Newton.start(POISSON, ps.Cohort(2, 2, 20_000), privacy(3.0), retries=2)
    assert course.rounds == 5
    document.write(tmp_path / "study.toml", course)
    again = document.read(tmp_path / "study.toml")
    assert again == course
    assert again.digest == course.digest
    assert again.first.published.values is not None


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: ps.ScoreSchema(3, 1.0, family="probit"), SchemaError, "'logistic' or 'poisson'"),
        (lambda: ps.ScoreSchema(3, 1.0, family="poisson"), SchemaError, "target_bound"),
        (lambda: ps.ScoreSchema(3, 1.0, target_bound=2.0), SchemaError, "target_bound"),
        (lambda: ps.ScoreSchema(3, 1.0, rate=0.1), SchemaError, "ConstantFeature"),
        (lambda: ps.ScoreSchema(3, 1.0, rate=1.5, transform=CONSTANT), SchemaError, "below the largest"),
        (lambda: course_of(LOGISTIC, 100, 1.0, 0), PlanError, "rounds"),
        (lambda: ps.Newton.start(LOGISTIC, ps.Cohort(2, 2, 9), ps.NoPrivacy()), PlanError, "differential privacy"),
        (lambda: ps.Newton(plan_at(np.ones(4), privacy(1.0))), PlanError, "other weights"),
        (lambda: plan_at(np.zeros(4), ps.NoPrivacy()), PlanError, "one record alone"),
        (lambda: inf.logit([]), ReleaseError, "nothing to read"),
        (lambda: inf.logit([None]), ReleaseError, "nothing to read"),
        (lambda: inf.logit("releases"), ReleaseError, "must be a Release"),
        (lambda: inf.poisson(played(course_of(LOGISTIC, 100, 9.0), *world(100), 1)), ReleaseError, "poisson"),
    ],
)
def test_what_cannot_be_run_or_read_is_refused(build, error, words):
    with pytest.raises(error, match=words):
        build()


@pytest.mark.parametrize("labels", [["often", "never"] * 30, [1, 2] * 30])
def test_labels_that_are_no_outcomes_are_refused_by_what_helps_here(labels):
    """The plan of a regression has no ``class_names``, which the sentence gave for the remedy."""
    schema = ps.ScoreSchema(2, clip_norm=2.0, transform=(ps.transforms.ConstantFeature(1.0),))
    plan = ps.Newton.start(schema, ps.Cohort(2, 2, 400), made.promise()).first
    with pytest.raises(RecordError, match="outcomes to 0 and 1"):
        ps.measure(plan.schema, np.ones((60, 1)), labels, published=plan.published)
    assert ps.measure(plan.schema, np.ones((60, 1)), np.arange(60) % 2, published=plan.published).records == 60


@pytest.mark.parametrize(("records", "refused"), [(4_000, True), (20_000, False)])
def test_a_bound_that_hides_most_coefficients_is_refused_for_the_cohort_twice_as_large_as_its_sample(
    records: int, refused: bool
) -> None:
    """At 2,000 records and a bound of 20 a third of the coefficients are reported, at 10,000 all; cohorts admit twice
    as many (benchmarks/inference/numbers.md)."""
    schema = ps.ScoreSchema(3, 3**0.5, family="poisson", target_bound=20.0, transform=CONSTANT)
    assert _refused(schema, ps.Cohort(4, 4, records), 6) == refused


@pytest.mark.parametrize(("bound", "rate", "refused"), [(20.0, None, True), (6.0, None, True), (6.0, 1.0, False)])
def test_a_bound_that_hides_all_counts_is_refused_before_anything_is_spent(
    bound: float, rate: Any, refused: bool
) -> None:
    """2,000 records, four columns, epsilon 8: with a mean count of 1 reported at a bound of 6, and hidden at 20."""
    schema = ps.ScoreSchema(5, 5**0.5, family="poisson", target_bound=bound, transform=CONSTANT, rate=rate)
    assert _refused(schema, ps.Cohort(2, 2, 2_000), None) == refused


def test_the_refusal_names_the_mean_count_that_is_needed_and_the_remedies() -> None:
    schema = ps.ScoreSchema(5, 5**0.5, family="poisson", target_bound=20.0, transform=CONSTANT)
    with pytest.raises(PlanError, match=r"target_bound 20 .* 1\.9 .*rate="):
        ps.Newton.start(schema, ps.Cohort(2, 2, 2_000), privacy(8.0))
    ps.Newton.start(replace(schema, rate=2.0), ps.Cohort(2, 2, 2_000), privacy(8.0))
    with pytest.raises(PlanError, match="take a smaller target_bound"):
        ps.Newton.start(replace(schema, rate=1.0), ps.Cohort(2, 2, 2_000), privacy(8.0))


def _refused(schema: ps.ScoreSchema, cohort: ps.Cohort, rounds: int | None) -> bool:
    try:
        ps.Newton.start(schema, cohort, privacy(8.0), rounds)
    except PlanError as refusal:
        assert "would hide most coefficients" in str(refusal)
        return True
    return False
