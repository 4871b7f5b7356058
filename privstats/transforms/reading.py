"""What one value of a table says: a number, a text, or nothing. It follows from that value alone.

A container gives all values of a column one type, so the type of one value follows from the others: a blank makes whole
numbers floats, a word makes numbers texts. Under a promise that is a leak, for one record then moves the cell of every
other one. So nothing here asks a column for its type but to be fast, and every type is read as if value by value:
``tests/transforms/test_reading.py`` holds containers against each other. Count tables, labels, features, files and ids
of records are read here and nowhere else. What a category, a bin or a class is, the schema says.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError

__all__ = [
    "MISSING",
    "UNREADABLE",
    "Listed",
    "Reading",
    "Readings",
    "alike",
    "array_of",
    "decoded",
    "read",
    "reading",
    "same",
    "values_of",
]

Reading: TypeAlias = float | str | None
"""A finite number, a text, or None where nothing is given."""

_INFINITE = frozenset(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity"))
_NAMED = ("#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "-nan", "1.#ind", "1.#qnan", "<na>", "n/a", "na", "nan")
MISSING = frozenset(("", *_NAMED, "nat", "none", "null")) | _INFINITE
"""Texts that say that nothing is given, in any case: those that readers of tables know, and infinities."""

UNREADABLE = "\x01"
"""What values are read as that are no single value: which no public value can be, for theirs are printable."""

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_OF_DECIMALS = b"0123456789+-.eE"
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}.*)?")
_INTERVAL = re.compile(r"([\[(])([^,()\[\]]+),([^,()\[\]]+)([\])])")
_LONGEST = 1024  # of a text: more than a public name has in any form; the time to normalise grows with the square
_PLAIN = frozenset((str, bytes, int, float, bool, type(None)))
"""Types of which equal values are read alike; those of tuples, or of an hour of summer and of winter time, are not."""
_TRUTHS = {"true": 1.0, "false": 0.0}
_NEAR = 2.0**-45  # numbers of the same 15 digits are nearer than this part of themselves


@dataclass(frozen=True, eq=False)
class Readings:
    """The readings of some values.

    Attributes:
        numbers: float64 ``(n,)``; NaN where a value is no number.
        texts: by place, the values that are texts.
    """

    numbers: NDArray[np.float64]
    texts: dict[int, str]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where nothing is given, ``(n,)``."""
        gone = np.isnan(self.numbers)
        gone[list(self.texts)] = False
        return gone


def reading(value: Any) -> Reading:
    """One value as a number, a text, or None where nothing is given.

    - None, NaN, pandas' NA and NaT, infinities, masked values, and the texts :data:`MISSING` are nothing.
    - Numbers of any type are float64 first; truths are 1 and 0.
    - A text is normalised (NFC) and stripped. If it is a plain decimal, it is that number (``007``, ``7.0`` and ``7e0``
      are one value); ``true`` and ``false`` in any case are 1 and 0; an ISO date is written in one way, and so is an
      interval (``(0.0, 10.0]`` is ``(0, 10]``, for a gap beside them makes whole edges floats).
    - Dates are their ISO text, in UTC; any other single value is its text.
    - What holds several values, a text of more than 1,024 characters, and what cannot say what it is: one and the same
      text, which no public value is. Nothing is raised, whatever the value does.

    Example:
        >>> from privstats.transforms.reading import reading
        >>> [reading(value) for value in ("007", 7, 7.0, " True", "n/a", None, "stage II", np.datetime64("2020-01-02"))]
        [7.0, 7.0, 7.0, 1.0, None, None, 'stage II', '2020-01-02']
    """
    try:
        return _reading(value)
    except Exception:  # of its own methods, or deeper than Python goes: no value may stop the reading of others
        return UNREADABLE


