"""``logit`` and ``risks`` on counts with gaps: right where complete cases are not, hidden where noise hides them."""

import doctest
import math
from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.imputation import logit, odds_table, risk_table, risks
from privstats.contrib.imputation.log_linear import Layout, fitted
from privstats.contrib.imputation.odds_table import coefficients
from privstats.contrib.imputation.risk_table import compared, risk_errors
from privstats.errors import ReleaseError
from tests import made
from tests.contrib.imputation.counts import ARM, DOSE, ILL, SCHEMA, SEX, SLOPES, exact, noisy, records
from tests.project.test_examples import FLAGS, GIVEN

TRUTH = np.array(list(SLOPES.values()))


@pytest.mark.parametrize("module", [odds_table, risk_table])
def test_examples_run(module):
    found = doctest.testmod(module, extraglobs=GIVEN, optionflags=FLAGS)
    assert found.attempted > 0
    assert found.failed == 0


def design(table):
    columns = [("dose", "middle"), ("dose", "high"), ("sex", "m"), ("arm", "placebo")]
    kept = [row for row in zip(*table.values(), strict=True) if row[0] is not None]
    found = dict(zip(table, zip(*kept, strict=True), strict=True))
    rows = [[float(found[name][i] == value) for name, value in columns] for i in range(len(kept))]
    return np.array(rows), np.array(found["ill"], float)


def test_without_gaps_it_is_logistic_regression():
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    table = records(5_000, missing=0.0)
    X, y = design(table)
    fit, theirs = logit(exact(table), outcome="ill"), sm.Logit(y, sm.add_constant(X)).fit(disp=0)
    assert fit.names == ("const", *SLOPES)
    assert np.allclose(fit.params, theirs.params, atol=0.25 * theirs.bse)  # the covariates' model smooths a little
    assert np.allclose(fit.bse, theirs.bse, rtol=0.02)
    assert fit.nobs == 5_000


def test_gaps_by_the_outcome_bias_complete_cases_and_not_imputation():
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    table = records(40_000)
    X, y = design(table)
    complete = sm.Logit(y, sm.add_constant(X)).fit(disp=0)
    fit = logit(exact(table), outcome="ill")
    assert abs(complete.params[0] + 1.0) > 5 * complete.bse[0]  # gaps by the outcome move the intercept
    assert abs(fit.params[0] + 1.0) < 3 * fit.bse[0]
    assert (np.abs(fit.params[1:] - TRUTH) < 3 * fit.bse[1:]).all()


def test_noise_makes_errors_larger_and_about_sums_it_is_all():
    table = records(20_000)
    without, within = logit(exact(table), outcome="ill"), logit(noisy(table, 3.0), outcome="ill")
    assert within.reported.all()
    assert (within.bse > without.bse).all()
    assert not without.noise_bse.any()
    assert (np.diff(within.conf_int(about="sums"), axis=1) < np.diff(within.conf_int(), axis=1)).all()
    assert (np.abs(within.params[1:] - TRUTH) < 4 * within.bse[1:]).all()
    assert within.wald_test(np.eye(5)[1:]) < 1e-6
    assert within.t_test([0, -1, 1, 0, 0], 0.5).pvalue > 1e-3


def test_a_reference_turns_its_contrasts_and_leaves_risks():
    release = exact(records(20_000))
    usual = logit(release, outcome="ill")
    turned = logit(release, outcome="ill", reference={"dose": "high", "arm": "placebo"})
    assert turned.names == ("const", "dose: low vs high", "dose: middle vs high", "sex: m vs f", "arm: drug vs placebo")
    assert turned.params[1] == pytest.approx(-usual.params[2], abs=1e-3)
    assert turned.bse[1] == pytest.approx(usual.bse[2], rel=1e-3)
    assert turned.params[4] == pytest.approx(-usual.params[4], abs=1e-3)
    first, second = (risks(release, outcome="ill", by="arm", reference=given) for given in ({}, {"arm": "placebo"}))
    assert [each.group for each in second.measures] == ["placebo", "drug", "drug", "drug"]
    assert second.measures[2].estimate == pytest.approx(-first.measures[2].estimate, abs=1e-4)


