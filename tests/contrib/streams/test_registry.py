"""No stream is released without a record registry: the course, the ledger and the book refuse every way around it."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

import privstats as ps
from privstats.contrib.streams import MomentsDelta, Pending, RecordRegistry
from privstats.course import Single, authorize, spend
from privstats.course import alone as alone_module
from privstats.course.alone import private_releases, single_party_plan
from privstats.dp import Ledger, Spend
from privstats.dp.ledger.accounts import LedgerState
from privstats.dp.ledger.price import Cost
from privstats.dp.ledger.records import Assigned, Held, Spent, decode, encode
from privstats.session.charges import RoundCharge
from tests.contrib.streams.streams import SECRET, World, exact_stream, levels_of, registry, stream_of
from tests.contrib.streams.test_record_registry import PEOPLE, roster
from tests.made import refused
from threat_models.audits.canary import GROUP_MU, lower_bounds

EPOCHS = 8
SMALL = ps.ClassSchema(2, 2, "NA", 1.0)
PROMISE = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
CAP: dict[str, Any] = {"unit": "record", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-6}
AT = "2032-05-04T00:00:00.000+00:00"


def one_party(mechanism: Any, epochs: int = EPOCHS) -> ps.Stream:
    return ps.Stream(single_party_plan(SMALL, PROMISE, max_records=1000), epochs, mechanism)


def ledger_at(path: Path) -> Ledger:
    ledger = Ledger.create(path)
    ledger.set_cap("ward", **CAP)
    return ledger


def released(stream: ps.Stream, X: Any, rng: ps.randomness.Generator) -> np.ndarray:
    """What one party alone releases of the same records in every node, in deviations of the noise, summed up."""
    labels = np.zeros(len(X), np.int64)
    named: dict[str, Any] = {"ledger": "uncharged", "rng": rng, "allow_reproducible": True}
    vectors = [each.vector for each in private_releases(stream, X, labels, **named) if each is not None]
    return np.asarray(np.sum(vectors, axis=0) / levels_of(stream))


def apart_is_nothing(weakened: pytest.MonkeyPatch) -> None:
    """The double: the library as it was, to which a stream is a course like any other."""

    class Nothing:
        pass

    weakened.setattr(alone_module, "DisjointRounds", Nothing)


@pytest.mark.parametrize("mechanism", ["increments", pytest.param("tree", marks=pytest.mark.nightly)])
def test_attack_the_same_records_in_every_epoch(mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A likelihood ratio over all nodes tells a record of the double's apart by far more than the stream claims."""
    stream, trials = one_party(mechanism), 40
    with pytest.raises(ps.PlanError, match="every round of this course takes separate records"):
        released(stream, np.zeros((0, 2)), ps.randomness.seeded(1))
    apart_is_nothing(monkeypatch)
    step = float(
        np.linalg.norm(ps.encoding.flatten(ps.measure(SMALL, np.array([[1.0, 0.0]]), [0])) / levels_of(stream))
    )
    copies = round(GROUP_MU / (step * math.sqrt(stream.most)))
    canaries, rng = np.repeat([[1.0, 0.0]], copies, axis=0), ps.randomness.seeded(1)
    along = ps.encoding.flatten(ps.measure(SMALL, canaries, np.zeros(copies, np.int64))) / levels_of(stream)
    scores = [np.array([released(stream, X, rng) @ along for _ in range(trials)]) for X in (np.zeros((0, 2)), canaries)]
    found = lower_bounds(*scores, 0.95, PROMISE.delta).mu / copies
    assert found > 1.25 * stream.mu


def test_the_door_of_other_courses_is_no_door_into_a_stream(tmp_path: Path) -> None:
    """Eight clients over the same records were let in, each at a node of its own: 2.8 times what was charged."""
    stream, ledger = one_party("increments", 8), ledger_at(tmp_path / "spent.db")
    entry = spend(stream, ledger, "ward", b"may")
    for node in range(stream.most):
        with pytest.raises(ps.LedgerError, match="only a registry sees whether they are"):
            authorize(stream, stream.first, [None] * node, ledger, entry)
    assert not ledger.account("ward").entries[0].begun


