"""Courses: plans in sequence under one budget, and nothing that a course says is believed unchecked."""

import math
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.course import Course, Round, Single, iter_rounds, run, spend, verify_next
from privstats.course.kinds import COURSE_KINDS, CourseKind
from privstats.dp import Ledger
from privstats.dp.ledger.accounts import LedgerState
from privstats.dp.ledger.records import Marked, Spent, sealed
from privstats.errors import LedgerError, PlanError
from privstats.randomness import seeded
from tests import made
from tests.made import refused
from tests.planted import plant
from tests.threads import join


def plan_with(epsilon: float = 1.0, **changes: object) -> ps.Plan:
    cohort = ps.Cohort(clients=5, min_survivors=4, max_records=100)
    return made.plan(ps.ClassSchema(2, 3, "NA", 1.0), cohort, made.promise(epsilon=epsilon, **changes))


@dataclass(frozen=True)
class Listed:
    """A course that names its plans beforehand, and may lie about their number and cost."""

    plans: tuple[ps.Plan, ...]
    most: int
    mu: float

    @property
    def first(self) -> ps.Plan:
        return self.plans[0]

    @property
    def priced(self) -> tuple[ps.Plan, ...]:
        return self.plans

    @property
    def digest(self) -> str:
        return "c0" * 32

    def epsilon(self, delta: float) -> float:
        return ps.dp.gaussian_epsilon(self.mu, delta)

    def next(self, releases: object) -> ps.Plan | None:
        place = len(releases)  # type: ignore[arg-type]
        return self.plans[place] if place < len(self.plans) else None


def listed(*plans: ps.Plan) -> Listed:
    return Listed(plans, len(plans), math.sqrt(sum(plan.noise.mu**2 for plan in plans)))  # type: ignore[union-attr]


def released(round_: Round) -> ps.Release:
    return ps.Release(round_.plan, np.full(round_.plan.layout.size, round_.place, np.int64), (0, 1, 2, 3))


def test_a_course_of_one_plan_is_that_plan() -> None:
    plan = plan_with()
    assert isinstance(Single(plan), Course)
    assert Single(plan).mu == plan.noise.mu
    assert run(Single(plan), released) == [released(Round(0, plan, b""))]
    assert Single(replace(plan, privacy=ps.NoPrivacy())).mu == math.inf


@dataclass(frozen=True)
class Swapped(Listed):
    """A course that asks for its last plan, which costs more, wherever no sum came before."""

    def next(self, releases: object) -> ps.Plan | None:
        return self.plans[-1]


def test_a_plan_that_costs_more_than_its_place_is_refused_whatever_releases_are_shown() -> None:
    """Else a party without a history could be asked for the dearest plan at every place."""
    few, many = plan_with(0.5), plan_with(2.0)
    course = Swapped((few, few, many), 3, listed(few, few, many).mu)
    with pytest.raises(PlanError, match="round 1 would cost mu .* priced at"):
        verify_next(course, many, [None])
    assert verify_next(course, many, [None, None]).place == 2
    with pytest.raises(PlanError, match="round 1 would cost mu .* priced at"):
        run(course, released)


def test_every_node_sees_what_was_released_before_it() -> None:
    seen: list[Round] = []

    def release(round_: Round) -> ps.Release | None:
        seen.append(round_)
        return None if round_.place == 1 else released(round_)

    course = listed(plan_with(), plan_with(2.0), plan_with(3.0))
    releases = run(course, release)
    assert [each is None for each in releases] == [False, True, False]
    assert [round_.plan for round_ in seen] == list(course.plans)
    assert len({round_.after for round_ in seen}) == 3  # another history, another digest


def test_a_failed_node_is_not_mistaken_for_a_shorter_course() -> None:
    outcomes: list[Callable[[Round], ps.Release | None]] = [released, lambda round_: None]
    digests = []
    for outcome in outcomes:
        history: list[ps.Release | None] = []
        walk = iter_rounds(listed(plan_with(), plan_with()), history)
        history.append(outcome(next(walk)))
        digests.append(next(walk).after)
    assert digests[0] != digests[1]


