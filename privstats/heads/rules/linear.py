"""The linear decision rule: one matrix product.

Not an estimator. LDA, the ridge classifier and linear softmax heads end in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from privstats.heads.evidence import Array
from privstats.heads.rules.rule import Rule

__all__ = ["LinearRule"]


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
