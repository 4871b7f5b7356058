"""A stream in a folder: it goes on where it stood after any kill, and nothing is sent twice."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.course import Stream, weighing
from privstats.dp import Ledger
from privstats.encoding import flatten
from privstats.engines.journal import JournaledClient
from privstats.engines.network.streams import Folder, Totals, run_epoch
from privstats.errors import DataError, LocalProtocolError, PlanError, SessionEndedError
from privstats.secagg import Identity
from tests.course.streams import CLASSES, promise
from tests.faults import killed, killed_in_a_child

ROOT = str(Path(__file__).parents[3])
COHORT = ps.Cohort(3, 2, 500)


def plan_of(privacy: Any = None) -> ps.Plan:
    return ps.Plan(schema=CLASSES, cohort=COHORT, privacy=privacy or ps.NoPrivacy())


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


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path)


def test_parties_come_and_go_and_the_total_is_measuring_afresh(tmp_path: Path, records: Records) -> None:
    folder = Folder.create(tmp_path / "study", exact(3))
    assert [each.survivors for each in run_epoch(folder, records.epoch(0)) if each] == [(0, 1, 2)]
    assert [each.survivors for each in run_epoch(folder, records.epoch(1, (0, 1))) if each] == [(0, 1)]
    run_epoch(folder, records.epoch(2, leave=["0/0/1", "0/2/0"]))
    total = folder.stream.total(Folder(tmp_path / "study").releases())
    assert np.array_equal(total.vector, flatten(records.afresh()))
    with pytest.raises(PlanError, match="has ended"):
        run_epoch(folder, records.epoch(3))


@pytest.mark.parametrize("mechanism", ["tree", "square-root"])
def test_noisy_streams_run_in_a_folder_and_are_spent_before_they_begin(
    tmp_path: Path, records: Records, mechanism: Any
) -> None:
    stream = Stream(plan_of(promise(epsilon=20.0)), 2, mechanism)
    folder = Folder.create(tmp_path / "study", stream)
    account = Ledger.open(tmp_path / "study" / "0" / "ledger.db").account("stream")
    assert account.mu == pytest.approx(stream.mu)
    for number in range(2):
        run_epoch(folder, records.epoch(number))
    total, truth = folder.stream.total(folder.releases()), records.afresh().real()
    assert np.abs(total.moments.N - truth.N).max() < 5 * total.sigma["N"]
    assert Ledger.open(tmp_path / "study" / "0" / "ledger.db").account("stream").mu == pytest.approx(stream.mu)
    key = folder.identity("server").public
    assert ps.Release.load(folder.release_path(0), signed_by=key, plan=stream.first).survivors == (0, 1, 2)
    if mechanism == "square-root":
        before = ps.Release.load(folder.release_path(1))
        folder.release_path(1).unlink()  # lost, and asked for again: the same bytes, not a second draw
        run_epoch(folder, tmp_path / "changes-1")
        assert ps.Release.load(folder.release_path(1)) == before


def counts_of(changes: Path, party: int) -> np.ndarray:
    """A party's exact counts."""
    batch = np.load(changes / f"{party}.npz")
    return np.asarray(ps.measure(CLASSES, batch["X"], batch["y"]).real().N)


@pytest.mark.parametrize("mechanism", ["increments", "square-root"])
def test_attack_a_copied_folder_run_with_and_without_a_party(
    tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch, mechanism: Any
) -> None:
    """The seed of all epochs is on the disk: bound to the epoch alone, its noise would cancel in the difference."""
    changes = records.epoch(0)
    without = Path(shutil.copytree(changes, tmp_path / "without"))
    (without / "2.npz").unlink()

    def stolen(name: str) -> np.ndarray:
        folder = Folder.create(tmp_path / name, Stream(plan_of(promise(epsilon=1.0)), 2, mechanism))
        copied = Folder(Path(shutil.copytree(folder.path, tmp_path / f"{name} copied")))
        (one,), (two,) = run_epoch(folder, changes), run_epoch(copied, without)
        assert one is not None
        assert two is not None
        return np.asarray(one.moments.N - two.moments.N)

    exact = counts_of(changes, 2)
    assert np.abs(stolen("ours") - exact).max() > 0.5  # an old folder's counts were right to a tenth of a record
    if mechanism == "square-root":
        monkeypatch.setattr(weighing, "said_by", lambda sums: b"")
        assert np.abs(stolen("double") - exact).max() < 0.01


