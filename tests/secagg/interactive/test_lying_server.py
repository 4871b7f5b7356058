"""What a lying server tries, check by check, and the code with which an honest client refuses and wipes itself."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from privstats.errors import RemoteProtocolError
from privstats.secagg import Identity, kem
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.messages import advert_statement, context_of, open_statement, survivors_statement
from privstats.secagg.interactive.state import STEPS
from privstats.secagg.keys import derive, public_of
from privstats.secagg.wire import to_bitmap
from tests.secagg.interactive.cohorts import (
    Cohort,
    cohort_of,
    finish,
    lie,
    nothing,
    play_until,
    read,
    sparse_cohort,
    stream,
)
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


def altered(cohort: Cohort, outbox: dict[int, bytes], kind: type, **changes: Any) -> bytes:
    """The victim's message with some fields changed, under a valid tag."""
    return lie(cohort, VICTIM, msgspec.structs.replace(read(cohort, VICTIM, outbox[VICTIM], kind), **changes))


# --- lies that are one message, by what the victim is shown in place of it ---

Change = Callable[[Cohort, Any], dict[str, Any]]


def resigned(cohort: Cohort, sender: int, identity: Identity, **keys: bytes) -> messages.KnownAdvertise:
    """``sender``'s advertisement with other keys, signed by ``identity``."""
    advert = msgspec.structs.replace(inside(cohort.server).state.adverts[sender].known, **keys)
    statement = advert_statement(inside(cohort.server).context, sender, *advert.keys)
    return msgspec.structs.replace(advert, signature=identity.sign(statement))


def showing(advert: Callable[[Cohort], messages.KnownAdvertise]) -> Change:
    """The victim's adverts with client 1's replaced."""
    return lambda cohort, message: {
        "adverts": tuple(advert(cohort) if each.sender == 1 else each for each in message.adverts)
    }


OTHER_KEYS = {"box_key": b"x" * 32, "kem_key": kem.public_of(kem.private_key(bytes(64))), "ciphertext_hash": bytes(32)}


def substituted(key: str) -> Change:
    stranger = Identity.generate(stream("stranger"))
    return showing(lambda cohort: resigned(cohort, 1, stranger, **{key: OTHER_KEYS[key]}))


def of_an_earlier_session(cohort: Cohort) -> messages.KnownAdvertise:
    earlier = cohort_of(label="earlier")
    play_until(earlier, "share")
    session = inside(cohort.server).state.session
    return msgspec.structs.replace(inside(earlier.server).state.adverts[1].known, session=session)


def under_another_label(cohort: Cohort) -> messages.KnownAdvertise:
    return msgspec.structs.replace(inside(cohort.server).state.adverts[1].known, session=bytes(32))


def of_client_two(cohort: Cohort) -> messages.KnownAdvertise:
    return msgspec.structs.replace(inside(cohort.server).state.adverts[2].known, sender=1)


def cut(message: messages.Deliver, keep: Callable[[int], bool]) -> dict[str, Any]:
    """The dealings of some sharers alone."""
    kept = [place for place, sharer in enumerate(message.sharers) if keep(sharer)]
    sizes = dict.fromkeys(("commitments", "responses", "challenges"), messages.PAIR_BYTES)
    sizes["boxes"] = messages.BOX_BYTES
    fields = {
        name: b"".join(getattr(message, name)[place * size : (place + 1) * size] for place in kept)
        for name, size in sizes.items()
    }
    return {"sharers": tuple(message.sharers[place] for place in kept), **fields}


def shorter(field: str) -> Change:
    return lambda _, message: {field: getattr(message, field)[:-1]}


def resized(size: int) -> Change:
    return lambda _, message: {"proof": message.proof[:size] if size < 0 else message.proof + bytes(size)}


def bitmap(field: str, clients: set[int]) -> Change:
    return lambda cohort, _: {field: to_bitmap(clients, cohort.parameters.clients)}


