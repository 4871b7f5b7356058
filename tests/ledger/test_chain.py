"""Whatever is done to a ledger's files by hand is noticed, as far as anything can notice it."""

import errno
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privstats import ClassSchema, domains
from privstats.dp import Ledger, NoPrivacy, Privacy, calibrate
from privstats.dp.ledger import anchor as ledger_anchor
from privstats.dp.ledger import file as ledger_file
from privstats.dp.ledger.accounts import LedgerState
from privstats.dp.ledger.anchor import head_path
from privstats.dp.ledger.book import FIRST_COUNTER
from privstats.dp.ledger.records import Capped, Counted, Finished, Head, Opened, Part, Spent, encode, link, no_records
from privstats.errors import LedgerError, PrivstatsError
from tests import made
from tests.faults import Fuse, Killed, fails, killed

SCHEMA = ClassSchema(3, 4, "NAB", 1.0)
PRIVACY = Privacy(model="central", unit="record", adjacency="add-remove", epsilon=0.1, delta=1e-6)
NOISE = calibrate(SCHEMA, PRIVACY, honest_shares=1)
CAP = made.cap(delta=1e-6)


def spend(ledger, run=None):
    run = run or os.urandom(8)
    return ledger.spend("ward", plan="d1ce", run=run, schema=SCHEMA, privacy=PRIVACY, noise=NOISE)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A ledger of eight records of every kind."""
    ledger = Ledger.create(tmp_path_factory.mktemp("chain") / "spent.db")
    ledger.set_cap("ward", **CAP)
    ledger.finish(spend(ledger), b"upload")
    spend(ledger)
    ledger.accept_counter(b"m" * 32, FIRST_COUNTER, b"run")
    ledger.spend("open", plan="0pen", run=b"x", schema=SCHEMA, privacy=NoPrivacy(), noise=None)
    ledger.set_cap("ward", **CAP | {"epsilon": 4.0})
    return ledger


@pytest.fixture
def ledger(template, tmp_path):
    return copied(template.path, tmp_path / "spent.db")


def copied(source, target, *, head=True):
    shutil.copy(source, target)
    if head:
        shutil.copy(head_path(Path(source)), head_path(Path(target)))
    return Ledger(target)


def by_hand(ledger, *statements):
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        for statement, *values in statements:
            connection.execute(statement, values)


def rows(ledger):
    with closing(sqlite3.connect(ledger.path)) as connection:
        return connection.execute("SELECT number, body, digest FROM log ORDER BY number").fetchall()


def edits(draw, number, body):
    place = draw(st.integers(0, len(body) - 1))
    other = draw(st.characters(min_codepoint=32, max_codepoint=126).filter(lambda c: c != body[place]))
    return [("UPDATE log SET body = ? WHERE number = ?", body[:place] + other + body[place + 1 :], number)]


def new_digests(draw, number, body):
    digest = draw(st.text("0123456789abcdef", min_size=64, max_size=64))
    return [("UPDATE log SET digest = ? WHERE number = ?", digest, number)]


def removals(draw, number, body):
    return [("DELETE FROM log WHERE number = ?", number)]


def removals_that_close_the_gap(draw, number, body):
    return [
        ("DELETE FROM log WHERE number = ?", number),
        ("UPDATE log SET number = -number WHERE number > ?", number),
        ("UPDATE log SET number = -number - 1 WHERE number < 0",),
    ]


def exchanges(draw, number, body):
    other = draw(st.integers(1, 8).filter(lambda n: n != number))
    return [
        ("UPDATE log SET number = 99 WHERE number = ?", number),
        ("UPDATE log SET number = ? WHERE number = ?", number, other),
        ("UPDATE log SET number = ? WHERE number = 99", other),
    ]


def additions(draw, number, body):
    return [("INSERT INTO log SELECT 9, body, digest FROM log WHERE number = ?", number)]


@settings(max_examples=40)
@given(data=st.data())
@pytest.mark.parametrize("tamper", [edits, new_digests, removals, removals_that_close_the_gap, exchanges, additions])
def test_an_edited_removed_moved_or_added_record_is_noticed(tamper, template, tmp_path_factory, data):
    ledger = copied(template.path, tmp_path_factory.mktemp("tampered") / "spent.db")
    found = rows(ledger)
    number, body, _ = data.draw(st.sampled_from(found))
    by_hand(ledger, *tamper(data.draw, number, body))
    for use in (ledger.accounts, lambda: spend(ledger), lambda: Ledger.open(ledger.path)):
        with pytest.raises(LedgerError, match="edited, removed or moved|older copy|first record is missing"):
            use()


def test_a_ledger_cut_off_anywhere_is_refused_in_one_sentence(ledger):
    """SQLite reads what is missing as NULL."""
    path = Path(ledger.path)
    whole, before = path.read_bytes(), ledger.account("ward")
    for size in range(0, len(whole), 61):
        path.write_bytes(whole[:size])
        try:
            assert ledger.account("ward") == before  # pages that hold nothing may go
        except LedgerError as refusal:
            assert "\n" not in str(refusal)


def test_a_chain_that_was_computed_anew_after_an_edit_is_noticed_by_the_head(ledger):
    head, changes = no_records(), []
    for number, body, _ in rows(ledger):
        forged = body.replace('"epsilon":3.0', '"epsilon":30.0')
        head = link(head, forged.encode())
        changes.append(("UPDATE log SET body = ?, digest = ? WHERE number = ?", forged, head.digest, number))
    by_hand(ledger, *changes)
    with pytest.raises(LedgerError, match="older copy of it or another|older copy or another ledger"):
        ledger.accounts()
    head_path(Path(ledger.path)).write_text(str(head))  # who writes both files anew is noticed by nobody ...
    assert ledger.account("ward").caps[0].epsilon == 30.0
    with pytest.raises(LedgerError, match="expected_head"):  # ... but by the one who kept the head elsewhere
        Ledger(ledger.path, expected_head=str(Head(len(changes), "0" * 64))).accounts()


@pytest.mark.parametrize("spends", [1, 3])
def test_a_restored_backup_of_the_ledger_is_noticed_even_one_step_back(ledger, tmp_path, spends):
    backup = copied(ledger.path, tmp_path / "backup.db")
    for _ in range(spends):
        spend(ledger)
    shutil.copy(backup.path, ledger.path)
    for use in (ledger.accounts, lambda: spend(ledger), lambda: ledger.set_cap("ward", **CAP)):
        with pytest.raises(LedgerError, match="restore the newest"):
            use()


@pytest.mark.parametrize("spends", [1, 3])
def test_attack_a_folder_restored_in_place_spends_a_second_time(ledger, tmp_path, spends):
    """The double of the refusal is the owner's word, which forgets what was spent after the copy."""
    spend(ledger)
    backup, mu = copied(ledger.path, tmp_path / "backup.db"), ledger.account("ward").mu
    for _ in range(spends):
        spend(ledger)
    copied(backup.path, ledger.path)
    for use in (
        ledger.accounts,
        lambda: spend(ledger),
        lambda: ledger.set_cap("ward", **CAP),
        lambda: Ledger.open(ledger.path),
    ):
        with pytest.raises(LedgerError, match=f"says {9 + spends}, or others: its folder was restored.*`privstats led"):
            use()
    assert ledger.accept_restored() == spends
    assert ledger.account("ward").mu == mu
    spend(ledger)
    assert ledger.accept_restored() == 0


