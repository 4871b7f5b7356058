"""Sum over persons with several rows each; no person counts for more than a public number of records.

Ids and numbers of persons stay in this process.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, UnreadableRecordsWarning
from privstats.intake.accepted import ColumnLike, RecordsLike, TargetsLike
from privstats.intake.tables import Codes, is_list, table_of
from privstats.moments.base import Moments, forming, require_room
from privstats.moments.clip_report import ClipReport
from privstats.moments.person_sums import ManyClip, PersonSums, rows_at_once
from privstats.moments.record_sums import RecordTerms
from privstats.progress import progress_bar
from privstats.records.readable import LeftOut
from privstats.schema import Schema
from privstats.schema.base import Statistic

if TYPE_CHECKING:
    from privstats.moments.edge_report import EdgeReport

_BITS = 63  # bits of a total
_WINDOW_ROWS, _WINDOW_ENTRIES = 1 << 14, 1 << 21  # rows read and mapped at once

MeasureRows: TypeAlias = Callable[[RecordsLike, TargetsLike | None], tuple[Moments, LeftOut]]
"""Maps X and y to their moments and the excluded records."""
TermsOfRows: TypeAlias = Callable[[RecordsLike, TargetsLike | None], tuple[RecordTerms, LeftOut]]
"""Maps X and y to each record's contribution and the excluded records."""


class Clip(ManyClip, Protocol):
    """The bound on one person's contribution: ``plan.person_clip``."""

    @property
    def records(self) -> float:
        """Maximum rows for which a person counts in full."""

    @property
    def averaged(self) -> bool:
        """Whether a person adds the rows' average and counts as one record."""

    def clipped(self, *parts: Moments) -> tuple[dict[str, Any], bool]:
        """Return one person's contribution by letter in wire steps, and whether it is clipped."""


@dataclass(frozen=True, eq=False, repr=False)
class PersonMoments(Moments):
    """Exact sums in which no person has more than the norm of ``clip.records`` records, in wire steps, int64.

    A person's rows are averaged, or clipped together to that norm. Counts can be fractions. A person at two parties
    counts at both.

    Attributes:
        arrays: by letter, blocks first, in wire steps.
        clip: ``plan.person_clip``.
        records, counted: rows in the sums, and the records that they count as in a plan's limits. In these limits a
            person with more than ``clip.records`` rows counts as at most ``clip.most_records``. So one person changes
            ``counted`` by at most a public number. Default: ``records``. Private and never sent, as are all fields
            below but ``published``.
        shrunk, parties: number of clipped persons, and of added parties.
        persons: number of persons, also of those without a readable row; None: unknown.

    Example:
        >>> privacy = ps.Privacy(model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5,
        ...     max_records_per_person=2, person_clip=2)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 3, 100), privacy=privacy)
        >>> X, y, ids = np.ones((5, 2)), [0, 0, 0, 0, 1], ["anna", "anna", "anna", "anna", "ben"]
        >>> moments = ps.measure(plan.schema, X, y, persons=ids, person_clip=plan.person_clip)
        >>> moments.real().N.round(3).tolist()  # four rows of one person weigh two
        [2.0, 1.0]
    """

    in_wire_steps: ClassVar[bool] = True
    shown: ClassVar[tuple[str, ...]] = ("statistics", "features")

    schema: Schema
    arrays: Mapping[str, NDArray[np.int64]]
    clip: Clip
    records: int | None = None
    counted: int | None = None
    shrunk: int = 0
    parties: int = 1
    published: str = ""
    persons: int | None = None
    clip_report: ClipReport | None = field(default=None, compare=False)
    edge_report: EdgeReport | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        refusal = "sums over persons under this schema have arrays of {}; build them with measure()"
        object.__setattr__(self, "arrays", self.checked_arrays(self.arrays, refusal))
        object.__setattr__(self, "counted", self.records if self.counted is None else self.counted)

    def sums(self, row: Statistic) -> NDArray[np.int64]:
        """Return one statistic's exact sums in wire steps, blocks first."""
        return self.arrays[row.letter]

    def real(self) -> Any:
        """Return these sums in real units, float64."""
        return forming(self.schema).real(self.wire())

    def __add__(self, other: PersonMoments) -> PersonMoments:
        """Add two parties' sums; raises as :meth:`Moments.__add__`, and for another clip."""
        if not isinstance(other, PersonMoments):
            return NotImplemented
        if (other.schema, other.clip, other.published) != (self.schema, self.clip, self.published):
            raise DataError("sums over persons under different plans cannot be added; measure both with one plan")
        records, counted = _both(self.records, other.records), _both(self.counted, other.counted)
        self._require_room(other)
        arrays = {letter: array + other.arrays[letter] for letter, array in self.arrays.items()}
        reports = {name: _both(getattr(self, name), getattr(other, name)) for name in ("clip_report", "edge_report")}
        persons = _both(self.persons, other.persons)
        rest = self.shrunk + other.shrunk, self.parties + other.parties, self.published, persons
        return PersonMoments(self.schema, arrays, self.clip, records, counted, *rest, **reports)


