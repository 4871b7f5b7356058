"""What a lying server tries, check by check, and the code with which an honest client refuses and wipes itself."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from privstats.errors import RemoteProtocolError
from privstats.secagg import Identity, Parameters, Roster
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.signed_statements import (
    advert_statement,
    context_of,
    open_statement,
    survivors_statement,
)
from privstats.secagg.keys import derive, public_of
from privstats.secagg.scalars import key_pair
from privstats.secagg.wire import to_bitmap
from tests.secagg.interactive.cohorts import RING, Cohort, cohort_of, finish, lie, nothing, play_until, read, stream
from tests.secagg.interactive.inside import inside

VICTIM = 0
LOW_ORDER = bytes(32)


def refused(cohort: Cohort, data: bytes, code: str, *, failed: bool = True) -> None:
    """The victim refuses ``data`` with ``code``, blames the server, and has nothing left to give."""
    client, step = cohort.clients[VICTIM], cohort.clients[VICTIM].step
    with pytest.raises(RemoteProtocolError) as refusal:
        client.receive(data)
    assert (refusal.value.peer, refusal.value.step, refusal.value.code) == ("server", step, code)
    assert client.step == ("failed" if failed else step)
    if failed:
        assert inside(client).state.root == bytearray()
        with pytest.raises(RemoteProtocolError, match="one session"):
            client.receive(data)


def altered(cohort: Cohort, outbox: dict[int, bytes], kind: type, **changes) -> bytes:
    """The victim's message with some fields changed, under a valid tag."""
    return lie(cohort, VICTIM, msgspec.structs.replace(read(cohort, VICTIM, outbox[VICTIM], kind), **changes))


class TestAdvertise:
    """Nobody in the middle, no invented clients, no downgraded plan."""

    @pytest.mark.parametrize(("field", "code"), [("parameters", "wrong_plan"), ("roster", "wrong_roster")])
    def test_another_plan_or_roster(self, cohort: Cohort, field: str, code: str) -> None:
        opening = read(cohort, VICTIM, play_until(cohort, "advertise")[VICTIM], messages.Open)
        other = bytes(messages.encode(msgspec.structs.replace(opening, **{field: bytes(32)})))
        refused(cohort, other, code, failed=False)

    def test_a_downgraded_threshold(self, cohort: Cohort) -> None:
        weaker = cohort_of(6, 4, 0)
        assert weaker.parameters.threshold < cohort_of(6, 5, 2).parameters.threshold
        refused(cohort, weaker.server.start()[VICTIM][1], "wrong_plan", failed=False)

    def test_a_session_key_of_low_order(self, cohort: Cohort) -> None:
        opening = read(cohort, VICTIM, play_until(cohort, "advertise")[VICTIM], messages.Open)
        context = context_of(inside(cohort.server).graph, opening.session, LOW_ORDER)
        signature = cohort.aggregator.sign(open_statement(context))
        bad = msgspec.structs.replace(opening, server_key=LOW_ORDER, signature=signature)
        refused(cohort, bytes(messages.encode(bad)), "bad_key", failed=False)
        assert inside(cohort.clients[VICTIM]).state.session == b""


def with_advert(cohort: Cohort, outbox: dict[int, bytes], advert: messages.Advertise) -> bytes:
    """The victim's adverts with one replaced."""
    message = read(cohort, VICTIM, outbox[VICTIM], messages.Adverts)
    adverts = tuple(advert if each.sender == advert.sender else each for each in message.adverts)
    return altered(cohort, outbox, messages.Adverts, adverts=adverts)


def resigned(cohort: Cohort, sender: int, identity: Identity, **keys: bytes) -> messages.Advertise:
    """``sender``'s advertisement with other keys, signed by ``identity``."""
    advert = msgspec.structs.replace(inside(cohort.server).state.adverts[sender], **keys)
    statement = advert_statement(
        inside(cohort.server).context, sender, advert.box_key, advert.mask_key, advert.self_key
    )
    return msgspec.structs.replace(advert, signature=identity.sign(statement))


