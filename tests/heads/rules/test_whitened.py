"""The rule behind a whitening: the map, the length, the weights."""

from types import SimpleNamespace

import numpy as np
import pytest

from privstats.heads.rules import WhitenedRule, rule_of


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
    assert type(lifted) is WhitenedRule
    np.testing.assert_allclose(lifted.scores(X), rule.scores(X @ basis), atol=1e-12)


def test_a_row_that_the_map_sends_to_zero_scores_the_intercept(rule):
    np.testing.assert_array_equal(rule.scores(np.zeros((1, 4)))[0], rule.intercept)


def test_it_comes_back_from_its_arrays(rule):
    X = np.random.default_rng(2).normal(size=(3, 4))
    np.testing.assert_array_equal(rule_of("whitened", rule.arrays()).scores(X), rule.scores(X))


def test_torch_gives_the_same_scores_zero_rows_included(rule):
    torch = pytest.importorskip("torch")
    X = np.vstack([np.random.default_rng(3).normal(size=(3, 4)), np.zeros((1, 4))])

    buffers = SimpleNamespace(**{name: torch.tensor(array) for name, array in rule.arrays().items()})
    np.testing.assert_allclose(rule.in_graph(buffers, torch.tensor(X)).numpy(), rule.scores(X), atol=1e-12)
