"""A course of persons between machines: ids reach the sums of every round, and no file of ours."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.encoding import flatten
from privstats.engines.network.folder import Folder
from privstats.engines.network.host import Host
from privstats.engines.network.party import Party
from privstats.engines.network.records_script import name_file
from privstats.errors import DataError
from privstats.moments import RecordFile
from tests import made
from tests.course.cases import CLIENTS, OF_CELLS, plan_of, tables
from tests.course.test_persons import PERSONS
from tests.engines.network.courses.study import CourseStudy, course_study
from tests.engines.network.fake import RECORDS, FolderNet

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
NAMES = ("well", "ill")
TERMS: dict[str, Any] = {"model": "distributed", "shares": {"N": 0.1, "A": 0.5, "B": 0.4}, **PERSONS}
SCHEMA = ps.ClassSchema(2, OF_CELLS.features, "NAB", 1.0, class_names=NAMES, transform=OF_CELLS.transform)


def bring(study: CourseStudy, peer: int) -> Any:
    """A file with the column of ids, of each person eight rows; the whole table."""
    X, y = tables()[peer]
    frame = pandas.DataFrame(X)[["ward", "ill", "Sodium", "age"]]
    frame["outcome"], frame["pid"] = np.array(NAMES, object)[y], [f"patient-{peer}-{row // 8}" for row in range(len(y))]
    frame.to_csv(study.home(peer) / "visits.csv", index=False)
    file = RecordFile(study.home(peer) / "visits.csv", "outcome", persons="pid")
    assert name_file(Folder.open(study.home(peer)), file, RECORDS.encode()).summed == len(frame)
    return frame


@pytest.mark.ci
@pytest.mark.usefixtures("silent")
def test_every_round_over_folders_is_that_of_all_persons_at_one_party(tmp_path: Path) -> None:
    course = ps.Binned.within(plan_of(SCHEMA, **TERMS), "rounds", expected_records=600, sessions=2, rounds=2)
    study = course_study(tmp_path, course)
    whole = pandas.concat([bring(study, peer) for peer in range(CLIENTS)])
    found = FolderNet(study).ended().releases
    assert len(found) == course.most == 5
    for place, release in enumerate(found):
        plan = Host.open(study.host).folder.round(place).plan  # with the published values
        given: Any = {"published": plan.published, "unreadable": plan.unreadable}
        owners: Any = {"persons": whole["pid"], "person_clip": plan.person_clip}
        exact = ps.measure(plan.schema, whole, whole["outcome"], **given, **owners)
        assert exact.shrunk > 0 or place > 2  # gradients of a person may be short
        assert np.array_equal(release.vector, flatten(exact))
    assert study.account(0).entries[0].begun == (0, 1, 2, 3, 4)
    assert study.account(0).mu == pytest.approx(course.mu)
    for path in (each for each in tmp_path.rglob("*") if each.is_file() and each.name != "visits.csv"):
        assert b"patient-" not in path.read_bytes(), path


@pytest.mark.parametrize("y", ["None", "[0, 1]"])
def test_what_a_later_round_would_refuse_is_refused_before_the_first(y: str, tmp_path: Path) -> None:
    """A mean reads no labels."""
    course = ps.Centred.within(plan_of(**{**TERMS, "model": "central"}))
    study = course_study(tmp_path, course)
    script = f"import numpy as np\n\n\ndef load():\n    return np.ones((4, 6)), {y}, [1, 1, 1, 2]\n"
    (study.home(0) / "records.py").write_text(script)
    with pytest.raises(DataError, match="labels|number of rows"):
        Party.open(study.home(0)).prepare()
    (study.home(0) / "records.py").write_text(script.replace(y, "[0, 1, 2, 0]"))
    assert Party.open(study.home(0)).prepare().moments.records == 4


def test_a_party_of_one_arm_is_told_where_persons_are_averaged(tmp_path: Path) -> None:
    schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"relapse": (0, 1)}, probability=0.5)
    promised = made.promise(unit="person", person_clip="average", epsilon=3.0)
    study = course_study(tmp_path, ps.Effect.start(schema, ps.Cohort(2, 2, 100), promised))
    lines = "return np.column_stack([np.arange(24) + 30, np.zeros(24)]), np.arange(24) % 2, np.arange(24) // 3"
    (study.home(0) / "records.py").write_text(f"import numpy as np\n\n\ndef load():\n    {lines}\n")
    with pytest.warns(UserWarning, match="all 24 records here are untreated"):
        moments = Party.open(study.home(0)).prepare().moments
    assert (moments.records, moments.counted) == (24, 8)
