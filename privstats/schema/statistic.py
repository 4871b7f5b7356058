"""What a statistic is: one frozen row, which defines its letter in the table of a kind of schema.

Shape, wire entries, scale, bound and default share are derived from a row. The sums are in ``moments`` (host and device
compute them differently), and the joint sensitivity, a property of a *set* of statistics, is in ``dp``.

Symmetric blocks are two segments. The diagonal and the strict upper triangle travel separately, because off-diagonal
noise has 1/sqrt 2 of the standard deviation. Scaling the triangle by sqrt 2, as one would on paper, has no exact
integer form.

S implies B and D. They are sums of entries of S, so a schema that asks for all of them sends S and derives the rest:
nothing is uploaded, noised or paid for twice.

Counts carry 2^12 grid steps per record, so that their noise is many steps wide like everyone else's. Their ring is
wide enough for all that honest clients can hold together (each at most ``max_records``), so they never wrap, and a
cohort that holds more than the plan admits is refused by its noisy counts; all other segments are sized for what that
check lets through. Ridge sums carry no count, so all their segments are sized for every client at its limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

from privstats.errors import SchemaError

__all__ = [
    "COUNT_SCALE",
    "INFLUENCES",
    "Axis",
    "Cells",
    "Statistic",
    "by_letter",
    "letters_of",
]

Cells: TypeAlias = Literal["class", "pooled", "fold", "cell", "pull", "block"]
Axis: TypeAlias = Literal["class", "feature", "target", "temperature", "power"]

COUNT_SCALE = 1 << 12
"""Grid steps per record in a count, so that the noise on it is many steps wide."""


@dataclass(frozen=True)
class Statistic:
    """One kind of sum over records.

    Attributes:
        letter: its name in schemas, plans and releases.
        cells: what is summed apart: one block per ``"class"``, per ``"fold"``, per ``"cell"`` of count tables, per
            ``"pull"`` or group of sites, per ``"block"`` of a partition of records, or one block of all records.
        axes: the axes of a block, each as long as there are classes or temperatures, or as the ``"feature"`` or
            ``"target"`` vectors.
        powers: degree in the entries of the feature vector and of the target vector.
        symmetric: a block is a symmetric matrix, of which the diagonal and the strict upper triangle travel.
        share: its default part of mu^2; None: an equal part of what the others leave.
        implied_by: the letter that it is a sum of entries of, so that it is derived and never sent beside it.
        meaning: what is summed, as a phrase for data owners who are not statisticians. A letter may mean
            different sums in different tables, so every row has a phrase of its own.
        divided: its exact sums are quotients rather than whole steps, and are kept in wire steps.
    """

    letter: str
    cells: Cells
    axes: tuple[Axis, ...]
    powers: tuple[int, int]
    _: KW_ONLY
    meaning: str
    symmetric: bool = False
    share: float | None = None
    implied_by: str = ""
    divided: bool = False

    @property
    def degree(self) -> int:
        """Degree in all entries of a record; 0 for counts."""
        return sum(self.powers)

    @property
    def resolution(self) -> int:
        """Wire steps per grid step, and ``COUNT_SCALE`` per record in counts."""
        return 1 if self.degree else COUNT_SCALE

    @property
    def kept(self) -> int:
        """Wire steps per step of the exact sum as moments keep it."""
        return 1 if self.divided else self.resolution

    def block(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of one block; ``sizes`` has the length of every axis and the number of every kind of cell."""
        return tuple(sizes[axis] for axis in self.axes)

    def blocks(self, sizes: Mapping[str, int]) -> int:
        """How many blocks there are."""
        return 1 if self.cells == "pooled" else sizes[self.cells]

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of the sum as an array: blocks first, unless there is one of all records."""
        lead = () if self.cells == "pooled" else (self.blocks(sizes),)
        return (*lead, *self.block(sizes))

    def entries(self, sizes: Mapping[str, int]) -> int:
        """Numbers that a block is sent as: a symmetric one without its lower triangle."""
        whole = math.prod(self.block(sizes))
        return (whole + sizes[self.axes[0]]) // 2 if self.symmetric else whole

    def scale(self, features: float, targets: float = 1.0) -> float:
        """Wire steps per real unit, from the grid steps per unit of a feature and of a target."""
        return float(self.resolution) * (features ** self.powers[0] * targets ** self.powers[1])

    def bound(self, steps: int) -> int:
        """The most that a record of ``steps`` grid steps adds to one entry, in wire steps.

        Off the diagonal of a symmetric block it is half of that, because 2 |x_i x_j| <= x_i^2 + x_j^2.
        """
        return self.resolution * int(steps**self.degree)


INFLUENCES = "efghijkl"
"""The letters of influence values on the first outcome of an effect, on the second, and so on."""


def letters_of(table: tuple[Statistic, ...]) -> str:
    """The letters of a table, in wire order."""
    return "".join(row.letter for row in table)


def by_letter(table: tuple[Statistic, ...], letters: str) -> tuple[Statistic, ...]:
    """The rows of ``table`` that ``letters`` names, in the order of ``letters``.

    Raises:
        SchemaError: a letter that the table does not have: nothing may be derived from an undefined statistic.
    """
    rows = {row.letter: row for row in table}
    unknown = "".join(letter for letter in letters if letter not in rows)
    if unknown:
        raise SchemaError(f"statistics has unknown letters {unknown!r}; use letters out of {''.join(rows)}")
    return tuple(rows[letter] for letter in letters)