def test_a_copy_that_went_another_way_is_refused_beside_the_first(ledger, tmp_path):
    spend(ledger)
    other = copied(ledger.path, tmp_path / "other.db")
    spend(ledger)
    with pytest.raises(LedgerError, match="restored from a backup, or copied"):
        spend(other)
    assert other.accept_restored() == 1
    spend(other)
    with pytest.raises(LedgerError, match="restored from a backup, or copied"):
        ledger.accounts()


def test_a_state_folder_that_is_lost_locks_no_ledger_out_and_counts_from_there(ledger, tmp_path, state_folder):
    spend(ledger)
    shutil.rmtree(state_folder)
    ledger.accounts()
    assert not state_folder.exists(), "who reads writes nothing"
    backup = copied(ledger.path, tmp_path / "backup.db")
    spend(ledger)
    copied(backup.path, ledger.path)
    with pytest.raises(LedgerError, match="restored from a backup"):
        ledger.accounts()


@pytest.mark.parametrize("use", [spend, Ledger.accounts])
def test_a_head_outside_that_cannot_be_read_admits_no_older_copy(ledger, tmp_path, use):
    """An unreadable head counted as none, and the older copy's next spend replaced it."""
    backup = copied(ledger.path, tmp_path / "backup.db")
    spend(ledger)
    copied(backup.path, ledger.path)
    with fails(OSError(errno.EMFILE, "Too many open files"), "privstats.files.outside.open_plain"):
        made.refused(LedgerError, "outside its folder: Too many open files", use, ledger)
    made.refused(LedgerError, "restored from a backup", use, ledger)


