"""One run, one spend, one upload: retries, plans without DP, and the numbers of runs."""

import math
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from privstats import ClassSchema
from privstats.dp import Account, Cap, Ledger, NoPrivacy, calibrate, gaussian_epsilon, gaussian_mu
from privstats.dp.ledger.book import FIRST_COUNTER
from privstats.dp.ledger.records import Finished
from privstats.errors import LedgerError
from tests import made
from tests.forks import beside

SCHEMA = ClassSchema(3, 4, "NAB", 1.0)
CAP = made.cap(delta=1e-6)
WE = b"w" * 32
THEY = b"t" * 32


def promise(epsilon=1.0):
    return made.promise("distributed", epsilon=epsilon, delta=1e-6)


def spend(ledger, run, privacy=None, dataset="ward", plan="d1ce", **more):
    privacy = privacy or promise()
    noise = None if isinstance(privacy, NoPrivacy) else calibrate(SCHEMA, privacy, honest_shares=3)
    return ledger.spend(dataset, plan=plan, run=run, schema=SCHEMA, privacy=privacy, noise=noise, **more)


@pytest.fixture
def ledger(tmp_path):
    return made.ledger(tmp_path / "spent.db", clock=lambda: datetime(2031, 5, 4, tzinfo=UTC), delta=1e-6)


def test_until_the_upload_has_left_the_same_run_costs_once(ledger):
    entries = {spend(ledger, b"may").id for _ in range(5)}
    assert len(entries) == 1
    assert ledger.account("ward").spent == pytest.approx(1.0)


def test_a_retry_after_the_upload_has_left_is_a_second_release(ledger):
    ledger.finish(spend(ledger, b"may"))
    with pytest.raises(LedgerError, match="a retry is a second release, so agree on a new run name"):
        spend(ledger, b"may")
    assert spend(ledger, b"may, again").id != spend(ledger, b"june").id
    assert ledger.account("ward").mu == pytest.approx(math.sqrt(3) * gaussian_mu(1.0, 1e-6))


@pytest.mark.parametrize("left", [False, True])
def test_one_run_name_serves_one_plan(ledger, left):
    entry = spend(ledger, b"may")
    if left:
        ledger.finish(entry)
    for change in ({"plan": "0ther"}, {"privacy": promise(0.5)}):
        with pytest.raises(LedgerError, match="new run name"):
            spend(ledger, b"may", **change)
    assert len(ledger.account("ward").entries) == 1


def test_the_same_run_is_another_spend_for_another_data_set(ledger):
    ledger.set_cap("clinic", **CAP)
    assert spend(ledger, b"may").id != spend(ledger, b"may", dataset="clinic").id


@pytest.mark.parametrize("first", ["round", "nothing"])
def test_where_a_round_has_begun_its_upload_is_the_only_one(ledger, first):
    """By direct calls a marked entry recorded two uploads: its round's, and one for all of it."""
    entry = spend(ledger, b"may")
    ledger.mark_started(entry, 0)
    if first == "round":
        ledger.finish_round(entry, 0, b"one")
    for upload in (b"one", b"two", b""):
        made.refused(LedgerError, "round 0 of this spend has begun.*finish_round", ledger.finish, entry, upload)
    ledger.finish_round(entry, 0, b"one")
    (kept,) = ledger.account("ward").entries
    assert (kept.released, kept.uploads) == (None, ((0, b"one".hex()),))


def test_in_a_ledger_that_recorded_one_upload_for_all_no_round_sends_another(ledger):
    """An older version let a marked entry be finished."""
    entry = spend(ledger, b"may")
    ledger.mark_started(entry, 0)
    with ledger._writing() as log:
        log.append(Finished(at="now", spend=entry.id, upload=b"one".hex()))
    made.refused(LedgerError, "new run name", ledger.finish_round, entry, 0, b"two")
    ledger.finish(entry, b"one")


@pytest.mark.parametrize("run", [b"", b"x" * 65, "may", None])
def test_what_is_charged_has_a_run_name(ledger, run):
    with pytest.raises(LedgerError, match="run name of 1 to 64 bytes"):
        spend(ledger, run)
    assert ledger.account("ward").entries == ()


