"""One record more, of any odd value, in any container: the sums move by one row, no longer than one may be."""

import csv
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.intake import csv_lines
from privstats.records.from_file import records_in

CELLS = ps.Cells(
    (
        ps.Numeric("number", (0.0, 1.0, 40.0), gaps=(-9,)),
        ps.Categories("category", ("a", "7", "2020-01-02")),
        ps.Categories("stage", (1, 2, 3), ordered=True),
        ps.Dates("day", (0.0, 18_263.0)),
        ps.Truth("truth"),
    )
)
SCHEMA = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(CELLS,))
BASES: Mapping[str, Sequence[Any]] = {
    "integers": [1, 2, 7, 50],
    "numbers": [0.5, 1.0, 7.0, -9.0],
    "numbers with gaps": [0.5, None, 7.0, float("nan")],
    "texts": ["a", "7", "007", "x"],
    "truths": [True, False, True, True],
    "dates": [datetime(2020, 1, 2), datetime(1969, 5, 1), datetime(2020, 1, 1, 12), datetime(2021, 1, 1)],
    "texts of dates": ["2020-01-02", "1969-05-01", "2020-01-01T12:00", "03/04/2020"],
}
ODD: Sequence[Any] = (
    *(
        None,
        float("nan"),
        float("inf"),
        "",
        " ",
        "NA",
        "none",
        "x",
        "a",
        "7",
        7,
        7.0,
        "007",
        "7.0",
        "1e3",
        "1_000",
        "１",
    ),
    *(True, "True", "FALSE", b"7", -0.0, 0.1 + 0.2, 1e300, 5e-324, 2**53 + 1, 2**63, 10**30, 10**400, -9, "-9", 3 + 0j),
    *(np.int8(7), np.float16(7), np.uint64(2**64 - 1), np.datetime64("2020-01-02"), np.datetime64("NaT"), np.str_("a")),
    *(date(2020, 1, 2), datetime(2020, 1, 2), datetime(9999, 12, 31, tzinfo=UTC), timedelta(days=1)),
    *(datetime(2020, 1, 2, tzinfo=timezone(timedelta(hours=-11))), "2020-01-02T00:00+02:00", "03/04/2020", "<0.5"),
    *(Decimal("7.0"), Fraction(7), (1, 2), [7], {"a": 1}, "e\u0301", "a\0", '"', "a\nb", "a,b", "7;7", "x" * 5000),
)


def single(more: Any, fewer: Any, what: str) -> None:
    """The moments differ by one record's."""
    counts, sums, second = more.N - fewer.N, more.A - fewer.A, more.B - fewer.B
    (label,) = np.flatnonzero(counts)
    assert counts[label] == 1, what
    assert not np.delete(sums, label, axis=0).any(), what
    assert (second == np.outer(sums[label], sums[label])).all(), what
    assert np.trace(second) <= SCHEMA.grid_steps**2, what


def whole_column(values: Sequence[Any]) -> dict[str, list[Any]]:
    return {column.name: list(values) for column in CELLS.columns}


def labels(count: int) -> list[int]:
    return [place % 2 for place in range(count)]


def measured(table: Any, y: Any = None) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return ps.measure(SCHEMA, table, y, unreadable="leave out")


