"""Public maps are what their formulas say, and the same bits for everyone: alone, in company, in any memory order."""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard

import privstats as ps
from privstats import transforms as T
from privstats.transforms.random_maps import (
    GAUSSIAN_SCALE,
    cosine_of_turns,
    gaussian_matrix,
    sign_matrix,
    signs,
    walsh_hadamard,
)
from tests.made import refused

CHAINS = [
    (T.CentreRows(),),
    (T.UnitNorm(),),
    (T.Centre((0.5,) * 20),),
    (T.ConstantFeature(1.0),),
    (T.Interactions(((0, 1), (19, 2))),),
    (T.GaussianProjection(7, 20, 9),),
    (T.SparseProjection(7, 20, 9),),
    (T.OrthogonalProjection(7, 20, 9),),
    (T.RandomReLU(7, 20, 9),),
    (T.RandomReLU(7, 20, 9, keep_inputs=True),),
    (T.RandomFourier(7, 20, 9, bandwidth=4.0),),
    (T.UnitNorm(), T.OrthogonalProjection(7, 20, 32), T.CentreRows(), T.RandomReLU(8, 32, 50), T.UnitNorm()),
]
NAMES = ["+".join(step.kind for step in chain) for chain in CHAINS]


def _rows(n=40, d=20):
    return np.random.default_rng(0).normal(size=(n, d)) * np.logspace(-3, 3, n)[:, None]


@pytest.mark.parametrize("chain", CHAINS, ids=NAMES)
def test_a_row_is_mapped_alone_as_in_company_and_in_any_memory_order(chain):
    X = _rows()
    whole = T.apply(chain, X)
    assert whole.shape == (40, T.output_features(chain, 20))
    assert np.array_equal(np.vstack([T.apply(chain, X[i : i + 1]) for i in range(40)]), whole)
    assert np.array_equal(T.apply(chain, np.asfortranarray(X)), whole)
    assert np.array_equal(T.apply(chain, X[::-1])[::-1], whole)


@pytest.mark.parametrize("chain", CHAINS, ids=NAMES)
def test_the_definition_round_trips_and_is_a_hashable_value(chain):
    tables = T.to_builtins(chain)
    assert (T.from_builtins(tables), hash(T.from_builtins(tables))) == (chain, hash(chain))


VECTORS = [
    "4f7bb0c9d1787c6141fac8133e228050", "16351049c29fbe52c64464a36300cd2e", "6f3b9e7b13e9efc6e0480117b7fc43bf",
    "59f41f8eddabf858218ff9588b935eb0", "0ddce4e60f9743f596ac191e5009f6d0", "80185b86d876a5954b023be3f7d8e3ad",
    "64d41139e7697c023b4c4a763fab6a68",
    "6edbbff4c615501bcb2177cab61a0580", "cfe7ca8dd7ec722f14d1a93b020a8fad", "1daebf4cf629c1d864f5cdd7db069798",
    "57af5d9736f2d21add13acd3c148fb1f", "0140f1a9aaa7e4f9115cd31b01d872ba",
]  # fmt: skip


@pytest.mark.parametrize(("chain", "digest"), list(zip(CHAINS, VECTORS, strict=True)), ids=NAMES)
def test_maps_match_their_recorded_vectors(chain, digest):
    """The same bits on every platform: recorded once, and a change of any map's definition must change them here."""
    assert hashlib.sha256(T.apply(chain, _vector_rows()).astype("<f8").tobytes()).hexdigest()[:32] == digest


def _vector_rows():
    return (np.arange(60.0).reshape(3, 20) - 17) / 8


@pytest.mark.parametrize("chain", CHAINS, ids=NAMES)
def test_a_plan_document_keeps_the_map(chain):
    schema = ps.ClassSchema(2, T.output_features(chain, 20), "NA", clip_norm=1.0, transform=chain)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 3, max_records=10), privacy=ps.NoPrivacy())
    assert ps.Plan.from_toml(plan.to_toml()).schema == schema


