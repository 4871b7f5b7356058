"""A stream in a folder: it goes on where it stood after any kill, and nothing is sent twice."""

import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.streams import Stream
from privstats.contrib.streams import stream as weighing
from privstats.contrib.streams.local_stream import DATASET, new_stream, run_epoch, server_folder
from privstats.contrib.streams.totals import Totals
from privstats.dp import Ledger
from privstats.encoding import flatten
from privstats.engines.journal import JournaledClient
from privstats.engines.network import study as study_files
from privstats.engines.network.folder import Folder
from privstats.engines.network.party import answer as answered
from privstats.errors import DataError, LedgerError, LocalProtocolError, PlanError, ReleaseError, SessionEndedError
from privstats.secagg import Identity
from tests import made
from tests.contrib.streams.streams import CLASSES
from tests.course.cases import promise
from tests.faults import killed, killed_in_a_child

COHORT = ps.Cohort(3, 2, 500)


def plan_of(privacy: Any = None) -> ps.Plan:
    return made.plan(CLASSES, COHORT, privacy)


def exact(epochs: int = 2) -> Stream:
    return Stream(plan_of(), epochs, deletions=True, allow_disclosing_leavers=True)


class Records:
    """What the parties bring, epoch by epoch, as folders; and all that is in."""

    def __init__(self, place: Path, seed: int = 0) -> None:
        self.place, self.rng, self.inside = place, np.random.default_rng(seed), {}

    def epoch(self, number: int, present: Any = (0, 1, 2), leave: Any = ()) -> Path:
        folder = self.place / f"changes-{number}"
        folder.mkdir()
        for party in range(3):
            ids = [f"{number}/{party}/{place}" for place in range(6)]
            X, y = self.rng.normal(size=(6, 4)), self.rng.integers(0, 3, 6)
            gone = [each for each in leave if each.split("/")[1] == str(party)]
            if party in present:
                np.savez(folder / f"{party}.npz", ids=ids, X=X, y=y, leave=np.array(gone, dtype="U20"))
                self.inside |= dict(zip(ids, zip(X, y, strict=True), strict=True))
                for each in gone:
                    del self.inside[each]
        return folder

    def afresh(self) -> Any:
        X, y = zip(*self.inside.values(), strict=True)
        return ps.measure(CLASSES, np.array(X), np.array(y))


def study_of(path: Path, stream: Stream) -> Path:
    new_stream(path, stream)
    return path


def whole_of(study: Path) -> Any:
    folder, stream = server_folder(study)
    return stream.total(folder.releases_so_far())


def totals_of(study: Path) -> Totals:
    """What the server weighs; its seed is drawn before the first epoch."""
    folder, stream = server_folder(study)
    totals = folder.store(0, stream.first).totals
    assert isinstance(totals, Totals)
    totals.seed()
    return totals


def release_path(study: Path, place: int) -> Path:
    return study / "host" / "nodes" / str(place) / "release.safetensors"


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path)


def test_parties_come_and_go_and_the_total_is_measuring_afresh(tmp_path: Path, records: Records) -> None:
    study = study_of(tmp_path / "study", exact(3))
    assert [each.survivors for each in run_epoch(study, records.epoch(0)) if each] == [(0, 1, 2)]
    assert [each.survivors for each in run_epoch(study, records.epoch(1), away=[2]) if each] == [(0, 1)]
    run_epoch(study, records.epoch(2, leave=["0/0/1", "0/2/0"]))
    assert np.array_equal(whole_of(study).vector, flatten(records.afresh()))
    with pytest.raises(PlanError, match="has ended"):
        run_epoch(study, records.epoch(3))


