"""A machine whose whole disk is put back, state folder and all, under the journals of a course.

Nothing on such a disk can tell. What still holds is what any other machine knows.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.dp import Ledger
from privstats.engines.network.host import Host
from privstats.engines.network.party import Party
from privstats.engines.network.transport import Reply
from privstats.errors import LedgerError, SessionEndedError
from tests.engines.network.courses.study import CourseStudy, course_study, silence
from tests.engines.network.fake import FolderNet

pytestmark = pytest.mark.usefixtures("silent")
PARTIES = range(5)


class Machines(FolderNet):
    """Each node has a state folder of its own, as a machine has; the server's is ``state server``."""

    def __init__(self, study: CourseStudy, patch: pytest.MonkeyPatch) -> None:
        super().__init__(study)
        self.patch, self.disks = patch, dict[Path, bytes]()
        self.at("server")

    def at(self, machine: object) -> None:
        self.patch.setenv("XDG_STATE_HOME", str(self.study.place / f"state {machine}"))

    def told(self, node: int, message: bytes) -> Reply:
        if self.envelope.place == 1 and not self.disks:
            self.disks = {path: path.read_bytes() for path in files(self.study.place)}
        self.at(node)
        said = Party.open(self.homes[node], self.logs[node].append).answer("round", message)
        self.at("server")
        return Reply(said.code, said.data)


def files(place: Path) -> list[Path]:
    return [path for path in place.rglob("*") if path.is_file()]


def put_back(net: Machines, parties: Collection[int], *, server: bool) -> None:
    """Put whole disks back to the moment before the second round's first answer, in their own folders."""
    study = net.study
    machines = [study.place / f"state {100 + party}" for party in parties] + [study.home(party) for party in parties]
    machines += [study.host, study.place / "state server"] if server else []
    for path in files(study.place):
        if any(path.is_relative_to(machine) for machine in machines) and path not in net.disks:
            path.unlink()
    write({path: net.disks[path] for path in net.disks if any(path.is_relative_to(machine) for machine in machines)})


def write(content: Mapping[Path, bytes]) -> None:
    for path, data in content.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> tuple[Machines, dict[Path, bytes]]:
    """A course of three sessions that has ended, over everybody, and every file as it was then."""
    with pytest.MonkeyPatch.context() as patch:
        silence(patch)
        net = Machines(course_study(tmp_path_factory.mktemp("course")), patch)
        assert [release.survivors for release in net.ended().releases] == [tuple(PARTIES)] * 3
    return net, {path: path.read_bytes() for path in files(net.study.place)}


@pytest.fixture
def ended(course: tuple[Machines, dict[Path, bytes]], monkeypatch: pytest.MonkeyPatch) -> Machines:
    """The course that has ended, in the folders that it ran in: a journal knows a copy of its folder."""
    net, content = course
    for path in files(net.study.place):
        if path not in content:
            path.unlink()
    write(content)
    net.patch = monkeypatch
    net.at("server")
    return net


def again(net: Machines, *away: int) -> tuple[Machines, ps.Release | None]:
    """The second round once more, without some parties."""
    after = Machines(net.study, net.patch)
    after.goes = {100 + party: 0.0 for party in away}
    return after, after.ended().releases[1]


def test_a_server_that_stayed_begins_no_second_session(ended: Machines) -> None:
    put_back(ended, PARTIES, server=False)
    with pytest.raises(SessionEndedError):
        again(ended)


@pytest.mark.parametrize("stayed", [0, 4])
def test_a_party_that_stayed_is_in_no_second_sum(ended: Machines, stayed: int) -> None:
    """All others and the server are put back; its ledger and its journal are the newest, and it sends nothing."""
    put_back(ended, set(PARTIES) - {stayed}, server=True)
    after, release = again(ended)
    assert release is not None
    assert release.survivors == tuple(set(PARTIES) - {stayed})
    assert after.logs[100 + stayed], "it says why"


def test_where_all_are_put_back_only_a_head_kept_elsewhere_tells(ended: Machines) -> None:
    """A cluster's snapshot: two sums under one spend, as docs/ledger.md says of a whole disk."""
    study, first = ended.study, Ledger.open(ended.study.home(0) / "ledger")
    head = first.head
    put_back(ended, PARTIES, server=True)
    _, second = again(ended, 3)
    assert second is not None
    assert second.survivors == (0, 1, 2, 4)
    plan = Host.open(study.host).folder.round(1).plan  # with the published values
    assert np.array_equal(second.vector, study.exact(plan, second.survivors))
    put_back(ended, PARTIES, server=True)
    ended.at(100)
    assert Ledger.open(study.home(0) / "ledger").accounts()
    with pytest.raises(LedgerError):
        Ledger(study.home(0) / "ledger", expected_head=head).accounts()
