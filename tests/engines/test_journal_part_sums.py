"""Sums of settled parts that others make: the same integers as the leader's own, whoever dies, in any order."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.engines import loopback
from privstats.engines.journal import JournaledServer
from privstats.errors import LocalProtocolError
from privstats.secagg.upload import checks
from privstats.secagg.upload.deferred import SealedBody, sum_of
from privstats.secagg.upload.leader import Leader
from tests.contrib.proofs.proved import proved_of
from tests.engines.test_journal_segments import comes_through, polled
from tests.engines.test_journal_uploads import KEY, Journals
from tests.secagg.upload.test_lying_client import parts, signed

pytestmark = pytest.mark.usefixtures("small_parts")


def settled(journals: Journals, leader: JournaledServer) -> None:
    """All reports in, and every part answered by both helpers."""
    if leader.step == "report":
        leader.receive_many([(sender, journals.run.report(sender)) for sender in range(6)])
    while polled(leader, journals, 1) or polled(leader, journals, 2):
        pass


@contextmanager
def waiting(journals: Journals) -> Iterator[JournaledServer]:
    """A leader whose parts are all answered, and wait for somebody to sum them."""
    with journals.leader() as leader:
        leader.defer(True)
        settled(journals, leader)
        yield leader


def part_sum(leader: JournaledServer, number: int) -> bytes:
    return sum_of(leader.parameters.ring, leader.sealed(number, leader.unsummed[number]))


def ended(journals: Journals, leader: JournaledServer) -> tuple[int, ...]:
    while leader.step != "done":
        while leader.step != "report" and (polled(leader, journals, 1) or polled(leader, journals, 2)):
            pass
        leader.end_step()
    total, survivors = leader.result
    assert np.array_equal(total.lift(), journals.run.sum_over(survivors))
    return survivors


def test_a_second_sum_of_a_part_changes_nothing(tmp_path: Path) -> None:
    with waiting(journals := Journals(tmp_path)) as leader:
        summed = part_sum(leader, 0)
        assert [leader.add_part_sum(0, summed) for _ in range(3)] == [True, False, False]
        assert leader.add_part_sum(7, summed) is False
        assert ended(journals, leader) == (0, 1, 2, 3, 4, 5)


def test_what_nobody_summed_the_leader_sums_at_the_close_of_the_step(tmp_path: Path) -> None:
    with waiting(journals := Journals(tmp_path)) as leader:
        leader.add_part_sum(1, part_sum(leader, 1))
        leader.sum_part(2)
        assert set(leader.unsummed) == {0}
        assert ended(journals, leader) == (0, 1, 2, 3, 4, 5)


def test_a_report_that_a_helper_rejects_is_in_no_parts_sum(tmp_path: Path) -> None:
    journals = Journals(tmp_path)
    run = journals.run
    boxes, body = parts(run, 0)
    boxes[-1] = parts(run, 3)[0][-1]  # another sender's, which does not open under this name
    with journals.leader() as leader:
        leader.defer(True)
        leader.receive_many(
            [(0, signed(run, 0, boxes, body)), *((sender, run.report(sender)) for sender in range(1, 6))]
        )
        while polled(leader, journals, 1) or polled(leader, journals, 2):
            pass
        assert leader.unsummed == {0: (1,), 1: (2, 3), 2: (4, 5)}
        for number in range(3):
            leader.add_part_sum(number, part_sum(leader, number))
        assert ended(journals, leader) == (1, 2, 3, 4, 5)


def test_the_sum_of_wrong_length_or_of_a_part_that_nobody_awaits_is_refused(tmp_path: Path) -> None:
    with waiting(journals := Journals(tmp_path)) as leader:
        with pytest.raises(LocalProtocolError, match="the sum of part 0 has 3 bytes, and a vector"):
            leader.add_part_sum(0, b"abc")
        for act in (leader.sum_part, lambda number: leader.sealed(number, (0,))):
            with pytest.raises(LocalProtocolError, match="no sum of part 9 is awaited"):
                act(9)
        assert ended(journals, leader) == (0, 1, 2, 3, 4, 5)


def test_keys_open_one_body_each_and_another_body_is_refused(tmp_path: Path) -> None:
    with waiting(Journals(tmp_path)) as leader:
        first, second = leader.sealed(0, (0, 1))
        assert (len(first.key), len(first.nonce)) == (32, 12)
        assert first.key.hex() not in repr(first)
        ring = leader.parameters.ring
        for key, nonce, content in (
            (first.key, first.nonce, second.content),
            (first.key, first.nonce, first.content[:-1]),
            (first.key, first.nonce, bytes(len(first.content))),
        ):
            with pytest.raises(LocalProtocolError, match="does not open"):
                sum_of(ring, [SealedBody(key, nonce, content)])


def test_a_machine_without_a_journal_adds_at_once(tmp_path: Path) -> None:
    """Places are the journal's: without them a part that waits would wait in memory."""
    journals = Journals(tmp_path)
    leader = journals.fresh_leader()
    leader.defers = True
    helpers = [journals.helper(number) for number in (1, 2)]
    outcome = loopback.run(leader, journals.run.clients, helpers=helpers)
    assert np.array_equal(outcome.total.lift(), journals.run.sum_over(outcome.survivors))


