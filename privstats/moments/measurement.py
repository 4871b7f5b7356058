"""From records to exact moments, in one call.

Arrays, files, tensors or an iterable of batches go in; frozen whole-number moments come out, or an error.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from privstats.errors import ClippedWarning, DataError, RecordError, SchemaError, UnreadableRecordsWarning
from privstats.moments.arrays import is_list
from privstats.moments.base import Moments
from privstats.moments.code_rows import behind, columns_asked, levels_of
from privstats.moments.frames import Batches, batches_of, in_memory, named_target
from privstats.moments.grid import feature_grid
from privstats.moments.input_validation import check_features, dense
from privstats.moments.kept_rows import KeptRows
from privstats.moments.kinds import Kind, kind_of
from privstats.moments.readable import LeftOut
from privstats.moments.table import in_codes, unread_remark
from privstats.schema import Schema, require_schema
from privstats.schema.public_values import Published, Values

if TYPE_CHECKING:
    from privstats.moments.class_moments import ClassMoments
    from privstats.moments.persons import Clip, PersonMoments
    from privstats.moments.record_files import RecordFile
    from privstats.moments.ridge_moments import RidgeMoments
    from privstats.moments.table_parts import Asked
    from privstats.moments.within import WithinMoments
    from privstats.schema import ClassSchema, RecordSchema, RidgeSchema, WithinSchema

__all__ = [
    "Unreadable",
    "exact_moments",
    "measure",
    "persons_in",
    "quantize",
    "records_in",
    "remarks_on",
    "warn_if_clipped",
    "warn_if_empty",
]

Unreadable: TypeAlias = Literal["refuse", "leave out"]
"""What becomes of a record that cannot be read."""


@overload
def measure(
    schema: ClassSchema, X: Any, y: Any = None, *, unreadable: Unreadable = "refuse", progress: bool = False
) -> ClassMoments: ...
@overload
def measure(
    schema: RidgeSchema, X: Any, y: Any = None, *, unreadable: Unreadable = "refuse", progress: bool = False
) -> RidgeMoments: ...
@overload
def measure(
    schema: RecordSchema, X: Any, y: Any = None, *, unreadable: Unreadable = "refuse", progress: bool = False
) -> ClassMoments | RidgeMoments: ...
@overload
def measure(
    schema: WithinSchema, X: Any, y: Any = None, *, unreadable: Unreadable = "refuse", progress: bool = False
) -> WithinMoments: ...
@overload
def measure(
    schema: Schema,
    X: Any,
    y: Any = None,
    *,
    published: Published | None = None,
    unreadable: Unreadable = "refuse",
    persons: None = None,
    person_clip: None = None,
    progress: bool = False,
) -> Moments: ...
@overload
def measure(
    schema: Schema,
    X: Any,
    y: Any = None,
    *,
    published: Published | None = None,
    unreadable: Unreadable = "refuse",
    persons: Any,
    person_clip: Clip | None,
    progress: bool = False,
) -> PersonMoments: ...
def measure(
    schema: Schema,
    X: Any,
    y: Any = None,
    *,
    published: Published | None = None,
    unreadable: Unreadable = "refuse",
    persons: Any = None,
    person_clip: Clip | None = None,
    progress: bool = False,
) -> Moments:
    """Exact moments of records: transformed, clipped, rounded to the grid and summed in whole numbers.

    The result does not depend on the order of the records, on how they are cut into batches, or on the container they
    come in, and moments of parts add up to the moments of the whole. The memory needed beside the result does not grow
    with the records (docs/moments_numbers.md says why). Under a ``PartySchema`` parts of a party do not add, and its
    rows are held.

    Args:
        schema: the statistics and bounds.
        X: records ``(n, features)`` (features before the transform), of any real dtype: a numpy array or memory map,
            the path of a .npy file, a scipy sparse matrix, a torch tensor on any device, nested lists; or a table of
            pandas, polars (lazy ones too), Arrow or DuckDB, whose columns are put into the order of the plan's
            ``feature_names``. Without ``y``: an iterable of ``(X, y)`` batches of these, for example a generator or a
            torch ``DataLoader``.
        y: class labels ``(n,)``, whole numbers in 0..C-1; or regression targets ``(n,)`` or ``(n, targets)``. Beside a
            table also the name of its column, or with several targets a list of names. A relation of DuckDB, a lazy
            frame and a dataset of Arrow need names, and are read in batches.
        published: values that the schema reads (``schema.needs``): give ``plan.published``.
        unreadable: what becomes of a record with a gap, a value that is no number, a label that is no class or a value
            without a cell: ``"refuse"`` all records, or ``"leave out"`` that one and warn how many were. Give
            ``plan.unreadable``: under a promise a refusal would tell of that record.
        persons: under a promise per person an id for each row, ``(n,)``: texts or whole numbers below 2**53, each read
            by itself, ``007``, ``7`` and ``7.0`` alike. Rows without one are left out. No batches then.
        person_clip: how far a person counts: ``plan.person_clip``.
        progress: show a progress bar at once; else a terminal has one after two seconds.

    Guarantee:
        What a record adds follows from that record and the schema alone. Every value is read by itself, so neither the
        type that a container gives a column nor another record decides what it is
        (``privstats.transforms.reading``), and with ``unreadable="leave out"`` no record decides whether others count.

    Warns:
        ClippedWarning: the clip shortens more than nine rows in ten, or the bound more than one target in ten. The
            share in the sentence is exact: it is for the holder of the records.
        UnreadableRecordsWarning: so many records were left out; likewise.

    Returns:
        Moments; with ``persons`` :class:`~privstats.moments.PersonMoments`, in which no person weighs more than the
        plan's clip and what each adds follows from the rows of that person alone.

    Raises:
        DataError: records that do not fit the schema: columns are missing, arrays of another shape; one of ``persons``
            and ``person_clip`` without the other.
        RecordError: one that cannot be read; never with ``unreadable="leave out"``.
        PlanError: the published values are missing or do not fit the schema; no record is read then.
        SchemaError: ``schema`` is not a schema, for example because it was left out.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> X, y = np.array([[0.5, 0.0], [0.0, 0.25], [0.5, 0.5]]), np.array([0, 1, 0])
        >>> moments = ps.measure(schema, X, y)
        >>> moments.N.tolist(), moments.real().A.tolist()
        ([2, 1], [[1.0, 0.5], [0.0, 0.25]])
        >>> ps.measure(schema, X[:1], y[:1]) + ps.measure(schema, X[1:], y[1:]) == moments
        True
    """
    named: Any = {"persons": persons, "person_clip": person_clip}
    moments = exact_moments(schema, X, y, published=published, unreadable=unreadable, progress=progress, **named)
    warn_if_clipped(moments)
    return moments


def exact_moments(
    schema: Schema,
    X: Any,
    y: Any = None,
    *,
    published: Published | None = None,
    unreadable: Unreadable = "refuse",
    persons: Any = None,
    person_clip: Clip | None = None,
    progress: bool = False,
    kept: KeptRows | None = None,
) -> Moments:
    """:func:`measure` without its warning of the clip, for a caller that measures many times or warns once for all.

    Args:
        schema, X, y, published, unreadable, persons, person_clip, progress: as there.
        kept: what a caller that measures the same records in many rounds holds between them.

    Raises:
        DataError, PlanError, SchemaError: as there.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> parts = [ps.moments.exact_moments(schema, [[3.0, 4.0]], [label]) for label in (0, 1)]
        >>> parts[0].clip_report.fraction_clipped, (parts[0] + parts[1]).N.tolist()
        (1.0, [1, 1])
    """
    require_schema(schema, "measure(schema, X, y)")
    _check_persons(schema, persons, person_clip)
    kind = kind_of(schema)
    if kept is not None and kind.again is not None and persons is None:  # persons are measured one by one
        kind = replace(kind, measure=kind.again(kept))
    values = {} if published is None else published.read()
    schema.check_values(values)
    if unreadable not in ("refuse", "leave out"):
        raise DataError(f"unreadable must be 'refuse' or 'leave out', got {unreadable!r}; give plan.unreadable")
    unread = Counter[str]()

    def summed(X: Any, y: Any) -> tuple[Any, LeftOut]:
        X, y, more = in_codes(schema, X, y, refuse=unreadable == "refuse")
        found = _measured(kind, schema, X, y, values, unreadable, progress and persons is None)
        unread.update(more)
        return found

    records, y = _opened(kind, schema, X, y)
    moments: Any
    try:
        if persons is None or person_clip is None:
            (moments, left_out), unnamed = summed(records, y), 0
        else:
            from privstats.moments.persons import of_persons

            moments, left_out, unnamed = of_persons(records, y, persons, person_clip, summed, progress)
    finally:
        if isinstance(records, Batches):
            records.close()
    _tell_left_out(moments, left_out, unnamed)
    if unread:
        warnings.warn(unread_remark(schema, unread), UnreadableRecordsWarning, stacklevel=3)
    if published is not None and hasattr(moments, "published"):
        moments = replace(moments, published=published.sha256)
    return moments  # type: ignore[no-any-return]


def _check_persons(schema: Schema, persons: Any, clip: Clip | None) -> None:
    if (persons is None) != (clip is None):
        raise DataError("persons= and person_clip= go together: give an id for each row, and plan.person_clip")
    if clip is not None and (why := schema.refuses_persons(averaged=clip.averaged)):
        raise DataError(f"these are no sums over persons: {why}; leave persons out")


def _opened(kind: Kind, schema: Schema, X: Any, y: Any) -> tuple[Any, Any]:
    """X and y where y may name a column of a table, and X may be one that is not in memory."""
    if named := kind.named(schema):
        return in_memory(X, named), y
    several = getattr(getattr(schema, "rows", schema), "targets", 1) > 1
    if kind.in_batches(schema):
        batches = batches_of(X, y, columns_asked(schema), several=several)
        if batches is not None:
            return batches, None
    return named_target(X, y, several=several)


def records_in(file: RecordFile, schema: Schema, unreadable: Unreadable, *, whole: bool = False) -> tuple[Any, Any]:
    """X and y of a file as :func:`measure` takes them: batches without y, so that memory does not grow with the file.

    Where the schema needs all records at once, or ``whole`` is set, they are read at once; a schema that reads a table
    by name gets its columns, and no target.

    Raises:
        DataError: the file cannot be read, lacks a column of the plan, or is split where nothing is predicted.
        RecordError: one that cannot be read; never with ``unreadable="leave out"``.
    """
    kind = kind_of(schema)
    if named := kind.named(schema):
        return _columns_of(file, named), None
    if kind.in_batches(schema) and not whole:
        return _FileBatches(file, columns_asked(schema), unreadable), None
    records = file.read(columns_asked(schema), unreadable=unreadable, texts=True)
    return records.X, records.y


@dataclass(frozen=True, repr=False)
class _FileBatches:
    """The batches of a file; every pass reads it anew."""

    file: RecordFile
    asked: Asked
    unreadable: Unreadable

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        return self.file.batches(self.asked, unreadable=self.unreadable)


def persons_in(file: RecordFile, schema: Schema, unreadable: Unreadable) -> tuple[Any, Any, Any]:
    """X, y and the ids of a file whose column of ids is named, as :func:`measure` takes them: all records at once.

    Raises:
        DataError: no column of ids is named; and as for :func:`records_in`.
    """
    if file.persons is None:
        raise DataError(
            "the plan promises persons: say with --persons (in Python persons=) which column tells whose a record is"
        )
    if named := kind_of(schema).named(schema):
        columns = _columns_of(file, (*named, file.persons))
        return columns, None, columns.pop(file.persons)
    records = file.read(columns_asked(schema), unreadable=unreadable, texts=True)
    return records.X, records.y, records.persons


def _columns_of(file: RecordFile, named: tuple[str, ...]) -> dict[str, Any]:
    """The values of a table by the names of the schema, each as it stands."""
    if file.split is not None:
        raise DataError(f"{file.path} cannot be split: the plan predicts nothing that could be scored; leave it out")
    table = file.table(named)
    if table.left_out:
        warnings.warn(
            f"{table.left_out} lines of {file.path} have not one field for each name and are left out",
            UnreadableRecordsWarning,
            stacklevel=4,
        )
    return {name: table.values(name) for name in named}


def _measured(
    kind: Kind, schema: Schema, X: Any, y: Any, values: Mapping[str, Values], unreadable: Unreadable, progress: bool
) -> tuple[Any, LeftOut]:
    """The moments, and the records that were left out of them."""
    worded = levels_of(schema) is not None  # which numbers in their place must not pass for
    if unreadable == "refuse" and not worded:
        return kind.measure(schema, X, y, values, progress), LeftOut()
    lists = is_list(X) or is_list(y)  # whose shape one record may change
    if y is not None and not lists and not worded:  # nearly always every record can be read
        try:
            return kind.measure(schema, X, y, values, progress), LeftOut()
        except RecordError:
            pass
    moments, left_out = kind.readable(schema, X, y, values, progress)
    if left_out.records and unreadable == "refuse":
        raise RecordError(left_out.remark(none_left=moments.records == 0))
    return moments, left_out


def _tell_left_out(moments: Moments, left_out: LeftOut, unnamed: int) -> None:
    """Warn the holder of the records of those that are in no sum."""
    said = [left_out.remark(none_left=moments.records == 0)] if left_out.records else []
    if unnamed:
        said.append(
            f"{unnamed:,} of the records say of no person that they are theirs and are left out of every sum: an id is "
            "missing, or a number that is not whole or from 2**53 on, before which a letter helps. This number stays "
            "here"
        )
    for remark in said:
        warnings.warn(remark, UnreadableRecordsWarning, stacklevel=3)


def remarks_on(*moments: Moments) -> tuple[str, ...]:
    """What the holder of these moments' records should know of their clip or edges: the remarks of all together.

    Nothing of whole parties, whose rows may all be shortened to one length: no bound rests on that.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> [remark.partition(" of ")[0] for remark in ps.moments.remarks_on(
        ...     ps.moments.exact_moments(schema, [[3.0, 4.0]], [0])
        ... )]
        ['clip_norm shortens 100%']
    """
    clipped = [each for each in moments if each.schema.predicts != "parties"]
    found: list[str] = []
    for kind in ("clip_report", "edge_report"):
        reports = [report for each in clipped if (report := getattr(each, kind, None)) is not None]
        found += sum(reports[1:], reports[0]).remarks if reports else ()
    return tuple(found)


def warn_if_clipped(*moments: Moments, stacklevel: int = 3) -> None:
    """Tell the holder of the records, in one sentence for all parts, that the bounds cut most of them.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> short, long = (ps.moments.exact_moments(schema, [[size, 0.0]], [0]) for size in (0.5, 5.0))
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as said:
        ...     ps.moments.warn_if_clipped(short, long)
        ...
        >>> len(said)  # one of two rows is short enough
        0
    """
    for remark in remarks_on(*moments):
        warnings.warn(remark, ClippedWarning, stacklevel=stacklevel)


def warn_if_empty(*moments: Moments) -> None:
    """Warn that none of these moments holds a record: one party may have none, a whole cohort may not.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> import warnings
        >>> one, none = ps.measure(schema, np.ones((1, 2)), [0]), ps.measure(schema, np.ones((0, 2)), [])
        >>> with warnings.catch_warnings(record=True) as said:
        ...     ps.moments.warn_if_empty(one, none)
        ...
        >>> len(said)  # one of the two parties has a record
        0
    """
    if all(each.records == 0 for each in moments):
        warnings.warn(
            "there is no record in X, so every sum is 0 and a release is noise alone; check the loaded data",
            UnreadableRecordsWarning,
            stacklevel=3,
        )


def quantize(schema: Schema, X: Any) -> NDArray[np.int64]:
    """The grid vectors that :func:`measure` sums: int64 of shape ``(n, features)``, each of norm at most 2**grid_bits.

    Raises:
        DataError: rows that do not fit the schema.
        SchemaError: ``schema`` is not a schema.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, grid_bits=4)
        >>> ps.moments.quantize(schema, [[0.5, 0.0], [0.0, 3.0]]).tolist()
        [[8, 0], [0, 15]]
    """
    require_schema(schema, "quantize(schema, X)")
    if schema.appended:
        raise SchemaError(f"the vectors of a {type(schema).__name__} hold more than X; call measure(schema, X, y)")
    rows = check_features(schema, in_codes(schema, in_memory(X), 0, refuse=True)[0])
    raw = dense(rows[0 : rows.shape[0]])
    grid = feature_grid(schema)
    if schema.transform:
        raw = behind(schema, raw, grid)
    out = np.empty((len(raw), schema.features))
    grid.quantize(raw, out)
    return out.astype(np.int64)
