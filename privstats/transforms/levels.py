"""The two texts of a column that count as 0 and 1: arms, sexes and outcomes as hospital files write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from privstats.errors import SchemaError
from privstats.intake.column_names import same_names
from privstats.transforms.base import Transform
from privstats.transforms.columns import Categories, Numeric, column_of, table_of
from privstats.transforms.exact import Rows


@dataclass(frozen=True)
class Levels(Transform):
    """Columns and outcomes of two declared texts, of which the first counts as 0 and the second as 1.

    It is the first map of an effect's schema. A value follows from itself and this declaration alone, compared as in
    :class:`~privstats.Categories`: stripped and normalised, its case kept. Any other value of such a column, a 0 or a
    1 too, leaves the record out (``measure(..., unreadable="leave out")``). Numbers that come in here pass unchanged.

    Args:
        columns: those of two texts, each a :class:`~privstats.Categories` of two values.
        outcomes: empty where all are numbers; else one for each outcome in order, a ``Categories`` of two values, or a
            :class:`~privstats.Numeric` without edges.

    Raises:
        SchemaError: a column of another kind or of more values, or twice; or none at all.

    Example:
        >>> levels = ps.transforms.Levels((ps.Categories("arm", ("placebo", "drug")),))
        >>> schema = ps.EffectSchema.of(
        ...     {"age": (20, 90)}, treatment={"arm": ("placebo", "drug")}, outcome=(0, 1), probability=0.5
        ... )
        >>> schema.transform[0] == levels
        True
    """

    kind: ClassVar[str] = "levels"
    affine: ClassVar[bool] = True

    columns: tuple[Categories, ...] = ()
    outcomes: tuple[Categories | Numeric, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", _checked("columns", self.columns, numbers=False))
        object.__setattr__(self, "outcomes", _checked("outcomes", self.outcomes, numbers=True))
        if not self.columns and not any(isinstance(each, Categories) for each in self.outcomes):
            raise SchemaError("columns or outcomes must declare two texts of something; leave Levels out otherwise")
        if twice := same_names([each.name for each in (*self.columns, *self.outcomes)]):
            raise SchemaError(f"levels has {twice[0]!r} and {twice[1]!r}, one name in any case; keep one")

    def apply(self, rows: Rows) -> Rows:
        """The rows themselves: the readers of records replace the texts."""
        return rows

    def outputs(self, inputs: int | None) -> int | None:
        """As many as came in."""
        return inputs

    def of(self, name: str) -> Categories | None:
        """The declaration of a column; None where it holds numbers."""
        return next((each for each in self.columns if each.name == name), None)

    @property
    def said(self) -> str:
        """The declaration in words, for data owners."""
        worded = [each for each in (*self.columns, *self.outcomes) if isinstance(each, Categories)]
        parts = (f"in {each.name} {each.values[0]!r} counts as 0 and {each.values[1]!r} as 1" for each in worded)
        return "; ".join(parts)

    def plain_table(self) -> dict[str, Any]:
        """The fields as a plan file holds them: columns as tables with their kind."""
        return {name: [table_of(each) for each in getattr(self, name)] for name in ("columns", "outcomes")}


def _checked(field: str, columns: Any, *, numbers: bool) -> tuple[Any, ...]:
    if not isinstance(columns, Sequence) or isinstance(columns, str):
        raise SchemaError(f"{field} must be a tuple of columns, such as Categories('arm', ('placebo', 'drug'))")
    checked = tuple(column_of(each) for each in columns)
    for each in checked:
        if numbers and isinstance(each, Numeric) and each.edges is None and not each.unit:
            continue
        plain = isinstance(each, Categories) and not (each.other or each.missing or each.ordered)
        if not plain or len(getattr(each, "values", ())) != 2:
            either = ", or a Numeric without edges" if numbers else ""
            raise SchemaError(f"{field}: {each.name!r} must be Categories of two values, encoded as 0 and 1{either}")
    return checked
