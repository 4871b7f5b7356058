"""What the server checks before it accepts a client's message: each function stops one way in which a client can lie.

Pure functions; they return nothing or raise ``Refusal``, and the server goes on without the culprit. The server-side
half of the table in ``docs/protocol.md``; a dealing has its own in ``dealing``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats.secagg.interactive import messages
from privstats.secagg.interactive.dealing import part
from privstats.secagg.interactive.statements import advert_statement
from privstats.secagg.keys import agree, verify
from privstats.secagg.scalars import fits, scalar_of
from privstats.secagg.wire import Refusal

__all__ = ["check_advertise", "check_agree", "check_check", "check_mask", "check_share", "check_unmask"]

Dealt = Callable[[int, bytes], bool]


def check_advertise(message: messages.Advertise, public: bytes, context: bytes, private: X25519PrivateKey) -> None:
    """The identity on the roster signed these keys for this session, and no key is a point of low order."""
    statement = advert_statement(context, message.sender, message.box_key, message.mask_key, message.self_key)
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature")
    try:
        for key in (message.box_key, message.mask_key, message.self_key):
            agree(private, key)
    except ValueError:
        raise Refusal("bad_key") from None


def check_share(message: messages.Share, receivers: int) -> None:
    """There is one box per receiver; the dealing's public part is checked by ``dealing.verified``."""
    if len(message.boxes) != receivers * messages.BOX_BYTES:
        raise Refusal("wrong_length")


def check_check(message: messages.Check, owners: Collection[int]) -> None:
    """Shares are called unusable only of those that dealt to this client."""
    _check_owners(message.failed, owners)


def check_mask(message: messages.Mask, wire_bytes: int) -> None:
    """The vector has the ring's length."""
    if len(message.vector) != wire_bytes:
        raise Refusal("wrong_length")


def check_agree(message: messages.Agree, public: bytes, statement: bytes) -> None:
    """The signature is over the one survivor list of this session."""
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature")


def check_unmask(
    message: messages.Unmask, *, advert: messages.Advertise, owners: Collection[int], dealt: Dealt
) -> None:
    """The self-mask key is the advertised one, and every share is the one dealt, of the kind the list calls for.

    ``owners`` are those whose shares this client could use, by what it said when it checked: it gives one of each.
    ``dealt`` says whether a share is an owner's.
    """
    size = messages.SECRET_BYTES
    if not _is_key(message.self_key, advert.self_key):
        raise Refusal("bad_self_key")
    _check_owners(message.owners, owners)
    if len(message.shares) != size * len(message.owners):
        raise Refusal("wrong_length")
    if not all(dealt(owner, part(message.shares, place, size)) for place, owner in enumerate(message.owners)):
        raise Refusal("bad_share")
    if len(message.owners) < len(owners):
        raise Refusal("withheld", "it said that it could use the shares of more clients than it gives")


def _is_key(key: bytes, public: bytes) -> bool:
    try:
        return fits(scalar_of(key), public)
    except ValueError:
        return False


def _check_owners(listed: tuple[int, ...], owners: Collection[int]) -> None:
    if tuple(sorted(set(listed))) != listed or not set(listed) <= set(owners):
        raise Refusal("strangers")
