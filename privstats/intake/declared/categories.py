"""Declare columns of listed values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privstats.errors import SchemaError
from privstats.intake.accepted import ColumnLike
from privstats.intake.columns import Decided, Listed, Readings, read, read_texts
from privstats.intake.csv_dialect import Marks
from privstats.intake.meaning import check_distinct, checked_names, meaning_of, shown
from privstats.python_values import python_fields

if TYPE_CHECKING:
    from privstats.intake.declared.unlisted import Lost

MISSING_CELL, OTHER_CELL = "missing", "other"


@dataclass(frozen=True)
class Declared:
    """Base of declared columns: a name, and gap codes."""

    kind: ClassVar[str]
    unread: ClassVar[str] = "no numbers"

    def settle_fields(self) -> None:
        """Store the fields as Python's values, and check the name; first in ``__post_init__``."""
        python_fields(self)
        self.settle_name()

    def settle_name(self) -> None:
        """Check and store the name."""
        name = self.name  # type: ignore[attr-defined]
        object.__setattr__(self, "name", (checked_names("a variable's name", (name,)) or ("",))[0])

    def to_plan(self) -> dict[str, Any]:
        """Return a plain table for a plan file, without defaults."""
        usual = {field.name: field.default for field in fields(self)}
        values = {name: getattr(self, name) for name in usual if name not in ("other", "missing")}  # Cells sets both
        stated = {name: value for name, value in values.items() if value != usual[name]}
        return {"kind": self.kind, **{name: list(v) if isinstance(v, tuple) else v for name, v in stated.items()}}

    @property
    def marks(self) -> Marks:
        """What a field of a file may be, before its file's decimal and thousands signs are read."""
        return "number"

    @property
    def reads_otherwise(self) -> bool:
        """Whether :meth:`readings` may read a value otherwise than a column that nothing declares."""
        return False

    def readings(self, values: ColumnLike) -> Readings:
        """Return the readings of values of any type, each by itself."""
        return read(values)

    def settle_gaps(self, gaps: Any) -> None:
        """Check and store the gap codes."""
        name = self.name  # type: ignore[attr-defined]
        if not isinstance(gaps, tuple | list):
            raise SchemaError(f"gaps of {name} must be a tuple of codes, for example (-9, 999), got {shown(gaps)}")
        gaps = tuple(meaning_of(gap) if isinstance(gap, date | np.datetime64) else gap for gap in gaps)
        if not all(isinstance(gap, str | int | float) for gap in gaps):
            raise SchemaError(f"gaps of {name} must be texts or numbers; a date is its ISO text")
        check_distinct(f"gaps of {name}", gaps, texts=self.marks == "text")
        object.__setattr__(self, "gaps", gaps)

    @cached_property
    def listed(self) -> Listed:
        """The listed values, in comparable form."""
        return Listed.of(getattr(self, "values", ()), texts=self.marks == "text")

    @property
    def words(self) -> frozenset[str]:
        """Lower-case values that elsewhere mean a gap, such as ``none``."""
        return self.listed.words

    def decide(self, readings: Readings) -> Decided:
        """Return which values are listed, and which are gaps."""
        decided = self.listed.decide(readings)
        if not self.gaps:  # type: ignore[attr-defined]
            return decided
        return Decided(decided.places, decided.gaps | self.are_gaps(readings))

    @cached_property
    def _gaps(self) -> Listed:
        return Listed.of(self.gaps, texts=self.marks == "text")  # type: ignore[attr-defined]

    def are_gaps(self, readings: Readings) -> NDArray[np.bool_]:
        """Return which values are declared gap codes, ``(n,)``."""
        return self._gaps.places_of(readings) >= 0

    def codes_and_unread(self, readings: Readings) -> tuple[NDArray[np.float64], int]:
        """Return codes, float64 ``(n,)``, and the number of unreadable values."""
        codes, lost = self.codes_and_lost(readings)
        return codes, lost.unread

    def codes_and_lost(self, readings: Readings) -> tuple[NDArray[np.float64], Lost]:
        """Return codes, float64 ``(n,)``, and the values that are in no cell of their own."""
        from privstats.intake.declared.unlisted import (
            Lost,  # a check of a plan reads no records, and loads no such module
        )

        decided, values = self.decide(readings), getattr(self, "values", ())
        codes, gaps = self._codes_of(readings), decided.gaps
        unread, other = np.isnan(codes) & ~gaps, self._are_others(codes, gaps)
        codes[gaps] = np.nan
        words = None
        if values and readings.distinct and gaps.any():
            words = gaps & ~self.are_gaps(readings) if self.gaps else gaps  # type: ignore[attr-defined]
        return codes, Lost.of(readings, unread, other, words, decided.places, values)

    def _are_others(self, _codes: NDArray[np.float64], _gaps: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """Return which values count in the cell "other"; None without such a cell."""
        return None

    def _codes_of(self, readings: Readings) -> NDArray[np.float64]:
        raise NotImplementedError


@dataclass(frozen=True)
class Categories(Declared):
    """A column of public values.

    Values are compared as :func:`privstats.intake.meaning.meaning_of` reads them, for any column type: ``"007"``, ``7``
    and ``7.0`` are one value, so are ``"True"``, ``True`` and ``1``.

    Args:
        values: at least two different texts or integers, no two read alike. Empty in :class:`~privstats.Cells`: only
            whether a value is given. A listed gap word, such as ``"none"``, is a value.
        other: all other values count in one cell. None: the plan's default, False in a :class:`~privstats.CountSchema`,
            True in :class:`~privstats.Cells`.
        missing: the same for missing values.
        ordered: values have an order; a record reaches its own value and all before it. For ``Cells``.
        gaps: values that mean missing. For ``Cells``.
        as_text: codes are texts: ``042`` and ``42`` are two values, and ``1E30`` is no number. A number's text is its
            decimal. For ``Cells``.

    A record without a cell is refused, or excluded from every table.

    Example:
        >>> blood = ps.Categories("blood", ("0", "A", "B", "AB"), missing=True)
        >>> blood.cells
        ('0', 'A', 'B', 'AB', 'missing')
    """

    kind: ClassVar[str] = "categories"
    unread: ClassVar[str] = "not among its listed values"

    name: str
    values: tuple[str, ...] | tuple[int, ...]
    other: bool | None = None
    missing: bool | None = None
    ordered: bool = False
    gaps: tuple[Any, ...] = ()
    as_text: bool = False

    def __post_init__(self) -> None:
        self.settle_name()
        values: tuple[Any, ...] = tuple(self.values) if isinstance(self.values, tuple | list) else (None,)
        if values and all(type(value) is int for value in values):
            different = len(set(values)) == len(values)
        elif all(isinstance(value, str) for value in values):
            different = checked_names(f"values of {self.name}", values) is not None
        else:
            different = False
        if len(values) == 1 or not different:
            raise SchemaError(f"values of {self.name} must be at least two different texts, or integers")
        for switch in ("other", "missing", "ordered", "as_text"):
            if (value := getattr(self, switch)) is not None or switch in ("ordered", "as_text"):
                require_switch(self.name, switch, value)
        object.__setattr__(self, "values", values)
        if self.as_text and not all(isinstance(each, str) for each in (*values, *self.gaps)):
            raise SchemaError(
                f"values and gaps of {self.name} must be texts, because as_text is set: put them in quotes"
            )
        self.settle_gaps(self.gaps)
        field = f"values of {self.name}" + " and its gaps" * bool(self.gaps)
        check_distinct(field, (*values, *self.gaps), texts=self.as_text)

    @property
    def cells(self) -> tuple[str, ...]:
        """Cell names, in order."""
        extra = (OTHER_CELL,) * bool(self.other) + (MISSING_CELL,) * bool(self.missing)
        return (*map(str, self.values), *extra)

    @property
    def is_scale(self) -> bool:
        """Whether each step from value to value is encoded by a sign; other values then count as missing."""
        return len(self.values) == 2 or (self.ordered and bool(self.values))

    @property
    def marks(self) -> Marks:
        """What a field of a file may be."""
        return "text" if self.as_text else "number"

    @property
    def reads_otherwise(self) -> bool:
        """Whether codes are texts."""
        return self.as_text

    def readings(self, values: ColumnLike) -> Readings:
        """Return the readings of values; with ``as_text`` all are texts."""
        return read_texts(values) if self.as_text else read(values)

    def _codes_of(self, readings: Readings) -> NDArray[np.float64]:
        places = self.listed.places_of(readings).astype(np.float64)
        places[places < 0] = np.nan if self.is_scale else len(self.values)
        return places

    def _are_others(self, codes: NDArray[np.float64], gaps: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        return None if self.is_scale or not self.values else (codes == len(self.values)) & ~gaps


def require_switch(name: str, field: str, value: object) -> None:
    """Refuse a value that is no bool."""
    if not isinstance(value, bool):
        raise SchemaError(f"{field} of {name} must be True or False, got {type(value).__name__}")
