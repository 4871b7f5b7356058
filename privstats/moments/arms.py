"""Rows of a treatment's two arms: who is treated, and the grid rows of all records without the arm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import RecordError
from privstats.moments.grid import feature_grid
from privstats.schema import Schema
from privstats.transforms import apply

__all__ = ["arm_rows", "real_outcomes"]


def arm_rows(schema: Schema, rows: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Who is treated ``(n,)``, and grid rows ``(n, d)``; a row of both arms is one of the treated.

    Args:
        schema: of 2 d features, whose transform ends in ``ByArm``, or is empty where rows are mapped already.
        rows: as they come in.

    Raises:
        RecordError: NaN or infinite entries, or an arm that is neither 0 nor 1.
    """
    d = schema.features // 2
    with np.errstate(over="ignore"):
        wide = apply(schema.transform, rows.astype(np.float64))
    if not np.isfinite(wide).all():
        raise RecordError(
            "X holds NaN, infinite or overflowing entries, or an arm that is neither 0 nor 1; recode or remove them"
        )
    treated = (wide[:, :d] != 0).any(axis=1)
    unit = np.empty((len(wide), 2 * d))
    feature_grid(schema).quantize(wide, unit)
    return treated, np.where(treated[:, None], unit[:, :d], unit[:, d:])


def real_outcomes(targets: NDArray[Any], outcomes: int, *, missing: bool = False) -> NDArray[np.float64]:
    """Outcomes as float64, ``(n, outcomes)``.

    Args:
        targets: as they come in.
        outcomes: how many a record has.
        missing: whether one may be: then NaN stands for it, and for an infinite one.

    Raises:
        RecordError: NaN or infinite ones, where none may be missing.
    """
    with np.errstate(over="ignore"):
        real = targets.astype(np.float64).reshape(len(targets), outcomes)
    finite = np.isfinite(real)
    if missing:
        return np.where(finite, real, np.nan)
    if not finite.all():
        raise RecordError(
            "y holds NaN, infinite or overflowing entries, and missing outcomes are not weighted: leave these records "
            "out, and state that complete cases are meant; or give the schema of a trial missing='weights'"
        )
    return real
