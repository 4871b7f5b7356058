"""Images spoilt as common corruptions spoil them: noise, blur, weather and digital, at the severity that papers report.

Seven of the nineteen of Hendrycks and Dietterich 2019, with the constants of their sets of small images (severity 5);
those that need photographs of frost, a camera's motion or a warp are left out. Pure functions of images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, zoom

__all__ = ["CORRUPTIONS", "FAMILIES", "corrupted"]

Images: TypeAlias = NDArray[np.float64]
Corruption: TypeAlias = Callable[[Images, np.random.Generator], Images]


def _gaussian_noise(images: Images, rng: np.random.Generator) -> Images:
    return images + rng.normal(scale=0.10, size=images.shape)


def _shot_noise(images: Images, rng: np.random.Generator) -> Images:
    return rng.poisson(images * 50) / 50


def _impulse_noise(images: Images, rng: np.random.Generator) -> Images:
    hit, white = rng.random(images.shape) < 0.07, rng.random(images.shape) < 0.5
    return np.where(hit, white.astype(np.float64), images)


def _gaussian_blur(images: Images, _: np.random.Generator) -> Images:
    return np.asarray(gaussian_filter(images, sigma=(0, 1, 1, 0)))


def _brightness(images: Images, _: np.random.Generator) -> Images:
    return images + 0.3


def _contrast(images: Images, _: np.random.Generator) -> Images:
    mean = images.mean(axis=(1, 2), keepdims=True)
    return np.asarray(mean + 0.15 * (images - mean))


def _pixelate(images: Images, _: np.random.Generator) -> Images:
    small = zoom(images, (1, 0.65, 0.65, 1), order=1, grid_mode=True, mode="nearest")
    back = [full / part for full, part in zip(images.shape[1:3], small.shape[1:3], strict=True)]
    return np.asarray(zoom(small, (1, *back, 1), order=0, grid_mode=True, mode="nearest"))


CORRUPTIONS: Mapping[str, Corruption] = {
    "gaussian noise": _gaussian_noise,
    "shot noise": _shot_noise,
    "impulse noise": _impulse_noise,
    "gaussian blur": _gaussian_blur,
    "brightness": _brightness,
    "contrast": _contrast,
    "pixelate": _pixelate,
}
"""What is done to images ``(n, height, width, channels)`` in 0..1; :func:`corrupted` cuts the result back to 0..1."""

FAMILIES = "noise (3), blur (1), weather (1), digital (2)"


def corrupted(images: Images, name: str, seed: int = 0) -> Images:
    """Images under one of :data:`CORRUPTIONS`, in 0..1 and of the same shape.

    Args:
        images: ``(n, height, width, channels)`` in 0..1.
        name: of the corruption.
        seed: of its noise.
    """
    return np.clip(CORRUPTIONS[name](images, np.random.default_rng(seed)), 0.0, 1.0)
