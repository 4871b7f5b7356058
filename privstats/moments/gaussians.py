"""One client's records as a Gaussian, and its part in a barycentre round: real matrices cut to the grid.

They are functions of all records of one client, so parts of a client do not add; clients do. Counts and sums of rows
are exact; covariances and their roots are float64, cut toward zero so that no bound is exceeded.

A client above ``n_max`` is weighed down, not refused or sampled. A refusal reveals whether a client is above, and a
sample costs replace-one. With lambda n / n_max in place of lambda the sensitivity stays a closed form, at most a
quarter larger than that of a promise about the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.estimates.bures import mean_root, root
from privstats.moments.accumulators import measured
from privstats.moments.base import Moments, RealMoments
from privstats.moments.grid import feature_grid
from privstats.moments.input_validation import check_features, dense, tiles
from privstats.schema import LEDOIT_WOLF, GaussianSchema, RidgeSchema
from privstats.schema.public_values import Values
from privstats.transforms import apply

__all__ = ["ClientGaussian", "GaussianMoments", "RealGaussianMoments", "client_gaussian", "measured_gaussians"]

_ROWS = 4096


@dataclass(frozen=True, eq=False)
class RealGaussianMoments(RealMoments):
    """Sums over clients in real units, with noise or without; a statistic that was not sent is None.

    Attributes:
        N: records.
        x: sum of rows, ``(d,)``.
        V: sum of n_k Sigma_k, ``(d, d)``.
        M: sum of n_k (S^1/2 Sigma_k S^1/2)^1/2, ``(d, d)``.

    Example:
        >>> schema = ps.GaussianSchema(2, clip_norm=4.0, shrinkage=0.0, rounds=1)
        >>> real = ps.measure(schema, [[1.0, 0.0], [3.0, 0.0]]).real()
        >>> real.N, real.x.tolist(), real.V.round(2).tolist(), real.M is None
        (2.0, [4.0, 0.0], [[2.0, 0.0], [0.0, 0.0]], True)
    """

    N: float
    x: NDArray[np.float64] | None = None
    V: NDArray[np.float64] | None = None
    M: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMoments(Moments):
    """The same as whole numbers: N in records, x in grid steps, V and M in squared grid steps, int64.

    ``published`` is the digest of the values that M was measured at, empty where there are none or that is unknown.

    Raises:
        DataError: a statistic that the schema asks for is missing or has another shape, or a negative count.

    Example:
        >>> schema = ps.GaussianSchema(2, clip_norm=4.0, shrinkage=0.0, rounds=1)
        >>> moments = ps.measure(schema, [[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
        >>> moments.N, moments.real().V.round(2).tolist()
        (4, [[2.0, 0.0], [0.0, 8.0]])
    """

    shown: ClassVar[tuple[str, ...]] = ("features", "reference")

    schema: GaussianSchema
    N: int
    x: NDArray[np.int64] | None = None
    V: NDArray[np.int64] | None = None
    M: NDArray[np.int64] | None = None
    published: str = ""

    @property
    def records(self) -> int:
        """Records measured. Private, though its sum is sent."""
        return self.N

    def real(self) -> RealGaussianMoments:
        """The same in real units, float64."""
        return RealGaussianMoments.of_sums(self.schema, self.wire())


@dataclass(frozen=True)
class ClientGaussian:
    """A client's records as one Gaussian, in grid steps.

    Attributes:
        records: n.
        total: sum of rows, exact, ``(d,)``.
        covariance: Sigma, shrunk, ``(d, d)``; 0 without records.
    """

    records: int
    total: NDArray[np.int64]
    covariance: NDArray[np.float64]


def client_gaussian(schema: GaussianSchema, X: Any, progress: bool = False) -> ClientGaussian:
    """The Gaussian of a client's records: clipped, on the grid, its covariance shrunk as the schema says.

    Raises:
        DataError: records that do not fit the schema.
    """
    read = RidgeSchema(
        schema.features,
        clip_norm=schema.clip_norm,
        target_bound=1.0,
        grid_bits=schema.grid_bits,
        nonnegative=schema.nonnegative,
        transform=schema.transform,
        feature_names=schema.feature_names,
    )
    records = check_features(read, X).shape[0]
    sums: Any = measured(read, X, np.ones(records), progress)  # of targets 1, whose h is the sum of rows
    total = sums.h[:, 0] // read.steps
    if not records:
        return ClientGaussian(0, total, np.zeros((schema.features, schema.features)))
    whole = records * sums.G.astype(object) - np.outer(total.astype(object), total.astype(object))
    covariance = whole.astype(np.float64) / float(records) ** 2
    weight = _ledoit_wolf(read, X, records, total / records, covariance) if schema.shrinkage == LEDOIT_WOLF else None
    share = float(schema.shrinkage) if weight is None else weight
    round_one = np.trace(covariance) / schema.features * np.eye(schema.features)
    return ClientGaussian(records, total, (1 - share) * covariance + share * round_one)


def measured_gaussians(
    schema: GaussianSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> GaussianMoments:
    """A client's message: its Gaussian, or its part in the round at the published S. Labels are not read.

    Guarantee:
        Of the numbers alone: entries are at most n R^2 on the diagonal and half of that off it, in whole grid steps,
        for every admitted S; the whole has the norm of at most n records in which a ``client_clip`` is measured.

    Raises:
        DataError: records that do not fit the schema, or batches: a covariance needs all rows of a client at once.
    """
    del y
    gaussian = client_gaussian(schema, X, progress)
    n = gaussian.records
    if not schema.reference:
        return GaussianMoments(schema, n, gaussian.total, _cut(schema, n, n * gaussian.covariance))
    reference = values["S"].real * schema.scale**2
    part = mean_root(root(reference), gaussian.covariance) if n else gaussian.covariance
    return GaussianMoments(schema, n, M=_cut(schema, n, n * part))


def _cut(schema: GaussianSchema, records: int, matrix: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers toward zero, symmetric, and clamped to the bounds, which float64 rounding may have exceeded."""
    most = float(records) * schema.steps**2
    off = np.clip(np.trunc((matrix + matrix.T) / 2), -(most // 2), most // 2)
    np.fill_diagonal(off, np.clip(np.trunc(np.diagonal(matrix)), 0, most))
    return off.astype(np.int64)


def _ledoit_wolf(
    read: RidgeSchema, X: Any, records: int, mean: NDArray[np.float64], covariance: NDArray[np.float64]
) -> float:
    """Ledoit and Wolf's weight (2004) for these rows, in a second pass over them."""
    fourth = sum(float(np.square(np.square(rows - mean).sum(axis=1)).sum()) for rows in _on_grid(read, X, records))
    d, square = read.features, float(np.square(covariance).sum())
    spread = square - np.trace(covariance) ** 2 / d  # d times the squared distance from a round covariance
    error = (fourth / records - square) / records
    return 1.0 if spread <= 0 else float(np.clip(error / spread, 0.0, 1.0))


def _on_grid(read: RidgeSchema, X: Any, records: int) -> Iterator[NDArray[np.float64]]:
    """The grid rows that were summed, some thousand at a time."""
    for rows, _ in tiles(read, X, np.ones(records), grouped=False):
        for start in range(0, len(rows), _ROWS):
            wide = apply(read.transform, dense(rows[start : start + _ROWS]).astype(np.float64))
            out = np.empty((len(wide), read.features))
            feature_grid(read).quantize(wide, out)
            yield out