def tables(values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The sums of the values in every container that holds them in memory."""
    columns, y = whole_column(values), labels(len(values))
    for name, table in ps.testing.held(columns).items():
        yield name, measured(table, y)
    with warnings.catch_warnings(action="ignore"):
        try:
            array = np.array(values)  # of numpy's own choice of a type
        except (ValueError, TypeError, OverflowError):
            array = np.empty(0)
    if array.shape == (len(values),):
        yield "an array of numpy's choice", measured(dict.fromkeys(columns, array), y)
        if array.dtype.kind != "O":
            written = io.BytesIO()
            np.savez(written, **dict.fromkeys(columns, array))
            written.seek(0)
            yield "an archive", measured(np.load(written), y)


def files(folder: Path, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The sums of the values in files, which are read three records at a time."""
    columns = {**whole_column(values), "ill": labels(len(values))}
    rows = list(zip(*columns.values(), strict=True))
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([list(columns), *rows])
    yield "a CSV file", of_file(folder / "t.csv")
    for name, table in ps.testing.held(columns).items():
        if name not in ("a frame of objects", "a CSV file read by pandas") and hasattr(table, "to_parquet"):
            write: Callable[[Path], Any] = table.to_parquet
        elif name == "an Arrow table":
            write = lambda path, table=table: pytest.importorskip("pyarrow.parquet").write_table(table, path)  # noqa: E731
        else:
            continue
        try:
            write(folder / "t.parquet")
        except Exception:  # this container has no such file, in a library's own words
            continue
        yield f"a Parquet file of {name}", of_file(folder / "t.parquet")


def of_file(path: Path) -> Any:
    with warnings.catch_warnings(action="ignore"):
        try:
            pair = records_in(ps.moments.RecordFile(path, "ill"), SCHEMA.reading, "leave out")
            return ps.measure(SCHEMA, *pair, unreadable="leave out")
        except ps.DataError as error:  # a column whose type has no values, whatever they are
            return str(error)


@pytest.mark.nightly
@pytest.mark.parametrize("base", BASES)
def test_one_odd_record_moves_sums_by_its_own_row_in_every_container(base: str) -> None:
    tried: dict[str, int] = {}
    for odd in ODD:
        fewer = dict(tables(BASES[base]))
        for name, more in tables([*BASES[base], odd]):
            if name in fewer and not (isinstance(odd, complex) and "CSV" in name):  # pandas writes 1 as (1+0j) there
                single(more, fewer[name], f"{odd!r} beside {base} in {name}")
                tried[name] = tried.get(name, 0) + 1
    assert min(tried[name] for name in ("lists", "arrays of objects", "a frame of objects")) == len(ODD), tried
    assert sum(tried.values()) > 5 * len(ODD), tried


@pytest.mark.nightly
@pytest.mark.parametrize("base", BASES)
def test_one_odd_record_moves_sums_by_its_own_row_in_every_file(base, tmp_path, monkeypatch):
    """A line end inside of a text makes lines that are no records, so the record may be missing, and no other."""
    monkeypatch.setattr(csv_lines, "_LINES", 3)
    fewer, tried = dict(files(tmp_path, BASES[base])), 0
    for odd in ODD:
        for name, more in files(tmp_path, [*BASES[base], odd]):
            if isinstance(more, str) or isinstance(fewer.get(name, ""), str):
                continue
            if more.records != fewer[name].records or not isinstance(odd, str) or "\n" not in odd:
                single(more, fewer[name], f"{odd!r} beside {base} in {name}")
            else:
                assert more == fewer[name]
            tried += 1
    assert tried > 2 * len(ODD)


@pytest.mark.nightly
@pytest.mark.parametrize("base", ["integers", "numbers with gaps", "texts", "truths", "dates"])
def test_one_odd_record_moves_sums_by_its_own_row_on_a_cluster(base: str) -> None:
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    from privstats.contrib import parts as door

    def on_cluster(values: Sequence[Any]) -> Any:
        columns = {**whole_column(values), "ill": labels(len(values))}
        try:
            with warnings.catch_warnings(action="ignore"):
                parts = frames.from_pandas(pandas.DataFrame(columns), npartitions=2)
                return door.measure(SCHEMA, parts[list(whole_column(()))], parts["ill"], unreadable="leave out")
        except (TypeError, ValueError, OverflowError, pandas.errors.ParserError):  # it cannot hold these
            return None
        except Exception as error:
            if type(error).__module__.startswith(("pyarrow", "dask")):
                return None
            raise

    fewer, tried = on_cluster(BASES[base]), 0
    for odd in ODD[::2]:
        more = on_cluster([*BASES[base], odd])
        if more is not None:
            single(more, fewer, f"{odd!r} beside {base} on a cluster")
            tried += 1
    assert tried > 5
