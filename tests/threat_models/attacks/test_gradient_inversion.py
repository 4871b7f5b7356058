"""The published inversion of a clipped gradient: a record's direction and label, without noise and under it."""

from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from tests.threat_models.attacks.test_one_missing import noiseless, plan_of
from tests.threat_models.conftest import examined
from threat_models.attack import attacks_named
from threat_models.attacks.gradient_inversion import inverted

__all__ = ["noiseless"]

SOFTMAX = ps.GradientSchema(6, 3, residual_norm=0.3, expected_records=100, course_mu=1.0)
SCHEMAS = (
    SOFTMAX,
    replace(SOFTMAX, class_names=("ash", "beech", "elm")),
    ps.GradientSchema(6, residual_norm=1.0, expected_records=100, course_mu=1.0, target_bound=2.0),
    ps.ScoreSchema(6, 1.0),
    ps.ScoreSchema(6, 1.0, family="poisson", target_bound=9),
)


def test_a_clipped_softmax_gradient_is_its_row_and_label():
    rng = np.random.default_rng(0)
    row = np.r_[rng.normal(size=4), 0.1]
    p = np.array([0.2, 0.5, 0.3])
    residual = 0.3 * (p - np.eye(3)[1])
    direction, label = inverted(plan_of(SOFTMAX), np.outer(residual, row))
    assert direction == pytest.approx(row[:-1] / np.linalg.norm(row[:-1]))
    assert label == 1


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: f"{schema.task}-{schema.statistics}")
def test_without_noise_it_always_succeeds(schema, noiseless):
    (row,) = examined("gradient-inversion", plan_of(schema), 30)
    assert row.measured == 1.0
    assert row.baseline < 0.2


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: f"{schema.task}-{schema.statistics}")
def test_under_noise_it_stays_below_its_ceiling(schema):
    (row,) = examined("gradient-inversion", plan_of(schema), 30)
    assert row.measured < 0.2
    assert row.ceiling is not None
    assert row.verdict in ("no evidence", "underpowered")


def test_several_rows_and_modules_are_refused():
    (attack,) = attacks_named(["gradient-inversion"])
    persons = plan_of(SOFTMAX, unit="person", max_records_per_person=4, person_clip=2.0)
    assert "several rows" in attack.refusal(persons)
    assert "of a module" in attack.refusal(plan_of(replace(SOFTMAX, module="adapter/5")))
