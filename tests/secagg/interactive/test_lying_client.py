"""What a lying client tries, check by check: the server names it, goes on without it, and the sum stays exact."""

import msgspec
import numpy as np
import pytest

from privstats.errors import AggregationError, RemoteProtocolError
from privstats.secagg import Identity, kem, wire
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.messages import advert_statement, context_of, open_statement
from privstats.secagg.interactive.state import STEPS
from tests.secagg.interactive.cohorts import RING, Cohort, cohort_of, finish, forge, play_until, read, stream
from tests.secagg.interactive.inside import inside

LIAR = 5
UNPROVEN = {  # what anybody on the way can make of an honest message, and what an honest client may send late
    *("stranger", "not_expected", "wrong_version", "wrong_type", "too_large", "malformed", "wrong_session", "bad_tag"),
    "wrong_reply",
}


def refused(cohort: Cohort, data: bytes, code: str, *, sender: int = LIAR) -> None:
    """The server refuses ``data`` with ``code``, and is otherwise unmoved.

    It holds it against the sender where the sender alone can have made it, and never otherwise.
    """
    step, waiting = cohort.server.step, cohort.server.waiting_for
    with pytest.raises(RemoteProtocolError) as refusal:
        cohort.server.receive(sender, data)
    assert (refusal.value.peer, refusal.value.step, refusal.value.code) == (sender, step, code)
    assert (cohort.server.step, cohort.server.waiting_for) == (step, waiting)
    recorded = (sender, step, code) in [(fault.peer, fault.step, fault.code) for fault in cohort.server.faults]
    assert recorded == (code == "bad_key" if step == "advertise" else code not in UNPROVEN)


def finishes_without_the_liar(cohort: Cohort, outbox: dict[int, bytes], survivors: tuple[int, ...]) -> None:
    """The others play on; the sum is exact over ``survivors``."""
    total, summed = finish(cohort, {client: data for client, data in outbox.items() if client != LIAR})
    assert summed == survivors
    assert np.array_equal(total, cohort.sum_over(survivors))


def answer(cohort: Cohort, outbox: dict[int, bytes], kind: type) -> messages.ClientMessage:
    """The liar's honest answer, opened, so that it can be altered."""
    ((_, data),) = cohort.clients[LIAR].receive(outbox[LIAR])
    return read(cohort, LIAR, data, kind)


HONEST, EVERYONE = (0, 1, 2, 3, 4), (0, 1, 2, 3, 4, 5)


class TestAdvertise:
    @pytest.mark.parametrize("field", ["box_key", "kem_key", "ciphertext", "signature"])
    def test_a_mutated_field(self, cohort: Cohort, field: str) -> None:
        outbox = play_until(cohort, "advertise")
        message = answer(cohort, outbox, messages.Advertise)
        value = getattr(message, field)
        mutated = msgspec.structs.replace(message, **{field: bytes([value[0] ^ 1]) + value[1:]})
        refused(cohort, bytes(messages.encode(mutated)), "bad_signature")
        finishes_without_the_liar(cohort, outbox, HONEST)

    def test_an_identity_that_is_not_on_the_roster(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "advertise")
        message = answer(cohort, outbox, messages.Advertise)
        statement = advert_statement(inside(cohort.server).context, LIAR, *message.keys)
        invented = Identity.generate(stream("nobody")).sign(statement)
        refused(cohort, bytes(messages.encode(msgspec.structs.replace(message, signature=invented))), "bad_signature")
        finishes_without_the_liar(cohort, outbox, HONEST)

    def test_a_signature_under_another_plan(self, cohort: Cohort) -> None:
        """The plan's digest is under the signature, so a client that skipped its own check still cannot take part."""
        other = cohort_of(6, 5, 1)
        opening = read(cohort, LIAR, play_until(cohort, "advertise")[LIAR], messages.Open)
        lured = msgspec.structs.replace(opening, parameters=other.parameters.digest)
        context = context_of(inside(other.server).graph, opening.session, opening.server_key, opening.kem_key)
        signed = msgspec.structs.replace(lured, signature=cohort.aggregator.sign(open_statement(context)))
        ((_, data),) = other.clients[LIAR].receive(bytes(messages.encode(signed)))
        refused(cohort, data, "bad_signature")

    @pytest.mark.parametrize(("key", "value"), [("box_key", bytes(32)), ("kem_key", b"\xff" * kem.PUBLIC_BYTES)])
    def test_a_key_to_which_nothing_is_sealed(self, cohort: Cohort, key: str, value: bytes) -> None:
        outbox = play_until(cohort, "advertise")
        message = msgspec.structs.replace(answer(cohort, outbox, messages.Advertise), **{key: value})
        statement = advert_statement(inside(cohort.server).context, LIAR, *message.keys)
        signed = msgspec.structs.replace(message, signature=cohort.identities[LIAR].sign(statement))
        refused(cohort, bytes(messages.encode(signed)), "bad_key")
        finishes_without_the_liar(cohort, outbox, HONEST)

    def test_another_session(self, cohort: Cohort) -> None:
        other = cohort_of(label="other")
        old = play_until(other, "advertise")
        play_until(cohort, "advertise")
        refused(cohort, other.clients[LIAR].receive(old[LIAR])[0][1], "wrong_session")

    def test_another_clients_name(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "advertise")
        refused(cohort, cohort.clients[1].receive(outbox[1])[0][1], "wrong_sender")


