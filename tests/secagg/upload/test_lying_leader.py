"""A leader that lies to a helper: each test is one row of the table in docs/wire/one_upload.md."""

import sys
from contextlib import suppress

import msgspec
import pytest

from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.secagg import Identity, Roster
from privstats.secagg.upload import helper as module
from privstats.secagg.upload import messages
from privstats.secagg.upload.signed_statements import roll_of, survivors_statement
from privstats.secagg.upload.suite import BOX_BYTES
from privstats.secagg.wire import to_bitmap
from tests.faults import interrupted
from tests.secagg.interactive.cohorts import stream
from tests.secagg.upload.cohorts import batch_of, list_of, refused, signed_batch, uploads_of
from tests.secagg.upload.inside import inside

EVERYBODY = (0, 1, 2, 3, 4, 5)


def bits(run, answer: bytes) -> bytes:
    return run.read(answer, messages.Checked).bitmap


def answer(helper, message: bytes) -> bytes:
    ((to, data),) = helper.receive(message)
    assert to == "server"
    return data


def ready(helpers: int = 2):
    """A run whose first helper has accepted everybody."""
    run = uploads_of(helpers=helpers)
    answer(run.helpers[0], batch_of(run, 1, EVERYBODY))
    return run, run.helpers[0]


def test_an_invented_client_is_not_accepted() -> None:
    run = uploads_of()
    (helper, _), stranger = run.helpers, run.client(0)
    batch = run.read(batch_of(run, 1, (0, 1)), messages.Batch)
    forged = Identity.generate(stream("nobody")).sign(b"whatever")
    lie = signed_batch(run, 1, msgspec.structs.replace(batch, signatures=forged + batch.signatures[64:]))
    assert bits(run, answer(helper, lie)) == b"\x02"
    (fault,) = helper.faults
    assert (fault.peer, fault.code, stranger.index) == ("server", "bad_signature", 0)


def test_a_sender_off_the_roster_is_not_accepted() -> None:
    run = uploads_of()
    batch = run.read(batch_of(run, 1, (0, 5)), messages.Batch)
    lie = signed_batch(run, 1, msgspec.structs.replace(batch, senders=(0, 9)))
    assert bits(run, answer(run.helpers[0], lie)) == b"\x01"
    assert [fault.code for fault in run.helpers[0].faults] == ["stranger"]


def test_the_same_sender_off_the_roster_twice_in_two_parts_is_refused_by_bit() -> None:
    run = uploads_of()
    for part in (0, 1):
        batch = run.read(batch_of(run, 1, (5,), part=part), messages.Batch)
        lie = signed_batch(run, 1, msgspec.structs.replace(batch, senders=(9,)))
        assert bits(run, answer(run.helpers[0], lie)) == b"\x00"


@pytest.mark.parametrize("other", [{"run": b"the second run 2"}, {"label": "other keys"}])
def test_a_report_of_another_run_or_panel_is_not_accepted(other: dict) -> None:
    """Its context is another, so its signature does not verify under ours."""
    run, earlier = uploads_of(), uploads_of(**other)
    assert run.context != earlier.context
    there = earlier.read(batch_of(earlier, 1, (0, 1)), messages.Batch)
    lie = signed_batch(run, 1, msgspec.structs.replace(there, context=run.context))
    assert bits(run, answer(run.helpers[0], lie)) == b"\x00"
    with refused("wrong_session"):
        run.helpers[0].receive(batch_of(earlier, 1, (0, 1)))


def test_a_report_of_another_plan_is_not_accepted() -> None:
    run, other = uploads_of(), uploads_of(min_survivors=5)
    there = other.read(batch_of(other, 1, (0, 1)), messages.Batch)
    lie = signed_batch(run, 1, msgspec.structs.replace(there, context=run.context))
    assert bits(run, answer(run.helpers[0], lie)) == b"\x00"


@pytest.mark.parametrize("senders", [(1, 1), (2, 1)])
def test_a_sender_twice_in_one_part(senders: tuple[int, ...]) -> None:
    run = uploads_of()
    with refused("out_of_order"):
        run.helpers[0].receive(batch_of(run, 1, senders))
    assert set(run.helpers[0].evidence) == {"out_of_order"}
    assert bits(run, answer(run.helpers[0], batch_of(run, 1, (1, 2)))) == b"\x03"


