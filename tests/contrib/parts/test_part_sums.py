"""Settled parts that a cluster sums: the exact integers or the leader's own sum, whatever store and workers do."""

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.http.standing import exposition, facts_of, standing_of
from privstats.contrib.parts import part_sums
from privstats.contrib.parts.dask import PartTasks, _part_sum
from privstats.contrib.parts.part_store import PartStore, StoredPart
from privstats.contrib.parts.part_sums import Cluster
from privstats.engines.carriers import ConnectionStatus, write_status
from privstats.errors import LocalProtocolError, PrivstatsError
from privstats.secagg.upload import batching
from tests.contrib.http.desk import Desk, Study, opened, pumped, study_of_devices
from tests.contrib.http.test_kills import killed_at

SENDERS = 6


def summed(part: StoredPart, masking: Any, keys: bytes) -> bytes:
    return _part_sum(part, masking.protocol, masking.ring.segments, keys)


@dataclass
class Threads:
    """Tasks in threads of this process; ``does`` is what a task does in place of its sum, the first ``times`` times."""

    does: Callable[[StoredPart, Any, bytes], bytes] | None = None
    times: int = 1
    calls: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pool, self._lock = ThreadPoolExecutor(2), threading.Lock()

    def submit(self, part: StoredPart, masking: Any, keys: bytes) -> Future[bytes]:
        with self._lock:
            self.calls.append(len(keys) // 44)
            spoilt = self.does is not None and len(self.calls) <= self.times
        return self._pool.submit(self._sum, part, masking, keys, spoilt)

    def _sum(self, part: StoredPart, masking: Any, keys: bytes, spoilt: bool) -> bytes:
        if spoilt and self.does is not None:
            return self.does(part, masking, keys)
        assert summed(part, masking, keys) == summed(part, masking, keys), "a task that runs twice"
        return summed(part, masking, keys)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    monkeypatch.setattr(part_sums, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(part_sums, "_BACK_OFF_SECONDS", 0.01)


@pytest.fixture
def study(tmp_path: Path, monkeypatch) -> Study:
    """Parts of two reports."""
    made = study_of_devices(tmp_path / "run", SENDERS)
    monkeypatch.setattr(batching, "PART_BYTES", 2 * made.plan.masking.upload_bytes)
    return made


def cluster_of(study: Study, tasks: Any) -> Cluster:
    return Cluster(PartStore(str(study.place / "objects"), study.run), tasks)


def objects(study: Study) -> list[Path]:
    return [path for path in (study.place / "objects").rglob("*") if path.is_file()]


def reported(study: Study, desk: Desk) -> None:
    """Open the run and put the report of every sender."""
    pumped(study, desk)
    run = opened(desk, study)
    for index in range(SENDERS):
        report = run.report(study.moments(index), index, study.identities[index])
        assert desk.put(study, index, report).status == 201


def played(study: Study, tasks: Any) -> list[str]:
    """A whole run; returns what the operator read."""
    with Desk(study.leader, cluster=cluster_of(study, tasks)) as desk:
        reported(study, desk)
        finish(study, desk)
    check(study)
    return [str(line) for line in desk.lines]


def finish(study: Study, desk: Desk) -> None:
    for _ in range(2000):
        pumped(study, desk)
        if desk.run.ended is not None:
            return
        time.sleep(0.01)
    raise AssertionError("the run does not come to its end")


def check(study: Study, survivors: range = range(SENDERS)) -> None:
    release = ps.Release.load(study.leader / "release.safetensors", signed_by=study.roster.server)
    assert release.survivors == tuple(survivors)
    assert np.array_equal(release.vector, study.exact(survivors))
    assert objects(study) == [], "objects outlive their run"


def file_of(part: StoredPart) -> Path:
    return Path(part.url.removeprefix("file://"))


def test_the_cluster_gives_the_leaders_own_sum_and_no_object_stays(study: Study) -> None:
    tasks = Threads()
    lines = played(study, tasks)
    assert sorted(tasks.calls) == [2, 2, 2]
    assert not [line for line in lines if "not summed" in line]


def missing(part: StoredPart, masking: Any, keys: bytes) -> bytes:
    file_of(part).unlink()
    return summed(part, masking, keys)


def truncated(part: StoredPart, masking: Any, keys: bytes) -> bytes:
    file_of(part).write_bytes(file_of(part).read_bytes()[:-1])
    return summed(part, masking, keys)


def tampered(part: StoredPart, masking: Any, keys: bytes) -> bytes:
    data = bytearray(file_of(part).read_bytes())
    data[20] ^= 4
    file_of(part).write_bytes(data)
    return summed(part, masking, keys)


def short(part: StoredPart, masking: Any, keys: bytes) -> bytes:
    return summed(part, masking, keys)[:-1]


def died(*_: object) -> bytes:
    raise RuntimeError("as KilledWorker is one")


FAULTS = {
    missing: "cannot be read: FileNotFoundError",
    truncated: "bytes that were written",
    tampered: "holds other bytes than were written",
    short: "bytes, and a vector",
    died: "RuntimeError",
}


@pytest.mark.parametrize("does", FAULTS)
def test_what_a_store_or_worker_spoils_is_said_and_done_again(study: Study, does) -> None:
    lines = played(study, Threads(does))
    (told,) = (line for line in lines if "not summed" in line)
    assert "try 1" in told
    assert FAULTS[does] in told


@pytest.mark.parametrize("does", [missing, died])
def test_what_stays_spoilt_the_leader_sums_itself(study: Study, does) -> None:
    lines = played(study, Threads(does, times=10**6))
    assert sum("summed by the leader itself" in line for line in lines) == SENDERS // 2


def test_a_store_that_is_gone_costs_no_report(study: Study) -> None:
    (study.place / "objects").write_text("a file, and no folder")
    assert any("cannot be stored" in line for line in played(study, Threads()))


def test_a_cluster_of_which_nothing_comes_is_asked_no_further(study: Study, monkeypatch) -> None:
    monkeypatch.setattr(batching, "PART_BYTES", 1)
    lines = played(study, Threads(died, times=10**6))
    assert sum("summed by the leader itself" in line for line in lines) == 3, "of six, which are asked for by turns"
    assert any("so the leader sums the rest: nothing came of 3 parts in a row" in line for line in lines)


def test_an_error_that_nobody_thought_of_holds_no_run_up(study: Study, monkeypatch) -> None:
    def broken(_: object) -> bool:
        raise ZeroDivisionError("user:secret@host")

    monkeypatch.setattr(part_sums.PartSums, "_turn", broken)
    lines = played(study, Threads())
    (told,) = (line for line in lines if "cluster" in line)
    assert told.endswith("so the leader sums the rest: ZeroDivisionError")


class Silent:
    """A cluster that never answers."""

    def submit(self, *_: object) -> Future[bytes]:
        return Future()

    def close(self) -> None:
        pass


def test_a_cluster_that_never_answers_ends_no_run(study: Study, monkeypatch) -> None:
    monkeypatch.setattr(part_sums, "_PATIENCE_SECONDS", 0.05)
    lines = played(study, Silent())
    assert sum("summed by the leader itself" in line for line in lines) == SENDERS // 2


class _StopsWhenRead(Future[bytes]):
    """A task's sum; its leader's process ends as the sum arrives."""

    def __init__(self, summed: bytes, stop: Callable[[], None]) -> None:
        super().__init__()
        self.set_result(summed)
        self._stop = stop

    def result(self, timeout: float | None = None) -> bytes:
        self._stop()
        return super().result(timeout)


def test_a_sum_that_arrives_while_the_process_ends_is_added_to_no_journal(study: Study) -> None:
    """Another process may have opened the journal by then."""

    def submit(part: StoredPart, masking: Any, keys: bytes) -> Future[bytes]:
        return _StopsWhenRead(summed(part, masking, keys), desk.sums._stopping.set)

    tasks = SimpleNamespace(submit=submit, close=lambda: None)
    with Desk(study.leader, cluster=cluster_of(study, tasks)) as desk:
        reported(study, desk)
        pumped(study, desk)
        desk.sums._thread.join(60)
        assert not desk.sums._thread.is_alive()
        assert desk.call(lambda: set(desk.run.journal.unsummed)) == {0, 1, 2}
    assert objects(study) == []


def test_the_step_of_checks_waits_for_sums_and_another_start_goes_on_without_a_cluster(study: Study) -> None:
    with Desk(study.leader, cluster=cluster_of(study, Silent())) as desk:
        reported(study, desk)
        pumped(study, desk)
        assert desk.run.step.name == "check"
        assert desk.call(lambda: set(desk.run.journal.unsummed)) == {0, 1, 2}
        standing = desk.call(lambda: standing_of(desk.run, desk.app, desk.owner, ConnectionStatus(), 0.0, 1.0))
        write_status(study.leader, standing)
        assert facts_of(study.leader, study.run)[0]["parts_without_sum"] == 3
        assert "privstats_http_parts_without_sum 3\n" in exposition(standing, None, 1.0)
    with Desk(study.leader) as desk:
        finish(study, desk)
    PartStore(str(study.place / "objects"), study.run).clear()
    check(study)


def test_the_store_holds_nothing_that_opens_a_body(study: Study) -> None:
    """Bodies as they came over the wire, and neither keys nor places nor senders."""
    seen: list[tuple[bytes, bytes]] = []

    def looking(part: StoredPart, masking: Any, keys: bytes) -> bytes:
        seen.append((file_of(part).read_bytes(), keys))
        return summed(part, masking, keys)

    played(study, Threads(looking, times=10**6))
    for content, keys in seen:
        assert len(content) == 2 * (study.plan.masking.upload_bytes + 16)
        for start in range(0, len(keys), 44):
            assert keys[start : start + 32] not in content


@pytest.mark.parametrize("waits", range(6, 66, 12))
def test_a_leader_killed_while_parts_are_summed_gives_the_exact_sum(tmp_path: Path, monkeypatch, waits: int) -> None:
    monkeypatch.setattr(batching, "PART_BYTES", 40)
    assert killed_at(tmp_path, waits, monkeypatch, lambda study: cluster_of(study, Threads())).deaths == 1


@pytest.mark.nightly
def test_a_leader_killed_at_every_single_write_gives_the_exact_sum(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(batching, "PART_BYTES", 40)
    for waits in range(1, 200):
        world = killed_at(tmp_path / str(waits), waits, monkeypatch, lambda study: cluster_of(study, Threads()))
        if not world.deaths:
            assert waits > 40
            return
    raise AssertionError("it never comes through")


@pytest.mark.parametrize("address", ["tcp://192.0.2.1:8786", "tcp://scheduler:8786", "ws://127.0.0.1:1", "nothing"])
def test_a_plain_address_beyond_this_machine_is_refused(address: str) -> None:
    with pytest.raises(LocalProtocolError, match="is not encrypted, and keys of reports would travel there"):
        PartTasks(address)


def test_a_scheduler_that_is_not_there_is_one_sentence(monkeypatch) -> None:
    monkeypatch.setattr("privstats.contrib.parts.dask._CONNECT_SECONDS", 0.3)
    with pytest.raises(PrivstatsError, match="no Dask scheduler answers at tcp://127.0.0.1:9"):
        PartTasks("tcp://127.0.0.1:9")


class Held(PartStore):
    """Objects that nobody can read before :meth:`let_go`: a reader waits in the middle of its task."""

    held = True

    def put(self, number: int, pieces: Any) -> StoredPart:
        part = super().put(number, pieces)
        if not self.held:
            return part
        file_of(part).rename(file_of(part).with_suffix(".real"))
        os.mkfifo(file_of(part))
        return part

    def let_go(self) -> None:
        self.held = False
        for real in Path(self._home).glob("*.real"):
            real.replace(real.with_suffix(""))


@pytest.mark.ci
@pytest.mark.slow
def test_workers_killed_in_the_middle_of_their_tasks_give_the_exact_sum(study: Study) -> None:
    """Two processes, each in the middle of a task when SIGKILL ends it; their tasks run once more elsewhere."""
    import dask
    from distributed import LocalCluster

    named = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    store = Held(str(study.place / "objects"), study.run)
    with dask.config.set({"distributed.scheduler.allowed-failures": 5}), LocalCluster(**named) as workers:
        tasks = PartTasks(workers.scheduler_address)
        with Desk(study.leader, cluster=Cluster(store, tasks)) as desk:
            reported(study, desk)
            pumped(study, desk)
            until = time.monotonic() + 120
            while sum(map(len, tasks._client.processing().values())) < 3:
                assert time.monotonic() < until, "the workers do not start their tasks"
                time.sleep(0.05)
            time.sleep(0.5)
            killed = [worker.pid for worker in workers.workers.values()]
            assert len(set(killed)) == 2
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            store.let_go()
            finish(study, desk)
            assert not [line for line in desk.lines if "not summed" in line], "their tasks ran once more"
    check(study)


def test_reports_that_carry_proofs_are_summed_where_they_are_checked() -> None:
    proved: Any = SimpleNamespace(plan=SimpleNamespace(validity=ps.plan.Validity("norm", 50)))
    with pytest.raises(LocalProtocolError, match=r"with \[validity\] the leader checks proofs .* omit --cluster"):
        Cluster.at("tls://127.0.0.1:1", "memory://parts", proved)