def read(values: Any) -> Readings:
    """The reading of every value, as if each stood alone.

    Args:
        values: ``(n,)``, of any type: an array, a list, or a column of a frame; of further axes no value is single.

    Raises:
        DataError: a column whose type, whatever its values, has none that can be read, as a union of Arrow.
    """
    plain = values_of(values)
    if isinstance(plain, np.ndarray):
        with np.errstate(over="ignore"):
            numbers = plain.astype(np.float64)
        return Readings(np.where(np.isfinite(numbers), numbers, np.nan), {})
    if set(map(type, plain)) <= _PLAIN:
        return _of_plain(plain)
    numbers, texts = np.full(len(plain), np.nan), {}
    for place, value in enumerate(plain):
        found = reading(value)
        if isinstance(found, str):
            texts[place] = found
        elif found is not None:
            numbers[place] = found
    return Readings(numbers, texts)


def values_of(values: Any) -> Any:
    """The values of a column one by one: an array of numbers ``(n,)``, or Python's own in a list or tuple.

    Raises:
        DataError: as for :func:`read`.
    """
    if not isinstance(values, np.ndarray | list | tuple):
        values = array_of(values) if hasattr(values, "__array__") else list(values)
    if not isinstance(values, np.ndarray):
        return values
    if values.ndim > 1:  # a column of structures or arrays of polars
        return [UNREADABLE] * len(values)
    if isinstance(values, np.ma.MaskedArray):
        return values.astype(object).tolist()  # None where it is masked
    if values.dtype.kind in "biuf":
        return values
    return list(values) if values.dtype.kind in "mM" else values.tolist()


def _of_plain(plain: Sequence[Any]) -> Readings:
    """The same of values that are read alike where they are equal: each different one is read once."""
    if (decimals := _decimals(plain)) is not None:
        return Readings(decimals, {})
    known = {value: _of_number(value) if _is_decimal(value) else reading(value) for value in set(plain)}
    number = {value: math.nan if found is None or isinstance(found, str) else found for value, found in known.items()}
    texts = {value: found for value, found in known.items() if isinstance(found, str)}
    numbers = np.fromiter(map(number.__getitem__, plain), np.float64, len(plain))
    places = ((place, value) for place, value in enumerate(plain) if value in texts) if texts else ()
    return Readings(numbers, {place: texts[value] for place, value in places})


def _decimals(values: Sequence[Any]) -> NDArray[np.float64] | None:
    """All values where each is a text of a plain decimal, or empty: a shortcut to what reading each gives."""
    try:
        whole = "".join(values).encode("ascii")
    except (TypeError, UnicodeEncodeError):
        return None
    if whole.translate(None, _OF_DECIMALS) or (len(whole) > _LONGEST and max(map(len, values)) > _LONGEST):
        return None
    try:  # of these characters float() takes what _DECIMAL takes
        numbers = np.array([float(text) if text else math.nan for text in values], np.float64)
    except ValueError:
        return None
    return np.where(np.isfinite(numbers), numbers, np.nan) + 0.0


def array_of(column: Any) -> NDArray[Any]:
    """A column of any library as numpy's array; a value that numpy cannot hold is :data:`UNREADABLE` in it.

    Such are a text of Arrow that is not UTF-8, and a time of day beyond a day. They leave the others as they are.

    Raises:
        DataError: the column's type has no values that can be read.
    """
    column = decoded(column)
    try:
        return np.asarray(column)
    except Exception:  # of the library in its own way, and with the value in its words
        if not hasattr(column, "__array__") or len(getattr(column, "shape", (0,))) != 1:
            raise
    found = column.to_list() if _is_beyond_numpy(column) else _by_halves(column)
    out = np.empty(len(found), object)
    for place, value in enumerate(found):
        out[place] = value
    return out


def _is_beyond_numpy(column: Any) -> bool:
    """Whether numpy has no such type but Python does, as polars' whole numbers of 128 bits."""
    try:
        np.asarray(_part(column, 0, 0))
    except Exception:
        if hasattr(column, "to_list"):
            return True
        raise DataError(
            "a column has a type whose values cannot be read one by one, such as a union of Arrow; give it as numbers, "
            "texts or dates"
        ) from None
    return False


