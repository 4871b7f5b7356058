"""The recipe: from (N, A, B) and a few noisy gradients to the weights of a softmax with a hidden layer.

``h = tanh(8 V u) / sqrt(H)``, scores ``W z`` of ``z = (h, u)`` or ``(h, a)``, of the rows u of a softmax's rounds
(``estimates.softmax``, whose whitening, recipe and filter these are). W moves in coordinates in which the second
moments of z are diagonal, at a public V and Gaussian rows with the second moments of the release; V with the curvature
of Gauss and Newton, as if all entries of h pulled in as many directions as there are classes less one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax as probabilities

from privstats.extend.modules import (
    GAUSSIAN_SCALE,
    INTERCEPT,
    Filter,
    NoisyClassSums,
    SoftmaxRecipe,
    SoftmaxWhitening,
    advanced,
    gaussian_matrix,
)
from privstats.extend.modules import started as softmax_started
from privstats.extend.support import Array

__all__ = ["CLIP", "GAIN", "HiddenState", "gradient", "hidden", "public_draws", "refined", "started"]

CLIP = 1.0
"""c: a record's whole gradient is shortened to this norm."""
GAIN = 8.0
"""What ``V u`` is multiplied by: rows have norm 1, so at a start of standard deviation 1 / 8 it is of size 1."""

_CAUTION, _MOMENTUM = 0.5, 0.3
_SLOPE = 0.46  # mean of (1 - tanh^2)^2 at a standard normal
_LEAST_SCALE = 0.05  # of the curvature that no shortening and even probabilities would give
_LEAST_CURVATURE = 0.3  # of the mean of all coordinates
_LEAST_DRAWS = 1_000


@dataclass(frozen=True)
class HiddenState:
    """What is known of the weights, in coordinates in which the curvature is nearly diagonal.

    Attributes:
        whitening: the map of the rows u, the same in all rounds.
        vectors: the coordinates of z, ``(m, m)``, orthonormal columns.
        values: mean squares of z in them, ``(m,)``.
        first: of V, ``(H, d + 1)``.
        last: of W, ``(C, m)``; m is H + d + 1 for an adapter and H + 1 for an mlp.

    Example:
        >>> from hidden_layer.recipe import started
        >>> from privstats.estimates.denoise import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxWhitening
        >>> from privstats.estimates.recipes import SoftmaxRecipe
        >>> sigma = {"N": 0.1, "A": 0.1, "B": 0.1}
        >>> sums = NoisyClassSums(np.array([60.0, 40.0]), A=np.diag([60.0, 40.0]), B=np.diag([60.0, 40.0]), sigma=sigma)
        >>> recipe, normals = SoftmaxRecipe(classes=2, features=2, records=100, mu=5.0), np.eye(9)[:, :2]
        >>> state = started(recipe, sums, SoftmaxWhitening.of(sums), np.ones((4, 3)) / 8, normals, adapter=True)
        >>> [part.shape for part in state.published()]
        [(4, 3), (2, 7)]
    """

    whitening: SoftmaxWhitening
    vectors: Array
    values: Array
    first: Filter
    last: Filter

    def published(self) -> tuple[Array, Array]:
        """V and W in the coordinates of the published map."""
        return self.whitening.published(self.first.weights), self.last.weights @ self.vectors.T


def public_draws(width: int, features: int) -> tuple[Array, Array]:
    """V before any round, ``(H, d + 1)``, and normal numbers ``(n, d)``: the same on every machine."""
    start = gaussian_matrix(0, "hidden-layer", width, features + 1) / (GAUSSIAN_SCALE * GAIN)
    start[:, -1] /= INTERCEPT  # u's constant then shifts an entry of h as much as all the rest of u
    rows = max(_LEAST_DRAWS, 4 * (width + features))
    return start, gaussian_matrix(0, "hidden-layer rows", rows, features) / GAUSSIAN_SCALE


def started(
    recipe: SoftmaxRecipe,
    sums: NoisyClassSums,
    whitening: SoftmaxWhitening,
    start: Array,
    normals: Array,
    *,
    adapter: bool,
) -> HiddenState:
    """The state after a class release: V as given, W that of the softmax beside the hidden layer, and 0 of h.

    Args:
        recipe, sums, whitening: as for a softmax.
        start: V, public and random, in the coordinates of the published map, ``(H, d + 1)``.
        normals: public standard normal numbers, ``(n, d)``: as rows of the release's second moments they say how h and
            u vary together.
        adapter: whether the scores read u beside h; else only its constant.

    Example:
        >>> from hidden_layer.recipe import started
        >>> from privstats.estimates.denoise import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxWhitening
        >>> from privstats.estimates.recipes import SoftmaxRecipe
        >>> sigma = {"N": 0.1, "A": 0.1, "B": 0.1}
        >>> sums = NoisyClassSums(np.array([60.0, 40.0]), A=np.diag([60.0, 40.0]), B=np.diag([60.0, 40.0]), sigma=sigma)
        >>> recipe, normals = SoftmaxRecipe(classes=2, features=2, records=100, mu=5.0), np.eye(9)[:, :2]
        >>> whitening, start = SoftmaxWhitening.of(sums), np.ones((4, 3)) / 8
        >>> V, W = started(recipe, sums, whitening, start, normals, adapter=False).published()
        >>> bool(W.any()), V.round(3).tolist()[0]  # an mlp begins at W = 0
        (False, [0.125, 0.125, 0.125])
    """
    H = len(start)
    softmax = whitening.published(softmax_started(recipe, sums, whitening).weights)
    W = np.hstack([np.zeros((recipe.classes, H)), softmax if adapter else np.zeros((recipe.classes, 1))])
    z = hidden(whitening.rows(normals * np.sqrt(whitening.values) @ whitening.vectors.T), start, W)
    found, vectors = np.linalg.eigh(z.T @ z / len(z))
    values = np.maximum(found, _LEAST_CURVATURE * found.mean())
    spread, curvature = recipe.prior_variance / len(whitening.curvature), whitening.curvature
    weights, V = W @ vectors, whitening.turned(start)
    last = Filter(weights, spread / values, np.zeros_like(weights))
    first = Filter(V, curvature.mean() / curvature / GAIN**2, np.zeros_like(V))
    return HiddenState(whitening, vectors, values, first, last)


