"""What an honest run gives, with any number of helpers, and what the machines promise their caller."""

import copy
import hashlib
import pickle
from dataclasses import fields, replace
from typing import get_args

import msgspec
import numpy as np
import pytest

from privstats.encoding import Ring
from privstats.errors import AggregationError, LocalProtocolError, PlanError, RemoteProtocolError
from privstats.secagg import HelperKeys, Roster
from privstats.secagg.machines import Aggregator, Peer
from privstats.secagg.masking_facts import masking_facts
from privstats.secagg.upload import batching, messages
from privstats.secagg.upload.client import Client
from privstats.secagg.upload.leader import Leader
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.state import ClientState
from tests.contrib.proofs.proved import proved_of
from tests.faults import interrupted
from tests.secagg.upload.cohorts import parameters_of, refused, uploads_of
from tests.secagg.upload.inside import inside

KEY = b"k" * 32


@pytest.mark.parametrize("helpers", [1, 2, 3, 5])
def test_the_sum_is_exact(helpers: int) -> None:
    run = uploads_of(helpers=helpers)
    run.play_until("check", silent=(2, 5))
    total, survivors = run.finish()
    assert survivors == (0, 1, 3, 4)
    assert np.array_equal(total, run.sum_over(survivors))
    assert run.leader.faults == ()
    assert [helper.step for helper in run.helpers] == ["done"] * helpers
    assert run.leader.waiting_for == frozenset()


def test_the_saved_state_keeps_the_names_that_older_versions_wrote() -> None:
    assert msgspec.to_builtins(ClientState(bytearray(32), ())).keys() == {
        *("root", "offers", "vector", "step", "report", "stated", "upload", "uploaded", "charged")
    }


def test_the_machines_have_all_that_an_engine_asks_for() -> None:
    run = uploads_of()
    for interface, machine in ((Peer, run.clients[0]), (Peer, run.helpers[0]), (Aggregator, run.leader)):
        assert {name for name in vars(interface) if not name.startswith("_")} <= set(dir(machine))
    client, helper = run.clients[0], run.helpers[1]
    assert (client.step, client.faults, client.ended, client.answer, client.upload) == ("report", (), "", b"", b"")
    assert (helper.index, helper.ended, helper.answer, helper.upload, helper.start()) == (7, "", b"", b"", [])
    assert (client.charged, helper.charged) == (False, False)
    assert "secret" not in repr((client, helper, run.leader, run.keys[0])).lower()
    assert run.leader.noise_due is False


def test_too_few_reports_end_the_run_by_name() -> None:
    run = uploads_of()
    for index in (0, 1, 2):
        run.leader.receive(index, run.report(index))
    step_status = run.leader.step_status()
    assert (step_status.answered, step_status.waiting_for) == ((0, 1, 2), (3, 4, 5))
    with pytest.raises(AggregationError, match=r"'report' \(too_few_clients\): 3 clients remain, the plan needs 4"):
        run.leader.end_step()
    for call in (run.leader.end_step, run.leader.step_status, lambda: run.leader.export(KEY)):
        with pytest.raises(LocalProtocolError, match="the run is failed"):
            call()
    with pytest.raises(LocalProtocolError, match="there is no result"):
        _ = run.leader.result
    with refused("not_expected"):
        run.leader.receive(5, run.report(5))
    assert not run.leader.abandon()


def test_a_run_can_be_abandoned_by_its_leader() -> None:
    run = uploads_of()
    assert not run.leader.abandon()
    assert run.leader.step == "failed"
    assert not run.leader.awaits(0)


def test_parts_are_closed_when_full_and_a_leader_says_when_it_is_busy(monkeypatch) -> None:
    run = uploads_of()
    monkeypatch.setattr(batching, "PART_BYTES", 1)
    monkeypatch.setattr(batching, "IN_FLIGHT", 2)
    first = run.leader.receive(0, run.report(0))
    assert first.clients == (6, 7)
    assert not run.leader.receive(1, run.report(1))  # both helpers have a part before this one
    with refused("busy"):
        run.leader.receive(2, run.report(2))
    assert run.leader.refused == {}
    stale = run.leader.outbox
    run.pass_on(first)
    with pytest.raises(LocalProtocolError, match="send the newest outbox"):
        dict(stale)
    for index in (2, 3, 4, 5):
        run.pass_on(run.leader.receive(index, run.report(index)))
    assert np.array_equal(run.finish()[0], run.sum_over(tuple(range(6))))