def test_an_epoch_is_weighed_for_one_list_of_sums(tmp_path: Path, records: Records) -> None:
    """The same sums again are the same release; others would be a second draw that nobody has paid for."""
    folder = Folder.create(tmp_path / "study", Stream(plan_of(promise(epsilon=20.0)), 2, "square-root"))
    (release,) = run_epoch(folder, records.epoch(0))
    total = folder.totals._kept(0)
    assert folder.totals.weighed((total, (0, 1, 2)), []) == release
    with pytest.raises(LocalProtocolError, match="drawn for other sums"):
        folder.totals.weighed((total, (0, 1)), [])
    total.add(total)
    with pytest.raises(LocalProtocolError, match="drawn for other sums"):
        folder.totals.weighed((total, (0, 1, 2)), [])
    assert folder.totals._kept(0) != total


def test_attack_a_second_draw_from_a_second_seed(tmp_path: Path, records: Records) -> None:
    """Two releases of one epoch with independent noise cost twice: a seed that is gone, or replaced, ends the epoch."""
    folder = Folder.create(tmp_path / "study", Stream(plan_of(promise(epsilon=20.0)), 2, "square-root"))
    (release,) = run_epoch(folder, records.epoch(0))
    seed, summed = tmp_path / "study" / "seed", (folder.totals._kept(0), (0, 1, 2))
    kept = seed.read_bytes()
    seed.unlink()
    with pytest.raises(LocalProtocolError, match="another seed would be a second draw"):
        folder.totals.seed()
    Totals(tmp_path, folder.stream, folder.key).seed()  # the same folder before any node, or another one's seed
    shutil.copy(tmp_path / "seed", seed)
    with pytest.raises(LocalProtocolError, match="from another seed"):
        folder.totals.weighed(summed, [])
    seed.write_bytes(kept)
    assert folder.totals.weighed(summed, []) == release


@pytest.mark.parametrize("left", ["drawn", "total"])
def test_attack_what_an_epoch_was_drawn_for_is_half_gone(tmp_path: Path, records: Records, left: str) -> None:
    folder = Folder.create(tmp_path / "study", Stream(plan_of(promise(epsilon=20.0)), 2, "square-root"))
    run_epoch(folder, records.epoch(0))
    summed = (folder.totals._kept(0), (0, 1, 2))
    (folder.nodes / ("0.total" if left == "drawn" else "0.drawn")).unlink()
    if left == "total":
        with pytest.raises(LocalProtocolError, match="second draw"):
            folder.totals.weighed(summed, [])
    (tmp_path / "study" / "seed").unlink()
    with pytest.raises(LocalProtocolError, match="another seed would be a second draw"):
        folder.totals.seed()


PLACES = [
    ("privstats.dp.ledger_file.Log.append", 5),  # while records are noted
    ("privstats.dp.ledger_file.Log.append", 9),  # as a node is marked
    ("privstats.engines.journal.JournaledClient._write", 1),  # marked, not journaled
    ("privstats.engines.journal.JournaledClient._write", 5),
    ("privstats.course.RegistryCharge.finish", 2),  # as the second vector leaves
    ("privstats.engines.journal.JournaledServer.end_step", 3),
    ("privstats.engines.journal.JournaledServer.end_step", 5),
    ("privstats.release.Release.save", 1),  # unmasked, not kept
]
DAILY = {"_write 1", "finish 2", "save 1"}


