"""Each row of READERS keeps three laws: one value's reading, readings side by side, and types that a library widens."""

import importlib
import itertools
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.intake.columns import READERS, Readings, alike, of_values, read, reader_of, static_type
from privstats.intake.meaning import Meaning, meaning_of, same
from privstats.testing import table_values


def _library(name: str) -> Any:
    with suppress(ImportError):
        return importlib.import_module(name)
    return None


pandas, polars, arrow, torch = (_library(name) for name in ("pandas", "polars", "pyarrow", "torch"))

_TRUTHS, _INTEGERS = st.booleans(), st.integers(-(2**62), 2**62)
_SMALL, _LARGE = st.integers(-128, 127), st.integers(0, 2**64 - 1)
_FLOATS, _NARROW, _HALF = st.floats(), st.floats(width=32), st.floats(width=16)
_TEXTS = st.sampled_from(("7", "007", "word", " word ", "n/a", "", "2020-01-02", "e\u0301", "\u00e9", "True", "a\0b"))
_DAYS = st.dates(date(1700, 1, 1), date(2200, 1, 1))
_TIMES = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))
_SPANS = st.timedeltas(timedelta(-90_000), timedelta(90_000))
_DECIMALS = st.decimals(-1000, 1000, places=2)


@dataclass(frozen=True)
class Column:
    """A column of one static type.

    Attributes:
        library: that has the type; None where it is not installed.
        values: a strategy of single values.
        make: a column of some values.
        gaps: whether None may be among the values.
    """

    library: Any
    values: st.SearchStrategy[Any]
    make: Callable[[Sequence[Any]], Any]
    gaps: bool = True


def _numpy(kind: Any, values: st.SearchStrategy[Any]) -> Column:
    return Column(np, values, lambda each: np.array(list(each), kind), gaps=False)


def _objects(values: Sequence[Any]) -> Any:
    result = np.empty(len(values), object)
    for place, value in enumerate(values):
        result[place] = value
    return result


def _masked(kind: Any, values: st.SearchStrategy[Any], filled: Any) -> Column:
    def make(each: Sequence[Any]) -> Any:
        plain = np.array([filled if value is None else value for value in each], kind)
        return np.ma.array(plain, mask=[value is None for value in each])

    return Column(np, values, make)


def _pandas(kind: Any, values: st.SearchStrategy[Any], *, gaps: bool = True) -> Column:
    def make(each: Sequence[Any]) -> Any:
        named = pandas.ArrowDtype(getattr(arrow, kind[1:])()) if kind.startswith(">") else kind
        return pandas.Series(list(each), dtype=named)

    return Column(pandas and arrow, values, make, gaps=gaps)


def _polars(kind: str, values: st.SearchStrategy[Any], *of: Any) -> Column:
    def make(each: Sequence[Any]) -> Any:
        named = getattr(polars, kind)
        return polars.Series(list(each), dtype=named(*of) if of else named)

    return Column(polars, values, make)


def _arrow(kind: str, values: st.SearchStrategy[Any], *of: Any) -> Column:
    def make(each: Sequence[Any]) -> Any:
        half = len(each) // 2
        named = getattr(arrow, kind)(*of)
        return arrow.chunked_array([arrow.array(part, named) for part in (each[:half], each[half:])], named)

    return Column(arrow, values, make)


def _torch(kind: str, values: st.SearchStrategy[Any]) -> Column:
    return Column(torch, values, lambda each: torch.tensor(list(each), dtype=getattr(torch, kind)), gaps=False)


