"""Readings of a column of any library: one reader for each static type, chosen by that type alone.

A container stores a column with one type, so one record could change how others are read. A blank turns integers into
floats, a word turns numbers into texts. So each reader reads every value as :func:`privstats.intake.meaning.meaning_of`
reads it alone.

:data:`READERS` lists the readers and states three laws, by which ``tests/intake/test_columns.py`` tests each. A column
of another type is read value by value.
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.intake.accepted import ColumnLike
from privstats.intake.arrays import host_rows, is_tensor, require_plain
from privstats.intake.meaning import (
    LONGEST,
    MISSING,
    TRUTH_TEXTS,
    UNREADABLE,
    in_utc,
    is_decimal,
    local_time,
    meaning_of,
    of_number,
    same,
    text_meaning_of,
    word_of,
)

if TYPE_CHECKING:
    from torch import Tensor

_PLAIN = frozenset((str, bytes, int, float, bool, type(None)))
"""Types whose equal values have one reading. Equal tuples, or equal times of a repeated hour, may have several."""
_OF_DECIMALS = b"0123456789+-.eE"
_ZONED = re.compile(r"tz=|time_zone='|64\[\w+, ")
_NEAR = 2.0**-44  # relative: numbers with the same 15 digits are less than half of this apart


@dataclass(frozen=True, eq=False)
class Readings:
    """The readings of some values.

    Attributes:
        numbers: float64 ``(n,)``; NaN where a value is no number.
        distinct: the distinct texts and, in lower case, the distinct words of :data:`MISSING`, which mean a gap.
        places: index in ``distinct`` of each value, ``(n,)``; -1 for others.

    Whether a word means a gap depends on the column's declaration: :meth:`Listed.decide` alone decides it.
    """

    numbers: NDArray[np.float64]
    distinct: tuple[str, ...]
    places: NDArray[np.intp]

    @classmethod
    def of(
        cls, numbers: NDArray[np.float64], texts: Sequence[str] = (), index: NDArray[np.intp] | slice = slice(None)
    ) -> Readings:
        """Build readings from numbers and from ``texts[index]``, where an empty text means no text."""
        known = {text: place for place, text in enumerate(dict.fromkeys(filter(None, texts)))}
        codes = np.array([known.get(text, -1) for text in texts], np.intp)
        return cls(numbers, tuple(known), codes[index] if texts else np.full(len(numbers), -1))

    def take(self, places: NDArray[np.intp]) -> Readings:
        """Return the readings of the values at these indices; at index -1 a missing value."""
        numbers, indices = np.append(self.numbers, math.nan), np.append(self.places, -1)
        return Readings(numbers[places], self.distinct, indices[places])

    def part(self, where: slice) -> Readings:
        """Return the readings of consecutive values."""
        if not self.distinct:
            return Readings(self.numbers[where], (), self.places[where])
        used, places = np.unique(self.places[where], return_inverse=True)
        distinct = tuple(self.distinct[place] for place in used.tolist() if place >= 0)
        return Readings(self.numbers[where], distinct, places - (len(used) - len(distinct)))

    @cached_property
    def are_texts(self) -> NDArray[np.bool_]:
        """Which values are texts, ``(n,)``."""
        if not self.distinct:
            return np.zeros(len(self.numbers), np.bool_)
        return self.each([text not in MISSING for text in self.distinct], nothing=False)

    def each(self, values: Sequence[object], nothing: object) -> NDArray[Any]:
        """Return the entry of ``values`` at each value's index in ``distinct``, or ``nothing``."""
        return np.array([*values, nothing])[self.places]

    @property
    def texts(self) -> dict[int, str]:
        """Values that are texts, by index."""
        return {i: self.distinct[self.places[i]] for i in np.flatnonzero(self.are_texts).tolist()}

    def counted(self, chosen: NDArray[np.bool_]) -> Counter[str]:
        """Count the distinct values at these indices, as texts."""
        texts = self.texts
        return Counter(texts.get(i, f"{self.numbers[i]:.15g}") for i in np.flatnonzero(chosen).tolist())

    @property
    def words(self) -> dict[int, str]:
        """Values that are words of :data:`MISSING`, by index and in lower case; no blanks."""
        return {i: self.distinct[self.places[i]] for i in np.flatnonzero(self.missing & (self.places >= 0)).tolist()}

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Mask of values that mean a gap unless the declaration lists their word, ``(n,)``."""
        return np.isnan(self.numbers) & ~self.are_texts

    @property
    def plain(self) -> NDArray[Any]:
        """The numbers as an array; if any value is a text, an array of objects, NaN for a gap."""
        return self.keeping(())

    def keeping(self, words: Collection[str]) -> NDArray[Any]:
        """Return :attr:`plain` with these words of :data:`MISSING` as texts, for a reader who knows the declaration."""
        retained = [text not in MISSING or text in words for text in self.distinct]
        if not any(retained) or not (texts := self.each(retained, nothing=False)).any():
            return self.numbers
        return np.where(texts, self.each(self.distinct, nothing=None), self.numbers)


def read(values: ColumnLike) -> Readings:
    """Return the reading of every value, each by itself.

    Args:
        values: ``(n,)``, of any type: an array, a list, or a column of a frame; with more axes no value is readable.

    Raises:
        DataError: the column's type has no values that can be read, such as a union of Arrow.
    """
    return reader_of(*static_type(values))(values)


def read_texts(values: ColumnLike) -> Readings:
    """Return the reading of every value as :func:`privstats.intake.meaning.text_meaning_of` reads it alone.

    Example:
        >>> from privstats.intake.columns import read_texts
        >>> read_texts(["042", "42", 42, None]).distinct
        ('042', '42')
    """
    plain = values if isinstance(values, list | tuple) else values_of(values)
    readings = [text_meaning_of(value) for value in (plain.tolist() if isinstance(plain, np.ndarray) else plain)]
    texts = [word_of(value) if each is None else each for each, value in zip(readings, plain, strict=True)]
    return Readings.of(np.full(len(texts), math.nan), [text if isinstance(text, str) else "" for text in texts])


def read_local(values: ColumnLike, zone: tzinfo) -> Readings:
    """Return the reading of every value, where a time with a zone is its time in another zone.

    Example:
        >>> from zoneinfo import ZoneInfo
        >>> from privstats.intake.columns import read_local
        >>> read_local(["2019-03-27T23:00:00Z", "2019-03-28", None], ZoneInfo("Europe/Berlin")).distinct
        ('2019-03-28',)
    """
    if has_zone(static_type(values)[1]):
        readings = read(values)
        local = [meaning_of(local_time(in_utc(text), zone)) for text in readings.distinct]
        return Readings.of(
            readings.numbers, [*(text if isinstance(text, str) else "" for text in local), ""], readings.places
        )
    plain = values if isinstance(values, list | tuple) else values_of(values)
    return of_values([local_time(value, zone) for value in plain])


def has_zone(kind: str) -> bool:
    """Return whether a column of this type holds times with a zone, by the name that its library declares.

    Example:
        >>> from privstats.intake.columns import has_zone
        >>> has_zone("datetime64[ns, Europe/Berlin]"), has_zone("timestamp[us, tz=UTC]"), has_zone("timestamp[us]")
        (True, True, False)
    """
    return _ZONED.search(kind) is not None


def with_zones(column: ColumnLike) -> NDArray[Any]:
    """Return a column of Arrow as an array; a time with a zone is its ISO text, because numpy's times have no zone."""
    if not has_zone(static_type(column)[1]):
        return array_of(column)
    readings = read(column)
    return readings.each([*map(in_utc, readings.distinct)], nothing=None)


