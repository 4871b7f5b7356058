"""Journals that were written before segments, byte for byte as commit b4270147 left them, are read and go on."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from privstats.engines.journal import JournaledServer
from tests.engines.test_journal_uploads import KEY
from tests.secagg.interactive.cohorts import cohort_of
from tests.secagg.upload.cohorts import Uploads, uploads_of

BEFORE = Path(__file__).with_name("journals_of_before")


def resumed(place: Path, run: Uploads, *, restored: bool = False) -> JournaledServer:
    named = {"parameters": run.parameters, "roster": run.roster, "identity": run.members[0]}
    return JournaledServer.resume(place, KEY, restored=restored, **named)


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


@pytest.mark.parametrize(("name", "step"), [("reports", "report"), ("checks", "check")])
def test_a_leader_of_before_goes_on_with_the_bodies_in_its_snapshot(tmp_path: Path, name: str, step: str) -> None:
    """It waits for reports, or for the second helper's answer to its one part."""
    place, run = tmp_path / name, uploads_of()
    shutil.copytree(BEFORE / name, place)
    assert any(each.startswith("log.") for each in names(place))
    resumed(place, run, restored=True).close()
    assert names(place) == ["mark", "seed", names(place)[2], "snapshot"]
    assert names(place)[2].startswith("segment.")
    with resumed(place, run) as leader:
        assert leader.step == step
        if step == "report":
            assert leader.waiting_for == {4, 5}
            assert leader.receive_many([(sender, run.report(sender)) for sender in range(5)]) == [None] * 5
            leader.end_step()
        else:
            ((_, answer),) = run.helpers[0].receive(leader._server._book.batch(0, 1))
            leader.receive(6, answer)  # a repeat, so that the helper knows the part
    with resumed(place, run) as leader:
        while leader.step != "done":
            for peer, message in leader.outbox:
                ((_, answer),) = run.helpers[peer - 6].receive(message)
                leader.receive(peer, answer)
            leader.end_step()
        total, survivors = leader.result
    assert survivors == (0, 1, 2, 3, 4)
    assert np.array_equal(total.lift(), run.sum_over(survivors))


def test_a_server_of_before_goes_on(tmp_path: Path) -> None:
    place, cohort = tmp_path / "masks", cohort_of()
    shutil.copytree(BEFORE / "masks", place)
    cohort.server.start()
    while cohort.server.step != "mask":  # so that the clients are where they were
        for client, message in cohort.server.outbox:
            cohort.server.receive(client, cohort.clients[client].receive(message)[0][1])
        cohort.server.end_step()
    named = {"parameters": cohort.parameters, "roster": cohort.roster, "identity": cohort.aggregator}
    JournaledServer.resume(place, KEY, restored=True, **named).close()
    assert not list(place.glob("log.*"))
    with JournaledServer.resume(place, KEY, **named) as server:
        assert (server.step, server.waiting_for) == ("mask", {3, 4, 5})
        while server.step != "done":
            for client, message in list(server.outbox):
                server.receive(client, cohort.clients[client].receive(message)[0][1])
            server.end_step()
        total, survivors = server.result
    assert survivors == tuple(range(6))
    assert np.array_equal(total.lift(), cohort.sum_over(survivors))


def test_a_version_of_before_refuses_a_journal_in_segments_and_removes_nothing(tmp_path: Path) -> None:
    """It looks for the log of the snapshot's generation, and no segment has such a name."""
    run = uploads_of()
    with JournaledServer.create(tmp_path / "leader", KEY, run.leader) as leader:
        leader.receive(0, run.report(0))
    assert names(tmp_path / "leader") == ["mark", "seed", "segment.1", "snapshot"]
    assert not list((tmp_path / "leader").glob("log.*"))