def test_a_sender_in_two_parts_accepted_there_or_not() -> None:
    run = uploads_of()
    batch = run.read(batch_of(run, 1, (0, 1)), messages.Batch)
    size = BOX_BYTES
    spoilt = bytes(size) + batch.boxes[size:]
    answer(run.helpers[0], signed_batch(run, 1, msgspec.structs.replace(batch, boxes=spoilt)))
    for sender in (0, 1):
        with refused("out_of_order"):
            run.helpers[0].receive(batch_of(run, 1, (sender,), part=1))


def test_parts_that_are_skipped_or_replaced() -> None:
    run = uploads_of()
    helper = run.helpers[0]
    with refused("wrong_part"):
        helper.receive(batch_of(run, 1, (0, 1), part=1))
    first = answer(helper, batch_of(run, 1, (0, 1)))
    with refused("wrong_part"):
        helper.receive(batch_of(run, 1, (2, 3)))
    answer(helper, batch_of(run, 1, (2, 3), part=1))
    assert answer(helper, batch_of(run, 1, (0, 1))) == first
    with refused("wrong_part"):
        helper.receive(batch_of(run, 1, (4, 5), part=3))


def test_the_batch_of_another_helper() -> None:
    """The leader's signature names the helper."""
    run = uploads_of()
    with refused("bad_signature"):
        run.helpers[1].receive(batch_of(run, 1, (0, 1)))


@pytest.mark.parametrize("column", ["encs", "proofs", "boxes", "signatures"])
def test_columns_of_another_height(column: str) -> None:
    run = uploads_of()
    batch = run.read(batch_of(run, 1, (0, 1)), messages.Batch)
    lie = signed_batch(run, 1, msgspec.structs.replace(batch, **{column: getattr(batch, column)[:-1] or b"\0"}))
    with refused("wrong_length"):
        run.helpers[0].receive(lie)


def test_somebody_else_asks() -> None:
    run, helper = ready()
    mallory = Identity.generate(stream("mallory"))
    with refused("bad_signature"):
        helper.receive(list_of(run, EVERYBODY, signer=mallory))
    batch = batch_of(run, 1, (0, 1))
    with refused("bad_signature"):
        run.helpers[0].receive(batch[:-64] + mallory.sign(b"a batch"))
    assert helper.step == "check"


def test_a_signature_in_a_longer_encoding_is_malformed() -> None:
    run = uploads_of()
    batch = batch_of(run, 1, (0, 1))
    with refused("malformed"):
        run.helpers[0].receive(batch[:-66] + b"\xc5\x00\x40" + batch[-64:])


def test_a_short_list_is_refused_and_changes_nothing() -> None:
    run, helper = ready()
    with refused("too_few_survivors"):
        helper.receive(list_of(run, (0, 1, 2)))
    assert helper.step == "check"
    assert answer(helper, list_of(run, EVERYBODY))


def test_a_list_with_a_report_that_was_not_accepted() -> None:
    run = uploads_of()
    answer(run.helpers[0], batch_of(run, 1, (0, 1, 2, 3)))
    with refused("strangers"):
        run.helpers[0].receive(list_of(run, (0, 1, 2, 3, 4)))
    assert run.helpers[0].evidence.keys() == {"strangers"}


def test_a_list_over_other_reports_of_the_same_clients() -> None:
    """Two uploads of one client, shown to two groups under one bitmap, would open two sums: the roll tells them."""
    run, other = ready()[0], uploads_of()
    other.clients[2] = other.client(2, life=1)
    with refused("other_reports"):
        run.helpers[0].receive(list_of(other, EVERYBODY))
    with refused("other_reports"):
        run.helpers[0].receive(list_of(run, EVERYBODY, roll=bytes(32)))


def test_a_bitmap_that_does_not_fit_the_roster() -> None:
    run, helper = ready()
    for bitmap in (b"", b"\xff", to_bitmap(EVERYBODY, 6) + b"\0"):
        roll = roll_of([])
        signature = run.members[0].sign(survivors_statement(run.context, roll, bitmap))
        with pytest.raises(RemoteProtocolError, match=": (malformed|too_large)"):
            helper.receive(messages.encode(messages.Survivors(run.context, bitmap, roll, signature)))


def test_an_old_list_and_another_runs_list() -> None:
    run, helper = ready()
    earlier = uploads_of(run=b"an earlier run 7")
    with refused("wrong_session"):
        helper.receive(list_of(earlier, EVERYBODY))
    first = answer(helper, list_of(run, EVERYBODY))
    assert answer(helper, list_of(run, EVERYBODY)) == first
    with refused("session_over"):
        helper.receive(list_of(run, (0, 1, 2, 3)))


