"""The kinds of schemas, one row each, and the checks that a value is a schema.

A kind that is listed here still needs its row in the tables of other rooms (CONTRIBUTING lists them); a module that
lacks one refuses the kind and never guesses. Plan, layout, session, release and simulation ask the base class and the
tables only; a kind that lacks its sums or its sensitivity is refused there. What assumes records as they stand says
so by its type (``RecordSchema``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeAlias, TypeVar

from privstats.errors import SchemaError
from privstats.schema.base import Predicted, Schema
from privstats.schema.classes import ClassSchema
from privstats.schema.ridge import RidgeSchema
from privstats.tables import LazyRows

__all__ = [
    "KINDS",
    "USUAL",
    "RecordSchema",
    "bare",
    "is_known",
    "narrowed",
    "of_records",
    "predicted",
    "require_schema",
    "row_of",
]

RecordSchema: TypeAlias = ClassSchema | RidgeSchema
"""The kinds of plain sums over records: no published map before them, no function of one party's sums after."""

KINDS: Mapping[str, type[Schema]] = LazyRows(
    {
        "classes": "privstats.schema.classes:ClassSchema",
        "ridge": "privstats.schema.ridge:RidgeSchema",
        "counts": "privstats.schema.counts:CountSchema",
        "scoring": "privstats.schema.scoring:ScoringSchema",
        "sites": "privstats.schema.sites:SitesSchema",
        "score": "privstats.schema.score:ScoreSchema",
        "hazard": "privstats.schema.hazard:HazardSchema",
        "effect": "privstats.schema.effect:EffectSchema",
        "gradients": "privstats.schema.gradients:GradientSchema",
        "calibration": "privstats.schema.calibration:CalibrationSchema",
        "mean": "privstats.schema.mean:MeanSchema",
        "within": "privstats.schema.within:WithinSchema",
        "gaussians": "privstats.schema.gaussians:GaussianSchema",
        "party-softmax": "privstats.schema.party:PartySchema",
        "party-update": "privstats.schema.party:PartyUpdateSchema",
    }
)
"""By the word for the kind in plan files, its ``task``; loaded by the first schema of it."""

USUAL = "ClassSchema or RidgeSchema"
"""The kinds that people build by hand, for messages; calls and courses build the others."""

_Any = TypeVar("_Any", bound=Schema)
_Row = TypeVar("_Row")


def bare(schema: _Any) -> _Any:
    """The same moments, for rows that the public transform has already mapped, labels 0..C-1 and no names.

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
    """Return the schema, if it measures plain sums over records.

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
    """The outcome that models from a release of this schema predict.

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


def row_of(rows: Mapping[str, _Row], schema: Schema, what: str) -> _Row:
    """The row of a schema's kind in a table by kind; one kind never stands for another, a subclass neither.

    Args:
        rows: by the kind's task.
        schema: of any kind.
        what: what the row holds, for the message.

    Raises:
        SchemaError: the kind has no row; it is named.

    Example:
        >>> from privstats.schema import row_of
        >>> row_of({"mean": "a mean"}, ps.PartySchema(2, 2), "sum of rows")
        Traceback (most recent call last):
            ...
        privstats.errors.SchemaError: no sum of rows is written for a PartySchema; give a MeanSchema
    """
    if schema.task in rows and type(schema) is KINDS.get(schema.task):
        return rows[schema.task]
    *several, last = [KINDS[task].__name__ for task in rows]
    known = f"{', '.join(several)} or {last}" if several else last
    raise SchemaError(f"no {what} is written for a {type(schema).__name__}; give a {known}")


def narrowed(schema: Schema, kind: type[_Any], refusal: Exception) -> _Any:
    """The schema, where it is of the one kind that its reader is written for.

    Args:
        schema: of any kind.
        kind: the reader's.
        refusal: what is raised for another kind; it names the kind.

    Example:
        >>> from privstats.schema import narrowed
        >>> narrowed(ps.MeanSchema(4, 1.0), ps.MeanSchema, ps.errors.SchemaError("give a MeanSchema")).task
        'mean'
    """
    if isinstance(schema, kind):
        return schema
    raise refusal


def require_schema(schema: object, call: str | None = None) -> None:
    """Refuse a value that is not a schema, such as records, or the plan that holds it.

    Args:
        schema: the value to check.
        call: the intended call, for the message.

    Raises:
        SchemaError: with the intended call.

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
    if is_known(getattr(schema, "schema", None)):  # a plan, which is built further up
        raise SchemaError(f"{wrong}; give plan.schema")
    raise SchemaError(f"{wrong}; call {call}" if call else f"{wrong}; give one of these")


def is_known(schema: object) -> bool:
    """Whether a value is a schema of a kind that has a row here.

    Example:
        >>> from privstats.schema import is_known
        >>> is_known(ps.MeanSchema(4, 1.0)), is_known([[0.1, 0.2]])
        (True, False)
    """
    return isinstance(schema, Schema) and isinstance(schema, KINDS.get(schema.task, ()))
