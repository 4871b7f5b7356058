"""Moments are exact: equal to brute force in whole numbers, whatever the order, chunking or container."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.errors import DataError, SchemaError
from privstats.moments import quantize
from privstats.moments.exact_sum import ExactSum
from privstats.moments.grid import target_grid
from privstats.moments.ridge_moments import key_weights
from privstats.testing import chunkings, class_schemas, records, ridge_schemas
from privstats.transforms import ConstantFeature, GaussianProjection


def _brute_force(schema, grid, y):
    """Class moments by Python's own integers: A and S, and sums of third and fourth powers."""
    rows = [[int(v) for v in row] for row in grid]
    d = schema.features
    S = [[[0] * d for _ in range(d)] for _ in range(schema.classes)]
    A, T, F = ([[0] * d for _ in range(schema.classes)] for _ in range(3))
    for row, label in zip(rows, y, strict=True):
        for i in range(d):
            A[label][i] += row[i]
            T[label][i] += row[i] ** 3
            F[label][i] += row[i] ** 4
            for j in range(d):
                S[label][i][j] += row[i] * row[j]
    return tuple(map(np.array, (A, S, T, F)))


@given(st.data())
def test_class_moments_equal_sums_of_python_integers(data):
    schema = data.draw(class_schemas(max_features=5, statistics="NABSDTF"))
    X, y = data.draw(records(schema, max_records=20))
    moments = ps.measure(schema, X, y)
    A, S, T, F = _brute_force(schema, quantize(schema, X), y)
    expected = {"N": np.bincount(y, minlength=schema.classes), "A": A, "S": S, "B": S.sum(axis=0), "T": T, "F": F}
    expected["D"] = np.diagonal(S, axis1=1, axis2=2)
    for name in set(schema.statistics) | set(schema.derived):
        assert getattr(moments, name).dtype == np.int64
        assert np.array_equal(getattr(moments, name), expected[name]), name
    for name in set("BSDTF") - set(schema.statistics) - set(schema.derived):
        assert getattr(moments, name) is None


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
def test_any_chunking_gives_the_same_bits(data):
    schema = data.draw(st.one_of(class_schemas(statistics="NABSDTF"), ridge_schemas()))
    X, y = data.draw(records(schema, max_records=40))
    pieces = data.draw(chunkings(len(X)))
    whole = ps.measure(schema, X, y)
    batches = ps.measure(schema, ((X[piece], y[piece]) for piece in pieces))
    assert batches == whole
    assert batches.clip_report == whole.clip_report


@given(st.data())
def test_parts_measured_apart_add_up_to_the_whole(data):
    schema = data.draw(st.one_of(class_schemas(statistics="NABSDTF"), ridge_schemas()))
    X, y = data.draw(records(schema, max_records=40))
    cut = data.draw(st.integers(0, len(X)))
    parts = ps.measure(schema, X[:cut], y[:cut]) + ps.measure(schema, X[cut:], y[cut:])
    assert parts == ps.measure(schema, X, y)


@given(st.data())
def test_the_order_of_records_does_not_matter(data):
    schema = data.draw(st.one_of(class_schemas(), ridge_schemas()))
    X, y = data.draw(records(schema, max_records=40))
    order = data.draw(st.permutations(range(len(X))))
    index = np.array(order, dtype=np.intp)
    assert ps.measure(schema, X[index], y[index]) == ps.measure(schema, X, y)


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


def test_no_records_give_zero_moments_of_the_right_shape():
    schema = ps.ClassSchema(3, 4, "NABD", clip_norm=1.0)
    moments = ps.measure(schema, np.empty((0, 4)), np.empty(0, int))
    assert moments.records == 0
    assert not moments.B.any()


def test_a_class_with_no_records_has_zero_moments():
    schema = ps.ClassSchema(3, 2, "NAS", clip_norm=1.0)
    moments = ps.measure(schema, np.ones((4, 2)), np.array([0, 2, 2, 0]))
    assert moments.N.tolist() == [2, 0, 2]
    assert not moments.S[1].any()
    assert not moments.A[1].any()


def test_moments_of_different_schemas_do_not_add():
    X, y = np.ones((4, 2)), np.zeros(4, int)
    left = ps.measure(ps.ClassSchema(2, 2, "NA", clip_norm=1.0), X, y)
    right = ps.measure(ps.ClassSchema(2, 2, "NA", clip_norm=2.0), X, y)
    with pytest.raises(DataError, match="different schemas"):
        left + right


def test_moments_cannot_be_changed():
    moments = ps.measure(ps.ClassSchema(2, 2, "NAB", clip_norm=1.0), np.ones((4, 2)), np.zeros(4, int))
    with pytest.raises(ValueError, match="read-only"):
        moments.A[0, 0] = 1


