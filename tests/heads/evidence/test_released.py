"""A release is what has its parts; anything else is refused in one sentence."""

from dataclasses import replace

import pytest

import privstats as ps
from privstats.heads.evidence import Released
from tests.heads.conftest import class_release, ridge_release


def test_a_release_is_anything_with_the_parts_that_heads_read(blobs):
    X, y = blobs()
    assert isinstance(class_release(X, y), Released)
    assert isinstance(ridge_release(X, X[:, 0]), Released)
    for stranger in (None, X, object(), "release.safetensors"):
        with pytest.raises(ps.errors.HeadError, match=r"release must be a Release, got .*; load one with Release.load"):
            ps.heads.Ridge().fit_release(stranger)
        with pytest.raises(ps.errors.HeadError, match=r"release must be a Release, got .*; load one with Release.load"):
            ps.heads.LDA().fit_release(stranger)


def test_ridge_sums_under_a_class_schema_are_refused(blobs):
    X, y = blobs()
    mixed = replace(ridge_release(X, X[:, 0]), plan=class_release(X, y).plan)
    with pytest.raises(ps.ReleaseError, match=r"release.plan measures classes; use heads.RidgeClassifier"):
        ps.heads.Ridge().fit_release(mixed)
