"""The score is unbiased under noise, is least squares without it, and its intervals cover."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chi2, t

from privstats.contrib.site_levels.fit import FEWEST_DEGREES, SiteSums, _level_at, _Weights, fitted
from tests.lengths import sized

B = np.array([0.5, 0.3, -0.4])


def records(sites: int, tau: float, rng: np.random.Generator, size: int = 100) -> tuple[Any, Any, Any]:
    sizes = np.maximum(rng.poisson(size, sites), 5)
    sizes[: sites // 5] = 5
    site = np.repeat(np.arange(sites), sizes)
    X = np.column_stack(
        [np.ones(len(site)), rng.uniform(-1, 1, (len(site), 2)) + 0.3 * rng.normal(size=sites)[site, None]]
    )
    return site, X, X @ B + tau * rng.normal(size=sites)[site] + rng.normal(size=len(site))


def sums_of(site: Any, X: Any, y: Any) -> SiteSums:
    one = np.eye(site.max() + 1)[site]
    return SiteSums(one.T @ X, one.T @ y, X[:, 1:].T @ X[:, 1:], X[:, 1:].T @ y, float(y @ y), 0.0, 0.0, 0.0)


def noisy(sums: SiteSums, level: float, rng: np.random.Generator) -> SiteSums:
    p = len(sums.h)
    of_t = rng.normal(size=sums.t.shape) * level * np.append(1, np.full(p, 0.5**0.5))
    half = np.triu(rng.normal(size=(p, p)) * level * np.where(np.eye(p), 1, 0.5**0.5))
    return SiteSums(
        sums.t + of_t,
        sums.sy + rng.normal(size=len(sums.sy)) * 2 * level,
        sums.G + half + np.triu(half, 1).T,
        sums.h + rng.normal(size=p) * 2 * level,
        sums.q + rng.normal() * 8 * level,
        level,
        2 * level,
        8 * level,
    )


def test_without_noise_it_is_generalised_least_squares_at_its_own_variances() -> None:
    site, X, y = records(25, 0.6, np.random.default_rng(1))
    fit = fitted(sums_of(site, X, y))
    inverse = np.linalg.inv(fit.residual * np.eye(len(y)) + fit.level * (site[:, None] == site))
    covariance = np.linalg.inv(X.T @ inverse @ X)
    np.testing.assert_allclose(fit.b, covariance @ X.T @ inverse @ y, rtol=1e-8)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-8)
    assert abs(fit.residual - 1) < 0.1
    assert abs(math.sqrt(fit.level) - 0.6) < 0.3


def test_noise_moves_no_entry_of_the_scores_matrix_on_average() -> None:
    rng = np.random.default_rng(2)
    sums = sums_of(*records(12, 0.5, rng, 40))
    shaken = [noisy(sums, 6.0, rng) for _ in range(5_000)]
    at = [_Weights.of(each, 4.0, 30.0) for each in shaken]
    # The expected weights belong to the exact sums: each draw's own weights times the exact t are averaged.
    B_exact = np.mean([_matrix_with(sums, weights, each) for weights, each in zip(at, shaken, strict=True)], axis=0)
    found = np.array([weights.matrix(each) for weights, each in zip(at, shaken, strict=True)])
    error = found.std(axis=0) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - B_exact) < 4.5 * error).all()
    naive = np.mean([weights.rows(each).T @ each.t for weights, each in zip(at, shaken, strict=True)], axis=0)
    naive[1:] += sums.gram[1:]
    assert (np.abs(naive - B_exact) > 10 * error).any()  # what Stein's lemma takes off is no small thing


def _matrix_with(sums: SiteSums, weights: _Weights, noisy: SiteSums) -> Any:
    exact = weights.rows(noisy).T @ sums.t
    exact[1:] += sums.gram[1:]
    return exact


@pytest.mark.parametrize(("sites", "tau", "level"), [(10, 1.0, 0.0), (30, 0.3, 4.0), (30, 0.0, 8.0)])
def test_intervals_cover(sites: int, tau: float, level: float) -> None:
    rng, runs = np.random.default_rng(3), sized(80, 300)
    missed, off = np.zeros(3), 0
    for _ in range(runs):
        fit = fitted(noisy(sums_of(*records(sites, tau, rng)), level, rng))
        half = t.ppf(0.975, fit.degrees(np.eye(3))) * np.sqrt(np.diag(fit.covariance))
        missed += fit.reported * (np.abs(fit.b - B) > half)
        low, high = fit.tau(0.05)
        off += not low <= tau <= high
    most = binom.ppf(0.999, runs, 0.05)
    assert (missed <= most).all(), missed
    assert off <= most


def test_a_column_of_noise_alone_reports_nothing() -> None:
    rng = np.random.default_rng(4)
    fit = fitted(noisy(sums_of(*records(8, 0.3, rng, 20)), 200.0, rng))
    assert not fit.reported
    assert fit.tau(0.05) == (0.0, math.inf)


def test_few_sites_report_no_tau() -> None:
    rng = np.random.default_rng(5)
    fit = fitted(sums_of(*records(FEWEST_DEGREES + 2, 0.5, rng)))
    assert fit.reported
    assert fit.tau(0.05) == (0.0, math.inf)


def test_columns_in_other_units_change_nothing_else() -> None:
    site, X, y = records(20, 0.5, np.random.default_rng(6))
    one, other = fitted(sums_of(site, X, y)), fitted(sums_of(site, X * [1, 1e-3, 50], y))
    np.testing.assert_allclose(other.b * [1, 1e-3, 50], one.b, rtol=1e-7)
    np.testing.assert_allclose(other.tau(0.05), one.tau(0.05), rtol=1e-5)


def test_an_end_is_where_q_is_its_quantile() -> None:
    assert _level_at(lambda v: 9 / (1 + v), 3.0, 1.0) == pytest.approx(2.0, rel=1e-5)
    assert _level_at(lambda v: 2 / (1 + v), 3.0, 1.0) == 0
    assert _level_at(lambda v: 9.0, float(chi2.ppf(0.5, 3)), 1.0) == math.inf


def test_an_interval_of_tau_that_is_empty_is_not_reported() -> None:
    rng = np.random.default_rng(7)
    site, X, y = records(20, 0.0, rng)
    y = y - np.bincount(site, y - X @ B)[site] / np.bincount(site)[site]  # levels that vary less than residuals can
    assert fitted(sums_of(site, X, y)).tau(0.05) == (0.0, math.inf)


def test_skewed_levels_make_taus_interval_miss_and_not_the_coefficients() -> None:
    """The sentence below the table is true: the benchmark's world of exponential levels misses in up to 24 %."""
    rng, runs = np.random.default_rng(8), sized(80, 200)
    missed, off = np.zeros(3), 0
    for _ in range(runs):
        site, X, y = records(30, 0.0, rng)
        fit = fitted(noisy(sums_of(site, X, y + 0.5 * (rng.exponential(size=30) - 1)[site]), 4.0, rng))
        missed += np.abs(fit.b - B) > t.ppf(0.975, fit.degrees(np.eye(3))) * np.sqrt(np.diag(fit.covariance))
        low, high = fit.tau(0.05)
        off += not low <= 0.5 <= high
    assert (missed <= binom.ppf(0.999, runs, 0.05)).all(), missed
    assert 0.1 < off / runs < 0.3, off / runs
