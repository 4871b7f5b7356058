"""Batch reports for the helpers, and record the helpers' answers until a part is settled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from hashlib import sha256
from operator import and_

import numpy as np
from msgspec.structs import replace

from privstats.secagg.keys import Identity
from privstats.secagg.statements import Claim, Words
from privstats.secagg.upload import messages
from privstats.secagg.upload.checks import rows
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.signed_statements import batch_statement, derive, proofs
from privstats.secagg.upload.state import Head, LeaderState, Part
from privstats.secagg.upload.suite import BOX_BYTES
from privstats.secagg.wire import index, members

PART_BYTES = 64 << 20
"""Number of bytes of bodies at which a part is closed; the last body may exceed it."""

IN_FLIGHT = 4
"""Maximum number of parts that are closed and not settled, with their bodies in memory."""


class ReportBatches:
    """Batches of one leader's reports.

    Args:
        state: the leader's; this class maintains ``open``, ``parts`` and ``closed``.
        boxes: returns a report's boxes, read back if shelved.
    """

    def __init__(
        self,
        state: LeaderState,
        identity: Identity,
        parameters: UploadParameters,
        context: bytes,
        boxes: Callable[[Part, int], bytes],
    ) -> None:
        self._state, self._identity, self._parameters, self._context = state, identity, parameters, context
        self._boxes = boxes
        self._digests: dict[tuple[int, int], bytes] = {}

    @property
    def busy(self) -> bool:
        """Whether no further report can be accepted until a helper has answered."""
        return sum(bool(part.bodies) for part in self._state.parts.values()) >= IN_FLIGHT

    def add(self, sender: int, head: Head, body: bytearray) -> int | None:
        """Add a report; return the part's number if the report closes the part."""
        part = self._state.open
        part.heads[sender], part.bodies[sender] = head, body
        count = len(part.heads)
        full = count >= self._parameters.max_in_part or count * self._parameters.upload_bytes >= PART_BYTES
        return self.close() if full else None

    def close(self) -> int | None:
        """Close the open part and return its number, or None if empty."""
        state = self._state
        if not state.open.heads:
            return None
        number, state.closed = state.closed, state.closed + 1
        if self._parameters.claim is not None:
            state.open.rho = self._coins(number, state.open)
        state.parts[number], state.open = state.open, Part()
        return number

    def shelve(self, places: Mapping[int, bytes]) -> list[bytearray]:
        """Record where a journal stores these reports; return their bodies, which memory no longer needs.

        Boxes are removed too, as each snapshot would rewrite them.
        """
        freed = []
        for part in (self._state.open, *self._state.parts.values()):
            for sender in sorted(part.bodies.keys() & places.keys()):
                part.places[sender] = places[sender]
                freed.append(part.bodies.pop(sender))
                part.heads[sender] = replace(part.heads[sender], boxes=b"")
                if self._parameters.claim is not None:
                    part.hashes[sender] = sha256(freed[-1]).digest()
        return freed

    def _coins(self, number: int, part: Part) -> bytes:
        """Return coins that are unknown before the batch leaves and bound to all its reports, bodies included."""
        # Derived, so that a restored leader has equal coins for equal reports only.
        named = sha256()
        for sender, head in sorted(part.heads.items()):
            hashed = part.hashes.get(sender) or sha256(part.bodies[sender]).digest()
            named.update(index(sender) + head.digest + hashed)
        return derive(self._state.private, f"rho/{number}/{named.hexdigest()}", self._context)

    def due(self, place: int) -> int | None:
        """Return the part that this helper must answer next, or None."""
        return min((number for number, part in self._state.parts.items() if place not in part.bitmaps), default=None)

    def batch(self, number: int, place: int) -> bytes:
        """Return the message with a part for a helper: identical bytes each time."""
        part = self._state.parts[number]
        heads = dict(sorted(part.heads.items()))
        boxes = [rows(self._boxes(part, sender), BOX_BYTES) for sender in heads]
        named = self._context, number, tuple(heads)
        columns = (
            b"",
            b"".join(proofs(each)[place] for each in boxes),
            b"".join(each[place] for each in boxes),
            b"".join(head.signature for head in heads.values()),
        )
        unsigned: messages.Batch | messages.ProvedBatch = messages.Batch(*named, *columns, bytes(64))
        if part.rho:
            commits, parts = (b"".join(column) for column in zip(*_proofs_of(heads.values()), strict=True))
            unsigned = messages.ProvedBatch(*named, *columns, commits, parts, part.rho, bytes(64))
        data = messages.encode(unsigned)
        signed = sha256(messages.signed_part(memoryview(data))).digest()
        message = data[:-64] + self._identity.sign(batch_statement(self._context, place, signed))
        self._digests[number, place] = sha256(message).digest()
        return message

    def batch_digest(self, number: int, place: int) -> bytes:
        """Return the hash of the message that :meth:`batch` returns."""
        if (number, place) not in self._digests:
            self.batch(number, place)
        return self._digests[number, place]

    def answered(self, number: int, place: int, bitmap: bytes, answers: Words | None = None) -> Part | None:
        """Record a helper's answer; return the part if the answer settles the part.

        ``answers`` are to the accepted proofs, in order; None without proofs.
        """
        part = self._state.parts[number]
        part.bitmaps[place] = bitmap
        if answers is not None and self._parameters.claim is not None:
            part.answers = _added(part, place, answers, self._parameters.claim).astype("<u8").tobytes()
        if len(part.bitmaps) < self._parameters.helpers:
            return None
        for each in range(1, self._parameters.helpers + 1):
            self._digests.pop((number, each), None)
        return self._state.parts.pop(number)


def accepted_by(part: Part, place: int) -> frozenset[int]:
    """Return the senders of the reports that a helper accepts."""
    senders = sorted(part.heads)
    return frozenset(senders[each] for each in members(part.bitmaps[place], len(senders)))


def accepted_by_all(part: Part) -> list[int]:
    """Return the senders that every helper accepts, in increasing order."""
    return sorted(reduce(and_, (accepted_by(part, place) for place in part.bitmaps)))


def answers_to(part: Part) -> dict[int, Words]:
    """Return the helpers' summed answers to each proof, by sender."""
    table = np.frombuffer(part.answers, "<u8").astype(np.uint64).reshape(len(part.heads), -1)
    return dict(zip(sorted(part.heads), table, strict=True))


def _added(part: Part, place: int, answers: Words, claim: Claim) -> Words:
    count = len(part.heads)
    table = np.zeros((count, answers.shape[1]), np.uint64)
    if part.answers:
        table = np.frombuffer(part.answers, "<u8").astype(np.uint64).reshape(count, -1)
    accepted = sorted(members(part.bitmaps[place], count))
    table[accepted] = claim.add(table[accepted], answers)
    return table


def _proofs_of(heads: Iterable[Head]) -> Iterator[tuple[bytes, bytes]]:
    return ((head.commits, head.parts) for head in heads)
