"""Files with codes, dates and truths as hospitals have them, over folders: all sessions of a synthetic course."""

import csv
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.synthetic.columns import coded, schema_of
from privstats.contrib.synthetic.course import Synthetic
from privstats.contrib.synthetic.rows import synthetic
from privstats.engines.network.folder import Folder
from privstats.engines.network.records_script import name_file
from privstats.errors import DataError, UnreadableRecordsWarning
from privstats.moments import RecordFile
from tests.contrib.synthetic.cases import COLUMNS, table
from tests.course.cases import plan_of
from tests.engines.network.courses.study import CourseStudy, course_study
from tests.engines.network.fake import RECORDS, FolderNet

TEMPLATE = RECORDS.encode()


def study_of_hospitals(place: Path, columns: object = COLUMNS) -> CourseStudy:
    """Five hospitals: each file has another order of columns, an id that nobody counts, and names in another case."""
    course = Synthetic.within(plan_of(schema_of(COLUMNS), model="distributed"), columns=columns)
    study = course_study(place, course)
    for peer in range(5):
        records = table(60, peer)
        study.shards[peer] = (coded(COLUMNS, records), None)
        with (study.home(peer) / "ward.csv").open("w", newline="") as file:
            writer = csv.writer(file, delimiter=";")
            names = sorted(records, key=lambda name: (peer, name) if peer % 2 else name[::-1])
            writer.writerow(["id", *map(str.upper, names)])
            for number, row in enumerate(zip(*(records[name] for name in names), strict=True)):
                writer.writerow([f"p{number}", *("" if each != each else each for each in row)])
    return study


def named(study: CourseStudy, peer: int) -> int:
    folder = Folder.open(study.home(peer))
    file = RecordFile(study.home(peer) / "ward.csv", separator=";")
    return name_file(folder, folder.course.reads(file), TEMPLATE).summed


@pytest.mark.usefixtures("silent")
def test_files_give_the_releases_that_coded_tables_give(tmp_path: Path) -> None:
    study = study_of_hospitals(tmp_path)
    assert [named(study, peer) for peer in range(5)] == [60] * 5
    assert "RecordFile('ward.csv', separator=';')" in (study.home(0) / "records.py").read_text()
    found = FolderNet(study).ended().releases
    beside = ps.simulate(study.course, study.shards)
    assert len(found) == len(beside) == 3
    for release, same in zip(found, beside, strict=True):
        assert release.plan.digest == same.plan.digest
        assert np.array_equal(release.vector, same.vector)
    rows = synthetic(study.course, found, rows=20, seed=1, columns=study.course.declared)
    assert set(rows["smoker"]) <= {True, False, None}


def test_what_cannot_be_read_is_counted_for_the_party_alone(tmp_path: Path) -> None:
    study = study_of_hospitals(tmp_path)
    path = study.home(0) / "ward.csv"
    path.write_text(path.read_text().replace("2024-0", "2024/0", 1).replace("True", "perhaps", 1) + "p60;1\n")
    with pytest.warns(UnreadableRecordsWarning) as warned:
        assert named(study, 0) == 60
    said = " ".join(str(each.message) for each in warned)
    assert "1 of 'smoker' are neither true nor false; 1 of 'admitted' are no dates" in said
    assert "1 line of" in said
    assert "perhaps" not in said


def test_a_file_that_lacks_a_column_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    study = study_of_hospitals(tmp_path)
    path = study.home(0) / "ward.csv"
    path.write_text(path.read_text().replace("ICD", "DRG"))
    with pytest.raises(DataError, match="lacks 'icd' of the plan's columns"):
        named(study, 0)
    assert (study.home(0) / "records.py").read_text() == RECORDS


def test_without_declared_columns_a_file_is_read_as_any_counts(tmp_path: Path) -> None:
    study = study_of_hospitals(tmp_path, columns=())
    with pytest.warns(UnreadableRecordsWarning, match="hold a value that the plan does not list"):
        named(study, 0)
