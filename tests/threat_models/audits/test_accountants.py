"""Accountants that we did not write see the same noise and never contradict ours."""

import sys

import pytest

from privstats import ClassSchema, Cohort, RidgeSchema
from privstats.dp import calibrate
from privstats.errors import MissingExtraError, PlanError
from tests import made
from threat_models.audits import accountants
from threat_models.audits.accountants import audit_accountants, second_opinion
from threat_models.audits.target import target_of

MODULE = {"opacus": "opacus", "opacus-rdp": "opacus", "dp-accounting": "dp_accounting", "zcdp": None}
TIGHT = {"opacus": 0.02, "opacus-rdp": 0.35, "dp-accounting": 1e-3, "zcdp": 0.35}


def noise_of(epsilon, schema=None, **change):
    privacy = made.promise("distributed", epsilon=epsilon, delta=1e-6, **change)
    return calibrate(schema or ClassSchema(10, 64, "NAB", 1.0), privacy, honest_shares=10)


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
        noise_of(1.0, RidgeSchema(5, clip_norm=1.0, target_bound=1.0), adjacency="replace-one"), "zcdp"
    )
    exact = second_opinion(noise_of(1.0, RidgeSchema(5, clip_norm=1.0, target_bound=1.0)), "zcdp")
    assert opinion.epsilon > exact.epsilon * 1.05


def test_an_unknown_accountant_is_refused():
    with pytest.raises(PlanError, match="opacus"):
        second_opinion(noise_of(1.0), "moments")


@pytest.mark.parametrize("accountant", ["opacus", "opacus-rdp", "dp-accounting"])
def test_a_missing_accountant_names_what_to_install(accountant, monkeypatch):
    for name in ("opacus.accountants", "dp_accounting"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match="pip install"):
        second_opinion(noise_of(1.0), accountant)


def target(statistics="NAB", **promise):
    return target_of(
        made.plan(ClassSchema(3, 4, statistics, clip_norm=1.0), Cohort(5, 4, 500), made.promise(**promise))
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
    with pytest.raises(PlanError, match="zcdp counts Gaussian noise, and delta = 0 has Laplace noise"):
        audit_accountants(target("NA", delta=0.0), ["zcdp"])
    with pytest.raises(PlanError, match="noise must be a Noise, got Privacy; give plan.noise"):
        second_opinion(made.promise(), "zcdp")
