"""The kinds of schemas, one row each, and the one place that refuses what is none.

A kind that stands here still needs its sums (``moments``), its sensitivity (``dp``) and its test; where one of them is
missing it is refused there, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeAlias, TypeVar

from privstats.errors import SchemaError
from privstats.schema.base import Predicted, Schema
from privstats.schema.classes import ClassSchema
from privstats.schema.counts import CountSchema
from privstats.schema.gaussians import GaussianSchema
from privstats.schema.gradients import GradientSchema
from privstats.schema.ridge import RidgeSchema
from privstats.schema.score import ScoreSchema
from privstats.schema.sites import SitesSchema
from privstats.schema.within import WithinSchema
from privstats.tables import by_name

__all__ = ["KINDS", "USUAL", "RecordSchema", "bare", "of_records", "predicted", "require_schema"]

RecordSchema: TypeAlias = ClassSchema | RidgeSchema
"""The kinds that sum records as they stand: no published map before them, no function of one party's sums behind."""

_ROWS: tuple[type[Schema], ...] = (
    ClassSchema,
    RidgeSchema,
    CountSchema,
    SitesSchema,
    ScoreSchema,
    GradientSchema,
    WithinSchema,
    GaussianSchema,
)
KINDS: Mapping[str, type[Schema]] = by_name(_ROWS, lambda kind: kind.task, "schema kind")
"""By the word for the kind in plan files."""

USUAL = "ClassSchema or RidgeSchema"
"""What people build by hand, for messages; the other kinds have calls and courses that build them."""

_Any = TypeVar("_Any", bound=Schema)


def bare(schema: _Any) -> _Any:
    """The same moments of rows that are behind the public transform already, of labels 0..C-1 and without names.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, class_names=("ill", "well"))
        >>> ps.schema.bare(schema) == ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        True
    """
    known: Any = schema  # every kind is a dataclass
    names = {field.name for field in fields(known)} & {"class_names", "feature_names"}
    plain: _Any = replace(known, transform=(), **dict.fromkeys(names))
    return plain


def of_records(schema: Schema) -> RecordSchema:
    """The schema, if it sums records as they stand.

    Raises:
        SchemaError: it is of another kind.

    Example:
        >>> ps.schema.of_records(ps.ClassSchema(2, 2, "NA", clip_norm=1.0)).task
        'classes'
        >>> ps.schema.of_records(ps.SitesSchema(2, clip_norm=8.0))
        Traceback (most recent call last):
            ...
        privstats.errors.SchemaError: this takes a ClassSchema or RidgeSchema, got SitesSchema; give a plan of
        records
    """
    if isinstance(schema, RecordSchema):
        return schema
    raise SchemaError(f"this takes a ClassSchema or RidgeSchema, got {type(schema).__name__}; give a plan of records")


def predicted(schema: Schema) -> Predicted:
    """What models from a release of this schema predict.

    Raises:
        SchemaError: no head is built from such a release.

    Example:
        >>> from privstats.schema import predicted
        >>> predicted(ps.ClassSchema(2, 2, "NA", clip_norm=1.0))
        'classes'
    """
    if schema.predicts is None:
        raise SchemaError(f"no head is built from a release of a {type(schema).__name__}; give a plan of a {USUAL}")
    return schema.predicts


def require_schema(schema: object, call: str | None = None) -> None:
    """Refuse what is not a schema: records put in its place, or the plan that holds it.

    Args:
        schema: what came.
        call: the call that was meant, for the message.

    Raises:
        SchemaError: with the call that was meant.

    Example:
        >>> ps.schema.require_schema(ps.ClassSchema(2, 2, "NA", clip_norm=1.0)) is None
        True
        >>> ps.schema.require_schema([[0.1, 0.2]], "measure(schema, X, y)")
        Traceback (most recent call last):
            ...
        privstats.errors.SchemaError: schema must be a ClassSchema or RidgeSchema, got list; call measure(schema, X,
        y)
    """
    kinds = tuple(KINDS.values())
    if isinstance(schema, kinds):
        return
    wrong = f"schema must be a {USUAL}, got {type(schema).__name__}"
    if isinstance(getattr(schema, "schema", None), kinds):  # a plan, which is built further up
        raise SchemaError(f"{wrong}; give plan.schema")
    raise SchemaError(f"{wrong}; call {call}" if call else f"{wrong}; give one of these")
