"""Secrets of one client, all derived from one 32-byte root, and every client's channel to the server.

A client deals shares of two random polynomials, g and f, to its neighbours; g(0) keys its self-mask. The lower client
of a pair is the one with the lower index. The pair's secret is the lower client's f at the upper client's point. The
upper client holds that value as a share, and t others can reconstruct it. If the lower client vanishes, that client's f
yields the secret. If the upper client vanishes, that client's f yields a pad. The pad opens the *link*: the pair's
seed, which the lower client sent encrypted. No private key is shared. An attacker who breaks X25519 alone can open no
box.

Coefficients and blinds depend on the transcript, so a copied or restored client deals other polynomials in another
session. Encapsulations are random: a repeated step yields different ciphertexts. A wipe overwrites the root. Of these
secrets only the root and the secret encapsulated for the server are serialised, and only sealed.

The channel has one key per type of message, from the client's signed box key, the server's signed session key and an
ML-KEM secret. No third party can read, change or forge a message. The masked vector is only authenticated: it is
uniform to any party without the masks. The channel does not restrict the server; the client's checks do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.secagg import kem
from privstats.secagg.interactive.dealing import (
    POLYNOMIALS,
    Dealing,
    challenges_of,
    commitments_to,
    responses_to,
    shares_in,
)
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.messages import (
    SECRET_BYTES,
    Advertise,
    KnownAdvertise,
    Mask,
    Open,
    Share,
    advert_statement,
    box_context,
    share_commitment,
)
from privstats.secagg.interactive.state import ClientState
from privstats.secagg.keys import Identity, agree, derive, public_of
from privstats.secagg.prg import keystream
from privstats.secagg.scalars import ORDER, WIDE_BYTES, split, to_bytes, uniform
from privstats.secagg.wire import HEADER_BYTES, TAG_BYTES, Refusal, session_of, type_of

# Every box key seals one box, and a key of the channel serves one message, so a constant nonce is used once per key.
# The key is derived from a secret to which both sides add a fresh part in every session, for one client, one session
# and one type of message. A type has one sender and one step, and each machine builds one message of it. A repeat has
# identical bytes: answers follow from the root and the messages received, and only the newest state
# may be resumed (``Client.export``). ``Share`` may differ when repeated: ``_has_synthetic_nonce``.
NONCE = bytes(12)

_NAMES = ("self", "pair")
"""Names of the two polynomials g and f, in the order of :data:`~privstats.secagg.interactive.dealing.POLYNOMIALS`."""


class ClientSecrets:
    """One client's secrets in one session."""

    def __init__(self, root: bytes | bytearray, graph: Graph, me: int) -> None:
        self._root, self._graph, self._me = root, graph, me
        box_key = derive(root, "box-key")
        self._box_private, self.box_public = X25519PrivateKey.from_private_bytes(box_key), public_of(box_key)
        self._shared: dict[bytes, bytes] = {}
        self._pair_values: dict[bytes, list[int]] = {}

    @cached_property
    def _kem(self) -> MLKEM768PrivateKey:
        return kem.private_key(derive(self._root, "box-kem", size=kem.SEED_BYTES))

    def advertise(self, opening: Open, context: bytes, me: int, identity: Identity, state: ClientState) -> Advertise:
        """Return the signed keys; an invalid server key raises ``Refusal`` first."""
        self.shared_with(opening.server_key)
        secret, ciphertext = _encapsulated(opening.kem_key)
        public = kem.public_of(self._kem)
        keys = self.box_public, sha256(public).digest(), sha256(ciphertext).digest()
        signature = identity.sign(advert_statement(context, me, *keys))
        state.kem_secret = bytearray(secret)
        return Advertise(opening.session, me, self.box_public, public, ciphertext, signature)

    def shared_with(self, public: bytes) -> bytes:
        """Agree on a secret; raises ``Refusal`` for a point of low order."""
        if public not in self._shared:
            try:
                self._shared[public] = agree(self._box_private, public)
            except ValueError:
                raise Refusal("bad_key", "a public key is a point of low order") from None
        return self._shared[public]

    def channel_secret(self, state: ClientState) -> bytes:
        """Return the channel's secret."""
        return kem.combined(self.shared_with(state.server_key), bytes(state.kem_secret), state.advert.ciphertext)

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
        at_zero = share_commitment(transcript, POLYNOMIALS[0], owner, owner, to_bytes(key), to_bytes(blind))
        commitments = commitments_to(values, transcript, owner, holders)
        challenges = challenges_of(transcript, owner, at_zero + commitments)
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

    def links(self, state: ClientState) -> bytes:
        """Return pair seeds for owners of higher index with usable shares, each under a pad from that owner's f."""
        above = [owner for owner in state.sharers if owner > self._me and owner in state.held]
        joined = b""
        for owner, seed in self.pair_seeds(above, state):
            joined += xor(seed, link_pad(state.held[owner][SECRET_BYTES:], state.transcript, self._me, owner))
        return joined

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<derived from a private root>)"


