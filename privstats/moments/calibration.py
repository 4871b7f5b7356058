"""The sums of a calibration, and how records become them: read, put on a grid, mapped, scored at eleven factors.

The same bits in any batch, order and BLAS. A record is counted, or counts as zero: no answer depends on a record and
the published weights together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.moments.base import Moments, RealMoments
from privstats.moments.exact_sum import ExactSum, require_known
from privstats.moments.gradient_map import Whole, exponentials, unit_rows
from privstats.moments.gradients import grid_rows, pieces
from privstats.moments.record_terms import RecordTerms, Term
from privstats.schema.calibration import FACTORS, CalibrationSchema
from privstats.schema.public_values import Values

__all__ = [
    "CalibrationMoments",
    "RealCalibrationMoments",
    "calibration_map",
    "calibration_terms",
    "measured_calibration",
]


@dataclass(frozen=True, eq=False)
class RealCalibrationMoments(RealMoments):
    """The sums in real units, with noise or without: t, ``(11,)``."""

    t: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationMoments(Moments):
    """The sums on the grid, exact: t int64, ``(11,)``.

    Attributes:
        schema: what was measured.
        records: number of finite records measured; None where unknown. Private, and never sent.
        published: digest of the values used; empty where unknown.

    Raises:
        DataError: another shape than the schema says.
    """

    shown: ClassVar[tuple[str, ...]] = ("classes", "features")

    schema: CalibrationSchema
    t: NDArray[np.int64]
    records: int | None = field(default=None, compare=False)
    published: str = ""

    def real(self) -> RealCalibrationMoments:
        """The same in real units, float64."""
        return RealCalibrationMoments.of_sums(self.schema, self.wire())


def measured_calibration(
    schema: CalibrationSchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> CalibrationMoments:
    """The exact sums of a calibration over records.

    Guarantee:
        Every record adds whole numbers as :class:`~privstats.CalibrationSchema` bounds them, for all admitted values
        and any record; one with NaN or infinite entries adds nothing, and is not among the ``records``.

    Raises:
        DataError: arrays that are no records of this schema.
    """
    sums = {row.letter: ExactSum(row.shape(schema.sizes), row.bound(schema.steps)) for row in schema.sent}
    require_known(sums, "t")
    records = 0
    for rows, labels in pieces(schema.rows, X, y, progress):
        sums["t"].admit(len(rows))
        gains, fine = _mapped(schema, rows, labels, values)
        sums["t"].partial += gains.sum(axis=0)
        records += int(np.count_nonzero(fine))
    return CalibrationMoments(schema, sums["t"].result(), records)


def calibration_terms(schema: CalibrationSchema, X: Any, y: Any, values: Mapping[str, Values], *_: Any) -> RecordTerms:
    """What each record adds.

    Raises:
        DataError: arrays that are no records of this schema.
    """
    return RecordTerms.joined(_added(schema, *each, values) for each in pieces(schema.rows, X, y, progress=False))


def _added(
    schema: CalibrationSchema, rows: NDArray[Any], labels: NDArray[Any], values: Mapping[str, Values]
) -> RecordTerms:
    gains, fine = _mapped(schema, rows, labels, values)
    return RecordTerms(fine, (Term({"t": (gains, None)}),), {})


def _mapped(
    schema: CalibrationSchema, rows: NDArray[Any], labels: NDArray[Any], values: Mapping[str, Values]
) -> tuple[Whole, NDArray[np.bool_]]:
    """What finite records add, and which records are finite."""
    whole, fine = grid_rows(schema.rows, rows)
    units = unit_rows(schema, whole, values["M"])
    return calibration_map(schema, units[fine], labels[fine].astype(np.intp), values["W"]), fine


def calibration_map(schema: CalibrationSchema, unit: Whole, labels: NDArray[np.intp], W: Values) -> Whole:
    """What records add, ``(n, 11)``, whole numbers: [right] less the first confidence, and the gains of the others.

    Args:
        schema: the schema.
        unit: :func:`~privstats.moments.gradient_map.unit_rows` of the published M, ``(n, d + 1)``.
        labels: ``(n,)``, 0..C-1.
        W: published, as the schema admits it.
    """
    scores = unit @ W.integers.T.astype(np.float64)
    exponent, one = W.exponent + schema.grid_bits, float(schema.steps)
    below = scores - scores.max(axis=1, keepdims=True)
    sure = np.empty((len(FACTORS) + 1, len(scores)))
    sure[0] = one * (scores.argmax(axis=1) == labels)
    for place, factor in enumerate(FACTORS, 1):
        numerators = exponentials(below * factor, exponent)  # the largest is 2**40
        sure[place] = np.floor(numerators.max(axis=1) * one / numerators.sum(axis=1))
    np.maximum.accumulate(sure[1:], axis=0, out=sure[1:])  # a rounding cannot make a gain negative
    gains = np.diff(sure, axis=0).T
    gains[:, 0] *= -1
    return gains
