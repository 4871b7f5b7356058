"""The audits of a pure promise: they pass what is right, and name noise, law and sensitivity that are not."""

from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.dp import grid_sensitivity, mechanisms, samplers
from privstats.randomness import seeded
from privstats.workflows.report import Search
from tests import made
from tests.threat_models.audits.plans import target
from threat_models.attack import attacks_named
from threat_models.audits import pure
from threat_models.audits.noise import audit_noise
from threat_models.audits.pure import audit_epsilon, audit_pure_budget, audit_pure_sensitivity
from threat_models.audits.release_file import audit_release
from threat_models.audits.target import target_of
from threat_models.findings import audits

SUMS = ps.ClassSchema(3, 4, "NAD", 1.0)
TABLES = ps.CountSchema(
    (ps.Categories("sex", ("f", "m")), ps.Categories("ill", ("no", "yes"))), (("sex",), ("sex", "ill"))
)


@pytest.fixture(autouse=True)
def _few_edges(monkeypatch):
    """Every edge releases anew; a few show that the rows are there, and `audit canary` plays hundreds."""
    monkeypatch.setattr("threat_models.audits.edges._MOST_TRIALS", 40)


def pure_target(schema=SUMS, **change):
    return target(schema, delta=0.0, **{"epsilon": 1.0, **change})


def column(report, name):
    return {row[0]: row[report.columns.index(name)] for row in report.rows}


@pytest.mark.parametrize(
    ("schema", "change"),
    [
        (SUMS, {}),
        (replace(SUMS, nonnegative=True), {"adjacency": "replace-one"}),
        (SUMS, {"unit": "client", "max_records_per_client": 20}),
        (TABLES, {}),
        (TABLES, {"adjacency": "replace-one"}),
        (TABLES, {"epsilon": 40.0}),
    ],
)
def test_the_search_in_l1_attains_the_claims_and_beats_none(schema, change):
    report = audit_pure_sensitivity(pure_target(schema, **change), seeded(1), starts=4)
    assert not report.violated
    *norms, mu = report.rows
    assert all(row[4] > 0.98 for row in norms), report.rows
    assert mu[0] == "mu"
    assert 0.5 < mu[4] <= 1


def test_a_mu_of_records_that_are_too_short_is_contradicted(monkeypatch):
    """Half of the L2 norm of a record, for all statistics."""
    monkeypatch.setattr("privstats.dp.pure.grid_sensitivity", lambda *asked: grid_sensitivity(*asked) / 2)
    report = audit_pure_sensitivity(pure_target(), seeded(1), starts=4)
    assert [row[0] for row in report.rows if row[-1]] == ["mu"]


def test_a_sensitivity_that_forgets_the_square_root_is_contradicted(monkeypatch):
    """A claimed L2 norm in the place of the L1 norm: the noise of A is half of what it must be."""
    monkeypatch.setattr("privstats.kinds.classes.longest_row", lambda square, entries: int(square**0.5))
    report = audit_pure_sensitivity(pure_target(), seeded(1), starts=4)
    assert report.violated
    assert {row[0] for row in report.rows if row[-1]} == {"A", "promise"}


@pytest.mark.ci
@pytest.mark.parametrize("adjacency", ["add-remove", pytest.param("replace-one", marks=pytest.mark.nightly)])
def test_epsilon_is_bounded_close_to_the_claim_where_one_entry_shows_it_all(adjacency):
    report = audit_epsilon(pure_target(adjacency=adjacency), seeded(2), trials=3000)
    ratio = column(report, "ratio")
    assert not report.violated
    assert ratio["N"] > 0.75
    assert ratio["D"] > 0.7
    assert 0.3 < ratio["A"] < 0.55  # one entry of four shows half of what all four may cost
    assert ratio["joint"] > 0.35


@pytest.mark.nightly
def test_epsilon_of_a_client_is_bounded_too():
    report = audit_epsilon(pure_target(unit="client", max_records_per_client=5), seeded(2), trials=2000)
    assert not report.violated
    assert column(report, "ratio")["N"] > 0.7


def halved(scale, size, rng):
    return samplers.discrete_laplace(scale / 2, size, rng)


def rounded(scale, size, rng):
    """Gaussian noise of the declared deviation: another law, and no pure epsilon at all."""
    return samplers.rounded_gaussian(scale * 2**0.5, size, rng)