def _by_halves(column: Any) -> list[Any]:
    """The values as if each stood alone, in as few steps as those that cannot be converted allow."""
    try:
        whole = np.asarray(column)
    except Exception:
        if len(column) == 1:
            return [UNREADABLE]
        middle = len(column) // 2
        return _by_halves(_part(column, 0, middle)) + _by_halves(_part(column, middle, len(column)))
    return list(whole)


def _part(column: Any, start: int, stop: int) -> Any:
    return column.iloc[start:stop] if hasattr(column, "iloc") else column[start:stop]


def decoded(column: Any) -> Any:
    """A column of Arrow itself where pandas holds one, and dictionaries of Arrow as their values.

    Pandas makes times Python's, which end with the year 9999; and numpy is given the value of another record for a gap
    in a dictionary.
    """
    if hasattr(getattr(column, "dtype", None), "pyarrow_dtype"):
        column = getattr(column, "array", column).__arrow_array__()
    kind: Any = getattr(column, "type", None)
    return column.cast(kind.value_type) if hasattr(kind, "index_type") and hasattr(column, "cast") else column


def same(value: float) -> float:
    """The number that a value counts as: itself at 15 digits, which every float64 keeps through a text.

    Example:
        >>> from privstats.transforms.reading import same
        >>> same(0.1 + 0.2) == same(0.3)
        True
    """
    return float(f"{value:.15g}")