_HALVES = st.floats(width=16, allow_nan=False).map(np.float16)
COLUMNS: Mapping[str, Column] = {
    **{
        f"numpy {kind}": _numpy(kind, values)
        for kind, values in {
            "bool": _TRUTHS, "int8": _SMALL, "int64": _INTEGERS, "uint64": _LARGE, "float16": _HALF, "float32": _NARROW,
            "float64": _FLOATS, "longdouble": _FLOATS, "M8[D]": _DAYS, "M8[us]": _TIMES, "m8[us]": _SPANS,
            "U": _TEXTS, "S": st.binary(max_size=5), "complex128": st.complex_numbers(),
        }.items()
    },
    "numpy object": Column(np, table_values(), _objects),
    "numpy masked float32": _masked(np.float32, _NARROW, 3.0),
    "numpy masked M8[us]": _masked("M8[us]", _TIMES, "2020-01-02"),
    "numpy masked object": Column(
        np, table_values(), lambda each: np.ma.array(_objects(each), mask=[value is None for value in each])
    ),
    **{
        f"pandas {kind}": _pandas(kind, values, gaps=False)
        for kind, values in {"bool": _TRUTHS, "int64": _INTEGERS, "uint8": st.integers(0, 255)}.items()
    },
    **{
        f"pandas {kind}": _pandas(kind, values)
        for kind, values in {
            "float32": _NARROW, "float64": _FLOATS, "boolean": _TRUTHS, "Int64": _INTEGERS, "UInt64": _LARGE,
            "Float32": _NARROW, "datetime64[us]": _TIMES, "datetime64[us, UTC]": _TIMES, "timedelta64[us]": _SPANS,
            "category": st.one_of(_TEXTS, _INTEGERS), "string": _TEXTS, "object": table_values(),
            "Sparse[float64]": _FLOATS, ">int64": _INTEGERS, ">float32": _NARROW, ">string": _TEXTS, ">date32": _DAYS,
            ">bool_": _TRUTHS,
        }.items()
    },
    **{
        f"polars {kind}": _polars(kind, values)
        for kind, values in {
            "Boolean": _TRUTHS, "Int8": _SMALL, "Int64": _INTEGERS, "UInt64": _LARGE, "Float32": _NARROW,
            "Float64": _FLOATS, "String": _TEXTS, "Categorical": _TEXTS, "Date": _DAYS, "Time": st.times(),
            "Binary": st.binary(max_size=5), "Int128": st.integers(-(2**100), 2**100),
        }.items()
    },
    "polars Datetime": _polars("Datetime", _TIMES, "us"),
    "polars Duration": _polars("Duration", _SPANS, "us"),
    "polars Decimal": _polars("Decimal", _DECIMALS, 20, 2),
    **{
        f"pyarrow {kind}": _arrow(kind, values)
        for kind, values in {
            "bool_": _TRUTHS, "int8": _SMALL, "int64": _INTEGERS, "uint64": _LARGE, "float16": _HALVES,
            "float32": _NARROW, "float64": _FLOATS, "null": st.none(), "string": _TEXTS, "large_string": _TEXTS,
            "binary": st.binary(max_size=5), "date32": _DAYS,
        }.items()
    },
    "pyarrow timestamp": _arrow("timestamp", _TIMES, "us"),
    "pyarrow timestamp UTC": _arrow("timestamp", _TIMES.map(lambda at: at.replace(tzinfo=UTC)), "us", "UTC"),
    "pyarrow duration": _arrow("duration", _SPANS, "us"),
    "pyarrow time64": _arrow("time64", st.times(), "us"),
    "pyarrow decimal": _arrow("decimal128", _DECIMALS, 20, 2),
    "pyarrow dictionary": Column(arrow, _TEXTS, lambda each: arrow.array(each, arrow.string()).dictionary_encode()),
    **{
        f"torch {kind}": _torch(kind, values)
        for kind, values in {
            "bool": _TRUTHS, "int64": _INTEGERS, "float16": _HALF, "bfloat16": _SMALL, "float32": _NARROW,
            "float64": _FLOATS,
        }.items()
    },
}  # fmt: skip
"""Columns of every row of READERS, and of types without a row."""

_HERE = [name for name, column in COLUMNS.items() if column.library is not None]


def said(readings: Readings) -> list[Meaning]:
    """The reading of each value."""
    texts = readings.texts
    numbers = (None if math.isnan(number) else number for number in readings.numbers.tolist())
    return [texts.get(place, number) for place, number in enumerate(numbers)]


def one_by_one(column: Any) -> Iterator[Any]:
    """The values of a column, each as its library gives it alone."""
    return (column.iloc[place] if hasattr(column, "iloc") else column[place] for place in range(len(column)))


