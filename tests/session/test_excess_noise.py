"""Excess noise over whole sessions: the release is the exact sum with what is left of the noise, at every count."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats import randomness
from privstats.engines import loopback
from privstats.engines.journal import JournaledServer
from privstats.errors import AggregationError, DataError, PlanError, ReleaseError
from privstats.secagg.machines import Opening, layer_seeds
from privstats.session.local import opened_among

SCHEMA = ps.ClassSchema(2, 3, "NA", clip_norm=1.0)
PROMISE = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
COHORT = ps.Cohort(7, 5, 1_000, 1)
PLAN = ps.Plan(schema=SCHEMA, cohort=COHORT, privacy=PROMISE, excess_noise="removed")
KEPT = ps.Plan(schema=SCHEMA, cohort=COHORT, privacy=PROMISE)
MOMENTS = ps.measure(SCHEMA, [[0.5, 0.25, 0.0]], [1])


def contributions(plan: ps.Plan = PLAN, count: int = 7) -> list[ps.session.Contribution]:
    return [ps.session.contribution(plan, MOMENTS) for _ in range(count)]


def left_of(part: ps.session.Contribution, opened: int) -> np.ndarray:
    """A client's vector without its lowest layers, in integers, by its own root."""
    seeds = layer_seeds(part.noise_root, len(PLAN.noise.levels) - 1)[:opened]
    layers = ps.dp.draw_layers(PLAN.noise, PLAN.layout, [randomness.Generator(seed) for seed in seeds])
    return part.vector.lift() - layers


@pytest.mark.parametrize(("present", "silent"), [(5, 0), (6, 0), (6, 1), (7, 0), (7, 1), (7, 2)])
def test_a_release_is_the_sum_of_what_every_client_left(present: int, silent: int) -> None:
    parts = contributions()
    parties = ps.session.local_parties(PLAN, parts)
    gone = {"mask": set(range(present, 7)), "unmask": set(range(silent))}
    outcome = loopback.run(parties.server, parties.clients, dropouts=gone)
    given = {"charge": "uncharged", "openings": outcome.openings}
    release = ps.session.release(PLAN, outcome.total, outcome.survivors, **given)
    opened = [0 if client < silent else PLAN.noise.levels.index(present) for client in range(present)]
    exact = sum(left_of(part, count) for part, count in zip(parts, opened, strict=False))
    assert np.array_equal(release.vector, exact)
    assert release.left_for == (5,) * silent + (present,) * (present - silent)
    variance = sum(1 / (level - 1) for level in release.left_for)
    assert release.sigma["A"] == pytest.approx(PLAN.noise.sigma["A"] * variance**0.5)


def test_an_unmasked_sum_opens_as_a_session_does() -> None:
    parts = contributions(count=6)
    exact = sum(left_of(part, 1) for part in parts)
    release = ps.session.aggregate_unmasked(PLAN, parts)
    assert np.array_equal(release.vector, exact)
    assert release.left_for == (6,) * 6


def test_a_simulated_release_has_the_noise_of_a_plan_for_all(tmp_path: Path) -> None:
    release = ps.simulate(PLAN, [([[0.5, 0.25, 0.0]], [1])] * 7)
    strict = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(7, 7, 1_000, 1), privacy=PROMISE)
    assert release.sigma["A"] == pytest.approx(strict.noise.released_sigma(7)["A"])
    release.save(tmp_path / "study.release")
    again = ps.Release.load(tmp_path / "study.release")
    assert again == release
    assert again.digest == release.digest
    assert again.left_for == (7,) * 7


def test_a_release_without_openings_says_that_nothing_was_removed() -> None:
    total = PLAN.ring.zeros()
    for part in contributions():
        total.add(part.take())
    release = ps.session.release(PLAN, total, tuple(range(7)), charge="uncharged")
    assert release.left_for == (5,) * 7
    assert release.sigma == pytest.approx(KEPT.noise.released_sigma(7))


