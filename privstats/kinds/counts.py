"""Count records in tables of crossed categories and bins, and sum bounded numbers.

A value's cell depends on that value and public values and edges alone, so counts of parts add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import DataError, SchemaError
from privstats.intake.declared.categories import Categories
from privstats.intake.meaning import checked_names
from privstats.kinds.base import Kind
from privstats.kinds.column_facts import first_bin_facts
from privstats.kinds.late_entry import LateEntry, beyond_of, checked_late_entry
from privstats.kinds.worst import Record, Sums, WorstPair, added, wire
from privstats.moments.base import ExactClass, Moments, RealMoments
from privstats.records.cells import cells_in, require_cells
from privstats.records.emptied import listed_columns
from privstats.records.reading import Reading, Unread
from privstats.records.reasons import UNCODED, Why, no_cell, spelled
from privstats.records.variables import Bins, Variable, plain_variable, variable_of
from privstats.schema.base import COUNT_SCALE, Adjacency, Statistic, letters_of
from privstats.schema.checks import settle
from privstats.schema.narrowing import bare
from privstats.transforms import Transform, maps_of

if TYPE_CHECKING:
    from privstats.kinds.numbers import Number
    from privstats.kinds.scoring import ScoringSchema
    from privstats.moments.edge_report import EdgeReport
    from privstats.moments.record_sums import RecordTerms
    from privstats.records.opened import Opened
    from privstats.schema.public_values import Values

COUNT_TABLE: tuple[Statistic, ...] = (
    Statistic("T", "cell", (), (0, 0), meaning="how many records each cell of every table holds"),
)
"""Counts of records per cell of all tables."""


@dataclass(frozen=True)
class CountSchema(Kind):
    """Tables of counts: every record counts 1 in exactly one cell of every table.

    Args:
        variables: :class:`Categories` or :class:`Bins` from public knowledge.
        tables: tuples of variable names to cross; at most 65,536 cells in all. Every number adds a table of the records
            that have it.
        transform: none, or :class:`~privstats.Cells` alone: numeric columns and dates are then counted as codes.
        numbers: bounded columns, each a :class:`Number`; sums x and sums of squares q are released too. Variables and
            tables may then be empty.
        late_entry: two variables of times, for readers with late entry: a record that leaves before it enters is
            unreadable (:class:`LateEntry`).

    Guarantee:
        Unit: one record; J tables (one per number included), m numbers, weights T, x and q (1 / sigma^2). Under
        add-remove mu^2 is J T + m (x + q), attained. Under replace-one it is at most the larger of that value and a
        sum. Exchange for an excluded record reaches that value. The sum has 2 T per table without a number, and per
        number the largest of (docs/proofs/records.md):

        - ``d^2 (x + q (2 - d)^2)`` over 0 <= d <= 2
        - 2 T + x + q, if the number may be missing
        - 2 (T + x + q), if the number has groups

    Example:
        >>> schema = ps.CountSchema(
        ...     variables=(ps.Categories("sex", ("f", "m")), ps.Bins("age", (0, 40, 60, 120))),
        ...     tables=(("sex", "age"),),
        ... )
        >>> schema.shape(("sex", "age"))
        (2, 3)
    """

    task: ClassVar[str] = "counts"
    purpose: ClassVar[str] = "tables of how many records are in each group"
    finds_cuts: ClassVar[bool] = True
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = (
        *COUNT_TABLE,
        Statistic("x", "block", (), (1, 0), meaning="the sum of each number, from mid-range in units of half a range"),
        Statistic("q", "block", (), (2, 0), meaning="the sum of each number's square, in the same unit"),
    )
    max_cells: ClassVar[int] = 1 << 16
    features: ClassVar[int] = 1
    clip_norm: ClassVar[float] = 1.0
    nonnegative: ClassVar[bool] = True
    feature_names: ClassVar[None] = None
    proved: ClassVar[str] = "Txq"
    nearer: ClassVar[bool] = True
    statements: ClassVar[tuple[str, ...]] = ("tables",)
    exact_warning: ClassVar[str] = (
        "exact count tables reveal every cell of one record, and suppressing small cells does not help where totals "
        "reveal them; release them with a Privacy"
    )

    variables: tuple[Variable, ...]
    tables: tuple[tuple[str, ...], ...]
    transform: tuple[Transform, ...] = ()
    numbers: tuple[Number, ...] | None = None
    late_entry: LateEntry | None = None

    def __post_init__(self) -> None:
        minimum = 1 if self.numbers is None else 0
        own: tuple[tuple[str, ...], ...] = ()
        variables = tuple(variable_of(each) for each in _listed("variables", self.variables, minimum))
        names = checked_names("variables", tuple(variable.name for variable in variables)) or ()
        tables = _listed("tables", self.tables, minimum)
        settle(self, variables=variables)
        if self.numbers is not None:
            from privstats.kinds.numbers import numbers_of

            settle(self, numbers=numbers_of(self))
            own = tuple((*number.by, number.name) for number in self.numbers)
            tables = tuple(each for each in tables if each not in (*own, *map(list, own)))
        tables = (*_checked_tables(tables, names), *own)
        settle(self, tables=tables, transform=_checked_transform(self.transform, variables))
        settle(self, late_entry=checked_late_entry(self))
        cells = self.sizes["cell"]
        if cells > self.max_cells:
            raise SchemaError(
                f"tables have {cells} cells in all and at most {self.max_cells} are allowed; use fewer bins"
            )

    @property
    def read(self) -> tuple[Variable | Number, ...]:
        """The columns to read, variables first."""
        return (*self.variables, *(self.numbers or ()))

    @property
    def goal(self) -> Unread:
        """What y holds."""
        return Unread()

    @cached_property
    def reading(self) -> Reading:
        """What is read of each record: every variable by name, or declared columns in batches."""
        names = () if self.transform else tuple(each.name for each in self.read)
        return replace(super().reading, columns=names, batches=bool(self.transform))

    @property
    def facts(self) -> tuple[str, ...]:
        """What readers of survival assume of a first bin, for each binned column crossed with a column of 0 and 1."""
        coded = [each for each in self.variables if isinstance(each, Categories) and {0, 1} <= set(each.values)]
        events = {each.name for each in coded}
        crossed = {name for table in self.tables if events & set(table) for name in table}
        times = [each for each in self.variables if isinstance(each, Bins) and each.name in crossed]
        return tuple(fact for each in times for fact in first_bin_facts(each, f"if {each.name} is a time, "))

    @property
    def reads_any_record(self) -> bool:
        """Whether every value has a cell: an unlisted one as "other", a gap as missing."""
        every = all(each.missing and getattr(each, "other", True) for each in self.read)
        return every and self.late_entry is None and not self.excludes_gaps

    @property
    def statistics(self) -> str:
        """T, and with numbers x and q."""
        return letters_of(self.table if self.numbers else COUNT_TABLE)

    @property
    def grid_bits(self) -> int:
        """12 with numbers, else 0."""
        return 12 if self.numbers else 0

    @property
    def sizes(self) -> dict[str, int]:
        """Number of cells, and of groups of numbers."""
        groups = sum(math.prod(self.shape(number.by)) for number in self.numbers or ())
        return {"cell": sum(math.prod(self.shape(table)) for table in self.tables), "block": groups}

    @property
    def record(self) -> str:
        """Description of one record."""
        return f"a value of each of {', '.join(each.name for each in self.read)}"

    @property
    def clipping(self) -> str:
        """Explanation of a record's bounded weight."""
        once = "It counts 1 in exactly one cell of every table, so that no record weighs more."
        return once.replace("table,", "table, and each number between -1 and 1,") if self.numbers else once

    def variable(self, name: str) -> Any:
        """Return a variable or number."""
        columns = {each.name: each for each in self.read}
        if name not in columns:
            raise SchemaError(f"{name!r} is no variable of the plan; it has {', '.join(columns)}")
        return columns[name]

    def shape(self, table: tuple[str, ...]) -> tuple[int, ...]:
        """Return the number of cells along each variable of a table."""
        return tuple(len(self.variable(name).cells) for name in table)

    def place(self, table: tuple[str, ...]) -> slice:
        """Return a table's slice of T."""
        ends = list(accumulate(math.prod(self.shape(each)) for each in self.tables))
        index = self.tables.index(table)
        return slice(ends[index] - math.prod(self.shape(table)), ends[index])

    def plain_fields(self) -> dict[str, Any]:
        """Return the fields for a plan file."""
        numbers = [plain_variable(number) for number in self.numbers or ()]
        return {
            "variables": [plain_variable(variable) for variable in self.variables],
            "tables": [list(table) for table in self.tables[: len(self.tables) - len(numbers)]],
            **({"numbers": numbers} if numbers else {}),
            **({} if self.late_entry is None else {"late_entry": plain_variable(self.late_entry)}),
        }

    @property
    def unsigned(self) -> str:
        """Letters with entries that are never negative."""
        return "Tq"

    def longest(self, statistic: str) -> int | None:
        """Return the largest L1 length of the tables: one count in each; numbers have none."""
        return COUNT_SCALE * len(self.tables) if statistic == "T" else None

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2 of one record (docs/proofs/records.md)."""
        if not self.numbers:
            return move_of_tables(self.tables, weights, adjacency)
        from privstats.kinds.numbers import square_with_numbers

        return square_with_numbers(self, weights, adjacency)

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls((Categories("sex", ("f", "m")), Bins("age", (0, 40, 60))), (("sex", "age"),))

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(_pairs, added(_of_record), left_out=lambda schema: bool(schema.numbers))

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return CountMoments, RealCountMoments

    def moments_of(self, records: Opened, _: Mapping[str, Values]) -> CountMoments:
        """Count records of a DataFrame, a mapping of columns, or an array (variables, then numbers).

        Where others are excluded, a declared missing cell also counts non-numbers and values beyond a closed edge.

        Raises:
            DataError: malformed columns, or y is given.
            RecordError: a value has no cell, and no record may be excluded; none is counted then.
        """
        return reduce(add, (_counted(self, each) for each, _ in _all(self, records)))

    def terms_of(self, records: Opened, _: Mapping[str, Values]) -> RecordTerms:
        """Return each record's contribution."""
        several = []
        for read, fine in _all(self, records):
            cells = read.cells_of_tables(self)
            result = counted_terms(self, fine, cells, read.report)
            if self.numbers:
                from privstats.kinds.numbers import number_terms

                result = replace(result, terms=(*result.terms, *number_terms(self, cells, read.numbers)))
            several.append(result)
        return moments.record_sums.RecordTerms.joined(several)


