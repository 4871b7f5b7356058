"""Moments from a data base's counts: ``==`` measure of the same rows, or a refusal, whatever names and values hold."""

import csv
import math
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.contrib.parts import sql
from privstats.contrib.parts.sql_columns import changes, label_column
from privstats.contrib.parts.sql_dialects import DIALECTS
from privstats.errors import DataError, PrivstatsError, RecordError, SchemaError, UnreadableRecordsWarning
from privstats.intake.columns import Listed
from tests import made
from tests.lengths import sized
from tests.schema.samples import SCHEMAS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

NAMES = [
    "age", 'two"quotes', "it's", "a--b", "x; DROP TABLE records; --", "back\\slash", "Größe", "select", "% of {0}",
    "a`b", "$1", "/* no */", "value_c0", "records", "?",
]  # fmt: skip
WORDS = [
    "f", "m", "it's", 'a"b', "'; DROP TABLE records; --", "none", "NULL", "b\\", "Ärzte", "A1", "yes", "x y", "/*",
    "$x",
]  # fmt: skip
NUMBERS = ["1", "2", "-3", "0", "0.5"]
AROUND = [-2, -1, 0, 1, 2]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def near(value: float, steps: int) -> float:
    """A number some float64 away, or some fifteenth digits."""
    return value + steps * math.ulp(value) if abs(steps) < 2 else value * (1 + steps * 2.6e-16)


@st.composite
def numeric(draw: Any, name: str) -> tuple[Any, str, list[Any]]:
    edges = sorted(draw(st.sets(st.sampled_from([-1.5, 0.0, 0.1, 0.3, 7.0, 39.9, 1e9]), min_size=1, max_size=3)))
    gaps = tuple(draw(st.sets(st.sampled_from([-9, 999, 88.25]), max_size=2)))
    kind = draw(st.sampled_from(["DOUBLE", "INTEGER", "BIGINT", "FLOAT", "DECIMAL(18,4)", "BOOLEAN", "HUGEINT"]))
    marks = [*edges, *gaps, 0.0, 1e17, -5.0]
    values = [near(mark, steps) for mark in marks for steps in AROUND]
    if kind == "DOUBLE":
        values += [math.nan, math.inf, -math.inf, 5e-324, -0.0]
    if kind in ("INTEGER", "BIGINT", "HUGEINT", "BOOLEAN"):
        values = [int(value) for value in values if abs(value) < 1e9]
    if kind == "DECIMAL(18,4)":
        values = [round(value, 4) for value in values if abs(value) < 1e10]
    return ps.Numeric(name, tuple(edges), gaps), kind, [bool(value) if kind == "BOOLEAN" else value for value in values]


@st.composite
def dates(draw: Any, name: str) -> tuple[Any, str, list[Any]]:
    edges = sorted(
        draw(st.sets(st.sampled_from(["1969-12-31", "2020-02-29", "2020-03-01", "2020-03-01T12:30:00"]), min_size=1))
    )
    gaps = tuple(draw(st.sets(st.sampled_from(["1900-01-01", "2020-02-28T10:00:00"]))))
    kind = draw(st.sampled_from(["DATE", "TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_S"]))
    values: list[Any] = []
    for edge in (*edges, *gaps, "0900-01-01", "1582-10-10", "9000-01-01"):
        at = np.datetime64(edge, "us")
        shifts = (-86_400_000_000, -2_000_000, -1, 0, 1, 4, 2_000_000, 86_400_000_000)
        values += [(at + np.timedelta64(shift, "us")).astype(object) for shift in shifts]
    return ps.Dates(name, tuple(edges), gaps), kind, [each.date() if kind == "DATE" else each for each in values]


def spelled(values: list[str]) -> list[Any]:
    found = [each for value in values for each in (value, f" {value}  ", value.upper(), value.lower(), value + "x")]
    numbers = ["7", "007", "7.0", "+1", "1.", "1e0", "-0", ".5", "0.50", "2.0000000000000001", "1" * 30]
    odd = [
        "",
        " ",
        "\t",
        "f\n",
        "\u00a0m",
        "True",
        "FALSE",
        "y",
        "T",
        "A\u0308rzte",
        "(0,10]",
        "2020-01-02",
        "2020-01-02T00:00",
        "nan",
        "\u0436",
        "\u212a",
        "f\0",
        "\u2028m\u3000",
        "1e999",
        "-1e-999",
        "5e-1",
        "1" * 400,
        "7" + "." + "0" * 1020,
        "7" + "." + "0" * 1030,
        "M\ufffdn",
    ]
    return [*found, *numbers, *odd, "n/a", "None", "-INF", "x" * 1025, " " * 1025 + "f", "'"]


