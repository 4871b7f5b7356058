"""Hashes and derivations of a proof, in the notation of ``docs/wire/one_upload.md``.

A commitment to a seed fixes every stage of a share; the blind prevents the use of a part to test guesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privstats.contrib.proofs.field import Field, stream
from privstats.extend.support import HASH_BYTES
from privstats.secagg.prg import ctr_keystream
from privstats.secagg.upload.signed_statements import derive, labelled
from privstats.secagg.wire import index

BLIND_BYTES = 32
SIGN_BYTES = 32
"""Bytes of random signs for one entry: 16 for b and 16 for b', a bit of each for every one of 128 tests."""

_FIRST, _SECOND = b"\x01", b"\x02"


@dataclass(frozen=True)
class Transcript:
    """The signed statement of one report, which all members have before the leader's query.

    Attributes:
        commits: to each helper's seed, in order.
        parts: hashes of the first two stages of the leader's share, under a blind.
    """

    context: bytes
    sender: int
    commits: tuple[bytes, ...]
    parts: tuple[bytes, bytes]

    @classmethod
    def of(cls, context: bytes, sender: int, commits: bytes, parts: bytes) -> Transcript:
        """Build the transcript from signed columns."""
        each = [commits[start : start + HASH_BYTES] for start in range(0, len(commits), HASH_BYTES)]
        return cls(context, sender, tuple(each), (parts[:HASH_BYTES], parts[HASH_BYTES:]))

    @property
    def first(self) -> bytes:
        """z_1, fixed by the first stage, for the signs."""
        return first_challenge(self.context, self.sender, self.commits, self.parts[0])

    @property
    def second(self) -> bytes:
        """z_2, fixed by the bits, for gamma."""
        return second_challenge(self.first, self.parts[1])


def first_part(context: bytes, sender: int, blind: bytes, stage: bytes) -> bytes:
    """Hash the leader's share of x, witness, products and masks."""
    return labelled("proof-part", context, index(sender), _FIRST, blind, stage)


def second_part(context: bytes, sender: int, blind: bytes, stage: bytes) -> bytes:
    """Hash the leader's share of the bits and their masks."""
    return labelled("proof-part", context, index(sender), _SECOND, blind, stage)


def first_challenge(context: bytes, sender: int, commits: Sequence[bytes], part: bytes) -> bytes:
    """Return z_1."""
    return labelled("proof-signs", context, index(sender), *commits, part)


def second_challenge(first: bytes, part: bytes) -> bytes:
    """Return z_2."""
    return labelled("proof-bits", first, part)


def signs(first: bytes, context: bytes, entries: int) -> bytes:
    """Return ``SIGN_BYTES`` of sign bits per entry: all b, then b'."""
    return ctr_keystream(derive(first, "signs", context), bytes(16), SIGN_BYTES * entries)


def gamma(second: bytes, context: bytes, rows: int) -> Field:
    """Return three elements per row, ``(3, rows)``."""
    return stream(derive(second, "gamma", context), 3 * rows).reshape(3, rows)


def query(rho: bytes, context: bytes, sender: int, size: int) -> Field:
    """Return the leader's coins, sampled after the report was fixed."""
    return stream(derive(rho, f"query/{sender}", context), size)


def share(seed: bytes, context: bytes, sender: int, size: int) -> Field:
    """Expand a helper's seed into its share."""
    return stream(derive(seed, f"field/{sender}", context), size)
