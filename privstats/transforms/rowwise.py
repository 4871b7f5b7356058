"""Maps that look at one row at a time and need no randomness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import SchemaError
from privstats.transforms.base import Transform

__all__ = ["CentreRows", "ConstantFeature", "UnitNorm"]


@dataclass(frozen=True)
class CentreRows(Transform):
    """Subtract each row's own mean: x - mean(x) 1. Per record, hence public."""

    kind: ClassVar[str] = "centre-rows"

    def apply(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows of mean 0, same shape."""
        centred: NDArray[np.float64] = rows - rows.mean(axis=1, keepdims=True)
        return centred

    def outputs(self, inputs: int | None) -> int | None:
        """As many as came in."""
        return inputs


@dataclass(frozen=True)
class UnitNorm(Transform):
    """Divide each row by its Euclidean norm; a zero row stays zero. Per record, hence public."""

    kind: ClassVar[str] = "unit-norm"

    def apply(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows of norm 1 (or 0), same shape."""
        largest = np.abs(rows).max(axis=1, keepdims=True)
        scaled = rows / np.where(largest > 0, largest, 1.0)  # first by the largest entry: no overflow, no underflow
        norms = np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
        return np.asarray(scaled / np.where(norms > 0, norms, 1.0))

    def outputs(self, inputs: int | None) -> int | None:
        """As many as came in."""
        return inputs


@dataclass(frozen=True)
class ConstantFeature(Transform):
    """Append a feature that is always ``value``: the intercept of a linear model."""

    value: float
    kind: ClassVar[str] = "constant-feature"

    def __post_init__(self) -> None:
        if not math.isfinite(self.value) or self.value == 0:
            raise SchemaError(f"constant-feature value must be finite and not 0, got {self.value!r}")

    def apply(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """One column more, on the right."""
        return np.hstack([rows, np.full((len(rows), 1), self.value)])

    def outputs(self, inputs: int | None) -> int | None:
        """One more than came in."""
        return None if inputs is None else inputs + 1
