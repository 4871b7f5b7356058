"""Class sums with Gaussian noise of known level: what estimates read of them, and the sums of a course."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from privstats.estimates.spectrum import Array

__all__ = ["NoisyClassSums", "NoisySums"]


class NoisySums(Protocol):
    """Class sums with noise of known level."""

    @property
    def A(self) -> Array:
        """Sums of rows, ``(C, d)``."""
        ...

    @property
    def B(self) -> Array | None:
        """The second moment of all rows, ``(d, d)``; None where it was not released."""
        ...

    @property
    def public(self) -> Array | None:
        """Class means of public records, ``(C, d)``; NaN for a class without any, None without any at all."""
        ...

    def noise(self, statistic: str) -> float:
        """Noise standard deviation of N, A or B."""
        ...


@dataclass(frozen=True)
class NoisyClassSums:
    """(N, A, B) in real units, of rows of norm 1, and the noise that is in them.

    Attributes:
        N: ``(C,)``.
        A: ``(C, d)``.
        B: ``(d, d)``, symmetric.
        sigma: noise standard deviation of N, A and B; B has sigma^2 on its diagonal and half of it off.

    Example:
        >>> from privstats.estimates.noisy_sums import NoisyClassSums
        >>> sigma = {"N": 1.0, "A": 0.5, "B": 0.5}
        >>> sums = NoisyClassSums(N=np.array([60.0, 40.0]), A=np.eye(2) * 50, B=np.eye(2) * 50, sigma=sigma)
        >>> sums.records
        100.0
    """

    N: Array
    A: Array
    B: Array
    sigma: Mapping[str, float]
    public: ClassVar[None] = None  # none, for NoisySums

    def noise(self, statistic: str) -> float:
        """sigma of one statistic."""
        return float(self.sigma[statistic])

    @property
    def records(self) -> float:
        """n^ = max(tr B, 1): rows have norm 1, so the trace of their second moment counts them."""
        return max(float(np.trace(self.B)), 1.0)
