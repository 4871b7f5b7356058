"""The ledger remembers every spend, keeps the cap, and says no in one sentence."""

import math
import os
import random
import resource
import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privstats import ClassSchema
from privstats.dp import Ledger, NoPrivacy, Privacy, calibrate, gaussian_delta, gaussian_mu, joint_mu
from privstats.dp.ledger import records as ledger_records
from privstats.errors import LedgerError, PlanError
from tests import made
from tests.forks import beside

SCHEMA = ClassSchema(3, 4, "NAB", 1.0)
CAP = made.cap(delta=1e-6)


def promise(**change):
    return made.promise(**{"delta": 1e-6, **change})


def spend(ledger, privacy=None, dataset="ward", run=None, plan="d1ce", **more):
    privacy = privacy or promise()
    noise = None if isinstance(privacy, NoPrivacy) else calibrate(SCHEMA, privacy, honest_shares=3)
    run = os.urandom(8) if run is None else run
    return ledger.spend(dataset, plan=plan, run=run, schema=SCHEMA, privacy=privacy, noise=noise, **more)


@pytest.fixture
def ledger(tmp_path):
    return made.ledger(tmp_path / "spent.db", clock=lambda: datetime(2031, 5, 4, tzinfo=UTC), delta=1e-6)


def test_an_entry_says_what_when_and_how_much(ledger):
    entry = spend(ledger)
    (kept,) = ledger.account("ward").entries
    assert kept == entry
    assert (kept.plan, kept.model, kept.at, kept.released) == ("d1ce", "central", "2031-05-04T00:00:00.000+00:00", None)
    noise = calibrate(SCHEMA, promise(), honest_shares=1)
    assert {part.statistic: part.mu for part in kept.parts} == {row.statistic: row.mu for row in noise.rows}
    assert kept.mu == noise.mu


def test_a_ledger_that_is_asked_answers_as_it_would_and_keeps_nothing(ledger):
    asked, before = ledger.asking(), ledger.file.read_bytes()
    assert spend(asked, run=b"first").mu == spend(asked, run=b"first").mu > 0
    with pytest.raises(LedgerError, match="would reach epsilon"):
        spend(asked, promise(epsilon=100.0))
    assert ledger.accounts()[0].entries == ()
    assert ledger.file.read_bytes() == before
    assert spend(ledger, run=b"first").run == b"first"


def test_changes_of_records_come_back_with_their_bytes_in_order_and_of_their_own_spend(ledger):
    one, other = spend(ledger, run=b"one"), spend(ledger, run=b"other")
    for entry, body in ((one, b"a"), (other, b"b"), (one, b"c")):
        with ledger.holding(entry, writes=True) as held:
            written = held.write("entered", body)
            assert held.body(written) == body
    with ledger.holding(one) as held:
        assert [held.body(each) for each in held.of_stream()] == [b"a", b"c"]
        assert [held.body(each) for each in held.changes()] == [b"a", b"b", b"c"]
        last = [each.number for each in held.changes()][-1]
        assert ledger.head == f"{last}-{held.digest_after(last)}"
        assert (held.digest_after(last + 1), held.digest_after(-1)) == (None, None)


def test_changes_of_records_are_written_all_or_none_and_of_a_ledger_that_is_asked_none(ledger):
    entry = spend(ledger)
    before = ledger.head

    def take(node, book=ledger):
        with book.holding(entry, writes=True) as held:
            held.write("taken", b"a", 0)
            held.begin(node)

    with pytest.raises(LedgerError, match="this spend pays for rounds 0 to 0"):
        take(1)
    take(0, ledger.asking())
    assert ledger.head == before
    take(0)
    assert len(ledger.account("ward").entries[0].begun) == 1
    after = ledger.head
    with pytest.raises(LedgerError, match="round 0 of this course has begun"):
        take(0)
    assert ledger.head == after


def test_edited_bytes_of_a_change_are_refused(ledger):
    entry = spend(ledger)
    with ledger.holding(entry, writes=True) as held:
        held.write("entered", b"a")
    with closing(sqlite3.connect(ledger.path)) as file, file:
        file.execute("UPDATE beside SET body = ?", (b"b",))
    with pytest.raises(LedgerError, match="was edited"), ledger.holding(entry) as held:
        held.body(next(held.changes()))


def test_finishing_a_release_is_noted_and_changes_no_total(ledger):
    entry = spend(ledger)
    before = ledger.account("ward").mu
    ledger.finish(entry)
    account = ledger.account("ward")
    assert account.entries[0].released is not None
    assert account.mu == before


