"""What is of the wrong kind is refused by every machine, plain or journaled, and the session goes on to its sum."""

import numpy as np
import pytest

from privstats.engines import loopback
from privstats.engines.journal import JournaledClient, JournaledHelper, JournaledServer
from privstats.engines.journal.leader import JournaledLeader
from privstats.errors import LocalProtocolError
from tests.secagg.interactive.cohorts import cohort_of
from tests.secagg.upload.cohorts import uploads_of

KEY = bytes(32)


def interactive(place, journaled):
    cohort = cohort_of()
    if not journaled:
        return cohort.server, cohort.clients, cohort.sum_over
    clients = [JournaledClient.create(place / f"{i}", KEY, client) for i, client in enumerate(cohort.clients)]
    return JournaledServer.create(place / "server", KEY, cohort.server), clients, cohort.sum_over


def split(place, journaled):
    run = uploads_of(helpers=2)
    if not journaled:
        return run.leader, [*run.clients, *run.helpers], run.sum_over
    clients = [JournaledClient.create(place / f"{i}", KEY, client) for i, client in enumerate(run.clients)]
    return JournaledServer.create(place / "server", KEY, run.leader), [*clients, *run.helpers], run.sum_over


def refused(call):
    with pytest.raises(LocalProtocolError):
        call()


@pytest.mark.parametrize("journaled", [False, True], ids=["plain", "journaled"])
@pytest.mark.parametrize("protocol", [interactive, split])
def test_no_argument_of_the_wrong_kind_ends_a_session(tmp_path, protocol, journaled):
    server, peers, sum_over = protocol(tmp_path, journaled)

    def disturb():
        for sender in ("0", 0.0, None, True, np.int64(0), [0], b"0"):
            refused(lambda sender=sender: server.receive(sender, b"x" * 200))
        for data in ("x", None, 7, [b"x"], memoryview(b"xxxx")[::2]):
            refused(lambda data=data: server.receive(0, data))
            for peer in peers:
                refused(lambda data=data, peer=peer: peer.receive(data))
        for code in (5, None, ["abandoned"], b"abandoned"):
            refused(lambda code=code: server.abandon(code))

    disturb()
    closed = server.end_step

    def end_step():
        following = closed()
        if server.step not in ("done", "failed"):
            disturb()
        return following

    server.end_step = end_step
    loopback.run(server, peers)
    total, survivors = server.result
    assert survivors == tuple(range(6))
    assert np.array_equal(total.lift(), sum_over(survivors))


@pytest.mark.parametrize("panel", ["panel", None, 3, ()])
def test_a_panel_that_is_none_changes_nothing_at_a_leader_and_a_helper(tmp_path, panel):
    run = uploads_of(helpers=2)
    common = {"parameters": run.parameters, "roster": run.roster}
    helper = JournaledHelper.offer(tmp_path / "helper", KEY, identity=run.members[1], place=1, **common)
    leader = JournaledLeader.offer(tmp_path / "leader", KEY, identity=run.members[0], **common)
    refused(lambda: helper.bind(panel))
    refused(lambda: leader.lead(panel, lambda keys: None))
    refused(lambda: leader.lead(run.panel, "make"))
    assert (helper.state, leader.state) == ("offered", "offered")
    assert helper.offered == helper.offered
    assert leader.offered == leader.offered
    helper.close()
    leader.close()
