"""A public map that is none: it subtracts the mean of the batch, so each record moves all others."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privstats.extend.kinds import Rows
from privstats.transforms import Transform


@dataclass(frozen=True)
class BatchCentre(Transform):
    """X - mean(X), whose rows depend on their neighbours: the contract of maps forbids it."""

    kind: ClassVar[str] = "batch-centre"

    def apply(self, rows: Rows) -> Rows:
        """Return the rows minus their mean."""
        return rows - np.asarray(rows).mean(axis=0) if len(rows) else rows

    def outputs(self, inputs: int | None) -> int | None:
        """Return the number of columns."""
        return inputs