def signed_by_one_that_is_gone(cohort: Cohort, message: messages.Agreement) -> dict[str, Any]:
    state = inside(cohort.server).state
    signature = cohort.identities[5].sign(survivors_statement(state.transcript, state.listed))
    return {"signers": (*message.signers[:-1], 5), "signatures": message.signatures[:-64] + signature}


def signed_in_an_earlier_session(_: Cohort, __: messages.Agreement) -> dict[str, Any]:
    earlier = cohort_of(label="earlier")
    old = read(earlier, VICTIM, play_until(earlier, "unmask")[VICTIM], messages.Agreement)
    return {"signers": old.signers, "signatures": old.signatures}


def twice(_: Cohort, message: messages.Agreement) -> dict[str, Any]:
    return {
        "signers": (message.signers[0], *message.signers[:-1]),
        "signatures": message.signatures[:64] + message.signatures[:-64],
    }


PARTS = ("boxes", "commitments", "responses", "challenges")
NO_BITMAPS = {"an empty bitmap": b"", "a bitmap with its padding set": b"\xff"}
"""The last would give one list a second encoding."""


def none(field: str) -> dict[str, tuple[Change, str]]:
    """What is no bitmap of the roster."""
    return {name: (lambda *_, data=data: {field: data}, "wrong_length") for name, data in NO_BITMAPS.items()}


OPENS = {step: row.opens for step, row in STEPS.items()}
LIES: dict[str, dict[str, tuple[Any, ...]]] = {
    # every key is signed by the roster's identity for this session, and everybody sees one transcript
    "share": {
        **{f"a substituted {key}": (substituted(key), "bad_signature") for key in OTHER_KEYS},
        "an earlier session's advertisement": (showing(of_an_earlier_session), "bad_signature"),
        "one client's signature under another's name": (showing(of_client_two), "bad_signature"),
        "keys under another session's label": (showing(under_another_label), "wrong_session"),
        "one client counted twice": (lambda _, it: {"adverts": (*it.adverts[:-1], it.adverts[-2])}, "out_of_order"),
        "a cohort too small to hide in": (lambda _, it: {"adverts": it.adverts[:2]}, "too_few_neighbours"),
        **{
            f"a proof of {size:+} bytes": (resized(size), "wrong_length", {"advertise": {5}})
            for size in (-32, -1, 1, 32)
        },
    },
    # a client takes shares only of neighbours that advertised, and goes on only if enough shared
    "check": {
        "too few shared": (lambda _, it: cut(it, lambda sharer: sharer < 3), "too_few_neighbours"),
        "a sharer that never advertised": (
            *(lambda _, it: {"sharers": (*it.sharers[:-1], 5)}, "strangers", {"advertise": {5}}),
        ),
        "a sharer listed twice": (lambda _, it: {"sharers": (1, *it.sharers[:-1])}, "out_of_order"),
        **{f"{field} of the wrong length": (shorter(field), "wrong_length") for field in PARTS},
    },
    # it masks only with neighbours that shared, and only if enough go on
    "mask": {
        "without the victim": (bitmap("dealers", {1, 2, 3, 4, 5}), "strangers"),
        "too few": (bitmap("dealers", {0, 1, 2}), "too_few_neighbours"),
        "nobody": (bitmap("dealers", set()), "strangers"),
        "somebody who did not share": (bitmap("dealers", {0, 1, 2, 3, 5}), "strangers", {"share": {5}}),
        **none("dealers"),
    },
    # the list is of clients that shared, holds this one, and is long enough
    "agree": {
        "the victim alone": (bitmap("survivors", {VICTIM}), "too_few_survivors"),
        "without the victim": (bitmap("survivors", {1, 2, 3, 4, 5}), "strangers"),
        "a client that never shared": (bitmap("survivors", {0, 1, 2, 3, 5}), "strangers", {"share": {5}}),
        **none("survivors"),
    },
    # shares leave only on a quorum of signatures over the very list that this client signed
    "unmask": {
        "too few signatures": (
            *(lambda _, it: {"signers": it.signers[:-1], "signatures": it.signatures[:-64]}, "too_few_neighbours"),
        ),
        "one signature counted twice": (twice, "out_of_order"),
        "a signature of a client that is gone": (signed_by_one_that_is_gone, "strangers", {"mask": {5}}),
        "signatures of the wrong length": (shorter("signatures"), "wrong_length"),
        "signatures from another session over the same list": (signed_in_an_earlier_session, "other_list"),
    },
}
"""By step, what the victim is shown in place of the truth, the code of its refusal, and who dropped out before."""


