"""Claims that a session's reports prove, as frozen plain numbers: equal for all parties, and in the digest."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from privstats import domains
from privstats.contrib.proofs.counts import of_counts
from privstats.contrib.proofs.field import Field, Prime, add, lift, stream, words_in
from privstats.contrib.proofs.field_streams import FieldStreams
from privstats.contrib.proofs.moments import of_classes, of_folds, of_separate_classes
from privstats.contrib.proofs.norm import of_norms
from privstats.contrib.proofs.statement import Statement
from privstats.contrib.proofs.transcript import BLIND_BYTES, Transcript
from privstats.contrib.proofs.verifier import answer_size, bad_parts
from privstats.encoding import Layout, RingVector, Segment
from privstats.errors import PlanError
from privstats.extend.plans import Group, Headroom
from privstats.schema import Schema

Sums: TypeAlias = Literal["classes", "class means", "classes apart", "folds", "tables", "norms"]
"""Sums that a statement reads: N, A and B; N and A; N, A and S; a regression's folds; tables of counts; norms."""

_WORD = 8
_FREE = 1 << 60  # half of the field


@dataclass(frozen=True)
class Claim:
    """The claim that every report of a session proves.

    Args:
        sums: the kind of the sums.
        sizes: classes and features; features, targets and folds; cells of each table; or entries of each statistic.
        unit: field steps of one record in every statistic, 4**f; in tables, of one record or wire step.
        most_records: n; in tables, in these units.
        grid_bits: f; 0 in tables.
        counters: in norms, indices of entries between 0 and n records.
        clipped: the plan clips clients.

    Example:
        >>> from privstats.contrib.proofs.claims import Claim, statement_of
        >>> statement_of(Claim("classes", (10, 64), 4**12, 68, 12)).bits
        23
    """

    sums: Sums
    sizes: tuple[int, ...]
    unit: int
    most_records: int
    grid_bits: int = 0
    counters: tuple[int, ...] = ()
    clipped: bool = False

    @property
    def stated(self) -> tuple[object, ...]:
        """Fields and derived numbers, for a digest."""
        statement = statement_of(self)
        fields = (self.sums, self.sizes, self.unit, self.most_records, self.grid_bits, self.counters, self.clipped)
        return (domains.PROOF, statement.name, *fields, statement.signed, statement.bits, statement.ends)

    @property
    def statement(self) -> Statement:
        """The statement that the claim names."""
        return statement_of(self)

    @property
    def size(self) -> int:
        """Entries of a vector."""
        return self.statement.size

    @property
    def upload_bytes(self) -> int:
        """Bytes of the leader's share with its blind."""
        return BLIND_BYTES + _WORD * self.statement.ends[-1]

    @property
    def answer_bytes(self) -> int:
        """Bytes of a helper's answer."""
        return _WORD * answer_size(self.statement)

    @property
    def tolerance(self) -> float:
        """Records beyond ``most_records`` that a coarse grid allows a liar."""
        return self.statement.tolerance / self.unit

    def group(self, schema: Schema, layout: Layout) -> Prime:
        """Return the wire entries' group, with segments' factors."""
        bounds = {row.letter: row.bound(schema.grid_steps) for row in schema.sent}
        unit = 4**self.grid_bits
        factors = {letter: max(1, unit // bound) for letter, bound in bounds.items()}
        return Prime(tuple((segment.size, factors[segment.statistic]) for segment in layout.segments))

    def headroom(
        self, rooms: tuple[Headroom, ...], group: Group, clients: int, tail: Callable[[Segment], float]
    ) -> tuple[Headroom, ...]:
        """Return every segment's room in the group; refuse noisy sums that could exceed half of the field."""
        prime = _prime(group)
        reach = self.statement.reach if self.statement.tested_size else 0
        sums = clients * (2 * self.most_records * self.unit + reach)
        out = []
        for room, (_, factor) in zip(rooms, prime.parts, strict=True):
            noise = factor * (math.ceil(tail(room.segment)) + 1)
            if max(sums + noise, factor * room.largest) >= _FREE:
                raise PlanError(
                    f"the sums of {clients} clients have no room in the field of the proofs: lower "
                    "cohort.max_records, cohort.clients, schema.grid_bits or validity.most_records"
                )
            out.append(replace(room, bits=prime.segments[0][1] - (factor.bit_length() - 1)))
        return tuple(out)

    def stated_in(self, group: Group) -> tuple[object, ...]:
        """Return the values for the parameters' digest."""
        return (_prime(group).parts, self.stated)

    def scheme(self, group: Group, helpers: int, context: bytes) -> FieldStreams:
        """Return a run's masking scheme."""
        return FieldStreams(_prime(group), self.statement, helpers, context)

    def check_vector(self, vector: RingVector) -> None:
        """Raise ``DataError`` for an unprovable vector."""
        x = lift(np.concatenate(vector.lanes).astype(np.uint64))
        hidden = self.statement.hidden_of(x)
        self.statement.witness(x, hidden, lambda number, size: stream(number.to_bytes(32, "big"), size))

    def is_signed(self, body: bytearray, context: bytes, sender: int, commits: bytes, parts: bytes) -> bool:
        """Return whether the client signed the share's parts."""
        words, blind = words_in(memoryview(body)[BLIND_BYTES:]), bytes(body[:BLIND_BYTES])
        return not bad_parts(self.statement, words, blind, Transcript.of(context, sender, commits, parts))

    def words(self, column: bytes | memoryview) -> Field:
        """Return a column's words as checked elements."""
        return words_in(column)

    def add(self, words: Field, more: Field) -> Field:
        """Return entries' sums in the field."""
        return add(words, more)


def _prime(group: Group) -> Prime:
    if not isinstance(group, Prime):
        raise TypeError(f"a claim reads vectors over its field, got a {type(group).__name__}; pass claim.group(...)")
    return group


@lru_cache(maxsize=8)
def statement_of(claim: Claim) -> Statement:
    """Return the claim's statement."""
    return _STATEMENTS[claim.sums](claim)


def _classes(claim: Claim) -> Statement:
    classes, features = claim.sizes
    return of_classes(classes, features, claim.grid_bits, claim.most_records, clipped=claim.clipped)


def _means(claim: Claim) -> Statement:
    classes, features = claim.sizes
    return of_classes(classes, features, claim.grid_bits, claim.most_records, second=False)


def _apart(claim: Claim) -> Statement:
    classes, features = claim.sizes
    return of_separate_classes(classes, features, claim.grid_bits, claim.most_records)


def _folds(claim: Claim) -> Statement:
    features, targets, folds = claim.sizes
    return of_folds(features, targets, folds, claim.grid_bits, claim.most_records)


_STATEMENTS: Mapping[Sums, Callable[[Claim], Statement]] = {
    "classes": _classes,
    "class means": _means,
    "classes apart": _apart,
    "folds": _folds,
    "tables": lambda claim: of_counts(claim.sizes, claim.unit, claim.most_records),
    "norms": lambda claim: of_norms(claim.sizes, claim.unit, claim.most_records, claim.counters),
}
