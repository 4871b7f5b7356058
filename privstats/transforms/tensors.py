"""Operations on torch tensors, for ``exact``."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

_SINGLE_MIN = -73
"""Least exponent of a float32 row: 2**(52 - exponent), the most that a row is scaled by, must be a float32."""


class TorchArrays:
    """Operations in float64 with numpy's bits, or float32 for serving."""

    def __init__(self, torch: ModuleType, rows: Any) -> None:
        self._torch = torch
        self._dtype, self._device = rows.dtype, rows.device
        self._single = rows.dtype == torch.float32
        self.rint = torch.round
        self.vecdot = self.integer_dots = torch.linalg.vecdot
        self.sqrt = torch.sqrt
        self.where = torch.where
        self.log1p = torch.log1p
        self.tanh = torch.tanh
        self.matmul = torch.matmul
        self.trunc = torch.trunc
        self.floor = torch.floor
        self.full_like = torch.full_like

    def row_max(self, rows: Any) -> Any:
        """Return largest absolute values."""
        return rows.abs().amax(dim=1) if rows.shape[1] else rows.sum(1)

    def relu(self, rows: Any) -> Any:
        """Set negative entries to 0."""
        return rows.clamp(min=0.0)

    def hstack(self, left: Any, right: Any) -> Any:
        """Join columns."""
        return self._torch.hstack([left, right])

    def append(self, rows: Any, value: float, columns: int) -> Any:
        """Append constant columns."""
        return self._torch.nn.functional.pad(rows, (0, columns), value=value)

    def some(self, mask: Any) -> bool:  # noqa: ARG002 - the signature of Arrays
        """Return True: the host would wait for a device's answer, and a recorded graph has none."""
        return True

    def binary_exponent(self, values: Any) -> Any:
        """Return binary exponents, int64."""
        exponents = self._torch.frexp(values).exponent.to(self._torch.int64)
        return exponents.clamp(min=_SINGLE_MIN) if self._single else exponents

    def power_of_two(self, exponents: Any) -> Any:
        """Return powers of two, exactly."""
        torch, minimum = self._torch, -126 if self._single else -1022
        if torch.jit.is_tracing():  # torch here cannot read bits as another type, so the powers are looked up
            powers = np.ldexp(1.0, np.arange(minimum, 2 - minimum))
            return torch.as_tensor(powers, dtype=self._dtype, device=exponents.device)[exponents - minimum]
        if self._single:  # by its bits: a device's pow may be off by one
            return ((exponents + 127) << 23).to(torch.int32).view(torch.float32)
        return ((exponents + 1023) << 52).view(torch.float64)

    def like(self, constant: Any, rows: Any) -> Any:
        """Convert a constant to the rows' type and device."""
        return self._torch.as_tensor(constant, dtype=rows.dtype, device=rows.device)

    def trunc_where(self, mask: Any, rows: Any, out: Any) -> Any:
        """Return ``out`` with the masked rows of ``rows`` rounded toward zero."""
        return self._torch.where(mask[:, None], self._torch.trunc(rows), out)

    def largest(self, rows: Any) -> Any:
        """Return the largest entry of each row, ``(n, 1)``."""
        return rows.amax(dim=1, keepdim=True)

    def at_least(self, rows: Any, minimum: float) -> Any:
        """Replace smaller entries by the minimum, in place."""
        return rows.clamp_(min=minimum)

    def ldexp(self, values: Any, exponents: Any) -> Any:
        """Return values times 2**exponents, in place."""
        values *= self.power_of_two(exponents.to(self._torch.int64))
        return values

    def empty(self, *shape: int) -> Any:
        """Return memory for entries of the rows' type, on their device."""
        return self._torch.empty(shape, dtype=self._dtype, device=self._device)

    def arange(self, count: int) -> Any:
        """Return the int64 indices 0 to count - 1, on the rows' device."""
        return self._torch.arange(count, device=self._device)
