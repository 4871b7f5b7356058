"""Maps that look at one row at a time and need no randomness.

Sums within a row go through ``exact``, so that every party gets the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privstats.errors import SchemaError
from privstats.transforms.arrays import arrays_of
from privstats.transforms.base import Transform
from privstats.transforms.exact import Rows, row_norms, row_sums

__all__ = ["Centre", "CentreRows", "ConstantFeature", "UnitNorm"]


@dataclass(frozen=True)
class Centre(Transform):
    """Subtract a fixed public vector, x - centre, for example the mean of public features.

    Args:
        centre: one finite number per feature; public, for it stands in the plan.
    """

    centre: tuple[float, ...]
    kind: ClassVar[str] = "centre"
    affine: ClassVar[bool] = True

    def __post_init__(self) -> None:
        numbers = isinstance(self.centre, tuple | list) and all(isinstance(c, int | float) for c in self.centre)
        if not numbers or not self.centre or not all(math.isfinite(c) for c in self.centre):
            raise SchemaError("centre must be a list of finite numbers, one per feature; take it from public data")
        object.__setattr__(self, "centre", tuple(float(c) for c in self.centre))

    def apply(self, rows: Rows) -> Rows:
        """Shifted rows, same shape."""
        return rows - arrays_of(rows).like(np.array(self.centre), rows)

    def outputs(self, inputs: int | None) -> int:
        """As many as the centre has."""
        if inputs not in (None, len(self.centre)):
            raise SchemaError(f"centre has {len(self.centre)} numbers but {inputs} features come in; make them equal")
        return len(self.centre)

    def takes(self, outputs: int) -> int:  # noqa: ARG002 - the signature of Transform
        """As many as the centre has."""
        return len(self.centre)


@dataclass(frozen=True)
class CentreRows(Transform):
    """Subtract each row's own mean: x - mean(x) 1. Per record, hence public."""

    kind: ClassVar[str] = "centre-rows"
    affine: ClassVar[bool] = True

    def apply(self, rows: Rows) -> Rows:
        """Rows of mean 0, same shape."""
        return rows - (row_sums(rows) / rows.shape[1])[:, None]

    def outputs(self, inputs: int | None) -> int | None:
        """As many as came in."""
        return inputs


@dataclass(frozen=True)
class UnitNorm(Transform):
    """Divide each row by its Euclidean norm; a zero row stays zero. Per record, hence public."""

    kind: ClassVar[str] = "unit-norm"

    def apply(self, rows: Rows) -> Rows:
        """Rows of norm 1 (or 0), same shape, for rows of any size: no overflow, no underflow."""
        measured = row_norms(rows)
        positive = measured.norms + (measured.norms == 0)
        return measured.rows / positive[:, None]

    def outputs(self, inputs: int | None) -> int | None:
        """As many as came in."""
        return inputs


@dataclass(frozen=True)
class ConstantFeature(Transform):
    """Append a feature that is always ``value``: the intercept of a linear model."""

    value: float
    kind: ClassVar[str] = "constant-feature"
    affine: ClassVar[bool] = True

    def __post_init__(self) -> None:
        number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not number or not math.isfinite(self.value) or self.value == 0:
            raise SchemaError("constant-feature value must be a finite number and not 0; 1 gives a plain intercept")
        object.__setattr__(self, "value", float(self.value))

    def apply(self, rows: Rows) -> Rows:
        """One column more, on the right."""
        xp = arrays_of(rows)
        return xp.hstack(rows, xp.like(np.full((len(rows), 1), self.value), rows))

    def outputs(self, inputs: int | None) -> int | None:
        """One more than came in."""
        return None if inputs is None else inputs + 1

    def takes(self, outputs: int) -> int:
        """One less than goes out."""
        return outputs - 1