@st.composite
def words(draw: Any, name: str) -> tuple[Any, str, list[Any]]:
    listed = draw(
        st.lists(st.sampled_from([*WORDS, *NUMBERS, "true", "2020-01-02"]), min_size=2, max_size=5, unique=True)
    )
    gaps = tuple(each for each in draw(st.sets(st.sampled_from(["unknown", "-7", "?"]), max_size=2)))
    more = draw(st.sampled_from([{}, {"ordered": True}, {"as_text": True}]))
    kind = draw(st.sampled_from(["VARCHAR", "VARCHAR", "VARCHAR", "INTEGER", "DOUBLE", "BOOLEAN", "DECIMAL(9,3)"]))
    try:
        column: Any = ps.Categories(name, tuple(listed), gaps=gaps, **more)
    except SchemaError:
        column = ps.Categories(name, ("f", "m"), gaps=gaps)
    if draw(st.booleans()):
        column = ps.Truth(name, gaps=gaps) if draw(st.booleans()) else ps.Truth(name, gaps, values=("nein", "ja"))
    texts = [*spelled([*map(str, getattr(column, "values", ())), *gaps, "yes"])]
    of_kind: dict[str, list[Any]] = {"VARCHAR": texts, "BOOLEAN": [True, False], "INTEGER": [0, 1, 2, -3, -7, 7]}
    return (
        column,
        kind,
        of_kind.get(kind, [0.0, 1.0, 0.5, 2.0, -7.0, -3.0, *([math.nan, math.inf] if kind == "DOUBLE" else [])]),
    )


@st.composite
def bases(draw: Any) -> tuple[list[Any], str, list[str], list[tuple[Any, ...]]]:
    """Declared columns, a name of labels, types and rows of a table."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=5, unique=True))
    several = [draw(draw(st.sampled_from([numeric, dates, words]))(name)) for name in names[1:]]
    labels = (None, "VARCHAR", ["ill", "well", "Ill", " well ", "", "odd", "it's"])
    columns = [*several, labels]
    kinds = [kind for _, kind, _ in columns]
    cell = [st.one_of(st.none(), st.sampled_from(values)) if len(values) else st.none() for _, _, values in columns]
    rows = draw(st.lists(st.tuples(*cell), max_size=25))
    return [column for column, *_ in several], names[0], kinds, rows


@cache
def data_base() -> Any:
    """The data base of all tests here, since opening one takes 50 ms."""
    return duckdb.connect(config={"threads": 1})  # for 25 rows, threads cost more than they save


@contextmanager
def loaded(columns: list[str], kinds: list[str], rows: list[tuple[Any, ...]]) -> Iterator[Any]:
    """A data base whose table ``records`` holds these rows, until the block ends."""
    base = data_base()
    declared = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(columns, kinds, strict=True))
    base.execute(f"CREATE OR REPLACE TABLE records ({declared})")
    if rows:
        places = ", ".join([f"({', '.join('?' * len(columns))})"] * len(rows))
        base.execute(f"INSERT INTO records VALUES {places}", [value for row in rows for value in row])
    try:
        yield base
    finally:
        base.execute("RESET default_collation")  # which a test may have set


def agree(schema: Any, base: Any, y: str | None, unreadable: Any, **more: Any) -> None:
    """Compare the statement's moments with those of measure, which reads a text that only it can read as another."""
    ids = {"persons": more["persons"], "person_clip": more["person_clip"]} if more else {}
    query = sql.query_of(schema, "records", y, dialect="duckdb", unreadable=unreadable, **more)
    rows = base.execute(query.text).fetchall()
    table = base.table("records").to_arrow_table()
    if ids:
        ids["persons"] = table.column(more["persons"])
        table = table.drop_columns([more["persons"]])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found: Any = query.moments(rows)
        except DataError as error:
            if "is none that SQL can read here" in str(error):
                return
            assert isinstance(error, RecordError)
            if "Only the library can read some" not in str(error):
                with pytest.raises(RecordError):
                    ps.measure(schema, table, y, unreadable=unreadable, **ids)
            return
    if any("Only the library can read some" in str(each.message) for each in told):
        table = with_unlisted(table)
    whole: Any = ps.measure(schema, table, y, unreadable=unreadable, **ids)
    assert found == whole
    for name in ("records", "counted", "persons", "clip_report", "edge_report", "shrunk"):
        assert getattr(found, name, None) == getattr(whole, name, None), name


