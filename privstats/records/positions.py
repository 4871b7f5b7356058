"""Name the first unreadable record in an error, for its data holder.

Only a failed call pays for this: it reads the records of one container, or of one batch, once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privstats.errors import DataError, RecordError
from privstats.intake.arrays import on_device
from privstats.records.containers import feature_rows, pairs
from privstats.records.labels import as_goals, goals_of
from privstats.records.readable import Readable
from privstats.records.reading import Reading

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Cursor", "first_unreadable"]


@dataclass(eq=False, repr=False)
class Cursor:
    """The batch that is being read.

    Attributes:
        before: number of records of earlier batches.
        batch: rows, and labels or targets; None before the first batch.
        mixed: whether some batches were on an accelerator and others were not.
    """

    before: int = 0
    batch: tuple[Any, Any] | None = None
    mixed: bool = False

    def over(self, batches: object) -> Iterator[tuple[Any, Any]]:
        """Yield the batches, and follow them."""
        elsewhere: bool | None = None
        for batch in pairs(batches):
            there = on_device(batch[0])
            self.mixed |= elsewhere is not None and there != elsewhere
            self.batch, elsewhere = batch, there
            yield batch
            self.before += _count(batch[1])

    def placed(self, error: RecordError, reading: Reading, X: Any, y: Any) -> RecordError:
        """Return an error with the position of the first unreadable record, where it can be found.

        Args:
            X, y: the records of the call; without ``y``, batches that this cursor followed.
        """
        if error.position is not None:  # of the records on an accelerator
            return RecordError(str(error)) if self.mixed else error.at(error.position)
        whole = (X, y) if y is not None else self.batch
        first = None if whole is None else first_unreadable(reading, *whole)
        return error if first is None else error.at(self.before + first)


def _count(y: Any) -> int:
    """Return the number of labels or targets; a path's is in its file."""
    counted = hasattr(y, "__len__") and not isinstance(y, str)
    return len(y) if counted else as_goals(y).shape[0]


def first_unreadable(reading: Reading, X: Any, y: Any) -> int | None:
    """Return the index of the first record that cannot be read, or None.

    Args:
        X, y: records of one container, and their labels or targets.
    """
    marks: list[NDArray[np.bool_]] = []
    readable = Readable(reading, lambda fine, *_: marks.append(fine))
    try:
        rows, goals = feature_rows(reading, X, one_by_one=True), goals_of(reading, y, one_by_one=True)
        for _ in readable.of([(rows, goals)]):
            if not marks[-1].all():
                return sum(map(len, marks[:-1])) + int(np.argmin(marks[-1]))
    except DataError:  # the records as a whole do not fit, which the error states
        return None
    return None
