"""Declare columns with gaps, and map records to rows and gap patterns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, ReleaseError, SchemaError
from privstats.extend.records import has_order, in_memory, is_list, names_of_columns, read
from privstats.intake.columns import typed
from privstats.kinds import ClassSchema
from privstats.schema import Schema, narrowed
from privstats.transforms import Centre, ConstantFeature, Scale

CONSTANT = 2.0
"""Value of the constant column, in spreads of the other columns, before it is rounded to the grid."""

MAX_INCOMPLETE = 3
"""Maximum number of columns with gaps: every further one doubles the number of sums, each with its own noise."""

_COMPLETE = "no gap"


def schema_of(
    columns: Mapping[str, tuple[float, float]],
    incomplete: Sequence[str],
    *,
    clip_norm: float,
    grid_bits: int = 12,
) -> ClassSchema:
    """Return the schema of second moments by gap pattern.

    Args:
        columns: for each name, a public centre and a public spread above 0, about the mean and the standard deviation.
            The outcome is one of the columns.
        incomplete: names of the columns that may have gaps, one to three. A record with a gap in another column is
            unreadable.
        clip_norm: R, the norm to which a record's row is clipped, in spreads. The row holds (value - centre) / spread
            per column, 0 for a gap, and a constant of 2. With p independent normal columns, ``sqrt(4 + q)`` with q the
            .999 quantile of chi-squared with p degrees clips one record in a thousand; of correlated columns it clips
            more, such as 3 % of records with ten columns of correlation .5.
        grid_bits: as in :class:`~privstats.ClassSchema`.

    Guarantee:
        A record counts in one pattern, and its own gaps alone decide in which one. So the sensitivity is that of class
        statistics at norm R, whatever the number of patterns is (docs/proofs/records.md). A gap adds 0 to every
        product.

    Raises:
        SchemaError: no column or more than three with gaps, an unknown one, or a spread that is not above 0.

    Example:
        >>> from privstats.contrib.imputation import schema_of
        >>> schema = schema_of({"age": (60, 15), "crp": (2, 2), "days": (7, 4)}, ["crp"], clip_norm=4.5)
        >>> schema.class_names, schema.features
        (('no gap', 'crp missing'), 4)
    """
    pairs = list(columns.values()) if isinstance(columns, Mapping) else []
    if not pairs or not all(is_list(pair) and len(pair) == 2 for pair in pairs):
        raise SchemaError("columns must give each name a centre and a spread, such as {'age': (60, 15)}")
    names = tuple(columns)
    if not is_list(incomplete) or not incomplete or not _different(incomplete):
        raise SchemaError("incomplete must be a list of different column names, such as ['crp']")
    if len(incomplete) > MAX_INCOMPLETE:
        raise SchemaError(
            f"incomplete must name at most {MAX_INCOMPLETE} columns, got {len(incomplete)}: each one more doubles the "
            "number of sums; leave a column out, or measure records without gaps in it"
        )
    if unknown := [name for name in incomplete if name not in columns]:
        raise SchemaError(f"incomplete names {unknown[0]!r}, which is no column; the columns are {', '.join(names)}")
    if len(incomplete) == len(names):
        raise SchemaError("incomplete must leave a column without gaps: gaps are explained by it")
    centres, spreads = zip(*pairs, strict=True)
    return ClassSchema(
        classes=2 ** len(incomplete),
        features=len(names) + 1,
        statistics="NAS",
        clip_norm=clip_norm,
        grid_bits=grid_bits,
        transform=(Centre(centres), Scale(spreads), ConstantFeature(CONSTANT)),
        class_names=_patterns(tuple(incomplete)),
        feature_names=names,
    )


def by_gaps(schema: ClassSchema, table: Mapping[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.object_]]:
    """Return rows without gaps, ``(n, columns)``, and each record's gap pattern, ``(n,)``, for ``ps.measure``.

    Each value is read by itself, as ``ps.measure`` reads it (``intake.meaning``): NaN, infinities, None and words such
    as ``n/a`` are gaps. A gap of a declared column becomes the column's public centre, which is 0 in the sums. A gap of
    another column, and a text in any column, become NaN: that record is unreadable, and others count
    (``plan.unreadable``).

    Args:
        table: columns by name: a mapping of lists or arrays, or a frame of pandas, polars, Arrow or DuckDB.

    Guarantee:
        A record's row and pattern follow from that record and the schema alone.

    Raises:
        DataError: a column is missing, is masked, has several axes, or has another length.

    Example:
        >>> from privstats.contrib.imputation import by_gaps, schema_of
        >>> schema = schema_of({"age": (60, 15), "crp": (2, 2), "days": (7, 4)}, ["crp"], clip_norm=4.5)
        >>> rows, patterns = by_gaps(schema, {"age": [50, 70], "crp": [None, 4], "days": [3, 9]})
        >>> rows.tolist(), patterns.tolist()
        ([[50.0, 2.0, 3.0], [70.0, 4.0, 9.0]], ['crp missing', 'no gap'])
    """
    names, incomplete = layout_of(schema)
    held = in_memory(table, names)
    columns = [_read(held, name) for name in names]
    if len({len(numbers) for numbers, _ in columns}) > 1:
        raise DataError("the columns of the table have different lengths: pass one value per record in each")
    rows = np.stack([numbers for numbers, _ in columns], axis=1)
    code = np.zeros(len(rows), np.int64)
    centre = _centre(schema)
    for bit, place in enumerate(incomplete):
        gone = columns[place][1]
        code |= gone.astype(np.int64) << bit
        rows[gone, place] = centre[place]
    return rows, np.array(schema.class_names, np.object_)[code]


def layout_of(schema: Schema) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the columns' names, and the indices of those with gaps.

    Raises:
        ReleaseError: the schema is not from :func:`schema_of`.
    """
    refusal = ReleaseError("these are not sums by gap pattern: measure a schema from contrib.imputation.schema_of")
    classes = narrowed(schema, ClassSchema, refusal)
    names, patterns = classes.feature_names or (), classes.class_names or ()
    singles = [pattern.removesuffix(" missing") for pattern in (patterns[1 << bit] for bit in _bits(patterns))]
    if not singles or any(name not in names for name in singles) or _patterns(tuple(singles)) != patterns:
        raise refusal
    maps = classes.transform
    kinds = [type(map_) for map_ in maps]
    if kinds != [Centre, Scale, ConstantFeature] or maps[-1] != ConstantFeature(CONSTANT):
        raise refusal
    if "S" not in classes.statistics or classes.nonnegative:
        raise refusal
    return names, tuple(names.index(name) for name in singles)


