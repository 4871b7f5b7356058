"""The meaning of the values of a column, in every container, each by itself; and names that they can match.

A container gives all values of a column one type, so the type of one value follows from the others: a blank turns
integers into floats, a word turns numbers into texts. Under a promise that is a leak, for one record then moves the
cell of every other one. So nothing here asks a column for its type except for speed, and every type is read as if by
value: ``tests/transforms/test_reading.py`` holds containers against each other. Count tables, labels, features, files
and ids of records are read here and nowhere else. What a category, a bin or a class is, the schema says. What one value
says, a number, a text or nothing, follows from that value alone. Schemas and declared columns check their public names
here.
"""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, SchemaError

Reading: TypeAlias = float | str | None
"""A finite number, a text, or None where nothing is given."""

_INFINITE = frozenset(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity"))
_NAMED = ("#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "-nan", "1.#ind", "1.#qnan", "<na>", "n/a", "na", "nan")
MISSING = frozenset(("", *_NAMED, "nat", "none", "null")) | _INFINITE
"""Texts that say that nothing is given, in any case: those that readers of tables know, and infinities."""

UNREADABLE = "\x01"
"""What values are read as that are no single value: which no public value can be, for theirs are printable."""

LOST = "\ufffd"
"""What decoders write for bytes that are no text in the encoding that was declared (U+FFFD): two texts that differed
may be one with it. So no public value holds it, and no id; a value with it is none that is listed."""

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}.*)?")
_INTERVAL = re.compile(r"([\[(])([^,()\[\]]+),([^,()\[\]]+)([\])])")
LONGEST = 1024
"""Characters of a text: more than a public name has in any form; the time to normalise grows with the square."""

_TRUTHS = {"true": 1.0, "false": 0.0}


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


def word_of(value: Any) -> str:
    """The word of :data:`MISSING`, in small letters, that a text is; empty where it is none or blank.

    Example:
        >>> from privstats.transforms.reading import word_of
        >>> [word_of(value) for value in (" None", b"NA", None, "light", "")]
        ['none', 'na', '', '', '']
    """
    text = str(value, "utf-8", "replace") if isinstance(value, bytes) else value if isinstance(value, str) else ""
    return word if (word := text.strip().lower()) in MISSING else ""


def same(value: float) -> float:
    """The number that a value counts as: itself at 15 digits, which every float64 keeps through a text.

    Example:
        >>> from privstats.transforms.reading import same
        >>> same(0.1 + 0.2) == same(0.3)
        True
    """
    return float(f"{value:.15g}")


def _reading(value: Any) -> Reading:
    match value:
        case str():
            return _of_text(str.__str__(value))
        case bytes() | bytearray():
            return _of_text(value.decode("utf-8", "replace"))
        case _ if value is None or value is np.ma.masked:
            return None
        case np.datetime64() | np.timedelta64():  # before numbers, for numpy takes a span for an integer
            return None if np.isnat(value) else _of_numpys_time(value)
        case bool() | int() | float() | np.bool_() | Decimal() | Real():
            return of_number(value)
        case date() | timedelta():
            return _of_date(value)
        case complex() | np.complexfloating() if value.imag == 0:
            return of_number(value.real)
        case np.ndarray() if not value.ndim:
            return reading(value[()])
    for name in ("as_py", "item"):  # a scalar of Arrow, or of torch
        if hasattr(value, name) and getattr(value, "ndim", 0) == 0 and not isinstance(value, np.ndarray):
            return reading(getattr(value, name)())
    if hasattr(type(value), "__len__") or hasattr(type(value), "__iter__"):
        return UNREADABLE
    return None if _is_nothing(value) else _of_text(str(value))


def of_number(value: Any) -> float | None:
    """A number of any type as a float; None where it is not finite or beyond every float."""
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


def is_decimal(value: Any) -> bool:
    """Whether a value is a text of a plain decimal."""
    return type(value) is str and len(value) <= LONGEST and _DECIMAL.fullmatch(value) is not None


def _of_text(text: str) -> Reading:
    if is_decimal(text):  # nearly always, and nothing below changes one
        return of_number(text)
    text = text.replace("\0", "").strip()  # numpy's texts lose what is 0 at their end
    if len(text) > LONGEST:
        return UNREADABLE
    text = unicodedata.normalize("NFC", text).strip()
    if _DECIMAL.fullmatch(text):
        return of_number(text)
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


_PLAIN = frozenset((str, bytes, int, float, bool, type(None)))
"""Types of which equal values are read alike; those of tuples, or of an hour of summer and of winter time, are not."""
_OF_DECIMALS = b"0123456789+-.eE"
_NEAR = 2.0**-45  # numbers of the same 15 digits are nearer than this part of themselves


