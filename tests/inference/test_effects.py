"""Treatment effects: equal to others without noise, true intervals under it, and reported only where they hold."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import privstats as ps
from privstats import session
from privstats.course import run
from privstats.errors import ReleaseError
from privstats.estimates.effect import ArmSums, outcome_lines, ridge_line
from privstats.inference.treatment_effects.arms import interval_of_mean
from privstats.inference.treatment_effects.influence_sums import InfluenceSums, _ratio_of_sums, ratio_of
from privstats.inference.treatment_effects.nuisances import _Information, _of_any_part, _squared_weights
from privstats.inference.treatment_effects.ratios import RatioOfSums
from privstats.kinds.effect.influences import _propensity, influence_of, population_of
from privstats.moments import exact_moments
from privstats.moments.rounds import arm_rows
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from tests import made

RANGES = {f"x{j}": (-1.0, 1.0) for j in range(4)}
TRIAL = ps.EffectSchema.of(RANGES, treatment="arm", outcome=(-1, 1), probability=0.5)
OPEN = SimpleNamespace(privacy=ps.NoPrivacy())


def schema_of(probability: float = 0.5, outcome: tuple[float, float] = (-1, 1)) -> ps.EffectSchema:
    return ps.EffectSchema.of(RANGES, treatment="arm", outcome=outcome, probability=probability)


def world(n: int, rng: np.random.Generator, probability: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """A trial with an effect of .1 whatever x is, and an outcome line that is curved."""
    x = np.clip(rng.normal(size=(n, 4)) * 0.4, -1, 1)
    arm = (rng.random(n) < probability) * 1.0
    y = 0.1 * arm + 0.3 * x[:, 0] - 0.2 * x[:, 1] ** 2 + 0.1 * (arm - probability) * x[:, 2]
    return np.c_[x, arm], np.clip(y + rng.normal(size=n) * 0.25, -1, 1)


def played(course: ps.Effect, X: np.ndarray, y: np.ndarray, rng: Any) -> list[ps.Release | None]:
    """All releases of a course, without the masking protocol."""

    def release(node: Any) -> ps.Release:
        said = node.plan.published
        parts = [exact_moments(node.plan.schema, X[k::2], y[k::2], published=said) for k in range(2)]
        return session.aggregate_unmasked(node.plan, parts, rng)

    return run(course, release)


def course_of(n: int, epsilon: float, schema: ps.EffectSchema = TRIAL, **options: Any) -> ps.Effect:
    return ps.Effect.start(schema, ps.Cohort(2, 2, 2 * n), made.promise(epsilon=epsilon, delta=1e-6), **options)


def influences(schema: Any, arm: Any, x: Any, y: Any, values: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Influence values in units of B, weights, and who is kept."""
    population = population_of(schema, arm, x, values)
    return influence_of(schema, population, arm, x, y, values["line"]), population.weight, population.included


@pytest.fixture(scope="module")
def released() -> list[ps.Release | None]:
    rng = np.random.default_rng(5)
    return played(course_of(4_000, 3.0), *world(4_000, rng), seeded(5))


def test_without_noise_it_is_lin_s_regression() -> None:
    """Interacted least squares with centred columns (Lin 2013), on the same grid rows, and its sandwich."""
    X, y = world(800, np.random.default_rng(0))
    arm, x = arm_rows(TRIAL, X)
    U = x * (TRIAL.clip_norm / TRIAL.grid_steps)
    exact = [np.linalg.lstsq(U[arm == side], y[arm == side])[0] for side in (True, False)]
    line = Values.rounded(np.concatenate([*exact, [0.0]]), bits=50)
    influence, _, _ = influences(TRIAL, arm, x, y, {"line": line})
    centred = U[:, :4] - U[:, :4].mean(axis=0)
    ones = np.ones(len(y))
    lin = np.linalg.lstsq(np.c_[ones, arm, centred, centred * arm[:, None]], y)[0][1]
    assert np.abs(np.concatenate(exact) - line.real[:-1]).max() < 1e-14
    assert influence.mean() == pytest.approx(lin, abs=1e-12)