@pytest.mark.parametrize("name", _HERE)
@given(data=st.data())
def test_a_reader_gives_each_value_what_it_means_alone_whatever_stands_beside_it(
    name: str, data: st.DataObject
) -> None:
    column = COLUMNS[name]
    several = data.draw(st.lists(st.one_of(st.none(), column.values) if column.gaps else column.values, max_size=6))
    place = data.draw(st.integers(0, len(several)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a library that compares or casts infinities
        made = column.make(several)
        result = said(read(made))
        assert result == [meaning_of(value) for value in one_by_one(made)]
        assert result == [*said(read(column.make(several[:place]))), *said(read(column.make(several[place:])))]


def test_every_reader_is_tested() -> None:
    if None in (pandas, polars, arrow, torch):
        pytest.skip("a library is not installed")
    types = [static_type(column.make([])) for column in COLUMNS.values()]
    unused = {
        row for row in READERS if not any(library == row[0] and re.fullmatch(row[1], kind) for library, kind in types)
    }
    assert not unused


def test_a_type_without_a_row_is_read_value_by_value() -> None:
    assert reader_of("a library of tomorrow", "int64") is reader_of("polars", "String")
    assert said(of_values(["7", None, 7.5, "word"])) == [7.0, None, 7.5, "word"]


# --- types that a library widens when it joins two columns

_DAY, _AT = date(2020, 1, 2), datetime(2020, 1, 2, 3, 4, 5, 678901)
_WHOLE = [7, 2**24 + 1, 2**53 - 1, 2**53 + 1, -3]
_FINE = [0.1, 7.0, 2.0**24, 11 / 8192]


def _of_numpy() -> dict[str, Any]:
    kinds = {"int16": [300, -3], "int32": [7, 2**24 + 1], "int64": _WHOLE, "uint64": [7, 2**63, 2**53 + 1]}
    return {
        "bool": np.array([True, False]),
        **{kind: np.array(values, kind) for kind, values in kinds.items()},
        "float16": np.array([0.1, 7, 2048], np.float16),
        "float32": np.array(_FINE, np.float32),
        "float64": np.array([*_FINE, 2**53, np.inf, np.nan]),
        "longdouble": np.array([7, 0.1], np.longdouble),
        "days": np.array(["2020-01-02", "NaT"], "M8[D]"),
        "instants": np.array(["2020-01-02T03:04:05.678901", "NaT"], "M8[ns]"),
        "spans": np.array([3, 5], "m8[D]"),
        "texts": np.array(["7", "0.1", "word", "2020-01-02"]),
        "bytes": np.array([b"7", b"word"]),
        "objects": _objects([7, "word", None, 0.1, Decimal("0.1"), True]),
        "complex64": np.array([1, 7], np.complex64),
    }


def _of_pandas() -> dict[str, Any]:
    own = {name: pandas.Series(each) for name, each in _of_numpy().items() if name not in _UNKNOWN_TO_PANDAS}
    made = {
        "Int64": pandas.Series([*_WHOLE, None], dtype="Int64"),
        "Float32": pandas.Series([*_FINE, None], dtype="Float32"),
        "boolean": pandas.Series([True, None], dtype="boolean"),
        "string": pandas.Series(["7", "0.1", "word", None], dtype="string"),
        "category": pandas.Series(["7", "word", None], dtype="category"),
        "category of integers": pandas.Series([7, 2**24 + 1], dtype="category"),
        "zoned": pandas.Series(pandas.to_datetime(["2020-01-02T03:04:05Z"])),
        "period": pandas.Series(pandas.period_range("2020-01", "2020-02", freq="M")),
        "sparse": pandas.Series(pandas.arrays.SparseArray([0.0, 7.0])),
    }
    kinds = {"int64": [*_WHOLE, None], "float32": [*_FINE, None], "string": ["7", "word", None], "date32": [_DAY]}
    of_arrow = {
        f"Arrow {kind}": pandas.Series(values, dtype=pandas.ArrowDtype(getattr(arrow, kind)()))
        for kind, values in kinds.items()
    }
    return {**own, **made, **of_arrow}


_UNKNOWN_TO_PANDAS = ("texts", "bytes", "longdouble", "complex64", "float16", "days")


def _of_polars() -> dict[str, Any]:
    return {
        "Boolean": polars.Series([True, None]),
        "Int8": polars.Series([7, -3], dtype=polars.Int8),
        "Int64": polars.Series(_WHOLE),
        "UInt64": polars.Series([7, 2**63], dtype=polars.UInt64),
        "Float32": polars.Series(_FINE, dtype=polars.Float32),
        "Float64": polars.Series([*_FINE, None]),
        "String": polars.Series(["7", "0.1", "word", None]),
        "Categorical": polars.Series(["7", "word"], dtype=polars.Categorical),
        "Date": polars.Series([_DAY]),
        "Datetime": polars.Series([_AT]),
        "Duration": polars.Series([timedelta(3)]),
        "Time": polars.Series([time(3)]),
        "Decimal": polars.Series([Decimal("0.10"), Decimal("7.00")], dtype=polars.Decimal(10, 2)),
        "Null": polars.Series([None, None]),
        "Binary": polars.Series([b"7", b"word"]),
    }


def _of_arrow() -> dict[str, Any]:
    return {
        "bool": arrow.array([True, None]),
        "int8": arrow.array([7, -3], arrow.int8()),
        "int64": arrow.array(_WHOLE),
        "uint64": arrow.array([7, 2**63], arrow.uint64()),
        "half": arrow.array(np.array([0.1, 7], np.float16)),
        "float": arrow.array(_FINE, arrow.float32()),
        "double": arrow.array([*_FINE, None]),
        "string": arrow.array(["7", "0.1", "word", None]),
        "dictionary": arrow.array(["7", "word"]).dictionary_encode(),
        "date32": arrow.array([_DAY]),
        "timestamp": arrow.array([_AT]),
        "duration": arrow.array([timedelta(3)]),
        "time64": arrow.array([time(3)]),
        "decimal": arrow.array([Decimal("0.10"), Decimal("7.00")], arrow.decimal128(10, 2)),
        "null": arrow.nulls(2),
        "binary": arrow.array([b"7", b"word"]),
    }


def _of_torch() -> dict[str, Any]:
    kinds = {"bool": [True, False], "int32": [7, 2**24 + 1], "int64": _WHOLE, "float16": [0.1, 7.0]}
    kinds |= {"bfloat16": [0.1, 7.0], "float32": _FINE, "float64": _FINE}
    return {kind: torch.tensor(values, dtype=getattr(torch, kind)) for kind, values in kinds.items()}


_JOINS: Mapping[str, tuple[Any, Callable[[], dict[str, Any]], Callable[[Any, Any], Any]]] = {
    "numpy": (np, _of_numpy, lambda left, right: np.concatenate([left, right])),
    "pandas": (pandas and arrow, _of_pandas, lambda left, right: pandas.concat([left, right], ignore_index=True)),
    "polars": (
        polars,
        _of_polars,
        lambda left, right: polars.concat(
            [left.rename("x").to_frame(), right.rename("x").to_frame()], how="vertical_relaxed"
        )["x"],
    ),
    "pyarrow": (
        arrow,
        _of_arrow,
        lambda left, right: arrow.concat_tables(
            [arrow.table({"x": left}), arrow.table({"x": right})], promote_options="permissive"
        ).column("x"),
    ),
    "torch": (torch, _of_torch, lambda left, right: torch.cat([left, right])),
}


def _pairs(firsts: str, seconds: str) -> set[str]:
    return {f"{first} with {second}" for first in firsts.split() for second in seconds.split()}


EXCEPTIONS: Mapping[str, set[str]] = {
    "numpy": {
        *_pairs("bool int16 int32 int64", "spans"),
        *_pairs("float16 float32 complex64", "texts bytes"),
        "instants with objects",
    },
    "pandas": set(),
    "polars": {
        *_pairs("Date Datetime Duration", "Int64 UInt64 Float32 Float64"),
        *_pairs("Time", "Int64 Float32 Float64"),
        *_pairs("UInt64", "Date Datetime Duration"),
        "Float32 with String",
    },
    "pyarrow": {"decimal with float"},
    "torch": _pairs("int32 int64", "float16 bfloat16 float32"),
}
"""Pairs of types of which the first one's values mean something else once the library has joined them.

The caller joins them, so no reader can see it: limits 1 and 2 of docs/proofs/reading.md. A pair that is new here is new
there.
"""


@pytest.mark.parametrize("library", _JOINS)
def test_a_librarys_own_promotion_changes_the_meaning_of_listed_pairs_alone(library: str) -> None:
    module, columns, join = _JOINS[library]
    if module is None:
        pytest.skip(f"{library} is not installed")
    changed = set()
    for (first, left), (second, right) in itertools.product(columns().items(), repeat=2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                joined = join(left, right)
            except Exception:
                continue
            if said(read(joined))[: len(left)] != said(read(left)):
                changed.add(f"{first} with {second}")
    assert changed == EXCEPTIONS[library]


_STEPS = st.integers(-40, 40)


@given(st.sampled_from([1.0, -1.0, 9.99, 1e300, 1e-300, 40.5]), st.lists(_STEPS, min_size=1), st.lists(_STEPS))
def test_a_number_is_the_mark_of_the_same_15_digits(start: float, marks: list[int], numbers: list[int]) -> None:
    """Marks and numbers a few floats apart, against a comparison of each with each."""
    several = {same(mark): mark for mark in _floats(start, marks)}
    given_ = np.array([*_floats(start, numbers), np.nan])
    expected = [several.get(same(number), number) for number in given_.tolist()]
    np.testing.assert_array_equal(alike(given_, sorted(several.values())), expected)


def _floats(start: float, steps: Sequence[int]) -> list[float]:
    return [float(start + step * 2.0 * np.spacing(start)) for step in steps]