def static_type(values: object) -> tuple[str, str]:
    """Return a column's library, and the type name that the library declares for all values.

    Example:
        >>> static_type(np.zeros(3, np.float32)), static_type([1, "one"])
        (('numpy', 'float32'), ('builtins', ''))
    """
    if isinstance(values, np.ndarray):
        library = "numpy.ma" if isinstance(values, np.ma.MaskedArray) else "numpy"
        return library if values.ndim == 1 else f"{library}, several axes", values.dtype.name
    kind = getattr(values, "dtype", getattr(values, "type", ""))
    return type(values).__module__.partition(".")[0], str(kind)


@lru_cache(maxsize=256)
def reader_of(library: str, kind: str) -> Callable[[Any], Readings]:
    """Return the reader of a static type. No value is passed, so no value can decide which reader is used."""
    rows = (row for (owner, kinds), row in READERS.items() if owner == library and re.fullmatch(kinds, kind))
    return next(rows, _of_any)


def of_values(plain: Sequence[object]) -> Readings:
    """Return the readings of values that have no common type, each value by itself.

    Two shortcuts use the types of all values; each returns what ``meaning_of`` returns for every value.
    """
    kinds = set(map(type, plain))
    if (numbers := _numbers(plain, kinds)) is not None:
        return _of_finite(numbers)
    index = np.arange(len(plain))
    if kinds <= _PLAIN:  # each different value is read once
        known = {value: place for place, value in enumerate(dict.fromkeys(plain))}
        plain, index = list(known), np.fromiter(map(known.__getitem__, plain), np.intp, len(plain))
    readings = [of_number(value) if type(value) is float or is_decimal(value) else meaning_of(value) for value in plain]
    numbers = np.array([each if isinstance(each, float) else math.nan for each in readings], np.float64)
    texts = [word_of(value) if each is None else each for each, value in zip(readings, plain, strict=True)]
    return Readings.of(numbers[index], [text if isinstance(text, str) else "" for text in texts], index)


