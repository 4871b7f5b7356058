"""Fuzz what a path names: random tables in random sources, read through every door.

A table is drawn and divided over one file or several, of any kind that is read, in a folder, folders in it, or a
pattern, under any names, with or without foreign entries. Then every door reads it. The law:

    sums     the integers of the table before it was written
    refused  else one sentence that names the entry, and only where the source holds one that must be refused

    python -m tests.intake.sources_fuzz --sources 300 --seed 1
    python -m tests.intake.sources_fuzz --seconds 3600 --seed 2

It prints the number of sources, readings and violations by kind of file, and exits with 1 if there is a violation.
"""

import argparse
import bz2
import gzip
import json
import lzma
import random
import sqlite3
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from importlib.util import find_spec
from itertools import count as numbers_from
from pathlib import Path
from typing import Any, TypeAlias

import privstats as ps
from privstats.contrib import parts
from privstats.course.alone import measuring
from privstats.errors import CopiedFilesWarning, PrivstatsError
from privstats.moments import RecordFile
from privstats.records.from_file import records_in
from privstats.workflows.rehearsal import written_as

NAMES = ("age", "crp", "ward", "admitted", "ill")
BREAKS = ("2nd\nfloor", "3rd\r\nfloor", "4th\rfloor")
DAMAGED = "Qu\u00e9bec"
"""A text that is no UTF-8 in the file, which some disk or program damaged."""
FAR = 10**8
"""Days to a date that no calendar has; a plan that knows none reads it as a gap."""
CELLS = ps.Cells(
    (
        ps.Numeric("age", (40, 65)),
        ps.Numeric("crp", (10, 20.5, 60)),
        ps.Categories("ward", ("A", "ICU", "G\u00e9riatrie")),
        ps.Dates("admitted", ("1900-01-01", "2020-06-01", "2300-01-01")),
    )
)
SCHEMA = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(CELLS,), class_names=("no", "yes"))
Row = Mapping[str, Any]


def drawn_rows(rnd: random.Random) -> list[Row]:
    """Draw records with gaps, far dates and odd words, and sometimes with line breaks and a text that is damaged."""
    breaks = BREAKS if rnd.random() < 0.2 else ()
    rows: list[Row] = [
        {
            "age": rnd.choice((None, rnd.randint(0, 110))),
            "crp": rnd.choice((None, round(rnd.expovariate(0.04), 1))),
            "ward": rnd.choice(("A", "ICU", "G\u00e9riatrie", "B, 2", 'the "old" one', None, *breaks)),
            "admitted": rnd.choice((None, date(9999, 12, 31), date(rnd.randint(1850, 2400), rnd.randint(1, 12), 7))),
            "ill": rnd.choice(("no", "yes")),
            "note": rnd.choice(("", "x", "a; b", *breaks)),
        }
        for _ in range(rnd.choice((1, 2, 7, 30)))
    ]
    if rnd.random() < 0.3:
        rows[0] = {**rows[0], "ward": DAMAGED}
        rnd.shuffle(rows)
    return rows


def expected(rows: Sequence[Row]) -> Any:
    """The integers of records that no file has held."""
    columns = {name: [row[name] for row in rows] for name in NAMES[:-1]}
    with warnings.catch_warnings(action="ignore"):
        return ps.measure(SCHEMA, columns, [row["ill"] for row in rows], unreadable="leave out")


@dataclass(frozen=True)
class Habit:
    """What a program writes around a table in a CSV file.

    Attributes:
        gap: the text of a missing value, never in quotes.
        row_names: a first column without a name, in quotes.
        quotes: whether texts are in quotes, or all fields, or those that need them.
        mark: whether UTF-8 begins with its mark.
        stated: whether a first line names the separator.
        padded: number of separators behind each line's last field.
        empty: number of lines of separators alone, behind the last record.
    """

    gap: str = ""
    row_names: bool = False
    quotes: str = "needed"
    end: str = "\n"
    mark: bool = False
    stated: bool = False
    padded: int = 0
    empty: int = 0

    def line(self, values: Sequence[Any], texts: Sequence[str], separator: str) -> str:
        return separator.join([*map(self._field, values, texts, [separator] * len(texts)), *[""] * self.padded])

    def _field(self, value: Any, text: str, separator: str) -> str:
        needed = any(sign in text for sign in (separator, '"', "\n", "\r"))
        chosen = value is not None and (self.quotes == "all" or (self.quotes == "texts" and isinstance(value, str)))
        return '"' + text.replace('"', '""') + '"' if needed or chosen else text


