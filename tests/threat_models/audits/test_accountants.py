"""Accountants that we did not write, the published bound and the auditor's own curve never contradict ours."""

import math
import sys

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import privstats as ps
from tests import made
from tests.made import refused
from threat_models.audits import accountants, promise
from threat_models.audits.accountants import audit_accountants, second_opinion
from threat_models.audits.promise import delta_of, mu_of, promise_of
from threat_models.audits.target import target_of
from threat_models.audits.zcdp import distributed_rho, zcdp_delta, zcdp_epsilon

MODULE = {"opacus": "opacus", "opacus-rdp": "opacus", "dp-accounting": "dp_accounting", "zcdp": None}
TIGHT = {"opacus": 0.02, "opacus-rdp": 0.35, "dp-accounting": 1e-3, "zcdp": 0.35}


def noise_of(epsilon, schema=None, **change):
    privacy = made.promise("distributed", epsilon=epsilon, delta=1e-6, **change)
    return ps.dp.calibrate(schema or ps.ClassSchema(10, 64, "NAB", 1.0), privacy, honest_shares=10)


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("accountant", MODULE)
def test_their_epsilon_is_ours_or_looser_by_a_known_amount(accountant, epsilon):
    if MODULE[accountant]:
        pytest.importorskip(MODULE[accountant])
    opinion = second_opinion(noise_of(epsilon), accountant)
    assert opinion.ours == pytest.approx(epsilon, rel=1e-9)
    assert -1e-4 <= opinion.looser_by <= max(TIGHT[accountant], 0.02 / epsilon)
    assert set(opinion.alone) == set("NAB")
    for row in noise_of(epsilon).rows:
        assert opinion.alone[row.statistic] >= row.epsilon * (1 - 1e-3) - 1e-6


def test_composing_statistics_overstates_what_replacing_a_record_can_do():
    """No pair of records moves every statistic most at once, which only the formula for all of them together knows."""
    opinion = second_opinion(
        noise_of(1.0, ps.RidgeSchema(5, clip_norm=1.0, target_bound=1.0), adjacency="replace-one"), "zcdp"
    )
    exact = second_opinion(noise_of(1.0, ps.RidgeSchema(5, clip_norm=1.0, target_bound=1.0)), "zcdp")
    assert opinion.epsilon > exact.epsilon * 1.05


def test_an_unknown_accountant_is_refused():
    refused(ps.PlanError, "opacus", second_opinion, noise_of(1.0), "moments")


@pytest.mark.parametrize("accountant", ["opacus", "opacus-rdp", "dp-accounting"])
def test_a_missing_accountant_names_what_to_install(accountant, monkeypatch):
    for name in ("opacus.accountants", "dp_accounting"):
        monkeypatch.setitem(sys.modules, name, None)
    refused(ps.MissingExtraError, "pip install", second_opinion, noise_of(1.0), accountant)


def target(statistics="NAB", **promise):
    return target_of(
        made.plan(ps.ClassSchema(3, 4, statistics, clip_norm=1.0), ps.Cohort(5, 4, 500), made.promise(**promise))
    )


def test_an_audit_has_a_row_for_each_statistic_and_one_for_all():
    report = audit_accountants(target(), ["zcdp", "zcdp"])
    assert [row[:2] for row in report.rows] == 2 * [("zcdp", name) for name in ("N", "A", "B", "joint")]
    assert [row[3] for row in report.rows[:3]] == [row.epsilon for row in target().noise.rows]
    assert not report.violated


def test_an_accountant_that_proves_less_than_ours_contradicts_the_claim(monkeypatch):
    right = accountants._ACCOUNTANTS["zcdp"]
    monkeypatch.setitem(accountants._ACCOUNTANTS, "zcdp", lambda multipliers, delta: right(multipliers, delta) / 2)
    assert audit_accountants(target(), ["zcdp"]).violated


def test_what_no_accountant_counts_is_refused_by_name():
    with pytest.raises(ps.PlanError, match="zcdp counts Gaussian noise, and delta = 0 has Laplace noise"):
        audit_accountants(target("NA", delta=0.0), ["zcdp"])
    refused(ps.PlanError, "noise must be a Noise, got Privacy; give plan.noise", second_opinion, made.promise(), "zcdp")


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, *(pytest.param(each, marks=pytest.mark.nightly) for each in (0.1, 10.0))])
@pytest.mark.parametrize("model", [pytest.param("central", marks=pytest.mark.nightly), "distributed"])
def test_the_joint_epsilon_is_that_of_googles_pld_accountant(epsilon, model):
    """Each statistic as its own Gaussian release, composed by dp-accounting: within 1e-3 of ours."""
    pld = pytest.importorskip("dp_accounting.pld.pld_privacy_accountant", reason="dp-accounting is not installed")
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    plan = made.plan(
        ps.ClassSchema(10, 64, "NABD", clip_norm=1.0, grid_bits=14),
        ps.Cohort(10, 8, 5_000),
        made.promise(model, epsilon=epsilon),
    )
    budget = plan.budget()
    accountant = pld.PLDAccountant(value_discretization_interval=1e-5 * max(1, epsilon))
    for row in budget.rows:
        accountant.compose(dp_event.GaussianDpEvent(row.sigma / row.sensitivity))
    assert accountant.get_epsilon(budget.delta) == pytest.approx(budget.epsilon, abs=1e-3)


