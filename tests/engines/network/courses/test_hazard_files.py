"""Hazards from files of three kinds, over folders: each session has the sums of the files, and the course its price."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course.kinds import file_of
from privstats.encoding import flatten
from privstats.engines.network.folder import Folder
from privstats.engines.network.measuring import forget_moments
from privstats.engines.network.party import Party
from privstats.engines.network.records_script import name_file
from privstats.moments import RecordFile
from tests.engines.network.courses.study import CourseStudy, course_study
from tests.engines.network.fake import RECORDS, FolderNet
from tests.hazard.worlds import promise, schema, world

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning", "ignore::UserWarning")
ENDINGS = ("csv", "parquet", "csv", "parquet", "csv")


def study_of_files(place: Path) -> CourseStudy:
    cohort, privacy = ps.Cohort(5, 4, 600), promise(4.0, delta=1e-5, model="distributed")
    course = ps.Hazard.start(schema(times="continuous"), cohort, privacy, by="arm", rounds=2)
    study = course_study(place, course)
    for peer in range(5):
        frame = pandas.DataFrame(world(100, peer))
        study.shards[peer] = (dict(frame.items()), None)
        bring(study, peer, frame)
    return study


def bring(study: CourseStudy, peer: int, frame: Any) -> None:
    path = study.home(peer) / f"ward.{ENDINGS[peer]}"
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    folder = Folder.open(study.home(peer))
    name_file(folder, file_of(folder.course, RecordFile(path)), RECORDS.encode())


@pytest.mark.usefixtures("silent")
def test_files_give_the_releases_that_memory_gives_and_the_course_is_charged_once(tmp_path: Path) -> None:
    study = study_of_files(tmp_path)
    found = FolderNet(study).ended().releases
    beside = ps.simulate(study.course, study.shards)
    assert len(found) == study.course.most == len(beside)
    for release, same in zip(found, beside, strict=True):
        assert release.plan.digest == same.plan.digest
        assert np.array_equal(release.vector, same.vector)
    for peer in range(5):
        assert study.account(peer).mu == pytest.approx(study.course.mu)


@pytest.mark.parametrize("peer", [0, 1])
def test_one_record_of_a_file_moves_its_party_s_sums_by_itself(peer: int, tmp_path: Path) -> None:
    study = study_of_files(tmp_path)
    frame = pandas.DataFrame(world(100, peer))
    odd = {"months": [np.nan, np.inf, -1.0, 1e9, 6.0], "died": [1, 0, 1, 0, 1], "arm": [0, 1, 0, np.nan, 1]}
    more = pandas.DataFrame({**odd, "age": [1e300, 0.0, 0.5, 0.5, -np.inf], "dose": [0.0, 0.5, np.nan, 0.5, 0.5]})

    def sums(table: Any) -> np.ndarray:
        forget_moments(Folder.open(study.home(peer)))
        bring(study, peer, table.astype(float))
        vector: np.ndarray = flatten(Party.open(study.home(peer)).prepare(anew=True).moments)
        return vector

    whole, alone = sums(frame), []
    for place in range(len(more)):
        both = sums(pandas.concat([frame, more.iloc[[place]]]))
        alone.append(both - whole)
        assert np.array_equal(both, whole + sums(more.iloc[[place]]))
    assert any(part.any() for part in alone)