def with_unlisted(table: Any) -> Any:
    """A table whose times of day and intervals, which SQL reads as no listed text, are texts that no plan lists."""
    for place, name in enumerate(table.column_names):
        if str(table.schema.types[place]) == "string":
            texts = [
                "not listed" if each in ("2020-01-02T00:00", "(0,10]") else each for each in table[name].to_pylist()
            ]
            table = table.set_column(place, name, [texts])
    return table


@settings(max_examples=sized(30, 600), deadline=None)
@given(
    case=bases(),
    letters=st.sampled_from(["NA", "NAB", "NAS", "NABD", "NADTF"]),
    missing=st.sampled_from([None, "left out"]),
    unreadable=st.sampled_from(["refuse", "leave out", "leave out"]),
    ramp=st.booleans(),
)
def test_class_sums_of_any_names_and_values_are_those_of_measure(
    case: Any, letters: str, missing: Any, unreadable: Any, ramp: bool
) -> None:
    columns, label, kinds, rows = case
    cells = ps.Cells(tuple(columns), missing=missing, ramp=ramp)
    schema = ps.ClassSchema(2, statistics=letters, clip_norm=1.0, transform=(cells,), class_names=("ill", "well"))
    with loaded([*(each.name for each in columns), label], kinds, rows) as base:
        agree(schema, base, label, unreadable)
        assert base.execute("SELECT count(*) FROM records").fetchall() == [(len(rows),)]


@st.composite
def counted(draw: Any) -> tuple[list[Any], list[str], list[tuple[Any, ...]]]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=3, unique=True))
    variables, kinds, cells = [], [], []
    for name in names:
        if draw(st.booleans()):
            column, kind, values = draw(numeric(name))
            edges = (*column.edges, column.edges[-1] + 1e9, column.edges[-1] + 2e9)
            opened = draw(st.sampled_from(["both", "above", "below", "none"]))
            closed, missing = draw(st.sampled_from(["left", "right"])), draw(st.booleans())
            variables.append(ps.Bins(name, edges, closed, missing, opened))
            values = (
                [*values, *(near(edge, steps) for edge in edges for steps in AROUND)] if kind == "DOUBLE" else values
            )
        else:
            listed = draw(st.lists(st.sampled_from([*WORDS, *NUMBERS]), min_size=2, max_size=4, unique=True))
            kind, values = "VARCHAR", spelled(listed)
            variables.append(ps.Categories(name, tuple(listed), other=draw(st.booleans()), missing=draw(st.booleans())))
        kinds.append(kind)
        cells.append(st.one_of(st.none(), st.sampled_from(values)))
    return variables, kinds, draw(st.lists(st.tuples(*cells), max_size=25))


@settings(max_examples=sized(30, 600), deadline=None)
@given(case=counted(), unreadable=st.sampled_from(["refuse", "leave out"]))
def test_tables_of_counts_are_those_of_measure(case: Any, unreadable: Any) -> None:
    variables, kinds, rows = case
    names = [each.name for each in variables]
    schema = ps.CountSchema(tuple(variables), ((names[1], names[0]), (names[-1],)))
    with loaded(names, kinds, rows) as base:
        agree(schema, base, None, unreadable)


@pytest.mark.parametrize("gaps", [(), ("9999-12-31",)])
@pytest.mark.parametrize("missing", [None, "left out"])
@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP"])
def test_times_that_python_cannot_hold_are_read_as_by_measure(kind: str, missing: Any, gaps: Any) -> None:
    texts = ["infinity", "-infinity", "10000-01-01", "9999-12-31", "0001-01-01", "0001-12-31 (BC)", "200000-01-01"]
    texts += ["5000000-01-01", "-200000-01-01"] if kind == "DATE" else ["9999-12-31 23:59:59.999999"]
    cells = ps.Cells((ps.Dates("seen", ("2020-01-01",), gaps),), missing=missing)
    schema = ps.ClassSchema(2, statistics="NA", clip_norm=1.0, transform=(cells,))
    with loaded(["seen", "y"], [kind, "INTEGER"], []) as base:
        for place, text in enumerate(texts):
            base.execute(f"INSERT INTO records VALUES ({kind} '{text}', {place % 2})")
            agree(schema, base, "y", "leave out")


