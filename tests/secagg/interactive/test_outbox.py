"""Messages are made when they are taken, repeats change nothing, and a step is closed by its own call."""

import tracemalloc

import msgspec
import pytest

from privstats.encoding import Ring
from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.secagg import Server
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.state import STEPS
from privstats.secagg.machines import Outbox
from tests.secagg.interactive.cohorts import Cohort, cohort_of, finish, forge, play_until, read

KEY = b"k" * 32


def test_an_outbox_is_sized_false_when_empty_and_iterable_twice(cohort: Cohort) -> None:
    outbox = cohort.server.start()
    assert (len(outbox), bool(outbox), outbox.clients) == (6, True, (0, 1, 2, 3, 4, 5))
    assert list(outbox) == list(outbox) == [outbox[place] for place in range(6)]
    assert dict(outbox)[3] == outbox.to(3)
    assert repr(outbox) == "Outbox(6 messages)"
    assert not Outbox()
    assert not cohort.server.receive(0, cohort.clients[0].receive(outbox.to(0))[0][1])


@pytest.mark.parametrize("step", list(STEPS))
def test_a_message_is_the_same_bytes_whenever_it_is_made(step: str) -> None:
    """Also by a resumed server and after answers: under one key and nonce there is one message."""
    cohort = cohort_of()
    made = play_until(cohort, step)
    for client in (0, 1):
        cohort.server.receive(client, cohort.clients[client].receive(made[client])[0][1])
    assert dict(cohort.server.outbox) == made
    sealed = cohort.server.export(KEY)
    resumed = Server.resume(sealed, KEY, **cohort.place())
    assert dict(resumed.outbox) == made
    assert resumed.waiting_for == frozenset({2, 3, 4, 5})


@pytest.mark.parametrize("step", list(STEPS)[1:])
def test_a_resumed_server_accepts_answers_to_what_it_has_not_made_again(step: str) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, step)
    cohort.server = Server.resume(cohort.server.export(KEY), KEY, **cohort.place())
    finish(cohort, outbox)


def test_messages_of_a_step_that_has_ended_are_not_made(cohort: Cohort) -> None:
    outbox = cohort.server.start()
    cohort.answer(outbox)
    cohort.server.end_step()
    with pytest.raises(LocalProtocolError, match="opened step 'advertise', which has ended"):
        list(outbox)


def test_nothing_is_closed_before_the_start(cohort: Cohort) -> None:
    for call in (cohort.server.end_step, cohort.server.step_status):
        with pytest.raises(LocalProtocolError, match="has not started"):
            call()
    assert not cohort.server.outbox


@pytest.mark.parametrize("step", list(STEPS))
def test_the_outlook_says_who_answered_and_that_closing_now_would_end_the_session(step: str) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, step)
    cohort.answer(outbox, (4, 1))
    early = cohort.server.step_status()
    assert (early.step, early.answered, early.waiting_for) == (step, (1, 4), (0, 2, 3, 5))
    assert early.abort.step == step
    assert cohort.server.step == step
    cohort.answer(outbox, (0, 2, 3, 5))
    assert cohort.server.step_status().abort is None
    finish(cohort, dict(cohort.server.end_step()))


@pytest.mark.parametrize("step", list(STEPS))
def test_an_honest_repeat_is_no_fault_at_any_later_time(step: str) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, step)
    answers = {client: cohort.clients[client].receive(message)[0][1] for client, message in outbox.items()}
    for client, answer in answers.items():
        assert not cohort.server.receive(client, answer)
        assert not cohort.server.receive(client, answer)
        assert cohort.clients[client].receive(outbox[client]) == [("server", answer)]
    following = dict(cohort.server.end_step())
    for client, answer in answers.items():
        assert not cohort.server.receive(client, answer)
    if following:
        cohort.clients[0].receive(following[0])
        assert cohort.clients[0].receive(outbox[0]) == []
    assert cohort.server.faults == ()
    assert cohort.server.step == (STEPS[step].then)


def test_what_a_client_itself_made_wrong_is_recorded_once(cohort: Cohort) -> None:
    outbox = play_until(cohort, "mask")
    honest = read(cohort, 1, cohort.clients[1].receive(outbox[1])[0][1], messages.Mask)
    short = forge(cohort, 1, msgspec.structs.replace(honest, vector=memoryview(b"short")))
    for _ in range(2):
        with pytest.raises(RemoteProtocolError, match="wrong_length"):
            cohort.server.receive(1, short)
    assert [(fault.peer, fault.step, fault.code) for fault in cohort.server.faults] == [(1, "mask", "wrong_length")]


def test_closing_a_step_makes_no_messages() -> None:
    """They were the largest thing in the server's memory: at 1,000 clients tens of megabytes, all held at once."""
    cohort = cohort_of(120, 100, 5, ring=Ring(((1, 32),)))
    outbox = play_until(cohort, "advertise")
    cohort.answer(outbox)
    tracemalloc.start()
    following = cohort.server.end_step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(len(message) for _, message in following) > 10 * peak