class TestShare:
    """Every key is signed by the roster's identity for this session, and everybody sees one transcript."""

    @pytest.mark.parametrize("key", ["box_key", "mask_key", "self_key"])
    def test_a_substituted_key(self, cohort: Cohort, key: str) -> None:
        outbox = play_until(cohort, "share")
        stranger = Identity.generate(stream("stranger"))
        refused(cohort, with_advert(cohort, outbox, resigned(cohort, 1, stranger, **{key: b"x" * 32})), "bad_signature")

    def test_an_advertisement_from_another_session(self, cohort: Cohort) -> None:
        earlier = cohort_of(label="earlier")
        play_until(earlier, "share")
        outbox = play_until(cohort, "share")
        old = msgspec.structs.replace(
            inside(earlier.server).state.adverts[1], session=inside(cohort.server).state.session
        )
        refused(cohort, with_advert(cohort, outbox, old), "bad_signature")

    def test_one_clients_signature_under_another_clients_name(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "share")
        posing = msgspec.structs.replace(inside(cohort.server).state.adverts[2], sender=1)
        refused(cohort, with_advert(cohort, outbox, posing), "bad_signature")

    @pytest.mark.parametrize("key", ["box_key", "mask_key"])
    def test_a_colluders_key_of_low_order(self, cohort: Cohort, key: str) -> None:
        """The colluder signs it, the server lets it pass: the honest client must stop it, at once or when it masks."""
        outbox = play_until(cohort, "share")
        advert = resigned(cohort, 1, cohort.identities[1], **{key: LOW_ORDER})
        data = with_advert(cohort, outbox, advert)
        if key == "box_key":
            refused(cohort, data, "bad_key")
            return
        cohort.clients[VICTIM].receive(data)
        inside(cohort.server).state.dealings = dict.fromkeys(range(6), nothing(5))
        cohort.clients[VICTIM].receive(dict(cohort.server.end_step())[VICTIM])
        refused(cohort, lie(cohort, VICTIM, messages.Dealers(inside(cohort.server).state.session, b"\x3f")), "bad_key")

    def test_a_colluder_that_signs_one_key_for_the_victim_and_another_for_the_rest(self, cohort: Cohort) -> None:
        """Its two advertisements make two transcripts, so nobody's box opens at the victim, the colluder's or not."""
        outbox = play_until(cohort, "share")
        outbox[VICTIM] = with_advert(cohort, outbox, resigned(cohort, 1, cohort.identities[1], mask_key=b"m" * 32))
        deceived(cohort, outbox)
        refuses_the_list(cohort, dict(cohort.server.end_step())[VICTIM])

    @pytest.mark.parametrize("change", [-32, -1, 1, 32])
    def test_a_proof_of_the_wrong_length(self, cohort: Cohort, change: int) -> None:
        outbox = play_until(cohort, "share", {"advertise": {5}})
        proof = read(cohort, VICTIM, outbox[VICTIM], messages.Adverts).proof
        proof = proof[:change] if change < 0 else proof + bytes(change)
        refused(cohort, altered(cohort, outbox, messages.Adverts, proof=proof), "wrong_length")

    def test_one_client_counted_twice(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "share")
        adverts = read(cohort, VICTIM, outbox[VICTIM], messages.Adverts).adverts
        refused(cohort, altered(cohort, outbox, messages.Adverts, adverts=(*adverts[:-1], adverts[-2])), "out_of_order")

    def test_a_graph_of_the_servers_choosing(self) -> None:
        """In a sparse graph the server shows an advertisement, honestly signed, of a client that is no neighbour."""
        cohort = sparse_cohort()
        outbox = play_until(cohort, "share")
        neighbours = inside(cohort.server).graph.neighbours(VICTIM)
        stranger = next(i for i in range(1, cohort.parameters.clients) if i not in neighbours)
        adverts = [
            *read(cohort, VICTIM, outbox[VICTIM], messages.Adverts).adverts[1:],
            inside(cohort.server).state.adverts[stranger],
        ]
        adverts.sort(key=lambda advert: advert.sender)
        refused(cohort, altered(cohort, outbox, messages.Adverts, adverts=tuple(adverts)), "strangers")

    def test_a_cohort_too_small_to_hide_in(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "share")
        few = read(cohort, VICTIM, outbox[VICTIM], messages.Adverts).adverts[: cohort.parameters.quorum - 1]
        refused(cohort, altered(cohort, outbox, messages.Adverts, adverts=few), "too_few_neighbours")

    def test_two_rosters_shown_to_two_clients(self, cohort: Cohort) -> None:
        """The victim is shown that client 5 advertised, the others that it did not: no box opens between them."""
        outbox = play_until(cohort, "share", {"advertise": {5}})
        proof = b"!" * 32 + read(cohort, VICTIM, outbox[VICTIM], messages.Adverts).proof[32:]
        outbox[VICTIM] = altered(cohort, outbox, messages.Adverts, proof=proof)
        deceived(cohort, outbox)
        boxes = dict(cohort.server.end_step())
        refuses_the_list(cohort, boxes[VICTIM])
        for client in range(1, 5):
            cohort.clients[client].receive(boxes[client])
        for client in range(1, 5):
            assert VICTIM not in inside(cohort.clients[client]).state.held
        shut_out = [(fault.peer, fault.code) for fault in cohort.clients[VICTIM].faults]
        assert shut_out == [(other, "bad_box") for other in range(1, 5)]
        for client in range(1, 5):
            assert [(fault.peer, fault.code) for fault in cohort.clients[client].faults] == [(VICTIM, "bad_box")]


