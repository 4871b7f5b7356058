"""Interface between the machines of the one upload and a claim that every report proves.

The library imports no proof: a plan with ``[validity]`` supplies the claim (``contrib.proofs``), parameters store it,
and machines call it.
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
    """A claim that every report of a session proves: a frozen value, equal for all parties."""

    @property
    def statement(self) -> Any:
        """The statement about a vector, as provers and verifiers read it."""

    @property
    def size(self) -> int:
        """Entries of a vector."""

    @property
    def upload_bytes(self) -> int:
        """Size in bytes of a masked vector with its proof."""

    @property
    def answer_bytes(self) -> int:
        """Size in bytes of a helper's answer to one report's proof."""

    def stated_in(self, group: Group) -> tuple[object, ...]:
        """Return the values that represent the claim and its group in the digest of parameters."""

    def scheme(self, group: Group, helpers: int, context: bytes) -> Any:
        """Return the masking scheme of a run with reports that prove the claim."""

    def check_vector(self, vector: RingVector) -> None:
        """Refuse a vector that a client's report could not prove, before anything is sent.

        Raises:
            DataError: it does not keep the statement.
        """

    def is_signed(self, body: bytearray, context: bytes, sender: int, commits: bytes, parts: bytes) -> bool:
        """Return whether the client signed the parts of this share of the leader.

        Raises:
            ValueError: a word of it is no element of the field.
        """

    def words(self, column: bytes | memoryview) -> Words:
        """Little-endian words as elements.

        Raises:
            ValueError: one of them is no element of the field.
        """

    def add(self, words: Words, more: Words) -> Words:
        """Return the sum in the field, entry by entry."""
