"""Whole sessions: the sum is exact under any dropout schedule that the parameters admit, and never wrong."""

from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.encoding import Ring
from privstats.engines.loopback import run
from privstats.errors import AggregationError, LocalProtocolError, PlanError, RemoteProtocolError
from privstats.secagg import Client, Parameters, Roster, Server
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.state import STEPS
from tests.secagg.interactive.cohorts import Cohort, cohort_of, finish, play_until, sparse_cohort
from tests.secagg.interactive.inside import inside


@given(st.dictionaries(st.sampled_from(sorted(STEPS)), st.sets(st.integers(0, 5))))
def test_the_sum_is_exact_or_the_session_aborts_under_any_dropout_schedule(dropouts) -> None:
    cohort = cohort_of()
    remaining = set(range(6))
    counts = {step: len(remaining := remaining - set(dropouts.get(step, ()))) for step in STEPS}
    try:
        outcome = run(cohort.server, cohort.clients, dropouts=dropouts)
    except AggregationError:
        assert min(counts[step] for step in STEPS) < 4
    else:
        assert len(outcome.survivors) == counts["mask"] >= 4
        assert np.array_equal(outcome.total.lift(), cohort.sum_over(outcome.survivors))


def test_a_sparse_session_in_which_somebody_is_isolated_ends_with_that_name() -> None:
    cohort = sparse_cohort()
    lonely = inside(cohort.server).graph.neighbours(0)
    with pytest.raises(AggregationError) as abort:
        play_until(cohort, "mask", {"share": set(lonely[:3])})
    assert (abort.value.step, abort.value.code) == ("share", "isolated")


def test_a_signer_with_too_few_signing_neighbours_is_not_asked_to_unmask() -> None:
    """Its neighbours cannot give its seed back either, so the session ends with its name and without a sum."""
    cohort = sparse_cohort()
    outbox = play_until(cohort, "unmask", {"agree": set(inside(cohort.server).graph.neighbours(0)[:3])})
    assert 0 not in outbox
    with pytest.raises(AggregationError, match="[0-3] of 4 shares of client 0's secret arrived"):
        finish(cohort, outbox)


@pytest.mark.parametrize("size", [1, 65_536, 65_537])
def test_vectors_of_any_length_and_mixed_widths_add_up(size: int) -> None:
    cohort = cohort_of(3, 3, 0, ring=Ring(((size, 11), (2, 32), (size, 64), (1, 33))))
    outcome = run(cohort.server, cohort.clients)
    assert np.array_equal(outcome.total.lift(), cohort.sum_over((0, 1, 2)))


def test_an_upload_is_charged_by_its_step_whatever_its_type_is(monkeypatch) -> None:
    """A new type of message for the vector was sent without a charge."""
    monkeypatch.setitem(STEPS, "mask", replace(STEPS["mask"], answers=messages.Agree))
    cohort, charged = cohort_of(3, 3, 0), list[bytes]()
    cohort.clients[0] = cohort.client(0, on_upload=charged.append)
    ((_, answer),) = cohort.clients[0].receive(play_until(cohort, "mask")[0])
    assert charged == [sha256(answer).digest()]


def test_a_masked_upload_looks_nothing_like_its_vector(cohort: Cohort) -> None:
    """Two clients with the same vector send uploads that share no entry pattern: bits differ about half the time."""
    ring = Ring(((4096, 32),))
    cohort = cohort_of(ring=ring)
    uploads: list[bytes] = []
    receive = cohort.server.receive
    cohort.server.receive = lambda sender, data: uploads.append(data) or receive(sender, data)  # type: ignore[method-assign]
    run(cohort.server, cohort.clients)
    masked = [np.frombuffer(data, np.uint8)[-ring.wire_bytes :] for data in uploads if len(data) > ring.wire_bytes]
    plain = np.frombuffer(ring.encode(cohort.values[0]).pack(), np.uint8)
    assert len(masked) == 6
    assert all(0.48 < np.unpackbits(upload ^ plain).mean() < 0.52 for upload in masked)


