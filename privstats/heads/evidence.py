"""Read a release's sums in real units, with noise levels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privstats.dp import noise_copies
from privstats.errors import HeadError, MissingStatisticError, ReleaseError
from privstats.estimates import denoise
from privstats.estimates.algebra import algebra
from privstats.estimates.denoise import NoisyGram
from privstats.estimates.discriminant import log_priors
from privstats.heads.registry import able
from privstats.kinds import RidgeSchema
from privstats.schema import Schema, narrowed


class Governing(Protocol):
    """The parts of a plan that a head reads."""

    @property
    def schema(self) -> Schema:
        """The plan's schema."""

    @property
    def merge(self) -> Mapping[int, int]:
        """Parent of each merged rare class."""


@runtime_checkable
class Released(Protocol):
    """The parts of a release that a head reads."""

    @property
    def plan(self) -> Governing:
        """The plan."""

    @property
    def moments(self) -> ClassSums | EquivalentSums | GramSums:
        """The sums in real units."""

    @property
    def sigma(self) -> Mapping[str, float]:
        """Noise standard deviation per statistic, in real units."""

    @property
    def suppressed(self) -> tuple[int, ...]:
        """Indices of the excluded classes."""


@runtime_checkable
class ClassSums(Protocol):
    """Sums of a classification task, as in ``RealClassMoments``."""

    @property
    def N(self) -> NDArray[Any]:
        """Counts, ``(C,)``."""

    @property
    def A(self) -> NDArray[Any]:
        """Sums, ``(C, d)``."""

    @property
    def B(self) -> NDArray[Any] | None:
        """Second moment of all records, ``(d, d)``."""

    @property
    def S(self) -> NDArray[Any] | None:
        """Second moments per class, ``(C, d, d)``."""

    @property
    def D(self) -> NDArray[Any] | None:
        """Sums of squares per class, ``(C, d)``."""


@runtime_checkable
class EquivalentSums(Protocol):
    """Other sums that a head may use as class sums."""

    def equivalent(self) -> ClassSums:
        """Return class sums of equal counts, means and scatter."""


@runtime_checkable
class GramSums(Protocol):
    """Sums of a least-squares task, as in ``RealRidgeMoments``."""

    @property
    def G(self) -> NDArray[Any]:
        """Sum of a a^T, ``(d, d)``."""

    @property
    def h(self) -> NDArray[Any]:
        """Sum of a b^T, ``(d, T)``."""

    @property
    def q(self) -> Any:
        """Sum of squared targets."""

    @property
    def fold_G(self) -> NDArray[Any]:
        """G per fold, ``(F, d, d)``."""

    @property
    def fold_h(self) -> NDArray[Any]:
        """h per fold, ``(F, d, T)``."""

    @property
    def fold_q(self) -> NDArray[Any]:
        """q per fold, ``(F,)``."""


def require_release(release: object) -> Released:
    """Return the release; HeadError if it is none."""
    if not isinstance(release, Released):
        raise HeadError(
            f"release must be a Release, got {type(release).__name__}; load one with Release.load, or use fit(X, y)"
        )
    return release


def class_sums(release: Released) -> ClassSums:
    """Return a release's class sums; ReleaseError without any."""
    if isinstance(release.moments, EquivalentSums):
        return release.moments.equivalent()
    if not isinstance(release.moments, ClassSums):
        if release.plan.schema.party_is_record:
            raise ReleaseError("release.moments holds directions of parties; use heads.PartyDiscriminant")
        if isinstance(release.moments, GramSums):
            raise ReleaseError("release.moments holds ridge sums (G, h, q); use heads.Ridge, or release class moments")
        raise ReleaseError(
            "release.moments holds no class sums (N, A); give the release of a ClassSchema, or all releases of a "
            "Centred course in a list"
        )
    return release.moments


