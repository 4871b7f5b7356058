"""Leave out the declared levels and bins that noise hides, and bound what their records add to every other row.

A level l of a declared column has a direction v with x'v = 1 for its records and x'v = 0 for all others. Where noise
explains its information v'Gv, a fit leaves v out: b is orthogonal to every hidden v. The linear predictors of the
level's records are then off by an unknown b_l, which adds m_l T_l to the score along a line a:

    T_l = the sum of mu(x'b + b_l) - mu(x'b) over the level's records,
    m_l = the mean of a'x over these records, weighted by the terms of T_l.

The mean mu increases, so all terms of T_l have one sign, and |m_l| is at most M_l, the largest |a'x| that a row of this
level can have. The released score along v is T_l plus noise. So the score along ``a - sum_l m_l v_l`` holds no T. A
value is accepted where some m within its bounds accepts it. This assumes nothing about b_l or the number of records.

Two levels of different columns may hold the same records. Then v is the difference of their directions, with |x'v| = 1
for records of one level alone, and all the same holds.

Hidden levels of several columns can share records, and their shifts can differ in sign, so that terms cancel in T_l.
With one hidden level in each of two or three columns, |m_l| is then at most the sum of the columns' M: m is the corner
of a linear program, and the inverse of a matrix of 0 and 1 of this size has entries of at most 1. This sum bounds m_l
also where a column has several hidden levels, except for chains of levels whose shifts alternate in sign and grow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privstats.estimates.denoise import Array

HIDES = (3.0, 6.0, 12.0)
"""Standard deviations of its noise up to which a level's information hides the level.

