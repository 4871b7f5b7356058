"""A party's book of a stream: each record enters once, leaves once and is in each level once, whatever is killed."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import privstats as ps
from privstats.contrib.streams import Pending, RecordRegistry
from privstats.contrib.streams.registry_log import RegistryLog
from privstats.course import Releases, run_of_round, spend
from privstats.engines import loopback
from privstats.engines.faults import Fault
from privstats.secagg.protocols import PROTOCOLS
from tests.contrib.streams.streams import CLIENTS, SECRET, World, exact_stream, plan_of, registry, stream_of
from tests.made import refused

PEOPLE = [ps.secagg.Identity(bytes([i + 1]) * 32) for i in range(CLIENTS)]
SERVER = ps.secagg.Identity(b"\x77" * 32)


def roster(node: int) -> ps.secagg.Roster:
    return ps.secagg.Roster([each.public for each in PEOPLE], server=SERVER.public, run=run_of_round(b"may", node))


def machine(book: RecordRegistry, world: World, node: int, releases: Releases, index: int = 0) -> Any:
    """The party's machine for a node, with what is due."""
    pending = book.pending(node, list(world.rows))
    delta = book.delta(pending, world.measured(pending.entering), world.measured(pending.leaving))
    return speaker(book.stream, delta, index, node, book.charge(book.stream.first, releases, pending))


def speaker(stream: ps.Stream, delta: Any, k: int, node: int, charge: Any = "uncharged") -> Any:
    return ps.session.client(stream.first, delta, index=k, identity=PEOPLE[k], roster=roster(node), charge=charge)


def others_of(stream: ps.Stream, world: World, node: int, born: int = 0) -> list[Any]:
    """Everybody's machines but the first one's, without books."""
    return [speaker(stream, world.change(world.born(k, born)), k, node) for k in range(1, CLIENTS)]


def played(stream: ps.Stream, machines: list[Any], node: int, dropouts: Any = None) -> ps.Release | None:
    server = ps.session.server(stream.first, roster(node), identity=SERVER)
    try:
        outcome = loopback.run(server, machines, dropouts=dropouts or {})
    except ps.AggregationError:
        return None
    return ps.session.release(stream.first, outcome.total, outcome.survivors, charge="uncharged")


def sent(book: RecordRegistry, node: int, ids: list[str], upload: bytes = b"\1" * 32) -> Pending:
    """Mark a node and let its vector leave, without a session."""
    pending = book.pending(node, ids)
    charge = book.charge(book.stream.first, [None] * node, pending)
    charge.spend(book.stream.first, b"")
    charge.finish(book.stream.first, b"", upload)
    return pending


def test_a_record_is_new_then_in_then_gone_and_never_again(tmp_path: Path) -> None:
    book = registry(tmp_path, stream_of(deletions=True))
    assert book.state("ash") == "new"
    book.enter(["ash", "beech"])
    assert book.state("ash") == "in"
    refused(ps.LedgerError, "1 of these records have entered", book.enter, ["ash", "cedar"])
    assert book.state("cedar") == "new"  # all or nothing
    book.leave(["ash"])
    assert book.state("ash") == "gone"
    refused(ps.LedgerError, "enters once", book.enter, ["ash"])
    refused(ps.LedgerError, "not in the stream", book.leave, ["ash"])
    refused(ps.LedgerError, "not in the stream", book.leave, ["cedar"])
    assert registry(tmp_path, stream_of(deletions=True)).state("beech") == "in"  # read from the disk


def test_what_is_sent_is_due_no_more_and_what_leaves_is_due_once(tmp_path: Path) -> None:
    book = registry(tmp_path, stream_of(deletions=True))
    book.enter(["ash", "beech"])
    assert book.pending(0, ["ash"]) == Pending(0, ("ash",), (), missing=1)
    assert sent(book, 0, ["ash", "beech", "cedar"]) == Pending(0, ("ash", "beech"), ())
    assert book.pending(1, ["ash", "beech"]) == Pending(1, (), ())
    book.leave(["ash"])
    assert sent(book, 1, ["ash", "beech"]) == Pending(1, (), ("ash",))
    assert book.pending(2, ["ash", "beech"]) == Pending(2, (), ())


def test_a_record_that_left_before_it_was_sent_is_never_sent(tmp_path: Path) -> None:
    book = registry(tmp_path, stream_of(deletions=True))
    book.enter(["ash"])
    book.leave(["ash"])
    assert book.pending(0, ["ash"]) == Pending(0, (), ())


