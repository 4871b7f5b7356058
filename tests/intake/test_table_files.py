"""A folder of Parquet files, or a dataset of Arrow over it: each file by its own types, and errors in one sentence."""

import warnings
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.errors import DataError, UnreadableRecordsWarning
from privstats.moments import RecordFile
from privstats.records.from_file import persons_in, records_in
from tests.made import refused

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
dataset = pytest.importorskip("pyarrow.dataset")
PLAN = ps.ClassSchema(2, 2, "NA", 1.0, feature_names=("age", "dose"))
NARROW = np.float32(11 / 8192)


def folder_of(path: Path, **files: dict[str, Any]) -> Path:
    for name, columns in files.items():
        path.mkdir(exist_ok=True, parents=True)
        parquet.write_table(arrow.table(columns), path / f"{name}.parquet")
    return path


def of_folder(path: Path) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return ps.measure(
            PLAN, *records_in(RecordFile(path, target="ill"), PLAN.reading, "leave out"), unreadable="leave out"
        )


def of_dataset(path: Path) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return ps.measure(PLAN, dataset.dataset(path, partitioning="hive"), "ill", unreadable="leave out")


def whole_dataset(path: Path) -> Any:
    """All records of a dataset at once, as schemas need them that take no batches."""
    from privstats.intake.frames import named_target

    with warnings.catch_warnings(action="ignore"):
        X, y = named_target(dataset.dataset(path, partitioning="hive"), "ill")
        return ps.measure(PLAN, X, y, unreadable="leave out")


READERS: list[Callable[[Path], Any]] = [of_folder, of_dataset, whole_dataset]
PLAIN = {"age": arrow.array([NARROW] * 3), "dose": arrow.array([NARROW] * 3), "ill": [0, 1, 0]}
WORDS = {"age": ["n/a?", "0.25"], "dose": ["0.5", "0.25"], "ill": ["0", "1"]}


@pytest.mark.parametrize("measured", READERS)
def test_a_file_of_a_folder_is_not_cast_to_the_types_of_the_first(measured: Any, tmp_path: Path) -> None:
    alone = [
        measured(folder_of(tmp_path / "one.parquet", a=PLAIN)),
        measured(folder_of(tmp_path / "two.parquet", a=WORDS)),
    ]
    for name, files in (("first.parquet", {"a": PLAIN, "b": WORDS}), ("last.parquet", {"a": WORDS, "b": PLAIN})):
        both = measured(folder_of(tmp_path / name, **files))
        assert both.N.tolist() == [2, 2]
        assert both == alone[0] + alone[1]


@pytest.mark.parametrize("measured", READERS)
@pytest.mark.parametrize(
    "odd",
    [
        [0.5],
        ["word"],
        arrow.array([2**63], arrow.uint64()),
        [None],
        [Decimal("0.10")],
        [b"\xff"],
        [True],
        [[1.0]],
        [date(2020, 1, 2)],
    ],
    ids=lambda odd: str(list(odd)),
)
def test_one_odd_value_in_a_file_refuses_no_other_file(odd: list[Any], measured: Any, tmp_path: Path) -> None:
    more = {"age": odd if isinstance(odd, arrow.Array) else arrow.array(odd), "dose": [0.0], "ill": [0]}
    whole = {"age": [1, 0, 1], "dose": [0.0, 0.5, 0.25], "ill": [0, 1, 0]}
    added = measured(folder_of(tmp_path / "odd.parquet", a=more))
    base = measured(folder_of(tmp_path / "base.parquet", a=whole))
    for name, files in (("x.parquet", {"a": more, "b": whole}), ("y.parquet", {"a": whole, "b": more})):
        assert measured(folder_of(tmp_path / name, **files)) == base + added


@pytest.mark.parametrize("measured", READERS)
def test_a_column_that_a_file_lacks_is_refused_or_missing_in_a_dataset(measured: Any, tmp_path: Path) -> None:
    lacking = {"age": [0.25], "ill": [1]}
    for name, files in (("x.parquet", {"a": PLAIN, "b": lacking}), ("y.parquet", {"a": lacking, "b": PLAIN})):
        path = folder_of(tmp_path / name, **files)
        if measured is of_folder:
            refused(DataError, r"[ab]\.parquet lacks the column 'dose', which .*[ab]\.parquet has", measured, path)
        else:  # its schema is the caller's
            assert measured(path).N.tolist() == [2, 1]


