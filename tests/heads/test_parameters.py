"""Every parameter of every head has bounds, and what is out of them is refused before anything is fitted."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone

from privstats import heads
from privstats.errors import HeadError, MissingStatisticError, ReleaseError
from privstats.heads import registry
from privstats.heads.bounds import Bounds, describe
from privstats.heads.estimator import ClassHead
from privstats.heads.persistence import Stored
from privstats.heads.released import Released
from privstats.heads.rules import LinearRule
from tests.heads.conftest import class_release, ridge_release

NEVER = ["bogus", -1, -0.5, float("nan"), float("inf"), b"auto", 10**400, [], {}, "AUTO", np.array([[1.0]]), 1 + 2j]
"""Right for no parameter of any head."""
WRONG = [
    pytest.param(name, parameter, value, id=f"{name}-{parameter}-{str(value)[:8]}")
    for name in registry.HEADS
    for parameter in registry.head_class(name)().get_params()
    for value in NEVER
]


@pytest.mark.parametrize(("name", "parameter", "value"), WRONG)
def test_a_parameter_out_of_its_bounds_is_refused_by_name(name, parameter, value):
    head = registry.head_class(name)(**{parameter: value})
    for fit in (lambda: head.fit(np.zeros((0, 0)), []), lambda: head.fit_release(None)):  # before any data is looked at
        with pytest.raises(HeadError, match=f"^{parameter} must be .*, got "):
            fit()


@pytest.mark.parametrize("name", registry.HEADS)
def test_the_registry_is_the_package(name):
    entry, cls = registry.HEADS[name], registry.head_class(name)
    assert cls is getattr(heads, name)
    assert cls.entry is entry
    assert cls.__module__ == f"privstats.heads.{entry.module}"
    assert set(cls.bounds) == set(inspect.signature(cls).parameters)
    assert all(describe(kinds) for kinds in cls.bounds.values())


def test_every_head_is_in_the_registry():
    found = {
        name for name in heads.__all__ if isinstance(value := getattr(heads, name), type) and issubclass(value, Stored)
    }
    assert found == set(registry.HEADS)
    assert registry.named("ridge") == ("Ridge",)
    assert "FisherMix" in registry.named("classes")
    assert "FisherMix" not in registry.named("classes", trained=False)


@pytest.mark.parametrize("statistics", ["NA", "NAB", "NAD", "NABD", "NAS"])
@pytest.mark.parametrize("name", registry.named("classes"))
def test_a_head_is_built_exactly_from_the_statistics_of_its_row(name, statistics, blobs):
    X, y = blobs(n=80, d=3, classes=3)
    settings = {"per_class": 20, "max_rounds": 1} if not registry.HEADS[name].closed_form else {}
    head = registry.head_class(name)(**settings)
    if name in registry.able(statistics):
        head.fit_release(class_release(X, y, statistics))
    else:
        with pytest.raises(MissingStatisticError, match=f"{name} needs statistic") as caught:
            head.fit_release(class_release(X, y, statistics))
        assert all(able in str(caught.value) for able in registry.able(statistics))


class NearestMean(ClassHead):
    """A head of somebody else, from N and A alone."""

    entry = registry.Entry("NearestMean", "nowhere")
    bounds: ClassVar[Bounds] = {}

    def _solve(self, evidence):
        means = evidence.A / evidence.N[:, None]
        return LinearRule(means, -np.square(means).sum(axis=1) / 2 - means @ evidence.origin)


def test_a_head_from_counts_and_sums_alone_is_possible(blobs):
    X, y = blobs()
    nearest = np.argmin([np.square(X - X[y == c].mean(axis=0)).sum(axis=1) for c in range(4)], axis=0)
    for head in (NearestMean().fit(X, y), NearestMean().fit_release(class_release(X, y, "NA"))):
        np.testing.assert_array_equal(head.predict(X), nearest)


def test_numbers_of_numpy_are_numbers(blobs):
    X, y = blobs()
    head = heads.LowRankQDA(
        rank=np.int64(2), pooled_weight=np.float32(0.5), shrinkage=np.float64(0.1), subspace=np.int32(3)
    )
    head.fit(X, y)
    heads.LDA(subspace=0.9, priors=(0.1, 0.2, 0.3, 0.4)).fit(X, y)
    assert clone(head).rank == 2


def test_a_subspace_wider_than_the_features_is_refused(blobs):
    X, y = blobs()
    for head in (heads.LDA(subspace=99), heads.FisherMix(dimension=99), heads.QDA(subspace=7)):
        with pytest.raises(HeadError, match="is more than the 6 features; give at most 6, or 'auto'"):
            head.fit(X, y)


def test_priors_of_another_number_of_classes_are_refused(blobs):
    with pytest.raises(HeadError, match="4 positive numbers, one per class"):
        heads.LDA(priors=[0.5, 0.5]).fit(*blobs())


def test_ridge_sums_under_a_class_schema_are_refused(blobs):
    X, y = blobs()
    mixed = replace(ridge_release(X, X[:, 0]), plan=class_release(X, y).plan)
    with pytest.raises(ReleaseError, match=r"release.plan measures classes; use heads.RidgeClassifier"):
        heads.Ridge().fit_release(mixed)


def test_a_release_is_anything_with_the_parts_that_heads_read(blobs):
    X, y = blobs()
    assert isinstance(class_release(X, y), Released)
    assert isinstance(ridge_release(X, X[:, 0]), Released)
    for stranger in (None, X, object(), "release.safetensors"):
        with pytest.raises(HeadError, match=r"release must be a Release, got .*; load one with Release.load"):
            heads.Ridge().fit_release(stranger)
        with pytest.raises(HeadError, match=r"release must be a Release, got .*; load one with Release.load"):
            heads.LDA().fit_release(stranger)
