"""How a vector is covered, as the machines see it: a body for the leader, a piece for each helper, an answer to add.

An interface without behaviour; client, helper and leader hold a ``Cover``, and ``streams`` is the one there is. Another
brings its own mathematics, and the lengths of its bodies and pieces, which ``messages`` knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from privstats.encoding import RingVector

__all__ = ["Cover"]


class Cover(Protocol):
    """A way to cover vectors so that leader and helpers together uncover a sum and nothing else; it has no state."""

    @property
    def answer_bytes(self) -> int:
        """The length of a helper's answer."""
        ...

    def hide(self, vector: RingVector, secret: bytes, sender: int) -> tuple[Iterator[memoryview], list[bytes]]:
        """Cover a vector: the body for the leader, bit by bit, and one piece per helper, place 1 first."""
        ...

    def zeros(self) -> Any:
        """A total over nobody."""
        ...

    def add(self, total: Any, body: memoryview) -> None:
        """Add one body to a total, in place."""
        ...

    def answer(self, pieces: Iterable[tuple[int, bytes]], out: memoryview) -> None:
        """Write what a helper answers over these senders and their pieces to ``out``, of zeros."""
        ...

    def uncover(self, total: Any, answers: Mapping[int, bytes], survivors: int) -> RingVector:
        """The sum that a total and the answers by place give; uses the total up.

        Raises:
            AggregationError: they give none.
        """
        ...