@pytest.mark.parametrize(
    ("course", "said"),
    [
        (Listed((plan_with(), plan_with()), 1, 10.0), "at most 1 rounds"),
        (Listed((plan_with(), plan_with()), 2, plan_with().noise.mu), "promised"),
        (listed(plan_with(), plan_with(model="local")), "trust model"),
        (listed(plan_with(), plan_with(adjacency="replace-one")), "adjacency"),
        (listed(plan_with(), replace(plan_with(), cohort=ps.Cohort(5, 4, 100, colluders=1))), "colluders"),
        (listed(plan_with(), replace(plan_with(), protocol="split", panel=("a" * 64, "b" * 64))), "protocol"),
    ],
)
def test_a_course_that_breaks_its_word_is_refused_before_the_node(course: Listed, said: str) -> None:
    asked: list[Round] = []

    def release(round_: Round) -> ps.Release:
        asked.append(round_)
        return released(round_)

    refused(PlanError, said, run, course, release)
    assert [round_.place for round_ in asked] == [0]


def test_a_node_without_an_outcome_stops_the_course() -> None:
    walk = iter_rounds(listed(plan_with(), plan_with()), [])
    next(walk)
    refused(PlanError, "no outcome", next, walk)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return made.ledger(tmp_path / "spent.db")


def test_a_course_is_charged_whole_before_its_first_node(ledger: Ledger) -> None:
    course = listed(plan_with(), plan_with(1.5))
    entry = spend(course, ledger, "ward", b"may")
    assert (entry.nodes, ledger.account("ward").mu) == (2, pytest.approx(course.mu, rel=1e-12))
    assert spend(course, ledger, "ward", b"may").id == entry.id  # a restart costs nothing
    refused(LedgerError, "cap", spend, listed(plan_with(3.0), plan_with(3.0)), ledger, "ward", b"june")


def test_another_run_of_a_course_is_another_spend(ledger: Ledger) -> None:
    course = listed(plan_with(0.5), plan_with(0.5))
    first, second = spend(course, ledger, "ward", b"may"), spend(course, ledger, "ward", b"june")
    assert first.id != second.id
    assert ledger.account("ward").mu == pytest.approx(math.sqrt(2) * course.mu)


def test_a_node_begins_once_whatever_plan_stands_there(ledger: Ledger) -> None:
    """Another plan at the same place is the same node, and a crash between mark and noise loses the node."""
    ledger.mark_started(spend(listed(plan_with(), plan_with()), ledger, "ward", b"may"), 0)
    again = spend(listed(plan_with(), plan_with()), Ledger.open(ledger.path), "ward", b"may")
    assert again.begun == (0,)
    refused(LedgerError, "begun before", ledger.mark_started, again, 0)
    ledger.mark_started(again, 1)
    assert ledger.account("ward").entries[0].begun == (0, 1)


@pytest.mark.parametrize("node", [-1, 2, True, "0"])
def test_a_node_that_was_not_paid_for_does_not_begin(ledger: Ledger, node: object) -> None:
    entry = spend(listed(plan_with(), plan_with()), ledger, "ward", b"may")
    refused(LedgerError, "rounds 0 to 1", ledger.mark_started, entry, node)


def test_a_plain_release_is_a_course_of_one_node(ledger: Ledger) -> None:
    plan = plan_with()
    entry = ledger.spend(
        "ward", plan=plan.digest, run=b"may", schema=plan.schema, privacy=plan.privacy, noise=plan.noise
    )
    ledger.mark_started(entry, 0)
    refused(LedgerError, "begun before", ledger.mark_started, entry, 0)