def test_a_record_is_in_every_level_of_a_tree_once(tmp_path: Path) -> None:
    """It is in the leaf of its epoch, and in each node above that closes next."""
    book = registry(tmp_path, stream_of(4, "tree", deletions=True))
    book.enter(["ash"])
    seen = {node: sent(book, node, ["ash", "beech"]) for node in range(2)}
    book.enter(["beech"])
    seen |= {node: sent(book, node, ["ash", "beech"]) for node in range(2, 4)}
    book.leave(["ash"])
    seen |= {node: sent(book, node, ["ash", "beech"]) for node in range(4, 7)}
    levels = [place.level for place in book.stream.nodes]
    assert levels == [0, 0, 1, 0, 0, 1, 2]
    for level in range(3):
        nodes = [pending for node, pending in seen.items() if levels[node] == level]
        assert sum("beech" in pending.entering for pending in nodes) == 1
        arrived, left = (sum("ash" in getattr(pending, way) for pending in nodes) for way in ("entering", "leaving"))
        assert (arrived, left) == ((1, 1) if level < 2 else (0, 0))  # gone before the root closed


def test_a_node_is_spent_once_and_its_vector_leaves_once(tmp_path: Path) -> None:
    stream, world = stream_of(), World()
    book = registry(tmp_path, stream)
    book.enter(world.born(0, 5))
    machine(book, world, 0, [])
    refused(
        ps.LedgerError, "round 0 of this course has begun before", machine, registry(tmp_path, stream), world, 0, []
    )
    charge = book.charge(stream.first, [], book.pending(0, list(world.rows)))
    charge.finish(stream.first, b"", b"\1" * 32)
    charge.finish(stream.first, b"", b"\1" * 32)  # the same bytes may be announced again
    refused(ps.LedgerError, "another vector of it has left", charge.finish, stream.first, b"", b"\2" * 32)
    refused(ps.LedgerError, "round 0 of this spend has begun", book.ledger.finish, book.entry, b"\2" * 32)
    refused(ps.LedgerError, "RecordRegistry.charge", book.ledger.finish_round, book.entry, 0, b"\2" * 32)
    refused(ps.LedgerError, "has left this machine", book.withdraw, 0)


def test_what_never_left_is_withdrawn_and_its_client_never_speaks(tmp_path: Path) -> None:
    stream, world = stream_of(), World()
    book = registry(tmp_path, stream)
    book.enter(world.born(0, 5))
    first = machine(book, world, 0, [])
    book.withdraw(0)
    assert len(book.pending(1, list(world.rows)).entering) == 5
    refused(ps.LedgerError, "was withdrawn", played, stream, [first, *others_of(stream, world, 0, 3)], 0)
    assert first.upload == b""
    refused(ps.LedgerError, "was not taken", book.withdraw, 2)


def test_epochs_over_real_sessions_with_books_are_measuring_afresh(tmp_path: Path) -> None:
    stream, world = exact_stream(4), World()
    state = [registry(tmp_path, stream, str(k)) for k in range(CLIENTS)]
    releases: list[Any] = []
    for epoch in range(4):
        for k, book in enumerate(state):
            book.enter(world.born(k, 4))
            if epoch:
                book.leave(world.dead(k, 3))
        gone = {"mask": {epoch}} if epoch < 3 else {}
        machines = [machine(book, world, epoch, releases, k) for k, book in enumerate(state)]
        releases.append(played(stream, machines, epoch, gone))
        for k in next(iter(gone.values()), ()):
            state[k].withdraw(epoch)
    assert (stream.total(releases).vector == ps.encoding.flatten(world.afresh())).all()


def test_silence_is_no_proof_and_repeats_are_paid_for(tmp_path: Path) -> None:
    book = registry(tmp_path, stream_of())
    book.enter(["ash"])
    sent(book, 0, ["ash"])
    refused(ps.LedgerError, "without repeats", book.lose, 0)
    bought = registry(tmp_path, stream_of(repeats=1), "bought")
    bought.enter(["ash"])
    sent(bought, 0, ["ash"])
    bought.lose(0)
    refused(ps.LedgerError, "settled already", bought.lose, 0)
    assert sent(bought, 1, ["ash"]).entering == ("ash",)
    bought.lose(1)
    assert bought.pending(2, ["ash"]).entering == ()  # r + 1 times, and no more


def listed(stream: ps.Stream, node: int | None) -> ps.Release:
    """A release of a node's session without client 0; of a session without a name where the node is None."""
    run = b"" if node is None else run_of_round(b"may", node)
    return ps.Release(stream.first, ps.encoding.flatten(World().change(())), (1, 2, 3, 4), run=run)


def test_attack_a_list_of_another_node_is_no_proof(tmp_path: Path) -> None:
    """Client 0 was away in node 1. That release freed its records of node 0, which a sum holds, to be counted again."""
    stream = stream_of()
    book = registry(tmp_path, stream)
    book.enter(["ash"])
    sent(book, 0, ["ash"])
    for other in (None, 1):
        refused(ps.LedgerError, "node 0", book.excluded_centrally, 0, listed(stream, other), 0)
    assert book.outstanding == (0,)
    assert book.pending(1, ["ash"]).entering == ()
    book.excluded_centrally(0, listed(stream, 0), 0)