@pytest.mark.parametrize("private", [False, True], ids=["exact", "private"])
def test_a_party_without_a_file_is_in_the_sum_like_any_other(
    tmp_path: Path, records: Records, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is in a sum is public: absent for want of records, a party said that it had none that day."""
    said = defaultdict[str, list[tuple[Any, int]]](list)  # what the server hears of each in an epoch: steps, and bytes

    def answer(home: Path, kind: Any, data: bytes, **named: Any) -> Any:
        reply = answered(home, kind, data, **named)
        said[home.name].append((kind, len(reply.data)))
        return reply

    monkeypatch.setattr(study_files, "answer", answer)
    stream = Stream(plan_of(promise(epsilon=20.0)), 2) if private else exact()
    study, epochs = study_of(tmp_path / "study", stream), []
    for number, bring in enumerate(((0,), ())):
        (release,) = run_epoch(study, records.epoch(number, bring))
        assert release.survivors == (0, 1, 2)
        epochs.append(dict(said))
        said.clear()
    # How many links a party sends follows from its place, so each is compared with itself: party 0 with its records.
    assert epochs[0] == epochs[1]
    assert set(epochs[0]) == {"0", "1", "2"}
    assert len({tuple(step for step, _ in each) for each in epochs[0].values()}) == 1
    if not private:
        assert np.array_equal(whole_of(study).vector, flatten(records.afresh()))


def test_a_file_of_no_party_is_named_before_the_epoch_begins(tmp_path: Path, records: Records) -> None:
    study = study_of(tmp_path / "study", exact())
    changes = records.epoch(0)
    shutil.move(changes / "0.npz", changes / "3.npz")
    with pytest.raises(DataError, match=r"3\.npz, of no party: parties are 0 to 2.*rename that file"):
        run_epoch(study, changes)
    shutil.move(changes / "3.npz", changes / "0.npz")
    assert [each.survivors for each in run_epoch(study, changes) if each] == [(0, 1, 2)]


def test_a_party_without_a_file_sends_what_it_owes_from_an_epoch_in_which_it_was_away(
    tmp_path: Path, records: Records
) -> None:
    study = study_of(tmp_path / "study", exact())
    run_epoch(study, records.epoch(0), away=[1])
    assert [each.survivors for each in run_epoch(study, records.epoch(1, (0,))) if each] == [(0, 1, 2)]
    assert np.array_equal(whole_of(study).vector, flatten(records.afresh()))
    with pytest.raises(PlanError, match="away names parties from 0 to 2, got 3"):
        run_epoch(study_of(tmp_path / "other", exact()), records.epoch(2), away=[3])


def test_what_a_party_owes_and_brings_is_looked_at_before_the_epoch_begins(tmp_path: Path, records: Records) -> None:
    """In the round it was refused there, and the party was missing from the sum: one record decided who is in it."""
    small = made.plan(CLASSES, ps.Cohort(3, 2, 30), promise(epsilon=20.0))
    study = study_of(tmp_path / "study", Stream(small, 3, deletions=True))  # room for ten of each party in an epoch
    run_epoch(study, records.epoch(0), away=[1])
    with pytest.raises(DataError, match="with party 1 the next epoch would move 12 of this party's records"):
        run_epoch(study, records.epoch(1))
    assert [each.survivors for each in run_epoch(study, records.epoch(2, ())) if each] == [(0, 1, 2)]


@pytest.mark.ci
@pytest.mark.parametrize("mechanism", ["tree", "square-root"])
def test_noisy_streams_run_in_a_folder_and_are_spent_before_they_begin(
    tmp_path: Path, records: Records, mechanism: Any
) -> None:
    stream = Stream(plan_of(promise(epsilon=20.0)), 2, mechanism)
    study = study_of(tmp_path / "study", stream)
    assert Ledger.open(study / "0" / "ledger").account(DATASET).mu == pytest.approx(stream.mu)
    for number in range(2):
        run_epoch(study, records.epoch(number))
    total, truth = whole_of(study), records.afresh().real()
    assert np.abs(total.moments.N - truth.N).max() < 5 * total.sigma["N"]
    assert Ledger.open(study / "0" / "ledger").account(DATASET).mu == pytest.approx(stream.mu)
    key = Folder.open(study / "host").roster.server
    assert ps.Release.load(release_path(study, 0), signed_by=key, plan=stream.first).survivors == (0, 1, 2)


def test_a_course_that_weighs_and_is_no_stream_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sums were released as they are, with noise that is sized for weighed ones."""
    study = study_of(tmp_path / "study", Stream(plan_of(promise(epsilon=20.0)), 2, "square-root"))
    monkeypatch.setattr("privstats.contrib.streams.totals.Stream", ps.Rounds)
    with pytest.raises(PlanError, match="weighs the sums of a stream only; Stream declares that it weighs"):
        totals_of(study)


def test_a_release_that_was_deleted_after_the_end_is_not_drawn_again(tmp_path: Path, records: Records) -> None:
    """The seed went with the journal, once the release was on the disk: nobody takes the noise off it later."""
    study = study_of(tmp_path / "study", Stream(plan_of(promise(epsilon=20.0)), 2))
    changes = records.epoch(0)
    run_epoch(study, changes)
    assert list((study / "host" / "nodes" / "0" / "journal").iterdir()) == []
    release_path(study, 0).rename(tmp_path / "release")
    with pytest.raises(ReleaseError, match=r"release.safetensors"):
        run_epoch(study, changes)
    (tmp_path / "release").rename(release_path(study, 0))
    assert len(run_epoch(study, records.epoch(1))) == 1


def counts_of(changes: Path, party: int) -> np.ndarray:
    """A party's exact counts."""
    batch = np.load(changes / f"{party}.npz")
    return np.asarray(ps.measure(CLASSES, batch["X"], batch["y"]).real().N)


@pytest.mark.ci
@pytest.mark.parametrize("mechanism", ["increments", "square-root"])
def test_attack_a_copied_folder_run_with_and_without_a_party(
    tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch, mechanism: Any
) -> None:
    """The seed of all epochs is on the disk: bound to the epoch alone, its noise would cancel in the difference."""
    changes = records.epoch(0)
    without = Path(shutil.copytree(changes, tmp_path / "without"))
    (without / "2.npz").unlink()

    def stolen(name: str) -> np.ndarray:
        study = study_of(tmp_path / name, Stream(plan_of(promise(epsilon=1.0)), 2, mechanism))
        if mechanism == "square-root":
            totals_of(study)
        copied = Path(shutil.copytree(study, tmp_path / f"{name} copied"))
        (one,) = run_epoch(study, changes)
        with pytest.raises(LedgerError, match="restored from a backup, or copied"):
            run_epoch(copied, without, away=[2])
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"{name} elsewhere"))  # on another machine
        (two,) = run_epoch(copied, without, away=[2])
        return np.asarray(one.moments.N - two.moments.N)

    exact = counts_of(changes, 2)
    assert np.abs(stolen("ours") - exact).max() > 0.5  # an old folder's counts were right to a tenth of a record
    if mechanism == "square-root":
        monkeypatch.setattr(weighing, "bytes_of_sums", lambda sums: b"")
        assert np.abs(stolen("double") - exact).max() < 0.01


