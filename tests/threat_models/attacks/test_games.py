"""Attacks 1 to 5 and 10 to 13 as games: exact without noise, at or under the ceiling with it, or a reason why not."""

from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.heads.registry import head_class
from privstats.randomness import seeded
from tests.made import refused
from threat_models.adversary import Adversary, published_heads
from threat_models.attack import attacks_named
from threat_models.evaluate import Effort, evaluate
from threat_models.world import Pool, Setting, draw

from ..conftest import plan_of, promise, records


def played(name, plan, pool, trials=40):
    return evaluate(plan, attacks_named([name]), pool, Effort(trials=trials, seed=1, records=8)).rows[0]


@pytest.fixture(scope="module")
def pictures():
    """Half-zero 4 x 4 pictures."""
    X = np.maximum(np.random.default_rng(0).standard_normal((200, 16)), 0) / 4
    return Pool.split(X, np.arange(200) % 2, seeded(0))


def nonnegative(statistics="NAS", privacy=None):
    schema = ps.ClassSchema(2, 16, statistics, clip_norm=2.0, nonnegative=True)
    return ps.Plan(schema=schema, cohort=ps.Cohort(5, 4, 200, 1), privacy=privacy or ps.NoPrivacy())


@pytest.mark.parametrize("name", ["one-record", "two-records", "rotation", "differencing", "joined-label"])
def test_without_noise_few_records_are_read_off_their_sums(pictures, name):
    row = played(name, nonnegative(), pictures)
    assert (row.measured, row.verdict) == (1.0, "leaks")
    assert row.baseline < 0.6
    assert row.ceiling is None


def test_squares_give_both_values_of_every_coordinate(pictures):
    row = played("two-records-squares", nonnegative("NAD"), pictures)
    assert (row.measured, row.metric) == (1.0, "pairs")
    assert row.baseline < 0.5


def test_the_grid_alone_certifies_small_classes():
    """Values of 0 to 3 steps in 12 dimensions: the sums of four records have one solution on that grid."""
    X = np.random.default_rng(0).integers(0, 4, (120, 12)).astype(float)
    schema = ps.ClassSchema(2, 12, "NAS", clip_norm=16.0, grid_bits=4)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 200), privacy=ps.NoPrivacy())
    row = played("rotation-on-the-grid", plan, Pool.split(X, np.arange(120) % 2, seeded(0)), 160)
    assert row.measured > 0.4
    assert row.verdict == "leaks"


@pytest.mark.parametrize(
    "name", ["one-record", "two-records", "rotation", "rotation-on-the-grid", "decoded-image", "differencing"]
)
def test_noise_hides_them(pictures, name):
    row = played(name, nonnegative(privacy=promise()), pictures)
    assert row.measured == 0.0
    assert row.measured <= row.ceiling
    assert row.verdict in ("no evidence", "underpowered")


def test_a_pair_is_two_records_so_its_ceiling_is_that_of_two(pictures):
    plan = nonnegative("NAD", promise())
    row = played("two-records-squares", plan, pictures)
    assert row.mu == pytest.approx(2 * plan.noise.mu)
    assert row.measured <= row.ceiling


def test_features_that_may_be_negative_leave_the_rotation_open(pictures):
    assert "known to be nonnegative" in played("rotation", plan_of(), pictures).note
    no_S = replace(nonnegative(), schema=ps.ClassSchema(2, 16, "NA", 2.0, nonnegative=True))
    assert "needs one of the statistics S" in played("rotation", no_S, pictures).note


def test_an_attacker_of_labels_is_not_told_the_label(pictures):
    adversary = Adversary(sees="releases", releases=2, cohorts="without-target")
    setting = Setting(nonnegative(), 1, hide_label=True)
    view = adversary.view(draw(pictures.of(setting.plan), setting, adversary, 1, True, seeded(0)))
    assert view.labels.size == 0


def test_a_decoder_makes_pictures_of_recovered_vectors(pictures):
    row = played("decoded-image", nonnegative(), pictures)
    assert (row.measured, row.metric) == (1.0, "SSIM > .5")
    assert row.baseline < 0.3


