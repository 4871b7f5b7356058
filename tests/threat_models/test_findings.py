"""Audits and attacks as sections of a page: plugged in by name, in plain words, with their verdicts."""

import tomllib
from pathlib import Path

import pytest

import privstats as ps
from privstats.workflows.report import Search, finder
from privstats.workflows.report.further import finders
from threat_models import findings
from threat_models.audits.verdict import Report

from .conftest import plan_of, promise


def test_they_are_plugged_in():
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert pyproject["project"]["entry-points"]["privstats.findings"] == {
        "audit": "threat_models.finders:AUDIT",
        "attack": "threat_models.finders:ATTACK",
    }
    plan, search = plan_of(ps.NoPrivacy()), Search()
    assert finder("audit")(plan, search) == findings.audits(plan, search)
    assert [row.name for row in finders()] == ["audit", "attack"]


@pytest.mark.ci
def test_every_audit_of_a_plan_is_a_section(tmp_path):
    ticks = []
    found = findings.audits(plan_of(promise()), Search(seed=1, trials=100, tick=lambda: ticks.append(1)))
    assert all(each.title.startswith("Audit: ") and not each.violated for each in found)
    assert len(found) == len(ticks)
    titles = [each.title for each in found]
    assert len(set(titles)) == len(titles)
    for each in found:
        (table,) = each.tables
        assert table.rows
        assert all(len(row) == len(table.header) for row in table.rows)


@pytest.mark.ci
def test_dropouts_are_audited_where_noise_is_divided():
    asked = "Audit: does the promise survive dropouts?"
    for model, audited in (("distributed", True), ("central", False)):
        found = findings.audits(plan_of(promise(model)), Search(1, 100))
        assert (asked in [each.title for each in found]) == audited


def test_a_plan_without_a_promise_has_no_claim_to_audit():
    (found,) = findings.audits(plan_of(ps.NoPrivacy()), Search())
    assert "no claim that could be contradicted" in found.summary
    assert not found.violated


def test_a_contradicted_claim_says_what_to_do():
    found = findings._finding(Report("noise", ("segment",), (("N",),), ("a note",), True))
    assert found.violated
    assert "do not release" in found.summary
    assert list(found.notes) == ["A note."]


@pytest.mark.slow
def test_the_attacks_are_one_section_with_every_attack(monkeypatch):
    chosen = [attack for attack in findings.attacks_named(()) if attack.name in ("mean-ratio", "differencing")]
    monkeypatch.setattr(findings, "attacks_named", lambda names: chosen)
    ticks = []
    (found,) = findings.attacks(plan_of(promise()), Search(seed=1, trials=8, tick=lambda: ticks.append(1)))
    assert [row[0].text for row in found.tables[0].rows] == [attack.name for attack in chosen]
    assert found.title == "Attacks: what an attacker learns"
    assert found.figures
    assert ticks
