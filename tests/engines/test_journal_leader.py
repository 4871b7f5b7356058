"""A leader killed at any moment from before its offer on: one box key, one panel, one run."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privstats.engines.journal import JournaledHelper, JournaledLeader, JournaledServer
from privstats.engines.journal.panel_member import HpkeKey
from privstats.errors import LocalProtocolError, NothingToResumeError
from privstats.secagg import Offer, Panel
from privstats.secagg.upload.leader import Leader
from tests.engines.killed import Killed
from tests.engines.test_journal_uploads import KEY
from tests.faults import interrupted
from tests.secagg.upload.cohorts import Uploads, uploads_of


def panel_of(run: Uploads, offers: list[Offer]) -> Panel:
    return Panel(tuple(member.public for member in run.members), tuple(offers))


def place_of(run: Uploads) -> dict[str, Any]:
    return {"identity": run.members[0], "parameters": run.parameters, "roster": run.roster}


def offered(run: Uploads, home: Path) -> JournaledLeader:
    return JournaledLeader.offer(home, KEY, **place_of(run))


def resumed(run: Uploads, home: Path) -> JournaledLeader:
    return JournaledLeader.resume(home, KEY, **place_of(run))


def led(run: Uploads, home: Path, panel: Panel) -> JournaledServer:
    with resumed(run, home) as leader:
        return leader.lead(panel, maker(run, panel))


def maker(run: Uploads, panel: Panel):
    return lambda keys: Leader(run.parameters, keys=keys, roster=run.roster, panel=panel)


def files(run: Uploads, home: Path) -> list[str]:
    return sorted(path.name for path in (home / run.roster.digest.hex()).iterdir())


class Member:
    """A member of the panel in a process of its own, as its operator's program would start it again and again."""

    def __init__(self, run: Uploads, home: Path, place: int) -> None:
        self.run, self.home, self.place = run, home, place
        named = {**place_of(run), "identity": run.members[place]}
        kind: Any = JournaledHelper if place else JournaledLeader
        try:
            self.journal = kind.resume(home, KEY, **named)
        except NothingToResumeError:
            self.journal = kind.offer(home, KEY, **named, **({"place": place} if place else {}))

    def offer(self) -> list[tuple[bytes]]:
        return [(self.journal.offered.encode(),)]

    def join(self, offers: list[bytes]) -> list[bytes]:
        panel = panel_of(self.run, [Offer.decode(each) for each in offers])
        if self.place:
            if self.journal.state in ("offered", "bound"):  # not bound again after the end
                self.journal.bind(panel)
        else:
            self.journal = self.journal.lead(panel, maker(self.run, panel))
        return []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)


@pytest.mark.ci
def test_everybody_is_killed_between_any_two_messages_from_the_offers_on(tmp_path: Path) -> None:
    """SIGKILL of the whole panel after every step of its own and every message; the sum is exact all the same."""
    run = uploads_of(helpers=2)
    n, places = run.parameters.clients, (0, 1, 2)
    members = [Killed(lambda place=place: Member(run, tmp_path / str(place), place)) for place in places]
    offers: list[list[bytes]] = []
    for _ in range(2):
        offers.append([member("offer")[0][0] for member in members])
        for member in members:
            member.again()
    assert offers[0] == offers[1]

    def told(place: int, name: str, *arguments: Any) -> Any:
        """What a member answers, killed before it is asked and asked again after it was killed."""
        answers = []
        for _ in range(2):
            members[place].again()
            members[place]("join", offers[0])
            answers.append(members[place](name, *arguments))
        assert place == 0 or answers[0] == answers[1]
        return answers[0]

    def asked_once(name: str, *arguments: Any) -> None:
        members[0].again()
        members[0]("join", offers[0])
        members[0](name, *arguments)

    run.panel = panel_of(run, [Offer.decode(each) for each in offers[0]])
    for index in range(n - 1):
        ((_, report),) = run.client(index).start()
        asked_once("receive", index, report)
    for _ in range(3):
        for peer, message in told(0, "outbox"):
            ((_, answer),) = told(peer - n + 1, "receive", message)
            asked_once("receive", peer, answer)
        asked_once("end_step")
    packed, survivors = told(0, "result")
    assert survivors == list(range(n - 1))
    assert np.array_equal(run.parameters.ring.unpack(packed).lift(), run.sum_over(tuple(survivors)))
    for member in members:
        member.kill()
    assert files(run, tmp_path / "0") == ["panel", "server"]
    assert files(run, tmp_path / "1") == files(run, tmp_path / "2") == ["end"]