def test_the_central_servers_list_is_proof_and_no_other_servers_is(tmp_path: Path) -> None:
    stream = stream_of()
    book = registry(tmp_path, stream)
    book.enter(["ash"])
    sent(book, 0, ["ash"])
    release = listed(stream, 0)
    refused(ps.LedgerError, "counts this client", book.excluded_centrally, 0, release, 1)
    book.excluded_centrally(0, release, 0)
    assert book.pending(1, ["ash"]).entering == ("ash",)
    refused(ps.LedgerError, "settled already", book.excluded_centrally, 0, release, 0)
    for index, kind in enumerate((stream_of(plan=plan_of(model="distributed")), exact_stream(4))):
        other = registry(tmp_path, kind, f"other {index}")
        refused(ps.LedgerError, "unless the model is central", other.excluded_centrally, 0, release, 0)


def split_stream() -> tuple[ps.Stream, list[ps.secagg.Identity]]:
    members = [ps.secagg.Identity(bytes([90 + place]) * 32) for place in range(3)]
    panel = tuple(member.public.hex() for member in members)
    usual = plan_of(model="distributed")
    plan = ps.Plan(schema=usual.schema, cohort=usual.cohort, privacy=usual.privacy, protocol="split", panel=panel)
    return ps.Stream(plan, 4), members


def abandoned(book: RecordRegistry, world: World, members: list[ps.secagg.Identity]) -> dict[str, Any]:
    """What left for node 0 and every helper's word that it is in no sum."""
    plan = book.stream.first
    place = ps.secagg.Roster([each.public for each in PEOPLE], server=members[0].public, run=run_of_round(b"may", 0))
    keys = [ps.secagg.HelperKeys(member, at, plan.masking, place) for at, member in enumerate(members)]
    panel = ps.secagg.Panel(tuple(member.public for member in members), tuple(key.offer for key in keys))
    pending = book.pending(0, list(world.rows))
    delta = book.delta(pending, world.measured(pending.entering))
    charge = book.charge(plan, [], pending)
    client = ps.session.client(plan, delta, index=0, identity=PEOPLE[0], roster=place, panel=panel, charge=charge)
    client.start()
    assert client.upload
    helpers = [ps.session.helper(plan, keys=key, roster=place, panel=panel) for key in keys[1:]]
    said = {at: helper.abandon()[0][1] for at, helper in enumerate(helpers, start=1)}
    return {"report": client.receipt, "statements": said, "roster": place, "panel": panel}