def test_without_noise_the_table_is_the_mean_of_influences_and_their_error() -> None:
    """Through the grid and the published 20 bits, to the grid's steps."""
    X, y = world(2_000, np.random.default_rng(1))
    rows = ps.measure(TRIAL.rows, X, y).real()
    d = TRIAL.width
    sums = ArmSums((rows.G[:d, :d], rows.G[d:, d:]), (rows.h[:d, 0], rows.h[d:, 0]), 1.0, 0.0, 0.0)
    line = Values.rounded(outcome_lines(sums, TRIAL.half))
    moments = ps.measure(TRIAL, X, y, published=Published.of({"line": line})).real()
    sums = InfluenceSums.of(SimpleNamespace(plan=OPEN, moments=moments, sigma={}))  # type: ignore[arg-type]
    ratio = ratio_of(TRIAL, sums, line, fitted=True)
    arm, x = arm_rows(TRIAL, X)
    influence, _, _ = influences(TRIAL, arm, x, y, {"line": line})
    assert ratio.estimate == pytest.approx(influence.mean(), abs=1e-6)
    assert ratio.error == pytest.approx(influence.std() / math.sqrt(2_000 - 15), rel=1e-3)
    assert ratio.noise_error == 0
    assert (ratio.degrees, ratio.sigma_W) == (pytest.approx(1985), 0)
    welch = y[arm].mean() - y[~arm].mean()
    assert abs(ratio.estimate - welch) < 3 * ratio.error


def test_columns_that_are_collinear_or_hidden_give_lines_that_are_finite() -> None:
    G = np.diag([4.0, 0.0, 9.0])
    assert ridge_line(G, np.array([4.0, 0.0, 9.0]), 0.0).tolist() == [1.0, 0.0, 1.0]
    assert np.abs(ridge_line(-G, np.array([4.0, 0.0, 9.0]), 10.0)).max() < 1
    assert not ridge_line(np.zeros((3, 3)), np.ones(3), 0.0).any()


def test_a_p_value_is_below_alpha_exactly_where_the_interval_leaves_null_out() -> None:
    chance = np.random.default_rng(2)
    for _ in range(300):
        S, W, v, tau = chance.normal() * 9, chance.uniform(0, 60), chance.uniform(0.1, 40), chance.uniform(0, 20)
        ratio = RatioOfSums(0.1, S, W, v, v / 2, tau, chance.uniform(3, 99))
        alpha, null = chance.uniform(0.01, 0.4), chance.normal()
        low, high = ratio.interval(alpha)
        assert (ratio.pvalue(null) < alpha) == (ratio.reported(alpha) and not low <= null <= high)
    hopeless = RatioOfSums(0.0, 1.0, -2.0, 1.0, 1.0, 1.0, 9.0)
    assert (hopeless.reported(0.05), hopeless.pvalue(), hopeless.error) == (False, 1.0, math.inf)


def test_the_noise_of_the_second_moment_costs_degrees_of_freedom() -> None:
    """Without them a trial of 2,000 at epsilon 8 misses more often than it may."""
    moments = SimpleNamespace(N=2_000.0, W=None, e=np.array([3.0, 1_990.0]))
    line = Values(np.zeros(TRIAL.features + 1, np.int64), 0)
    found: dict[float, RatioOfSums] = {}
    for sigma in (0.0, 2.0):
        release: Any = SimpleNamespace(plan=OPEN, moments=moments, sigma={"N": 2.5 * sigma, "e": sigma})
        found[sigma] = ratio_of(TRIAL, InfluenceSums.of(release), line, fitted=True)
    C = TRIAL.unit(line)
    spread = C**2 * (10 - 9 / 2_000) * 2_000 / 1_985
    assert found[0.0].degrees == pytest.approx(1_985)
    assert found[0.0].variance == pytest.approx(spread)
    variance, deviation = spread + 4 * C**2, C**2 * math.hypot(2.0, 5.0)
    assert found[2.0].variance == pytest.approx(variance)
    assert found[2.0].degrees == pytest.approx(1 / (1 / 1_985 + deviation**2 / (2 * variance**2)))