def case(place: str, count: int) -> Any:
    name = f"{place.rpartition('.')[2]} {count}"
    return pytest.param(place, count, id=name, marks=() if name in DAILY else pytest.mark.nightly)


@pytest.mark.parametrize(("place", "count"), [case(*place) for place in PLACES])
def test_a_kill_anywhere_loses_no_record_and_sends_none_twice(
    tmp_path: Path, records: Records, place: str, count: int
) -> None:
    folder, changes = Folder.create(tmp_path / "study", exact()), records.epoch(0)
    killed_at(folder, changes, place, count)
    again = Folder(folder.path)
    run_epoch(again, changes)
    run_epoch(again, records.epoch(1))
    releases = again.releases()
    assert None not in releases
    assert np.array_equal(again.stream.total(releases).vector, flatten(records.afresh()))


def killed_at(folder: Folder, changes: Path, place: str, count: int = 1) -> None:
    killed_in_a_child(lambda: run_epoch(Folder(folder.path), changes), count, place)


def test_a_central_server_that_is_killed_draws_the_noise_that_it_has_drawn(tmp_path: Path, records: Records) -> None:
    """After the first draw and before it is kept: the seed has been on the disk since before the mark."""
    folder = Folder.create(tmp_path / "study", Stream(plan_of(promise(epsilon=20.0)), 2))
    changes = records.epoch(0)
    killed_at(folder, changes, "privstats.engines.journal.releasing.Releasing._settle")
    assert folder.server[1].begun == (0,)
    run_epoch(folder, changes)
    (release,) = folder.releases()
    folder.release_path(0).unlink()
    assert run_epoch(folder, changes) == [release]
    folder.release_path(0).unlink()
    shutil.rmtree(folder.nodes / "0.journal")  # without the seed, a second sum would be a second draw
    assert run_epoch(folder, changes) == [None]


def test_an_epoch_with_too_few_parties_has_no_sum_and_its_records_come_later(tmp_path: Path, records: Records) -> None:
    folder = Folder.create(tmp_path / "study", exact())
    assert run_epoch(folder, records.epoch(0, (1,))) == [None]
    run_epoch(folder, records.epoch(1))
    assert folder.releases()[0] is None
    total = folder.stream.total(folder.releases())
    assert np.array_equal(total.vector, flatten(records.afresh()))


