"""``audit inference``: it passes the reader as shipped, and flags readers that forget the noise."""

import json
from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.inference import inversion
from privstats.intake.columns import read
from privstats.randomness import seeded
from tests.mutation.bugs import read_by_type
from threat_models.audits import counts
from threat_models.audits import inference as audited
from threat_models.audits.inference import audit_inference, tally
from threat_models.audits.pure import audit_pure_sensitivity
from threat_models.audits.target import target_of

MAPS = (ps.transforms.Centre((50.0, 0.0)), ps.transforms.Scale((40.0, 2.0)), ps.transforms.ConstantFeature(1.0))


def plan_of(epsilon=3.0, records=3_000, **changes):
    return ps.Plan(
        schema=ps.RidgeSchema(3, clip_norm=3**0.5, target_bound=2.0, transform=MAPS, **changes),
        cohort=ps.Cohort(3, 3, records),
        privacy=ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6),
    )


def test_the_reader_keeps_its_claim():
    report = audit_inference(plan_of(), seeded(1), runs=40)
    assert not report.violated
    assert len(report.rows) == 6
    assert all(row[-1] == "holds" for row in report.rows)


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("records", [1_000, 10_000])
def test_the_reader_keeps_its_claim_in_a_thousand_releases(epsilon, records):
    assert not audit_inference(plan_of(epsilon, records), seeded(2), runs=1_000).violated


def test_a_reader_that_forgets_the_noise_is_flagged(monkeypatch):
    monkeypatch.setattr(inversion.Inversion, "_noise", property(lambda self: np.zeros(len(self.contrasts))))
    assert audit_inference(plan_of(1.0), seeded(1), runs=40).violated


@pytest.mark.ci
def test_exact_sums_miss_as_often_as_they_may_and_not_less():
    plan = ps.Plan(schema=plan_of().schema, cohort=ps.Cohort(3, 3, 900), privacy=ps.NoPrivacy())
    found = tally(plan, 900, seeded(3), 300)
    assert (found.reported == 300).all()
    assert 0.02 < found.missed.sum() / 900 < 0.08


def test_few_records_under_strong_noise_are_refused_or_not_told():
    found = tally(plan_of(0.1), 60, seeded(4), 30)
    assert found.unread + 30 * 3 - found.reported.sum() > 30
    assert (found.missed <= 3).all()


def test_the_fewest_misses_that_contradict_are_named():
    assert 42 <= audited._flagged(500, 0.001 / 14) <= 50
    assert f"from {audited._flagged(40, 0.001 / 6)} misses" in audit_inference(plan_of(), seeded(1), runs=40).notes[0]


def test_a_plan_of_classes_is_refused():
    plan = ps.Plan(schema=ps.ClassSchema(2, 3, "NAB", 1.0), cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy())
    with pytest.raises(ps.PlanError, match="RidgeSchema"):
        audit_inference(plan, seeded(1))


CELLS = ps.Cells(
    (ps.Numeric("age", (40, 65)), ps.Categories("stage", ("a", "b", "c")), ps.Truth("smoker")), signs=2, ramp=False
)


def cells_plan(cells=CELLS):
    transform = (cells, ps.transforms.ConstantFeature(1.0))
    schema = ps.RidgeSchema(cells.width + 1, clip_norm=2**0.5, target_bound=6.0, transform=transform)
    return ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 6_000), privacy=plan_of().privacy)


@pytest.mark.parametrize("ramp", [False, True])
def test_contrasts_of_cells_are_audited_like_coefficients(ramp):
    found = tally(cells_plan(replace(CELLS, ramp=ramp)), 6_000, seeded(1), 20)
    assert found.names[:2] == ("age: 40 to < 65", "age: >= 65")
    assert found.reported.mean() > 0.8 * found.runs
    assert found.missed.sum() <= 0.05 * found.runs * len(found.names) + 10


def test_a_reader_of_cells_that_forgets_the_noise_is_flagged(monkeypatch):
    monkeypatch.setattr(audited, "ols", lambda *given, **named: forgetful(ps.inference.ols(*given, **named)))
    assert audit_inference(cells_plan(), seeded(1), runs=40).violated


def forgetful(table):
    """The same fit as if its sums had no noise."""
    exact = replace(table.errors.equations, sigma_G=0.0, sigma_h=0.0, sigma_q=0.0)
    return replace(table, errors=replace(table.errors, equations=exact))


def test_open_cut_points_are_refused_by_name():
    with pytest.raises(ps.PlanError, match="the cut points of age come from a course: give this audit the plan with"):
        audit_inference(cells_plan(ps.Cells((ps.Numeric("age"), ps.Truth("smoker")), signs=2)), seeded(1))


def test_the_command(privstats, tmp_path):
    (tmp_path / "plan.toml").write_text(plan_of().to_toml())
    done = privstats("audit", "inference", "plan.toml", "--runs", "20", "--seed", "1", "--json", cwd=tmp_path, code=0)
    (report,) = json.loads(done.stdout)
    assert report["violated"] is False
    assert {row["parameter"] for row in report["rows"]} == {"const", "x0", "x1"}


def test_the_sensitivity_of_count_tables_is_attained_and_not_beaten(privstats, tmp_path):
    schema = ps.CountSchema(
        (ps.Categories("sex", ("f", "m")), ps.Bins("age", (0, 40, 60, 120))), (("sex", "age"), ("sex",), ("age",))
    )
    privacy = ps.Privacy(model="central", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-6)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 100), privacy=privacy)
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    (report,) = json.loads(privstats("audit", "sensitivity", "plan.toml", "--json", cwd=tmp_path, code=0).stdout)
    assert [row["ratio"] for row in report["rows"]] == pytest.approx([1.0] * 4)


def test_cells_that_follow_from_the_type_of_a_column_are_flagged(monkeypatch):
    """One text among integers, or one gap, would move every other record to another cell."""
    plan = ps.Plan(
        schema=ps.CountSchema((ps.Categories("stage", (1, 2, 3), other=True, missing=True),), (("stage",),)),
        cohort=ps.Cohort(2, 2, 100),
        privacy=plan_of().privacy,
    )
    pure = replace(plan, privacy=replace(plan.privacy, model="central", delta=0.0))
    audits = (
        lambda: counts.audit_counts(target_of(plan), seeded(1)),
        lambda: audit_pure_sensitivity(target_of(pure), seeded(1)),
    )
    assert not any(audit().violated for audit in audits)
    monkeypatch.setattr("privstats.records.cells.read", read_by_type(read))
    assert all(audit().violated for audit in audits)


def test_a_sensitivity_that_forgets_a_table_is_flagged(monkeypatch):
    schema = ps.CountSchema((ps.Categories("sex", ("f", "m")), ps.Categories("died", (0, 1))), (("sex",), ("died",)))
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 100), privacy=plan_of().privacy)
    monkeypatch.setattr(counts, "joint_mu", lambda schema, sigmas, adjacency: 1 / sigmas["T"])
    assert counts.audit_counts(target_of(plan), seeded(1)).violated
