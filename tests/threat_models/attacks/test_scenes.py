"""Attributes, properties, pictures and published models: read off without noise, hidden by it, or a reason why not."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from privstats import ClassSchema, Cohort, RidgeSchema
from privstats.randomness import seeded
from tests import made
from threat_models.adversary import Adversary
from threat_models.attack import attacks_named
from threat_models.attacks.attribute_inference import AttributeInference, _public
from threat_models.data import people, synthetic_pool
from threat_models.evaluate import Effort, evaluate
from threat_models.pictures import figures
from threat_models.scene import Scene
from threat_models.world import Setting, draw

from ..conftest import plan_of, promise, ridge_plan

COHORT = Cohort(4, 3, 2000, 1)
BARE = made.plan(ClassSchema(3, 12, "NAS", clip_norm=1.0), COHORT)
NOISY = replace(BARE, privacy=promise(epsilon=0.5))
RIDGE = made.plan(RidgeSchema(6, clip_norm=1.0, target_bound=1.0), COHORT)


def played(name, plan, trials=40):
    return evaluate(plan, attacks_named([name]), synthetic_pool(plan, seeded(0)), Effort(trials=trials, seed=1)).rows


@pytest.mark.parametrize("plan", [BARE, RIDGE, replace(BARE, schema=ClassSchema(2, 12, "NAB", 1.0))], ids="SGB")
def test_two_way_counts_tell_a_hidden_attribute(plan):
    (row,) = played("attribute-inference", plan, 160)
    assert row.measured > row.baseline + 0.1
    assert row.verdict == "leaks" or plan is not BARE  # of all classes together the counts tell less
    assert row.ceiling is None


def test_noise_hides_attributes_and_the_promise_bounds_them():
    (row,) = played("attribute-inference", NOISY, 80)
    assert row.measured <= row.ceiling
    assert row.verdict in ("no evidence", "underpowered")


def test_attributes_and_properties_need_room_and_sums():
    assert "6 features" in played("attribute-inference", plan_of(features=4))[0].note
    assert "needs one of the statistics" in played("attribute-inference", plan_of(statistics="NA"))[0].note
    assert "4 features" in played("property-inference", plan_of(features=3))[0].note
    assert "needs one of the statistics A" in played("property-inference", ridge_plan())[0].note


def test_an_attacker_without_a_public_sample_has_no_public_tables():
    field = people(BARE, seeded(0), (3, 3), count=20).of(BARE)
    view = Adversary(knows="none").view(draw(field, Setting(BARE, 2), AttributeInference.needs, 0, True, seeded(0)))
    assert _public(view).size == 0


def test_people_have_one_value_of_each_attribute_and_the_last_can_follow_the_first():
    pool = people(BARE, seeded(0), (3, 4, 3), count=40, follows=1.0)
    held = pool.X > 0
    assert (held.sum(axis=1) == 3).all()
    assert np.array_equal(held[:, :3], held[:, 7:10])
    assert np.allclose(np.linalg.norm(pool.X, axis=1), 1.0)
    several = made.plan(RidgeSchema(6, clip_norm=1.0, target_bound=1.0, targets=2), COHORT)
    assert people(several, seeded(0), (3, 3), count=8).y.shape[1] == 2


def test_a_property_of_many_shows_and_nothing_is_promised_about_it():
    bare, noisy = played("property-inference", BARE, 120)[0], played("property-inference", NOISY)[0]
    assert bare.measured > 0.9
    assert bare.verdict == "leaks"
    assert noisy.ceiling is None
    assert "no promise" in noisy.note


@pytest.mark.parametrize(("name", "plan"), [("penalty-path", BARE), ("penalty-path", RIDGE), ("unshrunk-model", BARE)])
def test_published_models_give_their_second_moment_back(name, plan):
    (row,) = played(name, plan)
    assert (row.measured, row.baseline, row.sees) == (1.0, 0.0, "heads")


@pytest.mark.parametrize("name", ["penalty-path", "unshrunk-model"])
def test_under_noise_they_give_back_the_noise_too(name):
    (row,) = played(name, NOISY)
    assert row.measured == 0.0
    assert row.ceiling is None


@pytest.mark.ci
def test_four_samples_are_recognised_unless_secure_aggregation_is_on():
    rows = played("four-samples", BARE)
    assert [row.metric for row in rows] == ["SSIM > 0.9, off", "SSIM > 0.9, partly off", "SSIM > 0.9, on"]
    assert [row.measured > 0.8 for row in rows] == [True, True, False]
    assert all(row.baseline < 0.2 for row in rows)
    assert [len(row.example.attack) for row in rows] == [4, 4, 4]
    report = evaluate(BARE, attacks_named(["four-samples"]), synthetic_pool(BARE, seeded(0)), Effort(trials=8, seed=1))
    drawn = figures(report)
    assert set(drawn) == {"matrix", "samples"}
    titles = [axes.get_title() for axes in drawn["samples"].axes[:5]]
    assert [" ".join(each.split()) for each in titles[1:4]] == [
        f"secure aggregation {way}" for way in ("off", "partly off", "on")
    ]


@pytest.mark.nightly
def test_local_noise_hides_each_sample_from_a_server_that_does_not_mask():
    rows = played("four-samples", replace(BARE, privacy=promise("local", epsilon=1.0)))
    assert all(row.measured <= row.ceiling for row in rows)
    assert max(row.measured for row in rows) < 0.3
    assert played("four-samples", replace(BARE, schema=ClassSchema(2, 6, "NAB", 1.0)))[1].measured > 0.8


@pytest.mark.parametrize("name", ["four-samples", "deep-prior", "unshrunk-model"])
def test_pictures_and_discriminants_need_class_sums(name):
    assert "measures a RidgeSchema" in played(name, RIDGE)[0].note
    assert "needs one of the statistics" in played(name, plan_of(statistics="NA"))[0].note


def test_a_net_that_saw_no_picture_draws_a_class_of_one():
    pytest.importorskip("torch")
    (row,) = played("deep-prior", BARE)
    assert row.measured > 0.8
    assert row.baseline < 0.4


def test_without_torch_the_deep_prior_is_underpowered_and_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (row,) = played("deep-prior", BARE)
    assert row.verdict == "underpowered"
    assert "privstats[torch]" in row.note


def test_a_scene_has_the_attacked_plans_promise_and_its_kind_of_second_moment():
    scene = Scene.under(NOISY, seeded(0))
    assert (scene.plan.privacy, scene.plan.schema.statistics) == (NOISY.privacy, "NAS")
    assert Scene.under(plan_of(statistics="NAB"), seeded(0)).plan.schema.statistics == "NAB"