def test_a_release_is_another_with_other_noise_left() -> None:
    one = ps.session.aggregate_unmasked(PLAN, contributions())
    other = replace(one, left_for=(5,) * 7)
    assert one != other
    assert one.digest != other.digest


@pytest.mark.parametrize("left", [(), (7,) * 6, (7,) * 8, (4,) * 7, (7.0,) * 7, [7] * 7])
def test_a_release_refuses_levels_that_its_survivors_cannot_have(left: tuple[int, ...]) -> None:
    one = ps.session.aggregate_unmasked(PLAN, contributions())
    with pytest.raises(ReleaseError, match="left_for must have one of the plan's levels"):
        replace(one, left_for=left)


def test_a_release_of_fewer_has_no_level_above_them_and_a_plan_without_layers_none() -> None:
    one = ps.session.aggregate_unmasked(PLAN, contributions(count=6))
    with pytest.raises(ReleaseError, match="none above their number"):
        replace(one, left_for=(7,) * 6)
    kept = ps.session.aggregate_unmasked(KEPT, [MOMENTS] * 7)
    assert kept.left_for == ()
    with pytest.raises(ReleaseError, match="be empty elsewhere"):
        replace(kept, left_for=(5,) * 7)


@pytest.mark.parametrize(
    "openings",
    [{9: Opening(5, ())}, {0: Opening(4, ())}, {0: Opening(7, (bytes(32),))}, {0: Opening(5, (bytes(32),))}],
    ids=["no survivor", "no level", "too few seeds", "too many seeds"],
)
def test_openings_of_another_sum_are_refused(openings: dict[int, Opening]) -> None:
    with pytest.raises(DataError, match=r"pass server\.openings"):
        ps.session.release(PLAN, PLAN.ring.zeros(), tuple(range(7)), charge="uncharged", openings=openings)


def test_a_plan_without_layers_takes_no_openings() -> None:
    with pytest.raises(DataError, match=r"pass server\.openings"):
        ps.session.release(KEPT, KEPT.ring.zeros(), tuple(range(7)), charge="uncharged", openings={0: Opening(5, ())})
    (part,) = contributions(KEPT, 1)
    assert part.noise_root == b""
    with pytest.raises(DataError, match="no layers of noise"):
        opened_among(KEPT, part, 7)


def test_a_killed_server_makes_the_same_release(tmp_path: Path) -> None:
    """The openings are in its journal: nothing is subtracted twice, and nothing is drawn."""
    ids = [ps.secagg.Identity.generate(os.urandom) for _ in range(8)]
    roster = ps.secagg.Roster(tuple(each.public for each in ids[:7]), server=ids[7].public, run=os.urandom(16))
    clients = [
        ps.session.client(PLAN, MOMENTS, index=place, identity=ids[place], roster=roster, charge="uncharged")
        for place in range(7)
    ]
    key, named = os.urandom(32), {"parameters": PLAN.masking, "roster": roster, "identity": ids[7]}

    def begin() -> JournaledServer:
        make = lambda: ps.session.server(PLAN, roster, identity=ids[7])  # noqa: E731
        return JournaledServer.resume_or_create(tmp_path / "server", key, make, **named)

    with begin() as server:
        server.start()
    for _ in PLAN.masking.steps:
        with begin() as server:
            for place, message in server.outbox:
                ((_, answer),) = clients[place].receive(message)
                server.receive(place, answer)
            server.end_step()
    releases = []
    for _ in range(2):
        with begin() as server:
            assert set(server.openings) == set(range(7))
            releases.append(server.release(PLAN, "uncharged"))
    assert releases[0] == releases[1]
    assert releases[0].left_for == (7,) * 7


def test_too_few_survivors_release_nothing_as_ever() -> None:
    parties = ps.session.local_parties(PLAN, contributions())
    with pytest.raises(AggregationError, match="too_few_clients"):
        loopback.run(parties.server, parties.clients, dropouts={"mask": {0, 1, 2}})


