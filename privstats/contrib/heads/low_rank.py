"""Quadratic discriminant analysis from (N, A, S), with d r numbers per class instead of full QDA's d^2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from privstats.extend.heads import Bounds, ClassEvidence, Entry, Number, Priors, Shrinkage, Subspace, Text, Whole
from privstats.extend.support import Array
from privstats.heads import QDA, ClassHead
from privstats.heads.fitting.class_covariance import ClassCovariances
from privstats.heads.rules import LowRankRule

_SMALLEST_SHARE = 1e-3
"""Floor of a residual variance, as a share of the class's mean variance."""


@dataclass(kw_only=True, eq=False, repr=False)
class LowRankQDA(ClassHead):
    """QDA with ``Sigma_c = D_c + U_c U_c^T``, U_c of rank r (GH-OFL appendix A.2), inverted by Woodbury.

    Args:
        rank: r, directions per class; at most d are used.
        basis: coordinates of D_c and U_c: ``"pooled"`` whitens the pooled covariance, so that rank 0 is LDA;
            ``"features"`` (the paper's) makes rank 0 naive Bayes.
        residual: D_c, after U_c has the r largest eigenvalues: ``"isotropic"``, the mean of the others; ``"diagonal"``
            (the paper's), the diagonal of the rest; ``"whole"``, the diagonal of the full covariance.
        pooled_weight: pull toward the pooled covariance; 0 in the paper.
        shrinkage, priors, subspace: as in ``QDA``.

    Example:
        >>> X, y = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]] * 5), ["ash", "ash", "elm", "elm"] * 5
        >>> ps.heads.LowRankQDA(rank=1).fit(X, y).predict([[0.1, 0.1], [0.9, 0.1]]).tolist()
        ['ash', 'elm']
    """

    entry: ClassVar[Entry] = Entry(any_of="S")
    bounds: ClassVar[Bounds] = {
        "rank": (Whole(),),
        "basis": (Text("pooled", "features"),),
        "residual": (Text("isotropic", "diagonal", "whole"),),
        "pooled_weight": (Number(0.0, 1.0),),
        **QDA.bounds,
    }

    rank: int = 16
    basis: Literal["pooled", "features"] = "pooled"
    residual: Literal["isotropic", "diagonal", "whole"] = "isotropic"
    pooled_weight: float = 0.5
    shrinkage: Shrinkage = "auto"
    priors: Priors | ArrayLike = "counts"
    subspace: Subspace = None

    def _solve(self, evidence: ClassEvidence) -> LowRankRule:
        # Threads of small eigendecompositions wait for one another.
        with threadpool_limits(1, user_api="blas"):
            means = evidence.means
            covariances = ClassCovariances.of(evidence, self.pooled_weight, self.shrinkage)
            self.means_ = means.values + evidence.origin
            values, vectors, projection = covariances.values, covariances.vectors, covariances.basis
            if self.basis == "features":
                values, vectors = _in_features(values, vectors, projection)
                projection = np.eye(evidence.features)
            diagonal, factors = _split(values, vectors, min(self.rank, evidence.features), self.residual)
            prior = evidence.log_priors(self.priors)
            return woodbury_rule(diagonal, factors, means.values @ projection, prior, projection, evidence.origin)


def woodbury_rule(
    diagonal: Array, factors: Array, means: Array, prior: Array, projection: Array, origin: Array
) -> LowRankRule:
    """Return the rule of covariances diag(D_c) + U_c U_c^T; D ``(C, d)``, U ``(C, d, r)``, means ``(C, d)`` projected.

    Precision ``D^-1 - D^-1 U K^-1 U^T D^-1``, log determinant ``log det D + log det K``, K = I + U^T D^-1 U.
    """
    C, d, r = factors.shape
    precision = 1 / diagonal
    weighted = factors * precision[:, :, None]
    K = np.eye(r) + factors.transpose(0, 2, 1) @ weighted
    values, vectors = np.linalg.eigh(K)
    F = weighted @ (vectors / np.sqrt(values)[:, None, :])
    linear = means * precision
    return LowRankRule(
        precision=precision,
        linear=linear,
        factors=np.ascontiguousarray(F.transpose(1, 0, 2).reshape(d, C * r)),
        offsets=np.einsum("cdr,cd->cr", F, means).reshape(-1),
        constant=(linear * means).sum(axis=1),
        bias=prior - (np.log(diagonal).sum(axis=1) + np.log(values).sum(axis=1)) / 2,
        projection=projection,
        origin=origin,
        degrees=np.zeros(1),
    )


def _split(values: Array, vectors: Array, rank: int, residual: str) -> tuple[Array, Array]:
    """Return D ``(C, d)`` and U ``(C, d, r)`` from eigenvalues (ascending) and eigenvectors."""
    C, d = values.shape
    top, directions = values[:, d - rank :], vectors[:, :, d - rank :]
    if residual == "isotropic":
        rest = values[:, : d - rank].mean(axis=1, keepdims=True) if rank < d else values.min(axis=1, keepdims=True)
        diagonal, lengths = np.broadcast_to(rest, (C, d)), np.maximum(top - rest, 0.0)
    else:
        diagonal, lengths = np.einsum("cik,ck,cik->ci", vectors, values, vectors), top
        if residual == "diagonal":
            diagonal = diagonal - np.einsum("cik,ck,cik->ci", directions, top, directions)
    floor = _SMALLEST_SHARE * values.mean(axis=1, keepdims=True)
    return np.maximum(diagonal, floor), directions * np.sqrt(lengths)[:, None, :]


def _in_features(values: Array, vectors: Array, basis: Array) -> tuple[Array, Array]:
    back = np.linalg.inv(basis)
    roots = back.T @ (vectors * np.sqrt(values)[:, None, :])
    spectrum = np.linalg.eigh(roots @ roots.transpose(0, 2, 1))
    return np.maximum(spectrum.eigenvalues, 0.0), spectrum.eigenvectors