def test_risks_without_gaps_are_standardised_over_the_others():
    n = 20_000
    table = records(n, missing=0.0)
    found = risks(exact(table), outcome="ill", by="arm")
    risk = {}
    for arm in ("drug", "placebo"):
        risk[arm] = 0.0
        for dose in ("low", "middle", "high"):
            for sex in ("f", "m"):
                stratum = [i for i in range(n) if (table["dose"][i], table["sex"][i]) == (dose, sex)]
                ill = [table["ill"][i] for i in stratum if table["arm"][i] == arm]
                risk[arm] += len(stratum) / n * sum(ill) / len(ill)
    for each in found.measures[:2]:
        assert each.low < risk[each.group] < each.high
        assert each.estimate == pytest.approx(risk[each.group], abs=each.error / 2)
    difference, ratio = found.measures[2:]
    assert difference.estimate == pytest.approx(risk["placebo"] - risk["drug"], abs=difference.error / 2)
    assert ratio.estimate == pytest.approx(found.measures[1].estimate / found.measures[0].estimate)
    assert (difference.p_value < 0.001, found.reported) == (True, True)
    assert math.isnan(found.measures[0].p_value)


def test_variables_that_are_not_in_the_regression_explain_gaps():
    fit = logit(exact(records(40_000)), outcome="ill", columns=["dose"])
    assert fit.names == ("const", "dose: middle vs low", "dose: high vs low")
    sexes = logit(exact(records(40_000, missing=0.0)), outcome="ill", columns=["dose"])
    assert (np.abs(fit.params - sexes.params) < 3 * fit.bse).all()


def test_a_declared_product_is_in_the_regression():
    fit = logit(exact(records(20_000)), outcome="ill", interactions=[("sex", "arm")])
    assert fit.names[-1] == "sex: m vs f x arm: placebo vs drug"
    assert abs(fit.params[-1]) < 3 * fit.bse[-1]
    assert "but those declared" in fit.assumed


def test_what_noise_hides_is_not_reported_and_says_why():
    fit = logit(noisy(records(1_200), 0.3), outcome="ill")
    assert not fit.reported.all()
    assert np.isnan(fit.params[~fit.reported]).all()
    assert np.isinf(fit.conf_int()[~fit.reported]).all()
    assert (fit.pvalues[~fit.reported] == 1).all()
    assert "not reported where noise moves" in str(fit) or "no coefficient is reported" in str(fit)
    assert fit.wald_test(np.eye(5)[1:]) == 1.0
    hidden = risks(noisy(records(1_200), 0.3), outcome="ill", by="dose")
    assert [each.name for each in hidden.measures if not each.reported]
    assert "not reported where" in " ".join(str(hidden.summary()).split()) or "no risk" in str(hidden)


def test_a_value_that_no_record_has_hides_its_own_row_alone():
    rare = ps.Categories("dose", ("low", "middle", "high", "never"), missing=True)
    schema = ps.CountSchema((rare, SEX, ARM, ILL), (("dose", "sex", "arm", "ill"),))
    release = ps.Release.exact(schema, ps.measure(schema, records(10_000)))
    fit = logit(release, outcome="ill")
    assert dict(zip(fit.names, fit.reported.tolist(), strict=True)) == {
        "const": True, "dose: middle vs low": True, "dose: high vs low": True, "dose: never vs low": False,
        "sex: m vs f": True, "arm: placebo vs drug": True,
    }  # fmt: skip
    usual = logit(exact(records(10_000)), outcome="ill")
    assert np.allclose(fit.params[[1, 2, 4, 5]], usual.params[1:], atol=1e-2)
    assert fit.t_test([0, 0, 0, 0, 1, 0]).pvalue == pytest.approx(usual.t_test([0, 0, 0, 1, 0]).pvalue, rel=0.05)
    assert not fit.t_test([0, 0, 0, 1, 1, 0]).reported
    assert not risks(release, outcome="ill", by="dose").measures[3].reported


