"""G, h and q of a regression: one record, known rows, and which letters some attack reads."""

import numpy as np
import pytest

import privstats as ps
from tests.made import promise
from tests.threat_models.conftest import examined
from threat_models.attack import attacks, attacks_named
from threat_models.attacks.regression_records import row_and_target, targets_of

SCHEMA = ps.RidgeSchema(8, clip_norm=1.0, target_bound=2.0)
ATTACKS = ("ridge-one-record", "ridge-targets")


def plan_of(privacy=None, schema=SCHEMA):
    return ps.Plan(schema=schema, cohort=ps.Cohort(3, 2, 200), privacy=privacy or ps.NoPrivacy())


@pytest.mark.parametrize("targets", [1, 3])
def test_one_record_is_its_sums_up_to_a_sign(targets):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=8), rng.normal(size=targets)
    row, target = row_and_target(np.outer(x, x), np.outer(x, y), float(y @ y))
    sign = np.sign(row @ x)
    assert sign * row == pytest.approx(x)
    assert sign * target == pytest.approx(y)


def test_known_rows_give_up_as_many_targets_as_features():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 8)), rng.normal(size=(8, 2))
    assert targets_of(X, X.T @ y) == pytest.approx(y)


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("schema", [SCHEMA, ps.RidgeSchema(8, 2, clip_norm=3.0, target_bound=1.0, folds=3)])
def test_without_noise_it_always_succeeds(name, schema):
    (row,) = examined(name, plan_of(schema=schema), 30)
    assert row.measured == 1.0
    assert row.baseline < 0.4
    assert (row.verdict, row.ceiling) == ("leaks", None)


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("model", ["central", "distributed"])
def test_under_noise_it_stays_below_its_ceiling(name, model):
    (row,) = examined(name, plan_of(promise(model, epsilon=1.0)), 30)
    assert row.measured < 0.2
    assert row.ceiling is not None
    assert row.verdict in ("no evidence", "underpowered")


@pytest.mark.parametrize("letter", SCHEMA.statistics)
def test_every_letter_of_a_regression_is_read_by_a_reconstruction_and_by_a_membership_attack(letter):
    plan = plan_of(promise())
    reading = {
        attack.goal
        for attack in attacks()
        if attack.refusal(plan) is None and letter in (attack.reads or plan.schema.statistics)
    }
    assert {"reconstruction", "membership"} <= reading


def test_it_does_not_apply_to_classes():
    plan = plan_of(schema=ps.ClassSchema(2, 4, "NAS", 1.0))
    for attack in attacks_named(ATTACKS):
        assert "is written for a RidgeSchema" in attack.refusal(plan)
