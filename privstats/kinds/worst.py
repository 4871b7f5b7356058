"""Build the two data sets that the certificate compares with a sensitivity, and their sums.

Records have at most two nonzero entries, so two features suffice. docs/proofs/sensitivity.md proves which pairs are
worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.moments.base import Moments
from privstats.schema.base import Schema

Record: TypeAlias = dict[str, Any]
"""``times`` and ``cell`` (class, fold or site), and sparse vectors as lists of (place, integer)."""

Sums: TypeAlias = dict[tuple[str, int], NDArray[Any]]

ONE = 1 << 20  # steps per mean outcome of 1, as for scores

_CROWD = 10**6

_MAX = 1 << 61


def many(schema: Schema) -> int:
    """Return a number of records at which one more hardly moves their mean, with sums that fit int64."""
    return min(_CROWD, _MAX // schema.grid_steps**2)


@dataclass(frozen=True)
class WorstPair:
    """A kind's rule for its worst case.

    Attributes:
        pairs: (record, replacement) pairs; in one, the record is the worst to add.
        sums: sums by letter and cell, in wire steps.
        crowd: the party's other records, many and opposed, where a record's contribution depends on them.
        exchanged: candidates for the other records in an exchange.
        halves: whether a client of two opposed halves may be the worst client.
        left_out: whether an exchange with an excluded record may be the worst.
    """

    pairs: Callable[[Any, Mapping[str, float]], list[tuple[Record, Record]]]
    sums: Callable[[Any, Sequence[Record]], Sums]
    crowd: Callable[[Any], tuple[Record, ...]] = lambda _: ()
    exchanged: Callable[[Any], list[tuple[Record, ...]]] = lambda _: [()]
    halves: bool = False
    left_out: Callable[[Any], bool] = lambda _: False


def record_of(x: list[list[int]], *, times: int = 1, cell: int = 0, **more: Any) -> Record:
    """Return a grid record without zero entries."""
    return {"times": times, "cell": cell, "x": [entry for entry in x if entry[1]], **more}


def first(schema: Schema, sign: int = 1) -> list[list[int]]:
    """Return the longest row."""
    return [[0, sign * schema.grid_steps]]


def vectors(schema: Any, weights: Mapping[str, float]) -> list[tuple[Record, Record]]:
    """Return candidate pairs: orthogonal, opposite, of different classes, and at an angle."""
    one, second = record_of(first(schema)), [[1, schema.grid_steps]]
    others = [record_of(second), record_of(second, cell=1), record_of(first(schema), cell=1)]
    if schema.nonnegative:
        return [(one, other) for other in others]
    others += [record_of(first(schema, -1)), record_of(first(schema, -1), cell=1)]
    linear = weights.get("A", 0.0) * schema.grid_steps**2
    quadratic = sum(weights.get(s, 0.0) for s in "BSD") * schema.grid_steps**4
    turn = math.asin(min(1.0, linear / (2 * quadratic))) / 2 if quadratic else math.pi / 4
    long, short = (int(schema.grid_steps * side(turn)) for side in (math.cos, math.sin))
    slanted = record_of([[0, long], [1, short]]), record_of([[0, -short], [1, -long]])
    return [*((one, other) for other in others), slanted]


def added(of_record: Callable[[Any, Record], Sums]) -> Callable[[Any, Sequence[Record]], Sums]:
    """Return the function that sums records' contributions."""

    def sums(schema: Any, records: Sequence[Record]) -> Sums:
        total: Sums = {}
        for record in records:
            for key, array in of_record(schema, record).items():
                total[key] = total.get(key, 0) + record["times"] * array
        return total

    return sums


def of_score(_: object, record: Record) -> Sums:
    """Return a record's score and information, the score's square where it has c, and Q and V where it has k."""
    a = dense(record["a"])
    sums = {("g", 0): np.outer(dense(record["x"]), dense(record["r"])), ("H", 0): np.outer(a, a)}
    if "c" in record:
        c = dense(record["c"])
        sums["J", 0] = np.outer(c, c)
    if "k" in record:
        sums |= {(letter, 0): np.square(dense(record[of], 1)).sum() for letter, of in (("Q", "r"), ("V", "k"))}
    return sums


def plain(records: Sequence[Record]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return counts and sums by cell, and second moments."""
    counts, sums, second = np.zeros(2, object), np.zeros((2, 2), object), np.zeros((2, 2), object)
    for record in records:
        x, times = dense(record["x"]), record["times"]
        counts[record["cell"]] += times
        sums[record["cell"]] += times * x
        second += times * np.outer(x, x)
    return counts, sums, second


def wire(moments: Moments, cell: int = 0) -> Sums:
    """Return measured sums by letter and cell."""
    return {(row.letter, cell): moments.sums(row).astype(object) * row.factor for row in moments.schema.sent}


def rows_of(schema: Schema, records: Sequence[Record]) -> NDArray[np.float64]:
    """Return rows in real units."""
    return np.array([dense(record["x"]).astype(np.float64) / schema.scale for record in records])


def dense(entries: Sequence[Sequence[int]], width: int = 2) -> NDArray[Any]:
    """Return a dense vector of Python integers."""
    vector = np.zeros(width, object)
    for place, value in entries:
        vector[place] = value
    return vector
