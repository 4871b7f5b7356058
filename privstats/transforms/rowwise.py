"""Map one row at a time, without randomness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privstats.errors import SchemaError
from privstats.transforms.base import Transform, maps_of
from privstats.transforms.exact import Rows, arrays_of, row_norms, row_sums

_WINDOW = 1 << 21  # bytes of rows that are scaled at once: the steps need several times as many


@dataclass(frozen=True)
class Centre(Transform):
    """Subtract a fixed public vector, one finite number per feature, for example the mean of public features.

    Example:
        >>> ps.transforms.apply((ps.transforms.Centre((1.0, 2.0)),), np.array([[1.0, 5.0]])).tolist()
        [[0.0, 3.0]]
    """

    centre: tuple[float, ...]
    kind: ClassVar[str] = "centre"
    affine: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "centre", _public_numbers("centre", self.centre))

    def apply(self, rows: Rows) -> Rows:
        """Return shifted rows."""
        return rows - arrays_of(rows).like(np.array(self.centre), rows)

    def outputs(self, inputs: int | None) -> int:
        """Return the centre's length."""
        return _as_many("centre", self.centre, inputs)

    def takes(self, outputs: int) -> int:  # noqa: ARG002 - the signature of Transform
        """Return the centre's length."""
        return len(self.centre)


@dataclass(frozen=True)
class Scale(Transform):
    """Divide every column by a fixed public number above 0, for example half the width of its public range.

    Values beyond the range are not clipped here.

    Example:
        >>> from privstats.transforms import Centre, Scale, apply
        >>> ages_and_doses = (Centre((50.0, 5.0)), Scale((40.0, 5.0)))  # 10 to 90 years and 0 to 10 mg become -1 to 1
        >>> apply(ages_and_doses, np.array([[90.0, 0.0]])).tolist()
        [[1.0, -1.0]]
    """

    per: tuple[float, ...]
    kind: ClassVar[str] = "scale"
    affine: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        settled = _public_numbers("scale", self.per)
        if min(settled) <= 0:
            raise SchemaError("scale must hold numbers above 0 to divide by; use public ranges")
        object.__setattr__(self, "per", settled)

    def apply(self, rows: Rows) -> Rows:
        """Return divided rows."""
        return rows / arrays_of(rows).like(np.array(self.per), rows)

    def outputs(self, inputs: int | None) -> int:
        """Return the number of divisors."""
        return _as_many("scale", self.per, inputs)

    def takes(self, outputs: int) -> int:  # noqa: ARG002 - the signature of Transform
        """Return the number of divisors."""
        return len(self.per)


@dataclass(frozen=True)
class CentreRows(Transform):
    """Subtract each row's own mean: x - mean(x) 1. Per record, hence public.

    Example:
        >>> ps.transforms.apply((ps.transforms.CentreRows(),), np.array([[1.0, 2.0, 6.0]])).tolist()
        [[-2.0, -1.0, 3.0]]
    """

    kind: ClassVar[str] = "centre-rows"
    affine: ClassVar[bool] = True

    def apply(self, rows: Rows) -> Rows:
        """Return rows of mean 0."""
        return rows - (row_sums(rows) / rows.shape[1])[:, None]

    def outputs(self, inputs: int | None) -> int | None:
        """Return the unchanged width."""
        return inputs


