"""What reaches an attack is what its adversary declares, and nothing else."""

import gc
from dataclasses import replace

import numpy as np
import pytest

from privstats.errors import PlanError
from privstats.randomness import Generator, seeded
from threat_models.adversary import Adversary
from threat_models.attack import _ATTACKS, Attack
from threat_models.game import Game
from threat_models.world import Setting, World, draw, total_of

from .conftest import plan_of, promise, ridge_plan

OPAQUE = (type, type(gc), type(plan_of), Generator)


def reachable(root):
    """Every object that an attack could come to from ``root``, without going through classes and modules."""
    seen, todo = {}, [root]
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, OPAQUE):
            continue
        seen[id(thing)] = thing
        todo.extend(gc.get_referents(thing))
        if isinstance(thing, np.ndarray) and thing.base is not None:
            todo.append(thing.base)
    return list(seen.values())


@pytest.mark.parametrize("knows", ["none", "public", "all-but-one"])
@pytest.mark.parametrize("sees", ["release", "cohort", "transcript"])
def test_no_way_leads_from_a_view_back_to_the_truth(pool, knows, sees):
    plan, adversary = plan_of(promise()), Adversary(sees=sees, knows=knows)
    world = draw(pool.of(plan), Setting(plan, 10, 3), adversary, 0, True, seeded(1))
    view = adversary.view(world)
    secrets = [pool.X, pool.y, world.truth, world.members, world.secret, *(s.release.vector for s in world.sessions)]
    secrets += [lane for s in world.sessions for v in s.contributions for lane in v.lanes]
    found = reachable(view)
    assert not any(isinstance(thing, World) for thing in found)
    arrays = [thing for thing in found if isinstance(thing, np.ndarray)]
    assert arrays
    assert not any(np.shares_memory(array, secret) for array in arrays for secret in secrets)
    if knows != "public":
        assert not any(np.array_equal(array, world.truth) for array in arrays if len(world.truth) > 1)


@pytest.mark.parametrize(("sees", "members"), [("cohort", 0), ("transcript", 1), ("release", 3)])
def test_the_leader_of_a_panel_that_draws_lacks_the_noise_of_one_member(pool, sees, members):
    """What is seen of 40 worlds beyond the exact sums, in units of the noise that the view declares."""
    plan, found = plan_of(promise("panel")), []
    for seed in range(40):
        world = draw(pool.of(plan), Setting(plan, 10, 3), Adversary(sees=sees), 0, True, seeded(seed))
        session = world.sessions[0]
        exact = session.contributions[0] if sees == "cohort" else total_of(plan, session.contributions)
        found.append(world.observed(session, sees, 0)[plan.layout.slices[1]] - exact.lift()[plan.layout.slices[1]])
    told = Adversary(sees=sees).view(world).sigma["A"]
    assert told == pytest.approx(np.sqrt(members) * plan.noise.sigma["A"])
    z = np.concatenate(found) / plan.noise.grid_sigma(plan.layout.segments[1])
    assert abs(z.std() - np.sqrt(members)) <= 5 * np.sqrt(members / (2 * z.size))


