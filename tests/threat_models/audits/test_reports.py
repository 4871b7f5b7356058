"""Budget, dropouts, noise and ledger: what they say, and when they object."""

import json
import math
import re
from collections import Counter
from contextlib import contextmanager

import pytest

import privstats as ps
from privstats.printable import at_most
from tests import made
from tests.made import refused
from tests.threat_models.audits.plans import SMALL
from tests.threat_models.audits.plans import plan as plan_of
from threat_models.audits.budget import audit_budget, audit_dropouts
from threat_models.audits.canary import audit_canary
from threat_models.audits.gradients import audit_gradients
from threat_models.audits.ledger import audit_ledger
from threat_models.audits.sensitivity import audit_sensitivity
from threat_models.audits.target import target_of
from threat_models.audits.verdict import Report

SCHEMA = SMALL
PARTIES = plan_of(ps.PartySchema(2, 2), epsilon=8.0, unit="client", max_records_per_client=1)


def plan(**change):
    defaults = {"cohort": ps.Cohort(10, 7, 1000, colluders=1), "model": "distributed", "delta": 1e-6}
    return plan_of(**defaults | change)


def by(report, *keys):
    return {tuple(row[report.columns.index(key)] for key in keys): row for row in report.rows}


def test_the_budget_has_both_units_and_adjacencies_and_the_promise_among_them():
    report = audit_budget(target_of(plan()), client_records=20)
    table = by(report, "statistic", "unit", "adjacency")
    assert len(table) == 4 * 2 * 2
    mu, epsilon = report.columns.index("mu"), report.columns.index("epsilon")
    promised = table["joint", "record", "add-remove"]
    assert promised[epsilon] == pytest.approx(1.0)
    assert table["joint", "client", "add-remove"][mu] == pytest.approx(20 * promised[mu])
    assert table["joint", "record", "replace-one"][mu] > promised[mu]
    assert not report.violated


@pytest.mark.parametrize(("unit", "most"), [("record", None), ("client", 20)])
def test_the_one_row_that_is_promised_has_a_star(unit, most):
    report = audit_budget(target_of(plan(unit=unit, max_records_per_client=most)), client_records=most or 20)
    between, epsilon = report.columns.index("between"), report.columns.index("epsilon")
    (row,) = [row for row in report.rows if row[between].endswith("*")]
    assert (row[:4], row[epsilon]) == (("joint", f"{unit} +/- *", unit, "add-remove"), pytest.approx(1.0))


def test_a_budget_prints_no_bound_below_its_number():
    report = audit_budget(target_of(plan()), client_records=20)
    headings, printed = report.shown
    for name in ("mu", "epsilon", "TPR@1%", "AUC", "advantage"):
        exact = [row[report.columns.index(name)] for row in report.rows]
        shown = [float(row[headings.index(name)]) for row in printed]
        assert all(up >= value * (1 - 1e-7) for up, value in zip(shown, exact, strict=True)), name
        assert shown == pytest.approx(exact, rel=1e-3)


def test_an_attackers_gain_is_the_trade_off_curve():
    report = audit_budget(target_of(plan()))
    row = by(report, "statistic", "adjacency")["joint", "add-remove"]
    mu, auc = row[report.columns.index("mu")], row[report.columns.index("AUC")]
    assert auc == pytest.approx(0.5 * (1 + math.erf(mu / 2)))
    assert any("client rows need" in note for note in report.notes)


def test_a_clipped_client_is_pointed_out():
    report = audit_budget(target_of(plan(unit="client", max_records_per_client=50, client_clip=5.0)))
    assert any("clipped" in note for note in report.notes)
    assert not report.violated


def test_noise_below_the_promise_is_a_violation(monkeypatch):
    """The mu that the noise claims of itself is left as it was: only a search under the noise can tell."""
    target = target_of(plan())
    assert not audit_budget(target).violated
    monkeypatch.setattr(type(target), "sigma", {s: 0.9 * value for s, value in target.sigma.items()})
    assert audit_budget(target).violated


def test_fewer_dropouts_leave_more_noise_and_too_many_end_the_session():
    report = audit_dropouts(target_of(plan()))
    epsilons = [row[report.columns.index("epsilon")] for row in report.rows]
    assert (epsilons[:3], epsilons[3]) == (sorted(epsilons[:3]), pytest.approx(1.0, rel=1e-9))
    assert ([row[0] for row in report.rows], report.rows[-1][3:]) == ([0, 1, 2, 3, 4], (None, "aborted"))
    target = target_of(plan())
    for row in report.rows[:-1]:
        honest, epsilon = row[2], row[3]
        assert epsilon == pytest.approx(ps.dp.gaussian_epsilon(target.noise.mu / math.sqrt(honest / 6), 1e-6))
    assert by(audit_dropouts(target_of(plan(cohort=ps.Cohort(10, 8, 1000)))), "gone")[(3,)][3] is None


