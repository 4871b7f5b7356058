"""Secrets of one client of version 3, all derived from one 32-byte root, and every client's channel to the server.

A wipe overwrites the root. Only the root of these secrets is serialised, and only sealed. A resumed client repeats
identical messages, so no key encrypts two different messages.

The channel has one key per type of message, from the client's signed box key and the server's signed session key. In
version 4 the keys also depend on an ML-KEM secret. No third party can read, change or forge a message. The masked
vector is only authenticated: it is uniform to any party without the masks. The channel does not restrict the server;
the client's checks do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.secagg.interactive.dealing import Dealing, Secret, deal
from privstats.secagg.interactive.messages import Advertise, Mask, Open, Share, advert_statement, box_context
from privstats.secagg.interactive.state import ClientState
from privstats.secagg.keys import Identity, agree, derive, public_of
from privstats.secagg.prg import keystream
from privstats.secagg.scalars import WIDE_BYTES, KeyPair, canonical, key_pair, uniform
from privstats.secagg.wire import HEADER_BYTES, TAG_BYTES, Refusal, session_of, type_of

# Every box key seals one box, and a key of the channel serves one message, so a constant nonce is used once per key.
# The key is derived from a secret to which both sides add a fresh part in every session, for one client, one session
# and one type of message. A type has one sender and one step, and each machine builds one message of it. A repeat has
# identical bytes: answers follow from the root and the messages received, and only the newest state
# may be resumed (``Client.export``). Version 4's ``Share`` may differ when repeated: ``Channel._synthetic``.
NONCE = bytes(12)


class BoxKeys:
    """A client's X25519 key for boxes and for the channel."""

    def __init__(self, root: bytes | bytearray) -> None:
        self._root = root
        box_key = derive(root, "box-key")
        self._box_private, self.box_public = X25519PrivateKey.from_private_bytes(box_key), public_of(box_key)
        self._shared: dict[bytes, bytes] = {}

    def shared_with(self, public: bytes) -> bytes:
        """Agree on a secret; raises ``Refusal`` for a point of low order."""
        if public not in self._shared:
            try:
                self._shared[public] = agree(self._box_private, public)
            except ValueError:
                raise Refusal("bad_key", "a public key is a point of low order") from None
        return self._shared[public]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<derived from a private root>)"