@pytest.mark.parametrize(("step", "what"), [(step, what) for step, lies in LIES.items() for what in lies])
def test_a_lie_is_refused_by_name(cohort: Cohort, step: str, what: str) -> None:
    change, code, *dropouts = LIES[step][what]
    assert cohort.parameters.quorum == 3
    data = play_until(cohort, step, *dropouts)[VICTIM]
    message = read(cohort, VICTIM, data, OPENS[step])
    refused(cohort, lie(cohort, VICTIM, msgspec.structs.replace(message, **change(cohort, message))), code)


# --- lies that take more ---
def test_a_downgraded_threshold(cohort: Cohort) -> None:
    weaker = cohort_of(6, 4, 0)
    assert weaker.parameters.threshold < cohort_of(6, 5, 2).parameters.threshold
    refused(cohort, weaker.server.start()[VICTIM][1], "wrong_plan", failed=False)


def test_a_session_key_of_low_order(cohort: Cohort) -> None:
    opening = read(cohort, VICTIM, play_until(cohort, "advertise")[VICTIM], messages.Open)
    context = context_of(inside(cohort.server).graph, opening.session, LOW_ORDER, opening.kem_key)
    signature = cohort.aggregator.sign(open_statement(context))
    bad = msgspec.structs.replace(opening, server_key=LOW_ORDER, signature=signature)
    refused(cohort, bytes(messages.encode(bad)), "bad_key", failed=False)
    assert inside(cohort.clients[VICTIM]).state.session == b""


def with_advert(cohort: Cohort, outbox: dict[int, bytes], advert: messages.KnownAdvertise) -> bytes:
    """The victim's adverts with client 1's replaced."""
    message = read(cohort, VICTIM, outbox[VICTIM], messages.Adverts)
    return altered(cohort, outbox, messages.Adverts, **showing(lambda _: advert)(cohort, message))


@pytest.mark.parametrize(("key", "value"), [("box_key", LOW_ORDER), ("kem_key", b"\xff" * kem.PUBLIC_BYTES)])
def test_a_colluders_key_to_which_nothing_is_sealed(cohort: Cohort, key: str, value: bytes) -> None:
    """The colluder signs it, the server lets it pass: the honest client must stop it."""
    outbox = play_until(cohort, "share")
    advert = resigned(cohort, 1, cohort.identities[1], **{key: value})
    refused(cohort, with_advert(cohort, outbox, advert), "bad_key")


def test_a_colluder_that_signs_one_key_for_the_victim_and_another_for_the_rest(cohort: Cohort) -> None:
    """Its two advertisements make two transcripts, so nobody's box opens at the victim, the colluder's or not."""
    outbox = play_until(cohort, "share")
    outbox[VICTIM] = with_advert(cohort, outbox, resigned(cohort, 1, cohort.identities[1], ciphertext_hash=b"m" * 32))
    deceived(cohort, outbox)
    refuses_the_list(cohort, dict(cohort.server.end_step())[VICTIM])


def test_a_graph_of_the_servers_choosing() -> None:
    """In a sparse graph the server shows an advertisement, honestly signed, of a client that is no neighbour."""
    cohort = sparse_cohort()
    outbox = play_until(cohort, "share")
    neighbours = inside(cohort.server).graph.neighbours(VICTIM)
    stranger = next(i for i in range(1, cohort.parameters.clients) if i not in neighbours)
    adverts = [
        *read(cohort, VICTIM, outbox[VICTIM], messages.Adverts).adverts[1:],
        inside(cohort.server).state.adverts[stranger].known,
    ]
    adverts.sort(key=lambda advert: advert.sender)
    refused(cohort, altered(cohort, outbox, messages.Adverts, adverts=tuple(adverts)), "strangers")


