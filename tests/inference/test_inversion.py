"""The engine on its own: the covariance behind it, the p-value beside the interval, what is reported."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import foldnorm

from privstats.inference.inversion import Inversion, NormalEquations, folded, folded_quantile, quantile

SLOPES = np.array([0.2, 0.3, -0.2, 0.0, 0.25])


def noise(rng, size, sigma):
    """A symmetric matrix with sigma on its diagonal and sigma / sqrt 2 elsewhere."""
    upper = np.triu(rng.normal(size=(size, size)), 1) * sigma / np.sqrt(2)
    return upper + upper.T + np.diag(rng.normal(size=size) * sigma)


def world(rng, n, sigma, slopes=SLOPES):
    """Noisy sums of n records whose last column is 1."""
    p = len(slopes)
    X = np.c_[rng.normal(size=(n, p - 1)) * 0.6, np.ones(n)]
    y = X @ slopes + rng.normal(size=n) * 0.5
    G = X.T @ X + noise(rng, p, sigma)
    h = X.T @ y + rng.normal(size=p) * sigma
    return NormalEquations(G, h, float(y @ y + rng.normal() * sigma), sigma, sigma, sigma, G[-1, -1] - p)


def inversion(equations):
    return Inversion(equations, np.eye(len(equations.h)), equations.degrees)


def test_the_score_has_the_covariance_that_intervals_are_made_of():
    rng, sigma_G, sigma_h = np.random.default_rng(1), 1.3, 0.7
    b = np.array([2.0, -2.0, 1.0])
    draws = np.array([rng.normal(size=3) * sigma_h - noise(rng, 3, sigma_G) @ b for _ in range(20_000)])
    expected = (sigma_h**2 + sigma_G**2 * (b @ b) / 2) * np.eye(3) + sigma_G**2 / 2 * np.outer(b, b)
    assert np.allclose(np.cov(draws.T), expected, rtol=0.05, atol=0.25)
    # the engine's own value: one column's direction through G = I is that column
    equations = NormalEquations(np.eye(3), b, 100.0, sigma_G, sigma_h, 0.0, 50.0)
    assert np.allclose(inversion(equations).noise_error ** 2, np.diag(expected))


@pytest.mark.parametrize(("n", "sigma"), [(2_000, 0.0), (2_000, 30.0), (2_000, 150.0), (600, 80.0)])
def test_a_small_p_value_is_an_interval_that_is_told_and_leaves_zero_out(n, sigma):
    rng = np.random.default_rng(7)
    for _ in range(60):
        found = inversion(world(rng, n, sigma))
        for alpha in (0.2, 0.05, 0.01):
            low, high = found.interval(alpha)
            assert ((found.pvalues() < alpha) == (found.reported(alpha) & ((low > 0) | (high < 0)))).all()
            assert (np.isfinite(low) == found.reported(alpha)).all()
            assert (found.reported(alpha) == (found.least_level() < alpha)).all()


@pytest.mark.parametrize(("n", "sigma", "least"), [(2_000, 0.0, 0.93), (2_000, 30.0, 0.93), (600, 80.0, 0.95)])
def test_told_and_missed_in_at_most_alpha(n, sigma, least):
    rng = np.random.default_rng(3)
    covers = []
    for _ in range(400):
        low, high = inversion(world(rng, n, sigma)).interval(0.05)
        covers.append((low <= SLOPES) & (high >= SLOPES))
    assert np.mean(covers) > least
    assert sigma > 0 or np.mean(covers) < 0.97


def test_naive_intervals_would_miss():
    """What the noise terms are worth: without them three in four intervals miss."""
    rng, misses = np.random.default_rng(3), []
    for _ in range(200):
        noisy = world(rng, 2_000, 60.0)
        blind = NormalEquations(noisy.G, noisy.h, noisy.q, 0.0, 0.0, 0.0, noisy.degrees)
        low, high = inversion(blind).interval(0.05)
        misses.append((low > SLOPES) | (high < SLOPES))
    assert np.mean(misses) > 0.2


def test_the_ends_are_where_the_score_reaches_its_quantile():
    found = inversion(world(np.random.default_rng(2), 2_000, 40.0))
    low, high = found.interval(0.1)
    for end in (low, high):
        for j, value in enumerate(end):
            assert found.pvalues(value)[j] == pytest.approx(0.1, rel=1e-9)


def test_an_interval_about_the_exact_sums_is_of_the_noise_alone():
    rng, p = np.random.default_rng(4), len(SLOPES)
    X = np.c_[rng.normal(size=(3_000, p - 1)) * 0.6, np.ones(3_000)]
    y = X @ SLOPES + rng.normal(size=3_000) * 0.5
    exact, misses = np.linalg.solve(X.T @ X, X.T @ y), 0
    for _ in range(400):
        G, h = X.T @ X + noise(rng, p, 40.0), X.T @ y + rng.normal(size=p) * 40.0
        found = inversion(NormalEquations(G, h, float(y @ y), 40.0, 40.0, 40.0, 3_000 - p))
        low, high = found.interval(0.05, sampling=False)
        misses += int(((low > exact) | (high < exact)).sum())
    assert 0.03 < misses / (400 * p) < 0.07


def test_without_noise_about_the_exact_sums_is_a_point():
    found = inversion(world(np.random.default_rng(2), 500, 0.0))
    low, high = found.interval(0.05, sampling=False)
    assert np.allclose(low, found.estimate)
    assert np.allclose(high, found.estimate)


def test_rescaling_a_column_rescales_its_interval_and_no_other():
    equations = world(np.random.default_rng(5), 1_000, 0.0)
    scale = np.diag([4.0, 1.0, 1.0, 1.0, 1.0])
    scaled = NormalEquations(
        scale @ equations.G @ scale, scale @ equations.h, equations.q, 0.0, 0.0, 0.0, equations.degrees
    )
    before, after = inversion(equations).interval(0.05), Inversion(scaled, scale, scaled.degrees).interval(0.05)
    assert np.allclose(before, after)


def test_collinear_columns_are_not_told_and_the_others_are():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(200, 3))
    X = np.c_[X, X[:, 0] + X[:, 1]]
    y = X[:, 2] + rng.normal(size=200)
    found = inversion(NormalEquations(X.T @ X, X.T @ y, float(y @ y), 0.0, 0.0, 0.0, 196.0))
    assert found.reported(0.05).tolist() == [False, False, True, False]
    assert found.pvalues().tolist()[:2] == [1.0, 1.0]
    kept = X[:, [0, 1, 2]]
    assert found.estimate[2] == pytest.approx(np.linalg.lstsq(kept, y, rcond=None)[0][2])


def test_an_indefinite_matrix_tells_nothing_along_its_negative_direction():
    equations = NormalEquations(np.diag([4.0, -1.0]), np.ones(2), 9.0, 0.1, 0.1, 0.1, 50.0)
    assert inversion(equations).reported(0.05).tolist() == [True, False]
    assert inversion(equations).pvalues()[1] == 1.0


def test_noise_in_q_may_make_it_negative_and_the_variance_has_a_floor():
    equations = NormalEquations(np.eye(2) * 50, np.ones(2), -30.0, 0.0, 0.0, 20.0, 48.0)
    assert equations.variance == pytest.approx(20.0 / 48)


def test_the_joint_test_of_one_contrast_is_its_own():
    found = inversion(world(np.random.default_rng(8), 2_000, 40.0))
    for j in range(len(SLOPES)):
        row = Inversion(found.equations, np.eye(len(SLOPES))[[j]], found.degrees)
        assert row.joint_pvalue() == pytest.approx(row.pvalues()[0], rel=1e-9)


def test_the_joint_test_keeps_its_level():
    rng, rejected = np.random.default_rng(9), 0
    for _ in range(300):
        equations = world(rng, 2_000, 40.0, np.array([0.3, 0.0, 0.0, 0.0, 0.1]))
        rejected += Inversion(equations, np.eye(5)[1:4], equations.degrees).joint_pvalue() < 0.05
    assert rejected / 300 < 0.09


def test_a_known_variance_takes_normal_quantiles():
    assert quantile(0.05, np.inf) == pytest.approx(1.959963984540054)
    equations = NormalEquations(np.eye(2) * 100, np.ones(2), 0.0, 0.0, 0.0, 0.0, np.inf, known_variance=1.0)
    low, high = inversion(equations).interval(0.05)
    assert np.allclose(high - low, 2 * 1.959963984540054 / 10)


def test_a_bias_takes_the_quantiles_of_a_folded_normal_law():
    bias = np.array([0.0, 0.3, 1.0, 2.0])
    for alpha in (0.5, 0.05, 1e-4):
        assert np.allclose(folded_quantile(alpha, bias), foldnorm.isf(alpha, bias), rtol=1e-6)
        assert np.allclose(folded(folded_quantile(alpha, bias), bias), alpha, rtol=1e-6)
    assert folded_quantile(0.05, np.array([1e3, np.inf])).tolist() == pytest.approx([1e3 + 1.6448536, math.inf])
    assert folded(np.array([9.0]), np.array([np.inf])).tolist() == [1.0]


def biased(rng, bias, sigma=30.0):
    """Score equations with variance 1, as those of a logistic round."""
    equations = replace(world(rng, 2_000, sigma), degrees=math.inf, known_variance=1.0)
    return Inversion(equations, np.eye(len(SLOPES)), math.inf, bias)


@pytest.mark.parametrize("bias", [0.01, 1.0, 3.0])
def test_a_bias_is_in_intervals_and_p_values_alike(bias):
    rng = np.random.default_rng(5)
    for _ in range(40):
        found = biased(rng, bias)
        plain = replace(found, bias=0.0)
        for alpha in (0.2, 0.05, 0.01):
            low, high = found.interval(alpha)
            assert ((found.pvalues() < alpha) == (found.reported(alpha) & ((low > 0) | (high < 0)))).all()
            inner = plain.interval(alpha)
            assert ((low <= inner[0]) & (high >= inner[1])).all()
            sums, without = found.interval(alpha, sampling=False), plain.interval(alpha, sampling=False)
            moved = found.reported(alpha) * found.relative_bias * found.error
            assert np.allclose(np.nan_to_num(sums[1] - without[1], posinf=0.0, nan=0.0), moved)
        for row in np.eye(len(SLOPES)):
            one = found.combined(row[None])
            assert one.joint_pvalue() == pytest.approx(float(one.pvalues()[0]), abs=2e-2)
            assert one.joint_pvalue() >= replace(one, bias=0.0).joint_pvalue() - 1e-12
        assert found.joint_pvalue() >= plain.joint_pvalue()


def test_the_worst_bias_is_missed_in_alpha_of_draws():
    rng, G, worst = np.random.default_rng(2), np.diag([4.0, 1.0]), 1.5
    equations = NormalEquations(G, np.zeros(2), 0.0, 0.0, 0.0, 0.0, math.inf, known_variance=1.0)
    draws = rng.normal(size=(4_000, 2)) * np.sqrt(np.diag(G)) + G @ [worst / 2, 0.0]  # |b| = 1.5 in the norm of G
    missed = []
    for h in draws:
        low, high = Inversion(replace(equations, h=h), np.eye(2), math.inf, worst).interval(0.05)
        missed.append((low > 0) | (high < 0))
    assert np.mean(missed, axis=0)[0] == pytest.approx(0.05, abs=0.011)
    assert np.mean(missed, axis=0)[1] < 0.01
