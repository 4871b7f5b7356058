"""The few array operations that transforms and clip need, for numpy arrays and for torch tensors on any device.

Every one is exact or correctly rounded in float64, so both give the same bits. Not an array library.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Protocol

import numpy as np

__all__ = ["Arrays", "arrays_of"]


class Arrays(Protocol):
    """Operations on float64 rows; ``Any`` stands for an array of the one library or the other."""

    def rint(self, rows: Any) -> Any:
        """Round to the nearest whole number, ties to even."""

    def row_max(self, rows: Any) -> Any:
        """Largest absolute value of each row; 0 for rows of no columns."""

    def vecdot(self, left: Any, right: Any) -> Any:
        """Row by row inner products, in no particular order of addition."""

    def sqrt(self, values: Any) -> Any:
        """Square root, correctly rounded."""

    def where(self, condition: Any, left: Any, right: Any) -> Any:
        """Elementwise choice."""

    def relu(self, rows: Any) -> Any:
        """max(rows, 0)."""

    def hstack(self, left: Any, right: Any) -> Any:
        """Columns of both, side by side."""

    def binary_exponent(self, values: Any) -> Any:
        """The int64 e with values = m 2**e and 1/2 <= m < 1; 0 for 0."""

    def power_of_two(self, exponents: Any) -> Any:
        """2**exponents as float64, for int64 exponents between -1022 and 1023."""

    def like(self, constant: Any, rows: Any) -> Any:
        """A numpy constant as an array of the library and on the device of ``rows``."""


class _Numpy:
    rint = staticmethod(np.rint)
    vecdot = staticmethod(np.vecdot)
    sqrt = staticmethod(np.sqrt)
    where = staticmethod(np.where)

    @staticmethod
    def row_max(rows: Any) -> Any:
        return np.abs(rows).max(axis=1, initial=0.0)

    @staticmethod
    def relu(rows: Any) -> Any:
        return np.maximum(rows, 0.0)

    @staticmethod
    def hstack(left: Any, right: Any) -> Any:
        return np.hstack([left, right])

    @staticmethod
    def binary_exponent(values: Any) -> Any:
        return np.frexp(values)[1].astype(np.int64)

    @staticmethod
    def power_of_two(exponents: Any) -> Any:
        return np.ldexp(1.0, exponents)

    @staticmethod
    def like(constant: Any, rows: Any) -> Any:  # noqa: ARG004 - the signature of Arrays
        return constant


class _Torch:
    def __init__(self, torch: ModuleType) -> None:
        self._torch = torch
        self.rint = torch.round
        self.vecdot = torch.linalg.vecdot
        self.sqrt = torch.sqrt
        self.where = torch.where

    def row_max(self, rows: Any) -> Any:
        return rows.abs().amax(dim=1) if rows.shape[1] else rows.new_zeros(len(rows))

    def relu(self, rows: Any) -> Any:
        return rows.clamp(min=0.0)

    def hstack(self, left: Any, right: Any) -> Any:
        return self._torch.hstack([left, right])

    def binary_exponent(self, values: Any) -> Any:
        return self._torch.frexp(values).exponent.to(self._torch.int64)

    def power_of_two(self, exponents: Any) -> Any:
        return ((exponents + 1023) << 52).view(self._torch.float64)  # by its bits: a device's pow may be off by one

    def like(self, constant: Any, rows: Any) -> Any:
        return self._torch.as_tensor(constant, device=rows.device)


def arrays_of(rows: Any) -> Arrays:
    """The operations for ``rows``: torch's for a torch tensor, numpy's otherwise."""
    torch = sys.modules.get("torch")
    return _Torch(torch) if torch is not None and isinstance(rows, torch.Tensor) else _Numpy()
