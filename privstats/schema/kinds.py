"""Look up kinds of schema, and narrow a schema to one; an unknown kind is refused, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from privstats.errors import SchemaError
from privstats.kinds import KINDS as _KINDS
from privstats.schema.base import Predicted, Schema

if TYPE_CHECKING:
    from privstats.schema import RecordSchema

USUAL = "ClassSchema or RidgeSchema"
"""The kinds that people build by hand, for messages; calls and courses build the others."""

_Any = TypeVar("_Any", bound=Schema)
_Row = TypeVar("_Row")

KINDS: Mapping[str, type[Schema]] = _KINDS
"""The class of each kind by its ``task`` in plan files; a class is loaded when it is first looked up."""


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


def of_records(schema: Schema) -> RecordSchema:
    """Return a ``ClassSchema`` or ``RidgeSchema`` unchanged, refuse others.

    Raises:
        SchemaError: another kind.

    Example:
        >>> ps.schema.of_records(ps.ClassSchema(2, 2, "NA", clip_norm=1.0)).task
        'classes'
        >>> ps.schema.of_records(ps.SitesSchema(2, clip_norm=8.0))
        Traceback (most recent call last):
            ...
        privstats.errors.SchemaError: this needs a ClassSchema or RidgeSchema, got SitesSchema; give a plan of
        records
    """
    if isinstance(schema, (KINDS["classes"], KINDS["ridge"])):
        records: Any = schema
        return records  # type: ignore[no-any-return]
    raise SchemaError(f"this needs a ClassSchema or RidgeSchema, got {type(schema).__name__}; give a plan of records")


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


def row_of(rows: Mapping[str, _Row], schema: Schema, what: str) -> _Row:
    """Return the entry of this schema's kind in a table by task; a subclass has none.

    Raises:
        SchemaError: the kind has no row.

    Example:
        >>> from privstats.schema import row_of
        >>> row_of({"mean": "a mean"}, ps.PartySchema(2, 2), "sum of rows")
        Traceback (most recent call last):
            ...
        privstats.errors.SchemaError: no sum of rows is available for a PartySchema; give a MeanSchema
    """
    if schema.task in rows and type(schema) is KINDS.get(schema.task):
        return rows[schema.task]
    *several, last = [KINDS[task].__name__ for task in rows]
    known = f"{', '.join(several)} or {last}" if several else last
    name = type(schema).__name__
    raise SchemaError(f"no {what} is available for {'an' if name[0] in 'AEIOU' else 'a'} {name}; give a {known}")


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
    return isinstance(schema, Schema) and type(schema) is KINDS.get(schema.task)
