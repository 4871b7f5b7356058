"""Completed sums are those of imputed records, in law and at their mode."""

import numpy as np
import pytest

from privstats.contrib.imputation import completion
from privstats.contrib.imputation.completion import Patterns, completed, completed_again, missing_information
from privstats.contrib.imputation.gaps import observed

CONSTANT = 2.0


def normal(rng, n, d=4):
    mixing = rng.standard_normal((d, d))
    return np.column_stack([rng.standard_normal((n, d)) @ mixing + rng.standard_normal(d), np.full(n, CONSTANT)])


def by_pattern(z, gaps, incomplete):
    shown = observed(z.shape[1] - 1, incomplete)
    code = sum(gaps[:, bit].astype(int) << bit for bit in range(len(incomplete)))
    rows = [z[code == p] * shown[p] for p in range(len(shown))]
    return Patterns(np.stack([part.T @ part for part in rows]), shown, CONSTANT)


@pytest.fixture
def two():
    """Sums of four columns, of which two have gaps in all four patterns."""
    rng = np.random.default_rng(3)
    z = normal(rng, 600)
    return by_pattern(z, rng.random((600, 2)) < 0.3, (0, 2)), z


def test_one_incomplete_column_is_completed_by_its_regression():
    rng = np.random.default_rng(1)
    z, gone = normal(rng, 500), rng.random((500, 1)) < 0.4
    sums, there = by_pattern(z, gone, (1,)), ~gone[:, 0]
    others = np.array([0, 2, 3, 4])
    b, (rss,), *_ = np.linalg.lstsq(z[there][:, others], z[there, 1], rcond=None)
    filled = z.copy()
    filled[~there, 1] = z[~there][:, others] @ b
    expected = filled.T @ filled
    expected[1, 1] += (~there).sum() * rss / there.sum()
    assert np.allclose(completed(sums).T, expected, rtol=1e-8)


def log_likelihood(sums, moments):
    """The observed-data log likelihood of a normal model with these second moments of one record."""
    mean = moments[-1, :-1] / CONSTANT
    covariance = moments[:-1, :-1] - np.outer(mean, mean)
    value = 0.0
    for p, shown in enumerate(sums.observed):
        o, n = np.flatnonzero(shown[:-1]), float(sums.counts[p])
        first = sums.S[p][-1, o] / CONSTANT
        scatter = sums.S[p][np.ix_(o, o)] - np.outer(first, mean[o]) - np.outer(mean[o], first)
        scatter = scatter + n * np.outer(mean[o], mean[o])
        sign, determinant = np.linalg.slogdet(covariance[np.ix_(o, o)])
        value -= (n * determinant + np.trace(np.linalg.solve(covariance[np.ix_(o, o)], scatter))) / 2
    return value


def test_several_incomplete_columns_are_completed_at_the_likelihoods_maximum(two):
    sums, _ = two
    T = completed(sums).T
    moments, rng = T / float(sums.records), np.random.default_rng(0)
    best = log_likelihood(sums, moments)
    for _ in range(200):
        step = rng.standard_normal(T.shape) * 3e-3
        step[-1, -1] = 0
        assert log_likelihood(sums, moments + step + step.T) < best


@pytest.mark.parametrize("counts", [(294, 126, 126, 54), (590, 3, 6, 1), (598, 0, 0, 2), (597, 1, 2, 0)])
def test_drawn_sums_have_the_law_of_imputed_records(counts):
    """Patterns with fewer records than observed columns, and empty ones, included."""
    rng, replicates = np.random.default_rng(5), 2_000
    z, code = normal(rng, 600), np.repeat(range(4), counts)
    sums = by_pattern(z, np.stack([code & 1, code >> 1], axis=1).astype(bool), (0, 2))
    moments = completed(sums).T / float(sums.records)
    axes = [completion._axes(sums.block(p)) for p in range(4)]
    ours = np.stack([completion._imputed(sums, axes, moments, rng) for _ in range(replicates)])
    theirs = np.zeros_like(ours)
    for p, shown in enumerate(sums.observed):
        o, m = np.flatnonzero(shown), np.flatnonzero(~shown)
        rows = np.broadcast_to(z[code == p], (replicates, (code == p).sum(), z.shape[1])).copy()
        if len(m):
            B = np.linalg.solve(moments[np.ix_(o, o)], moments[np.ix_(o, m)]).T
            half = np.linalg.cholesky(moments[np.ix_(m, m)] - B @ moments[np.ix_(o, m)])
            rows[..., m] = rows[..., o] @ B.T + rng.standard_normal((*rows.shape[:2], len(m))) @ half.T
        theirs += np.swapaxes(rows, 1, 2) @ rows
    upper = np.triu_indices(5)
    mine, other = ours[:, upper[0], upper[1]], theirs[:, upper[0], upper[1]]
    spread = other.std(axis=0)
    moving = spread > 1e-9 * np.abs(other).max()
    assert np.allclose(mine[:, ~moving], other[:, ~moving])
    away = (mine.mean(0) - other.mean(0))[moving] / spread[moving]
    assert np.abs(away).max() < 4.5 * np.sqrt(2 / replicates)
    assert np.allclose(mine.std(0)[moving] / spread[moving], 1, atol=0.15)
    assert np.allclose(np.corrcoef(mine[:, moving].T), np.corrcoef(other[:, moving].T), atol=0.15)


