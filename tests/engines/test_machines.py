"""Journaled machines go wherever plain ones go, and a session's end reaches everybody that was left out of it."""

from pathlib import Path

import pytest

from privstats.engines import loopback
from privstats.engines.faults import Fault
from privstats.engines.journal import JournaledClient, JournaledServer
from privstats.errors import AggregationError, RemoteProtocolError, SessionEndedError
from privstats.secagg.interactive.state import STEPS
from privstats.secagg.machines import Aggregator, Peer
from tests.engines.test_journal import resumed
from tests.secagg.interactive.cohorts import Cohort, cohort_of

KEY = b"k" * 32
VICTIM = 3


def journaled(cohort: Cohort, path: Path) -> tuple[JournaledServer, list[JournaledClient]]:
    path.mkdir(exist_ok=True)
    clients = [JournaledClient.create(path / f"client {each.index}", KEY, each) for each in cohort.clients]
    return JournaledServer.create(path / "server", KEY, cohort.server), clients


def members(interface: type) -> list[str]:
    return sorted(name for name in vars(interface) if not name.startswith("_"))


def says_the_same(plain: object, kept: object, names: list[str]) -> None:
    for name in names:
        here, there = getattr(plain, name), getattr(kept, name)
        assert (callable(here) and callable(there)) or here == there, name


def test_journaled_machines_say_what_plain_ones_say(tmp_path: Path) -> None:
    cohort = cohort_of()
    server, (client, *_) = journaled(cohort, tmp_path)
    says_the_same(cohort.clients[0], client, members(Peer))
    held_back = {"outbox", "result"}  # one compares by identity, the other is there at the end alone
    says_the_same(cohort.server, server, [name for name in members(Aggregator) if name not in held_back])


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
            JournaledClient.resume(tmp_path / f"client {VICTIM}", KEY, **cohort.place(VICTIM))


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
