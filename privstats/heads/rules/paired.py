"""Decide by a whitened rule and tables of pairs of columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from privstats.heads.evidence import Array
from privstats.heads.rules.rule import Rule, WhitenedRule, units_in_graph


@dataclass(frozen=True, eq=False)
class PairedRule(Rule):
    """A whitened rule, plus ``((x A + a) * (x B + b)) @ pairs.T``: products of codes of two columns.

    Attributes:
        matrix, coef, intercept: as of a whitened rule.
        left, left_shift, right, right_shift: A and B, ``(d, k)``, a and b, ``(k,)``.
        pairs: weights of the products, ``(C, k)``.
    """

    matrix: Array
    coef: Array
    intercept: Array
    left: Array
    left_shift: Array
    right: Array
    right_shift: Array
    pairs: Array
    kind: ClassVar[str] = "paired"

    @property
    def linear(self) -> WhitenedRule:
        """The rule without pairs."""
        return WhitenedRule(self.matrix, self.coef, self.intercept)

    def lifted(self, basis: Array) -> PairedRule:
        """Fold the basis into the maps."""
        maps = {name: basis @ getattr(self, name) for name in ("matrix", "left", "right")}
        return replace(self, **maps)

    def scores(self, X: Array) -> Array:
        """Compute scores by five matrix products."""
        out = self.linear.scores(X)
        products = X @ self.left
        products += self.left_shift
        other = X @ self.right
        other += self.right_shift
        products *= other
        out += products @ self.pairs.T
        return out

    def in_graph(self, buffers: Any, rows: Any) -> Any:
        """Record five matrix products."""
        products = (rows @ buffers.left + buffers.left_shift) * (rows @ buffers.right + buffers.right_shift)
        units = units_in_graph(rows @ buffers.matrix)
        return units @ buffers.coef.T + products @ buffers.pairs.T + buffers.intercept
