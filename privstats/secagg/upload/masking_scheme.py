"""Masking of a vector in the one upload: a body for the leader, a piece for each helper, and the helpers' answers.

``MaskingScheme`` is the interface for client, helper and leader, and ``Streams`` the scheme of ``split``: the vector
minus one AES keystream per helper, which holds the seed and adds its streams up. ``body = x - sum_j P(stream_j)``; a
helper's answer is the sum of its streams over the survivors; bodies plus answers give the sum. Another scheme brings
its own lengths of bodies and pieces, which ``messages`` defines. The helper decides whether a query is answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from privstats.encoding import RingVector
from privstats.encoding.ring import Group
from privstats.secagg.prg import add_masks_packed, add_packed, masked_tiles, reduce
from privstats.secagg.upload.signed_statements import derive

__all__ = ["MaskingScheme", "Streams"]


class MaskingScheme(Protocol):
    """A masking scheme: leader and helpers together unmask a sum and nothing else; it has no state."""

    @property
    def answer_bytes(self) -> int:
        """The length of a helper's answer."""
        ...

    def hide(self, vector: RingVector, secret: bytes, sender: int) -> tuple[Iterator[memoryview], list[bytes]]:
        """Mask a vector: the body for the leader, in pieces of bytes, and one piece per helper, place 1 first."""
        ...

    def zeros(self) -> Any:
        """A total over no client."""
        ...

    def add(self, total: Any, body: memoryview) -> None:
        """Add one body to a total, in place."""
        ...

    def answer(self, pieces: Iterable[tuple[int, bytes]], out: memoryview) -> None:
        """Write a helper's answer over these senders and their pieces to ``out``, which holds zeros."""
        ...

    def uncover(self, total: Any, answers: Mapping[int, bytes], survivors: int) -> RingVector:
        """The sum from a total and the answers by place; consumes the total.

        Raises:
            AggregationError: total and answers give no sum.
        """
        ...


_CIPHERS = 256  # held at a time


class Streams:
    """The masking scheme of one run of ``split``.

    Args:
        ring: the ring of the summed vectors.
        helpers: the number of helpers.
        context: the context of the run; no stream of one run appears in another.
        threads: processors to use for keystreams.

    Guarantee: a body is uniform to any party without one of the seeds. A seed is derived from a secret that the client
    makes for this run, this vector and this sender, and a stream from the seed for this sender alone.
    """

    def __init__(self, ring: Group, helpers: int, context: bytes, *, threads: int = 1) -> None:
        self._ring, self._helpers, self._context, self._threads = ring, helpers, context, threads

    @property
    def answer_bytes(self) -> int:
        """The ring's packed bytes."""
        return self._ring.wire_bytes

    def hide(self, vector: RingVector, secret: bytes, sender: int) -> tuple[Iterator[memoryview], list[bytes]]:
        """Body and seeds; the vector does not change."""
        seeds = [derive(secret, f"seed/{place}", self._context) for place in range(1, self._helpers + 1)]
        streams = [self._stream(seed, sender) for seed in seeds]
        return masked_tiles(vector, minus=streams, threads=self._threads), seeds

    def zeros(self) -> RingVector:
        """The sum over no client."""
        return self._ring.zeros()

    def add(self, total: RingVector, body: memoryview) -> None:
        """Add a packed body, in place."""
        add_packed(total, body)

    def answer(self, pieces: Iterable[tuple[int, bytes]], out: memoryview) -> None:
        """The sum of the streams of these senders, added up in the message's buffer."""
        streams = (self._stream(seed, sender) for sender, seed in pieces)
        while chunk := list(islice(streams, _CIPHERS)):
            add_masks_packed(self._ring, out, plus=chunk, threads=self._threads)

    def uncover(self, total: RingVector, answers: Mapping[int, bytes], survivors: int) -> RingVector:  # noqa: ARG002
        """Total and answers, added up; every answer is some element of the ring, so none is refused here."""
        for answer in answers.values():
            add_packed(total, memoryview(answer))
        reduce(total)
        return total

    def _stream(self, seed: bytes, sender: int) -> bytes:
        return derive(seed, f"stream/{sender}", self._context)
