"""The schema of count tables: public categories and bins, and which of them are crossed.

It defines the cells in which a record counts and their bounds; ``moments`` computes the counts.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar, TypeAlias

from privstats.errors import SchemaError
from privstats.schema.base import Schema
from privstats.schema.checks import settle
from privstats.schema.statistic import Statistic, letters_of
from privstats.transforms import Transform, steps_of
from privstats.transforms.columns import MISSING_CELL, Categories, require_switch
from privstats.transforms.names import checked_names
from privstats.transforms.one_value import same

__all__ = ["COUNT_TABLE", "Bins", "Categories", "CountSchema", "Variable", "plain_variable", "variable_of"]

COUNT_TABLE: tuple[Statistic, ...] = (
    Statistic("T", "cell", (), (0, 0), meaning="how many records lie in each cell of every table"),
)
"""Counts of records per cell of all tables."""

_MOST_CELLS = 1 << 16
_OPEN = ("both", "above", "below", "none")


@dataclass(frozen=True)
class Bins:
    """A numeric variable cut at public edges; values beyond the outer edges count in the outer bins, if these are open.

    Of times give ``open="above"``: then a code such as -9 has no cell, and what lasts longer counts in the last bin.

    Args:
        name: of the column.
        edges: at least three finite numbers in increasing order, so at least two bins.
        closed: which end of a bin belongs to it, ``"left"``: low <= value < high; or ``"right"``.
        missing: what is missing (None, NaN, a blank, ``"NA"``) counts in a cell of its own; without it, it has none.
        open: which outer bins take values beyond their outer edge, ``"both"``, ``"above"``, ``"below"`` or ``"none"``;
            another such value has no cell. An outer edge itself belongs to its bin. A record whose value has no cell is
            refused, or left out of every table: ``measure(..., unreadable=...)``.

    Example:
        >>> age = ps.Bins("age", (0, 40, 60, 120))
        >>> age.cells
        ('0..40', '40..60', '60..120')
    """

    name: str
    edges: tuple[float, ...]
    closed: str = "left"
    missing: bool = False
    open: str = "both"

    def __post_init__(self) -> None:
        (name,) = checked_names("a variable's name", (self.name,)) or ("",)
        edges = tuple(self.edges) if isinstance(self.edges, tuple | list) else ()
        if len(edges) < 3 or not all(map(_is_finite, edges)):
            raise SchemaError(f"edges of {name} must be at least three finite numbers: two bins or more")
        if any(same(low) >= same(high) for low, high in pairwise(edges)):  # a value and an edge are compared so
            raise SchemaError(f"edges of {name} must increase, in 15 digits; sort them and name each once")
        if self.closed not in ("left", "right"):
            raise SchemaError(f"closed of {name} must be 'left' or 'right', got {self.closed!r}")
        if self.open not in _OPEN:
            raise SchemaError(f"open of {name} must be one of {', '.join(map(repr, _OPEN))}, got {self.open!r}")
        require_switch(name, "missing", self.missing)
        object.__setattr__(self, "edges", tuple(float(edge) for edge in edges))

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """Names of the cells, in order: ``"low..high"``."""
        pairs = pairwise(self.edges)
        return (*(f"{low:g}..{high:g}" for low, high in pairs), *((MISSING_CELL,) * self.missing))


Variable: TypeAlias = Categories | Bins


@dataclass(frozen=True)
class CountSchema(Schema):
    """Tables of counts: every record counts 1 in exactly one cell of every table.

    Args:
        variables: the columns that are read, each a :class:`Categories` or :class:`Bins`. Public: they stand in the
            plan, so take edges and values from public knowledge.
        tables: tuples of variable names; each is one table of the variables crossed. At most 65,536 cells in all.
        transform: none, for count tables have no features; or :class:`~privstats.Cells` alone: its numeric columns and
            dates are then counted as their codes, so that a gap code is missing and a date is its days.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> schema = ps.CountSchema(
        ...     variables=(ps.Categories("sex", ("f", "m")), ps.Bins("age", (0, 40, 60, 120))),
        ...     tables=(("sex", "age"),),
        ... )
        >>> schema.shape(("sex", "age"))
        (2, 3)
    """

    task: ClassVar[str] = "counts"
    makes: ClassVar[str] = "tables of how many records lie in each group"
    finds_cuts: ClassVar[bool] = True
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = COUNT_TABLE
    statistics: ClassVar[str] = letters_of(COUNT_TABLE)
    features: ClassVar[int] = 1
    clip_norm: ClassVar[float] = 1.0
    grid_bits: ClassVar[int] = 0
    nonnegative: ClassVar[bool] = True
    feature_names: ClassVar[None] = None

    variables: tuple[Variable, ...]
    tables: tuple[tuple[str, ...], ...]
    transform: tuple[Transform, ...] = ()

    def __post_init__(self) -> None:
        variables = tuple(variable_of(each) for each in _listed("variables", self.variables))
        names = checked_names("variables", tuple(variable.name for variable in variables)) or ()
        settle(self, variables=variables, tables=_checked_tables(_listed("tables", self.tables), names))
        settle(self, transform=_checked_transform(self.transform, self.variables))
        cells = self.sizes["cell"]
        if cells > _MOST_CELLS:
            raise SchemaError(f"tables have {cells} cells in all and at most {_MOST_CELLS} are allowed; use fewer bins")

    @property
    def sizes(self) -> dict[str, int]:
        """Number of cells of all tables together."""
        return {"cell": sum(math.prod(self.shape(table)) for table in self.tables)}

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        return f"a value of each of {', '.join(variable.name for variable in self.variables)}"

    @property
    def clipping(self) -> str:
        """The sentence that explains the bound on a record's weight."""
        return "It counts 1 in exactly one cell of every table, so that no record weighs more."

    def variable(self, name: str) -> Variable:
        """The variable of this name.

        Raises:
            SchemaError: there is none.
        """
        for variable in self.variables:
            if variable.name == name:
                return variable
        known = ", ".join(variable.name for variable in self.variables)
        raise SchemaError(f"{name!r} is no variable of the plan; it has {known}")

    def shape(self, table: tuple[str, ...]) -> tuple[int, ...]:
        """Cells along each variable of a table."""
        return tuple(len(self.variable(name).cells) for name in table)

    def place(self, table: tuple[str, ...]) -> slice:
        """The slice of a table's cells in T, row by row."""
        ends = list(accumulate(math.prod(self.shape(each)) for each in self.tables))
        index = self.tables.index(table)
        return slice(ends[index] - math.prod(self.shape(table)), ends[index])

    def plain_fields(self) -> dict[str, Any]:
        """The fields as a plan file holds them."""
        return {
            "variables": [plain_variable(variable) for variable in self.variables],
            "tables": [list(table) for table in self.tables],
        }