def coverage(n: int, epsilon: float, runs: int, probability: float, events: float | None = None, seed: int = 0) -> Any:
    """Count intervals that are reported, and that miss, in ``runs`` releases by the library's map, sums and noise."""
    schema = schema_of(probability, (-1, 1) if events is None else (0, 1))
    course, chance, rng = course_of(n, epsilon, schema), np.random.default_rng(seed), seeded(seed)
    truth, reported, missed = 0.1 if events is None else 0.5 * events, 0, 0
    for _ in range(runs):
        X, y = world(n, chance, probability)
        if events is not None:
            y = (chance.random(n) < events * (1 + 0.5 * X[:, 4])) * 1.0
        table = ps.inference.effect(played(course, X, y, rng))
        low, high = table.conf_int()
        reported, missed = reported + table.reported, missed + (not low <= truth <= high)
    return reported, missed


def low_end(missed: int, runs: int) -> float:
    return float(beta.ppf(0.025, missed, runs - missed + 1)) if missed else 0.0


def test_intervals_of_a_trial_hold(released: Any) -> None:
    """A quick look; the night has 500 runs of each cell."""
    reported, missed = coverage(500, 1.0, 60, 0.5)
    assert reported == 60
    assert low_end(missed, 60) <= 0.05
    table = ps.inference.effect(released)
    assert table.conf_int()[0] < 0.1 < table.conf_int()[1]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("n", "epsilon", "probability", "events", "least"),
    [
        (500, 1.0, 0.5, None, 1.0),
        (500, 8.0, 0.3, None, 0.8),
        (2_000, 0.3, 0.3, None, 1.0),
        (2_000, 8.0, 0.5, None, 1.0),
        (10_000, 1.0, 0.5, None, 1.0),
        (2_000, 100.0, 0.1, 0.03, 1.0),
        (2_000, 1.0, 0.1, 0.03, 1.0),
        (500, 100.0, 0.1, 0.01, 1.0),
        (120, 100.0, 0.5, 0.05, 1.0),
        (60, 30.0, 0.3, 0.1, 1.0),
    ],
)
def test_nightly_intervals_of_trials(n: int, epsilon: float, probability: float, events: Any, least: float) -> None:
    """At (2,000, 8) the noise of the second moment counts; rare events of a rare arm are skewed."""
    reported, missed = coverage(n, epsilon, 500, probability, events)
    assert reported >= least * 500
    assert low_end(missed, 500) <= 0.05


def test_rare_events_in_a_rare_arm_widen_the_interval_where_noise_is_small() -> None:
    """Without the rule half of these miss: one event in the rare arm weighs as much as all."""
    reported, missed = coverage(400, 100.0, 20, 0.1, 0.01)
    assert (reported, missed) == (20, 0)
    schema = schema_of(0.1, (0, 1))
    X, _ = world(400, np.random.default_rng(0), 0.1)
    table = ps.inference.effect(played(course_of(400, 100.0, schema), X, np.zeros(400), seeded(0)))
    assert table.reported
    assert ".4 of a standard error" in table.widened[0]
    assert "Widened: one record could weigh" in " ".join(str(table).split())
    assert table.ratio.variance == pytest.approx((schema.unit(_line_of(table)) / 0.4) ** 2)


def _line_of(table: Any) -> Values:
    return table.release.plan.published.values["line"]  # type: ignore[no-any-return]


def test_more_epsilon_takes_no_effect_away_and_widens_no_interval() -> None:
    """Few records and rare events: hidden before from the epsilon on at which noise is below .6 of one influence."""
    schema = schema_of(0.5, (0, 1))
    X, _ = world(60, np.random.default_rng(1))
    y = (np.arange(60) % 20 == 0) * 1.0
    widths = []
    for epsilon in (1.0, 3.0, 8.0, 30.0, 100.0):
        table = ps.inference.effect(played(course_of(60, epsilon, schema), X, y, seeded(3)))
        assert table.reported
        widths.append(float(np.diff(table.conf_int())[0]))
    assert all(later < 1.1 * before for before, later in pairwise(widths))
    assert table.widened


