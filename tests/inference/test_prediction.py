"""Predicted widths against the widths that releases really have."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from privstats import session
from privstats.errors import PlanError
from privstats.randomness import seeded
from privstats.transforms import ConstantFeature
from tests.hazard.worlds import course_of, played, promise, world


def plan_of(epsilon, records=4_000):
    return ps.Plan(
        schema=ps.RidgeSchema(4, clip_norm=2.0, target_bound=2.0, transform=(ConstantFeature(1.0),)),
        cohort=ps.Cohort(2, 2, records),
        privacy=ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6),
    )


@pytest.mark.parametrize("epsilon", [2.0, 8.0])
def test_the_prediction_is_near_what_releases_have(epsilon):
    plan, rng = plan_of(epsilon), np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4_000, 3))
    y = X @ np.array([0.3, -0.3, 0.3]) + rng.normal(size=4_000) * 0.3
    parts = [ps.measure(plan.schema, X[k::2], y[k::2]) for k in range(2)]
    widths = [
        np.diff(inf.ols(session.aggregate_unmasked(plan, parts, seeded(s))).conf_int()[1:]) / 2 for s in range(15)
    ]
    predicted = inf.predicted_half_width(plan, 4_000, variance=1 / 3, residual=0.3)
    assert np.median(widths) == pytest.approx(predicted.noisy, rel=0.2)
    assert predicted.exact < predicted.noisy


def test_a_slope_that_will_not_be_told_has_no_width():
    assert math.isinf(inf.predicted_half_width(plan_of(0.1), 50, variance=0.1).noisy)


def test_without_noise_both_widths_are_one():
    plan = ps.Plan(schema=plan_of(1.0).schema, cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy())
    found = inf.predicted_half_width(plan, 100, variance=0.5, residual=1.0)
    assert found.exact == found.noisy == pytest.approx(1.96 / math.sqrt(50), rel=1e-3)


@pytest.mark.parametrize("wrong", [{"variance": 0.0}, {"variance": 1.0, "residual": -1.0}])
def test_guesses_are_above_zero(wrong):
    with pytest.raises(PlanError, match="above 0"):
        inf.predicted_half_width(plan_of(1.0), 100, **wrong)


def test_the_command_prints_widths(privstats, tmp_path):
    (tmp_path / "plan.toml").write_text(plan_of(3.0).to_toml())
    done = privstats("plan", "suggest", "--plan", "plan.toml", "--half-width", "0.33", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4,000" in done.stdout
    done = privstats("plan", "suggest", "--plan", "plan.toml", "--half-width", "0.33", "--json", cwd=tmp_path)
    assert [row["records"] for row in json.loads(done.stdout)["half_widths"]] == [4_000, 1_333, 400]
    assert privstats("plan", "suggest", "--half-width", "0.33", cwd=tmp_path).returncode == 2
    assert privstats("plan", "suggest", cwd=tmp_path).returncode == 2


def test_a_log_hazard_ratio_is_predicted_from_expected_events():
    course = course_of(20_000, 1.0)
    schema = replace(course.schema, expected_events=14_000)  # among the cohort's 40,000
    whole = replace(course.plan, schema=schema, privacy=promise(1.0))
    found = ps.inference.predicted_half_width(whole, 20_000, variance=0.22)
    assert found.exact == pytest.approx(1.96 / math.sqrt(7_000 * 0.22), rel=1e-3)
    table = ps.inference.hazards(played(course, world(20_000, 1), 1))
    low, high = table.conf_int()[2]  # of a column that is centred
    assert 0.7 < found.noisy / ((high - low) / 2) < 1.1
    assert ps.inference.predicted_half_width(whole, 200, variance=0.22).noisy == math.inf
    with pytest.raises(PlanError, match="give the schema expected_events"):
        ps.inference.predicted_half_width(replace(whole, schema=course.schema), 200, variance=0.25)
