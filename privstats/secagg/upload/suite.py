"""Seal a report's boxes under X-Wing, which is X25519 and ML-KEM-768 together.

Each member of the panel has one box: a helper's holds its seed, the leader's holds the key of the body. Sealing is
randomised, so a rebuilt report has other bytes.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats import domains
from privstats.secagg import xwing
from privstats.secagg.keys import agree
from privstats.secagg.wire import TAG_BYTES

NAME = domains.UPLOAD_3
PROVED_NAME = domains.UPLOAD_4
"""The names of the primitives, of reports without and with a proof, under every signature and key."""
OFFER = "offer-xwing"
"""The label of a signed box key."""
PIECE_BYTES = 32
"""The content of each box: a helper's seed, or the key of a body."""
BOX_BYTES = xwing.ENC_BYTES + PIECE_BYTES + TAG_BYTES
OFFER_BYTES = 1 + 32 + xwing.KEY_BYTES + 8 + 64
"""The length of an offer: place, identity, box key, end and signature."""

# An arbitrary private key: a point of low order yields a zero secret with every private key.
_ANY = X25519PrivateKey.from_private_bytes(b"\x40" * 32)


def check_box_key(box_key: bytes) -> None:
    """Raise ``ValueError`` for an unusable box key."""
    xwing.parsed(box_key)
    agree(_ANY, box_key[-32:])
