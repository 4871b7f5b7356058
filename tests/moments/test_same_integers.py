"""What was made faster gives the integers of the plain way of before, every one."""

from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.errors import DataError
from privstats.moments import accumulators, grid
from privstats.moments import grid as exact_sum
from privstats.moments.clip_report import NORM_EDGES, norm_histogram
from privstats.moments.grid import feature_grid
from privstats.moments.record_sums import grid_key, key_weights
from privstats.records import tiles
from privstats.testing import class_schemas, records, ridge_schemas


def snapped_one_by_one(grid, rows):
    """Grid vectors, norms and how many were clipped, row by row: scaled, rounded, and shrunk where outside."""
    out, norms, clipped = np.empty(rows.shape), np.empty(len(rows)), 0
    for i, raw in enumerate(np.asarray(rows, np.float64)):
        row = np.maximum(raw, 0.0) if grid.nonnegative else raw
        with np.errstate(over="ignore", invalid="ignore"):
            out[i] = np.rint(row * grid.scale)
            norms[i] = np.sqrt(np.vecdot(out[i], out[i]))
            outside = np.vecdot(out[i], out[i]) > float(grid.radius) ** 2
        if outside:
            out[i : i + 1], _, norms[i : i + 1] = grid.clip(raw[None])
            clipped += grid.longer(norms[i : i + 1])
    return out.astype(np.int64), norms, clipped


def whole_sums(schema, a, y):
    """Class sums of grid vectors in Python's integers."""
    a = a.astype(object)
    by = [a[y == label] for label in range(schema.classes)]
    A, T, F = (
        np.array([(rows**power).sum(axis=0) if len(rows) else np.zeros(a.shape[1], object) for rows in by])
        for power in (1, 3, 4)
    )
    S = np.array([rows.T @ rows if len(rows) else np.zeros((a.shape[1],) * 2, object) for rows in by])
    return A, S, T, F


@given(st.data())
def test_class_sums_and_their_report(data):
    schema = data.draw(class_schemas(max_features=12, statistics="NABSDTF"))
    X, y = data.draw(records(schema))
    a, norms, clipped = snapped_one_by_one(feature_grid(schema), X)
    A, S, T, F = whole_sums(schema, a, y)
    moments = ps.measure(schema, X, y)
    expected = {"N": np.bincount(y, minlength=schema.classes), "A": A, "B": S.sum(axis=0), "S": S, "T": T, "F": F}
    expected["D"] = np.diagonal(S, axis1=1, axis2=2)
    for letter, sums in expected.items():
        found = getattr(moments, letter)
        assert (found is not None) == (letter in schema.statistics + "".join(schema.derived)), letter
        assert found is None or (found.dtype == np.int64 and (found == sums).all()), letter
    report = moments.clip_report
    assert (report.clipped, report.energy) == (clipped, int((a * a).sum()))
    assert report.norm_counts == tuple(histogram(norms, schema.grid_steps).tolist())


def histogram(norms, radius):
    return np.bincount(np.searchsorted(NORM_EDGES, norms / radius, side="left"), minlength=NORM_EDGES.size + 1)


@given(st.lists(st.floats(0, np.inf), max_size=60), st.integers(2, 1 << 26))
def test_norms_fall_into_the_bins_that_a_search_finds(norms, radius):
    edges = NORM_EDGES * radius
    every = np.concatenate([norms, edges, np.nextafter(edges, 0), np.nextafter(edges, np.inf)])
    assert np.array_equal(norm_histogram(every, radius), histogram(every, radius))


@pytest.mark.parametrize(("bits", "d"), [(2, 1), (4, 40), (12, 40), (12, 3000), (26, 3), (20, 500)])
def test_keys_of_folds_are_products_modulo_two_to_the_64(bits, d):
    rng, steps = np.random.default_rng(bits), 1 << bits
    a = rng.standard_normal((30, d))
    a = np.trunc(a / np.linalg.norm(a, axis=1)[:, None] * steps)
    b = rng.integers(-steps, steps + 1, (30, 1)).astype(np.float64)
    weights = key_weights(d + 1)
    expected = a.astype(np.int64) @ weights[:d] + b.astype(np.int64) @ weights[d:]
    assert np.array_equal(grid_key(steps, a, b), expected)


