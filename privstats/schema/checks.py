"""Validate a schema's fields."""

from __future__ import annotations

import math
import operator
from dataclasses import fields
from numbers import Real
from typing import Any

from privstats.errors import SchemaError
from privstats.intake.meaning import check_distinct, checked_names, shown
from privstats.python_values import python_fields
from privstats.schema.base import Schema
from privstats.transforms import ConstantFeature, Transform, maps_of, output_features


class Required:
    """The default of a field that has none: a schema without a value for it is refused.

    Example:
        >>> import inspect
        >>> inspect.signature(ps.MeanSchema).parameters["clip_norm"].default
        REQUIRED
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "REQUIRED"

    def __reduce__(self) -> str:
        # Copies and pickles are the one instance, because fields are compared by ``is``.
        return "REQUIRED"


REQUIRED: Any = Required()
"""Marks a required field; ``features`` alone may follow from a declaration of columns."""

MAX_ENTRIES = 1 << 26
"""Maximum number of entries of all published values of a plan together."""

_MAX_GRID_BITS = 20

# Products of larger numbers' squares with noise levels come near the ends of float64.
_LARGEST = 1e30


def settle(schema: Schema, **values: object) -> None:
    """Store checked values in a frozen schema."""
    for field, value in values.items():
        object.__setattr__(schema, field, value)


def checked_vectors(schema: Schema) -> dict[str, object]:
    """Validate feature-vector fields."""
    python_fields(schema)
    _require_fields(schema)
    transform = maps_of(schema.transform)
    number = _declared(transform, schema) if schema.features is REQUIRED else schema.features
    features = as_int("features", number, 2, "one feature has no covariance: add another or a constant one")
    grid_bits = as_int("grid_bits", schema.grid_bits, 2, "12 suits most data")
    if grid_bits > _MAX_GRID_BITS:
        raise SchemaError(f"grid_bits must be at most {_MAX_GRID_BITS}, got {grid_bits}; 12 suits most data")
    check_coarseness("features", features, grid_bits)
    if not isinstance(schema.nonnegative, bool):
        raise SchemaError(f"nonnegative must be True or False, got {type(schema.nonnegative).__name__}")
    _check_cells(schema, transform, grid_bits)
    outputs, appended = output_features(transform), schema.appended
    if outputs is not None and outputs + appended != features:
        remedy = f"{outputs} and {appended} appended are {outputs + appended}" if appended else "make them equal"
        raise SchemaError(f"transform returns {outputs} features but features={features}; {remedy}")
    clip_norm = size("clip_norm", schema.clip_norm, "choose it from public data, as `privstats plan suggest` does")
    _check_constants(transform, clip_norm, grid_bits)
    names = _checked_columns(schema.feature_names, transform, features, appended)
    _check_levels(schema, transform, names or ())
    settled = {"features": features, "grid_bits": grid_bits, "clip_norm": clip_norm, "transform": transform}
    return {**settled, "feature_names": names}


def _require_fields(schema: Any) -> None:
    lacking = [row.name for row in fields(schema) if getattr(schema, row.name) is REQUIRED and row.name != "features"]
    if lacking:
        raise SchemaError(f"{type(schema).__name__} lacks {', '.join(lacking)}; there is no default on purpose")


def _declared(transform: tuple[Transform, ...], schema: Schema) -> int:
    outputs = output_features(transform) if transform and transform[0].reads_cells else None
    if outputs is None:
        raise SchemaError("features must be given: only a declaration of columns (Cells) determines their number")
    return outputs + schema.appended


def _check_cells(schema: Schema, transform: tuple[Transform, ...], grid_bits: int) -> None:
    if any(map_.reads_cells for map_ in transform[1:]):
        raise SchemaError("Cells must be the first map: it reads the table; put the others after it")
    if not transform or not transform[0].reads_cells:
        return
    cells: Any = transform[0]
    if schema.feature_names is not None:
        raise SchemaError("feature_names must be omitted: Cells names the input columns")
    if schema.nonnegative:
        raise SchemaError("nonnegative must be False: rows of Cells have negative entries")
    if any(map_.local for map_ in transform):
        raise SchemaError("no map fitted on client records may follow Cells: all parties' rows must mean the same")
    if len(transform) == 1 and grid_bits < cells.bits:
        raise SchemaError(
            f"grid_bits must be at least {cells.bits}, the bits of Cells, so that its rows are on the grid; got "
            f"{grid_bits}"
        )


def _check_constants(transform: tuple[Transform, ...], clip_norm: float, grid_bits: int) -> None:
    """Refuse a constant that may be 0 on the grid."""
    least = math.ldexp(clip_norm, -grid_bits)
    for map_ in transform:
        if isinstance(map_, ConstantFeature) and abs(map_.value) < least:
            raise SchemaError(
                f"the value of ConstantFeature must be at least {least:.2g}, a grid step, got {map_.value:g}; 1 suits "
                "most data"
            )


def _check_levels(schema: Schema, transform: tuple[Transform, ...], names: tuple[str, ...]) -> None:
    declared: list[Any] = [map_ for map_ in transform if map_.kind == "levels"]
    if not declared:
        return
    if declared != [transform[0]] or not (transform[-1].kind == "by-arm" or schema.levels_apart):
        raise SchemaError(
            "Levels must be the first map of an effect, of hazards or of a score; declare other tables with Cells"
        )
    for column in declared[0].columns:
        if column.name not in names:
            raise SchemaError(f"Levels declares {column.name!r}, which feature_names does not name; name it there")
    if tuple(names.index(each.name) for each in declared[0].several) != declared[0].spread:
        raise SchemaError("spread of Levels must list the feature_names index of each column with more than two texts")


def _checked_columns(
    names: object, transform: tuple[Transform, ...], features: int, appended: int
) -> tuple[str, ...] | None:
    checked = checked_names("feature_names", names)
    if checked is None:
        return None
    try:
        outputs = output_features(transform, len(checked))
    except SchemaError as error:
        raise SchemaError(f"feature_names must name the columns before the transform: {error}") from None
    if outputs != features - appended:
        became = f", which the transform turns into {outputs}," if transform else ""
        raise SchemaError(
            f"feature_names names {len(checked)} columns{became} but features={features}: name each input column"
        )
    return checked


def checked_class_names(names: object, classes: int) -> tuple[str, ...] | None:
    """Validate class names."""
    checked = checked_names("class_names", names, classes, "classes")
    check_distinct("class_names", checked or ())
    return checked


def check_coarseness(field: str, columns: int, grid_bits: int) -> None:
    """Refuse a grid on which rounding, up to sqrt(columns)/2 steps, exceeds the clip norm."""
    coarse = math.sqrt(columns) / 2
    if coarse >= 1 << grid_bits:
        raise SchemaError(
            f"grid_bits={grid_bits} is too coarse for {field}={columns}: rounding could exceed the clip norm; "
            f"use at least {math.floor(math.log2(coarse)) + 1}"
        )


def as_int(field: str, value: object, minimum: int, remedy: str) -> int:
    """Return an integer of at least ``minimum``."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:  # integers of numpy and torch have passed
        raise SchemaError(f"{field} must be an integer of at least {minimum}, got {shown(value)}")
    if number < minimum:
        raise SchemaError(f"{field} must be at least {minimum}, got {number}: {remedy}")
    return number