def test_exact_sums_are_released_once_unless_somebody_says_otherwise(ledger):
    entry = spend(ledger, b"may", NoPrivacy(), "open")
    assert spend(ledger, b"may", NoPrivacy(), "open") == entry
    ledger.finish(entry)
    for run in (b"may", b"june"):
        with pytest.raises(LedgerError, match="new run name|exact vector"):
            spend(ledger, run, NoPrivacy(), "open")
    again = spend(ledger, b"june", NoPrivacy(), "open", allow_second_exact_release=True)
    assert (again.exact, again.model, again.parts) == (True, "none", ())
    account = ledger.account("open")
    assert (account.cap, account.epsilon, account.delta, account.spent) == (None, math.inf, 0.0, math.inf)
    assert not account.exceeded


def test_exact_sums_and_a_cap_exclude_each_other(ledger):
    with pytest.raises(LedgerError, match="has a cap and a plan without DP"):
        spend(ledger, b"may", NoPrivacy())
    spend(ledger, b"may", NoPrivacy(), "open")
    with pytest.raises(LedgerError, match="no cap can hold"):
        ledger.set_cap("open", **CAP)
    with pytest.raises(LedgerError, match="no account 'open'"):
        spend(ledger, b"june", dataset="open")


def test_a_run_number_is_accepted_only_if_it_is_the_next(ledger):
    for counter in range(FIRST_COUNTER, FIRST_COUNTER + 3):
        for wrong in (counter + 1, counter + 99):
            with pytest.raises(LedgerError, match=f"number {counter} and this one is number {wrong}"):
                ledger.accept_counter(WE, wrong, b"ground")
        for _ in range(2):  # a process that was killed begins anew
            ledger.accept_counter(WE, counter, b"run %d" % counter)
        with pytest.raises(LedgerError, match="refuse it"):
            ledger.accept_counter(WE, counter, b"another name under the same number")
    ledger.accept_counter(THEY, FIRST_COUNTER, b"run 1")


@pytest.mark.parametrize(
    "mistake",
    [
        lambda ledger: spend(ledger, b"may", plan=SCHEMA),
        lambda ledger: spend(ledger, b"may", plan=None),
        lambda ledger: spend(ledger, b"may", plan="\ud800"),
        lambda ledger: spend(ledger, b"may", plan=b"d1ce"),
        lambda ledger: ledger.accept_counter(WE, 0.0, b"may"),
        lambda ledger: ledger.accept_counter(WE, False, b"may"),
        lambda ledger: ledger.accept_counter(WE, "0", b"may"),
        lambda ledger: ledger.accept_counter("we", 0, b"may"),
        lambda ledger: ledger.skip_to_counter(WE, 7.5),
        lambda ledger: ledger.skip_to_counter(WE, "7"),
        lambda ledger: ledger.skip_to_counter(None, 7),
        lambda ledger: ledger.finish(spend(ledger, b"may"), "the upload"),
        lambda ledger: Ledger(ledger.path, clock=lambda: "noon").set_cap("other", **CAP),
        lambda ledger: Ledger(ledger.path, clock=lambda: None).set_cap("other", **CAP),
    ],
)
def test_a_call_with_a_wrong_type_does_not_make_the_ledger_unreadable_for_ever(mistake, ledger):
    """A record that does not read back would lock every data set out: its backup is older, and refused for that."""
    with pytest.raises(LedgerError):
        mistake(ledger)
    assert Ledger.open(ledger.path).account("ward").cap is not None
    spend(ledger, b"june")


def test_nothing_is_written_that_does_not_read_back(ledger, monkeypatch):
    """Whatever no check foresaw is still found before it is on the disk."""
    monkeypatch.setattr("privstats.dp.ledger.book.check_digest", lambda *_: None)
    with pytest.raises(LedgerError, match="does not decode to itself"):
        spend(ledger, b"may", plan=7)
    assert Ledger.open(ledger.path).account("ward").entries == ()


def test_missed_runs_are_skipped_on_a_persons_word_and_never_backwards(ledger):
    ledger.accept_counter(WE, FIRST_COUNTER, b"run")
    ledger.skip_to_counter(WE, 9)
    for counter in (2, 8, 10):
        with pytest.raises(LedgerError, match="the next run"):
            ledger.accept_counter(WE, counter, b"run")
    with pytest.raises(LedgerError, match="only goes up"):
        ledger.skip_to_counter(WE, 9)
    ledger.accept_counter(WE, 9, b"run 9")


