"""Measure exact moments of records in one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, TypeVar, overload

from privstats.errors import DataError, PrivstatsError, SchemaError, UnreadableRecordsWarning
from privstats.intake.declared.unlisted import Lost, all_lost
from privstats.intake.tables import Several
from privstats.moments.base import Forms, Moments, forming
from privstats.moments.clip_report import warn_if_clipped, warn_of_excluded
from privstats.moments.record_sums import RecordTerms
from privstats.python_values import unstated
from privstats.records.opened import Reader
from privstats.records.readable import LeftOut
from privstats.records.table import lost_remark
from privstats.schema import Schema, require_schema
from privstats.system import keep_freed_memory
from privstats.transforms.base import is_ours

if TYPE_CHECKING:
    from privstats.intake.accepted import ColumnLike, RecordsLike, TargetsLike
    from privstats.moments.persons import Clip, PersonMoments
    from privstats.records.opened import Opened
    from privstats.records.reading import Unreadable
    from privstats.records.row_cache import RowCache
    from privstats.schema.public_values import Published, Values

_Sums = TypeVar("_Sums", bound=Moments)
_Formed = TypeVar("_Formed")


@overload
def measure(
    schema: Forms[_Sums],
    X: RecordsLike,
    y: TargetsLike | None = None,
    *,
    published: Published | None = None,
    unreadable: Unreadable = "refuse",
    persons: None = None,
    person_clip: None = None,
    progress: bool = False,
) -> _Sums: ...
@overload
def measure(
    schema: Schema,
    X: RecordsLike,
    y: TargetsLike | None = None,
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
    X: RecordsLike,
    y: TargetsLike | None = None,
    *,
    published: Published | None = None,
    unreadable: Unreadable = "refuse",
    persons: ColumnLike,
    person_clip: Clip | None,
    progress: bool = False,
) -> PersonMoments: ...
def measure(
    schema: Schema | Forms[Moments],
    X: RecordsLike,
    y: TargetsLike | None = None,
    *,
    published: Published | None = None,
    unreadable: Unreadable = "refuse",
    persons: ColumnLike | None = None,
    person_clip: Clip | None = None,
    progress: bool = False,
) -> Moments:
    """Measure exact moments of records: transformed, clipped, rounded to the grid and summed in integers.

    The result does not depend on the records' order, batches or container. Without ``persons``, moments of parts add
    up to the moments of all records. Exceptions are ``SitesSchema``, ``WithinSchema``, ``GaussianSchema``,
    ``PartySchema`` and ``PartyUpdateSchema``: their sums depend on all records of a party. For numeric arrays, files
    and batches, memory beyond the result does not grow with the records. Exceptions: ``persons``, and schemas of
    parties, hazards, Gaussians, and counts without ``Cells``.

    Args:
        X: records ``(n, columns)`` before the transform, of any real dtype.
            - A numpy array or memory map, a .npy path, scipy sparse matrix, nested lists, a torch tensor on any device.
            - The path of a table in files (docs/parts.md, Which files), with the name of its target as ``y``.
            - A :class:`~privstats.moments.RecordFile`, which states how a CSV file is written, and may name the target.
            - A table of pandas, polars, Arrow or DuckDB, put into the order of ``feature_names``.
            - Without ``y``, an iterable of ``(X, y)`` batches, such as a torch ``DataLoader``.
        y: class labels ``(n,)``, 0..C-1 or ``class_names``; or regression targets ``(n,)`` or ``(n, targets)``. For a
            table also its column's name, or a list of names. A DuckDB relation, a lazy frame and an Arrow dataset need
            names, and are read in batches.
        published: values that the schema reads (``schema.needs``): pass ``plan.published``.
        unreadable: treatment of a record that cannot be read: a gap or a text where a number belongs, an unknown label,
            or a value without a cell. Declared columns (:class:`~privstats.Cells`) have a cell for gaps. Pass
            ``plan.unreadable``: under a promise a refusal would reveal that record.
            - ``"refuse"`` raises RecordError.
            - ``"leave out"`` excludes that record and warns.
        persons: under a promise per person each row's id, ``(n,)``: texts or integers below 2**53; ``007``, ``7`` and
            ``7.0`` are alike. Rows without an id are excluded, and rows whose id names no person, such as ``12.1`` or
            ``2020-01-02`` (``intake.person_ids``). Not with batches.
        person_clip: one person's limit, ``plan.person_clip``.
        progress: show a progress bar at once; otherwise after two seconds on a terminal.

    Guarantee:
        Without ``persons``, and under schemas whose moments of parts add up, a record's contribution follows from that
        record, the schema and ``published`` alone. Every value is read by itself (``intake.meaning``): neither a
        column's type nor another record changes its meaning.
        With ``unreadable="leave out"`` no record decides whether others count.

    Warns:
        ClippedWarning: one of four. The exact share is for the data holder.
            - ``clip_norm`` shortens more than nine rows in ten.
            - At least 10 rows, .1 % to half of all, have one length beyond two clip norms and apart from the others, as
              rows with a gap code such as 999 have.
            - ``target_bound`` shortens more than one target in ten.
            - More than one value in ten of a ``Bins`` with ``open="both"`` is beyond its edges.
        UnreadableRecordsWarning: records or values are unreadable. The number is for the data holder.

    Returns:
        Moments; with ``persons`` :class:`~privstats.moments.PersonMoments`. There no person weighs more than the plan's
        clip, and each contribution follows from that person's rows and public values alone.

    Raises:
        DataError: records do not fit the schema, or only one of ``persons`` and ``person_clip`` is given.
        RecordError: a record cannot be read; never with ``unreadable="leave out"``.
        PlanError: published values are missing or do not fit; no record is read then.

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
    kind: Any = schema
    moments = exact_moments(kind, X, y, published=published, unreadable=unreadable, progress=progress, **named)
    warn_if_clipped(moments)
    return moments