def link_pad(value: bytes, transcript: bytes, lower: int, upper: int) -> bytes:
    """Derive a link's pad from the upper client's f at the lower's point."""
    return derive(value, f"link/{lower}/{upper}", salt=transcript)


def xor(one: bytes, other: bytes) -> bytes:
    """XOR two 32-byte strings."""
    return to_bytes(int.from_bytes(one, "little") ^ int.from_bytes(other, "little"))


def pair_seed(shared: bytes, transcript: bytes, pair: tuple[int, int]) -> bytes:
    """Derive two clients' mask seed from their pair's secret."""
    return derive(shared, f"mask/{min(pair)}/{max(pair)}", salt=transcript)


def self_stream(self_key: bytes, transcript: bytes) -> bytes:
    """Derive the key of a self-mask stream from a client's self-mask key."""
    return derive(self_key, "self-mask", salt=transcript)


def sampled(key: bytes, number: int) -> list[int]:
    """Derive uniform scalars from the keystream of ``key``."""
    return uniform(keystream(key, 0, 0, WIDE_BYTES * number))


_MASK, _SHARE = Mask.__struct_config__.tag, Share.__struct_config__.tag


class Channel:
    """One client's channel to the server, with one key per message type."""

    def __init__(self, secret: bytes, *, session: bytes, client: int) -> None:
        self._secret, self._session, self._client = secret, session, client

    def seal(self, message: bytearray) -> bytes:
        """Encrypt all bytes after the header, except in a masked vector, and append a tag over the full message."""
        key = self._key(type_of(message))
        if type_of(message) == _MASK:
            message += key.encrypt(NONCE, b"", message)
            return bytes(message)
        header, body = bytes(message[:HEADER_BYTES]), message[HEADER_BYTES:]
        if not _has_synthetic_nonce(message):
            return header + key.encrypt(NONCE, body, header)
        nonce = derive(self._secret, f"nonce/{self._client}", salt=sha256(body).digest(), size=len(NONCE))
        return header + nonce + key.encrypt(nonce, body, header)

    def open(self, data: memoryview) -> memoryview:
        """Verify the tag and return the unsealed message.

        Raises:
            Refusal: another session, or damaged, forged, or another sender's bytes.
        """
        if len(data) < HEADER_BYTES + TAG_BYTES:
            raise Refusal("malformed", "too short to carry a tag")
        if session_of(data) != self._session:
            raise Refusal("wrong_session")
        key = self._key(type_of(data))
        try:
            if type_of(data) == _MASK:
                key.decrypt(NONCE, data[-TAG_BYTES:], data[:-TAG_BYTES])
                return data[:-TAG_BYTES]
            header, sealed, nonce = bytes(data[:HEADER_BYTES]), data[HEADER_BYTES:], NONCE
            if _has_synthetic_nonce(data):
                nonce, sealed = bytes(sealed[: len(NONCE)]), sealed[len(NONCE) :]
            return memoryview(header + key.decrypt(nonce, sealed, header))
        except (InvalidTag, ValueError):  # ValueError: the message is shorter than a nonce
            raise Refusal("bad_tag") from None

    def _key(self, kind: int) -> AESGCM:
        return AESGCM(derive(self._secret, f"channel/{self._client}/{kind}", salt=self._session))

    def __repr__(self) -> str:
        return f"Channel(client={self._client})"


def _has_synthetic_nonce(message: bytearray | memoryview) -> bool:
    """Return whether content determines the nonce."""
    # A repeated ``Share`` has different boxes, so a constant nonce would encrypt two contents.
    return type_of(message) == _SHARE


def _encapsulated(public: bytes) -> tuple[bytes, bytes]:
    try:
        return kem.encapsulate(public)
    except ValueError:
        raise Refusal("bad_key", "an ML-KEM key is invalid: a number in it is not below 3329") from None