@pytest.mark.parametrize("missing", [None, "left out"])
def test_counts_of_declared_dates_and_numbers_are_those_of_measure(missing: Any) -> None:
    columns = (ps.Numeric("age", gaps=(-9,)), ps.Dates("seen"), ps.Truth("ill"))
    bins = (ps.Bins("age", (0, 40, 65), missing=True), ps.Bins("seen", (18262, 18628, 18993), missing=missing is None))
    schema = ps.CountSchema(bins, (("seen", "age"),), (ps.Cells(columns, missing=missing),))
    days = [np.datetime64(day, "D").astype(object) for day in ("2019-12-31", "2020-01-01", "2021-01-01", "2022-06-01")]
    rows = [(age, day, ill) for age in (-9, 39, 40, 65, None) for day in (*days, None) for ill in (True, None)]
    with loaded(["age", "seen", "ill"], ["INTEGER", "DATE", "BOOLEAN"], rows) as base:
        agree(schema, base, None, "leave out")


CELLS = ps.Cells((ps.Numeric("age", (40, 65), gaps=(-9,)), ps.Categories("sex", ("f", "m")), ps.Truth("smoker")))
SCHEMA = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(CELLS,))
TYPES = ["BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", "INTEGER"]
COLUMNS = ["id", "age", "sex", "smoker", "ill"]


def rows_of(ids: list[Any]) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    return [
        (
            each,
            float(rng.choice([-9, 39.5, 40, 70])),
            rng.choice(["f", "m", " F", None]),
            bool(rng.integers(2)),
            1 - place % 2,
        )
        for place, each in enumerate(ids)
    ]


def clip_of(records: float | str, schema: Any = SCHEMA) -> Any:
    more = {"person_clip": records} | ({} if records == "average" else {"max_records_per_person": 6})
    return made.plan(schema, ps.Cohort(3, 3, 600), made.promise("central", unit="person", **more)).person_clip


IDS = [
    [],
    [1, 2, 3],
    [5, 5, 6, None, -4, 2**53, -(2**53), 2**53 - 1],
    [7, 7, 8, 8],
    [1, 1, 2, *[3] * 9, *[4] * 30, None],
    [0] * 5,
]


@pytest.mark.parametrize("clip", [2.5, 1.0, "average"])
@pytest.mark.parametrize("ids", IDS)
def test_persons_are_clipped_as_measure_clips_them(ids: list[Any], clip: Any) -> None:
    with loaded(COLUMNS, TYPES, rows_of(ids)) as base:
        agree(SCHEMA, base, "ill", "leave out", persons="id", person_clip=clip_of(clip))
        base.execute("UPDATE records SET ill = 9 WHERE id IN (1, 4)")  # some persons have no record that can be read
        agree(SCHEMA, base, "ill", "leave out", persons="id", person_clip=clip_of(clip))


@settings(max_examples=sized(15, 300), deadline=None)
@given(
    case=counted(),
    ids=st.lists(st.integers(0, 4), min_size=25, max_size=25),
    clip=st.sampled_from([1.0, 2.0, "average"]),
)
def test_tables_of_persons_are_those_of_measure(case: Any, ids: list[int], clip: Any) -> None:
    variables, kinds, rows = case
    names = [each.name for each in variables]
    schema = ps.CountSchema(tuple(variables), ((names[1], names[0]), (names[-1],)))
    rows = [(*row, each) for row, each in zip(rows, ids, strict=False)]
    with loaded([*names, "whose"], [*kinds, "BIGINT"], rows) as base:
        agree(schema, base, None, "leave out", persons="whose", person_clip=clip_of(clip, schema))


def test_a_lost_row_of_a_person_beyond_the_clip_is_noticed() -> None:
    query = sql.query_of(SCHEMA, "records", "ill", dialect="duckdb", persons="id", person_clip=clip_of(1.0))
    with loaded(COLUMNS, TYPES, rows_of([1, 1, 2])) as base:
        rows = base.execute(query.text).fetchall()
    owned = [row for row in rows if row[-2] is not None]
    assert {row[-2] for row in owned} == {1}
    with pytest.raises(DataError, match="rows are missing of persons with more rows than count in full"):
        query.moments([row for row in rows if row is not owned[0]])


def test_ids_that_are_no_integers_are_refused() -> None:
    """Texts such as 007 and 7 are one person, which SQL's comparison does not see."""
    query = sql.query_of(SCHEMA, "records", "ill", dialect="duckdb", persons="id", person_clip=clip_of(2.0))
    with loaded(COLUMNS, ["VARCHAR", *TYPES[1:]], rows_of(["007", "7"])) as base:
        rows = base.execute(query.text).fetchall()
    sentence = "column 'id': the type of its 2 values is none that SQL can read here, where an id is an integer"
    with pytest.raises(DataError, match=sentence):
        query.moments(rows)
    with pytest.raises(DataError, match="persons= and person_clip= go together"):
        sql.query_of(SCHEMA, "records", "ill", dialect="duckdb", persons="id")


