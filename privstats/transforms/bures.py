"""Square roots of covariances, in float64, without records, clients or noise.

They are the parts of the Bures-Wasserstein geometry (Bhatia, Jain, Lim 2019) that a party's measurement of an alignment
computes; the map of an alignment and the steps to a barycentre are in ``contrib.alignment``.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

_SMALLEST_RATIO = 1e-12  # of the largest eigenvalue; below it a direction counts as that, and never divides by 0


def root(covariance: Array, power: float = 0.5) -> Array:
    """A power of a symmetric positive semi-definite matrix, ``(d, d)``, with a small floor under its eigenvalues.

    Args:
        covariance: symmetric; asymmetry from rounding is dropped.
        power: 1/2, -1/2 or any other.

    Example:
        >>> from privstats.transforms import bures
        >>> bures.root(np.diag([4.0, 9.0])).round(6).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    floor = max(_SMALLEST_RATIO * float(values[-1]), np.finfo(np.float64).tiny)
    powered: Array = (vectors * np.maximum(values, floor) ** power) @ vectors.T
    return powered


def mean_root(reference_root: Array, covariance: Array) -> Array:
    """One client's part of a barycentre round, ``(S^1/2 Sigma S^1/2)^1/2``, ``(d, d)``.

    Its operator norm is at most ``||S||^1/2 ||Sigma||^1/2``.

    Args:
        reference_root: ``S^1/2``.
        covariance: Sigma.

    Example:
        >>> from privstats.transforms import bures
        >>> bures.mean_root(np.eye(2), np.diag([4.0, 9.0])).round(6).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    return root(reference_root @ covariance @ reference_root)