class TestShare:
    @pytest.mark.parametrize(
        ("field", "size"),
        [
            ("boxes", messages.BOX_BYTES),
            ("commitments", messages.PAIR_BYTES),
            ("responses", messages.PAIR_BYTES),
            ("proofs", messages.SECRET_BYTES),
        ],
    )
    def test_too_few_parts_of_a_dealing(self, cohort: Cohort, field: str, size: int) -> None:
        outbox = play_until(cohort, "share")
        message = answer(cohort, outbox, messages.Share)
        short = msgspec.structs.replace(message, **{field: getattr(message, field)[:-size]})
        refused(cohort, forge(cohort, LIAR, short), "wrong_length")
        finishes_without_the_liar(cohort, outbox, HONEST)

    @pytest.mark.parametrize("vanishes", [False, True])
    def test_garbage_in_one_box(self, cohort: Cohort, vanishes: bool) -> None:
        """The receiver keeps nothing and names the liar; the other shares suffice even if the liar then vanishes."""
        outbox = play_until(cohort, "share")
        message = answer(cohort, outbox, messages.Share)
        spoilt = msgspec.structs.replace(message, boxes=b"!" * messages.BOX_BYTES + message.boxes[messages.BOX_BYTES :])
        cohort.server.receive(LIAR, forge(cohort, LIAR, spoilt))
        cohort.answer(outbox, HONEST)
        outbox = dict(cohort.server.end_step())
        if vanishes:
            del outbox[LIAR]
        total, survivors = finish(cohort, outbox)
        assert [(fault.peer, fault.code) for fault in cohort.clients[0].faults] == [(LIAR, "bad_box")]
        assert survivors == (HONEST if vanishes else EVERYONE)
        assert np.array_equal(total, cohort.sum_over(survivors))


