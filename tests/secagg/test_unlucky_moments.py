"""A signal or another thread at the worst moment: between what a call has done and its note that it has done it."""

from __future__ import annotations

import sys

import pytest

from privstats.errors import LocalProtocolError
from privstats.secagg import messages as wire
from tests.secagg.cohorts import Cohort, cohort_of, play_until


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
    state = cohort.server._state
    noted, state.heard = state.heard, InterruptedSet(state.heard)
    with pytest.raises(KeyboardInterrupt):
        cohort.server.receive(0, upload)
    state.heard = noted
    assert cohort.server.step == "failed"


def test_a_signal_after_the_unmasking_and_before_its_note_lets_no_mask_out_twice() -> None:
    """Closing again took every mask out of the finished sum a second time."""
    cohort = cohort_of()
    outbox = play_until(cohort, "unmask")
    for client, message in outbox.items():
        cohort.server.receive(client, cohort.clients[client].receive(message)[0][1])
    forget, interrupted = cohort.server._forget, []

    def interrupt_once() -> None:
        if not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        forget()

    cohort.server._forget = interrupt_once
    with pytest.raises(KeyboardInterrupt):
        cohort.server.end_step()
    assert cohort.server.step == "failed"
    with pytest.raises(LocalProtocolError, match="no result"):
        _ = cohort.server.result


def test_a_signal_after_the_signature_and_before_its_note_ends_the_client(cohort: Cohort) -> None:
    """It would have signed another list."""
    client = cohort.clients[0]
    opening = play_until(cohort, "agree")[0]
    client._state.answered = InterruptedList(client._state.answered)
    with pytest.raises(KeyboardInterrupt):
        client.receive(opening)
    assert client.step == "failed"


def test_an_upload_cannot_be_seen_before_it_may_leave(cohort: Cohort, monkeypatch) -> None:
    """Another thread that repeats ``answer`` would send the masked vector before the ledger has heard of it."""
    client, seen = cohort.clients[0], []
    opening = play_until(cohort, "mask")[0]
    module = sys.modules[type(client).__module__]
    original = module.sha256

    def looked_at(data):
        seen.append(client.answer)
        return original(data)

    monkeypatch.setattr(module, "sha256", looked_at)
    monkeypatch.setattr(client, "_leaving", lambda _: seen.append(client.answer))
    ((_, upload),) = client.receive(opening)
    assert len(seen) >= 3
    assert upload[2] == wire.Mask.__struct_config__.tag
    assert upload not in seen
    assert client.answer == upload
