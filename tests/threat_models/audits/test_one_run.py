"""The audit of one run: its bound holds for every attacker, and finds a release with too little noise."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.moments import exact_moments
from privstats.randomness import seeded
from threat_models.audits.guesses import contradicted, lower_bound, normal_bound, number_of_guesses
from threat_models.audits.one_run import audit_one_run
from threat_models.audits.planted import Canaries, plant
from threat_models.audits.target import target_of

CLIENTS = 3


def plan(schema, *, epsilon=1.0, adjacency="add-remove", model="central", **options):
    privacy = ps.Privacy(model=model, unit="record", adjacency=adjacency, epsilon=epsilon, delta=1e-5)
    return ps.Plan(schema=schema, cohort=ps.Cohort(CLIENTS, CLIENTS, 4000), privacy=privacy, **options)


def records(schema, count, chance):
    X = chance.normal(size=(count, schema.features)) / 10
    if isinstance(schema, ps.ClassSchema):
        return X, chance.integers(0, schema.classes, count)
    return X, chance.uniform(-1, 1, count)


def released(plan, canaries, seed):
    """Return a release in which the first party's records include the canaries, and the parties without them."""
    chance, rng = np.random.default_rng(seed), seeded(seed)
    own = [records(plan.schema, 50, chance) for _ in range(CLIENTS)]
    X, y = canaries.entering
    with_canaries = [(np.vstack([own[0][0], X]), np.concatenate([own[0][1], y])), *own[1:]]
    moments = [exact_moments(plan.schema, *each) for each in with_canaries]
    release = ps.simulate(plan, moments, rng=rng)
    return release, {client: exact_moments(plan.schema, *each) for client, each in enumerate(own)}


SCHEMAS = (
    ps.ClassSchema(4, 64, "NA", clip_norm=1.0),
    ps.ClassSchema(3, 24, "NAB", clip_norm=1.0),
    ps.RidgeSchema(24, clip_norm=1.0, target_bound=1.0),
)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: f"{schema.task} {''.join(schema.statistics)}")
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_an_honest_release_contradicts_nothing_and_its_attacker_guesses_better_than_a_coin(schema, adjacency):
    honest = plan(schema, epsilon=8.0, adjacency=adjacency)
    canaries = plant(target_of(honest), 300, seeded(1))
    report = audit_one_run(*released(honest, canaries, 2), canaries)
    (row,) = report.rows
    found = dict(zip(report.columns, row, strict=True))
    assert not report.violated
    assert 0 < found["mu at least"] <= found["mu claimed"]
    assert found["right"] > found["guesses"] / 2


def test_a_release_with_a_tenth_of_the_noise_contradicts_its_plan():
    claimed, drawn = plan(SCHEMAS[0], epsilon=1.0), plan(SCHEMAS[0], epsilon=20.0)
    canaries = plant(target_of(claimed), 400, seeded(3))
    release, parties = released(drawn, canaries, 4)
    report = audit_one_run(replace(release, plan=claimed), parties, canaries)
    assert report.violated


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_release_without_the_canaries_yields_no_bound_and_is_reported_as_such(adjacency):
    honest = plan(SCHEMAS[0], epsilon=2.0, adjacency=adjacency)
    canaries = plant(target_of(honest), 400, seeded(1))
    release, parties = released(honest, canaries, 2)
    none = replace(canaries, coins=np.zeros(0, bool), rows=_empty(canaries.rows), others=_empty(canaries.others))
    without, _ = released(honest, none, 2)
    entered, absent = (audit_one_run(each, parties, canaries) for each in (release, without))
    assert "the canaries entered" in entered.notes[0]
    assert "NO BOUND FOLLOWS" in absent.notes[0]
    assert not absent.violated
    found = dict(zip(absent.columns, absent.rows[0], strict=True))
    assert (found["verdict"], found["mu at least"], found["if normal"]) == ("no canary", 0.0, 0.0)


def _empty(rows):
    return rows[0][:0], rows[1][:0]


def test_canaries_that_hardly_move_a_release_leave_open_whether_they_entered():
    quiet = plan(SCHEMAS[0], epsilon=0.1)
    canaries = plant(target_of(quiet), 8, seeded(1))
    assert "cannot be told" in audit_one_run(*released(quiet, canaries, 2), canaries).notes[0]


@given(st.integers(1, 60), st.data())
def test_the_bound_rises_with_right_guesses_and_falls_with_confidence(guesses, data):
    correct = data.draw(st.integers(1, guesses))
    canaries = data.draw(st.integers(guesses, 80))
    bound = lower_bound(correct, guesses, canaries, 0.95)
    assert lower_bound(correct - 1, guesses, canaries, 0.95) <= bound
    assert lower_bound(correct, guesses, canaries, 0.99) <= bound


