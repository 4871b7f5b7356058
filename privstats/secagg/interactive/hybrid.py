"""Derive, deal and seal a client's keys of version 4, under X25519 and ML-KEM-768 together.

A client deals shares of two random polynomials, g and f, to its neighbours; g(0) keys its self-mask. The lower client
of a pair is the one with the lower index. The pair's secret is the lower client's f at the upper client's point. The
upper client holds that value as a share, and t others can reconstruct it. If the lower client vanishes, that client's f
yields the secret. If the upper client vanishes, that client's f yields a pad. The pad opens the *link*: the pair's
seed, which the lower client sent encrypted. No private key is shared. An attacker who breaks X25519 alone can open no
box.

Degrees are proved as in version 3, by z = u + e f with blinds that are used once; the challenge is a hash of
commitments. A verified share *is* the pair's secret. A dealing of false degree that passes the test can end a session
or change the dealer's own input, but no other input.

Coefficients and blinds depend on the transcript, so a copied or restored client deals other polynomials in another
session. Encapsulations are random: a repeated step yields different ciphertexts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256, sha512
from typing import cast

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.secagg import kem
from privstats.secagg.interactive.client_secrets import NONCE, BoxKeys, pair_seed, sampled, self_stream
from privstats.secagg.interactive.dealing import (
    KINDS,
    NOT_LOW,
    Dealing,
    Public,
    commitments_to,
    fits_share,
    part,
    responses_to,
    shares_in,
)
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.messages import (
    HYBRID_PROOF_BYTES,
    PAIR_BYTES,
    SECRET_BYTES,
    HybridAdvertise,
    HybridOpen,
    KnownAdvertise,
    advert_statement,
    box_context,
    dealing_challenge,
    share_commitment,
)
from privstats.secagg.interactive.state import ClientState
from privstats.secagg.keys import Identity, derive
from privstats.secagg.scalars import ORDER, scalar_of, split, to_bytes
from privstats.secagg.wire import HASH_BYTES, Refusal

_NAMES = ("self", "pair")
"""Names of the two polynomials g and f, in the order of :data:`~privstats.secagg.interactive.dealing.KINDS`."""


class HybridSecrets(BoxKeys):
    """One client's secrets in one session of version 4."""

    def __init__(self, root: bytes | bytearray, graph: Graph, me: int) -> None:
        super().__init__(root)
        self._graph, self._me = graph, me
        self._pair_values: dict[bytes, list[int]] = {}

    @cached_property
    def _kem(self) -> MLKEM768PrivateKey:
        return kem.private_key(derive(self._root, "box-kem", size=kem.SEED_BYTES))

    def advertise(
        self, opening: HybridOpen, context: bytes, me: int, identity: Identity, state: ClientState
    ) -> HybridAdvertise:
        """Return the signed keys; an invalid server key raises ``Refusal`` first."""
        self.shared_with(opening.server_key)
        secret, ciphertext = _encapsulated(opening.kem_key)
        public = kem.public_of(self._kem)
        keys = self.box_public, sha256(public).digest(), sha256(ciphertext).digest()
        signature = identity.sign(advert_statement(context, me, *keys))
        state.kem_secret = bytearray(secret)
        return HybridAdvertise(opening.session, me, self.box_public, public, ciphertext, signature)

    def channel_secret(self, state: ClientState) -> bytes:
        """Return the channel's secret."""
        ciphertext = cast("HybridAdvertise", state.advert).ciphertext
        return kem.combined(self.shared_with(state.server_key), bytes(state.kem_secret), ciphertext)

    def deal(self, transcript: bytes, owner: int, holders: Sequence[int], threshold: int) -> Dealing:
        """Return shares of both polynomials, with proven degree."""
        rows = [
            sampled(derive(self._root, f"{name}-{what}", salt=transcript), threshold)
            for name in _NAMES
            for what in ("coefficients", "blinds")
        ]
        values = split(rows, len(holders))
        self._pair_values = {transcript: values[:, 2].tolist()}
        key, blind = rows[0][0], rows[1][0]
        at_zero = share_commitment(transcript, KINDS[0], owner, owner, to_bytes(key), to_bytes(blind))
        commitments = commitments_to(values, transcript, owner, holders)
        challenges = _challenges(transcript, owner, at_zero + commitments)
        proofs = at_zero + to_bytes((blind + challenges[0] * key) % ORDER)
        return Dealing(shares_in(values), commitments, responses_to(values, challenges), proofs)

    def seal_box(self, shares: bytes, sender: int, receiver: KnownAdvertise, transcript: bytes) -> bytes:
        """Seal two shares behind an ML-KEM ciphertext, under a key of both secrets."""
        context = box_context(receiver.session, sender, receiver.sender)
        secret, ciphertext = _encapsulated(receiver.kem_key)
        key = self._box(receiver.box_key, secret, ciphertext, (sender, receiver.sender), transcript)
        return ciphertext + key.encrypt(NONCE, shares, context)

    def open_box(self, box: bytes, receiver: int, sender: KnownAdvertise, transcript: bytes) -> bytes:
        """Return a box's shares; raises ``InvalidTag``."""
        context = box_context(sender.session, sender.sender, receiver)
        ciphertext, sealed = box[: kem.CIPHERTEXT_BYTES], box[kem.CIPHERTEXT_BYTES :]
        secret = kem.decapsulate(self._kem, ciphertext)
        key = self._box(sender.box_key, secret, ciphertext, (sender.sender, receiver), transcript)
        return key.decrypt(NONCE, sealed, context)

    def _box(self, public: bytes, secret: bytes, ciphertext: bytes, ends: tuple[int, int], transcript: bytes) -> AESGCM:
        both = kem.combined(self.shared_with(public), secret, ciphertext)
        return AESGCM(derive(both, f"box/{ends[0]}/{ends[1]}", salt=transcript))

    def links(self, state: ClientState) -> tuple[bytes]:
        """Return pair seeds for owners of higher index with usable shares, each under a pad from that owner's f."""
        above = [owner for owner in state.sharers if owner > self._me and owner in state.held]
        joined = b""
        for owner, seed in self.pair_seeds(above, state):
            joined += xor(seed, link_pad(state.held[owner][SECRET_BYTES:], state.transcript, self._me, owner))
        return (joined,)

    def pair_seeds(self, others: Iterable[int], state: ClientState) -> Iterator[tuple[int, bytes]]:
        """Yield other clients, in order, with mask seeds."""
        for other in others:
            value = self._pair_value(other, state.transcript) if other > self._me else state.held[other][SECRET_BYTES:]
            yield other, pair_seed(value, state.transcript, (self._me, other))

    def _pair_value(self, other: int, transcript: bytes) -> bytes:
        if transcript not in self._pair_values:
            row = sampled(derive(self._root, "pair-coefficients", salt=transcript), self._graph.parameters.threshold)
            self._pair_values = {transcript: split([row], self._graph.parameters.neighbours)[:, 0].tolist()}
        return to_bytes(self._pair_values[transcript][self._graph.point(self._me, other) - 1])

    def revealed(self, transcript: bytes) -> bytes:
        """Return g(0), which a survivor reveals."""
        return to_bytes(sampled(derive(self._root, "self-coefficients", salt=transcript), 1)[0])

    def self_stream(self, transcript: bytes) -> bytes:
        """Derive this client's self-mask stream's key."""
        return self_stream(self.revealed(transcript), transcript)


