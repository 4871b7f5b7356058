"""Journals of earlier versions: those of today's protocol go on, those of X25519 alone are refused and stay.

``journals_of_before/x25519`` is as commit b4270147 left it, before segments. ``journals_of_before/hybrid`` is as commit
0adfd58d left it, by ``journals_of_before/write.py``.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privstats.engines.journal import JournaledServer
from privstats.errors import LocalProtocolError
from privstats.secagg import Client
from tests.engines.test_journal_uploads import KEY
from tests.secagg.interactive.cohorts import cohort_of
from tests.secagg.upload.cohorts import uploads_of

BEFORE = Path(__file__).with_name("journals_of_before")


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def contents(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


def arguments(name: str) -> dict[str, Any]:
    """What the journal is resumed with."""
    if name == "masks":
        cohort = cohort_of()
        return {"parameters": cohort.parameters, "roster": cohort.roster, "identity": cohort.aggregator}
    run = uploads_of()
    return {"parameters": run.parameters, "roster": run.roster, "identity": run.members[0]}


@pytest.mark.parametrize("name", names(BEFORE / "x25519"))
def test_a_session_of_x25519_alone_is_refused_in_one_sentence_and_stays_as_it_is(tmp_path: Path, name: str) -> None:
    """The version that began it can go on with it: nothing is removed, and no new session takes its place."""
    place, named = tmp_path / name, arguments(name)
    shutil.copytree(BEFORE / "x25519" / name, place)
    before = contents(place)
    sentence = "or by a version of privstats that agrees on keys otherwise; if so, end the session with that version$"
    for restored in (False, True):
        with pytest.raises(LocalProtocolError, match=sentence):
            JournaledServer.resume(place, KEY, restored=restored, **named)
        with pytest.raises(LocalProtocolError, match=sentence):
            JournaledServer.resume_or_create(place, KEY, lambda: pytest.fail("a new one"), restored=restored, **named)
    assert contents(place) == before


@pytest.mark.parametrize(("name", "step"), [("reports", "report"), ("checks", "check")])
def test_a_leader_of_before_goes_on(tmp_path: Path, name: str, step: str) -> None:
    """It waits for reports, or for the second helper's answer to its one part."""
    stored, place, run, named = BEFORE / "hybrid" / name, tmp_path / name, uploads_of(), arguments(name)
    reports = [(stored / f"report.{sender}").read_bytes() for sender in range(5)]
    shutil.copytree(stored / "server", place)
    JournaledServer.resume(place, KEY, restored=True, **named).close()
    with JournaledServer.resume(place, KEY, **named) as leader:
        assert leader.step == step
        if step == "report":
            assert leader.waiting_for == {4, 5}
            assert leader.receive_many(list(enumerate(reports))) == [None] * 5
            leader.end_step()
        else:
            assert leader.waiting_for == {7}
            ((_, answer),) = run.helpers[0].receive(leader._server._book.batch(0, 1))
            leader.receive(6, answer)  # a repeat, so that the helper knows the part
    with JournaledServer.resume(place, KEY, **named) as leader:
        while leader.step != "done":
            for peer, message in leader.outbox:
                ((_, answer),) = run.helpers[peer - 6].receive(message)
                leader.receive(peer, answer)
            leader.end_step()
        total, survivors = leader.result
    assert survivors == (0, 1, 2, 3, 4)
    assert np.array_equal(total.lift(), run.sum_over(survivors))


def test_a_server_of_before_goes_on_with_clients_of_before(tmp_path: Path) -> None:
    stored, place, cohort = BEFORE / "hybrid" / "masks", tmp_path / "masks", cohort_of(4, 3, 0)
    shutil.copytree(stored / "server", place)
    clients = [
        Client.resume((stored / f"client.{index}").read_bytes(), KEY, **cohort.place(index)) for index in range(4)
    ]
    assert [client.step for client in clients] == ["agree", "agree", "mask", "mask"]
    JournaledServer.resume(place, KEY, restored=True, **cohort.place()).close()
    with JournaledServer.resume(place, KEY, **cohort.place()) as server:
        assert (server.step, server.waiting_for) == ("mask", {2, 3})
        while server.step != "done":
            for client, message in list(server.outbox):
                if client in server.waiting_for:
                    server.receive(client, clients[client].receive(message)[0][1])
            server.end_step()
        total, survivors = server.result
    assert survivors == (0, 1, 2, 3)
    assert np.array_equal(total.lift(), cohort.sum_over(survivors))


def test_a_version_of_before_refuses_a_journal_in_segments_and_removes_nothing(tmp_path: Path) -> None:
    """It looks for the log of the snapshot's generation, and no segment has such a name."""
    run = uploads_of()
    with JournaledServer.create(tmp_path / "leader", KEY, run.leader) as leader:
        leader.receive(0, run.report(0))
    assert names(tmp_path / "leader") == ["mark", "seed", "segment.1", "snapshot"]