def test_a_cap_moved_to_a_larger_delta_does_not_shrink_what_was_spent(ledger):
    """From (3, 1e-6) to (50, 1e-2): 2.6 was spent, and at 1e-2 it would read 1.09."""
    spend(ledger, b"may", promise(2.6))
    ledger.set_cap("ward", **CAP | {"epsilon": 50.0, "delta": 1e-2})
    account = ledger.account("ward")
    assert account.spent == pytest.approx(2.6)
    assert account.spent_at(account.delta) == pytest.approx(1.093, abs=1e-3)
    assert (account.quoted_delta, account.delta, account.epsilon) == (1e-6, 1e-2, 50.0)


def test_an_account_without_a_spend_has_spent_nothing():
    account = Account("ward", (Cap("", "record", "add-remove", 1.0, 1e-6),))
    assert (account.mu, account.spent, account.unfinished, account.of_run(b"")) == (0.0, 0.0, (), None)


class Ledgers(RuleBasedStateMachine):
    """Runs are begun, begun again, finished and refused in any order; a list of mu tells what the total must be."""

    @initialize()
    def make(self):
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = Ledger.create(Path(self.folder.name) / "spent.db")
        self.ledger.set_cap("ward", **CAP)
        self.plans, self.left, self.entries = {}, set(), {}

    @rule(run=st.sampled_from([b"a", b"b", b"c", b"d"]), epsilon=st.sampled_from([0.3, 0.9, 1.7]))
    def spend(self, run, epsilon):
        known = self.plans.get(run)
        room = gaussian_mu(3.0, 1e-6) * (1 + 1e-9) >= math.hypot(*self.mus(), gaussian_mu(epsilon, 1e-6))
        allowed = room if known is None else known == epsilon and run not in self.left
        try:
            entry = spend(self.ledger, run, promise(epsilon), plan=f"plan of {epsilon}")
        except LedgerError:
            assert not allowed
            return
        assert allowed
        assert self.entries.setdefault(run, entry) == entry
        self.plans[run] = epsilon

    @rule(run=st.sampled_from([b"a", b"b", b"c", b"d"]))
    def finish(self, run):
        if run in self.entries:
            self.ledger.finish(self.entries[run], b"upload of " + run)
            self.left.add(run)

    @invariant()
    def the_total_is_the_root_of_the_sum_of_squares(self):
        account = self.ledger.account("ward")
        exact = math.sqrt(math.fsum(mu * mu for mu in self.mus()))
        assert account.mu == pytest.approx(exact, rel=1e-11)
        assert not account.exceeded
        assert {entry.run for entry in account.unfinished} == set(self.plans) - self.left
        if exact:
            assert account.spent == pytest.approx(gaussian_epsilon(account.mu, 1e-6))

    def teardown(self):
        self.folder.cleanup()

    def mus(self):
        return [gaussian_mu(epsilon, 1e-6) for epsilon in self.plans.values()]


Ledgers.TestCase.settings = settings(max_examples=8, stateful_step_count=12, deadline=None)
TestAnyOrderOfRunsCostsEveryRunOnce = Ledgers.TestCase


RETRIED = 5


def go_through_all_runs(path, log):
    """In a process of its own, from run 0 every time: one that was killed does not know how far it came."""
    subject = Ledger(path)
    for number in range(10_000):
        if str(number) in log.read_text().split():
            continue
        try:
            subject.finish(spend(subject, b"run %d" % number, promise(0.05)))
        except LedgerError as refused:
            assert "a retry is a second release" in str(refused)
            sys.exit(RETRIED)
        with log.open("a") as left:
            left.write(f"{number}\n")
            left.flush()
            os.fsync(left.fileno())


def test_kills_cost_no_run_twice(ledger, tmp_path):
    """SIGKILL between spend, finish and the upload: every run is on record once, whatever was begun anew."""
    ledger.set_cap("ward", **CAP | {"epsilon": 50.0})
    log = tmp_path / "left"
    log.touch()
    for _ in range(3):
        child = beside(go_through_all_runs, ledger.path, log)
        before = len(log.read_text().splitlines())
        while child.is_alive() and len(log.read_text().splitlines()) < before + 2:
            time.sleep(0.005)
        child.kill()
        child.join()
        if child.exitcode == RETRIED:  # it was killed between finish and the upload: the run is lost
            number = len(log.read_text().splitlines())
            log.write_text(log.read_text() + f"{number}\n")
    runs = [entry.run for entry in ledger.account("ward").entries]
    assert len(runs) == len(set(runs)) >= 3
