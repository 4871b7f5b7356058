"""Define variables that put a record into a cell."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

from privstats.errors import SchemaError
from privstats.intake.declared.categories import MISSING_CELL, Categories, require_switch
from privstats.intake.meaning import checked_names, same

_OPEN = ("both", "above", "below", "none")


@dataclass(frozen=True)
class Bins:
    """A numeric variable in bins with public edges; open outer bins count values beyond them.

    Args:
        edges: at least three finite numbers in increasing order.
        closed: which end belongs to a bin, ``"left"``: low <= value < high; or ``"right"``.
        missing: whether missing values (None, NaN, a blank, ``"NA"``) count in a separate cell; otherwise they have
            none.
        open: outer bins that include values beyond their edge: ``"both"``, ``"above"`` (for times: a code -9 has no
            cell), ``"below"`` or ``"none"``. An outer edge itself belongs to its bin. A record without a cell is
            refused or excluded: ``measure(..., unreadable=...)``.

    Example:
        >>> age = ps.Bins("age", (0, 40, 60, 120))
        >>> age.cells
        ('under 40', '40 to 60', '60 or more')
    """

    name: str
    edges: tuple[float, ...]
    closed: str = "left"
    missing: bool = False
    open: str = "both"

    def __post_init__(self) -> None:
        (name,) = checked_names("a variable's name", (self.name,)) or ("",)
        edges = tuple(self.edges) if isinstance(self.edges, tuple | list) else ()
        if len(edges) < 3 or not all(map(is_finite, edges)):
            raise SchemaError(f"edges of {name} must be at least three finite numbers: two bins or more")
        # Values are compared with edges in 15 digits.
        if any(same(low) >= same(high) for low, high in pairwise(edges)):
            raise SchemaError(f"edges of {name} must increase when rounded to 15 digits; sort them, name each once")
        if self.closed not in ("left", "right"):
            raise SchemaError(f"closed of {name} must be 'left' or 'right', got {self.closed!r}")
        if self.open not in _OPEN:
            raise SchemaError(f"open of {name} must be one of {', '.join(map(repr, _OPEN))}, got {self.open!r}")
        require_switch(name, "missing", self.missing)
        object.__setattr__(self, "edges", tuple(float(edge) for edge in edges))

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """Cell names, from :func:`~privstats.printable.bin_names`."""
        from privstats.printable import bin_names

        return (*bin_names(self.edges, self.closed, self.open), *((MISSING_CELL,) * self.missing))


Variable: TypeAlias = Categories | Bins


class Binned(Protocol):
    """A variable of numbers in cells between edges, such as :class:`Bins`."""

    @property
    def name(self) -> str:
        """The column."""

    @property
    def edges(self) -> tuple[float, ...]:
        """Edges, in increasing order."""

    @property
    def closed(self) -> str:
        """The end of each range that belongs to its cell."""

    @property
    def open(self) -> str:
        """The outer cells that include values beyond their edge."""

    @property
    def missing(self) -> bool:
        """Whether missing values have a cell."""

    @property
    def cells(self) -> tuple[str, ...]:
        """Names of the cells."""


def variable_of(value: object) -> Variable:
    """Return a variable, also from a plan file's table."""
    # Exact classes: a subclass could have other cells under the same digest.
    if type(value) is Bins:
        return value
    if type(value) is Categories:
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
    """Return categories for count tables; refuse ``ordered`` and ``gaps``, which only Cells reads."""
    if len(variable.values) < 2:
        raise SchemaError(f"values of {variable.name} must be at least two different texts, or integers")
    if variable.ordered or variable.gaps or variable.as_text:
        raise SchemaError(
            f"ordered, gaps and as_text of {variable.name} belong to Cells; a count table has no use for them"
        )
    return replace(variable, other=bool(variable.other), missing=bool(variable.missing))


def plain_variable(variable: Any) -> dict[str, Any]:
    """Return a variable's plan-file form."""
    defaults = {field.name: field.default for field in fields(variable)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(variable).items()
        if value != defaults[name] and value is not False
    }


def is_finite(edge: object) -> bool:
    """Return whether ``edge`` is a number within float range."""
    return isinstance(edge, int | float) and abs(edge) <= sys.float_info.max
