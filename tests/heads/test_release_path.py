"""Heads on real releases: the whole way from records through plan, masks and noise."""

import numpy as np
import pytest

import privstats as ps
from privstats.heads.evidence import class_evidence
from privstats.heads.registry import named
from privstats.moments import quantize
from privstats.randomness import seeded
from privstats.transforms import Centre, CentreRows, ConstantFeature, UnitNorm
from tests import made
from tests.heads.conftest import quick


def shards(X, y, clients=3):
    return [(X[k::clients], y[k::clients]) for k in range(clients)]


def class_plan(statistics, features, classes, privacy, **schema):
    return made.plan(
        ps.ClassSchema(classes, features, statistics, clip_norm=schema.pop("clip_norm", 1.0), **schema),
        ps.Cohort(clients=3, min_survivors=3, max_records=20_000),
        privacy,
    )


@pytest.mark.parametrize("name", named("classes", trained=False))
def test_release_without_noise_is_nearly_fitting_on_clipped_records(name, blobs):
    X, y = blobs()
    radius = float(np.linalg.norm(X, axis=1).max()) * 1.01
    plan = class_plan("NAS", 6, 4, ps.NoPrivacy(), clip_norm=radius)
    head = quick(name)
    far = head.fit_release(ps.simulate(plan, shards(X, y), rng=seeded(0))).predict_proba(X)
    assert np.abs(far - head.fit(X, y).predict_proba(X)).max() < 0.05


@pytest.mark.parametrize("name", ["NaiveBayes", "QDA", "RDA", "LowRankQDA"])
def test_a_constant_feature_between_two_grid_points_costs_nothing(name, blobs):
    X, y = blobs()
    X = np.c_[X, np.full(len(X), 0.3)]
    plan = class_plan("NAS", 7, 4, ps.NoPrivacy(), clip_norm=float(np.linalg.norm(X, axis=1).max()) * 1.01)
    head = getattr(ps.heads, name)(shrinkage=None)
    released = head.fit_release(ps.simulate(plan, shards(X, y), rng=seeded(0))).score(X, y)
    assert abs(released - head.fit(X, y).score(X, y)) < 0.01
    assert released > 0.7


def test_two_partitions_give_the_same_head_to_the_last_bit(blobs):
    X, y = blobs()
    plan = class_plan("NAB", 6, 4, ps.NoPrivacy(), clip_norm=10.0)
    one = ps.heads.LDA().fit_release(ps.simulate(plan, shards(X, y), rng=seeded(0)))
    order = np.argsort(y)
    two = ps.heads.LDA().fit_release(ps.simulate(plan, shards(X[order], y[order]), rng=seeded(1)))
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("model", ["central", "distributed"])
def test_digits_survive_real_noise_through_the_transform(model):
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    plan = class_plan("NAB", 64, 10, made.promise(model, epsilon=3.0), transform=(CentreRows(), UnitNorm()))
    release = ps.simulate(plan, shards(X, y), rng=seeded(1))
    assert ps.heads.LDA().fit_release(release).score(X_test, y_test) > 0.85


def test_suppressed_classes_of_a_real_release_stay_out(blobs):
    X, y = blobs(classes=3)
    X, y = np.r_[X, X[:2]], np.r_[y, 3, 3]
    plan = made.plan(
        ps.ClassSchema(4, 6, "NAB", clip_norm=20.0),
        ps.Cohort(clients=3, min_survivors=3, max_records=20_000),
        min_count=10,
    )
    head = ps.heads.LDA().fit_release(ps.simulate(plan, shards(X, y), rng=seeded(0)), labels=list("abcd"))
    assert head.classes_.tolist() == ["a", "b", "c"]


def test_a_class_that_took_others_in_is_known_to_carry_their_noise(blobs):
    X, y = blobs(n=3000, classes=3)
    X, y = np.r_[X, X[:2]], np.r_[y, 3, 4]
    plan = made.plan(
        ps.ClassSchema(5, 6, "NAS", clip_norm=20.0),
        ps.Cohort(clients=3, min_survivors=3, max_records=20_000),
        made.promise(epsilon=3.0),
        min_count=300,
        merge={3: 0, 4: 0},
    )
    release = ps.simulate(plan, shards(X, y), rng=seeded(0))
    assert release.suppressed == (3, 4)
    evidence, keep = class_evidence(release)
    assert keep.tolist() == [0, 1, 2]
    for statistic in "NAS":
        assert evidence.noise(statistic) == pytest.approx(3**0.5 * release.sigma[statistic])


@pytest.mark.parametrize("folds", [1, 4])
def test_ridge_on_a_real_release(blobs, folds):
    X, _ = blobs(n=900)
    y = X @ np.arange(6) + 3
    schema = ps.RidgeSchema(
        7, clip_norm=30.0, target_bound=float(np.abs(y).max()), transform=(ConstantFeature(1.0),), folds=folds
    )
    plan = made.plan(schema, ps.Cohort(clients=3, min_survivors=3, max_records=5000))
    assert ps.heads.Ridge().fit_release(ps.simulate(plan, shards(X, y), rng=seeded(0))).score(X, y) > 0.999


@pytest.mark.parametrize("name", named("classes", trained=False))
@pytest.mark.parametrize("transform", [(), (Centre((0.5, 0.5, 0.5, 0.5)),)])
def test_negative_entries_that_the_release_saw_as_zero_are_zero_to_the_head_too(name, transform, tmp_path):
    """With ``nonnegative`` they are cut where records are measured: left in at prediction, they move its scores."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 4)) + 2 * np.eye(4)[y]
    schema = ps.ClassSchema(3, 4, "NAS", 3.0, nonnegative=True, transform=transform)
    plan = made.plan(schema, ps.Cohort(2, 2, 300))
    release = ps.session.aggregate_unmasked(plan, [ps.measure(schema, X[k::2], y[k::2]) for k in range(2)])
    head = quick(name).fit_release(release)
    seen = quantize(schema, X) / schema.scale
    np.testing.assert_allclose(head.preprocessing_.apply(X), seen, atol=5e-3)
    head.save(tmp_path / "head")
    again = ps.heads.load(tmp_path / "head")
    np.testing.assert_array_equal(again.decision_function(X), head.decision_function(X))


def test_a_ridge_head_cuts_negative_entries_as_the_release_did():
    schema = ps.RidgeSchema(4, clip_norm=3.0, target_bound=1.0, nonnegative=True)
    plan = made.plan(schema, ps.Cohort(2, 2, 100))
    X = np.random.default_rng(0).normal(size=(100, 4))
    release = ps.session.aggregate_unmasked(plan, [ps.measure(schema, X[k::2], X[k::2, 0]) for k in range(2)])
    head = ps.heads.Ridge().fit_release(release)
    np.testing.assert_allclose(head.predict(X), head.predict(np.maximum(X, 0)))