CENTRAL = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
SPLIT = {"protocol": "split", "panel": [ps.secagg.Identity.generate(os.urandom).public.hex() for _ in range(2)]}


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"excess_noise": "opened"}, "excess_noise must be one of kept, removed, got 'opened'"),
        ({"privacy": CENTRAL}, "needs shares of noise: choose model='distributed'"),
        ({"privacy": ps.NoPrivacy()}, "needs shares of noise: choose model='distributed'"),
        (SPLIT, "needs clients that agree on who is in the sum: choose protocol='interactive', or model='panel'"),
        ({"cohort": ps.Cohort(7, 7, 1_000)}, "has nothing to remove: all clients must survive"),
        ({"cohort": ps.Cohort(300, 270, 1_000, 10)}, "on a complete graph only"),
    ],
    ids=["word", "central", "no promise", "split", "nothing", "graph"],
)
def test_a_plan_that_cannot_remove_noise_is_refused(named: dict, said: str) -> None:
    with pytest.raises(PlanError) as refusal:
        ps.Plan(**{"schema": SCHEMA, "cohort": COHORT, "privacy": PROMISE, "excess_noise": "removed", **named})
    assert said in str(refusal.value)


def facts_of(cohort: ps.Cohort, **named: str) -> str:
    return " | ".join(ps.review.facts(ps.Plan(schema=SCHEMA, cohort=cohort, privacy=PROMISE, **named)))


def test_the_review_prints_what_the_margin_costs_either_way() -> None:
    """(20 - 1) / (12 - 1) of the variance, and its root of the standard deviation."""
    cohort = ps.Cohort(20, 12, 1_000, 1)
    kept, removed = facts_of(cohort), facts_of(cohort, excess_noise="removed")
    assert "room for 8 of 20 clients to vanish costs 1.73 times the variance and 1.31 times the standard" in kept
    assert 'model = "panel" has none' in kept
    assert "room for 8 of 20 clients to vanish costs no noise when all are there" in removed
    assert "room for" not in facts_of(ps.Cohort(20, 20, 1_000, 1))


@pytest.mark.parametrize(
    "opening",
    [
        Opening(7, (bytes(32),) * 2),
        Opening(6.0, (bytes(32),)),  # type: ignore[arg-type]
        Opening(6, ("x",)),  # type: ignore[arg-type]
        Opening(6, (b"short",)),
    ],
    ids=["more than are there", "no integer", "no bytes", "short"],
)
def test_an_opening_that_cannot_be_is_refused_before_anything_is_spent(tmp_path: Path, opening: Opening) -> None:
    total = PLAN.ring.zeros()
    for part in contributions(count=5):
        total.add(part.take())
    ledger = ps.dp.Ledger.create(tmp_path / "ledger")
    ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=5.0, delta=1e-4)
    with pytest.raises(DataError, match="openings must be"):
        ps.session.release(
            PLAN, total, tuple(range(5)), charge=ps.session.Charge(ledger, "ward"), openings={0: opening}
        )
    assert ledger.account("ward").spent == 0


@pytest.mark.parametrize("mechanism", ["increments", "tree"])
def test_a_simulated_stream_takes_its_excess_noise_back(mechanism: str) -> None:
    epochs = [[([[0.5, 0.25, 0.0]], [1])] * 7] * 2
    removed, kept = (ps.simulate(ps.Stream(plan, 2, mechanism), epochs)[0] for plan in (PLAN, KEPT))
    assert removed.left_for == (7,) * 7
    assert removed.sigma["N"] < kept.sigma["N"]


def test_the_sentence_on_minimum_counts_holds_where_nobody_opens_a_layer() -> None:
    noise = PLAN.noise
    assert noise.max_sigma(7)["N"] == noise.sigma_at_levels([5] * 7)["N"] == KEPT.noise.released_sigma(7)["N"]
    assert KEPT.noise.max_sigma(7) == KEPT.noise.released_sigma(7)
