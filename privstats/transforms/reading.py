"""What the values of a column say, in every container: each by itself, as ``one_value`` reads it.

A container gives all values of a column one type, so the type of one value follows from the others: a blank makes whole
numbers floats, a word makes numbers texts. Under a promise that is a leak, for one record then moves the cell of every
other one. So nothing here asks a column for its type but to be fast, and every type is read as if value by value:
``tests/transforms/test_reading.py`` holds containers against each other. Count tables, labels, features, files and ids
of records are read here and nowhere else. What a category, a bin or a class is, the schema says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.transforms.one_value import LONGEST, UNREADABLE, is_decimal, of_number, reading, same

__all__ = ["Listed", "Readings", "alike", "array_of", "decoded", "read", "values_of"]

_PLAIN = frozenset((str, bytes, int, float, bool, type(None)))
"""Types of which equal values are read alike; those of tuples, or of an hour of summer and of winter time, are not."""
_OF_DECIMALS = b"0123456789+-.eE"
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
    known = {value: of_number(value) if is_decimal(value) else reading(value) for value in set(plain)}
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
    if whole.translate(None, _OF_DECIMALS) or (len(whole) > LONGEST and max(map(len, values)) > LONGEST):
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