def test_two_rosters_shown_to_two_clients(cohort: Cohort) -> None:
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
    """The victim can use no box, so it masks with nobody and uploads nothing."""
    ((_, answer),) = cohort.clients[VICTIM].receive(boxes)
    here = sorted(inside(cohort.server).state.sharers)
    assert read(cohort, VICTIM, answer, messages.Check).failed == tuple(here[1:])
    with pytest.raises(RemoteProtocolError, match="too_few_neighbours"):
        cohort.clients[VICTIM].receive(dealers_message(cohort, set(here)))
    assert (cohort.clients[VICTIM].step, cohort.clients[VICTIM].upload) == ("failed", b"")
    assert inside(cohort.clients[VICTIM]).state.root == bytearray()


@pytest.mark.parametrize("what", ["redirected", "replayed", "damaged"])
def test_a_box_that_was_not_made_for_this_place(cohort: Cohort, what: str) -> None:
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
def test_shares_that_are_not_the_ones_proven(cohort: Cohort, field: str, half: int) -> None:
    outbox = play_until(cohort, "check")
    pairs = bytearray(getattr(read(cohort, VICTIM, outbox[VICTIM], messages.Deliver), field))
    pairs[half] ^= 1
    outbox[VICTIM] = altered(cohort, outbox, messages.Deliver, **{field: bytes(pairs)})
    cohort.clients[VICTIM].receive(outbox[VICTIM])
    assert [(fault.peer, fault.code) for fault in cohort.clients[VICTIM].faults] == [(1, "bad_share")]
    assert sorted(inside(cohort.clients[VICTIM]).state.held) == [2, 3, 4, 5]


def test_a_survivor_with_whom_the_victim_did_not_mask(cohort: Cohort) -> None:
    """The server leaves client 5 out at the victim alone, so that its vector would bear one mask less."""
    outbox = play_until(cohort, "mask")
    outbox[VICTIM] = dealers_message(cohort, {0, 1, 2, 3, 4})
    cohort.answer(outbox, range(6))
    refused(cohort, dict(cohort.server.end_step())[VICTIM], "strangers")


def dealers_message(cohort: Cohort, dealers: set[int]) -> bytes:
    bitmap = to_bitmap(dealers, cohort.parameters.clients)
    return lie(cohort, VICTIM, messages.Dealers(inside(cohort.server).state.session, bitmap, ()))


def survivors_message(cohort: Cohort, survivors: set[int]) -> bytes:
    bitmap = to_bitmap(survivors, cohort.parameters.clients)
    return lie(cohort, VICTIM, messages.Survivors(inside(cohort.server).state.session, bitmap))


def test_a_list_shorter_than_the_plan_allows() -> None:
    cohort = cohort_of(6, 5, 1)
    play_until(cohort, "agree")
    assert cohort.parameters.threshold == 4
    refused(cohort, survivors_message(cohort, {0, 1, 2, 3}), "too_few_survivors")


def test_a_list_that_cuts_the_victim_off_its_neighbours() -> None:
    cohort = sparse_cohort()
    play_until(cohort, "agree")
    dropped = set(inside(cohort.server).graph.neighbours(VICTIM)[:3])
    refused(cohort, survivors_message(cohort, set(range(20)) - dropped), "isolated")


def test_a_list_that_cuts_somebody_else_off() -> None:
    """Every client checks the whole list, not only its own place in it."""
    cohort = sparse_cohort()
    play_until(cohort, "agree")
    graph = inside(cohort.server).graph
    spared = {VICTIM, *graph.neighbours(VICTIM)}
    far = next(client for client in range(20) if not spared.intersection((client, *graph.neighbours(client))))
    dropped = set(graph.neighbours(far)[: 1 + cohort.parameters.neighbours - cohort.parameters.quorum])
    refused(cohort, survivors_message(cohort, set(range(20)) - dropped), "isolated")


