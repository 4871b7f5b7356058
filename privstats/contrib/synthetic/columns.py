"""Declare the columns of a synthetic table, and map values one by one to what count tables read."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats import domains
from privstats.errors import DataError, SchemaError, UnreadableRecordsWarning
from privstats.extend.records import EPOCH, LOST, Lost, Readings, in_memory, names_of_columns, read, same
from privstats.intake.column_names import places_in
from privstats.intake.declared.categories import Declared
from privstats.intake.declared.columns import column_from_plan
from privstats.intake.meaning import UNREADABLE
from privstats.intake.tables import as_table
from privstats.kinds import CountSchema
from privstats.moments import RecordFile
from privstats.records.table import lost_remark
from privstats.schema import Bins, Variable
from privstats.transforms import Categories, Dates, Numeric, Truth

_MAX_BUCKETS = 1024
_MIN_EDGES = 3
_POWERS, _PARTS = (-8, 30), 4
_POSITIVE = tuple(2.0**k * (1 + part / _PARTS) for k in range(*_POWERS) for part in range(_PARTS))
OPEN_EDGES = (*(-edge for edge in reversed(_POSITIVE)), *_POSITIVE)
"""Cells of a number without edges: four between powers of two, for both signs, from 1/256 to a billion."""


@dataclass(frozen=True)
class Hashed(Declared):
    """A column of codes without a public list, counted by the bucket of a public hash.

    Args:
        name: of the column.
        buckets: 2 to 1,024. No table distinguishes codes in one bucket.
        salt: a public text; another salt groups other codes.
        gaps: codes that mean missing, for example ``("none", 999)``.

    Guarantee:
        The bucket is a function of the salt and one value, both fixed before any record is read. So a record counts 1
        in exactly one bucket or in the missing cell. J count tables keep their squared sensitivity: J (add-remove), 2 J
        (replace-one), as in ``CountSchema``. The hash hides nothing, because anyone can hash a guessed code: only the
        noise protects a code.

    Raises:
        SchemaError: a field is out of range.

    Example:
        >>> from privstats.contrib.synthetic.columns import Hashed
        >>> icd = Hashed("icd", buckets=16)
        >>> icd.bucket("E11.9") == icd.bucket(" E11.9"), icd.bucket("007") == icd.bucket(7.0)
        (True, True)
    """

    kind: ClassVar[str] = "hashed"
    unread: ClassVar[str] = "too long, several values in one, or with a character lost in decoding"

    name: str
    buckets: int
    salt: str = ""
    gaps: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        self.settle_fields()
        if type(self.buckets) is not int or not 2 <= self.buckets <= _MAX_BUCKETS:
            raise SchemaError(f"buckets of {self.name} must be an integer from 2 to {_MAX_BUCKETS}")
        if not isinstance(self.salt, str):
            raise SchemaError(f"salt of {self.name} must be a text, got {type(self.salt).__name__}")
        self.settle_gaps(self.gaps)

    def bucket(self, value: Any) -> int | None:
        """Return a value's bucket; None where it is missing or unreadable."""
        (code,) = self.codes_and_unread(read([value]))[0].tolist()
        return None if math.isnan(code) else int(code)

    def _codes_of(self, readings: Readings) -> NDArray[np.float64]:
        numbers, places = np.unique(readings.numbers, return_inverse=True)
        hashed = [self._hash(f"number {same(each):.15g}") if each == each else math.nan for each in numbers.tolist()]
        spoken = [
            math.nan if text == UNREADABLE or LOST in text else self._hash(f"text {text}") for text in readings.distinct
        ]
        return np.where(
            readings.are_texts, readings.each(spoken, nothing=math.nan), np.array(hashed, np.float64)[places]
        )

    def _hash(self, code: str) -> float:
        digest = hashlib.sha256(domains.SYNTHETIC_BUCKET % (f"{self.salt}".encode(), code.encode())).digest()
        return float(int.from_bytes(digest, "big") % self.buckets)


Column: TypeAlias = Numeric | Dates | Truth | Categories | Hashed