@given(st.data())
def test_sparse_rows_have_the_integers_and_the_report_of_dense_ones(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    n, d = data.draw(st.integers(1, 60)), data.draw(st.integers(20, 70))
    X = sp.random_array((n, d), density=data.draw(st.floats(0, 0.06)), random_state=rng, format="csr")
    X.data[:] = rng.standard_normal(X.nnz) * 10.0 ** rng.integers(-3, data.draw(st.sampled_from([1, 4, 30])), X.nnz)
    X = X.astype(data.draw(st.sampled_from([np.float64, np.float32])))
    how = {"nonnegative": data.draw(st.booleans()), "grid_bits": data.draw(st.integers(4, 13))}
    statistics, norm = data.draw(st.sampled_from(["NA", "NABD", "NAS"])), data.draw(st.sampled_from([0.1, 1.0, 50.0]))
    same(ps.ClassSchema(3, d, statistics, norm, **how), X, rng.integers(0, 3, n))
    folds = data.draw(st.sampled_from([1, 4]))
    same(ps.RidgeSchema(d, clip_norm=norm, target_bound=1.0, targets=2, folds=folds, **how), X, 2 * rng.random((n, 2)))


def same(schema, X, y):
    sparse, dense = ps.measure(schema, X, y), ps.measure(schema, X.toarray(), y)
    assert sparse == dense
    assert sparse.clip_report == dense.clip_report


def test_sparse_rows_stay_sparse_in_windows_of_any_size(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = sp.random_array((80, 60), density=0.05, random_state=rng, format="csc"), rng.integers(0, 3, 80)
    schemas = [ps.ClassSchema(3, 60, "NABD", 0.5), ps.RidgeSchema(60, clip_norm=0.5, target_bound=3.0, folds=3)]
    expected = [ps.measure(schema, X.toarray(), y) for schema in schemas]
    monkeypatch.setattr(accumulators, "CpuAccumulator", None)
    monkeypatch.setattr(exact_sum, "_STRIP", 900)
    monkeypatch.setattr(grid, "_SPARSE_WAITING", 5)
    for entries in (1, 40, 1 << 21):
        monkeypatch.setattr(tiles, "_window_entries", lambda columns, entries=entries: entries)
        assert [ps.measure(schema, X, y) for schema in schemas] == expected


def test_rows_of_more_columns_than_windows_of_32_bits_count_are_measured():
    columns = 1 << 17  # a quarter of its square is 2**32
    indices, starts = np.array([3, columns - 1], np.int32), np.array([0, 1, 1, 2], np.int32)
    X = sp.csr_array(([0.5, 0.25], indices, starts), shape=(3, columns))
    assert X.indptr.dtype == np.int32
    assert list(tiles.windows(X, 1 << 20)) == [slice(0, 3)]
    assert ps.measure(ps.ClassSchema(2, columns, "NA", 1.0), X, [0, 1, 0]).A.sum() == 3 * 2**12 // 4


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_sparse_entry_that_is_no_number_is_refused(bad):
    X = sp.csr_array(([bad], ([0], [0])), shape=(40, 40))
    for nonnegative in (False, True):
        with pytest.raises(DataError, match="X holds NaN, infinite or overflowing entries"):
            ps.measure(ps.ClassSchema(2, 40, "NA", 1.0, nonnegative=nonnegative), X, np.zeros(40, int))


def test_a_sparse_entry_that_is_there_twice_is_refused():
    X = sp.csr_array(([1.0, 2.0], [3, 3], [0, 2, *[2] * 39]), shape=(40, 40))
    with pytest.raises(DataError, match="duplicate entries"):
        ps.measure(ps.ClassSchema(2, 40, "NA", 1.0), X, np.zeros(40, int))


@pytest.mark.ci
@given(st.data(), st.integers(2, 4), st.integers(2, 5), st.sampled_from([np.float64, np.float32, np.int8]))
def test_tiles_of_classes_through_one_memory_are_those_of_fresh_arrays(data, classes, features, dtype):
    schema = ps.ClassSchema(classes, features, "NAS", clip_norm=4.0)
    X, y = data.draw(records(schema, max_records=90))
    X = np.clip(X, -100.0, 100.0).astype(dtype)
    whole = ps.measure(schema, X, y)
    with mock.patch.object(tiles, "_TILE_BYTES", 1):  # sixteen rows, and fewer in the last
        several = [(each.rows.copy(), each.targets) for each in tiles.tiles(schema.reading, [(X, y)], grouped=True)]
        assert ps.measure(schema, X, y) == ps.measure(schema, np.asfortranarray(X), y) == whole
    order = np.argsort(y, kind="stable")
    assert [len(rows) for rows, _ in several] == [min(16, len(X) - start) for start in range(0, len(X), 16)]
    assert np.array_equal(np.concatenate([X[:0], *(rows for rows, _ in several)]), X[order])
    assert np.array_equal(np.concatenate([y[:0], *(labels for _, labels in several)]), y[order])


@given(data=st.data(), schema=st.one_of(class_schemas(max_features=70), ridge_schemas()))
def test_products_by_numpy_and_by_scipy_are_the_same_integers(data, schema):
    X, y = data.draw(records(schema, max_records=30))
    found = []
    for columns in (0, 70):  # up to which a row is short
        with mock.patch.object(exact_sum, "_SHORT", columns), mock.patch.object(exact_sum, "_SIDE", 8):
            found.append(ps.measure(schema, X, y))
    assert found[0] == found[1] == ps.measure(schema, X, y)


def test_rows_that_numpy_would_copy_whole_for_every_tile_are_taken_one_by_one():
    memory = np.zeros(8 * 12 + 1, np.uint8)
    shifted = memory[1:].view(np.float64).reshape(6, 2)
    shifted[:] = np.arange(12.0).reshape(6, 2) / 16
    assert shifted.flags.c_contiguous
    assert not shifted.flags.aligned
    for rows in (shifted, np.asfortranarray(shifted)):
        take = tiles._taker(rows, 6)
        assert not np.shares_memory(take(np.arange(6)), take(np.arange(6)))
    schema, y = ps.ClassSchema(2, 2, "NAS", clip_norm=4.0), np.arange(6) % 2
    assert ps.measure(schema, shifted, y) == ps.measure(schema, shifted.copy(), y)