HABITS: Mapping[str, Habit] = {
    "pandas": Habit(),
    "pandas with its index": Habit(row_names=True),
    "a data base": Habit(quotes="all", end="\r\n"),
    "R's write.csv and write.csv2": Habit("NA", row_names=True, quotes="texts"),
    "R's write.csv without row names": Habit("NA", quotes="texts", end="\r\n"),
    "R's fwrite": Habit(),
    "R's write_excel_csv": Habit("NA", mark=True),
    "Excel": Habit(end="\r\n", padded=2, empty=3),
    "Excel in UTF-8": Habit(end="\r\n", mark=True),
    "Excel with its separator": Habit(end="\r\n", stated=True),
}
"""By program: pandas, data.table's fwrite, readr, and Excel, whose lines end with the separators of empty columns."""


@dataclass(frozen=True)
class Written:
    """How the CSV files of a source are written; a reader is told, or detects it."""

    encoding: str = "utf-8"
    separator: str = ","
    decimal: str = "."
    quoted: bool = False

    @classmethod
    def drawn(cls, rnd: random.Random) -> "Written":
        """Half of all sources are as readers expect."""
        if rnd.random() < 0.5:
            return cls()
        return cls(rnd.choice(("utf-8", "cp1252", "utf-16-le")), rnd.choice((";", "\t", "|")), rnd.choice((".", ",")))

    def content(self, rows: Sequence[Row], names: Sequence[str], rnd: random.Random) -> bytes:
        """Return rows as some program writes them."""
        how = HABITS[rnd.choice(sorted(HABITS))]
        table: list[list[Any]] = [list(names), *([row[name.lower()] for name in names] for row in rows)]
        if how.row_names:
            table = [[str(place) if place else "", *line] for place, line in enumerate(table)]
        lines = [how.line(line, [self._text(value, how.gap) for value in line], self.separator) for line in table]
        lines = [f"sep={self.separator}"] * how.stated + lines
        lines += [self.separator * (len(table[0]) - 1 + how.padded)] * how.empty
        mark = "\ufeff" if self.encoding == "utf-16-le" or (how.mark and self.encoding == "utf-8") else ""
        return (mark + "".join(line + how.end for line in lines)).encode(self.encoding)

    def _text(self, value: Any, gap: str) -> str:
        return (
            gap if value is None else str(value).replace(".", self.decimal) if isinstance(value, float) else str(value)
        )


def _columns(rows: Sequence[Row], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [row[name.lower()] for row in rows] for name in names}


def write_csv(path: Path, rows: Sequence[Row], names: Sequence[str], rnd: random.Random, how: Written) -> None:
    path.write_bytes(how.content(rows, names, rnd))


def write_compressed(path: Path, rows: Sequence[Row], names: Sequence[str], rnd: random.Random, how: Written) -> None:
    content = how.content(rows, names, rnd)
    pack: Sequence[Callable[[bytes], bytes]] = (gzip.compress, bz2.compress, lzma.compress, zstd)
    place = rnd.randrange(len(content)) if rnd.random() < 0.3 else 0  # programs append one packed file to another
    by = rnd.choice(pack)
    path.write_bytes((by(content[:place]) if place else b"") + by(content[place:]))


def zstd(content: bytes) -> bytes:
    import pyarrow

    return bytes(pyarrow.compress(content, "zstd", asbytes=True))


