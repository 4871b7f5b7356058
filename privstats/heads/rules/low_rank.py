"""Decision rules of Gaussians with diagonal or low-rank covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from privstats.heads.evidence import Array
from privstats.heads.rules.rule import TILE, Rule, tail, tail_in_graph


@dataclass(frozen=True, eq=False)
class DiagonalRule(Rule):
    """``bias + z . linear - z^2 . quadratic`` with ``z = x - origin``.

    Attributes:
        quadratic, linear: half the precisions, and mean times precision, ``(C, d)``.
        bias: terms independent of x, ``(C,)``.
        origin: subtracted point, ``(d,)``.
    """

    quadratic: Array
    linear: Array
    bias: Array
    origin: Array
    kind: ClassVar[str] = "diagonal"

    def lifted(self, basis: Array) -> LowRankRule:
        """Return a rank-0 rule behind a projection."""
        k, precision = self.linear.shape[1], 2 * self.quadratic
        constant = (np.square(self.linear) / precision).sum(axis=1)
        return LowRankRule(
            precision=precision,
            linear=self.linear,
            factors=np.zeros((k, 0)),
            offsets=np.zeros(0),
            constant=constant,
            bias=self.bias + constant / 2,
            projection=basis,
            origin=basis @ self.origin,
            degrees=np.zeros(1),
        )

    def scores(self, X: Array) -> Array:
        """Compute scores by two matrix products."""
        Z = X - self.origin
        out: Array = Z @ self.linear.T
        out -= np.square(Z, out=Z) @ self.quadratic.T
        out += self.bias
        return out

    def in_graph(self, buffers: Any, rows: Any) -> Any:
        """Record two matrix products."""
        Z = rows - buffers.origin
        return Z @ buffers.linear.T - (Z * Z) @ buffers.quadratic.T + buffers.bias


@dataclass(frozen=True, eq=False)
class LowRankRule(Rule):
    """Gaussians with covariance D_c + U_c U_c^T, inverted by Woodbury: O(d r) per row and class.

    ``m_c = sum_j (z_j - mu_cj)^2 / D_cj - ||F_c^T (z - mu_c)||^2`` with F_c = D_c^-1 U_c K_c^-1/2 and
    K_c = I + U_c^T D_c^-1 U_c.

    Attributes:
        precision, linear: 1 / D and means over D, ``(C, d)``.
        factors: F of all classes, ``(d, C r)``.
        offsets: F^T mu, ``(C r,)``.
        constant: sum mu^2 / D, ``(C,)``.
        bias, projection, origin, degrees: as in :class:`~privstats.heads.rules.quadratic.QuadraticRule`.
    """

    precision: Array
    linear: Array
    factors: Array
    offsets: Array
    constant: Array
    bias: Array
    projection: Array
    origin: Array
    degrees: Array
    kind: ClassVar[str] = "low-rank"

    def lifted(self, basis: Array) -> LowRankRule:
        """Fold the basis into the projection."""
        return replace(self, projection=basis @ self.projection, origin=basis @ self.origin)

    def scores(self, X: Array) -> Array:
        """Compute scores by three matrix products per row tile."""
        C, d = self.linear.shape
        out = np.empty((len(X), C))
        for start in range(0, len(X), TILE):
            tile = slice(start, start + TILE)
            Z = (X[tile] - self.origin) @ self.projection
            along = Z @ self.factors - self.offsets
            distance = np.square(Z) @ self.precision.T - 2 * (Z @ self.linear.T) + self.constant
            distance -= np.square(along, out=along).reshape(len(Z), C, -1).sum(axis=2)
            out[tile] = self.bias - tail(distance, self.degrees[0], d)
        return out

    def in_graph(self, buffers: Any, rows: Any) -> Any:
        """Record three matrix products."""
        Z = (rows - buffers.origin) @ buffers.projection
        C, d = self.linear.shape
        distance = (Z * Z) @ buffers.precision.T - (Z * 2) @ buffers.linear.T + buffers.constant
        if rank := self.factors.shape[1] // C:
            along = Z @ buffers.factors - buffers.offsets
            distance = distance - (along * along).reshape(-1, C, rank).sum(2)
        return buffers.bias - tail_in_graph(distance, float(self.degrees[0]), d)
