"""Compute modulo the order of Curve25519, and verify that a scalar is a public key's private key.

A key pair is an X25519 and an Ed25519 pair at once, as in XEdDSA. So a Schnorr proof over such a key *is* an Ed25519
signature that ``cryptography`` verifies. Arithmetic on Python's integers does not run in constant time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha512
from itertools import count
from math import prod

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from privstats.files.signing import verify
from privstats.secagg.keys import agree

ORDER = 2**252 + 27742317777372353535851937790883648493
SCALAR_BYTES = 32
WIDE_BYTES = 64
"""Number of uniform bytes reduced to one scalar, which is uniform up to a statistical distance of 2^-259."""

_PRIME = 2**255 - 19
_SIGN = 1 << 255
_BASE = (9).to_bytes(32, "little")
_COFACTORED = (2**254).to_bytes(32, "little")


@dataclass(frozen=True, repr=False)
class KeyPair:
    """A scalar and its public forms.

    Attributes:
        scalar: s, 0 < s < ORDER.
        private: X25519's 32 bytes for s or ORDER - s, which give equal shared secrets.
        point: s times the base point, as Ed25519 writes it.
    """

    scalar: int
    private: bytes
    point: bytes


def key_pair(seed: bytes, sign: int = 0) -> KeyPair:
    """Derive the key pair of a 32-byte seed, with a point of sign bit ``sign``.

    The pair is Ed25519's (RFC 8032, 5.1.5), negated if the sign differs. A uniform seed and sign yield a scalar that
    is uniform up to 2^-120. For all s but a fraction of 2^-120, s or ORDER - s is a clamped number modulo ORDER.
    """
    private = sha512(seed).digest()[:SCALAR_BYTES]
    scalar = (int.from_bytes(private, "little") & (_SIGN // 2 - 8) | _SIGN // 2) % ORDER
    point = int.from_bytes(Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw(), "little")
    negated = point >> 255 != sign
    return KeyPair(ORDER - scalar if negated else scalar, private, (point ^ (_SIGN * negated)).to_bytes(32, "little"))


def uniform(stream: bytes) -> list[int]:
    """Return one scalar from each :data:`WIDE_BYTES` bytes of the stream."""
    return [int.from_bytes(stream[at : at + WIDE_BYTES], "little") % ORDER for at in range(0, len(stream), WIDE_BYTES)]


def to_bytes(scalar: int) -> bytes:
    """Encode a scalar in 32 bytes, little-endian."""
    return scalar.to_bytes(SCALAR_BYTES, "little")


def scalar_of(data: bytes) -> int:
    """Decode 32 bytes; ``ValueError`` unless below ORDER, for a unique encoding."""
    scalar = int.from_bytes(data, "little")
    if scalar >= ORDER:
        raise ValueError("the number is not below the order of the curve")
    return scalar


def canonical(scalar: int) -> bytes:
    """Encode ``scalar`` and ORDER - ``scalar`` alike: they have one X25519 key."""
    return to_bytes(min(scalar, ORDER - scalar))


def exchange(scalar: int, public: bytes) -> bytes:
    """Return the X25519 shared secret of any ``scalar`` and a public key.

    X25519's clamped keys, the multiples of 8 in [2^254, 2^255), include s or -s modulo ORDER. The exceptions, some
    multiples of 8 below 2^128 and their negatives, are split into two factors.

    Raises:
        ValueError: ``scalar`` is zero or ``public`` of low order, so the secret would be zero.
    """
    if not scalar % ORDER:
        raise ValueError("the zero scalar has no shared secrets")
    direct = _clamped(scalar)
    if direct is not None:
        return _multiplied(direct, public)
    for factor in count(2):
        first, second = _clamped(scalar * pow(factor, -1, ORDER)), _clamped(factor)
        if first is not None and second is not None:
            return _multiplied(second, _multiplied(first, public))
    raise AssertionError("unreachable: the quotient by a small number that does not divide it is a large one")


def fits(scalar: int, public: bytes) -> bool:
    """Return whether ``public`` is the X25519 key of ``scalar``, up to sign and low-order parts."""
    if not scalar % ORDER:
        return False
    point = exchange(scalar, _BASE)
    return point == public or _multiplied(_COFACTORED, point) == _multiplied(_COFACTORED, public)


def challenge(nonce: bytes, point: bytes, message: bytes) -> int:
    """Return Ed25519's challenge: SHA-512(R || A || M) modulo ORDER."""
    return int.from_bytes(sha512(nonce + point + message).digest(), "little") % ORDER


