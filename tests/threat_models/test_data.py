"""A run without data gets bundled or made-up records; a file is checked with one sentence per fault."""

import numpy as np
import pytest

import privstats as ps
from privstats.randomness import seeded
from tests.made import refused
from threat_models.chance import named
from threat_models.data import bundled, from_file, synthetic_pool

from .conftest import plan_of, records


def test_digits_where_they_fit_and_made_up_vectors_where_they_do_not():
    digits = ps.Plan(schema=ps.ClassSchema(10, 64, "NA", 1.0), cohort=ps.Cohort(2, 2, 2000), privacy=ps.NoPrivacy())
    assert "digits" in bundled(digits, seeded(0))[1]
    assert "made-up" in bundled(plan_of(), seeded(0))[1]
    nearly = ps.Plan(schema=ps.ClassSchema(9, 64, "NA", 1.0), cohort=ps.Cohort(2, 2, 2000), privacy=ps.NoPrivacy())
    assert "made-up" in bundled(nearly, seeded(0))[1]


@pytest.mark.parametrize("targets", [1, 3])
def test_made_up_ridge_records_keep_the_bounds(targets):
    schema = ps.RidgeSchema(5, targets, clip_norm=2.0, target_bound=3.0)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 1000), privacy=ps.NoPrivacy())
    pool = synthetic_pool(plan, seeded(0))
    assert np.linalg.norm(np.reshape(pool.y, (len(pool.y), -1)), axis=1).max() <= 3.0 + 1e-9
    assert pool.measure(plan, np.arange(7)).records == 7


def test_made_up_records_stand_behind_the_transform_and_respect_signs():
    schema = ps.ClassSchema(2, 5, "NA", 1.0, nonnegative=True, transform=(ps.transforms.UnitNorm(),))
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 1000), privacy=ps.NoPrivacy())
    pool = synthetic_pool(plan, seeded(0), per_class=20)
    assert pool.behind_transform
    assert len(pool.X) + len(pool.public_X) == 40
    vectors = pool.vectors(plan, pool.X)
    assert vectors.min() >= 0
    assert np.linalg.norm(vectors, axis=1).std() > 0.01  # a unit norm in front would have made them all alike
    assert np.allclose(pool.measure(plan, np.arange(4)).real().A.sum(axis=0), vectors[:4].sum(axis=0))


@pytest.mark.parametrize("names", [("X", "y"), ("X_train", "y_train")])
def test_a_file_of_records_is_read(tmp_path, names):
    X, y = records(40, 6)
    np.savez(tmp_path / "r.npz", **dict(zip(names, (X, y), strict=True)))
    pool = from_file(plan_of(), tmp_path / "r.npz", seeded(0))
    assert (len(pool.X) + len(pool.public_X), pool.y.dtype) == (40, np.int64)


def test_a_ridge_file_keeps_its_targets(tmp_path):
    from .conftest import ridge_plan

    np.savez(tmp_path / "r.npz", X=records(40, 4)[0], y=np.linspace(-1, 1, 40))
    assert from_file(ridge_plan(), tmp_path / "r.npz", seeded(0)).y.dtype == np.float64


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((9, 6))}, "lacks y"),
        ({"X": np.ones((9, 6)), "y": np.full(9, 2)}, "whole labels in 0..1"),
        ({"X": np.ones((9, 6)), "y": np.full(9, 0.5)}, "whole labels in 0..1"),
        ({"X": np.ones((9, 6)), "y": np.zeros((9, 2))}, "whole labels in 0..1"),
        ({"X": np.ones((9, 5)), "y": np.zeros(9)}, "features"),
        ({"X": np.array(["a"] * 9), "y": np.zeros(9)}, "plain arrays"),
    ],
)
def test_a_file_that_does_not_fit_is_one_sentence(tmp_path, arrays, message):
    np.savez(tmp_path / "r.npz", **arrays)
    refused(ps.DataError, message, from_file, plan_of(), tmp_path / "r.npz", seeded(0))


def test_a_file_that_is_none_is_one_sentence(tmp_path):
    (tmp_path / "r.npz").write_text("no")
    for path in (tmp_path / "r.npz", tmp_path / "missing.npz"):
        refused(ps.DataError, "cannot read", from_file, plan_of(), path, seeded(0))


def test_a_named_stream_is_reproducible_and_its_own():
    assert named(1, "a").bytes(8) == named(1, "a").bytes(8) != named(1, "b").bytes(8)
    assert named(None, "a").bytes(8) != named(None, "a").bytes(8)
