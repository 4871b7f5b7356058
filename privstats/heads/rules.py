"""Decision rules: frozen arrays and the scores they give, one class per way of scoring.

Not estimators: a rule knows neither labels nor where it came from. Every head ends in one, and it is what is saved,
exported and run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.heads.evidence import Array

__all__ = ["TILE", "DiagonalRule", "LinearRule", "LowRankRule", "Rule", "rule_of", "tail", "tail_in_torch"]

_RULES: dict[str, type[Rule]] = {}
TILE = 1024  # rows per tile: a tile of X and its products stay in the second-level cache


@dataclass(frozen=True, eq=False)
class Rule(ABC):
    """Scores of shape ``(n, C)`` for rows of shape ``(n, d)``: log-densities up to a term common to all classes."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        _RULES[cls.kind] = cls

    @abstractmethod
    def scores(self, X: Array) -> Array:
        """Scores of float64 rows; never allocates n x C x d."""

    @abstractmethod
    def lifted(self, basis: Array) -> Rule:
        """This rule of ``basis.T x`` as a rule of x; ``basis`` has orthonormal columns, ``(d, k)``."""

    @abstractmethod
    def in_torch(self, torch: Any, buffers: Any, rows: Any) -> Any:
        """:meth:`scores` of float64 tensor rows, by torch.

        Args:
            torch: the module.
            buffers: what holds :meth:`arrays` as tensors, by name, on the device of the rows.
            rows: ``(n, d)``.
        """

    def best(self, X: Array) -> NDArray[np.intp]:
        """Index of the highest score of each row, shape ``(n,)``."""
        return np.asarray(self.scores(X).argmax(axis=1))

    def arrays(self) -> dict[str, Array]:
        """The rule as named arrays, for a model file."""
        return {field.name: np.ascontiguousarray(getattr(self, field.name)) for field in fields(self)}


def rule_of(kind: str, arrays: Mapping[str, Array]) -> Rule:
    """The rule that :meth:`Rule.arrays` described; the arrays must be finite float64 with exactly its names.

    Raises:
        ValueError: an unknown kind, wrong names, or arrays that are not finite float64.
    """
    cls = _RULES.get(kind)
    if cls is None or set(arrays) != {field.name for field in fields(cls)}:
        raise ValueError(f"no rule of kind {kind!r} has these arrays")
    if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("a rule's arrays must be finite float64")
    return cls(**arrays)


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

    def in_torch(self, torch: Any, buffers: Any, rows: Any) -> Any:
        """One matrix product."""
        return torch.nn.functional.linear(rows, buffers.coef, buffers.intercept)


@dataclass(frozen=True, eq=False)
class DiagonalRule(Rule):
    """``bias - ((x - origin) - mean)^2 . precision / 2`` as two matrix products.

    Attributes:
        quadratic: half the precisions, ``(C, d)``.
        linear: mean times precision, ``(C, d)``.
        bias: everything that does not depend on x, ``(C,)``.
        origin: subtracted from every row first, ``(d,)``, so that squares stay small.
    """

    quadratic: Array
    linear: Array
    bias: Array
    origin: Array
    kind: ClassVar[str] = "diagonal"

    def lifted(self, basis: Array) -> LowRankRule:
        """A diagonal rule in other coordinates: rank 0, behind a projection."""
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
        """Two matrix products of n x d by d x C."""
        Z = X - self.origin
        out: Array = Z @ self.linear.T
        out -= np.square(Z, out=Z) @ self.quadratic.T
        out += self.bias
        return out

    def in_torch(self, torch: Any, buffers: Any, rows: Any) -> Any:
        """Two matrix products."""
        Z = rows - buffers.origin
        return torch.addmm(buffers.bias, Z, buffers.linear.T) - Z.square() @ buffers.quadratic.T


@dataclass(frozen=True, eq=False)
class LowRankRule(Rule):
    """Gaussians with covariance D_c + U_c U_c^T, inverted by Woodbury: O(d r) per row and class.

    ``m_c = sum_j (z_j - mu_cj)^2 / D_cj - ||F_c^T (z - mu_c)||^2`` with F_c = D_c^-1 U_c K_c^-1/2 and
    K_c = I + U_c^T D_c^-1 U_c.

    Attributes:
        precision: 1 / D, ``(C, d)``.
        linear: means over D, ``(C, d)``.
        factors: F, laid out ``(d, C r)`` so that all classes are one matrix product.
        offsets: F^T mu, ``(C r,)``.
        constant: sum mu^2 / D, ``(C,)``.
        bias, projection, origin, degrees: as in :class:`QuadraticRule`.
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
        """Folded into the projection."""
        return replace(self, projection=basis @ self.projection, origin=basis @ self.origin)

    def scores(self, X: Array) -> Array:
        """Row tiles of three matrix products each."""
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

    def in_torch(self, torch: Any, buffers: Any, rows: Any) -> Any:
        """Three matrix products."""
        Z = (rows - buffers.origin) @ buffers.projection
        C, d = self.linear.shape
        along = (Z @ buffers.factors - buffers.offsets).square().reshape(len(Z), C, -1).sum(dim=2)
        distance = Z.square() @ buffers.precision.T - 2 * Z @ buffers.linear.T + buffers.constant - along
        return buffers.bias - tail_in_torch(torch, distance, float(self.degrees[0]), d)


def tail(distance: Array, degrees: float, d: int) -> Array:
    """Minus the log density at a squared Mahalanobis distance, up to a constant."""
    return distance / 2 if degrees == 0 else (d + degrees) / 2 * np.log1p(np.maximum(distance, 0.0) / degrees)


def tail_in_torch(torch: Any, distance: Any, degrees: float, d: int) -> Any:
    """:func:`tail` of a tensor."""
    return distance / 2 if degrees == 0 else (d + degrees) / 2 * torch.log1p(distance.clamp_min(0) / degrees)
