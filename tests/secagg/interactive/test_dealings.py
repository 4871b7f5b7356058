"""Lies about what is dealt, each of which would end a session or spoil a sum, and costs its teller here.

Under version 2 one client that dealt shares of nothing ended every session after all others had uploaded. Now the
dealing proves itself before anybody uploads.
"""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from privstats.errors import RemoteProtocolError
from privstats.secagg.interactive import client_secrets, dealing, messages
from privstats.secagg.interactive.dealing import challenges_of, part
from privstats.secagg.interactive.messages import share_commitment
from privstats.secagg.keys import derive
from privstats.secagg.scalars import ORDER, checks, combine, split, to_bytes, uniform
from privstats.secagg.wire import HASH_BYTES
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


def polynomials(cohort: Cohort) -> list[list[int]]:
    """The coefficients of g and of its blinds, then of f and of its blinds."""
    return [scalars(str(at), cohort.parameters.threshold) for at in range(4)]


def no_polynomial(cohort: Cohort, outbox: dict[int, bytes]) -> bytes:
    """Shares that lie on no polynomial, answered for point by point."""
    values = np.array(scalars("values", 4 * len(HOLDERS)), object).reshape(-1, 4)
    return proven(cohort, outbox, values, values, (5, 6))


def proven(
    cohort: Cohort, outbox: dict[int, bytes], answered: np.ndarray, dealt: np.ndarray, at_zero: tuple[int, int]
) -> bytes:
    """The liar's Share: what it deals and commits to, and what its responses are of; g and its blind at 0.

    Of both, a row per holder: a share of g and its blind, then of f.
    """
    cohort.clients[LIAR].receive(outbox[LIAR])
    transcript = inside(cohort.clients[LIAR]).state.transcript
    key, blind = at_zero
    zero = share_commitment(transcript, dealing.POLYNOMIALS[0], LIAR, LIAR, to_bytes(key), to_bytes(blind))
    commitments = dealing.commitments_to(dealt, transcript, LIAR, HOLDERS)
    challenges = challenges_of(transcript, LIAR, zero + commitments)
    public = {
        "commitments": commitments,
        "responses": dealing.responses_to(answered, challenges),
        "proofs": zero + to_bytes((blind + challenges[0] * key) % ORDER),
    }
    return sealed(cohort, outbox, dealing.shares_in(dealt), **public)


def shared(cohort: Cohort, lie: Callable[[Cohort, dict[int, bytes]], bytes]) -> dict[int, bytes]:
    """Everybody shares, the liar its lie; what the server sends to check."""
    outbox = play_until(cohort, "share")
    cohort.answer(outbox, HONEST)
    cohort.server.receive(LIAR, lie(cohort, outbox))
    return dict(cohort.server.end_step())


def test_seven_sessions_in_a_row_go_on_without_the_liar_whom_the_server_names() -> None:
    for run in range(7):
        cohort = cohort_of(label=f"session {run}")
        with pytest.raises(RemoteProtocolError, match=f"client {LIAR} broke the protocol .* misdealt") as refusal:
            shared(cohort, no_polynomial)
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
        ("responses", 0, "misdealt"),
        ("responses", 32, "misdealt"),
        ("responses", 288, "misdealt"),
        ("proofs", 32, "misdealt"),
        ("responses", 31, "malformed"),
        ("proofs", 63, "malformed"),
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
def test_nobody_can_aim_responses_at_the_weights(kind: int) -> None:
    """Two responses are off the polynomial so that they cancel under weights that follow no secret."""
    cohort = cohort_of(8, 6)
    k = cohort.parameters.neighbours
    guessed = checks(k, [1] * (k + 1 - kind - cohort.parameters.threshold), kind)  # from point 0 for g, from 1 for f
    outbox = play_until(cohort, "share")
    message = read(cohort, LIAR, cohort.clients[LIAR].receive(outbox[LIAR])[0][1], messages.Share)
    pairs = [int.from_bytes(part(message.responses, place, 32), "little") for place in range(2 * k)]
    one, other = guessed[1 - kind], guessed[2 - kind]
    pairs[kind] += other
    pairs[2 + kind] -= one
    assert one * other - other * one == 0
    false = msgspec.structs.replace(message, responses=b"".join(to_bytes(z % ORDER) for z in pairs))
    with pytest.raises(RemoteProtocolError, match="do not lie on one polynomial"):
        cohort.server.receive(LIAR, forge(cohort, LIAR, false))