def test_less_noise_never_widens_a_ratio_of_sums() -> None:
    """From none to what hides the skew, at one estimate: the variance follows the noise, or its floor."""
    moments = SimpleNamespace(N=150.0, W=None, e=np.array([0.5, 149.0]))
    line = Values(np.zeros(TRIAL.features + 1, np.int64), 0)
    errors = []
    for sigma in (0.0, 0.1, 0.3, 0.59, 0.6, 1.0, 2.0):
        release: Any = SimpleNamespace(plan=OPEN, moments=moments, sigma={"N": sigma, "e": sigma})
        ratio = ratio_of(TRIAL, InfluenceSums.of(release), line, fitted=True)
        assert ratio.widened == (sigma < 0.6)
        errors.append(ratio.error)
    assert errors == sorted(errors)
    assert errors[0] > 0.6 * TRIAL.unit(line) / 150


def test_an_interval_holds_no_effect_that_the_range_of_outcomes_excludes(released: Any) -> None:
    table = ps.inference.effect(released)
    wide = replace(table, ratio=replace(table.ratio, variance=1e9))
    assert wide.conf_int().tolist() == [-np.inf, np.inf]
    assert wide.why_not_reported.startswith("noise hides the effect")
    one_end = replace(table, ratio=replace(table.ratio, S=4_000 * 1.9, variance=4_000**2 * 0.04))
    low, high = one_end.conf_int()
    assert 0 < low < high == 2.0


def test_the_table_states_its_assumptions_and_its_promise(released: Any) -> None:
    table = ps.inference.effect(released)
    text = " ".join(str(table).split())
    for said in (
        "Effect of a randomised treatment from a release",
        "each record, a patient or a whole clinic, was assigned by the plan's probability",
        "The effect is that of assignment",
        "Privacy: epsilon 3, delta 1e-06, all 2 rounds, unit record",
        "At most 5% of releases report an interval that misses",
    ):
        assert said in text
    assert "significant" not in text
    assert table.design == "trial"
    assert sum(table.arms) == pytest.approx(table.nobs, rel=0.05)
    frame = table.to_frame()
    assert frame["estimand"].tolist() == ["ate"]
    assert frame["estimate"].iloc[0] == table.estimate


def test_no_spread_between_sites_is_read_from_one_sum(released: Any) -> None:
    with pytest.raises(ReleaseError, match="no spread between sites"):
        ps.inference.effect(released).heterogeneity()


def test_balance_is_that_of_the_arms(released: Any) -> None:
    X, y = world(4_000, np.random.default_rng(5))
    found = ps.inference.effect(released).balance()
    arm = X[:, 4] == 1
    spread = np.sqrt((X[arm, :4].var(axis=0) + X[~arm, :4].var(axis=0)) / 2)
    exact = (X[arm, :4].mean(axis=0) - X[~arm, :4].mean(axis=0)) / spread
    assert found.columns == ("x0", "x1", "x2", "x3")
    assert found.reported.all()
    assert ((found.low <= exact) & (exact <= found.high)).all()
    assert np.abs(found.means[:, 0] - X[arm, :4].mean(axis=0)).max() < 0.1
    without = played(course_of(400, 3.0, adjust=False), X[:400], y[:400], seeded(6))
    with pytest.raises(ReleaseError, match="share=0 omits"):
        ps.inference.effect(without).balance()


def test_releases_out_of_order_or_of_other_courses_are_refused(released: Any) -> None:
    outcome, last = released
    other = played(course_of(4_000, 3.0), *world(4_000, np.random.default_rng(9)), seeded(9))
    for wrong, said in (
        ([], "no session has a release"),
        (last, "pass the list of all releases"),
        ([outcome], "the last session of the course has no release"),
        ([last], "used other outcome models"),
        ([other[0], last], "used other outcome models"),
        ([outcome, outcome, last], "release 1 is not the next of its course"),
        ([last, outcome], "release 1 is not the next of its course"),
    ):
        with pytest.raises(ReleaseError, match=said):
            ps.inference.effect(wrong)


def test_it_is_read_from_files_and_by_the_command(released: Any, privstats: Any, tmp_path: Any) -> None:
    for place, release in enumerate(released):
        release.save(tmp_path / f"{place}.release")
    loaded = [ps.Release.load(tmp_path / f"{place}.release") for place in range(2)]
    assert ps.inference.effect(loaded).to_rows() == ps.inference.effect(released).to_rows()
    facts = json.loads(privstats("table", "0.release", "1.release", "--format", "json", cwd=tmp_path).stdout)
    assert facts["reader"] == "effect"
    assert facts["rows"][0]["estimate"] == pytest.approx(ps.inference.effect(released).estimate)
    assert "other outcome models" in privstats("table", "1.release", "--reader", "effect", cwd=tmp_path, code=2).stderr


