"""The limits of reading that docs/proofs/reading.md lists: each has its warning, its refusal, or neither."""

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.errors import DataError, UnreadableRecordsWarning
from privstats.intake import table_files
from privstats.intake.columns import read
from privstats.intake.person_ids import persons_of
from privstats.moments import RecordFile, Records
from privstats.moments.base import require_room
from privstats.session.validation import require_moments
from tests.intake.test_columns import EXCEPTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "proofs" / "reading.md").read_text("utf-8")
SCHEMA = ps.ClassSchema(2, 2, "NA", 1.0, feature_names=("f0", "f1"))
PERSONS = ps.Privacy(
    model="central",
    unit="person",
    adjacency="add-remove",
    epsilon=1.0,
    delta=1e-5,
    max_records_per_person=2,
    person_clip=2,
)


def _texts_of_numpy(folder: Path) -> None:
    """The static type warns, whatever the texts are; objects with the same values do not."""
    value = np.float32(0.1)
    values = np.array([[value, value], [value, value]])
    assert read(values.astype(str)[0]).numbers[0] == 0.1 != float(value) == read(values.astype(object)[0]).numbers[0]
    with pytest.warns(UserWarning, match="X is an array of texts"):
        ps.measure(SCHEMA, values.astype(str), [0, 1])
    with warnings.catch_warnings(action="error"):
        ps.measure(SCHEMA, values.astype(object), [0, 1])


def _casts(folder: Path) -> None:
    """Nothing warns: the array says nothing of the columns that were joined."""
    assert "int64 with spans" in EXCEPTIONS["numpy"]
    days = np.array([7], "m8[D]")
    with warnings.catch_warnings(action="error"):
        joined = read(np.concatenate([np.array([7]), days]))
    assert joined.texts[0] == joined.texts[1]
    assert read(np.array([7])).numbers.tolist() == [7.0]


def _persons(ids: object) -> int:
    """How many persons the sums hold."""
    count = len(ids)  # type: ignore[arg-type]
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(3, 3, 100), privacy=PERSONS)
    X, y = np.full((count, 2), 0.5), np.zeros(count, int)
    moments = ps.measure(SCHEMA, X, y, persons=ids, person_clip=plan.person_clip, unreadable="leave out")
    assert moments.persons is not None
    return moments.persons


def _guessed_types(folder: Path) -> None:
    """Ids that polars makes times of are nobody's with and without a word in their column, and are counted."""
    polars = pytest.importorskip("polars")
    alone, beside = (
        polars.read_csv(f"id\n12:30:00\n12:31:00\n{more}".encode(), try_parse_dates=True)["id"] for more in ("", "A7\n")
    )
    assert (str(alone.dtype), str(beside.dtype)) == ("Time", "String")
    assert (persons_of(alone) < 0).all()
    with pytest.warns(UnreadableRecordsWarning, match="2 of the records have an id that a reader"):
        assert _persons(beside) == 1


def _forms_of_numbers(folder: Path) -> None:
    """Two texts of one fraction are nobody's, as the fraction is, and are counted."""
    with pytest.warns(UnreadableRecordsWarning, match="2 of the records have an id that a reader"):
        assert _persons(["12.1", "12.10", "b12.1", "b12.10"]) == 2
    assert (persons_of(np.array([12.1, 12.10])) == -1).all()


def _narrow_ids(folder: Path) -> None:
    """The static type refuses, even of a column without a value."""
    for kind in (np.float16, np.float32, np.complex64, np.complex128):
        with pytest.raises(DataError, match="do not distinguish persons: pass"):
            persons_of(np.array([], kind))
    arrow = pytest.importorskip("pyarrow")
    for kind in (arrow.float32(), arrow.list_(arrow.int64())):
        with pytest.raises(DataError, match="do not distinguish persons: pass"):
            persons_of(arrow.array([], kind))


def _queries_over_folders(folder: Path) -> None:
    """The cast of polars refuses all files for one word; the folder by its path leaves out that record alone."""
    polars = pytest.importorskip("polars")
    for place, values in enumerate(([0.5, 0.25], ["word"])):
        polars.DataFrame({"f0": values, "f1": values, "y": [0] * len(values)}).write_parquet(
            folder / f"{place}.parquet"
        )
    with pytest.raises(DataError, match="Name a folder of files by its path"):
        ps.measure(SCHEMA, polars.scan_parquet(folder), "y", unreadable="leave out")
    read_alone = folder.rename(folder.with_suffix(".parquet"))
    records = RecordFile(read_alone, target="y").read(SCHEMA.feature_names, unreadable="leave out")
    assert np.isnan(records.X.astype(float)).sum() == 2
    assert len(records.X) == 3


def _counts(folder: Path) -> None:
    """One record more is refused at each of the four limits, and one less is not."""
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(3, 3, 4), privacy=ps.NoPrivacy())
    four, five = (ps.measure(SCHEMA, np.full((n, 2), 0.5), np.zeros(n, int)) for n in (4, 5))
    require_moments(plan, four)
    with pytest.raises(DataError, match=r"more records than cohort.max_records=4"):
        require_moments(plan, five)
    most = ((1 << 63) - 1) // SCHEMA.bound
    require_room(most, SCHEMA.bound)
    with pytest.raises(DataError, match="fit 64-bit totals"):
        require_room(most + 1, SCHEMA.bound)
    with pytest.raises(DataError, match="leaves one part of 1 records empty"):
        Records(np.ones((1, 1)), np.zeros(1)).split(0.5, 1)
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for records in (2, 3):
        parquet.write_table(arrow.table({"f0": [0.5] * records}), folder / f"{records}.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_files, "MOST_BYTES", 16)
        assert len(RecordFile(folder / "2.parquet").table(["f0"]).values("f0")) == 2
        with pytest.raises(DataError, match="pass fewer records or columns"):
            RecordFile(folder / "3.parquet").table(["f0"])


TRIED: Mapping[str, tuple[str, Callable[[Path], None]]] = {
    "A numpy array of texts": ("X of such a type warns", _texts_of_numpy),
    "A cast or concatenation of your own": ("no warning is possible", _casts),
    "A reader that guesses types": ("such ids name no person, and a warning counts them", _guessed_types),
    "An id in another form of a number": ("it names no person, and a warning counts it", _forms_of_numbers),
    "Ids of float16, float32": ("refused by type", _narrow_ids),
    "A lazy frame or a relation": ("refused where the cast fails", _queries_over_folders),
    "One record more": ("refused: limits are public", _counts),
}
"""By the first words of a limit, those of what happens there, and what tries it."""


def limits() -> list[tuple[str, str]]:
    """The limits of the page, each with what happens there."""
    table = PAGE.split("| what no reader can see | what happens |\n", 1)[1].split("\n\n", 1)[0]
    return [tuple(map(str.strip, row.strip("|").split(" | "))) for row in table.split("\n")[1:]]  # type: ignore[misc]


def test_the_page_lists_the_limits_that_are_tried_each_in_one_sentence() -> None:
    rows = limits()
    assert len(rows) == 7
    assert "Seven limits" in PAGE
    for (limit, what), (first, (answer, _)) in zip(rows, TRIED.items(), strict=True):
        assert limit.startswith(first)
        assert what.startswith(answer)
        assert limit.endswith(".")
        assert not re.search(r"[.!?] [A-Z]", limit)


@pytest.mark.parametrize("limit", TRIED)
def test_a_limit_is_warned_of_or_refused_as_the_page_says(limit: str, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    TRIED[limit][1](folder)
