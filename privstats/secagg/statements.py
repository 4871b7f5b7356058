"""The interface to a claim that every report of the one upload proves.

The library imports no proof: a plan with ``[validity]`` supplies the claim of its prover (``plan.provers``).
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.encoding import RingVector
from privstats.encoding.ring import Group

Words: TypeAlias = NDArray[np.uint64]
"""Elements of the field of proofs."""


class Claim(Protocol):
    """A claim that every report proves, equal for all parties."""

    @property
    def statement(self) -> Any:
        """The statement about a vector, for provers and verifiers."""

    @property
    def size(self) -> int:
        """Entries of a vector."""

    @property
    def upload_bytes(self) -> int:
        """Bytes of a masked vector with its proof."""

    @property
    def answer_bytes(self) -> int:
        """Bytes of a helper's answer to one proof."""

    def stated_in(self, group: Group) -> tuple[object, ...]:
        """Return the claim's and group's values that enter digests."""

    def scheme(self, group: Group, helpers: int, context: bytes) -> Any:
        """Return the masking scheme of a run with such proofs."""

    def check_vector(self, vector: RingVector) -> None:
        """Raise ``DataError`` for a vector that no report could prove, before anything is sent."""

    def is_signed(self, body: bytearray, context: bytes, sender: int, commits: bytes, parts: bytes) -> bool:
        """Return whether the signed hashes ``parts`` match the body that the leader opened; raise as :meth:`words`."""

    def words(self, column: bytes | memoryview) -> Words:
        """Parse little-endian words as field elements, or raise ``ValueError``."""

    def add(self, words: Words, more: Words) -> Words:
        """Return the sum in the field, entry by entry."""
