"""The search over sites and records comes near the claimed sensitivity and never beyond it."""

import json

import pytest

import privstats as ps
from tests import made
from tests.schema.changed import change_kind
from threat_models.audits.sites import audit_sites
from threat_models.audits.target import target_of


def plan(pull=0.0):
    return made.plan(ps.SitesSchema(4, 2.0, pulls=(pull,)), ps.Cohort(4, 3, 200), made.promise(epsilon=2.0))


def found(subject):
    report = audit_sites(target_of(subject), ps.randomness.seeded(1), moves=150, starts=12)
    assert report.violated == any(row[-1] for row in report.rows)
    return {(row[0], row[1]): (row[4], row[5]) for row in report.rows}


@pytest.mark.ci
@pytest.mark.parametrize("pull", [0.0, 4.0, 30.0])
def test_the_claim_is_nearly_attained_and_never_beaten(pull):
    ratios = found(plan(pull))
    assert not any(violated for _, violated in ratios.values())
    assert all(0.99 < ratio <= 1 for ratio, _ in ratios.values())


@pytest.mark.parametrize(
    ("factor", "statistic", "adjacency"),
    [(0.5, "Q", "add-remove"), (0.5, "Q", "replace-one"), (0.5, "N", "replace-one")],
)
def test_a_claim_of_what_plain_moments_or_one_site_would_cost_is_found(monkeypatch, factor, statistic, adjacency):
    """Replace-one as within one site, 4 R^2, is half of the square that two sites attain. N moves where a record that
    can be read takes the place of one that cannot."""
    change_kind(monkeypatch, "sites", move=lambda right: lambda *given: factor * right(*given))
    assert found(plan())[statistic, adjacency][1]


def test_the_command_searches_and_other_kinds_are_refused(tmp_path, privstats):
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    done = privstats(
        "audit", "sensitivity", "plan.toml", "--starts", "4", "--seed", "1", "--json", cwd=tmp_path, code=0
    )
    (report,) = json.loads(done.stdout)
    assert {row["statistic"] for row in report["rows"]} == {"N", "Q", "joint"}
    classes = made.plan(ps.ClassSchema(3, 4, "NAB", 2.0), ps.Cohort(4, 3, 200), plan().privacy)
    with pytest.raises(ps.PlanError, match="audit sensitivity"):
        audit_sites(target_of(classes), ps.randomness.seeded(1))
