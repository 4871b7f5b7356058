"""Look up what a table states of a schema's kind, and narrow a schema to kinds whose sums are over records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from privstats.errors import SchemaError
from privstats.kinds.registry import KINDS, is_registered
from privstats.schema.base import Schema

if TYPE_CHECKING:
    from privstats.kinds.ridge import RecordSchema

_Row = TypeVar("_Row")


def of_records(schema: Schema) -> RecordSchema:
    """Return a ``ClassSchema`` or ``RidgeSchema`` unchanged, refuse others.

    Raises:
        SchemaError: another kind.

    Example:
        >>> ps.kinds.of_records(ps.ClassSchema(2, 2, "NA", clip_norm=1.0)).task
        'classes'
        >>> ps.kinds.of_records(ps.SitesSchema(2, clip_norm=8.0))
        Traceback (most recent call last):
            ...
        privstats.errors.SchemaError: this needs a ClassSchema or RidgeSchema, got SitesSchema; give a plan of
        records
    """
    if isinstance(schema, (KINDS["classes"], KINDS["ridge"])):
        records: Any = schema
        return records  # type: ignore[no-any-return]
    raise SchemaError(f"this needs a ClassSchema or RidgeSchema, got {type(schema).__name__}; give a plan of records")


def row_of(rows: Mapping[type[Any], _Row], schema: Schema, what: str) -> _Row:
    """Return the entry of this schema's kind in a table by class; a subclass has none.

    Raises:
        SchemaError: the kind has no row.

    Example:
        >>> from privstats.kinds import row_of
        >>> row_of({ps.MeanSchema: "a mean"}, ps.PartySchema(2, 2), "sum of rows")
        Traceback (most recent call last):
            ...
        privstats.errors.SchemaError: no sum of rows is available for a PartySchema; give a MeanSchema
    """
    if type(schema) in rows and is_registered(schema):
        return rows[type(schema)]
    *several, last = [kind.__name__ for kind in rows]
    known = f"{', '.join(several)} or {last}" if several else last
    name = type(schema).__name__
    raise SchemaError(f"no {what} is available for {'an' if name[0] in 'AEIOU' else 'a'} {name}; give a {known}")
