"""Build the schemas of classes and regressions by which other kinds read records."""

from __future__ import annotations

from typing import Any

from privstats.kinds.classes import ClassSchema
from privstats.kinds.ridge import RidgeSchema
from privstats.schema.base import Schema
from privstats.schema.rounds import ROW_BITS


def class_rows(schema: Schema, classes: int, grid_bits: int = ROW_BITS, statistics: str = "NA") -> ClassSchema:
    """Return the class schema that reads records, by default with 16 grid bits."""
    return ClassSchema(
        classes,
        schema.features,
        statistics,
        schema.clip_norm,
        grid_bits,
        class_names=schema.class_names,
        **_read(schema),
    )


def target_rows(schema: Schema, target_bound: float, grid_bits: int, *, targets: int = 1, **more: Any) -> RidgeSchema:
    """Return the ridge schema that reads records with targets."""
    bounds = {"clip_norm": schema.clip_norm, "target_bound": target_bound, "grid_bits": grid_bits}
    return RidgeSchema(**{"features": schema.features, "targets": targets, **bounds, **_read(schema), **more})


def _read(schema: Schema) -> dict[str, Any]:
    return {name: getattr(schema, name) for name in ("nonnegative", "transform", "feature_names")}
