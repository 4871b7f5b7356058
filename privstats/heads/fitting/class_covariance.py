"""Compute noise-aware class covariances and variances from S, D or B."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from threadpoolctl import ThreadpoolController

from privstats.errors import HeadError
from privstats.estimates import denoise
from privstats.estimates.algebra import algebra
from privstats.estimates.denoise import denoise_spectrum, positive_part
from privstats.estimates.discriminant import Shrinkage, conditioned, shrink_values
from privstats.heads.evidence import Array, ClassEvidence

PRIOR_RECORDS = 10.0
"""Weight of the pooled variance against a class's own, and of the mean variance against the pooled one, in records."""

_MAX_OPERATIONS = 1 << 37
"""Limit on C d**3 for C decompositions of d x d numbers: one or two minutes of a core, and 1 / d TiB."""


@dataclass(frozen=True)
class ClassCovariances:
    """Class covariances in the basis that whitens the pooled one.

    Attributes:
        basis: symmetric, ``(d, d)``.
        values, vectors: eigenvalues per class, positive, ``(C, d)``, and eigenvectors ``(C, d, d)``.
        pooled: every class has the pooled covariance, so each is the identity here and ``vectors`` is a view of one
            matrix.
    """

    basis: Array
    values: Array
    vectors: Array
    pooled: bool = False

    @classmethod
    def of(cls, evidence: ClassEvidence, pooled_weight: float, shrinkage: Shrinkage) -> ClassCovariances:
        """Return ``(1 - w) Sigma_c + w Sigma`` per class, shrunk to a round one, in the basis that whitens Sigma.

        Noisy classes first move toward the pool as far as noise hides their difference (James-Stein); then each
        spectrum is denoised at the remaining level.

        Args:
            evidence: with S; else D yields own variances with the pooled correlations (or none, without B). B alone
                yields the pooled covariance.
            pooled_weight: w in [0, 1]; 0 is QDA and 1 is LDA.
            shrinkage: toward ``tr(Sigma_c) / d I``, in original coordinates; ``"auto"`` by ``(1 - w) N_c + w N``
                records.
        """
        d, n = evidence.features, evidence.counts
        total = n.sum()
        if evidence.S is None and evidence.D is not None and pooled_weight < 1:
            remedy = "map the records to fewer by a public transform, such as GaussianProjection"
            cls.require_bearable(len(n), d, remedy)
        pooled = denoise_spectrum(_pooled_scatter(evidence, n), evidence.noise("B"))
        scaled, _ = shrink_values(pooled.values / total, total, shrinkage)
        pooled_values = conditioned(scaled, evidence.spacing)
        matrix = algebra().composed(pooled.values / total, pooled.vectors)
        lift = algebra().composed(pooled_values - scaled, pooled.vectors)  # every class gets what the pool was given
        # The symmetric root: unlike bare eigenvectors it has no arbitrary signs, so samples drawn in it are
        # reproducible.
        basis = algebra().product(pooled.vectors / np.sqrt(pooled_values), pooled.vectors.T)
        if evidence.S is None and (evidence.D is None or pooled_weight == 1):
            same = np.broadcast_to(np.eye(d), (len(n), d, d))
            return cls(basis, np.ones((len(n), d)), same, pooled=True)
        if evidence.S is None:
            root = algebra().composed(np.sqrt(pooled_values), pooled.vectors)
            return _rescaled(basis, root, (1 - pooled_weight) * _variance_ratios(evidence, n) + pooled_weight)
        own = _own_scatter(evidence.S, evidence, n)
        return _of_each_class(evidence, n, pooled_weight, shrinkage, own, (matrix, lift, basis))

    @staticmethod
    def require_bearable(classes: int, features: int, remedy: str) -> None:
        """Raise HeadError if ``classes * features**3`` is above 2**37, which would take many minutes."""
        if classes * features**3 > _MAX_OPERATIONS:
            most = int((_MAX_OPERATIONS / classes) ** (1 / 3))
            raise HeadError(
                f"{classes} classes of {features} features would take a decomposition of {features} x {features} "
                f"numbers for every class, and {most} features are the most for so many classes: {remedy}, or fit LDA"
            )


