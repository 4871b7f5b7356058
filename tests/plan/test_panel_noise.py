"""Noise that leader and helpers draw: all of it by each, inside their answers, and by no other party."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

import privstats as ps
from privstats.engines import loopback
from privstats.randomness import seeded
from privstats.workflows.simulate import run
from tests.made import refused
from tests.plan.test_split import DP, PANEL, SCHEMA, SHARDS, plan_of

PROMISE = ps.Privacy(model="panel", **DP)
MOMENTS = [ps.measure(SCHEMA, X, y) for X, y in SHARDS]
RNG = np.random.default_rng(1)


def noisy(**change: Any) -> ps.Plan:
    return plan_of(PROMISE, **change)


def in_sigmas(plan: ps.Plan, vector: np.ndarray) -> np.ndarray:
    sigmas = [plan.noise.grid_sigma(segment) for segment in plan.layout.segments]
    return vector / np.repeat(sigmas, [segment.size for segment in plan.layout.segments])


def test_interactive_has_no_panel_whose_members_could_draw() -> None:
    told = "model='panel' is noise of a leader and helpers, and protocol='interactive' has none"
    refused(ps.PlanError, told, plan_of, PROMISE, protocol="interactive", panel=())


def test_the_model_is_in_the_file_and_in_every_digest() -> None:
    plan, central = noisy(), plan_of(ps.Privacy(model="central", **DP))
    assert ps.Plan.from_toml(plan.to_toml()) == plan
    assert (plan.masking.noisy_helpers, central.masking.noisy_helpers) == (True, False)
    same = {"ring": plan.ring, "plan_digest": bytes(32), "clients": 6, "min_survivors": 4, "colluders": 1, "helpers": 2}
    quiet, loud = (ps.secagg.UploadParameters.solve(**same, noisy_helpers=each) for each in (False, True))
    assert quiet.digest != loud.digest
    assert quiet.digest == ps.secagg.UploadParameters.solve(**same).digest


def test_a_plan_says_what_the_panel_adds_and_who_is_trusted() -> None:
    plan = noisy()
    assert (plan.noise.members, plan.noise.mu) == (3, plan_of(ps.Privacy(model="central", **DP)).noise.mu)
    told = "\n".join(ps.review.facts(plan))
    assert "one of leader and helpers must add its noise and keep it secret; no party sees the exact sum" in told
    assert "each of the 3 members adds the noise in full, so a release carries 1.73 times the noise" in told
    assert "any fewer of them learn the sum with the noise of the others in it" in told
    assert plan.budget().epsilon == pytest.approx(4.0)


WIDE = ps.ClassSchema(classes=3, features=40, statistics="NA", clip_norm=1.0)
HELD = [ps.measure(WIDE, RNG.normal(size=(9, 40)), RNG.integers(0, 3, 9)) for _ in range(6)]
SUMS = sum(ps.encoding.flatten(each) for each in HELD)
RUNS = 12


def is_standard(found: list[np.ndarray]) -> bool:
    """Whether residuals are standard normal: their spread to 5 errors (10 %), and their shape."""
    z = np.concatenate(found)
    return abs(z.std() - 1) < 5 / math.sqrt(2 * z.size) and kstest(z, "norm").pvalue > 1e-6


def test_every_member_adds_its_noise_to_the_sum_over_the_machines() -> None:
    """The leader sees sqrt(2) sigma of its two helpers, a reader sqrt(3): a missing member is 18 or 29 % less."""
    plan, released, summed = noisy(schema=WIDE), [], []
    for seed in range(RUNS):
        crew = ps.session.local_parties(plan, HELD, seeded(seed))
        outcome = loopback.run(crew.server, crew.clients, helpers=crew.helpers)
        assert crew.server.noise_due
        summed.append(in_sigmas(plan, outcome.total.lift() - SUMS) / math.sqrt(2))
        release = ps.session.release(plan, outcome.total, outcome.survivors, charge="uncharged")
        released.append(in_sigmas(plan, release.vector - SUMS) / math.sqrt(3))
        assert release.sigma["A"] == pytest.approx(math.sqrt(3) * plan.noise.sigma["A"])
    assert is_standard(summed)
    assert is_standard(released)


def test_a_sum_in_the_clear_carries_the_noise_of_every_member() -> None:
    plan = noisy(schema=WIDE)
    found = [ps.session.aggregate_unmasked(plan, HELD, seeded(seed)).vector - SUMS for seed in range(RUNS)]
    assert is_standard([in_sigmas(plan, each) / math.sqrt(3) for each in found])


def test_clients_add_nothing_and_no_run_says_that_its_sum_is_exact() -> None:
    plan = noisy()
    assert np.array_equal(ps.session.contribution(plan, MOMENTS[0]).take().lift(), ps.encoding.flatten(MOMENTS[0]))
    done = run(plan, SHARDS, {"report": {1}}, seeded(1))
    assert done.exact is None
    assert done.release.survivors == (0, 2, 3, 4, 5)
    assert done.release.reproducible


def test_a_helper_draws_once_and_its_answer_is_the_same_when_it_is_asked_again() -> None:
    plan, drawn = noisy(), []
    crew = ps.session.local_parties(plan, MOMENTS, seeded(2))
    for helper in crew.helpers:
        draw = helper._noise
        helper._noise = lambda seed, draw=draw: drawn.append(draw(seed)) or drawn[-1]
    asked: list[tuple[int, bytes]] = []
    server = crew.server
    for client in crew.clients:
        for _, report in client.start():
            server.receive(client.index, report)
    while server.step not in ("done", "failed"):
        for peer, message in server.outbox:
            ((_, answer),) = crew.helpers[peer - 6].receive(message)
            assert crew.helpers[peer - 6].receive(message) == [("server", answer)]
            asked.append((peer, message))
            server.receive(peer, answer)
        server.end_step()
    assert (server.step, len(drawn)) == ("done", len(crew.helpers))
    assert all(helper._noise is None for helper in crew.helpers)  # gone with the box key


@pytest.mark.parametrize(
    ("plan", "noise", "told"),
    [
        (noisy(), None, "every helper of this plan adds noise to its answer"),
        (noisy(), "loud", "give noise=session.helper_noise"),
        (plan_of(), lambda seed: None, "no helper of this plan adds noise: omit noise"),
    ],
    ids=["forgotten", "no function", "not asked for"],
)
def test_a_helper_and_its_plan_agree_on_noise_before_it_begins(plan: ps.Plan, noise: object, told: str) -> None:
    refused(ps.LocalProtocolError, told, ps.secagg.Helper.check_noise, plan.masking, noise)


def test_noise_of_another_ring_ends_the_helper_and_not_the_secret() -> None:
    plan = noisy()
    other = noisy(cohort=ps.Cohort(clients=6, min_survivors=4, colluders=1, max_records=90_000))
    assert other.ring != plan.ring
    crew = ps.session.local_parties(plan, MOMENTS, seeded(3))
    crew.helpers[0]._noise = ps.session.helper_noise(other)
    with pytest.raises(ps.LocalProtocolError, match="noise is of another ring than the plan's"):
        loopback.run(crew.server, crew.clients, helpers=crew.helpers)
    assert (crew.helpers[0].step, crew.helpers[0].answer) == ("failed", b"")


def test_noise_follows_from_its_seed_and_the_plan_alone() -> None:
    plan, other = noisy(), noisy(min_count=1)
    one, again, of_other = (ps.session.helper_noise(each) for each in (plan, plan, other))
    assert one(b"s" * 32).lift().tolist() == again(b"s" * 32).lift().tolist()
    assert one(b"s" * 32).lift().tolist() != one(b"t" * 32).lift().tolist()
    assert one(b"s" * 32).lift().tolist() != of_other(b"s" * 32).lift().tolist()
    for model in ("central", "distributed", "local"):
        assert ps.session.helper_noise(plan_of(ps.Privacy(model=model, **DP))) is None
    assert ps.session.helper_noise(plan_of()) is None


def test_parties_and_the_leader_are_charged_as_under_any_noise(tmp_path) -> None:
    plan, ledger = noisy(), ps.dp.Ledger.create(tmp_path / "ledger")
    ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=9.0, delta=1e-5)
    charge = ps.session.Charge(ledger, "ward")
    total = ps.session.local_parties(plan, MOMENTS, seeded(0)).server.parameters.ring.zeros()
    for _ in range(2):  # a function without memory: another draw, another spend
        ps.session.release(plan, total, (0, 1, 2, 3), charge=charge)
    (account,) = ledger.accounts()
    assert [entry.model for entry in account.counted] == ["panel", "panel"]
    assert account.mu == pytest.approx(math.sqrt(2) * plan.budget().mu)
    refused(ps.LedgerError, "no ledger is given", ps.session.release, plan, total, (0, 1, 2, 3))


def test_streams_and_one_party_alone_have_no_panel() -> None:
    plan = noisy(schema=ps.ClassSchema(classes=3, features=4, statistics="NAB", clip_norm=1.0))
    refused(ps.PlanError, "a panel adds its noise to one sum and a stream has many", ps.Stream, plan, epochs=2)
    with pytest.raises(ps.PlanError, match="privacy.model must be 'central' for one party alone, got 'panel'"):
        ps.private_release(SCHEMA, PROMISE, *SHARDS[0], ledger="uncharged")


def test_the_client_unit_and_one_helper_are_served_as_well() -> None:
    promise = ps.Privacy(
        model="panel", unit="client", adjacency="add-remove", epsilon=4.0, delta=1e-5, max_records_per_client=9
    )
    plan = plan_of(promise, panel=PANEL[:2])
    assert plan.noise.members == 2
    assert ps.simulate(plan, SHARDS).sigma["A"] == pytest.approx(math.sqrt(2) * plan.noise.sigma["A"])
