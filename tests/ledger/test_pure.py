"""Pure epsilons in the ledger: they add up, mix as the mu that they imply, and need a file of their own format."""

import math
import re
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

import privstats as ps
from privstats.dp.ledger.rules import room
from privstats.errors import LedgerError
from tests import made
from threat_models.audits.ledger import audit_ledger

SCHEMA = ps.ClassSchema(2, 3, "NA", clip_norm=1.0)


def plan_of(epsilon, delta=0.0, **change):
    return made.plan(SCHEMA, ps.Cohort(3, 3, 200), made.promise(epsilon=epsilon, delta=delta, **change))


def spend(ledger, plan, run, dataset="ward"):
    return ledger.spend(dataset, plan=plan.digest, run=run, schema=plan.schema, privacy=plan.privacy, noise=plan.noise)


def version(ledger):
    with closing(sqlite3.connect(ledger.path)) as file:
        return file.execute("PRAGMA user_version").fetchone()[0]


def test_pure_epsilons_add_up_under_a_cap_of_delta_zero_and_nothing_else_is_allowed(tmp_path):
    ledger = made.ledger(tmp_path / "ledger.db", epsilon=1.0, delta=0.0)
    for run in (b"a", b"b"):
        entry = spend(ledger, plan_of(0.4), run)
        assert entry.pure == 0.4
    assert spend(ledger, plan_of(0.4), b"b") == entry  # once more before it ended: the same spend
    account = ledger.account("ward")
    assert (account.spent, account.pure, account.exceeded) == (pytest.approx(0.8), pytest.approx(0.8), False)
    with pytest.raises(LedgerError, match=r"would reach epsilon 1.1 .* at most epsilon 0.2 at delta 0 is left"):
        spend(ledger, plan_of(0.3), b"c")
    spend(ledger, plan_of(0.2), b"c")
    with pytest.raises(LedgerError, match=r"would reach epsilon inf with a cap of 1 at delta 0: nothing is left"):
        spend(ledger, plan_of(0.01, 1e-6), b"d")
    assert ledger.account("ward").spent == pytest.approx(1.0)


def test_a_cap_that_once_had_delta_zero_does_not_make_all_that_is_spent_infinite(tmp_path):
    ledger = made.ledger(tmp_path / "ledger.db", epsilon=1.0, delta=0.0)
    spend(ledger, plan_of(0.4), b"a")
    assert (ledger.account("ward").quoted_delta, ledger.account("ward").spent) == (0.0, pytest.approx(0.4))
    ledger.set_cap("ward", **made.cap(epsilon=3.0, delta=1e-6))
    spend(ledger, plan_of(0.4, 1e-6), b"b")
    account = ledger.account("ward")
    assert account.quoted_delta == 1e-6
    assert 0.4 < account.spent < 3.0


def test_a_pure_release_alone_keeps_its_epsilon_at_any_delta_and_a_mixed_one_counts_as_its_mu(tmp_path):
    ledger = made.ledger(tmp_path / "ledger.db", epsilon=3.0, delta=1e-6)
    spend(ledger, plan_of(3.0), b"a")  # its mu is far above the cap's; it is (3, 0)-DP all the same
    assert ledger.account("ward").spent == 3.0
    with pytest.raises(LedgerError, match="would reach epsilon"):
        spend(ledger, plan_of(0.01, 1e-6), b"b")
    mixed = made.ledger(tmp_path / "mixed.db", epsilon=3.0, delta=1e-6)
    spend(mixed, plan_of(1.0, 1e-6), b"a")
    entry = spend(mixed, plan_of(0.3), b"b")
    assert (entry.mu, entry.pure) == (plan_of(0.3).noise.mu, 0.3)
    account = mixed.account("ward")
    whole = math.hypot(plan_of(1.0, 1e-6).noise.mu, plan_of(0.3).noise.mu)
    assert account.pure == math.inf
    assert account.spent == pytest.approx(ps.dp.gaussian_epsilon(whole, 1e-6))
    with pytest.raises(LedgerError, match="has already spent epsilon inf at delta 0"):
        mixed.set_cap("ward", **made.cap(50.0, 0.0))


