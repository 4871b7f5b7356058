"""A party takes part in a node once: not for another plan, not after a crash, not for two processes at once."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import secagg, session
from privstats.course import authorize, run_of_round, spend
from privstats.course.base import as_next
from privstats.dp import Ledger
from privstats.engines import loopback
from privstats.engines.journal import JournaledServer
from privstats.errors import LedgerError, LocalProtocolError, PlanError
from privstats.randomness import seeded
from privstats.session.charges import RoundCharge
from tests import made
from tests.course.cases import CLIENTS, SOFTMAX, plan_of, rounds, shards
from tests.made import refused

ROOT = str(Path(__file__).parents[2])
PEOPLE = [secagg.Identity(bytes([i + 1]) * 32) for i in range(CLIENTS)]
SERVER = secagg.Identity(b"\x77" * 32)


def roster(counter: int) -> secagg.Roster:
    publics = [person.public for person in PEOPLE]
    return secagg.Roster.numbered(publics, server=SERVER.public, label="study", counter=counter)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return made.ledger(tmp_path / "party.db", epsilon=9.0)


def invented(course: ps.Rounds, seed: int) -> ps.Release:
    """A release that nobody made: a server that chooses weights writes down the one that leads to them."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(500, SOFTMAX.features)), rng.integers(0, SOFTMAX.classes, 500)
    moments = ps.measure(SOFTMAX, X, y)
    return ps.Release(
        course.first, ps.Release.exact(SOFTMAX, moments).vector, (0, 1, 2, 3), position=course.position([])
    )


def client(plan: ps.Plan, charge: Any, counter: int = 0) -> Any:
    moments = ps.measure(plan.schema, *shards()[0], published=plan.published)
    return session.client(plan, moments, index=0, identity=PEOPLE[0], roster=roster(counter), charge=charge)


def test_two_invented_releases_for_one_node_and_the_second_is_refused_although_its_digest_is_new(ledger: Ledger):
    """Outside the central model only the server sees a release, so it can make up as many as it likes for a node."""
    course = rounds(model="distributed")
    entry = spend(course, ledger, "ward", b"may")
    lies = [[invented(course, seed)] for seed in (1, 2)]
    plans = [course.next(lie) for lie in lies]
    assert plans[0].digest != plans[1].digest  # type: ignore[union-attr]
    charges = [authorize(course, plan, lie, ledger, entry) for plan, lie in zip(plans, lies, strict=True)]
    assert [charge.place for charge in charges] == [1, 1]
    client(plans[0], charges[0])  # type: ignore[arg-type]
    refused(LedgerError, "round 1 of this course has begun before", client, plans[1], charges[1], counter=1)
    assert ledger.account("ward").mu == pytest.approx(course.mu)


def test_a_ledger_that_remembered_plans_and_not_nodes_would_take_the_second(ledger, monkeypatch):
    """The weakened double: marks by the plan's digest let a server ask as often as it can invent."""
    begun: set[str] = set()

    def by_digest(charge: RoundCharge, plan: ps.Plan, run: bytes) -> Any:
        if plan.digest in begun:
            raise LedgerError("begun before")
        begun.add(plan.digest)
        return charge.entry

    monkeypatch.setattr(RoundCharge, "spend", by_digest)
    course = rounds(model="distributed")
    entry = spend(course, ledger, "ward", b"may")
    for seed in range(4):
        lie = [invented(course, seed)]
        plan = course.next(lie)
        assert plan is not None
        client(plan, authorize(course, plan, lie, ledger, entry), counter=seed)
    assert len(begun) == 4


