"""The sums of whole parties, and how one party's records become one direction of whole numbers.

A function of all records of one party, so parts of a party do not add; parties do. ``party_descent`` finds the
direction, in float64; the whole numbers that it is cut to are shortened as whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.moments.base import Moments, RealMoments
from privstats.moments.clip_report import ClipReport, no_records, norm_histogram
from privstats.moments.code_rows import behind
from privstats.moments.gradients import pieces
from privstats.moments.grid import feature_grid
from privstats.moments.party_descent import direction
from privstats.schema import PartySchema
from privstats.schema.public_values import Values

__all__ = ["PartyMoments", "RealPartyMoments", "cut", "measured_parties", "shortened"]

_FACTOR_BITS = 32


@dataclass(frozen=True, eq=False)
class RealPartyMoments(RealMoments):
    """The sum in real units, with noise or without: P, ``(C, d)``."""

    P: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class PartyMoments(Moments):
    """The sum on the grid, exact: P int64, ``(C, d)``.

    Attributes:
        schema: what was measured.
        records: 1 for a party that has any records, 0 for one without: a party counts as one record of its schema.
        clip_report: what the clip did to its rows; stays with the party and is ignored by ``==``.
        published: digest of the weights that the descent started from; empty where it started from zero.

    Raises:
        DataError: another shape than the schema says, or one party's direction that is longer than 1.
    """

    shown: ClassVar[tuple[str, ...]] = ("classes", "features")

    schema: PartySchema
    P: NDArray[np.int64]
    records: int | None = field(default=None, compare=False)
    clip_report: ClipReport | None = field(default=None, compare=False)
    published: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.records is not None and (type(self.records) is not int or self.records < 0):
            raise DataError(f"records must be a whole number of at least 0, or None, got {self.records!r}")
        if self.records is not None and self.records <= 1 and _square(self.P) > self.schema.steps**2:
            raise DataError("P of one party must not be longer than 2**grid_bits; build it with measure()")

    def real(self) -> RealPartyMoments:
        """The same in real units, float64."""
        return RealPartyMoments.of_sums(self.schema, self.wire())


def measured_parties(
    schema: PartySchema, X: Any, y: Any, values: Mapping[str, Values], progress: bool = False
) -> PartyMoments:
    """One party's direction, from all of its records; of an update from the published W.

    Guarantee:
        Unit one party. ``|P|_F <= 2**grid_bits`` in whole numbers, for any records and whatever float64 does; zeros for
        a party without records, or whose records are all 0.

    Raises:
        DataError: arrays that are no records of this schema.
    """
    grid = feature_grid(schema.rows)
    blocks, report = [], no_records(schema.features)
    for raw, labels in pieces(schema.rows, X, y, progress):
        rows = np.empty((len(raw), schema.features))
        found = grid.quantize(behind(schema, raw, grid) if schema.transform else raw, rows)
        counts = tuple(norm_histogram(found.norms, schema.rows.steps).tolist())
        report += ClipReport(len(rows), found.clipped, 0, counts, found.energy, schema.features)
        blocks.append((rows.astype(np.float32), labels.astype(np.intp)))  # whole numbers below 2**24
    P = cut(direction(blocks, schema.classes, schema.features, values.get("W")), schema.steps)
    return PartyMoments(schema, P, int(report.records > 0), clip_report=report)


def cut(V: NDArray[np.float64], steps: int) -> NDArray[np.int64]:
    """``V steps`` in whole numbers, cut toward zero, no longer than ``steps`` and without what is no number.

    Guarantee:
        Of the numbers alone: ``sum out**2 <= steps**2`` holds exactly for every float64 array, also one that is longer
        than 1, infinite or NaN: the proof rests on no float.
    """
    whole = np.trunc(np.clip(np.nan_to_num(V), -1.0, 1.0) * steps)
    return shortened(whole.astype(np.int64), steps)


def shortened(ray: NDArray[np.int64], steps: int) -> NDArray[np.int64]:
    """A whole-numbered ray as it stands, or shortened by one factor and cut toward zero until it is no longer than
    ``steps``.

    Guarantee:
        Of the numbers alone: ``sum out**2 <= steps**2`` holds exactly, for every ray with entries of at most
        ``steps <= 2**20``. With t = floor(2**32 steps / |ray|) an entry becomes at most ``|v| t / 2**32``.
    """
    square = _square(ray)
    if square <= steps**2:
        return ray
    factor = math.isqrt((steps << _FACTOR_BITS) ** 2 // square)
    out: NDArray[np.int64] = np.sign(ray) * (np.abs(ray) * factor >> _FACTOR_BITS)
    return out


def _square(ray: NDArray[np.int64]) -> int:
    """The sum of squares, exactly: in int64 where no sum of so many can pass it, else in Python's integers."""
    most = max(int(ray.max()), -int(ray.min()))
    if most**2 * ray.size < 1 << 63:
        return int(np.vdot(ray, ray))
    return sum(entry**2 for entry in ray.ravel().tolist())
