"""Interim looks over folders: each look sums the file as it has grown, and a party hears of a file that has not."""

import numpy as np
import pytest

from privstats.engines.network.folder import Folder, RoundFolder
from privstats.engines.network.measuring import swapped
from tests.engines.network.courses.looked import LOOKS, PARTIES, looked_study, summed, table
from tests.engines.network.courses.study import CourseStudy, silence
from tests.engines.network.fake import FolderNet


@pytest.fixture
def study(tmp_path) -> CourseStudy:
    return looked_study(tmp_path)


def test_each_look_sums_the_records_so_far_and_warns_no_party(study: CourseStudy, monkeypatch, caplog) -> None:
    silence(monkeypatch)
    for look in range(LOOKS):
        tables = [table(party, 100 * (look + 1)) for party in range(PARTIES)]
        for party, text in enumerate(tables):
            (study.home(party) / "ward.csv").write_text(text)
        releases = FolderNet(study).ended().releases
        assert len(releases) == look + 1
        plan = study.course.next(releases[:-1]) if look else study.course.first
        assert np.array_equal(releases[-1].vector, summed(plan, tables))
    assert not [record.message for record in caplog.records if "ward.csv" in record.message]


@pytest.mark.parametrize(
    ("then", "warning"),
    [
        (lambda text: text + "61,1,0\n", ""),
        (lambda text: text, "ward.csv is as it was at the look before"),
        (lambda text: text[:40], "ward.csv is shorter than at the look before"),
        (lambda text: text.replace(",1\n", ",0\n", 1) + "61,1,0\n", "ward.csv does not begin with the file"),
    ],
    ids=["grown", "the same", "shorter", "another"],
)
def test_a_party_hears_of_a_file_that_is_not_the_earlier_one_and_more(study: CourseStudy, then, warning: str) -> None:
    file = study.home(0) / "ward.csv"
    file.write_text(table(0, 100))
    folder = Folder.open(study.home(0))
    first, second = (RoundFolder(folder, place, study.course.first, bytes(32)) for place in (0, 1))
    assert swapped(first, file) == ""
    file.write_text(then(file.read_text()))
    for _ in range(2):  # as after a crash
        assert swapped(second, file).startswith(warning)
        assert bool(swapped(second, file)) == bool(warning)