def test_an_epoch_is_weighed_for_one_list_of_sums(tmp_path: Path, records: Records) -> None:
    """The same sums again are the same release; others would be a second draw that nobody has paid for."""
    study = study_of(tmp_path / "study", Stream(plan_of(promise(epsilon=20.0)), 2, "square-root"))
    (release,) = run_epoch(study, records.epoch(0))
    totals = totals_of(study)
    total = totals._stored(0)
    assert replace(totals.weighed((total, (0, 1, 2)), []), run=release.run) == release
    with pytest.raises(LocalProtocolError, match="sampled for other sums"):
        totals.weighed((total, (0, 1)), [])
    total.add(total)
    with pytest.raises(LocalProtocolError, match="sampled for other sums"):
        totals.weighed((total, (0, 1, 2)), [])
    assert totals._stored(0) != total


def test_attack_a_second_draw_from_a_second_seed(tmp_path: Path, records: Records) -> None:
    """Two releases of one epoch with independent noise cost twice: a seed that is gone, or replaced, ends the epoch."""
    study = study_of(tmp_path / "study", Stream(plan_of(promise(epsilon=20.0)), 2, "square-root"))
    (release,) = run_epoch(study, records.epoch(0))
    totals = totals_of(study)
    seed, summed = study / "host" / "seed", (totals._stored(0), (0, 1, 2))
    kept = seed.read_bytes()
    seed.unlink()
    with pytest.raises(LocalProtocolError, match="another seed would be a second sample"):
        totals.seed()
    Totals(tmp_path, totals.stream, totals.key).seed()  # the same folder before any node, or another one's seed
    shutil.copy(tmp_path / "seed", seed)
    with pytest.raises(LocalProtocolError, match="from another seed"):
        totals.weighed(summed, [])
    seed.write_bytes(kept)
    assert replace(totals.weighed(summed, []), run=release.run) == release


