"""A leader and helpers killed at every write under the application: no device holds an answer that is not kept.

``Killed`` ends the leader's thread before the n-th wait for the disk, or a helper; whoever died comes back from its
disk. The group holds a repeat and a second report of one sender, whose answers rest on the first.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.http.device import DeviceRun
from privstats.contrib.http.exchange import Refused
from privstats.contrib.http.intake import REPORT, SIGNATURE
from privstats.contrib.parts.part_sums import Cluster
from privstats.engines.journal import JournaledServer
from tests.contrib.http.desk import Desk, DeskDial, Study, one_pass, study_of_devices
from tests.faults import Fuse, Killed, full_disk

SENDERS = (0, 1, 3, 4)


@dataclass
class World:
    """A run that goes on whoever dies; what devices were told is kept."""

    study: Study
    reports: dict[int, bytes] = field(default_factory=dict)
    seconds: dict[int, bytes] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)
    vouched: set[int] = field(default_factory=set)
    deaths: int = 0
    cluster: Callable[[], Cluster | None] = lambda: None

    @contextmanager
    def desk(self) -> Iterator[Desk]:
        with Desk(self.study.leader, cluster=self.cluster()) as desk:
            yield desk
            if desk.failed:
                self.deaths += 1

    @contextmanager
    def sealed(self) -> Iterator[Desk]:
        """Open a desk whose helpers have done their part, and seal the reports."""
        with self.desk() as desk:
            for place in 3 * (1, 2):
                one_pass(self.study, desk, place)
            self.seal(desk)
            yield desk

    def play(self) -> tuple[int, ...]:
        """To the end, each step as often as somebody dies in it."""
        for _ in range(60):
            try:
                with self.desk() as desk:
                    while not desk.failed:
                        if desk.run.ended is not None:
                            return desk.run.ended.survivors
                        self.advance(desk)
            except Killed:
                self.deaths += 1
        raise AssertionError("the run does not come to its end")

    def advance(self, desk: Desk) -> None:
        for place in (1, 2):
            one_pass(self.study, desk, place)
        if desk.run.manifest is None or desk.run.ended is not None:
            return
        self.seal(desk)
        self.repeat(desk)
        if len(self.kept) < len(SENDERS):
            self.send(desk)
        elif desk.run.step.name == "report":
            with suppress(Refused):  # the leader died in it
                desk.call(desk.run.close_reports)

    def seal(self, desk: Desk) -> None:
        if not self.reports:
            run = DeviceRun.open(DeskDial(lambda: desk), self.study.run, self.study.pin)
            for life in (self.reports, self.seconds):
                for index in SENDERS:
                    life[index] = run.report(self.study.moments(index), index, self.study.identities[index])

    def send(self, desk: Desk) -> None:
        """All at once, so that they are a group: each report twice, and another one of each sender."""
        group = [(index, data) for index in SENDERS for data in (self.reports[index], self.reports[index])]
        group += [(index, self.seconds[index]) for index in SENDERS]
        for (index, data), reply in zip(group, desk.does(self.sent(desk, group)), strict=True):
            if reply.status in (200, 201):
                assert data == self.reports[index]
                self.kept.add(index)
            elif reply.code == "already_here":
                self.vouched.add(index)
            else:
                assert reply.code in ("restarting", "in_progress"), reply

    async def sent(self, desk: Desk, group: list[tuple[int, bytes]]) -> list:
        """Past the intake's one body at a time: the owner alone is under test."""
        return await asyncio.gather(*(self.put(desk, index, data) for index, data in group))

    async def put(self, desk: Desk, index: int, data: bytes):
        desk.app.intake._sending.clear()
        path = f"/v1/runs/{self.study.run}/reports/{index}"
        return await desk.asked("PUT", path, data, {"content-type": REPORT, SIGNATURE: data[-64:].hex()})

    def repeat(self, desk: Desk) -> None:
        """Whoever was told that a report is here finds it here, also after the step."""
        for index in sorted(self.kept):
            reply = desk.put(self.study, index, self.reports[index])
            assert reply.status == 200 or reply.code == "restarting", reply
        for index in sorted(self.vouched - self.kept):
            reply = desk.put(self.study, index, self.reports[index])
            assert reply.status == 200 or reply.code == "restarting", reply


def killed_at(
    place: Path,
    waits: int,
    monkeypatch: pytest.MonkeyPatch,
    cluster: Callable[[Study], Cluster | None] = lambda _: None,
) -> World:
    os.environ["XDG_STATE_HOME"] = str(place / "state")
    study = study_of_devices(place / "run")
    monkeypatch.setattr(os, "fsync", lambda _: None)
    fuse = Fuse(monkeypatch, "os.fsync", all_threads=True)
    fuse.left = waits
    world = World(study, cluster=lambda: cluster(study))
    survivors = world.play()
    assert survivors == SENDERS
    release = ps.Release.load(study.leader / "release.safetensors", signed_by=study.roster.server)
    assert np.array_equal(release.vector, study.exact(SENDERS))
    return world


@pytest.fixture(autouse=True)
def _state(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", os.environ.get("XDG_STATE_HOME", ""))


@pytest.mark.parametrize("waits", range(4, 60, 11))
def test_a_kill_loses_no_confirmed_report(tmp_path: Path, monkeypatch, waits: int) -> None:
    assert killed_at(tmp_path, waits, monkeypatch).deaths == 1


@pytest.mark.nightly
def test_a_kill_at_every_single_write_loses_no_confirmed_report(tmp_path: Path, monkeypatch) -> None:
    for waits in range(1, 200):
        if not killed_at(tmp_path / str(waits), waits, monkeypatch).deaths:
            assert waits > 40
            return
    raise AssertionError("it never comes through")


def test_a_disk_that_is_full_confirms_nothing_and_ends_the_process(tmp_path: Path) -> None:
    world = World(study_of_devices(tmp_path))
    with world.sealed() as desk:
        with full_disk():
            assert desk.put(world.study, 0, world.reports[0]).code == "restarting"
        assert desk.put(world.study, 1, world.reports[1]).code == "restarting"
        assert len(desk.failed) == 1
    with world.desk() as desk:
        assert desk.put(world.study, 0, world.reports[0]).status == 201


def test_no_answer_of_a_group_leaves_before_its_wait_for_the_disk(tmp_path: Path) -> None:
    """A refusal and a repeat vouch for the first report of the group, and the kill comes before all are kept."""
    world = World(study_of_devices(tmp_path))
    with world.sealed() as desk:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(JournaledServer, "receive_many", _dying(JournaledServer.receive_many))
            world.send(desk)
        assert (world.kept, world.vouched) == (set(), set())
        assert desk.failed


def _dying(real):
    def receive_many(self, items):
        with pytest.MonkeyPatch.context() as patch:
            Fuse(patch, "os.fsync", all_threads=True).left = 1
            return real(self, items)

    return receive_many