def test_an_exported_state_has_the_bodies_of_parts_that_wait(tmp_path: Path) -> None:
    with waiting(journals := Journals(tmp_path)) as leader:
        sealed = leader.export(KEY)
        run = journals.run
        copy = Leader.resume(sealed, KEY, parameters=run.parameters, roster=run.roster, identity=run.members[0])
        assert set(copy.unsummed) == {0, 1, 2}
        for number in (0, 1, 2):
            copy.sum_part(number)
        for number in (0, 1, 2):
            leader.add_part_sum(number, part_sum(leader, number))
        assert copy._sum.pack() == leader._server._sum.pack()


def test_reports_with_proofs_are_added_by_the_leader_whatever_is_asked(tmp_path: Path) -> None:
    with waiting(Journals(tmp_path, make=proved_of)) as leader:
        assert leader.unsummed == {}


def test_a_resumed_leader_goes_on_with_or_without_others(tmp_path: Path) -> None:
    with waiting(journals := Journals(tmp_path)) as leader:
        leader.add_part_sum(0, part_sum(leader, 0))
    with journals.leader() as leader:
        assert 1 in leader.unsummed
        leader.defer(False)
        leader.add_part_sum(1, part_sum(leader, 1))
    with journals.leader() as leader:
        assert ended(journals, leader) == (0, 1, 2, 3, 4, 5)


def test_a_body_that_the_disk_lost_ends_no_run_and_gives_no_sum(tmp_path: Path) -> None:
    with waiting(journals := Journals(tmp_path)) as leader:
        kept = {path: path.read_bytes() for path in (tmp_path / "leader").glob("segment.*")}
        for path, data in kept.items():
            path.write_bytes(bytes(len(data)))
        with pytest.raises(LocalProtocolError):
            leader.sum_part(0)
        with pytest.raises(LocalProtocolError, match="has lost a message"):
            leader.end_step()
        for path, data in kept.items():
            path.write_bytes(data)
    with journals.leader() as leader:
        assert ended(journals, leader) == (0, 1, 2, 3, 4, 5)


def played(journals: Journals, rng: random.Random) -> tuple[int, ...]:
    """From where it stands to the end, with sums in an order by chance, some of them twice, some by the leader."""
    run = journals.run
    with journals.leader() as leader:
        leader.defer(True)
        for group in ((0, 1), (2, 0, 3), (4,), (5, 3)):
            if leader.step == "report":
                assert leader.receive_many([(sender, run.report(sender)) for sender in group]) == [None] * len(group)
                polled(leader, journals, 1)
                polled(leader, journals, 2)
            some_sums(leader, rng)
        return ended(journals, leader)


FURTHER = [pytest.param(each, marks=pytest.mark.nightly if each % 4 else pytest.mark.ci) for each in range(1, 12)]
"""The first write of twelve at which somebody is killed: every fourth by day, all of them in the night."""


def some_sums(leader: JournaledServer, rng: random.Random) -> None:
    for number in rng.sample(sorted(leader.unsummed), len(leader.unsummed)):
        summed = part_sum(leader, number)
        for _ in range(rng.choice((0, 1, 2))):
            leader.add_part_sum(number, summed)
        if number in leader.unsummed and rng.random() < 0.3:
            leader.sum_part(number)


@pytest.mark.ci
@pytest.mark.parametrize("first", [0, *FURTHER])
def test_a_leader_killed_at_any_write_between_settled_parts_and_its_result_gives_the_exact_sum(
    tmp_path: Path, monkeypatch, first: int
) -> None:
    comes_through(tmp_path, monkeypatch, first, lambda journals, at: partial(played, journals, random.Random(at)))


def test_the_key_of_a_body_is_what_opens_the_report(tmp_path: Path) -> None:
    """Two ways to one key: the box that is opened at once, and the key that others get."""
    with waiting(Journals(tmp_path)) as leader:
        machine = leader._server
        message = machine._read_back(machine._state.settled[0], 0)
        key, body = checks.sealed_body(message, 0, machine._private)
        (sealed,) = leader.sealed(0, (0,))
        assert (sealed.key, sealed.content) == (key, body)
        with pytest.raises(LocalProtocolError, match="the journal has another report of client 1"):
            checks.sealed_body(message, 1, machine._private)


def test_a_server_without_parts_leaves_no_sums_to_others(tmp_path: Path) -> None:
    plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
    parties = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.1, 0.2]], [0])] * 2)
    with JournaledServer.create(tmp_path / "session", KEY, parties.server) as server:
        assert server.unsummed == {}
        with pytest.raises(LocalProtocolError, match="only a leader's parts can wait"):
            server.defer(True)
