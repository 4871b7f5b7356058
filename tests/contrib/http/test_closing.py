"""Attack: a clock that is wrong for a while; reports close by two readings of the time, for no one opens them again."""

import time
from pathlib import Path

import pytest

from privstats.contrib.http.closing import CONFIRMING_SECONDS, Closing
from privstats.engines.journal import panel_member
from privstats.engines.journal.expiry import look
from privstats.engines.network.status_file import PartyStatus, read_status
from privstats.errors import PrivstatsError
from tests.contrib.http.desk import one_pass, pumped, reporting
from tests.contrib.http.test_hostile import put

DATE, DAY = 1_800_000_000.0, 86_400.0


class Machine:
    """A machine whose clock may be set, and whose processes may be started again."""

    def __init__(self, note: Path, now: float) -> None:
        self.note, self.now, self.counted, self.lines = note, now, 0.0, []
        self.start()

    def start(self) -> None:
        self.closing = Closing(DATE, self.note, self.lines.append, lambda: self.now, lambda: self.counted)

    def after(self, seconds: float) -> bool:
        self.now, self.counted = self.now + seconds, self.counted + seconds
        return self.closing.passed()


def test_reports_close_at_their_date_where_both_readings_agree(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "closes", DATE - 10.0)
    assert [machine.after(seconds) for seconds in (0.0, 9.0, 1.0, 1.0)] == [False, False, True, True]
    assert machine.lines == []
    assert not list(tmp_path.iterdir())


def test_attack_a_clock_that_is_ahead_for_a_minute_closes_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "closes", DATE - 10 * DAY)
    assert not machine.after(1.0)
    for _ in range(3):
        machine.now += 40 * DAY
        assert not any(machine.after(1.0) for _ in range(60))
        machine.now -= 40 * DAY
        assert not machine.after(1.0)
        assert not list(tmp_path.iterdir()), "the next wrong look must not be a second one"
    assert len(machine.lines) == 3
    assert "Set the clock if it is wrong" in machine.lines[0]


@pytest.mark.parametrize("started", [False, True])
def test_a_date_that_passed_unseen_closes_reports_an_hour_later(tmp_path: Path, started: bool) -> None:
    """The leader was off, the machine slept, or its clock was behind and has been set."""
    machine = Machine(tmp_path / "closes", DATE - DAY)
    assert not machine.after(1.0)
    machine.now += 2 * DAY
    if started:
        machine.start()
    assert [machine.after(seconds) for seconds in (0.0, CONFIRMING_SECONDS / 2)] == [False, False]
    machine.start()
    assert [machine.after(seconds) for seconds in (1.0, CONFIRMING_SECONDS / 2)] == [False, True]
    assert len(machine.lines) == 1
    machine.closing.forget()
    assert not list(tmp_path.iterdir())


def test_a_first_look_that_cannot_be_noted_closes_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "missing" / "closes", DATE + DAY)
    with pytest.raises(PrivstatsError):
        machine.closing.passed()


def test_attack_a_leaders_clock_that_is_ahead_for_a_minute_loses_no_report(tmp_path: Path) -> None:
    """At one look at the clock the intake closed, and every later device got `closed`."""
    now, counted = [0.0], [0.0]
    readings = {"now": lambda: now[0], "counted": lambda: counted[0]}
    with reporting(tmp_path, 5, closes_in=100.0, **readings) as (study, desk, _, reports):
        now[0] = desk.run.settings.closes.timestamp() - 50.0
        desk.call(desk.run.tick)
        assert [put(desk, study, index, reports[index]) for index in (0, 1, 2)] == ["201"] * 3
        now[0], counted[0] = now[0] + 40 * DAY, 1.0
        desk.call(desk.run.tick)
        assert put(desk, study, 3, reports[3]) == "201"
        now[0], counted[0] = now[0] - 40 * DAY, 2.0
        desk.call(desk.run.tick)
        assert desk.run.step.name == "report"
        now[0], counted[0] = now[0] + 111.0, 113.0
        desk.call(desk.run.tick)
        assert desk.run.step.name == "check"
        assert len([line for line in desk.lines if "Set the clock" in line]) == 1


def test_attack_a_helpers_clock_that_is_ahead_for_a_minute_costs_no_sum(tmp_path: Path, monkeypatch) -> None:
    """A helper destroyed its box key at one look at the clock, after all had reported; now it says so, and waits."""
    ahead, said = [0.0], []
    monkeypatch.setattr(panel_member, "look", lambda until, path: look(until, path, now=time.time() + ahead[0]))
    with reporting(tmp_path, 5) as (study, desk, _, reports):
        assert [put(desk, study, index, reports[index]) for index in range(5)] == ["201"] * 5
        desk.call(desk.run.close_reports)
        ahead[0] = 40 * DAY
        assert [one_pass(study, desk, 1, said.append) for _ in range(2)] == ["", ""], "it polls on"
        assert len(said) == 2
        assert all("set the clock if it is wrong" in line for line in said)
        assert read_status(study.helper(1), PartyStatus).code == "clock"
        pumped(study, desk, [2])
        assert desk.run.step.name == "check"
        ahead[0] = 0.0
        pumped(study, desk)
        assert desk.run.ended.survivors == tuple(range(5))