def test_rows_that_overflow_a_map_are_refused():
    schema = ps.ClassSchema(2, 9, "NA", clip_norm=1.0, transform=(T.GaussianProjection(7, 20, 9),))
    refused(ps.DataError, "overflowing", ps.measure, schema, np.full((1, 20), 1.7e308), [0])


@given(st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=3))
def test_unit_norm_gives_norm_one_for_rows_of_any_size(row):
    unit = T.UnitNorm().apply(np.array([row]))[0]
    square = sum(Fraction(float(v)) ** 2 for v in unit)
    assert abs(square - 1) < 1e-9 or (square == 0 and not any(row))


def test_centred_rows_have_mean_zero():
    X = _rows()
    assert np.abs(T.CentreRows().apply(X).mean(axis=1) / np.abs(X).max(axis=1)).max() < 1e-14
    assert np.allclose(T.CentreRows().apply(X), X - X.mean(axis=1, keepdims=True), rtol=1e-12, atol=1e-12)


def test_the_gaussian_projection_is_its_formula():
    X = _rows()
    W = gaussian_matrix(7, "gaussian-projection", 20, 9) / GAUSSIAN_SCALE
    assert np.allclose(
        T.GaussianProjection(7, 20, 9).apply(X), X @ W / 3, rtol=1e-7, atol=1e-7 * np.abs(X).max(axis=1, keepdims=True)
    )


def test_the_sparse_projection_is_its_formula():
    X = _rows()
    expected = X @ sign_matrix(7, "sparse-projection", 20, 9, 3) * math.sqrt(3 / 9)
    assert np.allclose(
        T.SparseProjection(7, 20, 9).apply(X), expected, rtol=1e-9, atol=1e-9 * np.abs(X).max(axis=1, keepdims=True)
    )


def test_the_hadamard_transform_is_the_matrix():
    X = _rows(5, 32)
    assert np.allclose(walsh_hadamard(X), X @ hadamard(32))


@pytest.mark.parametrize(("inputs", "features"), [(32, 32), (20, 32), (1, 1), (500, 512)])
def test_a_full_orthogonal_projection_keeps_every_inner_product(inputs, features):
    X = np.random.default_rng(1).normal(size=(30, inputs))
    Z = T.OrthogonalProjection(3, inputs, features).apply(X)
    assert np.allclose(Z @ Z.T, X @ X.T, rtol=1e-6, atol=1e-6 * inputs)


@pytest.mark.parametrize("kind", [T.GaussianProjection, T.SparseProjection, T.OrthogonalProjection])
def test_projections_keep_norms_on_average(kind):
    x = np.random.default_rng(2).normal(size=(1, 64))
    norms = [np.square(kind(seed, 64, 32).apply(x)).sum() for seed in range(400)]
    expected = np.square(x).sum()
    assert abs(np.mean(norms) / expected - 1) < 5 * np.std(norms) / expected / math.sqrt(400)


def test_random_fourier_features_approximate_the_gaussian_kernel():
    X = np.random.default_rng(3).normal(size=(20, 6))
    Z = T.RandomFourier(5, 6, 20_000, bandwidth=2.0).apply(X)
    squares = np.square(X[:, None] - X[None]).sum(axis=2)
    assert np.abs(Z @ Z.T - np.exp(-squares / 8)).max() < 5 / math.sqrt(20_000)