@pytest.mark.parametrize("left", ["drawn", "total"])
def test_attack_what_an_epoch_was_drawn_for_is_half_gone(tmp_path: Path, records: Records, left: str) -> None:
    study = study_of(tmp_path / "study", Stream(plan_of(promise(epsilon=20.0)), 2, "square-root"))
    run_epoch(study, records.epoch(0))
    totals = totals_of(study)
    summed = (totals._stored(0), (0, 1, 2))
    (study / "host" / "nodes" / ("0.total" if left == "drawn" else "0.drawn")).unlink()
    if left == "total":
        with pytest.raises(LocalProtocolError, match="second sample"):
            totals.weighed(summed, [])
    (study / "host" / "seed").unlink()
    with pytest.raises(LocalProtocolError, match="another seed would be a second sample"):
        totals.seed()


PLACES = [
    ("privstats.dp.ledger.file.Log.append", 2),  # while records are noted
    ("privstats.dp.ledger.file.Log.append", 9),  # as a node is marked
    ("privstats.engines.journal.JournaledClient._write", 1),  # marked, not journaled
    ("privstats.engines.journal.JournaledClient._write", 5),
    ("privstats.contrib.streams.RegistryCharge.finish", 2),  # as the second vector leaves
    ("privstats.engines.journal.JournaledServer.end_step", 3),
    ("privstats.engines.journal.JournaledServer.end_step", 5),
    ("privstats.release.Release.save", 1),  # unmasked, not kept
    ("privstats.engines.network.session_end.SessionHistory.add", 1),  # kept, and not said to have ended
]
DAILY = {"_write 1", "finish 2", "save 1"}


def case(place: str, count: int) -> Any:
    name = f"{place.rpartition('.')[2]} {count}"
    return pytest.param(place, count, id=name, marks=() if name in DAILY else pytest.mark.nightly)


@pytest.mark.ci
@pytest.mark.parametrize(("place", "count"), [case(*place) for place in PLACES])
def test_a_kill_anywhere_loses_no_record_and_sends_none_twice(
    tmp_path: Path, records: Records, place: str, count: int
) -> None:
    study, changes = study_of(tmp_path / "study", exact()), records.epoch(0)
    killed_at(study, changes, place, count)
    run_epoch(study, changes)
    run_epoch(study, records.epoch(1))
    assert None not in server_folder(study)[0].releases_so_far()
    assert np.array_equal(whole_of(study).vector, flatten(records.afresh()))


def killed_at(study: Path, changes: Path, place: str, count: int = 1) -> None:
    killed_in_a_child(lambda: run_epoch(study, changes), count, place)