def _of_each_class(
    evidence: ClassEvidence,
    n: Array,
    pooled_weight: float,
    shrinkage: Shrinkage,
    own: tuple[Array, Array],
    pool: tuple[Array, Array, Array],
) -> ClassCovariances:
    (scatter, levels), (matrix, lift, basis) = own, pool
    d, total = evidence.features, n.sum()
    roundness = algebra().product(basis.T, basis)
    values, vectors = np.empty((len(n), d)), np.empty((len(n), d, d))
    with one_blas_thread():
        for c in range(len(n)):  # one eigendecomposition per class; never all in memory twice
            difference = scatter[c] / n[c] - matrix
            blend = _blended(matrix, difference, levels[c] / n[c], pooled_weight)
            effective = (1 - pooled_weight) * n[c] + pooled_weight * total
            mean = max(float(np.trace(blend)) / d, 0.0)
            intensity = _intensity(blend, effective, shrinkage)
            whitened = algebra().product(basis.T, (1 - intensity) * blend + lift, basis) + intensity * mean * roundness
            own_values, vectors[c] = algebra().eigh(whitened)
            moved = algebra().product(basis, vectors[c])
            values[c] = np.maximum(own_values, evidence.spacing**2 / 4 * np.square(moved).sum(axis=0))
    return ClassCovariances(basis, conditioned(values), vectors)


def _pooled_scatter(evidence: ClassEvidence, n: Array) -> Array:
    if evidence.B is not None:
        return denoise.within_scatter(evidence, n)
    return np.diag(pooled_variances(evidence, n)[0] * n.sum())


def _variance_ratios(evidence: ClassEvidence, n: Array) -> Array:
    """Return class variances over the pooled ones, ``(C, d)``.

    They average to 1 over all records, so noise in D common to all classes widens none.
    """
    pooled, spread = pooled_variances(evidence, n)
    own = class_variances(evidence, n, pooled, spread, "auto")
    mean = n / n.sum() @ own
    varies = mean > mean.mean() * np.finfo(np.float64).eps
    return np.asarray(np.where(varies, own / np.where(varies, mean, 1.0), 1.0))


def _rescaled(basis: Array, root: Array, ratios: Array) -> ClassCovariances:
    """Return ``R_c Sigma R_c`` per class, with ``R_c^2`` the variance ratios ``(C, d)``; ``root`` is Sigma's."""
    C, d = ratios.shape
    values, vectors = np.empty((C, d)), np.empty((C, d, d))
    with one_blas_thread():
        for c in range(C):
            half = algebra().product(basis.T, np.sqrt(ratios[c])[:, None] * root)
            values[c], vectors[c] = algebra().eigh(algebra().product(half, half.T))
    return ClassCovariances(basis, conditioned(values), vectors)


def real_share(evidence: ClassEvidence, n: Array) -> float:
    """Return the share of differences between class and pooled covariances beyond sampling and noise, in [0, 1].

    ``1 - sum_c n_c E_c / sum_c n_c |W_c - I|_F^2`` with W_c the whitened class covariance and
    ``E_c = (tr(W_c)^2 + |W_c|_F^2) / n_c`` the sampling variance (of a Wishart matrix), plus the known noise. 0 without
    S.
    """
    if evidence.S is None:
        return 0.0
    total = n.sum()
    pooled = denoise_spectrum(denoise.within_scatter(evidence, n), evidence.noise("B"))
    scaled = pooled.values / total
    values = conditioned(shrink_values(scaled, total, "auto")[0], evidence.spacing)
    half, centre, inverse = pooled.vectors / np.sqrt(values), np.diag(scaled / values), 1 / values
    spread = (inverse.sum() ** 2 + np.square(inverse).sum()) / 2
    own, levels = _own_scatter(evidence.S, evidence, n)
    apart = expected = 0.0
    with one_blas_thread():
        for count, scatter, level in zip(n, own, levels, strict=True):
            whitened = algebra().product(half.T, scatter / count, half)
            apart += count * float(np.square(whitened - centre).sum())
            expected += float(np.trace(whitened) ** 2 + np.square(whitened).sum()) + level**2 / count * spread
    return max(0.0, 1 - expected / apart) if apart > 0 else 0.0


def _own_scatter(S: Array, evidence: ClassEvidence, n: Array) -> tuple[Array, Array]:
    """Return class scatters about their own means, ``(C, d, d)``, and their noise levels, ``(C,)``.

    With A_c = a + z, z of level s, ``A_c A_c' / n_c`` holds ``(a z' + z a' + z z') / n_c``. Its mean is added back; the
    rest has squared Frobenius norm ``(d + 1) s^2 (2 |a|^2 + d s^2) / n_c^2``, that of GOE noise of squared level
    ``s^2 (4 |a|^2 / d + 2 s^2) / n_c^2``.
    """
    d, variance = evidence.features, evidence.noise("A") ** 2
    own = S - np.einsum("ci,cj->cij", evidence.A, evidence.A / n[:, None])
    own[:, np.arange(d), np.arange(d)] += (variance / n)[:, None]
    length = np.maximum(np.square(evidence.A).sum(axis=1) - d * variance, 0.0)
    return own, np.sqrt(evidence.noise("S") ** 2 + variance * (4 * length / d + 2 * variance) / np.square(n))