def write_json_lines(path: Path, rows: Sequence[Row], names: Sequence[str], rnd: random.Random, _: Written) -> None:
    """Write as pandas, MongoDB and others do; some lines are no record, and some have an address nobody reads."""
    odd = ("{", "[1, 2]", "null", "7", '{"age": 1, "AGE": 2}', "\0", "age,ill", '{"crp": [' + "[" * 9999, "\ufffd")
    gap = rnd.choice((None, "", float("nan"), "left out"))
    ascii, end, texts = rnd.random() < 0.5, rnd.choice(("\n", "\r\n")), rnd.random() < 0.2

    def shown(value: Any) -> Any:
        value = gap if value is None else value
        return str(value) if texts or isinstance(value, date) else value

    lines = list[str]()
    for row in rows:
        keys = rnd.sample(names, len(names))
        values = {name: shown(row[name.lower()]) for name in keys if row[name.lower()] is not None or gap != "left out"}
        lines.append(json.dumps({**values, **rnd.choice(({}, {"address": {"age": 1}}))}, ensure_ascii=ascii))
        lines += [rnd.choice(odd)] * (rnd.random() < 0.05) + [" "] * (rnd.random() < 0.05)
    lines = [rnd.choice(odd)] * (rnd.random() < 0.1) + lines
    content = (rnd.choice(("", "\ufeff")) + "".join(line + end for line in lines)).encode()
    path.write_bytes(rnd.choice((gzip.compress, bz2.compress))(content) if path.suffix == ".gz" else content)


def _days(values: Sequence[date | None], rnd: random.Random) -> list[int | None]:
    """Return days since 1970; in some columns a gap is a date that no calendar has."""
    far = (FAR, -FAR) if rnd.random() < 0.3 else (None,)
    return [rnd.choice(far) if value is None else (value - date(1970, 1, 1)).days for value in values]


def _arrow(rows: Sequence[Row], names: Sequence[str], rnd: random.Random) -> Any:
    import pyarrow

    def array(name: str, values: list[Any]) -> Any:
        if name == "admitted":
            return pyarrow.array([each and each * _MICROS for each in _days(values, rnd)], pyarrow.timestamp("us"))
        return pyarrow.array(values, pyarrow.float64() if name in ("age", "crp") else pyarrow.string())

    return pyarrow.table({name: array(name.lower(), values) for name, values in _columns(rows, names).items()})


def write_parquet(path: Path, rows: Sequence[Row], names: Sequence[str], rnd: random.Random, _: Written) -> None:
    from pyarrow import parquet

    parquet.write_table(
        _arrow(rows, names, rnd),
        path,
        use_deprecated_int96_timestamps=rnd.random() < 0.5,
        row_group_size=rnd.choice((1, 5, 1000)),
        use_dictionary=rnd.random() < 0.5,
    )


def write_feather(path: Path, rows: Sequence[Row], names: Sequence[str], rnd: random.Random, _: Written) -> None:
    from pyarrow import feather

    plain = rnd.choice(("uncompressed", "lz4"))
    feather.write_feather(_arrow(rows, names, rnd), str(path), plain, chunksize=rnd.choice((1, 4, 1000)))


def write_orc(path: Path, rows: Sequence[Row], names: Sequence[str], rnd: random.Random, _: Written) -> None:
    import pyarrow
    from pyarrow import orc

    table, place = _arrow(rows, names, rnd), [name.lower() for name in names].index("admitted")
    days = [row["admitted"] for row in rows]
    if rnd.random() < 0.5:
        days = pyarrow.array([day and str(day) for day in days], pyarrow.string())
    else:
        days = pyarrow.array(_days(days, rnd), pyarrow.int32()).cast(pyarrow.date32())
    table = table.set_column(place, names[place], days)
    orc.write_table(table, str(path))


def write_sqlite(path: Path, rows: Sequence[Row], names: Sequence[str], rnd: random.Random, _: Written) -> None:
    base = sqlite3.connect(path)
    quoted = [f'"{name}"' for name in names]
    typed = rnd.random() < 0.5
    base.execute(f"CREATE TABLE patients ({', '.join(f'{name} TEXT' if typed else name for name in quoted)})")
    by_row = zip(*_columns(rows, names).values(), strict=True)
    values = [[str(value) if isinstance(value, date) else value for value in row] for row in by_row]
    base.executemany(f"INSERT INTO patients VALUES ({', '.join('?' * len(names))})", values)
    base.commit()
    base.close()


