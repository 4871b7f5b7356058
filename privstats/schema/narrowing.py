"""Recognise a schema, and narrow it to one kind; an unknown kind is refused, never guessed."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from privstats.errors import SchemaError
from privstats.schema.base import Predicted, Schema

USUAL = "ClassSchema or RidgeSchema"
"""The kinds that people build by hand, for messages; calls and courses build the others."""

_Any = TypeVar("_Any", bound=Schema)


def bare(schema: _Any) -> _Any:
    """Return the schema for transformed rows, with labels 0..C-1 and no names.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, class_names=("ill", "well"))
        >>> ps.schema.bare(schema) == ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        True
    """
    known: Any = schema  # every kind is a dataclass
    names = {field.name for field in fields(known)} & {"class_names", "feature_names"}
    plain: _Any = replace(known, transform=(), **dict.fromkeys(names))
    return plain


def predicted(schema: Schema) -> Predicted:
    """Return what models from this schema's release predict.

    Raises:
        SchemaError: no head uses such a release.

    Example:
        >>> from privstats.schema import predicted
        >>> predicted(ps.ClassSchema(2, 2, "NA", clip_norm=1.0))
        'classes'
    """
    if schema.predicts is None:
        raise SchemaError(f"no head is built from a release of a {type(schema).__name__}; give a plan of a {USUAL}")
    return schema.predicts


def narrowed(schema: Schema, kind: type[_Any], refusal: Exception) -> _Any:
    """Return the schema if it is of this kind, else raise ``refusal``.

    Example:
        >>> from privstats.schema import narrowed
        >>> narrowed(ps.MeanSchema(4, 1.0), ps.MeanSchema, ps.errors.SchemaError("give a MeanSchema")).task
        'mean'
    """
    if isinstance(schema, kind):
        return schema
    raise refusal


def require_schema(schema: object, call: str | None = None) -> None:
    """Refuse a value that is no schema.

    Raises:
        SchemaError: no schema; the message names ``call``.

    Example:
        >>> ps.schema.require_schema(ps.ClassSchema(2, 2, "NA", clip_norm=1.0)) is None
        True
        >>> ps.schema.require_schema([[0.1, 0.2]], "measure(schema, X, y)")
        Traceback (most recent call last):
            ...
        privstats.errors.SchemaError: schema must be a ClassSchema or RidgeSchema, got list; call measure(schema, X,
        y)
    """
    if is_known(schema):
        return
    wrong = f"schema must be a {USUAL}, got {type(schema).__name__}"
    # A Plan has this attribute; its module imports this one.
    if is_known(getattr(schema, "schema", None)):
        raise SchemaError(f"{wrong}; give plan.schema")
    raise SchemaError(f"{wrong}; call {call}" if call else f"{wrong}; give such a schema")


def is_known(schema: object) -> bool:
    """Return whether a value is a known schema.

    Example:
        >>> from privstats.schema import is_known
        >>> is_known(ps.MeanSchema(4, 1.0)), is_known([[0.1, 0.2]])
        (True, False)
    """
    return isinstance(schema, Schema) and schema.is_registered
