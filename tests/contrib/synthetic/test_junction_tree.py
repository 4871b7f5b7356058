"""Belief propagation gives the marginals that adding up all cells gives."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privstats.contrib.synthetic.junction_tree import JunctionTree

SIZES = (2, 3, 2, 4, 2)
EDGES = st.lists(st.sampled_from(list(combinations(range(len(SIZES)), 2))), unique=True, max_size=8)


@given(EDGES, st.integers(0, 1 << 20))
def test_marginals_are_those_of_the_full_table(edges, seed):
    tree, rng = JunctionTree(SIZES, tuple(edges)), np.random.default_rng(seed)
    potentials = [rng.normal(size=[SIZES[each] for each in clique]) for clique in tree.cliques]
    full = np.zeros(SIZES)
    for clique, values in zip(tree.cliques, potentials, strict=True):
        full = full + tree.widened(values, clique, tuple(range(len(SIZES))))
    beliefs, normaliser = tree.marginals(potentials)
    assert np.isclose(normaliser, np.log(np.exp(full).sum()))
    shares = np.exp(full - normaliser)
    for clique, belief in zip(tree.cliques, beliefs, strict=True):
        assert np.allclose(belief, shares.sum(axis=tuple(set(range(len(SIZES))) - set(clique))))


@given(EDGES)
def test_every_edge_lies_in_a_clique_and_each_variables_cliques_are_connected(edges):
    tree = JunctionTree(SIZES, tuple(edges))
    assert all(any(set(edge) <= set(clique) for clique in tree.cliques) for edge in edges)
    assert len(tree.links) == len(tree.cliques) - 1
    for variable in range(len(SIZES)):
        holding = sum(variable in clique for clique in tree.cliques)
        assert holding - sum(variable in link.shared for link in tree.links) == 1


def test_a_cycle_holds_the_pair_that_its_triangles_add():
    tree = JunctionTree((2, 2, 2, 2, 2), ((0, 1), (1, 2), (2, 3), (0, 3)))
    assert tree.holds((0, 2)) or tree.holds((1, 3))
    assert tree.holds((4,))
    assert not tree.holds((0, 4))


def test_potentials_that_are_far_apart_have_marginals():
    tree = JunctionTree((2, 2, 2), ((0, 1), (1, 2)))
    far = np.array([[1_000.0, -2_000.0], [-2_000.0, 1_000.0]])
    beliefs, normaliser = tree.marginals([far, -3 * far])
    assert np.isclose(normaliser, 7_000 + np.log(2))
    assert np.allclose(beliefs, [[[0.5, 0.0], [0.0, 0.5]], [[0.0, 0.5], [0.5, 0.0]]])
