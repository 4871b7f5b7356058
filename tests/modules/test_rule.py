"""The rule of the module: a whitened rule and a hidden layer, in numpy, in torch, in onnx and from its file."""

import numpy as np
import pytest
from hidden_layer.rule import HiddenRule

from privstats.heads.rules import WhitenedRule
from tests.heads.rules.test_rule import (  # noqa: F401  run here with the rule below
    test_a_lifted_rule_is_of_the_same_kind,
    test_it_comes_back_from_its_arrays,
    test_torch_gives_the_same_scores_zero_rows_included,
)


@pytest.fixture
def whitened() -> WhitenedRule:
    rng = np.random.default_rng(0)
    return WhitenedRule(rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=5))


@pytest.fixture
def rule(whitened) -> HiddenRule:
    rng = np.random.default_rng(4)
    more = rng.normal(size=(7, 3)), rng.normal(size=7), rng.normal(size=(5, 7))
    return HiddenRule(whitened.matrix, whitened.coef, whitened.intercept, *more)


def test_a_hidden_layer_adds_to_the_scores(rule, whitened):
    X = np.vstack([np.random.default_rng(1).normal(size=(6, 4)), np.zeros((1, 4))])
    mapped = X @ whitened.matrix
    unit = mapped / np.maximum(np.linalg.norm(mapped, axis=1, keepdims=True), 1e-300)
    added = np.tanh(unit @ rule.first.T + rule.offset) @ rule.last.T
    np.testing.assert_allclose(rule.scores(X), whitened.scores(X) + added, atol=1e-12)
