"""The prover: a client's report that proves a statement.

Equal arguments produce identical bytes, so use each secret with one vector and one witness only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privstats.contrib.proofs import transcript
from privstats.contrib.proofs.field import Field, P, add, lift, stream, subtract
from privstats.contrib.proofs.field import dot as inner
from privstats.contrib.proofs.gadgets import Bits, projected
from privstats.contrib.proofs.statement import Statement
from privstats.contrib.proofs.transcript import Transcript
from privstats.errors import DataError
from privstats.secagg.upload.signed_statements import derive, seed_commitment

_BLINDS = 64  # an honest client needs another one with probability 2**-122


@dataclass(frozen=True)
class Secrets:
    """The secrets of one report.

    Attributes:
        context, sender: the run's, and the client's roster index.
        secret: 32 bytes for this vector, witness, run and sender alone.
        seeds: each helper's 32 bytes.
    """

    context: bytes
    sender: int
    secret: bytes
    seeds: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"Secrets(sender={self.sender})"


@dataclass(frozen=True, eq=False)
class Proof:
    """A finished report: the leader's share, its 32-byte blind, and the part that the client signs."""

    body: Field
    blind: bytes
    transcript: Transcript

    def __repr__(self) -> str:
        return f"Proof(sender={self.transcript.sender})"


def prove(statement: Statement, x: Field, witness: Field, secrets: Secrets) -> Proof:
    """Return an honest client's report; raise ``DataError`` where the witness fails the statement."""
    attempts = (Attempt(statement, x, witness, secrets, number) for number in range(_BLINDS))
    for attempt in attempts:
        if not attempt.keeps:
            break  # no blind changes this
        if attempt.fits:
            return attempt.finished()
    raise DataError(
        f"no proof of validity={statement.name!r} was found: these sums exceed the plan's bounds; measure them under "
        "the plan's schema, or raise most_records"
    )


class Attempt:
    """One try: the first stage under one blind, and everything derived from it.

    Attributes:
        x, witness: the proved entries, and their witness.
        number: of the try, for blind and masks.
        commits: to the helpers' seeds.
        vector: the report in the clear.
    """

    def __init__(self, statement: Statement, x: Field, witness: Field, secrets: Secrets, number: int) -> None:
        self.statement, self._secrets, self.number = statement, secrets, number
        self.blind = self._key("blind")
        self.commits = tuple(
            seed_commitment(secrets.context, secrets.sender, place, seed)
            for place, seed in enumerate(secrets.seeds, start=1)
        )
        self.x, self.witness = x, witness
        self.products = [gram.product(x, witness) for gram in statement.grams]
        self.vector = np.zeros(statement.ends[-1], np.uint64)
        self.vector[: statement.ends[0]] = np.concatenate([x, witness, *self._masked()])

    def _key(self, label: str) -> bytes:
        return derive(self._secrets.secret, f"{label}/{self.number}", self._secrets.context)

    def _masked(self) -> list[Field]:
        out = []
        for gram, product in zip(self.statement.grams, self.products, strict=True):
            mask = stream(self._key(f"mask {gram.name}"), gram.columns)
            right = gram.multiply(self.x, self.witness, mask)
            out += [product, mask, right, np.array([inner(mask, mask)], np.uint64)]
        return out

    @cached_property
    def _streams(self) -> Field:
        secrets, size = self._secrets, self.statement.ends[-1]
        out = np.zeros(size, np.uint64)
        for seed in secrets.seeds:
            out = add(out, transcript.share(seed, secrets.context, secrets.sender, size))
        return out

    def _stage(self, number: int) -> bytes:
        start, end = (0, *self.statement.ends)[number : number + 2]
        return subtract(self.vector[start:end], self._streams[start:end]).astype("<u8").tobytes()

    @cached_property
    def first_part(self) -> bytes:
        """The hash of the first stage."""
        return transcript.first_part(self._secrets.context, self._secrets.sender, self.blind, self._stage(0))

    @cached_property
    def first(self) -> bytes:
        """z_1, which determines the signs."""
        secrets = self._secrets
        return transcript.first_challenge(secrets.context, secrets.sender, self.commits, self.first_part)

    @cached_property
    def sums(self) -> list[int]:
        """Signed sums, centred modulo p."""
        statement = self.statement
        if not statement.signed:
            return []
        tested = lift(statement.tested(self.x, self.witness))
        signs = transcript.signs(self.first, self._secrets.context, statement.tested_size)
        return [_centred(each) for each in projected(tested, signs, statement.signed)]

    @cached_property
    def values(self) -> list[int]:
        """Slacks' required values, centred modulo p."""
        forms = self.statement.relations(self.x, self.witness, self.products)
        return [_centred(int(form) + slack.constant) for form, slack in zip(forms, self.statement.slacks, strict=True)]

    @property
    def keeps(self) -> bool:
        """Whether every slack is in range."""
        widths = (slack.width for slack in self.statement.slacks)
        return all(0 <= each < 1 << width for each, width in zip(self.values, widths, strict=True))

    @property
    def fits(self) -> bool:
        """Whether sums and slacks are in range."""
        half = 1 << (self.statement.bits - 1)
        return self.keeps and all(-half <= each < half for each in self.sums)

    def finished(self) -> Proof:
        """Return the report, even out of range."""
        statement, bits = self.statement, Bits(self.statement.bits)
        shifted = [each + (1 << (bits.count - 1)) for each in self.sums]
        rows = [bits.rows_of(each, bits.count) for each in shifted]
        rows += [bits.rows_of(v, slack.width) for v, slack in zip(self.values, statement.slacks, strict=True)]
        return self.with_bits(np.concatenate(rows))

    def with_bits(self, table: Field) -> Proof:
        """Return the report with these bits, ``(rows, Q)``."""
        statement, bits = self.statement, Bits(self.statement.bits)
        masks = stream(self._key("mask bits"), statement.rows)
        first, second, _ = statement.ends
        self.vector[first:second] = np.concatenate([table.ravel(), masks])
        context, sender = self._secrets.context, self._secrets.sender
        part = transcript.second_part(context, sender, self.blind, self._stage(1))
        signed = Transcript(context, sender, self.commits, (self.first_part, part))
        gamma = transcript.gamma(signed.second, context, statement.rows)
        self.vector[second:] = bits.quotients(masks, table, gamma).ravel()
        return Proof(subtract(self.vector, self._streams), self.blind, signed)


def _centred(value: int) -> int:
    return (value + P // 2) % P - P // 2