RHO = st.floats(-6, 2).map(lambda p: 10**p)
DELTA = st.floats(-12, -2).map(lambda p: 10**p)


@given(rho=RHO, delta=DELTA, order=st.floats(-6, 6).map(lambda p: 1 + 10**p))
@example(rho=1e-5, delta=0.01, order=101.0)  # where the formula is negative, the epsilon is 0
def test_no_order_gives_a_smaller_epsilon(rho, delta, order):
    with mpmath.workdps(40):
        a = mpmath.mpf(order)
        at_order = a * rho + (mpmath.log(1 / mpmath.mpf(delta)) + (a - 1) * mpmath.log(1 - 1 / a) - mpmath.log(a)) / (
            a - 1
        )
    assert zcdp_epsilon(rho, delta) <= max(float(at_order), 0.0) * (1 + 1e-7) + 1e-12


@given(rho=RHO, delta=DELTA)
def test_the_conversion_inverts_itself(rho, delta):
    epsilon = zcdp_epsilon(rho, delta)
    if epsilon > 1e-6:
        assert math.log(zcdp_delta(rho, epsilon)) == pytest.approx(math.log(delta), rel=1e-4)


@given(mu=st.floats(-3, 1).map(lambda p: 10**p), delta=DELTA)
def test_the_conversion_is_never_better_than_the_exact_curve(mu, delta):
    assert zcdp_epsilon(mu * mu / 2, delta) >= ps.dp.gaussian_epsilon(mu, delta) * (1 - 1e-9)


@pytest.mark.parametrize(("epsilon", "looser"), [(0.1, 0.30), (1.0, 0.22), (10.0, 0.09)])
def test_how_much_looser_than_ours_it_is(epsilon, looser):
    mu = ps.dp.gaussian_mu(epsilon, 1e-6)
    assert 0.02 < zcdp_epsilon(mu * mu / 2, 1e-6) / epsilon - 1 < looser


def test_many_wide_shares_cost_what_one_wide_noise_costs():
    assert distributed_rho(100.0, 200.0, 25, 5000) == pytest.approx((100 / (5 * 200)) ** 2 / 2, rel=1e-12)


def test_narrow_shares_cost_more():
    assert distributed_rho(1.0, 0.5, 10, 1000) > 1.5 * (1 / (math.sqrt(10) * 0.5)) ** 2 / 2


@pytest.mark.parametrize(("rho", "delta"), [(0.0, 1e-5), (math.nan, 1e-5), (1.0, 0.0), (1.0, 1.0)])
def test_arguments_out_of_range_are_refused(rho, delta):
    refused(ValueError, "must", zcdp_epsilon, rho, delta)


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 8.0, 100.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-6, 0.1])
def test_mu_is_right_to_nine_digits(epsilon, delta):
    mu = mu_of(epsilon, delta)
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        truth = mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)
        assert abs(truth / mpmath.mpf(delta) - 1) < 1e-9
    assert delta_of(mu, epsilon) == pytest.approx(delta, rel=1e-9)


def test_no_function_of_the_library_is_asked(monkeypatch):
    """A curve that is wrong in the library leaves the auditor's where it is."""
    before = mu_of(2.0, 1e-7)
    for name in ("gaussian_mu", "gaussian_delta", "gaussian_epsilon", "joint_mu"):
        monkeypatch.setattr(ps.dp, name, None)
        assert not hasattr(promise, name)
    mu_of.cache_clear()
    assert mu_of(2.0, 1e-7) == before


def test_a_unit_is_worth_what_the_plan_declares():
    fields = {"model": "central", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-6}
    assert promise_of(ps.Privacy(unit="record", **fields)).records == 1
    assert promise_of(ps.Privacy(unit="client", max_records_per_client=30, **fields)).records == 30
    clipped = ps.Privacy(unit="client", max_records_per_client=30, client_clip=4.0, **fields)
    assert promise_of(clipped).records == 4
