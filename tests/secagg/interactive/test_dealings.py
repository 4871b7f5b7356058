"""Lies about what is dealt, each of which ends a session on a deliberately weakened machine and costs its teller here.

Under version 2 one client that dealt shares of nothing, or of another key, ended every session after all others had
uploaded. Now the dealing proves itself before anybody uploads.
"""

import os
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from privstats.errors import AggregationError, RemoteProtocolError
from privstats.secagg import wire
from privstats.secagg.interactive import client_secrets, dealing, messages
from privstats.secagg.interactive.client_secrets import ClientSecrets
from privstats.secagg.interactive.dealing import part
from privstats.secagg.interactive.messages import dealing_statement, share_commitment
from privstats.secagg.keys import derive, public_of
from privstats.secagg.scalars import (
    ORDER,
    KeyPair,
    challenge,
    checks,
    combine,
    exchange,
    key_pair,
    point_of,
    split,
    to_bytes,
    uniform,
)
from tests.secagg import edwards
from tests.secagg.interactive.cohorts import Cohort, cohort_of, finish, forge, play_until, read, stream
from tests.secagg.interactive.inside import inside

LIAR, HONEST, EVERYONE = 5, (0, 1, 2, 3, 4), (0, 1, 2, 3, 4, 5)
HOLDERS = HONEST


def scalars(label: str, number: int) -> list[int]:
    return uniform(stream(label)(64 * number))


def sealed(cohort: Cohort, outbox: dict[int, bytes], shares: bytes, **public: bytes) -> bytes:
    """The liar's Share with other shares in its boxes and other public parts."""
    client = inside(cohort.clients[LIAR])
    ((_, answer),) = cohort.clients[LIAR].receive(outbox[LIAR])
    message = read(cohort, LIAR, answer, messages.Share)
    boxes = b"".join(
        client.secrets().seal_box(part(shares, place), LIAR, client.state.adverts[holder], client.state.transcript)
        for place, holder in enumerate(HOLDERS)
    )
    return forge(cohort, LIAR, msgspec.structs.replace(message, boxes=boxes, **public))


def another_key(cohort: Cohort, outbox: dict[int, bytes]) -> bytes:
    """Honest shares of other keys: polynomials of low degree, which no check of degrees refuses."""
    keys = (key_pair(os.urandom(32)), key_pair(os.urandom(32)))
    nonces = (key_pair(os.urandom(32)), key_pair(os.urandom(32)))
    values = split(polynomials(cohort, keys, nonces), len(HOLDERS))
    return proven(cohort, outbox, values, values, nonces, keys)


def polynomials(cohort: Cohort, keys: tuple[KeyPair, KeyPair], nonces: tuple[KeyPair, KeyPair]) -> list[list[int]]:
    """Of the self-mask key and its nonce, then of the mask key and its nonce."""
    secrets = [pair.scalar for key, nonce in zip(keys, nonces, strict=True) for pair in (key, nonce)]
    return [[secret, *scalars(str(at), cohort.parameters.threshold - 1)] for at, secret in enumerate(secrets)]


def no_polynomial(cohort: Cohort, outbox: dict[int, bytes]) -> bytes:
    """Shares that lie on no polynomial, answered for point by point; the proofs themselves are honest."""
    values = np.array(scalars("values", 4 * len(HOLDERS)), object).reshape(-1, 4)
    return proven(cohort, outbox, values, values, (key_pair(os.urandom(32)), key_pair(os.urandom(32))))