def observed_schema(estimand: Any = "ate", **changes: Any) -> ps.EffectSchema:
    return ps.EffectSchema.of(RANGES, treatment="arm", outcome=(-1, 1), estimand=estimand, **{"trim": 0.02, **changes})


def confounded(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Who is treated depends on the columns that outcomes depend on; the effect is .1."""
    x = np.clip(rng.normal(size=(n, 4)) * 0.4, -1, 1)
    arm = (rng.random(n) < 1 / (1 + np.exp(-x[:, 0] + 0.5 * x[:, 1]))) * 1.0
    return np.c_[x, arm], np.clip(0.1 * arm + 0.3 * x[:, 0] - 0.2 * x[:, 1] + rng.normal(size=n) * 0.15, -1, 1)


@pytest.fixture(scope="module")
def nuisances() -> Any:
    """Grid rows, the arm, outcomes, lines of 50 bits by least squares, and w of 50 bits by maximum likelihood."""
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    X, y = confounded(2_000, np.random.default_rng(3))
    arm, x = arm_rows(observed_schema(), X)
    U = x * (observed_schema().clip_norm / observed_schema().grid_steps)
    exact = [np.linalg.lstsq(U[arm == side], y[arm == side])[0] for side in (True, False)]
    select = sm.Logit(arm * 1.0, U).fit(disp=0)
    values = {
        "line": Values.rounded(np.concatenate([*exact, [0.0]]), bits=50),
        "w": Values.rounded(select.params, bits=40),
    }
    return x, U, arm, y, values, select


def test_without_noise_it_is_statsmodels_aipw(nuisances: Any, monkeypatch: Any) -> None:
    """On the same nuisances: its lines by arm, and our propensity, which is an integer of 2**-20."""
    from statsmodels.regression.linear_model import OLS
    from statsmodels.treatment.treatment_effects import TreatmentEffect

    x, U, arm, y, values, select = nuisances
    schema = observed_schema()
    theirs = TreatmentEffect(OLS(y, U), arm * 1, results_select=select)
    exact = theirs.aipw(return_results=False)[0]
    e = _propensity(x, values["w"], schema.clip_norm / schema.grid_steps)
    assert np.abs(e - select.predict()).max() < 2e-6
    theirs.prob_select = e
    influence, weight, kept = influences(schema, arm, x, y, values)
    assert kept.all()
    assert (weight == 1).all()
    assert influence.mean() == pytest.approx(theirs.aipw(return_results=False)[0], abs=1e-10)
    assert influence.mean() == pytest.approx(exact, abs=1e-6)


def test_the_effect_of_the_treated_has_their_influence_and_no_centred_square(nuisances: Any) -> None:
    """psi - theta omega, and not psi - theta: read with S2 - S^2 / n the error would be another."""
    x, U, arm, y, values, select = nuisances
    schema = observed_schema("att")
    influence, weight, kept = influences(schema, arm, x, y, values)
    e, m0 = select.predict(), U @ values["line"].real[5:10]
    exact = np.where(arm, y - m0, -e / (1 - e) * (y - m0)).sum() / arm.sum()
    assert influence.sum() / weight.sum() == pytest.approx(exact, abs=1e-6)
    residual, n = influence - exact * weight, len(y)
    for guess in (0.0, 0.8 * schema.half):  # of the effect, in units of the outcome
        line = Values.rounded(np.append(values["line"].real[:-1], guess))
        t = (schema.half * influence - guess * weight) / schema.unit(line)
        moments = SimpleNamespace(N=float(n), W=float(weight.sum()), e=np.array([t.sum(), n - np.square(t).sum()]))
        release: Any = SimpleNamespace(plan=OPEN, moments=moments, sigma={})
        ratio = _ratio_of_sums(schema, InfluenceSums.of(release), line, 0.0, True)
        assert ratio.estimate == pytest.approx(schema.half * exact, abs=1e-5)
        own = schema.half * math.sqrt(np.square(residual).sum()) / arm.sum()
        assert ratio.error == pytest.approx(own, rel=0.06), guess


def test_overlap_is_about_records_weighted_by_the_published_propensity(nuisances: Any) -> None:
    x, U, arm, y, values, select = nuisances
    schema = observed_schema("overlap", trim=0.1)
    influence, weight, kept = influences(schema, arm, x, y, values)
    e = select.predict()
    m1, m0 = U @ values["line"].real[:5], U @ values["line"].real[5:10]
    exact = e * (1 - e) * (m1 - m0) + arm * (1 - e) * (y - m1) - ~arm * e * (y - m0)
    assert influence == pytest.approx(exact, abs=3e-6)
    assert weight == pytest.approx(e * (1 - e), abs=3e-6)
    assert (np.abs(influence) <= schema.cap).all()


@pytest.fixture(scope="module")
def adjusted() -> dict[str, list[ps.Release | None]]:
    X, y = confounded(8_000, np.random.default_rng(4))
    return {
        estimand: played(course_of(8_000, 3.0, observed_schema(estimand, trim=0.1)), X, y, seeded(7 + len(estimand)))
        for estimand in ("ate", "att", "overlap")
    }


@pytest.mark.parametrize(
    ("estimand", "said"),
    [
        ("ate", "of records are in this population; the rest have a published propensity outside 0.1 to 0.9"),
        ("att", "of all records: the treated, except those that have a published propensity above 0.9"),
        ("overlap", "the records weighted by e (1 - e), e the published propensity"),
    ],
)
def test_an_adjusted_difference_says_first_what_no_sum_can_test(adjusted: Any, estimand: str, said: str) -> None:
    table = ps.inference.effect(adjusted[estimand])
    text = " ".join(str(table).split())
    assert table.summary().caution == (
        "No unmeasured confounding given the columns named in the plan: no sum can test this."
    )
    assert said in text
    assert "Adjusted difference between the arms" in text
    assert "effect" not in text
    assert "weighting was not released" in text
    assert "Privacy: epsilon 3, delta 1e-06, all 6 rounds" in text
    assert (table.design, table.reported, table.probability) == ("observational", True, None)
    assert 0 < table.r_ < 0.5
    assert table.conf_int()[0] < 0.1 < table.conf_int()[1]
    assert table.mean_weight == pytest.approx({"ate": 1.0, "att": 0.5, "overlap": 0.24}[estimand], abs=0.05)
    assert table.balance().reported.all()
    assert table.balance().difference[0] > 0.2


def test_a_propensity_that_noise_hides_widens_the_interval_to_any_within_the_trim() -> None:
    X, y = confounded(1_000, np.random.default_rng(5))
    table = ps.inference.effect(played(course_of(1_000, 0.5, observed_schema("overlap", trim=0.1)), X, y, seeded(8)))
    assert "who is treated" in table.widened[-1]
    low, high = table.conf_int()
    assert low < 0.1 < high


@pytest.mark.parametrize("estimand", ["ate", "att", "overlap"])
def test_no_propensity_within_the_trim_adds_more_than_the_bound(estimand: Any) -> None:
    """The sum of d x'b over any weights d that a propensity allows, for errors b of a line with covariance S."""
    rng, n, d = np.random.default_rng(6), 400, 5
    schema = observed_schema(estimand, trim=0.1)
    U, arm = np.c_[rng.uniform(-1, 1, (n, d - 1)), np.ones(n)], rng.random(n) < 0.3
    G = tuple(U[arm == side].T @ U[arm == side] for side in (True, False))
    root = rng.normal(size=(d, d))
    S = root @ root.T
    sums = ArmSums(G, (np.zeros(d), np.zeros(d)), 1.0, 0.0, 0.0)  # type: ignore[arg-type]
    for side in (1,) if estimand == "att" else (0, 1):
        largest = _Information(np.zeros((d, d)), np.zeros(d), 1.0, (1.0, 1.0)).largest_hidden(sums, S)
        most = _squared_weights(schema, sums.records, side) * largest
        for _ in range(200):
            e = rng.choice((0.1, rng.uniform(0.1, 0.9), 0.9), n)
            e = e if side == 0 else 1 - e
            own = arm if side == 0 else ~arm
            weights = {"ate": 1 - own / e, "att": np.where(own, 1 / e - 1, -1.0), "overlap": (1 - e) * (e - own)}
            moved = weights[estimand] @ U
            assert moved @ S @ moved <= most * (1 + 1e-9)


def test_releases_of_an_adjusted_difference_out_of_order_are_refused(adjusted: Any) -> None:
    releases, other = adjusted["ate"], adjusted["overlap"]
    for wrong, said in (
        ([*releases[1:]], "other weights than follow"),
        ([releases[1], releases[0], *releases[2:]], "release 1 is not the next of its course"),
        ([*other[:5], releases[5]], "release 5 is not the next of its course"),
        (
            [*other[:5], replace(releases[5], position=replace(releases[5].position, course=other[0].position.course))],
            "other outcome models, or another propensity",
        ),
        ([releases[5]], "pass the releases of the propensity"),
        ([*releases[:4], releases[5]], "of no outcome session"),
    ):
        with pytest.raises(ReleaseError, match=said):
            ps.inference.effect(wrong)


def test_an_adjusted_difference_is_read_from_files(adjusted: Any, tmp_path: Any) -> None:
    for place, release in enumerate(adjusted["overlap"]):
        release.save(tmp_path / f"{place}.release")
    loaded = [ps.Release.load(tmp_path / f"{place}.release") for place in range(6)]
    assert ps.inference.effect(loaded).to_rows() == ps.inference.effect(adjusted["overlap"]).to_rows()


def test_subgroups_add_up_to_all_records_and_no_part_takes_more_than_it_may() -> None:
    """Sums of the parts are those of the whole, and so is what they say of the effect."""
    schema = ps.EffectSchema.of(
        dict.fromkeys("abcd", (-1.0, 1.0)),
        treatment="arm",
        outcome={"first": (-1.0, 1.0), "second": (-1.0, 1.0)},
        probability=0.5,
        subgroups=(ps.Bins("a", (-1, 0, 1)), ps.Bins("b", (-1, -0.5, 0.5, 1))),
    )
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 8_000), made.promise(epsilon=8.0, delta=1e-6))
    X, y = world(4_000, np.random.default_rng(9))
    releases = played(course, X, np.column_stack([y, -y]), seeded(9))
    table = ps.inference.effects(releases)
    assert len(table) == 2 * (1 + 2 + 3)
    for name in ("first", "second"):
        for variable, parts in {"a": 2, "b": 3}.items():
            rows = [row for row in table if row.name == name and row.subgroup.startswith(variable)]
            assert len(rows) == parts
            assert sum(row.nobs for row in rows) == pytest.approx(table[name].nobs)
            assert sum(row.ratio.S for row in rows) == pytest.approx(table[name].ratio.S)
            assert sum(row.ratio.noise for row in rows) == pytest.approx(table[name].ratio.noise)
    first, second = table["first"].estimate, table["second"].estimate
    assert abs(first + second) < 4 * table["first"].noise_bse + 4 * table["second"].noise_bse + 0.02
    with pytest.raises(ReleaseError, match="inference.effects"):
        ps.inference.effect(releases)
    with pytest.raises(ReleaseError, match=".'third', ''.; .* .'first', ''."):
        table["third"]


