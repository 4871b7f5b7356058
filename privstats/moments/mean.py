"""The sum of all feature vectors, exact: the class sums of records that are all of one class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.moments.accumulators import measured
from privstats.moments.base import Moments, RealMoments
from privstats.moments.clip_report import ClipReport
from privstats.moments.grid_terms import terms_on_grid
from privstats.moments.input_validation import as_rows, check_features, pairs
from privstats.moments.record_terms import RecordTerms, Term
from privstats.schema import ClassSchema, MeanSchema
from privstats.schema.public_values import Values

__all__ = ["MeanMoments", "RealMeanMoments", "mean_terms", "measured_mean"]


@dataclass(frozen=True, eq=False)
class RealMeanMoments(RealMoments):
    """The sum in real units, with noise or without: x, ``(d,)``."""

    x: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class MeanMoments(Moments):
    """The sum on the grid, exact: x int64, ``(d,)``.

    Attributes:
        schema: what was measured.
        records: number of records measured; None where unknown. Private, and never sent.
        clip_report: what the clip did; stays with the client and is ignored by ``==``.

    Raises:
        DataError: another shape than the schema says.
    """

    shown: ClassVar[tuple[str, ...]] = ("features",)

    schema: MeanSchema
    x: NDArray[np.int64]
    records: int | None = field(default=None, compare=False)
    clip_report: ClipReport | None = field(default=None, compare=False)

    def real(self) -> RealMeanMoments:
        """The same in real units, float64."""
        return RealMeanMoments.of_sums(self.schema, self.wire())


def measured_mean(schema: MeanSchema, X: Any, y: Any, _: Mapping[str, Values], progress: bool) -> MeanMoments:
    """The exact sum over records; of ``y`` only its length is read.

    Raises:
        DataError: rows that do not fit the schema, or another number of labels.
    """
    sums: Any = measured(_plain(schema), _of_one_class(schema, X, y), None, progress)
    return MeanMoments(schema, sums.A[0], sums.records, sums.clip_report)


def mean_terms(schema: MeanSchema, X: Any, y: Any, *_: Any) -> RecordTerms:
    """What each record adds; of ``y`` only its length is read.

    Raises:
        DataError: as :func:`measured_mean`.
    """
    found = terms_on_grid(_plain(schema), _of_one_class(schema, X, y), None)
    return replace(found, terms=(Term({"x": found.terms[0].products["A"]}),))


def _plain(schema: MeanSchema) -> ClassSchema:
    return ClassSchema(
        2,
        schema.features,
        "NA",
        schema.clip_norm,
        schema.grid_bits,
        nonnegative=schema.nonnegative,
        transform=schema.transform,
        feature_names=schema.feature_names,
    )


def _of_one_class(schema: MeanSchema, X: Any, y: Any) -> Iterator[tuple[Any, NDArray[np.intp]]]:
    for rows, labels in pairs(X) if y is None else ((X, y),):
        records, given = check_features(schema, rows).shape[0], as_rows(labels, "y").shape
        if not given or given[0] != records:
            raise DataError(f"X has {records} rows and y has shape {given}; give one label or target per row")
        yield rows, np.zeros(records, np.intp)
