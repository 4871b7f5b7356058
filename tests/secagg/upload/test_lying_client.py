"""A client that lies to the leader and the helpers: it can shift the sum, as any poisoner can, and nothing else."""

import msgspec
import numpy as np
import pytest

from privstats.errors import RemoteProtocolError
from privstats.secagg import body_cipher, xwing
from privstats.secagg.upload import messages
from privstats.secagg.upload.masking_scheme import secret_of
from privstats.secagg.upload.signed_statements import box_info, boxes_root, report_statement
from tests.secagg.interactive.cohorts import stream
from tests.secagg.upload.cohorts import Uploads, body_of, refused, streams_of, uploads_of
from tests.secagg.upload.inside import inside


def signed(run: Uploads, sender: int, boxes: list[bytes], body: bytes, *, name: int | None = None) -> bytes:
    """A report with any boxes, signed as the client signs."""
    statement = report_statement(run.context, sender, boxes_root(boxes))
    signature = run.identities[sender].sign(statement)
    report = messages.Report(
        run.context, sender if name is None else name, b"".join(boxes), memoryview(body), signature
    )
    return messages.encode(report)


def parts(run: Uploads, sender: int) -> tuple[list[bytes], bytes]:
    report = run.report(sender)
    return run.boxes(report), bytes(run.read(report, messages.Report).body)


def finish_without(run: Uploads, liar: int) -> tuple[int, ...]:
    for index in range(run.parameters.clients):
        if index != liar:
            run.pass_on(run.leader.receive(index, run.report(index)))
    total, survivors = run.finish()
    assert np.array_equal(total, run.sum_over(survivors))
    return survivors


@pytest.mark.parametrize("place", [0, 1])
def test_a_copied_box_does_not_open_and_its_client_is_named_with_the_helper(place: int) -> None:
    run = uploads_of()
    theirs, _ = parts(run, 3)
    boxes, body = parts(run, 0)
    boxes[place + 1] = theirs[place + 1]
    run.leader.receive(0, signed(run, 0, boxes, body))
    assert finish_without(run, 0) == (1, 2, 3, 4, 5)
    (fault,) = run.leader.faults
    assert (fault.peer, fault.code, fault.proven) == (0, "bad_box", False)
    assert f"according to helper {place + 1}" in str(fault)
    assert [fault.code for fault in run.helpers[place].faults] == ["bad_box"]
    assert run.helpers[place].faults[0].peer == 0


@pytest.mark.parametrize("boxes_of", [lambda one, other: (other, one), lambda one, other: (bytes(len(one)), other)])
def test_boxes_for_another_helper_or_of_low_order_do_not_open(boxes_of) -> None:
    run = uploads_of()
    boxes, body = parts(run, 0)
    run.leader.receive(0, signed(run, 0, [*boxes[:-2], *boxes_of(*boxes[-2:])], body))
    assert finish_without(run, 0) == (1, 2, 3, 4, 5)


def test_a_body_that_does_not_open_is_counted_and_held_against_nobody() -> None:
    run = uploads_of()
    boxes, body = parts(run, 0)
    lies = [(boxes, body[:40] + bytes([body[40] ^ 1]) + body[41:]), (boxes, parts(run, 1)[1])]
    # The key of the body is in the first box.
    lies += [([first, *boxes[1:]], body) for first in (bytes(len(boxes[0])), boxes[0][:-1] + b"!", boxes[1])]
    for lie in lies:
        with refused("bad_body"):
            run.leader.receive(0, signed(run, 0, *lie))
    assert run.leader.faults == ()
    assert run.leader.refused == {"bad_body": len(lies)}
    run.leader.receive(0, signed(run, 0, boxes, body))
    assert finish_without(run, 0) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(("change", "code"), [(-1, "wrong_length"), (1, "too_large")])
def test_a_body_of_another_length(change: int, code: str) -> None:
    run = uploads_of()
    boxes, body = parts(run, 0)
    with refused(code):
        run.leader.receive(0, signed(run, 0, boxes, body[:change] if change < 0 else body + b"\0"))


def test_boxes_of_another_number() -> None:
    run = uploads_of()
    boxes, body = parts(run, 0)
    with refused("wrong_length"):
        run.leader.receive(0, signed(run, 0, boxes[:1], body))
    assert run.leader.faults == ()


def test_a_report_in_anothers_name() -> None:
    run = uploads_of()
    boxes, body = parts(run, 0)
    with refused("wrong_sender"):
        run.leader.receive(1, signed(run, 0, boxes, body))
    with refused("bad_signature"):
        run.leader.receive(1, signed(run, 0, boxes, body, name=1))
    with refused("stranger"):
        run.leader.receive(99, signed(run, 0, boxes, body))