def _right(kind, mu, coins, chance):
    """Guess the coins from a mu-GDP release; return how many guesses are right, and the number of guesses."""
    if kind == "sum":  # all guesses are alike, and right or wrong together
        guess = coins.sum() * mu + chance.normal() > len(coins) * mu / 2
        return int((coins == guess).sum()), len(coins)
    scores = (coins - 0.5) * mu + chance.normal(size=len(coins))
    chosen = np.argsort(-np.abs(scores))[: len(coins) if kind == "all" else len(coins) // 5]
    return int(((scores[chosen] > 0) == coins[chosen]).sum()), len(chosen)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("kind", ["all", "surest", "sum"])
def test_the_true_mu_is_contradicted_in_at_most_one_of_twenty_runs(kind, mu):
    chance, runs, size = np.random.default_rng(5), 400, 100
    wrong = sum(
        contradicted(mu, *_right(kind, mu, chance.integers(0, 2, size).astype(bool), chance), size, 0.95)
        for _ in range(runs)
    )
    # 33 of 400: probability below .005 at a true rate of .05.
    assert wrong <= 33


def test_one_coin_is_bounded_by_the_best_guess_of_a_gaussian():
    # One coin is guessed right with probability Phi(mu / 2) at most: .9 is beyond mu = 2 Phi^-1(.9) = 2.563.
    assert contradicted(2.56, 1, 1, 1, 0.1)
    assert not contradicted(2.57, 1, 1, 1, 0.1)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_scores_prove_most_of_mu_and_more_than_guesses(mu):
    chance, size = np.random.default_rng(8), 2000
    coins = chance.random(size) < 0.5
    bound = normal_bound(coins * mu + chance.normal(size=size), coins, 0.95)
    guesses, provable = number_of_guesses(mu, size, 0.95)
    assert mu - 0.2 < bound
    assert provable < bound
    assert 1 <= guesses <= size


def test_the_bound_from_scores_exceeds_the_true_mu_in_one_of_twenty_runs():
    chance, runs, size, mu = np.random.default_rng(9), 400, 60, 0.7
    wrong = 0
    for _ in range(runs):
        coins = chance.random(size) < 0.5
        wrong += normal_bound(coins * mu + chance.normal(size=size), coins, 0.95) > mu
    # 7 to 33 of 400: the two tails of a true rate of .05 have probability .002 and .004.
    assert 7 <= wrong <= 33


def test_plant_and_run_are_commands_on_files(privstats, tmp_path):
    chosen = plan(SCHEMAS[1], epsilon=8.0)
    (tmp_path / "plan.toml").write_text(chosen.to_toml(), encoding="utf-8")
    words = ("audit", "plant", "plan.toml", "canaries.npz", "entering.npz", "--count", "200", "--seed", "6")
    privstats(*words, cwd=tmp_path, code=0)
    assert "canaries.npz cannot be written" in privstats(*words, cwd=tmp_path, code=2).stderr.replace("\n", " ")
    canaries = Canaries.load(tmp_path / "canaries.npz")
    with np.load(tmp_path / "entering.npz") as entering:
        assert len(entering["X"]) == canaries.coins.sum()
    release, parties = released(chosen, canaries, 7)
    release.save(tmp_path / "run.safetensors")
    arrays = {f"{row.letter}_{client}": each.sums(row) for client, each in parties.items() for row in SCHEMAS[1].sent}
    np.savez(tmp_path / "known.npz", **arrays)
    judged = privstats("audit", "run", "run.safetensors", "known.npz", "canaries.npz", "--json", cwd=tmp_path, code=0)
    (row,) = json.loads(judged.stdout)[0]["rows"]
    assert 0 < row["mu at least"] < row["mu claimed"]
    bounds = [ps.dp.gaussian_epsilon(row[name], 1e-5) for name in ("mu at least", "if normal")]
    assert [row["eps at least"], row["eps if normal"]] == pytest.approx(bounds, rel=1e-6)


def test_what_cannot_be_planted_is_refused_by_name(tmp_path):
    with pytest.raises(ps.PlanError, match="4001 canaries, allowed 8 to cohort.max_records=4000"):
        plant(target_of(plan(SCHEMAS[0])), 4001, seeded(1))
    of_records = plan(SCHEMAS[0])
    of_clients = replace(of_records, privacy=replace(of_records.privacy, unit="client", max_records_per_client=50))
    with pytest.raises(ps.PlanError, match="unit='client'"):
        plant(target_of(of_clients), 100, seeded(1))
    np.savez(tmp_path / "other.npz", X=np.zeros((3, 2)))
    with pytest.raises(ps.errors.DataError, match="holds no canaries"):
        Canaries.load(tmp_path / "other.npz")
