"""Read rows of rounds on their grid, and in a treatment's two arms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import RecordError
from privstats.moments.clip_report import ClipTally
from privstats.moments.grid import Ints, Quantized, feature_grid
from privstats.schema import Schema
from privstats.transforms.base import rows_to_sum

# Entries of rows that are read at once. The arrays of the steps stay in the cache. Smaller strips of 40 columns cost
# time per call.
_STRIP = 5 << 14


class PieceMemory:
    """Float64 rows that a round reuses for each piece of its records.

    Pieces have one public size. New rows for each piece would cost page faults wherever the allocator returned the
    rows of the piece before to the system.
    """

    def __init__(self) -> None:
        self._rows: dict[str, Ints] = {}

    def rows(self, name: str, count: int, columns: int) -> Ints:
        """Return rows ``(count, columns)`` with any entries; they are valid until the next call with this name."""
        rows = self._rows.get(name)
        if rows is None or rows.shape[0] < count or rows.shape[1] != columns:
            rows = self._rows[name] = np.empty((count, columns))
        return rows[:count]


def grid_rows(
    read: Schema, rows: NDArray[Any], out: Ints | None = None, clips: list[Quantized] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return grid vectors, and which rows are finite before and after the transform (codes: after). Others are zero.

    Args:
        out: memory for grid vectors, ``(n, features)``; None: new memory.
        clips: receives the clip's effect on strips of the rows, in order; None: it is dropped.
    """
    count, at_once = len(rows), max(1, _STRIP // max(rows.shape[1], read.features, 1))
    grid = np.empty((count, read.features)) if out is None else out
    if count <= at_once:
        return grid, _read_into(grid, read, rows, clips)
    fine = np.empty(count, np.bool_)
    for start in range(0, count, at_once):
        strip = slice(start, start + at_once)
        fine[strip] = _read_into(grid[strip], read, rows[strip], clips)
    return grid, fine


def add_clips(
    tally: ClipTally, read: Schema, unit: Ints, fine: NDArray[np.bool_], clips: list[Quantized], *, above: int = 0
) -> None:
    """Add the records of a round to a tally.

    Args:
        unit: grid rows, ``(n, features)``.
        fine: which records are added, ``(n,)``.
        clips: of the same rows, as :func:`grid_rows` appends them.
        above: number of added records with an outcome above its bound.
    """
    norms = np.concatenate([np.empty(0), *(each.norms for each in clips)])[fine]
    energy = int(np.vecdot(unit, unit)[fine].astype(np.int64).sum())
    tally.add(norms, clipped=int(feature_grid(read).longer(norms)), energy=energy, targets_clipped=above)


def _read_into(grid: Ints, read: Schema, rows: NDArray[Any], clips: list[Quantized] | None) -> NDArray[np.bool_]:
    with np.errstate(over="ignore"):
        mapped = np.asarray(rows, np.float64)
    fine = _finite(mapped) | read.reading.gaps_have_cells
    mapped = rows_to_sum(read.transform, mapped if fine.all() else np.where(fine[:, None], mapped, 0.0))
    fine &= _finite(mapped)
    result = feature_grid(read).quantize(mapped if fine.all() else np.where(fine[:, None], mapped, 0.0), grid)
    if clips is not None:
        clips.append(result)
    return fine


def _finite(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    with np.errstate(over="ignore", invalid="ignore"):
        fine: NDArray[np.bool_] = np.isfinite(np.vecdot(rows, rows))
    return fine if fine.all() else np.asarray(np.isfinite(rows).all(axis=1))


def arm_rows(schema: Schema, rows: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which records are treated, ``(n,)``, and grid rows, ``(n, d)``; a row of both arms counts as treated.

    Args:
        schema: has 2 d features; its transform ends in ``ByArm``, or is empty for mapped rows.
    """
    d = schema.features // 2
    with np.errstate(over="ignore"):
        mapped = rows_to_sum(schema.transform, rows.astype(np.float64))
    if not np.isfinite(mapped).all():
        raise RecordError(
            "X holds NaN, infinite or overflowing entries, or an arm that is neither 0 nor 1; recode or remove them"
        )
    treated = (mapped[:, :d] != 0).any(axis=1)
    unit = np.empty((len(mapped), 2 * d))
    feature_grid(schema).quantize(mapped, unit)
    return treated, np.where(treated[:, None], unit[:, :d], unit[:, d:])


def real_outcomes(targets: NDArray[Any], outcomes: int, *, missing: bool = False) -> NDArray[np.float64]:
    """Return outcomes as float64, ``(n, outcomes)``.

    Args:
        missing: replace missing or infinite outcomes by NaN; else refuse them.
    """
    with np.errstate(over="ignore"):
        real = targets.astype(np.float64).reshape(len(targets), outcomes)
    finite = np.isfinite(real)
    if missing:
        return np.where(finite, real, np.nan)
    if not finite.all():
        raise RecordError(
            "y holds NaN, infinite or overflowing entries, and missing outcomes are not weighted: exclude these "
            "records, and report complete cases; or set missing='weights' in a trial's schema"
        )
    return real