def refined(
    recipe: SoftmaxRecipe, sums: NoisyClassSums, state: HiddenState, gradient: Array, kappa: float, sigma: float
) -> HiddenState:
    """The state after one round.

    Args:
        recipe, sums: the course's.
        state: at whose weights the round was measured.
        gradient: the released sum of shortened gradients by V, then W, ``(P,)``, in the published coordinates.
        kappa: the released sum of ``q (1 - |p|^2)``, q the factor by which a record's gradient was shortened.
        sigma: noise standard deviation of the gradient's entries.

    Example:
        >>> from hidden_layer.recipe import gradient, refined, started
        >>> from privstats.estimates.denoise import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxWhitening
        >>> from privstats.estimates.recipes import SoftmaxRecipe
        >>> sigma = {"N": 0.1, "A": 0.1, "B": 0.1}
        >>> sums = NoisyClassSums(np.array([60.0, 40.0]), A=np.diag([60.0, 40.0]), B=np.diag([60.0, 40.0]), sigma=sigma)
        >>> recipe, normals = SoftmaxRecipe(classes=2, features=2, records=100, mu=5.0), np.eye(9)[:, :2]
        >>> state = started(recipe, sums, SoftmaxWhitening.of(sums), np.ones((4, 3)) / 8, normals, adapter=True)
        >>> after = refined(recipe, sums, state, np.zeros(4 * 3 + 2 * 7), kappa=20.0, sigma=0.1)
        >>> bool((after.last.variance < state.last.variance).all())  # every round makes the weights better known
        True
    """
    C, n, V, W = recipe.classes, sums.records, state.first.weights, state.last.weights
    scale, noise = min(max(kappa / (n * (C - 1)), _LEAST_SCALE / C), 1 / C), (sigma / n) ** 2
    by_V, by_W = np.split(gradient / n, [V.size])
    last = advanced(
        state.last,
        by_W.reshape(W.shape) @ state.vectors + recipe.ridge * state.values * W,
        noise,
        (scale + recipe.ridge) * state.values,
        caution=_CAUTION,
        momentum=_MOMENTUM,
        centred=True,
    )
    felt = max(float(np.square((W @ state.vectors.T)[:, : len(V)]).sum()) / (C - 1), 1.0) * GAIN**2 * _SLOPE / len(V)
    first = advanced(
        state.first,
        state.whitening.turned(by_V.reshape(V.shape)),
        noise,
        scale * felt * state.whitening.curvature,
        caution=_CAUTION,
        momentum=_MOMENTUM,
    )
    return replace(state, first=first, last=last)


def hidden(U: Array, V: Array, W: Array) -> Array:
    """z, ``(n, H + d + 1)`` or ``(n, H + 1)``, of rows u.

    Example:
        >>> from hidden_layer.recipe import hidden
        >>> U, V, W = np.array([[0.6, 0.1]]), np.array([[0.1, 0.0]]), np.zeros((2, 2))
        >>> hidden(U, V, W).round(3).tolist()  # tanh(8 * .1 * .6), and the constant
        [[0.446, 0.1]]
    """
    H = len(V)
    return np.hstack([np.tanh(GAIN * (U @ V.T)) / math.sqrt(H), U[:, H - W.shape[1] :]])


def gradient(U: Array, index: NDArray[np.intp], V: Array, W: Array) -> tuple[Array, float]:
    """The sum of shortened gradients by V, then W, ``(P,)``, and kappa: what a round sums, of exact rows.

    Args:
        U: rows u, ``(n, d + 1)``.
        index: labels 0..C-1, ``(n,)``.
        V, W: in the published coordinates.

    Example:
        >>> from hidden_layer.recipe import gradient
        >>> U, V, W = np.array([[0.6, 0.1]]), np.array([[0.1, 0.0]]), np.zeros((2, 2))
        >>> found, kappa = gradient(U, np.array([1]), V, W)
        >>> found.round(3).tolist(), kappa  # none by V at W = 0
        ([0.0, 0.0, 0.223, 0.05, -0.223, -0.05], 0.5)
    """
    z, H = hidden(U, V, W), len(V)
    p = probabilities(z @ W.T, axis=1)
    left = 1 - np.square(p).sum(axis=1)
    p[np.arange(len(p)), index] -= 1
    back = GAIN / math.sqrt(H) * (p @ W[:, :H]) * (1 - H * np.square(z[:, :H]))
    squares = [np.square(each).sum(axis=1) for each in (p, z, back, U)]
    length = np.sqrt(squares[0] * squares[1] + squares[2] * squares[3])
    q = CLIP / np.maximum(length, CLIP)
    by_V, by_W = (back * q[:, None]).T @ U, (p * q[:, None]).T @ z
    return np.concatenate([by_V.ravel(), by_W.ravel()]), float(left @ q)
