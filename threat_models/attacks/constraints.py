"""Public constraints on every record: range, grid, norm.

Each follows from public choices, like a ReLU before the clip, pixels of 16 grey levels, or a public normalisation. The
rotation attack combines them with the sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Constraints:
    """A set that contains every record.

    Attributes:
        lower, upper: bounds of every coordinate.
        spacing: coordinates are whole multiples of it; 0 for no grid.
        norm: every record's Euclidean norm; None where it is not known.

    Raises:
        DataError: bounds that cross, a negative spacing, or a norm that is not above 0.
    """

    lower: float = -math.inf
    upper: float = math.inf
    spacing: float = 0.0
    norm: float | None = None

    def __post_init__(self) -> None:
        if not self.lower < self.upper:
            raise DataError(f"lower must be below upper, got {self.lower} and {self.upper}")
        if not (math.isfinite(self.spacing) and self.spacing >= 0):
            raise DataError(f"spacing must be a finite number >= 0 (0 for no grid), got {self.spacing}")
        if self.norm is not None and not self.norm > 0:
            raise DataError(f"norm must be above 0, or None where it is not known, got {self.norm}")

    @property
    def informative(self) -> bool:
        """Whether it constrains coordinates; a norm alone leaves nearly every rotation possible."""
        return math.isfinite(self.lower) or math.isfinite(self.upper) or self.spacing > 0

    def nearest(self, X: Array) -> Array:
        """Rows ``(..., n, d)`` moved to the set: rounded and clipped, after scaling to the norm where it is known.

        Exact for ranges and grids; with a norm the next best thing, since that set is not convex.
        """
        if self.norm is not None:
            length = np.linalg.norm(np.clip(X, self.lower, self.upper), axis=-1, keepdims=True)
            X = X * (self.norm / np.maximum(length, np.finfo(np.float64).tiny))
        if self.spacing > 0:
            X = np.rint(X / self.spacing) * self.spacing
        return np.clip(X, self.lower, self.upper)

    def bounds_met(self, X: Array, tolerance: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Masks of the entries at the lower and at the upper bound, up to ``tolerance``."""
        return X - self.lower <= tolerance, self.upper - X <= tolerance


NONNEGATIVE = Constraints(lower=0.0)
"""Features behind a ReLU, counts, pixels."""
