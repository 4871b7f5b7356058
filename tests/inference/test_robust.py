"""Errors from the score's second moment: integers, bounds, and intervals under a variance that no model gives."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2

import privstats as ps
from privstats import inference as inf
from privstats.dp import joint_mu, sensitivity
from privstats.errors import SchemaError
from privstats.inference import last_step
from privstats.inference.inversion import Inversion, NormalEquations
from privstats.inference.regression.score import _dispersion
from privstats.kinds.score_sums import _mapped, own_scores
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from privstats.transforms import ByArm, ConstantFeature
from tests import made
from tests.inference import test_score
from tests.lengths import sized

CONSTANT = (ConstantFeature(1.0),)
LOGISTIC = ps.ScoreSchema(3, 2.0, transform=CONSTANT)
POISSON = ps.ScoreSchema(3, 2.0, family="poisson", target_bound=20.0, transform=CONSTANT)
SLOPES = np.array([-0.2, 0.5, 0.4])  # the intercept first


def world(n, seed, overdispersion=2.0):
    """Counts of a gamma frailty, whose variance is their mean plus ``overdispersion`` times its square."""
    rng = np.random.default_rng(seed)
    X = np.c_[np.clip(rng.normal(size=n) * 0.4, -1, 1), (rng.random(n) < 0.2) * 1.0]
    frailty = rng.gamma(1 / overdispersion, overdispersion, n) if overdispersion else 1.0
    return X, np.minimum(rng.poisson(np.exp(SLOPES[0] + X @ SLOPES[1:]) * frailty), 20)


def played(schema, X, y, epsilon, seed=1, rounds=None):
    return test_score.played(test_score.course_of(schema, len(y), epsilon, rounds), X, y, seed)


def sandwich(X, y, w, variance):
    """Huber's errors of intercept and slopes at weights w, in their order."""
    U = np.c_[np.ones(len(X)), X]
    mean, weight = variance(U @ w)
    inverse = np.linalg.inv((U * weight[:, None]).T @ U)
    score = U * (y - mean)[:, None]
    return np.sqrt(np.diag(inverse @ (score.T @ score) @ inverse))


@pytest.mark.parametrize("schema", [LOGISTIC, POISSON], ids=lambda schema: schema.family)
def test_the_sum_is_the_score_s_second_moment_to_the_grid(schema):
    X, y = world(2_000, 0)
    y = (y > 0) * 1 if schema is LOGISTIC else y
    w = Values.rounded(np.array([0.3, -0.1, 0.2]))
    moments = ps.measure(schema, X, y, published=Published.of({"w": w}))
    U = np.c_[X, np.ones(len(X))]
    fitted = U @ w.real
    residual = y - (1 / (1 + np.exp(-fitted)) if schema is LOGISTIC else np.exp(fitted))
    exact = (U * np.square(residual)[:, None]).T @ U
    # rounding adds up to 1/12 of a squared step to each record's square
    assert np.abs(moments.real().J - exact).max() < 0.002 * exact.max()
    halves = [ps.measure(schema, X[k::2], y[k::2], published=Published.of({"w": w})) for k in range(2)]
    assert halves[0] + halves[1] == moments


@given(st.integers(1, 60), st.integers(2, 12), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.999, 0.3]))
def test_no_record_s_own_score_is_longer_than_its_residual(columns, bits, seed, length):
    """Rows on the sphere with entries near half a step are those that rounding lengthens."""
    rng, steps = np.random.default_rng(seed), 1 << bits
    rows = rng.normal(size=(40, columns)) ** rng.choice([1, 3])
    unit = np.trunc(rows / np.linalg.norm(rows, axis=1, keepdims=True) * steps * length)
    residuals = rng.integers(-steps, steps + 1, 40).astype(float)
    scores = own_scores(unit, residuals, steps)
    assert (np.vecdot(scores, scores) <= np.square(residuals)).all()
    assert (np.abs(scores - unit * residuals[:, None] / steps) < 1).all()


def test_rounding_alone_would_lengthen_a_record():
    unit = np.full((1, 4), 2.0)  # of norm 4, which is the radius of a grid of two bits
    scores = own_scores(unit, np.array([3.0]), 4)
    assert np.vecdot(np.rint(unit * 0.75), np.rint(unit * 0.75)) > 9
    assert np.vecdot(scores, scores) <= 9