def proven(
    cohort: Cohort,
    outbox: dict[int, bytes],
    answered: np.ndarray,
    dealt: np.ndarray,
    nonces: tuple[KeyPair, KeyPair],
    keys: tuple[KeyPair, KeyPair] | None = None,
) -> bytes:
    """The liar's Share: what it deals and commits to, what its responses are of, under proofs of its keys or others.

    Of both, a row per holder: a share and its blind of the self-mask key, then of the mask key.
    """
    cohort.clients[LIAR].receive(outbox[LIAR])
    client = inside(cohort.clients[LIAR])
    commitments = b"".join(
        share_commitment(client.state.transcript, kind, LIAR, holder, to_bytes(line[2 * k]), to_bytes(line[2 * k + 1]))
        for holder, line in zip(HOLDERS, dealt, strict=True)
        for k, kind in enumerate(dealing.KINDS)
    )
    columns, proofs = [], b""
    for k, (kind, key) in enumerate(zip(dealing.KINDS, keys_of(client.secrets()), strict=True)):
        e = challenge(nonces[k].point, key.point, dealing_statement(client.state.transcript, kind, LIAR, commitments))
        columns.append((answered[:, 2 * k + 1] + e * answered[:, 2 * k]) % ORDER)
        proofs += nonces[k].point + to_bytes((nonces[k].scalar + e * (keys[k] if keys else key).scalar) % ORDER)
    responses = b"".join(to_bytes(z) for line in zip(*columns, strict=True) for z in line)
    shares = b"".join(to_bytes(f) for line in dealt for f in (line[0], line[2]))
    return sealed(cohort, outbox, shares, commitments=commitments, responses=responses, proofs=proofs)


def keys_of(secrets: ClientSecrets) -> tuple[KeyPair, KeyPair]:
    """Self-mask key and mask key."""
    return inside(secrets).self_key, inside(secrets).mask_key


LIES: dict[str, tuple[Callable[[Cohort, dict[int, bytes]], bytes], Callable[[Cohort, pytest.MonkeyPatch], None]]] = {
    "another key": (another_key, lambda _, patch: patch.setattr(dealing, "proves", lambda *_: True)),
    "no polynomial": (no_polynomial, lambda cohort, _: setattr(inside(cohort.server), "weights_cache", [0] * 6)),
}
"""By name, the lie and what makes the server fall for it."""


def shared(cohort: Cohort, lie: Callable[[Cohort, dict[int, bytes]], bytes]) -> dict[int, bytes]:
    """Everybody shares, the liar its lie; what the server sends to check."""
    outbox = play_until(cohort, "share")
    cohort.answer(outbox, HONEST)
    cohort.server.receive(LIAR, lie(cohort, outbox))
    return dict(cohort.server.end_step())


