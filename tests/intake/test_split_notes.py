"""The note of a split is read whole or refused, and never stands in the way of a sum."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from privstats.errors import DataError
from privstats.intake.split_notes import note_split, notes_path, require_same_split
from privstats.moments import RecordFile

PLAN, COURSE = "a" * 64, "b" * 64


def file_in(folder: Path, **how: object) -> RecordFile:
    return RecordFile(folder / "north.csv", "ill", **{"split": 0.3, "seed": 7, **how})  # type: ignore[arg-type]


def test_a_split_is_held_by_plan_and_by_course(tmp_path: Path) -> None:
    file = file_in(tmp_path)
    assert not require_same_split(file, PLAN, COURSE)  # nobody knows
    assert note_split(file, PLAN, COURSE, again=True)
    written = notes_path(file).read_bytes()
    assert note_split(file, PLAN, COURSE, again=True)
    assert notes_path(file).read_bytes() == written
    for plan, course in ((PLAN, COURSE), (PLAN, None), (None, COURSE)):
        assert require_same_split(file, plan, course)
        others = (file_in(tmp_path, seed=8), file_in(tmp_path, split=0.31), file_in(tmp_path, split=None))
        for other in (*others, replace(file, target="dead"), replace(file, target=("ill", "dead"))):
            with pytest.raises(DataError, match="--split 0.3 --seed 7 --target ill, so another split"):
                require_same_split(other, plan, course)
        assert require_same_split(replace(file, target="ILL"), plan, course)  # one column, as tables name it
        assert require_same_split(replace(file, split=0.2), plan, course)
    assert not require_same_split(file_in(tmp_path, seed=8), "c" * 64, None)  # another head


def test_a_split_of_persons_is_another_than_one_of_rows(tmp_path: Path) -> None:
    file = file_in(tmp_path, persons="pid")
    assert note_split(file, PLAN, COURSE, again=True)
    assert '"persons": "pid"' in notes_path(file).read_text()
    assert require_same_split(file, PLAN, COURSE)
    for other in (file_in(tmp_path), file_in(tmp_path, persons="visit")):
        with pytest.raises(DataError, match="--split 0.3 --seed 7 --persons pid, so another split"):
            require_same_split(other, PLAN, COURSE)
    notes_path(file).unlink()
    assert note_split(file_in(tmp_path), PLAN, COURSE, again=True)
    assert "persons" not in notes_path(file).read_text()
    with pytest.raises(DataError, match="--split 0.3 --seed 7 --target ill, so another split"):
        require_same_split(file, PLAN, COURSE)


STORED = """{"splits": [{"plan": "%s", "course": "%s", "split": 0.3, "seed": 7%s}], "format": "privstats-splits",
    "version": 1}"""


def test_a_note_of_another_rule_ends_in_a_sentence_and_one_of_persons_is_read(tmp_path: Path) -> None:
    """The rule for records before version 2 held out other records. The one for persons is the same in all versions."""
    file = file_in(tmp_path)
    notes_path(file).write_text(STORED % (PLAN, COURSE, ""))
    for other in (file, replace(file, seed=8), replace(file, persons="pid")):
        with pytest.raises(
            DataError,
            match=r"north.csv.splits.json states that the sums of this head used a split of rule 1, and this version "
            r"knows rule 2 alone: score the head with the version of privstats that computed the sums, or on a file of",
        ):
            require_same_split(other, PLAN, COURSE)
    assert not require_same_split(file, "c" * 64, None)
    assert note_split(file, PLAN, COURSE, again=True)
    assert '"rule": 2' in notes_path(file).read_text()
    with pytest.raises(DataError, match="a split of rule 1"):  # of which sums may have left
        require_same_split(file, PLAN, COURSE)
    assert note_split(file, PLAN, COURSE, again=False)
    assert require_same_split(file, PLAN, COURSE)
    by_person = file_in(tmp_path, persons="pid")
    notes_path(file).write_text(STORED % (PLAN, COURSE, ', "persons": "pid"'))
    before = notes_path(file).read_bytes()
    assert require_same_split(by_person, PLAN, COURSE)
    assert note_split(by_person, PLAN, COURSE, again=True)
    assert notes_path(file).read_bytes() == before


def test_what_is_scored_or_summed_whole_leaves_no_note(tmp_path: Path) -> None:
    for file in (file_in(tmp_path, split=None), file_in(tmp_path, kept_out=True)):
        assert not note_split(file, PLAN, COURSE, again=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_nobody_may_write_to_holds_no_note(tmp_path: Path) -> None:
    assert not note_split(file_in(tmp_path / "nowhere"), PLAN, COURSE, again=True)


def test_a_split_of_a_folder_a_pattern_or_a_table_of_a_base_is_noted_where_its_records_are(tmp_path: Path) -> None:
    (tmp_path / "parts" / "more").mkdir(parents=True)
    (tmp_path / "base.duckdb").touch()
    terms: dict[str, Any] = {"target": "ill", "split": 0.3, "seed": 7}
    for paths in (
        ["parts", "parts/*.csv", "parts/mo*/x.csv", "parts/"],
        ["base.duckdb/patients", "base.duckdb", "base.duckdb/visits"],
    ):
        first, *others = (RecordFile(f"{tmp_path}/{path}", **terms) for path in paths)
        assert note_split(first, PLAN, COURSE, again=True)
        for other in others:
            assert require_same_split(other, PLAN, COURSE)
            with pytest.raises(DataError, match="--split 0.3 --seed 7"):
                require_same_split(replace(other, seed=8), PLAN, COURSE)
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")}
    assert found == {"parts/.splits.json", "base.duckdb.splits.json"}  # no reader of the folder opens a hidden file


@pytest.mark.parametrize(
    "text", ["", "{}", '{"splits": []}x', '{"splits": [], "version": 2}', "[" * 2_000_000], ids=lambda text: text[:9]
)
def test_what_is_no_note_is_refused(tmp_path: Path, text: str) -> None:
    file = file_in(tmp_path)
    notes_path(file).write_text(text)
    for act in (lambda: note_split(file, PLAN, COURSE, again=True), lambda: require_same_split(file, PLAN, COURSE)):
        with pytest.raises(DataError, match="north.csv.splits.json is no note of splits of version 1"):
            act()