def test_a_central_server_that_is_killed_draws_the_noise_that_it_has_drawn(tmp_path: Path, records: Records) -> None:
    """After the first draw, and before its end is kept: the seed has been on the disk since before the mark."""
    study, changes = study_of(tmp_path / "study", Stream(plan_of(promise(epsilon=20.0)), 2)), records.epoch(0)
    killed_at(study, changes, "privstats.engines.journal.server_view.SessionOutputs._settle")
    ((entry,),) = (account.entries for account in Ledger.open(study / "host" / "ledger").accounts())
    assert entry.begun == (0,)
    killed_at(study, changes, "privstats.engines.network.session_end.SessionHistory.add")
    drawn = ps.Release.load(release_path(study, 0))
    release_path(study, 0).unlink()
    lost = Path(shutil.copytree(study, tmp_path / "lost"))
    assert run_epoch(study, changes) == [drawn]
    shutil.rmtree(lost / "host" / "nodes" / "0" / "journal")  # without the seed, a second sum would be a second draw
    assert run_epoch(lost, changes) == [None]


def test_an_epoch_with_too_few_parties_has_no_sum_and_its_records_come_later(tmp_path: Path, records: Records) -> None:
    study = study_of(tmp_path / "study", exact())
    assert run_epoch(study, records.epoch(0), away=[0, 2]) == [None]
    run_epoch(study, records.epoch(1))
    assert server_folder(study)[0].releases_so_far()[0] is None
    assert np.array_equal(whole_of(study).vector, flatten(records.afresh()))


def test_killed_while_an_epoch_is_given_up_the_next_one_is_not_used_up(tmp_path: Path, records: Records) -> None:
    """The session is known to have ended, and what came of the node is not written yet."""
    study, changes = study_of(tmp_path / "study", exact(3)), records.epoch(0)
    with killed("privstats.engines.network.folder.Folder.store_outcome"):
        run_epoch(study, changes, away=[0, 2])
    with pytest.raises(DataError, match="a second time"):
        run_epoch(study, changes)
    assert [each.survivors for each in run_epoch(study, records.epoch(1)) if each] == [(0, 1, 2)]
    assert server_folder(study)[0].releases_so_far()[0] is None
    assert np.array_equal(whole_of(study).vector, flatten(records.afresh()))


