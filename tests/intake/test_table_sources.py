"""A folder, a pattern and a DuckDB file are one table: the same records as one file, in every reader."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import privstats as ps
from privstats.errors import DataError
from privstats.intake.csv_dialect import Dialect
from privstats.intake.table_sources import csv_files, is_table, table_file
from privstats.moments import RecordFile
from privstats.records.from_file import persons_in, records_in
from tests import made

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

CELLS = ps.Cells((ps.Numeric("age", (40, 65)), ps.Categories("ward", ("A", "B", "D"), gaps=("?",))))
SCHEMA = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(CELLS,), class_names=("no", "yes"))
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "person": np.arange(90) // 2,
        "age": RNG.integers(20, 90, 90),
        "ward": RNG.choice(["A", " B", "?", "C"], 90),
        "ill": RNG.choice(["no", "yes"], 90),
    }
)
ENDS = [(0, 31), (31, 31), (31, 60), (60, 90)]  # a person has rows in two files
CLIP = made.plan(
    SCHEMA, ps.Cohort(3, 3, 600), made.promise("central", unit="person", max_records_per_person=6, person_clip=1.0)
).person_clip


def in_csv(home: Path) -> Path:
    home.mkdir()
    for place, (start, end) in enumerate(ENDS):
        part = FRAME[start:end]
        part[part.columns[:: 1 if place % 2 else -1]].to_csv(home / f"{place}.csv", index=False)  # another order
    (home / "_SUCCESS").touch()
    return home


def in_parquet(home: Path) -> Path:
    home.mkdir()
    for place, (start, end) in enumerate(ENDS):
        FRAME[start:end].to_parquet(home / f"{place}.parquet", index=False)
    return home


def in_duckdb(home: Path) -> Path:
    with duckdb.connect(str(home) + ".duckdb") as base:
        base.register("frame", FRAME)
        base.execute("CREATE TABLE patients AS SELECT * FROM frame")
    return Path(f"{home}.duckdb")


SOURCES: dict[str, Any] = {
    "a folder of CSV files": lambda home: in_csv(home / "parts"),
    "a pattern of CSV files": lambda home: in_csv(home / "parts") / "*.csv",
    "a folder of Parquet files": lambda home: in_parquet(home / "parts"),
    "a pattern of Parquet files": lambda home: in_parquet(home / "parts") / "[0-9].parquet",
    "a DuckDB file": lambda home: in_duckdb(home / "base"),
    "a table of a DuckDB file": lambda home: in_duckdb(home / "base") / "patients",
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_table_in_many_files_is_measured_as_one(source: str, tmp_path: Path) -> None:
    file = RecordFile(SOURCES[source](tmp_path), "ill", persons="person")
    rows, y, ids = FRAME[["age", "ward"]], FRAME["ill"], FRAME["person"]
    assert file.is_table
    assert set(file.columns) == set(FRAME)
    assert ps.measure(SCHEMA, *records_in(file, SCHEMA.reading, "refuse")) == ps.measure(SCHEMA, rows, y)
    X, labels, persons = persons_in(file, SCHEMA.reading, "refuse")
    found = ps.measure(SCHEMA, X, labels, persons=persons, person_clip=CLIP)
    assert found == ps.measure(SCHEMA, rows, y, persons=ids, person_clip=CLIP)
    table = file.table(["ward", "Age"])
    assert [str(each).strip() for each in table.values("ward")] == FRAME["ward"].str.strip().tolist()
    assert [int(each) for each in table.values("age")] == FRAME["age"].tolist()


def test_one_warning_is_of_all_files(tmp_path: Path) -> None:
    home = in_csv(tmp_path / "parts")
    for place in (0, 3):
        (home / f"{place}.csv").open("a").write("1,2\n")
    file = RecordFile(home, "ill")
    with pytest.warns(
        UserWarning, match=r"2 lines of .*parts do not fit the table .* and are excluded, first: 0.csv, line 33"
    ):
        found = ps.measure(SCHEMA, *records_in(file, SCHEMA.reading, "leave out"), unreadable="leave out")
    assert found.records == 90
    assert file.table(["age"]).left_out == 2


def test_files_with_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    home = in_csv(tmp_path / "parts")
    (home / "9.csv").write_text("age,ward,ill\n1,A,no\n")
    file = RecordFile(home, "ill", persons="person")
    with pytest.raises(DataError, match=r"9.csv lacks the column 'person', which .*0.csv has: files that are read"):
        file.read()
    (home / "9.csv").unlink()
    (home / "9.csv").write_text("age,ward,ill,person,more\n1,A,no,3,4\n")
    FRAME.to_parquet(home / "9.parquet")
    assert len(file.read(("age",)).y) == 2 * len(FRAME) + 1


def test_paths_that_name_no_table_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "*.csv", tmp_path / "none" / "*" / "x?.parquet"):
        with pytest.raises(DataError, match="names no file with records; name a file, or a folder or pattern"):
            table_file(path, Dialect())
    assert not is_table(tmp_path / "x.npz")
    assert csv_files(tmp_path / "none.csv") == []
    (tmp_path / "odd[1].csv").write_text("a,b\n1,2\n")
    assert table_file(tmp_path / "odd[1].csv", Dialect()).names == ["a", "b"]  # a file of this name


def test_duckdb_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        table_file(tmp_path / "base.duckdb", Dialect())
    (tmp_path / "text.duckdb").write_text("a,b\n1,2\n")
    assert table_file(tmp_path / "text.duckdb", Dialect()).names == ["a", "b"]  # whatever its name
    (tmp_path / "cut.duckdb").write_bytes(b"checksumDUCK\x40" + b"\0" * 60)
    with pytest.raises(DataError, match=r"cannot read .*cut.duckdb as a table .*\("):
        table_file(tmp_path / "cut.duckdb", Dialect())
    base = in_duckdb(tmp_path / "base")
    with pytest.raises(
        DataError, match=r"has no table 'nobody'; name one of its own as .*base.duckdb/TABLE, such as 'pa"
    ):
        table_file(base / "nobody", Dialect())
    with duckdb.connect(str(base)) as opened:
        opened.execute("""CREATE VIEW "od""d" AS SELECT age AS "a""ge" FROM patients""")
    with pytest.raises(DataError, match=r"has 2 tables; name one of its own"):
        table_file(base, Dialect())
    assert len(table_file(base / 'od"d', Dialect()).load(['a"ge']).values('a"ge')) == 90


def test_a_split_of_many_files_is_that_of_one(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "one.csv", index=False)
    names = ("age",)
    one, many = (RecordFile(path, "ill", 0.5, 3) for path in (tmp_path / "one.csv", in_csv(tmp_path / "parts")))
    assert [len(part.X) for part in one.parts(names)] == [len(part.X) for part in many.parts(names)]
