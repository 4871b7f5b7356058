"""What a regression asks of its errors, whichever way they are computed: a protocol, and no arithmetic."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privstats.estimates.spectrum import Array

__all__ = ["Errors"]


class Errors(Protocol):
    """Estimates with tests and intervals; all arrays have one entry per parameter, ``(m,)``."""

    @property
    def estimate(self) -> Array:
        """Estimates."""
        ...

    @property
    def error(self) -> Array:
        """Standard errors, sampling and noise together."""
        ...

    @property
    def noise_error(self) -> Array:
        """Standard errors from the noise alone."""
        ...

    def told(self, alpha: float) -> NDArray[np.bool_]:
        """Whether the interval at this level is bounded."""
        ...

    def statistics(self, null: float = 0.0) -> Array:
        """Test statistics of "parameter == null"."""
        ...

    def pvalues(self, null: float = 0.0) -> Array:
        """Two-sided p-values of "parameter == null"."""
        ...

    def interval(self, alpha: float, *, sampling: bool = True) -> tuple[Array, Array]:
        """Ends of the intervals."""
        ...

    def combined(self, rows: Array) -> Errors:
        """The same of linear combinations of the parameters, ``(r, m)``."""
        ...

    def joint_pvalue(self) -> float:
        """p-value of "all parameters are 0"."""
        ...
