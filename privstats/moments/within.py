"""Within-client moments: one client's class moments less its own offset, in exact whole numbers.

A function of all records of one client, so they add over clients only. Pure arithmetic on the client's exact N, A, B;
:meth:`RealWithinMoments.equivalent` says how a head reads the sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.moments.accumulators import measured
from privstats.moments.base import Moments, RealMoments
from privstats.moments.class_moments import ClassMoments, RealClassMoments
from privstats.moments.clip_report import ClipReport
from privstats.schema import COUNT_SCALE, ClassSchema, WithinSchema
from privstats.schema.public_values import Values

__all__ = ["RealWithinMoments", "WithinMoments", "less", "measured_within", "within_moments"]

_SAME = 1e-9
"""Relative size below which an eigenvalue of L counts as 0: directions that a client's own offset explains."""


@dataclass(frozen=True, eq=False)
class RealWithinMoments(RealMoments):
    """Within-client moments in real units, float64, with noise or without.

    Attributes:
        N: counts, ``(C,)``.
        L: counts less the part that client offsets explain, ``(C, C)``, in records.
        A: class sums likewise, ``(C, d)``.
        B: second moments likewise, ``(d, d)``.

    Example:
        >>> schema = ps.WithinSchema(2, 2, clip_norm=4.0, pull=0.0, n_max=100)
        >>> real = ps.measure(schema, [[2.0, 1.0], [3.0, 1.0]], [0, 1]).real()
        >>> real.N.tolist(), real.L.tolist()
        ([1.0, 1.0], [[0.5, -0.5], [-0.5, 0.5]])
    """

    N: NDArray[np.float64]
    L: NDArray[np.float64]
    A: NDArray[np.float64]
    B: NDArray[np.float64]

    @property
    def means(self) -> NDArray[np.float64]:
        """``m = L^+ A``, ``(C, d)``: the class means of least squares with client effects, up to a shift of all."""
        values, vectors = np.linalg.eigh((self.L + self.L.T) / 2)
        real = values > _SAME * max(float(values[-1]), np.finfo(np.float64).tiny)
        inverse = np.where(real, 1 / np.where(real, values, 1.0), 0.0)
        means: NDArray[np.float64] = (vectors * inverse) @ (vectors.T @ self.A)
        return means

    def equivalent(self) -> RealClassMoments:
        """Plain N, A, B with the same counts, class means and scatter within classes, for heads.

        The means are determined up to a shift of all rows, which the client's offset removes at prediction.
        """
        means, n = self.means, np.maximum(self.N, 0.0)
        left = self.A.T @ means
        scatter = self.B - (left + left.T) / 2
        return RealClassMoments(N=self.N, A=n[:, None] * means, B=scatter + (means.T * n) @ means)


@dataclass(frozen=True, eq=False, repr=False)
class WithinMoments(Moments):
    """Exact within-client moments: N in records, L in 1 / ``COUNT_SCALE`` records, A and B in grid steps, int64.

    They add over clients; the records of one client are measured in one piece.

    Attributes:
        schema: what was measured.
        N, L, A, B: as in :class:`RealWithinMoments`.
        clip_report: what the clip did; stays with the client and is ignored by ``==``.

    Raises:
        DataError: an array of another shape, or no records have these counts.

    Example:
        >>> schema = ps.WithinSchema(2, 2, clip_norm=4.0, pull=0.0, n_max=100)
        >>> moments = ps.measure(schema, [[2.0, 1.0], [3.0, 1.0]], [0, 1])
        >>> moments.N.tolist(), moments.real().B.tolist()  # the offset of the client is gone
        ([1, 1], [[0.5, 0.0], [0.0, 0.0]])
    """

    shown: ClassVar[tuple[str, ...]] = ("classes", "features")

    schema: WithinSchema
    N: NDArray[np.int64]
    L: NDArray[np.int64]
    A: NDArray[np.int64]
    B: NDArray[np.int64]
    clip_report: ClipReport | None = field(default=None, compare=False)

    @property
    def records(self) -> int:
        """Records measured. Private: it is N summed."""
        return int(self.N.sum())

    def real(self) -> RealWithinMoments:
        """The same moments in real units, float64."""
        return RealWithinMoments.of_sums(self.schema, self.wire())


def within_moments(schema: WithinSchema, moments: ClassMoments) -> WithinMoments:
    """``Q = sum z z' - (sum z)(sum z)' / (n + lambda)`` of one client's class moments, cut toward zero by entry.

    A client whose rows are all moved by one grid vector has the same Q for ``lambda = 0``, bit for bit. Python integers
    throughout: the products pass 2**63. Cutting takes less than one step from an entry, and the distance of two data
    sets never grows by more than one step an entry.

    Args:
        schema: whose ``pull`` is lambda; beyond ``n_max`` records it is ``lambda n / n_max``.
        moments: N, A and B of *all* records of the client.
    """
    N, A, B, records = moments.N, moments.A, np.asarray(moments.B), moments.records
    counts, total = np.diag(N), A.sum(axis=0)
    over = records + Fraction(schema.pull) * Fraction(max(records, schema.n_max), schema.n_max)
    if over == 0:
        return WithinMoments(schema, N, counts, A, B, moments.clip_report)  # nothing, less nothing
    return WithinMoments(
        schema,
        N,
        L=less(counts, N, N, over, COUNT_SCALE),
        A=less(A, N, total, over),
        B=less(B, total, total, over),
        clip_report=moments.clip_report,
    )


def measured_within(schema: WithinSchema, X: Any, y: Any, _: Mapping[str, Values], progress: bool) -> WithinMoments:
    """The within-client moments of one client's records, as ``measure`` describes them."""
    fields = {name: getattr(schema, name) for name in ("grid_bits", "nonnegative", "transform", "feature_names")}
    plain = ClassSchema(schema.classes, schema.features, "NAB", schema.clip_norm, class_names=schema.class_names)
    moments: Any = measured(replace(plain, **fields), X, y, progress)
    return within_moments(schema, moments)


def less(
    plain: NDArray[Any], left: NDArray[Any], right: NDArray[Any], over: Fraction, scale: int = 1
) -> NDArray[np.int64]:
    """``scale (plain - left right' / over)`` in whole numbers, cut toward zero entry by entry.

    Python integers throughout: the products pass 2**63. Cutting takes less than one step from an entry, and never
    makes a difference of two such entries larger by more than one.
    """
    product = over.denominator * np.outer(left.astype(object), right.astype(object))
    top = scale * (over.numerator * plain.astype(object) - product)
    cut = np.abs(top) // over.numerator
    return np.asarray(np.where(top < 0, -cut, cut), np.int64)
