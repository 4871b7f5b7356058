"""A client measures a message before it hashes it: the hash reads every byte, whoever sent them."""

import msgspec
import pytest

from privstats.errors import RemoteProtocolError
from privstats.secagg.interactive import client as client_machine
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.state import STEPS, answers_of
from tests.secagg.interactive.cohorts import Cohort, cohort_of, finish, play_until
from tests.secagg.interactive.inside import inside

CLIENT = 0


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all messages that a client has hashed."""
    sizes: list[int] = []
    real = client_machine.sha256
    monkeypatch.setattr(client_machine, "sha256", lambda data: sizes.append(len(data)) or real(data))
    return sizes


def too_large(cohort: Cohort, hashed: list[int]) -> None:
    """One byte more than the largest message of the server: refused by name, unhashed, and nothing changes."""
    client = cohort.clients[CLIENT]
    limit, before = messages.largest_request(cohort.parameters), msgspec.msgpack.encode(inside(client).state)
    with pytest.raises(RemoteProtocolError, match="too_large") as refusal:
        client.receive(bytes(limit + 1))
    assert (refusal.value.peer, refusal.value.proven, max(hashed, default=0) <= limit) == ("server", False, True)
    assert msgspec.msgpack.encode(inside(client).state) == before


@pytest.mark.parametrize("step", list(STEPS))
def test_a_message_larger_than_any_of_the_servers_is_refused_unhashed(step: str, hashed: list[int]) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, step)
    too_large(cohort, hashed)
    assert cohort.clients[CLIENT].receive(outbox[CLIENT]) != []


def test_a_client_that_has_ended_hashes_no_such_message_either(hashed: list[int]) -> None:
    cohort = cohort_of()
    finish(cohort, play_until(cohort, "unmask"))
    assert cohort.clients[CLIENT].step == "done"
    too_large(cohort, hashed)


@pytest.mark.parametrize("levels", [(), (2, 3)])
def test_the_largest_message_of_an_end_is_one_of_the_types_that_it_sends(levels: tuple[int, ...]) -> None:
    """Each of them has a limit: ``Codec.largest`` passes over a type without one."""
    parameters = cohort_of(3, 2 if levels else 3, 0, levels=levels).parameters
    requests = {messages.Abort, *(step.opens for step in STEPS.values())}
    answers = {answers_of(step, parameters) for step in STEPS}
    for kinds, largest in ((requests, messages.largest_request), (answers, messages.largest_answer)):
        assert largest(parameters) >= max(messages.size_limit(kind, parameters) for kind in kinds)
    assert messages.largest_request(parameters) in {messages.size_limit(kind, parameters) for kind in requests}