def test_ids_under_a_promise_per_record_are_refused_and_no_row_at_all_is_warned_of() -> None:
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(2, 2, 100), privacy=ps.NoPrivacy())
    with pytest.raises(DataError, match=r"not per person, so no ids are read: omit --persons"):
        sql.Query.of(plan, "records", "ill", dialect="duckdb", persons="id")
    with pytest.warns(UnreadableRecordsWarning, match="no row, so these are the moments of no record"):
        assert sql.Query.of(plan, "records", "ill", dialect="duckdb").moments([]).records == 0


def test_a_collation_that_ignores_case_changes_no_cell() -> None:
    rows = [(1, 50.0, sex, True, 1) for sex in ("f", "F", "m", "M", "f ")]
    for setting, kind in (("nocase", "VARCHAR"), ("", "VARCHAR COLLATE NOCASE")):
        with loaded(COLUMNS, [*TYPES[:2], kind, *TYPES[3:]], rows) as base:
            base.execute(f"SET default_collation = '{setting}'")
            assert base.execute("SELECT count(*) FROM records WHERE sex = 'f' OR TRIM(sex) = 'f'").fetchall() == [(3,)]
            agree(SCHEMA, base, "ill", "leave out")


def test_every_kind_that_is_not_counted_is_refused_by_name() -> None:
    refused = [schema for schema in SCHEMAS if sql.refuses_sql(schema)]
    assert len({type(schema) for schema in refused}) > 10
    for schema in refused:
        sentence = f"a {type(schema).__name__} cannot be counted in SQL: .*contrib.parts.measure"
        with pytest.raises(SchemaError, match=sentence):
            sql.query_of(schema, "t", "y", dialect="duckdb")


def test_the_kinds_that_are_counted() -> None:
    assert not sql.refuses_sql(SCHEMA)
    assert not sql.refuses_sql(ps.CountSchema.example())
    number = ps.Number("bmi", 10.0, 60.0)
    open_cuts = ps.ClassSchema(2, statistics="NA", clip_norm=1.0, transform=(ps.Cells((ps.Numeric("age"),)),))
    refused = {
        "omit numbers": ps.CountSchema((), (), numbers=(number,)),
        "put Cells first": ps.ClassSchema.example(),
        "not of cells": ps.MeanSchema(2, 1.0),
        "cut points of age are open": open_cuts,
        "clip_norm 1": ps.ClassSchema(2, statistics="NA", clip_norm=0.5, transform=(CELLS,)),
    }
    for words_, schema in refused.items():
        assert words_ in sql.refuses_sql(schema)


def test_declarations_that_only_the_library_reads_are_refused() -> None:
    for column, words_ in (
        (ps.Dates("at", ("2020-01-01",), written="ISO in Europe/Berlin"), "which SQL cannot read alike"),
        (ps.Numeric("crp", (5,), censored=True), "its values are texts"),
    ):
        schema = ps.ClassSchema(2, statistics="NA", clip_norm=1.0, transform=(ps.Cells((column,)),))
        with pytest.raises(SchemaError, match=words_):
            sql.query_of(schema, "t", "y", dialect="duckdb")


QUERY = sql.query_of(SCHEMA, "records", "ill", dialect="duckdb")


def test_rows_of_another_statement_are_refused() -> None:
    with loaded(COLUMNS, TYPES, [(1, 50.0, "f", True, 1), (2, None, "m", False, 0)]) as base:
        rows = base.execute(QUERY.text).fetchall()
    texts = [["" if each is None else str(each) for each in row] for row in rows]
    assert QUERY.moments(texts) == QUERY.moments(rows[::-1])  # lines of a CSV file
    for wrong in (rows[:-1], [*rows, rows[0]], [row[1:] for row in rows], [(*row[:-1], "many") for row in rows]):
        with pytest.raises(DataError, match="these rows are not the result of this statement: "):
            QUERY.moments(wrong)
    for place, value in ((0, 2), (1, 99), (-1, -1), (-1, 1.5), (-1, None)):
        broken = [tuple(value if at == place % len(row) else each for at, each in enumerate(row)) for row in rows]
        with pytest.raises(DataError, match="these rows are not the result of this statement: "):
            QUERY.moments(broken)