def test_a_column_of_small_values_keeps_its_variance():
    """Truncation would shorten each entry by half a step on average, and its interval with it."""
    rng = np.random.default_rng(0)
    unit = np.rint(rng.normal(size=(20_000, 1)) * 40)
    exact = np.square(unit * 300 / 4096).sum()
    found = np.square(own_scores(unit, np.full(20_000, 300.0), 4096)).sum()
    assert found == pytest.approx(exact, rel=0.02)
    assert np.square(np.trunc(unit * 300 / 4096)).sum() < 0.85 * exact


@given(st.data())
def test_every_record_keeps_the_bounds_together_whatever_is_published(data):
    schema = data.draw(st.sampled_from([LOGISTIC, POISSON]))
    whole = st.integers(-(1 << 19) + 1, (1 << 19) - 1)
    w = Values(np.array(data.draw(st.lists(whole, min_size=3, max_size=3)), np.int64), data.draw(st.integers(-8, 30)))
    rows = np.array(data.draw(st.lists(st.lists(st.floats(-9, 9), min_size=2, max_size=2), min_size=2, max_size=2)))
    y = np.array(data.draw(st.lists(st.sampled_from([0, 1]), min_size=2, max_size=2)))
    y = y if schema is LOGISTIC else y * 30
    (unit, residuals, roots, _), _ = _mapped(schema, rows, y, w)
    scores = own_scores(unit, residuals, schema.grid_steps)
    sigmas = {s: data.draw(st.floats(0.1, 10)) * sensitivity(schema, s, "add-remove") for s in "gHJ"}
    terms = {"g": unit * residuals[:, None], "H": _outer(roots), "J": _outer(scores)}

    def moved(change):
        return sum(np.square(change(v)).sum() / (sigmas[s] * schema.scale_of(s)) ** 2 for s, v in terms.items())

    rounding = 1 + 8 / schema.grid_steps  # of v, which is truncated at the same mean as r
    assert moved(lambda v: v[0]) <= joint_mu(schema, sigmas, "add-remove") ** 2 * rounding
    assert moved(lambda v: v[0] - v[1]) <= joint_mu(schema, sigmas, "replace-one") ** 2 * rounding


def _outer(rows):
    return rows[:, :, None] * rows[:, None, :]


def test_bounds_hold_on_a_grid_of_all_residuals():
    """Two records at any means and outcomes, with rows at any angle; with J alone the bound is attained."""
    y, m, c = np.meshgrid(np.linspace(0, 1, 21), np.linspace(0, 1, 21), np.linspace(-1, 1, 41))
    for score, information, square in ((1.0, 0.2, 0.1), (1.0, 0.5, 1.0), (1.0, 3.0, 5.0), (1e-9, 1e-9, 1.0)):
        weights = {"g": (score, 40.0), "H": (information, 80.0), "J": (square, 1600.0)}
        sigmas = {s: size / math.sqrt(weight) for s, (weight, size) in weights.items()}
        add = score * np.square(y - m) + information * m**2 + square * (y - m) ** 4
        assert add.max() == pytest.approx(joint_mu(POISSON, sigmas, "add-remove") ** 2)
        best = 0.0
        for y2, m2 in ((0, 0), (0, 1), (1, 0), (1, 1), (0.5, 0.2)):
            r, r2 = y - m, y2 - m2
            moved = score * (r**2 + r2**2 - 2 * r * r2 * c) + information * (m**2 + m2**2 - 2 * m * m2 * c**2)
            best = max(best, float((moved + square * (r**4 + r2**4 - 2 * r**2 * r2**2 * c**2)).max()))
        claimed = joint_mu(POISSON, sigmas, "replace-one") ** 2
        assert best <= claimed * (1 + 1e-9)
        assert best > (0.99 if score < 1 else 0.6) * claimed


def test_a_logistic_regression_s_bounds_hold_at_all_probabilities():
    p = np.linspace(0, 1, 20_001)
    for rho, square in ((1.0, 0.2), (9.0, 2.0), (20.0, 0.1), (200.0, 3.0)):
        sigmas = {"g": 2.0, "H": 4.0 / math.sqrt(rho), "J": 4.0 / math.sqrt(square)}
        moved = p**2 + rho * (p * (1 - p)) ** 2 + square * p**4
        assert moved.max() <= joint_mu(LOGISTIC, sigmas, "add-remove") ** 2 * (1 + 1e-9)


