"""Deal shares of a client's two keys, and prove publicly that any t of them reconstruct the advertised keys.

The dealer shares each key ``a`` by a polynomial f and a nonce r by a polynomial u; A and R are their points. The dealer
commits to all f(x), u(x) and publishes z = u + e f at every point, where e = SHA-512(R || A || commitments) is
Ed25519's challenge. Suppose z has degree < t and (R, z(0)) verifies under A. Take all holders whose f(x) and
z(x) - e f(x) fit their commitments. Their f(x) lie on one polynomial of degree < t with the value ``a`` at 0. A liar
escapes this only if the hash e is one of few values; ``docs/protocol.md`` has the argument. u is used once: u and e
follow from the root and the transcript.

Every shared key is an X25519 and an Ed25519 key at once, so the proof is an ordinary Ed25519 signature
(``secagg/scalars.py``). No party can prove who spoilt a box, so ``Check`` comes before the upload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from privstats.secagg.interactive.messages import (
    PAIR_BYTES,
    PROOF_BYTES,
    SECRET_BYTES,
    Advertise,
    dealing_statement,
    share_commitment,
)
from privstats.secagg.scalars import ORDER, KeyPair, challenge, point_of, proves, scalar_of, split, to_bytes
from privstats.secagg.wire import HASH_BYTES, SIGNATURE_BYTES, HiddenRepr, Refusal

KINDS = (b"s", b"k")
"""The self-mask key, then the mask key (version 4: the polynomial f): their order in every pair."""


@dataclass(frozen=True, repr=False)
class Secret:
    """The secret inputs of one key's dealing.

    Attributes:
        key: the dealt key.
        nonce: the key pair that blinds it.
        coefficients: the key polynomial's, except the constant; uniform.
        blinds: the nonce polynomial's, uniform, used once.
    """

    key: KeyPair
    nonce: KeyPair
    coefficients: Sequence[int]
    blinds: Sequence[int]


class Public(HiddenRepr, Struct, frozen=True):
    """A dealing's public part: pairs in the order of the neighbours' points; ``challenges`` is one pair."""

    commitments: bytes
    responses: bytes
    challenges: bytes
    at_zero: bytes = b""
    """Version 4: the commitment to the self-mask key, and the response for it."""


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


def deal(secrets: tuple[Secret, Secret], transcript: bytes, owner: int, holders: Sequence[int]) -> Dealing:
    """Deal ``owner``'s two keys to ``holders``, its neighbours in order."""
    rows = [
        row for each in secrets for row in ((each.key.scalar, *each.coefficients), (each.nonce.scalar, *each.blinds))
    ]
    values = split(rows, len(holders))
    commitments = commitments_to(values, transcript, owner, holders)
    challenges, proofs = [], b""
    for kind, each in zip(KINDS, secrets, strict=True):
        statement = dealing_statement(transcript, kind, owner, commitments)
        e = challenge(each.nonce.point, each.key.point, statement)
        challenges.append(e)
        proofs += each.nonce.point + to_bytes((each.nonce.scalar + e * each.key.scalar) % ORDER)
    return Dealing(shares_in(values), commitments, responses_to(values, challenges), proofs)


Values: TypeAlias = NDArray[np.object_]
"""Row j, of neighbour j: f(j), u(j) of the first key, then of the second."""


def commitments_to(values: Values, transcript: bytes, owner: int, holders: Sequence[int]) -> bytes:
    """Return commitments, a pair per neighbour."""
    return b"".join(
        share_commitment(transcript, kind, owner, holder, to_bytes(line[2 * k]), to_bytes(line[2 * k + 1]))
        for holder, line in zip(holders, values, strict=True)
        for k, kind in enumerate(KINDS)
    )


def responses_to(values: Values, challenges: Sequence[int]) -> bytes:
    """Return a pair of responses z = u + e f per neighbour."""
    columns = [(values[:, 2 * k + 1] + e * values[:, 2 * k]) % ORDER for k, e in enumerate(challenges)]
    return b"".join(to_bytes(z) for line in zip(*columns, strict=True) for z in line)


def shares_in(values: Values) -> bytes:
    """Return a pair of shares per neighbour."""
    return b"".join(to_bytes(f) for line in values for f in (line[0], line[2]))


def verified(
    commitments: bytes, responses: bytes, proofs: bytes, *, advert: Advertise, transcript: bytes, weights: Sequence[int]
) -> Public:
    """Check that responses have degree < t and prove both advertised keys; return the public part.

    Args:
        commitments, responses: a pair per neighbour.
        proofs: one per key.
        weights: from :func:`privstats.secagg.scalars.checks`, unknown to the owner.

    Raises:
        Refusal: a wrong length, a number not below the curve's order, or shares of no polynomial or another key.
    """
    holders, challenges = len(weights) - 1, b""
    if (len(commitments), len(responses), len(proofs)) != (2 * HASH_BYTES * holders, PAIR_BYTES * holders, PROOF_BYTES):
        raise Refusal("wrong_length")
    try:
        values = [scalar_of(part(responses, place, SECRET_BYTES)) for place in range(len(KINDS) * holders)]
        at_zero = [scalar_of(part(proofs, 2 * k + 1, SECRET_BYTES)) for k in range(len(KINDS))]
    except ValueError:
        raise Refusal("malformed", "a number is not below the order of the curve") from None
    for k, (kind, public) in enumerate(zip(KINDS, (advert.self_key, advert.mask_key), strict=True)):
        line, point = (at_zero[k], *values[k :: len(KINDS)]), point_of(public)
        if sum(weight * value for weight, value in zip(weights, line, strict=True)) % ORDER:
            raise Refusal("misdealt", NOT_LOW.format(_NAMES[kind]))
        nonce = part(proofs, 2 * k, SIGNATURE_BYTES // 2)
        statement = dealing_statement(transcript, kind, advert.sender, commitments)
        if not proves(nonce, at_zero[k], point, statement):
            raise Refusal("misdealt", f"its shares do not reconstruct its {_NAMES[kind]}")
        challenges += to_bytes(challenge(nonce, point, statement))
    return Public(commitments, responses, challenges)


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
    """Return whether a share of the ``k``-th key fits the dealing at this point."""
    at = len(KINDS) * (point - 1) + k
    values = part(dealing.commitments, at, HASH_BYTES), part(dealing.responses, at, HASH_BYTES)
    e = part(dealing.challenges, k, HASH_BYTES)
    return fits_share(share, *values, e, transcript=transcript, kind=KINDS[k], owner=owner, holder=holder)


_NAMES = {b"s": "self-mask key", b"k": "mask key"}
NOT_LOW = "its shares do not lie on one polynomial of its {}"
