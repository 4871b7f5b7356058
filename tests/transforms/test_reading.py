"""What a value says follows from that value alone: no container, no type and no other value changes its reading."""

import math
import warnings
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.errors import DataError, SchemaError
from privstats.intake.columns import Listed, alike, read
from privstats.intake.meaning import MISSING, UNREADABLE, meaning_of, same
from privstats.testing import held, table_values


class Hostile:
    """A value that answers nothing, and that hashes as 1 does."""

    def __str__(self):
        raise KeyError

    def __eq__(self, other):
        raise KeyError

    def __hash__(self):
        return hash(1)


def test_equal_values_are_read_one_by_one():
    zone = ZoneInfo("Europe/Berlin")
    summer = datetime(2020, 10, 25, 2, 30, tzinfo=zone)
    for pair in ((summer, summer.replace(fold=1)), (Hostile(), 1), ((1,), 1.0)):
        for one, other in (pair, pair[::-1]):
            both = read([one, other])
            assert [both.texts.get(place, both.numbers[place]) for place in (0, 1)] == [
                meaning_of(one),
                meaning_of(other),
            ]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((7, 7.0, "7", "007", " 7.0", "+7", "7e0", "7.", np.int8(7), np.float16(7), Decimal(7), b"7", 7 + 0j), 7.0),
        ((True, np.True_, "True", "TRUE", " true", 1, "1"), 1.0),
        ((False, "false", 0, -0.0, "-0", "0.0", Fraction(0)), 0.0),
        ((None, math.nan, np.nan, "", "  ", "NA", "n/a", "None", "NULL", "nan", "NaT", "-inf", "Infinity"), None),
        ((math.inf, -math.inf, "1e999", 10**400, np.datetime64("NaT"), np.timedelta64("NaT"), Decimal("NaN")), None),
        (("stage II", " stage II ", b"stage II", np.str_("stage II")), "stage II"),
        (("\u00e9", "e\u0301"), "\u00e9"),
        (("1_000",), "1_000"),
        (("１",), "１"),
        (("03/04/2020",), "03/04/2020"),
        (
            (date(2020, 1, 2), datetime(2020, 1, 2), np.datetime64("2020-01-02T00", "ns"), "2020-01-02 00:00"),
            "2020-01-02",
        ),
        (("2020-01-02T03:00+02:00", datetime(2020, 1, 2, 1)), "2020-01-02T01:00:00"),
        (("2020-02-30",), "2020-02-30"),
        ((np.timedelta64(1, "D"), np.timedelta64(86400, "s"), timedelta(days=1)), "86400000000 us"),
        ((1 + 2j,), "(1+2j)"),
        (("(0, 10]", "(0.0, 10.0]", "(0,10.]"), "(0, 10]"),
        (("[-inf, 0.30000000000000004)",), "[-inf, 0.3)"),
        (("a\0", "a", b"a\0"), "a"),
        ((Decimal("sNaN"), np.ma.masked, np.array(None)), None),
        ((np.array(7), np.array(7.0)), 7.0),
        (((1,), (1.0,), [1], np.array([1, 2]), {}, "x" * 2000, Hostile(), [*[10**5000]]), "\x01"),
    ],
)
def test_values_that_say_the_same_are_read_alike(values, said):
    assert [meaning_of(value) for value in values] == [said] * len(values)
    assert not math.copysign(1, meaning_of(-0.0) or 0.0) < 0


@pytest.mark.parametrize("kind", ["M8[ns]", "M8[D]", "m8[ns]", "m8[D]"])
def test_a_mask_over_one_time_changes_no_other(kind):
    """Nanoseconds under a mask were integers, so one gap moved every other record to another cell."""
    times = np.array([18_263, 18_264, 18_265], kind)
    whole, masked = read(times), read(np.ma.array(times, mask=[False, True, False]))
    assert masked.texts == {place: whole.texts[place] for place in (0, 2)}
    assert masked.missing.tolist() == [False, True, False]


def test_what_pandas_says_of_gaps_and_times_is_read():
    pandas = pytest.importorskip("pandas")
    stamp = pandas.Timestamp("2020-01-01", tz="Europe/Berlin")
    assert [meaning_of(value) for value in (pandas.NA, pandas.NaT, stamp)] == [None, None, "2019-12-31T23:00:00"]
    assert meaning_of(pandas.Interval(0, 10)) == meaning_of(pandas.Interval(0.0, 10.0)) == "(0, 10]"
    far = np.datetime64("20000-01-01", "s")
    assert meaning_of(pandas.Timestamp(far)) == meaning_of(far)
    na_values = pandas._libs.parsers.STR_NA_VALUES  # what read_csv makes NaN, so what a text of it must say
    assert {text.lower() for text in na_values} <= MISSING


@given(table_values())
def test_a_reading_reads_as_itself(value):
    once = meaning_of(value)
    assert meaning_of(once) == once


@given(st.lists(table_values(), min_size=1, max_size=8))
def test_every_container_gives_the_reading_of_each_value(values):
    plain = [value for value in values if not isinstance(value, bytes | tuple)]  # files write them in their own way
    expected = [meaning_of(value) for value in plain]
    for name, table in held({"v": plain}).items():
        column = read(table["v"] if isinstance(table["v"], list) else np.asarray(table["v"]))
        found = [column.texts.get(place, column.numbers[place]) for place in range(len(plain))]
        given = [None if isinstance(value, float) and math.isnan(value) else value for value in found]
        assert given == expected, name


