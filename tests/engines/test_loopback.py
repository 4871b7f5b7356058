"""The loopback engine: whatever the network does, the session ends in the exact sum or in a named abort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.engines.faults import Fault
from privstats.engines.loopback import run
from privstats.errors import AggregationError, LedgerError, PlanError
from privstats.secagg.interactive.state import STEPS
from privstats.secagg.upload import batching
from tests.secagg.interactive.cohorts import cohort_of
from tests.secagg.upload.cohorts import uploads_of

FAULTS = ["drop", "duplicate", "truncate", "flip", "extend", "replay", "late"]

faults = st.builds(
    Fault,
    st.sampled_from(list(STEPS)),
    st.integers(0, 5),
    st.sampled_from(["up", "down"]),
    st.sampled_from(FAULTS),
    st.integers(0, 1 << 16),
)


@given(st.lists(faults, max_size=4), st.permutations(range(6)))
def test_faults_cost_clients_but_never_the_sum(ordered, order) -> None:
    cohort = cohort_of()
    try:
        outcome = run(cohort.server, cohort.clients, faults=ordered, order=order)
    except AggregationError:
        assert len({fault.client for fault in ordered}) > 2
    else:
        assert np.array_equal(outcome.total.lift(), cohort.sum_over(outcome.survivors))


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("step", list(STEPS))
def test_one_fault_costs_at_most_one_client(step, kind, direction) -> None:
    cohort = cohort_of()
    outcome = run(cohort.server, cohort.clients, faults=[Fault(step, 2, direction, kind, 777)])
    costly = kind != "duplicate" and step in ("advertise", "share", "check", "mask")
    assert outcome.survivors == tuple(i for i in range(6) if i != 2 or not costly)
    assert np.array_equal(outcome.total.lift(), cohort.sum_over(outcome.survivors))
    refused = {fault.peer for fault in outcome.faults}
    if kind in ("drop", "duplicate") or (kind == "replay" and step != "advertise"):
        assert refused == set()  # a message that was answered before is a repeat, no broken protocol
    elif kind == "late":
        assert refused <= {2, "server"}
    else:
        assert refused == {2 if direction == "up" else "server"}


def test_a_client_whose_ledger_refuses_in_one_upload_is_wiped_and_gives_its_spend_back() -> None:
    uploads, given = uploads_of(), []

    def refuse(_: bytes) -> None:
        raise LedgerError("the disk is full")

    refuse.withdraw = lambda: given.append(1)  # type: ignore[attr-defined]
    uploads.clients[1] = uploads.client(1, on_upload=refuse)
    with pytest.raises(LedgerError, match="the disk is full"):
        run(uploads.leader, uploads.clients, helpers=uploads.helpers)
    assert (given, uploads.clients[1].step, uploads.clients[1].upload) == ([1], "failed", b"")


def test_a_late_upload_is_refused_and_not_added(cohort_pair) -> None:
    cohort, outcome = cohort_pair
    assert [(fault.peer, fault.step, fault.code) for fault in outcome.faults] == [(3, "agree", "not_expected")]
    assert outcome.survivors == (0, 1, 2, 4, 5)
    assert np.array_equal(outcome.total.lift(), cohort.sum_over(outcome.survivors))


@pytest.fixture
def cohort_pair():
    cohort = cohort_of()
    return cohort, run(cohort.server, cohort.clients, faults=[Fault("mask", 3, "up", "late")])


def test_costs_are_attributed(cohort_pair) -> None:
    _, outcome = cohort_pair
    assert outcome.server_cpu > 0
    assert len(outcome.client_cpu) == 6
    assert min(outcome.client_cpu) > 0


def test_a_fault_at_an_unknown_step_is_refused() -> None:
    cohort = cohort_of()
    with pytest.raises(PlanError, match=r"faults names unknown steps \['masked'\]: the steps are advertise, share"):
        run(cohort.server, cohort.clients, faults=[Fault("masked", 0, "up", "drop")])


@pytest.mark.parametrize("fault", [("mask", 0, "sideways", "drop"), ("mask", 0, "up", "explode")])
def test_an_unknown_fault_is_refused(fault) -> None:
    with pytest.raises(PlanError, match="choose one of"):
        Fault(*fault)


def test_parts_travel_to_the_helpers_while_reports_still_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "PART_BYTES", 1)
    cohort, told = uploads_of(), []
    outcome = run(
        cohort.leader,
        cohort.clients,
        helpers=cohort.helpers,
        dropouts={"report": {1}},
        progress=lambda *seen: told.append((*seen, cohort.helpers[0].parts)),
    )
    assert outcome.survivors == (0, 2, 3, 4, 5)
    assert np.array_equal(outcome.total.lift(), cohort.sum_over(outcome.survivors))
    assert [seen for seen in told if seen[0] == "report"] == [
        ("report", done, 6, parts) for parts, done in enumerate((1, 3, 4, 5, 6), start=1)
    ]
    assert [seen[:3] for seen in told if seen[0] != "report"] == [("reveal", 1, 2), ("reveal", 2, 2)]


def test_every_client_that_was_asked_is_told_of() -> None:
    cohort, told = cohort_of(), []
    run(cohort.server, cohort.clients, progress=lambda *seen: told.append(seen))
    assert told == [(step, done, 6) for step in STEPS for done in range(1, 7)]