def schema_of(columns: Sequence[Column]) -> CountSchema:
    """Return the one-way tables of declared columns; every value has a cell.

    Args:
        columns: a number without edges is counted in cells of a quarter of its power of two, and the course finds
            those that hold records. Stated edges, at least three, give finer cells; dates need them. Values are drawn
            within the outer two; those beyond count in the outer bins.

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
        case Numeric(edges=None):
            return Bins(column.name, OPEN_EDGES, missing=True)
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


def column_of(table: Any) -> Column:
    """Return the column that a table of ``columns.toml`` declares.

    Raises:
        SchemaError: unknown or missing keys, or a value out of range.

    Example:
        >>> from privstats.contrib.synthetic.columns import column_of
        >>> column_of({"name": "icd", "kind": "hashed", "buckets": 64})
        Hashed(name='icd', buckets=64, salt='', gaps=())
    """
    if isinstance(table, Hashed):
        return table
    if not isinstance(table, Mapping) or table.get("kind") != Hashed.kind:
        return column_from_plan(table)
    try:
        return Hashed(**{key: value for key, value in table.items() if key != "kind"})
    except TypeError:
        raise SchemaError(
            "a column of kind hashed has a name and buckets and may have salt and gaps; correct its table"
        ) from None


def coded(columns: Sequence[Column], table: Any) -> dict[str, Any]:
    """Map a party's table to what :func:`schema_of` counts.

    Args:
        table: columns by name, in any container that ``measure`` accepts. Of a table that is not in memory, such as a
            DuckDB relation, only the declared columns are loaded.

    Raises:
        DataError: no table with names; or a column is missing or ambiguous.

    Warns:
        UnreadableRecordsWarning: values count as missing because they are unreadable. The number is for the data
            holder.

    Example:
        >>> from privstats.contrib.synthetic.columns import coded
        >>> coded((ps.Categories("sex", ("f", "m"), gaps=(9,)),), {"Sex": ["m", 9, None]})["sex"].tolist()
        ['m', None, None]
    """
    wanted = [column.name for column in columns]
    table = as_table(in_memory(table, wanted))
    if (names := names_of_columns(table)) is None:
        raise DataError(
            f"the table must have columns with names, got {type(table).__name__}; give a frame or a mapping"
        )
    places = places_in(wanted, names)
    if None in places:
        missing = columns[places.index(None)].name
        raise DataError(f"the table lacks the column {missing!r}; give every declared column")
    values, lost = dict[str, Any](), dict[str, Lost]()
    for column, place in zip(columns, places, strict=True):
        codes, lost[column.name] = column.codes_and_lost(column.readings(table[names[place]]))  # type: ignore[index]
        values[column.name] = _values(column, codes)
    if remark := lost_remark(columns, lost):
        warnings.warn(remark, UnreadableRecordsWarning, stacklevel=2)
    return values


def _values(column: Column, codes: NDArray[np.float64]) -> NDArray[Any]:
    if not isinstance(column, Categories):
        return codes
    listed = np.array([*column.values, UNREADABLE, None], object)
    return listed[np.where(np.isnan(codes), len(listed) - 1, codes).astype(np.intp)]


@dataclass(frozen=True, repr=False)
class DeclaredFile(RecordFile):
    """A file of records whose declared columns are read as :func:`coded` maps them.

    Example:
        >>> from privstats.contrib.synthetic.columns import DeclaredFile
        >>> _ = open("ward.csv", "w").write("id,smoker\\n7,TRUE\\n8,n/a\\n")
        >>> DeclaredFile("ward.csv", declared=(ps.Truth("smoker"),)).table(["smoker"]).values("smoker").tolist()
        [1.0, nan]
    """

    declared: tuple[Column, ...] = ()

    def table(self, names: Sequence[str] | None = None, marks: Sequence[str] = ()) -> Any:  # noqa: ARG002
        """Load columns, declared ones as count tables read them, whatever ``marks`` are."""
        wanted = list(self.columns if names is None else names)
        of_name = {column.name: column.marks for column in self.declared}
        matched = zip(places_in(of_name, wanted), of_name.values(), strict=True)
        own_marks = {place: each for place, each in matched if place is not None}
        table = super().table(wanted, [own_marks.get(place, "number") for place in range(len(wanted))])
        own = list(table.columns)
        places = places_in([column.name for column in self.declared], own)
        there = [column for column, place in zip(self.declared, places, strict=True) if place is not None]
        others = {name: values for place, (name, values) in enumerate(table.columns.items()) if place not in places}
        columns = {**others, **coded(there, table.columns)}
        return replace(table, columns=columns, first_left_out="", nameless=())


def restored(column: Column, values: Sequence[Any]) -> list[Any]:
    """Return drawn values: dates as ISO texts, truths as their declared pair or as bools."""
    match column:
        case Dates():
            return [None if value is None else _date(value) for value in values]
        case Truth():
            return [None if value is None else (column.values or (False, True))[int(value)] for value in values]
    return list(values)


def _date(days: float) -> str:
    return (EPOCH + timedelta(days=float(np.floor(days)))).date().isoformat()