def test_what_opened_a_step_is_the_same_bytes_until_it_is_answered() -> None:
    run = uploads_of()
    asked = run.play_until("check")
    assert dict(run.leader.outbox) == asked
    assert run.leader.waiting_for == {6, 7}
    assert run.leader.awaits(6)
    assert not run.leader.awaits(0)
    run.pass_on(run.leader.outbox)
    assert dict(run.leader.end_step()) == dict(run.leader.outbox)


@pytest.mark.parametrize("step", ["report", "check", "reveal"])
def test_a_leader_resumes_at_every_step_and_keeps_its_panel(step: str) -> None:
    run = uploads_of()
    run.play_until(step)
    place = {"parameters": run.parameters, "roster": run.roster, "identity": run.members[0]}
    run.leader = Leader.resume(run.leader.export(KEY), KEY, **place)
    assert run.leader.panel == run.panel
    if step == "report":
        run.play_until("check")
    assert np.array_equal(run.finish()[0], run.sum_over(tuple(range(6))))
    with pytest.raises(LocalProtocolError, match="does not open"):
        Leader.resume(bytes(100), KEY, **place)


def test_a_leader_that_is_interrupted_in_the_middle_has_failed() -> None:
    run = uploads_of()
    with interrupted(inside(run.leader).book, "add"):
        run.leader.receive(0, run.report(0))
    assert run.leader.step == "failed"
    run = uploads_of()
    run.play_until("reveal")
    run.pass_on(run.leader.outbox)
    with interrupted(inside(run.leader).scheme, "uncover"):
        run.leader.end_step()
    assert run.leader.step == "failed"


def test_the_leaders_box_key_is_gone_after_the_last_part() -> None:
    run = uploads_of()
    run.play_until("check")
    assert any(inside(run.leader).state.private)
    run.pass_on(run.leader.outbox)
    run.leader.end_step()
    assert not any(inside(run.leader).state.private)


def test_a_client_repeats_its_report_and_forgets_what_it_made_it_of() -> None:
    run = uploads_of()
    client = run.clients[0]
    first = client.start()
    assert client.start() == first
    assert (client.step, client.answer, any(inside(client).state.root)) == ("done", first[0][1], False)
    resumed = Client.resume(
        client.export(KEY), KEY, parameters=run.parameters, index=0, identity=run.identities[0], roster=run.roster
    )
    assert resumed.start() == first
    assert resumed.upload == client.upload
    client.discard()
    assert (client.step, client.answer) == ("failed", b"")
    for call in (client.start, lambda: client.export(KEY)):
        with pytest.raises(LocalProtocolError, match="was discarded"):
            call()


def test_a_client_without_a_vector_sends_nothing() -> None:
    run = uploads_of()
    inside(run.clients[0]).vector = None
    with pytest.raises(LocalProtocolError, match="holds no vector"):
        run.clients[0].start()


def test_a_client_needs_the_rosters_digest_only() -> None:
    run = uploads_of()
    blind = run.client(0, roster=run.roster.digest)
    assert blind.start() != run.clients[0].start()  # boxes are sealed anew
    assert not run.leader.receive(0, blind.start()[0][1])
    with pytest.raises(LocalProtocolError, match="the 32 bytes of its digest"):
        run.client(0, roster=b"short")


def made(run, **other) -> Client:
    """A client of the run, with something else in the place of what fits."""
    place = {"index": 0, "identity": run.identities[0], "roster": run.roster, "panel": run.panel}
    return Client(run.parameters, **{"vector": run.parameters.ring.zeros(), **place, **other})