def deceived(cohort: Cohort, outbox: dict[int, bytes]) -> None:
    """Everybody shares; the server takes the victim's dealing, which fits another transcript, as if it were good."""
    for client, message in outbox.items():
        ((_, answer),) = cohort.clients[client].receive(message)
        if client == VICTIM:
            inside(cohort.server).state.dealings[VICTIM] = nothing(5)
        else:
            cohort.server.receive(client, answer)


def refuses_the_list(cohort: Cohort, boxes: bytes) -> None:
    """The victim can use no box. It masks, which tells nobody anything, but agrees to no list and so never unmasks."""
    ((_, answer),) = cohort.clients[VICTIM].receive(boxes)
    here = sorted(inside(cohort.server).state.sharers)
    assert read(cohort, VICTIM, answer, messages.Check).failed == tuple(here[1:])
    everybody = messages.Dealers(inside(cohort.server).state.session, to_bitmap(here, cohort.parameters.clients))
    cohort.clients[VICTIM].receive(lie(cohort, VICTIM, everybody))
    with pytest.raises(RemoteProtocolError, match="which is unproven"):
        cohort.clients[VICTIM].receive(survivors_message(cohort, set(here)))
    assert cohort.clients[VICTIM].step == "failed"
    assert inside(cohort.clients[VICTIM]).state.root == bytearray()


def sparse_cohort() -> Cohort:
    parameters = Parameters(12, 4, 8, 1, 6, RING, b"p" * 32)
    return Cohort(parameters)


