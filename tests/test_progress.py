"""A bar is drawn on a terminal, after two seconds, once, and nowhere else."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import numpy as np
import pytest

import privstats as ps
from privstats import progress
from privstats.contrib.sweep import sweep
from privstats.printable.pace import Pace
from privstats.progress import progress_bar, track

X, Y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
SCHEMA = ps.ClassSchema(2, 2, "NAB", clip_norm=4.0, transform=(ps.transforms.UnitNorm(),))
PRIVACY = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=4.0, delta=1e-5)
PLAN = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(2, 2, 400), privacy=PRIVACY)


class Screen(io.StringIO):
    """A terminal that keeps what it is sent."""

    def isatty(self) -> bool:
        return True


class Later:
    """A timer whose time never comes by itself."""

    every: list[Later]

    def __init__(self, seconds: float, work: Callable[[], None]) -> None:
        self.seconds, self.work, self.running = seconds, work, False
        self.every.append(self)

    def start(self) -> None:
        self.running = True

    def cancel(self) -> None:
        self.running = False


class AtOnce(Later):
    """A timer whose time has come."""

    def start(self) -> None:
        self.work()


@pytest.fixture(autouse=True)
def later(monkeypatch) -> type[Later]:
    monkeypatch.delenv(progress.SWITCH, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(Later, "every", [], raising=False)
    monkeypatch.setattr(progress, "Timer", Later)
    return Later


def screen_of(monkeypatch) -> Screen:
    """Called in a test and not before it, because pytest gives each phase a standard error of its own."""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def test_nothing_is_drawn_before_two_seconds_and_the_count_so_far_after_them(later, monkeypatch) -> None:
    screen = screen_of(monkeypatch)
    with progress_bar("adding", total=7) as advance:
        (timer,) = later.every
        assert (timer.seconds, timer.running) == (2.0, True)
        advance(3)
        assert screen.getvalue() == ""
        timer.work()
        assert "adding" in screen.getvalue()
        assert "3/7" in screen.getvalue()
        advance(2)
    assert "5/7" in screen.getvalue()
    assert not timer.running


def test_work_that_has_ended_draws_nothing_any_more(later, monkeypatch) -> None:
    screen = screen_of(monkeypatch)
    with progress_bar("adding") as advance:
        advance(1)
    later.every[0].work()
    assert screen.getvalue() == ""


def test_the_outermost_bar_alone_is_drawn_and_a_later_one_again(later, monkeypatch) -> None:
    screen = screen_of(monkeypatch)
    with progress_bar("outer") as outer, progress_bar("inner") as inner:
        assert len(later.every) == 1
        inner(100)
        outer(1)
        later.every[0].work()
    assert "outer" in screen.getvalue()
    assert "inner" not in screen.getvalue()
    assert "100" not in screen.getvalue()
    with pytest.raises(KeyError), progress_bar("fails"):
        raise KeyError
    with progress_bar("later"):
        later.every[-1].work()
    assert len(later.every) == 3
    assert "later" in screen.getvalue()


@pytest.mark.parametrize("unseen", ["pipe", "switch", "worker", "no stream"])
def test_where_nobody_looks_nothing_is_drawn(unseen: str, later, monkeypatch) -> None:
    screen = screen_of(monkeypatch)
    if unseen == "pipe":
        monkeypatch.setattr(Screen, "isatty", lambda _: False)
    elif unseen == "switch":
        monkeypatch.setenv(progress.SWITCH, "0")
    elif unseen == "worker":
        monkeypatch.setattr(progress, "parent_process", lambda: "the one that started this one")
    else:
        monkeypatch.setattr(sys, "stderr", None)
    with progress_bar("adding") as advance:
        advance(1)
    assert later.every == []
    assert screen.getvalue() == ""


def test_a_bar_that_was_asked_for_is_drawn_in_a_pipe_too(monkeypatch) -> None:
    screen = screen_of(monkeypatch)
    monkeypatch.setattr(Screen, "isatty", lambda _: False)
    with progress_bar("adding", total=2, at_once=True) as advance:
        advance(2)
    assert "2/2" in screen.getvalue()


LONG = {
    "records": lambda: ps.measure(SCHEMA, X, Y),
    "measuring": lambda: ps.simulate(PLAN, [(X, Y), (X, Y)]),
    "messages": lambda: ps.simulate(PLAN, [(X, Y), (X, Y)]),
    "sweeping": lambda: sweep(PLAN, (X, Y), (X, Y), {"LDA": ps.heads.LDA}, [4.0], repeats=2),
    "rounds": lambda: ps.heads.RefinedSoftmax(rounds=2).fit_private(
        X, Y, epsilon=8.0, delta=1e-5, adjacency="add-remove", classes=(0, 1), expected_records=40, ledger="uncharged"
    ),
    "rounds ": lambda: ps.heads.RefinedSoftmax(rounds=2).fit(X, Y),
    " rounds": lambda: ps.heads.RefinedRidge(rounds=2).fit(X, X[:, 0]),
}


@pytest.mark.parametrize("label", LONG)
def test_what_can_take_long_counts_its_work(label: str, monkeypatch) -> None:
    screen = screen_of(monkeypatch)
    monkeypatch.setattr(progress, "Timer", AtOnce)
    LONG[label]()
    assert label.strip() in screen.getvalue()


def test_what_is_tracked_is_counted_when_its_work_is_done(later, monkeypatch) -> None:
    screen = screen_of(monkeypatch)
    left = track("adding", "abc")
    assert next(left) == "a"
    later.every[0].work()
    assert "adding" in screen.getvalue()
    assert "0/3" in screen.getvalue()
    assert [*left] == ["b", "c"]


def test_a_command_without_a_terminal_states_in_lines_how_long_it_takes(monkeypatch) -> None:
    lines, now = list[str](), [0.0]
    monkeypatch.setattr(Pace.__init__, "__kwdefaults__", {"clock": lambda: now[0]})
    with (
        progress.speaking(lines.append),
        progress_bar("sweeping", total=100) as advance,
        progress_bar("inside", total=5) as inside,
    ):
        for _ in range(50):
            now[0] += 1.0
            advance(1)
            inside(1)
    assert 2 <= len(lines) <= 4
    assert all(line.startswith("sweeping: ") and line.endswith(" left") for line in lines)
    with progress_bar("after", total=100) as advance:
        now[0] += 99.0
        advance(1)
    assert not any(line.startswith("after") for line in lines)


def test_a_bar_states_the_time_that_is_left(monkeypatch) -> None:
    screen = screen_of(monkeypatch)
    monkeypatch.setattr(progress, "Timer", AtOnce)
    with progress_bar("adding", total=4) as advance:
        advance(1)
        advance(1)
    assert " left" in screen.getvalue()
