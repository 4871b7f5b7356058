"""Look up the facts of a kind of schema; a missing fact is refused, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from privstats.errors import SchemaError
from privstats.kinds import KINDS as _ROWS
from privstats.schema.base import Adjacency, Predicted, Schema

if TYPE_CHECKING:
    from privstats.schema import RecordSchema

USUAL = "ClassSchema or RidgeSchema"
"""The kinds that people build by hand, for messages; calls and courses build the others."""

_Any = TypeVar("_Any", bound=Schema)
_Row = TypeVar("_Row")


@dataclass(frozen=True)
class Kind:
    """Facts of one kind of schema, including how far one record moves its sums.

    Attributes:
        moments, units: containers of exact and real-unit sums.
        measure: computes moments from schema, opened records, published values.
        square: computes mu^2 of one record from schema, weights, adjacency; None: no promise.
        proved: letters that ``square`` covers; no others may be released under a promise.
        worst: builds two data sets, at most ``square`` apart; None: no certificate.
        client_square: computes mu^2 of one client; None: by ``dp.group_mu``.
        unsigned: letters with entries that are never negative.
        nearer: whether ``square`` under replace-one may be below ``dp.apart``'s bound, which follows from lengths
            alone.
        terms: each record's contribution, from what ``measure`` takes; None: no promise per person.
        adder: adds records' own terms; None: no sum over records.

    Example:
        >>> ps.moments.kind_of(ps.SitesSchema(2, clip_norm=8.0)).proved  # the statistics with a proved sensitivity
        'NQ'
    """

    schema: type[Schema]
    moments: Any
    units: Any
    measure: Callable[..., Any]
    square: Callable[[Any, Mapping[str, float], Adjacency], float] | None = None
    proved: str = ""
    worst: Any = None
    client_square: Callable[[Any, Mapping[str, float], Adjacency, float], float] | None = None
    unsigned: Callable[[Any], str] = lambda _: ""
    nearer: bool = False
    terms: Callable[..., Any] | None = None
    adder: Callable[[Any], Any] | None = None

    @property
    def exact(self) -> Any:
        """Constructor of exact sums."""
        return self.moments.of_sums

    @property
    def real(self) -> Any:
        """Constructor of real-unit sums."""
        return self.units.of_sums


class _Schemas(Mapping[str, type[Schema]]):
    def __getitem__(self, task: str) -> type[Schema]:
        return _ROWS[task].schema

    def __contains__(self, task: object) -> bool:
        return task in _ROWS

    def __iter__(self) -> Iterator[str]:
        return iter(_ROWS)

    def __len__(self) -> int:
        return len(_ROWS)


KINDS: Mapping[str, type[Schema]] = _Schemas()
"""The class of each kind by its ``task`` in plan files; a class is loaded when it is first looked up."""


def kind_of(schema: Schema) -> Kind:
    """Return a schema's kind.

    Example:
        >>> schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
        >>> ps.moments.kind_of(schema).unsigned(schema)
        'Tq'
    """
    kind = _ROWS.get(schema.task)
    if kind is None or type(schema) is not kind.schema:
        raise SchemaError(f"no code forms the sums of a {type(schema).__name__}; measure a schema of another kind")
    return kind


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