@pytest.mark.parametrize("damage", [b"", b"2\n", b"\xff" * 300])
@pytest.mark.parametrize("use", [spend, Ledger.accounts, Ledger.accept_restored])
def test_a_damaged_head_outside_is_named_with_what_to_do(ledger, state_folder, use, damage):
    spend(ledger)
    head, (outside,) = ledger.head, (state_folder / "privstats/ledgers").glob("[!.]*")
    outside.write_bytes(damage)
    made.refused(LedgerError, f"{outside} is damaged: .* remove that file", use, ledger)
    outside.write_text(f"{head}\n")
    use(ledger)
    outside.unlink()
    use(ledger)


def test_a_state_folder_that_cannot_be_written_spends_nothing(ledger, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    before = ledger.head
    with pytest.raises(LedgerError, match="outside its folder: .*XDG_STATE_HOME.*nothing was spent"):
        spend(ledger)
    assert ledger.head == before


def test_copies_whose_transactions_overlap_spend_one_cap(ledger, tmp_path):
    """Each checked the head before the other had written its own: both spent all of the cap."""
    other = replace(copied(ledger.path, tmp_path / "copy.db"), timeout=0.05)
    with ledger_file.writing(Path(ledger.path), 1.0) as log:
        made.refused(LedgerError, "^another copy of ledger .* is being written: keep one copy", spend, other)
        log.append(Counted(at="now", members="aa", counter=0, run="bb"))
    made.refused(LedgerError, "restored from a backup", spend, other)
    spend(ledger)


def test_a_kill_between_the_writes_locks_nobody_out_and_lets_no_older_copy_in(template, tmp_path, monkeypatch):
    """Ledger, head beside it, head outside: cut short before each of them, and done again."""
    fuse = Fuse(monkeypatch)
    for waits in range(1, 100):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"{waits}.state"))
        here = copied(template.path, tmp_path / f"{waits}.db")
        spend(here, b"first")
        backup = copied(here.path, tmp_path / f"{waits}.backup")
        fuse.left = waits
        with suppress(Killed):
            spend(here, b"second")
        done, fuse.left = fuse.left > 0, 0
        here.accounts()
        spend(here, b"second")
        here.finish(here.account("ward").of_run(b"second"), b"upload")
        copied(backup.path, here.path)
        with pytest.raises(LedgerError, match="restored from a backup"):
            here.accounts()
        if done:
            assert waits > 4
            return
    raise AssertionError("it never comes through")


