"""Batches of reports for the helpers: assignment of reports to parts, the helpers' answers, and settled parts.

It makes batches and tracks which are due; it adds no vectors and relies on the leader's checks.
"""

from __future__ import annotations

from functools import reduce
from hashlib import sha256
from operator import and_

from privstats.secagg.keys import Identity
from privstats.secagg.upload import messages
from privstats.secagg.upload.checks import rows
from privstats.secagg.upload.signed_statements import batch_statement, proofs
from privstats.secagg.upload.state import Head, LeaderState, Part
from privstats.secagg.wire import members

__all__ = ["IN_FLIGHT", "PART_BYTES", "ReportBatches", "accepted_by", "accepted_by_all"]

PART_BYTES = 64 << 20
"""The bytes of bodies at which a part is closed; the last body may exceed them."""

IN_FLIGHT = 4
"""The most parts that may be closed and not settled."""


class ReportBatches:
    """The batches of one leader's reports.

    Args:
        state: the leader's state, whose ``open``, ``parts`` and ``closed`` this class maintains.
        identity: the leader's signing key.
        helpers: the number of helpers.
        context: the context of the run.
    """

    def __init__(self, state: LeaderState, identity: Identity, helpers: int, context: bytes) -> None:
        self._state, self._identity, self._helpers, self._context = state, identity, helpers, context
        self._held = sum(map(len, state.open.bodies.values()))
        self._digests: dict[tuple[int, int], bytes] = {}

    @property
    def busy(self) -> bool:
        """Whether no further report can be accepted until a helper has answered."""
        return len(self._state.parts) >= IN_FLIGHT

    def add(self, sender: int, head: Head, body: bytes) -> int | None:
        """Add a report to the open part; return the part's number if this closed it, else None."""
        part = self._state.open
        part.heads[sender], part.bodies[sender] = head, body
        self._held += len(body)
        full = len(part.heads) >= messages.MAX_PART or self._held >= PART_BYTES
        return self.close() if full else None

    def close(self) -> int | None:
        """Close the open part and return its number, or None if it is empty."""
        state = self._state
        if not state.open.heads:
            return None
        number, state.closed = state.closed, state.closed + 1
        state.parts[number], state.open, self._held = state.open, Part(), 0
        return number

    def due(self, place: int) -> int | None:
        """The part that this helper must answer next, or None."""
        return min((number for number, part in self._state.parts.items() if place not in part.bitmaps), default=None)

    def batch(self, number: int, place: int) -> bytes:
        """The message with a part for a helper: the same bytes each time."""
        heads = dict(sorted(self._state.parts[number].heads.items()))
        boxes = {sender: rows(head.boxes, messages.BOX_BYTES) for sender, head in heads.items()}
        unsigned = messages.Batch(
            self._context,
            number,
            tuple(heads),
            b"".join(head.enc for head in heads.values()),
            b"".join(proofs(each)[place - 1] for each in boxes.values()),
            b"".join(each[place - 1] for each in boxes.values()),
            b"".join(head.signature for head in heads.values()),
            bytes(64),
        )
        data = messages.encode(unsigned)
        signed = sha256(messages.signed_part(memoryview(data))).digest()
        whole = data[:-64] + self._identity.sign(batch_statement(self._context, place, signed))
        self._digests[number, place] = sha256(whole).digest()
        return whole

    def batch_digest(self, number: int, place: int) -> bytes:
        """The hash of the whole message that :meth:`batch` returns."""
        if (number, place) not in self._digests:
            self.batch(number, place)
        return self._digests[number, place]

    def answered(self, number: int, place: int, bitmap: bytes) -> Part | None:
        """Record a helper's answer; return the part if it was the last one, so that the part is settled."""
        part = self._state.parts[number]
        part.bitmaps[place] = bitmap
        if len(part.bitmaps) < self._helpers:
            return None
        for each in range(1, self._helpers + 1):
            self._digests.pop((number, each), None)
        return self._state.parts.pop(number)


def accepted_by(part: Part, place: int) -> frozenset[int]:
    """The senders whose report a helper accepts."""
    senders = sorted(part.heads)
    return frozenset(senders[each] for each in members(part.bitmaps[place], len(senders)))


def accepted_by_all(part: Part) -> list[int]:
    """The senders whose report every helper accepts, in increasing order."""
    return sorted(reduce(and_, (accepted_by(part, place) for place in part.bitmaps)))