def test_a_body_or_boxes_that_the_signature_is_not_over() -> None:
    run = uploads_of()
    first, second = (
        messages.encode(run.read(run.client(0, life=life).start()[0][1], messages.Report)) for life in (0, 1)
    )
    one, other = run.read(first, messages.Report), run.read(second, messages.Report)
    # The key in the box is not that of the other body.
    for code, change in (("bad_body", {"body": other.body}), ("bad_signature", {"boxes": other.boxes})):
        with refused(code):
            run.leader.receive(0, messages.encode(msgspec.structs.replace(one, **change)))


def test_a_second_report_is_neither_taken_nor_a_fault() -> None:
    run = uploads_of()
    first = run.report(0)
    assert not run.leader.receive(0, first)
    assert not run.leader.receive(0, first)
    with refused("already_here"):
        run.leader.receive(0, run.client(0, life=1).start()[0][1])
    assert run.leader.faults == ()
    assert run.leader.refused == {}
    assert finish_without(run, 0) == (0, 1, 2, 3, 4, 5)


def test_a_report_after_the_deadline() -> None:
    run = uploads_of()
    run.play_until("check", silent=(0,))
    with refused("not_expected"):
        run.leader.receive(0, run.report(0))


def test_a_uniform_body_shifts_the_sum_by_an_element_of_the_ring_and_the_honest_rest_is_whole() -> None:
    run = uploads_of()
    boxes, key = run.boxes(run.report(0)), bytes(range(32))
    garbage, info = stream("garbage")(run.parameters.ring.wire_bytes), box_info(run.context, 0, 0)
    body = bytearray(run.parameters.body_bytes)
    body_cipher.seal_into(memoryview(body), key, [memoryview(garbage)])
    boxes[0] = xwing.seal(run.panel.box_key(0), key, info)
    run.leader.receive(0, signed(run, 0, boxes, body))
    for index in range(1, 6):
        run.pass_on(run.leader.receive(index, run.report(index)))
    run.finish()
    total, survivors = run.leader.result
    assert survivors == (0, 1, 2, 3, 4, 5)
    shift = run.parameters.ring.unpack(garbage)
    for place, helper in enumerate(run.helpers, start=1):
        seed = run.seed(0, run.report(0), place)
        shift.add(streams_of(inside(helper).scheme, run.parameters.ring, [(0, seed)]))
    honest = run.parameters.ring.encode(run.sum_over((1, 2, 3, 4, 5)))
    honest.add(shift)
    assert honest.pack() == total.pack()


# --- one root, two uses ---


def test_one_root_for_two_vectors_leaves_no_relation_between_the_bodies() -> None:
    run = uploads_of()
    fixed = stream("one root")(32)
    values = run.values[0]
    bodies = [
        body_of(run, 0, run.client(0, each, entropy=lambda _: fixed).start()[0][1]) for each in (values, values + 1)
    ]
    bodies[1].subtract(bodies[0])
    assert not np.array_equal(bodies[1].lift(), np.ones_like(values))


def test_one_root_for_two_clients_leaves_no_relation_between_the_bodies() -> None:
    run = uploads_of()
    fixed = stream("one root")(32)
    bodies = [
        body_of(run, index, run.client(index, run.values[0], entropy=lambda _: fixed).start()[0][1]) for index in (0, 1)
    ]
    bodies[1].subtract(bodies[0])
    assert np.any(bodies[1].lift())


def test_the_secret_is_a_function_of_root_run_sender_and_vector() -> None:
    run = uploads_of()
    vector, other = run.parameters.ring.encode(run.values[0]), run.parameters.ring.encode(run.values[1])
    base = secret_of(bytes(32), run.context, 0, vector)
    assert base == secret_of(bytearray(32), run.context, 0, vector)
    changed = [
        secret_of(b"\1" * 32, run.context, 0, vector),
        secret_of(bytes(32), bytes(32), 0, vector),
        secret_of(bytes(32), run.context, 1, vector),
        secret_of(bytes(32), run.context, 0, other),
    ]
    assert len({base, *changed}) == 5


def test_bits_above_a_segments_width_do_not_change_the_report() -> None:
    run = uploads_of()
    vector = run.parameters.ring.encode(run.values[0])
    cut = secret_of(bytes(32), run.context, 0, vector)
    vector.lanes[0][:] |= np.uint32(1 << 31)
    assert secret_of(bytes(32), run.context, 0, vector) == cut


def test_nobody_speaks_to_a_client() -> None:
    run = uploads_of()
    with pytest.raises(RemoteProtocolError, match="the server broke the protocol at step 'report': not_expected"):
        run.clients[0].receive(b"anything")