def test_unreadable_records_are_refused_or_warned_of() -> None:
    rows = [(1, 50.0, "f", True, 1), (2, 50.0, "zebra", True, 0), (3, 50.0, "m", True, 9)]
    with loaded(COLUMNS, TYPES, rows) as base:
        with pytest.raises(RecordError, match="column 'ill': 1; column 'sex': 1"):
            QUERY.moments(base.execute(QUERY.text).fetchall())
        query = sql.query_of(SCHEMA, "records", "ill", dialect="duckdb", unreadable="leave out")
        found = base.execute(query.text).fetchall()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert query.moments(found).records == 2
    assert "1 of the records are excluded" in str(told[0].message)
    assert "zebra" not in str(told[0].message)


def test_wrong_calls_are_one_sentence() -> None:
    for call, words_ in (
        ({"dialect": "oracle"}, "dialect must be one of duckdb, postgres, spark"),
        ({"y": None}, r"name it with --target \(y=\)"),
        ({"y": SCHEMA.reading.declared[0].name}, r"--target \(y=\) names '.*', a declared column of the plan"),
        (
            {"persons": "ill", "person_clip": clip_of(2.0)},
            r"--persons \(persons=\) names 'ill', which the plan reads",
        ),
        ({"table": None}, "table must be a name such as"),
        ({"unreadable": "skip"}, "unreadable must be 'refuse' or 'leave out'"),
        ({"table": "a..b"}, "cannot be a name in SQL"),
        ({"table": "a\nb"}, "cannot be a name in SQL"),
    ):
        terms: dict[str, Any] = {"table": "t", "y": "ill", "dialect": "duckdb", **call}
        with pytest.raises(DataError, match=words_):
            sql.query_of(SCHEMA, **terms)
    with pytest.raises(DataError, match="more than 63 bytes"):
        sql.query_of(SCHEMA, "t" * 64, "ill", dialect="postgres")
    with pytest.raises(DataError, match="which Spark substitutes"):
        sql.query_of(SCHEMA, "t", "${env:HOME}", dialect="spark")
    with pytest.raises(DataError, match="reads no y"):
        sql.query_of(ps.CountSchema.example(), "t", "ill", dialect="duckdb")
    assert repr(QUERY) == "Query(ClassSchema, 8 grouping sets)"


@given(
    st.text(st.characters(codec="utf-8"), max_size=12), st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
)
def test_a_literal_and_a_name_stand_for_exactly_themselves(text: str, name: str) -> None:
    dialect = DIALECTS["duckdb"]
    try:
        statement = f"SELECT {dialect.text(text)} AS {dialect.name(name)}"
    except DataError:
        assert not (text + " ").isprintable() or not name.isprintable()
        return
    base = data_base()
    assert base.execute(statement).fetchall() == [(text,)]
    assert base.description[0][0] == name


def test_changes_find_every_place_to_the_last_float() -> None:
    starts = changes(label_column("y", Listed.of((1, 2)), 2).outcomes, (1.0, 2.0))
    assert [outcome.cell for _, outcome in starts] == [-1, 0, -1, 1, -1]
    for start, outcome in starts[1:]:
        at = label_column("y", Listed.of((1, 2)), 2).outcomes([start, math.nextafter(start, -math.inf)])
        assert at[0] == outcome
        assert at[1] != outcome


# --- other engines, each where it is on this machine


def a_table() -> list[tuple[Any, ...]]:
    """Rows of every kind of column, with names and words that need quotes."""
    rng = np.random.default_rng(3)
    ages = [39.99999999999999, 40.0, 40.00000000000001, -9.0, 64.5, 65.0, math.nan, math.inf, None]
    sexes = ["it's", " m", "M", "b\\", "none", "NULL", "", "Ärzte", "7", "7.0", "x'; --", None]
    seen = ["2019-12-31 23:59:59.999999", "2020-01-01 00:00:00", "1900-01-01 00:00:00", "2021-06-01 12:00:00", None]
    grades = ["042", "42", " 042", "na", None]
    rows = []
    for _ in range(400):
        choose = [ages[rng.integers(9)], sexes[rng.integers(12)], seen[rng.integers(5)], grades[rng.integers(5)]]
        rows.append((*choose, [True, False, None][rng.integers(3)], int(rng.integers(4)), int(rng.integers(3))))
    return rows