def test_two_survivor_lists(cohort: Cohort) -> None:
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


@pytest.mark.parametrize(
    ("neighbours", "others", "code"), [(3, 12, "too_few_neighbours"), (4, 5, "too_few_signatures"), (4, 6, "")]
)
def test_on_a_random_graph_neighbours_and_a_majority_sign_the_list(neighbours: int, others: int, code: str) -> None:
    """t = 4 neighbours, and 11 of 20 clients with this one: one of both rules alone leaves a lie (theorem 8)."""
    cohort = sparse_cohort()
    outbox = play_until(cohort, "unmask")
    state, near = inside(cohort.server).state, inside(cohort.server).graph.neighbours(VICTIM)
    far = [client for client in range(20) if client not in (*near, VICTIM)]
    assert (len(near), cohort.parameters.threshold, cohort.parameters.signatures) == (6, 4, 11)
    signers = tuple(sorted((*near[:neighbours], *far[:others])))
    agreement = messages.Agreement(state.session, signers, b"".join(state.signatures[each] for each in signers))
    message = lie(cohort, VICTIM, agreement)
    if code:
        refused(cohort, message, code)
        return
    assert cohort.clients[VICTIM].receive(message)
    assert cohort.clients[VICTIM].step == "done"
    assert outbox[VICTIM]


def test_asking_twice(cohort: Cohort) -> None:
    outbox = play_until(cohort, "unmask")
    ((_, answer),) = cohort.clients[VICTIM].receive(outbox[VICTIM])
    assert cohort.clients[VICTIM].receive(outbox[VICTIM]) == [("server", answer)]
    with pytest.raises(RemoteProtocolError, match="this client is done"):
        cohort.clients[VICTIM].receive(
            lie(cohort, VICTIM, read(cohort, VICTIM, outbox[VICTIM], messages.Agreement))[:-1]
        )


def test_asking_for_both_kinds_of_share(cohort: Cohort) -> None:
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


def test_what_is_left_after_unmasking(cohort: Cohort) -> None:
    outbox = play_until(cohort, "unmask")
    client = cohort.clients[VICTIM]
    root = inside(client).state.root
    assert public_of(derive(root, "box-key")) == inside(client).state.advert.box_key
    client.receive(outbox[VICTIM])
    assert root == bytes(32)
    assert (
        inside(client).state.held,
        inside(client).vector,
        inside(client).secrets_cache,
        inside(client).channel_cache,
    ) == ({}, None, None, None)


@pytest.mark.parametrize("step", ["share", "check", "mask", "agree", "unmask"])
def test_a_damaged_message_changes_nothing(cohort: Cohort, step: str) -> None:
    outbox = play_until(cohort, step)
    good = outbox[VICTIM]
    damaged = good[:-1] + bytes([good[-1] ^ 4])
    refused(cohort, damaged, "bad_tag", failed=False)
    total, survivors = finish(cohort, outbox)
    assert survivors == (0, 1, 2, 3, 4, 5)
    assert np.array_equal(total, cohort.sum_over(survivors))


def test_a_message_for_another_client(cohort: Cohort) -> None:
    refused(cohort, play_until(cohort, "share")[1], "bad_tag", failed=False)


def test_a_message_of_another_session(cohort: Cohort) -> None:
    other = cohort_of(label="other")
    play_until(cohort, "share")
    refused(cohort, play_until(other, "share")[VICTIM], "wrong_session", failed=False)


def test_a_message_of_an_earlier_step(cohort: Cohort) -> None:
    old = play_until(cohort, "share")[VICTIM]
    cohort.clients[VICTIM].receive(old)
    refused(cohort, old[:-1] + b"!", "wrong_type", failed=False)
