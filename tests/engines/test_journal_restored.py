"""A helper whose home was put back from a backup: a run that was bound is refused unless its operator vouches."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from privstats.engines.journal import JournaledHelper
from privstats.errors import LocalProtocolError
from tests.engines.test_journal_uploads import KEY, Journals, shown
from tests.secagg.upload.cohorts import answer_of, list_of

TWIN = "was put back or copied after its box key was bound"


@pytest.fixture
def journals(tmp_path: Path) -> Journals:
    return Journals(tmp_path / "place", helpers=1)


def put_back(source: Path, target: Path) -> None:
    """As a restore into the folder that is there: the folder keeps its number, what is in it is of the backup."""
    for path in target.rglob("*"):
        if path.is_file():
            path.unlink()
    for path in source.rglob("*"):
        if path.is_file():
            shutil.copy2(path, target / path.relative_to(source))


def backup_of(journals: Journals, tmp_path: Path) -> Path:
    return shutil.copytree(journals.home(1), tmp_path / "backup")


def test_a_helper_that_answered_and_is_put_back_answers_no_second_list(journals, tmp_path) -> None:
    shown(journals).close()
    backup = backup_of(journals, tmp_path)
    with journals.helper(1) as helper:
        answer_of(journals.run, helper, list_of(journals.run, (0, 1, 2, 3, 4)))
    put_back(backup, journals.home(1))
    for _ in range(2):  # a refusal leaves it as it is
        with pytest.raises(LocalProtocolError, match=TWIN):
            journals.helper(1)


def test_a_helper_that_was_shown_a_part_and_is_put_back_before_it_is_refused(journals, tmp_path) -> None:
    with journals.helper(1):
        backup = backup_of(journals, tmp_path)
    shown(journals).close()
    put_back(backup, journals.home(1))
    with pytest.raises(LocalProtocolError, match=TWIN):
        journals.helper(1)


def test_who_vouches_for_it_goes_on_where_it_lies(journals, tmp_path) -> None:
    shown(journals).close()
    backup = backup_of(journals, tmp_path)
    shutil.rmtree(journals.home(1))
    shutil.copytree(backup, journals.home(1))
    (journals.files(1) / "another file").touch()  # so that the folder is another one for certain
    with journals.helper(1, restored=True) as helper:
        assert helper.state == "bound"
    with journals.helper(1) as helper:
        answer_of(journals.run, helper, list_of(journals.run, (0, 1, 2, 3, 4)))


def test_a_key_that_was_not_bound_may_lie_anywhere(journals, tmp_path) -> None:
    elsewhere = shutil.copytree(journals.home(1), tmp_path / "elsewhere")
    with journals.helper(1, home=elsewhere) as helper:
        assert helper.state == "bound"


def test_a_twin_whose_time_is_up_signs_nothing(journals, tmp_path, monkeypatch) -> None:
    """The other one may have answered, and parties would take a counted upload for an uncounted one."""
    shown(journals).close()
    backup = backup_of(journals, tmp_path)
    with journals.helper(1) as helper:
        answer_of(journals.run, helper, list_of(journals.run, (0, 1, 2, 3, 4)))
    put_back(backup, journals.home(1))
    monkeypatch.setattr("time.time", lambda: float(1 << 41))
    with JournaledHelper.resume(journals.home(1), KEY, identity=journals.run.members[1], **journals.common) as helper:
        assert (helper.state, helper.answer) == ("abandoned", b"")