def test_the_same_key_is_offered_after_a_restart_and_never_a_second_one(tmp_path: Path) -> None:
    run = uploads_of()
    with offered(run, tmp_path) as leader:
        first = leader.offered
        assert (leader.state, first.place) == ("offered", 0)
        with pytest.raises(LocalProtocolError, match="in use by another"):
            resumed(run, tmp_path)
    with resumed(run, tmp_path) as leader:
        assert leader.offered == first
    with pytest.raises(LocalProtocolError, match="knows this run"):
        offered(run, tmp_path)
    with pytest.raises(NothingToResumeError, match="holds no run"):
        resumed(uploads_of(run=b"another run 0001"), tmp_path)


def test_the_key_moves_into_the_journal_of_the_run_and_is_gone_here(tmp_path: Path) -> None:
    run = uploads_of()
    with offered(run, tmp_path) as leader:
        panel = panel_of(run, [leader.offered, *(keys.offer for keys in run.keys[1:])])
        sealing = (tmp_path / run.roster.digest.hex() / "sealing").open("rb")
        with leader.lead(panel, maker(run, panel)) as server:
            assert (server.step, leader.state) == ("report", "leading")
        with pytest.raises(LocalProtocolError, match="is led already"):
            _ = leader.offered
    assert sealing.read() == bytes(os.fstat(sealing.fileno()).st_size)
    sealing.close()
    assert files(run, tmp_path) == ["panel", "server"]
    with pytest.raises(LocalProtocolError, match="knows this run"):
        offered(run, tmp_path)
    with led(run, tmp_path, panel) as server:
        run.panel = panel
        server.receive(0, run.client(0).start()[0][1])
    with led(run, tmp_path, panel) as server:
        assert 0 not in server.waiting_for


def test_one_key_leads_one_panel(tmp_path: Path) -> None:
    run, other = uploads_of(), uploads_of(label="others")
    with offered(run, tmp_path) as leader:
        offer = leader.offered
    panel, second = (panel_of(each, [offer, *(keys.offer for keys in each.keys[1:])]) for each in (run, other))
    strange = panel_of(run, [keys.offer for keys in run.keys])
    with resumed(run, tmp_path) as leader:
        with pytest.raises(LocalProtocolError, match="does not hold this member"):
            leader.lead(strange, maker(run, strange))
        with pytest.raises(ZeroDivisionError):  # the process fails before the machine is on disk
            leader.lead(panel, lambda _: 1 // 0)
    with resumed(run, tmp_path) as leader:
        assert leader.state == "bound"
        with pytest.raises(LocalProtocolError, match="serves one panel, once"):
            leader.lead(second, maker(run, second))
    led(run, tmp_path, panel).close()
    with pytest.raises(LocalProtocolError, match="led for another panel"):
        led(run, tmp_path, second)


def test_a_kill_before_the_key_is_destroyed_here_is_finished_at_the_next_start(tmp_path: Path) -> None:
    run = uploads_of()
    with offered(run, tmp_path) as leader:
        panel = panel_of(run, [leader.offered, *(keys.offer for keys in run.keys[1:])])
        with interrupted(HpkeKey, "destroy"):
            leader.lead(panel, maker(run, panel))
    assert files(run, tmp_path) == ["keys", "panel", "sealing", "server"]
    with resumed(run, tmp_path) as leader:
        assert leader.state == "leading"
        assert files(run, tmp_path) == ["panel", "server"]
    led(run, tmp_path, panel).close()


def test_a_run_that_was_given_up_is_not_led_again(tmp_path: Path) -> None:
    run = uploads_of()
    with offered(run, tmp_path) as leader:
        panel = panel_of(run, [leader.offered, *(keys.offer for keys in run.keys[1:])])
        leader.lead(panel, maker(run, panel)).discard()
        with pytest.raises(LocalProtocolError, match="is gone, and the box key with it"):
            leader.lead(panel, maker(run, panel))
    with pytest.raises(NothingToResumeError):
        resumed(run, tmp_path)
