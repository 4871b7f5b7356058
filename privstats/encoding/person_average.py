"""The average of one person: of what all rows add to the sums, cut toward zero to whole steps.

For the person unit of privacy. Every person weighs as one record then, so the sums are those of one row drawn from each
person, in expectation, and intervals may be read from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.schema import Schema

if TYPE_CHECKING:
    from privstats.moments import Moments
    from privstats.moments.person_sums import Squares

__all__ = ["AveragedSums", "PersonAverage"]


@dataclass(frozen=True)
class PersonAverage:
    """A person counts as one record, whose sums are the average of what the rows add (``plan.person_clip``).

    Guarantee:
        What one person adds follows from the rows of that person alone. It is no longer than the longest of the rows,
        in any norm, and for any number of rows (docs/sensitivity.md, One person).

    Example:
        >>> schema, ids = ps.ClassSchema(2, 2, "NA", 1.0), ["anna", "anna", "anna", "anna", "ben"]
        >>> X, y, average = np.ones((5, 2)) / 2, [0, 0, 0, 1, 1], ps.encoding.PersonAverage()
        >>> moments = ps.measure(schema, X, y, persons=ids, person_clip=average)
        >>> moments.real().N.tolist()  # of Anna three rows in four are of class 0
        [0.75, 1.25]
    """

    averaged: ClassVar[bool] = True
    records: ClassVar[float] = 1.0
    """A person of one row counts in full, as whoever has more."""

    def most_records(self, _: Schema) -> int:
        """1: no entry, and no sum of counts, is beyond what one record can give.

        Example:
            >>> ps.encoding.PersonAverage().most_records(ps.ClassSchema(2, 2, "NA", 1.0))
            1
        """
        return 1

    def clipped(self, *parts: Moments) -> tuple[dict[str, Any], bool]:
        """What one person adds, by letter in wire steps and blocks first; nobody is shrunk.

        Args:
            parts: moments of all rows of this person and of no other, in one or several parts.

        Raises:
            DataError: of how many rows they are is unknown.
        """
        counted = [part.records for part in parts]
        if None in counted:  # or the sums would be taken for an average
            raise DataError("these moments have no number of records; give the result of measure")
        rows = max(sum(each or 0 for each in counted), 1)
        return {row.letter: _average(parts, row, rows) for row in parts[0].schema.sent}, False

    def cut(self, schema: Schema, rows: int, squares: Squares) -> AveragedSums:  # noqa: ARG002  clips read them
        """What :meth:`clipped` makes of the sums of many persons of so many rows each."""
        return AveragedSums(rows)


@dataclass(frozen=True)
class AveragedSums:
    """What leaves of sums over so many rows each their averages, toward zero.

    A quotient of whole numbers below 2**53 that is none lies further from the next one than rounding moves it.
    """

    rows: int
    shrunk: int = 0

    def of(self, sums: NDArray[np.float64], owner: NDArray[np.intp]) -> NDArray[np.float64]:  # noqa: ARG002  clips read it
        """Sums ``(n, entries)`` of persons, as averages."""
        quotients = sums / self.rows
        return np.asarray(np.trunc(quotients, out=quotients))


def _average(parts: tuple[Moments, ...], row: Any, rows: int) -> NDArray[np.int64]:
    """The exact sum in Python's whole numbers where it may pass 64 bits, over the number of rows, toward zero."""
    kind: Any = np.int64 if len(parts) == 1 else object
    total = sum(np.asarray(part.sums(row)).astype(kind) * (1 if part.in_wire_steps else row.kept) for part in parts)
    whole = np.asarray(total)
    return np.asarray(np.sign(whole) * (np.abs(whole) // rows), np.int64)