def _of_any(values: ColumnLike) -> Readings:
    plain = values if isinstance(values, list | tuple) else values_of(values)
    return _of_typed(plain) if isinstance(plain, np.ndarray) else of_values(plain)


def _of_typed(values: NDArray[Any]) -> Readings:
    """Read a numpy array by its dtype."""
    return reader_of("numpy", values.dtype.name)(values)


def _of_numbers(values: ColumnLike) -> Readings:
    """Read numbers as float64; -0 is 0, and what is not finite is missing."""
    with np.errstate(over="ignore"):
        return _of_finite(np.asarray(values).astype(np.float64))


def _of_finite(numbers: NDArray[np.float64]) -> Readings:
    """Read an array, changing it in place: the caller must hold the only reference."""
    numbers[~np.isfinite(numbers)] = math.nan
    numbers += 0.0
    return Readings.of(numbers)


def _of_times(values: ColumnLike) -> Readings:
    plain = array_of(values)
    if plain.dtype.kind not in "mM":  # the library gives Python's times where numpy cannot hold one
        return of_values(plain.tolist())
    different, places = np.unique(plain, return_inverse=True)
    return of_values(list(different)).take(places)


def _of_masked(values: np.ma.MaskedArray[tuple[int], np.dtype[Any]]) -> Readings:
    plain = _of_typed(np.asarray(values.data))
    return plain.take(np.where(np.ma.getmaskarray(values), -1, np.arange(len(values))))


def _of_category(values: Any) -> Readings:
    """Read a categorical column; the code of a gap is -1."""
    held = getattr(values, "array", values)
    return read(held.categories).take(np.asarray(held.codes, np.intp))


def _of_tensor(values: Tensor) -> Readings:
    return read(array_rows(values, "a column"))


READERS: Mapping[tuple[str, str], Callable[[Any], Readings]] = {
    ("numpy", r"bool|u?int\d+|float\d+|longdouble"): _of_numbers,
    ("numpy", r"(datetime|timedelta)64(\[.*\])?"): _of_times,
    ("numpy", r"object|str\d*|bytes\d*"): lambda values: of_values(values.tolist()),
    ("numpy.ma", r"(?!void).*"): _of_masked,
    ("pandas", r"bool|u?int\d+|float\d+"): _of_numbers,
    ("pandas", r"boolean|U?Int\d+|Float\d+"): lambda values: _of_numbers(values.to_numpy(float, na_value=math.nan)),
    ("pandas", r"(datetime|timedelta)64\[\w+\]"): _of_times,
    ("pandas", r"category"): _of_category,
    ("pandas", r".*\[pyarrow\]"): lambda values: read(decoded(values)),
    ("polars", r"U?Int(8|16|32|64)|Float\d+"): _of_numbers,
    ("polars", r"Boolean"): lambda values: _of_numbers(values.cast(sys.modules["polars"].Float64)),
    ("polars", r"Date|(Datetime|Duration)\(.*\)"): _of_times,
    ("pyarrow", r"u?int\d+|halffloat|float|double"): _of_numbers,
    ("pyarrow", r"bool"): lambda values: _of_numbers(values.cast("uint8")),
    ("pyarrow", r"null"): lambda values: Readings.of(np.full(len(values), math.nan)),
    ("pyarrow", r"(timestamp|date32|date64|duration)\[.*\]"): _of_times,
    ("pyarrow", r"dictionary<.*>"): lambda values: read(decoded(values)),
    ("torch", r"torch\.(bool|u?int\d+|(b?float|complex)\d+)"): _of_tensor,
}
"""The readers by a column's library and a pattern of the names of its static type, as :func:`static_type` gives both.

A reader reads each value as ``meaning_of`` does alone, and joined columns likewise. A value that the
library promotes to another type has the same reading, but for the pairs that ``tests/intake/test_columns.py`` lists. A
type without a row is read value by value (:func:`_of_any`).
"""