def test_default_shares_keep_the_information_free():
    noise = ps.Newton.start(LOGISTIC, ps.Cohort(2, 2, 9_000), made.promise(epsilon=1.0)).first.noise
    sigmas = {row.statistic: row.sigma for row in noise.rows}
    assert joint_mu(LOGISTIC, {s: sigmas[s] for s in "gJ"}, "add-remove") == pytest.approx(noise.mu, rel=1e-9)


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_little_noise_gives_the_sandwich(family):
    X, y = world(40_000, 3)
    schema, read = (POISSON, inf.poisson) if family == "poisson" else (LOGISTIC, inf.logit)
    y = y if family == "poisson" else (y > 0) * 1
    table = read(played(schema, X, y, 100.0, rounds=6))
    means = {
        "poisson": lambda fitted: (np.exp(fitted), np.exp(fitted)),
        "logistic": lambda fitted: (1 / (1 + np.exp(-fitted)), 1 / (2 + np.exp(fitted) + np.exp(-fitted))),
    }
    expected = sandwich(X, y, table.params, means[family])
    assert np.allclose(table.bse, expected, rtol=0.05)
    assert table.cov_type == "robust"
    plain = read(played(_without(schema), X, y, 100.0, rounds=6))
    if family == "poisson":  # overdispersion: the model's errors are far too small
        assert (table.bse > 1.5 * plain.bse).all()
    else:  # the model fixes the variance of a truth: both are errors of one thing
        assert np.allclose(table.bse, plain.bse, rtol=0.05)


def _without(schema):
    return replace(schema, errors="model")


def test_a_table_states_the_variance_that_its_errors_assume():
    X, y = world(6_000, 1)
    plain, robust = (inf.poisson(played(schema, X, y, 8.0)) for schema in (_without(POISSON), POISSON))
    equal = "the variance of counts with equal columns equals their mean"
    assert equal in str(plain.summary()).replace("\n  ", " ")
    assert any('errors="robust"' in note and "overdispersion" in note for note in plain.notes)
    assert equal not in robust.assumed
    assert not any("overdispersion" in note for note in robust.notes)
    assert "robust" in str(robust.summary())


@pytest.mark.parametrize("overdispersion", [0.0, 2.0])
def test_the_table_has_the_factor_of_a_quasi_poisson_regression(overdispersion):
    X, y = world(20_000, 5, overdispersion)
    table = inf.poisson(played(POISSON, X, y, 8.0))
    means = np.exp(SLOPES[0] + X @ SLOPES[1:])
    exact = np.square(y - means).sum() / means.sum()
    ratio, noise = table.dispersion
    assert abs(ratio - exact) < 4 * noise + 0.02
    assert noise < 0.5
    assert (exact > 2) == (overdispersion > 0)
    assert f"{ratio:.3g} (noise SE {noise:.2g})" in str(table.summary())


def test_no_factor_is_printed_where_it_is_not_measured_or_noise_hides_it():
    X, y = world(6_000, 1)
    assert inf.poisson(played(_without(POISSON), X, y, 8.0)).dispersion is None
    assert inf.logit(played(LOGISTIC, X, (y > 0) * 1, 8.0)).dispersion is None
    table = inf.poisson(played(POISSON, X, y, 8.0))
    equations = replace(table.errors.inversion.equations, sigma_G=1e4)
    hidden = replace(table, dispersion=_dispersion(equations))
    assert np.isnan(hidden.dispersion[0])
    assert "variance over mean -" in str(hidden.summary())


def test_the_second_moment_is_the_mean_over_the_rounds_that_have_settled(monkeypatch):
    """Their noise is independent; what truncation of persons' averages loses is the same in each."""
    X, y = world(20_000, 5)
    releases = played(POISSON, X, y, 8.0)
    last = [np.asarray(each.moments.J) for each in releases[-3:]]
    equations = inf.poisson(releases).errors.inversion.equations
    assert np.allclose(equations.score_variance, sum(each + each.T for each in last) / 6)
    sigma = releases[-1].sigma["J"]
    assert equations.sigma_J == pytest.approx(sigma / math.sqrt(3))
    lost = {**releases[-1].sigma, "J": math.hypot(sigma, 500.0)}
    monkeypatch.setattr(last_step, "reckoned_sigma", lambda _: lost)
    assert inf.poisson(releases).errors.inversion.equations.sigma_J == pytest.approx(
        math.hypot(sigma / math.sqrt(3), 500.0)
    )