@pytest.mark.parametrize("chosen", [(0, 1), (0,)], ids=["whole", "without a variable"])
def test_odds_of_a_value_that_noise_empties_are_hidden_and_the_others_keep_their_level(chosen):
    """Noise often makes counts of a value in 1 % negative; the likelihood's maximum is then at the bound."""
    layout, rng, sigma = Layout((3, 2, 2), (True, False, False)), np.random.default_rng(0), 4.2
    shape = np.array([0.66, 0.33, 0.01])[:, None, None] * np.array([[0.36, 0.14], [0.36, 0.14]])
    seen = np.concatenate([0.7 * shape, 0.3 * shape.sum(axis=0, keepdims=True)]).reshape(-1)
    X = np.hstack([np.ones((12, 1)), *map(layout.indicators, chosen)])
    places = np.concatenate([layout.places((2,)), *(layout.places((each, 2)) for each in chosen)])
    truth = np.array([math.log(0.14 / 0.36), *np.zeros(len(places) - 1)])
    missed, reported, bound = np.zeros(len(truth)), np.zeros(len(truth)), 0
    for counts in rng.multinomial(2_000, seen, 300):
        fit = fitted(layout, counts + sigma * rng.standard_normal(len(counts)), sigma)
        own = coefficients(fit, X, places, whole=len(chosen) == 2)
        assert np.isfinite(own.error[[0, 1]]).all()
        missed += (np.abs(own.estimate - truth) > 1.96 * own.error) & (own.degrees > 0)
        reported += own.degrees > 0
        bound += np.abs(fit.theta).max() == 15
        hidden = [each for each in compared("ratio", "abc", risk_errors(fit, 0), 1.96) if not each.reported]
        assert [each.group for each in hidden] == ["c"]
    assert bound > 50
    assert missed.max() < 27  # 5 % of 300, and three standard deviations
    assert reported[2] == 0


def test_an_outcome_in_one_percent_never_ends_in_an_error():
    table = records(2_000)
    table["ill"] = [int(place % 100 == 0) for place in range(2_000)]
    for seed in range(20):
        release = noisy(table, 1.0, seed)
        assert not logit(release, outcome="ill").reported[0]
        assert not any(each.reported for each in risks(release, outcome="ill", by="arm") if each.name == "ratio")


def test_indicators_have_no_slope():
    with pytest.raises(ReleaseError, match="without slopes: add coefficients by t_test"):
        logit(exact(records(1_000)), outcome="ill").slope_at("sex: m vs f", {})


def test_tables_state_shares_assumptions_and_the_promise():
    release = noisy(records(20_000), 3.0)
    text = " ".join(str(logit(release, outcome="ill").summary()).split())
    assert "missing: dose" in text
    assert "missing at random" in text
    assert "infinitely many imputations" in text
    assert "epsilon 3" in text
    ratios = str(logit(release, outcome="ill").summary(exponentiate=True))
    assert "odds ratio" in ratios
    shown = " ".join(str(risks(release, outcome="ill", by="arm")).split())
    assert "Risks of ill = 1 by arm" in shown
    assert "Differences and ratios are to drug, over the dose and sex of all records." in shown
    assert set(risks(release, outcome="ill", by="arm").to_rows()[0]) <= set(ps.inference.FRAME_COLUMNS)


