"""What a path names: random sources through every door, and each entry that is read, left out or refused."""

import bz2
import errno
import gzip
import json
import lzma
import os
import re
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib import parts
from privstats.errors import (
    CopiedFilesWarning,
    DataError,
    MissingExtraError,
    RecordError,
    UnreadableRecordsWarning,
)
from privstats.intake.csv_dialect import Dialect
from privstats.intake.table_sources import TABLE_FILES, Catalogue, is_table, table_file
from privstats.moments import RecordFile
from privstats.records.from_file import records_in
from privstats.workflows.rehearsal import written_as
from tests.intake import sources_fuzz as fuzz
from tests.lengths import sized
from tests.made import refused

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
HERE = [name for name, kind in fuzz.WRITERS.items() if kind.is_here]
CSV = "age,ill\n50,no\n61,yes\n"
PLAIN = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)


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
    seconds = sized(5, 840)  # an hour in all, and each part within the time limit of a test
    _, broken = fuzz.run(None, f"{part} {token_hex(4)}", HERE, seconds=seconds)
    assert broken == []


@pytest.mark.parametrize("kind", fuzz.WRITERS)
def test_every_kind_of_file_is_read_without_its_ending(kind: str) -> None:
    if kind not in HERE:
        pytest.skip(f"{', '.join(fuzz.WRITERS[kind].needs)}: not installed")
    _, broken = fuzz.run(4, 1, [kind])
    assert broken == []


def test_the_generator_writes_every_kind_that_is_read() -> None:
    by_hand = {"SasData"}  # no library writes it
    written = {"csv": "Csv", "compressed": "Csv", "json": "JsonLines", "sas": "SasTransport", "xlsx": "Excel"}
    written["duckdb"] = "DuckDb"
    names = {written.get(kind, kind.capitalize()) for kind in fuzz.WRITERS}
    assert names == {kind.__name__ for kind in TABLE_FILES} - by_hand


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


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, fuzz.zstd])
@pytest.mark.parametrize("between", [b"", b"\0" * 512, b"\xff" * 4, b"lost"])
def test_streams_one_behind_another_are_all_read_or_the_file_is_refused(
    pack: Callable[[bytes], bytes], between: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "north.csv.gz"
    for more in (b"", pack(b"70,no\n")):
        path.write_bytes(pack(CSV.encode()) + between + more)
        try:
            assert len(RecordFile(path, "ill").read().y) == 2 + bool(more)
        except DataError as error:
            assert "damaged or end early" in str(error)
            assert between


LINES = ('{"age": 50, "ill": "no"}', '{"ILL": "yes", "age": "61", "note": {"age": 1}}', '{"age": null, "ill": "no"}')
ODD_LINES = (
    *("", "x", "[]", "null", "{", '"age"', "\0", "age,ill", "PAR", '{"age": 1, "AGE": 2, "ill": "no"}', "[" * 99_999),
    *('{"privstats synthetic rows": 1, "age": 50, "ill": "no"}', '{"age": ' + "9" * 9999 + "}", "\ufeff", "\u2028{}"),
)
CELLS = ps.Cells((ps.Numeric("age", (40, 60)),))
COUNTED = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(CELLS,), class_names=("no", "yes"))


def lines_doors(path: Path) -> list[Any]:
    """Return the sums of a file of JSON lines through every door."""
    file = RecordFile(path, "ill")
    read = file.read(CELLS, unreadable="leave out", texts=True)
    with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
        return [
            ps.measure(COUNTED, str(path), "ill", unreadable="leave out"),
            ps.measure(COUNTED, file, unreadable="leave out"),
            ps.measure(COUNTED, read.X, read.y, unreadable="leave out"),
            ps.measure(COUNTED, *records_in(file, COUNTED.reading, "leave out"), unreadable="leave out"),
            parts.measure(COUNTED, str(path), "ill", unreadable="leave out"),
            parts.measure(COUNTED, file, unreadable="leave out"),
        ]


