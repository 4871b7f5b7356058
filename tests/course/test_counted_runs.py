"""On a random graph a ledger accepts each number once, for one data set, and each round under its own name alone.

Each case is a way to begin a session whose graph a server could choose, or under a name that was used before.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import privstats as ps
from privstats.dp import Ledger
from privstats.errors import LedgerError
from privstats.secagg import Identity, Roster
from privstats.session import RoundCharge
from privstats.session.accounting import register_run
from tests import made

CLIENTS = 20
PEOPLE = [Identity.generate(os.urandom) for _ in range(CLIENTS)]
SERVER = Identity.generate(os.urandom)
SCHEMA = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
PLAN = ps.Plan(
    schema=SCHEMA,
    cohort=ps.Cohort(CLIENTS, 17, 1_000),
    privacy=made.promise("distributed", epsilon=3.0),
    graph="robust",
)
COURSE = ps.Rounds.within(PLAN, rounds=2)


def roster(counter: int) -> Roster:
    return Roster.numbered((each.public for each in PEOPLE), server=SERVER.public, label="ward", counter=counter)


def begin(ledger: Ledger, entry: ps.dp.Spend, named: Roster) -> None:
    charge = ps.course.authorize(COURSE, COURSE.first, [], ledger, entry)
    moments = ps.measure(COURSE.first.schema, [[0.1, 0.2]], [0])
    ps.session.client(COURSE.first, moments, index=0, identity=PEOPLE[0], roster=named, charge=charge)


def begin_alone(ledger: Ledger, dataset: str, named: Roster) -> object:
    moments = ps.measure(PLAN.schema, [[0.1, 0.2]], [0])
    charge = ps.session.Charge(ledger, dataset)
    return ps.session.client(PLAN, moments, index=0, identity=PEOPLE[0], roster=named, charge=charge)


def one_number_in_two_accounts(ledger: Ledger) -> None:
    begin(ledger, ps.course.spend(COURSE, ledger, "a", roster(0)), roster(0).of_round(0))
    begin(ledger, ps.course.spend(COURSE, ledger, "b", roster(0)), roster(0).of_round(0))


def a_name_in_place_of_a_roster(ledger: Ledger) -> None:
    begin(ledger, ps.course.spend(COURSE, ledger, "a", roster(7).run), roster(7).of_round(0))


def a_round_in_place_of_a_numbered_roster(ledger: Ledger) -> None:
    named = roster(0).of_round(5)
    begin(ledger, ps.course.spend(COURSE, ledger, "a", named), named.of_round(0))


def the_numbered_roster_itself(ledger: Ledger) -> None:
    begin(ledger, ps.course.spend(COURSE, ledger, "a", roster(0)), roster(0))


def another_place(ledger: Ledger) -> None:
    begin(ledger, ps.course.spend(COURSE, ledger, "a", roster(0)), roster(0).of_round(1))


def the_next_number_in_a_round(ledger: Ledger) -> None:
    entry = ps.course.spend(COURSE, ledger, "a", roster(0))
    register_run(COURSE.first, RoundCharge(ledger, entry, 0, COURSE.first.digest), roster(1))


def a_number_that_is_over(ledger: Ledger) -> None:
    ps.session.withdraw(begin_alone(ledger, "a", roster(0)))
    ledger.accept_counter(roster(1).members, 1, roster(1).run)
    ps.course.spend(COURSE, ledger, "b", roster(0))


def a_number_that_skips(ledger: Ledger) -> None:
    ps.course.spend(COURSE, ledger, "a", roster(2))


def a_round_alone(ledger: Ledger) -> None:
    begin_alone(ledger, "a", roster(0).of_round(0))


def two_sessions_of_one_number(ledger: Ledger) -> None:
    begin_alone(ledger, "a", roster(0))
    begin_alone(ledger, "b", roster(0))


WAYS: tuple[Callable[[Ledger], None], ...] = (
    one_number_in_two_accounts,
    a_name_in_place_of_a_roster,
    a_round_in_place_of_a_numbered_roster,
    the_numbered_roster_itself,
    another_place,
    the_next_number_in_a_round,
    a_number_that_is_over,
    a_number_that_skips,
    a_round_alone,
    two_sessions_of_one_number,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger.create(tmp_path / "ledger.sqlite")
    for dataset in "ab":
        book.set_cap(dataset, **made.cap(50.0, delta=1e-3))
    return book


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_session_begins_on_a_graph_that_a_server_could_choose(way: Callable[[Ledger], None], ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="number|of_round|charges no course"):
        way(ledger)


def test_a_counted_course_begins_each_round_once_and_the_next_number_another(ledger: Ledger) -> None:
    entry = ps.course.spend(COURSE, ledger, "a", roster(0))
    assert ps.course.spend(COURSE, ledger, "a", roster(0)).id == entry.id
    begin(ledger, entry, roster(0).of_round(0))
    with pytest.raises(LedgerError, match="round 0"):
        begin(ledger, entry, roster(0).of_round(0))
    begin(ledger, ps.course.spend(COURSE, ledger, "b", roster(1)), roster(1).of_round(0))


def test_a_course_of_one_session_has_one_graph(ledger: Ledger) -> None:
    single = ps.course.Single(PLAN)
    entry = ps.course.spend(single, ledger, "a", roster(0))
    charge = ps.course.authorize(single, PLAN, [], ledger, entry)
    moments = ps.measure(PLAN.schema, [[0.1, 0.2]], [0])
    named = {"index": 0, "identity": PEOPLE[0], "charge": charge}
    with pytest.raises(LedgerError, match="of_round"):
        ps.session.client(PLAN, moments, roster=roster(0), **named)
    assert ps.session.client(PLAN, moments, roster=roster(0).of_round(0), **named)


def test_what_the_ledger_refuses_uses_no_number(ledger: Ledger) -> None:
    """Else a server could step over numbers, with plans that are too dear, until a graph suits it."""
    for dataset in ("nowhere", "a"):
        ledger.set_cap("a", **made.cap(50.0 if dataset == "nowhere" else 0.01, delta=1e-3))
        with pytest.raises(LedgerError):
            ps.course.spend(COURSE, ledger, dataset, roster(0))
        with pytest.raises(LedgerError):
            begin_alone(ledger, dataset, roster(0))
    ledger.set_cap("a", **made.cap(50.0, delta=1e-3))
    begin(ledger, ps.course.spend(COURSE, ledger, "a", roster(0)), roster(0).of_round(0))
