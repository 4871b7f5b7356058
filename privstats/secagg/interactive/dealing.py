"""Prove publicly that a client's shares lie on two polynomials of low degree, and check single shares.

The dealer shares two random polynomials g and f; g(0) keys its self-mask, and values of f key its pair masks. The
dealer commits to all values and to all values of blinding polynomials u, and publishes z = u + e f at every point. The
challenge e is a hash of all commitments (Fiat and Shamir). Suppose z has degree < t. Take all holders whose f(x) and
z(x) - e f(x) fit their commitments. Their f(x) lie on one polynomial of degree < t. A liar escapes this only if the
hash e is one of few values; ``docs/proofs/dealings.md`` has the argument. u is used once: u and e follow from the root
and the transcript.

A share that fits its commitment *is* the pair's secret, so a dealing of false degree that passes can end a session or
change the dealer's own input, but no other input. No party can prove who spoilt a box, so ``Check`` comes before the
upload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha512
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from privstats.secagg.interactive.messages import (
    PAIR_BYTES,
    PROOF_BYTES,
    SECRET_BYTES,
    dealing_challenge,
    share_commitment,
)
from privstats.secagg.scalars import ORDER, scalar_of, to_bytes
from privstats.secagg.wire import HASH_BYTES, HiddenRepr, Refusal

POLYNOMIALS = (b"s", b"k")
"""The polynomials g and f: their order in every pair."""


class Public(HiddenRepr, Struct, frozen=True):
    """A dealing's public part: pairs in the order of the neighbours' points; ``challenges`` is one pair."""

    commitments: bytes
    responses: bytes
    challenges: bytes
    at_zero: bytes
    """The commitment to the self-mask key g(0), and the response for it."""


@dataclass(frozen=True, repr=False)
class Dealing:
    """A full dealing: pairs of shares in the order of the neighbours' points, and the public part."""

    shares: bytes
    commitments: bytes
    responses: bytes
    proofs: bytes


def part(data: bytes | bytearray, place: int, size: int = PAIR_BYTES) -> bytes:
    """Return the part at ``place``, from 0, of equally long parts."""
    return bytes(data[place * size : (place + 1) * size])


Values: TypeAlias = NDArray[np.object_]
"""Row j, of neighbour j: g(j) and its blind, then f(j) and its blind."""


def commitments_to(values: Values, transcript: bytes, owner: int, holders: Sequence[int]) -> bytes:
    """Return commitments, a pair per neighbour."""
    return b"".join(
        share_commitment(transcript, kind, owner, holder, to_bytes(line[2 * k]), to_bytes(line[2 * k + 1]))
        for holder, line in zip(holders, values, strict=True)
        for k, kind in enumerate(POLYNOMIALS)
    )


def responses_to(values: Values, challenges: Sequence[int]) -> bytes:
    """Return a pair of responses z = u + e f per neighbour."""
    columns = [(values[:, 2 * k + 1] + e * values[:, 2 * k]) % ORDER for k, e in enumerate(challenges)]
    return b"".join(to_bytes(z) for line in zip(*columns, strict=True) for z in line)


def shares_in(values: Values) -> bytes:
    """Return a pair of shares per neighbour."""
    return b"".join(to_bytes(f) for line in values for f in (line[0], line[2]))


def challenges_of(transcript: bytes, owner: int, commitments: bytes) -> list[int]:
    """Return the challenge of g, then that of f: hashes of all commitments, that of g(0) first."""
    words = (dealing_challenge(transcript, kind, owner, commitments) for kind in POLYNOMIALS)
    return [int.from_bytes(sha512(each).digest(), "little") % ORDER for each in words]


def verified(
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
        commitments, responses: a pair per neighbour.
        proofs: the commitment to g(0) and its response.
        weights: for g from point 0, for f from point 1; from :func:`privstats.secagg.scalars.checks`, unknown to the
            owner.

    Raises:
        Refusal: a wrong length, a number not below the curve's order, or shares of no polynomial.
    """
    holders = len(weights[1])
    if (len(commitments), len(responses), len(proofs)) != (2 * HASH_BYTES * holders, PAIR_BYTES * holders, PROOF_BYTES):
        raise Refusal("wrong_length")
    try:
        values = [scalar_of(part(responses, place, SECRET_BYTES)) for place in range(len(POLYNOMIALS) * holders)]
        lines = [scalar_of(part(proofs, 1, SECRET_BYTES)), *values[::2]], values[1::2]
    except ValueError:
        raise Refusal("malformed", "a number is not below the order of the curve") from None
    for name, line, row in zip(_NAMES, lines, weights, strict=True):
        if sum(weight * value for weight, value in zip(row, line, strict=True)) % ORDER:
            raise Refusal("misdealt", f"its shares do not lie on one polynomial of its {name}")
    challenges = challenges_of(transcript, owner, proofs[:HASH_BYTES] + commitments)
    return Public(commitments, responses, b"".join(map(to_bytes, challenges)), proofs)


def is_self_key(key: bytes, dealing: Public, owner: int, transcript: bytes) -> bool:
    """Return whether ``key`` is the committed g(0)."""
    e = part(dealing.challenges, 0, HASH_BYTES)
    at_zero, response = dealing.at_zero[:HASH_BYTES], dealing.at_zero[HASH_BYTES:]
    return fits_share(key, at_zero, response, e, transcript=transcript, kind=POLYNOMIALS[0], owner=owner, holder=owner)


def fits_share(
    share: bytes,
    commitment: bytes,
    response: bytes,
    e: bytes,
    *,
    transcript: bytes,
    kind: bytes,
    owner: int,
    holder: int,
) -> bool:
    """Return whether ``owner`` committed for ``holder`` to ``share`` and its blind, z - e f."""
    f, z = int.from_bytes(share, "little"), int.from_bytes(response, "little")
    blind = to_bytes((z - int.from_bytes(e, "little") * f) % ORDER)
    return f < ORDER and share_commitment(transcript, kind, owner, holder, share, blind) == commitment


def fits_point(share: bytes, point: int, dealing: Public, k: int, transcript: bytes, owner: int, holder: int) -> bool:
    """Return whether a share of the ``k``-th polynomial fits the dealing at this point."""
    at = len(POLYNOMIALS) * (point - 1) + k
    values = part(dealing.commitments, at, HASH_BYTES), part(dealing.responses, at, HASH_BYTES)
    e = part(dealing.challenges, k, HASH_BYTES)
    return fits_share(share, *values, e, transcript=transcript, kind=POLYNOMIALS[k], owner=owner, holder=holder)


_NAMES = ("self-mask key", "pair secrets")
"""The values of g and f, in the order of :data:`POLYNOMIALS`, for messages."""
