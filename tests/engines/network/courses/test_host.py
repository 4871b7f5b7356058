"""A course over folders: round after round, equal to the same course in memory, and resumed wherever it was killed."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.alignment import Alignment
from privstats.engines.journal import JournaledServer
from privstats.engines.network.folder import Folder
from privstats.engines.network.host import Host
from privstats.engines.network.round_host import Waiting
from privstats.engines.network.study import LocalTransport
from privstats.engines.network.transport import Deadlines
from privstats.errors import (
    AggregationError,
    LocalProtocolError,
    NothingToResumeError,
    RestoredError,
    SessionEndedError,
)
from tests import made
from tests.course.cases import CLIENTS, OF_CELLS, RIDGE, SOFTMAX, plan_of, rounds, tables
from tests.engines.network.courses.study import DATASET, CourseStudy, course_study, open_account
from tests.engines.network.fake import FolderNet, study_of
from tests.faults import killed_in_a_child


def exact(study: CourseStudy, releases: Any) -> list[tuple[int, ...] | None]:
    """Who is in each release, after it was held against the records on every integer."""
    for place, release in enumerate(releases):
        if release is not None:
            plan = Host.open(study.host).folder.round(place).plan  # with the published values
            assert np.array_equal(release.vector, study.exact(plan, release.survivors))
    return [release and release.survivors for release in releases]


EVERYBODY = tuple(range(CLIENTS))


@pytest.mark.ci
@pytest.mark.parametrize("schema", [SOFTMAX, pytest.param(RIDGE, marks=pytest.mark.nightly)], ids=["class", "ridge"])
@pytest.mark.usefixtures("silent")
def test_a_whole_course_over_folders_is_the_course_in_memory_on_every_integer(schema: Any, tmp_path: Path) -> None:
    study = course_study(tmp_path, schema=schema)
    found = FolderNet(study).ended().releases
    beside = ps.simulate(study.course, study.shards)
    assert len(found) == study.course.most == 3
    for release, same in zip(found, beside, strict=True):
        assert release.plan.digest == same.plan.digest
        assert np.array_equal(release.vector, same.vector)
    for peer in range(CLIENTS):
        assert study.account(peer).entries[0].begun == (0, 1, 2)
        assert study.account(peer).mu == pytest.approx(study.course.mu)


@pytest.mark.usefixtures("silent")
def test_a_mean_first_is_carried_like_any_course(tmp_path: Path) -> None:
    """Every party finds the same mean, to the bit, and puts it in front of the second session."""
    study = course_study(tmp_path, ps.Centred.within(plan_of(model="distributed")))
    found, beside = FolderNet(study).ended().releases, ps.simulate(study.course, study.shards)
    assert [release.plan == same.plan for release, same in zip(found, beside, strict=True) if release and same] == [
        True,
        True,
    ]
    assert exact(study, found) == [EVERYBODY] * 2
    assert [study.account(peer).mu for peer in range(CLIENTS)] == pytest.approx([study.course.mu] * CLIENTS)


@pytest.mark.ci
@pytest.mark.usefixtures("silent")
@pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
def test_cut_points_and_what_follows_are_carried_like_any_course(tmp_path: Path, fails: Any) -> None:
    """Raw tables at the parties; one count session ends without a sum, and everybody goes on with the same cells."""
    course = ps.Binned.within(plan_of(OF_CELLS, model="distributed"), "centred", expected_records=600, sessions=2)
    study = course_study(tmp_path, course)
    fails(study)
    for peer, (X, y) in enumerate(tables()):
        study.shards[peer] = (rows := np.array([X[name] for name in ("age", "Sodium", "ill", "ward")], object).T, y)
        np.savez(study.home(peer) / "records.npz", X=rows.astype(str), y=y)

    found = FolderNet(study).ended().releases
    assert [each and each.plan.schema.task for each in found] == ["counts", None, "mean", "classes"]
    assert course.next([found[0], None]) == found[2].plan
    assert ps.heads.LDA().fit_release(found).provenance_.course == course.digest
    assert [study.account(peer).mu for peer in range(CLIENTS)] == pytest.approx([course.mu] * CLIENTS)


@pytest.mark.ci
@pytest.mark.parametrize("lost", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.usefixtures("silent")
def test_a_mean_before_rounds_is_carried_and_they_go_on_where_it_is_lost(
    lost: bool, tmp_path: Path, fails: Any
) -> None:
    course = rounds(RIDGE, 2, model="distributed", expected_records=20)
    assert course.mean is not None
    study = course_study(tmp_path, course, schema=RIDGE)
    if lost:
        fails(study)

    found = FolderNet(study).ended()
    assert exact(study, found.releases) == [EVERYBODY, None if lost else EVERYBODY, EVERYBODY, EVERYBODY]
    assert ps.heads.RefinedRidge().fit_releases(found.releases).rounds_ == 2
    assert study.account(0).entries[0].begun == (0, 1, 2, 3)
    assert study.account(0).mu == pytest.approx(course.mu)


SHRUNK = ps.GaussianSchema(6, 4.0, shrinkage=0.1, rounds=1)
NINE = ps.Cohort(9, 8, 600)


@pytest.mark.ci
@pytest.mark.usefixtures("silent")
def test_an_alignment_under_a_promise_is_carried_like_any_course(tmp_path: Path) -> None:
    """One client's Gaussians: the epsilon is beyond use, so that a small cohort gets past the plan's checks."""
    privacy = made.promise("distributed", unit="client", max_records_per_client=200, client_clip=100.0)
    course = Alignment(made.plan(SHRUNK, ps.Cohort(5, 4, 600), privacy))
    study = course_study(tmp_path, course)
    found, beside = FolderNet(study).ended().releases, ps.simulate(course, study.shards)
    assert [np.array_equal(a.vector, b.vector) for a, b in zip(found, beside, strict=True) if a and b] == [True, True]


@pytest.mark.ci
def test_an_alignment_without_noise_is_over_the_clients_of_its_first_sum(tmp_path: Path) -> None:
    """Every party remembers which list it signed, and signs no other: who came late is in no round."""
    course = Alignment(made.plan(SHRUNK, NINE))
    study = course_study(tmp_path, course)
    net = FolderNet(study)
    net.comes = {108: 100_000.0}

    def meanwhile(node: int, kind: str) -> None:
        if len(Host.open(study.host).folder.rounds) == 2:
            net.comes = {}

    net.meanwhile = meanwhile
    assert exact(study, net.ended().releases) == [tuple(range(8))] * 2
    folder = Folder.open(study.home(0)).round(1)
    assert folder.agreed == tuple(range(8))
    assert Folder.open(study.home(8)).round(1).agreed is None
    assert Folder.open(study.home(0)).round(0).agreed is None
    (study.home(0) / "nodes" / "0" / "agreed").write_bytes(b"[")
    with pytest.raises(LocalProtocolError, match="agreed is damaged"):
        assert folder.agreed


@pytest.mark.ci
@pytest.mark.usefixtures("silent")
def test_with_helpers_it_is_the_same_course(tmp_path: Path) -> None:
    study = course_study(tmp_path, helpers=2)
    net = FolderNet(study)
    assert exact(study, net.ended().releases) == [EVERYBODY] * 3
    assert not any(net.logs.values())


@pytest.mark.ci
def test_over_a_rehearsal_in_one_process_with_noise(tmp_path: Path) -> None:
    study = course_study(tmp_path)
    box = LocalTransport({100 + peer: study.home(peer) for peer in range(CLIENTS)})
    host = Host.open(study.host)
    found = host.run(box, Deadlines(), sleep=lambda _: None, say=lambda _: None)
    assert found.sentence == "the course ended after 3 rounds: host/nodes/{0,1,2}/release.safetensors"
    for place in range(3):
        path = study.host / "nodes" / str(place) / "release.safetensors"
        assert ps.Release.load(path, signed_by=study.server.public) == found.releases[place]  # type: ignore[union-attr]
    assert ps.heads.RefinedSoftmax().fit_releases(found.releases).rounds_ == 2  # type: ignore[union-attr]
    with pytest.raises(SessionEndedError, match="the course ended after 3 rounds: .* A new one needs a new run name"):
        host.run(box, Deadlines(), sleep=lambda _: None, say=lambda _: None)


@pytest.mark.ci
@pytest.mark.usefixtures("silent")
def test_a_party_that_is_absent_in_one_round_is_back_in_the_next(tmp_path: Path) -> None:
    """It has seen neither the plans nor the sums of the two that it missed, and is sent them with the third."""
    study = course_study(tmp_path)
    net = FolderNet(study)
    net.comes = {102: 100_000.0}

    def meanwhile(node: int, kind: str) -> None:
        if len(Host.open(study.host).folder.rounds) == 3:
            net.comes = {}

    net.meanwhile = meanwhile
    assert exact(study, net.ended().releases) == [(0, 1, 3, 4), (0, 1, 3, 4), EVERYBODY]
    assert study.account(2).entries[0].begun == (2,)
    assert study.account(2).mu == pytest.approx(study.course.mu)  # who was in fewer rounds is charged the whole
    assert "lacks releases" not in "".join(net.lines)


@pytest.mark.ci
@pytest.mark.usefixtures("silent")
def test_too_few_in_a_round_wait_and_the_next_run_goes_on_with_the_same_plan(tmp_path: Path) -> None:
    study = course_study(tmp_path)
    net = FolderNet(study)

    def meanwhile(node: int, kind: str) -> None:
        if len(Host.open(study.host).folder.rounds) == 2:
            net.goes = {101: 0.0, 103: 0.0}

    net.meanwhile = meanwhile
    found = net.run()
    assert isinstance(found, Waiting)
    assert found.sentence.startswith(
        "course, round 1: step advertise: 3 of 5 answered, the plan needs 4; missing: 1 (Bonn), 3"
    )
    assert found.sentence.endswith('"flwr run study/app study" goes on from here')
    plan = (study.host / "nodes" / "1" / "plan.toml").read_bytes()
    net.meanwhile, net.goes = lambda *_: None, {}
    assert exact(study, net.ended().releases) == [EVERYBODY] * 3
    assert (study.host / "nodes" / "1" / "plan.toml").read_bytes() == plan


def killed_at(study: CourseStudy, message: int) -> None:
    """The server is killed as it sends the message of a number."""
    killed_in_a_child(FolderNet(study).run, message, "tests.engines.network.fake.FakeNet.push")


# 5 parties, 6 steps and a farewell to each: a round is 35 messages. In it, as it ends, as it begins, one after another.
NIGHTLY = [pytest.param(each, marks=pytest.mark.nightly) for each in ((35,), (36,), (51, 7, 12), (5,), (70, 1), (98,))]


@pytest.mark.ci
@pytest.mark.parametrize("messages", [(13,), *NIGHTLY], ids=str)
@pytest.mark.usefixtures("silent")
def test_a_server_killed_inside_a_round_or_between_two_goes_on_to_the_same_end(messages: Any, tmp_path: Path) -> None:
    study = course_study(tmp_path)
    for message in messages:
        killed_at(study, message)
    assert exact(study, FolderNet(study).ended().releases) == [EVERYBODY] * 3
    assert all(study.account(peer).entries[0].begun == (0, 1, 2) for peer in range(CLIENTS))


@pytest.mark.nightly
def test_killed_in_the_last_farewell_it_is_said_again(tmp_path: Path) -> None:
    """All is released, and nobody but the first party has heard that it is over: the others keep a last answer."""
    study = course_study(tmp_path)
    killed_at(study, 102)
    kept = [kept_bytes(study, peer) for peer in range(CLIENTS)]
    assert kept[0] < min(kept[1:])
    with pytest.raises(SessionEndedError, match="the course ended after 3 rounds"):
        FolderNet(study).run()
    assert [kept_bytes(study, peer) for peer in range(1, CLIENTS)] < kept[1:]


def kept_bytes(study: CourseStudy, peer: int) -> int:
    (journal,) = [path for path in (study.home(peer) / "nodes" / "2" / "sessions").iterdir() if not path.suffix]
    return journal.stat().st_size


@pytest.mark.nightly
@pytest.mark.usefixtures("silent")
def test_a_round_that_is_given_up_ends_without_a_sum_and_the_course_goes_on(tmp_path: Path) -> None:
    study = course_study(tmp_path, rounds(rounds=2, retries=1, model="distributed"))
    with pytest.raises(NothingToResumeError, match="no round of the course is on"):
        Host.open(study.host).give_up()
    killed_at(study, 45)
    assert Host.open(study.host).give_up().startswith("course, round 1: this session ended on ")
    net = FolderNet(study)
    found = net.ended()
    assert exact(study, found.releases) == [EVERYBODY, None, EVERYBODY, EVERYBODY]
    assert found.sentence == "the course ended after 4 rounds, 1 without a sum: host/nodes/{0,2,3}/release.safetensors"
    assert study.account(0).entries[0].begun == (0, 1, 2, 3)


def test_the_journal_of_a_round_that_was_put_back_names_the_folder_that_the_command_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put_back(*_: Any, **__: Any) -> Any:
        raise RestoredError("put back")

    monkeypatch.setattr(JournaledServer, "resume_or_create", put_back)
    remedy = f'"privstats flower give-up {tmp_path}/study/host"'
    with pytest.raises(RestoredError, match=f"^host/nodes/0/journal was put back .* {remedy}$"):
        FolderNet(course_study(tmp_path)).run()


@pytest.mark.nightly
@pytest.mark.usefixtures("silent")
def test_a_sum_that_is_not_released_is_a_round_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, real = course_study(tmp_path), ps.plan.check_plausible

    def implausible(plan: Any, vector: Any) -> None:
        if plan.published is not None and len(Host.open(study.host).folder.rounds) == 2:
            raise AggregationError("unmask", "implausible", "an entry is beyond what honest clients can give")
        real(plan, vector)

    monkeypatch.setattr("privstats.session.unmasked.check_plausible", implausible)
    found = FolderNet(study).ended()
    assert exact(study, found.releases) == [EVERYBODY, None, EVERYBODY]


@pytest.mark.ci
@pytest.mark.usefixtures("silent")
def test_a_session_that_fails_is_a_round_without_a_sum(tmp_path: Path, fails: Any) -> None:
    study = course_study(tmp_path)
    fails(study)

    net = FolderNet(study)
    assert exact(study, net.ended().releases) == [EVERYBODY, None, EVERYBODY]
    assert "course, round 1: aggregation aborted at step 'unmask' (implausible): not today" in net.lines


@pytest.mark.ci
def test_a_central_server_marks_its_rounds_and_draws_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = course_study(tmp_path, rounds())
    open_account(study.host)
    draws: list[int] = []
    real = ps.dp.draw_central

    def drawn(noise: Any, layout: Any, rng: Any) -> Any:
        draws.append(0)
        return real(noise, layout, rng)

    monkeypatch.setattr("privstats.dp.draw_central", drawn)
    FolderNet(study).ended()
    assert len(draws) == 3
    folder = Host.open(study.host).folder
    assert folder.round(0).release_charge().place == 0  # asked again, as after a kill, it marks nothing again
    account = folder.ledger.account(DATASET)
    assert account.entries[0].begun == (0, 1, 2)
    assert [place for place, _ in account.entries[0].uploads] == [0, 1, 2]
    with pytest.raises(ps.LedgerError, match="round 0 of this course has sent another upload"):
        folder.round(0).release_charge().finish(folder.round(0).plan, b"", b"a release of another sum")
    assert account.mu == pytest.approx(study.course.mu)


def test_a_central_server_whose_journal_is_gone_draws_no_second_noise(tmp_path: Path) -> None:
    study = course_study(tmp_path, rounds())
    open_account(study.host)
    killed_at(study, 32)  # in the farewell of the first round: all is on the disk
    node = study.host / "nodes" / "0"
    assert Host.open(study.host).folder.round(0).begun
    (node / "ended.json").unlink()
    shutil.rmtree(node / "journal")
    (node / "release.safetensors").unlink()
    found = FolderNet(study).ended()
    assert found.releases == (None,)  # and without its first release no course goes on


def test_a_folder_says_which_of_the_two_it_is(tmp_path: Path) -> None:
    assert Host.open(course_study(tmp_path / "a").host).folder.noun == "course"
    assert Host.open(study_of(tmp_path / "b").host).folder.noun == "plan"
    study = course_study(tmp_path / "c")
    shutil.copy(study.home(0) / "identity.pem", study.host / "identity.pem")
    with pytest.raises(LocalProtocolError, match="is not the server's on roster.toml"):
        Host.open(study.host)
