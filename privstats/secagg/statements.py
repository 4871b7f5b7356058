"""What the machines of the one upload ask of a claim that every report proves.

Nothing of the library imports a proof: a plan with ``[validity]`` brings the claim (``contrib.proofs``), parameters
hold it, and machines go on with what it answers.
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
    """What every report of a session proves: a frozen value, equal for all parties."""

    @property
    def statement(self) -> Any:
        """What it says of a vector, as provers and verifiers read it."""
        ...

    @property
    def size(self) -> int:
        """Entries of a vector."""
        ...

    @property
    def upload_bytes(self) -> int:
        """Of a masked vector with its proof."""
        ...

    @property
    def answer_bytes(self) -> int:
        """Of a helper's answer to one report's proof."""
        ...

    def stated_in(self, group: Group) -> tuple[object, ...]:
        """What stands for the claim and its group in the digest of parameters."""
        ...

    def scheme(self, group: Group, helpers: int, context: bytes) -> Any:
        """The masking scheme of a run whose reports prove it."""
        ...

    def check_vector(self, vector: RingVector) -> None:
        """Refuse a vector that a client's report could not prove, before anything is sent.

        Raises:
            DataError: it does not keep the statement.
        """
        ...

    def is_signed(self, body: bytearray, context: bytes, sender: int, commits: bytes, parts: bytes) -> bool:
        """Whether the leader's share is the one whose parts the client signed.

        Raises:
            ValueError: a word of it is no element of the field.
        """
        ...

    def words(self, column: bytes | memoryview) -> Words:
        """Little-endian words as elements.

        Raises:
            ValueError: one of them is no element of the field.
        """
        ...

    def add(self, words: Words, more: Words) -> Words:
        """The sum in the field, entry by entry."""
        ...
