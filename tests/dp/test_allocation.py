"""The optimal shares are optimal: nothing nearby does better, and the closed form is the calculus."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privstats import ClassSchema, RidgeSchema
from privstats.dp import Privacy, default_shares, joint_mu, optimal_shares, sensitivity, suggested_shares
from privstats.dp.sensitivities import allocate
from privstats.errors import PlanError

SCHEMAS = [
    ClassSchema(3, 4, "NAB", 0.7),
    ClassSchema(2, 8, "NABD", 2.0),
    ClassSchema(4, 3, "NAS", 1.0, nonnegative=True),
    ClassSchema(3, 4, "NA", 5.0),
    RidgeSchema(5, 2, clip_norm=1.5, target_bound=3.0, folds=3),
]
ENTRIES = {"N": lambda s: s.classes, "A": lambda s: s.classes * s.features, "D": lambda s: s.classes * s.features,
           "B": lambda s: s.features * (s.features + 1) // 2,
           "S": lambda s: s.classes * s.features * (s.features + 1) // 2,
           "G": lambda s: s.folds * s.features * (s.features + 1) // 2,
           "h": lambda s: s.folds * s.features * s.targets, "q": lambda s: s.folds}  # fmt: skip


def error(schema, shares, adjacency, weights):
    sigma = allocate(shares, 1.0, partial(joint_mu, schema), adjacency)
    return sum(weights[s] * ENTRIES[s](schema) * sigma[s] ** 2 for s in sigma)


@settings(deadline=None, max_examples=8)
@given(
    schema=st.sampled_from(SCHEMAS), adjacency=st.sampled_from(["add-remove", "replace-one"]),
    powers=st.lists(st.floats(-2, 2), min_size=4, max_size=4), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_no_other_shares_have_a_smaller_weighted_error(schema, adjacency, powers, seed):
    weights = {s: 10**p for s, p in zip(schema.statistics, powers, strict=False)}
    best = optimal_shares(schema, adjacency, weights)
    least = error(schema, best, adjacency, weights)
    assert math.fsum(best.values()) == pytest.approx(1)
    rng = np.random.default_rng(seed)
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(15):
            moved = np.array(list(best.values())) * np.exp(scale * rng.standard_normal(len(best)))
            other = dict(zip(best, moved / moved.sum(), strict=True))
            assert error(schema, other, adjacency, weights) >= least * (1 - 1e-7)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_add_remove_has_the_closed_form(schema):
    shares = optimal_shares(schema, "add-remove")
    raw = {s: sensitivity(schema, s, "add-remove") * math.sqrt(ENTRIES[s](schema)) for s in schema.statistics}
    assert shares == pytest.approx({s: value / sum(raw.values()) for s, value in raw.items()})
    least = sum(raw.values()) ** 2  # Cauchy-Schwarz: the error at mu = 1
    assert error(schema, shares, "add-remove", dict.fromkeys(shares, 1.0)) == pytest.approx(least)


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_an_allocation_spends_exactly_the_budget(schema, adjacency):
    shares = optimal_shares(schema, adjacency)
    assert joint_mu(schema, allocate(shares, 0.37, partial(joint_mu, schema), adjacency), adjacency) == pytest.approx(
        0.37
    )


def test_the_replace_one_optimum_beats_the_add_remove_shares():
    """Where sums matter, two opposed records of one class are worse than two classes, and the optimum knows."""
    schema, weights = SCHEMAS[0], {"N": 1.0, "A": 10.0, "B": 1.0}
    ours, theirs = (optimal_shares(schema, adjacency, weights) for adjacency in ("replace-one", "add-remove"))
    assert error(schema, ours, "replace-one", weights) < 0.85 * error(schema, theirs, "replace-one", weights)


@pytest.mark.parametrize(
    "weights", [{"N": 1.0, "A": 1.0}, {"N": 1.0, "A": 1.0, "B": 0.0}, {"N": 1, "A": 1, "B": math.inf}]
)
def test_weights_must_cover_the_schema(weights):
    with pytest.raises(PlanError, match="weights"):
        optimal_shares(SCHEMAS[0], "add-remove", weights)


def test_suggested_shares_move_from_the_means_to_the_covariance_as_records_abound():
    schema = ClassSchema(10, 64, "NAB", 1.0)
    assert suggested_shares(schema, 1.0, 800) == default_shares(schema) == {"N": 0.02, "A": 0.85, "B": 0.13}
    assert suggested_shares(schema, 1.0, 1600) == {"N": 0.02, "A": 0.4, "B": 0.58}
    assert suggested_shares(schema, 1.0, 10**6) == {"N": 0.02, "A": 0.4, "B": 0.58}
    halfway = suggested_shares(schema, 2**0.5, 800)
    assert halfway == {"N": 0.02, "A": 0.62, "B": 0.36}
    assert suggested_shares(schema, 0.5, 2400) == suggested_shares(schema, 1.0, 1200)


@pytest.mark.parametrize("schema", [ClassSchema(3, 4, "NAS", 1.0), ClassSchema(3, 4, "NA", 1.0), *SCHEMAS[-1:]])
def test_other_statistics_are_suggested_their_defaults(schema):
    assert suggested_shares(schema, 5.0, 10**6) == default_shares(schema)


@given(st.floats(1e-3, 1e3), st.integers(1, 10**7))
def test_suggested_shares_can_be_written_into_a_plan(mu, records):
    shares = suggested_shares(ClassSchema(10, 64, "NAB", 1.0), mu, records)
    promise = Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5, shares=shares)
    assert promise.shares == pytest.approx(shares)


@pytest.mark.parametrize(("mu", "records"), [(0.0, 10), (math.inf, 10), (1.0, 0), ("1", 10), (1.0, None)])
def test_nothing_is_suggested_for_no_budget_or_no_records(mu, records):
    with pytest.raises(PlanError, match="must be finite and above 0"):
        suggested_shares(ClassSchema(3, 4, "NAB", 1.0), mu, records)