def write_duckdb(path: Path, rows: Sequence[Row], names: Sequence[str], rnd: random.Random, _: Written) -> None:
    import duckdb

    with duckdb.connect(str(path)) as base:
        base.register("frame", _arrow(rows, names, rnd))
        base.execute("CREATE TABLE patients AS SELECT * FROM frame")


def write_excel(path: Path, rows: Sequence[Row], names: Sequence[str], rnd: random.Random, _: Written) -> None:
    import xlsxwriter

    with xlsxwriter.Workbook(str(path)) as book:
        sheet, day, top = (
            book.add_worksheet("Patients"),
            book.add_format({"num_format": "dd.mm.yyyy"}),
            rnd.choice((0, 2)),
        )
        sheet.write_row(top, 0, names)
        far = (1e9, -5, 1e300, 2_958_466) if rnd.random() < 0.3 else ()
        for place, row in enumerate(rows, top + 1):
            for column, name in enumerate(names):
                value = row[name.lower()]
                if isinstance(value, date) and value.year >= 1900:
                    sheet.write_datetime(place, column, value, day)
                elif isinstance(value, str | date):
                    sheet.write_string(place, column, str(value))
                elif value is not None:
                    sheet.write_number(place, column, value)
                elif far and name.lower() == "admitted":
                    sheet.write_number(place, column, rnd.choice(far), day)


_MICROS = 86_400_000_000
_FORMS = {"write_sav": ("DATE11", 141_428, 86_400), "write_dta": ("%td", 3653, 1), "write_xport": ("DATE9", 3653, 1)}
"""By writer, a form of dates, the days from its first one to 1970, and the number by which it counts a day."""


def _statistics(writer: str) -> Callable[..., None]:
    """Write as SPSS, Stata and SAS do, and R's haven: columns have labels, codes are labelled or declared missing."""

    def write(path: Path, rows: Sequence[Row], names: Sequence[str], rnd: random.Random, _: Written) -> None:
        import pandas
        import pyreadstat

        columns = _columns(rows, names)
        for name in columns:
            if name.lower() in ("age", "crp"):
                columns[name] = [float("nan") if value is None else float(value) for value in columns[name]]
            else:
                columns[name] = ["" if value is None else str(value) for value in columns[name]]
        how: dict[str, Any] = {}
        if all(row["admitted"] is None or isinstance(row["admitted"], date) for row in rows) and rnd.random() < 0.5:
            form, begin, unit = _FORMS[writer]
            admitted = next(name for name in names if name.lower() == "admitted")
            days = _days([row["admitted"] for row in rows], rnd)
            columns[admitted] = [float("nan") if day is None else float((day + begin) * unit) for day in days]
            how["variable_format"] = {admitted: form}
        if writer != "write_xport" and rnd.random() < 0.5:
            how["column_labels"] = {name: f"{name} of the patient" for name in names}
        if writer == "write_sav" and rnd.random() < 0.5:
            age = next(name for name in names if name.lower() == "age")
            columns[age] = [-9.0 if value != value else value for value in columns[age]]
            how["missing_ranges"] = {age: [-9]}
            how["variable_value_labels"] = {age: {-9: "not asked", 50: "fifty"}}
        with warnings.catch_warnings(action="ignore"):
            getattr(pyreadstat, writer)(pandas.DataFrame(columns), str(path), **how)

    return write


@dataclass(frozen=True)
class Kind:
    """A kind of file: what writes it, and the package that it needs.

    Attributes:
        is_named: whether the ending decides the kind.
        is_plain: whether the file holds texts as they are, so that one can be damaged.
    """

    write: Callable[[Path, Sequence[Row], Sequence[str], random.Random, Written], None]
    needs: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    is_named: bool = False
    is_plain: bool = True

    @property
    def is_here(self) -> bool:
        return all(find_spec(each) for each in self.needs)


