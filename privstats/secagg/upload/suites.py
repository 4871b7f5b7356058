"""Seal a report under X25519 alone, or under X-Wing, which is X25519 and ML-KEM-768 together.

A plan's ``key_agreement`` names the suite; the name is in every context, offer and signature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats import domains
from privstats.secagg import hpke, xwing
from privstats.secagg.hpke import Schedule
from privstats.secagg.keys import CLASSICAL, HYBRID, agree, public_of
from privstats.secagg.wire import TAG_BYTES

PIECE_BYTES = 32
"""The content of each box: a helper's seed, or the key of a body."""

# An arbitrary private key: a point of low order yields a zero secret with every private key.
_ANY = X25519PrivateKey.from_private_bytes(b"\x40" * 32)

_XWING_BOX = xwing.ENC_BYTES + PIECE_BYTES + TAG_BYTES

Derived: TypeAlias = Callable[[str], bytes]


@dataclass(frozen=True)
class Suite:
    """One key agreement's sizes and functions.

    Attributes:
        names: in the parameters' digest, for reports without and with a proof.
        offer: label of a signed box key.
        key_bytes, enc_bytes: size of a box key, of an encapsulated key.
        first: first place with a box: 1 where the body is the leader's box, else 0.
        redrawn: sealing is randomised, so a rebuilt report has other bytes.
        private_of, public_of: private key and box key from 32 secret bytes.
        check: raises ``ValueError`` for an unusable box key.
        body_key: returns a body's first bytes, its sealing key, and a list of the leader's box content, if any.
        seal: seals content for a place's box key.
        open_box: opens a box, or raises ``UnopenedError``.
        opening: returns one body's key schedule, or raises ``UnopenedError``.
    """

    names: tuple[bytes, bytes]
    offer: str
    key_bytes: int
    enc_bytes: int
    first: int
    redrawn: bool
    private_of: Callable[[bytes | bytearray], Any]
    public_of: Callable[[bytes | bytearray], bytes]
    check: Callable[[bytes], object]
    body_key: Callable[[bytes, Derived, bytes], tuple[bytes, Schedule, list[bytes]]]
    seal: Callable[[bytes, int, bytes, Derived, bytes], bytes]
    open_box: Callable[[Any, bytes, bytes], bytes]
    opening: Callable[[Any, bytes, memoryview, bytes], Schedule]

    @property
    def box_bytes(self) -> int:
        """The length of a box."""
        return self.enc_bytes + PIECE_BYTES + TAG_BYTES

    @property
    def offer_bytes(self) -> int:
        """The length of an offer: place, identity, box key, end and signature."""
        return 1 + 32 + self.key_bytes + 8 + 64

    @property
    def head_bytes(self) -> int:
        """The length of the signed key that a body begins with."""
        return self.enc_bytes * self.first


def _alone(key: bytes) -> Schedule:
    """Return the schedule, with nonce 0, of a key for one run, sender and vector: it seals one body, ever."""
    return Schedule(key, bytes(hpke.NONCE_BYTES))


def _in_a_box(_: bytes, derived: Derived, __: bytes) -> tuple[bytes, Schedule, list[bytes]]:
    key = derived("body")
    return b"", _alone(key), [key]


def _check_xwing(box_key: bytes) -> None:
    xwing.parsed(box_key)
    agree(_ANY, box_key[-32:])


SUITES: Mapping[str, Suite] = {
    CLASSICAL: Suite(
        (domains.UPLOAD_1, domains.UPLOAD_2),
        offer="offer-until",
        key_bytes=32,
        enc_bytes=hpke.ENC_BYTES,
        first=1,
        redrawn=False,
        private_of=X25519PrivateKey.from_private_bytes,
        public_of=public_of,
        check=lambda box_key: agree(_ANY, box_key),
        body_key=lambda box_key, derived, info: (*hpke.towards(box_key, derived("ephemeral/0"), info), []),
        seal=lambda key, place, content, derived, info: hpke.seal(key, derived(f"ephemeral/{place}"), content, info),
        open_box=hpke.open_box,
        opening=lambda private, _, body, info: hpke.opening(private, body, info),
    ),
    HYBRID: Suite(
        (domains.UPLOAD_3, domains.UPLOAD_4),
        offer="offer-xwing",
        key_bytes=xwing.KEY_BYTES,
        enc_bytes=xwing.ENC_BYTES,
        first=0,
        redrawn=True,
        private_of=xwing.private_of,
        public_of=xwing.public_of,
        check=_check_xwing,
        body_key=_in_a_box,
        seal=lambda key, _, content, __, info: xwing.seal(key, content, info),
        open_box=xwing.open_box,
        opening=lambda private, boxes, _, info: _alone(xwing.open_box(private, boxes[:_XWING_BOX], info)),
    ),
}
"""Suites by the plan's ``key_agreement``."""