def test_a_party_whose_machine_has_ended_sends_with_the_next_node(
    tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder.create(tmp_path / "study", exact())
    real = JournaledClient.resume_or_create

    def ended(path: Path, *arguments: Any, **named: Any) -> Any:
        client = real(path, *arguments, **named)
        if not path.name.endswith("2"):
            return client
        client.close()
        raise SessionEndedError("discarded")

    with monkeypatch.context() as once:
        once.setattr(JournaledClient, "resume_or_create", ended)
        (release,) = run_epoch(folder, records.epoch(0))
    assert release is not None
    assert release.survivors == (0, 1)
    run_epoch(folder, records.epoch(1))
    assert np.array_equal(folder.stream.total(folder.releases()).vector, flatten(records.afresh()))


def test_a_party_that_is_not_there_after_a_kill_sends_with_the_next_node(
    tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node was begun and nothing has left: held for sent, its records would have been in no total any more."""
    folder, changes = Folder.create(tmp_path / "study", exact()), records.epoch(0)

    with killed("privstats.engines.journal.JournaledServer.end_step"):
        run_epoch(folder, changes)
    (changes / "2.npz").unlink()
    assert [each.survivors for each in run_epoch(folder, changes) if each] == [(0, 1)]
    run_epoch(folder, records.epoch(1))
    assert np.array_equal(folder.stream.total(folder.releases()).vector, flatten(records.afresh()))


def test_a_party_may_only_take_records_off(tmp_path: Path, records: Records) -> None:
    folder = Folder.create(tmp_path / "study", exact())
    run_epoch(folder, records.epoch(0))
    changes = records.epoch(1, (0, 1))
    nothing = {"ids": np.array([], "U9"), "X": np.zeros((0, 4)), "y": np.zeros(0, int)}
    np.savez(changes / "2.npz", **nothing, leave=["0/2/3"])
    del records.inside["0/2/3"]
    run_epoch(folder, changes)
    assert np.array_equal(folder.stream.total(folder.releases()).vector, flatten(records.afresh()))


def test_a_file_that_is_too_large_is_not_read_whole(
    tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, changes = Folder.create(tmp_path / "study", exact()), records.epoch(0)
    monkeypatch.setattr("privstats.engines.network.streams.records._MOST_BYTES", 100)
    with pytest.raises(DataError, match="larger than 100 bytes"):
        run_epoch(folder, changes)


def test_what_is_no_change_is_refused_before_anything_has_begun(tmp_path: Path, records: Records) -> None:
    folder = Folder.create(tmp_path / "study", exact())
    first = records.epoch(0)
    run_epoch(folder, first)
    good = dict(np.load(first / "0.npz"))
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    for said, arrays in (
        ("a second time", good),
        ("were never in", {**good, "ids": [f"new {k}" for k in range(6)], "leave": ["nobody"]}),
        ("must hold one id", {**good, "ids": ["a"]}),
        ("arrays ids, X and y", {"ids": good["ids"]}),
        ("arrays ids, X and y", {**good, "more": good["X"]}),
        ("a list of texts", {**good, "ids": good["X"]}),
        ("a list of texts", {**good, "leave": np.zeros(2)}),
        ("columns|features|shape", {**good, "ids": [f"new {k}" for k in range(6)], "X": good["X"][:, :2]}),
    ):
        np.savez(wrong / "0.npz", **arrays)
        with pytest.raises(DataError, match=said):
            run_epoch(folder, wrong)
    (wrong / "0.npz").write_bytes(b"no zip")
    with pytest.raises(DataError, match="cannot read"):
        run_epoch(folder, wrong)
    with pytest.raises(PlanError, match="not a folder"):
        run_epoch(folder, tmp_path / "nowhere")
    plain = Folder.create(tmp_path / "plain", Stream(plan_of(), 2))
    run_epoch(plain, first)
    with pytest.raises(DataError, match="without deletions"):
        run_epoch(plain, records.epoch(1, leave=["0/0/1"]))


def test_an_epoch_that_has_begun_takes_no_other_records(tmp_path: Path, records: Records) -> None:
    folder, changes = Folder.create(tmp_path / "study", exact()), records.epoch(0)
    kept = folder.inbox(0).path(0)
    arrays = dict(np.load(changes / "0.npz"))
    np.savez(kept, **{**arrays, "ids": [f"other {k}" for k in range(6)]})
    with pytest.raises(DataError, match="begun epoch 0 with other records"):
        run_epoch(folder, changes)


def test_a_folder_that_is_none_or_not_empty_is_refused(tmp_path: Path) -> None:
    folder = Folder.create(tmp_path / "study", exact())
    with pytest.raises(PlanError, match="is not empty"):
        Folder.create(tmp_path / "study", exact())
    (tmp_path / "study" / "stream.toml").unlink()
    with pytest.raises(PlanError, match="cannot read"):
        _ = Folder(folder.path).stream
    seats = [Identity(bytes([k + 1]) * 32).public.hex() for k in range(3)]
    split = ps.Plan(schema=CLASSES, cohort=COHORT, privacy=ps.NoPrivacy(), protocol="split", panel=tuple(seats))
    with pytest.raises(PlanError, match="summed interactively"):
        Folder.create(tmp_path / "split", Stream(split, 2))
    from privstats.course import document
    from tests.course.cases import rounds

    document.write(tmp_path / "study" / "stream.toml", rounds())
    with pytest.raises(PlanError, match="holds another course"):
        _ = Folder(folder.path).stream