WRITERS: Mapping[str, Kind] = {
    "csv": Kind(write_csv, (), (".csv", ".CSV", ".txt", ".csv.1")),
    "compressed": Kind(write_compressed, ("pyarrow",), (".csv.gz", ".csv"), is_plain=False),
    "json": Kind(write_json_lines, (), (".ndjson", ".jsonl", ".NDJSON", ".ndjson.gz"), is_named=True),
    "parquet": Kind(write_parquet, ("pyarrow",), (".parquet", ".parq", ".snappy.parquet")),
    "feather": Kind(write_feather, ("pyarrow",), (".feather", ".arrow")),
    "orc": Kind(write_orc, ("pyarrow",), (".orc",)),
    "sqlite": Kind(write_sqlite, (), (".sqlite", ".db")),
    "duckdb": Kind(write_duckdb, ("duckdb", "pyarrow"), (".duckdb", ".db"), is_plain=False),
    "xlsx": Kind(write_excel, ("xlsxwriter", "python_calamine"), (".xlsx",), is_plain=False),
    "spss": Kind(_statistics("write_sav"), ("pyreadstat", "pandas"), (".sav",)),
    "stata": Kind(_statistics("write_dta"), ("pyreadstat", "pandas"), (".dta",)),
    "sas": Kind(_statistics("write_xport"), ("pyreadstat", "pandas"), (".xpt",)),
}
_WRONG = ("", ".dat", ".csv", ".parquet", ".bak")


@dataclass
class Source:
    """A written source.

    Attributes:
        path: what a user names.
        rows: the records that the doors must count.
        faulty: a part of the name of an entry that must be refused; "" where all can be read.
        unsure: parts of sentences that may refuse it all the same.
    """

    path: Path
    rows: list[Row]
    kinds: list[str] = field(default_factory=list)
    faulty: str = ""
    unsure: tuple[str, ...] = ()
    copied: bool = False
    written: Written = field(default_factory=Written)


def serial_of(day: date | None) -> int | None:
    """Return the number by which Excel stores a date, where its cell has lost the form of one."""
    return None if day is None else (day - date(1899, 12, 30)) // timedelta(days=1)


def drawn(name: str, home: Path, kinds: Sequence[str]) -> Source:
    """Write a source; the name is the seed."""
    rnd = random.Random(name)
    files = rnd.choice((1, 1, 2, 3, 6))
    tables = [drawn_rows(rnd) for _ in range(files)]
    folder = home / "parts"
    folder.mkdir()
    how = Written.drawn(rnd)
    if breaks := any(text in BREAKS for rows in tables for row in rows for text in row.values()):
        how = replace(how, quoted=rnd.random() < 0.5)
    found = Source(folder, [], written=how, unsure=() if not breaks or how.quoted else ("pass --",))
    written = list[Path]()
    for place, rows in enumerate(tables):
        kind = rnd.choice(kinds)
        found.kinds.append(kind)
        if kind in ("csv", "compressed", "xlsx") and rnd.random() < 0.1:
            rows[:] = [{**row, "admitted": serial_of(row["admitted"])} for row in rows]
        found.rows += rows
        above = folder / rnd.choice(("", "", "north", "north/a b"))
        above.mkdir(parents=True, exist_ok=True)
        is_right = WRITERS[kind].is_named or rnd.random() < 0.6
        ending = rnd.choice(WRITERS[kind].endings if is_right else _WRONG)
        names = [*NAMES, *(["note"] if rnd.random() < 0.5 else [])]
        rnd.shuffle(names)
        if rnd.random() < 0.2:
            names = [each.upper() if each == "age" else each for each in names]
        path = above / f"{place}{ending}"
        WRITERS[kind].write(path, rows, names, rnd, how)
        if WRITERS[kind].is_plain:
            path.write_bytes(path.read_bytes().replace(DAMAGED.encode(), b"Qu\xc3(bec"))
            found.unsure += ("write both in UTF-8",) if kind == "csv" else ()
        written.append(path)
    flat = [path for path in written if path.parent == folder]
    if files == 1 and rnd.random() < 0.6:
        found.path = written[0]
        return found
    if all(path.suffix == ".csv" for path in written) and rnd.random() < 0.5:
        found.path = folder / "**" / "*.csv"
        return found
    if len(flat) == files and rnd.random() < 0.4:
        found.path = folder / "*"
    _with_foreign(found, folder, written, tables[0], rnd)
    return found