def test_a_party_whose_machine_has_ended_sends_with_the_next_node(
    tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of(tmp_path / "study", exact())
    real = JournaledClient.resume_or_create

    def ended(path: Path, *arguments: Any, **named: Any) -> Any:
        client = real(path, *arguments, **named)
        if path.is_relative_to(study / "0") or path.is_relative_to(study / "1"):
            return client
        client.close()
        raise SessionEndedError("discarded")

    with monkeypatch.context() as once:
        once.setattr(JournaledClient, "resume_or_create", ended)
        (release,) = run_epoch(study, records.epoch(0))
    assert release.survivors == (0, 1)
    run_epoch(study, records.epoch(1))
    assert np.array_equal(whole_of(study).vector, flatten(records.afresh()))


def test_a_party_that_is_not_there_after_a_kill_sends_with_the_next_node(
    tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node was begun and nothing has left: held for sent, its records would have been in no total any more."""
    study, changes = study_of(tmp_path / "study", exact()), records.epoch(0)

    with killed("privstats.engines.journal.JournaledServer.end_step"):
        run_epoch(study, changes)
    assert [each.survivors for each in run_epoch(study, changes, away=[2]) if each] == [(0, 1)]
    run_epoch(study, records.epoch(1))
    assert np.array_equal(whole_of(study).vector, flatten(records.afresh()))


def test_a_party_may_only_take_records_off(tmp_path: Path, records: Records) -> None:
    study = study_of(tmp_path / "study", exact())
    run_epoch(study, records.epoch(0))
    changes = records.epoch(1, (0, 1))
    nothing = {"ids": np.array([], "U9"), "X": np.zeros((0, 4)), "y": np.zeros(0, int)}
    np.savez(changes / "2.npz", **nothing, leave=["0/2/3"])
    del records.inside["0/2/3"]
    run_epoch(study, changes)
    assert np.array_equal(whole_of(study).vector, flatten(records.afresh()))


def test_what_is_no_change_is_refused_before_anything_has_begun(
    tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of(tmp_path / "study", exact())
    first = records.epoch(0)
    run_epoch(study, first)
    good = dict(np.load(first / "0.npz"))
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    for said, arrays in (
        ("a second time", good),
        ("never entered", {**good, "ids": [f"new {k}" for k in range(6)], "leave": ["nobody"]}),
        ("must hold one id", {**good, "ids": ["a"]}),
        ("arrays ids, X and y", {"ids": good["ids"]}),
        ("arrays ids, X and y", {**good, "more": good["X"]}),
        ("a list of texts", {**good, "ids": good["X"]}),
        ("a list of texts", {**good, "leave": np.zeros(2)}),
        ("columns|features|shape", {**good, "ids": [f"new {k}" for k in range(6)], "X": good["X"][:, :2]}),
    ):
        np.savez(wrong / "0.npz", **arrays)
        with pytest.raises(DataError, match=said):
            run_epoch(study, wrong)
    with monkeypatch.context() as small:
        small.setattr("privstats.files.arrays.MOST_BYTES", 100)
        with pytest.raises(DataError, match="and at most 100 are read"):
            run_epoch(study, wrong)
    (wrong / "0.npz").write_bytes(b"no zip")
    with pytest.raises(DataError, match="cannot read"):
        run_epoch(study, wrong)
    with pytest.raises(PlanError, match="not a folder"):
        run_epoch(study, tmp_path / "nowhere")
    plain = study_of(tmp_path / "plain", Stream(plan_of(), 2))
    run_epoch(plain, first)
    with pytest.raises(DataError, match="without deletions"):
        run_epoch(plain, records.epoch(1, leave=["0/0/1"]))


def test_an_epoch_that_has_begun_takes_no_other_records(tmp_path: Path, records: Records) -> None:
    study, changes = study_of(tmp_path / "study", exact()), records.epoch(0)
    kept = study / "0" / "records" / "0.npz"
    kept.parent.mkdir()
    np.savez(kept, **{**dict(np.load(changes / "0.npz")), "ids": [f"other {k}" for k in range(6)]})
    with pytest.raises(DataError, match="begun epoch 0 with other records"):
        run_epoch(study, changes)


def test_a_folder_that_is_none_or_not_empty_is_refused(tmp_path: Path) -> None:
    study = study_of(tmp_path / "study", exact())
    with pytest.raises(PlanError, match="is not empty"):
        new_stream(study, exact())
    with pytest.raises(LocalProtocolError, match="is no folder of a party or a server"):
        server_folder(tmp_path / "nowhere")
    members = [Identity(bytes([k + 1]) * 32).public.hex() for k in range(3)]
    split = made.plan(CLASSES, COHORT, protocol="split", panel=tuple(members))
    with pytest.raises(PlanError, match="summed interactively"):
        new_stream(tmp_path / "split", Stream(split, 2))
    (study / "stream.toml").write_text("of an earlier version")
    for act in (lambda: server_folder(study), lambda: run_epoch(study, tmp_path)):
        with pytest.raises(PlanError, match="was made by an earlier privstats, with one key for all parties"):
            act()


def test_every_folder_has_a_key_of_its_own_and_opens_alone(tmp_path: Path) -> None:
    """One secret for all of them made whoever read it every party."""
    study = study_of(tmp_path / "study", exact())
    homes = [study / name for name in ("0", "1", "2", "host")]
    folders = [Folder.open(home) for home in homes]
    assert len({each.key for each in folders}) == len({each.identity.public for each in folders}) == 4
    assert {home.stat().st_mode & 0o77 for home in homes} == {0}
    assert [each.identity.public for each in folders] == [*folders[0].roster.publics, folders[0].roster.server]
    assert sorted(path.name for path in study.iterdir()) == ["0", "1", "2", "host"]
