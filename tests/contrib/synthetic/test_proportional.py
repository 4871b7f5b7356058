"""Tables become consistent, and the fit is the maximum-entropy model under them, with identical bits everywhere."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.contrib.synthetic.junction_tree import JunctionTree
from privstats.contrib.synthetic.model import Measurement, fitted
from privstats.contrib.synthetic.proportional import consistent, proportional

SIZES = (3, 4, 2, 3)


def _joint(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(int(np.prod(SIZES)))).reshape(SIZES)


def _sums(joint: np.ndarray, *variables: int) -> np.ndarray:
    return joint.sum(axis=tuple(each for each in range(len(SIZES)) if each not in variables))


@given(st.integers(0, 1 << 16), st.floats(0.0, 0.2))
def test_a_noisy_table_gets_the_margins_and_no_consistent_table_is_nearer(seed, noise):
    rng = np.random.default_rng(seed)
    exact, other = (rng.dirichlet(np.ones(20)).reshape(4, 5) for _ in range(2))
    rows, columns = exact.sum(axis=1), exact.sum(axis=0)
    noisy = exact + rng.normal(0, noise, exact.shape)
    found = consistent(noisy, rows, columns)
    assert found.min() > 0
    assert np.abs(found.sum(axis=1) - rows).max() < 2e-2
    assert np.abs(found.sum(axis=0) - columns).max() < 2e-2
    for each in (exact, consistent(other, rows, columns)):
        assert np.linalg.norm(found - noisy) < np.linalg.norm(each - noisy) + 2e-2


@given(st.integers(0, 1 << 16))
def test_a_consistent_table_stays(seed):
    exact = _sums(_joint(seed), 0, 1)
    assert np.allclose(consistent(exact, exact.sum(axis=1), exact.sum(axis=0)), exact, atol=1e-6)


@pytest.mark.parametrize("pairs", [((0, 1), (1, 2), (2, 3)), ((0, 1), (1, 2), (0, 2), (2, 3)), ((0, 3),)])
def test_the_fit_is_the_model_of_the_dual(pairs):
    """Without noise: the same model, by another algorithm."""
    joint = _joint(3)
    tables = {pair: _sums(joint, *pair) for pair in pairs}
    found = proportional([_sums(joint, each) for each in range(4)], tables)
    ones = [Measurement((a,), (np.arange(n),), 1e6 * _sums(joint, a), 0.0) for a, n in enumerate(SIZES)]
    twos = [Measurement(p, tuple(np.arange(SIZES[a]) for a in p), 1e6 * table, 0.0) for p, table in tables.items()]
    dual = fitted(JunctionTree(SIZES, pairs), [*ones, *twos])
    for own, other in zip(found.cliques, dual.beliefs, strict=True):
        assert np.allclose(own, other, atol=2e-4)


@given(st.integers(0, 1 << 16))
def test_neighbours_agree_on_what_they_share_whatever_the_noise(seed):
    rng, joint = np.random.default_rng(seed), _joint(seed)
    alone = [_sums(joint, each) for each in range(4)]
    tables = {
        (a, b): consistent(_sums(joint, a, b) + rng.normal(0, 0.05, (SIZES[a], SIZES[b])), alone[a], alone[b])
        for a, b in (*pairwise(range(4)), (0, 2))
    }
    found = proportional(alone, tables)
    assert all(np.isfinite(each).all() and each.min() >= 0 for each in found.cliques)
    for one, other in combinations(range(len(found.cliques)), 2):
        shared = tuple(sorted(set(found.tree.cliques[one]) & set(found.tree.cliques[other])))
        assert np.allclose(found.sums(one, shared), found.sums(other, shared), atol=1e-9)