def test_only_what_this_ledger_gave_can_be_finished(ledger, tmp_path):
    spend(ledger)
    other = Ledger.create(tmp_path / "other.db")
    other.set_cap("ward", **CAP)
    foreign = spend(other)
    for entry in (99, foreign):
        made.refused(LedgerError, "give the entry that spend returned", ledger.finish, entry)
    assert ledger.account("ward").entries[0].released is None


def test_totals_compose_like_gaussians_and_by_statistic(ledger):
    for _ in range(3):
        spend(ledger)
    account = ledger.account("ward")
    one = gaussian_mu(1.0, 1e-6)
    assert account.mu == pytest.approx(math.sqrt(3) * one)
    assert gaussian_delta(math.sqrt(3) * one, account.spent) == pytest.approx(1e-6)
    assert math.hypot(*account.statistics().values()) == pytest.approx(account.mu)


@settings(deadline=None, max_examples=10)
@given(epsilons=st.lists(st.floats(0.1, 3), min_size=1, max_size=12))
def test_the_cap_is_never_passed_and_a_refusal_spends_nothing(epsilons, tmp_path_factory):
    ledger = Ledger.create(tmp_path_factory.mktemp("ledger") / "spent.db")
    ledger.set_cap("ward", **CAP)
    allowed = []
    for epsilon in epsilons:
        try:
            allowed.append(spend(ledger, promise(epsilon=epsilon)).mu)
        except LedgerError as refused:
            assert "is left" in str(refused)
            assert math.hypot(*allowed, gaussian_mu(epsilon, 1e-6)) > gaussian_mu(3.0, 1e-6)
    account = ledger.account("ward")
    assert [entry.mu for entry in account.entries] == allowed
    assert not account.exceeded


def test_exactly_the_cap_can_be_spent_and_then_nothing(ledger):
    spend(ledger, promise(epsilon=3.0))
    with pytest.raises(LedgerError, match="at most epsilon 0 |nothing is left"):
        spend(ledger, promise(epsilon=0.01))


def test_another_adjacency_is_charged_what_it_costs_here(ledger):
    privacy = promise(adjacency="replace-one", model="distributed")
    entry = spend(ledger, privacy)
    noise = calibrate(SCHEMA, privacy, honest_shares=3)
    assert entry.mu == pytest.approx(joint_mu(SCHEMA, noise.sigma, "add-remove"))
    assert entry.mu < noise.mu


def test_a_client_promise_is_charged_per_client_or_per_record(ledger):
    privacy = promise(unit="client", max_records_per_client=50)
    noise = calibrate(SCHEMA, privacy, honest_shares=1)
    assert spend(ledger, privacy).mu == pytest.approx(noise.mu / 50)
    ledger.set_cap("clients", unit="client", adjacency="add-remove", epsilon=3.0, delta=1e-6)
    assert spend(ledger, privacy, "clients").mu == noise.mu
    with pytest.raises(LedgerError, match="per client"):
        spend(ledger, promise(), "clients")


def test_caps_can_move_but_not_below_what_is_spent_nor_to_another_unit(ledger):
    spend(ledger)
    ledger.set_cap("ward", **CAP | {"epsilon": 5.0})
    assert ledger.account("ward").epsilon == 5.0
    made.refused(LedgerError, "cannot go below", ledger.set_cap, "ward", **CAP | {"epsilon": 0.5})
    made.refused(LedgerError, "can no longer change", ledger.set_cap, "ward", **CAP | {"adjacency": "replace-one"})
    made.refused(PlanError, "epsilon", ledger.set_cap, "ward", **CAP | {"epsilon": -1.0})
    assert ledger.account("ward").epsilon == 5.0


def test_accounts_are_separate(ledger):
    ledger.set_cap("clinic", **CAP)
    spend(ledger)
    assert [(account.dataset, len(account.entries)) for account in ledger.accounts()] == [("clinic", 0), ("ward", 1)]
    assert ledger.account("clinic").spent == 0.0


def test_an_overdrawn_account_shows(ledger):
    spend(ledger)
    account = ledger.account("ward")
    assert not account.exceeded
    assert replace(account, caps=(replace(account.cap, epsilon=0.1),)).exceeded


@pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", 7])
def test_names_are_short_and_printable(ledger, name):
    made.refused(LedgerError, "printable", ledger.set_cap, name, **CAP)


