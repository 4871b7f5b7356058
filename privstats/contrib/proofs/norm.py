"""The statement ``norm``: every statistic's wire entries have the norm of at most n records.

x = 2**s y + e with quotients y as witness; y and e are proved small. It suits vectors without a preferred direction,
such as a gradient. It does not protect class moments: a liar within this norm ruins a head that inverts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.proofs.field import Field, Integers, P, mul, negative, subtract, total
from privstats.contrib.proofs.grams import Full, diagonal, rectangle
from privstats.contrib.proofs.statement import Coins, Gram, Slack, Statement
from privstats.errors import DataError, PlanError

_SHIFTS = range(61)


@dataclass(frozen=True, eq=False)
class Norm(Statement):
    """One bound for every statistic, and a range for entries that count.

    Args:
        sizes: entries by statistic.
        mass: n 4**f, the norm of n records.
        shift: s.
        counters: indices of entries between 0 and n 4**f.
    """

    name: ClassVar[str] = "norm"

    sizes: tuple[int, ...]
    mass: int
    shift: int
    counters: tuple[int, ...] = ()

    @property
    def size(self) -> int:  # type: ignore[override]
        """Entries of x."""
        return sum(self.sizes)

    @property
    def witness_size(self) -> int:  # type: ignore[override]
        """Entries of y."""
        return self.size

    @property
    def tested_size(self) -> int:  # type: ignore[override]
        """Entries of y and e."""
        return 2 * self.size

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """Bounds on each statistic's |y|**2: floor((mass / 2**s + sqrt(size) / 2)**2) + 1."""
        out = []
        for size in self.sizes:
            twice, step = 2 * self.mass, 1 << self.shift
            square = twice * twice + step * step * size + isqrt((2 * twice * step) ** 2 * size)
            out.append(square // (4 * step * step) + 1)
        return tuple(out)

    @property
    def square(self) -> int:  # type: ignore[override]
        """Bound on |y|**2 + |e|**2."""
        return sum(self.bounds) + (self.size << 2 * self.shift) // 4

    @property
    def tolerance(self) -> int:
        """Bound on |x| - mass: |x| <= 2**s |y| + |e|, with |y| proved at most mass / 2**s + sqrt(size) / 2, and
        |e| <= reach.
        """
        return self.reach + (isqrt(max(self.sizes) << 2 * self.shift) >> 1) + (1 << self.shift)

    @cached_property
    def slacks(self) -> tuple[Slack, ...]:  # type: ignore[override]
        """One slack per statistic's squares, and two per counter."""
        squares = [Slack("squares", bound, bound.bit_length()) for bound in self.bounds]
        width = self.mass.bit_length()
        return (*squares, *[Slack("at least", 0, width), Slack("at most", self.mass, width)] * len(self.counters))

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        columns = rectangle(self.size)[1]
        return tuple(np.cumsum([0, *(-(-size // columns) for size in self.sizes)]).tolist())

    @cached_property
    def _filled(self) -> NDArray[np.intp]:
        columns = rectangle(self.size)[1]
        starts = zip(self._starts, self.sizes, strict=False)
        return np.concatenate([row * columns + np.arange(size) for row, size in starts])

    @cached_property
    def grams(self) -> tuple[Gram, ...]:  # type: ignore[override]
        """The matrix of y, each statistic beginning a row."""
        rows, columns = self._starts[-1], rectangle(self.size)[1]

        def matrix(_: Field, w: Field) -> Field:
            out = np.zeros(rows * columns, np.uint64)
            out[self._filled] = w
            return out

        return (Full("quotients", rows, columns, matrix),)

    def tested(self, x: Field, w: Field) -> Field:
        """Return y and e = x - 2**s y."""
        return np.concatenate([w, subtract(x, mul(w, np.full(self.size, 1 << self.shift, np.uint64)))])

    def relations(self, x: Field, w: Field, products: Sequence[Field]) -> Field:  # noqa: ARG002
        """Return minus each statistic's squares; then each counter, and minus it."""
        traces = products[0][diagonal(self._starts[-1])]
        ends = zip(self._starts, self._starts[1:], strict=False)
        squares = [-total(traces[start:end]) % P for start, end in ends]
        counters = x[list(self.counters)]
        pairs = np.stack([counters, negative(counters)], axis=1).ravel()
        return np.concatenate([np.array(squares, np.uint64), pairs])

    def witness(self, x: Integers, hidden: Integers, coins: Coins) -> Integers:  # noqa: ARG002
        """Return y: x / 2**s, rounded to nearest."""
        if x.shape != (self.size,) or hidden.size:
            raise DataError(f"the statement is about {self.size} sums and no hidden entry")
        parts = np.split(x, np.cumsum(self.sizes)[:-1])
        counted = all(0 <= x[place] <= self.mass for place in self.counters)
        within = int(np.abs(x).max(initial=0)) <= self.mass
        if not counted or not within or any(_squares(part) > self.mass**2 for part in parts):
            raise DataError(
                "a statistic has a larger norm than the plan's most_records within the schema's bounds: raise "
                "most_records, or measure under the plan's schema"
            )
        half = (1 << self.shift) >> 1
        return (x + half) >> self.shift


def _squares(values: Integers) -> int:
    """Split values below 2**50 into halves that do not overflow."""
    high, low = values >> 20, values & ((1 << 20) - 1)
    return (int(high @ high) << 40) + (int(high @ low) << 21) + int(low @ low)


def of_norms(sizes: Sequence[int], unit: int, most_records: int, counters: Sequence[int] = ()) -> Norm:
    """Build the statement with the smallest shift that has room, and with rests as large as its quotients.

    Args:
        sizes, counters: as in :class:`Norm`.
        unit: 4**f, the norm of one record's wire entries in every statistic.
        most_records: n.
    """
    mass = most_records * unit
    for shift in _SHIFTS:
        if 4**shift * isqrt(sum(sizes)) < mass:
            continue
        statement = Norm(tuple(sizes), mass, shift, tuple(counters))
        try:
            statement.check_room("lower most_records or grid_bits")
        except PlanError:
            continue
        return statement
    raise PlanError(
        f"validity='norm' has no room in its field for most_records={most_records}: lower it, or lower grid_bits"
    )
