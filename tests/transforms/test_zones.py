"""Midnight of Berlin as a time with a zone is the date of another hospital in every container, if declared so."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import privstats as ps
from privstats.errors import SchemaError
from privstats.intake.declared.columns import column_from_plan
from privstats.moments import RecordFile

BERLIN = ZoneInfo("Europe/Berlin")
LOCAL = [datetime(2019, 3, 28), datetime(2019, 7, 1), datetime(2019, 10, 27), datetime(2019, 12, 31, 18, 30), None]
SEEN = [None if at is None else at.replace(tzinfo=BERLIN) for at in LOCAL]
WIDE = [None if at is None else at.astimezone(UTC) for at in SEEN]
DAYS = [float("nan") if at is None else (at - datetime(1970, 1, 1)) / timedelta(days=1) for at in LOCAL]
COLUMN = ps.Dates("seen", written="ISO in Europe/Berlin")
CELLS = ps.Cells((COLUMN, ps.Numeric("age")))


def days_in(values) -> list[float]:
    return CELLS.read({"seen": values, "age": [50] * len(DAYS)}).codes[:, 0].tolist()


def _pandas(values, dtype=None):
    return pytest.importorskip("pandas").Series(values, dtype=dtype)


def _polars(values):
    polars = pytest.importorskip("polars")
    return polars.Series(values).dt.convert_time_zone("Europe/Berlin")


def _arrow(values, zone="Europe/Berlin"):
    arrow = pytest.importorskip("pyarrow")
    return arrow.array(values, arrow.timestamp("us", tz=zone))


TEXTS = [None if at is None else at.isoformat() for at in WIDE]
CONTAINERS = {
    "times": lambda: SEEN,
    "times in UTC": lambda: WIDE,
    "texts": lambda: TEXTS,
    "texts with Z": lambda: [text and text.replace("+00:00", "Z") for text in TEXTS],
    "texts of Berlin": lambda: [at and f" {at.isoformat(' ')}" for at in SEEN],
    "texts of Postgres": lambda: [text and text.replace("T", " ").replace("+00:00", "+00") for text in TEXTS],
    "bytes": lambda: [text and text.encode() for text in TEXTS],
    "an array of objects": lambda: np.array(SEEN, object),
    "an array of texts": lambda: np.array([text or "" for text in TEXTS]),
    "pandas": lambda: _pandas(_pandas(WIDE).dt.tz_convert("Europe/Berlin")),
    "pandas in UTC": lambda: _pandas(WIDE),
    "pandas' categories": lambda: _pandas(WIDE, "category"),
    "pandas' texts": lambda: _pandas(TEXTS),
    "pandas with Arrow": lambda: _pandas(WIDE, "timestamp[us, tz=Europe/Berlin][pyarrow]"),
    "polars": lambda: _polars(WIDE),
    "Arrow": lambda: _arrow(WIDE),
    "Arrow in UTC": lambda: _arrow(WIDE, "UTC"),
    "a dictionary of Arrow": lambda: _arrow(WIDE).dictionary_encode(),
    "times without a zone": lambda: LOCAL,
    "texts without a zone": lambda: [at and at.isoformat() for at in LOCAL],
    "numpy's times": lambda: np.array(LOCAL, "datetime64[us]"),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_time_with_a_zone_is_the_day_and_hour_of_the_declared_zone(container):
    """In summer and winter; without a zone it stays as it is."""
    np.testing.assert_array_equal(days_in(CONTAINERS[container]()), DAYS)


def test_prediction_reads_it_alike():
    cells = ps.Cells((ps.Dates("seen", ("2019-07-01", "2020-01-01"), written=COLUMN.written), ps.Numeric("age", (50,))))
    y = (np.arange(40) % 3 == 0).astype(int)
    table = {"seen": [LOCAL[place % 4] for place in range(40)], "age": [45 + place % 11 for place in range(40)]}
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 80), privacy=ps.NoPrivacy())
    head = ps.heads.LDA().fit_release(ps.simulate(plan, [(table, y), (table, y)]))
    expected = head.predict_proba({"seen": LOCAL, "age": [50] * len(DAYS)})
    assert len(np.unique(expected[:, 0])) > 1
    for values in (SEEN, TEXTS, np.array(SEEN, object)):
        np.testing.assert_array_equal(head.predict_proba({"seen": values, "age": [50] * len(DAYS)}), expected)


def test_without_the_declaration_a_time_is_that_of_utc():
    read = ps.Cells((ps.Dates("seen"), ps.Numeric("age"))).read({"seen": SEEN[:2], "age": [1, 1]})
    assert read.codes[:, 0].tolist() == [DAYS[0] - 1 / 24, DAYS[1] - 2 / 24]


def _read(path) -> list[float]:
    batches = RecordFile(path, "ill").batches(CELLS, unreadable="leave out")
    return np.concatenate([X.codes[:, 0] for X, _ in batches]).tolist()


def test_files_read_it_alike(tmp_path):
    (tmp_path / "t.csv").write_text("seen,age,ill\n" + "".join(f"{text or ''},50,no\n" for text in TEXTS))
    np.testing.assert_array_equal(_read(tmp_path / "t.csv"), DAYS)
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    others = {"age": [50] * len(DAYS), "ill": ["no"] * len(DAYS)}
    (tmp_path / "t.parquet").mkdir()
    parquet.write_table(arrow.table({"seen": _arrow(WIDE), **others}), tmp_path / "t.parquet" / "a.parquet")
    naive = arrow.array(LOCAL, arrow.timestamp("us"))
    parquet.write_table(arrow.table({"seen": naive, **others}), tmp_path / "t.parquet" / "b.parquet")
    np.testing.assert_array_equal(_read(tmp_path / "t.parquet"), DAYS * 2)
    dataset = pytest.importorskip("pyarrow.dataset").dataset(tmp_path / "t.parquet", format="parquet")
    from privstats.intake.frames import in_memory

    np.testing.assert_array_equal(CELLS.read(in_memory(dataset)).codes[:, 0], DAYS * 2)


def test_a_relation_of_duckdb_reads_it_alike():
    duckdb, arrow = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    table = arrow.table({"seen": _arrow(WIDE, "UTC"), "age": [50] * len(DAYS)})
    from privstats.intake.frames import in_memory

    np.testing.assert_array_equal(CELLS.read(in_memory(duckdb.from_arrow(table))).codes[:, 0], DAYS)


def test_edges_are_of_the_declared_zone():
    column = ps.Dates("seen", ("2019-03-28", SEEN[1], date(2019, 12, 31)), written="ISO in Europe/Berlin")
    assert column.edges == (DAYS[0], DAYS[1], DAYS[3] // 1)
    assert column_from_plan(column.to_plan()) == column


@pytest.mark.parametrize("zone", ["Europe/Bonn", "/etc/passwd", "../zone", "Europe", "Z\0", "\ud800"])
def test_a_zone_that_no_machine_knows_is_refused(zone):
    with pytest.raises(SchemaError, match="written of seen names the time zone .* does not know: write a name such"):
        ps.Dates("seen", written=f"ISO in {zone}")