def test_a_view_cannot_be_written_to(pool):
    plan, adversary = plan_of(), Adversary()
    view = adversary.view(draw(pool.of(plan), Setting(plan, 10, 3), adversary, 0, True, seeded(1)))
    for array in (view.sums[0]["A"], view.candidates, view.labels, view.public[0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError):
        view.sums[0]["A"] = None


def planted(run):
    """An attack for one test, out of the registry again at once."""
    cheat = type("Cheat", (Attack,), {"name": "cheat", "number": 99, "goal": "membership", "run": run, "title": ""})()
    del _ATTACKS["cheat"]
    return cheat


def cheats():
    def steal(self, view, rng):
        """Walks everything that hangs on the view, looking for a hidden truth."""
        for thing in reachable(view):
            if isinstance(thing, World):
                return thing.members.astype(float)
            if isinstance(thing, np.ndarray) and thing.dtype == bool and thing.size == len(view.candidates):
                return thing.astype(float)
        return np.zeros(len(view.candidates))

    def position(self, view, rng):
        """Hopes that members stand first."""
        return -np.arange(len(view.candidates), dtype=float)

    def replay(self, view, rng):
        """Hopes that its generator repeats the world's draws: the order of the candidates among them."""
        return rng.uint64(len(view.candidates)).astype(float)

    return [steal, position, replay]


@pytest.mark.parametrize("cheat", cheats(), ids=lambda cheat: cheat.__name__)
def test_a_planted_cheat_that_looks_for_the_ground_truth_wins_nothing(pool, cheat):
    plan = plan_of()
    row = Game(pool.of(plan), Setting(plan, 12, 4), trials=40, seed=3).play([planted(cheat)], Adversary())[0]
    assert row.interval[0] < 0.5 < row.interval[1]
    assert row.verdict == "no evidence"


def test_the_cheat_test_would_see_a_leak(pool):
    """The same thief, shown a view that holds its world, wins everything: so the tests above can fail."""
    plan, thief = plan_of(), planted(cheats()[0])
    for seed in range(3):
        world = draw(pool.of(plan), Setting(plan, 12, 4), Adversary(), 0, True, seeded(seed))
        leaky = replace(Adversary().view(world), background={"A": world})
        assert np.array_equal(thief.run(leaky, seeded(0)), world.members)


def test_an_adversary_sees_only_the_statistics_it_looks_at(pool):
    plan = plan_of()
    world = draw(pool.of(plan), Setting(plan, 10, 3), Adversary(), 0, True, seeded(1))
    assert set(Adversary(statistics="A").view(world).sums[0]) == {"A"}
    assert set(Adversary().view(world).sums[0]) == set("NASBD")
    assert Adversary(knows="none").view(world).public is None
    assert Adversary(knows="all-but-one").view(world).background is None  # the world has many targets


def test_the_sums_are_the_librarys_own(pool):
    plan = plan_of()
    world = draw(pool.of(plan), Setting(plan, 10, 3), Adversary(), 1, True, seeded(1))
    sums = Adversary().view(world).sums[0]
    assert np.allclose(sums["A"][1], world.truth.sum(axis=0), atol=1e-12)
    assert np.allclose(sums["S"][1], world.truth.T @ world.truth, atol=1e-12)
    assert sums["N"][1] == len(world.truth) == 10


@pytest.mark.parametrize(
    ("model", "sees", "colluders", "shares"),
    [("central", "release", 0, None), ("central", "transcript", 1, 0), ("distributed", "cohort", 0, 1 / 2),
     ("distributed", "transcript", 1, 1), ("distributed", "release", 1, 1), ("local", "cohort", 0, 1)],
)  # fmt: skip
def test_the_noise_in_a_view_is_what_the_adversary_cannot_take_off(pool, model, sees, colluders, shares):
    plan, adversary = plan_of(promise(model)), Adversary(sees=sees, colluders=colluders)
    residuals = []
    for seed in range(40):
        world = draw(pool.of(plan), Setting(plan, 10, 1), adversary, 0, True, seeded(seed))
        view = adversary.view(world)
        residuals.append((view.sums[0]["A"][0] - world.truth.sum(axis=0)) / plan.noise.sigma["A"])
    assert np.std(residuals) == pytest.approx(np.sqrt(shares if shares is not None else 1.0), abs=0.12)
    assert view.sigma["A"] == pytest.approx(plan.noise.sigma["A"] * np.sqrt(1.0 if shares is None else shares))
    assert view.sigma["B"] == pytest.approx(view.sigma["S"] * np.sqrt(2))


def test_ridge_sums_reach_the_view():
    from threat_models.data import synthetic_pool

    plan = ridge_plan(promise())
    world = draw(synthetic_pool(plan, seeded(0)).of(plan), Setting(plan, 10, 3), Adversary(), 0, True, seeded(1))
    view = Adversary().view(world)
    assert (set(view.sums[0]), view.sigma) == (set("Ghq"), plan.noise.released_sigma(3))


def test_a_declaration_names_all_that_the_adversary_sees_knows_and_does():
    everything = Adversary(
        sees="releases",
        releases=4,
        statistics="NA",
        colluders=2,
        active=True,
        encoder=True,
        constraints=("grid", "norm"),
    ).describe()
    named = ["releases", "(4)", "public sample", "2 colluding", "deviates", "encoder", "grid", "bounded norm", "NA"]
    assert [words for words in named if words not in everything] == []
    least = Adversary(knows="none").describe()
    assert "knows no records" in least
    assert [words for words in named[2:] if words in least] == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"sees": "all"}, "sees one of"), ({"colluders": -1}, "at least 0"), ({"releases": 2}, "at least 2 when"),
     ({"sees": "releases"}, "at least 2 when")],
)  # fmt: skip
def test_a_contradictory_adversary_is_refused(wrong, message):
    with pytest.raises(PlanError, match=message):
        Adversary(**wrong)
