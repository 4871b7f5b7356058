"""The noise that a class's scatter is said to hold is the noise that it holds; BLAS solves it in one thread."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from privstats.heads.evidence import ClassEvidence, class_evidence
from privstats.heads.fitting import class_covariance
from privstats.heads.fitting.class_covariance import ClassCovariances, _own_scatter, _own_share, one_blas_thread
from privstats.heads.rules import LowRankRule, QuadraticRule
from tests.heads.conftest import class_release, quick

DRAWS = 400


def scatters(mean, count, sigma, rng):
    """Scatters about noisy means, ``(DRAWS, d, d)``, and the levels that are claimed, of one class whose S is exact."""
    d = len(mean)
    S = count * (np.outer(mean, mean) + np.eye(d))
    A = count * mean + sigma * rng.standard_normal((DRAWS, d))
    evidence = ClassEvidence(
        N=np.full(DRAWS, float(count)), A=A, B=None, S=None, D=None, origin=np.zeros(d), sigma={"A": sigma, "S": 0.0}
    )
    return _own_scatter(np.broadcast_to(S, (DRAWS, d, d)), evidence, evidence.N)


@settings(max_examples=10)
@given(st.integers(2, 8), st.floats(0.0, 40.0), st.integers(10, 1000), st.integers(0, 2**32 - 1))
def test_noise_in_a_class_sum_counts_in_its_scatter(d, length, count, seed):
    """Never too low, and right where the class sum is longer than its noise."""
    rng, sigma = np.random.default_rng(seed), 30.0
    own, levels = scatters(length * sigma / count * np.eye(d)[0], count, sigma, rng)
    moved = own - count * np.eye(d)
    spread = np.square(moved).sum(axis=(1, 2)).mean()
    claimed = np.square(levels).mean() * d * (d + 1) / 2  # the squared norm of a GOE matrix of that level
    assert spread / claimed < 1.5
    assert spread / claimed > 0.6 or length < 2 * d**0.5
    # Ten examples check up to 360 entries: 5.5 standard errors are exceeded by chance once in 70,000 runs.
    error = 5.5 * moved.std(axis=0) / DRAWS**0.5 + 1e-9 * count
    assert (np.abs(moved.mean(axis=0)) <= error).all()  # the mean effect of the noise is subtracted


@settings(max_examples=10)
@given(st.integers(2, 40), st.floats(0.1, 100.0), st.integers(0, 2**32 - 1))
def test_noise_alone_is_no_difference_between_classes(d, level, seed):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.standard_normal((DRAWS // 4, d, d)))
    noise = level / 2 * (upper + upper.transpose(0, 2, 1))
    noise += level * (2**-0.5 - 0.5) * (np.triu(upper, 1) + np.triu(upper, 1).transpose(0, 2, 1))
    assert np.mean([_own_share(each, level) > 0 for each in noise]) < 0.15
    signal = 10 * level * d * np.diag(rng.standard_normal(d) + 3)
    assert _own_share(noise[0] + signal, level) > 0.9
    assert _own_share(noise[0], 0.0) == 1.0


def test_without_noise_in_the_sums_the_level_is_that_of_s():
    evidence = ClassEvidence(
        N=np.array([5.0, 9.0]),
        A=np.ones((2, 3)),
        B=None,
        S=None,
        D=None,
        origin=np.zeros(3),
        sigma={"A": 0.0, "S": 2.0},
    )
    assert _own_scatter(np.zeros((2, 3, 3)), evidence, evidence.N)[1].tolist() == [2.0, 2.0]


def in_features(found, c):
    """The covariance of a class in the coordinates of the features."""
    back = np.linalg.inv(found.basis)
    return back.T @ (found.vectors[c] * found.values[c]) @ found.vectors[c].T @ back


def test_squares_give_a_class_its_own_variances_and_b_the_correlations(blobs):
    X, y = blobs(n=5000)
    sums = class_release(X, y, "NABD")
    pooled, found = (ClassCovariances.of(class_evidence(sums)[0], weight, None) for weight in (1.0, 0.0))
    for c in range(4):
        own = in_features(found, c)
        spread = np.sqrt(np.diag(own))
        np.testing.assert_allclose(spread, X[y == c].std(axis=0), rtol=0.02)  # ten records of the pool are in it
        common = in_features(pooled, c)
        common /= np.sqrt(np.outer(np.diag(common), np.diag(common)))
        np.testing.assert_allclose(own / np.outer(spread, spread), common, atol=1e-9)


def test_squares_alone_know_no_correlations(blobs):
    X, y = blobs(n=5000)
    found = ClassCovariances.of(class_evidence(class_release(X, y, "NAD"))[0], 0.0, None)
    for c in range(4):
        np.testing.assert_allclose(in_features(found, c), np.diag(X[y == c].var(axis=0)), rtol=0.05, atol=1e-9)


def test_squares_that_are_noise_leave_the_pooled_covariance(blobs):
    X, y = blobs(n=5000)
    sums = class_release(X, y, "NABD", {"D": 1e9}, np.random.default_rng(0))
    found = ClassCovariances.of(class_evidence(sums)[0], 0.0, None)
    assert np.isfinite(found.values).all()
    np.testing.assert_allclose(found.values, 1.0, rtol=0.1)


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
    assert (set(map(frozenset, seen)), blas_threads()) == ({frozenset({1})}, two_threads)


def test_the_loop_over_classes_itself_runs_with_one_thread(blobs, monkeypatch, two_threads):
    from privstats.heads import homogeneity

    seen, original = [], class_covariance._intensity
    monkeypatch.setattr(
        class_covariance, "_intensity", lambda *values: (seen.append(blas_threads()), original(*values))[1]
    )
    assert np.isfinite(homogeneity(class_release(*blobs(), "NAS")).divergence).all()
    assert (seen, blas_threads()) == ([{1}] * 4, two_threads)
