"""Parts of tables in this process: Arrow batches, DuckDB relations, Parquet files and tables of any library."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import privstats as ps
from privstats.contrib.parts import measure, tables
from privstats.contrib.parts.partitioned import Partitioned
from privstats.errors import DataError
from privstats.moments import RecordFile
from tests import made

RNG = np.random.default_rng(0)
RECORDS = 600
NAMES = ("age", "bmi")
SCHEMA = ps.ClassSchema(2, 2, "NAB", clip_norm=100.0, class_names=("no", "yes"), feature_names=NAMES)
FRAME = pd.DataFrame(
    {
        "bmi": RNG.uniform(18, 40, RECORDS),
        "ill": RNG.choice(["no", "yes"], RECORDS),
        "age": RNG.uniform(20, 90, RECORDS),
        "person": [f"p{number}" for number in RNG.integers(0, 200, RECORDS)],
    }
)
PLAIN = FRAME.drop(columns="person")
CLIP = made.plan(
    SCHEMA, ps.Cohort(3, 3, 2_000), made.promise("central", unit="person", max_records_per_person=6, person_clip=1.5)
).person_clip
WHOLE = ps.measure(SCHEMA, PLAIN, "ill")
OF_PERSONS = ps.measure(SCHEMA, PLAIN, "ill", persons=FRAME["person"], person_clip=CLIP)
BY_PERSON = FRAME.sort_values("person", kind="stable")
STARTS = np.flatnonzero((BY_PERSON["person"] != BY_PERSON["person"].shift()).to_numpy())
ENDS = [0, *STARTS[[40, 90, 91]].tolist(), RECORDS]


def cut(frame: pd.DataFrame, ends: list[int]) -> list[pd.DataFrame]:
    return [frame.iloc[start:end] for start, end in pairwise(ends)]


def files(folder: Path, parts: list[pd.DataFrame]) -> Path:
    folder.mkdir()
    for place, part in enumerate(parts):
        pq.write_table(pa.Table.from_pandas(part, preserve_index=False), folder / f"{place}.parquet")
    return folder


IN_PARTS: dict[str, Callable[[list[pd.DataFrame], Path], Any]] = {
    "arrow batches": lambda parts, _: [pa.RecordBatch.from_pandas(part, preserve_index=False) for part in parts],
    "arrow tables": lambda parts, _: [pa.Table.from_pandas(part, preserve_index=False) for part in parts],
    "a reader": lambda parts, _: pa.RecordBatchReader.from_batches(
        pa.Schema.from_pandas(parts[0], preserve_index=False),
        iter([pa.RecordBatch.from_pandas(part, preserve_index=False) for part in parts]),
    ),
    "frames": lambda parts, _: iter(parts),
    "polars": lambda parts, _: tuple(map(pl.from_pandas, parts)),
    "a folder": lambda parts, folder: files(folder / "table", parts),
    "its text": lambda parts, folder: str(files(folder / "table", parts)),
    "one file": lambda parts, folder: files(folder / "table", [pd.concat(parts)]) / "0.parquet",
    "a dataset": lambda parts, folder: pads.dataset(files(folder / "table", parts)),
    "a dataset in memory": lambda parts, _: pads.dataset(pa.Table.from_pandas(pd.concat(parts), preserve_index=False)),
    "a relation": lambda parts, _: duckdb.from_df(pd.concat(parts)),
}


@pytest.mark.parametrize("form", IN_PARTS.values(), ids=IN_PARTS)
def test_parts_of_every_container_give_the_whole(form: Any, tmp_path: Path) -> None:
    assert measure(SCHEMA, form(cut(PLAIN, [0, 7, 7, 300, RECORDS]), tmp_path), "ill") == WHOLE


@pytest.mark.parametrize("form", IN_PARTS.values(), ids=IN_PARTS)
def test_parts_of_persons_give_the_whole(form: Any, tmp_path: Path) -> None:
    found = measure(SCHEMA, form(cut(BY_PERSON, ENDS), tmp_path), "ill", persons="person", person_clip=CLIP)
    assert found == OF_PERSONS
    assert (found.persons, found.parties, found.shrunk) == (OF_PERSONS.persons, 1, OF_PERSONS.shrunk)


@pytest.mark.parametrize("form", IN_PARTS.values(), ids=IN_PARTS)
def test_parts_that_share_persons_give_the_whole(form: Any, tmp_path: Path) -> None:
    found = measure(
        SCHEMA, form(cut(FRAME, [0, 300, 301, RECORDS]), tmp_path), "ill", persons="person", person_clip=CLIP
    )
    assert found == OF_PERSONS


def test_only_the_ids_are_read_to_find_who_is_in_several_parts(tmp_path: Path) -> None:
    door = Partitioned(SCHEMA, person_clip=CLIP)
    parts = [FRAME.iloc[:300], FRAME.iloc[300:].assign(age="unread")]
    for dataset in (pads.dataset(files(tmp_path / "table", parts)), duckdb.from_df(parts[1])):
        assert door.present(dataset, persons="Person").rows.sum() in (600, 300)
        with pytest.raises(DataError, match="persons='nobody' names no column"):
            door.present(dataset, persons="nobody")


def test_a_relation_is_cut_by_its_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_RECORDS_OF_PART", 50)
    relation = duckdb.from_df(FRAME.rename(columns={"person": 'a "person"'}))
    assert len([*tables._by_id(relation, 'A "Person"')]) == 12
    assert measure(SCHEMA, relation, "ill", persons='A "Person"', person_clip=CLIP) == OF_PERSONS
    alike = duckdb.sql("select *, lpad(cast(row_number() over () % 9 as varchar), 3, 'x0') as id from relation")
    alike = alike.project("bmi, ill, age, replace(id, 'x', '') as id")  # 04 and 4 are one person
    table = alike.df()
    assert measure(SCHEMA, alike, "ill", persons="id", person_clip=CLIP) == ps.measure(
        SCHEMA, table[["bmi", "age"]], table["ill"], persons=table["id"], person_clip=CLIP
    )
    gaps = duckdb.sql("select 41.0 as age, 22.0 as bmi, 'no' as ill, null as person")
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="1 of the records have no id of a person"):
        assert measure(SCHEMA, gaps, "ill", persons="person", person_clip=CLIP).records == 0
    with pytest.raises(DataError, match="persons='id' names no column of the relation"):
        measure(SCHEMA, relation, "ill", persons="id", person_clip=CLIP)


def test_folders_of_a_value_are_a_column(tmp_path: Path) -> None:
    pads.write_dataset(
        pa.Table.from_pandas(PLAIN, preserve_index=False), tmp_path, format="parquet", partitioning=["ill"],
        partitioning_flavor="hive",
    )  # fmt: skip
    assert {path.parent.name for path in tmp_path.rglob("*.parquet")} == {"ill=no", "ill=yes"}
    assert measure(SCHEMA, tmp_path, "ill") == WHOLE


def test_a_dataset_with_a_filter_is_one_part(tmp_path: Path) -> None:
    dataset = pads.dataset(files(tmp_path / "table", cut(PLAIN, [0, 300, RECORDS]))).filter(pads.field("age") > 50)
    assert measure(SCHEMA, dataset, "ill") == ps.measure(SCHEMA, PLAIN[PLAIN["age"] > 50], "ill")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (PLAIN, "X must have parts, got DataFrame: .* is privstats.measure's"),
        (np.ones((2, 2)), "X must have parts, got ndarray"),
        ("nowhere", "no such file .*nowhere: paths are relative to the current folder"),
        ([PLAIN, PLAIN.drop(columns="age")], "partition 1: X lacks 'age'"),
        (RecordFile("t.csv", "ill", split=0.5), "t.csv has a split, which counts equal records over the whole file"),
    ],
)
def test_what_has_no_parts_or_does_not_fit_is_one_sentence(given: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        measure(SCHEMA, given, "ill")


def test_a_clip_of_every_row_is_said_once() -> None:
    schema = ps.ClassSchema(2, 2, "NA", 1.0, class_names=("no", "yes"), feature_names=NAMES)
    with pytest.warns(ps.ClippedWarning, match="clip_norm shortens 100% of the rows") as said:
        measure(schema, cut(PLAIN, [0, 9, 99, RECORDS]), "ill")
    assert [each.filename for each in said] == [__file__]
