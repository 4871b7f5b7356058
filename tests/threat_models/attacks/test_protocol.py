"""Lying servers unmask nobody on the real machines, and everybody on machines weakened in just the right place."""

import pytest

import privstats as ps
from privstats.randomness import seeded
from privstats.secagg import Client
from privstats.secagg.interactive import checks as machine
from threat_models.attack import attacks_named
from threat_models.attacks import protocol, ring_wrap
from threat_models.attacks.protocol import LIES, colluders
from threat_models.attacks.staged import Cohort
from threat_models.attacks.unmasking import tried
from threat_models.data import synthetic_pool
from threat_models.evaluate import Effort, evaluate

from ..conftest import plan_of, promise, ridge_plan


class TrustsTheServer(Client):
    """Takes the roster that the server shows."""

    trusts_the_server = True


class RolledBack(Client):
    """Comes back from an older copy of itself."""

    @staticmethod
    def roll_back(cohort, place, saved):
        return Client.resume(
            saved, bytes(32), parameters=cohort.parameters, index=place, identity=cohort.identities[place],
            roster=cohort.roster,
        )  # fmt: skip


def accept(*checked):
    """A check that finds nothing."""


@pytest.mark.parametrize("lie", LIES)
def test_no_lie_unmasks_a_client_of_the_machines_as_shipped(lie):
    assert not any(tried(LIES[lie], Cohort(seeded(k))) for k in range(3))


@pytest.mark.parametrize(
    ("lie", "double", "unchecked"),
    [
        ("invented clients", TrustsTheServer, ()),
        ("equivocation", Client, ("check_agreement",)),
        ("lone survivor", Client, ("check_agreement", "check_survivors")),
        ("both share kinds", RolledBack, ()),
        ("replayed keys", Client, ("check_adverts",)),
        ("malformed bytes", Client, ("check_dealers", "check_refused")),
    ],
)
def test_every_lie_unmasks_a_client_of_its_weakened_double(monkeypatch, lie, double, unchecked):
    for check in unchecked:
        monkeypatch.setattr(machine, check, accept)
    assert all(tried(LIES[lie], Cohort(seeded(k), double)) for k in range(3))


def test_colluders_beyond_the_plan_unmask_a_client():
    cohort = Cohort(seeded(1))
    assert cohort.got(colluders(cohort, extra=3))
    assert not cohort.got(None)


@pytest.mark.ci
def test_the_rows_say_that_masks_promise_nothing_ever_comes_out(monkeypatch):
    few = {name: LIES[name] for name in ("equivocation", "replayed keys")}
    monkeypatch.setattr(protocol, "LIES", few)
    pool = synthetic_pool(plan_of(), seeded(0))
    rows = evaluate(plan_of(), attacks_named(["protocol-lies"]), pool, Effort(trials=8, seed=1)).rows
    assert [row.metric for row in rows] == list(few)
    assert {(row.measured, row.ceiling, row.verdict) for row in rows} == {(0.0, 0.0, "no evidence")}


def test_one_success_is_a_violation(monkeypatch):
    monkeypatch.setattr(protocol, "LIES", {"told": lambda cohort: cohort.values[protocol.VICTIM]})
    pool = synthetic_pool(plan_of(), seeded(0))
    assert evaluate(plan_of(), attacks_named(["protocol-lies"]), pool, Effort(trials=8, seed=1)).violated


def wrapped(plan, trials=120):
    attack = attacks_named(["ring-wrap"])
    return evaluate(plan, attack, synthetic_pool(plan, seeded(0)), Effort(trials=trials, seed=1)).rows[0]


@pytest.mark.parametrize("plan", [plan_of(promise()), ridge_plan(promise())], ids=["classes", "ridge"])
def test_a_client_that_fills_the_ring_learns_nothing(plan):
    row = wrapped(plan)
    assert row.verdict in ("no evidence", "underpowered")
    assert row.interval[0] <= row.ceiling


def test_a_client_that_fills_the_ring_wins_where_the_sum_is_lifted_before_the_noise(monkeypatch):
    """The broken double: the order of two steps exchanged. No check of the sum's size is in its way."""
    honest = ps.session.release

    class Lifted:
        def __init__(self, vector):
            self.vector = vector

    def lift_first(plan, total, survivors, rng, **how):
        return Lifted(total.lift() + honest(plan, plan.ring.zeros(), survivors, rng, **how).vector)

    monkeypatch.setattr(ring_wrap.session, "release", lift_first)
    row = wrapped(plan_of(promise(epsilon=0.5)))
    assert (row.measured, row.verdict) == (1.0, "violates ceiling")


def test_an_abort_tells_nothing_either(monkeypatch):
    def refuse(*args, **how):
        raise ps.AggregationError("unmask", "implausible", "too large")

    monkeypatch.setattr(ring_wrap.session, "release", refuse)
    assert wrapped(plan_of(promise()), 60).verdict in ("no evidence", "underpowered")


def test_noise_that_is_in_every_vector_cannot_come_too_late():
    assert "needs central noise" in wrapped(plan_of(promise("distributed"))).note