def test_the_callers_vector_is_left_alone(cohort: Cohort) -> None:
    vector = cohort.parameters.ring.encode(cohort.values[0])
    cohort.clients[0] = cohort.client(0, vector=vector)
    run(cohort.server, cohort.clients)
    assert np.array_equal(vector.lift(), cohort.values[0])


def test_bytes_and_progress_are_reported_per_client(cohort: Cohort) -> None:
    calls: list[tuple[str, int, int]] = []
    outcome = run(cohort.server, cohort.clients, dropouts={"mask": {1}}, progress=lambda *call: calls.append(call))
    assert outcome.bytes_sent[0] - outcome.bytes_sent[5] == 5 * 32  # a link for each client above
    assert outcome.bytes_sent[1] < outcome.bytes_sent[5]
    assert min(outcome.bytes_received) > 0
    assert set(outcome.seconds) == set(STEPS)
    assert [call for call in calls if call[0] == "agree"] == [("agree", done, 5) for done in range(1, 6)]


def test_an_unknown_step_in_dropouts_is_refused(cohort: Cohort) -> None:
    with pytest.raises(PlanError, match="the steps are advertise, share, check, mask, agree, unmask"):
        run(cohort.server, cohort.clients, dropouts={"masked": {1}})


def test_neither_machine_serves_twice(cohort: Cohort) -> None:
    opening = dict(cohort.server.start())
    with pytest.raises(LocalProtocolError, match="already started"):
        cohort.server.start()
    other = cohort_of(label="other")
    run(other.server, other.clients)
    with pytest.raises(RemoteProtocolError, match="one session"):
        other.clients[0].receive(opening[0])
    with pytest.raises(LocalProtocolError, match="build a new server"):
        other.server.end_step()


def test_machines_refuse_a_vector_identity_or_roster_that_does_not_fit(cohort: Cohort) -> None:
    parameters, roster = cohort.parameters, cohort.roster
    vector = parameters.ring.zeros()
    with pytest.raises(LocalProtocolError, match="ring differs"):
        Client(parameters, Ring(((1, 8),)).zeros(), index=0, identity=cohort.identities[0], roster=roster)
    with pytest.raises(LocalProtocolError, match="index 1"):
        Client(parameters, vector, index=1, identity=cohort.identities[0], roster=roster)
    with pytest.raises(LocalProtocolError, match="index -1"):
        Client(parameters, vector, index=-1, identity=cohort.identities[5], roster=roster)
    short = Roster(roster.publics[:5], server=roster.server)
    with pytest.raises(LocalProtocolError, match="lists 5 clients"):
        Client(parameters, vector, index=0, identity=cohort.identities[0], roster=short)
    with pytest.raises(LocalProtocolError, match="lists 5 clients"):
        Server(parameters, roster=short, identity=cohort.aggregator)
    with pytest.raises(LocalProtocolError, match="not the server's on the roster"):
        Server(parameters, roster=roster, identity=cohort.identities[0])


@given(st.integers(2, 40), st.data())
def test_solved_thresholds_let_no_two_lists_gather_a_quorum(clients: int, data) -> None:
    colluders = data.draw(st.integers(0, clients - 2))
    min_survivors = data.draw(st.integers(2, clients))
    try:
        p = Parameters.solve(
            clients=clients,
            min_survivors=min_survivors,
            colluders=colluders,
            ring=Ring(((1, 8),)),
            plan_digest=bytes(32),
        )
    except PlanError:
        assert 2 * min_survivors <= clients + colluders
    else:
        assert 2 * p.threshold > clients + colluders
        assert colluders < p.threshold <= min_survivors


@pytest.mark.parametrize("ends", ["done", "failed"])
def test_the_server_forgets_everything_but_the_result(cohort: Cohort, ends: str) -> None:
    secret = inside(cohort.server).state.secret
    if ends == "done":
        run(cohort.server, cohort.clients)
    else:
        with pytest.raises(AggregationError):
            run(cohort.server, cohort.clients, dropouts={"mask": {0, 1, 2}})
    state = inside(cohort.server).state
    assert cohort.server.step == ends
    assert secret == bytes(32)
    assert (state.adverts, state.dealings, state.answers, inside(cohort.server).sent) == ({}, {}, {}, {})
    assert (inside(cohort.server).sum is None) == (ends == "failed")
