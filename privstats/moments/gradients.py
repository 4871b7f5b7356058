"""The sums of one round of refinement, and how records become them: read, put on a grid, mapped, added up.

``gradient_map`` has the map itself. A record is counted, or counts as zero: no answer, and no refusal, depends on a
record and the published values together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.moments import gradient_map
from privstats.moments.base import Moments, RealMoments
from privstats.moments.code_rows import cells_of
from privstats.moments.exact_sum import ExactSum, require_known
from privstats.moments.gradient_map import Mapped
from privstats.moments.grid import feature_grid, target_grid
from privstats.moments.input_validation import count_of, dense, tiles, tiles_of_batches
from privstats.moments.kept_rows import KeptRows, MappedRows
from privstats.moments.record_terms import RecordTerms, Term
from privstats.optional_dependencies import require
from privstats.progress import progress_bar
from privstats.schema import ClassSchema, GradientSchema, RecordSchema, RidgeSchema, Schema
from privstats.schema.public_values import Values
from privstats.transforms import apply

__all__ = ["GradientMoments", "RealGradientMoments", "gradient_terms", "grid_rows", "measured_gradients", "pieces"]

_ROWS = 4096
_ENTRIES = 1 << 22  # of the gradients of single records that are held at once


@dataclass(frozen=True, eq=False)
class RealGradientMoments(RealMoments):
    """A round's sums in real units, with noise or without.

    Attributes:
        g: sum of r u', ``(C, d + 1)`` for classes, ``(1, P)`` of a module, ``(1, d)`` in units of the published c for a
            regression.
        k: kappa, a number.
    """

    g: NDArray[np.float64]
    k: float


@dataclass(frozen=True, eq=False, repr=False)
class GradientMoments(Moments):
    """A round's sums on the grid, exact.

    Attributes:
        schema: what was measured.
        g: int64, ``(C, d + 1)``, ``(1, P)`` or ``(1, d)``.
        k: kappa in steps of 2**-grid_bits.
        records: number of finite records measured; None where unknown. Private, and never sent.
        published: digest of the values used; empty where unknown.

    Raises:
        DataError: g has another shape than the schema says.
    """

    shown: ClassVar[tuple[str, ...]] = ("classes", "features")

    schema: GradientSchema
    g: NDArray[np.int64]
    k: int
    records: int | None = field(default=None, compare=False)
    published: str = ""

    def real(self) -> RealGradientMoments:
        """The same in real units, float64."""
        return RealGradientMoments.of_sums(self.schema, self.wire())


def measured_gradients(
    schema: GradientSchema,
    X: Any,
    y: Any,
    values: Mapping[str, Values],
    progress: bool = False,
    *,
    kept: KeptRows | None = None,
) -> GradientMoments:
    """The exact sums of a round over records.

    Args:
        schema, X, y: as for ``measure``.
        values: published, admitted by ``schema.check_values``.
        progress: as in ``measure``.
        kept: what these records became in a round before, and becomes what they are now.

    Guarantee:
        Of the map alone: every record adds r u' with |r| |u| <= 2**(2 f), or of a module one row as long, and
        0 <= kappa <= 2**f, in whole numbers, for all admitted values and any record; one with NaN or infinite entries
        adds nothing, and is not among the ``records``.

    Raises:
        DataError: arrays that are no records of this schema: a wrong shape, an unknown label. The class or ridge
            release before refuses the same ones.
        MissingExtraError: a module, and what it measures with is not installed; no record is read then.
    """
    read = schema.rows
    sums = {row.letter: ExactSum(row.shape(schema.sizes), row.bound(schema.steps)) for row in schema.sent}
    require_known(sums, "gk")
    records = 0
    require(*schema.packages, by=f"measuring a round of {schema.module}")
    again = None if kept is None else kept.behind((schema.rows, schema.clip_norm, schema.steps, values["M"]))
    for place, (rows, targets) in enumerate(pieces(read, X, y, progress, _most_rows(schema))):
        form = partial(_rows_behind, schema, read, rows, values["M"])
        behind = form() if again is None else again.mapped(place, rows, form)
        mapped, fine = _map(schema, read, behind, targets, values)
        for total in sums.values():
            total.admit(len(rows))
        sums["g"].partial += mapped.residuals.T @ mapped.rows
        sums["k"].partial += mapped.kappa.sum()
        records += int(np.count_nonzero(fine))
    return GradientMoments(schema, sums["g"].result(), int(sums["k"].result()), records)


def gradient_terms(schema: GradientSchema, X: Any, y: Any, values: Mapping[str, Values], *_: Any) -> RecordTerms:
    """What each record adds to a round.

    Raises:
        DataError, MissingExtraError: as :func:`measured_gradients`.
    """
    require(*schema.packages, by=f"measuring a round of {schema.module}")
    several = pieces(schema.rows, X, y, progress=False, most=_most_rows(schema))
    return RecordTerms.joined(_added(schema, *each, values) for each in several)


def _added(
    schema: GradientSchema, rows: NDArray[Any], targets: NDArray[Any], values: Mapping[str, Values]
) -> RecordTerms:
    mapped, fine = _map(schema, schema.rows, _rows_behind(schema, schema.rows, rows, values["M"]), targets, values)
    term = Term({"g": (mapped.residuals[fine], mapped.rows[fine]), "k": (mapped.kappa[fine, None], None)})
    return RecordTerms(fine, (term,), {})


def _most_rows(schema: GradientSchema) -> int:
    """Rows whose gradients are held at once."""
    return _ROWS if schema.network is None else max(1, min(_ROWS, _ENTRIES // schema.sizes["feature"]))


def pieces(
    read: RecordSchema, X: Any, y: Any, progress: bool, most: int = _ROWS
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Records of the schema, at most so many rows and their targets at a time.

    Raises:
        DataError: arrays that are no records of the schema.
    """
    parts = tiles_of_batches(read, X) if y is None else tiles(read, X, y, grouped=False)
    with progress_bar("records", None if y is None else count_of(X), at_once=progress) as advance:
        for rows, targets in parts:
            for start in range(0, len(rows), most):
                part = slice(start, start + most)
                yield dense(rows[part]), dense(targets[part])
            advance(len(rows))