def size(field: str, value: object, remedy: str, largest: float = _LARGEST) -> float:
    """Return a number between 1e-30 and ``largest``."""
    if isinstance(value, str):
        raise SchemaError(f"{field} must be a number, got the text {shown(value)}; remove the quotes")
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not 1 / _LARGEST <= number <= largest:
        raise SchemaError(f"{field} must be a number between 1e-30 and {largest:g}, got {value!r}: {remedy}")
    return number


def checked_pull(field: str, value: object, remedy: str, beyond: str) -> float:
    """Return a pull (lambda, in records), at most 1e9; ``beyond`` names the kind for larger ones."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return 0.0
    return size(field, value, f"{remedy}; for more, use a {beyond}", 1e9)


MIN_GROUPS = 6
"""Minimum number of site groups, if any: fewer leave too few degrees of freedom for useful quantiles."""

_MAX_GROUPS = 64


def refused_groups(groups: int, honest: int, why: str) -> str:
    """Return why fewer than three honest sites per group on average are refused; one group may have any number."""
    if groups == 1 or honest >= 3 * groups:
        return ""
    return (
        f"min_survivors - colluders is {honest} and must be at least 3 groups = {3 * groups}: {why}; lower "
        "schema.groups, or use more sites"
    )


def checked_groups(value: object) -> int:
    """Return the number of site groups: 1, or enough to estimate a spread."""
    groups = as_int("groups", value, 1, "1 means no groups")
    if groups != 1 and not MIN_GROUPS <= groups <= _MAX_GROUPS:
        raise SchemaError(f"groups must be 1, or {MIN_GROUPS} to {_MAX_GROUPS}, got {groups}: 8 suits most cohorts")
    return groups