def test_the_mark_is_on_the_disk_before_noise_is_drawn(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    course = rounds(model="distributed")
    entry = spend(course, ledger, "ward", b"may")
    seen: list[tuple[int, ...]] = []

    def looked(*arguments: Any) -> Any:
        seen.append(Ledger.open(ledger.path).account("ward").entries[0].begun)
        raise LedgerError("enough")

    monkeypatch.setattr("privstats.dp.draw_share", looked)
    refused(LedgerError, "enough", client, course.first, authorize(course, course.first, [], ledger, entry))
    assert seen == [(0,)]


KILLED = """
    import os, signal, sys
    sys.path.insert(0, {root!r})
    import privstats as ps
    from privstats import dp
    from tests.course.test_nodes import client
    from tests.course.cases import rounds
    from privstats.course import authorize, spend
    ledger = dp.Ledger.open({path!r})
    course = rounds(model="distributed")
    entry = spend(course, ledger, "ward", b"may")
    dp.draw_share = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
    client(course.first, authorize(course, course.first, [], ledger, entry))
"""


@pytest.mark.ci
def test_a_kill_between_mark_and_noise_loses_the_node_and_does_not_repeat_it(ledger: Ledger) -> None:
    program = textwrap.dedent(KILLED).format(root=ROOT, path=str(ledger.path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    course = rounds(model="distributed")
    again = Ledger.open(ledger.path)
    entry = spend(course, again, "ward", b"may")  # the run goes on, at no cost
    assert entry.begun == (0,)
    refused(LedgerError, "has begun before", client, course.first, authorize(course, course.first, [], again, entry))
    lie = [invented(course, 1)]
    plan = course.next(lie)
    assert plan is not None
    client(plan, authorize(course, plan, lie, again, entry))  # the next node is there
    assert again.account("ward").mu == pytest.approx(course.mu)


RACING = """
    import sys
    sys.path.insert(0, {root!r})
    from privstats import dp
    from privstats.course import authorize, spend
    from privstats.errors import LedgerError
    from tests.course.test_nodes import client
    from tests.course.cases import rounds
    ledger = dp.Ledger.open({path!r})
    course = rounds(model="distributed")
    entry = spend(course, ledger, "ward", b"may")
    charge = authorize(course, course.first, [], ledger, entry)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        client(course.first, charge)
        print("won")
    except LedgerError:
        print("lost")
"""


@pytest.mark.ci
def test_two_processes_race_for_a_node_and_one_wins(ledger: Ledger) -> None:
    program = textwrap.dedent(RACING).format(root=ROOT, path=str(ledger.path))
    spend(rounds(model="distributed"), ledger, "ward", b"may")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen([sys.executable, "-c", program], **pipes) for _ in range(2)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"  # type: ignore[union-attr]
    for racer in racers:
        racer.stdin.write("go\n")  # type: ignore[union-attr]
        racer.stdin.flush()  # type: ignore[union-attr]
    assert sorted(racer.communicate(timeout=120)[0].strip() for racer in racers) == ["lost", "won"]


def test_a_whole_course_over_sessions_that_are_charged(tmp_path: Path) -> None:
    """Every party with a ledger of its own, every node a session with its own run name, one client missing at times."""
    course = rounds(model="distributed")
    ledgers = [Ledger.create(tmp_path / f"{index}.db") for index in range(CLIENTS)]
    entries = []
    for ledger in ledgers:
        ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=4.001, delta=1e-5)
        entries.append(spend(course, ledger, "ward", b"may"))
    releases: list[ps.Release | None] = []
    while (plan := course.next(releases) if releases else course.first) is not None:
        place = len(releases)
        machines = []
        for index, (ledger, entry) in enumerate(zip(ledgers, entries, strict=True)):
            charge = authorize(course, plan, releases, ledger, entry)
            moments = ps.measure(plan.schema, *shards()[index], published=plan.published)
            machines.append(
                session.client(plan, moments, index=index, identity=PEOPLE[index], roster=roster(place), charge=charge)
            )
        server = session.server(plan, roster(place), identity=SERVER)
        outcome = loopback.run(server, machines, dropouts={plan.masking.upload_step: {place}})
        release = session.release(plan, outcome.total, outcome.survivors, charge="uncharged")
        releases.append(as_next(course, releases, release))
    assert [len(release.survivors) for release in releases if release] == [4, 4, 4]
    for ledger in ledgers:
        account = ledger.account("ward")
        assert (account.entries[0].begun, account.mu) == ((0, 1, 2), pytest.approx(course.mu))
    assert ps.heads.RefinedSoftmax().fit_releases(releases).rounds_ == 2
    assert len({run_of_round(b"may", place) for place in range(3)} | {run_of_round(b"june", 0)}) == 4


def test_a_central_server_draws_a_nodes_noise_once(ledger: Ledger) -> None:
    course = rounds()
    plan, entry = course.first, spend(rounds(), ledger, "ward", b"may")
    charge = authorize(course, plan, [], ledger, entry)
    total = plan.ring.zeros()
    session.release(plan, total, (0, 1, 2, 3), charge=charge)
    refused(LedgerError, "has begun before", session.release, plan, total, (0, 1, 2, 3), charge=charge)


def test_a_journaled_server_gives_a_nodes_stored_release_not_a_second_draw(ledger: Ledger, tmp_path: Path) -> None:
    course = rounds()
    plan, entry = course.first, spend(rounds(), ledger, "ward", b"may")
    charge = authorize(course, plan, [], ledger, entry)
    parts = [ps.measure(plan.schema, *shard) for shard in shards()]
    machines = [
        session.client(plan, part, index=i, identity=PEOPLE[i], roster=roster(0), charge="uncharged")
        for i, part in enumerate(parts)
    ]
    server = JournaledServer.create(
        tmp_path / "server.journal", b"k" * 32, session.server(plan, roster(0), identity=SERVER)
    )
    loopback.run(server, machines)
    first = server.release(plan, charge)
    assert (server.release(plan, charge), ledger.account("ward").entries[0].begun) == (first, (0,))


def test_what_does_not_belong_to_a_node_is_refused(ledger: Ledger) -> None:
    course = rounds(model="distributed")
    entry = spend(course, ledger, "ward", b"may")
    charge = authorize(course, course.first, [], ledger, entry)
    plan = plan_of(model="distributed")
    refused(LedgerError, "for another plan at round 0", client, plan, charge)
    refused(PlanError, "not the one that follows", authorize, course, plan, [], ledger, entry)
    with pytest.raises(LedgerError, match="another course"):
        authorize(rounds(rounds=3, model="distributed"), course.first, [], ledger, entry)
    drawn = session.contribution(course.first, ps.measure(course.first.schema, *shards()[0]))
    with pytest.raises(LocalProtocolError, match="before the ledger marked its round"):
        session.client(course.first, drawn, index=0, identity=PEOPLE[0], roster=roster(0), charge=charge)
    assert ledger.account("ward").entries[0].begun == ()


def test_a_resumed_client_speaks_only_of_a_node_that_was_marked(ledger: Ledger) -> None:
    course = rounds(model="distributed")
    charge = authorize(course, course.first, [], ledger, spend(course, ledger, "ward", b"may"))
    left = session.on_upload(course.first, roster(0), charge)
    refused(LedgerError, "has no mark", left, b"\1" * 32)
    client(course.first, charge)
    left(b"\1" * 32)


def test_alone_a_node_is_no_charge(ledger: Ledger) -> None:
    course = rounds()
    charge: Any = authorize(course, course.first, [], ledger, spend(course, ledger, "ward", b"may"))
    with pytest.raises(LedgerError, match="private_releases"):
        ps.private_release(SOFTMAX, plan_of().privacy, *shards()[0], ledger=charge)


def test_alone_a_course_is_one_spend(ledger: Ledger) -> None:
    from privstats.course.alone import single_party_plan

    course = ps.Rounds.within(single_party_plan(SOFTMAX, plan_of().privacy), 2, expected_records=600)
    X, y = shards(clients=1)[0]
    releases = ps.private_releases(course, X, y, ledger=ledger, run=b"may", rng=seeded(1), allow_reproducible=True)
    assert [release is None for release in releases] == [False] * 3
    assert ledger.account("ward").mu == pytest.approx(course.mu)
    refused(LedgerError, "begun before", ps.private_releases, course, X, y, ledger=ledger, run=b"may")