class TestMask:
    @pytest.mark.parametrize("change", [-1, 1])
    def test_a_vector_of_the_wrong_length(self, cohort: Cohort, change: int) -> None:
        outbox = play_until(cohort, "mask")
        message = answer(cohort, outbox, messages.Mask)
        vector = bytes(message.vector) + b"!" if change > 0 else bytes(message.vector)[:-1]
        resized = msgspec.structs.replace(message, vector=memoryview(vector))
        refused(cohort, forge(cohort, LIAR, resized), "wrong_length" if change < 0 else "too_large")
        finishes_without_the_liar(cohort, outbox, HONEST)

    def test_two_uploads(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "mask")
        ((_, upload),) = cohort.clients[LIAR].receive(outbox[LIAR])
        cohort.server.receive(LIAR, upload)
        another = msgspec.structs.replace(
            read(cohort, LIAR, upload, messages.Mask), vector=memoryview(bytes(RING.wire_bytes))
        )
        refused(cohort, forge(cohort, LIAR, another), "not_expected")
        finishes_without_the_liar(cohort, outbox, EVERYONE)

    def test_an_upload_in_another_clients_name(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "mask")
        ((_, upload),) = cohort.clients[LIAR].receive(outbox[LIAR])
        refused(cohort, upload, "bad_tag", sender=1)
        message = msgspec.structs.replace(read(cohort, LIAR, upload, messages.Mask), sender=1)
        refused(cohort, forge(cohort, LIAR, message), "wrong_sender")
        finishes_without_the_liar(cohort, outbox, HONEST)

    def test_an_upload_of_another_session(self, cohort: Cohort) -> None:
        other = cohort_of(label="other")
        ((_, old),) = other.clients[LIAR].receive(play_until(other, "mask")[LIAR])
        outbox = play_until(cohort, "mask")
        refused(cohort, old, "wrong_session")
        finishes_without_the_liar(cohort, outbox, HONEST)

    def test_a_damaged_upload(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "mask")
        ((_, upload),) = cohort.clients[LIAR].receive(outbox[LIAR])
        for place in (3, 40, len(upload) // 2, len(upload) - 1):
            damaged = upload[:place] + bytes([upload[place] ^ 1]) + upload[place + 1 :]
            refused(cohort, damaged, "wrong_session" if place < wire.HEADER_BYTES and place > 4 else "bad_tag")
        for version in (b"\x01", b"\x02", b"\x03", b"\x05"):
            refused(cohort, version + upload[1:], "wrong_version")
        refused(cohort, upload[: wire.HEADER_BYTES + 1], "malformed")
        cohort.server.receive(LIAR, upload)
        finishes_without_the_liar(cohort, outbox, EVERYONE)

    def test_a_client_that_did_not_share(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "mask", {"share": {LIAR}})
        refused(cohort, b"anything", "not_expected")
        finishes_without_the_liar(cohort, outbox, HONEST)

    @pytest.mark.parametrize("sender", [-1, 6, 10**9])
    def test_a_sender_that_is_not_on_the_roster(self, cohort: Cohort, sender: int) -> None:
        play_until(cohort, "mask")
        refused(cohort, b"anything", "stranger", sender=sender)
        assert cohort.server.faults == ()


class TestReply:
    @pytest.mark.parametrize("step", ["share", "check", "mask", "agree", "unmask"])
    def test_an_answer_to_another_message(self, cohort: Cohort, step: str) -> None:
        """What the client was shown is not what this server sent, say because it lost its memory in between."""
        outbox = play_until(cohort, step)
        kind = STEPS[step].answers
        message = answer(cohort, outbox, kind)
        refused(cohort, forge(cohort, LIAR, msgspec.structs.replace(message, reply_to=bytes(32))), "wrong_reply")


class TestAgree:
    def test_a_signature_over_another_list(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "agree")
        message = answer(cohort, outbox, messages.Agree)
        other = cohort.identities[LIAR].sign(b"another list")
        refused(cohort, forge(cohort, LIAR, msgspec.structs.replace(message, signature=other)), "bad_signature")
        finishes_without_the_liar(cohort, outbox, EVERYONE)


class TestUnmask:
    def lie(self, cohort: Cohort, code: str, **changes) -> None:
        """The message is refused, the liar counts as vanished, its vector stays in the exact sum."""
        outbox = play_until(cohort, "unmask")
        message = answer(cohort, outbox, messages.Unmask)
        refused(cohort, forge(cohort, LIAR, msgspec.structs.replace(message, **changes)), code)
        finishes_without_the_liar(cohort, outbox, EVERYONE)

    @pytest.mark.parametrize("key", [bytes(32), b"\1" + bytes(31), b"\xff" * 32], ids=["zero", "another", "too large"])
    def test_another_self_mask_key(self, cohort: Cohort, key: bytes) -> None:
        self.lie(cohort, "bad_self_key", self_key=key)

    def test_a_share_that_is_not_the_one_dealt(self, cohort: Cohort) -> None:
        self.lie(cohort, "bad_share", owners=(0,), shares=bytes(32))

    def test_a_share_of_the_other_kind(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "unmask")
        other = inside(cohort.clients[LIAR]).state.held[0][32:]
        message = answer(cohort, outbox, messages.Unmask)
        refused(cohort, forge(cohort, LIAR, msgspec.structs.replace(message, owners=(0,), shares=other)), "bad_share")

    @pytest.mark.parametrize("owners", [(LIAR,), (0, 0), (1, 0), (6,)])
    def test_owners_that_cannot_be(self, cohort: Cohort, owners: tuple[int, ...]) -> None:
        self.lie(cohort, "strangers", owners=owners, shares=bytes(32 * len(owners)))

    def test_shares_withheld(self, cohort: Cohort) -> None:
        """It said in its check message that it could use these shares."""
        outbox = play_until(cohort, "unmask")
        message = answer(cohort, outbox, messages.Unmask)
        fewer = msgspec.structs.replace(message, owners=message.owners[1:], shares=message.shares[32:])
        refused(cohort, forge(cohort, LIAR, fewer), "withheld")
        finishes_without_the_liar(cohort, outbox, EVERYONE)

    def test_shares_of_the_wrong_length(self, cohort: Cohort) -> None:
        self.lie(cohort, "wrong_length", owners=(0,), shares=bytes(33))

    def test_shares_of_a_client_that_never_shared(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "unmask", {"share": {4}})
        message = answer(cohort, outbox, messages.Unmask)
        refused(
            cohort, forge(cohort, LIAR, msgspec.structs.replace(message, owners=(4,), shares=bytes(32))), "strangers"
        )


class TestTooFew:
    """When the protocol cannot go on without the culprits, it ends with a name and without a sum."""

    @pytest.mark.parametrize(
        ("step", "code"),
        [
            ("advertise", "too_few_clients"),
            ("share", "too_few_clients"),
            ("check", "too_few_clients"),
            ("mask", "too_few_clients"),
            ("agree", "too_few_signatures"),
            ("unmask", "too_few_shares"),
        ],
    )
    def test_too_few_answer(self, cohort: Cohort, step: str, code: str) -> None:
        outbox = play_until(cohort, step)
        cohort.answer(outbox, (0, 1, 2))
        with pytest.raises(AggregationError) as abort:
            cohort.server.end_step()
        assert (abort.value.step, abort.value.code) == (step, code)
        assert cohort.server.step == "failed"
        assert inside(cohort.server).state.adverts == {}
        assert inside(cohort.server).sum is None
