"""The folder of a course is its owner's, and holds a course that these parties can carry."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course.base import plans_by_place
from privstats.course.phases import Phases
from privstats.dp.sensitivities import joint_mu
from privstats.engines.network import folder_documents
from privstats.engines.network.folder import Folder, RoundFolder
from privstats.engines.network.folder_documents import check_course
from privstats.engines.network.host import Host
from privstats.engines.network.measuring import CHECKED_FILE, _mu, records_of, swapped
from privstats.engines.network.party import Party
from privstats.errors import DataError, LocalProtocolError, PlanError, PrivstatsError, UnreadableRecordsWarning
from privstats.secagg import Roster
from tests.course.cases import C, plan_of, rounds
from tests.course.test_kinds import SAMPLES
from tests.engines.network.courses.study import CourseStudy, course_study
from tests.made import refused


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> CourseStudy:
    return course_study(tmp_path_factory.mktemp("course"))


def test_a_roster_without_a_run_is_refused(study: CourseStudy) -> None:
    roster = study.roster
    Roster(roster.publics, server=roster.server).save(study.home(1) / "roster.toml")
    with pytest.raises(LocalProtocolError, match="a course needs a roster with a run name"):
        Party.open(study.home(1))


@pytest.mark.parametrize("name", ["course.toml", "course.first.toml"])
def test_what_others_can_change_is_not_believed(study: CourseStudy, name: str) -> None:
    path = study.home(3) / name
    path.chmod(0o666)
    with pytest.raises(LocalProtocolError, match=f"others can change {name}"):
        Party.open(study.home(3))
    path.chmod(0o600)


def test_a_course_whose_plan_was_exchanged_is_refused(study: CourseStudy) -> None:
    other = rounds(rounds=3, epsilon=2.0, model="distributed")
    (study.home(3) / "course.first.toml").write_text(other.first.to_toml())
    with pytest.raises(PlanError, match="is not the plan that the course was written for"):
        Party.open(study.home(3))


def test_the_session_of_a_round_has_a_name_that_nobody_chooses(study: CourseStudy) -> None:
    folder = Host.open(study.host).folder
    runs = [folder.session(place).run for place in range(3)]
    again = replace(folder, roster=study.roster.renewed())
    assert len({*runs, again.session(0).run}) == 4
    assert folder.session(1).names == study.roster.names
    first = folder.course.first
    assert folder.store(1, first).name == "host/nodes/1"
    assert folder.store(1, replace(first, min_count=1)).plan == first  # what is there already stays


@dataclass(frozen=True)
class Longer(ps.Newton):
    """Rounds that may send more than their plans do."""

    label = "longer"
    longest: Any = None

    @cached_property
    def phases(self) -> Phases:
        """The rounds, with their longest message."""
        (phase,) = super().phases.phases
        return Phases((replace(phase, longest=self.longest),), self.retries)


def test_a_course_whose_later_message_is_too_long_is_refused_before_its_first_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a session sends may follow from releases: the longest that it can send is known before."""
    short: Any = SAMPLES["newton"]
    wider = replace(short.schema, features=3 * short.schema.features)
    terms = {"cohort": short.first.cohort, "privacy": short.first.privacy}
    course = Longer(short.first, short.rounds, longest=ps.Newton.full_plan(schema=wider, **terms))
    people = tuple(bytes([place + 1]) * 32 for place in range(short.first.cohort.clients))
    roster = Roster(people, server=b"s" * 32, run=b"a run of sixteen")
    monkeypatch.setattr(folder_documents, "UPLOAD_LIMIT", short.first.masking.upload_bytes)
    check_course(short, roster)
    refused(DataError, "an upload has .* this engine carries", check_course, course, roster)


def test_a_split_is_priced_by_the_dearest_session_of_every_place() -> None:
    """A retry may move a session to a place whose priced plan costs less under the other adjacency."""
    for course in SAMPLES.values():
        for adjacency in ("add-remove", "replace-one"):
            noisy = [[(plan.schema, plan.noise) for plan in plans if plan.noise] for plans in plans_by_place(course)]
            known = [[joint_mu(schema, noise.sigma, adjacency) for schema, noise in plans] for plans in noisy if plans]
            if known:
                assert _mu(course, adjacency) == pytest.approx(math.hypot(*map(max, known)), rel=1e-12)


def test_a_round_that_has_no_room_is_one_sentence(study: CourseStudy) -> None:
    folder = Folder.open(study.home(0))
    (study.home(0) / "nodes").write_text("in the way")
    with pytest.raises(PrivstatsError, match="cannot make .*nodes/0: .*nothing was sent"):
        folder.store(0, folder.course.first)


def test_a_label_that_is_no_class_ends_nobodys_part(tmp_path: Path) -> None:
    """The mean reads no labels, and the second session leaves that record out: no party is absent for one label."""
    study = course_study(tmp_path, ps.Centred.within(plan_of(model="distributed")))
    X, y = study.shards[0]
    np.savez(study.home(0) / "records.npz", X=X, y=np.where(np.arange(len(y)), y, C))
    for peer in (0, 1):
        folder = Folder.open(study.home(peer)).store(0, study.course.first)
        if peer:
            assert records_of(folder).moments == ps.measure(folder.plan.schema, *study.shards[1])
            continue
        with pytest.warns(UnreadableRecordsWarning, match="^1 of the records"):
            assert records_of(folder).moments == ps.measure(folder.plan.schema, *study.shards[0])


def test_a_file_that_changes_between_two_sessions_is_a_warning_at_its_party(tmp_path: Path) -> None:
    folder = Folder.open(course_study(tmp_path).home(0))
    file = folder.home / "ward.csv"
    file.write_text("age\n40\n")
    first, second = (RoundFolder(folder, place, folder.course.first, bytes(32)) for place in (0, 1))
    assert swapped(second, file) == "", "nothing is noted yet"
    assert [swapped(each, file) for each in (first, second, second)] == ["", "", ""]
    note = (folder.home / CHECKED_FILE).read_bytes()
    file.write_text("age\n41\n")
    assert "ward.csv has changed since the first session of this course read it" in swapped(second, file)
    assert (folder.home / CHECKED_FILE).read_bytes() == note
    assert swapped(first, file) == "", "a course that has sent nothing begins with the new file"
    assert swapped(second, file) == ""