def test_a_batch_of_the_first_thousand_clients_and_one_more_is_malformed() -> None:
    run = uploads_of()
    batch = run.read(batch_of(run, 1, (0,)), messages.Batch)
    lie = msgspec.structs.replace(batch, senders=tuple(range(1025)))
    with pytest.raises(RemoteProtocolError, match=": (malformed|too_large)"):
        run.helpers[0].receive(signed_batch(run, 1, lie))
    with refused("malformed"):
        run.helpers[0].receive(signed_batch(run, 1, msgspec.structs.replace(batch, senders=())))


def test_an_abandoned_helper_answers_nothing_and_says_so_again() -> None:
    run, helper = ready()
    told = helper.abandon()
    assert helper.abandon() == told
    assert helper.step == "failed"
    with refused("session_over"):
        helper.receive(list_of(run, EVERYBODY))
    assert bytes(inside(helper).secret) == bytes(32)


def test_a_helper_that_has_answered_cannot_say_that_it_did_not() -> None:
    run, helper = ready()
    answer(helper, list_of(run, EVERYBODY))
    with pytest.raises(LocalProtocolError, match="counts as a release"):
        helper.abandon()


def test_a_helper_that_has_answered_and_is_discarded_cannot_say_that_it_did_not() -> None:
    """A counted upload would be believed to be in no sum, and its spend given back."""
    run, helper = ready()
    answer(helper, list_of(run, EVERYBODY))
    helper.discard()
    with pytest.raises(LocalProtocolError, match="counts as a release"):
        helper.abandon()


_ANSWERING = ("receive", "_receive_message", "_guarded", "_reveal", "_wipe")


def _interrupted_at(line: int, helper, message: bytes) -> bool:
    """Interrupt the helper as it comes to the ``line``-th line of its own code; whether it came so far."""
    left, before = line, sys.gettrace()

    def trace(frame, event: str, _):
        nonlocal left
        code = frame.f_code
        if event == "line" and code.co_filename == module.__file__ and code.co_name in _ANSWERING:
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        helper.receive(message)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)  # of a coverage that is being measured
    return False


def test_a_helper_that_is_interrupted_anywhere_never_answers_and_signs_that_it_did_not() -> None:
    line, answers, signs = 0, 0, 0
    while True:
        run, helper = ready()
        message = list_of(run, EVERYBODY)
        came_so_far = _interrupted_at(line, helper, message)
        speaks = bool(helper.answer)
        with suppress(RemoteProtocolError):
            speaks |= bool(helper.receive(message))
        with suppress(LocalProtocolError):
            helper.abandon()
            signs += 1
            assert not speaks, f"interrupted at line {line} it answers, and signs that it never did"
        answers += speaks
        if not came_so_far:
            break
        line += 1
    assert line > 20
    assert answers > 1
    assert signs > 1


def test_an_interrupted_helper_is_wiped() -> None:
    run, helper = ready()
    with interrupted(inside(helper).scheme, "answer"):
        helper.receive(list_of(run, EVERYBODY))
    assert helper.step == "failed"
    assert not inside(helper).pieces


def test_a_roster_of_the_leaders_making_is_another_run() -> None:
    """A helper verifies with the keys that it was given: a crowd of the leader's own keys has another digest."""
    run = uploads_of()
    crowd = Roster(
        tuple(Identity.generate(stream(f"crowd {i}")).public for i in range(6)), server=run.roster.server, run=run.run
    )
    with pytest.raises(LocalProtocolError, match="not signed for this plan and this run"):
        run.helper_class(run.parameters, keys=run.key(1), roster=crowd, panel=run.panel)
    with pytest.raises(LocalProtocolError, match="needs the complete roster"):
        run.helper_class(run.parameters, keys=run.key(1), roster=run.roster.digest, panel=run.panel)


@pytest.mark.parametrize("way", ["too long", "cut", "another version", "another type", "another run", "no seal"])
def test_what_no_signature_was_verified_of_proves_nothing(way: str) -> None:
    """Any party on the way can make such a message, so it is no evidence against the leader."""
    run = uploads_of()
    batch = batch_of(run, 1, (0, 1))
    sent = {
        "too long": bytes(messages.largest_request(run.parameters) + 1),
        "cut": batch[:-1],
        "another version": b"\x07" + batch[1:],
        "another type": batch[:2] + b"\x02" + batch[3:],
        "another run": batch[:5] + bytes(32) + batch[37:],
        "no seal": batch[:-66] + b"\xc5" + batch[-65:],
    }[way]
    with pytest.raises(RemoteProtocolError) as told:
        run.helpers[0].receive(sent)
    assert not told.value.proven
    assert run.helpers[0].evidence == {}
