"""Validation of a schema's fields, which become plain Python types; one sentence for each value that does not fit.

Shared by all kinds of schemas, and independent of each of them.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Sequence
from numbers import Real
from typing import Any

from privstats.errors import SchemaError
from privstats.plain import plain_fields
from privstats.schema.base import Schema
from privstats.transforms import Transform, output_features, steps_of
from privstats.transforms.reading import Reading, reading, same

__all__ = [
    "check_coarseness",
    "check_told_apart",
    "checked_class_names",
    "checked_names",
    "checked_vectors",
    "settle",
    "size",
    "whole",
]

_MAX_GRID_BITS = 20
_LONGEST_SHOWN = 40
_LONGEST_NAME = 200
_LARGEST_WHOLE = 1 << 53  # up to which float64 has every whole number
_LARGEST = 1e30  # beyond, products of squares with noise levels come near the ends of float64


def settle(schema: Schema, **values: object) -> None:
    """Store checked values in a frozen schema, as plain Python types."""
    for field, value in values.items():
        object.__setattr__(schema, field, value)


def checked_vectors(schema: Schema) -> dict[str, object]:
    """Validate the fields on feature vectors that every schema has, and make all its fields plain Python values."""
    plain_fields(schema)
    features = whole("features", schema.features, 2, "one feature has no covariance: add another or a constant one")
    grid_bits = whole("grid_bits", schema.grid_bits, 2, "12 suits most data")
    if grid_bits > _MAX_GRID_BITS:
        raise SchemaError(f"grid_bits must be at most {_MAX_GRID_BITS}, got {grid_bits}; 12 suits most data")
    check_coarseness("features", features, grid_bits)
    if not isinstance(schema.nonnegative, bool):
        raise SchemaError(f"nonnegative must be True or False, got {type(schema.nonnegative).__name__}")
    transform = steps_of(schema.transform)
    outputs, beside = output_features(transform), schema.appended
    if outputs is not None and outputs + beside != features:
        remedy = f"{outputs} and {beside} appended make {outputs + beside}" if beside else "make them equal"
        raise SchemaError(f"transform gives {outputs} features but features={features}; {remedy}")
    clip_norm = size("clip_norm", schema.clip_norm, "choose it from public data, as `privstats plan suggest` does")
    names = _checked_columns(schema.feature_names, transform, features, beside)
    settled = {"features": features, "grid_bits": grid_bits, "clip_norm": clip_norm, "transform": transform}
    return {**settled, "feature_names": names}


def _checked_columns(
    names: Any, transform: tuple[Transform, ...], features: int, beside: int
) -> tuple[str, ...] | None:
    """Names of the columns that come in, as many as the transform turns into ``features`` less those ``beside``."""
    checked = checked_names("feature_names", names)
    if checked is None:
        return None
    try:
        outputs = output_features(transform, len(checked))
    except SchemaError as error:
        raise SchemaError(f"feature_names must name the columns before the transform: {error}") from None
    if outputs != features - beside:
        became = f", which the transform turns into {outputs}," if transform else ""
        raise SchemaError(
            f"feature_names names {len(checked)} columns{became} but features={features}; name each that comes in"
        )
    return checked


def checked_names(field: str, names: Any, count: int | None = None, of: str = "") -> tuple[str, ...] | None:
    """Different texts without control characters, as a tuple; None where there are none."""
    if names is None:
        return None
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        raise SchemaError(f"{field} must be a tuple of texts, for example ('cat', 'dog'), got {_shown(names)}")
    for name in names:
        if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or name != name.strip():
            raise SchemaError(
                f"{field} holds {_shown(name)}; a name has 1 to {_LONGEST_NAME} printable characters, "
                "and no space at either end"
            )
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise SchemaError(f"{field} holds {_shown(twice)} twice; names tell things apart, so use each once")
    if count is not None and len(names) != count:
        raise SchemaError(f"{field} holds {len(names)} names but {of}={count}; name each once, in order")
    return tuple(str(name) for name in names)


def checked_class_names(names: Any, classes: int) -> tuple[str, ...] | None:
    """Names of classes, which records' labels tell apart; None where there are none."""
    checked = checked_names("class_names", names, classes, "classes")
    check_told_apart("class_names", checked or ())
    return checked


def check_told_apart(field: str, values: Sequence[str | int]) -> None:
    """Refuse public values that no record's value could be told by: one that is read as missing, or two as the same.

    Raises:
        SchemaError: naming the first such value.
    """
    known: dict[Reading, str | int] = {}
    for value in values:
        read = reading(value)
        if read is None:
            raise SchemaError(
                f"{field} holds {_shown(value)}, which is read as a missing value, in every container: write it in "
                "other words, such as 'nothing found'"
            )
        if isinstance(read, float) and abs(read) >= _LARGEST_WHOLE:
            raise SchemaError(
                f"{field} holds {_shown(value)}, and from 2**53 on numbers run together: put a letter before it"
            )
        key = same(read) if isinstance(read, float) else read
        if key in known:
            raise SchemaError(
                f"{field} holds {_shown(known[key])} and {_shown(value)}, which are read as one value, in every "
                "container: put a letter before them"
            )
        known[key] = value


def check_coarseness(field: str, columns: int, grid_bits: int) -> None:
    """Refuse a grid on which rounding, by up to sqrt(columns)/2 steps, leaves no ball to shrink a vector into."""
    coarse = math.sqrt(columns) / 2
    if coarse >= 1 << grid_bits:
        raise SchemaError(
            f"grid_bits={grid_bits} is too coarse for {field}={columns}: rounding could exceed the clip norm; "
            f"use at least {math.floor(math.log2(coarse)) + 1}"
        )


def whole(field: str, value: object, least: int, remedy: str) -> int:
    """A whole number of at least ``least``, also from numpy and torch."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:  # whole numbers of numpy and torch have passed
        raise SchemaError(f"{field} must be a whole number of at least {least}, got {_shown(value)}")
    if number < least:
        raise SchemaError(f"{field} must be at least {least}, got {number}: {remedy}")
    return number


def _shown(value: object) -> str:
    """A schema is public: a short text or number may be shown, anything else is named by its type."""
    plain = isinstance(value, str | int | float) and len(repr(value)) <= _LONGEST_SHOWN
    if not plain:
        return type(value).__name__
    return repr(str(value)) if isinstance(value, str) else repr(value)  # numpy's texts say that they are numpy's


def size(field: str, value: object, remedy: str) -> float:
    """A number between 1e-30 and 1e30."""
    if isinstance(value, str):
        raise SchemaError(f"{field} must be a number, got the text {_shown(value)}; remove the quotes")
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not 1 / _LARGEST <= number <= _LARGEST:
        raise SchemaError(f"{field} must be a number between 1e-30 and 1e30, got {value!r}: {remedy}")
    return number
