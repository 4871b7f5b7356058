"""A signal or another thread at the worst moment: between what a call has done and its note that it has done it."""

from functools import partial

import numpy as np
import pytest

from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.secagg.interactive import client as client_machine
from privstats.secagg.interactive import messages
from tests.secagg.interactive.cohorts import Cohort, cohort_of, play_until
from tests.secagg.interactive.inside import inside


class InterruptedSet(set):
    def add(self, _: object) -> None:
        raise KeyboardInterrupt


class InterruptedList(list):
    def append(self, _: object) -> None:
        raise KeyboardInterrupt


def test_a_signal_after_the_addition_and_before_its_note_lets_no_upload_in_twice() -> None:
    """The retry was no repeat, because nothing had been noted: the sum was wrong and nobody was told."""
    cohort = cohort_of()
    outbox = play_until(cohort, "mask")
    upload = cohort.clients[0].receive(outbox[0])[0][1]
    state = inside(cohort.server).state
    noted, state.heard = state.heard, InterruptedSet(state.heard)
    with pytest.raises(KeyboardInterrupt):
        cohort.server.receive(0, upload)
    state.heard = noted
    assert cohort.server.step == "failed"


def test_a_signal_after_the_unmasking_and_before_its_note_lets_no_mask_out_twice() -> None:
    """Closing again took every mask out of the finished sum a second time."""
    cohort = cohort_of()
    outbox = play_until(cohort, "unmask")
    cohort.answer(outbox)
    forget, interrupted = inside(cohort.server).forget, []

    def interrupt_once() -> None:
        if not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        forget()

    inside(cohort.server).forget = interrupt_once
    with pytest.raises(KeyboardInterrupt):
        cohort.server.end_step()
    assert cohort.server.step == "failed"
    with pytest.raises(LocalProtocolError, match="no result"):
        _ = cohort.server.result


def test_a_signal_after_the_signature_and_before_its_note_ends_the_client(cohort: Cohort) -> None:
    """It would have signed another list."""
    client = cohort.clients[0]
    opening = play_until(cohort, "agree")[0]
    inside(client).state.answered = InterruptedList(inside(client).state.answered)
    with pytest.raises(KeyboardInterrupt):
        client.receive(opening)
    assert client.step == "failed"


def test_an_upload_cannot_be_seen_before_it_may_leave(cohort: Cohort, monkeypatch) -> None:
    """Another thread that repeats ``answer`` would send the masked vector before the ledger has heard of it."""
    client, seen = cohort.clients[0], []
    opening = play_until(cohort, "mask")[0]
    module = client_machine
    original = module.sha256

    def looked_at(data):
        seen.append(client.answer)
        return original(data)

    monkeypatch.setattr(module, "sha256", looked_at)
    monkeypatch.setattr(client, "_leaving", lambda _: seen.append(client.answer))
    ((_, upload),) = client.receive(opening)
    assert len(seen) >= 3
    assert upload[2] == messages.Mask.__struct_config__.tag
    assert upload not in seen
    assert client.answer == upload


@pytest.mark.parametrize("machine", ["client", "server"])
def test_a_view_that_is_no_row_of_bytes_is_refused_or_read_as_its_bytes(cohort: Cohort, machine: str) -> None:
    opening = cohort.server.start().to(0)
    answer = cohort.client(0).receive(opening)[0][1]
    data, receive = opening, cohort.clients[0].receive
    if machine == "server":
        data, receive = answer, partial(cohort.server.receive, 0)
    with pytest.raises(LocalProtocolError, match="one piece"):
        receive(memoryview(data)[::2])
    padded = data + bytes(-len(data) % 4)
    with pytest.raises(RemoteProtocolError, match="too_large"):
        receive(memoryview(padded + bytes(4)).cast("I"))
    receive(memoryview(data))


@pytest.mark.parametrize("sender", [np.int64(0), 0.0, False, "0", None, [0]])
def test_a_sender_that_is_no_int_is_refused_before_it_is_remembered(cohort: Cohort, sender) -> None:
    """A numpy integer went into the server's state, which could then no longer be saved."""
    answer = cohort.clients[0].receive(cohort.server.start().to(0))[0][1]
    with pytest.raises(LocalProtocolError, match="a peer's index, an int"):
        cohort.server.receive(sender, answer)
    cohort.server.receive(0, answer)
    cohort.server.export(bytes(32))
