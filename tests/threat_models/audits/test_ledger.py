"""The ledger's audit hides nothing: caps that moved, exact releases, spends that never left, older copies."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

import privstats as ps
from threat_models import cli
from threat_models.audits.ledger import audit_history, audit_ledger

SCHEMA = ps.ClassSchema(3, 4, "NAB", 1.0)
CAP = {"unit": "record", "adjacency": "add-remove"}
PLAN = "ab" * 32


def spend(ledger, run, epsilon=2.6, **more):
    privacy = ps.Privacy(model="distributed", **CAP, epsilon=epsilon, delta=1e-6)
    noise = ps.dp.calibrate(SCHEMA, privacy, honest_shares=3)
    return ledger.spend("ward", plan=PLAN, run=run, schema=SCHEMA, privacy=privacy, noise=noise, **more)


@pytest.fixture
def ledger(tmp_path):
    days = (datetime(2031, 5, 4, tzinfo=UTC) + timedelta(days=day) for day in range(99))
    ledger = ps.dp.Ledger.create(tmp_path / "spent.db", clock=lambda: next(days))
    ledger.set_cap("ward", **CAP, epsilon=3.0, delta=1e-6)
    ledger.finish(spend(ledger, b"may"))
    ledger.set_cap("ward", **CAP, epsilon=50.0, delta=1e-2)
    return ledger


def table(report):
    return [dict(zip(report.columns, row, strict=True)) for row in report.rows]


def command(ledger, *words, columns="80"):
    return CliRunner().invoke(cli.audit, ["ledger", str(ledger.path), *words], env={"COLUMNS": columns})


def test_a_cap_that_moved_does_not_make_the_spent_look_smaller(ledger):
    (*_, total) = table(audit_ledger(ledger))
    assert total["epsilon"] == pytest.approx(2.6)
    assert (total["delta"], total["cap epsilon"], total["cap delta"]) == (1e-6, 50.0, 1e-2)
    assert total["cap"] == pytest.approx(69.57, abs=0.01)  # the cap, at the delta that totals are quoted at
    assert any("the cap is epsilon 50 at delta 0.01" in note for note in audit_ledger(ledger).notes)


def test_a_clock_that_was_set_back_does_not_turn_the_history_around(tmp_path):
    days = (datetime(2031, 5, 4, tzinfo=UTC) - timedelta(days=day) for day in range(99))
    ledger = ps.dp.Ledger.create(tmp_path / "spent.db", clock=lambda: next(days))
    ledger.set_cap("ward", **CAP, epsilon=3.0, delta=1e-6)
    spend(ledger, b"may")
    ledger.set_cap("ward", **CAP, epsilon=50.0, delta=1e-2)
    assert [row["event"] for row in table(audit_history(ledger))] == ["cap", "begun", "cap"]
    assert [row["epsilon"] for row in table(audit_history(ledger))] == [3.0, pytest.approx(2.6), 50.0]


def test_what_the_masking_may_fail_by_is_shown_beside_delta(ledger):
    assert not any("for the masking" in note for note in audit_ledger(ledger).notes)
    ledger.withdraw(spend(ledger, b"june", 1.0, masking_failure=2.0**-31))
    ledger.withdraw(spend(ledger, b"july", 1.0, masking_failure=2.0**-31))  # 2^-30 is 9.313e-10: rounded up
    assert "ward: totals hold at delta 1.00094e-06, 9.4e-10 of it for the masking" in audit_ledger(ledger).notes


def test_the_history_shows_every_cap_and_every_spend_in_order(ledger):
    spend(ledger, b"june", 1.0)
    first, left, moved, begun = table(audit_history(ledger, "ward"))
    assert [row["event"] for row in (first, left, moved, begun)] == ["cap", "left", "cap", "begun"]
    assert (first["epsilon"], first["delta"], moved["epsilon"], moved["delta"]) == (3.0, 1e-6, 50.0, 1e-2)
    assert (first["unit"], first["adjacency"]) == ("record", "add-remove")
    assert (left["plan digest"], left["run name"], left["model"]) == (PLAN, b"may".hex(), "distributed")
    assert left["epsilon"] == pytest.approx(2.6)
    assert left["released"].startswith("2031-05-07")
    assert begun["released"] is None
    assert [row["time"] for row in (first, left, moved, begun)] == sorted(
        r["time"] for r in (first, left, moved, begun)
    )


def test_exact_releases_are_shown_for_what_they_are(ledger):
    ledger.spend("open", plan=PLAN, run=b"x", schema=SCHEMA, privacy=ps.NoPrivacy(), noise=None)
    report = audit_ledger(ledger, "open")
    assert table(report)[0]["epsilon"] == float("inf")
    assert not report.violated
    assert "no cap can hold" in report.notes[0]
    (row,) = table(audit_history(ledger, "open"))
    assert (row["model"], row["epsilon"], row["event"]) == ("none", float("inf"), "begun")


def test_the_command_prints_both_tables_and_the_head(ledger):
    done = command(ledger)
    assert done.exit_code == 0
    for words in ("audit ledger", "audit ledger history", "2031-05-05", PLAN[:8], "distributed", "2.6", ledger.head):
        assert words in done.output
    assert max(map(len, done.output.splitlines())) <= 80
    assert "…" not in done.output
    totals, history = json.loads(command(ledger, "--json").output)
    assert (totals["rows"][-1]["epsilon"], history["rows"][1]["plan digest"]) == (pytest.approx(2.6), PLAN)
    assert ledger.head in totals["notes"]


def test_the_command_refuses_an_older_copy(ledger):
    head = ledger.head
    assert command(ledger, "--expected-head", head).exit_code == 0
    newer = f"{int(head.split('-')[0]) + 1}-{'0' * 64}"
    error = command(ledger, "--expected-head", newer).exception
    assert isinstance(error, ps.LedgerError)
    assert "older copy" in str(error)
