"""Heads as torch modules, for serving beside the encoder that makes their features.

Not training. A linear head becomes ``torch.nn.Linear``; any head becomes a module that clips and scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privstats import extras
from privstats.errors import HeadError
from privstats.heads.rules import LinearRule, Rule

if TYPE_CHECKING:
    import torch

__all__ = ["to_linear", "to_module"]


def to_linear(head: Any) -> torch.nn.Linear:
    """The head as ``torch.nn.Linear`` in float32, from transformed rows to scores ``(n, C)`` or predictions.

    The clip is not part of it; rows no longer than the release's clip norm score as they do in the head.

    Raises:
        HeadError: the head is not linear; use :func:`to_module`.
        MissingExtraError: torch is not installed.
    """
    torch = extras.load("torch", by="to_linear")
    check_is_fitted(head, "rule_")
    rule = head.rule_
    if not isinstance(rule, LinearRule):
        raise HeadError(f"{type(head).__name__} is not linear; export it with to_module")
    outputs, inputs = rule.coef.shape
    linear = torch.nn.Linear(inputs, outputs)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(rule.coef))
        linear.bias.copy_(torch.tensor(rule.intercept))
    return linear  # type: ignore[no-any-return]


def to_module(head: Any) -> torch.nn.Module:
    """The head as a ``torch.nn.Module`` in float64, from rows ``(n, d)`` to scores ``(n, C)``.

    The clip is part of it, the release's transform is not: give transformed rows. ``argmax`` over scores indexes
    ``classes_``; ``softmax`` gives probabilities (except for ``RidgeClassifier``, whose scores are probabilities before
    projection to the simplex).

    Raises:
        MissingExtraError: torch is not installed.
    """
    torch = extras.load("torch", by="to_module")
    check_is_fitted(head, "rule_")
    score = {"linear": _linear, "diagonal": _diagonal, "quadratic": _quadratic, "low-rank": _low_rank}[head.rule_.kind]
    radius = head.surface_.clip_norm

    class Scores(torch.nn.Module):  # type: ignore[name-defined]
        """Clip, then score."""

        def __init__(self, rule: Rule) -> None:
            super().__init__()
            for name, array in rule.arrays().items():
                self.register_buffer(name, torch.tensor(np.asarray(array)))

        def forward(self, rows: Any) -> Any:
            """Scores ``(n, C)`` of rows ``(n, d)``."""
            rows = rows.to(torch.float64)
            if radius is not None:
                norms = rows.norm(dim=1, keepdim=True)
                rows = torch.where(norms > radius, rows * (radius / norms.clamp_min(radius)), rows)
            return score(torch, self, rows)

    return Scores(head.rule_)


def _linear(torch: Any, rule: Any, rows: Any) -> Any:
    return torch.nn.functional.linear(rows, rule.coef, rule.intercept)


def _diagonal(torch: Any, rule: Any, rows: Any) -> Any:
    Z = rows - rule.origin
    return torch.addmm(rule.bias, Z, rule.linear.T) - Z.square() @ rule.quadratic.T


def _quadratic(torch: Any, rule: Any, rows: Any) -> Any:
    Z = (rows - rule.origin) @ rule.projection
    d = Z.shape[1]
    distance = rule.constant - 2 * Z @ rule.linear.T
    start = 0
    for i in range(d):  # a row of the triangle at a time, as QuadraticRule does
        distance = distance + Z[:, i, None] * (Z[:, i:] @ rule.packed[:, start : start + d - i].T)
        start += d - i
    return rule.bias - _tail(torch, distance, rule.degrees, d)


def _low_rank(torch: Any, rule: Any, rows: Any) -> Any:
    Z = (rows - rule.origin) @ rule.projection
    C, d = rule.linear.shape
    along = (Z @ rule.factors - rule.offsets).square().reshape(len(Z), C, -1).sum(dim=2)
    distance = Z.square() @ rule.precision.T - 2 * Z @ rule.linear.T + rule.constant - along
    return rule.bias - _tail(torch, distance, rule.degrees, d)


def _tail(torch: Any, distance: Any, degrees: Any, d: int) -> Any:
    nu = float(degrees[0])
    return distance / 2 if nu == 0 else (d + nu) / 2 * torch.log1p(distance.clamp_min(0) / nu)
