"""Mechanisms that are broken on purpose: an attack that never succeeds on one of these proves nothing."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["double_gaussian"]

Array: TypeAlias = NDArray[np.float64]


def double_gaussian(values: Array, sigma: float, trials: int, rng: np.random.Generator) -> Array:
    """Gaussian noise in double precision, as a textbook has it: ``(trials, d)`` noisy copies of ``values``."""
    return np.asarray(values + sigma * rng.standard_normal((trials, len(values))))