def link_pad(value: bytes, transcript: bytes, lower: int, upper: int) -> bytes:
    """Derive a link's pad from the upper client's f at the lower's point."""
    return derive(value, f"link/{lower}/{upper}", salt=transcript)


def xor(one: bytes, other: bytes) -> bytes:
    """XOR two 32-byte strings."""
    return to_bytes(int.from_bytes(one, "little") ^ int.from_bytes(other, "little"))


def verified_degrees(
    commitments: bytes,
    responses: bytes,
    proofs: bytes,
    *,
    owner: int,
    transcript: bytes,
    weights: tuple[Sequence[int], Sequence[int]],
) -> Public:
    """Check that both polynomials' responses have degree < t; return the public part.

    Args:
        proofs: the commitment to g(0) and its response.
        weights: for g from point 0, for f from point 1.
    """
    holders = len(weights[1])
    lengths = len(commitments), len(responses), len(proofs)
    if lengths != (2 * HASH_BYTES * holders, PAIR_BYTES * holders, HYBRID_PROOF_BYTES):
        raise Refusal("wrong_length")
    try:
        values = [scalar_of(part(responses, place, SECRET_BYTES)) for place in range(len(KINDS) * holders)]
        lines = [scalar_of(part(proofs, 1, SECRET_BYTES)), *values[::2]], values[1::2]
    except ValueError:
        raise Refusal("malformed", "a number is not below the order of the curve") from None
    for kind, line, row in zip(KINDS, lines, weights, strict=True):
        if sum(weight * value for weight, value in zip(row, line, strict=True)) % ORDER:
            raise Refusal("misdealt", NOT_LOW.format("self-mask key" if kind == KINDS[0] else "pair secrets"))
    challenges = _challenges(transcript, owner, proofs[:HASH_BYTES] + commitments)
    return Public(commitments, responses, b"".join(map(to_bytes, challenges)), proofs)


def is_self_key(key: bytes, dealing: Public, owner: int, transcript: bytes) -> bool:
    """Return whether ``key`` is the committed g(0)."""
    e = part(dealing.challenges, 0, HASH_BYTES)
    at_zero, response = dealing.at_zero[:HASH_BYTES], dealing.at_zero[HASH_BYTES:]
    return fits_share(key, at_zero, response, e, transcript=transcript, kind=KINDS[0], owner=owner, holder=owner)


def _challenges(transcript: bytes, owner: int, commitments: bytes) -> list[int]:
    words = (dealing_challenge(transcript, kind, owner, commitments) for kind in KINDS)
    return [int.from_bytes(sha512(each).digest(), "little") % ORDER for each in words]


def _encapsulated(public: bytes) -> tuple[bytes, bytes]:
    try:
        return kem.encapsulate(public)
    except ValueError:
        raise Refusal("bad_key", "an ML-KEM key is invalid: a number in it is not below 3329") from None