def test_a_round_far_from_the_last_weights_is_not_in_the_second_moment():
    X, y = world(20_000, 5)
    releases = played(replace(POISSON, rate=5.0), X, y, 8.0, rounds=2)
    equations = inf.poisson(releases).errors.inversion.equations
    J = np.asarray(releases[-1].moments.J)
    assert np.array_equal(equations.score_variance, (J + J.T) / 2)
    assert equations.sigma_J == releases[-1].sigma["J"]


def test_noise_in_the_second_moment_makes_no_interval_narrower():
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows = rng.normal(size=(30, 3))
        G, noise = rows.T @ rows, rng.normal(size=(3, 3)) * 20
        terms = {"sigma_G": 0.5, "sigma_h": 1.0, "sigma_q": 0.0, "degrees": math.inf, "known_variance": 1.0}
        plain = NormalEquations(G, rng.normal(size=3) * 5, 0.0, **terms)
        measured = NormalEquations(G, plain.h, 0.0, **terms, score_variance=G + noise + noise.T)
        one, other = (Inversion(each, np.eye(3), math.inf) for each in (plain, measured))
        assert (other.error >= one.error).all()
        assert (other.pvalues() >= one.pvalues() * (1 - 1e-12)).all()
        assert other.joint_pvalue() >= one.joint_pvalue() * (1 - 1e-12)
        (low, high), (least, most) = one.interval(0.05), other.interval(0.05)
        assert ((least <= low) & (high <= most)).all()


def test_a_variance_that_noise_blurs_is_missed_as_often_as_is_claimed():
    """One contrast whose J has a relative error of 30 %: normal quantiles missed 6.4 %."""
    rng, runs = np.random.default_rng(0), 20_000
    terms = {"sigma_G": 0.0, "sigma_h": 0.0, "sigma_q": 0.0, "degrees": math.inf, "known_variance": 1.0}
    scores, J = rng.normal(size=runs) * math.sqrt(300), 300 + rng.normal(size=runs) * 90
    outside = {}
    for sigma in (90.0, 0.0):
        outside[sigma] = 0
        for part in np.split(np.arange(runs), 200):  # columns that share nothing, a hundred at a time
            G, eye = np.diag(np.full(len(part), 100.0)), np.eye(len(part))
            equations = NormalEquations(G, scores[part], 0.0, **terms, score_variance=np.diag(J[part]), sigma_J=sigma)
            outside[sigma] += int((np.abs(Inversion(equations, eye, math.inf).statistics()) > 1.959964).sum())
    assert outside[0.0] > 0.06 * runs
    assert outside[90.0] < 0.0545 * runs


def test_a_joint_test_without_noise_is_wald_s_with_the_sandwich():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 3))
    G, J, h = rows.T @ rows, 3 * (rows * rng.uniform(1, 2, 200)[:, None]).T @ rows, rng.normal(size=3) * 20
    exact = NormalEquations((G + G.T) / 2, h, 0.0, 0.0, 0.0, 0.0, math.inf, 1.0, (J + J.T) / 2)
    inverse = np.linalg.inv(G)
    w = inverse @ h
    wald = w @ np.linalg.solve(inverse @ J @ inverse, w)
    found = Inversion(exact, np.eye(3), math.inf).joint_pvalue()
    assert found == pytest.approx(float(chi2.sf(wald, 3)), rel=1e-6)


HAZARD = ps.HazardSchema(
    3,
    clip_norm=2.0,
    bins=ps.Bins("months", (0, 3, 6, 9)),
    event="died",
    feature_names=("arm", "age"),
    transform=CONSTANT,
    times="continuous",
    strata=ps.Categories("site", ("a", "b")),
)


def persons(n, seed=0):
    rng = np.random.default_rng(seed)
    arm, age, months = rng.integers(0, 2, n) * 1.0, rng.uniform(-1, 1, n), rng.uniform(0, 12, n)
    return {"arm": arm, "age": age, "months": months, "died": rng.integers(0, 2, n), "site": rng.choice(["a", "b"], n)}