def test_random_relu_features_approximate_the_arc_cosine_kernel():
    X = np.random.default_rng(4).normal(size=(20, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Z = T.RandomReLU(5, 6, 20_000).apply(X)
    angle = np.arccos(np.clip(X @ X.T, -1, 1))
    kernel = (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi
    assert np.abs(Z @ Z.T - kernel).max() < 10 / math.sqrt(20_000)


@given(st.floats(-1e6, 1e6))
def test_the_cosine_is_right_to_the_last_digits(turns):
    import mpmath

    with mpmath.workdps(40):
        exact = mpmath.cos(2 * mpmath.pi * mpmath.mpf(turns))
        assert abs(cosine_of_turns(np.array([turns]))[0] - exact) < 4e-16


def test_gaussian_entries_have_the_moments_of_a_gaussian():
    W = gaussian_matrix(1, "test", 1000, 1000) / GAUSSIAN_SCALE
    assert abs(W.mean()) < 5e-3
    assert abs(W.var() - 1) < 8e-3
    assert abs((W**4).mean() - 3) < 6e-2
    assert abs((np.abs(W) <= 1).mean() - 0.6827) < 5e-3
    assert np.array_equal(W * GAUSSIAN_SCALE, np.rint(W * GAUSSIAN_SCALE))


def test_gaussian_entries_follow_from_shake_256_and_the_gaussian_integral():
    import mpmath

    with mpmath.workdps(40):
        weights = [mpmath.exp(-mpmath.mpf(k * k) / (2 * GAUSSIAN_SCALE**2)) * (2 if k else 1) for k in range(2560)]
        total = mpmath.fsum(weights)
        words = hashlib.shake_256(b"privstats|test|5").digest(8 * 6)
        for i, entry in enumerate(gaussian_matrix(5, "test", 2, 3).ravel()):
            word = int.from_bytes(words[8 * i : 8 * i + 8], "little")
            reached, size = mpmath.mpf(0), 0
            while (reached := reached + weights[size]) / total * 2**63 <= word % 2**63:
                size += 1
            assert entry == (-size if word >> 63 else size)


def test_signs_are_fair_and_sparse_entries_as_rare_as_they_say():
    assert abs(signs(1, "test", 10**5).mean()) < 0.02
    W = sign_matrix(1, "test", 300, 300, 5)
    assert abs((W != 0).mean() - 0.2) < 0.01
    assert abs(W.mean()) < 0.01


def test_different_seeds_kinds_and_sizes_give_different_maps():
    X = _rows()
    maps = [kind(seed, 20, 9).apply(X) for seed in (1, 2) for kind in (T.GaussianProjection, T.OrthogonalProjection)]
    assert all(not np.allclose(maps[i], maps[j]) for i in range(4) for j in range(i))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: T.GaussianProjection(-1, 20, 9), "seed"),
        (lambda: T.GaussianProjection(1, 0, 9), "inputs"),
        (lambda: T.GaussianProjection(1, 20, 2.5), "features"),
        (lambda: T.GaussianProjection(True, 20, 9), "seed"),
        (lambda: T.SparseProjection(1, 20, 9, sparsity=0), "sparsity"),
        (lambda: T.OrthogonalProjection(1, 20, 33), "at most 32"),
        (lambda: T.RandomFourier(1, 20, 9, bandwidth=0.0), "bandwidth"),
        (lambda: T.RandomFourier(1, 20, 9, bandwidth=math.nan), "bandwidth"),
        (lambda: T.Centre(()), "centre"),
        (lambda: T.Centre((1.0, math.inf)), "centre"),
        (lambda: T.ConstantFeature(0.0), "constant-feature"),
        (lambda: T.ConstantFeature("1"), "constant-feature"),
        (lambda: T.output_features((T.GaussianProjection(1, 20, 9),), 21), "takes 20 features but 21"),
        (lambda: T.output_features((T.Centre((1.0, 2.0)),), 3), "3 features come in"),
        (lambda: T.from_builtins([{"kind": "magic"}]), "unknown"),
        (lambda: T.from_builtins([{"kind": "unit-norm", "extra": 1}]), "unknown keys"),
        (lambda: T.from_builtins([{"kind": "gaussian-projection", "seed": 1}]), "lacks inputs, features; add it"),
        (lambda: T.from_builtins([{"kind": "constant-feature"}]), "'constant-feature' lacks value"),
    ],
)
def test_impossible_maps_are_refused(build, message):
    refused(ps.SchemaError, message, build)