def test_real_units_undo_the_scale():
    schema = ps.ClassSchema(2, 2, "NAB", clip_norm=4.0, grid_bits=12)
    X = np.array([[1.0, 2.0], [0.5, -0.25]])
    real = ps.measure(schema, X, np.array([0, 1])).real()
    assert np.array_equal(real.A, X)
    assert np.array_equal(real.B, X.T @ X)


SCHEMA = ps.ClassSchema(2, 3, "NAB", clip_norm=1.0)
GOOD = np.zeros((4, 3))
LABELS = np.zeros(4, int)
NAN, INF = GOOD.copy(), GOOD.copy()
NAN[1, 1], INF[1, 1] = np.nan, -np.inf


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (GOOD[:, :2], LABELS, "2 features but the schema says 3"),
        (GOOD[0], LABELS, "must have shape"),
        (GOOD, LABELS[:3], "4 rows but y has 3"),
        (NAN, LABELS, "NaN, infinite"),
        (INF, LABELS, "NaN, infinite"),
        (GOOD + 1j, LABELS, "real numbers"),
        (np.full((4, 3), "x"), LABELS, "real numbers"),
        (GOOD, LABELS + 0.5, "whole numbers"),
        (GOOD, np.full(4, "ill"), "whole numbers"),
        (GOOD, LABELS - 1, "outside 0..1"),
        (GOOD, LABELS + 2, "outside 0..1"),
        (GOOD, np.zeros((4, 1), int), "must have shape"),
        (GOOD, None, "y is missing"),
        (iter([]), None, "yielded nothing"),
        ([GOOD], None, "pairs"),
        ([(GOOD, LABELS), (GOOD[:, :2], LABELS)], None, "2 features but the schema says 3"),
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


def test_a_repr_tells_no_data():
    moments = ps.measure(SCHEMA, np.full((7, 3), 0.123), np.array([1, 1, 1, 1, 0, 0, 0]))
    assert repr(moments) == "ClassMoments(statistics='NAB', classes=2, features=3)"
    ridge = ps.measure(ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0), GOOD, GOOD[:, 0])
    assert repr(ridge) == "RidgeMoments(features=3, targets=1, folds=1)"


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


def test_sums_beyond_2_to_53_stay_exact():
    total = ExactSum((1,), 1 << 40)
    for _ in range(5):
        total.admit(1 << 13)
        total.partial += float((1 << 53) - 1)
    assert total.result().tolist() == [5 * ((1 << 53) - 1)]


def test_attack_one_number_of_very_many_records_stays_exact():
    """Read off the accumulator it would lack what was emptied out of it: kappa, after 2**33 records."""
    total = ExactSum((), 1 << 52)
    for _ in range(5):
        total.admit(1)
        total.partial += float(1 << 52)
    assert int(total.result()) == 5 << 52


def test_sum_adds_moments():
    X, y = np.eye(4), np.array([0, 1, 1, 0])
    for schema in (ps.ClassSchema(2, 4, "NAB", 1.0), ps.RidgeSchema(4, clip_norm=1.0, target_bound=1.0, folds=2)):
        parts = [ps.measure(schema, X[k::2], y[k::2]) for k in range(2)]
        assert sum(parts) == ps.measure(schema, X, y)
        with pytest.raises(TypeError, match="unsupported operand"):
            _ = 1 + parts[0]


@pytest.mark.parametrize("call", [ps.measure, lambda *arguments: quantize(*arguments[:2])])
def test_what_is_not_a_schema_is_refused_with_the_call_that_was_meant(call):
    X, y = np.eye(4), np.array([0, 1, 1, 0])
    with pytest.raises(
        SchemaError, match=r"ClassSchema or RidgeSchema, got ndarray; call (measure|quantize)\(schema, X"
    ):
        call(X, y)
    schema = ps.ClassSchema(2, 4, "NAB", 1.0)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
    with pytest.raises(SchemaError, match="got Plan; give plan.schema"):
        call(plan, X, y)


@pytest.mark.parametrize(
    ("labels", "remedy"),
    [
        (np.array([0.0, 1.5]), "give class_names to the plan's schema, one list for all parties"),
        (np.array(["a", "b"]), "give class_names to the plan's schema, one list for all parties"),
    ],
)
def test_labels_that_are_no_whole_numbers_are_told_what_the_plan_must_say(labels, remedy):
    with pytest.raises(DataError, match=remedy):
        ps.measure(ps.ClassSchema(2, 2, "NAB", 1.0), np.eye(2), labels)


def test_a_forgotten_constant_feature_is_told_from_missing_columns():
    schema = ps.ClassSchema(2, 5, "NAB", 1.0, transform=(ConstantFeature(1.0),))
    with pytest.raises(DataError, match="the transform turns the 5 columns of X into 6 features .* set features=6"):
        ps.measure(schema, np.ones((3, 5)), np.zeros(3, int))
    with pytest.raises(DataError, match="X has 3 features but the schema says 5"):
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