OF_ALL = ps.Cells(
    (
        ps.Numeric('age "years"', (40, 65), gaps=(-9,)),
        ps.Categories("sex's", ("it's", "m", "b\\", "none", "Ärzte", "7"), gaps=("x'; --",)),
        ps.Dates("seen", ("2020-01-01", "2021-01-01"), gaps=("1900-01-01",)),
        ps.Categories("grade", ("042", "42"), as_text=True),
        ps.Truth("a`b"),
        ps.Categories("ward", (1, 2, 3)),
    )
)
ENGINE_NAMES = [*(each.name for each in OF_ALL.columns), "ill"]
ENGINE_SCHEMA = ps.ClassSchema(2, statistics="NAS", clip_norm=1.0, transform=(OF_ALL,))


def of_all(rows: list[tuple[Any, ...]]) -> Any:
    columns = dict(zip(ENGINE_NAMES, map(list, zip(*rows, strict=True)), strict=True))
    y = columns.pop("ill")
    columns["seen"] = [None if each is None else np.datetime64(each) for each in columns["seen"]]
    return ps.measure(ENGINE_SCHEMA, columns, y, unreadable="leave out")


def query_for(dialect: Any) -> sql.Query:
    return sql.query_of(ENGINE_SCHEMA, "records", "ill", dialect=dialect, unreadable="leave out")


def test_duckdb_counts_a_table_of_every_kind_of_column() -> None:
    rows, kinds = a_table(), ["DOUBLE", "VARCHAR", "TIMESTAMP", "VARCHAR", "BOOLEAN", "INTEGER", "INTEGER"]
    with loaded(ENGINE_NAMES, kinds, rows) as base:
        assert query_for("duckdb").moments(base.execute(query_for("duckdb").text).fetchall()) == of_all(rows)


POSTGRES = next(
    (path for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"))[::-1] if (path / "initdb").exists()), None
)


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[Any]:
    """A server in a folder, and a function that runs statements there and returns lines of CSV."""
    assert POSTGRES is not None
    home, user = tmp_path / "base", []
    home.mkdir()
    if Path("/proc/self").owner() == "root":  # the server refuses root
        shutil.chown(home, "postgres", "postgres")
        for folder in (tmp_path, *tmp_path.parents[:3]):
            folder.chmod(folder.stat().st_mode | 0o011)
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    named: dict[str, Any] = {"check": True, "capture_output": True, "text": True, "cwd": home}
    subprocess.run(
        [*user, POSTGRES / "initdb", "-D", home / "data", "-A", "trust", "-U", "tester", "-E", "UTF8"], **named
    )
    options = f"-c listen_addresses= -c unix_socket_directories={home} -c fsync=off"
    control = [*user, POSTGRES / "pg_ctl", "-D", home / "data", "-w", "-l", home / "log"]
    subprocess.run(
        [*control, "-o", options, "start"], **{**named, "capture_output": False, "stdout": subprocess.DEVNULL}
    )

    def run(statement: str) -> list[list[str]]:
        command = [
            POSTGRES / "psql",
            "-h",
            home,
            "-U",
            "tester",
            "-d",
            "postgres",
            "--csv",
            "-q",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
        ]
        done = subprocess.run([*command, "-f", "-"], input=statement, check=True, capture_output=True, text=True)
        return list(csv.reader(done.stdout.splitlines()))

    try:
        yield run
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **named)


def literal(value: Any) -> str:
    if value is None or isinstance(value, bool | int):
        return "NULL" if value is None else str(value)
    return DIALECTS["postgres"].text(value) if isinstance(value, str) else f"'{value!r}'"


@pytest.mark.ci
@pytest.mark.skipif(POSTGRES is None, reason="there is no PostgreSQL of Debian on this machine")
@pytest.mark.parametrize("setting", ["", "SET standard_conforming_strings = off; SET DateStyle = 'German';"])
def test_postgres_counts_a_table_of_every_kind_of_column(postgres: Any, setting: str) -> None:
    rows, dialect = a_table(), DIALECTS["postgres"]
    kinds = ["double precision", "text", "timestamp", "varchar(20)", "boolean", "integer", "numeric"]
    declared = ", ".join(f"{dialect.name(name)} {kind}" for name, kind in zip(ENGINE_NAMES, kinds, strict=True))
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
    postgres(f"CREATE TABLE records ({declared}); INSERT INTO records VALUES {values};")
    query = query_for("postgres")
    assert query.moments(postgres(f"{setting} {query.text};")) == of_all(rows)
    postgres("CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);")
    postgres(f"""ALTER TABLE records ALTER {dialect.name("sex's")} TYPE text COLLATE ci;""")
    assert query.moments(postgres(f"SET extra_float_digits = -10; {query.text};")) == of_all(rows)
    zoned = postgres("ALTER TABLE records ALTER seen TYPE timestamptz;") or postgres(f"{query.text};")
    with pytest.raises(DataError, match="column 'seen': the type of its 400 values is none that SQL can read"):
        query.moments(zoned)


