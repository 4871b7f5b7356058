"""Declare a table's columns and encode their values, each by the declaration alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, fields
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import SchemaError
from privstats.intake.accepted import ColumnLike
from privstats.intake.columns import TRUTHS, Listed, Readings, alike, read, read_local
from privstats.intake.csv_dialect import Marks
from privstats.intake.declared.categories import Categories, Declared, require_switch
from privstats.intake.declared.dates import EPOCH, DateForm, days_between
from privstats.intake.meaning import TRUTH_TEXTS, is_decimal, local_time, meaning_of, same, shown
from privstats.python_values import python_value

_LONGEST_UNIT = 40
_NEAR = 2.0**-40  # relative: more than the 15 digits in which values are compared
_CENSORED = {"<": -_NEAR, "\u2264": 0.0, ">": _NEAR, "\u2265": 0.0}


@dataclass(frozen=True)
class Numeric(Declared):
    """A column of numbers, encoded by the cut points reached.

    Args:
        edges: public increasing cut points, reached by equal values. None: open, to be estimated by
            :class:`~privstats.Binned`.
        gaps: codes that mean missing, for example ``(-9, 999)``.
        unit: for example ``"mg/dl"``; shown, not checked.
        suffix: a sign that a text may have behind its number, for example ``"%"`` or ``"mg/dl"``; the number counts.
        censored: whether texts such as ``<0.01`` are numbers: just below, or above, the one that they name.

    Example:
        >>> ps.Numeric("sodium", (135, 145), gaps=(-9,), unit="mmol/l").edges
        (135.0, 145.0)
    """

    kind: ClassVar[str] = "numeric"

    name: str
    edges: tuple[float, ...] | None = None
    gaps: tuple[Any, ...] = ()
    unit: str = ""
    suffix: str = ""
    censored: bool = False

    def __post_init__(self) -> None:
        self.settle_fields()
        object.__setattr__(self, "edges", _checked_edges(self.name, self.edges, _number_of))
        self.settle_gaps(self.gaps)
        require_switch(self.name, "censored", self.censored)
        if not isinstance(self.suffix, str) or self.suffix != self.suffix.strip() or not self._is_suffix:
            raise SchemaError(
                f"suffix of {self.name} must be a text of at most {_LONGEST_UNIT} characters without digits, like '%'"
            )
        if not isinstance(self.unit, str) or not (self.unit + " ").isprintable() or len(self.unit) > _LONGEST_UNIT:
            raise SchemaError(f"unit of {self.name} must be a text of at most {_LONGEST_UNIT} characters, like 'mg/dl'")

    def edge_text(self, edge: float) -> str:
        """Format a cut point."""
        return f"{edge:.15g}"

    @property
    def marks(self) -> Marks:
        """What a field of a file may be."""
        return "affixed" if self.suffix or self.censored else "number"

    @property
    def _is_suffix(self) -> bool:
        plain = (self.suffix + " ").isprintable() and not any(each.isdigit() for each in self.suffix)
        return plain and len(self.suffix) <= _LONGEST_UNIT

    def number_in(self, text: str) -> float:
        """Return the number in a text with a suffix or a sign of censoring; NaN for any other text."""
        off = 0.0
        if self.censored and text[:1] in _CENSORED:
            off, text = _CENSORED[text[:1]], text[1:].removeprefix("=").strip()
        if self.suffix:
            text = text.removesuffix(self.suffix).strip()
        number = meaning_of(text) if is_decimal(text) else None
        return number + off * abs(number) if isinstance(number, float) else math.nan

    def _codes_of(self, readings: Readings) -> NDArray[np.float64]:
        numbers = readings.numbers
        if self.marks == "affixed":
            inner = readings.each([*map(self.number_in, readings.distinct)], nothing=math.nan)
            numbers = np.where(np.isnan(numbers), inner, numbers)
        return at_edges(numbers, self.edges)


@dataclass(frozen=True)
class Dates(Declared):
    """A column of dates, encoded by the cut points reached.

    Dates are ISO 8601 with hyphens, or of a date type, converted to UTC; ``03/04/2020`` is ambiguous unless ``written``
    states its order.

    Args:
        edges: increasing ISO texts, dates, or days since 1970-01-01; None: open.
        gaps: codes that mean missing, for example ``("1900-01-01",)``.
        written: another form that dates may have, such as ``"DD.MM.YYYY"``, ``"MM/DD/YY"``, ``"YYYYMMDD"``,
            ``"DDMONYYYY"`` or ``"days since 1899-12-30"`` (Excel). A time of day may follow. YY is 1969 to 2068.
            ``"ISO in Europe/Berlin"`` reads a time with a zone as the day and hour there, and not in UTC.

    Example:
        >>> ps.Dates("admitted", ("2020-01-01", "2021-01-01")).edges
        (18262.0, 18628.0)
    """

    kind: ClassVar[str] = "dates"
    unread: ClassVar[str] = "no dates"

    name: str
    edges: tuple[float, ...] | None = None
    gaps: tuple[Any, ...] = ()
    written: str = ""

    def __post_init__(self) -> None:
        self.settle_fields()
        _ = self._form
        object.__setattr__(self, "edges", _checked_edges(self.name, self.edges, self._day_of))
        self.settle_gaps(self.gaps)

    @property
    def reads_otherwise(self) -> bool:
        """Whether a time zone is declared."""
        return self._form.zone is not None

    def readings(self, values: ColumnLike) -> Readings:
        """Return the readings of values; with a declared time zone, of times in that zone."""
        return read(values) if self._form.zone is None else read_local(values, self._form.zone)

    @property
    def zone(self) -> str:
        """Name of the time zone whose day and hour count for a time with a zone."""
        return "UTC" if self._form.zone is None else str(self._form.zone)

    def edge_text(self, edge: float) -> str:
        """Format a cut point."""
        try:
            at = EPOCH + timedelta(days=edge)
        except OverflowError:
            return f"day {edge:.15g}"
        return at.date().isoformat() if edge.is_integer() else at.isoformat()

    def _codes_of(self, readings: Readings) -> NDArray[np.float64]:
        days = readings.each([*map(self._days_in, readings.distinct)], nothing=math.nan)
        if self._form.reads_numbers:
            days = np.where(np.isnan(readings.numbers), days, self._form.days_of_numbers(readings.numbers))
        return at_edges(days, self.edges)

    @cached_property
    def _form(self) -> DateForm:
        return DateForm.of(self.name, self.written)

    def _day_of(self, edge: Any) -> float:
        return _day_of(edge if self._form.zone is None else local_time(edge, self._form.zone))

    def _days_in(self, text: str) -> float:
        day = days_of(text)
        return day if day == day else self._form.days_in(text)


@dataclass(frozen=True)
class Truth(Declared):
    """A column of yes and no: 1 or 0, or yes/no, true/false, y/n or t/f in any case, mixed or not.

    Any other pair is declared, and then these two values alone are read.

    Args:
        gaps: codes that mean missing, for example ``(9,)``.
        values: the pair, what means no first: ``("FALSCH", "WAHR")``, or ``(2, 1)`` for codes. Read as in
            :class:`Categories`, case-sensitive. Empty: the usual words above.

    Example:
        >>> ps.Truth("smoker", gaps=(9,)).name
        'smoker'
        >>> ps.Cells((ps.Truth("on", values=("nein", "ja")),)).codes({"on": ["ja", "nein", "yes"]}).tolist()
        [[1.0], [0.0], [nan]]
    """

    kind: ClassVar[str] = "truth"
    unread: ClassVar[str] = "neither true nor false"

    name: str
    gaps: tuple[Any, ...] = ()
    _: KW_ONLY
    values: tuple[str, ...] | tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.settle_fields()
        self.settle_gaps(self.gaps)
        if self.values != ():
            object.__setattr__(self, "values", _checked_pair(self.name, self.values, self.gaps))

    @cached_property
    def listed(self) -> Listed:
        """The declared texts of no and yes, or the usual ones, as readings are compared with them."""
        return Listed.of(self.values) if self.values else TRUTHS

    def _codes_of(self, readings: Readings) -> NDArray[np.float64]:
        places = self.listed.places_of(readings)
        return np.where(places < 0, np.nan, places)


def _checked_pair(name: str, values: Any, gaps: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse what is no pair, and a pair that is the wrong way round."""
    pair = Categories(name, values, gaps=gaps).values
    if len(pair) != len(TRUTHS.numbers):
        raise SchemaError(f"values of {name} must be two, what means no first, got {len(pair)}; omit them for yes/no")
    no, yes = (TRUTH_TEXTS.get(str(each)) for each in pair)
    if no == 1 or yes == 0 or [*map(meaning_of, pair)] == [1.0, 0.0]:
        raise SchemaError(
            f"values of {name} must name what means no first, got {shown(pair[0])} and then {shown(pair[1])}: exchange "
            "them"
        )
    return pair