FOREIGN = (
    "backup",
    "copy",
    "packed",
    "link",
    "readme",
    "json",
    "hidden",
    "lacks",
    "twin",
    "zip",
    "rds",
    "log",
    "delta",
)


def _with_foreign(found: Source, folder: Path, written: Sequence[Path], first: list[Row], rnd: random.Random) -> None:
    """Put entries beside the files that are no records of the table, or are records once more."""
    for name in rnd.sample(("_SUCCESS", ".a.csv.crc", "Thumbs.db", "empty.csv", ".~lock.0#"), rnd.choice((0, 0, 1, 2))):
        (folder / name).write_bytes(b"" if name in ("_SUCCESS", "empty.csv") else b"\0\1\2")
    match rnd.choice(("none",) * 8 + FOREIGN):
        case "backup":
            form = rnd.choice(("{}~", "{}.bak", "{}.old", "{}.orig", "#{}#", "{}.~2~", "{}.BAK"))
            write_csv(written[0].with_name(form.format(written[0].name)), found.rows[:1], NAMES, rnd, found.written)
            found.faulty = "is named as a backup of"
        case "copy" if len(written) > 1 or found.path == folder:
            copy = folder / f"copy of {written[0].name}"
            copy.write_bytes(written[0].read_bytes())
            found.rows += first
            found.copied = True
        case "packed" if found.kinds[0] == "csv":
            (written[0].parent / f"{written[0].name}.gz").write_bytes(gzip.compress(written[0].read_bytes()))
            found.rows += first
            found.copied = True
        case "link":
            (folder / "latest").symlink_to(written[-1])
            found.faulty = "latest"
        case "rds":
            (folder / "all.rds").write_bytes(gzip.compress(b"X\n\0\0\0\3\0\4\2\0"))
            found.faulty = "all.rds: it is a file of R: write its table with write.csv"
        case "delta":
            (folder / "old" / "_delta_log").mkdir(parents=True)
            (folder / "old" / "_delta_log" / "0.json").write_text("{}")
            write_csv(folder / "old" / "a.csv", found.rows, NAMES, rnd, found.written)
            found.faulty = "old"
        case "readme":
            (folder / "readme.md").write_text("exported on Monday\n")
            found.faulty = "readme.md"
        case "json":
            (folder / "manifest.json").write_text('{"files": 3}')
            found.faulty = "manifest.json"
        case "hidden" if found.path == folder:
            (folder / ".archive").mkdir()
            write_csv(folder / ".archive" / "old.csv", found.rows, NAMES, rnd, found.written)
            found.faulty = "old.csv"
        case "lacks":
            write_csv(folder / "lacks.csv", found.rows[:1], NAMES[1:], rnd, found.written)
            found.faulty = "lacks.csv"
        case "twin":
            write_csv(folder / "twin.csv", found.rows[:1], (*NAMES, "AGE"), rnd, found.written)
            found.faulty = "twin.csv"
        case "zip":
            (folder / "all.zip").write_bytes(b"PK\x03\x04" + b"\0" * 60)
            found.faulty = "all.zip"
        case "log" if found.path == folder:
            (folder / "metadata").mkdir()
            (folder / "metadata" / "v1.metadata.json").write_text("{}")
            found.faulty = "Iceberg"
        case _:
            pass


def _file(found: Source) -> RecordFile:
    return RecordFile(found.path, "ill", **vars(found.written))


