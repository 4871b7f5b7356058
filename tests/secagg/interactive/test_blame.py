"""Who is said to have broken the protocol: nobody, for bytes that anybody on the way could have made."""

from collections.abc import Callable

import pytest

from privstats.errors import RemoteProtocolError
from privstats.secagg import Client, Server
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.state import STEPS
from tests.secagg.interactive.cohorts import Cohort, cohort_of, forge, lie, play_until
from tests.secagg.interactive.inside import inside

FORGERIES: dict[str, Callable[[bytes], bytes]] = {
    "garbage": lambda message: bytes(len(message)),
    "cut short": lambda message: message[:20],
    "a flipped bit": lambda message: message[:-1] + bytes([message[-1] ^ 1]),
    "another version": lambda message: b"\1" + message[1:],
    "another session": lambda message: message[:5] + bytes(32) + message[37:],
    "another type": lambda message: message[:2] + b"\x7f" + message[3:],
    "too long": lambda message: message + bytes(100_000),
}


def refused(receive: Callable[..., object], *arguments: object) -> RemoteProtocolError:
    with pytest.raises(RemoteProtocolError) as refusal:
        receive(*arguments)
    return refusal.value


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("step", STEPS)
def test_a_strangers_bytes_are_not_said_to_be_a_clients_or_the_servers_doing(step: str, forgery: str) -> None:
    cohort = cohort_of()
    message = play_until(cohort, step)[0]
    error = refused(cohort.clients[0].receive, FORGERIES[forgery](message))
    assert (error.peer, error.proven) == ("server", False)
    answer = cohort.clients[0].receive(message)[0][1]
    error = refused(cohort.server.receive, 0, FORGERIES[forgery](answer))
    assert (error.peer, error.proven) == (0, False)
    assert "unproven" in str(error)
    assert cohort.server.faults == ()
    cohort.server.receive(0, answer)


def test_a_late_answer_and_one_of_a_stranger_prove_nothing() -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, "unmask")
    answers = {client: cohort.clients[client].receive(message)[0][1] for client, message in outbox.items()}
    for client in range(5):
        cohort.server.receive(client, answers[client])
    assert not refused(cohort.server.receive, 17, answers[0]).proven
    cohort.server.end_step()
    assert not refused(cohort.server.receive, 5, answers[5]).proven
    assert cohort.server.faults == ()
    assert not refused(cohort.clients[0].receive, outbox[1]).proven


def test_what_a_client_sealed_or_signed_is_proved(cohort: Cohort) -> None:
    play_until(cohort, "mask")
    state: Server = cohort.server
    message = messages.Mask(inside(state).state.session, 0, inside(state).sent_to(0), memoryview(b"short"))
    assert refused(cohort.server.receive, 0, forge(cohort, 0, message)).proven


def test_what_the_server_sealed_or_signed_is_proved(cohort: Cohort) -> None:
    play_until(cohort, "agree")
    victim: Client = cohort.clients[0]
    assert refused(
        victim.receive, lie(cohort, 0, messages.Survivors(inside(cohort.server).state.session, b"\1"))
    ).proven
