"""Spend first, draw later; clip a whole client before its noise."""

import numpy as np
import pytest

import privstats as ps
from privstats.dp import Ledger, client_norm
from privstats.encoding import flatten
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