@dataclass(frozen=True, eq=False)
class Readings:
    """The readings of some values.

    Attributes:
        numbers: float64 ``(n,)``; NaN where a value is no number.
        spoken: every different text; those of :data:`MISSING`, in small letters, mean a gap.
        places: of each value among ``spoken``, ``(n,)``; -1 of what is neither a text nor such a word.
        meant: the words that are texts like others here.
    """

    numbers: NDArray[np.float64]
    spoken: tuple[str, ...]
    places: NDArray[np.intp]
    meant: Collection[str] = ()

    @classmethod
    def of(cls, numbers: NDArray[np.float64], said: Sequence[str] = (), at: Any = slice(None)) -> Readings:
        """Of numbers; and of texts and words, empty where there is none, each value's at ``at`` among those given."""
        known = {text: place for place, text in enumerate(dict.fromkeys(filter(None, said)))}
        places = np.array([known.get(text, -1) for text in said], np.intp)[at] if said else np.full(len(numbers), -1)
        return cls(numbers, tuple(known), places)

    @cached_property
    def are_texts(self) -> NDArray[np.bool_]:
        """Which values are texts, ``(n,)``."""
        return self.each([text not in MISSING or text in self.meant for text in self.spoken], nothing=False)

    def each(self, values: Sequence[Any], nothing: Any) -> NDArray[Any]:
        """Of each value what belongs to its text or word, out of one for each of ``spoken``; of others ``nothing``."""
        return np.array([*values, nothing])[self.places]

    @property
    def texts(self) -> dict[int, str]:
        """By place, the values that are texts."""
        return {at: self.spoken[self.places[at]] for at in np.flatnonzero(self.are_texts).tolist()}

    @property
    def words(self) -> dict[int, str]:
        """By place, in small letters, the texts that are read as missing by :data:`MISSING`, blanks aside."""
        return {at: self.spoken[self.places[at]] for at in np.flatnonzero(self.missing & (self.places >= 0)).tolist()}

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where nothing is given, ``(n,)``."""
        return np.isnan(self.numbers) & ~self.are_texts

    @property
    def plain(self) -> NDArray[Any]:
        """One array: the numbers, or where there is a text objects, of which a gap is NaN."""
        texts = self.are_texts
        return np.where(texts, self.each(self.spoken, nothing=None), self.numbers) if texts.any() else self.numbers


def read(values: Any) -> Readings:
    """The reading of every value, as if each stood alone.

    Args:
        values: ``(n,)``, of any type: an array, a list, or a column of a frame; of further axes no value is single.

    Raises:
        DataError: a column whose type, whatever its values, has none that can be read, as a union of Arrow.
    """
    plain = values_of(values)
    kinds = set() if isinstance(plain, np.ndarray) else set(map(type, plain))
    if (numbers := _numbers(plain, kinds)) is not None:
        return Readings.of(np.where(np.isfinite(numbers), numbers + 0.0, np.nan))
    at = np.arange(len(plain))
    if kinds <= _PLAIN:  # each different value is read once
        known = {value: place for place, value in enumerate(dict.fromkeys(plain))}
        plain, at = list(known), np.fromiter(map(known.__getitem__, plain), np.intp, len(plain))
    readings = [of_number(value) if type(value) is float or is_decimal(value) else reading(value) for value in plain]
    numbers = np.array([each if isinstance(each, float) else math.nan for each in readings], np.float64)
    said = [word_of(value) if each is None else each for each, value in zip(readings, plain, strict=True)]
    return Readings.of(numbers[at], [text if isinstance(text, str) else "" for text in said], at)


def values_of(values: Any) -> Any:
    """The values of a column one by one, each of the type it has: an array of numbers ``(n,)``, or a list or tuple.

    Raises:
        DataError: as for :func:`read`.
    """
    if not isinstance(values, np.ndarray | list | tuple):
        typed = hasattr(values, "__array__") or isinstance(values, array | memoryview)
        values = array_of(values) if typed else list(values)
    if not isinstance(values, np.ndarray):
        return values
    if values.ndim > 1:  # a column of structures or arrays of polars
        return [UNREADABLE] * len(values)
    if isinstance(values, np.ma.MaskedArray):
        return [None if gone else value for value, gone in zip(values.data, np.ma.getmaskarray(values), strict=True)]
    if values.dtype.kind in "biuf":
        return values
    return list(values) if values.dtype.kind in "cmM" else values.tolist()


def _numbers(plain: Any, kinds: set[type]) -> NDArray[np.float64] | None:
    """All values where each is a number or None, or each a plain decimal or empty text: what reading each gives."""
    try:
        if kinds <= _PLAIN - {str, bytes}:
            with np.errstate(over="ignore"):
                return np.asarray(plain, np.float64)
        decimal = kinds == {str} and not (joined := "".join(plain).encode("ascii")).translate(None, _OF_DECIMALS)
        if not decimal or (len(joined) > LONGEST and max(map(len, plain)) > LONGEST):
            return None
        return np.fromiter(map(float, [text or "nan" for text in plain]), np.float64, len(plain))  # as _DECIMAL
    except (TypeError, ValueError, OverflowError):  # UnicodeEncodeError is a ValueError
        return None


def array_of(column: Any) -> NDArray[Any]:
    """A column of any library as numpy's array; a value that numpy cannot hold is :data:`UNREADABLE` in it.

    Such are a text of Arrow that is not UTF-8, and a time of day beyond a day. They leave the others as they are. A
    column whose type is Arrow's UUID holds UUIDs, and not their bytes.

    Raises:
        DataError: the column's type has no values that can be read.
    """
    column = decoded(column)
    if getattr(getattr(column, "type", None), "extension_name", "") == "arrow.uuid":
        return np.fromiter(column.to_pylist(), object, len(column))
    try:
        return np.asarray(column)
    except Exception:  # of the library in its own way, and with the value in its words
        if not hasattr(column, "__array__") or len(getattr(column, "shape", (0,))) != 1:
            raise
    values = column.to_list() if _is_beyond_numpy(column) else _by_halves(column)
    out = np.empty(len(values), object)
    for place, value in enumerate(values):
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
        array = np.asarray(column)
    except Exception:
        if len(column) == 1:
            return [UNREADABLE]
        middle = len(column) // 2
        return _by_halves(_part(column, 0, middle)) + _by_halves(_part(column, middle, len(column)))
    return list(array)


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
        """The listed values, no two of which are read alike; a word for a gap is itself."""
        readings = [word_of(value) or reading(value) for value in values]
        numbers = sorted((value, place) for place, value in enumerate(readings) if isinstance(value, float))
        texts = {value: place for place, value in enumerate(readings) if isinstance(value, str)}
        return cls(np.array([n for n, _ in numbers], np.float64), np.array([p for _, p in numbers], np.intp), texts)

    @property
    def words(self) -> frozenset[str]:
        """Those that mean a gap where they are not listed."""
        return MISSING & self.texts.keys()

    def places_of(self, column: Readings) -> NDArray[np.intp]:
        """The place of each value among the listed ones, ``(n,)``; -1 where it is none of them."""
        out = np.full(len(column.numbers), -1, np.intp)
        if len(self.numbers):
            numbers = alike(column.numbers, self.numbers)
            near = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
            np.copyto(out, self.places[near], where=self.numbers[near] == numbers)
        texts = column.each([self.texts.get(text, -1) for text in column.spoken], nothing=-1)
        return np.where(column.are_texts, texts, out)


_LONGEST_SHOWN = 40
_LONGEST_NAME = 200
_LARGEST_INTEGER = 1 << 53  # up to which float64 has every whole number


def checked_names(field: str, names: Any, count: int | None = None, of: str = "") -> tuple[str, ...] | None:
    """Different texts without control characters, as a tuple; None where there are none."""
    if names is None:
        return None
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        raise SchemaError(f"{field} must be a tuple of texts, for example ('cat', 'dog'), got {shown(names)}")
    for name in names:
        if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or name != name.strip():
            raise SchemaError(
                f"{field} holds {shown(name)}; a name has 1 to {_LONGEST_NAME} printable characters, "
                "and no space at either end"
            )
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise SchemaError(f"{field} holds {shown(twice)} twice; names tell things apart, so use each once")
    if count is not None and len(names) != count:
        raise SchemaError(f"{field} holds {len(names)} names but {of}={count}; name each once, in order")
    return tuple(str(name) for name in names)


SYNTHETIC_MARK = "privstats synthetic rows"
"""The column that marks synthetic rows, in every container and file."""


def require_records(names: Iterable[Any]) -> None:
    """Refuse a table of synthetic rows, which would be counted as if they were records.

    Raises:
        DataError: a column has the name of the mark.

    Example:
        >>> from privstats.transforms.reading import require_records
        >>> require_records(["age", "sex"])
    """
    if SYNTHETIC_MARK in names:
        raise DataError(
            f"the table holds synthetic rows (it has the column {SYNTHETIC_MARK!r}), and only records may be measured: "
            "bring the records themselves"
        )


def check_distinct(field: str, values: Sequence[Any], *, words: bool = False) -> None:
    """Refuse public values that no value of a record could be matched with.

    These are one that is read as missing, unless ``words`` may be listed, two that are read as the same, and one with a
    character that was lost in decoding, which may stand for several.

    Raises:
        SchemaError: naming the first such value.
    """
    known: dict[Reading, Any] = {}
    for value in values:
        read = (words and word_of(value)) or reading(value)
        if read is None:
            raise SchemaError(
                f"{field} holds {shown(value)}, which is read as a missing value, in every container: write it in "
                "other words, such as 'nothing found'"
            )
        if isinstance(read, str) and LOST in read:
            raise SchemaError(
                f"{field} holds {shown(value)}, of which a character was lost, so several values may look like it: "
                "read the file again in its own encoding"
            )
        if isinstance(read, float) and abs(read) >= _LARGEST_INTEGER:
            refusal = f"{field} holds {shown(value)}, and from 2**53 on numbers run together: put a letter before it"
            raise SchemaError(refusal)
        key = same(read) if isinstance(read, float) else read
        if key in known:
            raise SchemaError(
                f"{field} holds {shown(known[key])} and {shown(value)}, which are read as one value, in every "
                "container: put a letter before them"
            )
        known[key] = value


def shown(value: object) -> str:
    """A schema is public: a short text or number may be shown, anything else is named by its type."""
    if not isinstance(value, str | int | float) or len(repr(value)) > _LONGEST_SHOWN:
        return type(value).__name__
    return repr(str(value)) if isinstance(value, str) else repr(value)  # numpy's texts say that they are numpy's
