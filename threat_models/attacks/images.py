"""Turn recovered feature rows into pictures with a linear decoder, and score their similarity to the true pictures.

The decoder is closed-form ridge on public images. ``inversion`` and ``rotation`` recover the rows; ``deep_prior`` has
a deep prior, which needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

from privstats.errors import DataError

Array: TypeAlias = NDArray[np.float64]
Pixels: TypeAlias = NDArray[Any]

_K1, _K2 = 0.01, 0.03  # Wang et al. 2004, section III.C


@dataclass(frozen=True, eq=False)
class Decoder:
    """A linear map from features to pixels.

    Attributes:
        coef: ``(d, pixels)``.
        features_mean, pixels_mean: of the public sample, ``(d,)`` and ``(pixels,)``.
        shape: height and width of an image.
        top: largest pixel value; the smallest is 0.
    """

    coef: Array
    features_mean: Array
    pixels_mean: Array
    shape: tuple[int, int]
    top: float

    @classmethod
    def fit(cls, features: Pixels, images: Pixels, *, penalty: float = 1e-3, top: float = 1.0) -> Decoder:
        """Ridge from features ``(m, d)`` of public images to the images ``(m, height, width)``.

        Args:
            features: the encoder's output for ``images``.
            images: with pixels in [0, top].
            penalty: relative to the mean variance of a feature; above 0.
            top: largest pixel value.

        Raises:
            DataError: no penalty above 0, or as many feature rows as images do not come together.
        """
        if not penalty > 0:
            raise DataError(f"penalty must be above 0, got {penalty}")
        if len(features) != len(images) or len(images) == 0:
            raise DataError(f"features and images must be equally many, got {len(features)} and {len(images)}")
        F, P = np.asarray(features, dtype=np.float64), np.asarray(images, dtype=np.float64).reshape(len(images), -1)
        F_mean, P_mean = F.mean(axis=0), P.mean(axis=0)
        gram = (F - F_mean).T @ (F - F_mean)
        d = len(gram)
        level = penalty * max(float(np.trace(gram)) / d, np.finfo(np.float64).tiny)
        coef = np.linalg.solve(gram + level * np.eye(d), (F - F_mean).T @ (P - P_mean))
        return cls(coef, F_mean, P_mean, (int(images.shape[1]), int(images.shape[2])), top)

    def images(self, features: Pixels) -> Array:
        """Images ``(n, height, width)`` of feature rows ``(n, d)``, clipped to [0, top]."""
        pixels = (np.asarray(features, dtype=np.float64) - self.features_mean) @ self.coef + self.pixels_mean
        return np.clip(pixels, 0.0, self.top).reshape(-1, *self.shape)


@dataclass(frozen=True, eq=False)
class FourSamples:
    """A server's pictures of a few samples of one class when secure aggregation is wholly or partly off.

    Attributes:
        wholly: images from each client's own features, secure aggregation off: ``(n, height, width)``.
        partly: images from rows recovered from the sums of all, secure aggregation on: ``(n, height, width)``.
        mean: the image of the mean feature, ``(height, width)``: all that the sum A alone shows.
        prior: mean public image, ``(height, width)``.
    """

    wholly: Array
    partly: Array
    mean: Array
    prior: Array


def four_samples(decoder: Decoder, rows: Pixels, recovered: Pixels) -> FourSamples:
    """The FedCGS scenario ("uploaded variables cannot be used to recover"), as pictures.

    Args:
        decoder: trained on public images.
        rows: features that single-record uploads show, ``(n, d)``.
        recovered: rows that an attack read off the sums of all, ``(n, d)``.
    """
    mean = decoder.images(np.asarray(recovered, dtype=np.float64).mean(axis=0, keepdims=True))[0]
    prior = np.clip(decoder.pixels_mean, 0.0, decoder.top).reshape(decoder.shape)
    return FourSamples(decoder.images(rows), decoder.images(recovered), mean, prior)


def baseline(public: Pixels, count: int) -> Array:
    """Return the attacker's pictures without the release: the mean public image, ``(count, height, width)``."""
    return np.repeat(np.asarray(public, dtype=np.float64).mean(axis=0)[None], count, axis=0)


def psnr(truth: Pixels, image: Pixels, *, top: float = 1.0) -> float:
    """Peak signal-to-noise ratio in decibels, ``10 log10(top^2 / MSE)``; infinite for equal images."""
    error = float(np.square(np.asarray(truth, dtype=np.float64) - image).mean())
    return float("inf") if error == 0 else 10 * float(np.log10(top**2 / error))


def ssim(truth: Pixels, image: Pixels, *, top: float = 1.0, sigma: float = 1.5, radius: int = 5) -> float:
    """Mean structural similarity of two images ``(height, width)`` (Wang, Bovik, Sheikh and Simoncelli 2004, eq. 13).

    A Gaussian window of standard deviation ``sigma``, 2 radius + 1 pixels wide (theirs is 11), over all places where
    it lies inside; on smaller images the widest window that fits. K1 = .01, K2 = .03.

    Raises:
        DataError: images of different shapes.
    """
    x, y = np.asarray(truth, dtype=np.float64), np.asarray(image, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 2:
        raise DataError(f"ssim needs two images of one shape (height, width), got {x.shape} and {y.shape}")
    radius = min(radius, (min(x.shape) - 1) // 2)
    window = np.exp(-np.square(np.arange(-radius, radius + 1)) / (2 * sigma**2))
    window /= window.sum()

    def local(values: Array) -> Array:
        blurred = correlate1d(correlate1d(values, window, axis=0), window, axis=1)
        return np.asarray(blurred[radius : x.shape[0] - radius, radius : x.shape[1] - radius])

    mean_x, mean_y = local(x), local(y)
    var_x, var_y, cov = local(x * x) - mean_x**2, local(y * y) - mean_y**2, local(x * y) - mean_x * mean_y
    C1, C2 = (_K1 * top) ** 2, (_K2 * top) ** 2
    scores = (2 * mean_x * mean_y + C1) * (2 * cov + C2) / ((mean_x**2 + mean_y**2 + C1) * (var_x + var_y + C2))
    return float(scores.mean())