def test_an_unknown_account_and_a_missing_file_are_refused_and_nothing_is_made(ledger, tmp_path):
    made.refused(LedgerError, "no account 'elsewhere'", spend, ledger, dataset="elsewhere")
    made.refused(LedgerError, "no account 'elsewhere'", ledger.account, "elsewhere")
    missing = Ledger(tmp_path / "missing.db")
    made.refused(LedgerError, "no ledger at", spend, missing)
    assert not (tmp_path / "missing.db").exists()


def test_a_withdrawal_is_a_format_that_older_versions_refuse_by_name_and_reads_on(ledger):
    """They know formats 1 and 2 and say "upgrade privstats"; a ledger without one stays as they left it."""

    def version():
        with closing(sqlite3.connect(ledger.path)) as file:
            return file.execute("PRAGMA user_version").fetchone()[0]

    entry = spend(ledger)
    assert version() == 2
    for _ in range(2):
        ledger.withdraw(entry)
    assert version() == 3
    (kept,) = Ledger.open(ledger.path).account("ward").entries
    assert (kept.id, bool(kept.withdrawn)) == (entry.id, True)
    made.refused(LedgerError, "was withdrawn", ledger.finish, entry)
    made.refused(LedgerError, "was withdrawn", spend, ledger, run=entry.run)


def test_a_record_that_withdraws_what_may_have_left_is_damage(ledger):
    entry = spend(ledger)
    ledger.finish(entry)
    spent = ledger_records.Withdrawn(at="now", spend=entry.id)
    with ledger._writing() as log:
        log.append(spent)
    made.refused(LedgerError, "withdraws a session that no record allowed", ledger.accounts)


def test_a_newer_ledger_is_left_alone(ledger):
    with closing(sqlite3.connect(ledger.path)) as newer:
        newer.execute("PRAGMA user_version = 6")
    for use in (lambda: spend(ledger), lambda: ledger.accounts(), lambda: ledger.set_cap("ward", **CAP)):
        made.refused(LedgerError, r"^ledger \S+ has format 6 .* upgrade privstats; nothing was spent$", use)


