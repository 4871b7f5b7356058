"""Spend first, draw later; clip a whole client before its noise."""

import numpy as np
import pytest

import privstats as ps
from privstats.dp import Ledger, client_norm
from privstats.encoding import flatten
from privstats.randomness import seeded
from privstats.session import Charge

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 4)), RNG.integers(0, 3, 40)
SCHEMA = ps.ClassSchema(3, 4, "NAB", clip_norm=2.0)
MOMENTS = ps.measure(SCHEMA, X, Y)


def plan(model="central", **privacy):
    promise = {"unit": "record", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-5, **privacy}
    return ps.Plan(schema=SCHEMA, cohort=ps.Cohort(4, 3, 200), privacy=ps.Privacy(model=model, **promise))


@pytest.fixture
def charge(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.set_cap("ward 7", unit="record", adjacency="add-remove", epsilon=1.2, delta=1e-5)
    return Charge(ledger, "ward 7")


def total_of(subject):
    return subject.ring.encode(flatten(MOMENTS))


@pytest.mark.parametrize("model", ["distributed", "local"])
def test_a_client_writes_its_spend_before_it_draws_its_share(model, charge):
    subject = plan(model)
    ps.session.contribution(subject, MOMENTS, charge=charge)
    (entry,) = charge.ledger.account("ward 7").entries
    assert entry.plan == subject.digest
    assert entry.released is not None
    assert entry.mu == pytest.approx(subject.budget().mu)


def test_the_second_release_would_pass_the_cap_and_is_refused(charge):
    subject = plan()
    ps.session.release(subject, total_of(subject), (0, 1, 2), charge=charge)
    with pytest.raises(ps.LedgerError, match="nothing was spent"):
        ps.session.release(subject, total_of(subject), (0, 1, 2), charge=charge)
    assert len(charge.ledger.account("ward 7").entries) == 1


def test_a_crash_after_the_spend_costs_the_release_and_keeps_the_record(charge, monkeypatch):
    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("privstats.dp.draw_central", crash)
    with pytest.raises(KeyboardInterrupt):
        ps.session.release(plan(), total_of(plan()), (0, 1, 2), charge=charge)
    (entry,) = charge.ledger.account("ward 7").entries
    assert entry.released is None


def test_no_dp_cannot_be_charged(charge):
    subject = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(4, 3, 200), privacy=ps.NoPrivacy())
    with pytest.raises(ps.LedgerError, match="without DP"):
        ps.session.release(subject, total_of(subject), (0, 1, 2), charge=charge)


def test_a_client_beyond_its_clip_is_shrunk_as_a_whole():
    subject = plan(unit="client", max_records_per_client=40, client_clip=3.0, epsilon=8.0)
    clipped = ps.session.contribution(subject, MOMENTS).lift()
    assert client_norm(SCHEMA, subject.privacy, flatten(MOMENTS)) > 3
    assert 2.99 < client_norm(SCHEMA, subject.privacy, clipped) <= 3


def test_a_seeded_generator_reaches_a_real_machine_only_where_it_is_asked_for():
    """Whoever knows the seed takes off the noise and the masks: every door of the session refuses it."""
    subject, rng = plan("distributed"), seeded(1)
    identities = [ps.secagg.Identity.generate(rng.bytes) for _ in range(4)]
    roster = ps.secagg.Roster(tuple(identity.public for identity in identities))
    party = {"index": 0, "identity": identities[0], "roster": roster}
    doors = [
        lambda **told: ps.session.contribution(subject, MOMENTS, rng, **told),
        lambda **told: ps.session.client(subject, MOMENTS, **party, rng=rng, **told),
        lambda **told: ps.session.server(subject, roster, rng, **told),
        lambda **told: ps.session.release(subject, total_of(subject), (0, 1, 2), rng, **told),
    ]
    for door in doors:
        with pytest.raises(ps.RandomnessError, match="rng is reproducible"):
            door()
        door(allow_reproducible=True)


def test_a_generator_that_is_refused_costs_nothing(charge):
    with pytest.raises(ps.RandomnessError):
        ps.session.release(plan(), total_of(plan()), (0, 1, 2), seeded(1), charge)
    assert charge.ledger.account("ward 7").entries == ()


def test_keys_do_not_come_from_a_generator_that_can_be_predicted():
    subject = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(4, 3, 200), privacy=ps.NoPrivacy())
    with pytest.raises(ps.DataError, match="rng must be a privstats.randomness.Generator"):
        ps.session.contribution(subject, MOMENTS, np.random.default_rng(0))


def test_an_implausible_sum_stays_charged(charge):
    """The abort is seen by everybody and follows from the noisy sum, so it is paid for like a release."""
    subject = plan()
    vector = flatten(MOMENTS)
    vector[3] = 2 ** (subject.headroom[1].bits - 1) - 1
    with pytest.raises(ps.AggregationError, match="implausible"):
        ps.session.release(subject, subject.ring.encode(vector), (0, 1, 2), charge=charge)
    (entry,) = charge.ledger.account("ward 7").entries
    assert entry.mu == pytest.approx(subject.budget().mu)
