"""The interface to a claim that every report of the one upload proves.

The library imports no proof: a plan with ``[validity]`` supplies the claim (``contrib.proofs``).
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
    """A claim that every report proves: a frozen value, equal for all parties."""

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
        """Return the values for the claim and its group in the parameters' digest."""

    def scheme(self, group: Group, helpers: int, context: bytes) -> Any:
        """Return the masking scheme of a run with such proofs."""

    def check_vector(self, vector: RingVector) -> None:
        """Refuse a vector that a report could not prove, before anything is sent.

        Raises:
            DataError: it violates the statement.
        """

    def is_signed(self, body: bytearray, context: bytes, sender: int, commits: bytes, parts: bytes) -> bool:
        """Return whether the client signed the parts of this leader's share.

        Raises:
            ValueError: a word is no field element.
        """

    def words(self, column: bytes | memoryview) -> Words:
        """Parse little-endian words as field elements.

        Raises:
            ValueError: a word is no field element.
        """

    def add(self, words: Words, more: Words) -> Words:
        """Return the sum in the field, entry by entry."""
