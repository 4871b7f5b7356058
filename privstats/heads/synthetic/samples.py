"""Class-conditional Gaussian samples from moments, deterministic under a seed.

Every sample is drawn from the released moments that ``world`` holds; ``training`` fits on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privstats.heads.evidence import Array

__all__ = ["Samples", "draw"]


@dataclass(frozen=True)
class Samples:
    """Synthetic rows ``(C * per_class, d)``, float64, ordered by class, and their labels."""

    rows: Array
    labels: Any


def draw(means: Array, values: Array, vectors: Array, per_class: int, dispersion: float, seed: int) -> Samples:
    """Samples of ``N(mu_c, dispersion^2 V_c diag(values_c) V_c^T)``, the same for the same seed on every device.

    Args:
        means: ``(C, d)``.
        values, vectors: eigenvalues ``(C, d)`` and eigenvectors ``(C, d, d)``.
        per_class: samples of each class.
        dispersion: tau of GH-OFL section 3.3.
        seed: of numpy's PCG64; these samples are model fitting, not privacy.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    C, d = means.shape
    rows = np.empty((C, per_class, d))
    for c in range(C):
        root = (vectors[c] * (dispersion * np.sqrt(values[c]))) @ vectors[c].T  # symmetric: eigenvector signs cancel
        np.matmul(rng.standard_normal((per_class, d)), root, out=rows[c])
        rows[c] += means[c]
    return Samples(rows.reshape(C * per_class, d), np.repeat(np.arange(C), per_class))
