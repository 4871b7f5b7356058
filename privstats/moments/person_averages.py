"""Averages of many persons at once: of classes and regressions, whose rows stand in an array, person by person.

Bit for bit what ``encoding.PersonAverage`` gives of each person alone, whose rows ``moments.persons`` measures one
person at a time elsewhere; so nothing but the time depends on which of both was taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from privstats.errors import RecordError
from privstats.moments.accumulators import CpuAccumulator
from privstats.moments.clip_report import ClipReport
from privstats.moments.code_rows import cells_of, levels_of
from privstats.moments.input_validation import tiles
from privstats.schema import COUNT_SCALE, ClassSchema, RecordSchema, RidgeSchema

__all__ = ["averages_of"]

_EXACT = 1 << 53
_BYTES = 32 << 20  # of the products of persons that are held at once

Arrays = dict[str, NDArray[np.int64]]


def averages_of(schema: Any, X: Any, y: Any, rows: int) -> tuple[Arrays, ClipReport] | None:
    """What persons of so many rows each add together, by letter in wire steps, and the report on their rows.

    Args:
        schema: what is measured.
        X, y: all rows of one person, then all of the next.
        rows: how many each has.

    Returns:
        None where it is not known here how: other kinds, containers or statistics, or rows that cannot be read.
    """
    if not _plain(schema, X, y) or rows * (schema.bound + 1) >= _EXACT:
        return None
    total: Arrays = {row.letter: np.zeros(row.shape(schema.sizes), np.int64) for row in schema.sent}
    reports = []
    try:
        for part in _parts(schema, len(X), rows):
            whole, beside, report = _on_grid(schema, X[part], y[part])
            reports.append(report)
            for letter, each in _added(schema, whole, beside, rows):
                total[letter] += each.reshape(total[letter].shape).astype(np.int64)
    except RecordError:
        return None
    return total, sum(reports[1:], reports[0])


def _plain(schema: Any, X: Any, y: Any) -> bool:
    """Whether the sums are of vectors on the grid that stand in arrays of numbers, and every letter is known here."""
    if not all(isinstance(each, np.ndarray) and each.dtype.kind in "biuf" for each in (X, y)) or not len(X):
        return False
    if cells_of(schema) is not None or levels_of(schema) is not None or getattr(schema, "missing", None) is not None:
        return False
    if isinstance(schema, ClassSchema):
        return {row.letter for row in schema.sent} <= set("NABD")
    return isinstance(schema, RidgeSchema) and schema.folds == 1


def _parts(schema: Any, records: int, rows: int) -> Iterator[slice]:
    """Whole persons whose products are so large together."""
    held = min(_BYTES // (8 * schema.features * max(schema.features, rows)), (_EXACT - 1) // schema.bound)
    step = max(1, held) * rows
    yield from (slice(start, start + step) for start in range(0, records, step))


class _Kept:
    """In place of sums: the vectors on the grid, and labels or targets beside them."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.beside: list[Any] = []

    def add(self, rows: NDArray[np.float64], beside: NDArray[Any]) -> None:
        """Keep a chunk, which is used up."""
        self.rows.append(rows.copy())
        self.beside.append(beside.copy())

    def moments(self, report: ClipReport) -> ClipReport:
        """The report."""
        return report


def _on_grid(schema: RecordSchema, X: Any, y: Any) -> tuple[NDArray[np.float64], NDArray[Any], ClipReport]:
    kept = _Kept()
    accumulator = CpuAccumulator(schema, kept)
    unsorted: Any = schema
    if isinstance(schema, ClassSchema):
        unsorted = replace(schema, statistics="NA")
    for tile in tiles(unsorted, X, y):
        accumulator.add(*tile)
    report: Any = accumulator.moments()
    return np.vstack(kept.rows), np.concatenate(kept.beside), report


def _added(
    schema: RecordSchema, whole: NDArray[np.float64], beside: NDArray[Any], rows: int
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """By letter, the sum over persons of averages that are cut toward zero, all of them exact in float64."""
    of_person = whole.reshape(-1, rows, whole.shape[1])
    if isinstance(schema, ClassSchema):
        yield from _by_class(schema, whole, np.asarray(beside, np.intp), rows)
        if "B" in schema.statistics:
            yield "B", _cut(of_person.transpose(0, 2, 1) @ of_person, rows).sum(axis=0)
        return
    targets = beside.reshape(len(of_person), rows, -1)
    yield "G", _cut(of_person.transpose(0, 2, 1) @ of_person, rows).sum(axis=0)
    yield "h", _cut(of_person.transpose(0, 2, 1) @ targets, rows).sum(axis=0)
    yield "q", _cut(np.square(targets).sum(axis=(1, 2)), rows).sum(axis=0)


def _by_class(
    schema: ClassSchema, whole: NDArray[np.float64], labels: NDArray[np.intp], rows: int
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """What persons add class by class: of each only the classes in which there are rows."""
    found, place = np.unique(np.arange(len(labels)) // rows * schema.classes + labels, return_inverse=True)
    shape = (len(found), len(labels))
    members = csc_array((np.ones(len(labels)), place.reshape(-1), np.arange(len(labels) + 1)), shape=shape)
    classes = found % schema.classes
    powers = {"N": np.full((len(labels), 1), float(COUNT_SCALE)), "A": whole, "D": np.square(whole)}
    for letter in (letter for letter in "NAD" if letter in schema.statistics):
        cut = _cut(members @ powers[letter], rows)
        into = csc_array((np.ones(len(found)), classes, np.arange(len(found) + 1)), shape=(schema.classes, len(found)))
        yield letter, np.asarray(into @ cut)


def _cut(sums: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """Toward zero, exactly: a quotient of whole numbers below 2**53 that is none lies further from the next one than
    rounding moves it."""
    return np.asarray(np.trunc(sums / rows))