def _listed(field: str, value: object, minimum: int = 1) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list) or len(value) < minimum:
        raise SchemaError(f"{field} must be a tuple with at least one entry")
    return tuple(value)


def _checked_transform(
    transform: Sequence[Transform] | Transform, variables: tuple[Variable, ...]
) -> tuple[Transform, ...]:
    maps = maps_of(transform)
    if not maps:
        return ()
    if len(maps) > 1 or not maps[0].reads_cells:
        raise SchemaError("transform must be empty, or Cells alone: count tables have no features")
    cells: Any = maps[0]
    binned = {column.name for column in cells.columns if column.kind in ("numeric", "dates")}
    for variable in variables:
        if not isinstance(variable, Bins) or variable.name not in binned:
            raise SchemaError(
                f"{variable.name} must be Bins of a numeric column or of dates that Cells declares; count others "
                "without a transform"
            )
    return maps


def _checked_tables(tables: tuple[Any, ...], names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    checked = []
    for table in tables:
        crossed = _listed("a table", table)
        unknown = [name for name in crossed if name not in names]
        if unknown:
            raise SchemaError(f"a table names {unknown[0]!r}, which is no variable; it may name {', '.join(names)}")
        if len(set(crossed)) < len(crossed):
            raise SchemaError(f"the table {crossed} names a variable twice; name each once")
        checked.append(crossed)
    if len({frozenset(table) for table in checked}) < len(checked):
        raise SchemaError("tables holds a table twice; each costs noise for all, so name it once")
    return tuple(checked)


# --- the sums


@dataclass(frozen=True, eq=False)
class RealCountMoments(RealMoments):
    """Counts ``T``, float64, one table after the other.

    ``x`` and ``q`` hold sums by group of each :class:`Number`'s values in half ranges, and of their squares.

    Example:
        >>> schema = ps.CountSchema((ps.Categories("blood", ("0", "A", "B", "AB")),), (("blood",),))
        >>> ps.measure(schema, {"blood": ["A", "0", "A"]}).real().T.tolist()
        [1.0, 2.0, 0.0, 0.0]
    """

    T: NDArray[np.float64]
    x: NDArray[np.float64] | None = None
    q: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class CountMoments(Moments):
    """Exact counts, int64 ``(cells,)``, one table after the other.

    Attributes:
        edge_report: values beyond bin edges; stays with the client.

    Raises:
        DataError: a wrong shape, a negative count, or tables with unequal totals.

    Example:
        >>> schema = ps.CountSchema((ps.Categories("blood", ("0", "A", "B", "AB")),), (("blood",),))
        >>> ps.measure(schema, {"blood": ["A", "0", "A"]}).T.tolist()
        [1, 2, 0, 0]
    """

    shown: ClassVar[tuple[str, ...]] = ("tables",)

    schema: CountSchema | ScoringSchema
    T: NDArray[np.int64]
    x: NDArray[np.int64] | None = None
    q: NDArray[np.int64] | None = None
    edge_report: EdgeReport | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        totals = {int(self.T[self.schema.place(table)].sum()) for table in self.schema.tables}
        if self.T.min() < 0 or len(totals) > 1:
            raise DataError("T must hold counts of the same records in every table; build moments with measure()")

    @property
    def records(self) -> int:
        """Records measured. Private, though every table's sum reveals it."""
        return int(self.T[self.schema.place(self.schema.tables[0])].sum())

    def real(self) -> RealCountMoments:
        """Return float64 counts."""
        return RealCountMoments.of_sums(self.schema, self.wire())


class _Read(NamedTuple):
    cell_of: dict[str, NDArray[np.intp]]
    numbers: dict[str, NDArray[np.float64]]
    report: EdgeReport | None

    def cells_of_tables(self, schema: CountSchema) -> list[NDArray[np.intp]]:
        return [
            np.asarray(np.ravel_multi_index([self.cell_of[name] for name in table], schema.shape(table)))
            for table in schema.tables
        ]


# Read every part of the table: its included records' cells, and which records these are.
def _all(schema: CountSchema, records: Opened) -> Iterator[tuple[_Read, NDArray[np.bool_]]]:
    excluded = records.excluded
    for columns in records.columns([each.name for each in schema.read]):
        cell_of = {each.name: cells_in(each, columns[each.name]) for each in schema.read}
        for each in schema.read:
            if excluded is None:
                require_cells(each, columns[each.name], cell_of[each.name])
            elif not isinstance(each, Categories) and each.missing:
                cell_of[each.name][cell_of[each.name] < 0] = len(each.cells) - 1
        fine = np.logical_and.reduce([places >= 0 for places in cell_of.values()])
        why, declared, gaps = Why(), schema.reading.declaration, Why()
        if declared is not None and declared.missing:
            gaps = {(repr(each.name), UNCODED): columns[each.name].missing for each in declared.columns}
            fine = fine & ~np.logical_or.reduce(list(gaps.values()))
        for each in schema.read:
            outside = cell_of[each.name] < 0
            if gaps:
                outside &= ~columns[each.name].missing
            why |= no_cell(repr(each.name), each, columns[each.name], outside)
        why |= gaps
        numbers = {name: column.numbers for name, column in columns.items()}
        if schema.late_entry is not None:
            late = _never_at_risk(schema, schema.late_entry, numbers, cell_of)
            fine, why = fine & ~late, {**why, (repr(schema.late_entry.entry), schema.late_entry.reason): late}
            if excluded is None:
                schema.late_entry.refuse(late)
        if excluded is not None:
            for each in schema.read:
                why |= spelled(repr(each.name), each, columns[each.name])
            excluded.add(fine, why, listed_columns(schema.read, columns))
        report = None if schema.transform else moments.edge_report.EdgeReport.of(schema.variables, numbers)
        readable = {name: each[fine] for name, each in cell_of.items()}
        yield _Read(readable, {name: each[fine] for name, each in numbers.items()}, report), fine


def _never_at_risk(
    schema: CountSchema,
    late: LateEntry,
    numbers: Mapping[str, NDArray[np.float64]],
    cell_of: Mapping[str, NDArray[np.intp]],
) -> NDArray[np.bool_]:
    times = numbers[late.entry], numbers[late.time]
    return late.never_at_risk(*times, cell_of[late.entry], cell_of[late.time], beyond_of(schema.variable(late.time)))


def _counted(schema: CountSchema, read: _Read) -> CountMoments:
    out = np.zeros(schema.sizes["cell"], np.int64)
    for table, cells in zip(schema.tables, read.cells_of_tables(schema), strict=True):
        there = schema.place(table)
        out[there] = np.bincount(cells, minlength=there.stop - there.start)
    if not schema.numbers:
        return CountMoments(schema, out, edge_report=read.report)
    from privstats.kinds.numbers import number_sums

    return CountMoments(schema, out, *number_sums(schema, read.cells_of_tables(schema), read.numbers), read.report)


def counted_terms(
    schema: CountSchema | ScoringSchema,
    readable: NDArray[np.bool_],
    cells: list[NDArray[np.intp]],
    report: EdgeReport | None = None,
) -> RecordTerms:
    """Return the terms: 1 in a cell of each table, from cells ``(n,)`` per table."""
    ones = np.ones((int(readable.sum()), 1))
    pairs = zip(schema.tables, cells, strict=True)
    terms = (moments.record_sums.Term({"T": (ones, None)}, schema.place(table).start + each) for table, each in pairs)
    return moments.record_sums.RecordTerms(readable, tuple(terms), {} if report is None else {"edge_report": report})


# --- the sensitivity, and the two data sets that the certificate compares


def move_of_tables(tables: Sequence[tuple[str, ...]], weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """Return mu^2 of one record: T's weight times J tables, or times 2 J under replace-one.

    Both are attained, because every variable has at least two cells.
    """
    square = weights.get("T", 0.0) * len(tables)
    return square if adjacency == "add-remove" else 2 * square


def _pairs(schema: CountSchema, weights: Mapping[str, float]) -> list[tuple[Record, Record]]:
    names = [variable.name for variable in schema.variables]
    one, other = ({"times": 1, "cell": 0, "values": dict.fromkeys(names, cell)} for cell in (0, 1))
    if not schema.numbers:
        return [(one, other)]
    from privstats.kinds.numbers import pairs_with_numbers

    return pairs_with_numbers(schema, weights, one, other)


def _of_record(schema: CountSchema, record: Record) -> Sums:
    anyone = replace(bare(schema), late_entry=None)  # it excludes records, and changes what none of them adds
    return wire(moments.exact_moments(anyone, _in_cells(schema, record)))


def _in_cells(schema: CountSchema, record: Record) -> dict[str, list[Any]]:
    cells = record["values"]
    result: dict[str, list[Any]] = {}
    for number in schema.numbers or ():
        result[number.name] = [None if cells[number.name] else number.value_at(record["steps"][number.name])]
    for variable in schema.variables:
        cell = cells[variable.name]
        value = variable.values[cell] if isinstance(variable, Categories) else sum(variable.edges[cell : cell + 2]) / 2
        result[variable.name] = [value]
    return result