def alike(numbers: NDArray[np.float64], marks: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """The numbers, each replaced by the mark that it is the same as at 15 digits, where there is one.

    Comparing what is returned with ``marks`` is comparing both at 15 digits; few numbers need the digits.

    Args:
        numbers: ``(n,)``; NaN stays.
        marks: at least one, increasing, no two of them the same at 15 digits.
    """
    edges, out = np.asarray(marks, np.float64), numbers.copy()
    place = np.searchsorted(edges, numbers)
    for near in (edges[np.maximum(place - 1, 0)], edges[np.minimum(place, len(edges) - 1)]):
        with np.errstate(over="ignore"):  # two ends of all floats are further apart than any float
            close = np.flatnonzero((np.abs(numbers - near) <= _NEAR * np.abs(near)) & (numbers != near))
        for at in close.tolist():
            if same(float(numbers[at])) == same(float(near[at])):
                out[at] = near[at]
    return out


@dataclass(frozen=True, eq=False)
class Listed:
    """Public values, as the values of records are compared with them: read alike, numbers at 15 digits.

    Attributes:
        numbers: those that are numbers, increasing.
        places: of each of them, its place among all.
        texts: the others' places.
    """

    numbers: NDArray[np.float64]
    places: NDArray[np.intp]
    texts: Mapping[str, int]

    @classmethod
    def of(cls, values: Sequence[Any]) -> Listed:
        """The listed values, no two of which are read alike, and none as missing."""
        found = [reading(value) for value in values]
        numbers = sorted((value, place) for place, value in enumerate(found) if isinstance(value, float))
        texts = {value: place for place, value in enumerate(found) if isinstance(value, str)}
        return cls(np.array([n for n, _ in numbers], np.float64), np.array([p for _, p in numbers], np.intp), texts)

    def places_of(self, column: Readings) -> NDArray[np.intp]:
        """The place of each value among the listed ones, ``(n,)``; -1 where it is none of them."""
        out = np.full(len(column.numbers), -1, np.intp)
        if len(self.numbers):
            numbers = alike(column.numbers, self.numbers)
            near = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
            np.copyto(out, self.places[near], where=self.numbers[near] == numbers)
        for place, text in column.texts.items():
            out[place] = self.texts.get(text, -1)
        return out


def _reading(value: Any) -> Reading:
    match value:
        case str():
            return _of_text(str.__str__(value))
        case bytes() | bytearray():
            return _of_text(value.decode("utf-8", "replace"))
        case None:
            return None
        case np.ma.MaskedArray() if value is np.ma.masked:
            return None
        case np.datetime64() | np.timedelta64():  # before numbers, for numpy takes a span for an integer
            return None if np.isnat(value) else _of_numpys_time(value)
        case bool() | int() | float() | np.bool_() | Decimal() | Real():
            return _of_number(value)
        case date() | timedelta():
            return _of_date(value)
        case complex() | np.complexfloating() if value.imag == 0:
            return _of_number(value.real)
        case np.ndarray() if not value.ndim:
            return reading(value[()])
    for name in ("as_py", "item"):  # a scalar of Arrow, or of torch
        if hasattr(value, name) and getattr(value, "ndim", 0) == 0 and not isinstance(value, np.ndarray):
            return reading(getattr(value, name)())
    if hasattr(type(value), "__len__") or hasattr(type(value), "__iter__"):
        return UNREADABLE
    return None if _is_nothing(value) else _of_text(str(value))


def _of_number(value: Any) -> float | None:
    try:
        number = float(value)
    except (OverflowError, ValueError):  # a whole number beyond every float; a signalling NaN
        return None
    return number + 0.0 if math.isfinite(number) else None  # -0 is 0


def _of_date(value: Any) -> Reading:
    """Of pandas' times numpy's, which hold years that Python's do not."""
    for name in ("to_datetime64", "to_timedelta64"):
        if hasattr(value, name):
            return reading(getattr(value, name)())
    return None if _is_nothing(value) else _of_time(value)


def _is_decimal(value: Any) -> bool:
    return type(value) is str and len(value) <= _LONGEST and _DECIMAL.fullmatch(value) is not None


def _of_text(text: str) -> Reading:
    if _is_decimal(text):  # nearly always, and nothing below changes one
        return _of_number(text)
    text = text.replace("\0", "").strip()  # numpy's texts lose what is 0 at their end
    if len(text) > _LONGEST:
        return UNREADABLE
    text = unicodedata.normalize("NFC", text).strip()
    if _DECIMAL.fullmatch(text):
        return _of_number(text)
    small = text.lower()
    if small in MISSING:
        return None
    if small in _TRUTHS:
        return _TRUTHS[small]
    if _ISO.fullmatch(text):
        try:
            return _of_time(datetime.fromisoformat(text))
        except ValueError:  # the 31st of April is a text
            return text
    if text[:1] in ("(", "[") and (ends := _INTERVAL.fullmatch(text)):
        first, low, high, last = ends.groups()
        return f"{first}{_of_end(low)}, {_of_end(high)}{last}"
    return text


def _of_end(text: str) -> str:
    """An end of an interval: a number at 15 digits, or a text."""
    end = _of_text(text)
    return text.strip() if end is None else f"{end:.15g}" if isinstance(end, float) else end


def _of_time(value: Any) -> str:
    """A date, a time or a span in one form; numpy gives an integer where it is beyond the year 9999."""
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)} us"
    if not isinstance(value, datetime):
        return value.isoformat() if isinstance(value, date) else f"{value} us"
    if value.tzinfo is not None:
        try:
            value = value.astimezone(UTC)
        except OverflowError:
            return str(value.isoformat())
    at = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return at.date().isoformat() if at.time() == time() else at.isoformat()


def _of_numpys_time(value: np.datetime64 | np.timedelta64) -> str:
    """In microseconds, unless there are more of them than numpy counts: its count starts again, at a time long past."""
    micros = value.astype(f"{value.dtype.str[1:3]}[us]")
    coarse = np.datetime_data(value.dtype)[0] not in ("us", "ns", "ps", "fs", "as")
    if coarse and micros.astype(value.dtype).astype(np.int64) != value.astype(np.int64):
        return UNREADABLE
    return _of_time(micros.item())


def _is_nothing(value: Any) -> bool:
    """Whether a value differs from itself, as NaT does, or cannot be compared, as pandas' NA."""
    try:
        return bool(value != value)
    except TypeError:
        return True
    except ValueError:  # an array is something
        return False