def proves(nonce: bytes, response: int, point: bytes, message: bytes) -> bool:
    """Return whether the Ed25519 signature (nonce, response) holds.

    response = r + e a, with r's point ``nonce``, a's ``point`` and challenge e.
    """
    return verify(point, nonce + to_bytes(response), message)


def point_of(public: bytes) -> bytes:
    """Return an X25519 key u in Ed25519 form, sign bit 0: y = (u - 1) / (u + 1) (RFC 7748, 4.1); 0 for u = -1."""
    u = int.from_bytes(public, "little") & (_SIGN - 1)
    return ((u - 1) * pow(u + 1, _PRIME - 2, _PRIME) % _PRIME).to_bytes(32, "little")


def _clamped(scalar: int) -> bytes | None:
    """Return private bytes that multiply by ``scalar`` or its negative, or None."""
    for residue in (scalar % ORDER, -scalar % ORDER):
        number = residue + (3 * residue % 8) * ORDER  # ORDER = 5 modulo 8, and 3 * 5 = -1
        if 2**254 <= number < 2**255:
            return number.to_bytes(32, "little")
    return None


def _multiplied(private: bytes, public: bytes) -> bytes:
    return agree(X25519PrivateKey.from_private_bytes(private), public)


MAX_HOLDERS = 255


def split(polynomials: Sequence[Sequence[int]], holders: int) -> NDArray[np.object_]:
    """Return the values of polynomials at x = 1 .. ``holders``: Python's integers, ``(holders, polynomials)``.

    Any t values of a polynomial with t coefficients determine the one at 0; fewer are independent of it if the other
    coefficients are uniform.

    Args:
        polynomials: equally many coefficients each; the secret, the value at 0, first.
        holders: at most 255.

    Source: Shamir 1979, evaluated by Horner's rule.
    """
    if not 1 <= holders <= MAX_HOLDERS or not polynomials or not polynomials[0]:
        raise ValueError(f"sharing needs 1 to {MAX_HOLDERS} holders and a threshold of at least 1")
    points = np.arange(1, holders + 1).astype(object)[:, None]
    rows = np.array(polynomials, object).T
    values = np.zeros((holders, len(polynomials)), object)
    for row in rows[::-1]:
        values = values * points + row
    reduced: NDArray[np.object_] = values % ORDER
    return reduced


def combine(points: Sequence[int], values: Sequence[int], at: int = 0) -> int:
    """Interpolate at ``at`` the polynomial through values at distinct points in 1 to 255 (Lagrange)."""
    shifted = tuple(point - at for point in points)
    return sum(weight * value for weight, value in zip(_at_zero(shifted), values, strict=True)) % ORDER


def checks(holders: int, coefficients: Sequence[int], first: int = 0) -> list[int]:
    """Return weights at x = ``first`` .. ``holders`` under which a low-degree polynomial's values sum to zero.

    Low means at most ``holders - first - len(coefficients)``. If the coefficients are uniform and unknown to the party
    that chose the values, other values sum to zero with probability 1 in 2^252.

    Source: the dual of a Reed-Solomon code, as in SCRAPE (Cascudo and David 2017, lemma 1).
    """
    places = range(first, holders + 1)
    masks = [sum(c * x**power for power, c in enumerate(coefficients)) for x in places]
    between = (prod(x - y for y in places if y != x) for x in places)
    return [mask * pow(gaps, -1, ORDER) % ORDER for mask, gaps in zip(masks, between, strict=True)]


@lru_cache(maxsize=256)
def _at_zero(points: tuple[int, ...]) -> list[int]:
    product = prod(points)
    gaps = (x * prod(y - x for y in points if y != x) for x in points)
    return [product * pow(gap, -1, ORDER) % ORDER for gap in gaps]