def vanished(book: RecordRegistry, world: World) -> dict[str, Any]:
    """What left for node 0 and was lost on its way, and the word of those who were in the sum."""
    victim, others = machine(book, world, 0, []), others_of(book.stream, world, 0, 3)
    server = ps.session.server(book.stream.first, roster(0), identity=SERVER)
    outcome = loopback.run(server, [victim, *others], faults=[Fault("mask", 0, "up", "drop")])
    assert outcome.survivors == (1, 2, 3, 4)
    assert victim.upload
    assert victim.agreement == {}
    return {"report": victim.receipt, "statements": others[0].agreement, "roster": roster(0)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_word_of_those_who_would_know_is_proof(tmp_path: Path, protocol: str) -> None:
    """Abandoned by all helpers, or on no signed list: the upload stays uniform, so its records are sent again."""
    world = World()
    stream, members = split_stream() if protocol == "split" else (stream_of(plan=plan_of(model="distributed")), [])
    book = registry(tmp_path, stream)
    book.enter(world.born(0, 4))
    proof = abandoned(book, world, members) if protocol == "split" else vanished(book, world)
    mine = list(world.rows)[:4]
    assert book.pending(1, mine).entering == ()
    missing = dict(list(proof["statements"].items())[:-1])
    with pytest.raises(ps.LocalProtocolError, match="on how helper 2 ended the run|clients have signed"):
        book.excluded(0, **{**proof, "statements": missing})
    book.excluded(0, **proof)
    assert len(book.pending(1, mine).entering) == 4
    refused(ps.LedgerError, "settled already", book.excluded, 0, **proof)


def test_a_proof_about_another_upload_frees_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = registry(tmp_path, split_stream()[0])
    book.enter(["ash"])
    sent(book, 0, ["ash"])
    monkeypatch.setattr("privstats.contrib.streams.record_registry.prove_excluded_upload", lambda *_, **__: b"\2" * 32)
    with pytest.raises(ps.LedgerError, match="another upload than the one"):
        book.excluded(0, report=b"", statements={}, roster=roster(0), panel=None)  # type: ignore[arg-type]


def test_an_older_copy_of_the_file_is_refused(tmp_path: Path) -> None:
    """Restored from a backup, everything that was sent since would look new."""
    book = registry(tmp_path, stream_of())
    book.enter(["ash"])
    shutil.copy(tmp_path / "party.db", tmp_path / "backup.db")
    sent(book, 0, ["ash"])
    shutil.copy(tmp_path / "backup.db", tmp_path / "party.db")
    refused(ps.LedgerError, "older copy", book.pending, 1, ["ash"])
    refused(ps.LedgerError, "older copy", book.enter, ["beech"])


@pytest.mark.parametrize("edit", ["DELETE FROM beside", "UPDATE beside SET body = x'00'", "DROP TABLE beside"])
def test_edited_rows_are_noticed(tmp_path: Path, edit: str) -> None:
    book = registry(tmp_path, stream_of())
    book.enter(["ash"])
    connection = sqlite3.connect(tmp_path / "party.db")
    connection.execute(edit)
    connection.commit()
    connection.close()
    refused(ps.LedgerError, "was edited", book.state, "ash")


def test_ids_are_not_in_the_file_and_another_secret_is_refused(tmp_path: Path) -> None:
    stream = stream_of()
    book = registry(tmp_path, stream)
    book.enter(["patient Szczepaniak"])  # so long that no digest says it by chance
    sent(book, 0, ["patient Szczepaniak"])
    assert b"Szczepaniak" not in (tmp_path / "party.db").read_bytes()
    assert repr(SECRET) not in repr(book)
    refused(ps.LedgerError, "another secret", registry, tmp_path, stream, secret=b"t" * 32)
    for wrong in (b"short", "s" * 32):
        refused(ps.LedgerError, "is 32 bytes", registry, tmp_path, stream, secret=wrong)


def test_a_client_brings_no_more_records_than_it_is_priced_for(tmp_path: Path) -> None:
    book = registry(tmp_path, stream_of(plan=plan_of(unit="client", max_records_per_client=3, epsilon=8.0)))
    book.enter(["ash", "beech"])
    refused(ps.LedgerError, "over all epochs", book.enter, ["cedar", "elm"])
    book.enter(["cedar"])


def test_wrong_calls_are_one_sentence(tmp_path: Path) -> None:
    stream, world = stream_of(), World()
    book = registry(tmp_path, stream)
    for ids, said in (
        ("ash", "list of texts"),
        (["ash", "ash"], "listed twice"),
        ([7], "text of 1 to"),
        ([""], "text of"),
        (["M\ufffdller"], r"holds U\+FFFD, .* two records may have it"),
    ):
        refused(ps.LedgerError, said, book.enter, ids)
    refused(ps.LedgerError, "without deletions", book.leave, ["ash"])
    refused(ps.LedgerError, "nodes 0 to 3", book.pending, 4, [])
    ids = world.born(0, 2)
    book.enter(ids)
    pending = book.pending(0, ids)
    refused(ps.DataError, "moments of the 2 records", book.delta, pending)
    assert book.delta(Pending(0, (), ())).records == 0
    refused(ps.LedgerError, "pending at node 0 and the plan is of node 1", book.charge, stream.first, [None], pending)
    refused(ps.PlanError, "not the one that follows", book.charge, plan_of(epsilon=1.0), [], pending)
    charge = book.charge(stream.first, [], pending)
    refused(ps.LedgerError, "for another plan", charge.spend, plan_of(epsilon=1.0), b"")
    refused(ps.LedgerError, "another course", RecordRegistry.open, stream_of(8), book.ledger, book.entry, SECRET)


def test_what_was_due_and_is_sent_meanwhile_is_not_sent_again(tmp_path: Path) -> None:
    stream = stream_of()
    book = registry(tmp_path, stream)
    book.enter(["ash"])
    stale = book.charge(stream.first, [None], book.pending(1, ["ash"]))
    sent(book, 0, ["ash"])
    refused(ps.LedgerError, "call pending for this node again", stale.spend, stream.first, b"")
    assert book.ledger.account("ward").entries[0].begun == (0,)  # the node did not begin, either


def test_two_runs_in_one_ledger_have_books_of_their_own(tmp_path: Path) -> None:
    stream = stream_of(plan=plan_of(epsilon=1.0))
    book = registry(tmp_path, stream)
    book.ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=9.0, delta=1e-5)
    june = RecordRegistry.open(stream, book.ledger, spend(stream, book.ledger, "ward", b"june"), SECRET)
    book.enter(["ash"])
    assert june.state("ash") == "new"


def test_an_entry_of_another_ledger_is_refused(tmp_path: Path) -> None:
    book, other = registry(tmp_path, stream_of()), ps.dp.Ledger.create(tmp_path / "other.db")
    refused(ps.LedgerError, "no such entry", RegistryLog(other, book.entry).register)
