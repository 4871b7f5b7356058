"""Ceilings are the closed forms, and exist exactly where the plan promises something."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

import privstats as ps
from privstats.dp import Guarantee
from privstats.dp.models import MODELS, Drawer
from tests import made
from threat_models import ceilings
from threat_models.adversary import BARE, Adversary
from threat_models.report import Row, stated

from .conftest import plan_of, promise


@pytest.mark.parametrize("kept", [Guarantee(0.089), Guarantee(1.666), Guarantee(1.666, 2.0)])
def test_a_guess_is_a_test_with_the_rate_at_which_it_is_right(kept):
    assert ceilings.reconstruction(kept, 0.05) == kept.tpr(0.05)
    assert ceilings.reconstruction(kept, 0.0) == 0.0


def test_the_auc_is_what_two_gaussians_give():
    rng = np.random.default_rng(0)
    out, inside = rng.standard_normal((2, 200_000))
    assert np.mean(inside + 1.0 > out) == pytest.approx(Guarantee(1.0).auc, abs=0.005)


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
    assert ceilings.guaranteed(plan, adversary) == (None if factor is None else Guarantee(plan.noise.mu * factor))


def test_of_every_drawer_it_is_said_who_sees_no_noise():
    assert set(BARE) == set(get_args(Drawer)) == {row.drawn_by for row in MODELS.values()}


def test_without_dp_there_is_no_ceiling():
    assert ceilings.guaranteed(plan_of(), Adversary()) is None


def test_a_record_of_a_protected_client_is_a_removal_and_an_addition():
    plan = plan_of(promise(unit="client", max_records_per_client=100))
    assert ceilings.guaranteed(plan, Adversary()) == Guarantee(2 * plan.noise.mu)


def test_epsilons_of_a_pure_plan_add_up_over_releases_and_for_a_record_of_a_protected_client():
    pure = made.promise(epsilon=0.5, delta=0.0)
    plan = made.plan(ps.ClassSchema(2, 4, "NA", 1.0), ps.Cohort(3, 3, 100), pure)
    found = ceilings.guaranteed(plan, Adversary(sees="releases", releases=4))
    assert found == Guarantee(2 * plan.noise.mu, 2.0)
    client = replace(pure, unit="client", max_records_per_client=3)
    assert ceilings.guaranteed(replace(plan, privacy=client), Adversary()).pure == 1.0
    known = {"attack": "a", "number": 1, "goal": "b", "adversary": "c", "sees": "release", "metric": "AUC"}
    for kept, written in ((found, 2.0), (Guarantee(0.3), None), (None, None)):
        row = Row(**known, **stated(kept))
        assert row.guarantee == kept
        assert row.plain()["pure"] == written
