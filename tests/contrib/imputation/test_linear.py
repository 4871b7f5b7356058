"""``ols`` on columns with gaps: right where complete cases are not, hidden where noise hides it."""

import doctest
import math
from importlib import import_module

import numpy as np
import pytest

import privstats as ps
from benchmarks.measuring import results
from privstats import session
from privstats.contrib.imputation import SHARES, by_gaps, ols, schema_of
from privstats.contrib.imputation.linear import _COVERED, DRAWS, RubinErrors, barnard_rubin
from privstats.errors import ReleaseError
from privstats.randomness import seeded
from tests import made
from tests.contrib.imputation.cases import COLUMNS, SLOPES, exact, noisy, schema, table
from tests.project.test_examples import FLAGS, GIVEN

TRUTH = np.array(list(SLOPES.values()))


@pytest.mark.parametrize("name", ["gaps", "linear"])
def test_examples_run(name):
    found = doctest.testmod(import_module(f"privstats.contrib.imputation.{name}"), extraglobs=GIVEN, optionflags=FLAGS)
    assert found.attempted > 0
    assert found.failed == 0


def test_without_gaps_and_noise_it_is_least_squares():
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    records = table(400, share=0.0)
    X = sm.add_constant(np.column_stack([records["dose"], records["age"]]))
    fit, theirs = ols(exact(records), target="days"), sm.OLS(records["days"], X).fit()
    assert fit.names == ("const", "dose", "age")
    for name in ("params", "bse"):
        assert np.allclose(getattr(fit, name), getattr(theirs, name), rtol=5e-3), name
    assert fit.rsquared == pytest.approx(theirs.rsquared, abs=1e-3)
    assert fit.scale == pytest.approx(theirs.scale, rel=1e-3)
    assert fit.nobs == pytest.approx(400, abs=0.1)


def test_gaps_at_random_bias_complete_cases_and_not_imputation():
    records = table(20_000)
    fit = ols(exact(records), target="days")
    there = np.isfinite(records["dose"])
    X = np.column_stack([np.ones(there.sum()), records["dose"][there], records["age"][there]])
    complete = np.linalg.lstsq(X, records["days"][there], rcond=None)[0][1:]
    assert (np.abs(complete - TRUTH) > 4 * fit.bse[1:]).all()
    assert (np.abs(fit.params[1:] - TRUTH) < 3 * fit.bse[1:]).all()
    low, high = fit.conf_int()[1:].T
    assert ((low < TRUTH) & (high > TRUTH)).all()


def test_noise_makes_errors_larger_and_a_contrast_is_tested():
    records = table(20_000)
    without, within = ols(exact(records), target="days"), ols(noisy(records, 3.0), target="days")
    assert within.reported.all()
    assert (within.bse > without.bse).all()
    assert (without.noise_bse < 1e-12).all()
    assert (within.noise_bse > 0).all()
    assert (np.abs(within.params[1:] - TRUTH) < 4 * within.bse[1:]).all()
    assert (np.diff(within.conf_int(about="sums"), axis=1) < np.diff(within.conf_int(), axis=1)).all()
    assert within.t_test([0, 1, 0], 1.0).pvalue > 0.001
    assert within.wald_test([[0, 1, 0], [0, 0, 1]]) < 1e-6
    assert (within.pvalues[1:] < 1e-6).all()


def test_several_parameters_are_tested_by_the_smallest_p_value():
    fit = ols(noisy(table(2_000), 3.0), target="days")
    both = np.eye(len(fit.params))[1:]
    own = min(fit.t_test(row).pvalue for row in both)
    assert fit.wald_test(both) == pytest.approx(min(1.0, 2 * own))


def test_twenty_true_hypotheses_are_rejected_together_at_most_as_often_as_stated():
    """An F law with a covariance from the draws rejected 13 % of them at a level of 5 %."""
    rng, r, gamma, runs = np.random.default_rng(0), 20, 0.9, 1_000
    rejected = 0
    for _ in range(runs):
        draws = math.sqrt(gamma) * rng.standard_normal((DRAWS, r))
        errors = RubinErrors(
            solution=rng.standard_normal(r),
            within=(1 - gamma) * np.eye(r),
            complete_degrees=20_000.0,
            draws=draws,
            noisy=draws,
            valid=True,
            contrasts=np.eye(r),
            offset=np.zeros(r),
            residual=1.0,
            total=1.0,
            mean=0.0,
            eigenvalues=np.ones(r),
        )
        rejected += errors.joint_pvalue() < 0.05
    assert rejected / runs < 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_noise_that_hides_the_sums_reports_nothing():
    fit = ols(noisy(table(400), 0.4), target="days")
    assert not fit.reported.any()
    assert np.isnan(fit.params).all()
    assert np.isinf(fit.conf_int()).all()
    assert (fit.pvalues == 1).all()
    assert fit.wald_test([[0, 1, 0]]) == 1
    assert "no coefficient is reported: noise hides the sums by gap pattern" in " ".join(fit.notes)


def test_gaps_that_hide_most_of_the_information_report_nothing():
    fit = ols(exact(table(4_000, share=0.85)), target="days")
    assert not fit.reported.any()
    assert "no coefficient is reported: gaps hide" in " ".join(fit.notes)


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_singular_sums_report_nothing(share):
    records = table(400, share=share)
    if share < 1:
        records["age"][:] = 60.0
    fit = ols(exact(records), target="days")
    assert not fit.reported.any()
    assert "no coefficient is reported: noise hides" in " ".join(fit.notes)
    assert "no coefficient is reported" in " ".join(str(fit.summary()).split())