def test_a_charge_that_somebody_makes_by_hand_is_refused_by_the_ledger(tmp_path: Path) -> None:
    """What the entry says is on the disk: no forged copy of it, and no process after this one, gets round it."""
    stream, ledger = one_party("increments", 8), ledger_at(tmp_path / "spent.db")
    entry = spend(stream, ledger, "ward", b"may")
    assert entry.apart == "holding"
    again = Ledger.open(ledger.path)
    for forged in (entry, replace(entry, apart="")):
        for book in (ledger, again):
            with pytest.raises(ps.LedgerError, match=r"take the charge of every round from RecordRegistry\.charge"):
                RoundCharge(book, forged, 0, stream.first.digest).spend(stream.first, b"")
            refused(ps.LedgerError, "only a registry sees", book.mark_started, forged, 0, sums_only=True)
    assert again.account("ward").entries[0].begun == ()


def test_moments_of_other_records_do_not_go_with_a_nodes_charge(tmp_path: Path) -> None:
    """A charge that notes nothing beside the moments of everybody: the registry would not see them."""
    world, stream = World(), stream_of()
    book = registry(tmp_path, stream)
    everybody = world.measured(world.born(0, 30))
    charge = book.charge(stream.first, [], Pending(0, (), ()))
    for moments in (everybody, MomentsDelta.of(everybody)):
        with pytest.raises(ps.LedgerError, match="not the moments of the 0 records"):
            ps.session.client(stream.first, moments, index=0, identity=PEOPLE[0], roster=roster(0), charge=charge)
    assert not book.entry.begun
    assert not book.begun


def test_a_servers_spend_is_for_sums_and_for_nothing_else(tmp_path: Path) -> None:
    stream, ledger = one_party("increments", 4), ledger_at(tmp_path / "server.db")
    entry = spend(stream, ledger, "ward", b"may", sums_only=True)
    assert entry.apart == "parties"
    with pytest.raises(ps.LedgerError, match="a server that sees sums only"):
        RoundCharge(ledger, entry, 0, stream.first.digest).spend(stream.first, b"")
    refused(ps.LedgerError, "a server that sees sums only", RecordRegistry.open, stream, ledger, entry, SECRET)
    with pytest.raises(ps.LedgerError, match="spent for a server's sums, and this is a party's records"):
        spend(stream, ledger, "ward", b"may")
    ledger.mark_started(entry, 0, sums_only=True)
    assert ledger.account("ward").entries[0].begun == (0,)


def test_a_ledger_from_before_needs_a_book_once_it_has_one(tmp_path: Path) -> None:
    """An older privstats wrote nothing of a registry: its bytes are what they were, and a book says so from then on."""
    old = Spent(
        at=AT, dataset="ward", plan="c0" * 32, run="aa", what="course", model="central", mu=0.1, parts=(), nodes=4
    )
    assert b"apart" not in encode(old)
    assert decode(encode(old)) == old
    held = Held(at=AT, spend=1, node=0, action="opened", body="00" * 32)
    assert (entries([old])[0].apart, entries([old, held])[0].apart) == ("", "holding")
    assert b'"apart":"holding"' in encode(structs.replace(old, apart="holding"))
    refused(ps.LedgerError, "registry of a spend that no record allowed", entries, [held])


def entries(records: list[Any]) -> tuple[Spend, ...]:
    return LedgerState.of(records).account("ward").entries


def test_disjoint_nodes_have_no_price_where_nobody_keeps_them_apart(tmp_path: Path) -> None:
    stream, ledger = one_party("increments", 4), ledger_at(tmp_path / "spent.db")
    plan = stream.first
    cost = Cost(plan.schema, plan.privacy, plan.noise, multiplicity={"add-remove": 1.0, "replace-one": 1.0})
    with pytest.raises(ps.LedgerError, match="a record registry that keeps those apart"):
        ledger.spend_course("ward", course=stream.digest, run=b"may", nodes=4, costs=[cost])
    assert not ledger.account("ward").entries


