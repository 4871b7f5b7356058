"""Ceilings are the closed forms, and exist exactly where the plan promises something."""

from typing import get_args

import numpy as np
import pytest

from privstats.dp import operating_point
from privstats.dp.models import MODELS, Drawer
from threat_models import ceilings
from threat_models.adversary import BARE, Adversary

from .conftest import plan_of, promise


@pytest.mark.parametrize("mu", [0.089, 0.268, 0.719, 1.666])
def test_ceilings_are_those_of_the_trade_off_curve(mu):
    assert (ceilings.tpr(mu, 0.01), ceilings.auc(mu), ceilings.advantage(mu)) == pytest.approx(operating_point(mu))
    assert ceilings.reconstruction(mu, 0.05) == ceilings.tpr(mu, 0.05)
    assert ceilings.reconstruction(mu, 0.0) == 0.0


def test_the_auc_is_what_two_gaussians_give():
    rng = np.random.default_rng(0)
    out, inside = rng.standard_normal((2, 200_000))
    assert np.mean(inside + 1.0 > out) == pytest.approx(ceilings.auc(1.0), abs=0.005)


@pytest.mark.parametrize(
    ("model", "adversary", "factor"),
    [
        ("central", Adversary(), 1),
        ("central", Adversary(sees="transcript"), None),
        ("central", Adversary(sees="cohort"), None),
        ("distributed", Adversary(sees="transcript", colluders=1), 1),
        ("distributed", Adversary(colluders=2), None),
        ("distributed", Adversary(sees="cohort"), None),
        ("local", Adversary(sees="cohort"), 1),
        ("central", Adversary(sees="releases", releases=4), 2),
        ("panel", Adversary(), 1),
        ("panel", Adversary(sees="transcript", colluders=2), 1),
        ("panel", Adversary(sees="cohort"), None),
    ],
)
def test_a_ceiling_stands_where_the_plan_promises_something(model, adversary, factor):
    plan = plan_of(promise(model))
    expected = None if factor is None else pytest.approx(plan.noise.mu * factor)
    assert ceilings.guaranteed_mu(plan, adversary) == expected


def test_of_every_drawer_it_is_said_who_sees_no_noise():
    assert set(BARE) == set(get_args(Drawer)) == {row.drawn_by for row in MODELS.values()}


def test_without_dp_there_is_no_ceiling():
    assert ceilings.guaranteed_mu(plan_of(), Adversary()) is None


def test_a_record_of_a_protected_client_is_a_removal_and_an_addition():
    plan = plan_of(promise(unit="client", max_records_per_client=100))
    assert ceilings.guaranteed_mu(plan, Adversary()) == pytest.approx(2 * plan.noise.mu)