def _blended(pooled: Array, difference: Array, level: float, pooled_weight: float) -> Array:
    """Return a class's covariance pulled toward the pooled one, then denoised; no hidden eigenvalue becomes 0."""
    share = (1 - pooled_weight) * _own_share(difference, level)
    blend = pooled + share * difference
    if level * share > 0:
        spectrum = denoise_spectrum(blend, level * share)
        blend = algebra().composed(positive_part(spectrum.values, level * share), spectrum.vectors)
    return blend


def _own_share(difference: Array, level: float) -> float:
    """Return the share of a class's difference from the pool that is not noise.

    Only a squared norm beyond the noise's mean plus two standard deviations counts, each ``2 / sqrt(d (d + 1))`` of
    that mean.
    """
    if level == 0:
        return 1.0
    d = len(difference)
    noise = level**2 / 2 * d * (d + 1)
    real = max(float(np.square(difference).sum()) - noise * (1 + 4 / math.sqrt(d * (d + 1))), 0.0)
    return real / (real + noise)


def _intensity(covariance: Array, n: float, shrinkage: Shrinkage) -> float:
    if shrinkage == "oas":
        return shrink_values(np.maximum(np.linalg.eigvalsh(covariance), 0.0), n, shrinkage)[1]
    return shrink_values(np.ones(len(covariance)), n, shrinkage)[1]


def pooled_variances(evidence: ClassEvidence, n: Array) -> tuple[Array, float]:
    """Return pooled within-class variances ``(d,)`` and their noise standard deviation."""
    if evidence.D is not None:
        squares = evidence.D.sum(axis=0)
        level = evidence.noise("D") * np.sqrt(evidence.classes)
    else:
        squares, level = np.diagonal(evidence.B), evidence.noise("B")  # type: ignore[arg-type]
    between = (np.square(evidence.A) - evidence.noise("A") ** 2) / n[:, None]
    pooled = (squares - between.sum(axis=0)) / n.sum()
    level = float(level / n.sum())
    if level == 0:
        return np.maximum(pooled, 0.0), 0.0
    return _toward(pooled, level, float(positive_part(pooled.mean(), level / np.sqrt(len(pooled))))), level


def class_variances(
    evidence: ClassEvidence, n: Array, pooled: Array, spread: float, shrinkage: Literal["auto"] | float | None
) -> Array:
    """Return variances per class ``(C, d)``, pulled toward the pooled ones by noise and few records.

    ``shrinkage`` is the share replaced, ``"auto"`` by :data:`PRIOR_RECORDS`. ValueError without D.
    """
    if evidence.D is None:
        raise ValueError("class_variances needs D")
    noise = evidence.noise("A") ** 2
    own = (evidence.D - (np.square(evidence.A) - noise) / n[:, None]) / n[:, None]
    if shrinkage is None:
        weight = np.zeros((len(n), 1))
    elif shrinkage == "auto":
        weight = (PRIOR_RECORDS / (PRIOR_RECORDS + n))[:, None]
    else:
        weight = np.full((len(n), 1), float(shrinkage))
    level = evidence.noise("D") / n[:, None]
    if evidence.noise("D") > 0:
        real = positive_part(
            (np.square(own - pooled) - level**2).mean(axis=1, keepdims=True),
            level**2 * np.sqrt(2 / own.shape[1]),
        )
        keep = real / (real + level**2)
        own = np.maximum(pooled + keep * (own - pooled), spread)
    return (1 - weight) * np.maximum(own, 0.0) + weight * pooled


def _toward(estimate: Array, level: float, centre: float) -> Array:
    d = len(estimate)
    real = float(positive_part(np.square(estimate - centre).mean() - level**2, level**2 * np.sqrt(2 / d)))
    keep = real / (real + level**2)
    return positive_part(centre + keep * (estimate - centre), np.sqrt(keep) * level)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: threads of small eigendecompositions wait for one another."""
    with _loaded_libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _loaded_libraries() -> ThreadpoolController:
    """Find the libraries of this process once, which takes milliseconds; NumPy and SciPy are imported above."""
    return ThreadpoolController()
