"""Gaussians by their covariances: square roots, the optimal map between two, and the steps to their barycentre.

Closed forms of the Bures-Wasserstein geometry in float64 (Bhatia, Jain, Lim 2019), without records, clients or noise.
Measuring, releasing and the map of an alignment all use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
Step: TypeAlias = Literal["alvarez-esteban", "published"]

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


def next_reference(reference: Array, mean: Array, step: Step) -> Array:
    """The next reference from the weighted mean M of :func:`mean_root` over the clients.

    Args:
        reference: S, ``(d, d)``.
        mean: M.
        step: ``"published"``, ``S <- M`` (SLOT-Align), or ``"alvarez-esteban"``, ``S <- S^-1/2 M^2 S^-1/2`` (Alvarez-
            Esteban et al. 2016): exact in one step where all covariances commute, and the objective never rises.

    Example:
        >>> from privstats.transforms import bures
        >>> mean = bures.mean_root(np.eye(2), np.diag([4.0, 9.0]))  # of a single client
        >>> bures.next_reference(np.eye(2), mean, "alvarez-esteban").round(6).tolist()  # that client's own covariance
        [[4.0, 0.0], [0.0, 9.0]]
    """
    if step == "published":
        return (mean + mean.T) / 2
    inverse = root(reference, -0.5)
    moved: Array = inverse @ mean @ mean @ inverse
    return (moved + moved.T) / 2


def barycentre(covariances: Sequence[Array], weights: ArrayLike, steps: int, step: Step) -> Array:
    """The reference after some steps from the weighted mean of the covariances, computed centrally.

    Example:
        >>> from privstats.transforms import bures
        >>> one, other = np.diag([1.0, 4.0]), np.diag([9.0, 16.0])
        >>> mean = bures.barycentre([one, other], [0.5, 0.5], steps=1, step="alvarez-esteban")
        >>> mean.round(6).tolist()  # standard deviations (1 + 3) / 2 and (2 + 4) / 2
        [[4.0, 0.0], [0.0, 9.0]]
    """
    shares = np.asarray(weights, np.float64) / np.sum(weights)
    reference: Array = np.einsum("k,kij->ij", shares, np.stack(covariances))
    for _ in range(steps):
        reference_root = root(reference)
        terms = [mean_root(reference_root, covariance) for covariance in covariances]
        reference = next_reference(reference, np.einsum("k,kij->ij", shares, np.stack(terms)), step)
    return reference


def transport(source: Array, target: Array) -> Array:
    """The symmetric matrix A of the optimal map from N(0, source) to N(0, target): ``A source A = target``.

    Example:
        >>> from privstats.transforms import bures
        >>> bures.transport(np.diag([1.0, 4.0]), np.diag([4.0, 1.0])).round(6).tolist()
        [[2.0, 0.0], [0.0, 0.5]]
    """
    half, inverse = root(source), root(source, -0.5)
    return inverse @ root(half @ target @ half) @ inverse


def distance(one: Array, other: Array) -> float:
    """The Wasserstein-2 distance between two centred Gaussians, ``||S^1/2 - T^1/2 U||`` in the Frobenius norm.

    U is the rotation that brings the roots closest together: the polar factor of ``T^1/2 S^1/2`` (Bhatia, Jain, Lim
    2019, theorem 1). The textbook form subtracts traces and takes a root of what is left, so rounding of size eps in
    the traces is an error of sqrt(eps) in a small distance; here it stays one of eps.

    Example:
        >>> from privstats.transforms import bures
        >>> round(bures.distance(np.diag([1.0, 4.0]), np.diag([9.0, 4.0])), 6)
        2.0
    """
    half, target = root(one), root(other)
    left, _, right = np.linalg.svd(target @ half)
    return float(np.linalg.norm(half - target @ (left @ right)))
