"""A model is projected to pairs exactly, whether or not one clique holds both."""

from itertools import combinations

import numpy as np
import pytest

from privstats.contrib.synthetic.junction_tree import JunctionTree
from privstats.contrib.synthetic.projection import projected
from privstats.contrib.synthetic.proportional import Beliefs

SIZES = (2, 3, 2, 4, 3)


@pytest.mark.parametrize("edges", [((0, 1), (1, 2), (2, 3)), ((0, 1), (1, 2), (0, 2), (2, 3), (3, 4)), ((0, 4),)])
def test_every_pair_is_projected_as_summing_all_cells_does(edges):
    rng = np.random.default_rng(0)
    tree = JunctionTree(SIZES, edges)
    potentials = [rng.normal(size=[SIZES[each] for each in clique]) for clique in tree.cliques]
    joint = np.zeros(SIZES)
    for table, clique in zip(potentials, tree.cliques, strict=True):
        joint = joint + tree.widened(table, clique, tuple(range(5)))
    joint = np.exp(joint) / np.exp(joint).sum()
    model = Beliefs(tree, tree.marginals(potentials)[0])
    for pair in combinations(range(5), 2):
        exact = joint.sum(axis=tuple(each for each in range(5) if each not in pair))
        assert np.allclose(projected(model, pair), exact)