def gram_sums(release: Released) -> GramSums:
    """Return a release's ridge sums; ReleaseError without any."""
    if not isinstance(release.moments, GramSums):
        if isinstance(release.moments, ClassSums):
            raise ReleaseError("release.moments holds class sums; use heads.RidgeClassifier, or release a RidgeSchema")
        raise ReleaseError("release.moments holds no ridge sums (G, h, q); give the release of a RidgeSchema")
    return release.moments


Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class ClassEvidence:
    """Class moments about ``origin``, with their noise levels.

    Attributes:
        N, A, B, S, D: as in :class:`ClassSums`; noisy counts may be negative.
        origin: subtracted point, ``(d,)``; zero for a release.
        sigma: noise standard deviations, real units. A symmetric block has variance sigma^2 on the diagonal and
            sigma^2 / 2 off it.
        spacing: length of a grid step of the records; 0.0 if unrounded.
        public: public class means, ``(C, d)``, NaN without records; or None.
    """

    N: Array
    A: Array
    B: Array | None
    S: Array | None
    D: Array | None
    origin: Array
    sigma: Mapping[str, float]
    spacing: float = 0.0
    public: Array | None = None

    @property
    def classes(self) -> int:
        """C, the number of remaining classes."""
        return len(self.N)

    @property
    def features(self) -> int:
        """d, the number of features."""
        return int(self.A.shape[1])

    @property
    def noisy(self) -> bool:
        """Whether any statistic carries noise."""
        return any(level > 0 for level in self.sigma.values())

    def noise(self, statistic: str) -> float:
        """Return a statistic's noise standard deviation; a D from S has S's, a B ``sqrt(C)`` times that."""
        if statistic == "B" and "B" not in self.sigma:
            return float(self.sigma.get("S", 0.0)) * math.sqrt(self.classes)
        if statistic == "D" and "D" not in self.sigma:
            return float(self.sigma.get("S", 0.0))
        return float(self.sigma.get(statistic, 0.0))

    @property
    def counts(self) -> Array:
        """Positive class counts, denoised, ``(C,)``."""
        return denoise.counts(self.N, self.noise("N"))

    @property
    def means(self) -> denoise.Means:
        """Denoised class means about ``origin``."""
        return denoise.class_means(self, self.counts)

    def log_priors(self, priors: Any) -> Array:
        """Return log prior probabilities, ``(C,)``: by ``"counts"``, ``"uniform"``, or C positive numbers."""
        return log_priors(priors, self.counts)

    def check_dimension(self, name: str, value: Any) -> None:
        """Raise HeadError where the dimension of a subspace exceeds the features."""
        if isinstance(value, Integral) and int(value) > self.features:
            raise HeadError(
                f"{name}={value} is more than the {self.features} features; give at most {self.features}, or 'auto'"
            )

    def projected(self, basis: Array) -> ClassEvidence:
        """Return the evidence about ``basis.T x``; orthonormal ``(d, k)`` preserve the noise level."""
        B = None if self.B is None else algebra().product(basis.T, self.B, basis)
        S = None if self.S is None else algebra().product(basis.T, self.S, basis)
        D = None if S is None else np.einsum("cii->ci", S)
        public = None if self.public is None else self.public @ basis
        return ClassEvidence(self.N, self.A @ basis, B, S, D, self.origin @ basis, self.sigma, self.spacing, public)

    def require(self, head: str, *statistics: str) -> None:
        """Raise MissingStatisticError if none of ``statistics`` was released; it names possible heads."""
        if not statistics or any(getattr(self, statistic) is not None for statistic in statistics):
            return
        heads = able("".join(s for s in "SBD" if getattr(self, s) is not None))
        remedy = f"this release can build {', '.join(heads)}" if heads else "no head works from N and A alone"
        wanted = " or ".join(statistics)
        raise MissingStatisticError(
            f"{head} needs statistic {wanted}, which the release lacks; {remedy}, or name it in the schema's statistics"
        )


def records_evidence(X: Array, y: NDArray[np.intp], classes: int, statistics: str) -> ClassEvidence:
    """Return local records' moments about their own mean, without noise or clipping.

    Centring keeps ``B - sum A A^T / N`` accurate for features far from zero.
    """
    origin = X.mean(axis=0)
    Z = X - origin
    order = np.argsort(y, kind="stable")
    Z, edges = Z[order], np.searchsorted(y[order], np.arange(classes + 1))
    N = np.diff(edges).astype(np.float64)
    A = np.add.reduceat(Z, edges[:-1], axis=0)
    S = None
    if "S" in statistics:
        S = np.stack([Z[a:b].T @ Z[a:b] for a, b in itertools.pairwise(edges)])
    B = S.sum(axis=0) if S is not None else Z.T @ Z if "B" in statistics else None
    D = np.add.reduceat(Z * Z, edges[:-1], axis=0) if "D" in statistics else None
    return ClassEvidence(N, A, B, S, D, origin, {})


