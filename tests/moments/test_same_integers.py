"""What was made faster gives the integers of the plain way of before, every one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.moments.clip_report import NORM_EDGES, norm_histogram
from privstats.moments.grid import feature_grid, target_grid
from privstats.moments.ridge_moments import fold_of_key, grid_key, key_weights
from privstats.testing import class_schemas, records


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
            out[i : i + 1], norms[i : i + 1] = grid.shrink(raw[None])
            clipped += grid.longer(norms[i : i + 1])
    return out.astype(np.int64), norms, clipped


def whole_sums(schema, a, y):
    """Class sums of grid vectors in Python's whole numbers."""
    a = a.astype(object)
    by = [a[y == label] for label in range(schema.classes)]
    A = np.array([rows.sum(axis=0) if len(rows) else np.zeros(a.shape[1], object) for rows in by])
    S = np.array([rows.T @ rows if len(rows) else np.zeros((a.shape[1],) * 2, object) for rows in by])
    return A, S


@given(st.data())
def test_class_sums_and_their_report(data):
    schema = data.draw(class_schemas(max_features=12))
    X, y = data.draw(records(schema))
    a, norms, clipped = snapped_one_by_one(feature_grid(schema), X)
    A, S = whole_sums(schema, a, y)
    moments = ps.measure(schema, X, y)
    assert (moments.A == A).all()
    for letter, expected in (("B", S.sum(axis=0)), ("S", S), ("D", np.diagonal(S, axis1=1, axis2=2))):
        found = getattr(moments, letter)
        assert found is None or (found == expected).all()
    report = moments.clip_report
    assert (report.clipped, report.energy) == (clipped, int((a * a).sum()))
    assert report.norm_counts == tuple(histogram(norms, schema.steps).tolist())


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


@pytest.mark.parametrize("longer", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("targets", [1, 3])
def test_sums_by_fold(targets, longer):
    rng = np.random.default_rng(targets)
    X, y = rng.standard_normal((400, 6)), rng.standard_normal((400, targets))
    radius = float(np.quantile(np.linalg.norm(X, axis=1), 1 - longer)) + 1e-9 if longer < 1 else 0.5
    schema = ps.RidgeSchema(6, clip_norm=radius, target_bound=1.0, targets=targets, folds=5)
    a, _, _ = snapped_one_by_one(feature_grid(schema), X)
    b, _, b_clipped = snapped_one_by_one(target_grid(schema), y)
    weights = key_weights(6 + targets)
    folds = fold_of_key(a @ weights[:6] + b @ weights[6:], 5)
    moments = ps.measure(schema, X, y)
    for fold in range(5):
        rows, values = a[folds == fold], b[folds == fold]
        assert np.array_equal(moments.fold_G[fold], rows.T @ rows)
        assert np.array_equal(moments.fold_h[fold], rows.T @ values)
        assert moments.fold_q[fold] == (values * values).sum()
    assert moments.clip_report.targets_clipped == b_clipped
