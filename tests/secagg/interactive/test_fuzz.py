"""Garbage, truncation, flipped bits and well-sealed nonsense: only RemoteProtocolError, quickly, in little memory."""

import os
import subprocess
import sys
import tracemalloc
from functools import cache
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from privstats.encoding import Ring
from privstats.errors import RemoteProtocolError
from privstats.secagg import Parameters, kem, wire
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.state import STEPS
from tests.secagg.interactive.cohorts import UNSEALED, Cohort, cohort_of, play_until
from tests.secagg.interactive.inside import inside

steps = st.sampled_from(list(STEPS))


_INPUTS = int(os.environ.get("PRIVSTATS_INPUTS", "2000000"))


@cache
def at(step: str) -> tuple[Cohort, bytes, bytes]:
    """A session at ``step``, with a good opening for client 0 and the good answer of client 1.

    Refused messages change nothing, so all examples of a test share it.
    """
    cohort = cohort_of()
    outbox = play_until(cohort, step)
    answer = cohort.clients[1].receive(outbox[1])[0][1]
    return cohort, outbox[0], answer


def refused(cohort: Cohort, step: str, *, down: bytes | None = None, up: bytes | None = None) -> None:
    """Both machines refuse, name the peer and the step, and stay where they were."""
    if down is not None:
        with pytest.raises(RemoteProtocolError) as refusal:
            cohort.clients[0].receive(down)
        assert (refusal.value.peer, refusal.value.step, cohort.clients[0].step) == ("server", step, step)
    if up is not None:
        with pytest.raises(RemoteProtocolError) as refusal:
            cohort.server.receive(1, up)
        assert (refusal.value.peer, refusal.value.step, cohort.server.step) == (1, step, step)


@given(steps, st.binary(max_size=300), st.booleans())
def test_garbage(step: str, data: bytes, headed: bool) -> None:
    cohort, good_down, good_up = at(step)
    heads = (good_down[: wire.HEADER_BYTES], good_up[: wire.HEADER_BYTES]) if headed else (b"", b"")
    refused(cohort, step, down=heads[0] + data, up=heads[1] + data)


@given(steps, st.data())
def test_truncation(step: str, data) -> None:
    cohort, good_down, good_up = at(step)
    down = data.draw(st.integers(0, len(good_down) - 1))
    up = data.draw(st.integers(0, len(good_up) - 1))
    refused(cohort, step, down=good_down[:down], up=good_up[:up])


@given(steps, st.data())
def test_a_flipped_bit(step: str, data) -> None:
    cohort, good_down, good_up = at(step)
    up = data.draw(st.integers(0, 8 * len(good_up) - 1))
    down = data.draw(st.integers(0, 8 * len(good_down) - 1))
    refused(cohort, step, down=flipped(good_down, down), up=flipped(good_up, up))


def flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


nonsense = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.binary(max_size=70) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def lists_clients(fields: list) -> bool:
    """Whether it could be an honest answer in ``check``: a list of clients, which may be empty, and links."""
    if len(fields) != 2 or not isinstance(fields[0], list) or not isinstance(fields[1], bytes):
        return False
    return all(isinstance(each, int) for each in fields[0])


@given(st.sampled_from(list(STEPS)[1:]), st.lists(nonsense, max_size=5), st.booleans())
def test_nonsense_under_a_valid_tag(step: str, fields: list, with_names: bool) -> None:
    """The other end itself sends well-formed msgpack of the right type and session that means nothing."""
    assume(not (step == "check" and lists_clients(fields)))
    cohort, _, _ = at(step)
    kind = STEPS[step].answers
    named = [inside(cohort.server).state.session, 1, inside(cohort.server).sent_to(1)] if with_names else []
    body = msgspec.msgpack.encode([kind.__struct_config__.tag, *named, *fields])
    sealed = cohort.channel(1).seal(bytearray((messages.VERSION,)) + body)
    refused(cohort, step, up=sealed)


@given(st.sampled_from(list(STEPS)[1:]), st.lists(nonsense, max_size=3))
def test_a_lying_servers_nonsense_ends_the_client_but_only_with_the_named_error(step: str, fields: list) -> None:
    cohort = cohort_of(3, 3, 0)
    play_until(cohort, step)
    kind = STEPS[step].opens
    body = msgspec.msgpack.encode([kind.__struct_config__.tag, inside(cohort.server).state.session, *fields])
    sealed = inside(cohort.server).channel(0).seal(bytearray((messages.VERSION,)) + body)
    with pytest.raises(RemoteProtocolError) as refusal:
        cohort.clients[0].receive(sealed)
    assert (refusal.value.peer, refusal.value.step) == ("server", step)