def _rows_behind(schema: GradientSchema, read: RecordSchema, rows: NDArray[Any], M: Values) -> MappedRows:
    """Rows behind the published map, which all rounds of a course share."""
    grid, fine = grid_rows(read, rows)
    if schema.network is None and isinstance(read, RidgeSchema):
        return MappedRows(gradient_map.short_rows(schema, grid, M), grid, fine)
    return MappedRows(gradient_map.unit_rows(schema, grid, M), None, fine)


def _map(
    schema: GradientSchema,
    read: ClassSchema | RidgeSchema,
    rows: MappedRows,
    targets: NDArray[Any],
    values: Mapping[str, Values],
) -> tuple[Mapped, NDArray[np.bool_]]:
    """The contributions of records, and which are finite; one that is not, before or after the transform, adds zero."""
    fine = rows.fine
    if schema.network is not None:
        labels = targets.astype(np.intp)
        mapped = gradient_map.module_of_units(schema, schema.network, rows.unit, labels, values["w"])
    elif isinstance(read, ClassSchema) or rows.grid is None:
        mapped = gradient_map.softmax_of_units(schema, rows.unit, targets.astype(np.intp), values["W"])
    else:
        goals = targets.astype(np.float64).reshape(len(targets), 1)
        finite = np.isfinite(goals[:, 0])
        fine = fine & finite
        on_grid = np.empty_like(goals)
        target_grid(read).quantize(np.where(finite[:, None], goals, 0.0), on_grid)
        reads = values["w"], values["c"]
        mapped = gradient_map.residual_of_units(schema, rows.unit, rows.grid, on_grid, reads)
    if fine.all():
        return mapped, fine
    return Mapped(mapped.rows, mapped.residuals * fine[:, None], mapped.kappa * fine), fine


def grid_rows(read: Schema, rows: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Grid vectors of rows, and which rows are finite before and after the transform; the others are zero."""
    with np.errstate(over="ignore"):
        wide = np.asarray(rows, np.float64)
    fine = _finite(wide) | (cells_of(read) is not None)
    wide = apply(read.transform, wide if fine.all() else np.where(fine[:, None], wide, 0.0))
    fine &= _finite(wide)
    whole = np.empty((len(wide), read.features))
    feature_grid(read).quantize(wide if fine.all() else np.where(fine[:, None], wide, 0.0), whole)
    return whole, fine


def _finite(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows have finite entries alone: those whose squared norms are finite, or that are finite one by one."""
    with np.errstate(over="ignore", invalid="ignore"):
        fine: NDArray[np.bool_] = np.isfinite(np.vecdot(rows, rows))
    return fine if fine.all() else np.asarray(np.isfinite(rows).all(axis=1))
