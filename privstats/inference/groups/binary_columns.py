"""Compare columns of 0 and 1 by group under noise.

Sums are of u = k x + s (``Scale`` and ``Centre``), so the number of ones is (A - s N) / k, with both noises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.counts.table import gradients, z_of

_CLEAR = 3.0
"""Standard deviations of its noise that a group's rarer value must exceed for the variance to be reported."""
_SURE = 6.0  # noise deviations beyond which squares contradict zeros and ones
_ROUNDED = 0.01  # mean change of a record's square by the grid, at most


@dataclass(frozen=True, eq=False)
class BinaryColumn:
    """One column of 0 and 1.

    Attributes:
        N, A, D: records, sums and sums of squares, ``(groups,)``, possibly noisy.
        scale, shift: k and s.
    """

    N: Array
    A: Array
    D: Array
    sigma: Mapping[str, float]
    scale: float
    shift: float

    def require_zeros_and_ones(self, name: str, reported: NDArray[np.bool_]) -> None:
        """Refuse sums where noise does not explain that sum x^2 differs from sum x."""
        per, once = 2 * self.shift + self.scale, self.shift * (self.shift + self.scale)
        apart = np.abs(self.D - per * self.A + once * self.N)
        noise = math.hypot(self.sigma["D"], per * self.sigma["A"], once * self.sigma["N"])
        if (apart > _SURE * noise + _ROUNDED * self.scale**2 * np.abs(self.N))[reported].any():
            raise ReleaseError(
                f"binary (on the command line --binary) names {name!r}, which is no column of 0 and 1, by its sum of "
                "squares: omit it there"
            )

    @property
    def ones(self) -> Array:
        """Number of ones per group."""
        return np.asarray((self.A - self.shift * self.N) / self.scale)

    @property
    def ones_sigma(self) -> float:
        """Standard error of the noise in a number of ones."""
        return math.hypot(self.sigma["A"], self.shift * self.sigma["N"]) / abs(self.scale)

    @property
    def shares(self) -> Array:
        """Share of ones per group."""
        return np.asarray(self.ones / self.N)

    def intervals(self, alpha: float) -> tuple[Array, Array]:
        """Return the population shares' intervals by test inversion: Wilson's without noise.

        p is accepted where |C - p N| <= z sqrt(N p (1 - p) + (sigma_A^2 + (s + p k)^2 sigma_N^2) / k^2), with C the
        ones. The interval is 0 to 1 where noise hides N.
        """
        z2, per = z_of(alpha) ** 2, 1 / self.scale
        N, C, noise = self.N, self.ones, z_of(alpha) ** 2 * self.sigma["N"] ** 2
        square = N**2 + z2 * N - noise
        safe = np.where(square > 0, square, 1.0)
        middle = (C * N + z2 * N / 2 + noise * self.shift * per) / safe
        last = (C**2 - z2 * self.sigma["A"] ** 2 * per**2 - noise * self.shift**2 * per**2) / safe
        root = np.sqrt(np.maximum(middle**2 - last, 0.0))
        reported = (square > 0) & (N > 0)
        low, high = np.clip(middle - root, 0.0, 1.0), np.clip(middle + root, 0.0, 1.0)
        return np.where(reported, low, 0.0), np.where(reported, high, 1.0)

    def pvalue(self) -> float:
        """Return the two-sided score test's p-value of equal shares; without noise the chi-squared test's."""
        pooled = float(np.clip(self.ones.sum() / self.N.sum(), 0.0, 1.0))
        noise = (self.sigma["A"] ** 2 + (self.shift + pooled * self.scale) ** 2 * self.sigma["N"] ** 2) / self.scale**2
        variance = float((pooled * (1 - pooled) / self.N + noise / self.N**2).sum())
        apart = abs(float(self.shares[0] - self.shares[1]))
        if not variance > 0:
            return 1.0 if apart == 0 else 0.0
        return float(2 * ndtr(-apart / math.sqrt(variance)))

    def difference(self, alpha: float) -> tuple[float, float, float]:
        """Return the standardised difference and its ends for *these* records.

        It is (p - q) / sqrt((p (1 - p) + q (1 - q)) / 2) (Austin, Statistics in Medicine 28 (2009) 3083). The delta
        method covers noise alone; NaN unless one group's zeros and ones both exceed the noise.
        """
        rest = np.minimum(self.ones, self.N - self.ones)
        reach = np.hypot(self.sigma["A"], (abs(self.shift) + abs(self.scale)) * self.sigma["N"]) / abs(self.scale)
        if not (rest > _CLEAR * reach).any():
            return math.nan, math.nan, math.nan
        entries = np.concatenate([self.N, self.A])
        value = float(np.real(self._standardised(entries))[0])
        slopes = gradients(self._standardised, entries)[:, 0]
        spread = slopes * np.repeat([self.sigma["N"], self.sigma["A"]], 2)
        margin = z_of(alpha) * float(np.sqrt(np.square(spread).sum()))
        return value, value - margin, value + margin

    def _standardised(self, entries: Array) -> Array:
        """Return the difference from records and sums, ``(..., 4)``; analytic, for its derivatives."""
        N, A = entries[..., :2], entries[..., 2:]
        shares = (A - self.shift * N) / self.scale / N
        variance = (shares * (1 - shares)).sum(axis=-1, keepdims=True) / 2
        return np.asarray((shares[..., :1] - shares[..., 1:]) / np.sqrt(variance))