def test_the_second_moment_of_hazards_is_that_of_persons_own_scores():
    """By the definition: each person is measured alone, and its score squared."""
    table = persons(80)
    published = Published.of(
        {
            "w": Values.rounded(np.array([0.4, -0.3, *[-2.0] * 6])),
            "c": Values(np.tile([1 << 14, 1 << 15, 3 << 14, 1 << 16], 6), 16),
        }
    )
    whole = ps.measure(HAZARD, table, published=published).real()
    alone = [
        ps.measure(HAZARD, {name: column[k : k + 1] for name, column in table.items()}, published=published).real()
        for k in range(80)
    ]
    scores = np.array([each.g for each in alone])
    assert np.abs(whole.J - scores.T @ scores).max() < 80 * 4 * HAZARD.clip_norm**2 / HAZARD.grid_steps
    assert np.abs(whole.J).max() > 1
    for each in alone:
        assert np.linalg.norm(each.J) <= HAZARD.clip_norm**2 * (1 + 1e-12)


def test_hazard_ratios_have_robust_errors():
    one = ps.HazardSchema(
        2,
        clip_norm=2.0,
        bins=ps.Bins("months", (0, 3, 6, 9)),
        event="died",
        feature_names=("age",),
        transform=CONSTANT,
        times="continuous",
    )
    course = ps.Hazard.start(one, ps.Cohort(2, 2, 16_000), made.promise(epsilon=8.0))
    rng = np.random.default_rng(0)
    age = rng.uniform(-1, 1, 8_000)
    died = rng.exponential(20 / np.exp(0.5 * age))
    table = {"age": age, "months": np.minimum(died, 10.0), "died": (died <= 10.0) * 1}
    parts = [({name: column[k::2] for name, column in table.items()}, None) for k in (0, 1)]
    found = inf.hazards(ps.simulate(course, parts, rng=seeded(1)))
    assert found.cov_type == "robust"
    assert found.conf_int()[0, 0] < 0.5 < found.conf_int()[0, 1]
    assert "ratios, robust, one step" in str(found.summary())


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"errors": "HC1"}, "errors must be 'robust' or 'model', or omitted, got 'HC1'"),
        ({"errors": "robust", "missing": "outcome"}, "a propensity has none"),
        ({"errors": "robust", "transform": (ByArm(1),), "features": 4}, "a propensity has none"),
    ],
)
def test_what_has_no_robust_errors_is_refused(changes, text):
    with pytest.raises(SchemaError, match=text):
        ps.ScoreSchema(**{"features": 4, "clip_norm": 1.0, **changes})


@pytest.mark.parametrize("schema", [LOGISTIC, POISSON], ids=lambda schema: schema.family)
def test_a_plan_file_without_errors_means_the_model_s(schema):
    """New schemas have robust errors; a stored plan keeps its meaning and its digest."""
    robust, model = (
        ps.Newton.start(each, ps.Cohort(2, 2, 90_000), made.promise(epsilon=8.0)).first
        for each in (schema, _without(schema))
    )
    assert (robust.schema.statistics, model.schema.statistics) == ("gHJ", "gH")
    assert 'errors = "robust"' in robust.to_toml()
    assert "errors" not in model.to_toml()
    assert [ps.Plan.from_toml(each.to_toml()) for each in (robust, model)] == [robust, model]
    stated = model.to_toml().replace("[schema]", '[schema]\nerrors = "model"')
    assert ps.Plan.from_toml(stated).digest == model.digest


def test_a_propensity_has_the_model_s_errors():
    assert ps.ScoreSchema(4, 1.0, missing="outcome").errors == "model"
    assert ps.ScoreSchema(4, 1.0, transform=(ByArm(1),)).statistics == "gH"


@pytest.mark.nightly
@pytest.mark.parametrize("overdispersion", [0.0, 2.0])
def test_of_hundreds_of_releases_no_more_miss_than_is_claimed(overdispersion):
    """A frailty of 2: the variance is 2.6 times the mean or more, and the model's errors miss a fifth."""
    runs, missed = sized(100, 300), np.zeros(3, int)
    for run in range(runs):
        X, y = world(20_000, run, overdispersion)
        low, high = inf.poisson(played(POISSON, X, y, 8.0, run)).conf_int().T
        missed += (low > SLOPES) | (high < SLOPES)
    assert (missed <= binom.ppf(0.999, runs, 0.05)).all()