@dataclass(frozen=True)
class UnitNorm(Transform):
    """Divide each row by its Euclidean norm; a zero row stays zero. Per record, hence public.

    Example:
        >>> ps.transforms.apply((ps.transforms.UnitNorm(),), np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6, 0.8], [0.0, 0.0]]
    """

    kind: ClassVar[str] = "unit-norm"

    def apply(self, rows: Rows) -> Rows:
        """Return rows of norm 1 (or 0), without overflow or underflow."""
        if type(rows) is np.ndarray and rows.nbytes > _WINDOW:  # a row is scaled by itself, so windows change no bit
            at_once = max(1, _WINDOW * len(rows) // rows.nbytes)
            out = np.empty(rows.shape, np.float64)
            for start in range(0, len(rows), at_once):
                out[start : start + at_once] = self._scaled(rows[start : start + at_once])
            return out
        return self._scaled(rows)

    @staticmethod
    def _scaled(rows: Rows) -> Rows:
        measured = row_norms(rows)
        positive = measured.norms + (measured.norms == 0)
        return measured.rows / positive[:, None]

    def outputs(self, inputs: int | None) -> int | None:
        """Return the unchanged width."""
        return inputs


@dataclass(frozen=True)
class ConstantFeature(Transform):
    """Append a feature that is always ``value``: the intercept of a linear model.

    Example:
        >>> ps.transforms.apply((ps.transforms.ConstantFeature(1.0),), np.array([[0.3, 0.4]])).tolist()
        [[0.3, 0.4, 1.0]]
    """

    value: float
    kind: ClassVar[str] = "constant-feature"
    affine: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not number or not math.isfinite(self.value) or self.value == 0:
            raise SchemaError("constant-feature value must be a finite number and not 0; 1 gives a plain intercept")
        object.__setattr__(self, "value", float(self.value))

    def apply(self, rows: Rows) -> Rows:
        """Append the constant column."""
        return arrays_of(rows).append(rows, self.value, 1)

    def outputs(self, inputs: int | None) -> int | None:
        """Return one column more."""
        return None if inputs is None else inputs + 1

    def takes(self, outputs: int) -> int:
        """Return one column less."""
        return outputs - 1


@dataclass(frozen=True)
class ByArm(Transform):
    """Partition rows by arm: x becomes (x, 0) where the arm is 1 and (0, x) where it is 0.

    The arm's input ``column`` is removed; norms stay. Put it after ``ConstantFeature``, so that each arm has its own
    constant. Any other arm yields entries that are not finite, so the record has no row.

    Example:
        >>> by_arm = ps.transforms.ByArm(1)
        >>> ps.transforms.apply((by_arm,), np.array([[0.3, 1.0, 5.0], [0.4, 0.0, 6.0]])).tolist()
        [[0.3, 5.0, 0.0, 0.0], [0.0, 0.0, 0.4, 6.0]]
    """

    column: int
    kind: ClassVar[str] = "by-arm"

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.column) is not int or self.column < 0:
            raise SchemaError(f"by-arm column must be the number of a column, from 0, got {self.column!r}")

    def apply(self, rows: Rows) -> Rows:
        """Return each row by arm."""
        xp = arrays_of(rows)
        arm = rows[:, self.column : self.column + 1]
        treated, control = arm == 1, arm == 0
        rest = xp.hstack(rows[:, : self.column], rows[:, self.column + 1 :])
        rest = xp.where(treated | control, rest, math.nan)
        return xp.hstack(rest * treated, rest * control)

    def outputs(self, inputs: int | None) -> int | None:
        """Return twice the columns without the arm's."""
        if inputs is None:
            return None
        if self.column >= inputs or inputs < 2:
            raise SchemaError(f"by-arm takes column {self.column} out, and {inputs} columns come in; name another")
        return 2 * (inputs - 1)

    def takes(self, outputs: int) -> int:
        """Return half the columns, plus the arm's."""
        return outputs // 2 + 1


def of_unit_norm(transform: Sequence[Transform] | Transform) -> tuple[Transform, ...]:
    """Append ``UnitNorm`` unless rows have norm 1 by construction.

    Example:
        >>> maps = (ps.transforms.ConstantFeature(1.0),)
        >>> ps.transforms.of_unit_norm(maps)
        (ConstantFeature(value=1.0), UnitNorm())
    """
    maps = maps_of(transform)
    return maps if maps and maps[-1].unit else (*maps, UnitNorm())


def _public_numbers(name: str, values: object) -> tuple[float, ...]:
    numbers = list(values) if isinstance(values, tuple | list) else []
    if not numbers or not all(isinstance(each, int | float) and math.isfinite(each) for each in numbers):
        raise SchemaError(f"{name} must be a list of finite numbers, one per feature; use public data")
    return tuple(float(each) for each in numbers)


def _as_many(name: str, numbers: tuple[float, ...], inputs: int | None) -> int:
    if inputs not in (None, len(numbers)):
        raise SchemaError(f"{name} has {len(numbers)} numbers but {inputs} features come in; make them equal")
    return len(numbers)