@pytest.mark.parametrize("odd", ODD_LINES)
def test_a_line_that_is_no_record_moves_no_other(odd: str, tmp_path: Path) -> None:
    path, expected = tmp_path / "north.jsonl", ps.measure(COUNTED, {"age": [50, 61, None]}, ["no", "yes", "no"])
    for place in range(len(LINES) + 1):
        path.write_text("\n".join([*LINES[:place], odd, *LINES[place:]]))
        with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
            assert all(sums == expected for sums in lines_doors(path))


def test_a_value_of_json_lines_is_read_as_elsewhere(tmp_path: Path) -> None:
    values = ["7", 7, 7.0, True, False, "true", None, "", "n/a", 1e400, float("nan"), 2**70, 10**400, [1], {}, "\ud800"]
    path = tmp_path / "north.ndjson"
    path.write_text("".join(json.dumps({"age": value, "ill": "no"}) + "\n" for value in values))
    records = RecordFile(path, "ill").read(CELLS, unreadable="leave out", texts=True)
    expected = CELLS.read({"age": values})
    assert np.array_equal(records.X.codes, expected.codes, equal_nan=True)
    with pytest.warns(UnreadableRecordsWarning):
        sums = ps.measure(COUNTED, {"age": values}, ["no"] * len(values), unreadable="leave out")
    assert all(each == sums for each in lines_doors(path))


def test_json_lines_are_read_by_declared_columns_alone(tmp_path: Path) -> None:
    path = tmp_path / "north.ndjson"
    path.write_text("\n".join(LINES))
    file = RecordFile(path, "ill")
    for door in (lambda: file.columns, file.read, lambda: file.doubt, lambda: parts.measure(PLAIN, str(path), "ill")):
        refused(DataError, "in JSON lines only records name columns.* use a plan that declares its columns", door)
    refused(DataError, "by the columns 'ILL' and 'ill': rename one of them", file.read, ("ILL", "age"))
    (tmp_path / "lines").write_text("\n".join(LINES))
    refused(DataError, "it is JSON, .* if each line is one, name the file .ndjson", RecordFile(tmp_path / "lines").read)
    path.write_text("\n".join(LINES), encoding="utf-16")
    refused(DataError, "it is written as UTF-16: write JSON lines in UTF-8", file.read, ("age",))
    path.write_text("\n".join((LINES[0], '{"ill": "no", "ILL": 1}')))
    refused(RecordError, "line 2 holds the key 'ill' twice", file.read, ("age",))
    path.write_text("\n".join((*LINES, "{")))
    refused(RecordError, "line 4 is no JSON object", file.read, ("age",))
    path.write_text("\n".join(("", *LINES)))
    refused(RecordError, "has missing values in age, first in line 4", file.read, ("age",))


def test_a_table_in_another_format_is_none_of_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "north.ndjson"
    parquet.write_table(pyarrow.table({"age": [50], "ill": ["no"]}), path)
    assert RecordFile(path, "ill").read(("age",)).X.tolist() == [[50]]
    path.write_bytes(b"PK\x03\x04" + b"\0" * 60)
    refused(DataError, "it is a zip archive: unpack it", RecordFile(path, "ill").read, ("age",))


@pytest.mark.parametrize(
    "name",
    ["a.csv~", "a.csv.bak", "a.csv.BAK2", "A.CSV.old", "a.csv.orig", "#a.csv#", "a.csv.~3~", "a.bak", "b/a.csv"],
)
def test_a_backup_of_a_file_is_refused_whatever_it_holds(name: str, tmp_path: Path) -> None:
    for content in (CSV, CSV.replace("50", "51")):
        home = folder(tmp_path / "parts", **{"a.csv": CSV, name: content})
        if name == "b/a.csv":
            assert len(Catalogue.of(home).entries) == 2
            continue
        refused(DataError, f"{re.escape(name)} is named as a backup of .*a.csv", RecordFile(home, "ill").read)
        refused(DataError, "is named as a backup of", RecordFile(home / "*", "ill").read)
        assert len(RecordFile(home / "a.csv", "ill").read().y) == 2
        assert len(RecordFile(home / name, "ill").read().y) == 2


