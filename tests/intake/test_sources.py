"""What a path names: random sources through every door, and each entry that is read, left out or refused."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from secrets import token_hex

import pytest

import privstats as ps
from privstats.contrib import parts
from privstats.errors import CopiedFilesWarning, DataError, MissingExtraError
from privstats.intake.csv_dialect import Dialect
from privstats.intake.table_sources import KINDS, Catalogue, is_table, table_file
from privstats.moments import RecordFile
from tests.intake import sources_fuzz as fuzz
from tests.lengths import sized
from tests.made import refused

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
HERE = [name for name, kind in fuzz.KINDS.items() if kind.is_here]
CSV = "age,ill\n50,no\n61,yes\n"


def test_drawn_sources_are_read_whole_by_every_door() -> None:
    read, broken = fuzz.run(40, 1, HERE)
    assert broken == []
    assert set(read) == set(HERE)


@pytest.mark.ci
def test_new_sources_are_read_whole_by_every_door() -> None:
    _, broken = fuzz.run(60, token_hex(4), HERE)
    assert broken == []


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(4))
def test_many_sources_are_read_whole_by_every_door(part: int) -> None:
    _, broken = fuzz.run(sized(60, 2500), f"{part} {token_hex(4)}", HERE)
    assert broken == []


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_every_kind_of_file_is_read_without_its_ending(kind: str) -> None:
    if kind not in HERE:
        pytest.skip(f"{', '.join(fuzz.KINDS[kind].needs)}: not installed")
    _, broken = fuzz.run(4, 1, [kind])
    assert broken == []


def test_the_generator_writes_every_kind_that_is_read() -> None:
    by_hand = {"SasData"}  # no library writes it
    written = {"csv": "Csv", "compressed": "Csv", "sas": "SasTransport", "xlsx": "Excel", "duckdb": "DuckDb"}
    names = {written.get(kind, kind.capitalize()) for kind in fuzz.KINDS}
    assert names == {kind.__name__ for kind in KINDS} - by_hand


@pytest.mark.parametrize(
    "header", ["PK,age,ill", "ORC,age,ill", "ORCID,ill", "PAR1,ill", "FEA1,ill", "BZh,ill", "age,ill,DUCK", "X,ill"]
)
def test_a_row_of_names_is_no_sign_of_another_kind(header: str, tmp_path: Path) -> None:
    path = tmp_path / "north"
    path.write_text(f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    assert is_table(path)
    assert table_file(path, Dialect()).names == header.split(",")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, fuzz.zstd])
def test_a_compressed_file_that_ends_early_is_refused(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "north.csv.gz"
    content = pack(CSV.encode() + b"".join(b"%d,no\n" % (age * 7919 % 100_003) for age in range(30_000)))
    path.write_bytes(content)
    assert len(RecordFile(path, "ill").read().y) == 30_002
    for end in (len(content) // 2, len(content) - 1):
        path.write_bytes(content[:end])
        refused(DataError, "damaged or end early: copy the file once more", RecordFile(path, "ill").read)


def test_time_stamps_of_spark_are_read_in_every_year(tmp_path: Path) -> None:
    ends = [datetime(9999, 12, 31), datetime(2020, 5, 5), datetime(1, 1, 1), None]
    table = pyarrow.table({"end": pyarrow.array(ends, pyarrow.timestamp("us")), "ill": ["no", "yes", "no", "yes"]})
    cells = ps.Cells((ps.Dates("end", ("1000-01-01", "2021-01-01")),))
    schema = ps.ClassSchema(2, statistics="NA", clip_norm=1.0, transform=(cells,), class_names=("no", "yes"))
    expected = ps.measure(schema, {"end": ends}, ["no", "yes", "no", "yes"], unreadable="leave out")
    for name, old in (("a", False), ("b", True)):
        parquet.write_table(table, tmp_path / name, use_deprecated_int96_timestamps=old, row_group_size=3)
        dataset = pytest.importorskip("pyarrow.dataset").dataset(tmp_path / name)
        (fragment,) = dataset.get_fragments()
        first, second = fragment.subset(row_group_ids=[0]), fragment.subset(row_group_ids=[1])
        halves = type(dataset)([first, second], dataset.schema, dataset.format, dataset.filesystem)
        assert ps.measure(schema, str(tmp_path / name), "ill", unreadable="leave out") == expected
        for source in (str(tmp_path / name), dataset):
            assert parts.measure(schema, source, "ill", unreadable="leave out") == expected
        assert ps.measure(schema, halves, "ill", unreadable="leave out") == expected


def folder(home: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return home


@pytest.mark.parametrize(
    ("entry", "content", "sentence"),
    [
        (".b.csv", CSV, r"holds .b.csv, which is hidden: name the files that are records by a pattern"),
        ("_b.csv", CSV, "which is hidden"),
        (".old/b.csv", CSV, r".old/b.csv, which is hidden"),
        ("readme.md", "exported on Monday", "readme.md"),
        ("b.json", "{}", "b.json: it is JSON, and no table"),
        ("b.zip", b"PK\x03\x04" + b"\0" * 60, "b.zip: it is a zip archive: unpack it"),
        ("b.pkl", b"\x80\x04\x95", "b.pkl: it is a pickle of Python, which may run code"),
        ("b.h5", b"\x89HDF\r\n", "b.h5: it is HDF5"),
        ("b.npy", b"\x93NUMPY\1\0", "b.npy: it is numpy's, and no table"),
        ("b.parquet.gz", gzip.compress(b"PAR1\x15"), "compressed by gzip and holds no CSV: unpack it"),
        ("b.csv", "age\n50\n", "b.csv lacks the column 'ill', which .*a.csv has"),
        ("b.csv", "age,ill,Age\n50,no,50\n", "b.csv has the columns 'age' and 'Age'; keep one of them"),
        ("_delta_log/0.json", "{}", r"cannot read .* as a table|needs deltalake"),
        ("metadata/v1.metadata.json", "{}", "is a table of Iceberg, whose log states which of its files are current"),
        (".hoodie/hoodie.properties", "", "is a table of Hudi"),
        ("delta_0000001_0000001/bucket_0", CSV, "is a table of Hive ACID"),
    ],
)
def test_an_entry_that_is_no_file_of_records_is_named(
    entry: str, content: str | bytes, sentence: str, tmp_path: Path
) -> None:
    home = folder(tmp_path / "parts", **{"a.csv": CSV, entry: content})
    for door in (lambda: RecordFile(home, "ill").read(("age",)), lambda: parts.measure(fuzz.SCHEMA, str(home), "ill")):
        refused((DataError, MissingExtraError), sentence, door)


def test_bookkeeping_is_no_record(tmp_path: Path) -> None:
    names = ("_SUCCESS", ".a.csv.crc", ".DS_Store", "._a.csv", "~$a.xlsx", "a.csv.splits.json", "Thumbs.db")
    home = folder(tmp_path / "parts", **{"a.csv": CSV, "empty": "", **dict.fromkeys(names, "x")})
    found = Catalogue.of(home)
    assert [entry.path.name for entry in found.entries] == ["a.csv"]
    assert {path.name for path in found.left_out} == {*names, "empty"}


def test_a_pattern_names_hidden_files_too_and_no_folder(tmp_path: Path) -> None:
    home = folder(tmp_path, **{"a.csv": CSV, "_b.csv": CSV.replace("50", "51"), "more/c.csv": CSV})
    assert len(RecordFile(home / "*.csv", "ill").read().y) == 4
    refused(DataError, "names the folder .*more; name files by a pattern", RecordFile(home / "*", "ill").read)


def test_a_file_inside_a_table_with_a_log_is_refused(tmp_path: Path) -> None:
    home = folder(tmp_path / "table", **{"_delta_log/0.json": "{}", "year=2026/a.csv": CSV})
    for path in (home / "year=2026" / "a.csv", home / "year=2026", home / "year=2026" / "*.csv", home / "*" / "*.csv"):
        refused(
            DataError,
            "is a Delta table, whose log states which of its files are current; name its folder",
            RecordFile(path, "ill").read,
        )


def test_a_delta_table_has_its_current_records_alone(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    home = tmp_path / "delta"
    table = pyarrow.table({"age": [30, 50, 70], "ill": ["no", "yes", "no"], "ward": ["A", "ICU", "A b/c"]})
    deltalake.write_deltalake(str(home), table, partition_by=["ward"])
    deltalake.write_deltalake(str(home), table, mode="append", partition_by=["ward"])
    more = pyarrow.table({"age": [51], "ill": ["no"], "ward": ["A"], "crp": [7.5]})
    deltalake.write_deltalake(str(home), more, mode="append", schema_mode="merge", partition_by=["ward"])
    deltalake.DeltaTable(str(home)).delete("age >= 60")
    rows = [(30, None, "A", "no"), (50, None, "ICU", "yes")] * 2 + [(51, 7.5, "A", "no")]
    records = [{"age": age, "crp": crp, "ward": ward, "admitted": None, "ill": ill} for age, crp, ward, ill in rows]
    cells = ps.Cells(fuzz.CELLS.columns[:3])
    schema = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(cells,), class_names=("no", "yes"))
    columns = {name: [row[name] for row in records] for name in ("age", "crp", "ward")}
    expected = ps.measure(schema, columns, [row["ill"] for row in records], unreadable="leave out")
    for source in (str(home), RecordFile(home, "ill").read(cells, unreadable="leave out", texts=True)):
        X, y = (source, "ill") if isinstance(source, str) else (source.X, source.y)
        assert ps.measure(schema, X, y, unreadable="leave out") == expected
    assert parts.measure(schema, str(home), "ill", unreadable="leave out") == expected


def test_equal_bytes_are_said_where_they_hold_a_record(tmp_path: Path) -> None:
    home = folder(tmp_path / "parts", **{"a.csv": CSV, "b.csv": "age,ill\n", "c.csv": "age,ill\n"})
    assert len(RecordFile(home, "ill").read().y) == 2
    folder(home, **{"a (1).csv": CSV})
    with pytest.warns(
        CopiedFilesWarning, match=r"a.csv has the same bytes as .*a \(1\).csv, and its records count again"
    ):
        assert len(RecordFile(home, "ill").read().y) == 4


def test_columns_that_nobody_reads_may_differ(tmp_path: Path) -> None:
    home = folder(tmp_path / "parts", **{"a.csv": "age,note,ill\n50,x,no\n", "b.csv": "ILL,more,AGE\nyes,1,61\n"})
    file = RecordFile(home, "ill")
    assert file.columns == ("age", "ill")
    assert file.read().X.tolist() == [[50], [61]]
    refused(DataError, "b.csv lacks the column 'note', which .*a.csv has", file.read, ("note",))