def class_evidence(release: Released) -> tuple[ClassEvidence, NDArray[np.intp]]:
    """Return a release's class moments, and the indices of the remaining classes.

    Suppressed classes are dropped, and empty ones where counts carry no noise. The noise of merged classes adds up; all
    classes get the largest such level.
    """
    moments, sigma = class_sums(require_release(release)), dict(release.sigma)
    N = require_finite("N", moments.N)
    keep = np.setdiff1d(np.arange(len(N)), np.asarray(release.suppressed, dtype=np.intp))
    if sigma.get("N", 0.0) == 0.0:
        keep = keep[N[keep] > 0]
    if not len(keep):
        raise ReleaseError("every class is suppressed, so there is nothing to predict; lower min_count or add records")
    copies = noise_copies(len(N), release.suppressed, release.plan.merge)[keep].max()
    pooled = {row.letter for row in release.plan.schema.sent if row.partition == "pooled"}
    sigma = {name: level * (1.0 if name in pooled else math.sqrt(copies)) for name, level in sigma.items()}
    A = require_finite("A", moments.A)
    S, D = _optional("S", moments.S), _optional("D", moments.D)
    B = _optional("B", moments.B)
    evidence = ClassEvidence(
        N=N[keep],
        A=A[keep],
        B=S.sum(axis=0) if B is None and S is not None else B,
        S=None if S is None else S[keep],
        D=D[keep] if D is not None else None if S is None else np.einsum("cii->ci", S)[keep],
        origin=np.zeros(A.shape[1]),
        sigma=sigma,
        spacing=1 / release.plan.schema.scale,
    )
    return evidence, keep


def require_finite(statistic: str, values: object) -> Array:
    """Return float64 values; ReleaseError where one is not finite."""
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ReleaseError(f"statistic {statistic} of the release holds values that are not finite; release it again")
    return array


def _optional(statistic: str, values: object) -> Array | None:
    return None if values is None else require_finite(statistic, values)


@dataclass(frozen=True)
class FoldSums:
    """Sums per fold: G ``(F, d, d)``, h ``(F, d, T)``, q ``(F,)``."""

    G: Array
    h: Array
    q: Array


@dataclass(frozen=True)
class GramEvidence(NoisyGram):
    """Least-squares sums about ``(feature_means, target_means)``, ``(d,)`` and ``(T,)``.

    Attributes:
        constant: value of a last intercept column on the grid, or None.
        least_records: minimum number of records behind the sums.
    """

    feature_means: Array
    target_means: Array
    constant: float | None = None
    folds: FoldSums | None = None
    least_records: float | None = None


def records_gram(X: Array, Y: Array, intercept: bool) -> GramEvidence:
    """Return the sums of local records, X ``(n, d)`` and Y ``(n, T)``, centred for an intercept."""
    x = X.mean(axis=0) if intercept else np.zeros(X.shape[1])
    y = Y.mean(axis=0) if intercept else np.zeros(Y.shape[1])
    Z, V = X - x, Y - y
    return GramEvidence(Z.T @ Z, Z.T @ V, float(np.square(V).sum()), 0.0, 0.0, 0.0, float(len(X)), x, y)


def release_gram(release: Released, records: int | None) -> GramEvidence:
    """Return a release's ridge sums; totals of F folds carry sqrt(F) times one fold's noise."""
    moments = gram_sums(require_release(release))
    refusal = ReleaseError("release.plan measures classes; use heads.RidgeClassifier, or release a RidgeSchema")
    schema = narrowed(release.plan.schema, RidgeSchema, refusal)
    d, T, F = schema.features, schema.targets, schema.folds
    G, h, q = (require_finite(name, getattr(moments, name)) for name in "Ghq")
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
        constant=schema.constant,
        folds=None if F == 1 else _fold_sums(moments, d, T, F),
        # no record adds more than its bounds allow
        least_records=max(float(d), float(np.trace(G)) / schema.clip_norm**2, float(q.sum()) / schema.target_bound**2),
    )


def _fold_sums(moments: GramSums, d: int, T: int, F: int) -> FoldSums:
    G, h, q = (require_finite(f"fold_{name}", getattr(moments, f"fold_{name}")) for name in "Ghq")
    G = G.reshape(F, d, d)
    return FoldSums((G + G.transpose(0, 2, 1)) / 2, h.reshape(F, d, T), q.reshape(F))