def test_two_processes_race_for_a_node_and_one_wins(ledger: Ledger) -> None:
    entry = spend(listed(plan_with(), plan_with()), ledger, "ward", b"may")
    barrier, won = threading.Barrier(6, timeout=60), []

    def race() -> None:
        barrier.wait()
        with suppress(LedgerError):
            Ledger.open(ledger.path).mark_started(entry, 1)
            won.append(1)

    threads = [threading.Thread(target=race) for _ in range(6)]
    for thread in threads:
        thread.start()
    join(*threads)
    assert won == [1]


def test_an_account_of_another_adjacency_is_charged_what_the_course_costs_there(tmp_path: Path) -> None:
    ledger = made.ledger(tmp_path / "swap.db", epsilon=9.0, adjacency="replace-one")
    course = listed(plan_with(0.5), plan_with(0.5))
    spend(course, ledger, "ward", b"may")
    plan = course.first
    alone = ps.dp.joint_mu(plan.schema, plan.noise.sigma, "replace-one")  # type: ignore[union-attr]
    assert ledger.account("ward").mu == pytest.approx(math.sqrt(2) * alone)


def test_no_course_without_a_node_or_a_cost(ledger: Ledger) -> None:
    for nodes_, costs in ((0, [1]), (1, [])):
        with pytest.raises(LedgerError, match="at least one round"):
            ledger.spend_course("ward", course="c0" * 32, run=b"may", nodes=nodes_, costs=costs)  # type: ignore[arg-type]


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row for ``Listed``, so that it can be simulated."""
    row = CourseKind("listed", "plans in a list", Listed, charge="course", gives_back=False, promise=None)
    plant(monkeypatch, COURSE_KINDS, "listed", row)


def shards(clients: int = 5) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(9, 3)), np.arange(9) % 2) for _ in range(clients)]


def test_simulating_a_course_of_one_plan_is_simulating_the_plan() -> None:
    plan, data = plan_with(), shards()
    alone = ps.simulate(plan, data, rng=seeded(3))
    assert ps.simulate(Single(plan), data, rng=seeded(3)) == [alone]


@pytest.mark.usefixtures("simulated")
def test_each_node_of_a_simulated_course_loses_its_own_clients() -> None:
    course = listed(plan_with(), plan_with(2.0), plan_with(3.0))
    step = plan_with().masking.upload_step
    releases = ps.simulate(course, shards(), dropouts=[{step: {1}}, {step: {0, 1}}])
    assert [each and each.survivors for each in releases] == [(0, 2, 3, 4), None, (0, 1, 2, 3, 4)]


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("dropouts", [{"report": {1}}, [{}, {}, {}]])
def test_dropouts_that_do_not_fit_the_course_are_refused(dropouts: object) -> None:
    refused(PlanError, "at most 2 mappings", ps.simulate, listed(plan_with(), plan_with()), shards(), dropouts=dropouts)


def test_a_ledger_that_begins_a_node_twice_or_without_a_spend_is_refused() -> None:
    at = "2032-05-04T00:00:00.000+00:00"
    spent = Spent(at=at, dataset="ward", plan="c0" * 32, run="aa", what="course", model="central", mu=0.1, parts=())
    mark = Marked(at=at, spend=1, node=0)
    assert LedgerState.of([spent, mark]).account("ward").entries[0].begun == (0,)
    for records in ([mark], [spent, mark, mark]):
        refused(LedgerError, "begins a round", LedgerState.of, records)


def test_a_cost_that_no_record_can_hold_is_refused_not_written_as_nothing() -> None:
    at = "2032-05-04T00:00:00.000+00:00"
    with pytest.raises(LedgerError, match="does not decode to itself"):
        sealed(Spent(at=at, dataset="ward", plan="c0", run="aa", what="x", model="central", mu=math.nan, parts=()))


def test_a_course_is_walked_from_its_beginning() -> None:
    refused(PlanError, "empty list", next, iter_rounds(Single(plan_with()), [None]))
