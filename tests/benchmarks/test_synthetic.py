"""AIM and MST of one curator project their model exactly, and draw rows whose pairs are the records' without noise."""

from itertools import combinations

import numpy as np
import pytest

from benchmarks.synthetic.one_curator import aim, mst, projected
from privstats.contrib.synthetic.junction_tree import JunctionTree
from privstats.contrib.synthetic.model import Model

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
    model = Model(tree, tuple(potentials), 1.0)
    for pair in combinations(range(5), 2):
        exact = joint.sum(axis=tuple(each for each in range(5) if each not in pair))
        assert np.allclose(projected(model, pair), exact)


def _chain(records: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    first = rng.integers(0, 3, records)
    second = np.where(rng.random(records) < 0.8, first, rng.integers(0, 3, records))
    third = np.where(rng.random(records) < 0.8, second, rng.integers(0, 3, records))
    return np.column_stack([first, second, third, rng.integers(0, 4, records)])


@pytest.mark.parametrize("mechanism", [aim, mst])
def test_rows_follow_the_records_where_there_is_little_noise(mechanism):
    codes, sizes = _chain(2_000), (3, 3, 3, 5)
    rows = mechanism(codes, sizes, 50.0, np.random.default_rng(2))
    assert rows.shape == codes.shape
    for pair in ((0, 1), (1, 2)):
        tables = [np.histogram2d(each[:, pair[0]], each[:, pair[1]], bins=3)[0] for each in (rows, codes)]
        assert np.abs(tables[0] - tables[1]).sum() < 0.04 * len(codes)