Column: TypeAlias = Numeric | Dates | Truth | Categories
"""A declared column."""

_COLUMN_KINDS: Mapping[str, type[Column]] = {kind.kind: kind for kind in (Numeric, Dates, Truth, Categories)}


def column_from_plan(table: Any) -> Column:
    """Invert ``to_plan``; SchemaError for unknown or missing keys."""
    if type(table) in _COLUMN_KINDS.values():  # exactly: a subclass could have other cells under the same digest
        column: Column = table
        return column
    known = ", ".join(kind.__name__ for kind in _COLUMN_KINDS.values())
    if not isinstance(table, Mapping):
        raise SchemaError(f"columns must hold {known}, got {type(table).__name__}")
    cls = _COLUMN_KINDS.get(kind) if isinstance(kind := table.get("kind"), str) else None
    where = f"the column {shown(table['name'])}" if "name" in table else "a column"
    if cls is None:
        raise SchemaError(f"{where} has the kind {shown(kind)}; say what it holds: one of {', '.join(_COLUMN_KINDS)}")
    names = {field.name for field in fields(cls)}
    unknown = sorted(str(key) for key in set(table) - names - {"kind"})
    if unknown:
        raise SchemaError(f"{where} has unknown keys {unknown}; {kind} knows {sorted(names)}")
    lacks = [field.name for field in fields(cls) if field.default is MISSING and field.name not in table]
    if lacks:
        raise SchemaError(f"{where} lacks {', '.join(lacks)}; add it to the column's table")
    return cls(**{key: value for key, value in table.items() if key != "kind"})


