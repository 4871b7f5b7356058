"""The nearest class mean, from counts and sums alone, with a rule of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.extend.heads import Bounds, Entry, Number, Rule
from privstats.heads import ClassHead


@dataclass(frozen=True, eq=False)
class MeansRule(Rule):
    """Minus half the squared distance to each mean."""

    kind: ClassVar[str] = "nearest-centroid"

    means: NDArray[np.float64]

    def scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Shape ``(n, C)``; the term of the row, common to all classes, is left out."""
        return X @ self.means.T - np.square(self.means).sum(axis=1) / 2

    def lifted(self, basis: NDArray[np.float64]) -> MeansRule:
        """The same in all coordinates."""
        return MeansRule(self.means @ basis.T)

    def in_graph(self, buffers: Any, rows: Any) -> Any:
        """:meth:`scores` of tensors."""
        return rows @ buffers["means"].T - (buffers["means"] * buffers["means"]).sum(1) / 2


@dataclass(kw_only=True, eq=False, repr=False)
class NearestCentroid(ClassHead):
    """The class whose mean is nearest; ``floor`` is the least count that a class is divided by."""

    entry: ClassVar[Entry] = Entry()
    bounds: ClassVar[Bounds] = {"floor": (Number(closed=False),)}

    floor: float = 1.0

    def _solve(self, evidence: Any) -> MeansRule:
        return MeansRule(evidence.A / np.maximum(evidence.N, self.floor)[:, None] + evidence.origin)