def test_another_clients_dealing_is_not_ones_own(cohort: Cohort) -> None:
    """Its responses have a low degree, but every commitment and challenge names the owner: no holder can use it."""
    outbox = play_until(cohort, "share")
    copied = read(cohort, 0, cohort.clients[0].receive(outbox[0])[0][1], messages.Share)
    client = inside(cohort.clients[LIAR])
    cohort.clients[LIAR].receive(outbox[LIAR])
    graph, state = inside(cohort.server).graph, client.state
    shares = inside(cohort.clients[0]).secrets().deal(
        state.transcript, 0, graph.neighbours(0), cohort.parameters.threshold
    ).shares  # fmt: skip
    public = {name: getattr(copied, name) for name in ("commitments", "responses", "proofs")}
    cohort.server.receive(LIAR, sealed(cohort, outbox, shares, **public))
    cohort.answer(outbox, HONEST)
    total, survivors = finish(cohort, dict(cohort.server.end_step()))
    assert survivors == HONEST
    assert np.array_equal(total, cohort.sum_over(HONEST))
    assert {(fault.peer, fault.code) for fault in cohort.clients[1].faults} == {(LIAR, "bad_share")}
    assert cohort.clients[LIAR].upload == b""


class TestHolders:
    """A dealer and a holder that lie together."""

    def conspire(self, cohort: Cohort) -> dict[int, bytes]:
        """The liar deals honestly, but what it commits to and boxes for client 4 is something else."""

        def lie(cohort: Cohort, outbox: dict[int, bytes]) -> bytes:
            rows = polynomials(cohort)
            cohort.clients[LIAR].receive(outbox[LIAR])
            client = inside(cohort.clients[LIAR])
            rows[0][0] = int.from_bytes(client.secrets().revealed(client.state.transcript), "little")
            values = split(rows, len(HOLDERS))
            false = values.copy()
            false[4] = (false[4] + 1) % ORDER
            return proven(cohort, outbox, values, false, (rows[0][0], rows[1][0]))

        return shared(cohort, lie)

    def keep(self, cohort: Cohort, outbox: dict[int, bytes]) -> None:
        """Client 4 answers that it can use everything, and keeps the false shares."""
        client = inside(cohort.clients[4])
        message = read(cohort, 4, outbox[4], messages.Deliver)
        cohort.clients[4].receive(outbox[4])
        box = part(message.boxes, 4, messages.BOX_BYTES)
        client.state.held[LIAR] = client.secrets().open_box(box, 4, client.state.adverts[LIAR], client.state.transcript)
        client.state.held = dict(sorted(client.state.held.items()))
        links = client.secrets().links(client.state)
        says = messages.Check(client.state.session, 4, client.state.reply_to, (), links)
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


class TestSecrecy:
    """What is public says nothing of the keys, unless a blind serves twice or holders answer different challenges."""

    def solved(self, one: messages.Share, two: messages.Share, contexts: tuple[bytes, bytes]) -> int:
        """(z - z') / (e - e') at 0, which is the self-mask key if both have one blind and one polynomial."""
        found = []
        for message, transcript in zip((one, two), contexts, strict=True):
            zero, response = message.proofs[:HASH_BYTES], message.proofs[HASH_BYTES:]
            e, _ = challenges_of(transcript, LIAR, zero + message.commitments)
            found.append((int.from_bytes(response, "little"), e))
        (z, e), (other_z, other_e) = found
        return (z - other_z) * pow(e - other_e, -1, ORDER) % ORDER

    @pytest.mark.parametrize("careless", [True, False])
    def test_two_transcripts_shown_to_one_client_and_its_copy(
        self, careless: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The double blinds with what follows from its root alone."""
        if careless:

            def unsalted(secret: bytes, label: str, salt: bytes = b"", size: int = 32) -> bytes:
                own = label.endswith(("coefficients", "blinds"))
                return derive(secret, label, salt=b"" if own else salt, size=size)

            monkeypatch.setattr(client_secrets, "derive", unsalted)
        cohort, other = cohort_of(), cohort_of()
        shown = play_until(cohort, "share"), play_until(other, "share", {"advertise": {4}})
        made = [
            each.clients[LIAR].receive(outbox[LIAR])[0][1] for each, outbox in zip((cohort, other), shown, strict=True)
        ]
        transcripts = tuple(inside(each.clients[LIAR]).state.transcript for each in (cohort, other))
        opened = [read(each, LIAR, data, messages.Share) for each, data in zip((cohort, other), made, strict=True)]
        key = int.from_bytes(inside(cohort.clients[LIAR]).secrets().revealed(transcripts[0]), "little")
        monkeypatch.undo()
        assert (self.solved(*opened, transcripts) == key) == careless

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