def test_the_swap_file_of_an_editor_is_refused(tmp_path: Path) -> None:
    home = folder(tmp_path / "parts", **{"a.csv": CSV, ".a.csv.swp": b"b0VIM 9.0\0\0\0"})
    refused(DataError, ".a.csv.swp, which is hidden", RecordFile(home, "ill").read)


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
        ("b.rds", gzip.compress(b"X\n\0\0\0\3\0\4", mtime=0), "b.rds: it is a file of R: write its table with"),
        ("b.ods", b"PK\3\4" + b"\0" * 26 + b"mimetypeapplication/vnd.oasis", "b.ods: it is a document of LibreOffice"),
        ("b.mdb", b"\0\1\0\0Standard Jet DB\0", "b.mdb: it is a data base of Access"),
        ("old/_delta_log/0.json", "{}", "old is a Delta table"),
        ("b.parquet.gz", gzip.compress(b"PAR1\x15", mtime=0), "compressed by gzip and holds no CSV: unpack it"),
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
    names = (
        "_SUCCESS",
        ".a.csv.crc",
        ".DS_Store",
        "._a.csv",
        "~$a.xlsx",
        ".~lock.a#",
        "a.csv.splits.json",
        "Thumbs.db",
    )
    home = folder(tmp_path / "parts", **{"a.csv": CSV, "empty": "", **dict.fromkeys(names, "x")})
    found = Catalogue.of(home)
    assert [entry.path.name for entry in found.entries] == ["a.csv"]
    assert {path.name for path in found.left_out} == {*names, "empty"}


def test_a_file_is_read_once_whatever_names_it(tmp_path: Path) -> None:
    home = folder(tmp_path, **{"parts/x/a.csv": CSV})
    assert len(RecordFile(home / "**" / "**" / "*.csv", "ill").read().y) == 2
    (home / "parts" / "latest.csv").symlink_to(home / "parts" / "x" / "a.csv")
    for path in (home / "parts", home / "**" / "*.csv"):
        refused(DataError, r"a.csv is the file .*latest.csv by another name", RecordFile(path, "ill").read)


def test_a_linked_folder_is_no_place_to_lose_files(tmp_path: Path) -> None:
    home = folder(tmp_path, **{"parts/a.csv": CSV, "more/b.csv": CSV.replace("50", "51")})
    (home / "parts" / "more").symlink_to(home / "more")
    refused(DataError, "parts/more is not a plain file", RecordFile(home / "parts", "ill").read)
    refused(
        DataError, "does not reach the files of .*parts/more", RecordFile(home / "parts" / "**" / "*.csv", "ill").read
    )
    assert len(RecordFile(home / "parts" / "*" / "*.csv", "ill").read().y) == 2