class TestCheck:
    """A client takes shares only of neighbours that advertised, and goes on only if enough shared."""

    def deliver(self, cohort: Cohort, outbox: dict[int, bytes], keep: Callable[[int], bool]) -> bytes:
        message = read(cohort, VICTIM, outbox[VICTIM], messages.Deliver)
        kept = [place for place, sharer in enumerate(message.sharers) if keep(sharer)]
        cut = dict.fromkeys(("commitments", "responses", "challenges"), messages.PAIR_BYTES)
        cut["boxes"] = messages.BOX_BYTES
        fields = {
            name: b"".join(getattr(message, name)[place * size : (place + 1) * size] for place in kept)
            for name, size in cut.items()
        }
        sharers = tuple(message.sharers[place] for place in kept)
        return altered(cohort, outbox, messages.Deliver, sharers=sharers, **fields)

    def test_too_few_shared(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "check")
        refused(
            cohort, self.deliver(cohort, outbox, lambda sharer: sharer < cohort.parameters.quorum), "too_few_neighbours"
        )

    def test_a_sharer_that_never_advertised(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "check", {"advertise": {5}})
        sharers = (*read(cohort, VICTIM, outbox[VICTIM], messages.Deliver).sharers[:-1], 5)
        refused(cohort, altered(cohort, outbox, messages.Deliver, sharers=sharers), "strangers")

    def test_a_sharer_listed_twice(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "check")
        sharers = (1, *read(cohort, VICTIM, outbox[VICTIM], messages.Deliver).sharers[:-1])
        refused(cohort, altered(cohort, outbox, messages.Deliver, sharers=sharers), "out_of_order")

    @pytest.mark.parametrize("field", ["boxes", "commitments", "responses", "challenges"])
    def test_boxes_of_the_wrong_length(self, cohort: Cohort, field: str) -> None:
        outbox = play_until(cohort, "check")
        short = getattr(read(cohort, VICTIM, outbox[VICTIM], messages.Deliver), field)[:-1]
        refused(cohort, altered(cohort, outbox, messages.Deliver, **{field: short}), "wrong_length")

    @pytest.mark.parametrize("what", ["redirected", "replayed", "damaged"])
    def test_a_box_that_was_not_made_for_this_place(self, cohort: Cohort, what: str) -> None:
        """Redirected from another receiver, replayed from another session, or damaged: its shares stay out."""
        outbox = play_until(cohort, "check")
        boxes = read(cohort, VICTIM, outbox[VICTIM], messages.Deliver).boxes
        if what == "redirected":
            wrong = read(cohort, 2, outbox[2], messages.Deliver).boxes[messages.BOX_BYTES : 2 * messages.BOX_BYTES]
        elif what == "replayed":
            earlier = cohort_of(label="earlier")
            wrong = read(earlier, VICTIM, play_until(earlier, "check")[VICTIM], messages.Deliver).boxes[
                : messages.BOX_BYTES
            ]
        else:
            wrong = bytes([boxes[0] ^ 1]) + boxes[1 : messages.BOX_BYTES]
        outbox[VICTIM] = altered(cohort, outbox, messages.Deliver, boxes=wrong + boxes[messages.BOX_BYTES :])
        total, survivors = finish(cohort, outbox)
        assert np.array_equal(total, cohort.sum_over(survivors))
        assert [(fault.peer, fault.step, fault.code) for fault in cohort.clients[VICTIM].faults] == [
            (1, "share", "bad_box")
        ]

    @pytest.mark.parametrize("half", [0, 32])
    @pytest.mark.parametrize("field", ["commitments", "responses", "challenges"])
    def test_shares_that_are_not_the_ones_proven(self, cohort: Cohort, field: str, half: int) -> None:
        outbox = play_until(cohort, "check")
        pairs = bytearray(getattr(read(cohort, VICTIM, outbox[VICTIM], messages.Deliver), field))
        pairs[half] ^= 1
        outbox[VICTIM] = altered(cohort, outbox, messages.Deliver, **{field: bytes(pairs)})
        cohort.clients[VICTIM].receive(outbox[VICTIM])
        assert [(fault.peer, fault.code) for fault in cohort.clients[VICTIM].faults] == [(1, "bad_share")]
        assert sorted(inside(cohort.clients[VICTIM]).state.held) == [2, 3, 4, 5]