def values_of(values: Any) -> NDArray[Any] | Sequence[object]:
    """Return the values of a column one by one: an array of numbers ``(n,)``, or a list."""
    if isinstance(values, list | tuple):
        return values
    if not isinstance(values, np.ndarray | array | memoryview) and not hasattr(values, "__array__"):
        return list(values)
    held: NDArray[Any] = values if isinstance(values, np.ndarray) else array_of(values)
    if held.ndim > 1:  # a column of structures or arrays of polars
        return [UNREADABLE] * len(held)
    if isinstance(held, np.ma.MaskedArray):
        return [None if gone else value for value, gone in zip(held.data, np.ma.getmaskarray(held), strict=True)]
    if held.dtype.kind in "biuf":
        return held
    plain: list[object] = list(held) if held.dtype.kind in "cmM" else held.tolist()
    return plain


def _numbers(plain: Any, kinds: set[type]) -> NDArray[np.float64] | None:
    """Return the readings if all values are numbers or None, or all plain decimals or empty texts."""
    try:
        if kinds <= _PLAIN - {str, bytes}:
            with np.errstate(over="ignore"):
                return np.asarray(plain, np.float64)
        decimal = kinds == {str} and not (joined := "".join(plain).encode("ascii")).translate(None, _OF_DECIMALS)
        if not decimal or (len(joined) > LONGEST and max(map(len, plain)) > LONGEST):
            return None
        return np.fromiter(map(float, [text or "nan" for text in plain]), np.float64, len(plain))  # as is_decimal
    except (TypeError, ValueError, OverflowError):  # UnicodeEncodeError is a ValueError
        return None


def array_of(column: Any) -> NDArray[Any]:
    """Return a column of any library as a numpy array; a value that numpy cannot hold is :data:`UNREADABLE` in it.

    Examples are an Arrow text that is not UTF-8, and a time of day beyond a day. Arrow's type UUID yields UUIDs, not
    bytes. Where a library yields a masked array, a masked value is None.
    """
    column = decoded(column)
    if getattr(getattr(column, "type", None), "extension_name", "") == "arrow.uuid":
        return np.fromiter(column.to_pylist(), object, len(column))
    try:
        array = np.asanyarray(column)
        if isinstance(array, np.ma.MaskedArray) and array is not column:
            held = array.data.astype(object)
            held[np.ma.getmaskarray(array)] = None
            return held
        return np.asarray(array)
    except Exception:  # each library raises its own class, and its text may hold a record's value
        if not hasattr(column, "__array__") or len(getattr(column, "shape", (0,))) != 1:
            raise
    if hasattr(column, "to_list"):  # numpy has no such type but Python does, as polars' integers of 128 bits
        values = column.to_list()
    else:
        try:
            np.asarray(column[:0])
        except Exception:
            raise DataError(
                "a column has a type whose values cannot be read one by one, such as a union of Arrow; convert it to "
                "numbers, texts or dates"
            ) from None
        values = _by_halves(column)
    return np.fromiter(values, object, len(values))


def array_rows(values: Any, field: str) -> NDArray[Any]:
    """Return a tensor, or another container of values, as a numpy array in host memory.

    Args:
        field: name of the values, for the refusal of a tensor that is sparse, has no values or requires a gradient.
    """
    if is_tensor(values):
        require_plain(values, field)
        return host_rows(values.cpu())
    return array_of(values)


def typed(column: Any) -> Any:
    """Return a column whose library declares no type as a numpy array, and other columns unchanged.

    Example:
        >>> from privstats.intake.columns import typed
        >>> typed([1, "one"])
        [1, 'one']
    """
    declared = static_type(column)[1] != "" or not hasattr(column, "__array__")
    return column if declared else array_of(column)


def _by_halves(column: Any) -> list[Any]:
    """Convert each value by itself, in few steps where few cannot be converted."""
    try:
        array = np.asarray(column)
    except Exception:
        if len(column) == 1:
            return [UNREADABLE]
        middle = len(column) // 2
        return _by_halves(column[:middle]) + _by_halves(column[middle:])
    return list(array)


