"""Decision rules: frozen arrays and the scores they give, one class per way of scoring.

Not estimators: a rule knows neither labels nor where it came from. Every head ends in one, and it is what is saved,
exported and run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from privstats.heads.evidence import Array

__all__ = ["DiagonalRule", "LinearRule", "Rule"]

_RULES: dict[str, type[Rule]] = {}


@dataclass(frozen=True, eq=False)
class Rule(ABC):
    """Scores of shape ``(n, C)`` for rows of shape ``(n, d)``: log-densities up to a term common to all classes."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        _RULES[cls.kind] = cls

    @abstractmethod
    def scores(self, X: Array) -> Array:
        """Scores of float64 rows; never allocates n x C x d."""

    def arrays(self) -> dict[str, Array]:
        """The rule as named arrays, for a model file."""
        return {field.name: np.ascontiguousarray(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class LinearRule(Rule):
    """``X @ coef.T + intercept``; coef ``(C, d)``, intercept ``(C,)``."""

    coef: Array
    intercept: Array
    kind: ClassVar[str] = "linear"

    def scores(self, X: Array) -> Array:
        """One matrix product."""
        out: Array = X @ self.coef.T
        out += self.intercept
        return out


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

    def scores(self, X: Array) -> Array:
        """Two matrix products of n x d by d x C."""
        Z = X - self.origin
        out: Array = Z @ self.linear.T
        out -= np.square(Z, out=Z) @ self.quadratic.T
        out += self.bias
        return out