class TestMask:
    """A client masks only with neighbours that shared, and only if enough go on."""

    @pytest.mark.parametrize(
        ("dealers", "code"),
        [({1, 2, 3, 4, 5}, "strangers"), ({0, 1, 2}, "too_few_neighbours"), (set(), "strangers")],
        ids=["without the victim", "too few", "nobody"],
    )
    def test_those_who_go_on(self, cohort: Cohort, dealers: set[int], code: str) -> None:
        play_until(cohort, "mask")
        refused(cohort, dealers_message(cohort, dealers), code)

    def test_somebody_who_did_not_share(self, cohort: Cohort) -> None:
        play_until(cohort, "mask", {"share": {5}})
        refused(cohort, dealers_message(cohort, {0, 1, 2, 3, 5}), "strangers")

    @pytest.mark.parametrize("bitmap", [b"", b"\xff"])
    def test_what_is_no_bitmap_of_the_roster(self, cohort: Cohort, bitmap: bytes) -> None:
        play_until(cohort, "mask")
        session = inside(cohort.server).state.session
        refused(cohort, lie(cohort, VICTIM, messages.Dealers(session, bitmap)), "wrong_length")

    def test_a_survivor_with_whom_the_victim_did_not_mask(self, cohort: Cohort) -> None:
        """The server leaves client 5 out at the victim alone, so that its vector would bear one mask less."""
        outbox = play_until(cohort, "mask")
        outbox[VICTIM] = dealers_message(cohort, {0, 1, 2, 3, 4})
        for client in range(6):
            cohort.server.receive(client, cohort.clients[client].receive(outbox[client])[0][1])
        refused(cohort, dict(cohort.server.end_step())[VICTIM], "strangers")


def dealers_message(cohort: Cohort, dealers: set[int]) -> bytes:
    bitmap = to_bitmap(dealers, cohort.parameters.clients)
    return lie(cohort, VICTIM, messages.Dealers(inside(cohort.server).state.session, bitmap))


def survivors_message(cohort: Cohort, survivors: set[int]) -> bytes:
    bitmap = to_bitmap(survivors, cohort.parameters.clients)
    return lie(cohort, VICTIM, messages.Survivors(inside(cohort.server).state.session, bitmap))


class TestAgree:
    """The list is of clients that shared, holds this one, is long enough, and isolates nobody."""

    def test_a_list_shorter_than_the_plan_allows(self) -> None:
        cohort = cohort_of(6, 5, 1)
        play_until(cohort, "agree")
        assert cohort.parameters.threshold == 4
        refused(cohort, survivors_message(cohort, {0, 1, 2, 3}), "too_few_survivors")

    def test_a_list_of_the_victim_alone(self, cohort: Cohort) -> None:
        play_until(cohort, "agree")
        refused(cohort, survivors_message(cohort, {VICTIM}), "too_few_survivors")

    def test_a_list_without_the_victim(self, cohort: Cohort) -> None:
        play_until(cohort, "agree")
        refused(cohort, survivors_message(cohort, {1, 2, 3, 4, 5}), "strangers")

    def test_a_list_with_a_client_that_never_shared(self, cohort: Cohort) -> None:
        play_until(cohort, "agree", {"share": {5}})
        refused(cohort, survivors_message(cohort, {0, 1, 2, 3, 5}), "strangers")

    def test_a_list_that_cuts_the_victim_off_its_neighbours(self) -> None:
        cohort = sparse_cohort()
        play_until(cohort, "agree")
        dropped = set(inside(cohort.server).graph.neighbours(VICTIM)[:3])
        refused(cohort, survivors_message(cohort, set(range(12)) - dropped), "isolated")

    def test_a_list_that_cuts_somebody_else_off(self) -> None:
        """Every client checks the whole list, not only its own place in it."""
        cohort = sparse_cohort()
        play_until(cohort, "agree")
        graph = inside(cohort.server).graph
        spared = {VICTIM, *graph.neighbours(VICTIM)}
        far = next(client for client in range(12) if client not in spared)
        dropped = set(graph.neighbours(far)) - spared
        assert len(dropped) > cohort.parameters.neighbours - cohort.parameters.quorum
        refused(cohort, survivors_message(cohort, set(range(12)) - dropped), "isolated")

    @pytest.mark.parametrize("bitmap", [b"", b"\xff"])
    def test_a_list_that_is_not_a_bitmap_of_the_roster(self, cohort: Cohort, bitmap: bytes) -> None:
        """The last has its padding bits set, which would give one list a second encoding."""
        play_until(cohort, "agree")
        session = inside(cohort.server).state.session
        refused(cohort, lie(cohort, VICTIM, messages.Survivors(session, bitmap)), "wrong_length")