def test_the_audit_and_plan_check_say_the_same_of_dropouts():
    """12 clients of which 30 % vanish: rounded down for one and up for the other, it was epsilon 1 against aborted."""
    subject = made.plan(SCHEMA, ps.Cohort(12, 9, 1000, colluders=1), plan().privacy)
    told = next(line for line in ps.review.facts(subject) if "dropouts" in line)
    said = {int(gone.replace("none", "0")): left for left, gone in re.findall(r"([\d.]+|no release) with (\w+)", told)}
    audited = {
        gone: "no release" if epsilon is None else at_most(epsilon)
        for gone, _, _, epsilon, _ in audit_dropouts(target_of(subject)).rows
    }
    assert (said, (said[3], said[4])) == (audited, ("1", "no release"))


def test_a_plan_without_privacy_has_nothing_to_audit():
    refused(ps.PlanError, "no claim to audit", target_of, made.plan(SCHEMA, ps.Cohort(10, 7, 1000)))


def test_the_ledger_is_shown_per_statistic_and_in_total(tmp_path):
    private, ledger = plan(), ps.dp.Ledger(tmp_path / "spent.db")
    refused(ps.LedgerError, "no ledger", audit_ledger, ledger)
    ledger = made.ledger(ledger.path, epsilon=2.0, delta=1e-6)
    noise = ps.dp.calibrate(SCHEMA, private.privacy, honest_shares=6)
    for done in (True, False):
        run = b"finished" if done else b"unfinished"
        entry = ledger.spend("ward", plan=private.digest, run=run, schema=SCHEMA, privacy=private.privacy, noise=noise)
        if done:
            ledger.finish(entry)
    report = audit_ledger(ledger, "ward")
    table = by(report, "what")
    assert set(table) == {("N",), ("A",), ("B",), ("total",)}
    total = dict(zip(report.columns, table[("total",)], strict=True))
    assert (total["mu"], total["cap"]) == (pytest.approx(math.sqrt(2) * noise.mu), 2.0)
    assert (total["releases"], total["unfinished"]) == (2, 1)
    assert not report.violated


def test_an_overdrawn_or_empty_ledger_is_said_to_be_so(tmp_path, monkeypatch):
    ledger = made.ledger(tmp_path / "spent.db", epsilon=2.0, delta=1e-6)
    assert not audit_ledger(ledger).violated
    monkeypatch.setattr(ps.dp.Account, "exceeded", True)
    report = audit_ledger(ledger)
    assert report.violated
    assert any("MORE WAS SPENT" in note for note in report.notes)
    monkeypatch.setattr(ps.dp.Ledger, "accounts", lambda self: ())
    refused(ps.LedgerError, "no account yet", audit_ledger, ledger)


def test_a_report_is_a_table_for_people_and_json_for_machines(capsys):
    from rich.console import Console

    report = Report("sample", ("what", "value", "fine"), (("x", math.inf, True), ("y", None, False)), ("a note",), True)
    parsed = json.loads(report.to_json())
    assert parsed["violated"] is True
    assert parsed["rows"] == [{"what": "x", "value": None, "fine": True}, {"what": "y", "value": None, "fine": False}]
    Console(width=80).print(report)
    printed = capsys.readouterr().out
    for words in ("audit sample", "a note", "VIOLATED", "yes", "inf"):
        assert words in printed


@pytest.mark.ci
@pytest.mark.parametrize(
    ("audit", "counted"),
    [
        (lambda rng: audit_sensitivity(target_of(plan()), rng, starts=1), {"searching": 8}),
        (lambda rng: audit_gradients(target_of(PARTIES), rng, starts=1, moves=2), {"searching": 4}),
        (
            lambda rng: audit_canary(target_of(plan()), rng, trials=100),
            {"playing": 1, "summing": 100, "releasing": 200},
        ),
    ],
    ids=["records", "parties", "canaries"],
)
def test_what_takes_long_is_counted_for_whoever_waits(monkeypatch, audit, counted):
    done = Counter()

    @contextmanager
    def bar(label, total):
        yield lambda count: done.update({label: count})

    monkeypatch.setattr("privstats.progress.progress_bar", bar)
    audit(ps.randomness.seeded(1))
    assert done == counted