def test_what_does_not_fit_is_refused_when_a_machine_is_made() -> None:
    run, other = uploads_of(), uploads_of(helpers=3)
    common = {"roster": run.roster, "panel": run.panel}
    keys, nameless = run.key(0), Roster(run.roster.publics, server=run.roster.server)
    for make, told in (
        (lambda: made(run, vector=Ring(((2, 9),)).zeros()), "ring differs"),
        (lambda: made(run, index=6), "roster index, 0 to 5"),
        (lambda: made(run, index=1), "not the one at index 1"),
        (lambda: run.client(0, panel=other.panel), "name 2 helpers, the panel 3"),
        (lambda: run.helper(keys), "not a helper's of this panel"),
        (
            lambda: Leader(run.parameters, keys=HelperKeys(run.members[0], 0, run.parameters, run.roster), **common),
            "not the leader's of this panel",
        ),
        (lambda: Leader(run.parameters, keys=run.key(1), **common), "not the leader's on the panel"),
        (
            lambda: Leader(run.parameters, keys=keys, roster=run.roster.digest, panel=run.panel),
            "needs the complete roster",
        ),
        (lambda: HelperKeys(run.members[1], 3, run.parameters, run.roster), "places of the panel are 0 to 2"),
        (lambda: HelperKeys(run.members[1], 1, run.parameters, nameless), "named by 16 to 32 bytes"),
    ):
        with pytest.raises(LocalProtocolError, match=told):
            make()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_no_machine_and_no_key_is_copied(duplicate) -> None:
    run = uploads_of()
    for machine in (run.clients[0], run.leader, run.helpers[0], run.key(1)):
        with pytest.raises(LocalProtocolError, match="a copy of"):
            duplicate(machine)
    with pytest.raises(LocalProtocolError, match="a helper cannot be exported"):
        run.helpers[0].export(KEY)


def test_a_discarded_helper_is_gone() -> None:
    run = uploads_of()
    run.helpers[0].discard()
    assert run.helpers[0].step == "failed"
    with refused("session_over"):
        run.helpers[0].receive(b"anything")


# --- sizes ---

MESSAGES = (messages.Report, messages.Batch, messages.Checked, messages.Survivors, messages.Reveal, messages.Abandoned)


@pytest.mark.parametrize("helpers", [1, 2, 3, 5])
def test_size_limits_are_exact(helpers: int) -> None:
    """The longest message of each type is as long as its limit."""
    run = uploads_of(clients=6, helpers=helpers)
    limit = {kind: messages.size_limit(kind, run.parameters) for kind in MESSAGES}
    assert len(run.report(5)) == limit[messages.Report]
    asked = run.play_until("check")
    ((_, checked),) = run.helpers[0].receive(asked[6])
    assert (len(asked[6]), len(checked)) == (limit[messages.Batch], limit[messages.Checked])
    run.pass_on(run.leader.outbox)
    asked = dict(run.leader.end_step())
    ((_, reveal),) = run.helpers[0].receive(asked[6])
    assert (len(asked[6]), len(reveal)) == (limit[messages.Survivors], limit[messages.Reveal])
    ((_, told),) = uploads_of(helpers=helpers).helpers[0].abandon()
    assert len(told) == limit[messages.Abandoned]


SIZES = {(500, 1): 4_464, (500, 2): 5_632, (100_000, 1): 402_466}


@pytest.mark.parametrize(("entries", "helpers"), SIZES)
def test_a_report_has_the_size_of_the_table(entries: int, helpers: int) -> None:
    run = uploads_of(helpers=helpers, ring=Ring(((entries, 32),)))
    report = len(run.report(0)) + 2  # from place 256 on; here places are one byte
    assert report == SIZES[entries, helpers]


def test_a_gibibyte_is_refused_unread() -> None:
    run = uploads_of()
    huge = memoryview(np.zeros(1 << 30, np.uint8))  # of which no page is touched
    huge[:37] = run.report(0)[:37]
    with refused("too_large"):
        run.leader.receive(0, huge)
    asked = run.play_until("check")
    huge[:37] = asked[6][:37]
    with refused("too_large"):
        run.helpers[0].receive(huge)


@pytest.mark.parametrize("end", ["check", "done", "failed"])
def test_a_helper_hashes_no_message_larger_than_any_of_the_leaders(end: str, monkeypatch) -> None:
    run, hashed = uploads_of(), []
    real, helper = hashlib.sha256, run.helpers[0]
    if end == "done":
        run.play_until("check")
        run.finish()
    if end == "failed":
        helper.discard()
    monkeypatch.setattr("privstats.secagg.upload.helper.sha256", lambda data: hashed.append(len(data)) or real(data))
    with refused("too_large"):
        helper.receive(bytes(messages.largest_request(run.parameters) + 1))
    assert (helper.step, hashed) == (end, [])


