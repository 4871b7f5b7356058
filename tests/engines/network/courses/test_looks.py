"""Interim looks over folders: each look sums the file as it has grown, and a party hears of a file that has not."""

from pathlib import Path

import numpy as np
import pandas
import pytest

import privstats as ps
from privstats.encoding import flatten
from privstats.engines.network.folder import Folder, RoundFolder
from privstats.engines.network.measuring import swapped
from tests import made
from tests.engines.network.courses.study import CourseStudy, course_study, silence
from tests.engines.network.fake import FolderNet

SCHEMA = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"recovered": (0, 1)}, probability=0.5)
SCRIPT = """from pathlib import Path
import privstats as ps

def load():
    return ps.moments.RecordFile(Path(__file__).parent / "ward.csv", target="recovered")
"""
HEADER = "age,arm,recovered"


def lines(party: int, records: int) -> list[str]:
    rng = np.random.default_rng(party)
    rows = [f"{rng.integers(20, 91)},{rng.integers(2)},{rng.integers(2)}" for _ in range(records)]
    return [HEADER, *rows]


@pytest.fixture
def study(tmp_path: Path) -> CourseStudy:
    looks = ps.course.Looks(3, "obrien-fleming")
    course = ps.Effect.start(
        SCHEMA,
        ps.Cohort(3, 3, 5_000),
        made.promise(model="distributed", epsilon=3.0),
        share=0.0,
        adjust=False,
        analysis=ps.course.Analysis(primary=("recovered",), looks=looks),
    )
    made_study = course_study(tmp_path, course)
    for party in range(3):
        (made_study.home(party) / "records.py").write_text(SCRIPT)
    return made_study


def write(study: CourseStudy, records: int) -> None:
    for party in range(3):
        (study.home(party) / "ward.csv").write_text("\n".join(lines(party, records)) + "\n")


def summed(plan: ps.Plan, records: int) -> np.ndarray:
    """The sum over all parties' first records, without any protocol."""
    total = np.int64(0)
    for party in range(3):
        table = np.array([line.split(",") for line in lines(party, records)[1:]], float)
        X = pandas.DataFrame({"age": table[:, 0], "arm": table[:, 1]})
        total = total + flatten(ps.measure(plan.schema, X, table[:, 2], published=plan.published))
    return total


def test_each_look_sums_the_records_so_far_and_warns_no_party(study: CourseStudy, monkeypatch, caplog) -> None:
    silence(monkeypatch)
    for look in range(study.course.looks):
        write(study, 100 * (look + 1))
        releases = FolderNet(study).ended().releases
        assert len(releases) == look + 1
        plan = study.course.next(releases[:-1]) if look else study.course.first
        assert np.array_equal(releases[-1].vector, summed(plan, 100 * (look + 1)))
    assert not [record.message for record in caplog.records if "ward.csv" in record.message]


@pytest.mark.parametrize(
    ("then", "warning"),
    [
        (lambda text: text + "61,1,0\n", ""),
        (lambda text: text, "ward.csv is as it was at the look before"),
        (lambda text: text[: len(HEADER) + 20], "ward.csv is shorter than at the look before"),
        (lambda text: text.replace(",1\n", ",0\n", 1) + "61,1,0\n", "ward.csv does not begin with the file"),
    ],
    ids=["grown", "the same", "shorter", "another"],
)
def test_a_party_hears_of_a_file_that_is_not_the_earlier_one_and_more(study: CourseStudy, then, warning: str) -> None:
    write(study, 100)
    folder = Folder.open(study.home(0))
    file = study.home(0) / "ward.csv"
    first, second = (RoundFolder(folder, place, study.course.first, bytes(32)) for place in (0, 1))
    assert swapped(first, file) == ""
    file.write_text(then(file.read_text()))
    for _ in range(2):  # as after a crash
        assert swapped(second, file).startswith(warning)
        assert bool(swapped(second, file)) == bool(warning)