def decoded(column: Any) -> Any:
    """Return the Arrow column where pandas holds one, and a dictionary of Arrow as its values.

    Pandas would return Python's times, which end with the year 9999. For a gap in a dictionary, numpy would receive
    another record's value.
    """
    if hasattr(getattr(column, "dtype", None), "pyarrow_dtype"):
        column = getattr(column, "array", column).__arrow_array__()
    kind: Any = getattr(column, "type", None)
    return column.cast(kind.value_type) if hasattr(kind, "index_type") and hasattr(column, "cast") else column


def alike(numbers: NDArray[np.float64], marks: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the numbers, each replaced by the mark that equals it at 15 digits, if any.

    Comparing the result with ``marks`` compares both at 15 digits.

    Args:
        numbers: ``(n,)``; NaN stays.
        marks: at least one, increasing, no two of them the same at 15 digits.
    """
    edges, out = np.asarray(marks, np.float64), numbers.copy()
    nearest = np.searchsorted(edges[:-1] / 2 + edges[1:] / 2, numbers)
    near = edges[nearest]
    with np.errstate(over="ignore"):  # two ends of all floats are further apart than any float
        off = np.abs(numbers - near)
    for row in np.flatnonzero((off <= _NEAR * np.abs(near)) & (off > 0)).tolist():
        for mark in edges[max(nearest[row] - 1, 0) : nearest[row] + 2].tolist():  # only neighbours share its digits
            if same(float(numbers[row])) == same(mark):
                out[row] = mark
    return out


@dataclass(frozen=True, eq=False)
class Decided:
    """Which values of a column are listed values, and which are gaps.

    Attributes:
        places: index of each listed value, ``(n,)``; -1 for others.
        gaps: mask of gaps, ``(n,)``.
    """

    places: NDArray[np.intp]
    gaps: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Listed:
    """Public values, in the form that records' values are compared with: numbers at 15 digits.

    Attributes:
        numbers: the values that are numbers, increasing.
        places: index of each number among all values.
        texts: index of each other value among all values, by its text.
    """

    numbers: NDArray[np.float64]
    places: NDArray[np.intp]
    texts: Mapping[str, int]

    @classmethod
    def of(cls, values: Sequence[object], *, texts: bool = False) -> Listed:
        """Build from values, no two of which are read alike; a word for a gap counts as a text.

        Args:
            texts: numbers are texts, too.
        """
        readings = [word_of(value) or (text_meaning_of(value) if texts else meaning_of(value)) for value in values]
        numbers = sorted((value, place) for place, value in enumerate(readings) if isinstance(value, float))
        words = {value: place for place, value in enumerate(readings) if isinstance(value, str)}
        return cls(np.array([n for n, _ in numbers], np.float64), np.array([p for _, p in numbers], np.intp), words)

    @property
    def words(self) -> frozenset[str]:
        """Listed words that otherwise mean a gap."""
        return MISSING & self.texts.keys()

    def decide(self, column: Readings, gaps: Listed | None = None) -> Decided:
        """Decide for each value of a column whether it is a listed value, a gap or neither.

        A listed word is a value, even if it means a gap elsewhere, such as ``none``. Every reader of a declared column
        calls this function.

        Args:
            gaps: the declared gap codes.

        Example:
            >>> from privstats.intake.columns import Listed, read
            >>> decided = Listed.of(["none", "light"]).decide(read(["None", "NA", "light", "heavy"]))
            >>> decided.places.tolist(), decided.gaps.tolist()
            ([0, -1, 1, -1], [False, True, False, False])
        """
        places = self.places_of(column)
        missing = column.missing & (places < 0)
        if gaps is not None and (len(gaps.numbers) or gaps.texts):
            missing |= gaps.places_of(column) >= 0
        return Decided(places, missing)

    def places_of(self, column: Readings) -> NDArray[np.intp]:
        """Return each value's index among the listed ones, ``(n,)``; -1 for others."""
        out = np.full(len(column.numbers), -1, np.intp)
        if len(self.numbers):
            numbers = alike(column.numbers, self.numbers)
            near = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
            np.copyto(out, self.places[near], where=self.numbers[near] == numbers)
        texts = column.each([self.texts.get(text, -1) for text in column.distinct], nothing=-1)
        return np.where(column.places >= 0, texts, out)


TRUTHS = Listed(np.array([0.0, 1.0]), np.array([0, 1]), {text: int(truth) for text, truth in TRUTH_TEXTS.items()})
"""No at index 0 and yes at index 1: the numbers 0 and 1, ``true`` and ``false``, yes, no, y, n, t and f in any case."""