def test_a_restored_folder_is_noticed_by_the_head_that_was_kept_elsewhere(ledger, tmp_path, state_folder):
    backup = copied(ledger.path, tmp_path / "backup.db")
    before = ledger.head
    spend(ledger)
    kept = ledger.head
    copied(backup.path, ledger.path)
    shutil.rmtree(state_folder)
    assert Ledger(ledger.path).head == before  # nothing on the disk can tell, where the whole disk was restored
    assert Ledger(ledger.path, expected_head=before).head == before
    with pytest.raises(LedgerError, match="expected_head"):
        Ledger.open(ledger.path, expected_head=kept)
    with pytest.raises(LedgerError, match="expected_head"):
        spend(Ledger(ledger.path, expected_head=kept))


def test_another_ledger_is_not_taken_for_this_one(ledger, tmp_path):
    other = Ledger.create(tmp_path / "other.db")
    other.set_cap("ward", **CAP)
    for _ in range(9):
        spend(other)
    shutil.copy(other.path, ledger.path)
    with pytest.raises(LedgerError, match="another ledger"):
        ledger.accounts()


def test_records_under_another_name_are_another_account_and_nothing_tells(ledger):
    """The double of the refusals above: a ledger knows names, and no records."""
    spent = ledger.account("ward").mu
    ledger.set_cap("ward again", **CAP)
    assert ledger.account("ward again").mu == 0.0
    assert ledger.account("ward").mu == spent


def test_without_its_head_a_ledger_is_believed_only_on_somebodys_word(ledger):
    kept = ledger.head
    head_path(Path(ledger.path)).unlink()
    with pytest.raises(LedgerError, match="expected_head"):
        ledger.accounts()
    trusting = Ledger(ledger.path, expected_head=kept)
    spend(trusting)
    assert Head.parse(head_path(Path(ledger.path)).read_text(), "it").length == 9
    assert len(Ledger(ledger.path).accounts()) == 2


@pytest.mark.parametrize("text", ["", "7", "7-abc", "x" * 500, "\xff"])
def test_a_spoiled_head_is_refused(ledger, text):
    head_path(Path(ledger.path)).write_text(text, "latin-1")
    with pytest.raises(LedgerError, match="copy it whole"):
        ledger.accounts()


@pytest.mark.parametrize("given", ["", "7", 7, "7-" + "g" * 64])
def test_an_expected_head_that_is_none_is_refused_at_once(given):
    with pytest.raises(LedgerError, match="expected_head must be a head as printed"):
        Ledger("spent.db", expected_head=given)


def test_a_head_that_cannot_be_read_is_one_sentence(ledger):
    head_path(Path(ledger.path)).unlink()
    head_path(Path(ledger.path)).mkdir()
    with pytest.raises(LedgerError, match="holds the ledger's head"):
        ledger.accounts()


def test_a_head_that_cannot_be_written_refuses_the_spend(ledger):
    with fails(PrivstatsError("cannot write it: no space left"), "privstats.dp.ledger.anchor.atomic_write"):
        spend(ledger)  # the head before it is on the disk already; the head after it is one step behind
        with pytest.raises(LedgerError, match="no space left; nothing was spent"):
            spend(ledger)
    assert len(ledger.account("ward").entries) == 3


