"""Bound one person's contribution to the sums: clip all rows together to a declared weighted norm, or average them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.encoding.client_clip import ROUNDING, ClippedSums, clip_vector
from privstats.encoding.layout import blocks_of, flatten, layout_of
from privstats.errors import DataError
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.moments import Moments
    from privstats.moments.person_sums import Squares


@dataclass(frozen=True)
class PersonClip:
    """A limit on one person's contribution, in worst-case records; public (``plan.person_clip``).

    Attributes:
        records: the limit c; a person with at most c rows counts in full.
        weights: w_s = share / sensitivity^2 by letter. Sums ``v`` have norm ``sqrt(sum_s w_s ||v_s||^2)``.

    Guarantee:
        One person's contribution follows from that person's rows and this value alone. Its norm is at most ``records``,
        in integers and for any number of rows (docs/proofs/persons.md, One person).

    Example:
        >>> privacy = ps.Privacy(model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5,
        ...     max_records_per_person=5, person_clip=2.0)
        >>> ps.dp.person_clip(ps.ClassSchema(2, 2, "NA", 1.0), privacy).records
        2.0
    """

    averaged: ClassVar[bool] = False

    records: float
    weights: tuple[tuple[str, float], ...]

    def most_records(self, schema: Schema) -> int:
        """Return n such that a person's entries, and the total of the counts, are at most those of n records.

        This number follows from public values alone. It can exceed c: if all of c is in one statistic, its entries
        reach ``c / sqrt(share)`` times one record's.

        Example:
            >>> schema = ps.ClassSchema(2, 2, "NA", 1.0)
            >>> privacy = ps.Privacy(model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5,
            ...     max_records_per_person=2, person_clip=2)
            >>> ps.dp.person_clip(schema, privacy).most_records(schema)  # 2 sqrt(2 / .02): 2 cells, 2 % of mu^2
            20
        """
        weights, largest = dict(self.weights), 1.0
        for each in layout_of(schema).segments:
            if each.size:
                reach = self.records * each.noise_factor * each.scale / math.sqrt(weights[each.statistic])
                cells = math.sqrt(each.size) if each.name == "N" else 1.0
                largest = max(largest, cells * reach / each.bound)
        # Clipped norms are at most records * ROUNDING. The factor halfway between ROUNDING and 1 covers the float error
        # of ``largest``, and keeps that error from adding a record when ``largest`` is rounded up.
        return math.ceil(largest * (1 + ROUNDING) / 2)

    def clipped(self, *parts: Moments) -> tuple[dict[str, Any], bool]:
        """Return one person's contribution by letter (wire steps, block axis first), and whether it was clipped.

        ``parts`` are the moments of this person's rows. Sums beyond 64 bits are first divided by a power of two and
        truncated; the clip would reduce them further anyway.
        """
        schema = parts[0].schema
        vector = flatten(parts[0])
        for part in parts[1:]:
            vector = vector.astype(object) + flatten(part).astype(object)
        if len(parts) > 1:
            unit = 1 << max(int(np.abs(vector).max()).bit_length() - 63, 0)
            vector = (np.sign(vector) * (np.abs(vector) // unit)).astype(np.int64)
        clipped = clip_vector(schema, vector, dict(self.weights), self.records * ROUNDING)
        return blocks_of(schema, clipped.vector), clipped.shrink < 1

    # rows is unused here: PersonAverage reads it.
    def clip_many(self, schema: Schema, rows: int, squares: Squares) -> ClippedSums:  # noqa: ARG002
        """Clip many persons as :meth:`clipped` does, from their squared lengths."""
        of_all, norm = squares.of_all(), self.records * ROUNDING
        return ClippedSums.by_squares(schema, of_all, dict(self.weights), norm, squares.error, squares.exactly)


@dataclass(frozen=True)
class PersonAverage:
    """The rule that a person counts as one record, the average of that person's rows.

    Guarantee:
        One person's contribution follows from that person's rows alone. In any weighted L1 or L2 norm it is no longer
        than the longest row, for any number of rows (docs/proofs/persons.md, One person).

    Example:
        >>> schema, ids = ps.ClassSchema(2, 2, "NA", 1.0), ["anna", "anna", "anna", "anna", "ben"]
        >>> X, y, average = np.ones((5, 2)) / 2, [0, 0, 0, 1, 1], ps.encoding.PersonAverage()
        >>> moments = ps.measure(schema, X, y, persons=ids, person_clip=average)
        >>> moments.real().N.tolist()  # three of Anna's four rows are of class 0
        [0.75, 1.25]
    """

    averaged: ClassVar[bool] = True
    records: ClassVar[float] = 1.0
    """Every person counts as one record, whatever the number of rows."""

    def most_records(self, _: Schema) -> int:
        """Return 1: one record's largest entries and counts bound a person's contribution.

        Example:
            >>> ps.encoding.PersonAverage().most_records(ps.ClassSchema(2, 2, "NA", 1.0))
            1
        """
        return 1

    def clipped(self, *parts: Moments) -> tuple[dict[str, Any], bool]:
        """Return one person's average by letter (wire steps, block axis first), and False: no person is clipped."""
        counted = [part.records for part in parts]
        # Without the number of rows the sums would be returned as if they were the average.
        if None in counted:
            raise DataError("these moments have no number of records; give the result of measure")
        rows = max(sum(each or 0 for each in counted), 1)
        return {row.letter: _average(parts, row, rows) for row in parts[0].schema.sent}, False

    # schema and squares are unused here: PersonClip reads them.
    def clip_many(self, schema: Schema, rows: int, squares: Squares) -> AveragedSums:  # noqa: ARG002
        """Average many persons who have ``rows`` rows each."""
        return AveragedSums(rows)


@dataclass(frozen=True)
class AveragedSums:
    """Averages, truncated toward zero, of sums over ``rows`` rows each.

    A quotient of integers below 2**53 is an integer, or further from any integer than rounding can move it.
    """

    rows: int
    shrunk: int = 0

    # owner is unused here: ClippedSums reads it.
    def of(self, sums: NDArray[np.float64], owner: NDArray[np.intp]) -> NDArray[np.float64]:  # noqa: ARG002
        """Return persons' sums ``(n, entries)`` as averages."""
        return np.asarray(np.trunc(sums / self.rows))

    def exact_factors(self, owner: NDArray[np.intp], maxima: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ARG002
        """Return m / 2**s, m = floor(2**s / rows) + 1; 0 where a sum v exceeds 2**25.

        v m / 2**s is exact in float64. It exceeds v / rows by less than 1 / rows, the minimum distance of a quotient
        from the next larger integer, so both truncate alike.
        """
        scale = 1 << 25 + self.rows.bit_length()
        return np.where(maxima <= 1 << 25, (scale // self.rows + 1) / scale, 0.0)


# Divide the exact sum by the number of rows, toward zero; in Python's integers where it may exceed 64 bits.
def _average(parts: tuple[Moments, ...], row: Any, rows: int) -> NDArray[np.int64]:
    kind: Any = np.int64 if len(parts) == 1 else object
    total = sum(np.asarray(part.sums(row)).astype(kind) * (1 if part.in_wire_steps else row.factor) for part in parts)
    exact = np.asarray(total)
    return np.asarray(np.sign(exact) * (np.abs(exact) // rows), np.int64)