def exact_moments(
    schema: Schema,
    X: RecordsLike,
    y: TargetsLike | None = None,
    *,
    published: Published | None = None,
    unreadable: Unreadable = "refuse",
    persons: ColumnLike | None = None,
    person_clip: Clip | None = None,
    progress: bool = False,
    cache: RowCache | None = None,
) -> Moments:
    """Measure as :func:`measure` does, without its :class:`ClippedWarning`.

    Args:
        cache: mapped rows, for rounds of the same records.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> parts = [ps.moments.exact_moments(schema, [[3.0, 4.0]], [label]) for label in (0, 1)]
        >>> parts[0].clip_report.fraction_clipped, (parts[0] + parts[1]).N.tolist()
        (1.0, [1, 1])
    """
    named: Any = {"persons": persons, "person_clip": person_clip, "progress": progress, "cache": cache}
    moments, notes = noted_moments(schema, X, y, published=published, unreadable=unreadable, **named)
    warn_of_excluded(moments, notes.left_out, notes.unnamed)
    if remark := notes.remark(schema):
        warnings.warn(remark, UnreadableRecordsWarning, stacklevel=3)
    return moments


@dataclass(frozen=True, repr=False)
class Notes:
    """Values and records that were not read, for the data holder's warning; notes on parts add up.

    Attributes:
        unnamed: number of records whose id names no person.
        lost: values in no cell of their own, by column.

    Example:
        >>> from privstats.moments.measurement import Notes
        >>> (Notes(unnamed=2) + Notes(unnamed=3)).unnamed
        5
    """

    left_out: LeftOut = field(default_factory=LeftOut)
    unnamed: int = 0
    lost: Mapping[str, Lost] = field(default_factory=dict)

    def __add__(self, other: Notes) -> Notes:
        left_out = self.left_out + other.left_out
        return Notes(left_out, self.unnamed + other.unnamed, all_lost(self.lost, other.lost))

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers alone, as plain values without a text of a record; :meth:`of_numbers` reads them."""
        return {
            "excluded": [(*key, number) for key, number in self.left_out.why.items()],
            "counts": (self.left_out.records, self.left_out.read, self.unnamed),
            "lost": {name: (each.unread, each.other) for name, each in self.lost.items()},
        }

    @classmethod
    def of_numbers(
        cls,
        excluded: Iterable[tuple[str, str, int]],
        counts: tuple[int, int, int],
        lost: Mapping[str, tuple[int, int]],
    ) -> Notes:
        """Return the notes of :attr:`numbers`.

        Example:
            >>> from privstats.moments.measurement import Notes
            >>> Notes.of_numbers(**Notes(unnamed=2).numbers) == Notes(unnamed=2)
            True
        """
        records, read, unnamed = counts
        why = {(name, what): number for name, what, number in excluded}
        return cls(LeftOut(records, why, read), unnamed, {name: Lost(*each) for name, each in lost.items()})

    def remark(self, schema: Schema) -> str:
        """Return the warning about values in no cell of their own, or ""."""
        return lost_remark(schema.reading.declared, self.lost) if self.lost else ""

    def warn(self, moments: Moments, *, stacklevel: int = 3) -> None:
        """Warn the data holder once of all parts.

        Args:
            moments: the sums of all parts.
        """
        warn_of_excluded(moments, self.left_out, self.unnamed, stacklevel=stacklevel + 1)
        if remark := self.remark(moments.schema):
            warnings.warn(remark, UnreadableRecordsWarning, stacklevel=stacklevel)


def noted_moments(
    schema: Schema,
    X: Any,
    y: Any = None,
    *,
    published: Published | None = None,
    unreadable: Unreadable = "refuse",
    persons: Any = None,
    person_clip: Clip | None = None,
    progress: bool = False,
    cache: RowCache | None = None,
) -> tuple[Moments, Notes]:
    """Measure as :func:`exact_moments` does, and return what was not read in place of a warning.

    Example:
        >>> from privstats.moments.measurement import noted_moments
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> moments, notes = noted_moments(schema, [[0.5, None], [0.0, 0.5]], [0, 1], unreadable="leave out")
        >>> moments.records, notes.left_out.records
        (1, 1)
    """
    require_schema(schema, "measure(schema, X, y)")
    keep_freed_memory()
    _check_persons(schema, persons, person_clip)
    forms = forming(schema)
    _check_others(schema)
    values = {} if published is None else published.read()
    schema.check_values(values)
    if unreadable not in ("refuse", "leave out"):
        raise DataError(f"unreadable must be 'refuse' or 'leave out', got {unreadable!r}; give plan.unreadable")
    # Batches of persons use the same tile indices, so each batch would evict the previous batch's tiles.
    shown, stored = (progress, cache) if persons is None else (False, None)

    # Persons are read in another order than their rows.
    reader = Reader(
        schema.reading,
        unreadable == "refuse",
        shown,
        stored,
        positions=persons is None,
        checked=schema.checks_records,
    )

    def summed(X: RecordsLike, y: TargetsLike | None) -> tuple[Moments, LeftOut]:
        formed = [reader.formed(_named(schema, forms.moments_of, values), *table) for table in _tables(X, y)]
        return reduce(add, (each.result for each in formed)), reduce(add, (each.left_out for each in formed))

    def by_record(X: RecordsLike, y: TargetsLike | None) -> tuple[RecordTerms, LeftOut]:
        formed = [reader.formed(_named(schema, forms.terms_of, values), *table, marked=True) for table in _tables(X, y)]
        terms = [each.result if each.marks is None else each.result.among(each.marks) for each in formed]
        return RecordTerms.joined(terms), reduce(add, (each.left_out for each in formed))

    moments: Any
    with ExitStack() as closing:
        if not isinstance(X, Several):
            X, y = reader.settled(X, y, closing)
        if persons is None or person_clip is None:
            (moments, left_out), unnamed = summed(X, y), 0
        else:
            from privstats.moments.persons import of_persons

            moments, left_out, unnamed = of_persons(X, y, persons, person_clip, summed, by_record, progress)
    if published is not None and hasattr(moments, "published"):
        moments = replace(moments, published=published.sha256)
    return moments, Notes(left_out, unnamed, reader.lost)


def _named(
    schema: Schema, form: Callable[[Opened, Mapping[str, Values]], _Formed], values: Mapping[str, Values]
) -> Callable[[Opened], _Formed]:
    """Return what forms sums of opened records; an error of another package's code is named without its text."""

    def formed(records: Opened) -> _Formed:
        try:
            return form(records, values)
        except PrivstatsError:
            raise
        except Exception as fault:
            if schema.checks_records:
                raise
            # The text of an error may quote a record.
            name, error = type(schema).__name__, type(fault).__name__
            raise DataError(f"no sums of a {name}: its package raised {error}; report it to its authors") from None

    return formed