class TestUnmask:
    """Shares leave only on a quorum of signatures over the very list this client signed, once, one kind per peer."""

    def test_too_few_signatures(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "unmask")
        message = read(cohort, VICTIM, outbox[VICTIM], messages.Agreement)
        fewer = {"signers": message.signers[:-1], "signatures": message.signatures[:-64]}
        refused(cohort, altered(cohort, outbox, messages.Agreement, **fewer), "too_few_neighbours")

    def test_one_signature_counted_twice(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "unmask")
        message = read(cohort, VICTIM, outbox[VICTIM], messages.Agreement)
        twice = {
            "signers": (message.signers[0], *message.signers[:-1]),
            "signatures": message.signatures[:64] + message.signatures[:-64],
        }
        refused(cohort, altered(cohort, outbox, messages.Agreement, **twice), "out_of_order")

    def test_signatures_of_clients_that_are_not_survivors(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "unmask", {"mask": {5}})
        message = read(cohort, VICTIM, outbox[VICTIM], messages.Agreement)
        statement = survivors_statement(inside(cohort.server).state.transcript, inside(cohort.server).state.listed)
        signatures = message.signatures[:-64] + cohort.identities[5].sign(statement)
        posing = {"signers": (*message.signers[:-1], 5), "signatures": signatures}
        refused(cohort, altered(cohort, outbox, messages.Agreement, **posing), "strangers")

    def test_signatures_of_the_wrong_length(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "unmask")
        signatures = read(cohort, VICTIM, outbox[VICTIM], messages.Agreement).signatures[:-1]
        refused(cohort, altered(cohort, outbox, messages.Agreement, signatures=signatures), "wrong_length")

    def test_two_survivor_lists(self, cohort: Cohort) -> None:
        """Half the clients are shown that client 5 survived, half that it dropped: neither half unmasks."""
        play_until(cohort, "agree")
        shown = {client: {0, 1, 2, 3, 4} | ({5} if client % 2 else set()) for client in range(6)}
        signatures = {}
        for client in (0, 1, 2, 3, 4, 5):
            if client not in shown[client]:
                continue
            bitmap = to_bitmap(shown[client], 6)
            message = lie(cohort, client, messages.Survivors(inside(cohort.server).state.session, bitmap))
            ((_, answer),) = cohort.clients[client].receive(message)
            signatures[client] = read(cohort, client, answer, messages.Agree).signature
        signers = (1, 2, 4)
        agreement = messages.Agreement(
            inside(cohort.server).state.session, signers, b"".join(signatures[signer] for signer in signers)
        )
        refused(cohort, lie(cohort, VICTIM, agreement), "other_list")

    def test_signatures_from_another_session_over_the_same_list(self, cohort: Cohort) -> None:
        earlier = cohort_of(label="earlier")
        old = read(earlier, VICTIM, play_until(earlier, "unmask")[VICTIM], messages.Agreement)
        outbox = play_until(cohort, "unmask")
        replayed = {"signers": old.signers, "signatures": old.signatures}
        refused(cohort, altered(cohort, outbox, messages.Agreement, **replayed), "other_list")

    def test_asking_twice(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "unmask")
        ((_, answer),) = cohort.clients[VICTIM].receive(outbox[VICTIM])
        assert cohort.clients[VICTIM].receive(outbox[VICTIM]) == [("server", answer)]
        with pytest.raises(RemoteProtocolError, match="this client is done"):
            cohort.clients[VICTIM].receive(
                lie(cohort, VICTIM, read(cohort, VICTIM, outbox[VICTIM], messages.Agreement))[:-1]
            )

    def test_asking_for_both_kinds_of_share(self, cohort: Cohort) -> None:
        """The request has no place to name a kind: each share's kind follows from the signed list alone."""
        outbox = play_until(cohort, "unmask", {"mask": {5}})
        held = dict(inside(cohort.clients[VICTIM]).state.held)
        ((_, answer),) = cohort.clients[VICTIM].receive(outbox[VICTIM])
        message = read(cohort, VICTIM, answer, messages.Unmask)
        assert message.owners == (1, 2, 3, 4, 5)
        shares = {owner: message.shares[32 * place :][:32] for place, owner in enumerate(message.owners)}
        assert all(shares[owner] == held[owner][:32] for owner in (1, 2, 3, 4))
        assert shares[5] == held[5][32:]
        assert not any(held[owner][32:] in answer for owner in (1, 2, 3, 4))
        assert held[5][:32] not in answer

    def test_what_is_left_after_unmasking(self, cohort: Cohort) -> None:
        outbox = play_until(cohort, "unmask")
        client = cohort.clients[VICTIM]
        root = inside(client).state.root
        assert public_of(key_pair(derive(root, "self-key")).private) == inside(client).state.advert.self_key
        client.receive(outbox[VICTIM])
        assert root == bytes(32)
        assert (
            inside(client).state.held,
            inside(client).vector,
            inside(client).secrets_cache,
            inside(client).channel_cache,
        ) == (
            {},
            None,
            None,
            None,
        )


