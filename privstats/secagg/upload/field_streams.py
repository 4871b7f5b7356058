"""The masking scheme of reports that carry a proof: shares of a whole report, of which only the vector is summed.

A helper's piece is the seed of its share. The leader's body is a blind and its share; the two hashes of parts that the
client signs fix that share, its commitments fix the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from privstats.encoding import RingVector
from privstats.errors import LocalProtocolError
from privstats.secagg.upload.masking_scheme import Hidden, MaskingScheme, Streams, secret_of
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.proof.field import Field, add, elements, lift, stream
from privstats.secagg.upload.proof.group import Prime, words_in
from privstats.secagg.upload.proof.prover import Secrets, prove
from privstats.secagg.upload.proof.statement import Statement
from privstats.secagg.upload.proof.transcript import BLIND_BYTES, Transcript, share
from privstats.secagg.upload.proof.verifier import answer, query_of, refusals
from privstats.secagg.upload.signed_statements import derive

__all__ = ["FieldStreams", "check_provable", "proving", "scheme_of"]

_WORD = 8


class FieldStreams:
    """The masking scheme of one run whose reports prove ``statement``.

    Args:
        group: of the summed vectors.
        statement: what every report proves.
        helpers: the number of helpers.
        context: the context of the run.

    Guarantee: any of the members without one of the shares of a report sees a uniform vector, and learns of an honest
    report nothing from its proof's answers, for any query (docs/proofs.md).
    """

    def __init__(self, group: Prime, statement: Statement, helpers: int, context: bytes) -> None:
        self._group, self._statement, self._helpers, self._context = group, statement, helpers, context

    @property
    def answer_bytes(self) -> int:
        """The vector's packed bytes, without the proof's."""
        return self._group.wire_bytes

    def cover(self, vector: RingVector, root: bytes | bytearray, sender: int) -> Hidden:
        """The report of an honest client, under a secret that depends on its witness too.

        A witness need not be the same on two machines, so a report must not be made twice.

        Raises:
            DataError: the vector does not keep the statement.
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
        said = proof.transcript
        return Hidden(secret, (body,), seeds, b"".join(said.commits), b"".join(said.parts))

    def zeros(self) -> RingVector:
        """The sum over no client."""
        return self._group.zeros()

    def add(self, total: RingVector, bodies: Sequence[memoryview]) -> None:
        """Add the vector's part of each body, in place."""
        for body in bodies:
            total.add(self._group.unpack(body[BLIND_BYTES : BLIND_BYTES + self._group.wire_bytes]))

    def answer(self, pieces: Iterable[tuple[int, bytes]], out: memoryview) -> None:
        """The sum of the vectors' shares of these senders."""
        total = np.zeros(self._group.size, np.uint64)
        for sender, seed in pieces:
            total = add(total, self._share(sender, seed)[: self._group.size])
        self._group.of(total).pack_into(out)

    def uncover(self, total: RingVector, answers: Mapping[int, bytes | memoryview], survivors: int) -> RingVector:  # noqa: ARG002
        """Total and answers, added up.

        Raises:
            ValueError: an answer holds a word that is no element of the field; the leader has refused such answers.
        """
        for each in answers.values():
            total.add(self._group.unpack(each))
        return total

    def helped(self, seed: bytes, said: Transcript, rho: bytes) -> Field:
        """A helper's answer to one report's proof, from the seed of its share."""
        query = query_of(self._statement, rho, said.context, said.sender)
        return answer(self._statement, self._share(said.sender, seed), said, query)

    def refused(self, body: bytearray, said: Transcript, rho: bytes, helped: Field) -> tuple[str, ...]:
        """The checks that a report fails, from the leader's body and the sum of the helpers' answers."""
        query = query_of(self._statement, rho, said.context, said.sender)
        own = answer(self._statement, words_in(memoryview(body)[BLIND_BYTES:]), said, query)
        return refusals(self._statement, add(own, helped), said, query)

    def _share(self, sender: int, seed: bytes) -> Field:
        return share(seed, self._context, sender, self._statement.ends[-1])


def check_provable(parameters: UploadParameters, vector: RingVector) -> None:
    """Refuse a vector that a client's report could not prove, in whole numbers and before anything is sent.

    Raises:
        DataError: it does not keep the statement.
    """
    statement = parameters.statement
    if statement is None:
        return
    x = lift(np.concatenate(vector.lanes).astype(np.uint64))
    statement.witness(x, statement.hidden_of(x), lambda number, size: stream(number.to_bytes(32, "big"), size))


def scheme_of(parameters: UploadParameters, context: bytes, *, threads: int = 1) -> MaskingScheme:
    """The masking scheme that these parameters name."""
    if parameters.statement is None or not isinstance(parameters.ring, Prime):
        return Streams(parameters.ring, parameters.helpers, context, threads=threads)
    return FieldStreams(parameters.ring, parameters.statement, parameters.helpers, context)


def proving(scheme: MaskingScheme) -> FieldStreams:
    """The scheme of a session whose reports carry proofs: no member goes on with one that proves nothing.

    Raises:
        LocalProtocolError: it is another scheme.
    """
    if not isinstance(scheme, FieldStreams):
        raise LocalProtocolError("reports of this session carry proofs, and the masking scheme verifies none")
    return scheme
