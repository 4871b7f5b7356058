"""Journaled machines go wherever plain ones go, and a session's end reaches everybody that was left out of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from rich.pretty import pretty_repr

from privstats.engines import loopback
from privstats.engines.faults import Fault
from privstats.engines.journal import JournaledClient, JournaledServer
from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError, SessionEndedError
from privstats.secagg.interactive.state import STEPS
from privstats.secagg.machines import Aggregator, Peer
from tests.secagg.interactive.cohorts import Cohort, cohort_of

KEY = b"k" * 32
VICTIM = 3


def journaled(cohort: Cohort, path: Path) -> tuple[JournaledServer, list[JournaledClient]]:
    path.mkdir(exist_ok=True)
    clients = [JournaledClient.create(path / f"client {each.index}", KEY, each) for each in cohort.clients]
    return JournaledServer.create(path / "server", KEY, cohort.server), clients


def resumed(cohort: Cohort, path: Path) -> JournaledServer:
    return JournaledServer.resume(
        path, KEY, parameters=cohort.parameters, roster=cohort.roster, identity=cohort.aggregator
    )


def members(interface: type) -> list[str]:
    return sorted(name for name in vars(interface) if not name.startswith("_"))


@pytest.mark.parametrize("name", members(Peer))
def test_a_journaled_client_says_what_the_client_says(name: str, tmp_path: Path) -> None:
    cohort = cohort_of()
    _, (client, *_) = journaled(cohort, tmp_path)
    plain, kept = getattr(cohort.clients[0], name), getattr(client, name)
    assert (callable(plain) and callable(kept)) or plain == kept


@pytest.mark.parametrize("name", [name for name in members(Aggregator) if name not in ("outbox", "result")])
def test_a_journaled_server_says_what_the_server_says(name: str, tmp_path: Path) -> None:
    cohort = cohort_of()
    server, _ = journaled(cohort, tmp_path)
    plain, kept = getattr(cohort.server, name), getattr(server, name)
    assert (callable(plain) and callable(kept)) or plain == kept


def test_a_session_of_journaled_machines_is_exact(tmp_path: Path) -> None:
    cohort = cohort_of()
    server, clients = journaled(cohort, tmp_path)
    assert all(server.awaits(client) for client in range(6))
    outcome = loopback.run(server, clients, dropouts={"mask": {1}})
    assert outcome.survivors == (0, 2, 3, 4, 5)
    assert np.array_equal(outcome.total.lift(), cohort.sum_over(outcome.survivors))
    assert [client.upload != b"" for client in clients] == [True, False, True, True, True, True]


@pytest.mark.parametrize("how", ["plain", "journaled"])
def test_a_client_whose_vector_was_lost_hears_that_the_session_is_finished(how: str, tmp_path: Path) -> None:
    """Nobody asked it again, so it kept its secrets and waited for ever."""
    cohort = cohort_of()
    server, clients = journaled(cohort, tmp_path) if how == "journaled" else (cohort.server, cohort.clients)
    outcome = loopback.run(server, clients, faults=[Fault("mask", VICTIM, "up", "drop")])
    assert VICTIM not in outcome.survivors
    assert (clients[VICTIM].step, clients[VICTIM].ended) == ("failed", "finished")
    assert {client.step for client in clients} == {"done", "failed"}
    assert outcome.faults == ()
    if how == "journaled":
        clients[VICTIM].close()
        with pytest.raises(SessionEndedError, match="has ended"):
            JournaledClient.resume(
                tmp_path / f"client {VICTIM}",
                KEY,
                parameters=cohort.parameters,
                index=VICTIM,
                identity=cohort.identities[VICTIM],
                roster=cohort.roster,
            )


def test_an_aborted_session_tells_everybody_why() -> None:
    cohort = cohort_of()
    with pytest.raises(AggregationError, match="too_few_clients"):
        loopback.run(cohort.server, cohort.clients, dropouts={"mask": {0, 1, 2}})
    assert [client.ended for client in cohort.clients] == ["", "", ""] + 3 * ["too_few_clients"]


def test_a_client_that_never_heard_of_the_session_is_not_told_of_its_end() -> None:
    cohort = cohort_of()
    outcome = loopback.run(cohort.server, cohort.clients, faults=[Fault("advertise", VICTIM, "down", "drop")])
    assert outcome.faults == ()
    assert (cohort.clients[VICTIM].step, cohort.clients[VICTIM].ended) == ("advertise", "")


@pytest.mark.parametrize("step", list(STEPS)[1:])
def test_an_abandoned_session_stays_abandoned_after_a_crash(step: str, tmp_path: Path) -> None:
    cohort = cohort_of()
    server = journaled_until(cohort, tmp_path / "server", step)
    word = dict(server.abandon())
    assert server.step == "failed"
    server.close()
    with resumed(cohort, tmp_path / "server") as again:
        assert again.step == "failed"
        assert dict(again.abandon()) == word
        with pytest.raises(RemoteProtocolError, match="the session has ended"):
            again.receive(0, b"late" * 40)
    cohort.clients[0].receive(word[0])
    assert cohort.clients[0].ended == "abandoned"


def journaled_until(cohort: Cohort, path: Path, step: str) -> JournaledServer:
    """The cohort's server in a journal, played honestly up to ``step``."""
    server = JournaledServer.create(path, KEY, cohort.server)
    outbox = dict(server.outbox)
    for current in STEPS:
        if current == step:
            break
        for client, message in outbox.items():
            ((_, answer),) = cohort.clients[client].receive(message)
            server.receive(client, answer)
        outbox = dict(server.end_step())
    return server


def test_abandoning_a_session_that_has_ended_writes_nothing(tmp_path: Path) -> None:
    cohort = cohort_of()
    server, clients = journaled(cohort, tmp_path)
    loopback.run(server, clients)
    before = {path: path.read_bytes() for path in (tmp_path / "server").iterdir()}
    server.abandon()
    assert {path: path.read_bytes() for path in (tmp_path / "server").iterdir()} == before


def test_a_saved_snapshot_shows_nothing_to_any_printer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``rich`` printed its every field, the seed of the release's noise among them, whatever its repr said."""
    kept = []
    encode = msgspec.msgpack.encode
    monkeypatch.setattr("msgspec.msgpack.encode", lambda value, *more: kept.append(value) or encode(value, *more))
    journaled(cohort_of(), tmp_path)
    snapshots = [each for each in kept if type(each).__name__ == "Snapshot"]
    assert snapshots
    assert (repr(snapshots[0]), pretty_repr(snapshots[0])) == ("Snapshot(...)", "Snapshot()")


def test_a_running_server_exports_through_its_journal_and_a_closed_one_does_nothing(tmp_path: Path) -> None:
    cohort = cohort_of()
    server, _ = journaled(cohort, tmp_path)
    assert len(server.export(KEY)) > 100
    server.close()
    for act in (server.abandon, lambda: server.export(KEY)):
        with pytest.raises(LocalProtocolError, match="is closed"):
            act()