@pytest.mark.parametrize("degrees", [0.0, 0.4, 1.0, 2.3, 3.0, 40.0])
def test_wishart_matrices_have_the_right_mean_at_any_degrees(degrees):
    L = completion._wishart_root(np.random.default_rng(0), np.full(20_000, degrees), 3)
    mean = (L @ np.swapaxes(L, 1, 2)).mean(0)
    assert np.allclose(mean, degrees * np.eye(3), atol=5 * np.sqrt(2 * max(degrees, 0.4) / 20_000) + 1e-12)
    assert (np.linalg.matrix_rank(L[:50]) <= np.ceil(degrees)).all()


def test_a_count_below_zero_subtracts_as_much_as_one_above_adds(two):
    sums, _ = two
    S = np.zeros((4_000, *sums.S.shape)) + sums.S
    S[:, 3] = 0
    S[:, 3, -1, -1] = -7 * CONSTANT**2
    moments = np.broadcast_to(completed(sums).T / float(sums.records), (4_000, 5, 5))
    noisy = Patterns(S, sums.observed, CONSTANT)
    axes = [completion._axes(noisy.block(p)) for p in range(4)]
    found = completion._imputed(noisy, axes, moments, np.random.default_rng(1))
    expected = completion._expected(noisy, moments * noisy.records[:, None, None])
    error = found.std(0) / np.sqrt(4_000)
    assert (np.abs(found.mean(0) - expected[0]) <= 5 * error + 1e-9 * np.abs(expected[0])).all()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_the_share_of_missing_information_is_ems_rate(share):
    """In a column that is independent of the others, it is the share of values that are missing."""
    rng = np.random.default_rng(2)
    z = np.column_stack([rng.standard_normal((20_000, 3)), np.full(20_000, CONSTANT)])
    sums = by_pattern(z, rng.random((20_000, 1)) < share, (1,))
    assert float(missing_information(sums, completed(sums).T)) == pytest.approx(share, abs=0.02)


def test_the_share_of_missing_information_is_the_rate_of_ems_last_steps(two):
    sums, _ = two
    T = [sums.S[0] * float(sums.records / sums.counts[0])]
    for _ in range(25):
        T.append(completion._expected(sums, T[-1]))
    last, previous = np.linalg.norm(T[-1] - T[-2]), np.linalg.norm(T[-2] - T[-3])
    assert float(missing_information(sums, completed(sums).T)) == pytest.approx(last / previous, abs=0.02)


def test_em_from_the_mode_without_noise_ends_at_the_mode_with_noise(two):
    sums, _ = two
    again = sums.with_noise(np.random.default_rng(0), 5.0, 40)
    near, far = completed_again(again, np.broadcast_to(completed(sums).T, (40, 5, 5)), 5.0), completed(again)
    assert near.converged.all()
    assert far.converged.all()
    assert np.abs(near.T - far.T).max() < 0.05


def test_noise_is_symmetric_and_of_the_released_level(two):
    sums, _ = two
    noise = sums.with_noise(np.random.default_rng(0), 3.0, 4_000).S - sums.S
    assert np.array_equal(noise, np.swapaxes(noise, -1, -2))
    diagonal, off = noise[..., 1, 1].std(), noise[..., 1, 2].std()
    assert diagonal == pytest.approx(3.0, rel=0.03)
    assert off == pytest.approx(3.0 / np.sqrt(2), rel=0.03)