def test_another_adjacency_is_charged_what_the_noise_costs_there(tmp_path):
    ledger = made.ledger(tmp_path / "ledger.db", epsilon=3.0, delta=0.0)
    entry = spend(ledger, plan_of(1.0, adjacency="replace-one"), b"a")
    assert entry.pure == pytest.approx(0.5)
    count, _ = (row.epsilon / 2 for row in plan_of(1.0).noise.rows)
    of_sums = math.sqrt(math.pi / 2) * 4096 / plan_of(1.0, adjacency="replace-one").noise.scales["A"]
    assert [part.mu for part in entry.parts] == pytest.approx([ps.dp.pure_mu(count), of_sums])
    assert entry.mu == pytest.approx(math.hypot(*(part.mu for part in entry.parts)))
    client = {"unit": "client", "max_records_per_client": 10}
    assert spend(ledger, plan_of(5.0, **client), b"b").pure == pytest.approx(0.5)


def test_what_is_left_is_said_of_both_halves_of_the_cap(tmp_path):
    """A pure release of 1.9 fits after one of 1.0, which Gaussian noise has no room beside."""
    ledger = made.ledger(tmp_path / "ledger.db", epsilon=3.0, delta=1e-6)
    assert room(ledger.account("ward")) == "room for one more release of at most epsilon 3 at delta 1e-06"
    spend(ledger, plan_of(0.1), b"a")
    said = re.fullmatch(
        r"room for one more release of at most epsilon (\S+) at delta 1e-06, or epsilon 2.9 at delta 0",
        room(ledger.account("ward")),
    )
    assert 2.5 < float(said[1]) < 3
    spend(ledger, plan_of(1.0), b"b")
    with pytest.raises(LedgerError, match=r": at most epsilon 1\.9 at delta 0 is left for one more release"):
        spend(ledger, plan_of(1.0, 1e-6), b"c")
    spend(ledger, plan_of(1.9), b"d")
    assert room(ledger.account("ward")) == "no room for another release"
    ledger.set_cap("mixed", **made.cap(3.0, 1e-6))
    spend(ledger, plan_of(1.0, 1e-6), b"e", "mixed")
    assert re.fullmatch(r"room for .* of at most epsilon \S+ at delta 1e-06", room(ledger.account("mixed")))


def test_parts_of_pure_releases_compose_to_the_total_of_an_audit(tmp_path):
    ledger = made.ledger(tmp_path / "ledger.db", epsilon=3.0, delta=1e-6)
    for run in (b"a", b"b"):
        spend(ledger, plan_of(0.5), run)
    *parts, total = (row[3] for row in audit_ledger(ledger).rows)
    assert math.hypot(*parts) == pytest.approx(total)
    assert total == pytest.approx(math.sqrt(2) * plan_of(0.5).noise.mu)


def test_a_run_that_an_older_privstats_priced_higher_goes_on_at_that_price(tmp_path):
    """It wrote the mu that epsilon alone implies; epsilon and plan are the same."""
    ledger = made.ledger(tmp_path / "ledger.db", epsilon=3.0, delta=1e-6)
    plan = plan_of(0.5)
    known = {"plan": plan.digest, "run": b"a", "schema": plan.schema, "privacy": plan.privacy}
    before = ledger.spend("ward", noise=replace(plan.noise, mu=ps.dp.pure_mu(0.5)), **known)
    assert before.mu > plan.noise.mu
    assert spend(ledger, plan_of(0.5), b"a") == before
    with pytest.raises(LedgerError, match="was spent under another plan"):
        spend(ledger, plan_of(0.4), b"a")


def test_a_ledger_with_pure_spends_has_a_format_that_an_older_privstats_refuses(tmp_path):
    ledger = made.ledger(tmp_path / "ledger.db", epsilon=3.0, delta=1e-6)
    assert version(ledger) == 2
    entry = spend(ledger, plan_of(0.5), b"a")
    assert version(ledger) == 4
    ledger.withdraw(entry)
    assert version(ledger) == 4
    assert ledger.account("ward").spent == 0
    assert version(made.ledger(tmp_path / "pure.db", epsilon=1.0, delta=0.0)) == 4


def test_a_session_charges_its_pure_epsilon(tmp_path):
    ledger = made.ledger(tmp_path / "ledger.db", epsilon=2.0, delta=0.0)
    privacy = made.promise(epsilon=1.5, delta=0.0)
    release = ps.private_release(SCHEMA, privacy, [[0.1, 0.2, 0.3]], [0], ledger=ps.session.Charge(ledger, "ward"))
    assert (release.budget.epsilon, release.budget.delta) == (1.5, 0.0)
    assert ledger.account("ward").spent == 1.5
