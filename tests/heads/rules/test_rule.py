"""Rules: pruning never changes a winner, lifting never changes a score, a whitening maps; memory stays within tiles."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.errors import DataError
from privstats.heads.rules import (
    DiagonalRule,
    LinearRule,
    LowRankRule,
    Preprocessing,
    QuadraticRule,
    WhitenedRule,
    rule_of,
)
from privstats.heads.rules.quadratic import pack_precisions
from privstats.transforms import ConstantFeature, UnitNorm


def random_rule(rng, classes, k, screened, degrees, apart):
    vectors = np.stack([np.linalg.qr(rng.standard_normal((k, k)))[0] for _ in range(classes)])
    values = np.exp(rng.uniform(-2, 2, (classes, k)))
    means = np.zeros((classes, k))
    means[:, : max(screened, 1)] = apart * rng.standard_normal((classes, max(screened, 1)))
    prior = np.log(rng.dirichlet(np.ones(classes)))
    return QuadraticRule.of(values, vectors, means, prior, np.eye(k), np.zeros(k), degrees, screened)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 9),
    st.integers(1, 8),
    st.sampled_from([0.0, 3.0]),
    st.sampled_from([0.0, 1.0, 30.0, 1e4]),
)
def test_pruned_winners_are_the_argmax_of_the_exact_scores(seed, classes, k, degrees, apart):
    rng = np.random.default_rng(seed)
    rule = random_rule(rng, classes, k, int(rng.integers(0, k + 1)), degrees, apart)
    X = rng.standard_normal((40, k)) * 10 ** rng.uniform(-2, 3)
    X[:20] += apart * rng.standard_normal((20, k))
    np.testing.assert_array_equal(rule.best(X), rule.scores(X).argmax(axis=1))


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 6))
def test_the_screened_distance_is_never_more_than_the_whole(seed, classes, k):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, k + 1))
    rule = random_rule(rng, classes, k, m, 0.0, 1.0)
    Z = 3 * rng.standard_normal((20, k))
    whole = 2 * (rule.bias - rule.scores(Z))
    triangle = np.zeros((classes, m, m))
    triangle[:, *np.triu_indices(m)] = rule.screen
    part = np.einsum("ni,cij,nj->nc", Z[:, :m], triangle, Z[:, :m]) - 2 * Z[:, :m] @ rule.screen_linear.T
    assert (part + rule.screen_constant <= whole * (1 + 1e-9) + 1e-9).all()


def test_complex_rows_and_another_width_are_refused_in_the_terms_of_the_caller():
    """Complex rows lost their imaginary part with an answer, and the message of width counted the added constant."""
    first = Preprocessing(3, (UnitNorm(), ConstantFeature(1.0)))
    assert first.apply([[3.0, 4.0]]).tolist() == [[0.6, 0.8, 1.0]]
    with pytest.raises(DataError, match="X must hold real numbers, got dtype complex128"):
        first.apply(np.ones((2, 2), complex))
    with pytest.raises(DataError, match="X has 3 columns but the head takes 2"):
        first.apply(np.ones((2, 3)))


def test_packing_keeps_the_quadratic_form():
    rng = np.random.default_rng(0)
    Q = rng.standard_normal((3, 4, 4))
    Q = Q + Q.transpose(0, 2, 1)
    packed, linear, constant = pack_precisions(Q, np.zeros((3, 4)))
    z = rng.standard_normal(4)
    rows, columns = np.triu_indices(4)
    np.testing.assert_allclose(packed @ (z[rows] * z[columns]), np.einsum("i,cij,j->c", z, Q, z))
    assert not linear.any()
    assert not constant.any()


@given(st.integers(0, 2**32 - 1))
def test_lifting_is_projecting_the_rows(seed):
    rng = np.random.default_rng(seed)
    C, d, k = 3, 6, 4
    basis, _ = np.linalg.qr(rng.standard_normal((d, k)))
    X = rng.standard_normal((7, d))
    precision = rng.uniform(0.5, 2, (C, k))
    rules = [
        LinearRule(rng.standard_normal((C, k)), rng.standard_normal(C)),
        DiagonalRule(precision / 2, rng.standard_normal((C, k)), rng.standard_normal(C), rng.standard_normal(k)),
        random_rule(rng, C, k, 2, 3.0, 1.0),
        LowRankRule(
            precision,
            rng.standard_normal((C, k)),
            0.1 * rng.standard_normal((k, C * 2)),
            rng.standard_normal(C * 2),
            np.full(C, 9.0),
            rng.standard_normal(C),
            np.eye(k),
            rng.standard_normal(k),
            np.zeros(1),
        ),
    ]
    for rule in rules:
        lifted = rule.lifted(basis)
        assert set(rule_of(lifted.kind, lifted.arrays()).arrays()) == set(lifted.arrays())
        np.testing.assert_allclose(lifted.scores(X), rule.scores(X @ basis), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", ["quadratic", "low-rank"])
def test_scoring_never_holds_rows_x_classes_x_features(kind):
    rng = np.random.default_rng(0)
    n, C, k = 8192, 40, 64
    if kind == "quadratic":
        rule = random_rule(rng, C, k, 20, 0.0, 3.0)
    else:
        identity, zero = np.eye(k), np.zeros((C, k))
        rule = LowRankRule(
            zero + 1,
            zero,
            np.ones((k, C * 2)),
            np.zeros(C * 2),
            np.zeros(C),
            np.zeros(C),
            identity,
            zero[0],
            np.zeros(1),
        )
    X = rng.standard_normal((n, k))
    tracemalloc.start()
    rule.scores(X)
    rule.best(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.1 * 8 * n * C * k


def test_unknown_kinds_and_wrong_arrays_are_refused():
    coef, intercept = np.ones((2, 3)), np.zeros(2)
    for kind, arrays in (
        ("cubic", {"coef": coef, "intercept": intercept}),
        ("linear", {"coef": coef}),
        ("linear", {"coef": coef, "intercept": intercept, "extra": intercept}),
        ("linear", {"coef": coef * np.inf, "intercept": intercept}),
        ("linear", {"coef": coef.astype(np.float32), "intercept": intercept}),
    ):
        with pytest.raises(ValueError, match="rule"):
            rule_of(kind, arrays)


@pytest.fixture
def rule() -> WhitenedRule:
    rng = np.random.default_rng(0)
    return WhitenedRule(rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=5))


def test_scores_are_of_rows_of_one_length(rule):
    X = np.random.default_rng(1).normal(size=(6, 4))
    mapped = X @ rule.matrix
    unit = mapped / np.linalg.norm(mapped, axis=1, keepdims=True)
    np.testing.assert_allclose(rule.scores(X), unit @ rule.coef.T + rule.intercept)


def test_a_lifted_rule_is_of_the_same_kind(rule):
    basis, X = np.linalg.qr(np.random.default_rng(5).normal(size=(6, 4)))[0], np.ones((2, 6))
    lifted = rule.lifted(basis)
    assert type(lifted) is type(rule)
    np.testing.assert_allclose(lifted.scores(X), rule.scores(X @ basis), atol=1e-12)


def test_a_row_that_the_map_sends_to_zero_scores_the_intercept(rule):
    np.testing.assert_array_equal(rule.scores(np.zeros((1, 4)))[0], rule.intercept)


def test_it_comes_back_from_its_arrays(rule):
    X = np.random.default_rng(2).normal(size=(3, 4))
    np.testing.assert_array_equal(rule_of(rule.kind, rule.arrays()).scores(X), rule.scores(X))


def test_torch_gives_the_same_scores_zero_rows_included(rule):
    torch = pytest.importorskip("torch")
    X = np.vstack([np.random.default_rng(3).normal(size=(3, 4)), np.zeros((1, 4))])

    buffers = SimpleNamespace(**{name: torch.tensor(array) for name, array in rule.arrays().items()})
    np.testing.assert_allclose(rule.in_graph(buffers, torch.tensor(X)).numpy(), rule.scores(X), atol=1e-12)
