"""Structured orthogonal projection in O(d log d): sign flips and Walsh-Hadamard transforms.

Whole-numbered throughout, hence the same bits everywhere; nothing but three rows of signs is ever expanded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import SchemaError
from privstats.transforms.arrays import arrays_of
from privstats.transforms.exact import Rows, scaled_rows, unscaled
from privstats.transforms.expand import signs
from privstats.transforms.random_maps import SeededMap

__all__ = ["OrthogonalProjection"]

_ROUNDS = 3


@dataclass(frozen=True)
class OrthogonalProjection(SeededMap):
    """x -> the first ``features`` coordinates of H D3 H D2 H D1 x, times sqrt(p / features).

    H is the orthonormal Walsh-Hadamard transform of the next power of two p, D are random signs (Ailon, Chazelle 2009;
    three rounds as in Andoni et al. 2015). With ``features = p`` it is a rotation and keeps every norm.

    Example:
        >>> rotate = ps.transforms.OrthogonalProjection(seed=0, inputs=3, features=4)
        >>> row = ps.transforms.apply((rotate,), np.array([[1.0, 2.0, 2.0]]))
        >>> row.shape, np.linalg.norm(row).round(6)
        ((1, 4), np.float64(3.0))
    """

    kind: ClassVar[str] = "orthogonal-projection"
    affine: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features > self._padded:
            raise SchemaError(
                f"transform {self.kind!r} makes at most {self._padded} features from {self.inputs}; lower features"
            )

    @property
    def _padded(self) -> int:
        return 1 << (self.inputs - 1).bit_length()

    def apply(self, rows: Rows) -> Rows:
        """Projected rows ``(n, features)``."""
        xp, size = arrays_of(rows), self._padded
        # Unnormalised rounds stretch the norm by sqrt(p) each, and no entry exceeds the norm: these bits stay exact.
        doublings = (size - 1).bit_length()
        bits = 52 - -(-_ROUNDS * doublings // 2) - -(-(self.inputs - 1).bit_length() // 2)
        scaled, exponents = scaled_rows(rows, bits)
        work = xp.rint(scaled)
        if size > self.inputs:
            work = xp.append(work, 0.0, size - self.inputs)
        for flips in _flips(self):
            work = walsh_hadamard(work * xp.like(flips, rows))
        return unscaled(work[:, : self.features], exponents) / (size * math.sqrt(self.features))


def walsh_hadamard(rows: Rows) -> Rows:
    """The unnormalised Walsh-Hadamard transform of every row of ``(n, p)``, p a power of two."""
    xp, size = arrays_of(rows), int(rows.shape[1])
    half = 1
    while half < size:
        pairs = rows.reshape(-1, 2, half)
        left, right = pairs[:, 0], pairs[:, 1]
        rows = xp.hstack(left + right, left - right).reshape(-1, size)
        half *= 2
    return rows


@lru_cache(maxsize=8)
def _flips(definition: OrthogonalProjection) -> NDArray[np.float64]:
    size = 1 << (definition.inputs - 1).bit_length()
    return signs(definition.seed, definition.kind, _ROUNDS * size).reshape(_ROUNDS, size)