def by_batches(found: Source) -> Any:
    return ps.measure(SCHEMA, *records_in(_file(found), SCHEMA.reading, "leave out"), unreadable="leave out")


def at_once(found: Source) -> Any:
    records = _file(found).read(CELLS, unreadable="leave out", texts=True)
    return ps.measure(SCHEMA, records.X, records.y, unreadable="leave out")


def as_tried(found: Source) -> Any:
    """As ``try`` reads a file, whose dialect it detects; a file whose one letter is damaged has no known encoding."""
    file = written_as(RecordFile(found.path, "ill", quoted=found.written.quoted), {})
    return ps.measure(SCHEMA, *records_in(file, SCHEMA.reading, "leave out"), unreadable="leave out")


def by_columns(found: Source) -> Any:
    table = _file(found).table(NAMES)
    columns = {name: table.values(name) for name in NAMES}
    return ps.measure(SCHEMA, columns, columns.pop("ill"), unreadable="leave out")


def _named(found: Source) -> Any:
    """Return a path, or the file that also states how it is written."""
    return str(found.path) if found.written == Written() else _file(found)


def by_path(found: Source) -> Any:
    return ps.measure(SCHEMA, _named(found), "ill", unreadable="leave out")


def in_parts(found: Source) -> Any:
    return parts.measure(SCHEMA, _named(found), "ill", unreadable="leave out")


def alone(found: Source) -> Any:
    """As ``private_release`` and every ``fit_private`` measure a path."""
    return measuring(_named(found))(SCHEMA, _named(found), "ill", unreadable="leave out")


DOORS: Mapping[str, Callable[[Source], Any]] = {
    "batches": by_batches,
    "at once": at_once,
    "try": as_tried,
    "columns": by_columns,
    "path": by_path,
    "parts": in_parts,
    "alone": alone,
}


Result: TypeAlias = tuple[Counter[str], list[str]]


def violations_of(found: Source) -> Iterator[str]:
    """Yield each door that breaks the law, with what it did."""
    right = expected(found.rows)
    for door, measured in DOORS.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                sums = measured(found)
            except PrivstatsError as error:
                shown = (found.faulty, "may be a record") if found.faulty else ()  # a record's words are not shown
                if not any(part in str(error) for part in (*shown, *found.unsure)):
                    yield f"{door}: refused: {error}"
                continue
            except Exception as error:
                yield f"{door}: {type(error).__name__}: {error}"
                continue
        if found.faulty:
            yield f"{door}: read in spite of {found.faulty}"
        elif sums != right:
            yield f"{door}: {sums.N.tolist()} in place of {right.N.tolist()}"
        elif found.copied and not any(issubclass(each.category, CopiedFilesWarning) for each in caught):
            yield f"{door}: no word on a copy"


def run(count: int | None, seed: int | str, kinds: Sequence[str], show: int = 0, seconds: float = 0.0) -> Result:
    """Return how often each kind of file was read, and the violations.

    Args:
        count: number of sources; None: as many as are read in so many seconds.
    """
    read, broken, end = Counter[str](), list[str](), time.monotonic() + seconds
    for place in numbers_from() if count is None else range(count):
        if count is None and time.monotonic() > end:
            break
        with tempfile.TemporaryDirectory() as home:
            found = drawn(f"{seed}/{place}", Path(home), kinds)
            read.update(found.kinds)
            wrong = [f"source {seed}/{place} ({', '.join(found.kinds)}): {each}" for each in violations_of(found)]
            broken += wrong
            for each in wrong[: max(0, show)]:
                print(each)
    return read, broken


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--sources", type=int, default=300)
    options.add_argument("--seconds", type=float, help="in place of a number of sources")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--show", type=int, default=3)
    how = options.parse_args()
    here = [name for name, kind in WRITERS.items() if kind.is_here]
    number = how.sources if how.seconds is None else None
    read, broken = run(number, how.seed, here, how.show, how.seconds or 0)
    print(f"{read.total()} files through {len(DOORS)} doors: {dict(read)}; violations: {len(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
