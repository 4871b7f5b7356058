"""Leave out the declared levels and bins that noise hides, and bound what their records add to every other row.

A level l of a declared column has a direction v with x'v = 1 for its records and x'v = 0 for all others. Where noise
explains its information v'Gv, a fit leaves v out: b is orthogonal to every hidden v. The linear predictors of the
level's records are then off by an unknown b_l, which adds m_l T_l to the score along a line a:

    T_l = the sum of mu(x'b + b_l) - mu(x'b) over the level's records,
    m_l = the mean of a'x over these records, weighted by the terms of T_l.

The mean mu increases, so all terms of T_l have one sign, and |m_l| is at most M_l, the largest |a'x| that a row of this
level can have. The released score along v is T_l plus noise. So the score along ``a - sum_l m_l v_l`` holds no T. A
value is accepted where some m within its bounds accepts it. This assumes nothing about b_l or the number of records.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privstats.estimates.denoise import Array

_ROUNDED = 1e-6  # part of a contrast along a hidden direction that is rounding


@dataclass(frozen=True, eq=False)
class Level:
    """A level that a fit can leave out.

    Attributes:
        name: such as ``"ward: C"``; empty for a bin in which nobody is ever at risk.
        bin: of a stratum, such as ``"months 6 to 12"``, where the name is the stratum's; else empty.
        first: whether it is its column's first text, with which the others compare.
        part: index of its column's part.
        members: which rows of the part belong to it.
        direction: v, ``(d,)``.
    """

    name: str
    bin: str
    first: bool
    part: int
    members: NDArray[np.bool_]
    direction: Array


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

    def hidden(self, G: Array, sigma: float, sure: float) -> HiddenLevels:
        """Return the levels whose information is at most ``sure`` standard deviations of its noise.

        Args:
            G: sums of products of rows, as :meth:`possible` returns them.
        """
        hidden = tuple(each for each in self.levels if self._is_hidden(each.direction, G, sigma, sure))
        return HiddenLevels(self, hidden)

    def _is_hidden(self, v: Array, G: Array, sigma: float, sure: float) -> bool:
        noise = sigma * float(np.linalg.norm(self.possible(np.outer(v, v))))
        rounded = float(np.trace(G)) * (self.rounding * float(np.abs(v).sum())) ** 2
        return bool(v @ G @ v <= sure * noise + rounded)

    def largest(self, lines: Array, level: Level | None = None) -> Array:
        """Return the largest |a'x| of any row, or of a level's rows, ``(m,)``, for lines a, ``(m, d)``."""
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
        scores: |v'(h - G b)| of each level at the fit's b, ``(k,)``; none before a fit.
    """

    declared: DeclaredLevels
    levels: tuple[Level, ...]
    scores: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def names(self) -> list[str]:
        """Names of levels, and of strata with their hidden bins unless all bins are hidden."""
        named = [level for level in self.levels if level.name]
        bins = {level.name: [each.bin for each in named if each.name == level.name] for level in named}
        declared = Counter(level.name for level in self.declared.levels)
        return [
            name if len(hidden) == declared[name] else f"{name} ({', '.join(hidden)})" for name, hidden in bins.items()
        ]

    @cached_property
    def constants(self) -> NDArray[np.bool_]:
        """Mask of the constants' rows, a hazard's bins, that are hidden."""
        none = np.zeros(len(self.declared.parts[0]), np.bool_)
        return np.asarray(np.any([none, *(level.members for level in self.levels if level.part == 0)], axis=0))

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
        """Return M, the largest |a'x| of a row of each hidden level, ``(m, k)``, for lines a, ``(m, d)``."""
        bounds = np.zeros((len(lines), len(self.levels)))
        for place, level in enumerate(self.levels):
            bounds[:, place] = self.declared.largest(lines, level)
        return bounds

    def remaining_basis(self, columns: int) -> Array:
        """Return orthonormal directions of the first columns without the hidden levels' shares, ``(columns, m)``."""
        _, sizes, basis = np.linalg.svd(self.directions[:, :columns])
        return np.asarray(basis[int((sizes > _ROUNDED).sum()) :].T)
