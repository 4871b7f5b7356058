"""The end of a session that failed: the server says so in its own name, and every client that hears it wipes itself."""

import msgspec
import numpy as np
import pytest

from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.messages import abort_statement
from privstats.secagg.interactive.state import STEPS
from tests.secagg.interactive.cohorts import Cohort, cohort_of, finish, play_until, read
from tests.secagg.interactive.inside import inside

VICTIM = 0
OPENED = list(STEPS)[1:]


def wiped(cohort: Cohort, client: int) -> bool:
    machine = cohort.clients[client]
    kept = inside(machine).vector, inside(machine).secrets_cache, inside(machine).channel_cache
    return machine.step == "failed" and inside(machine).state.root == bytearray() and kept == (None, None, None)


def forgery(cohort: Cohort, **changes) -> bytes:
    """The abort that a twin of the server would send, with some fields changed."""
    twin = cohort_of(label=cohort.label)
    genuine = read(cohort, VICTIM, dict(twin.server.abandon())[VICTIM], messages.Abort)
    return bytes(messages.encode(msgspec.structs.replace(genuine, **changes)))


@pytest.mark.parametrize(
    ("step", "code"),
    [
        *((step, "abandoned") for step in OPENED),
        *(("mask", code) for code in sorted(messages.ABORTS.keys() - {"abandoned"})),
    ],
)
def test_an_abandoned_session_ends_at_every_client(step: str, code: str) -> None:
    cohort = cohort_of()
    play_until(cohort, step)
    secret = inside(cohort.server).state.secret
    farewell = dict(cohort.server.abandon(code))
    assert cohort.server.step == "failed"
    assert secret == bytes(32)
    assert sorted(farewell) == [0, 1, 2, 3, 4, 5]
    for client, message in farewell.items():
        root = inside(cohort.clients[client]).state.root
        assert cohort.clients[client].receive(message) == []
        assert wiped(cohort, client)
        assert root == bytes(32)
        assert cohort.clients[client].ended == code
    with pytest.raises(LocalProtocolError, match="this client is failed"):
        cohort.clients[VICTIM].export(b"k" * 32)


def test_a_failed_session_says_why_to_those_who_wait(cohort: Cohort) -> None:
    outbox = play_until(cohort, "mask")
    cohort.answer(outbox, (0, 1, 2))
    with pytest.raises(AggregationError):
        cohort.server.end_step()
    for client, message in cohort.server.abandon():
        cohort.clients[client].receive(message)
        assert cohort.clients[client].ended == "too_few_clients"
        assert wiped(cohort, client)


def test_a_finished_session_lets_go_of_whoever_was_left_out(cohort: Cohort) -> None:
    """A client whose answer was lost would otherwise keep its secrets for ever; the result stays."""
    outbox = play_until(cohort, "unmask")
    del outbox[VICTIM]
    total, survivors = finish(cohort, outbox)
    cohort.clients[VICTIM].receive(dict(cohort.server.abandon("abandoned"))[VICTIM])
    assert cohort.clients[VICTIM].ended == "finished"
    assert wiped(cohort, VICTIM)
    assert cohort.server.step == "done"
    assert np.array_equal(cohort.server.result[0].lift(), total)
    assert cohort.server.result[1] == survivors


@pytest.mark.parametrize("step", OPENED)
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"session": b"!" * 32}, "wrong_session"),
        ({"code": 2}, "bad_signature"),
        ({"signature": bytes(64)}, "bad_signature"),
    ],
)
def test_a_forged_abort_does_nothing(step: str, changes: dict, code: str) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, step)
    does_nothing(cohort, forgery(cohort, **changes), code)
    goes_on(cohort, outbox)


def test_an_abort_signed_by_a_client_does_nothing(cohort: Cohort) -> None:
    outbox = play_until(cohort, "mask")
    signature = cohort.identities[1].sign(abort_statement(inside(cohort.server).context, 1))
    does_nothing(cohort, forgery(cohort, signature=signature), "bad_signature")
    goes_on(cohort, outbox)


def test_an_abort_of_an_earlier_session_does_nothing(cohort: Cohort) -> None:
    earlier = cohort_of(label="earlier")
    play_until(earlier, "mask")
    stale = dict(earlier.server.abandon())[VICTIM]
    outbox = play_until(cohort, "mask")
    does_nothing(cohort, stale, "wrong_session")
    goes_on(cohort, outbox)


def test_an_abort_before_the_opening_does_nothing(cohort: Cohort) -> None:
    """A client that has opened no session cannot be told that it is over: else an old abort would burn it."""
    outbox = dict(cohort.server.start())
    does_nothing(cohort, forgery(cohort), "wrong_session")
    goes_on(cohort, outbox)


@pytest.mark.parametrize("size", [-1, 1])
def test_an_abort_of_another_length_does_nothing(cohort: Cohort, size: int) -> None:
    outbox = play_until(cohort, "agree")
    data = forgery(cohort)
    does_nothing(cohort, data[:-1] if size < 0 else data + b"!", "malformed" if size < 0 else "too_large")
    goes_on(cohort, outbox)


def does_nothing(cohort: Cohort, data: bytes, code: str) -> None:
    client = cohort.clients[VICTIM]
    before = msgspec.msgpack.encode(inside(client).state)
    with pytest.raises(RemoteProtocolError) as refusal:
        client.receive(data)
    assert refusal.value.code == code
    assert msgspec.msgpack.encode(inside(client).state) == before
    assert client.ended == ""


def goes_on(cohort: Cohort, outbox: dict[int, bytes]) -> None:
    total, survivors = finish(cohort, outbox)
    assert survivors == (0, 1, 2, 3, 4, 5)
    assert np.array_equal(total, cohort.sum_over(survivors))


def test_a_client_keeps_the_number_of_a_reason_that_it_does_not_know(cohort: Cohort) -> None:
    play_until(cohort, "mask")
    signature = cohort.aggregator.sign(abort_statement(inside(cohort.server).context, 99))
    cohort.clients[VICTIM].receive(
        bytes(messages.encode(messages.Abort(inside(cohort.server).state.session, 99, signature)))
    )
    assert cohort.clients[VICTIM].ended == "99"
    assert wiped(cohort, VICTIM)


def test_a_session_is_abandoned_for_a_known_reason(cohort: Cohort) -> None:
    with pytest.raises(LocalProtocolError, match="abandoned with one of finished, abandoned.*got 'whim'"):
        cohort.server.abandon("whim")
    assert cohort.server.step == "advertise"


@pytest.mark.parametrize("step", list(STEPS))
def test_a_discarded_client_is_wiped(step: str) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, step)
    root = inside(cohort.clients[VICTIM]).state.root
    cohort.clients[VICTIM].discard()
    assert wiped(cohort, VICTIM)
    assert root == bytes(32)
    with pytest.raises(RemoteProtocolError, match="this client is failed"):
        cohort.clients[VICTIM].receive(outbox[VICTIM])
    assert cohort.clients[VICTIM].receive(dict(cohort.server.abandon())[VICTIM]) == []


def test_discarding_a_client_that_is_done_changes_nothing(cohort: Cohort) -> None:
    finish(cohort, play_until(cohort, "unmask"))
    cohort.clients[VICTIM].discard()
    assert cohort.clients[VICTIM].step == "done"
