"""The rule of the module: a whitened rule and a hidden layer, in numpy, in torch, in onnx and from its file."""

from types import SimpleNamespace

import numpy as np
import pytest
from hidden_layer.rule import HiddenRule

from privstats.heads.rules import WhitenedRule, rule_of


@pytest.fixture
def rule() -> WhitenedRule:
    rng = np.random.default_rng(0)
    return WhitenedRule(rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=5))


@pytest.fixture
def hidden(rule) -> HiddenRule:
    rng = np.random.default_rng(4)
    more = rng.normal(size=(7, 3)), rng.normal(size=7), rng.normal(size=(5, 7))
    return HiddenRule(rule.matrix, rule.coef, rule.intercept, *more)


def test_a_hidden_layer_adds_to_the_scores(rule, hidden):
    X = np.vstack([np.random.default_rng(1).normal(size=(6, 4)), np.zeros((1, 4))])
    mapped = X @ rule.matrix
    unit = mapped / np.maximum(np.linalg.norm(mapped, axis=1, keepdims=True), 1e-300)
    added = np.tanh(unit @ hidden.first.T + hidden.offset) @ hidden.last.T
    np.testing.assert_allclose(hidden.scores(X), rule.scores(X) + added, atol=1e-12)


def test_a_lifted_rule_is_of_the_same_kind(hidden):
    basis, X = np.linalg.qr(np.random.default_rng(5).normal(size=(6, 4)))[0], np.ones((2, 6))
    lifted = hidden.lifted(basis)
    assert type(lifted) is HiddenRule
    np.testing.assert_allclose(lifted.scores(X), hidden.scores(X @ basis), atol=1e-12)


def test_it_comes_back_from_its_arrays(hidden):
    X = np.random.default_rng(2).normal(size=(3, 4))
    np.testing.assert_array_equal(rule_of("hidden", hidden.arrays()).scores(X), hidden.scores(X))


def test_torch_gives_the_same_scores_zero_rows_included(hidden):
    torch = pytest.importorskip("torch")
    X = np.vstack([np.random.default_rng(3).normal(size=(3, 4)), np.zeros((1, 4))])

    buffers = SimpleNamespace(**{name: torch.tensor(array) for name, array in hidden.arrays().items()})
    np.testing.assert_allclose(hidden.in_graph(buffers, torch.tensor(X)).numpy(), hidden.scores(X), atol=1e-12)
