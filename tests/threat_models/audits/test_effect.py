"""The audits of treatment effects: the search, and worlds that flag a reader that forgets the noise."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.errors import PlanError
from privstats.inference.treatment_effects import influence_sums
from privstats.kinds.effect import influences
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from tests import made
from tests.lengths import sized
from threat_models.audits.effect import audit_effects
from threat_models.audits.effect_worlds import (
    OBSERVED,
    TRIALS,
    _fresh,
    _fresh_blocks,
    audit_effect_intervals,
    questions_of,
    tally,
)
from threat_models.audits.target import target_of

RUNS = sized(250, 500)
TRIAL = ps.EffectSchema.of({"age": (20, 90), "dose": (0, 4)}, treatment="arm", outcome=(40, 200), probability=0.5)


def observed(estimand: Any, epsilon: float, records: int = 3_000) -> ps.Effect:
    ranges = dict.fromkeys("abcd", (-1.0, 1.0))
    schema = ps.EffectSchema.of(ranges, treatment="arm", outcome=(-1, 1), estimand=estimand, trim=0.1)
    return ps.Effect.start(schema, ps.Cohort(2, 2, records), made.promise(epsilon=epsilon, delta=1e-6))


def course_of(epsilon: float = 1.0, records: int = 2_000) -> ps.Effect:
    return ps.Effect.start(TRIAL, ps.Cohort(2, 2, records), made.promise(epsilon=epsilon, delta=1e-6))


@pytest.mark.ci
def test_the_search_finds_the_bound_and_no_more() -> None:
    report = audit_effects(target_of(course_of().plan), seeded(1), moves=20, starts=2)
    assert not report.violated
    assert max(row[4] for row in report.rows) > 0.999


@pytest.mark.ci
def test_the_search_tries_a_neighbour_that_is_left_out() -> None:
    """Of an exchange with a record that cannot be read N moves by 1, which costs most where N has little noise."""
    promise = made.promise(epsilon=1.0, delta=1e-6, adjacency="replace-one", shares={"N": 0.99, "e": 0.01})
    schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
    published = Published.of({name: Values(np.zeros(shape, np.int64), 0) for name, shape in schema.needs.items()})
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 100), privacy=promise, published=published)
    report = audit_effects(target_of(plan), seeded(3), moves=20, starts=2)
    joint = {row[1]: row for row in report.rows if row[0] == "joint"}["replace-one"]
    assert not report.violated
    assert joint[3] >= 0.99 * joint[2]
    alone = {row[1]: row for row in report.rows if row[0] == "N"}["replace-one"]
    assert alone[3] == pytest.approx(1.0)


def test_a_plan_of_another_kind_is_refused() -> None:
    schema = ps.ClassSchema(2, 2, "NA", 1.0)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 9), privacy=made.promise())
    with pytest.raises(PlanError, match="the last plan of an Effect course"):
        audit_effects(target_of(plan), seeded(1))


@pytest.mark.parametrize("world", TRIALS)
def test_the_reader_keeps_its_claim(world: str) -> None:
    found = tally(course_of(), world, 1_000, seeded(2), 20)
    assert found.unread == 0
    assert found.reported[0] == 20
    assert found.missed[0] <= 5  # more come up in one of a thousand true claims


@pytest.mark.parametrize(("world", "least"), [("confounded", 20), ("beyond", 0), ("differing", 5)])
def test_the_reader_keeps_its_claim_where_nobody_assigned_the_treatment(world: str, least: int) -> None:
    found = tally(observed("overlap", 8.0), world, 3_000, seeded(2), 20)
    assert found.unread == 0
    assert found.reported[0] >= least
    assert found.missed[0] <= 4


def several(design: dict[str, Any], epsilon: float, records: int) -> ps.Effect:
    """Two outcomes in three subgroups."""
    ranges, ends = dict.fromkeys("abcd", (-1.0, 1.0)), (-1.0, 1.0)
    thirds = (ps.Bins("a", (-1.0, -0.2, 0.2, 1.0)),)
    schema = ps.EffectSchema.of(
        ranges, treatment="arm", outcome={"first": ends, "second": ends}, subgroups=thirds, **design
    )
    return ps.Effect.start(schema, ps.Cohort(2, 2, records), made.promise(epsilon=epsilon, delta=1e-6))


@pytest.mark.parametrize(
    ("design", "world", "epsilon", "least"),
    [({"probability": 0.5}, "trial", 1.0, 12), ({"estimand": "overlap", "trim": 0.1}, "differing", 8.0, 3)],
    ids=["trial", "observed"],
)
def test_every_row_of_several_keeps_the_claim(design: Any, world: str, epsilon: float, least: int) -> None:
    found = tally(several(design, epsilon, 4_000), world, 4_000, seeded(2), 12)
    assert found.names[:2] == (f"{world}, first", f"{world}, first, a: under -0.2")
    assert (len(found.names), found.unread) == (8, 0)
    assert found.reported[[0, 4]].min() >= least
    assert found.missed.max() <= 4
    assert found.missed.mean() <= 2


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("design", "epsilon"), [({"probability": 0.5}, 1.0), ({"estimand": "overlap", "trim": 0.1}, 8.0)]
)
def test_nightly_every_row_of_several_keeps_the_claim(design: Any, epsilon: float) -> None:
    assert not audit_effect_intervals(several(design, epsilon, 10_000), seeded(3), runs=RUNS).violated


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
def test_nightly_the_reader_keeps_its_claim(epsilon: float) -> None:
    assert not audit_effect_intervals(course_of(epsilon, 6_000), seeded(3), runs=RUNS).violated


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("estimand", ["ate", "att", "overlap"])
def test_nightly_the_reader_keeps_its_claim_in_confounded_worlds(estimand: Any, epsilon: float) -> None:
    assert not audit_effect_intervals(observed(estimand, epsilon, 10_000), seeded(3), runs=RUNS).violated


@pytest.mark.nightly
def test_nightly_records_beyond_the_trim_bias_nothing() -> None:
    """Where propensities are cut to the trim this misses every time that it tells."""
    assert tally(observed("ate", 8.0, 50_000), "beyond", 50_000, seeded(3), RUNS).missed[0] <= 0.07 * RUNS


def test_propensities_that_are_cut_and_not_dropped_are_flagged(monkeypatch: Any) -> None:
    """A cut propensity is a wrong one: the bias is many of its standard errors."""
    right = influences._propensity
    monkeypatch.setattr(influences, "_propensity", lambda x, w, step: np.clip(right(x, w, step), 0.1, 0.9))
    found = tally(observed("ate", 8.0, 50_000), "beyond", 50_000, seeded(5), 4)
    assert found.missed[0] >= 3


def test_a_reader_that_forgets_the_noise_is_flagged(monkeypatch: Any) -> None:
    right = influence_sums.RatioOfSums

    def without(*given: Any) -> Any:
        offset, S, W, variance, noise, sigma, degrees = given
        return right(offset, S, W, variance - noise, 0.0, sigma, degrees)

    monkeypatch.setattr(influence_sums, "RatioOfSums", without)
    assert audit_effect_intervals(course_of(0.3, 1_500), seeded(4), runs=40).violated


def test_the_command(privstats: Any, tmp_path: Any) -> None:
    ps.course.write(tmp_path / "trial.toml", course_of(records=600))
    done = privstats("audit", "inference", "trial.toml", "--runs", "20", "--seed", "1", "--json", cwd=tmp_path, code=0)
    (report,) = json.loads(done.stdout)
    assert {row["parameter"] for row in report["rows"]} == set(TRIALS)


def test_the_audit_of_the_whole_course_plants_a_record_of_an_arm(privstats: Any, tmp_path: Any) -> None:
    """Its made-up records had no arm, so that nothing was planted."""
    ps.course.write(tmp_path / "trial.toml", course_of(3.0, 600))
    done = privstats("audit", "course", "trial.toml", "--trials", "100", "--seed", "1", "--json", cwd=tmp_path, code=0)
    (report,) = json.loads(done.stdout)
    (row,) = report["rows"]
    assert not report["violated"]
    assert 0.8 < row["mu moved"] / row["mu claimed"] <= 1.001


@pytest.mark.parametrize("world", [*TRIALS.values(), *OBSERVED.values()], ids=[*TRIALS, *OBSERVED])
def test_truths_are_of_outcomes_as_they_are_drawn(world: Any) -> None:
    """Outcomes are cut to their range, so the mean of an arm is not the mean that they are drawn about."""
    schema = several({"probability": 0.5}, 1.0, 4_000).schema
    u = _fresh(schema.width - 1)
    for place, blocks in questions_of(schema):
        at = np.ones(len(u), np.bool_) if blocks is None else np.isin(_fresh_blocks(schema), blocks)
        drawn = [
            world._around((world.others(u) + arm * world.effect(u)) / (1 + place), np.random.default_rng(7))[at]
            for arm in (0, 1)
        ]
        gain = schema.half * (drawn[1] - drawn[0])
        assert abs(world.truth(schema, None, place, blocks) - gain.mean()) < 4 * gain.std() / len(gain) ** 0.5 + 1e-4
