"""Least-squares evidence for the ridge heads.

Local records or a release become (G, h, q) with their noise levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.spectrum import NoisyGram
from privstats.heads.evidence.classes import Array, require_finite
from privstats.heads.evidence.released import GramSums, Released, gram_sums, require_release
from privstats.schema import RidgeSchema, narrowed
from privstats.transforms import ConstantFeature

__all__ = ["FoldSums", "GramEvidence", "records_gram", "release_gram"]


@dataclass(frozen=True)
class FoldSums:
    """Sums per fold: G ``(F, d, d)``, h ``(F, d, T)``, q ``(F,)``."""

    G: Array
    h: Array
    q: Array


@dataclass(frozen=True)
class GramEvidence(NoisyGram):
    """Least-squares sums about ``(feature_means, target_means)``.

    Attributes:
        feature_means, target_means: what was subtracted, ``(d,)`` and ``(T,)``; zero where nothing was.
        constant: the value of the last column where that is an intercept feature which is still among the columns.
        folds: fold sums, or None.
        least_records: records that the sums need at least, or None where that is not known.
    """

    feature_means: Array
    target_means: Array
    constant: float | None = None
    folds: FoldSums | None = None
    least_records: float | None = None


def records_gram(X: Array, Y: Array, intercept: bool) -> GramEvidence:
    """Sums of local records, X ``(n, d)`` and Y ``(n, T)``, centred if there is an intercept."""
    x = X.mean(axis=0) if intercept else np.zeros(X.shape[1])
    y = Y.mean(axis=0) if intercept else np.zeros(Y.shape[1])
    Z, V = X - x, Y - y
    return GramEvidence(Z.T @ Z, Z.T @ V, float(np.square(V).sum()), 0.0, 0.0, 0.0, float(len(X)), x, y)


def release_gram(release: Released, records: int | None) -> GramEvidence:
    """The sums in a release of ridge moments. The totals of F folds carry sqrt(F) times the noise of one.

    Raises:
        ReleaseError: class moments, or values that are not finite.
    """
    moments = gram_sums(require_release(release))
    refusal = ReleaseError("release.plan measures classes; use heads.RidgeClassifier, or release a RidgeSchema")
    schema = narrowed(release.plan.schema, RidgeSchema, refusal)
    d, T, F = schema.features, schema.targets, schema.folds
    G, h, q = (require_finite(name, getattr(moments, name)) for name in "Ghq")
    last = schema.transform[-1] if schema.transform else None
    G = (G.reshape(d, d) + G.reshape(d, d).T) / 2
    return GramEvidence(
        G=G,
        h=h.reshape(d, T),
        q=float(q.sum()),
        sigma_G=F**0.5 * float(release.sigma.get("G", 0.0)),
        sigma_h=F**0.5 * float(release.sigma.get("h", 0.0)),
        sigma_q=F**0.5 * float(release.sigma.get("q", 0.0)),
        records=None if records is None else float(records),
        feature_means=np.zeros(d),
        target_means=np.zeros(T),
        constant=last.value if isinstance(last, ConstantFeature) else None,
        folds=None if F == 1 else _fold_sums(moments, d, T, F),
        # no record adds more than its bounds allow
        least_records=max(float(d), float(np.trace(G)) / schema.clip_norm**2, float(q.sum()) / schema.target_bound**2),
    )


def _fold_sums(moments: GramSums, d: int, T: int, F: int) -> FoldSums:
    G, h, q = (require_finite(f"fold_{name}", getattr(moments, f"fold_{name}")) for name in "Ghq")
    G = G.reshape(F, d, d)
    return FoldSums((G + G.transpose(0, 2, 1)) / 2, h.reshape(F, d, T), q.reshape(F))
