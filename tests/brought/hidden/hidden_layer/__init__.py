"""Rounds of a softmax with a hidden layer: the modules ``mlp/WIDTH`` and ``adapter/WIDTH``.

``h = tanh(8 V u) / sqrt(H)``, and scores ``W z``: z = (h, a) for mlp, z = (h, u) for adapter. ``u`` is the row of a
round, whose last entry is the constant ``a``; so there are no further intercepts, and an adapter stands beside a linear
softmax. h is no longer than u: both are at most 1. No layer mixes rows, so the gradient of one record is a function of
that record (``gradients``); ``recipe`` leads from one round to the next, ``rule`` is what a head is left with.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hidden_layer import recipe as recipes
from hidden_layer.gradients import Shape
from hidden_layer.gradients import gradients as measured
from privstats.errors import SchemaError
from privstats.extend.kinds import Values
from privstats.extend.modules import INTERCEPT, Ints, Module, NoisyClassSums, SoftmaxRecipe, SoftmaxWhitening

__all__ = ["Hidden", "adapter", "mlp"]

_MOST_WIDTH = 1 << 12
_WIDTH = re.compile("[1-9][0-9]{0,3}")  # one word for one module


@dataclass(frozen=True)
class Hidden(Module):
    """A hidden layer of ``width`` entries; ``adapter`` has linear scores beside it."""

    packages: ClassVar[tuple[str, ...]] = ("torch", "opacus")  # whose hooks give the gradients of single records
    norm: ClassVar[float] = recipes.CLIP

    width: int
    adapter: bool

    def shape(self, features: int, classes: int) -> Shape:
        """Of V and W."""
        return Shape(self.width, features + 1 if self.adapter else 1, classes, features + 1)

    def weights(self, features: int, classes: int) -> int:
        """P: how many numbers V and W are."""
        return sum(rows * columns for rows, columns in self.shape(features, classes).parts)

    def gradients(
        self, units: Ints, labels: NDArray[np.intp], weights: Values, *, classes: int, norm: float, grid_bits: int
    ) -> tuple[Ints, Ints]:
        """By Opacus, of integers."""
        return measured(self.shape(units.shape[1] - 1, classes), units, labels, weights, norm, grid_bits)

    def started(self, recipe: SoftmaxRecipe, sums: NoisyClassSums, whitening: SoftmaxWhitening) -> recipes.HiddenState:
        """A random V, and the W of a softmax beside it."""
        draws = recipes.public_draws(self.width, recipe.features)
        return recipes.started(recipe, sums, whitening, *draws, adapter=self.adapter)

    def refined(
        self, recipe: SoftmaxRecipe, sums: NoisyClassSums, state: Any, gradient: Ints, kappa: float, sigma: float
    ) -> recipes.HiddenState:
        """Both layers by their filters."""
        return recipes.refined(recipe, sums, state, gradient, kappa, sigma)

    def published(self, state: Any) -> NDArray[np.float64]:
        """V, then W."""
        return np.concatenate([part.ravel() for part in state.published()])

    def exact(self, U: NDArray[np.float64], labels: NDArray[np.intp], state: Any) -> tuple[NDArray[np.float64], float]:
        """In numpy, for a fit without noise."""
        return recipes.gradient(U, labels, *state.published())

    def rule(self, whitening: SoftmaxWhitening, state: Any, shift: NDArray[np.float64]) -> Any:
        """The linear part and the hidden layer."""
        from hidden_layer.rule import HiddenRule

        V, W = state.published()
        of_h, of_u = np.split(W, [len(V)], axis=1)
        linear = np.zeros((len(W), V.shape[1]))
        linear[:, -of_u.shape[1] :] = of_u
        coef, intercept = _split(linear)
        return HiddenRule(
            whitening.matrix, coef, intercept + shift, *_split(recipes.GAIN * V), of_h / math.sqrt(len(V))
        )


def mlp(width: str) -> Hidden:
    """What ``mlp/WIDTH`` names."""
    return Hidden(_width("mlp", width), adapter=False)


def adapter(width: str) -> Hidden:
    """What ``adapter/WIDTH`` names."""
    return Hidden(_width("adapter", width), adapter=True)


def _width(kind: str, text: str) -> int:
    if not _WIDTH.fullmatch(text) or int(text) > _MOST_WIDTH:
        raise SchemaError(f"module {kind}/WIDTH takes a WIDTH from 1 to {_MOST_WIDTH}, got {text!r}")
    return int(text)


def _split(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights of rows u as those of ``Mx / |Mx|``, and what the constant adds."""
    return weights[:, :-1] * math.sqrt(1 - INTERCEPT**2), weights[:, -1] * INTERCEPT