The first bound hides it always, a higher one only where the rest is unknown otherwise.
"""

_ROUNDED = 1e-6  # part of a contrast along a hidden direction that is rounding


@dataclass(frozen=True, eq=False)
class Level:
    """A level that a fit can leave out.

    Attributes:
        column: name of the column, of two with products, or of the time; its levels share no records.
        name: such as ``"ward: C"``; empty for a bin in which nobody is ever at risk.
        bin: of a stratum, such as ``"months 6 to 12"``, where the name is the stratum's; else empty.
        first: whether it is its column's first text, with which the others compare.
        part: index of its column's part.
        members: which rows of the part belong to it.
        direction: v, ``(d,)``.
        either: the two levels of which v is the difference; empty for a level.
    """

    column: str
    name: str
    bin: str
    first: bool
    part: int
    members: NDArray[np.bool_]
    direction: Array
    either: tuple[Level, ...] = ()


@dataclass(frozen=True, eq=False)
class DeclaredLevels:
    """Public values of the rows: a record's row is the sum of one row of each part, and of entries of other columns.

    Attributes:
        parts: rows of the constants, then of each declared column, or of columns with products, ``(values, d)`` each.
        others: entries that no part determines, ``(d,)``.
        radius: R, the largest norm of a row.
        rounding: largest error of an entry from rounding to the grid.
    """

    parts: tuple[Array, ...]
    levels: tuple[Level, ...]
    others: NDArray[np.bool_]
    radius: float
    rounding: float

    def of(self, places: Sequence[int]) -> DeclaredLevels:
        """Return the levels in these entries of rows; levels that other entries distinguish are none of them."""
        unread = np.setdiff1d(np.arange(len(self.others)), places)
        return replace(
            self,
            parts=tuple(part[:, places] for part in self.parts),
            levels=tuple(
                replace(each, direction=each.direction[places])
                for each in self.levels
                if not (np.abs(each.direction[unread]) > _ROUNDED).any()
            ),
            others=self.others[places],
        )

    def hidden(self, G: Array, sigma: float, sure: float) -> HiddenLevels:
        """Return the levels, and pairs of levels, whose information is at most ``sure`` deviations of its noise.

        Args:
            G: sums of products of rows, as :meth:`possible` returns them.
        """
        hidden = [each for each in self.levels if self._is_hidden(each.direction, G, sigma, sure)]
        others = [each for each in self.levels if each.part and each not in hidden]
        return HiddenLevels(self, (*hidden, *self._alike(others, G, sigma, sure)))

    def _alike(self, levels: Sequence[Level], G: Array, sigma: float, sure: float) -> Iterator[Level]:
        """Yield pairs of levels of two columns that hold the same records as far as noise shows."""
        directions = np.array([each.direction for each in levels]).reshape(-1, len(G))
        shared = directions @ G @ directions.T
        own = np.diag(shared)
        near = np.add.outer(own, own) - 2 * shared < np.minimum.outer(own, own)  # others share too few records
        for one, other in ((levels[i], levels[j]) for i, j in np.argwhere(np.triu(near, 1))):
            v = one.direction - other.direction
            if one.part != other.part and self._is_hidden(v, G, sigma, sure):
                names = f"{one.column}, {other.column}", f"{one.name} and {other.name}"
                yield Level(*names, "", False, one.part, one.members, v, (one, other))

    def _is_hidden(self, v: Array, G: Array, sigma: float, sure: float) -> bool:
        noise = sigma * float(np.linalg.norm(self.possible(np.outer(v, v))))
        rounded = float(np.trace(G)) * (self.rounding * float(np.abs(v).sum())) ** 2
        return bool(v @ G @ v <= sure * noise + rounded)

    def largest(self, lines: Array, level: Level | None = None) -> Array:
        """Return the largest |a'x| of any row, or of a level's rows, ``(m,)``, for lines a, ``(m, d)``."""
        if level is not None and level.either:
            return np.maximum(*(self.largest(lines, each) for each in level.either))
        top, bottom, known = np.zeros(len(lines)), np.zeros(len(lines)), 0.0
        for place, part in enumerate(self.parts):
            rows = part[level.members] if level is not None and place == level.part else part
            shares = lines @ rows.T
            top, bottom = top + shares.max(axis=1), bottom + shares.min(axis=1)
            known += float(np.square(rows).sum(axis=1).min())
        room = np.sqrt(max(self.radius**2 - known, 0.0))
        free = np.linalg.norm(lines[:, self.others], axis=1) * room
        far = np.linalg.norm(lines, axis=1) * self.radius
        return np.asarray(np.minimum(np.maximum(np.abs(top), np.abs(bottom)) + free, far))

    def apart(self, b: Array, level: Level) -> float:
        """Return how far x'b of a level's values is from the mean of its column's values."""
        if level.either:
            return max(self.apart(b, each) for each in level.either)
        values = self.parts[level.part] @ b
        return float(np.abs(values[level.members] - values.mean()).max())

    def possible(self, G: Array) -> Array:
        """Return the nearest sums of products of rows that records can have.

        Two levels of a column never meet, nor do two bins, and a level's indicator is its own square. The projection
        takes the noise out of entries that these rules determine, and adds noise to no other linear function of G.
        """
        (rows, columns), weights, basis = self._products
        entries = G[rows, columns] * weights
        result = G.copy()
        result[rows, columns] = result[columns, rows] = (entries @ basis.T) @ basis / weights
        return result

    @cached_property
    def _products(self) -> tuple[tuple[NDArray[np.intp], NDArray[np.intp]], Array, Array]:
        """Entries of each part's products with itself and the constants, and an orthonormal basis of their values.

        Off the diagonal an entry counts twice. Products of two parts are free: no rule determines them.
        """
        constants, *others = self.parts
        within = [part.any(axis=0) for part in self.parts]
        held = np.any([np.outer(each | within[0], each | within[0]) for each in within], axis=0)
        rows, columns = np.nonzero(np.triu(held))
        weights = np.where(rows == columns, 1.0, np.sqrt(2))
        first = sum((part[0] for part in others), np.zeros(len(held)))
        sums = [first, *(first - part[0] + row for part in others for row in part[1:])]
        seen = [constant + each for constant in constants for each in sums]
        values = np.stack([row[rows] * row[columns] * weights for row in seen])
        _, sizes, basis = np.linalg.svd(values, full_matrices=False)
        return (rows, columns), weights, basis[sizes > _ROUNDED * sizes[0]]


