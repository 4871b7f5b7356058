"""Read text columns as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, ClassVar

from privstats.errors import SchemaError
from privstats.intake.column_names import same_names
from privstats.intake.declared.categories import Categories
from privstats.intake.declared.columns import Numeric, column_from_plan
from privstats.transforms.base import Transform
from privstats.transforms.exact import Rows, arrays_of

_MAX_LEVELS = 16


@dataclass(frozen=True)
class Levels(Transform):
    """Columns and outcomes of declared texts. The first of two texts counts as 0, the second as 1.

    Values are compared as in :class:`~privstats.Categories`, case-sensitive; a listed gap word, such as ``"none"``, is
    a value. Any other value, even 0 or 1, excludes the record (``measure(..., unreadable="leave out")``). Numbers pass
    unchanged.

    A column of more texts becomes one 0/1 column per text except the first; together they add at most 1 to a row's
    squared norm. The second text's column replaces the original; further ones follow all input columns.

    Args:
        columns: text columns, each a :class:`~privstats.Categories` of 2 to 16 values.
        outcomes: empty if all are numbers; else one each, in order: ``Categories`` of two values or
            :class:`~privstats.Numeric` without edges. A hazard's second value is the event, further ones are competing
            causes.
        spread: input index of each column of more than two texts, in order.

    Example:
        >>> levels = ps.transforms.Levels((ps.Categories("arm", ("placebo", "drug")),))
        >>> schema = ps.EffectSchema.of(
        ...     {"age": (20, 90)}, treatment={"arm": ("placebo", "drug")}, outcome=(0, 1), probability=0.5
        ... )
        >>> schema.transform[0] == levels
        True
    """

    kind: ClassVar[str] = "levels"

    columns: tuple[Categories, ...] = ()
    outcomes: tuple[Categories | Numeric, ...] = ()
    spread: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", _checked("columns", self.columns, numbers=False))
        object.__setattr__(self, "outcomes", _checked("outcomes", self.outcomes, numbers=True))
        object.__setattr__(self, "spread", _checked_places(self.spread, self.several))
        if not self.columns and not any(isinstance(each, Categories) for each in self.outcomes):
            raise SchemaError("columns or outcomes must declare two texts of something; leave Levels out otherwise")
        if twice := same_names([each.name for each in (*self.columns, *self.outcomes)]):
            raise SchemaError(f"levels has {twice[0]!r} and {twice[1]!r}, one name in any case; keep one")

    @property
    def several(self) -> tuple[Categories, ...]:
        """Columns of more than two texts."""
        return tuple(each for each in self.columns if len(each.values) > 2)

    @property
    def further(self) -> int:
        """Number of appended columns."""
        return sum(len(each.values) - 2 for each in self.several)

    def apply(self, rows: Rows) -> Rows:
        """Spread codes of more than two texts into 0/1 columns; other values become NaN, which excludes the record."""
        if not self.spread:
            return rows
        xp, columns, further = arrays_of(rows), [rows[:, j : j + 1] for j in range(rows.shape[1])], []
        for place, column in zip(self.spread, self.several, strict=True):
            codes, levels = columns[place], range(len(column.values))
            known = reduce(or_, (codes == level for level in levels))
            columns[place], *behind = (xp.where(known, (codes == level) * 1.0, math.nan) for level in levels[1:])
            further += behind
        return reduce(xp.hstack, (*columns, *further))

    def outputs(self, inputs: int | None) -> int | None:
        """Return the number of columns, appended ones included."""
        if inputs is not None and max(self.spread, default=-1) >= inputs:
            raise SchemaError(f"levels spreads column {max(self.spread)}, and {inputs} columns come in; name another")
        return None if inputs is None else inputs + self.further

    def takes(self, outputs: int) -> int:
        """Return the number of columns without appended ones."""
        return outputs - self.further

    def named(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return output names, such as ``"smoking: former"`` for a text of a spread column."""
        first, further = list(names), []
        for place, column in zip(self.spread, self.several, strict=True):
            first[place], *behind = (f"{column.name}: {value}" for value in column.values[1:])
            further += behind
        return (*first, *further)

    def of(self, name: str) -> Categories | None:
        """Return a column's declaration; None for numbers."""
        return next((each for each in self.columns if each.name == name), None)

    def plain_table(self) -> dict[str, Any]:
        """Return the fields for a plan file."""
        tables = {name: [each.to_plan() for each in getattr(self, name)] for name in ("columns", "outcomes")}
        return {**tables, "spread": list(self.spread)} if self.spread else tables


def _checked_places(places: Any, several: tuple[Categories, ...]) -> tuple[int, ...]:
    checked = tuple(places) if isinstance(places, tuple | list) else None
    if checked is None or not all(type(each) is int and each >= 0 for each in checked):
        raise SchemaError(f"spread must hold places of columns, integers from 0, got {places!r}")
    if len(checked) != len(several) or len(set(checked)) < len(checked):
        raise SchemaError(
            f"spread must hold one place for each of the {len(several)} columns of more than two texts, got {places!r}"
        )
    return checked


def _checked(field: str, columns: Any, *, numbers: bool) -> tuple[Any, ...]:
    if not isinstance(columns, Sequence) or isinstance(columns, str):
        raise SchemaError(f"{field} must be a tuple of columns, such as Categories('arm', ('placebo', 'drug'))")
    checked = tuple(column_from_plan(each) for each in columns)
    for column in checked:
        if numbers and isinstance(column, Numeric) and column.edges is None and not column.unit:
            continue
        if isinstance(column, Categories) and column.as_text:
            raise SchemaError(
                f"{field}: as_text of {column.name} belongs to Cells, and effects and hazards would read 042 as 42: "
                "put a letter before each code, in the records too, and omit as_text"
            )
        plain = isinstance(column, Categories) and not (column.other or column.missing or column.ordered)
        if not plain or not 2 <= len(getattr(column, "values", ())) <= _MAX_LEVELS:
            either = ", or a Numeric without edges" if numbers else ""
            raise SchemaError(f"{field}: {column.name!r} must be Categories of 2 to {_MAX_LEVELS} values{either}")
    return checked