def test_the_released_noise_is_that_of_the_draws():
    """An empty table of all patterns shows the noise alone: on the diagonal as ``sigma``, off it less by sqrt(2)."""
    columns = {f"x{j}": (0.0, 1.0) for j in range(40)}
    measured = schema_of(columns, ["x0", "x1", "x2"], clip_norm=5.0)
    plan = made.plan(measured, ps.Cohort(2, 2, 10), made.promise(shares=dict(SHARES)))
    empty = {name: [] for name in columns}
    parts = [ps.measure(measured, *by_gaps(measured, empty), unreadable=plan.unreadable) for _ in range(2)]
    release = session.aggregate_unmasked(plan, parts, seeded(3))
    S, d, sigma = release.moments.S, 41, release.sigma["S"]
    assert np.array_equal(S, np.swapaxes(S, 1, 2))
    assert S[:, range(d), range(d)].std() == pytest.approx(sigma, rel=0.2)
    assert S[:, *np.triu_indices(d, 1)].std() == pytest.approx(sigma / np.sqrt(2), rel=0.05)


def test_clipping_is_read_from_released_numbers():
    records, tight = table(20_000), schema(clip_norm=2.6)
    notes = ols(ps.Release.exact(tight, ps.measure(tight, *by_gaps(tight, records))), target="days").notes
    (note,) = [note for note in notes if "raise clip_norm" in note]
    z = np.column_stack([(records[name] - at) / spread for name, (at, spread) in COLUMNS.items()])
    z = np.nan_to_num(z)
    lost = 1 - np.minimum(1, 2.6**2 / (4 + np.square(z).sum(1))).mean()
    assert f"{100 * lost:.2g} % of the rows' squares were clipped" in note
    assert not any("clip" in note for note in ols(exact(records), target="days").notes)
    assert any("noise hides how much" in note for note in ols(noisy(table(600), 1.0), target="days").notes)


def test_degrees_are_those_of_barnard_and_rubin():
    """Worked by hand: 20 draws, half of the variance from gaps, 96 complete degrees."""
    of_draws, of_records = 19 / 0.25, 0.5 * 96 * 97 / 99
    assert barnard_rubin(np.array([0.5]), 20, 96.0)[0] == pytest.approx(1 / (1 / of_draws + 1 / of_records))
    assert barnard_rubin(np.array([0.0]), 20, 96.0)[0] == pytest.approx(96 * 97 / 99)
    fit = ols(exact(table(300)), target="days")
    assert (fit.errors._degrees < 297).all()


def test_a_regression_on_some_columns_and_another_target():
    release = exact(table(2_000))
    assert ols(release, target="days", columns=["age"]).names == ("const", "age")
    assert ols(release, target=0).names == ("const", "age", "days")


def test_one_release_has_one_table():
    release = noisy(table(5_000), 3.0)
    assert np.array_equal(ols(release, target="days").bse, ols(release, target="days").bse)


def test_what_is_assumed_and_missing_is_printed():
    printed = str(ols(noisy(table(20_000), 3.0), target="days").summary())
    said = (
        "missing at random given the observed columns",
        "jointly normal",
        "dose 30 %",
        "no sum can test",
        "Jeffreys",
    )
    for text in (*said, "nothing bounds the error for skewed, heavy-tailed or discrete ones", "heavy tails (t laws of"):
        assert text in " ".join(printed.split()), text


WORLDS = {
    "a strongly skewed covariate": ("other columns", "a skewed covariate"),
    "heavy tails (t laws of 4 and 5 degrees)": ("beyond the model", "heavy tails"),
    "such a product": ("beyond the model", "a product in no model"),
}


@pytest.mark.parametrize("what", WORLDS)
def test_the_warning_names_the_worlds_that_fail_most_with_their_stored_coverage(what: str) -> None:
    """It named the mildest: a skewed covariate, where heavy tails and products cover far less."""
    assert _COVERED.keys() == WORLDS.keys()
    title, world = WORLDS[what]
    stored = [row for row in results("inference.imputation")[title] if row["world"] == world]
    rows = [row for row in stored if (row["records"], row["epsilon"]) == (20_000, None)]
    shares = [100 * (1 - row["worst slope"] / row["reported"]) for row in rows]
    assert {row["missing"] for row in rows} == {0.1, 0.3}
    assert _COVERED[what] == (math.floor(min(shares)), math.ceil(max(shares)))
    assert all(row["complete cases miss"] >= row["worst slope"] / row["reported"] for row in rows)


def test_sums_without_a_valid_interval_are_refused():
    release = exact(table(200))
    made.refused(ReleaseError, "leave it out", ols, release, target="days", columns=["days"])
    made.refused(ReleaseError, "no column of the release", ols, release, target="crp")
    made.refused(ReleaseError, "too few", ols, noisy(table(20), 0.5), target="days")
    made.refused(ReleaseError, "at least 100 records more than parameters", ols, exact(table(102)), target="days")
    other = ps.ClassSchema(2, 2, "NAS", 1.0)
    made.refused(
        ReleaseError, "schema_of", ols, ps.Release.exact(other, ps.measure(other, np.eye(2), [0, 1])), target=0
    )


def test_suppressed_patterns_are_refused():
    release = noisy(table(2_000, share=0.02), 8.0, min_count=200)
    made.refused(ReleaseError, "patterns of gaps were suppressed", ols, release, target="days")


def test_averaged_persons_are_refused():
    measured = schema(clip_norm=5.0)
    promise = made.promise(unit="person", person_clip="average", epsilon=8.0)
    plan = made.plan(measured, ps.Cohort(2, 2, 300), promise)
    release = ps.Release.exact(measured, ps.measure(measured, np.zeros((3, 3)), ["no gap"] * 3))
    made.refused(ReleaseError, "averages persons", ols, ps.Release(plan, release.vector, (0, 1)), target="days")
