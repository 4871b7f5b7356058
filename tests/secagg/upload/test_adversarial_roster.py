"""One device and one honest member; all else is the adversary's, the device's code too (docs/proofs/one_upload.md).

What enters an answer is counted by index, and a box is bound to its index: no signature is part of the argument.
"""

from hashlib import sha256

import msgspec
import numpy as np
import pytest

import privstats as ps
from privstats.errors import RemoteProtocolError
from privstats.secagg.upload import messages
from privstats.secagg.upload.checks import stated
from privstats.secagg.upload.signed_statements import proofs, roll_of, survivors_statement
from privstats.secagg.wire import members, to_bitmap
from tests.secagg.upload.cohorts import Uploads, answer_of, body_of, refused, signed_batch, uploads_of

VICTIM, OTHER = 0, 3


def entry(run: Uploads, sender: int, report: bytes) -> tuple[bytes, ...]:
    """What the leader tells helper 1 of a report, in ``sender``'s place and signed by the key there."""
    said = run.read(report, messages.Report)
    boxes = run.boxes(report)
    moved = msgspec.structs.replace(said, sender=sender)
    signature = run.identities[sender].sign(stated(moved, run.parameters))
    return b"", proofs(boxes)[1], boxes[1], signature


def batch(run: Uploads, placed: dict[int, bytes], part: int = 0) -> bytes:
    """A batch of the adversary's own making: whose report it likes, in whose place it likes."""
    columns = [b"".join(column) for column in zip(*(entry(run, *each) for each in placed.items()), strict=True)]
    made = messages.Batch(run.context, part, tuple(placed), *columns, bytes(64))
    return signed_batch(run, 1, made)


def accepted(run: Uploads, placed: dict[int, bytes], part: int = 0) -> set[int]:
    ((_, answer),) = run.helpers[0].receive(batch(run, placed, part))
    bitmap = run.read(answer, messages.Checked).bitmap
    return {list(placed)[place] for place in members(bitmap, len(placed))}


def sybils(run: Uploads) -> dict[int, bytes]:
    return {index: run.report(index) for index in (1, 2, 4, 5)}


def test_a_box_in_another_place_does_not_open_whoever_signs_it():
    """The adversary holds every code, so the signature holds; the box is bound to the index."""
    run = uploads_of(helpers=1)
    assert accepted(run, {1: run.report(1), OTHER: run.report(VICTIM)}) == {1}
    assert [fault.code for fault in run.helpers[0].faults] == ["bad_box"]


def test_a_body_in_another_place_does_not_open_at_an_honest_leader():
    run = uploads_of(helpers=1)
    said = msgspec.structs.replace(run.read(run.report(VICTIM), messages.Report), sender=OTHER)
    signature = run.identities[OTHER].sign(stated(said, run.parameters))
    with refused("bad_body"):
        run.leader.receive(OTHER, messages.encode(msgspec.structs.replace(said, signature=signature)))


def test_of_many_reports_of_one_index_one_is_counted():
    """Sealed again under fresh roots, each well signed: a helper takes one, in whatever part, and so does a leader."""
    run = uploads_of(helpers=1)
    first, second = (run.client(VICTIM, life=life).start()[0][1] for life in (1, 2))
    assert accepted(run, {VICTIM: first}) == {VICTIM}
    for part in (0, 1):
        with pytest.raises(RemoteProtocolError):
            run.helpers[0].receive(batch(run, {VICTIM: second}, part))
    run.leader.receive(VICTIM, first)
    with refused("already_here"):
        run.leader.receive(VICTIM, second)


def test_a_box_beside_another_body_uses_up_the_index():
    """With the code the adversary puts the device's box beside a body of its own; the device's report is then late."""
    run = uploads_of(helpers=1)
    real, mine = run.report(VICTIM), run.client(VICTIM, life=9).start()[0][1]
    theirs, own = (run.read(each, messages.Report) for each in (real, mine))
    forged = msgspec.structs.replace(own, boxes=theirs.boxes)
    signature = run.identities[VICTIM].sign(stated(forged, run.parameters))
    transplanted = messages.encode(msgspec.structs.replace(forged, signature=signature))
    assert accepted(run, {VICTIM: transplanted}) == {VICTIM}
    with pytest.raises(RemoteProtocolError):
        run.helpers[0].receive(batch(run, {VICTIM: real}, 1))


def test_a_report_under_another_panel_is_in_no_answer():
    """The leader shows the device a second panel with the same honest helper's key: that helper opens no box of it."""
    run = uploads_of(helpers=2)
    run.label, first = "a second key", run.panel
    other = ps.secagg.Panel(first.identities, (*first.offers[:2], run.key(2).offer))
    sealed = run.client(VICTIM, panel=other).start()[0][1]
    with refused("wrong_session"):
        run.leader.receive(VICTIM, sealed)
    there = other.context(run.parameters, run.roster)
    said = messages.decode(memoryview(sealed), messages.Report, run.parameters, there)
    moved = messages.encode(msgspec.structs.replace(said, context=run.context))
    assert accepted(run, {VICTIM: moved, 1: run.report(1)}) == {1}
    assert [fault.code for fault in run.helpers[0].faults] == ["bad_box"]


def test_one_answer_moves_by_one_contribution_and_by_two_where_one_person_has_two_places():
    """The invariant of the proof, and the assumption on it that a device cannot check: one index of one run."""
    moved = {}
    for places in ((), (VICTIM,), (VICTIM, OTHER)):
        run = uploads_of(helpers=1, min_survivors=3)
        sent = {place: run.client(place, run.values[VICTIM]).start()[0][1] for place in places}
        sent |= sybils(run)
        placed = dict(sorted(sent.items()))
        assert accepted(run, placed) == set(placed)
        bodies = run.parameters.ring.zeros()
        for sender, report in placed.items():
            bodies.add(body_of(run, sender, report))
        bodies.add(answer_of(run, run.helpers[0], list_over(run, placed)))
        known = sum(run.values[index] for index in sybils(run))
        moved[len(places)] = bodies.lift() - known
    assert not moved[0].any()
    assert np.array_equal(moved[1], run.values[VICTIM])
    assert np.array_equal(moved[2], 2 * run.values[VICTIM])


def list_over(run: Uploads, placed: dict[int, bytes]) -> bytes:
    """The list of these reports, signed by the leader."""
    digests = [
        (sender, sha256(stated(run.read(report, messages.Report), run.parameters)).digest())
        for sender, report in placed.items()
    ]
    roll, bitmap = roll_of(digests), to_bitmap(placed, run.parameters.clients)
    signature = run.members[0].sign(survivors_statement(run.context, roll, bitmap))
    return messages.encode(messages.Survivors(run.context, bitmap, roll, signature))
