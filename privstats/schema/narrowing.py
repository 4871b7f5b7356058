"""Recognise a schema, and narrow it to one kind; an unknown kind is refused, never guessed."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from privstats.errors import SchemaError
from privstats.schema.base import Predicted, Schema

USUAL = "ClassSchema or RidgeSchema"
"""The kinds that people build by hand, for messages; calls and courses build the others."""

ACCEPTED = f"a schema of privstats.kinds, such as a {USUAL}"
"""What a call that measures any kind accepts, for messages."""

_DOOR = "the entry points privstats.kinds"

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
        privstats.errors.SchemaError: schema must be a schema of privstats.kinds, such as a ClassSchema or RidgeSchema,
        got list; call measure(schema, X, y)
    """
    if is_known(schema):
        return
    # A Plan has this attribute; its module imports this one.
    if is_known(getattr(schema, "schema", None)):
        raise SchemaError(f"schema must be {ACCEPTED}, got {type(schema).__name__}; give plan.schema")
    raise SchemaError(unknown_schema(schema, f"call {call}" if call else "give such a schema"))


def unknown_schema(schema: object, remedy: str = "give one") -> str:
    """Return the sentence that refuses a value that :func:`is_known` does not know.

    Args:
        remedy: what to do where the value is no schema at all.
    """
    name = type(schema).__name__
    if not isinstance(schema, Schema):
        return f"schema must be {ACCEPTED}, got {name}; {remedy}"
    task = vars(type(schema)).get("task")
    if task is None:
        return f"{name} is a subclass of a kind of schema, and no kind; state a task, and announce it under {_DOOR}"
    return f"{name} is no registered kind of schema; a package announces it under {_DOOR} as {task!r:.80}"


def is_known(schema: object) -> bool:
    """Return whether a value is a known schema.

    Example:
        >>> from privstats.schema import is_known
        >>> is_known(ps.MeanSchema(4, 1.0)), is_known([[0.1, 0.2]])
        (True, False)
    """
    return isinstance(schema, Schema) and schema.is_registered