@given(st.lists(table_values(), max_size=6), st.lists(table_values(), max_size=6))
def test_a_value_is_read_alike_whoever_stands_beside_it(left, right):
    both, one = read([*left, *right]), read(left)
    np.testing.assert_array_equal(both.numbers[: len(left)], one.numbers)
    assert {place: text for place, text in both.texts.items() if place < len(left)} == one.texts


@given(
    st.lists(st.one_of(st.sampled_from([0.1 + 0.2, 0.3, 40.5, 1 / 3, 1e15 + 0.3]), st.floats(-50, 50)), max_size=20),
    st.lists(st.sampled_from([0.1, 0.3, 1 / 3, 2.0, 40.5, 1e15]), min_size=1, unique=True).map(sorted),
)
def test_numbers_are_compared_with_marks_at_15_digits(numbers, marks):
    array = np.array(numbers, np.float64)
    for side in ("left", "right"):
        found = np.searchsorted(marks, alike(array, marks), side=side)
        assert found.tolist() == np.searchsorted([*map(same, marks)], [*map(same, numbers)], side=side).tolist()
    places = Listed.of(tuple(marks)).places_of(read(array))
    assert places.tolist() == [
        [*map(same, marks)].index(same(v)) if same(v) in map(same, marks) else -1 for v in numbers
    ]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("none", "None"), "values of v holds 'none' and 'None', which are read as one value"),
        (("7", "007"), "'7' and '007', which are read as one value"),
        (("True", "1"), "'True' and '1', which are read as one value"),
        (("\u00e9", "e\u0301"), "which are read as one value"),
        ((1, 2**53 + 1), r"from 2\*\*53 on coincide"),
        (("f", "M\ufffdller"), "which lost a character, so several values may look like it"),
    ],
)
def test_listed_values_that_no_record_could_be_told_by_are_refused(values, words):
    with pytest.raises(SchemaError, match=words):
        ps.Categories("v", values)
    if isinstance(values[0], str) and values[0] != "none":  # which no class may be called
        with pytest.raises(SchemaError, match=words.replace("values of v", "class_names")):
            ps.ClassSchema(2, 2, "NA", 1.0, class_names=values)


def test_edges_that_no_value_could_lie_between_are_refused():
    with pytest.raises(SchemaError, match="must increase when rounded to 15 digits"):
        ps.Bins("v", (0.0, 0.3, 0.1 + 0.2, 1.0))


def broken_texts(parts):
    arrow = pytest.importorskip("pyarrow")
    ends = np.cumsum([0, *map(len, parts)]).astype(np.int32)
    return arrow.StringArray.from_buffers(len(parts), arrow.py_buffer(ends.tobytes()), arrow.py_buffer(b"".join(parts)))


def odd_columns():
    arrow = pytest.importorskip("pyarrow")
    texts = broken_texts([b"f", b"", b"M\xfcller", b"7", b"m"])
    yield texts
    yield arrow.DictionaryArray.from_arrays(arrow.array([2, 0, None, 3]), texts)
    days = arrow.array([1, 2**31 - 1, None, 2_932_897, 3], arrow.int32())
    yield from (days.cast(kind) for kind in (arrow.date32(), arrow.time32("s")))
    yield arrow.array([-1, 2, 3], arrow.int32()).cast(arrow.time32("s"))
    times = arrow.array([1, 2**62, None, -(2**62), 3], arrow.int64())
    yield from (times.cast(arrow.timestamp("us", tz=zone)) for zone in ("Europe/Berlin", "No/Where", None))
    yield times.cast(arrow.duration("us"))


def test_a_value_that_cannot_be_converted_leaves_the_others_as_they_are():
    arrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    for column in odd_columns():
        whole = arrow.chunked_array([column])
        series = pandas.Series(pandas.arrays.ArrowExtensionArray(whole))
        for held_by in (column, whole, series):
            found = read(held_by)
            assert len(found.numbers) == len(column)
            for place in range(len(column)):
                alone = read(_slice(held_by, place))
                assert alone.texts.get(0) == found.texts.get(place), (column.type, place)
                np.testing.assert_array_equal(alone.numbers, found.numbers[place : place + 1])
            assert found.texts == read(column).texts, column.type
    found = read(next(odd_columns()))
    assert found.texts == {0: "f", 2: UNREADABLE, 4: "m"}
    assert found.missing.tolist() == [False, True, False, False, False]


def _slice(column, place):
    return column.iloc[place : place + 1] if hasattr(column, "iloc") else column[place : place + 1]


def test_a_time_that_numpy_cannot_count_is_not_read_as_another():
    span = 2**64 // 86_400_000_000
    far = [np.datetime64(each, unit) for each, unit in ((span + 18_000, "D"), (2**62, "s"), (2**31 - 1, "D"))]
    assert [meaning_of(value) for value in [*far, np.timedelta64(2**62, "s")]] == [UNREADABLE] * 4
    assert meaning_of(np.datetime64("2020-01-02T03:04:05.123456789")) == "2020-01-02T03:04:05.123456"
    assert [meaning_of(np.datetime64("2020", unit)) for unit in "YMDhms"] == ["2020-01-01"] * 6


def test_a_union_of_arrow_is_no_column():
    arrow = pytest.importorskip("pyarrow")
    places = arrow.array([0, 1], arrow.int8()), arrow.array([0, 0], arrow.int32())
    union = arrow.UnionArray.from_dense(*places, [arrow.array([1]), arrow.array(["a"])])
    with pytest.raises(DataError, match="a column has a type whose values cannot be read one by one"):
        read(union)


def test_numbers_at_both_ends_of_all_floats_are_compared_in_silence():
    numbers = np.array([-1.7e308, -1.797e308, 5, 1e308])
    with warnings.catch_warnings(action="error"):
        assert alike(numbers, [1e308]).tolist() == numbers.tolist()