@pytest.mark.ci
@pytest.mark.skipif(POSTGRES is None, reason="there is no PostgreSQL of Debian on this machine")
def test_no_value_stops_a_statement_of_postgres(postgres: Any) -> None:
    """A cast beyond a type's range is an error there, and would end the statement for all records."""
    columns = (ps.Numeric("n", (0.5,)), ps.Dates("d", ("2020-01-01",)), ps.Categories("t", ("a", "Ä", "7")))
    schema = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(ps.Cells(columns),))
    query = sql.query_of(schema, "records", "y", dialect="postgres", unreadable="leave out")
    beyond = np.datetime64("10000-01-01", "us")
    numbers = ["1e400", "-1e400", "1e-400", "NaN", "1e-5000", "1e9000", "0", "1"]
    numbers += ["2.48e-324", "1.79769313486231575e308"]  # rounded to the smallest and the largest float64
    days: dict[str, Any] = dict.fromkeys(["infinity", "-infinity", "5000000-01-01", "0044-03-15 BC"], beyond)
    days |= {day: np.datetime64(day, "us") for day in ("9999-12-31", "2020-01-01")}
    texts = ["A\u0308", " Ä\u3000", "\u212b", "\u0436", "1e999", "-1e-999", "7e0", "1e99999999", "x" * 1025, "a"]
    rows = [(n, d, t) for n in numbers for d in days for t in texts]
    values = ", ".join(f"('{n}', '{d}', '{t}', {place % 2})" for place, (n, d, t) in enumerate(rows))
    postgres(f"CREATE TABLE records (n numeric, d date, t text, y integer); INSERT INTO records VALUES {values};")
    held = {
        "n": [None if n == "NaN" else Decimal(n) for n, _, _ in rows],
        "d": [days[d] for _, d, _ in rows],
        "t": [t for *_, t in rows],
    }
    y = np.arange(len(rows)) % 2
    found = query.moments(postgres(f"SET DateStyle = 'German'; {query.text};"))
    assert found == ps.measure(schema, held, y, unreadable="leave out")


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.parametrize("time", ["timestamp_ntz", "timestamp"])
def test_spark_counts_a_table_of_every_kind_of_column(spark: Any, time: str) -> None:
    rows = a_table()
    kinds = ["double", "string", "string", "string", "boolean", "int", "bigint"]
    declared = ", ".join(
        f"{DIALECTS['spark'].name(name)} {kind}" for name, kind in zip(ENGINE_NAMES, kinds, strict=True)
    )
    frame = spark.createDataFrame(rows, declared)
    frame.withColumn("seen", frame["seen"].cast(time)).createOrReplaceTempView("records")
    query = query_for("spark")
    assert query.moments(spark.sql(query.text).collect()) == of_all(rows)
    if time == "timestamp":
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        with pytest.raises(PrivstatsError, match="column 'seen': the type of its 400 values is none that SQL can read"):
            query.moments(spark.sql(query.text).collect())


@pytest.mark.parametrize("value", ["1e999", "9" * 400, "0e9999", "9" * 1025])
def test_a_code_that_overflows_as_a_number_is_read_as_by_measure(value: str) -> None:
    """The library reads such a text as a gap."""
    cells = ps.Cells((ps.Categories("icd", ("a", "b", "d"), as_text=True, other=True),))
    schema = ps.ClassSchema(2, statistics="NA", clip_norm=1.0, transform=(cells,))
    with loaded(["icd", "y"], ["VARCHAR", "INTEGER"], [("a", 0), (value, 1), ("b", 1)]) as base:
        agree(schema, base, "y", "leave out")


def test_a_missing_column_is_never_taken_from_an_alias_of_the_statement() -> None:
    variables = (ps.Categories("sex", ("f", "m")), ps.Categories("value_c0", ("f", "m")))
    schema = ps.CountSchema(variables, (("sex", "value_c0"),))
    query = sql.query_of(schema, "records", dialect="duckdb")
    with loaded(["sex"], ["VARCHAR"], [("f",), ("m",)]) as base:
        with pytest.raises(duckdb.BinderException, match="value_c0"):
            base.execute(query.text)
        base.execute("ALTER TABLE records ADD COLUMN value_c0 VARCHAR DEFAULT 'm'")
        found = query.moments(base.execute(query.text).fetchall())
    assert np.asarray(found.T).tolist() == [0, 1, 0, 1]