def other_table():
    schema = ps.CountSchema((DOSE, SEX, ARM, ILL), (("dose", "ill"), ("sex", "arm", "ill")))
    return ps.Release.exact(schema, ps.measure(schema, records(1_000)))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"outcome": None}, "outcome must be the name of a variable, got None"),
        ({"outcome": "ill", "columns": ["sex", "sex"]}, "names a variable twice"),
        ({"outcome": "dose"}, "'dose' has 3 values, and odds are of two"),
        ({"outcome": "death"}, "no table crosses death"),
        ({"outcome": "ill", "columns": ["bmi"]}, "no table crosses bmi, ill"),
        ({"outcome": "ill", "columns": ["ill"]}, "columns names the outcome"),
        ({"outcome": "ill", "columns": []}, "columns must be a list of different variables"),
        ({"outcome": "ill", "columns": "sex"}, "columns must be a list of different variables"),
        ({"outcome": "ill", "reference": {"height": "low"}}, "reference names 'height', which is no column"),
        ({"outcome": "ill", "reference": {"ill": "1"}}, "reference names 'ill', which is no column"),
        ({"outcome": "ill", "reference": {"dose": "huge"}}, "must be one of low, middle, high, got 'huge'"),
        ({"outcome": "ill", "interactions": [("sex", "sex")]}, "interactions must be pairs of different columns"),
        ({"outcome": "ill", "interactions": None}, "interactions must be pairs of different columns"),
        ({"outcome": "ill", "interactions": ["sex"]}, "interactions must be pairs of different columns"),
        ({"outcome": "ill", "interactions": [("sex", "arm"), ("arm", "sex")]}, "names a pair twice"),
    ],
)
def test_wrong_arguments_end_in_one_sentence(given, sentence):
    with pytest.raises(ReleaseError, match=sentence):
        logit(exact(records(1_000)), **given)


def test_wrong_groups_and_tables_end_in_one_sentence():
    release = exact(records(1_000))
    with pytest.raises(ReleaseError, match="columns names 'arm', whose groups are compared"):
        risks(release, outcome="ill", by="arm", columns=["arm"])
    for columns in ("sex", []):
        with pytest.raises(ReleaseError, match="columns must be a list of different variables"):
            risks(release, outcome="ill", by="arm", columns=columns)
    with pytest.raises(ReleaseError, match="by must be a variable of the table besides the outcome, got 'ill'"):
        risks(release, outcome="ill", by="ill")
    with pytest.raises(ReleaseError, match="several tables cross ill with others"):
        logit(other_table(), outcome="ill")
    assert logit(other_table(), outcome="ill", columns=["dose"]).names[1:] == (
        "dose: middle vs low",
        "dose: high vs low",
    )


def test_releases_for_which_intervals_were_not_measured_are_refused():
    ridge = ps.RidgeSchema(2, clip_norm=2.0, target_bound=1.0)
    other = ps.Release.exact(ridge, ps.measure(ridge, np.ones((5, 2)), np.ones(5)))
    with pytest.raises(ReleaseError, match="imputation through cells reads count tables"):
        logit(other, outcome="ill")
    with pytest.raises(ReleaseError, match="at least 100 records more than parameters"):
        logit(exact(records(60)), outcome="ill")
    with pytest.raises(ReleaseError, match="too few to estimate errors from"):
        logit(noisy(records(60), 0.05), outcome="ill")
    wide = ps.CountSchema(
        (*(ps.Categories(f"v{k}", tuple("abcdefgh")) for k in range(4)), ILL), (("v0", "v1", "v2", "v3", "ill"),)
    )
    many = {f"v{k}": list("abcdefgh") * 40 for k in range(4)} | {"ill": [0, 1] * 160}
    with pytest.raises(ReleaseError, match="8,192 cells without gaps, and at most 4,096"):
        logit(ps.Release.exact(wide, ps.measure(wide, many)), outcome="ill")


def test_laplace_noise_and_persons_are_refused():
    release = noisy(records(2_000), 3.0)
    pure = made.plan(SCHEMA, ps.Cohort(2, 2, 4_000), made.promise(epsilon=3.0, delta=0.0))
    with pytest.raises(ReleaseError, match="Laplace"):
        logit(replace(release, plan=pure), outcome="ill")