class ClientSecrets(BoxKeys):
    """One client's secrets in one session of version 3."""

    def __init__(self, root: bytes | bytearray) -> None:
        super().__init__(root)
        self._mask_key, self._self_key = key_pair(derive(root, "mask-key")), key_pair(derive(root, "self-key"))
        self._mask_private = X25519PrivateKey.from_private_bytes(self._mask_key.private)
        self.self_key = canonical(self._self_key.scalar)
        self.mask_public, self.self_public = public_of(self._mask_key.private), public_of(self._self_key.private)

    def advertise(self, opening: Open, context: bytes, me: int, identity: Identity, state: ClientState) -> Advertise:
        """Return signed keys; raises ``Refusal`` for a key of low order."""
        del state  # version 4 stores a secret there
        self.shared_with(opening.server_key)
        keys = self.box_public, self.mask_public, self.self_public
        return Advertise(opening.session, me, *keys, identity.sign(advert_statement(context, me, *keys)))

    def channel_secret(self, state: ClientState) -> bytes:
        """Return the secret behind the channel's keys."""
        return self.shared_with(state.server_key)

    def deal(self, transcript: bytes, owner: int, holders: Sequence[int], threshold: int) -> Dealing:
        """Return proven shares of both keys for the neighbours.

        Blinds depend on the transcript, so no blind serves two challenges, even in a copied client.
        """
        both = (
            self._secret(self._self_key, "self", transcript, threshold),
            self._secret(self._mask_key, "mask", transcript, threshold),
        )
        return deal(both, transcript, owner, holders)

    def _secret(self, key: KeyPair, name: str, transcript: bytes, threshold: int) -> Secret:
        sign = derive(self._root, f"{name}-nonce-sign", salt=transcript)[0] & 1
        return Secret(
            key,
            key_pair(derive(self._root, f"{name}-nonce", salt=transcript), sign),
            sampled(derive(self._root, f"{name}-coefficients"), threshold - 1),
            sampled(derive(self._root, f"{name}-blinds", salt=transcript), threshold - 1),
        )

    def seal_box(self, shares: bytes, sender: int, receiver: Advertise, transcript: bytes) -> bytes:
        """Seal two shares, bound to session, sender, receiver and step."""
        context = box_context(receiver.session, sender, receiver.sender)
        return self._box(receiver.box_key, sender, receiver.sender, transcript).encrypt(NONCE, shares, context)

    def open_box(self, box: bytes, receiver: int, sender: Advertise, transcript: bytes) -> bytes:
        """Return the shares in ``sender``'s box; raises ``InvalidTag``."""
        context = box_context(sender.session, sender.sender, receiver)
        return self._box(sender.box_key, sender.sender, receiver, transcript).decrypt(NONCE, box, context)

    def _box(self, public: bytes, sender: int, receiver: int, transcript: bytes) -> AESGCM:
        return AESGCM(derive(self.shared_with(public), f"box/{sender}/{receiver}", salt=transcript))

    def pair_seed(self, me: int, other: Advertise, transcript: bytes) -> bytes:
        """Return the shared mask seed; raises ``Refusal`` for a point of low order."""
        try:
            return pair_seed(agree(self._mask_private, other.mask_key), transcript, (me, other.sender))
        except ValueError:
            raise Refusal("bad_key", f"client {other.sender}'s mask key is a point of low order") from None

    def links(self, state: ClientState) -> tuple[()]:
        """Return no links: mask keys reconstruct a pair's seed."""
        del state
        return ()

    def pair_seeds(self, others: Iterable[int], state: ClientState) -> Iterator[tuple[int, bytes]]:
        """Yield each other client, in order, with its mask seed."""
        me = state.advert.sender
        for other in others:
            yield other, self.pair_seed(me, cast("Advertise", state.adverts[other]), state.transcript)

    def revealed(self, transcript: bytes) -> bytes:
        """Return the self-mask key's private half, which a survivor reveals."""
        del transcript
        return self.self_key

    def self_stream(self, transcript: bytes) -> bytes:
        """Derive the key of this client's self-mask stream from its self-mask key."""
        return self_stream(self.self_key, transcript)


def pair_seed(shared: bytes, transcript: bytes, pair: tuple[int, int]) -> bytes:
    """Derive two clients' mask seed from their mask keys' shared secret."""
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

    def __init__(self, secret: bytes, *, session: bytes, client: int, hybrid: bool = False) -> None:
        self._secret, self._session, self._client, self._hybrid = secret, session, client, hybrid

    def seal(self, message: bytearray) -> bytes:
        """Encrypt all bytes after the header, except in a masked vector, and append a tag over the full message."""
        key = self._key(type_of(message))
        if type_of(message) == _MASK:
            message += key.encrypt(NONCE, b"", message)
            return bytes(message)
        header, body = bytes(message[:HEADER_BYTES]), message[HEADER_BYTES:]
        if not self._synthetic(message):
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
            if self._synthetic(data):
                nonce, sealed = bytes(sealed[: len(NONCE)]), sealed[len(NONCE) :]
            return memoryview(header + key.decrypt(nonce, sealed, header))
        except (InvalidTag, ValueError):  # ValueError: the message is shorter than a nonce
            raise Refusal("bad_tag") from None

    def _synthetic(self, message: bytearray | memoryview) -> bool:
        """Return whether content determines the nonce."""
        # A repeated ``Share`` of version 4 has different boxes, so a constant nonce would encrypt two contents.
        return self._hybrid and type_of(message) == _SHARE

    def _key(self, kind: int) -> AESGCM:
        return AESGCM(derive(self._secret, f"channel/{self._client}/{kind}", salt=self._session))

    def __repr__(self) -> str:
        return f"Channel(client={self._client})"