@dataclass(frozen=True, eq=False)
class HiddenLevels:
    """Levels that a fit leaves out, perhaps none.

    Attributes:
        late: how many of them, the last ones, are left out because their own rounds have not converged.
        scores: |v'(h - G b)| of each level at the fit's b, ``(k,)``; none before a fit.
    """

    declared: DeclaredLevels
    levels: tuple[Level, ...]
    late: int = 0
    scores: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def names(self) -> list[str]:
        """Names of levels that noise hides, and of strata with their hidden bins unless all bins are hidden."""
        return self._named(self.levels[: len(self.levels) - self.late])

    @property
    def late_names(self) -> list[str]:
        """Names of levels whose own rounds have not converged, as :attr:`names` has them."""
        return self._named(self.levels[len(self.levels) - self.late :])

    def _named(self, levels: Sequence[Level]) -> list[str]:
        named = [level for level in levels if level.name and not level.either]
        bins = {level.name: [each.bin for each in named if each.name == level.name] for level in named}
        declared = Counter(level.name for level in self.declared.levels)
        return [
            name if len(hidden) == declared[name] else f"{name} ({', '.join(hidden)})" for name, hidden in bins.items()
        ]

    @property
    def alike(self) -> list[str]:
        """Pairs of levels that hold the same records, such as ``"ward: C and region: Z"``."""
        return [level.name for level in self.levels if level.either]

    @cached_property
    def constants(self) -> NDArray[np.bool_]:
        """Mask of the constants' rows, a hazard's bins, that are hidden."""
        none = np.zeros(len(self.declared.parts[0]), np.bool_)
        return np.asarray(np.any([none, *(level.members for level in self.levels if level.part == 0)], axis=0))

    def holds(self, level: Level) -> bool:
        """Return whether a level is, or follows from, these levels."""
        return bool(np.linalg.norm(self.without(level.direction)) <= _ROUNDED * np.linalg.norm(level.direction))

    def joined(self, level: Level) -> HiddenLevels:
        """Return these levels and one more, whose own rounds have not converged."""
        return replace(self, levels=(*self.levels, level), late=self.late + 1)

    @cached_property
    def directions(self) -> Array:
        """Each level's v, ``(k, d)``."""
        return np.array([each.direction for each in self.levels]).reshape(-1, len(self.declared.others))

    @cached_property
    def _remaining(self) -> Array:
        return np.eye(self.directions.shape[1]) - np.linalg.pinv(self.directions) @ self.directions

    def without(self, of: Array) -> Array:
        """Return a vector or a symmetric matrix without the hidden directions."""
        left = self._remaining @ of
        return np.asarray(left if of.ndim == 1 else left @ self._remaining)

    def compared(self, contrasts: Array) -> NDArray[np.bool_]:
        """Return which contrasts compare with a hidden level, ``(m,)``."""
        length = np.linalg.norm(contrasts, axis=1)
        return np.asarray(np.linalg.norm(contrasts - contrasts @ self._remaining, axis=1) > _ROUNDED * length)

    def scored(self, G: Array, h: Array, b: Array) -> HiddenLevels:
        """Return these levels with their scores at b."""
        return replace(self, scores=np.abs(self.directions @ (h - G @ b)))

    def noise(self, largest: Array) -> Array:
        """Return the largest squared norm of sum_l m_l v_l for |m| up to M, ``(m, k)``."""
        return np.asarray(np.einsum("ij,jk,ik->i", largest, np.abs(self.directions @ self.directions.T), largest))

    def largest(self, lines: Array) -> Array:
        """Return M, the largest |a'x| of a row of each hidden level, ``(m, k)``, for lines a, ``(m, d)``.

        The largest M of every other column with hidden levels is added.
        """
        own = np.zeros((len(lines), len(self.levels)))
        for place, level in enumerate(self.levels):
            own[:, place] = self.declared.largest(lines, level)
        columns, total = np.array([level.column for level in self.levels]), own.copy()
        for column in np.unique(columns):
            total[:, columns != column] += own[:, columns == column].max(axis=1, keepdims=True)
        return total

    def remaining_basis(self, columns: int) -> Array:
        """Return orthonormal directions of the first columns without the hidden levels' shares, ``(columns, m)``."""
        _, sizes, basis = np.linalg.svd(self.directions[:, :columns])
        return np.asarray(basis[int((sizes > _ROUNDED).sum()) :].T)
