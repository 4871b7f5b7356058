"""Declare the columns of a synthetic table, and map each record's values to what a count table reads.

Every map here is public and reads one value of one record, so counting mapped values costs what counting values costs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError, SchemaError
from privstats.intake.column_names import places_in
from privstats.intake.columns import read
from privstats.intake.meaning import UNREADABLE, checked_names, same
from privstats.schema import Bins, CountSchema, Variable
from privstats.transforms import Categories, Dates, Numeric, Truth

_MAX_BUCKETS = 1024
_MIN_EDGES = 3
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Hashed:
    """A column of codes without a public list of values, counted by the bucket of a public hash.

    Args:
        name: of the column.
        buckets: number of buckets, 2 to 1,024. Codes in one bucket cannot be distinguished in any table.
        salt: a public text. Another salt puts other codes together.

    Guarantee:
        The bucket is a function of the salt and of this one value, both fixed before any record is read. A record
        therefore counts 1 in exactly one bucket, or in the cell for a missing value, whatever it and others hold. The
        squared sensitivity of J count tables stays J (add-remove) and 2 J (replace-one), as ``CountSchema`` proves for
        listed categories: no further budget is spent. The hash itself hides nothing, because anyone can hash a guessed
        code. Only the noise of the counts protects a code, and no session names one.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> from privstats.contrib.synthetic.columns import Hashed
        >>> icd = Hashed("icd", buckets=16)
        >>> icd.bucket("E11.9") == icd.bucket(" E11.9"), icd.bucket("007") == icd.bucket(7.0)
        (True, True)
    """

    name: str
    buckets: int
    salt: str = ""

    def __post_init__(self) -> None:
        checked_names("a column's name", (self.name,))
        if type(self.buckets) is not int or not 2 <= self.buckets <= _MAX_BUCKETS:
            raise SchemaError(f"buckets of {self.name} must be a whole number from 2 to {_MAX_BUCKETS}")
        if not isinstance(self.salt, str):
            raise SchemaError(f"salt of {self.name} must be a text, got {type(self.salt).__name__}")

    def bucket(self, value: Any) -> int | None:
        """Return the bucket of one value; None where nothing is given."""
        return self.codes([value])[0]  # type: ignore[no-any-return]

    def codes(self, values: Any) -> NDArray[Any]:
        """Return the bucket of every value as objects, ``(n,)``; None where nothing is given."""
        readings = read(values)
        out = np.full(len(readings.numbers), None, object)
        numbers, places = np.unique(readings.numbers[~np.isnan(readings.numbers)], return_inverse=True)
        if len(numbers):
            hashed = np.array([self._hash(f"number {same(float(each)):.15g}") for each in numbers], object)
            out[~np.isnan(readings.numbers)] = hashed[places]
        for at, text in readings.texts.items():
            out[at] = self._hash(f"text {text}")
        return out

    def _hash(self, code: str) -> int:
        digest = hashlib.sha256(f"privstats/synthetic/bucket\0{self.salt}\0{code}".encode()).digest()
        return int.from_bytes(digest, "big") % self.buckets


Column: TypeAlias = Numeric | Dates | Truth | Categories | Hashed


def schema_of(columns: Sequence[Column]) -> CountSchema:
    """Return the one-way tables of declared columns, in which every value has a cell.

    Args:
        columns: numeric columns and dates need at least three public edges; the outer two are the range in which
            values are drawn, and values beyond it count in the outer bins.

    Raises:
        SchemaError: edges are missing, or a column is no declaration.

    Example:
        >>> from privstats.contrib.synthetic.columns import schema_of
        >>> schema_of((ps.Numeric("age", (0, 40, 65, 110)), ps.Truth("smoker"))).variable("age").cells
        ('under 40', '40 to 65', '65 or more', 'missing')
    """
    variables = tuple(_variable(column) for column in columns)
    return CountSchema(variables, tuple((variable.name,) for variable in variables))


def _variable(column: Any) -> Variable:
    match column:
        case Numeric() | Dates():
            if column.edges is None or len(column.edges) < _MIN_EDGES:
                raise SchemaError(
                    f"edges of {column.name} must be at least {_MIN_EDGES} numbers, from the lowest value that is "
                    "drawn to the highest; many fine cells are fine, because the course merges them"
                )
            return Bins(column.name, column.edges, missing=True)
        case Truth():
            return Categories(column.name, (0, 1), missing=True)
        case Categories():
            return Categories(column.name, column.values, other=not column.is_scale, missing=True)
        case Hashed():
            return Categories(column.name, tuple(range(column.buckets)), missing=True)
    raise SchemaError(f"columns must hold Numeric, Dates, Truth, Categories and Hashed, got {type(column).__name__}")


def coded(columns: Sequence[Column], table: Any) -> dict[str, Any]:
    """Map a party's table to the columns that the count tables of :func:`schema_of` read.

    Args:
        columns: as declared.
        table: a mapping from names to values, or a frame.

    Raises:
        DataError: a column is missing, or two columns have its name.

    Example:
        >>> from privstats.contrib.synthetic.columns import coded
        >>> coded((ps.Categories("sex", ("f", "m"), gaps=(9,)),), {"Sex": ["m", 9, None]})["sex"].tolist()
        ['m', None, None]
    """
    names = list(table) if isinstance(table, Mapping) else list(table.columns)
    places = places_in([column.name for column in columns], names)
    if None in places:
        missing = columns[places.index(None)].name
        raise DataError(f"the table lacks the column {missing!r}; give every declared column")
    return {
        column.name: _values(column, table[names[place]])
        for column, place in zip(columns, places, strict=True)
        if place is not None
    }


def _values(column: Column, values: Any) -> NDArray[Any]:
    if isinstance(column, Hashed):
        return column.codes(values)
    codes, _ = column.codes(read(values))
    if not isinstance(column, Categories):
        return codes
    listed = np.array([*column.values, UNREADABLE, None], object)
    return listed[np.where(np.isnan(codes), len(listed) - 1, codes).astype(np.intp)]


def restored(column: Column, values: Sequence[Any]) -> list[Any]:
    """Return drawn values in the words of their declaration: dates as ISO texts, truths as True and False."""
    match column:
        case Dates():
            return [None if value is None else _date(value) for value in values]
        case Truth():
            return [None if value is None else bool(value) for value in values]
    return list(values)


def _date(days: float) -> str:
    return (_EPOCH + timedelta(days=float(np.floor(days)))).date().isoformat()