def _tables(X: Any, y: Any) -> Sequence[tuple[Any, Any]]:
    return X.tables if isinstance(X, Several) else [(X, y)]


def _check_others(schema: Schema) -> None:
    """Refuse what another package's maps and kinds hold beside their fields, such as what a fit of records stored."""
    if not schema.checks_records and schema.reading.columns:
        raise SchemaError(
            f"a {type(schema).__name__} reads columns by name, which kinds of other packages do not; give X as rows"
        )
    others = [each for each in schema.transform if not is_ours(each)]
    for each in others if schema.checks_records else [schema, *others]:
        if names := unstated(each):
            raise SchemaError(
                f"{type(each).__name__} holds {', '.join(names)}, which no plan states; make it a field, or omit it"
            )


def _check_persons(schema: Schema, persons: ColumnLike | None, clip: Clip | None) -> None:
    if (persons is None) != (clip is None):
        raise DataError("persons= and person_clip= go together: give an id for each row, and plan.person_clip")
    if clip is not None and not hasattr(clip, "averaged"):
        raise DataError(f"person_clip must be plan.person_clip, got {type(clip).__name__}")
    if clip is not None and (why := schema.refuses_persons(averaged=clip.averaged)):
        raise DataError(f"this schema cannot bound a person: {why}; omit persons")