def test_another_database_is_not_taken_for_a_ledger(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE cats (name TEXT)")
    with pytest.raises(LedgerError, match="not a privstats ledger"):
        Ledger(path).set_cap("ward", **CAP)
    with pytest.raises(LedgerError, match="already a file"):
        Ledger.create(path)


def test_a_file_of_noise_is_refused(tmp_path):
    path = tmp_path / "noise.db"
    path.write_bytes(bytes(range(256)) * 64)
    with pytest.raises(LedgerError, match="backup"):
        Ledger(path).set_cap("ward", **CAP)
    with pytest.raises(LedgerError, match="backup"):
        Ledger(path).accounts()


def test_a_damaged_table_is_refused(ledger):
    with closing(sqlite3.connect(ledger.path)) as damaged, damaged:
        damaged.execute("DROP TABLE log")
    with pytest.raises(LedgerError, match="backup; nothing was spent"):
        spend(ledger)


def test_a_plan_that_clips_whole_clients_has_no_known_cost_per_record(tmp_path):
    ledger = made.ledger(tmp_path / "ledger.sqlite", "d", epsilon=5.0, delta=1e-6)
    schema = ClassSchema(3, 4, "NAB", clip_norm=1.0)
    privacy = Privacy(
        model="central",
        unit="client",
        adjacency="add-remove",
        epsilon=1.0,
        delta=1e-6,
        max_records_per_client=20,
        client_clip=10.0,
    )
    with pytest.raises(LedgerError, match="keep an account per client"):
        ledger.spend(
            "d", plan="p", run=b"r", schema=schema, privacy=privacy, noise=calibrate(schema, privacy, honest_shares=1)
        )
    assert ledger.account("d").entries == ()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(LedgerError, match="folder"):
        Ledger.create(tmp_path / "no" / "spent.db")


def test_a_locked_ledger_gives_up_after_its_timeout_and_spends_nothing(ledger):
    impatient = Ledger(ledger.path, timeout=0.05)
    with closing(sqlite3.connect(ledger.path)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked by another process"):
            spend(impatient)
        holder.execute("ROLLBACK")
    assert ledger.account("ward").entries == ()


def spend_and_log(path, log, times, epsilon):
    """In a process of its own: spend, and write each entry down as if its noise were drawn then."""
    subject = Ledger(path, timeout=30)
    for _ in range(times):
        try:
            entry = spend(subject, promise(epsilon=epsilon))
        except LedgerError as refused:
            assert "nothing was spent" in str(refused), refused
            continue
        with log.open("a") as drawn:  # from here on the release may be seen
            drawn.write(f"{entry.id}\n")
            drawn.flush()
            os.fsync(drawn.fileno())


def test_processes_spending_at_once_cannot_pass_the_cap(ledger, tmp_path):
    """Six processes try 60 releases of epsilon 0.5; the cap has room for a known number and exactly those happen."""
    room = math.floor((gaussian_mu(3.0, 1e-6) / gaussian_mu(0.5, 1e-6)) ** 2)
    assert 10 < room < 60
    logs = [tmp_path / f"drawn{i}" for i in range(6)]
    workers = [beside(spend_and_log, ledger.path, log, 10, 0.5) for log in logs]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    drawn = [line for log in logs if log.exists() for line in log.read_text().splitlines()]
    account = ledger.account("ward")
    assert len(account.entries) == room
    assert sorted(map(int, drawn)) == [entry.id for entry in account.entries]
    assert not account.exceeded


def wait_for_lines(log, least):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if log.exists() and len(log.read_text().splitlines()) >= least:
            return
        time.sleep(0.005)
    pytest.fail(f"{least} releases did not happen within a minute")


@pytest.mark.slow
def test_a_killed_process_can_lose_a_release_but_never_a_spend(ledger, tmp_path):
    """SIGKILL at random moments: whatever was drawn is on record, the file opens, and the cap still holds."""
    ledger.set_cap("ward", **CAP | {"epsilon": 50.0})
    log = tmp_path / "drawn"
    moments = random.Random(7)
    for kill in range(1, 6):
        worker = beside(spend_and_log, ledger.path, log, 10_000, 0.05)
        wait_for_lines(log, 2 * kill - 1)
        time.sleep(moments.uniform(0, 0.1))
        worker.kill()
        worker.join()
    drawn = [int(line) for line in log.read_text().splitlines()]
    account = ledger.account("ward")
    recorded = {entry.id for entry in account.entries}
    assert len(drawn) >= 9
    assert set(drawn) <= recorded
    assert len(recorded) - len(drawn) <= 5  # at most the one in flight at each kill
    assert all(len(entry.parts) == 3 for entry in account.entries)
    assert not account.exceeded


@contextmanager
def no_file_may_grow_beyond(size):
    """As good as a full disk: writes past ``size`` bytes fail with an error, because Python ignores SIGXFSZ."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def spend_until_refused(ledger):
    for allowed in range(200):
        try:
            spend(ledger, promise(epsilon=0.02))
        except LedgerError as refused:
            return allowed, str(refused)
    pytest.fail("two hundred spends fitted into a file that could not grow")


def test_a_full_disk_refuses_the_spend_and_keeps_the_record(ledger):
    spend(ledger)
    with no_file_may_grow_beyond(Path(ledger.path).stat().st_size):
        allowed, refusal = spend_until_refused(ledger)
    assert "disk is full" in refusal
    assert len(ledger.account("ward").entries) == 1 + allowed
    spend(ledger, promise(epsilon=0.1))  # and with room again it goes on


def test_a_ledger_that_a_full_disk_broke_off_is_called_so_and_can_be_made_again(tmp_path):
    path = tmp_path / "new.db"
    with no_file_may_grow_beyond(200), pytest.raises(LedgerError, match="disk is full or failing, free some space"):
        Ledger.create(path)
    assert path.stat().st_size == 0
    with pytest.raises(LedgerError, match=r"new\.db is empty, as a full disk leaves a ledger .*`privstats ledger open"):
        Ledger.open(path)
    assert Ledger.create(path).accounts() == ()


def test_a_ledger_that_was_emptied_is_lost_and_no_fresh_budget(ledger):
    spend(ledger)
    Path(ledger.path).write_bytes(b"")
    for opened in (Ledger.open, Ledger.create):
        with pytest.raises(LedgerError, match=r"a ledger of \d records was at .* and is gone: restore it"):
            opened(ledger.path)


def test_a_new_ledger_and_its_head_are_their_owners_alone_and_stay_as_the_owner_leaves_them(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = Ledger.create(tmp_path / "ledger.db")
        ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
        "ledger.db": 0o600,
        "ledger.db.head": 0o600,
    }
    (tmp_path / "ledger.db").chmod(0o640)  # its owner lets a group read it
    ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
    assert (tmp_path / "ledger.db.head").stat().st_mode & 0o777 == 0o640
