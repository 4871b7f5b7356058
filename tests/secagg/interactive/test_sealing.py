"""States as sealed bytes: both machines resume where they stood, only in their own place, and not after the end."""

import msgspec
import numpy as np
import pytest

from privstats.errors import LocalProtocolError
from privstats.secagg import Client, Parameters, Roster, Server
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.state import STEPS
from tests.secagg.interactive.cohorts import RING, Cohort, cohort_of, finish, lie, play_until, read, stream
from tests.secagg.interactive.inside import inside

KEY = b"k" * 32


def resume_client(cohort: Cohort, sealed: bytes, index: int = 0, key: bytes = KEY, threads: int = 1) -> Client:
    return Client.resume(sealed, key, **cohort.place(index), threads=threads)


def resume_server(cohort: Cohort, sealed: bytes, key: bytes = KEY, threads: int = 1) -> Server:
    return Server.resume(sealed, key, **cohort.place(), threads=threads)


@pytest.mark.parametrize("step", list(STEPS))
def test_everybody_may_be_replaced_by_its_resumed_self_at_any_step(step: str) -> None:
    cohort = cohort_of()
    outbox = play_until(cohort, step, {"mask": {5}})
    cohort.clients = [
        resume_client(cohort, client.export(KEY), index, threads=2) if client.step == step else client
        for index, client in enumerate(cohort.clients)
    ]
    cohort.server = resume_server(cohort, cohort.server.export(KEY), threads=2)
    total, survivors = finish(cohort, outbox)
    assert np.array_equal(total, cohort.sum_over(survivors))


@pytest.mark.parametrize("step", [step for step in STEPS if step not in ("advertise", "share")])
def test_a_resumed_client_repeats_itself_to_the_byte(cohort: Cohort, step: str) -> None:
    """No key ever meets two different messages, although nothing but the state is kept."""
    outbox = play_until(cohort, step)
    twin = resume_client(cohort, cohort.clients[0].export(KEY))
    assert twin.receive(outbox[0]) == cohort.clients[0].receive(outbox[0])


def test_a_client_that_is_resumed_before_it_advertises_has_the_same_keys_and_another_channel(cohort: Cohort) -> None:
    """What it encapsulates is random, so a state put back shares no key of the channel with the first answer."""
    outbox = play_until(cohort, "advertise")
    pair = (cohort.clients[0], resume_client(cohort, cohort.clients[0].export(KEY)))
    one, other = (read(cohort, 0, each.receive(outbox[0])[0][1], messages.Advertise) for each in pair)
    assert (one.box_key, one.kem_key) == (other.box_key, other.kem_key)
    assert one.ciphertext != other.ciphertext
    secrets = [inside(each).secrets().channel_secret(inside(each).state) for each in pair]
    assert secrets[0] != secrets[1]


def test_what_a_client_found_against_others_is_remembered(cohort: Cohort) -> None:
    outbox = play_until(cohort, "check")
    message = read(cohort, 0, outbox[0], messages.Deliver)
    spoilt = msgspec.structs.replace(message, boxes=b"!" * messages.BOX_BYTES + message.boxes[messages.BOX_BYTES :])
    cohort.clients[0].receive(lie(cohort, 0, spoilt))
    resumed = resume_client(cohort, cohort.clients[0].export(KEY))
    assert [(fault.peer, fault.step, fault.code) for fault in resumed.faults] == [(1, "share", "bad_box")]


def test_a_state_opens_only_under_its_key_in_its_place(cohort: Cohort) -> None:
    play_until(cohort, "mask")
    of_client, of_server = cohort.clients[0].export(KEY), cohort.server.export(KEY)
    for resume in (
        lambda: resume_client(cohort, of_client, key=b"x" * 32),
        lambda: resume_client(cohort, of_client, index=1),
        lambda: resume_client(cohort, of_server),
        lambda: resume_server(cohort, of_client),
        lambda: resume_server(cohort, of_server[:-1]),
        lambda: resume_server(cohort, b""),
    ):
        with pytest.raises(LocalProtocolError, match="does not open"):
            resume()
    for short in (lambda: cohort.server.export(b"short"), lambda: resume_server(cohort, of_server, key=b"short")):
        with pytest.raises(LocalProtocolError, match="32 bytes"):
            short()


def test_a_state_opens_only_under_its_plan_and_roster(cohort: Cohort) -> None:
    play_until(cohort, "mask")
    sealed = cohort.server.export(KEY)
    other = Parameters.solve(clients=6, min_survivors=4, colluders=1, ring=RING, plan_digest=b"q" * 32)
    turned = Roster(cohort.roster.publics[::-1], server=cohort.aggregator.public)
    for change in ({"parameters": other}, {"roster": turned}):
        with pytest.raises(LocalProtocolError, match="does not open"):
            Server.resume(sealed, KEY, **cohort.place() | change)


def test_two_exports_of_one_state_differ(cohort: Cohort) -> None:
    assert cohort.server.export(KEY) != cohort.server.export(KEY)
    entropy = [stream("nonce"), stream("nonce")]
    assert cohort.server.export(KEY, entropy=entropy[0]) == cohort.server.export(KEY, entropy=entropy[1])


def test_what_has_ended_cannot_be_exported(cohort: Cohort) -> None:
    outbox = play_until(cohort, "unmask")
    finish(cohort, outbox)
    with pytest.raises(LocalProtocolError, match="this client is done"):
        cohort.clients[0].export(KEY)
    with pytest.raises(LocalProtocolError, match="the session is done"):
        cohort.server.export(KEY)


def test_a_state_says_nothing_without_its_key(cohort: Cohort) -> None:
    play_until(cohort, "mask")
    client = cohort.clients[0]
    sealed = client.export(KEY)
    assert bytes(inside(client).state.root) not in sealed
    assert inside(client).state.session not in sealed
    assert inside(client).vector is not None
    assert inside(client).vector.pack() not in sealed


def test_a_state_that_lacks_what_its_step_needs_is_refused(cohort: Cohort) -> None:
    """Only a caller who holds the key could make such a state; it must still not turn into a wrong sum."""
    outbox = play_until(cohort, "mask")
    inside(cohort.clients[0]).vector = None
    with pytest.raises(LocalProtocolError, match="no vector to mask"):
        resume_client(cohort, cohort.clients[0].export(KEY)).receive(outbox[0])
    other = cohort_of()
    other.answer(play_until(other, "unmask"))
    inside(other.server).sum = None
    with pytest.raises(LocalProtocolError, match="no sum to unmask"):
        resume_server(other, other.server.export(KEY)).end_step()
