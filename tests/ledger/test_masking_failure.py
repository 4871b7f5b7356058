"""Every run begun on a random graph is a try of a graph, and a ledger adds the failure of each to delta."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.dp import calibrate
from privstats.dp.ledger.accounts import LedgerState
from privstats.dp.ledger.records import Capped, Finished, Freed, Spent, Withdrawn
from privstats.dp.ledger.rules import room
from privstats.errors import LedgerError
from tests import made

SCHEMA = ps.ClassSchema(3, 4, "NAB", 1.0)
PRIVACY = made.promise(epsilon=0.1, delta=1e-6)
NOISE = calibrate(SCHEMA, PRIVACY, honest_shares=3)
FAILURE = 1e-8  # delta / 100, the largest that a plan may have


@pytest.fixture
def ledger(tmp_path: Path) -> ps.dp.Ledger:
    return made.ledger(tmp_path / "spent.db", epsilon=3.0, delta=1e-6)


def spend(ledger: ps.dp.Ledger, run: int, failure: float = FAILURE) -> ps.dp.Spend:
    named = run.to_bytes(8, "big")
    known = {"schema": SCHEMA, "privacy": PRIVACY, "noise": NOISE}
    return ledger.spend("ward", plan="d1ce", run=named, masking_failure=failure, **known)


def test_a_run_that_ended_before_an_upload_is_a_try_of_its_graph(ledger: ps.dp.Ledger) -> None:
    entries = [spend(ledger, run) for run in range(21)]
    for entry in entries[:-1]:
        ledger.withdraw(entry)
    account = ps.dp.Ledger.open(ledger.path).account("ward")
    assert account.counted == (entries[-1],)
    assert account.masking_failure == pytest.approx(21 * FAILURE)


def test_runs_that_are_begun_and_withdrawn_cannot_double_delta_unseen(ledger: ps.dp.Ledger) -> None:
    for run in range(100):
        ledger.withdraw(spend(ledger, run))
    words = r"probability 1.01e-06, maximum the cap's delta 1e-06: .* withdrawn ones too; use a complete graph"
    made.refused(LedgerError, words, spend, ledger, 100)
    account = ledger.account("ward")
    assert (account.spent, account.masking_failure) == (0, pytest.approx(1e-6))
    assert "masking has used the cap's delta" in room(account)
    spend(ledger, 101, failure=0.0)  # a complete graph
    ledger.set_cap("ward", **made.cap(epsilon=3.0, delta=2e-6))
    entry = spend(ledger, 102)
    assert spend(ledger, 102) == entry  # begun again, under the same graph


def test_a_course_is_refused_for_its_masking_before_it_is_charged(ledger: ps.dp.Ledger) -> None:
    for run in range(100):
        ledger.withdraw(spend(ledger, run))
    plan = made.plan(SCHEMA, ps.Cohort(1000, 900, 10_000, 100), made.promise("distributed", delta=1e-6))
    words = "probability 1.01e-06, maximum the cap's delta 1e-06"
    made.refused(LedgerError, words, ps.course.spending.require_room, ps.course.Single(plan), ledger, "ward", b"new")


EVENTS = st.lists(st.tuples(st.floats(0, 1e-8), st.sampled_from(["begun", "withdrawn", "sent", "freed"])), max_size=9)


@given(EVENTS)
def test_no_ending_of_a_run_takes_its_failure_out_of_the_sum(events: list[tuple[float, str]]) -> None:
    records: list[object] = [
        Capped(at="now", dataset="ward", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-6)
    ]
    for failure, ending in events:
        spent = {"at": "now", "dataset": "ward", "plan": "d1ce", "what": "release", "model": "central", "mu": 0.1}
        records.append(Spent(run=f"{len(records):02x}", parts=(), masking_failure=failure, **spent))
        number = len(records)
        if ending == "withdrawn":
            records.append(Withdrawn(at="now", spend=number))
        if ending in ("sent", "freed"):
            records.append(Finished(at="now", spend=number, upload="aa"))
        if ending == "freed":
            records.append(Freed(at="now", spend=number, proof="bb"))
    account = LedgerState.of(records).account("ward")  # type: ignore[arg-type]
    assert account.masking_failure == pytest.approx(sum(failure for failure, _ in events))