def test_fewer_prices_than_nodes_are_spent_only_where_somebody_keeps_those_apart(tmp_path: Path) -> None:
    """Without ``multiplicity`` nothing says that the nodes are disjoint: four of them at the price of one."""
    stream, ledger = one_party("increments", 4), ledger_at(tmp_path / "spent.db")
    plan = stream.first
    with pytest.raises(ps.LedgerError, match="a record registry that keeps those apart"):
        ledger.spend_course(
            "ward", course="c0" * 32, run=b"may", nodes=4, costs=[Cost(plan.schema, plan.privacy, plan.noise)] * 3
        )
    assert not ledger.account("ward").entries


def test_a_price_for_another_adjacency_than_the_accounts_is_none(tmp_path: Path) -> None:
    ledger, plan = Ledger.create(tmp_path / "swap.db"), one_party("increments", 4).first
    ledger.set_cap("ward", unit="record", adjacency="replace-one", epsilon=9.0, delta=1e-5)
    cost = Cost(plan.schema, plan.privacy, plan.noise, multiplicity={"add-remove": 4.0})
    with pytest.raises(ps.LedgerError, match="give multiplicity for replace-one too"):
        ledger.spend_course("ward", course="c0" * 32, run=b"may", nodes=4, costs=[cost], apart="holding")
    assert not ledger.account("ward").entries


@pytest.mark.parametrize(("sums_only", "why"), [(False, "only a registry sees"), (True, "sees sums only")])
def test_a_stream_that_an_older_privstats_spent_has_its_registry_once_it_is_found(tmp_path, sums_only, why):
    """Its record named nobody, so that every node could begin with the same records; found again it names who."""
    stream, ledger = one_party("increments", 4), ledger_at(tmp_path / "spent.db")
    fresh = Ledger.create(tmp_path / "other.db")
    fresh.set_cap("ward", **CAP)
    entry = spend(stream, fresh, "ward", b"may")
    with ledger._writing() as log:
        old = Spent(
            at=AT,
            dataset="ward",
            plan=entry.plan,
            run=entry.run.hex(),
            what="course",
            model="central",
            mu=entry.mu,
            parts=entry.parts,
            nodes=4,
        )
        log.append(old)
    found = [spend(stream, ledger, "ward", b"may", sums_only=sums_only) for _ in range(2)]
    (kept,) = ledger.account("ward").entries
    assert (found, kept.apart) == ([kept, kept], "parties" if sums_only else "holding")
    refused(ps.LedgerError, why, ledger.mark_started, kept, 0)
    refused(ps.LedgerError, "keep a ledger for each", spend, stream, ledger, "ward", b"may", sums_only=not sums_only)
    refused(ps.LedgerError, "assigns a role to a spend", entries, [Assigned(at=AT, spend=1, apart="holding")])


@dataclass(frozen=True)
class Cheap(Single):
    """A stream in other clothes: it prices one node, has four, and says nothing of how its records stay apart."""

    @property
    def most(self) -> int:
        return 4


def test_a_course_with_more_nodes_than_prices_is_refused(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path / "spent.db")
    with pytest.raises(ps.PlanError, match="up to 4 rounds and prices 1"):
        spend(Cheap(one_party("increments").first), ledger, "ward", b"may")
    assert not ledger.account("ward").entries


def test_without_noise_a_stream_needs_its_book_too(tmp_path: Path) -> None:
    stream, ledger = exact_stream(2), Ledger.create(tmp_path / "spent.db")
    entry = spend(stream, ledger, "ward", b"may")
    refused(ps.LedgerError, "only a registry sees", ledger.mark_started, entry, 0)