def capped(scale, size, rng):
    return np.clip(samplers.discrete_laplace(scale, size, rng), -int(4 * scale), int(4 * scale))


def test_noise_of_half_the_scale_breaks_the_bound_on_epsilon(monkeypatch):
    monkeypatch.setattr(mechanisms, "discrete_laplace", halved)
    assert audit_epsilon(pure_target(), seeded(2), trials=1000).violated


def test_noise_of_the_declared_law_passes():
    assert not audit_noise(pure_target(), seeded(3), trials=400).violated


@pytest.mark.parametrize(
    "wrong", [rounded, *(pytest.param(each, marks=pytest.mark.nightly) for each in (halved, capped))]
)
def test_noise_of_another_scale_law_or_tail_is_found(monkeypatch, wrong):
    monkeypatch.setattr(mechanisms, "discrete_laplace", wrong)
    assert audit_noise(pure_target(), seeded(3), trials=400).violated


def test_declared_noise_below_the_promise_is_an_objection_of_noise_and_budget(monkeypatch):
    assert not audit_pure_budget(pure_target(), seeded(1)).violated
    monkeypatch.setattr("privstats.dp.calibration.scales_of", lambda *_: {"N": 4096.0, "A": 4096.0, "D": 4096.0})
    for report in (audit_pure_budget(pure_target(), seeded(1)), audit_noise(pure_target(), seeded(3), trials=2)):
        assert report.violated
        assert any("leaves epsilon" in note for note in report.notes)


def test_the_budget_shows_what_any_attacker_can_gain():
    report = audit_pure_budget(pure_target(), seeded(1))
    joint = next(row for row in report.rows if row[:3] == ("joint", "record", "add-remove"))
    noise = pure_target().noise
    assert joint[3:5] == pytest.approx((noise.mu, 1.0))
    assert joint[5:] == pytest.approx(noise.guarantee.operating_point())
    assert joint[5] <= 0.01 * np.e
    assert [row[1] for row in audit_pure_budget(pure_target(), seeded(1), 7).rows].count("client") == 8
    client = next(row for row in audit_pure_budget(pure_target(), seeded(1), 7).rows if row[:2] == ("N", "client"))
    assert client[4] == pytest.approx(7 * report.rows[0][4])


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_tables_of_counts_have_every_audit_of_a_pure_plan(adjacency):
    plan = pure_target(TABLES, adjacency=adjacency)
    assert not audit_pure_budget(plan, seeded(1)).violated
    assert not audit_noise(plan, seeded(3), trials=200).violated
    report = audit_epsilon(plan, seeded(2), trials=600)
    assert not report.violated
    assert column(report, "ratio")["T"] > 0.2


def test_noise_of_half_the_scale_is_found_in_tables_of_counts(monkeypatch):
    monkeypatch.setattr(mechanisms, "discrete_laplace", halved)
    plan = pure_target(TABLES)
    assert audit_noise(plan, seeded(3), trials=200).violated
    assert audit_epsilon(plan, seeded(2), trials=1500).violated


@pytest.mark.parametrize("schema", [SUMS, TABLES])
def test_every_audit_of_a_pure_plan_is_a_section_of_its_page(schema):
    found = audits(pure_target(schema).plan, Search(seed=1, trials=100))
    assert len(found) == 4
    assert all(each.title.startswith("Audit: ") and not each.violated for each in found)


def test_one_release_and_the_row_in_mu_are_refused_by_name():
    plan = pure_target().plan
    release = ps.simulate(plan, [(np.zeros((3, 4)), [0, 1, 2])] * 6, rng=seeded(1))
    with pytest.raises(ps.PlanError, match="`audit noise` tests that of its plan"):
        audit_release(release, {}, seeded(1))
    (attack,) = attacks_named(["canary-audit"])
    assert "the plan promises a pure epsilon" in attack.refusal(plan)
    assert plan.noise.mu < target_of(plan).promise.mu


def test_a_kind_without_a_search_is_refused():
    other = made.plan(ps.RidgeSchema(4, clip_norm=1.0, target_bound=1.0), ps.Cohort(3, 3, 50), made.promise())
    with pytest.raises(ps.SchemaError, match="no search in L1 is available for a RidgeSchema"):
        pure._records(target_of(other), np.random.default_rng(0), 1)