def test_a_folder_that_cannot_be_listed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder(tmp_path, **{"a.csv": CSV, "locked/b.csv": CSV})
    listed = os.scandir

    def scandir(path: Any = ".") -> Any:
        if str(path).endswith("locked"):
            raise PermissionError(errno.EACCES, "no", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    for path in (home, home / "*" / "*.csv", home / "**" / "*.csv"):
        refused(DataError, "cannot list the folder .*locked, which may hold records", RecordFile(path, "ill").read)


def test_a_record_is_no_sign_of_another_kind(tmp_path: Path) -> None:
    records = "50,no\n" * 41
    start = f"age,ill\n{records}"[:250].rpartition("\n")[0] + "\n"
    for place, text in enumerate(("X\nX\nX\n", start + "5" * (257 - len(start)) + "ustar,no\n")):
        path = tmp_path / str(place)
        path.write_text(text)
        assert table_file(path, Dialect()).names == text.partition("\n")[0].split(",")


def test_a_workbook_has_no_name_twice_whatever_its_ending(tmp_path: Path) -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    pytest.importorskip("python_calamine")
    for ending in ("xls", "ods", "csv"):
        for names in (("age", "ill", "age"), ("age", "ill", "crp")):
            path = tmp_path / f"{names[2]}.{ending}"
            with xlsxwriter.Workbook(str(path)) as book:
                sheet = book.add_worksheet()
                sheet.write_row(0, 0, names)
                sheet.write_row(1, 0, (50, "no", 70))
        assert RecordFile(tmp_path / f"crp.{ending}", "ill").read().X.tolist() == [[50, 70]]
        refused(DataError, "the table has the column 'age' twice", RecordFile(tmp_path / f"age.{ending}", "ill").read)


def test_a_base_with_tables_elsewhere_has_several(tmp_path: Path) -> None:
    with pytest.importorskip("duckdb").connect(str(tmp_path / "d")) as base:
        base.execute("CREATE TABLE a AS SELECT 50 age, 'no' ill; CREATE SCHEMA clinic")
        base.execute("CREATE TABLE clinic.b AS SELECT 70 age, 'yes' ill")
    with closing(sqlite3.connect(tmp_path / "s")) as lite:
        lite.executescript("CREATE TABLE a (age, ill); CREATE TABLE sqlite3data (age, ill)")
    refused(DataError, "d has 2 tables; name one .*'a', 'clinic.b'", RecordFile(tmp_path / "d", "ill").read)
    refused(DataError, "s has 2 tables; name one .*'a', 'sqlite3data'", RecordFile(tmp_path / "s", "ill").read)
    assert RecordFile(tmp_path / "d" / "clinic.b", "ill").read().X.tolist() == [[70]]


@pytest.mark.parametrize(
    ("writer", "form"), [("sav", "DATE11"), ("sav", "DATETIME20"), ("dta", "%td"), ("dta", "%tc"), ("xport", "DATE9")]
)
def test_a_date_outside_all_years_is_its_own_record_s_gap(writer: str, form: str, tmp_path: Path) -> None:
    pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
    days = 70_000 if form in ("%td", "DATE9") else 70_000 * 86_400 * (1000 if form == "%tc" else 1)
    columns = {"d": [days, days * 1e3, days, days * 1e3, days], "age": [50.0, 51, 52, 53, 54], "ill": ["no"] * 5}
    path = tmp_path / "north"
    getattr(pyreadstat, f"write_{writer}")(pandas.DataFrame(columns), str(path), variable_format={"d": form})
    table = RecordFile(path, "ill").table(("d", "age"))
    assert [value is None for value in table.values("d")] == [False, True, False, True, False]
    assert list(table.values("age")) == columns["age"]


@pytest.mark.parametrize("writer", ["sav", "dta", "xport"])
def test_a_damaged_text_costs_its_own_record_alone(writer: str, tmp_path: Path) -> None:
    pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
    wards = ["A", "Qu\u00e9bec", "G\u00e9riatrie", "Qu\u00e9bec", ""]
    columns = {"ward": wards, "age": [50.0, 51, 52, 53, 54], "ill": ["no"] * 5}
    path = tmp_path / "north"
    getattr(pyreadstat, f"write_{writer}")(pandas.DataFrame(columns), str(path))
    path.write_bytes(path.read_bytes().replace("Qu\u00e9bec".encode(), b"Qu\xc3(bec"))
    table = RecordFile(path, "ill").table(("ward", "age"))
    assert list(table.values("ward")) == ["A", "Qu\ufffd(bec", "G\u00e9riatrie", "Qu\ufffd(bec", ""]
    assert list(table.values("age")) == columns["age"]


def test_a_transport_file_of_two_data_sets_is_refused(tmp_path: Path) -> None:
    pyreadstat, pandas = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
    for version in (5, 8):
        for name, age in (("a", 50.0), ("b", 70.0)):
            frame = pandas.DataFrame({"age": [age], "ill": ["no"]})
            pyreadstat.write_xport(frame, str(tmp_path / name), table_name=name, file_format_version=version)
        one, other = ((tmp_path / name).read_bytes() for name in "ab")
        (tmp_path / "both").write_bytes(one + other[other.index(b"HEADER RECORD*******MEMB") :])
        assert RecordFile(tmp_path / "a", "ill").read().X.tolist() == [[50]]
        refused(DataError, "both: it holds several data sets: write each", RecordFile(tmp_path / "both", "ill").read)


def test_files_in_two_encodings_are_refused(tmp_path: Path) -> None:
    text = "age,ward,ill\n50,Gériatrie,no\n"
    folder(tmp_path, **{"a.csv": text, "b.csv": text.replace("50", "51").encode("cp1252")})
    refused(
        DataError,
        "a.csv is written in UTF-8 and .*b.csv is not",
        lambda: written_as(RecordFile(tmp_path, "ill"), {}),
    )
    (tmp_path / "a.csv").write_text("\ufeff" + text)
    refused(DataError, "a.csv: it is marked as UTF-8", RecordFile(tmp_path, "ill", encoding="cp1252").read)


def test_a_damaged_letter_does_not_decide_how_others_are_read(tmp_path: Path) -> None:
    text = "age,ward,ill\n50,G\u00e9riatrie,no\n51,Qu\u00e9bec,no\n".encode()
    damaged = text.replace("Qu\u00e9bec".encode(), b"Qu\xc3(bec")
    for content, encoding in ((text, "utf-8"), (damaged, "utf-8"), (text.decode().encode("cp1252"), "cp1252")):
        (tmp_path / "a.csv").write_bytes(content)
        assert written_as(RecordFile(tmp_path / "a.csv", "ill"), {}).encoding == encoding
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + damaged.replace("G\u00e9".encode(), b"Ge"))
    assert written_as(RecordFile(tmp_path / "a.csv", "ill"), {}).encoding == "utf-8"