def _listed(field: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list) or not value:
        raise SchemaError(f"{field} must be a tuple with at least one entry")
    return tuple(value)


def variable_of(value: Any) -> Variable:
    """A variable, also from a plan file's table.

    Raises:
        SchemaError: it is none.
    """
    if isinstance(value, Bins):
        return value
    if isinstance(value, Categories):
        return _counted(value)
    if not isinstance(value, Mapping):
        raise SchemaError(f"variables must hold Categories and Bins, got {type(value).__name__}")
    kind = Bins if "edges" in value else Categories
    known = {field.name: field for field in fields(kind)}
    unknown = sorted(set(value) - set(known))
    needed = {"name", "edges" if kind is Bins else "values"}
    if unknown or not needed <= set(value):
        raise SchemaError(
            f"a variable has name and values, or name and edges; got {', '.join(sorted(map(str, value)))}"
            + (f", of which {', '.join(map(repr, unknown))} is unknown" if unknown else "")
        )
    return Bins(**value) if kind is Bins else _counted(Categories(**value))


def _counted(variable: Categories) -> Categories:
    """Categories as count tables have them: without a cell for other values or gaps, unless they say so."""
    if len(variable.values) < 2:
        raise SchemaError(f"values of {variable.name} must be at least two different texts, or whole numbers")
    if variable.ordered or variable.gaps:
        raise SchemaError(f"ordered and gaps of {variable.name} belong to Cells; a count table has no use for them")
    return replace(variable, other=bool(variable.other), missing=bool(variable.missing))


def plain_variable(variable: Variable) -> dict[str, Any]:
    """A variable as a plan file holds it."""
    defaults = {field.name: field.default for field in fields(variable)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(variable).items()
        if value != defaults[name] and value is not False
    }


def _checked_transform(transform: Any, variables: tuple[Variable, ...]) -> tuple[Transform, ...]:
    """Nothing, or the declaration of columns of which the variables bin numeric ones and dates."""
    steps = steps_of(transform)
    if not steps:
        return ()
    if len(steps) > 1 or not steps[0].reads_cells:
        raise SchemaError("transform must be empty, or Cells alone: count tables have no features")
    cells: Any = steps[0]
    binned = {column.name for column in cells.columns if column.kind in ("numeric", "dates")}
    for variable in variables:
        if not isinstance(variable, Bins) or variable.name not in binned:
            raise SchemaError(
                f"{variable.name} must be Bins of a numeric column or of dates that Cells declares; count others "
                "without a transform"
            )
    return steps


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


def _is_finite(edge: object) -> bool:
    """Whether it is a number that a float can be: of whole numbers not each."""
    return isinstance(edge, int | float) and abs(edge) <= sys.float_info.max
