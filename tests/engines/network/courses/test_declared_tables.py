"""Raw tables in files of three kinds and on a cluster, over folders: from counts of cut points to a model."""

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.engines.network.folder import Folder
from privstats.engines.network.measuring import forget_moments
from privstats.engines.network.records_script import name_file
from privstats.errors import UnreadableRecordsWarning
from privstats.moments import RecordFile
from tests.course.cases import CLIENTS, OF_CELLS, plan_of, table, tables
from tests.engines.network.courses.study import CourseStudy, course_study
from tests.engines.network.fake import RECORDS, FolderNet

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
TEMPLATE = RECORDS.encode()
NAMES = ("well", "ill")
ON_A_CLUSTER = """
from pathlib import Path

import dask.dataframe as dd
import pandas as pd


def load():
    frame = dd.from_pandas(pd.read_parquet(Path(__file__).parent / "table.parquet"), npartitions=2)
    return frame, frame["outcome"]
"""


def study_of_files(place: Path, then: str | None) -> CourseStudy:
    """A party with commas, one with semicolons, decimal commas and another encoding, one with Parquet, one on Dask."""
    schema = ps.ClassSchema(2, OF_CELLS.features, "NAB", 1.0, class_names=NAMES, transform=OF_CELLS.transform)
    options = {"rounds": 2} if then == "rounds" else {}
    course = ps.Binned.within(plan_of(schema, model="distributed"), then, expected_records=600, sessions=2, **options)
    study = course_study(place, course)
    for peer, (X, y) in enumerate(tables()):
        frame = pandas.DataFrame(X)[["ward", "id", "ill", "Sodium", "age"]]
        frame.insert(1, "outcome", np.array(NAMES, object)[y])
        study.shards[peer] = (frame, frame["outcome"])
        bring(study, peer, frame)
    return study


def bring(study: CourseStudy, peer: int, frame: Any) -> None:
    home, how = study.home(peer), ("csv", "semicolons", "parquet", "dask", "csv")[peer]
    if how in ("parquet", "dask"):
        frame.astype(str).to_parquet(home / "table.parquet")
    else:
        dialect: dict[str, Any] = {"encoding": "utf-8"} if how == "csv" else {"sep": ";", "encoding": "cp1252"}
        shown = frame.astype(str)
        if how == "semicolons":
            shown = shown.map(lambda text: text.replace(".", ",") if text.replace(".", "").isdigit() else text)
        shown.to_csv(home / "table.csv", index=False, quoting=csv.QUOTE_NONE, lineterminator="\r\n", **dialect)
    if how == "dask":
        (home / "records.py").write_text(ON_A_CLUSTER)
        return
    written = {"encoding": "cp1252", "separator": ";", "decimal": ","} if how == "semicolons" else {}
    file = RecordFile(home / ("table.parquet" if how == "parquet" else "table.csv"), "outcome", **written)
    assert name_file(Folder.open(home), file, TEMPLATE).summed == len(frame)


@pytest.mark.ci
@pytest.mark.parametrize("then", ["rounds", pytest.param("centred", marks=pytest.mark.nightly)])
@pytest.mark.usefixtures("silent")
def test_files_of_every_kind_go_from_counts_to_the_model_that_memory_gives(then: str, tmp_path: Path) -> None:
    study = study_of_files(tmp_path, then)
    found = FolderNet(study).ended().releases
    beside = ps.simulate(study.course, study.shards)
    assert len(found) == study.course.most == len(beside)
    for release, same in zip(found, beside, strict=True):
        assert release.plan.digest == same.plan.digest
        assert np.array_equal(release.vector, same.vector)
    for peer in range(CLIENTS):
        assert study.account(peer).mu == pytest.approx(study.course.mu)
    head = (ps.heads.RefinedSoftmax().fit_releases if then == "rounds" else ps.heads.LDA().fit_release)(found)
    X, y = table()
    assert head.score(X, np.array(NAMES)[y]) > 0.6


def test_a_party_hears_at_once_of_labels_that_no_later_session_would_read(tmp_path: Path) -> None:
    """The first session counts columns, and reads no label."""
    study = study_of_files(tmp_path, None)
    path = study.home(0) / "table.csv"
    path.write_text(path.read_text().replace("well", "Well").replace(",ill,", ",Ill,"))
    forget_moments(Folder.open(study.home(0)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UnreadableRecordsWarning)
        name_file(Folder.open(study.home(0)), RecordFile(path, "outcome"), TEMPLATE)
    assert any("no record remains: 120 of the records cannot be read" in str(each.message) for each in said)
