"""Several lists on the graph of a plan: a sound plan passes, clients that count neighbours alone do not."""

import json
from types import SimpleNamespace

import pytest

import privstats as ps
from privstats.errors import PlanError
from privstats.randomness import seeded
from privstats.secagg import Parameters
from tests import made
from tests.made import refused
from tests.plan.random_plans import PANEL
from threat_models.attacks import several_lists
from threat_models.attacks.several_lists import MAX_CLIENTS, played
from threat_models.attacks.staged import RING
from threat_models.audits.lists import audit_lists

SCHEMA = ps.ClassSchema(2, 3, "NA", 1.0)
RANDOM = made.plan(SCHEMA, ps.Cohort(100, 85, 1000, colluders=1), graph="robust")


def test_no_list_shows_a_smaller_sum_of_a_plan():
    report = audit_lists(RANDOM, seeded(1), sessions=1)
    assert not report.violated
    assert [row[:3] + row[4:] for row in report.rows] == [(lie, 100, 84, 1, 0) for lie in several_lists.LIES]
    assert min(row[3] for row in report.rows) < 84, "lists that break the rule of neighbours alone are shown"
    assert RANDOM.masking.condition in report.notes[-1]


def test_clients_that_count_neighbours_alone_contradict_the_plan(neighbours_alone):
    report = audit_lists(RANDOM, seeded(1), sessions=1)
    assert report.violated
    assert all(row[-1] == 1 for row in report.rows)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"graph": "complete"}, "audit lists .* here everyone masks with everyone"),
        ({"graph": "sparse"}, "audit lists .* while the server follows the protocol"),
        ({"protocol": "split", "panel": PANEL}, "audit lists .* here they send one message"),
    ],
)
def test_a_plan_that_promises_nothing_of_lists_is_refused(change, said):
    refused(PlanError, said, audit_lists, made.plan(SCHEMA, ps.Cohort(100, 95, 1000, colluders=1), **change), seeded(1))


def parameters_of(clients, min_survivors, colluders, **more):
    numbers = {"clients": clients, "min_survivors": min_survivors, "colluders": colluders}
    return Parameters.solve(**numbers, ring=RING, plan_digest=bytes(32), graph="robust", **more)


def test_the_played_cohort_is_the_plan_s_own():
    own = parameters_of(300, 270, 3)
    assert played(SimpleNamespace(masking=own)) == own


def test_a_large_cohort_is_played_with_its_shares():
    small = played(SimpleNamespace(masking=parameters_of(1_200, 1_100, 12)))
    assert (small.clients, small.min_survivors, small.colluders) == (MAX_CLIENTS, 459, 5)


def test_the_report_says_that_a_larger_cohort_is_not_played(monkeypatch):
    monkeypatch.setattr(several_lists, "LIES", {})
    monkeypatch.setattr("threat_models.audits.lists.LIES", {})
    large = made.plan(SCHEMA, ps.Cohort(1200, 1100, 3000, colluders=3))
    report = audit_lists(large, seeded(1))
    assert "the plan has 1,200 clients" in report.notes[0]
    assert "500 clients, at least 459 survivors" in report.notes[1]


def test_an_officer_runs_it(privstats, tmp_path):
    plan = made.plan(SCHEMA, ps.Cohort(60, 57, 1000), graph="robust")
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    words = ("audit", "lists", "plan.toml", "--sessions", "1", "--seed", "1")
    (report,) = json.loads(privstats(*words, "--json", cwd=tmp_path).stdout)
    assert (report["audit"], report["violated"]) == ("lists", False)
    (tmp_path / "plan.toml").write_text(made.plan(SCHEMA, ps.Cohort(60, 57, 1000)).to_toml())
    done = privstats(*words, cwd=tmp_path, code=2)
    assert "here everyone masks with everyone" in done.stderr
