"""Images and a public convolutional encoder of them, in numpy: random filters and a ReLU.

A stand-in for the frozen encoders of the field, small enough to run anywhere. The attacks on pictures and the benchmark
use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

if TYPE_CHECKING:
    import torch

Array: TypeAlias = NDArray[np.float64]


def _filters() -> Array:
    drawn = np.random.default_rng(0).standard_normal((16, 3, 3))
    drawn -= drawn.mean(axis=(1, 2), keepdims=True)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=(1, 2), keepdims=True))


FILTERS = _filters()
"""16 filters of 3 x 3 that see edges: mean 0, norm 1."""


def digit_images() -> tuple[Array, NDArray[np.intp]]:
    """Images ``(1797, 8, 8)`` with pixels in [0, 1], and labels."""
    X, y = load_digits(return_X_y=True)
    return X.reshape(-1, 8, 8) / 16, y


def conv_features(images: NDArray[Any], *, stride: int = 2) -> Array:
    """Features of images ``(n, height, width)``: the filters at every ``stride``-th place, then ReLU."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
    maps = np.maximum(np.einsum("nhwij,fij->nfhw", windows, FILTERS, optimize=True), 0.0)
    return np.asarray(maps.reshape(len(images), -1))


def torch_features(stride: int = 2) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the feature map for torch, on images ``(n, 1, height, width)``: differentiable, to fit a net.

    Raises:
        MissingExtraError: torch is not installed.
    """
    from privstats.optional_dependencies import load

    torch = load("torch", by="the deep image prior")
    weights = torch.as_tensor(FILTERS, dtype=torch.float32)[:, None]

    def features(batch: Any) -> Any:
        return torch.relu(torch.nn.functional.conv2d(batch, weights, stride=stride, padding=1)).flatten(1)

    return features
