"""The harness's own self-test: the informed attacker lands on the ceiling; and games refuse broken attacks."""

import numpy as np
import pytest

from privstats import ClassSchema, Cohort, NoPrivacy, Plan, Privacy
from privstats.errors import DataError
from privstats.randomness import seeded
from tests.lengths import sized
from threat_models.adversary import Adversary
from threat_models.attack import attacks_named
from threat_models.data import synthetic_pool
from threat_models.game import Game
from threat_models.world import Pool, Setting

from .conftest import plan_of, ridge_plan
from .test_adversary import planted


def on_the_sphere(count, features, classes=2):
    X = np.random.default_rng(0).standard_normal((count, features))
    return Pool.split(2 * X / np.linalg.norm(X, axis=1, keepdims=True), np.arange(count) % classes, seeded(0))


def informed(epsilon, trials, model="central", adjacency="add-remove", cohort=None, seed=1):
    privacy = Privacy(model=model, unit="record", adjacency=adjacency, epsilon=epsilon, delta=1e-5)
    plan = Plan(schema=ClassSchema(2, 16, "NAB", 1.0), cohort=cohort or Cohort(2, 2, 100), privacy=privacy)
    attack = attacks_named(["informed"])[0]
    game = Game(on_the_sphere(40, 16).of(plan), Setting(plan, 3, 1), trials, seed)
    return game.play([attack], attack.adversary(plan))[0]


def lands_on_the_ceiling(row, width):
    """The ceiling lies in the interval, the interval is narrow enough to mean it, and nothing is above."""
    low, high = row.interval
    assert low <= row.ceiling <= high
    assert high - low < width
    assert row.verdict != "violates ceiling"
    for point in row.points:
        assert point.tpr_interval[0] <= row.guarantee.tpr(point.fpr_interval[1])
        assert point.tpr_interval[1] >= row.guarantee.tpr(point.fpr_interval[0])


@pytest.mark.ci
@pytest.mark.parametrize("epsilon", [pytest.param(8.0, marks=pytest.mark.nightly), 3.0])
def test_the_informed_attacker_lands_on_the_ceiling(epsilon):
    row = informed(epsilon, 400)
    assert row.verdict == "leaks"
    lands_on_the_ceiling(row, 0.13)


@pytest.mark.nightly
def test_colluders_of_a_distributed_plan_bring_the_attacker_to_the_ceiling():
    """Four survive, one of them colludes: the three shares that are left are just what the plan counts on."""
    lands_on_the_ceiling(informed(8.0, 200, "distributed", cohort=Cohort(5, 4, 100, 1)), 0.18)


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [8.0, 3.0, 1.0, 0.3])
def test_the_informed_attacker_lands_on_the_ceiling_at_every_epsilon(epsilon):
    trials, width = sized((10_000, 0.03), (20_000, 0.02))
    row = informed(epsilon, trials)
    lands_on_the_ceiling(row, width)
    assert row.points[0].tpr == pytest.approx(row.guarantee.tpr(row.points[0].fpr), abs=width)


def test_replace_one_stays_under_its_ceiling():
    row = informed(8.0, 150, adjacency="replace-one")
    assert row.verdict == "leaks"
    assert row.measured < row.ceiling + 0.05


@pytest.mark.ci
def test_a_mechanism_with_a_third_of_the_noise_violates_its_ceiling(a_third_of_the_noise):
    """The same harness on a broken double: what lands on the ceiling with our noise is far above it with less."""
    assert informed(3.0, 200).verdict == "violates ceiling"


def test_without_noise_the_informed_attacker_is_always_right():
    plan = plan_of()
    attack = attacks_named(["informed"])[0]
    row = Game(on_the_sphere(60, 6).of(plan), Setting(plan, 3, 1), 20, 1).play([attack], attack.adversary(plan))[0]
    assert (row.measured, row.ceiling, row.verdict) == (1.0, None, "leaks")
    assert 0 < row.baseline < 1


def test_the_informed_attacker_reads_ridge_sums():
    plan, attack = ridge_plan(), attacks_named(["informed"])[0]
    row = Game(synthetic_pool(plan, seeded(0)).of(plan), Setting(plan, 5, 1), 60, 1).play([attack], attack.needs)[0]
    assert (row.measured, row.verdict) == (1.0, "leaks")


def test_an_informed_attacker_that_knows_nothing_scores_nothing(pool):
    plan = plan_of()
    attack = attacks_named(["informed"])[0]
    from threat_models.world import draw

    world = draw(pool.of(plan), Setting(plan, 5, 2), Adversary(), 0, True, seeded(0))
    assert attack.run(Adversary().view(world), seeded(0)).tolist() == [0.0] * 4


def test_a_score_per_candidate_or_an_error(pool):
    plan = plan_of()
    short = planted(lambda self, view, rng: np.zeros(1))
    with pytest.raises(DataError, match="gave 1 scores for 8 candidates"):
        Game(pool.of(plan), Setting(plan, 8, 4), 2, 0).play([short], Adversary())


def test_attacks_that_see_the_same_meet_the_same_worlds_and_one_does_not_disturb_the_other(pool):
    plan = plan_of()
    game = Game(pool.of(plan), Setting(plan, 8, 4), 10, 7)
    mean, quadratic = attacks_named(["mean-ratio", "quadratic"])
    together = game.play([mean, quadratic], Adversary())
    assert together == (game.play([mean], Adversary())[0], game.play([quadratic], Adversary())[0])


def test_a_reconstruction_without_guesses_recovers_nothing(pool):
    plan = plan_of(NoPrivacy())
    mute = planted(lambda self, view, rng: np.empty((0, 6)))
    type(mute).goal = "reconstruction"
    row = Game(pool.of(plan), Setting(plan, 3), 10, 0).play([mute], Adversary())[0]
    assert row.measured == 0.0
    assert not np.any(row.example.attack)


def test_only_classes_with_sums_are_shown(pool):
    """A reconstruction of a ridge plan, or one that does not look at A, has no picture."""
    plan = plan_of()
    mute = planted(lambda self, view, rng: np.empty((0, 6)))
    type(mute).goal = "reconstruction"
    field = pool.of(plan)
    assert Game(field, Setting(plan, 3), 3, 0).play([mute], Adversary(statistics="N"))[0].example is None
    assert len(Game(field, Setting(plan, 3), 3, 0).play([mute], Adversary())[0].example.truth) == 3


def test_an_inference_is_held_against_the_most_frequent_label(pool):
    plan = plan_of()
    wise = planted(lambda self, view, rng: np.full(view.records, view.labels[0]))
    type(wise).goal = "inference"
    row = Game(pool.of(plan), Setting(plan, 3), 20, 0).play([wise], Adversary())[0]
    assert ((row.measured, row.metric), row.baseline) == ((1.0, "guessed"), pytest.approx(0.5))
    assert row.verdict == "leaks"