class TestNetwork:
    """Damage on the way is refused without harm: the good message is still welcome."""

    @pytest.mark.parametrize("step", ["share", "check", "mask", "agree", "unmask"])
    def test_a_damaged_message_changes_nothing(self, cohort: Cohort, step: str) -> None:
        outbox = play_until(cohort, step)
        good = outbox[VICTIM]
        damaged = good[:-1] + bytes([good[-1] ^ 4])
        refused(cohort, damaged, "bad_tag", failed=False)
        total, survivors = finish(cohort, outbox)
        assert survivors == (0, 1, 2, 3, 4, 5)
        assert np.array_equal(total, cohort.sum_over(survivors))

    def test_a_message_for_another_client(self, cohort: Cohort) -> None:
        refused(cohort, play_until(cohort, "share")[1], "bad_tag", failed=False)

    def test_a_message_of_another_session(self, cohort: Cohort) -> None:
        other = cohort_of(label="other")
        play_until(cohort, "share")
        refused(cohort, play_until(other, "share")[VICTIM], "wrong_session", failed=False)

    def test_a_message_of_an_earlier_step(self, cohort: Cohort) -> None:
        old = play_until(cohort, "share")[VICTIM]
        cohort.clients[VICTIM].receive(old)
        refused(cohort, old[:-1] + b"!", "wrong_type", failed=False)

    def test_a_client_of_another_plan_does_not_even_answer(self, cohort: Cohort) -> None:
        parameters = Parameters.solve(clients=6, min_survivors=4, colluders=1, ring=RING, plan_digest=b"q" * 32)
        cohort.clients[VICTIM] = cohort.client(VICTIM, parameters=parameters)
        refused(cohort, cohort.server.start()[VICTIM][1], "wrong_plan", failed=False)

    def test_a_client_of_another_roster_does_not_even_answer(self, cohort: Cohort) -> None:
        publics = (*cohort.roster.publics[:-1], Identity.generate(stream("newcomer")).public)
        cohort.clients[VICTIM] = cohort.client(VICTIM, roster=Roster(publics, server=cohort.aggregator.public))
        refused(cohort, cohort.server.start()[VICTIM][1], "wrong_roster", failed=False)
