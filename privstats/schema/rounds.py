"""Check the fields and published values of rounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from privstats.errors import PlanError, SchemaError
from privstats.schema.base import Schema
from privstats.schema.checks import as_int, checked_class_names, checked_vectors, settle, size
from privstats.schema.public_values import VALUE_BITS, Values

ROW_BITS = 16
"""Bits of a record's grid before the published map."""

# With at most 2**13 classes, a softmax's numerators of at most 2**40 each add up to at most 2**53, exactly.
_MAX_CLASSES = 1 << 13

_MAX_FEATURES = 1 << 16

_WEIGHT_EXPONENTS = range(-8, 65)

_MAP_EXPONENTS = range(-64, 129)


def settle_round(schema: Any) -> None:
    """Check and store shared fields."""
    settle(schema, **checked_vectors(schema))
    settle(schema, expected_records=as_int("expected_records", schema.expected_records, 1, "state their number"))
    settle(schema, course_mu=size("course_mu", schema.course_mu, "give the course's mu"))
    check_exact(schema)
    if schema.classes is None:
        return
    settle_classes(schema)
    if schema.clip_norm != 1.0:
        raise SchemaError("a round of classes needs rows of norm 1: leave clip_norm at 1, as after UnitNorm()")


def check_exact(schema: Schema) -> None:
    """Refuse more than 65,536 features, so that all logits are exact integers below 2**53."""
    if schema.features > _MAX_FEATURES:
        raise SchemaError(f"features must be at most {_MAX_FEATURES}, got {schema.features}; project them first")


def settle_classes(schema: Any) -> None:
    """Check and store ``classes`` and ``class_names``."""
    settle(schema, classes=as_int("classes", schema.classes, 2, "one class has nothing to separate: set two or more"))
    if schema.classes > _MAX_CLASSES:
        raise SchemaError(f"classes must be at most {_MAX_CLASSES}, got {schema.classes}; merge some")
    settle(schema, class_names=checked_class_names(schema.class_names, schema.classes))


def check_widths(values: Mapping[str, Values], weights: range = _WEIGHT_EXPONENTS) -> None:
    """Refuse values wider than 20 bits, tiny or enormous.

    Args:
        values: by name; M is a map, others are weights.
        weights: allowed exponents of weights.
    """
    limit = 1 << (VALUE_BITS - 1)
    for name, value in values.items():
        exponents = _MAP_EXPONENTS if name == "M" else weights
        if value.exponent not in exponents or (value.integers <= -limit).any() or (value.integers >= limit).any():
            raise PlanError(
                f"published {name} is wider than {VALUE_BITS} bits, or tiny or enormous: publish Values.rounded"
            )


class AdaptiveSchema(Schema):
    """A schema whose sums are computed with published values of at most 20 bits each."""

    needs_privacy: ClassVar[str] = (
        "this sum cannot be released without differential privacy: weights can be chosen so that one record alone "
        "counts; give the plan a Privacy"
    )

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse missing or unknown values, or values of another shape, wider than 20 bits, tiny or enormous."""
        super().check_values(values)
        check_widths(values)
