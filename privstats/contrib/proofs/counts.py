"""The exact statement for tables of counts: integers, none below zero, at most n records in every table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from privstats.contrib.proofs.field import Field, Integers, P, mul, total
from privstats.contrib.proofs.statement import Coins, Gram, Slack, Statement
from privstats.errors import DataError, PlanError


@dataclass(frozen=True, eq=False)
class Counts(Statement):
    """Counts by their bits, without witness or tests.

    Args:
        tables: cells of each table, concatenated in x.
        unit: field steps of one record; of one wire step where the plan clips clients.
        most_records: n, in these units.
    """

    name: ClassVar[str] = "moments"
    witness_size: ClassVar[int] = 0  # type: ignore[misc]
    tested_size: ClassVar[int] = 0  # type: ignore[misc]
    square: ClassVar[int] = 0  # type: ignore[misc]
    grams: ClassVar[tuple[Gram, ...]] = ()  # type: ignore[misc]

    tables: tuple[int, ...]
    unit: int
    most_records: int

    @property
    def size(self) -> int:  # type: ignore[override]
        """All cells."""
        return sum(self.tables)

    @cached_property
    def slacks(self) -> tuple[Slack, ...]:  # type: ignore[override]
        """Every count, and n minus every table's total."""
        width = self.most_records.bit_length()
        cell, remaining = Slack("count", 0, width), Slack("records", self.most_records, width)
        return (*[cell] * self.size, *[remaining] * len(self.tables))

    def tested(self, x: Field, w: Field) -> Field:  # noqa: ARG002
        """Return no entries."""
        return x[:0]

    def relations(self, x: Field, w: Field, products: Sequence[Field]) -> Field:  # noqa: ARG002
        """Return counts in units, and minus each table's sum."""
        counts = mul(x, np.full(self.size, pow(self.unit, -1, P), np.uint64))
        sums = [-total(part) % P for part in np.split(counts, np.cumsum(self.tables)[:-1])]
        return np.concatenate([counts, np.array(sums, np.uint64)])

    def witness(self, x: Integers, hidden: Integers, coins: Coins) -> Integers:  # noqa: ARG002
        """Return no entries, for tables that meet the statement."""
        if x.shape != (self.size,) or hidden.size:
            raise DataError(f"the statement is about {self.size} counts and no hidden entry")
        tables = np.split(x, np.cumsum(self.tables)[:-1])
        most = self.most_records * self.unit
        if bool((x < 0).any()) or bool((x % self.unit).any()) or any(int(table.sum()) > most for table in tables):
            raise DataError(
                f"these are no tables of at most most_records={self.most_records} records: raise most_records, or "
                "count under the plan's schema"
            )
        return x[:0]


def of_counts(tables: Sequence[int], unit: int, most_records: int) -> Counts:
    """Build the statement about tables of these sizes."""
    statement = Counts(tuple(tables), unit, most_records)
    if 2 * (statement.size + 1) << most_records.bit_length() >= P:
        raise PlanError(
            f"validity={statement.name!r} has no room in its field for {statement.size} counts of "
            f"most_records={most_records}: lower it"
        )
    return statement
