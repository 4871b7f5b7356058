"""Many chunks: sums that leave the exact range of float64 stay exact, and memory does not grow with the records."""

import tracemalloc

import numpy as np
import pytest

import privstats as ps
from privstats.kinds import RidgeMoments
from privstats.kinds.ridge import target_grid
from privstats.moments import quantize
from privstats.moments.accumulators import chunk_rows
from privstats.moments.grid import exact_rows
from privstats.moments.record_sums import fold_of_key, key_weights
from privstats.records import tiles
from tests.made import refused

N = 20_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)) + np.array([10.0, 0.0, 0.0])  # far out: nearly every record is as long as the clip norm
Y = RNG.integers(0, 3, N)


def _int_grams(grid, groups, count):
    return np.stack([grid[groups == g].T @ grid[groups == g] for g in range(count)])  # int64 all the way


@pytest.mark.parametrize("statistics", ["NABD", "NAS"])
def test_class_sums_beyond_2_to_53_are_exact(statistics):
    schema = ps.ClassSchema(3, 3, statistics, clip_norm=1.0, grid_bits=20)
    assert 2 * chunk_rows(schema) < N
    grid = quantize(schema, X)
    S = _int_grams(grid, Y, 3)
    assert S.sum(axis=0).max() > 2**53
    for moments in (
        ps.measure(schema, X, Y),
        ps.measure(schema, ((X[i : i + 999], Y[i : i + 999]) for i in range(0, N, 999))),
    ):
        assert np.array_equal(moments.B, S.sum(axis=0))
        assert np.array_equal(moments.D, np.diagonal(S, axis1=1, axis2=2))
        assert np.array_equal(moments.A, np.stack([grid[c == Y].sum(axis=0) for c in range(3)]))


def test_fourth_powers_beyond_2_to_53_are_exact_and_more_than_int64_holds_are_refused():
    schema = ps.ClassSchema(3, 3, "NATF", clip_norm=1.0, grid_bits=12)
    grid = quantize(schema, X)
    moments = ps.measure(schema, X, Y)
    for power, found in ((3, moments.T), (4, moments.F)):
        assert np.array_equal(found, np.stack([(grid[c == Y] ** power).sum(axis=0) for c in range(3)]))
    assert moments.F.max() > 2**53
    with pytest.raises(ps.DataError, match="at most 32767 records fit 64-bit totals on this grid; lower grid_bits"):
        moments + moments


def test_ridge_sums_beyond_2_to_53_are_exact_in_every_fold():
    schema = ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0, grid_bits=20, folds=2)
    targets = RNG.normal(size=N) + 10.0
    moments = ps.measure(schema, X, targets)
    grid, b = quantize(schema, X), np.empty((N, 1))
    target_grid(schema).quantize(targets[:, None], b)
    whole = b.astype(np.int64)
    folds = fold_of_key(np.hstack([grid, whole]) @ key_weights(4), 2)
    assert np.array_equal(moments.fold_G, _int_grams(grid, folds, 2))
    assert np.array_equal(moments.fold_h, np.stack([grid[folds == f].T @ whole[folds == f] for f in (0, 1)]))
    assert moments.fold_q.tolist() == [int((whole[folds == f] ** 2).sum()) for f in (0, 1)]
    assert moments.fold_q.min() > 2**53


@pytest.mark.parametrize("grid_bits", [2, 12, 20])
def test_chunks_never_pass_the_exact_range(grid_bits):
    schema = ps.ClassSchema(2, 4, "NAS", clip_norm=1.0, grid_bits=grid_bits)
    assert chunk_rows(schema) * 4**grid_bits <= 2**53
    assert exact_rows(4**grid_bits) * 4**grid_bits <= 2**53 < (exact_rows(4**grid_bits) + 1) * 4**grid_bits


@pytest.mark.parametrize("statistics", ["NABD", "NAS"])
def test_memory_is_one_chunk_and_does_not_grow_with_the_records(tmp_path, statistics):
    schema = ps.ClassSchema(4, 16, statistics, clip_norm=4.0)
    peaks = []
    for n in (150_000, 600_000):
        np.save(tmp_path / "X.npy", np.ones((n, 16), np.float16))
        np.save(tmp_path / "y.npy", (np.arange(n) % 4).astype(np.int8))
        tracemalloc.start()
        ps.measure(schema, tmp_path / "X.npy", tmp_path / "y.npy")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    chunk = chunk_rows(schema) * 8 * (16 + 3)  # features, and label, norm and index of every record
    assert peaks[1] < 1.02 * peaks[0]
    assert peaks[1] < 1.5 * (chunk + tiles._TILE_BYTES)


def test_ridge_moments_of_unknown_counts_never_wrap_around_when_added():
    schema = ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0, folds=2)
    half = np.full((2, 2, 2), 1 << 60, np.int64)
    one = RidgeMoments(schema, half, np.zeros((2, 2, 1), np.int64), np.zeros(2, np.int64))
    below = RidgeMoments(schema, half - 1, np.zeros((2, 2, 1), np.int64), np.zeros(2, np.int64))
    double = one + below
    assert double.records is None
    assert (double.G == (1 << 62) - 2).all()
    refused(ps.DataError, "64 bits", lambda: double + double + one)
    negative = RidgeMoments(schema, -half, half[:, :, :1] * -4, np.zeros(2, np.int64))
    refused(ps.DataError, "64 bits", lambda: negative + below)