def of_persons(
    X: RecordsLike,
    y: TargetsLike | None,
    persons: ColumnLike,
    clip: Clip,
    summed: MeasureRows,
    by_record: TermsOfRows,
    progress: bool,
) -> tuple[PersonMoments, LeftOut, int]:
    """Return the sums over persons, the unreadable records, and the number without an id (and not ambiguous).

    Persons of at most ``clip.records`` rows are added as records: their weight cannot exceed the clip.
    """
    from privstats.intake.person_ids import LIKE_ANOTHER, persons_of  # only plans of persons need it
    from privstats.intake.shared_ids import id_remarks

    if isinstance(persons, str | bytes):
        raise DataError(f"persons must be an id for each row, got a text: give table[{str(persons)!r:.40}]")
    if y is None and is_list(X):
        raise DataError("batches do not show which person a row belongs to: give all of X and y, and persons")
    codes = persons_of(persons)
    if any(table_of(each).records != len(codes) for each in (X, y) if each is not None):
        raise DataError(f"persons has {len(codes)} ids, and X or y another number of rows; give one id for each row")
    order, sizes = _by_size(codes)
    few = int(sizes[sizes <= clip.records].sum())
    first, left_out = summed(*rows_at(X, y, np.sort(order[:few])))
    total = _Total(first, clip)
    X = Codes(X.codes, {}) if isinstance(X, Codes) else X  # the first pass counted its unreadable values
    order, sizes = order[few:], sizes[sizes > clip.records]
    with progress_bar("persons", len(sizes), at_once=progress and bool(len(sizes))) as advance:
        for rows, of_each in _windows(order, sizes, first.schema):
            if len(of_each) == 1 and len(rows) > rows_at_once(first.schema):
                person, unread = _one_person(X, y, rows, first.schema, summed)
                total.add(person)
            else:
                ascending = np.argsort(rows)
                terms, unread = by_record(*rows_at(X, y, rows[ascending]))
                total.add_many(terms, np.repeat(np.arange(len(of_each)), of_each)[ascending])
            left_out += unread
            advance(len(of_each))
    _warn_of_ids_like_others(int((codes == LIKE_ANOTHER).sum()))
    for remark in id_remarks(persons, codes, named=False):
        warnings.warn(f"{remark}. Do not share this number", UnreadableRecordsWarning, stacklevel=4)
    result = replace(total.moments(), persons=int(codes.max(initial=-1)) + 1)
    return result, left_out, int((codes == -1).sum())


