"""Find directions in which class means differ most against the spread within classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from privstats.estimates import denoise
from privstats.estimates.algebra import algebra
from privstats.estimates.denoise import denoise_spectrum
from privstats.estimates.discriminant import conditioned, shrink_values
from privstats.heads.evidence import Array, ClassEvidence, Released, class_evidence
from privstats.heads.registry import SUBSPACE, check_value

Subspace: TypeAlias = Literal["auto"] | int | float | None


@dataclass(frozen=True)
class Fisher:
    """A Fisher subspace of k dimensions.

    Attributes:
        basis: orthonormal columns, ``(d, k)``.
        eigenvalues: all generalised ones of (between, within), descending.
        explained_energy: share of their sum in the first k.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]]), [0, 0, 1, 1]
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=2.0)
        >>> fisher = ps.heads.fisher_subspace(ps.Release.exact(schema, ps.measure(schema, X, y)))
        >>> fisher.basis.shape, round(fisher.explained_energy, 3)  # the classes differ along one direction
        ((2, 1), 1.0)
    """

    basis: Array
    eigenvalues: Array
    explained_energy: float


def fisher_subspace(release: Released, dimension: Subspace = "auto") -> Fisher:
    """Return the noise-aware Fisher subspace of a release of class moments with B or S.

    Args:
        dimension: ``"auto"`` for min(C - 1, d), an integer, or a share of the energy in (0, 1].

    Raises:
        MissingStatisticError: neither B nor S was released.
        ReleaseError, HeadError: not class moments, or an invalid dimension.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]]), [0, 0, 1, 1]
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=2.0)
        >>> fisher = ps.heads.fisher_subspace(ps.Release.exact(schema, ps.measure(schema, X, y)), dimension=1)
        >>> np.abs(fisher.basis / np.abs(fisher.basis).max()).round(1).tolist()
        [[1.0], [0.0]]
    """
    check_value("dimension", dimension, SUBSPACE[1:])
    evidence, _ = class_evidence(release)
    evidence.check_dimension("dimension", dimension)
    evidence.require("fisher_subspace", "B")
    return evidence_subspace(evidence, dimension)


def evidence_subspace(evidence: ClassEvidence, dimension: Subspace) -> Fisher:
    """Solve ``S_B v = lambda S_W v`` on denoised moments (GH-OFL section 3.2)."""
    n, means = evidence.counts, evidence.means.values
    pooled = denoise_spectrum(denoise.within_scatter(evidence, n), evidence.noise("B"))
    values, _ = shrink_values(pooled.values / n.sum(), n.sum(), "auto")
    whitening = pooled.vectors / np.sqrt(conditioned(values))
    directions, eigenvalues, explained = discriminant_directions(algebra().product(means, whitening), n, dimension)
    basis, _ = np.linalg.qr(algebra().product(whitening, directions))
    return Fisher(basis, eigenvalues, explained)


def discriminant_directions(whitened: Array, n: Array, dimension: Subspace) -> tuple[Array, Array, float]:
    """Return at most min(C - 1, d) orthonormal directions of whitened means, all eigenvalues, and the energy share."""
    C, d = whitened.shape
    share = n / n.sum()
    spread = (whitened - share @ whitened) * np.sqrt(share)[:, None]
    most = max(1, min(C - 1, d))
    lengths, directions = algebra().svd(spread)
    eigenvalues = np.square(lengths[:most])
    total = float(eigenvalues.sum())
    cumulated = np.cumsum(eigenvalues) / total if total > 0 else np.ones(len(eigenvalues))
    k = min(_count(dimension, cumulated, most), len(eigenvalues))
    return directions[:k].T, eigenvalues, float(cumulated[k - 1])


def _count(dimension: Subspace, cumulated: Array, most: int) -> int:
    if dimension == "auto":
        return most
    if isinstance(dimension, int | np.integer):
        return int(dimension)
    return int(np.searchsorted(cumulated, float(dimension or 1.0) * (1 - 1e-12)) + 1)
