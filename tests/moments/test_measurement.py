"""Moments are exact: equal to brute force in integers, whatever the order, chunking or container."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.errors import DataError
from privstats.kinds.ridge import target_grid
from privstats.moments import quantize
from privstats.moments.grid import ExactSum
from privstats.moments.record_sums import key_weights
from privstats.testing import chunkings, class_schemas, records, ridge_schemas
from privstats.transforms import ConstantFeature, GaussianProjection


def _fold_in_python(schema, a, b):
    """The fold rule on unbounded integers: a weighted sum modulo 2**64, mixed twice."""
    record = [int(v) for v in (*a, *b)]
    key = sum(int(w) * v for w, v in zip(key_weights(len(record)), record, strict=True)) % 2**64
    for shift in (32, 29):
        key = ((key ^ (key >> shift)) * 0x9E3779B97F4A7C15) % 2**64
    return ((key >> 16) % 2**47) % schema.folds


@given(st.data())
def test_ridge_moments_equal_sums_over_each_fold(data):
    schema = data.draw(ridge_schemas())
    X, y = data.draw(records(schema, max_records=20))
    moments = ps.measure(schema, X, y)
    a = quantize(schema, X).astype(object)
    b = np.empty(y.shape)
    target_grid(schema).quantize(y, b)
    b = b.astype(np.int64).astype(object)
    folds = np.array([_fold_in_python(schema, *record) for record in zip(a, b, strict=True)], int)
    for fold in range(schema.folds):
        rows, targets = a[folds == fold], b[folds == fold]
        if len(rows):
            assert np.array_equal(moments.fold_G[fold], rows.T @ rows)
            assert np.array_equal(moments.fold_h[fold], rows.T @ targets)
            assert moments.fold_q[fold] == (targets * targets).sum()
        else:
            assert not moments.fold_G[fold].any()
    assert np.array_equal(moments.G, moments.fold_G.sum(axis=0))
    assert moments.records == len(X)


@given(st.data())
def test_any_order_and_chunking_gives_the_same_bits(data):
    schema = data.draw(st.one_of(class_schemas(statistics="NABSDTF"), ridge_schemas()))
    X, y = data.draw(records(schema, max_records=40))
    order = np.array(data.draw(st.permutations(range(len(X)))), dtype=np.intp)
    pieces = [order[piece] for piece in data.draw(chunkings(len(X)))]
    whole = ps.measure(schema, X, y)
    batches = ps.measure(schema, ((X[piece], y[piece]) for piece in pieces))
    parts = sum(ps.measure(schema, X[piece], y[piece]) for piece in [order[:0], *pieces])
    assert batches == parts == whole
    assert batches.clip_report == whole.clip_report


@pytest.mark.ci
@given(st.data())
def test_containers_and_memory_orders_give_the_same_bits(data):
    schema = data.draw(class_schemas(statistics="NABSDTF"))
    X, y = data.draw(records(schema, max_records=40))
    whole = ps.measure(schema, X, y)
    wide = np.zeros((2 * len(X), 2 * X.shape[1]))
    wide[::2, ::2] = X
    for same in (np.asfortranarray(X), wide[::2, ::2], sp.csr_array(X), sp.csr_matrix(X), sp.coo_array(X), X.tolist()):
        if len(X):
            assert ps.measure(schema, same, y) == whole
    assert ps.measure(schema, X, y.astype(np.uint8)) == whole


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int64, np.uint16, bool])
def test_every_real_dtype_counts_as_its_float64_values(dtype):
    schema = ps.ClassSchema(2, 3, "NAS", clip_norm=100.0, grid_bits=10)
    X = (np.arange(30).reshape(10, 3) % 7).astype(dtype)
    y = np.arange(10) % 2
    assert ps.measure(schema, X, y) == ps.measure(schema, X.astype(np.float64), y)


def test_real_units_undo_the_scale():
    schema = ps.ClassSchema(2, 2, "NAB", clip_norm=4.0, grid_bits=12)
    X = np.array([[1.0, 2.0], [0.5, -0.25]])
    real = ps.measure(schema, X, np.array([0, 1])).real()
    assert np.array_equal(real.A, X)
    assert np.array_equal(real.B, X.T @ X)


SCHEMA = ps.ClassSchema(2, 3, "NAB", clip_norm=1.0)
GOOD = np.zeros((4, 3))
LABELS = np.zeros(4, int)
INF = GOOD.copy()
INF[1, 1] = -np.inf


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (GOOD[:, :2], LABELS, "2 features but the schema has 3"),
        (INF, LABELS, "NaN, infinite"),
        (GOOD + 1j, LABELS, "real numbers"),
        (GOOD, LABELS + 0.5, "integers"),
        (GOOD, LABELS - 1, "outside 0..1"),
        (GOOD, np.zeros((4, 1), int), "must have shape"),
        (iter([]), None, "yielded nothing"),
        ([GOOD], None, "pairs"),
        ([(GOOD, LABELS), (GOOD[:, :2], LABELS)], None, "2 features but the schema has 3"),
        ("records.npz", None, "y is missing"),
        (sp.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2, 2, 2, 2])), shape=(4, 3)), LABELS, "duplicate"),
    ],
)
def test_bad_records_are_refused_in_one_sentence(X, y, message):
    with pytest.raises(DataError, match=message) as caught:
        ps.measure(SCHEMA, X, y)
    assert "\n" not in str(caught.value)


def test_a_sparse_matrix_with_unsorted_indices_is_measured_right_and_left_alone():
    X = sp.csr_array((np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    dense = np.array([[2.0, 0.0, 1.0]])
    assert ps.measure(SCHEMA, X, [0]) == ps.measure(SCHEMA, dense, [0])
    assert X.indices.tolist() == [2, 0]


def test_a_progress_bar_changes_nothing(tmp_path, capsys):
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 2
    np.save(tmp_path / "X.npy", X)
    whole = ps.measure(SCHEMA, X, y)
    assert ps.measure(SCHEMA, X, y, progress=True) == whole
    assert ps.measure(SCHEMA, tmp_path / "X.npy", y, progress=True) == whole
    assert ps.measure(SCHEMA, iter([(X, y)]), progress=True) == whole
    assert "50/50" in capsys.readouterr().err


def test_masked_ragged_and_too_wide_containers_are_refused():
    with pytest.raises(DataError, match="masked array"):
        ps.measure(SCHEMA, np.ma.masked_array(GOOD, GOOD == 0), LABELS)
    with pytest.raises(DataError, match="rows of different lengths"):
        ps.measure(SCHEMA, [[1.0, 2.0, 3.0], [1.0]], [0, 1])
    outside = sp.csr_array((np.ones(1), np.array([0]), np.array([0, 1, 1, 1, 1])), shape=(4, 3))
    outside.indices[0] = 7
    with pytest.raises(DataError, match="indices outside its shape"):
        ps.measure(SCHEMA, outside, LABELS)


def damaged(kind, part, value):
    """A sparse matrix that was whole when it was built."""
    X = sp.csr_array(np.array([[1.0, 0, 2], [0, 0, 3], [4, 5, 6], [0, 1, 0]])).asformat(kind)
    array = X.coords[0] if part == "coords" else getattr(X, part)
    if isinstance(value, tuple):
        array[value[0]] = value[1]
    else:
        setattr(X, part, value(array))
    return X


@pytest.mark.parametrize(
    ("kind", "part", "value"),
    [
        ("csr", "indptr", (1, 7)),
        ("csr", "indptr", (4, 99)),
        ("csr", "indices", (0, -99)),
        ("csr", "indices", lambda indices: indices.astype(float)),
        ("csr", "indices", lambda indices: None),
        ("csr", "data", lambda data: data[:3]),
        ("csc", "indptr", (1, 50)),  # scipy's own conversion walked out of the array and took the process with it
        ("csc", "indices", (0, 99)),
        ("bsr", "indices", (0, 99)),
        ("coo", "coords", (0, 99)),
        ("lil", "rows", (0, [77, 88])),
    ],
)
def test_a_damaged_sparse_matrix_is_refused_before_scipy_follows_its_indices(kind, part, value):
    with pytest.raises(DataError, match="parts that contradict each other; rebuild it"):
        ps.measure(SCHEMA, damaged(kind, part, value), LABELS)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_every_sparse_format_is_measured_as_its_dense_matrix(kind):
    X = sp.csr_array(GOOD).asformat(kind)
    assert ps.measure(SCHEMA, X, LABELS) == ps.measure(SCHEMA, GOOD, LABELS)
    assert ps.measure(SCHEMA, sp.csr_array((0, 3)).asformat(kind), LABELS[:0]).records == 0


def test_a_transform_of_other_inputs_is_refused():
    schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, transform=(GaussianProjection(0, 5, 2),))
    with pytest.raises(DataError, match="takes 5 features but 3"):
        ps.measure(schema, GOOD, LABELS)


@pytest.mark.parametrize("shape", [(4, 2), (4, 1, 1), ()])
def test_targets_of_another_shape_are_refused(shape):
    with pytest.raises(DataError, match=r"\(records, 1\)"):
        ps.measure(ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0), GOOD, np.zeros(shape))


def test_the_clip_report_says_what_the_clip_did():
    schema = ps.RidgeSchema(2, clip_norm=1.0, target_bound=2.0, grid_bits=12)
    X = np.array([[0.5, 0.0], [1.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    report = ps.measure(schema, X, np.array([1.0, -2.0, 3.0, 0.0])).clip_report
    assert (report.records, report.clipped, report.targets_clipped) == (4, 1, 1)
    assert report.fraction_clipped == report.fraction_targets_clipped == 0.25
    assert report.norm_quantiles([0.5, 0.75, 1.0]) == pytest.approx((0.5, 1.0, 5.0), rel=0.05)
    assert report.resolution == pytest.approx(4096 * np.sqrt((0.25 + 1 + 1) / 8), rel=1e-3)
    nothing = ps.measure(schema, X[:0], np.zeros(0)).clip_report
    assert (nothing.fraction_clipped, nothing.fraction_targets_clipped, nothing.resolution) == (0, 0, 0)
    assert all(np.isnan(nothing.norm_quantiles()))


def test_totals_that_would_not_fit_64_bits_are_refused():
    total = ExactSum((1,), 1 << 40)
    for _ in range((1 << 10) - 1):
        total.admit(1 << 13)
    with pytest.raises(DataError, match="64-bit totals"):
        total.admit(1 << 13)
    schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, grid_bits=20)
    many = ps.ClassMoments(schema, N=np.array([1 << 22, 0]), A=np.zeros((2, 2), int))
    with pytest.raises(DataError, match="64-bit totals"):
        many + many


@pytest.mark.parametrize(("shape", "bound", "rows"), [((1,), 1 << 40, 1 << 13), ((), 1 << 52, 1)])
def test_attack_sums_of_very_many_records_stay_exact(shape, bound, rows):
    """Beyond 2**53, also of one number: read off the accumulator it would lack what was emptied out of it."""
    total, most = ExactSum(shape, bound), (1 << 53) - 1
    for _ in range(5):
        total.admit(rows)
        total.partial += float(most)
    assert total.result().sum() == 5 * most


def test_a_forgotten_constant_feature_is_told_from_missing_columns():
    schema = ps.ClassSchema(2, 5, "NAB", 1.0, transform=(ConstantFeature(1.0),))
    with pytest.raises(DataError, match="the transform turns the 5 columns of X into 6 features .* set features=6"):
        ps.measure(schema, np.ones((3, 5)), np.zeros(3, int))
    with pytest.raises(DataError, match="X has 3 features but the schema has 5"):
        ps.measure(ps.ClassSchema(2, 5, "NAB", 1.0), np.ones((3, 3)), np.zeros(3, int))


@pytest.mark.parametrize("counts", [[-1, 0], [5, -5], [2**62, 2**62]])
def test_counts_that_no_records_have_are_refused(counts):
    """Negative counts, and counts whose sum wraps below zero, passed every limit on the records of a client."""
    schema = ps.ClassSchema(2, 3, "NA", clip_norm=1.0)
    with pytest.raises(DataError, match="some are negative|records fit 64-bit totals"):
        ps.ClassMoments(schema, np.array(counts), np.zeros((2, 3), np.int64))


def test_a_ridge_report_of_fewer_than_no_records_is_refused():
    schema = ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0)
    moments = ps.measure(schema, GOOD, LABELS.astype(float))
    with pytest.raises(DataError, match="negative number"):
        replace(moments, clip_report=replace(moments.clip_report, records=-1))
