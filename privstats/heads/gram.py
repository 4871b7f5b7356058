"""Least-squares sums at the door of the ridge heads.

Not the solve. Local records or a release become (G, h, q) with their noise levels, and the intercept is eliminated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privstats.errors import ReleaseError
from privstats.heads import denoise
from privstats.heads.evidence import Array, require_finite
from privstats.heads.released import GramSums, Released, gram_sums, require_release
from privstats.schema import RidgeSchema
from privstats.transforms import ConstantFeature

__all__ = ["FoldSums", "GramEvidence", "eliminate_constant", "records_gram", "release_gram", "sums_about"]


@dataclass(frozen=True)
class FoldSums:
    """Sums per fold: G ``(F, d, d)``, h ``(F, d, T)``, q ``(F,)``."""

    G: Array
    h: Array
    q: Array


@dataclass(frozen=True)
class GramEvidence:
    """Least-squares sums about ``(feature_means, target_means)``.

    Attributes:
        G: ``(d, d)``.
        h: ``(d, T)``.
        q: sum of squared targets.
        sigma_G, sigma_h, sigma_q: noise levels of the totals; G has variance sigma_G^2 on its diagonal, half of it off.
        records: n, or None where nobody knows it.
        feature_means, target_means: what was subtracted, ``(d,)`` and ``(T,)``; zero where nothing was.
        constant: the value of the last column where that is an intercept feature which is still among the columns.
        folds: fold sums, or None.
    """

    G: Array
    h: Array
    q: float
    sigma_G: float
    sigma_h: float
    sigma_q: float
    records: float | None
    feature_means: Array
    target_means: Array
    constant: float | None = None
    folds: FoldSums | None = None


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
    moments, schema = gram_sums(require_release(release)), release.plan.schema
    if not isinstance(schema, RidgeSchema):
        raise ReleaseError("release.plan measures classes; use heads.RidgeClassifier, or release a RidgeSchema")
    d, T, F = schema.features, schema.targets, schema.folds
    G, h, q = (require_finite(name, getattr(moments, name)) for name in "Ghq")
    last = schema.transform[-1] if schema.transform else None
    return GramEvidence(
        G=(G.reshape(d, d) + G.reshape(d, d).T) / 2,
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
    )


def eliminate_constant(evidence: GramEvidence) -> GramEvidence:
    """The same least-squares problem without its intercept column, centred; unchanged where there is none.

    The column's own entries hold the record count and both means, so this is the Schur complement: least squares with
    an intercept that is not penalised. The count is kept above the noise it carries, so that nothing is divided by 0,
    and means are shrunk to the origin by theirs. Sums about a shrunk mean are still sums about a point; the noise that
    feature sums bring into h by it is added to the level of h.
    """
    c = evidence.constant
    if c is None:
        return evidence
    error = evidence.sigma_G / c**2
    n = max(float(denoise.positive_part(evidence.G[-1, -1] / c**2, error)), 2 * error, np.finfo(np.float64).tiny)
    sums, targets = evidence.G[:-1, -1] / c, evidence.h[-1] / c
    sums_sigma, targets_sigma = evidence.sigma_G / (math.sqrt(2) * abs(c)), evidence.sigma_h / abs(c)
    x, y = _shrunk_mean(sums, n, error, sums_sigma), _shrunk_mean(targets, n, error, targets_sigma)
    G, h, q = sums_about(evidence.G[:-1, :-1], evidence.h[:-1], evidence.q, (sums, targets, n), (x, y))
    return GramEvidence(
        G=G,
        h=h,
        q=max(q, 0.0),
        sigma_G=evidence.sigma_G,
        sigma_h=math.hypot(evidence.sigma_h, sums_sigma * math.sqrt(float(np.square(y).mean()))),
        sigma_q=evidence.sigma_q,
        records=evidence.records or n,
        feature_means=x,
        target_means=y,
    )


def sums_about(
    G: Array, h: Array, q: float, totals: tuple[Array, Array, float], centre: tuple[Array, Array]
) -> tuple[Array, Array, float]:
    """Least-squares sums about ``centre = (x, y)``, from the sums about 0 and ``totals = (sum a, sum b, n)``."""
    (sums, targets, n), (x, y) = totals, centre
    return (
        G - np.outer(sums, x) - np.outer(x, sums) + n * np.outer(x, x),
        h - np.outer(sums, y) - np.outer(x, targets) + n * np.outer(x, y),
        q - 2 * float(targets @ y) + n * float(y @ y),
    )


def _shrunk_mean(sums: Array, n: float, error: float, sigma: float) -> Array:
    """sums / n where both carry noise, by the least mean squared error: ``n sums / (n^2 + error^2 + sigma^2 / m^2)``.

    m^2 is the mean square of the means, estimated from the sums themselves. Without noise this is sums / n; where the
    count is lost in its noise it is near 0, the origin that the public transform chose, and never a ratio of noises.

    Args:
        sums: ``(k,)``.
        n: the count, above 0.
        error: noise standard deviation of the count.
        sigma: noise standard deviation of each sum.
    """
    if sigma == 0:
        return sums / n
    level = (sigma / n) ** 2
    spread = float(denoise.positive_part(np.square(sums / n).mean() - level, math.sqrt(2 / sums.size) * level))
    return np.asarray(sums * (n / (n**2 + error**2 + sigma**2 / spread)))


def _fold_sums(moments: GramSums, d: int, T: int, F: int) -> FoldSums:
    G, h, q = (require_finite(f"fold_{name}", getattr(moments, f"fold_{name}")) for name in "Ghq")
    G = G.reshape(F, d, d)
    return FoldSums((G + G.transpose(0, 2, 1)) / 2, h.reshape(F, d, T), q.reshape(F))
