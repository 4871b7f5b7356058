"""The decision rule of the module: a linear rule and a hidden layer, behind a public whitening."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privstats.extend.heads import WhitenedRule, lengths, units_in_graph
from privstats.extend.modules import arrays_of
from privstats.extend.support import Array

__all__ = ["HiddenRule"]


@dataclass(frozen=True, eq=False)
class HiddenRule(WhitenedRule):
    """``v @ coef.T + intercept + tanh(v @ first.T + offset) @ last.T`` of ``v = x M / |x M|``, 0 where x M = 0.

    Attributes:
        matrix, coef, intercept: as in :class:`WhitenedRule`.
        first: ``(H, m)``.
        offset: ``(H,)``.
        last: ``(C, H)``.
    """

    first: Array
    offset: Array
    last: Array
    kind: ClassVar[str] = "hidden"

    def scores(self, X: Array) -> Array:
        """Four matrix products."""
        unit = X @ self.matrix
        unit /= lengths(unit)
        out: Array = unit @ self.coef.T
        out += np.tanh(unit @ self.first.T + self.offset) @ self.last.T
        out += self.intercept
        return out

    def in_graph(self, buffers: Any, rows: Any) -> Any:
        """Four matrix products."""
        unit = units_in_graph(rows @ buffers.matrix)
        hidden = arrays_of(rows).tanh(unit @ buffers.first.T + buffers.offset)
        return unit @ buffers.coef.T + hidden @ buffers.last.T + buffers.intercept
