"""The safe way to a statistic: one vector per record, whose bound privstats proves."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.kinds import ClippedRows


@dataclass(frozen=True)
class TukeySchema(ClippedRows):
    """Sum of psi(x) = x (1 - (x / c)^2)^2 of each column within -c to c, and of 0 beyond."""

    task: ClassVar[str] = "tukey"
    purpose: ClassVar[str] = "a robust average of every column"

    cut: float = 4.0

    @property
    def outputs(self) -> int:
        """One number per column."""
        return self.features

    def vector(self, record: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return psi of each column."""
        return np.where(np.abs(record) < self.cut, record * (1 - (record / self.cut) ** 2) ** 2, 0.0)