def test_no_part_of_the_records_takes_more_of_the_nuisances_than_the_bound() -> None:
    """tr(A S_a A S_w) over parts A of M: of all records, projections, and parts by chance."""
    rng = np.random.default_rng(4)

    def positive(d: int) -> np.ndarray:
        root = rng.normal(size=(d, d)) * np.exp(rng.normal(size=d))
        return np.asarray(root @ root.T)

    for _ in range(200):
        M, S_a, S_w = (positive(4) for _ in range(3))
        most = _of_any_part(M, S_a, S_w)
        values, vectors = np.linalg.eigh(M)
        root = (vectors * np.sqrt(values)) @ vectors.T
        basis = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        for kept in (np.ones(4), rng.integers(0, 2, 4), rng.uniform(size=4)):
            part = root @ (basis * kept) @ basis.T @ root
            assert np.trace(part @ S_a @ part @ S_w) <= most * (1 + 1e-9)
    eye = np.eye(3)
    assert _of_any_part(eye, eye, eye) == pytest.approx(3.0), "met where errors have no direction"


def test_several_outcomes_have_the_lines_of_each_and_one_propensity() -> None:
    """As if each had a course of its own, but for the noise."""
    both = replace(observed_schema(), outcome_names=("first", "second"))
    privacy = made.promise(epsilon=100.0, delta=1e-6)
    course = ps.Effect.start(both, ps.Cohort(2, 2, 8_000), privacy)
    assert [plan.schema.task for plan in course.priced] == ["score"] * 4 + ["ridge", "effect"]
    assert dict(course.plan.schema.needs) == {"line": (11,), "line2": (11,), "w": (5,)}
    rng = np.random.default_rng(0)
    X, y = world(4_000, rng)
    other = np.clip(0.3 * X[:, 1] + 0.2 * rng.normal(size=4_000), -1, 1)
    together = ps.inference.effects(played(course, X, np.column_stack([y, other]), seeded(1)))
    alone = ps.Effect.start(observed_schema(), ps.Cohort(2, 2, 8_000), privacy)
    for name, outcome in {"first": y, "second": other}.items():
        single = ps.inference.effect(played(alone, X, outcome, seeded(2)))
        row = together[name]
        assert abs(row.estimate - single.estimate) < 5 * (row.noise_bse + single.noise_bse) + 1e-3
        assert row.bse == pytest.approx(single.bse, rel=0.5)


