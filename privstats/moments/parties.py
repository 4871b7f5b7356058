"""The sums of whole parties, and how one party's records become one direction of whole numbers.

A function of all records of one party, so parts of a party do not add; parties do. The direction is
where a softmax descends to over all of its whole-numbered rows, from zero or from W: its gradient is an exact sum of
whole numbers at whole-numbered weights, and what is done to the weights is one IEEE operation per entry at a time, so
it is the same bits in any order, batch, container and BLAS. The whole numbers that it is cut to are shortened as such.

A party descends in whole numbers, and its task word names the descent. Thirty steps over a party's rows in floats
would depend on order and batches, and a ridge step on its exact sums, which would not, is up to three points worse.
Gradients at whole-numbered weights are exact sums, so the direction is the same bits anywhere, without a solver; the
rows are held instead. No bound and no field of the plan says which direction is sent, so another one gets another
word for ``task``: a library that does not know the word refuses the plan, and digests differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.moments.base import Moments, RealMoments
from privstats.moments.clip_report import ClipReport, no_records, norm_histogram
from privstats.moments.code_rows import behind
from privstats.moments.exact_sum import ExactSum
from privstats.moments.gradient_map import PROBABILITY_BITS, probabilities
from privstats.moments.gradients import pieces
from privstats.moments.grid import feature_grid
from privstats.schema import PartySchema
from privstats.schema.gradients import ROW_BITS
from privstats.schema.public_values import Values

__all__ = ["Block", "PartyMoments", "RealPartyMoments", "cut", "direction", "measured_parties", "shortened"]

Block: TypeAlias = tuple[NDArray[np.floating], NDArray[np.intp]]
"""Some thousand rows of whole numbers, ``(m, d)``, of norm at most 2**16, and their labels."""

_STEPS = 30  # for every data set (docs/papers_and_peers.md)
_WEIGHT_BITS = 18
_MOST = float(1 << 28)
_FACTOR_BITS = 32


def direction(blocks: Sequence[Block], classes: int, features: int, start: Values | None = None) -> NDArray[np.float64]:
    """By how much thirty accelerated steps move the weights of a softmax, at length 1, ``(C, d)``; or zeros.

    With e = sum |x|^2 / n a step is ``W += (C / e) (Y - P)'X / n``: at zero the curvature is that of the rows over C,
    so neither their length nor the number of classes decides how far a step goes. Steps are Nesterov's (1983),
    without an intercept or a penalty: their number is the penalty.

    Guarantee:
        The same bits for the same records in any order and blocks, on any machine: entries of weights are whole numbers
        of at most 2**28, so a logit of at most 65,536 features is a sum of whole numbers below 2**53.

    Args:
        blocks: all rows of the party, in steps of 2**-16.
        classes: C.
        features: d.
        start: the weights that it starts from, ``(C, d)``, cut to some 2**10 beside rows of norm 1; None: zero.

    Raises:
        DataError: more than 2**27 records.
    """
    began = np.zeros((classes, features))
    energy = sum(int(np.vdot(rows, rows)) for rows, _ in _wide(blocks))
    if not energy:
        return began
    records = sum(len(labels) for _, labels in blocks)
    exponent = _WEIGHT_BITS + (energy // records).bit_length() // 2
    if start is not None:
        began = np.clip(np.rint(np.ldexp(start.real, exponent - ROW_BITS)), -_MOST, _MOST)
    pace, weights, ahead = math.ldexp(float(classes), exponent - PROBABILITY_BITS), began, began
    for step in range(_STEPS):
        before, weights = weights, ahead - np.rint(_gradient(blocks, ahead, exponent) / energy * pace)
        ahead = np.clip(weights + np.rint((weights - before) * (step / (step + 3))), -_MOST, _MOST)
    moved = classes * (weights - began) - (weights - began).sum(axis=0)  # all classes share rounding of probabilities
    length = math.sqrt(sum(entry**2 for entry in moved.astype(np.int64).ravel().tolist()))
    return np.asarray(moved / (length or 1.0))


def _gradient(blocks: Sequence[Block], weights: NDArray[np.float64], exponent: int) -> NDArray[np.int64]:
    """``(P - Y)'X`` in steps of 2**-20, exact."""
    total = ExactSum(weights.shape, 1 << (ROW_BITS + PROBABILITY_BITS))
    for rows, labels in _wide(blocks):
        p = probabilities(rows @ weights.T, exponent)
        p[np.arange(len(p)), labels] -= 1 << PROBABILITY_BITS
        total.admit(len(rows))
        total.partial += p.T @ rows
    return total.result()


def _wide(blocks: Sequence[Block]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.intp]]]:
    return ((rows.astype(np.float64), labels) for rows, labels in blocks)


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