def _windows(
    order: NDArray[np.intp], sizes: NDArray[np.intp], schema: Schema
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield rows of complete persons and each one's number of rows; a person with many rows comes alone."""
    width = max(sum(row.block(schema.sizes)) for row in schema.sent)
    max_rows, alone = max(1, min(_WINDOW_ROWS, _WINDOW_ENTRIES // max(width, 1))), rows_at_once(schema)
    ends, first = np.cumsum(sizes), 0
    while first < len(sizes):
        start = int(ends[first] - sizes[first])
        last = first + 1
        if sizes[first] <= alone:  # sizes ascend
            fitting = np.searchsorted(ends, start + max_rows, side="right")
            last = max(last, min(int(fitting), int(np.searchsorted(sizes, alone, side="right"))))
        yield order[start : ends[last - 1]], sizes[first:last]
        first = last


# Return one person's moments in parts that fit 64 bits, so that no number of rows raises an error.
def _one_person(
    X: RecordsLike, y: TargetsLike | None, rows: NDArray[np.intp], schema: Schema, summed: MeasureRows
) -> tuple[tuple[Moments, ...], LeftOut]:
    max_rows = ((1 << _BITS) - 1) // schema.bound
    result = [summed(*rows_at(X, y, part)) for part in np.array_split(np.sort(rows), -(-len(rows) // max_rows))]
    parts, left_out = zip(*result, strict=True)
    return parts, reduce(add, left_out)


class _Total:
    def __init__(self, first: Moments, clip: Clip) -> None:
        self._schema, self._clip, self._many = first.schema, clip, PersonSums(first.schema, clip)
        self._many.records = self._many.counted = first.records or 0
        self._arrays = {row.letter: first.sums(row) * row.factor for row in first.schema.sent}
        self._reports = {name: getattr(first, name, None) for name in _REPORTS}

    def add(self, person: tuple[Moments, ...]) -> None:
        arrays, shrunk = self._clip.clipped(*person)
        for letter, array in arrays.items():
            self._arrays[letter] += array
        rows = sum(part.records or 0 for part in person)
        self._many.records, self._many.shrunk = self._many.records + rows, self._many.shrunk + shrunk
        self._many.counted += min(rows, self._clip.most_records(self._schema))
        for part, name in product(person, _REPORTS):
            self._reports[name] = _both(self._reports[name], getattr(part, name, None))

    def add_many(self, terms: RecordTerms, persons: NDArray[np.intp]) -> None:
        self._many.add(terms, persons)
        for name in _REPORTS:
            self._reports[name] = _both(self._reports[name], terms.reports.get(name))

    def moments(self) -> PersonMoments:
        many = self._many
        require_room(many.counted, self._schema.bound)
        arrays = {letter: self._arrays[letter] + array for letter, array in many.result().items()}
        clips, edges = (self._reports[name] for name in _REPORTS)
        rows = {"records": many.records, "counted": many.counted}
        rest: Any = {**rows, "shrunk": many.shrunk, "clip_report": clips, "edge_report": edges}
        return PersonMoments(self._schema, arrays, self._clip, **rest)


_REPORTS = ("clip_report", "edge_report")


def _warn_of_ids_like_others(records: int) -> None:
    if records:
        warnings.warn(
            f"{records:,} of the records have an id that a reader of tables may convert to another number, a boolean, "
            "a date or a time, such as 12.1, True or 2020-01-02, and are excluded from every sum: put a letter before "
            "these ids. Do not share this number",
            UnreadableRecordsWarning,
            stacklevel=5,
        )


def _both(left: Any, right: Any) -> Any:
    return None if left is None or right is None else left + right


def _by_size(codes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    known = np.flatnonzero(codes >= 0)
    sizes = np.bincount(codes[known])
    order = known[np.argsort(sizes[codes[known]] * len(sizes) + codes[known], kind="stable")]
    return order, np.sort(sizes[sizes > 0])


def rows_at(X: RecordsLike, y: TargetsLike | None, where: NDArray[np.intp]) -> tuple[RecordsLike, TargetsLike | None]:
    """Return some rows of X and y."""
    return table_of(X).take(where), None if y is None else table_of(y).take(where)
