"""Heads with a covariance per class solve with one BLAS thread and give the others back, whatever happens."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from privstats.heads.estimates import class_covariance
from privstats.heads.estimates.blas import one_blas_thread
from privstats.heads.rules import LowRankRule, QuadraticRule
from tests.heads.conftest import class_release, quick


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield blas_threads()


def test_the_other_threads_come_back_after_an_error_too(two_threads):
    with one_blas_thread():
        assert blas_threads() == {1}
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert blas_threads() == two_threads


@pytest.mark.parametrize("name", ["QDA", "RDA", "LowRankQDA"])
def test_per_class_problems_run_with_one_thread(name, blobs, monkeypatch, two_threads):
    seen = []

    def watched(original):
        return lambda *values, **named: (seen.append(blas_threads()), original(*values, **named))[1]

    monkeypatch.setattr(class_covariance, "conditioned", watched(class_covariance.conditioned))
    monkeypatch.setattr(class_covariance, "_intensity", watched(class_covariance._intensity))
    for rule in (QuadraticRule, LowRankRule):
        monkeypatch.setattr(rule, "__init__", watched(rule.__init__))
    quick(name).fit_release(class_release(*blobs(), "NAS"))
    assert len(seen) > 4
    assert set(map(frozenset, seen)) == {frozenset({1})}
    assert blas_threads() == two_threads


def test_the_loop_over_classes_itself_runs_with_one_thread(blobs, monkeypatch, two_threads):
    from privstats.heads import homogeneity

    seen, original = [], class_covariance._intensity
    monkeypatch.setattr(
        class_covariance, "_intensity", lambda *values: (seen.append(blas_threads()), original(*values))[1]
    )
    assert np.isfinite(homogeneity(class_release(*blobs(), "NAS")).divergence).all()
    assert seen == [{1}] * 4
    assert blas_threads() == two_threads