def test_missing_is_not_new(tmp_path):
    path = tmp_path / "spent.db"
    missing = Ledger(path)
    for use in (
        lambda: missing.set_cap("ward", **CAP),
        lambda: spend(missing),
        missing.accounts,
        lambda: Ledger.open(path),
    ):
        with pytest.raises(LedgerError, match="no ledger at .*Ledger.create"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_is_gone_is_not_made_again(ledger):
    Path(ledger.path).unlink()
    with pytest.raises(LedgerError, match="8 records was at .* and is gone"):
        Ledger.create(ledger.path)


def test_a_ledger_is_created_once(ledger):
    with pytest.raises(LedgerError, match="already a file"):
        Ledger.create(ledger.path)


@pytest.mark.parametrize("path", [None, 7, Ledger("spent.db")])
def test_a_ledger_is_named_by_a_path(path):
    with pytest.raises(LedgerError, match="give its path"):
        Ledger(path)


POINTS = {  # at which a process can die between taking the lock and returning
    "before the head": ("privstats.dp.ledger.file.keep_head", 1),
    "before the record": ("privstats.dp.ledger.file.Log.append", 1),
    "after the commit": ("privstats.dp.ledger.file.keep_head", 2),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_of_creating_can_be_made_good(point, tmp_path):
    path = tmp_path / "spent.db"
    with killed(*POINTS[point]):
        Ledger.create(path)
    if point == "after the commit":
        Ledger.open(path).set_cap("ward", **CAP)
    else:
        Ledger.create(path).set_cap("ward", **CAP)
    assert len(Ledger.open(path).accounts()) == 1


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_of_spending_costs_one_spend_and_no_more(point, ledger):
    with killed(*POINTS[point]):
        spend(ledger, b"the run")
    entry = spend(ledger, b"the run")
    assert spend(ledger, b"the run") == entry
    assert [mine.run for mine in ledger.account("ward").entries].count(b"the run") == 1
    with killed(*POINTS[point]):
        ledger.finish(entry, b"upload")
    ledger.finish(entry, b"upload")
    assert ledger.account("ward").of_run(b"the run").upload == b"upload"


def test_a_ledger_of_format_1_is_refused_by_what_takes_it_over(ledger):
    by_hand(ledger, ("PRAGMA user_version = 1",))
    for use in (ledger.accounts, lambda: spend(ledger)):
        with pytest.raises(
            LedgerError, match="format 1, from before the first release .*let privstats 0.2.0 write to it"
        ):
            use()


def test_spends_that_0_2_0_took_over_from_format_1_still_count(tmp_path):
    """They have no run name, and a release that was sent has no upload."""
    path = tmp_path / "taken.db"
    parts = (Part("N", 4.0, 0.06), Part("A", 2.0, 0.08))
    told = {
        "dataset": "ward",
        "plan": "d1ce",
        "run": "",
        "what": "release",
        "model": "local",
        "mu": 0.1,
        "parts": parts,
    }
    cap = {"dataset": "ward", "unit": "record", "adjacency": "add-remove", "epsilon": 3.0, "delta": 1e-6}
    records = [Opened(at="", ledger="5" * 32), Capped(at="2030", **cap), Spent(at="2031", **told)]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA application_id = {domains.LEDGER_FILE}")
        head = ledger_file._begun(connection, [*records, Finished(at="2032", spend=3, upload="")]).head
    ledger_anchor.keep_head(path, head)
    before = Ledger(path).account("ward")
    assert [(entry.mu, entry.released, entry.run) for entry in before.entries] == [(0.1, "2032", b"")]
    ledger = Ledger(path, clock=lambda: datetime(2035, 1, 1, tzinfo=UTC))
    assert ledger.account("ward").entries[:1] == before.entries
    entry = spend(ledger)
    assert ledger.account("ward").entries == (*before.entries, entry)


def test_records_that_chain_but_make_no_sense_are_refused(tmp_path):
    with pytest.raises(LedgerError, match="no record allowed"):
        LedgerState.of([Opened(at="", ledger=""), Finished(at="", spend=7, upload="")])
    ledger = Ledger.create(tmp_path / "spent.db")
    body = encode(Finished(at="", spend=7, upload="")).decode().replace("finished", "forgotten")
    head = link(Head.parse(ledger.head, "it"), body.encode())
    by_hand(ledger, ("INSERT INTO log VALUES (?, ?, ?)", head.length, body, head.digest))
    with pytest.raises(LedgerError, match="not of a version that this privstats knows"):
        ledger.accounts()


def test_a_ledger_without_a_first_record_is_refused(ledger):
    by_hand(ledger, ("DELETE FROM log",))
    with pytest.raises(LedgerError, match="first record is missing"):
        ledger.accounts()
