"""Accountants that we did not write see the same noise and never contradict ours."""

import sys

import pytest

from privstats import ClassSchema, RidgeSchema
from privstats.dp import calibrate, crosscheck
from privstats.errors import MissingExtraError, PlanError
from tests import made

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
    opinion = crosscheck(noise_of(epsilon), accountant)
    assert opinion.ours == pytest.approx(epsilon, rel=1e-9)
    assert -1e-4 <= opinion.looser_by <= max(TIGHT[accountant], 0.02 / epsilon)
    assert set(opinion.alone) == set("NAB")
    for row in noise_of(epsilon).rows:
        assert opinion.alone[row.statistic] >= row.epsilon * (1 - 1e-3) - 1e-6


def test_composing_statistics_overstates_what_replacing_a_record_can_do():
    """No pair of records moves every statistic most at once, which only the formula for all of them together knows."""
    opinion = crosscheck(
        noise_of(1.0, RidgeSchema(5, clip_norm=1.0, target_bound=1.0), adjacency="replace-one"), "zcdp"
    )
    exact = crosscheck(noise_of(1.0, RidgeSchema(5, clip_norm=1.0, target_bound=1.0)), "zcdp")
    assert opinion.epsilon > exact.epsilon * 1.05


def test_an_unknown_accountant_is_refused():
    with pytest.raises(PlanError, match="opacus"):
        crosscheck(noise_of(1.0), "moments")


@pytest.mark.parametrize("accountant", ["opacus", "opacus-rdp", "dp-accounting"])
def test_a_missing_accountant_names_what_to_install(accountant, monkeypatch):
    for name in ("opacus.accountants", "dp_accounting"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match="pip install"):
        crosscheck(noise_of(1.0), accountant)
