"""The search is an honest adversary: it finds what is there, and says when a claim is too small."""

import math

import numpy as np
import pytest

import privstats as ps
from privstats import ClassSchema, MeanSchema, RidgeSchema
from privstats.dp import joint_mu
from privstats.intake.declared import categories
from privstats.randomness import seeded
from tests.mutation import bugs
from tests.schema.changed import change_kind
from tests.threat_models.audits.plans import target
from threat_models.audits import sensitivity
from threat_models.audits.cells import worst_of_tables
from threat_models.audits.counts import audit_counts
from threat_models.audits.searches import broken_promise
from threat_models.audits.sensitivity import audit_sensitivity, findings, worst_pair


@pytest.mark.parametrize(
    "schema",
    [
        ClassSchema(4, 30, "NABD", 2.0),
        RidgeSchema(20, 3, clip_norm=2.0, target_bound=0.5, folds=4),
        MeanSchema(30, 2.0),
    ],
)
def test_every_claim_of_a_plan_is_reached_and_none_is_beaten(schema):
    report = audit_sensitivity(target(schema), seeded(1), starts=4)
    assert len(report.rows) == 2 * (len(schema.statistics) + 1) + 1
    ratios = [row[report.columns.index("ratio")] for row in report.rows]
    assert all(1 - 1e-4 <= ratio <= 1 + 1e-9 for ratio in ratios)
    assert not report.violated


def tables():
    cells = ps.Cells(
        (
            ps.Numeric("age", (40, 65)),
            ps.Dates("seen", ("2020-01-01",)),
            ps.Truth("smoker"),
            ps.Categories("sex", (1, 2)),
            ps.Categories("ward", (1, 2, 3)),
            ps.Categories("note", ()),
        ),
        ramp=True,
    )
    yield ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    yield RidgeSchema(cells.width, clip_norm=1.0, target_bound=0.5, transform=(cells,))
    signs = ps.Cells(cells.columns[:4])
    yield ClassSchema(2, signs.width, "NAB", 1.0, transform=(signs,))


@pytest.mark.ci
@pytest.mark.parametrize("schema", [*tables()], ids=["classes", "ridge", "classes of signs"])
def test_no_record_of_a_table_moves_more_than_the_claim(schema):
    report = audit_sensitivity(target(schema), seeded(1), starts=1)
    found = [row for row in report.rows if row[0] == "tables"]
    assert [row[1] for row in found] == ["add-remove", "replace-one"]
    ratios = [row[report.columns.index("ratio")] for row in found]
    assert 0.95 < ratios[0] <= 1
    only_signs = schema.transform[0].columns[-1].name == "sex"
    assert (0.99 if only_signs else 0.92) < ratios[1] <= 1  # two of six columns have orthogonal cells
    assert not report.violated


@pytest.mark.ci
def test_codes_that_follow_from_the_type_of_a_column_are_found(monkeypatch):
    monkeypatch.setattr(categories, "read", bugs.read_by_type(categories.read))
    schema = next(tables())
    worst, claimed = worst_of_tables(schema, {"A": 1.0}, seeded(1)), joint_mu(schema, {"A": 1.0}, "add-remove")
    assert worst["add-remove"] > 2 * claimed


def test_counts_of_declared_columns_are_searched_too():
    declared = ps.Cells((ps.Numeric("age"), ps.Categories("sex", (1, 2))))
    schema = ps.CountSchema((ps.Bins("age", (0, 40, 60), missing=True),), (("age",),), transform=(declared,))
    report = audit_counts(target(schema), seeded(1), starts=1)
    assert ([row[4] for row in report.rows], target(schema).empty.records) == (pytest.approx([1.0] * 4), 0)


def test_a_claim_that_is_too_small_is_violated(monkeypatch):
    monkeypatch.setattr(sensitivity, "joint_mu", lambda schema, sigmas, adjacency: 0.99 * math.sqrt(len(sigmas)))
    assert audit_sensitivity(target(ClassSchema(2, 3, "NA", 1.0)), seeded(1)).violated


def test_a_claim_that_forgets_that_two_rows_of_a_mean_oppose_is_found(monkeypatch):
    change_kind(monkeypatch, "mean", move=bugs.as_added)
    report = audit_sensitivity(target(MeanSchema(30, 2.0)), seeded(1), starts=1)
    assert {row[0] for row in report.rows if row[-1]} == {"x", "joint"}
    assert all(row[1] == "replace-one" for row in report.rows if row[-1])


def test_a_promise_that_the_declared_noise_does_not_keep_is_violated(monkeypatch):
    """The closed form is right here, and the plan used another: only the row of the promise can tell."""
    private = target(ClassSchema(2, 3, "NAB", 1.0), adjacency="replace-one")
    assert broken_promise(private, seeded(1)) == []
    monkeypatch.setattr(type(private), "sigma", {s: value / 1.01 for s, value in private.sigma.items()})
    report = audit_sensitivity(private, seeded(1), starts=4)
    assert [row[0] for row in report.rows if row[-1]] == ["promise"]
    assert report.violated
    assert "the promise is" in broken_promise(private, seeded(1))[0]


def test_the_pair_that_is_found_has_the_cosine_of_the_derivation():
    """Same class, <x, x'> = -w_A / (2 W)."""
    sigmas = {"A": 1.0, "B": 0.5}
    pair = worst_pair(ClassSchema(2, 4, "NAB", 1.0), sigmas, "replace-one", seeded(0))
    assert not pair.apart
    assert float(pair.features[0] @ pair.features[1]) == pytest.approx(-1 / (2 * 4), abs=1e-3)


def test_non_negative_records_stay_non_negative_and_in_the_ball():
    schema = ClassSchema(2, 4, "NAB", 1.5, nonnegative=True)
    pair = worst_pair(schema, {"A": 1.0, "B": 0.5}, "replace-one", seeded(0))
    assert pair.features.min() >= 0
    assert np.linalg.norm(pair.features, axis=1).max() <= 1.5 * (1 + 1e-12)


def test_the_gradient_is_the_derivative():
    """Central differences on a random point of every configuration."""
    rng = np.random.default_rng(0)
    for schema, sigmas in (
        (ClassSchema(2, 3, "NABD", 1.1), {"N": 1.0, "A": 0.7, "B": 2.0, "D": 0.4}),
        (RidgeSchema(3, 2, clip_norm=1.1, target_bound=0.6, folds=2), {"G": 1.0, "h": 0.5, "q": 0.3}),
    ):
        for records, apart in ((1, False), (2, False), (2, True)):
            distance = sensitivity._Distance(schema, sigmas, records, apart)
            point = rng.standard_normal(distance.parameters)
            _, gradient = distance.loss(point)
            steps = 1e-6 * np.eye(len(point))
            numeric = [(distance.loss(point + s)[0] - distance.loss(point - s)[0]) / 2e-6 for s in steps]
            np.testing.assert_allclose(gradient, numeric, atol=1e-6)


def test_findings_cover_every_statistic_named():
    names = {finding.statistic for finding in findings(ClassSchema(2, 2, "NA", 1.0), {"A": 1.0}, seeded(0), starts=1)}
    assert names == {"A", "joint"}