def test_a_body_of_any_size_is_framed_as_msgpack_frames_it() -> None:
    for size in (0, 255, 256, 65_535, 65_536):
        report = messages.Report(bytes(32), 5, b"", memoryview(bytes(size)), bytes(64))
        assert messages.encode(report) == b"\x01" + msgspec.msgpack.encode(report)


# --- parameters ---


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"clients": 1}, "clients must be between 2"),
        ({"helpers": 0}, "helpers must be between 1 and 255"),
        ({"helpers": 256}, "helpers must be between 1 and 255"),
        ({"colluders": 3}, "must be at least 2, or one honest client is alone"),
        ({"colluders": -1}, "must be at least 2"),
        ({"min_survivors": 7}, "at most clients 6"),
        ({"plan_digest": b""}, "plan_digest must be 32 bytes"),
        ({"graph": "sparse"}, "leave graph at 'auto'"),
    ],
)
def test_parameters_that_contradict_each_other(change: dict, told: str) -> None:
    given = {"clients": 6, "min_survivors": 4, "colluders": 1, "helpers": 2, "plan_digest": bytes(32)}
    with pytest.raises(PlanError, match=told):
        UploadParameters.solve(**{**given, "ring": uploads_of().parameters.ring, **change})


def test_parameters_of_another_protocol_or_tolerance() -> None:
    ring = uploads_of().parameters.ring
    with pytest.raises(PlanError, match="is 'split', got 'committee'"):
        UploadParameters(6, 4, 1, 2, 1, "committee", ring, bytes(32))
    with pytest.raises(PlanError, match="all helpers but one, 1, got 0"):
        UploadParameters(6, 4, 1, 2, 0, "split", ring, bytes(32))
    with pytest.raises(PlanError, match="at most 2147483631 bytes"):
        UploadParameters(6, 4, 1, 1, 0, "split", type(ring)(((1 << 28, 64),)), bytes(32))


def test_every_number_and_the_plan_are_in_the_digest() -> None:
    """But for what follows from the rest: how many helpers are tolerated, and the one protocol there is. Claims: see
    ``test_proved``."""
    base = UploadParameters(6, 4, 1, 2, 1, "split", Ring(((3, 12),)), bytes(32))
    others = {
        "clients": replace(base, clients=7),
        "min_survivors": replace(base, min_survivors=5),
        "colluders": replace(base, colluders=2),
        "helpers": replace(base, helpers=3, tolerated=2),
        "ring": replace(base, ring=Ring(((3, 13),))),
        "plan_digest": replace(base, plan_digest=b"p" * 32),
        "noisy_helpers": replace(base, noisy_helpers=True),
    }
    assert {*others, "tolerated", "protocol", "claim"} == {each.name for each in fields(base)}
    assert len({base.digest, *(other.digest for other in others.values())}) == 1 + len(others)


def test_every_message_has_a_number_of_its_own() -> None:
    kinds = get_args(messages.Wire)
    assert len({kind.__struct_config__.tag for kind in kinds}) == len(kinds)


def test_a_refusal_names_a_helper_as_a_helper() -> None:
    run = uploads_of()
    run.play_until("check")
    with pytest.raises(RemoteProtocolError, match="helper 2 may have broken the protocol, which is unproven"):
        run.leader.receive(7, b"")


@pytest.mark.parametrize("made", [uploads_of, proved_of], ids=["plain", "proved"])
@pytest.mark.parametrize("helpers", [1, 3])
def test_a_plan_of_many_clients_says_what_their_reports_are_in_all(monkeypatch, made, helpers: int) -> None:
    run = made(helpers=helpers)
    assert not any("Gbit/s" in fact for fact in masking_facts(run.parameters))
    monkeypatch.setattr("privstats.secagg.masking_facts._MANY", 6)
    (fact,) = [fact for fact in masking_facts(run.parameters) if "Gbit/s" in fact]
    said = int(fact.split()[3].replace(",", ""))
    assert len(run.report(0)) <= said <= len(run.report(0)) + 16


def test_bytes_times_and_disks_of_a_million_are_in_plain_units() -> None:
    solved = parameters_of(clients=1_000, ring=Ring(((125_205, 35),)), min_survivors=500, helpers=1)
    (fact,) = [fact for fact in masking_facts(replace(solved, clients=1_000_000)) if "Gbit/s" in fact]
    for number in ("1,000,000 reports", "550,244 bytes", "550 GB", "73 minutes", "633 GB of its disk"):
        assert number in fact