def to_the_end(cohort: Cohort, outbox: dict[int, bytes], vanishes: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """Honestly to the end, but the liar vanishes at a step."""
    while cohort.server.step not in ("done", "failed"):
        step = cohort.server.step
        for client, message in outbox.items():
            if client != LIAR or list(cohort.parameters.steps).index(step) < cohort.parameters.steps.index(vanishes):
                cohort.server.receive(client, cohort.clients[client].receive(message)[0][1])
        outbox = dict(cohort.server.end_step())
    total, survivors = cohort.server.result
    return total.lift(), survivors


@pytest.mark.parametrize(("vanishes", "what"), [("mask", "mask key"), ("unmask", "self-mask key")])
@pytest.mark.parametrize("lie", list(LIES))
def test_a_server_without_the_proof_is_ended_after_everybody_has_uploaded(
    lie: str, vanishes: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort = cohort_of()
    LIES[lie][1](cohort, monkeypatch)
    outbox = shared(cohort, LIES[lie][0])
    with pytest.raises(AggregationError, match=f"client {LIAR} dealt shares that do not reconstruct its {what}") as end:
        to_the_end(cohort, outbox, vanishes)
    assert isinstance(end.value.__cause__, RemoteProtocolError)
    assert (end.value.__cause__.peer, end.value.__cause__.code) == (LIAR, "misdealt")
    assert all(cohort.clients[client].upload for client in HONEST)


@pytest.mark.parametrize("lie", list(LIES))
def test_seven_sessions_in_a_row_go_on_without_the_liar_whom_the_server_names(lie: str) -> None:
    for run in range(7):
        cohort = cohort_of(label=f"session {run}")
        with pytest.raises(RemoteProtocolError, match=f"client {LIAR} broke the protocol .* misdealt") as refusal:
            shared(cohort, LIES[lie][0])
        assert refusal.value.proven
        assert not any(client.upload for client in cohort.clients)
        total, survivors = finish(cohort, dict(cohort.server.end_step()))
        assert survivors == HONEST
        assert np.array_equal(total, cohort.sum_over(HONEST))
        assert [(fault.peer, fault.step, fault.code) for fault in cohort.server.faults] == [(LIAR, "share", "misdealt")]
        assert cohort.clients[LIAR].upload == b""


@pytest.mark.parametrize(
    ("field", "place", "code"),
    [
        ("commitments", 0, "misdealt"),
        ("commitments", 319, "misdealt"),
        ("responses", 0, "misdealt"),
        ("responses", 32, "misdealt"),
        ("responses", 288, "misdealt"),
        ("proofs", 0, "misdealt"),
        ("proofs", 32, "misdealt"),
        ("proofs", 64, "misdealt"),
        ("proofs", 96, "misdealt"),
        ("responses", 31, "malformed"),
        ("proofs", 127, "malformed"),
    ],
)
def test_a_mutated_dealing_is_refused_by_name(cohort: Cohort, field: str, place: int, code: str) -> None:
    outbox = play_until(cohort, "share")
    message = read(cohort, LIAR, cohort.clients[LIAR].receive(outbox[LIAR])[0][1], messages.Share)
    mutated = bytearray(getattr(message, field))
    mutated[place] ^= 0x80 if code == "malformed" else 1
    false = msgspec.structs.replace(message, **{field: bytes(mutated)})
    with pytest.raises(RemoteProtocolError, match=code) as refusal:
        cohort.server.receive(LIAR, forge(cohort, LIAR, false))
    assert (refusal.value.peer, refusal.value.proven) == (LIAR, True)


@pytest.mark.parametrize("kind", [0, 1])
def test_nobody_can_aim_responses_at_the_weights(cohort: Cohort, kind: int) -> None:
    """Two responses are off the polynomial so that they cancel under weights that follow no secret."""
    k, spare = len(HOLDERS), len(HOLDERS) + 1 - cohort.parameters.threshold
    guessed = checks(k, [1] * spare)
    outbox = play_until(cohort, "share")
    message = read(cohort, LIAR, cohort.clients[LIAR].receive(outbox[LIAR])[0][1], messages.Share)
    pairs = [int.from_bytes(part(message.responses, place, 32), "little") for place in range(2 * k)]
    pairs[kind] += guessed[2]
    pairs[2 + kind] -= guessed[1]
    assert sum(weight * z for weight, z in zip(guessed[1:3], (guessed[2], -guessed[1]), strict=True)) == 0
    false = msgspec.structs.replace(message, responses=b"".join(to_bytes(z % ORDER) for z in pairs))
    with pytest.raises(RemoteProtocolError, match="do not lie on one polynomial"):
        cohort.server.receive(LIAR, forge(cohort, LIAR, false))


def test_another_clients_dealing_is_not_ones_own(cohort: Cohort) -> None:
    """It took the other's public keys, too, so only the owner's place under the proof is another."""
    cohort.clients[LIAR] = cohort.client(LIAR)
    inside(cohort.clients[LIAR]).secrets_cache = ClientSecrets(stream("cohort client 0")(32))
    outbox = play_until(cohort, "share")
    copied = read(cohort, 0, cohort.clients[0].receive(outbox[0])[0][1], messages.Share)
    own = inside(cohort.clients[LIAR])
    cohort.clients[LIAR].receive(outbox[LIAR])
    state = inside(cohort.server).state
    false = messages.Share(
        state.session, LIAR, own.state.reply_to, copied.boxes, copied.commitments, copied.responses, copied.proofs
    )
    with pytest.raises(RemoteProtocolError, match="misdealt"):
        cohort.server.receive(LIAR, own.channel().seal(messages.encode(false)))


class TestHolders:
    """A dealer and a holder that lie together."""

    def conspire(self, cohort: Cohort) -> dict[int, bytes]:
        """The liar deals honestly, but what it commits to and boxes for client 4 is something else."""

        def lie(cohort: Cohort, outbox: dict[int, bytes]) -> bytes:
            cohort.clients[LIAR].receive(outbox[LIAR])
            nonces = (key_pair(os.urandom(32)), key_pair(os.urandom(32)))
            keys = keys_of(inside(cohort.clients[LIAR]).secrets())
            values = split(polynomials(cohort, keys, nonces), len(HOLDERS))
            false = values.copy()
            false[4] = (false[4] + 1) % ORDER
            return proven(cohort, outbox, values, false, nonces)

        return shared(cohort, lie)

    def keep(self, cohort: Cohort, outbox: dict[int, bytes]) -> None:
        """Client 4 answers that it can use everything, and keeps the false shares."""
        client = inside(cohort.clients[4])
        message = read(cohort, 4, outbox[4], messages.Deliver)
        cohort.clients[4].receive(outbox[4])
        box = part(message.boxes, 4, messages.BOX_BYTES)
        client.state.held[LIAR] = client.secrets().open_box(box, 4, client.state.adverts[LIAR], client.state.transcript)
        says = messages.Check(client.state.session, 4, client.state.reply_to, ())
        cohort.server.receive(4, forge(cohort, 4, says))

    def play(self, cohort: Cohort) -> dict[int, bytes]:
        """Up to the last step, in which the liar is silent; its shares come from 1, 2, 3 and the conspirator."""
        outbox = self.conspire(cohort)
        self.keep(cohort, outbox)
        cohort.answer(outbox, (0, 1, 2, 3, LIAR))
        outbox = dict(cohort.server.end_step())
        for _ in ("mask", "agree"):
            cohort.answer(outbox)
            outbox = dict(cohort.server.end_step())
        return outbox

    def test_a_server_that_looks_at_commitments_alone_ends(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cohort = cohort_of()
        outbox = self.play(cohort)
        monkeypatch.setattr(dealing, "fits_share", lambda *_, **__: True)
        cohort.answer(outbox, (1, 2, 3, 4))
        with pytest.raises(AggregationError, match="misdealt"):
            cohort.server.end_step()

    def test_the_holder_is_named_and_the_others_shares_suffice(self) -> None:
        cohort = cohort_of()
        outbox = self.play(cohort)
        with pytest.raises(RemoteProtocolError, match="client 4 .* bad_share") as refusal:
            cohort.server.receive(4, cohort.clients[4].receive(outbox[4])[0][1])
        assert refusal.value.proven
        cohort.answer(outbox, (0, 1, 2, 3))
        cohort.server.end_step()
        total, survivors = cohort.server.result
        assert survivors == EVERYONE
        assert np.array_equal(total.lift(), cohort.sum_over(EVERYONE))


class TestOddKeys:
    """Keys that no honest client makes, of a client that deals them honestly and vanishes before it uploads."""

    def play(self, label: str, key: KeyPair, public: bytes) -> bool:
        """Whether the proof fits; then the sum is exact over the others."""
        cohort, secrets = cohort_of(label=label), ClientSecrets(stream(f"{label} client {LIAR}")(32))
        inside(secrets).mask_key, secrets.mask_public = key, public
        inside(cohort.clients[LIAR]).secrets_cache = secrets
        try:
            outbox = play_until(cohort, "mask")
        except RemoteProtocolError:
            return False
        total, survivors = finish(cohort, {client: data for client, data in outbox.items() if client != LIAR})
        assert inside(secrets).mask_key == key
        assert survivors == HONEST
        assert np.array_equal(total, cohort.sum_over(HONEST))
        return True

    @pytest.mark.parametrize("scalar", [1, 8, 8 * 3**40])
    def test_a_scalar_that_x25519_may_not_take(self, scalar: int) -> None:
        """Some have no private bytes at all; whoever puts them together must still lift the masks made with them."""
        public = exchange(scalar, (9).to_bytes(32, "little"))
        both = (KeyPair(signed, bytes(32), point_of(public)) for signed in (scalar, ORDER - scalar))
        assert [self.play("odd", key, public) for key in both].count(True) == 1

    def test_a_key_with_a_part_of_low_order(self) -> None:
        """Its proof fits for every other challenge, and X25519 ignores the part."""
        honest = key_pair(stream("torsion")(32))
        odd = edwards.encoded(edwards.add(edwards.decoded(honest.point), (0, edwards.P - 1)))
        y = int.from_bytes(odd, "little") & (1 << 255) - 1
        public = ((1 + y) * pow(1 - y, -1, edwards.P) % edwards.P).to_bytes(32, "little")
        assert public != public_of(honest.private)
        scalar = honest.scalar if odd == point_of(public) else ORDER - honest.scalar
        key = KeyPair(scalar, honest.private, point_of(public))
        assert any(self.play(f"try {number}", key, public) for number in range(20))


class TestSecrecy:
    """What is public says nothing of the keys, unless a blind serves twice or holders answer different challenges."""

    def solved(self, one: messages.Share, two: messages.Share, cohort: Cohort, contexts: tuple[bytes, bytes]) -> int:
        """(z - z') / (e - e') at 0, which is the mask key if both have one blind."""
        point, found = keys_of(inside(cohort.clients[LIAR]).secrets())[1].point, []
        for message, transcript in zip((one, two), contexts, strict=True):
            proof = message.proofs[wire.SIGNATURE_BYTES :]
            e = challenge(proof[:32], point, dealing_statement(transcript, b"k", LIAR, message.commitments))
            found.append((int.from_bytes(proof[32:], "little"), e))
        (z, e), (other_z, other_e) = found
        return (z - other_z) * pow(e - other_e, -1, ORDER) % ORDER

    @pytest.mark.parametrize("careless", [True, False])
    def test_two_transcripts_shown_to_one_client_and_its_copy(
        self, careless: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The double blinds with what follows from its root alone."""
        if careless:

            def unsalted(secret: bytes, label: str, salt: bytes = b"") -> bytes:
                return derive(secret, label, salt=salt if label.startswith("channel/") else b"")

            monkeypatch.setattr(client_secrets, "derive", unsalted)
        cohort, other = cohort_of(), cohort_of()
        shown = play_until(cohort, "share"), play_until(other, "share", {"advertise": {4}})
        made = [
            each.clients[LIAR].receive(outbox[LIAR])[0][1] for each, outbox in zip((cohort, other), shown, strict=True)
        ]
        transcripts = tuple(inside(each.clients[LIAR]).state.transcript for each in (cohort, other))
        monkeypatch.undo()
        opened = [read(cohort, LIAR, data, messages.Share) for data in made]
        key = keys_of(ClientSecrets(stream(f"cohort client {LIAR}")(32)))[1].scalar
        assert (self.solved(*opened, cohort, transcripts) == key) == careless

    def test_why_no_server_names_the_challenge(self) -> None:
        """Where each holder answers a challenge of the server's, r_x = l_x / c_x takes the key out and the blinds off.

        c is a codeword of the dual code, under which every polynomial of degree < t sums to zero, and l are Lagrange's
        coefficients at 0. With one challenge for all, which an honest dealer names once, the same sum is nothing.
        """
        t, k = 4, 9
        secret, nonce = scalars("key", 2)
        values = split([(secret, *scalars("f", t - 1)), (nonce, *scalars("u", t - 1))], k)
        dual = checks(k, [0, *scalars("dual", k - t)])[1:]  # weights that leave the value at 0 out
        lagrange = [combine(range(1, k + 1), [int(at == place) for at in range(k)]) for place in range(k)]
        chosen = [weight * pow(c, -1, ORDER) % ORDER for weight, c in zip(lagrange, dual, strict=True)]
        for challenges, result in ((chosen, secret), ([chosen[0]] * k, 0)):
            told = [(u + e * f) % ORDER for (f, u), e in zip(values, challenges, strict=True)]
            assert sum(c * z for c, z in zip(dual, told, strict=True)) % ORDER == result
