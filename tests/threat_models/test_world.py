"""Worlds are drawn through the library's own pipeline, with and without the target, or refused."""

import numpy as np

import privstats as ps
from privstats.randomness import seeded
from tests.made import refused
from threat_models.adversary import Adversary
from threat_models.world import Pool, Setting, draw

from .conftest import plan_of, promise, records

INFORMED = Adversary(knows="all-but-one")


def test_the_target_is_the_only_difference_between_the_two_worlds(pool):
    plan = plan_of()
    setting = Setting(plan, 10, 1)
    inside, outside = (draw(pool.of(plan), setting, INFORMED, 0, member, seeded(5)) for member in (True, False))
    assert np.array_equal(inside.candidates, outside.candidates)
    assert np.array_equal(inside.background, outside.background)
    gap = inside.sessions[0].release.vector - inside.background
    target = np.flatnonzero((pool.of(plan).private == inside.candidates[0]).all(axis=1))
    assert np.array_equal(gap, ps.encoding.flatten(pool.measure(plan, target)))
    assert np.array_equal(outside.sessions[0].release.vector, outside.background)


def test_under_replace_one_a_rival_stands_in(pool):
    plan = plan_of(promise(adjacency="replace-one"))
    inside, outside = (
        draw(pool.of(plan), Setting(plan, 10, 1), INFORMED, 0, member, seeded(5)) for member in (True, False)
    )
    view = INFORMED.view(outside)
    assert (view.rivals.shape, view.rival_labels.tolist()) == ((1, 6), [0])
    assert not np.array_equal(view.rivals, view.candidates)
    assert inside.sessions[0].release.plan.digest == plan.digest


def test_two_sessions_differ_by_the_client_of_the_targets(pool):
    plan, adversary = plan_of(), Adversary(sees="releases", releases=2, cohorts="without-target")
    world = draw(pool.of(plan), Setting(plan, 3), adversary, 0, True, seeded(1))
    assert [1 in session.survivors for session in world.sessions] == [True, False]
    first, second = adversary.view(world).sums
    assert np.allclose(first["A"][0] - second["A"][0], world.truth.sum(axis=0))


def test_random_cohorts_keep_the_plans_fewest_survivors(pool):
    plan, adversary = plan_of(), Adversary(sees="releases", releases=9, cohorts="random")
    world = draw(pool.of(plan), Setting(plan, 3), adversary, 0, True, seeded(1))
    assert {len(session.survivors) for session in world.sessions} == {3, 4}


def test_a_limit_per_client_spreads_the_records():
    plan = plan_of(promise(unit="client", max_records_per_client=8))
    pool = Pool.split(*records(160, 6), seeded(0))
    world = draw(pool.of(plan), Setting(plan, 10, 1), Adversary(), 0, True, seeded(1))
    assert len(world.truth) == 10
    lifted = [vector.lift() for vector in world.sessions[0].contributions]
    assert all(vector.any() for vector in lifted)


def test_dropouts_are_the_worst_the_plan_admits_unless_said(pool):
    plan = plan_of()
    for dropouts, survivors in ((None, 3), (0, 4)):
        world = draw(pool.of(plan), Setting(plan, 10, 1, dropouts), Adversary(), 0, True, seeded(1))
        assert len(world.sessions[0].survivors) == survivors


def test_what_a_world_cannot_hold_is_one_sentence(pool):
    plan = plan_of()
    field = pool.of(plan)
    crowd = Adversary(sees="releases", releases=2, cohorts="random")
    apart = Adversary(sees="releases", releases=2, cohorts="without-target")
    full = plan_of(cohort=ps.Cohort(3, 3, 200))
    narrow = plan_of(promise(unit="client", max_records_per_client=2))
    for args, message in (
        ((field, Setting(plan, 500), Adversary()), "fewer records per class"),
        ((field, Setting(plan, 5), crowd), "at most one record of the attacked class per client"),
        ((pool.of(full), Setting(full, 5), apart), "no client may vanish"),
        ((pool.of(narrow), Setting(narrow, 10), Adversary()), "a plan with more clients"),
    ):
        refused(ps.DataError, message, draw, *args, 0, True, seeded(0))


def test_a_pool_needs_labels_for_its_records():
    refused(ps.DataError, "give one label per record", Pool.split, np.ones((5, 2)), np.ones(4), seeded(0))
    refused(ps.DataError, "at least 4", Pool.split, np.ones((3, 2)), np.ones(3), seeded(0))
