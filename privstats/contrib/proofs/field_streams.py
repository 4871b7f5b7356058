"""The masking scheme of reports that carry a proof: shares of a complete report, of which only the vector is summed.

The client signs hashes and commitments that fix all shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from privstats.contrib.proofs.field import Field, Prime, add, elements, lift, stream, words_in
from privstats.contrib.proofs.prover import Secrets, prove
from privstats.contrib.proofs.statement import Statement
from privstats.contrib.proofs.transcript import BLIND_BYTES, Transcript, share
from privstats.contrib.proofs.verifier import answer, query_of, refusals
from privstats.encoding import RingVector
from privstats.secagg.upload.masking_scheme import Hidden, secret_of
from privstats.secagg.upload.signed_statements import derive


class FieldStreams:
    """The masking scheme of one run with reports that prove ``statement``.

    Guarantee: any set of members that lacks one of a report's shares sees a uniform vector, and learns nothing about an
    honest report from its proof's answers, for any query (docs/proofs/reports.md).
    """

    def __init__(self, group: Prime, statement: Statement, helpers: int, context: bytes) -> None:
        self._group, self._statement, self._helpers, self._context = group, statement, helpers, context

    @property
    def answer_bytes(self) -> int:
        """The vector's packed bytes, without the proof's."""
        return self._group.wire_bytes

    def cover(self, vector: RingVector, root: bytes | bytearray, sender: int) -> Hidden:
        """Return the report of an honest client; raise ``DataError`` where the vector does not meet the statement.

        The secret depends on the witness, which may differ between machines: compute a report only once.
        """
        x, context = np.concatenate(vector.lanes).astype(np.uint64), self._context
        hidden = self._statement.hidden_of(lift(x))
        witness = self._statement.witness(
            lift(x), hidden, lambda number, size: stream(derive(root, f"rounding/{number}", context), size)
        )
        secret = secret_of(root, context, sender, vector, witness.astype("<i8").tobytes())
        seeds = tuple(derive(secret, f"seed/{place}", context) for place in range(1, self._helpers + 1))
        proof = prove(self._statement, x, elements(witness), Secrets(context, sender, secret, seeds))
        body = memoryview(proof.blind + proof.body.astype("<u8").tobytes())
        signed = proof.transcript
        return Hidden(secret, (body,), seeds, b"".join(signed.commits), b"".join(signed.parts))

    def zeros(self) -> RingVector:
        """Return the sum over no client."""
        return self._group.zeros()

    def add(self, total: RingVector, bodies: Sequence[memoryview]) -> None:
        """Add each body's vector part, in place."""
        for body in bodies:
            total.add(self._group.unpack(body[BLIND_BYTES : BLIND_BYTES + self._group.wire_bytes]))

    def answer(self, pieces: Iterable[tuple[int, bytes]], out: memoryview) -> None:
        """Write the sum of these senders' vector shares."""
        total = np.zeros(self._group.size, np.uint64)
        for sender, seed in pieces:
            total = add(total, self._share(sender, seed)[: self._group.size])
        self._group.of(total).pack_into(out)

    def uncover(self, total: RingVector, answers: Mapping[int, bytes | memoryview], survivors: int) -> RingVector:  # noqa: ARG002
        """Return the total plus the answers."""
        for each in answers.values():
            total.add(self._group.unpack(each))
        return total

    def helped(self, seed: bytes, sender: int, commits: bytes, parts: bytes, rho: bytes) -> Field:
        """Return a helper's answer to one proof, from its seed."""
        signed = Transcript.of(self._context, sender, commits, parts)
        query = query_of(self._statement, rho, self._context, sender)
        return answer(self._statement, self._share(sender, seed), signed, query)

    def refused(
        self, body: bytearray, sender: int, commits: bytes, parts: bytes, rho: bytes, helped: Field
    ) -> tuple[str, ...]:
        """Return a report's failed checks, from leader's body and helpers' summed answers."""
        signed = Transcript.of(self._context, sender, commits, parts)
        query = query_of(self._statement, rho, self._context, sender)
        own = answer(self._statement, words_in(memoryview(body)[BLIND_BYTES:]), signed, query)
        return refusals(self._statement, add(own, helped), signed, query)

    def _share(self, sender: int, seed: bytes) -> Field:
        return share(seed, self._context, sender, self._statement.ends[-1])
