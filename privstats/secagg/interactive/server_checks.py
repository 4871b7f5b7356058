"""What the server checks before it accepts a client's message: each function stops one way in which a client can lie.

Pure functions; they return nothing or raise ``Refusal``, and the server goes on without the culprit. The server-side
half of the table in ``docs/protocol.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats.secagg import wire
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.statements import advert_statement, seed_commitment, share_commitment
from privstats.secagg.keys import agree, verify
from privstats.secagg.wire import Refusal

__all__ = ["check_advertise", "check_agree", "check_mask", "check_share", "check_unmask"]

Commitment = Callable[[int, int, bytes], bytes]


def check_advertise(message: messages.Advertise, public: bytes, context: bytes, private: X25519PrivateKey) -> None:
    """The identity on the roster signed these keys for this session, and no key is a point of low order."""
    statement = advert_statement(context, message.sender, message.box_key, message.mask_key, message.commitment)
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature")
    try:
        for key in (message.box_key, message.mask_key):
            agree(private, key)
    except ValueError:
        raise Refusal("bad_key") from None


def check_share(message: messages.Share, receivers: int) -> None:
    """There is one box and there are two commitments per receiver."""
    if len(message.boxes) != receivers * messages.BOX_BYTES:
        raise Refusal("wrong_length")
    if len(message.commitments) != receivers * 2 * wire.HASH_BYTES:
        raise Refusal("wrong_length")


def check_mask(message: messages.Mask, wire_bytes: int, owners: Collection[int]) -> None:
    """The vector has the ring's length, and boxes are called unusable only of those that sent this client one."""
    _check_owners(message.failed, owners)
    if len(message.vector) != wire_bytes:
        raise Refusal("wrong_length")


def check_agree(message: messages.Agree, public: bytes, statement: bytes) -> None:
    """The signature is over the one survivor list of this session."""
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature")


def check_unmask(
    message: messages.Unmask,
    *,
    advert: messages.Advertise,
    transcript: bytes,
    owners: Collection[int],
    survivors: Collection[int],
    commitment: Commitment,
) -> None:
    """The seed is the one committed to, and every share is the one its owner dealt, of the kind the list calls for.

    ``owners`` are those whose boxes this client could use, by what it said when it masked: it gives a share of each.
    """
    size = messages.SECRET_BYTES
    if seed_commitment(message.session, message.sender, message.seed) != advert.commitment:
        raise Refusal("bad_seed")
    _check_owners(message.owners, owners)
    if len(message.shares) != size * len(message.owners):
        raise Refusal("wrong_length")
    for place, owner in enumerate(message.owners):
        kind = b"s" if owner in survivors else b"k"
        share = message.shares[place * size : (place + 1) * size]
        if share_commitment(transcript, kind, owner, message.sender, share) != commitment(owner, message.sender, kind):
            raise Refusal("bad_share")
    if len(message.owners) < len(owners):
        raise Refusal("withheld", "it said that it could use the boxes of more clients than it gives shares of")


def _check_owners(listed: tuple[int, ...], owners: Collection[int]) -> None:
    if tuple(sorted(set(listed))) != listed or not set(listed) <= set(owners):
        raise Refusal("strangers")
