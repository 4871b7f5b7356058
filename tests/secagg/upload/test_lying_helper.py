"""A helper that lies to the leader: what it signed is held against it, what it did not is not."""

import msgspec
import numpy as np
import pytest

from privstats.errors import AggregationError
from privstats.secagg.upload import messages
from privstats.secagg.upload.signed_statements import checked_statement, reveal_statement
from tests.secagg.upload.cohorts import Uploads, refused, uploads_of
from tests.secagg.upload.inside import inside


def reveal_of(run: Uploads, place: int, roll: bytes, answer: bytes) -> bytes:
    signature = run.members[place].sign(reveal_statement(run.context, place, roll, answer))
    return messages.encode(messages.Reveal(run.context, roll, memoryview(answer), signature))


def at_check(**how) -> tuple[Uploads, bytes]:
    """A run whose leader waits for the helpers, and the honest answer of the first."""
    run = uploads_of(**how)
    asked = run.play_until("check")
    return run, run.helpers[0].receive(asked[run.peer(1)])[0][1]


def test_a_false_bitmap_names_the_client_with_the_helper() -> None:
    run, honest = at_check()
    message = run.read(honest, messages.Checked)
    batch = inside(run.leader).book.batch_digest(0, 1)
    bitmap = b"\x3e"
    signature = run.members[1].sign(checked_statement(run.context, 1, batch, bitmap))
    run.leader.receive(
        run.peer(1), messages.encode(msgspec.structs.replace(message, bitmap=bitmap, signature=signature))
    )
    total, survivors = run.finish()
    assert survivors == (1, 2, 3, 4, 5)
    assert np.array_equal(total, run.sum_over(survivors))
    (fault,) = run.leader.faults
    assert (fault.peer, fault.proven, "helper 1" in str(fault)) == (0, False, True)


@pytest.mark.parametrize("bitmap", [b"", b"\x40", b"\x3f\x00"])
def test_a_bitmap_that_does_not_fit_is_held_against_the_helper(bitmap: bytes) -> None:
    run, honest = at_check()
    message = run.read(honest, messages.Checked)
    signature = run.members[1].sign(
        checked_statement(run.context, 1, inside(run.leader).book.batch_digest(0, 1), bitmap)
    )
    lie = messages.encode(msgspec.structs.replace(message, bitmap=bitmap, signature=signature))
    if len(bitmap) > 1:
        with refused("too_large"):
            run.leader.receive(run.peer(1), lie)
        return
    with refused("malformed"):
        run.leader.receive(run.peer(1), lie)
    (fault,) = run.leader.faults
    assert (fault.peer, fault.code, fault.proven) == ("helper 1", "malformed", True)


def test_another_helpers_word_and_an_answer_to_another_part() -> None:
    run, honest = at_check()
    with refused("bad_signature"):
        run.leader.receive(run.peer(2), honest)
    message = run.read(honest, messages.Checked)
    with refused("wrong_reply"):
        run.leader.receive(run.peer(1), messages.encode(msgspec.structs.replace(message, part=1)))
    assert run.leader.faults == ()
    assert run.leader.refused == {"bad_signature": 1, "wrong_reply": 1}
    run.leader.receive(run.peer(1), honest)
    assert not run.leader.receive(run.peer(1), honest)
    with refused("not_expected"):
        run.leader.receive(run.peer(1), messages.encode(msgspec.structs.replace(message, signature=bytes(64))))


def test_an_answer_to_another_list_is_held_against_the_helper() -> None:
    run = uploads_of()
    asked = run.play_until("reveal")
    size = run.parameters.ring.wire_bytes
    with refused("wrong_reply"):
        run.leader.receive(run.peer(1), reveal_of(run, 1, bytes(32), bytes(size)))
    (fault,) = run.leader.faults
    assert str(fault).startswith("helper 1 broke the protocol at step 'reveal': wrong_reply")
    run.pass_on(run.leader.outbox)
    assert len(asked) == 2
    assert np.array_equal(run.finish()[0], run.sum_over(tuple(range(6))))


def test_an_answer_of_another_length_and_anothers_answer() -> None:
    run = uploads_of()
    asked = run.play_until("reveal")
    roll, size = inside(run.leader).roll(), run.parameters.ring.wire_bytes
    with refused("wrong_length"):
        run.leader.receive(run.peer(1), reveal_of(run, 1, roll, bytes(size - 1)))
    ((_, honest),) = run.helpers[0].receive(asked[run.peer(1)])
    with refused("bad_signature"):
        run.leader.receive(run.peer(2), honest)
    run.leader.receive(run.peer(1), honest)
    assert not run.leader.receive(run.peer(1), honest)
    with refused("not_expected"):
        run.leader.receive(run.peer(1), reveal_of(run, 1, roll, bytes(size)))


def test_an_answer_of_another_run() -> None:
    run, other = uploads_of(), uploads_of(run=b"another run 1234")
    for each in (run, other):
        each.play_until("reveal")
    ((_, answer),) = other.helpers[0].receive(dict(other.leader.outbox)[other.peer(1)])
    with refused("wrong_session"):
        run.leader.receive(run.peer(1), answer)
    assert run.leader.faults == ()


def test_a_false_answer_shifts_the_sum_unseen_which_the_page_says() -> None:
    """Not promised: integrity against a helper. This test keeps the sentence true."""
    run = uploads_of(helpers=1)
    run.play_until("reveal")
    size = run.parameters.ring.wire_bytes
    run.leader.receive(run.peer(1), reveal_of(run, 1, inside(run.leader).roll(), bytes(size)))
    run.leader.end_step()
    assert run.leader.faults == ()
    assert not np.array_equal(run.leader.result[0].lift(), run.sum_over(tuple(range(6))))


def test_a_helper_that_abandons_ends_the_run_by_name() -> None:
    run = uploads_of()
    run.play_until("check")
    ((_, told),) = run.helpers[1].abandon()
    with refused("bad_signature"):
        run.leader.receive(run.peer(1), told)
    run.leader.receive(run.peer(2), told)
    assert run.leader.abandoned == {2: told}
    assert run.leader.step_status().abort is not None
    with pytest.raises(
        AggregationError,
        match=r"\(too_few_helpers\): split needs every helper, and these have abandoned the run: helper 2",
    ):
        run.leader.end_step()
    assert run.leader.abandoned == {2: told}


def test_a_helper_that_is_silent_ends_the_run_by_name() -> None:
    run, honest = at_check()
    run.leader.receive(run.peer(1), honest)
    with pytest.raises(AggregationError, match="these have not answered: helper 2"):
        run.leader.end_step()
    with refused("not_expected"):
        run.leader.receive(run.peer(2), honest)


def test_a_helper_that_rejects_too_many_leaves_too_few() -> None:
    run, honest = at_check()
    message = run.read(honest, messages.Checked)
    signature = run.members[1].sign(
        checked_statement(run.context, 1, inside(run.leader).book.batch_digest(0, 1), b"\x07")
    )
    run.leader.receive(
        run.peer(1), messages.encode(msgspec.structs.replace(message, bitmap=b"\x07", signature=signature))
    )
    run.pass_on(run.leader.outbox)
    with pytest.raises(AggregationError, match=r"'check' \(too_few_clients\): 3 clients remain, the plan needs 4"):
        run.leader.end_step()