def observed(columns: int, incomplete: Sequence[int]) -> NDArray[np.bool_]:
    """Return the observed columns of each pattern, ``(2^k, columns + 1)``; the last column is the constant."""
    shown = np.ones((2 ** len(incomplete), columns + 1), bool)
    for pattern, (bit, place) in itertools.product(range(len(shown)), enumerate(incomplete)):
        shown[pattern, place] = not pattern >> bit & 1
    return shown


def _different(names: Sequence[object]) -> bool:
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _patterns(incomplete: tuple[str, ...]) -> tuple[str, ...]:
    """Return the patterns' names; bit i of a pattern's index is a gap in column i."""
    found = [_COMPLETE]
    for pattern in range(1, 2 ** len(incomplete)):
        found.append(" and ".join(name for i, name in enumerate(incomplete) if pattern >> i & 1) + " missing")
    return tuple(found)


def _bits(patterns: Sequence[str]) -> range:
    return range(int(math.log2(len(patterns))) if patterns else 0)


def _centre(schema: ClassSchema) -> tuple[float, ...]:
    return next(map_.centre for map_ in schema.transform if isinstance(map_, Centre))


def _read(table: Mapping[str, Any], name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a column's numbers, NaN for other values, and which values are gaps; each value is read alone."""
    times = (names_of_columns(table) or []).count(name)
    if times != 1:
        found = f"has column {name!r} {times} times" if times else f"has no column {name!r}"
        raise DataError(f"the table {found}; pass all columns of the schema, each once, by name")
    values = typed(table[name])
    axes = getattr(values, "ndim", 1)
    if isinstance(values, str | bytes | Mapping | np.ma.MaskedArray) or axes != 1 or not has_order(values):
        raise DataError(
            f"column {name!r} must be one list, array or frame column with one value per record, not masked; write "
            f"NaN or None for a gap; got {_kind(values, axes)}"
        )
    readings = read(values)
    return readings.numbers, readings.missing


def _kind(values: object, axes: int) -> str:
    if isinstance(values, np.ma.MaskedArray):
        return "a masked array"
    return f"{type(values).__name__} with {axes} axes" if axes != 1 else type(values).__name__