@pytest.mark.parametrize("measured", READERS)
def test_values_in_names_of_folders_are_a_column(measured: Any, tmp_path: Path) -> None:
    path = tmp_path / "sites.parquet"
    for dose in ("0.5", "0.25", "__HIVE_DEFAULT_PARTITION__"):
        folder_of(path / f"dose={dose}", a={"age": [0.5, 0.25], "ill": [0, 1]})
    doses = {"age": [0.5, 0.25] * 2, "dose": [0.5, 0.5, 0.25, 0.25], "ill": [0, 1] * 2}
    assert measured(path) == of_folder(folder_of(tmp_path / "plain.parquet", a=doses))


def test_ids_of_several_types_name_the_same_persons(tmp_path: Path) -> None:
    row = {"age": [0.5] * 3, "dose": [0.5] * 3, "ill": [0] * 3}
    path = folder_of(
        tmp_path / "days.parquet", a={**row, "id": ["77", "78", None]}, b={**row, "id": [77.0, 78.0, float("nan")]}
    )
    X, y, ids = persons_in(RecordFile(path, target="ill", persons="id"), PLAN.reading, "leave out")
    privacy = ps.Privacy(
        model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5, person_clip="average"
    )
    with pytest.warns(UnreadableRecordsWarning, match="2 of the records have no id of a person"):
        moments = ps.measure(PLAN, X, y, persons=ids, person_clip=ps.dp.person_clip(PLAN, privacy))
    assert moments.persons == 2


def test_values_keep_their_type_where_files_differ(tmp_path: Path) -> None:
    path = folder_of(tmp_path / "t.parquet", a={"x": [Decimal("0.10")]}, b={"x": [0.1], "z": [1]})
    table = RecordFile(path).table()
    assert [type(value) for value in table.values("x")] == [Decimal, np.float64]
    other = folder_of(tmp_path / "o.parquet", a={"x": [1]}, b={"z": [1]})
    refused(DataError, r"b\.parquet has no column of .*a\.parquet", lambda: RecordFile(other).columns)
    same = folder_of(tmp_path / "s.parquet", a={"x": [1, 2]}, b={"x": [3]})
    assert RecordFile(same).table().values("x").dtype == np.int64


def test_a_folder_that_cannot_be_read_is_a_sentence_with_the_name_of_the_file(tmp_path: Path) -> None:
    path = folder_of(tmp_path / "t.parquet", a=PLAIN)
    (path / "_SUCCESS").write_text("")
    (path / ".a.parquet.crc").write_text("x")
    assert of_folder(path).records == 3
    (path / "b.parquet").write_bytes((path / "a.parquet").read_bytes()[:-9])
    for call in (of_folder, of_dataset):
        refused(DataError, r"b\.parquet.*\(Arrow", call, path)
    (path / "b.parquet").unlink()
    (path / "readme.txt").write_text("secret")
    refused(DataError, r"readme\.txt has no column of", of_folder, path)
    (tmp_path / "empty.parquet").mkdir()
    refused(DataError, "names no file with records", of_folder, tmp_path / "empty.parquet")
    twins = folder_of(tmp_path / "twins.parquet", a={**PLAIN, "Age": PLAIN["age"]}, b=PLAIN)
    refused(DataError, r"a\.parquet has the columns 'age' and 'Age'; keep one", of_folder, twins)
    alike = folder_of(tmp_path / "alike.parquet", a=PLAIN, b={"Age": [1.0], "dose": [0.5], "ill": [0]})
    assert of_folder(alike).records == 4


def test_a_value_that_arrow_cannot_convert_is_no_error_of_the_file(tmp_path: Path) -> None:
    """``ArrowNotImplementedError`` is no ValueError; where the first file held None it left the reader as it was."""
    nothing = {"age": arrow.nulls(1), "dose": [0.5], "ill": [0]}
    path = folder_of(tmp_path / "t.parquet", a=nothing, b=PLAIN)
    assert of_folder(path) == of_folder(folder_of(tmp_path / "u.parquet", a=PLAIN))


def test_a_dataset_with_a_filter_or_a_schema_is_what_its_caller_says(tmp_path: Path) -> None:
    path = folder_of(tmp_path / "t.parquet", a={**PLAIN, "more": [1] * 3})
    refused(DataError, "further columns", ps.measure, PLAN, dataset.dataset(path), "ill")
    chosen = dataset.dataset(path, schema=arrow.schema([(name, arrow.float64()) for name in ("age", "dose", "ill")]))
    assert ps.measure(PLAN, chosen, "ill").records == 3
    few = dataset.dataset(folder_of(tmp_path / "u.parquet", a=PLAIN)).filter(dataset.field("ill") == 0)
    assert ps.measure(PLAN, few, "ill").N.tolist() == [2, 0]
