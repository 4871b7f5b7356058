"""How a vector is masked in the one upload: a body for the leader, a piece for each helper, an answer to add.

``MaskingScheme`` is what client, helper and leader ask for, and ``Streams`` the scheme of ``split``: the vector minus
one AES keystream per helper, who holds the seed and adds its streams up. ``body = x - sum_j P(stream_j)``; a helper's
answer is the sum of its streams over the survivors; their sum is the sum. Another scheme brings its own lengths of
bodies and pieces, which ``messages`` knows. Who may ask for an answer, and how often, is the helper's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from privstats.encoding import Ring, RingVector
from privstats.secagg.prg import add_masks_packed, add_packed, masked_tiles, reduce
from privstats.secagg.upload.signed_statements import derive

__all__ = ["MaskingScheme", "Streams"]


class MaskingScheme(Protocol):
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


_CIPHERS = 256  # held at a time


class Streams:
    """The cover of one run.

    Args:
        ring: what is summed.
        helpers: how many there are.
        context: the run's; no stream of one run appears in another.
        threads: processors to use for keystreams.

    Guarantee: a body is uniform to whoever lacks one of the seeds. A seed is derived from a secret that the client
    makes for this run, this vector and this sender, and a stream from the seed for this sender alone.
    """

    def __init__(self, ring: Ring, helpers: int, context: bytes, *, threads: int = 1) -> None:
        self._ring, self._helpers, self._context, self._threads = ring, helpers, context, threads

    @property
    def answer_bytes(self) -> int:
        """The ring's packed bytes."""
        return self._ring.wire_bytes

    def hide(self, vector: RingVector, secret: bytes, sender: int) -> tuple[Iterator[memoryview], list[bytes]]:
        """Body and seeds; the vector is left as it is."""
        seeds = [derive(secret, f"seed/{place}", self._context) for place in range(1, self._helpers + 1)]
        streams = [self._stream(seed, sender) for seed in seeds]
        return masked_tiles(vector, minus=streams, threads=self._threads), seeds

    def zeros(self) -> RingVector:
        """The sum over nobody."""
        return self._ring.zeros()

    def add(self, total: RingVector, body: memoryview) -> None:
        """Add a packed body, in place."""
        add_packed(total, body)

    def answer(self, pieces: Iterable[tuple[int, bytes]], out: memoryview) -> None:
        """The sum of the streams of these senders, added up where it will travel."""
        streams = (self._stream(seed, sender) for sender, seed in pieces)
        while chunk := list(islice(streams, _CIPHERS)):
            add_masks_packed(self._ring, out, plus=chunk, threads=self._threads)

    def uncover(self, total: RingVector, answers: Mapping[int, bytes], survivors: int) -> RingVector:  # noqa: ARG002
        """Total and answers, added up; any of them gives some element of the ring, so nothing is refused here."""
        for answer in answers.values():
            add_packed(total, memoryview(answer))
        reduce(total)
        return total

    def _stream(self, seed: bytes, sender: int) -> bytes:
        return derive(seed, f"stream/{sender}", self._context)
