"""Streams: what they cost, what their totals are, and which of them are refused."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.streams import MomentsDelta
from privstats.contrib.streams.mechanisms import FIXED_BITS, MECHANISMS, total_weights
from privstats.randomness import seeded
from tests import made
from tests.contrib.streams.streams import (
    CLASSES,
    CLIENTS,
    COHORT,
    EXACT,
    RIDGE,
    World,
    exact_stream,
    plan_of,
    promise,
    stream_of,
)
from tests.made import refused

MIXED = [("increments", False), ("increments", True), ("tree", False), ("tree", True)]
MIXED += [("square-root", False), ("square-root", True)]


@pytest.mark.parametrize(("mechanism", "deletions"), MIXED)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_all_epochs_together_keep_the_plans_promise(mechanism: Any, deletions: bool, adjacency: Any) -> None:
    plan = plan_of(adjacency=adjacency)
    stream = ps.Stream(plan, 8, mechanism, deletions)
    assert isinstance(stream, ps.course.Course)
    assert stream.mu <= plan.noise.mu * (1 + 1e-12)
    assert stream.mu == pytest.approx(plan.noise.mu, rel=1e-7)


def test_increments_without_deletions_cost_one_epoch() -> None:
    """Records of different epochs are different records: no epoch is noisier than the one release would be."""
    stream = stream_of(128)
    assert (stream.first, stream.multiplicity("add-remove")) == (stream.plan, 1.0)


@pytest.mark.parametrize("schema", [CLASSES, RIDGE])
def test_under_replace_one_the_two_records_may_sit_in_different_epochs(schema: Any) -> None:
    plan = plan_of(schema, adjacency="replace-one")
    add, replace = (ps.dp.joint_mu(schema, plan.noise.sigma, how) for how in ("add-remove", "replace-one"))
    stream = ps.Stream(plan, 4)
    assert stream.multiplicity("replace-one") * replace**2 == pytest.approx(max(replace**2, 2 * add**2))
    assert ps.Stream(plan, 1).multiplicity("replace-one") == 1.0  # one epoch is one release


def test_a_ridge_schema_whose_q_carries_much_pays_for_it() -> None:
    plan = plan_of(RIDGE, adjacency="replace-one", shares={"G": 0.1, "h": 0.1, "q": 0.8})
    assert ps.Stream(plan, 4).multiplicity("replace-one") > 1.05
    assert plan_of(RIDGE, shares={"G": 0.1, "h": 0.1, "q": 0.8}).noise is not None


@pytest.mark.parametrize(("repeats", "times"), [(0, 1.0), (1, 2.0), (3, 4.0)])
def test_every_repeat_is_paid_for(repeats: int, times: float) -> None:
    assert stream_of(repeats=repeats).multiplicity("add-remove") == times
    assert stream_of(repeats=repeats, deletions=True).multiplicity("add-remove") == 2 * times


def columns_of(mechanism: str, epochs: int) -> np.ndarray:
    """What a record that enters at an epoch adds to the nodes, from the definition and not from the library."""
    if mechanism == "increments":
        return np.eye(epochs)
    if mechanism == "tree":
        places = MECHANISMS["tree"].nodes(epochs)
        spans = [(place.epoch - (1 << place.level) + 1, place.epoch) for place in places]
        return np.array([[float(low <= t <= high) for t in range(epochs)] for low, high in spans])
    row = [round(math.comb(2 * k, k) / 4**k * 2**FIXED_BITS) / 2**FIXED_BITS for k in range(epochs)]
    return np.array([[row[t - s] if s <= t else 0.0 for s in range(epochs)] for t in range(epochs)])


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_the_sensitivity_of_every_mechanism_is_attained(mechanism: Any) -> None:
    epochs, row = 16, MECHANISMS[mechanism]
    columns = columns_of(mechanism, epochs).T
    stays = max(float(column @ column) for column in columns)
    leaves = max(float((a - b) @ (a - b)) for a, b in combinations(columns, 2))
    assert row.parts(epochs) == pytest.approx(stays, rel=1e-12)
    assert row.parts(epochs, deletions=True) == pytest.approx(max(stays, leaves), rel=1e-12)


def test_two_records_that_come_and_go_in_turn_stay_below_the_price() -> None:
    """Replace-one with deletions: every way for a record and its stand-in to enter and leave, over a small tree."""
    rng = np.random.default_rng(1)
    for mechanism in MECHANISMS:
        columns = columns_of(mechanism, 8).T
        most = MECHANISMS[mechanism].parts(8, deletions=True, opposed=True)
        for _ in range(500):
            (i, j), (k, m) = (sorted(rng.choice(8, 2, replace=False)) for _ in range(2))
            opposite = columns[i] - columns[j] + rng.choice([-1, 1]) * (columns[k] - columns[m])
            assert opposite @ opposite <= most * (1 + 1e-12)


@pytest.mark.parametrize(
    ("epochs", "plain", "leaving"),
    [
        (8, (2.1, 2.2, 1.6), (3.0, 2.7, 1.8)),
        (32, (4.1, 3.2, 2.0), (5.7, 4.1, 2.5)),
        pytest.param(128, (8.0, 4.2, 2.5), (11.4, 5.5, 3.1), marks=pytest.mark.nightly),
    ],
)
def test_the_noise_of_totals_is_the_one_of_the_table(epochs: int, plain: Any, leaving: Any) -> None:
    for deletions, expected in ((False, plain), (True, leaving)):
        found = []
        for row in MECHANISMS.values():
            ends = [[i for i, place in enumerate(row.nodes(epochs)) if place.epoch <= t] for t in range(epochs)]
            weights = [total_weights(row.matrix(epochs), have, range(t + 1)) for t, have in enumerate(ends)]
            mean = np.mean([w @ w for w in weights])
            found.append(math.sqrt(mean * row.parts(epochs, deletions=deletions)))
        assert found == pytest.approx(expected, abs=0.06)


def test_weights_of_totals_are_unbiased_also_with_nodes_missing() -> None:
    for name, row in MECHANISMS.items():
        matrix, places = row.matrix(8), row.nodes(8)
        lost = 3 if name == "tree" else 2
        have = [i for i in range(len(places)) if i != lost]
        at = sorted({places[i].epoch for i in have if places[i].level == 0})
        weights = total_weights(matrix, have, at)
        assert weights @ matrix[np.ix_(have, at)] == pytest.approx(np.ones(len(at)), abs=1e-9)


def test_exact_totals_are_what_measuring_afresh_gives() -> None:
    """Dropouts at every step before the upload, records that leave, and a client that is unlearned whole."""
    world, stream, epochs, dropouts = World(RIDGE), exact_stream(6, RIDGE), [], []
    for epoch in range(6):
        born = [[] if k == 2 and epoch > 3 else world.born(k, 5) for k in range(CLIENTS)]
        shards = [world.change(born[k], world.dead(k, 2 if epoch else 0)) for k in range(CLIENTS)]
        if epoch == 4:
            shards[2] = shards[2] + world.change((), world.dead(2, 10**6))
        epochs.append(shards)
        dropouts.append([None, {"mask": {0}}, {"advertise": {3}, "share": {1}}, None, {"share": {4}}, None][epoch])
    releases = ps.simulate(stream, epochs, dropouts, seeded(1))
    assert [len(release.survivors) for release in releases if release] == [5, 4, 3, 5, 4, 5]
    assert not world.inside[2]
    afresh = world.afresh()
    assert np.array_equal(stream.total(releases).vector, ps.encoding.flatten(afresh))
    whole = sum(change for shards in epochs for change in shards)
    assert isinstance(whole, MomentsDelta)
    assert (whole.settled(), whole.real()) == (afresh, afresh.real())


def test_four_thousand_adds_and_removals_are_measuring_afresh() -> None:
    world, rng = World(seed=3), np.random.default_rng(4)
    total, moved = MomentsDelta.nothing(CLASSES), 0
    while moved < 4_000:
        client, size = int(rng.integers(CLIENTS)), int(rng.integers(1, 9))
        if rng.random() < 0.4:
            gone = world.dead(client, size)
            total, moved = total + world.change((), gone), moved + len(gone)
        else:
            total, moved = total + world.change(world.born(client, size)), moved + size
        assert total.records == moved
    assert total.settled() == world.afresh()


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(5))])
def test_twenty_masked_epochs_with_dropouts_and_an_unlearned_client(seed: int) -> None:
    epochs = 20
    world, stream, rng = World(seed=seed), exact_stream(epochs), np.random.default_rng(seed)
    shards, dropouts = [], []
    for epoch in range(epochs):
        leaving = [10**6 if (epoch, k) == (epochs // 2, 1) else int(rng.integers(3)) for k in range(CLIENTS)]
        gone = [world.dead(k, count) if epoch else [] for k, count in enumerate(leaving)]
        shards.append([world.change(world.born(k, 4) if k != 1 or not epoch else (), gone[k]) for k in range(CLIENTS)])
        vanishing = {int(k) for k in rng.choice(CLIENTS, 2, replace=False)} if epoch < epochs - 1 else set()
        dropouts.append({str(rng.choice(["advertise", "share", "mask"])): vanishing})
    releases = ps.simulate(stream, shards, dropouts, seeded(seed))
    assert not world.inside[1]
    assert np.array_equal(stream.total(releases).vector, ps.encoding.flatten(world.afresh()))


def test_what_was_sent_and_not_summed_stays_out() -> None:
    """A session that dies after the upload: the server has the vectors, so nobody sends them again."""
    world, stream = World(), exact_stream(3)
    epochs = [[world.change(world.born(k, 4)) for k in range(CLIENTS)] for _ in range(3)]
    dead = {step: set(range(CLIENTS)) for step in ("agree",)}
    releases = ps.simulate(stream, epochs, [None, dead, None], seeded(2))
    assert releases[1] is None
    both = sum(epochs[0]) + sum(epochs[2])
    assert np.array_equal(stream.total(releases).vector, ps.encoding.flatten(both.settled()))
    releases = ps.simulate(stream, epochs, [None, {"share": set(range(CLIENTS))}, None], seeded(2))
    assert releases[1] is None  # here nothing had left, and all is sent with the next
    assert np.array_equal(stream.total(releases).vector, ps.encoding.flatten(world.afresh()))


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_noisy_totals_are_near_and_say_how_near(mechanism: Any) -> None:
    world = World()
    stream = stream_of(4, mechanism, plan=plan_of(epsilon=20.0), deletions=True)
    epochs = [
        [world.change(world.born(k, 40), world.dead(k, 2) if epoch else ()) for k in range(CLIENTS)]
        for epoch in range(4)
    ]
    releases = ps.simulate(stream, epochs, [None, {"mask": {1}}], seeded(3))
    total, truth = stream.total(releases), world.afresh().real()
    assert total.epoch == 3
    errors = np.abs(total.moments.N - truth.N) / total.sigma["N"]
    assert errors.max() < 4.5
    assert np.abs(total.moments.A - truth.A).max() < 5 * total.sigma["A"]
    assert ps.heads.NaiveBayes().fit_release(total).predict(np.zeros((1, 4))).shape == (1,)


def test_an_epoch_without_a_sum_is_left_out_of_the_weights() -> None:
    world, stream = World(), stream_of(4, "square-root", plan=plan_of(epsilon=50.0))
    epochs = [[world.change(world.born(k, 20)) for k in range(CLIENTS)] for _ in range(4)]
    releases = ps.simulate(stream, epochs, [None, {"share": set(range(CLIENTS))}], seeded(3))
    assert releases[1] is None
    total = stream.total(releases)
    assert np.abs(total.moments.N - world.afresh().real().N).max() < 5 * total.sigma["N"]


def test_a_ledger_of_the_other_adjacency_charges_what_the_stream_costs_there(tmp_path: Any) -> None:
    ledger = made.ledger(tmp_path / "swap.db", epsilon=30.0, adjacency="replace-one")
    stream = stream_of(8)
    ps.course.spend(stream, ledger, "ward", b"may")
    add, replace = (ps.dp.joint_mu(CLASSES, stream.first.noise.sigma, how) for how in ("add-remove", "replace-one"))
    assert ledger.account("ward").mu == pytest.approx(max(replace, math.sqrt(2) * add))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ({"epochs": 0}, "epochs must be an integer"),
        ({"epochs": 2.0}, "epochs must be an integer"),
        ({"repeats": -1}, "repeats must be an integer"),
        ({"deletions": 1}, "deletions must be True or False"),
        ({"mechanism": "forest"}, "mechanism must be one of increments, tree, square-root"),
        ({"mechanism": ["tree"]}, "mechanism must be one of"),
        ({"epochs": 6, "mechanism": "tree"}, "power of two"),
        ({"mechanism": "tree", "plan": plan_of(privacy=EXACT)}, "needs a Privacy"),
        ({"mechanism": "square-root", "plan": plan_of(privacy=EXACT)}, "needs a Privacy"),
        ({"mechanism": "square-root", "plan": plan_of(model="distributed")}, "model='central'"),
        ({"mechanism": "square-root", "repeats": 1}, "omit repeats"),
        ({"deletions": True, "plan": plan_of(privacy=EXACT)}, "allow_disclosing_leavers=True"),
        ({"allow_disclosing_leavers": True}, "deletions without noise"),
        ({"plan": 3}, "plan must be a Plan"),
        ({"plan": made.plan(CLASSES, COHORT, promise(), min_count=3)}, "min_count"),
        ({"plan": made.plan(CLASSES, COHORT, promise(), spare_bits=3)}, "spare_bits"),
        ({"plan": plan_of(unit="client", max_records_per_client=50, client_clip=2.0)}, "client_clip bounds one upload"),
        ({"plan": plan_of(epsilon=0.002), "epochs": 1024, "mechanism": "tree"}, "which no plan can promise"),
    ],
)
def test_what_no_stream_can_be_is_refused(kind: dict[str, Any], said: str) -> None:
    refused(ps.PlanError, said, ps.Stream, **{"plan": plan_of(), "epochs": 4, **kind})


def test_only_class_and_ridge_schemas_stream() -> None:
    schema = ps.WithinSchema(3, 4, 1.0, pull=10.0, n_max=50)
    with pytest.raises(ps.PlanError, match="a WithinSchema does not add up over epochs"):
        ps.Stream(ps.Plan(schema=schema, cohort=COHORT, privacy=EXACT), 2)


def test_spare_bits_are_part_of_a_plan_and_of_its_file() -> None:
    stream = stream_of(4, "square-root")
    assert stream.first.spare_bits > FIXED_BITS
    assert ps.Plan.from_toml(stream.first.to_toml()) == stream.first
    assert "spare_bits" not in stream.plan.to_toml()
    widths = [bits for _, bits in stream.first.ring.segments]
    assert all(wide > bits for wide, (_, bits) in zip(widths, stream.plan.ring.segments, strict=True))
    refused(ps.PlanError, "spare_bits must be", ps.Plan, schema=CLASSES, cohort=COHORT, privacy=EXACT, spare_bits=33)


def test_releases_of_another_stream_are_refused() -> None:
    stream = exact_stream(2)
    world = World()
    epochs = [[world.change(world.born(k, 4)) for k in range(CLIENTS)] for _ in range(2)]
    releases = ps.simulate(stream, epochs, rng=seeded(1))
    refused(ps.PlanError, "not of this stream", stream_of(2).total, releases)
    refused(ps.PlanError, "2 nodes and 3", stream.next, [*releases, None])
    refused(ps.ReleaseError, "no epoch", stream.total, [None])
    assert stream.next(releases) is None


def test_wrong_calls_of_simulate_are_one_sentence() -> None:
    world, stream = World(), stream_of(2)
    shards = [world.change(world.born(k, 4)) for k in range(CLIENTS)]
    refused(ps.DataError, "a list with the shards of each", ps.simulate, stream, [shards])
    refused(ps.PlanError, "at most 2 mappings", ps.simulate, stream, [shards, shards], [None] * 3)
    leaving = [world.change((), world.dead(k, 1)) for k in range(CLIENTS)]
    refused(ps.DataError, "has no deletions", ps.simulate, stream, [shards, leaving])


@pytest.mark.parametrize("schema", [CLASSES, RIDGE])
def test_a_change_is_a_type_of_its_own(schema: Any) -> None:
    world = World(schema)
    moments = world.measured(world.born(0, 6))
    change = MomentsDelta.of(None, moments)
    assert (change.entered, change.left, change.records) == (0, 6, 6)
    assert sum([change, MomentsDelta.of(moments)]) == MomentsDelta.nothing(schema)
    assert "6" not in repr(change)
    assert change != 3
    refused(TypeError, "", lambda: change + moments)
    refused(TypeError, "", lambda: 1 + change)
    if schema is CLASSES:
        refused(ps.DataError, "counts of at least 0", change.settled)
        refused(
            ps.DataError, "counts of at least 0", ps.ClassMoments, CLASSES, N=-moments.N, A=-moments.A, B=-moments.B
        )


def test_a_change_that_is_none_is_refused() -> None:
    world, ridge = World(), World(RIDGE)
    moments, other = world.measured(world.born(0, 3)), ridge.measured(ridge.born(0, 3))
    for given in ((None, None), (moments, other), (3, None)):
        refused(ps.DataError, "", MomentsDelta.of, *given)
    change = MomentsDelta.of(moments)
    refused(ps.DataError, "under different schemas", lambda: change + MomentsDelta.of(other))
    refused(ps.DataError, "at least 0 records", MomentsDelta, CLASSES, change.arrays, -1, 0)
    refused(ps.DataError, "holds arrays of", MomentsDelta, CLASSES, {}, 1, 0)
    refused(ps.DataError, "class or ridge moments", MomentsDelta, None, {}, 1, 0)
