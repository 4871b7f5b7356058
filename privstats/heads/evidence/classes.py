"""Class moments in real units, their noise levels, and the classes that are left.

Local records and releases reach every classification head in this one form.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.dp import noise_copies
from privstats.errors import MissingStatisticError, ReleaseError
from privstats.heads.evidence.released import Released, class_sums, require_release
from privstats.heads.registry import able

__all__ = ["Array", "ClassEvidence", "class_evidence", "require_finite"]

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class ClassEvidence:
    """Class moments about ``origin``, with the noise that is in them.

    Attributes:
        N: counts, shape ``(C,)``; noisy ones may be negative or fractional.
        A: sums, shape ``(C, d)``.
        B: second moment of all records, ``(d, d)``, or None.
        S: second moments per class, ``(C, d, d)``, or None.
        D: sums of squares per class, ``(C, d)``, or None.
        origin: the point that was subtracted from every record, ``(d,)``; zero for a release.
        sigma: noise standard deviation per statistic in real units; 0.0 where there is none. A symmetric block has
            variance sigma^2 on the diagonal and sigma^2 / 2 off it.
        step: of the grid that the records were rounded to, in real units; 0.0 where they were not.
        public: class means of public records, ``(C, d)``; NaN for a class without any, and None where there are no
            public records.
    """

    N: Array
    A: Array
    B: Array | None
    S: Array | None
    D: Array | None
    origin: Array
    sigma: Mapping[str, float]
    step: float = 0.0
    public: Array | None = None

    @property
    def classes(self) -> int:
        """C, the classes that are left."""
        return len(self.N)

    @property
    def features(self) -> int:
        """d, the dimension of the feature vectors."""
        return int(self.A.shape[1])

    @property
    def noisy(self) -> bool:
        """Whether any statistic carries noise."""
        return any(level > 0 for level in self.sigma.values())

    def noise(self, statistic: str) -> float:
        """Noise standard deviation of one statistic; what is derived from S inherits S's noise."""
        if statistic == "B" and "B" not in self.sigma:
            return float(self.sigma.get("S", 0.0)) * math.sqrt(self.classes)
        if statistic == "D" and "D" not in self.sigma:
            return float(self.sigma.get("S", 0.0))
        return float(self.sigma.get(statistic, 0.0))

    def projected(self, basis: Array) -> ClassEvidence:
        """The same evidence about ``basis.T x``; orthonormal columns ``(d, k)`` leave the level of the noise alone."""
        B = None if self.B is None else basis.T @ self.B @ basis
        S = None if self.S is None else basis.T @ self.S @ basis
        D = None if S is None else np.einsum("cii->ci", S)
        public = None if self.public is None else self.public @ basis
        return ClassEvidence(self.N, self.A @ basis, B, S, D, self.origin @ basis, self.sigma, self.step, public)

    def require(self, head: str, *statistics: str) -> None:
        """Raise MissingStatisticError where none of ``statistics`` was released, and name the heads that would work."""
        if not statistics or any(getattr(self, statistic) is not None for statistic in statistics):
            return
        heads = able("".join(s for s in "SBD" if getattr(self, s) is not None))
        remedy = f"this release can build {', '.join(heads)}" if heads else "no head works from N and A alone"
        wanted = " or ".join(statistics)
        raise MissingStatisticError(
            f"{head} needs statistic {wanted}, which the release lacks; {remedy}, or name it in the schema's statistics"
        )


def records_evidence(X: Array, y: NDArray[np.intp], classes: int, statistics: str) -> ClassEvidence:
    """Moments of local records about their own mean, without noise and without clipping.

    Centring first keeps ``B - sum A A^T / N`` accurate when features are far from zero; all records are local, so a
    second pass over them is possible.
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
    """The evidence in a release of class moments, and the indices of the classes that are left.

    Classes that the release suppressed are dropped, and so are classes with no record where counts carry no noise.
    A class that took merged ones in carries the noise of each; that level is then taken for all classes, which shrinks
    the others more than they need.

    Raises:
        HeadError: not a release at all.
        ReleaseError: not class moments, every class suppressed, or values that are not finite.
    """
    moments, sigma = class_sums(require_release(release)), dict(release.sigma)
    N = require_finite("N", moments.N)
    keep = np.setdiff1d(np.arange(len(N)), np.asarray(release.suppressed, dtype=np.intp))
    if sigma.get("N", 0.0) == 0.0:
        keep = keep[N[keep] > 0]
    if not len(keep):
        raise ReleaseError("every class is suppressed, so there is nothing to predict; lower min_count or add records")
    copies = noise_copies(len(N), release.suppressed, release.plan.merge)[keep].max()
    sigma = {name: level * (1.0 if name == "B" else math.sqrt(copies)) for name, level in sigma.items()}
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
        step=1 / release.plan.schema.scale,
    )
    return evidence, keep


def require_finite(statistic: str, values: object) -> Array:
    """Float64 values, or ReleaseError where one is not finite."""
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ReleaseError(f"statistic {statistic} of the release holds values that are not finite; release it again")
    return array


def _optional(statistic: str, values: object) -> Array | None:
    return None if values is None else require_finite(statistic, values)