def days_of(text: str) -> float:
    """Return days from 1970-01-01 to a date; NaN for a text that is none."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    if at.tzinfo is not None or not text[4:5] == text[7:8] == "-":
        return math.nan
    return days_between(at)


def _checked_edges(name: str, edges: Any, number: Callable[[Any], float]) -> tuple[float, ...] | None:
    if edges is None:
        return None
    numbers = [number(edge) for edge in edges] if isinstance(edges, tuple | list) else []
    if not numbers or not all(map(math.isfinite, numbers)):
        raise SchemaError(
            f"edges of {name} must be one or more finite numbers or, of a date, ISO dates such as '2020-01-31'; leave "
            "them out to have them estimated"
        )
    if any(same(low) >= same(high) for low, high in pairwise(numbers)):
        raise SchemaError(f"edges of {name} must increase, in 15 digits; sort them and name each once")
    return tuple(each + 0.0 for each in numbers)


def _number_of(edge: Any) -> float:
    number = meaning_of(edge) if isinstance(edge, int | float) and not isinstance(edge, bool) else None
    return number if isinstance(number, float) else math.nan


def _day_of(edge: Any) -> float:
    if isinstance(edge, str | date | np.datetime64):
        day = meaning_of(python_value(edge) if not isinstance(edge, np.datetime64) else edge)
        return days_of(day) if isinstance(day, str) else math.nan
    return _number_of(edge)


def at_edges(numbers: NDArray[np.float64], edges: tuple[float, ...] | None) -> NDArray[np.float64]:
    """Return a new array; a number equal to an edge in 15 digits becomes it."""
    return numbers + 0.0 if edges is None else alike(numbers, edges) + 0.0