def test_what_is_no_picture_is_not_decoded():
    attack = attacks_named(["decoded-image"])[0]
    pool = Pool.split(*records(80, 6), seeded(0))
    assert "square pictures" in played("decoded-image", plan_of(), pool).note
    world = draw(pool.of(plan_of()), Setting(plan_of(), 1), attack.needs, 0, True, seeded(0))
    refused(ps.DataError, "public sample and the encoder", attack.run, Adversary().view(world), seeded(0))
    assert Adversary(encoder=True).view(world).public_raw is not None
    assert Adversary(encoder=True, knows="none").view(world).public_raw is None


@pytest.mark.parametrize("statistics", ["NAB", "NAD", "NAS"])
def test_a_published_model_gives_its_sums_back(pictures, statistics):
    row = played("published-model", nonnegative(statistics), pictures, 60)
    assert row.sees == "heads"
    assert row.measured > 0.75
    assert row.verdict == "leaks"


@pytest.mark.parametrize("statistics", ["NAB", "NAS"])
def test_every_published_head_stores_the_same_class_means(statistics):
    """Else the order of names would choose the model that attack 12 reads."""
    X = np.random.default_rng(0).random((200, 16)) / 4
    release = ps.simulate(
        nonnegative(statistics, promise()), [(X[k::5], np.arange(len(X[k::5])) % 2) for k in range(5)]
    )
    means = [head_class(name)().fit_release(release).prototypes_ for name in published_heads(statistics)]
    assert len(means) > 1
    assert all(np.array_equal(each, means[0]) for each in means)


def test_counts_and_sums_alone_give_no_such_model(pictures):
    assert "needs a model" in played("published-model", nonnegative("NA"), pictures).note


def test_our_noise_has_no_digits_to_tell(pictures):
    row = played("float-digits", nonnegative("NA", promise(epsilon=8.0)), pictures, 120)
    assert row.interval[0] <= row.ceiling
    assert row.verdict != "violates ceiling"
    assert "the plan adds none" in played("float-digits", nonnegative(), pictures).note


def test_digits_betray_noise_that_was_drawn_in_floats():
    """The broken double in the place of the release: float noise on the exact sums of the same worlds."""
    plan, attack = plan_of(promise(), statistics="NA", features=1024), attacks_named(["float-digits"])[0]
    rng, right = np.random.default_rng(0), 0
    field = Pool.split(*records(40, 1024), seeded(0)).of(plan)
    for trial in range(60):
        member = bool(trial % 2)
        view = attack.needs.view(draw(field, Setting(plan, 4, 1), attack.needs, 0, member, seeded(trial)))
        exact = view.background["A"] + member * np.outer([1.0, 0.0], view.candidates[0])
        naive = exact + plan.noise.sigma["A"] * rng.standard_normal(exact.shape)
        right += (attack.run(view.instead(({"A": naive},)), seeded(0))[0] > 0) == member
    assert right > 0.75 * 60  # its own guarantee allows .55


def test_an_attacker_of_digits_that_knows_nothing_scores_nothing(pictures):
    plan = nonnegative()
    world = draw(pictures.of(plan), Setting(plan, 4, 2), Adversary(), 0, True, seeded(0))
    assert not attacks_named(["float-digits"])[0].run(Adversary().view(world), seeded(0)).any()


def test_lies_of_one_client_are_counted_by_whether_a_check_of_the_total_sees_them():
    schema = ps.ClassSchema(2, 6, "NAS", clip_norm=1.0)
    exact = ps.Plan(schema=schema, cohort=ps.Cohort(10, 8, 2000, 1), privacy=ps.NoPrivacy())
    row = played("one-poisoner", exact, None)
    assert row.metric == "unseen"
    assert row.ceiling is None
    noisy = played("one-poisoner", replace(exact, privacy=promise(epsilon=0.3)), None)
    assert row.measured < noisy.measured
    assert noisy.verdict == "leaks"
    assert "honest input is an assumption" in row.note


def test_a_ridge_plan_has_no_class_sums_to_poison():
    from ..conftest import ridge_plan

    attack = attacks_named(["one-poisoner"])[0]
    assert "measures a RidgeSchema" in attack.refusal(ridge_plan())
    refused(ps.DataError, "class sums", attack.examine, ridge_plan(), seeded(0), trials=8, confidence=0.9)