def test_a_trial_whose_arms_its_probability_does_not_give_is_not_told(released: Any) -> None:
    """An arm coded 1 and 2 leaves the controls out, and takes the rest for an effect."""
    assert ps.inference.effect(released).reported
    X, y = world(4_000, np.random.default_rng(6))
    kept = X[:, -1] == 1
    table = ps.inference.effect(played(course_of(4_000, 3.0), X[kept], y[kept], seeded(6)))
    assert table.hidden.startswith("2,0")
    assert "arm holds 0 and 1" in str(table.summary()).replace("\n  ", " ")
    assert np.isinf(table.conf_int()).all()
    skewed = course_of(4_000, 3.0, schema_of(probability=0.4))
    assert "0.4 does not give" in ps.inference.effect(played(skewed, X, y, seeded(7))).hidden


def test_a_table_says_which_text_is_the_treatment() -> None:
    rng, n = np.random.default_rng(0), 4_000
    arm = np.array(["placebo", "drug"])[np.arange(n) // 2 % 2]
    well = np.array(["no", "yes"])[(rng.random(n) < 0.3 + 0.2 * (arm == "drug")) * 1]
    X = np.column_stack([rng.uniform(20, 90, n).astype(object), arm])
    schema = ps.EffectSchema.of(
        {"age": (20, 90)}, treatment={"arm": ("placebo", "drug")}, outcome={"well": ("no", "yes")}, probability=0.5
    )
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
    course = ps.Effect.start(schema, ps.Cohort(2, 2, n), privacy)
    table = ps.inference.effect(ps.simulate(course, [(X[:n:2], well[:n:2]), (X[1::2], well[1::2])], rng=seeded(1)))
    low, high = table.conf_int()
    assert low < 0.2 < high
    assert low > 0
    said = "in arm 'placebo' counts as 0 and 'drug' as 1; in well 'no' counts as 0 and 'yes' as 1"
    assert said in " ".join(str(table.summary()).split())
    assert f"Of texts, {said}." in table.summary().methods


@pytest.mark.parametrize("half", [0.5, 15.0])
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_the_noise_of_the_records_is_in_the_outcomes_of_an_arm_too(half: float, share: float) -> None:
    """The sum about the middle is a released one less the middle of the noisy records: both noises are one."""
    rng, n, sigma = np.random.default_rng(0), 1_000, np.array([60.0 * half, 60.0])
    mean = half * (2 * share - 1)
    outcomes = half * (2 * rng.binomial(n, share, 2_000) - n)
    of_sum, of_records = sigma[:, None] * rng.normal(size=(2, 2_000))
    missed = 0
    for h, sum_noise, noise in zip(outcomes, of_sum, of_records, strict=True):
        centred = h + sum_noise - half * noise
        low, high = interval_of_mean(centred, n + noise, half, half, *sigma, None, 0.05)
        missed += not low <= mean <= high
    assert 0.035 < missed / 2_000 < 0.065