def test_a_file_states_its_form_and_target_at_every_door(tmp_path: Path) -> None:
    path = tmp_path / "north.csv"
    path.write_text("age;crp;ward;admitted;ill\n50;1,5;A;2020-01-01;no\n")
    columns = {"age": [50], "crp": [1.5], "ward": ["A"], "admitted": ["2020-01-01"]}
    file = RecordFile(path, "ill", separator=";", decimal=",")
    expected = ps.measure(fuzz.SCHEMA, columns, ["no"])
    assert ps.measure(fuzz.SCHEMA, file) == parts.measure(fuzz.SCHEMA, file) == expected
    assert ps.measure(fuzz.SCHEMA, file, "ill") == expected
    refused(DataError, "has split=, which is not read here", lambda: ps.measure(fuzz.SCHEMA, replace(file, split=0.5)))
    np.savez(tmp_path / "a.npz", X=[[0.5, 0.25]], y=[1])
    arrays = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
    assert ps.measure(arrays, RecordFile(tmp_path / "a.npz")) == ps.measure(arrays, [[0.5, 0.25]], [1])


def test_a_pattern_names_hidden_files_too_and_no_folder(tmp_path: Path) -> None:
    home = folder(tmp_path, **{"a.csv": CSV, "_b.csv": CSV.replace("50", "51"), "more/c.csv": CSV})
    assert len(RecordFile(home / "*.csv", "ill").read().y) == 4
    refused(DataError, "names the folder .*more; name files by a pattern", RecordFile(home / "*", "ill").read)


def test_a_file_inside_a_table_with_a_log_is_refused(tmp_path: Path) -> None:
    home = folder(tmp_path / "table", **{"_delta_log/0.json": "{}", "year=2026/a.csv": CSV})
    (tmp_path / "link").symlink_to(home / "year=2026")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a.csv").symlink_to(home / "year=2026" / "a.csv")
    inside = ("year=2026/a.csv", "year=2026", "year=2026/*.csv", "*/*.csv")
    outside = (
        "*/*/*.csv",
        "table/**/*.csv",
        "link",
        "link/a.csv",
        "links",
        "links/a.csv",
        "link*/*.csv",
    )
    for path in (*(home / each for each in inside), *(tmp_path / each for each in outside)):
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
    for name, content in (("a (1).csv", CSV.encode()), ("a.csv.gz", gzip.compress(CSV.encode()))):
        (home / name).write_bytes(content)
        with pytest.warns(CopiedFilesWarning, match=r"has the same bytes as .*, and its records count again"):
            assert len(RecordFile(home, "ill").read().y) == 4
        (home / name).unlink()


def test_columns_that_nobody_reads_may_differ(tmp_path: Path) -> None:
    home = folder(tmp_path / "parts", **{"a.csv": "age,note,ill\n50,x,no\n", "b.csv": "ILL,more,AGE\nyes,1,61\n"})
    file = RecordFile(home, "ill")
    assert file.columns == ("age", "ill")
    assert file.read().X.tolist() == [[50], [61]]
    refused(DataError, "b.csv lacks the column 'note', which .*a.csv has", file.read, ("note",))
