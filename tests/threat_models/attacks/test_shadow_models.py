"""LiRA: shadow models against a fitted head, where few records hide each other, and under noise."""

import numpy as np
import pytest

import privstats as ps
from tests import made
from tests.made import promise
from tests.threat_models.conftest import examined
from threat_models.attack import attacks_named
from threat_models.attacks.shadow_models import Shadows

COHORT = ps.Cohort(3, 3, 400)
CLASSES = ps.ClassSchema(2, 40, "NAB", 1.0)
RIDGE = ps.RidgeSchema(40, clip_norm=1.0, target_bound=1.0)


def test_the_ratio_is_that_of_two_normal_densities():
    shadows = Shadows.of(np.array([1.0, 3.0]), np.array([-1.0, 1.0]))
    assert (shadows.inside, shadows.outside, shadows.variance) == (2.0, 0.0, 1.0)
    densities = [np.exp(-((1.5 - mean) ** 2) / 2) for mean in (2.0, 0.0)]
    assert shadows.ratio(1.5) == pytest.approx(np.log(densities[0] / densities[1]))


@pytest.mark.parametrize("schema", [CLASSES, RIDGE], ids=lambda schema: schema.task)
def test_few_records_without_noise_are_told_by_their_head(schema):
    ratio, plain = examined("lira", made.plan(schema, COHORT), 60)
    assert ratio.measured > 0.6
    assert (ratio.verdict, ratio.ceiling, ratio.baseline) == ("leaks", None, 0.5)
    assert ratio.measured >= plain.measured - 0.1


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_under_noise_it_stays_below_its_ceiling(adjacency):
    for row in examined("lira", made.plan(CLASSES, COHORT, promise(adjacency=adjacency)), 60):
        assert row.ceiling < 0.65
        assert row.verdict != "violates ceiling"
        assert row.measured < 0.75


def test_it_needs_a_head_of_records():
    (attack,) = attacks_named(["lira"])
    assert "is written for a ClassSchema or RidgeSchema" in attack.refusal(made.plan(ps.SitesSchema(4, 1.0), COHORT))


def test_a_client_of_few_records_deals_them_to_several():
    privacy = promise(unit="client", max_records_per_client=5)
    ratio, _ = examined("lira", made.plan(CLASSES, COHORT, privacy), 8)
    assert ratio.note.endswith("of 14 records")