@pytest.mark.parametrize("step", list(STEPS))
def test_a_message_of_many_mebibytes_is_refused_unread(step: str) -> None:
    cohort, good_down, good_up = at(step)
    huge = np.zeros(1 << 26, np.uint8)
    tracemalloc.start()
    for head, receive in (
        (good_down, cohort.clients[0].receive),
        (good_up, lambda data: cohort.server.receive(1, data)),
    ):
        huge[: wire.HEADER_BYTES] = np.frombuffer(head[: wire.HEADER_BYTES], np.uint8)
        with pytest.raises(RemoteProtocolError) as refusal:
            receive(memoryview(huge))
        assert refusal.value.code == "too_large"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize("step", list(STEPS))
def test_a_length_that_promises_more_than_it_brings_costs_no_memory(step: str) -> None:
    """msgpack headers that announce 2^32 - 1 elements or bytes."""
    cohort, _, good_up = at(step)
    tracemalloc.start()
    for promise in (b"\xdd", b"\xdf", b"\xc6", b"\xdb"):
        body = bytearray(good_up[: wire.HEADER_BYTES]) + promise + b"\xff" * 4
        sealed = bytes(body) if step == "advertise" else cohort.channel(1).seal(body)
        refused(cohort, step, up=sealed)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize(("clients", "neighbours"), [(3, 2), (17, 16), (140, 139), (256, 255), (70_000, 100)])
def test_a_limit_is_the_size_of_the_largest_message_to_the_byte(clients: int, neighbours: int) -> None:
    """Around every number of clients at which a msgpack header grows."""
    complete, size = neighbours == clients - 1, 200
    threshold, least = (clients, clients) if complete else (neighbours - 2, clients - clients // 10)
    parameters = Parameters(clients, threshold, least, 0, neighbours, Ring(((size, 8),)), bytes(32))
    k, last, b32, b64 = neighbours, clients - 1, bytes(32), bytes(64)
    signers = k if k == last else parameters.quorum + parameters.signatures
    key, ciphertext, boxes = bytes(kem.PUBLIC_BYTES), bytes(kem.CIPHERTEXT_BYTES), k * bytes(messages.BOX_BYTES)
    known, names, bits = messages.KnownAdvertise(b32, last, b32, key, b32, b64), k * (last,), bytes((clients + 7) // 8)
    siblings = sum(min(k + 1, 2**level) for level in range(17) if 2**level < clients)
    largest = [
        messages.Open(b32, b32, b32, b32, key, b64),
        messages.Advertise(b32, last, b32, key, ciphertext, b64),
        messages.Adverts(b32, k * (known,), siblings * b32),
        messages.Share(b32, last, b32, boxes, k * b64, k * b64, b64),
        messages.Deliver(b32, names, boxes, k * b64, k * b64, k * b64),
        messages.Check(b32, last, b32, names, k * b32),
        messages.Dealers(b32, bits, names),
        messages.Mask(b32, last, b32, memoryview(bytes(size))),
        messages.Survivors(b32, bits),
        messages.Agree(b32, last, b32, b64),
        messages.Agreement(b32, signers * (last,), signers * b64),
        messages.Unmask(b32, last, b32, b32, names, k * b32),
        messages.Abort(b32, 127, b64),
        messages.CheckWithCommitment(b32, last, b32, names, k * b32, b32),
        messages.UnmaskWithOpening(b32, last, b32, b32, names, k * b32, b32),
    ]
    assert {type(message) for message in largest} == set(get_args(messages.Wire))
    for message in largest:
        beside = messages.NONCE_BYTES if isinstance(message, messages.Share) else 0
        beside += 0 if isinstance(message, UNSEALED) else wire.TAG_BYTES
        assert messages.size_limit(type(message), parameters) == len(messages.encode(message)) + beside


@pytest.mark.parametrize("size", [1, 200, 60_000, 70_000])
def test_a_limit_is_the_size_of_the_masked_vector_to_the_byte(size: int) -> None:
    """Around every length at which a msgpack header grows."""
    parameters = Parameters(3, 3, 3, 0, 2, Ring(((size, 8),)), bytes(32))
    upload = messages.Mask(bytes(32), 2, bytes(32), memoryview(bytes(size)))
    assert messages.size_limit(messages.Mask, parameters) == len(messages.encode(upload)) + wire.TAG_BYTES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runs", "seed"), [(20_000, 1), pytest.param(_INPUTS, 2, marks=pytest.mark.nightly)], ids=["day", "night"]
)
def test_coverage_guided_fuzzing_finds_no_other_exception(runs: int, seed: int) -> None:
    """PRIVSTATS_INPUTS says how many inputs by night; the command in the target's docstring goes on for ever."""
    pytest.importorskip("atheris", reason="atheris is not installed: it has wheels for few platforms")
    command = [sys.executable, "-m", "tests.secagg.interactive.fuzz_target", f"-runs={runs}", "-max_len=600"]
    done = subprocess.run(
        [*command, f"-seed={seed}"], capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"Done {runs} runs" in done.stderr
