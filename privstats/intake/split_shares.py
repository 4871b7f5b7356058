"""Compare the share of records that a split held out with the share asked for, in all and by class.

The numbers are exact, so the warning is for the data holder alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privstats.intake.columns import Readings

_MAX_CLASSES, _MAX_SHOWN = 64, 4
_DEVIATIONS = 5
# By Bernstein's inequality, coins pass 5 deviations and this number by chance in fewer than 1 of 100,000 splits.
_MARGIN = 4.2


@dataclass
class _Tally:
    name: str = ""
    records: int = 0
    held_out: int = 0

    def add(self, sides: NDArray[np.int8]) -> None:
        self.records += int((sides >= 0).sum())
        self.held_out += int((sides > 0).sum())

    def is_off(self, share: float, records_per_coin: float) -> bool:
        deviation = math.sqrt(self.records * records_per_coin * share * (1 - share))
        return abs(self.held_out - self.records * share) > _DEVIATIONS * deviation + _MARGIN * records_per_coin

    def __str__(self) -> str:
        of = f" of the class {self.name!r}" if self.name else ""
        return f"{self.held_out:,} of {self.records:,} records{of} are held out ({self.held_out / self.records:.1%})"


class Shares:
    """Numbers of records, and of those held out, over all records and by class.

    Example:
        >>> from privstats.intake.columns import read
        >>> from privstats.intake.split_shares import Shares
        >>> shares, sides = Shares(), np.repeat(np.array([1, 0], np.int8), 200)
        >>> shares.add(np.zeros(400, np.uint64), read(np.zeros(400)), sides)
        >>> shares.remark(0.25, persons=3)
        ''
        >>> shares.remark(0.25, persons=400).partition(";")[0]
        '200 of 400 records are held out (50.0%), where the split asks for 25%'
    """

    def __init__(self) -> None:
        self._all = _Tally()
        self._classes: dict[int, _Tally] | None = {}

    def add(self, labels: NDArray[np.uint64] | None, readings: Readings | None, sides: NDArray[np.int8]) -> None:
        """Add some records.

        Args:
            labels: equal words for equal labels, ``(n,)``; None where no single target is read.
            readings: the labels' readings, for their names.
            sides: 1 for a record that is held out, 0 for one that is summed, -1 for one of no person, ``(n,)``.
        """
        self._all.add(sides)
        if labels is None or readings is None or self._classes is None:
            self._classes = None
            return
        new = set(labels.tolist()).difference(self._classes)
        if len(self._classes) + len(new) > _MAX_CLASSES:  # no classes, but numbers
            self._classes = None
            return
        for label in new:
            self._classes[label] = _Tally(_name(readings, int(np.argmax(labels == np.uint64(label)))))
        for label, tally in self._classes.items():
            tally.add(sides[labels == np.uint64(label)])

    def remark(self, share: float, *, persons: int) -> str:
        """Return a warning if a share is more than 5 binomial deviations from the one asked for; else "".

        Coins of single records never do that. Persons whose numbers of rows differ may.

        Args:
            share: share asked for.
            persons: number of persons with a coin each; 0 where each record has its own.
        """
        records_per_coin = self._all.records / persons if persons else 1.0
        classes = list((self._classes or {}).values())
        tallies = [self._all, *(classes if len(classes) > 1 else [])]
        off = [str(tally) for tally in tallies if tally.is_off(share, records_per_coin)]
        if not off:
            return ""
        why = (
            "a person's rows stay together, and some persons have many. Check that the ids name persons. Choose no "
            "other seed for this, because a seed must not depend on records"
            if persons
            else "coins of single records do not do this. Score nothing on this split, and report it as a fault"
        )
        return f"{', '.join(off[:_MAX_SHOWN])}, where the split asks for {share * 100:.4g}%; {why}"


def _name(readings: Readings, record: int) -> str:
    place = readings.places[record]
    return readings.distinct[place] if place >= 0 else f"{readings.numbers[record]:.15g}"
