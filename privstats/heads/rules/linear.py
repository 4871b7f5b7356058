"""The linear decision rules: one matrix product, as it stands or behind a public whitening.

LDA, the ridge classifier and linear softmax heads end in the first. Refinement rounds end in the second, which maps
rows and scales them to one length first, as the rounds did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from privstats.heads.evidence import Array
from privstats.heads.rules.rule import TILE, Rule
from privstats.transforms import Transform
from privstats.transforms.arrays import arrays_of

__all__ = ["LinearRule", "WhitenedRule", "lengths", "units_in_graph"]


@dataclass(frozen=True, eq=False)
class LinearRule(Rule):
    """``X @ coef.T + intercept``; coef ``(C, d)``, intercept ``(C,)``."""

    coef: Array
    intercept: Array
    kind: ClassVar[str] = "linear"

    def lifted(self, basis: Array) -> LinearRule:
        """Folded into the coefficients."""
        return LinearRule(self.coef @ basis.T, self.intercept)

    def scores(self, X: Array) -> Array:
        """One matrix product."""
        out: Array = X @ self.coef.T
        out += self.intercept
        return out

    def in_graph(self, buffers: Any, rows: Any) -> Any:
        """One matrix product."""
        return rows @ buffers.coef.T + buffers.intercept

    def before(self, transform: Sequence[Transform]) -> tuple[Array, Array]:
        """Weights and intercept of the rows in front of the affine maps that end ``transform``.

        Returns:
            ``(C, k)`` and ``(C,)``; k is the number of columns that the first of these maps takes: those of X where all
            maps are affine, and else of what the last other map gives.
        """
        coef, intercept = self.coef, self.intercept
        for step in reversed(transform):
            if not step.affine:
                break
            coef, intercept = _before(step, coef, intercept)
        return coef, intercept


@dataclass(frozen=True, eq=False)
class WhitenedRule(Rule):
    """``(x M / |x M|) @ coef.T + intercept``, and the intercept alone where x M = 0.

    Attributes:
        matrix: M, ``(d, m)``.
        coef: ``(C, m)``.
        intercept: ``(C,)``.
    """

    matrix: Array
    coef: Array
    intercept: Array
    kind: ClassVar[str] = "whitened"

    def lifted(self, basis: Array) -> WhitenedRule:
        """Folded into the map."""
        return replace(self, matrix=basis @ self.matrix)

    def scores(self, X: Array) -> Array:
        """Two matrix products."""
        mapped = X @ self.matrix
        out: Array = mapped @ self.coef.T
        out /= lengths(mapped)
        out += self.intercept
        return out

    def in_graph(self, buffers: Any, rows: Any) -> Any:
        """Two matrix products."""
        return units_in_graph(rows @ buffers.matrix) @ buffers.coef.T + buffers.intercept


def _before(step: Transform, coef: Array, intercept: Array) -> tuple[Array, Array]:
    """The same scores in front of a map x -> x M + m: coef M' and intercept + coef m."""
    inputs = step.takes(coef.shape[1])
    shift = step.apply(np.zeros((1, inputs)))[0]
    size = max(1.0, float(np.abs(shift).max()))  # of m's size, so that taking m away again loses no digits
    weights = np.empty((len(coef), inputs))
    for at in range(0, inputs, TILE):
        units = np.zeros((min(TILE, inputs - at), inputs))
        np.fill_diagonal(units[:, at:], size)
        weights[:, at : at + len(units)] = coef @ (step.apply(units) - shift).T / size
    return weights, intercept + coef @ shift


def lengths(rows: Array) -> Array:
    """Norms of rows, ``(n, 1)``; 1 for a row of zeros, which stays one when divided by it."""
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.where(norms > 0, norms, 1.0)[:, None]


def units_in_graph(rows: Any) -> Any:
    """Rows divided by their :func:`lengths`, in operations of the array's own library."""
    xp = arrays_of(rows)
    norms = xp.sqrt(xp.vecdot(rows, rows))
    return rows / (norms + (norms == 0))[:, None]
