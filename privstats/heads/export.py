"""Heads as torch modules, for serving beside the encoder that makes their features.

Not training. What is exported takes the rows that ``predict`` takes: the release's public transform is part of it, or
the export is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privstats import optional_dependencies
from privstats.errors import HeadError
from privstats.heads.evidence import Array, Released
from privstats.heads.rules import LinearRule, Preprocessing, Rule
from privstats.transforms import apply, input_features

if TYPE_CHECKING:
    import torch

__all__ = ["to_linear", "to_module"]


@runtime_checkable
class _Head(Protocol):
    """What tells a head from other estimators, fitted or not."""

    def fit_release(self, release: Released) -> Any: ...


class _Fitted(_Head, Protocol):
    """What an export reads of a head."""

    rule_: Rule
    preprocessing_: Preprocessing


def to_linear(head: object) -> torch.nn.Linear:
    """The head as ``torch.nn.Linear`` in float32, from rows as ``predict`` takes them to scores or predictions.

    A transform of affine maps is composed with the rule. The clip is not part of it, nor the cut of negative entries
    under ``nonnegative``; rows that neither would change score as they do in the head.

    Args:
        head: a fitted head.

    Raises:
        HeadError: not a head, or the rule or the transform is not linear; use :func:`to_module`.
        MissingExtraError: torch is not installed.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), [0, 0, 1, 1] * 5
        >>> ps.heads.to_linear(ps.heads.LDA().fit(X, y))
        Linear(in_features=2, out_features=2, bias=True)
    """
    torch = optional_dependencies.load("torch", by="to_linear")
    fitted = _fitted(head, "to_linear")
    rule, surface = fitted.rule_, fitted.preprocessing_
    if not isinstance(rule, LinearRule):
        raise HeadError(f"{type(head).__name__} is not linear; export it with to_module")
    curved = [step.kind for step in surface.transform if not step.affine]
    if curved:
        raise HeadError(
            f"this {type(head).__name__} stands behind the transform {curved[0]!r}, which no linear layer can hold; "
            "export it with to_module"
        )
    matrix, shift = _affine(surface)
    linear = torch.nn.Linear(len(matrix), len(rule.coef))
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(rule.coef @ matrix.T))
        linear.bias.copy_(torch.tensor(rule.intercept + rule.coef @ shift))
    return linear  # type: ignore[no-any-return]


def to_module(head: object) -> torch.nn.Module:
    """The head as a ``torch.nn.Module`` in float64, from rows as ``predict`` takes them to scores ``(n, C)``.

    The release's transform, its cut of negative entries and its clip are part of it: the transform is expanded from its
    definition, as everywhere, so a ``state_dict`` holds the rule alone. ``argmax`` over scores indexes ``classes_``;
    ``softmax`` gives probabilities (except for ``RidgeClassifier``, whose scores are probabilities before projection to
    the simplex).

    Args:
        head: a fitted head.

    Raises:
        HeadError: not a head, or its transform is a map of another package that does not take tensors.
        MissingExtraError: torch is not installed.

    Example:
        >>> import torch
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), [0, 0, 1, 1] * 5
        >>> head = ps.heads.QDA().fit(X, y)
        >>> scores = ps.heads.to_module(head)(torch.from_numpy(X))
        >>> scores.shape, bool((scores.argmax(1).numpy() == head.predict(X)).all())
        (torch.Size([20, 2]), True)
    """
    torch = optional_dependencies.load("torch", by="to_module")
    fitted = _fitted(head, "to_module")
    rule, surface = fitted.rule_, fitted.preprocessing_
    _require_tensor_maps(torch, surface)
    radius = surface.clip_norm

    class Scores(torch.nn.Module):  # type: ignore[name-defined]
        """Transform, clip, score."""

        def __init__(self) -> None:
            super().__init__()
            for name, array in rule.arrays().items():
                self.register_buffer(name, torch.tensor(np.asarray(array)))

        def forward(self, rows: Any) -> Any:
            """Scores ``(n, C)`` of rows ``(n, inputs)``."""
            rows = apply(surface.transform, rows.to(torch.float64))
            if surface.nonnegative:
                rows = rows.clamp(min=0.0)
            if radius is not None:
                norms = rows.norm(dim=1, keepdim=True)
                rows = torch.where(norms > radius, rows * (radius / norms.clamp_min(radius)), rows)
            return rule.in_torch(torch, self, rows)

    return Scores()


def _fitted(head: object, call: str) -> _Fitted:
    if not isinstance(head, _Head):
        raise HeadError(f"{call} takes a fitted head of privstats.heads, got {type(head).__name__}; fit one first")
    check_is_fitted(head, "rule_")
    return cast(_Fitted, head)


def _affine(surface: Preprocessing) -> tuple[Array, Array]:
    """A transform of affine maps as x -> x M + m: M ``(inputs, d)``, m ``(d,)``."""
    inputs = input_features(surface.transform, surface.features)
    shift = apply(surface.transform, np.zeros((1, inputs)))[0]
    return apply(surface.transform, np.eye(inputs)) - shift, shift


def _require_tensor_maps(torch: Any, surface: Preprocessing) -> None:
    """HeadError where a map of another package turns a tensor into something else."""
    inputs = input_features(surface.transform, surface.features)
    rows = torch.zeros((1, inputs), dtype=torch.float64)
    for step in surface.transform:
        try:
            rows = step.apply(rows)
        except (TypeError, ValueError, AttributeError, RuntimeError):
            rows = None
        if not isinstance(rows, torch.Tensor):
            raise HeadError(
                f"transform {step.kind!r} does not take torch tensors, so the head cannot be a module; "
                "write its apply for tensors too, or serve the head itself"
            )
