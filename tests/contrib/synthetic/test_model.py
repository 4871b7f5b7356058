"""The fit matches tables without noise, and draws have the model's marginals."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.contrib.synthetic.junction_tree import JunctionTree
from privstats.contrib.synthetic.model import Measurement, fitted, margins, systematic, total

SIZES = (3, 4, 2)
CHAIN = JunctionTree(SIZES, ((0, 1), (1, 2)))


def _tables(seed: int, records: int = 20_000) -> tuple[np.ndarray, list[Measurement]]:
    """Counts of the chain 0 - 1 - 2, and its two pairs measured exactly."""
    rng = np.random.default_rng(seed)
    first = rng.dirichlet(np.ones(3) * 3)
    joint = first[:, None, None] * rng.dirichlet(np.ones(4) * 3, 3)[:, :, None] * rng.dirichlet([3, 3], 4)[None]
    counts = rng.multinomial(records, joint.ravel()).reshape(SIZES).astype(float)
    return counts, [_measured((0, 1), counts.sum(axis=2)), _measured((1, 2), counts.sum(axis=0))]


def _measured(variables, counts, sigma=0.0):
    return Measurement(variables, tuple(np.arange(size) for size in counts.shape), counts, sigma)


@given(st.integers(0, 1 << 16))
def test_marginals_converge_to_the_measured_ones_without_noise(seed):
    counts, measured = _tables(seed)
    model = fitted(CHAIN, measured)
    assert np.isclose(model.records, counts.sum())
    for each in measured:
        assert np.abs(model.marginal(each.variables) - each.counts / counts.sum()).max() < 1e-4


def test_what_is_not_measured_is_independent_given_what_is():
    _, measured = _tables(3)
    model = fitted(CHAIN, measured)
    assert set(model.tree.cliques) == {(0, 1), (1, 2)}
    left, right = model.marginal((0, 1)), model.marginal((1, 2))
    assert np.allclose(left.sum(axis=0), right.sum(axis=1))
    codes = model.draw(200_000, np.random.default_rng(0))
    full = np.zeros(SIZES)
    np.add.at(full, tuple(codes.T), 1 / len(codes))
    assert np.abs(full - left[:, :, None] * right[None] / right.sum(axis=1)[None, :, None]).max() < 0.005


def test_lumped_cells_are_matched_together():
    lumps = (np.array([0, 0, 1]), np.array([0, 1, 1, 1]))
    counts = np.array([[60.0, 20.0], [10.0, 110.0]])
    model = fitted(JunctionTree(SIZES[:2], ((0, 1),)), [Measurement((0, 1), lumps, counts, 0.0)])
    found = model.marginal((0, 1))
    assert np.allclose(200 * found[:2, :1].sum(), 60, atol=0.1)
    assert np.allclose(200 * found[2, 1:].sum(), 110, atol=0.1)
    assert np.allclose(found[0], found[1])  # entropy leaves equal what no count distinguishes


def test_the_precise_table_counts_for_more():
    rough, fine = _measured((0,), np.array([500.0, 500.0]), 100.0), _measured((0,), np.array([900.0, 100.0]), 1.0)
    model = fitted(JunctionTree((2,), ()), [rough, fine])
    assert abs(1_000 * model.marginal((0,))[0] - 900) < 3
    assert abs(total([rough, fine]) - 1_000) < 1


def test_noisy_tables_that_disagree_and_are_negative_have_a_fit():
    rng = np.random.default_rng(0)
    noisy = [_measured((0, 1), rng.normal(0, 30, (3, 4)), 30.0), _measured((1,), rng.normal(5, 30, 4), 30.0)]
    model = fitted(JunctionTree(SIZES, ((0, 1),)), noisy)
    assert all(np.isfinite(each).all() and np.isclose(each.sum(), 1) for each in model.beliefs)


def test_tables_that_overlap_and_disagree_are_fitted_to_the_optimum(monkeypatch):
    sizes, rng = (6,) * 8, np.random.default_rng(0)
    pairs = [*((a, a + 1) for a in range(7)), *((a, a + 2) for a in range(6)), (0, 7)]
    codes = np.minimum(rng.poisson(rng.gamma(2.0, size=(5_000, 1)), (5_000, 8)), 5)
    fine, halves, measured = np.arange(6), np.arange(6) // 3, list[Measurement]()
    for axes, lump, sigma in [
        *(((a,), fine, 5.0) for a in range(8)),
        *((pair, fine, 10.0) for pair in pairs),
        *((pair, halves, 15.0) for pair in pairs),
    ]:
        counts = rng.normal(0, sigma, [lump.max() + 1] * len(axes))
        np.add.at(counts, tuple(lump[codes[:, axis]] for axis in axes), 1.0)
        measured.append(Measurement(axes, (lump,) * len(axes), counts, sigma))
    tree = JunctionTree(sizes, tuple(pairs))
    found = fitted(tree, measured)
    monkeypatch.setattr("privstats.contrib.synthetic.model._TOLERANCE", 1e-14)
    monkeypatch.setattr("privstats.contrib.synthetic.model._MAX_ITERATIONS", 20_000)
    best = fitted(tree, measured)
    for own, other in zip(found.beliefs, best.beliefs, strict=True):
        assert np.abs(own - other).sum() < 0.002
    assert np.isclose(_squares(found, measured), _squares(best, measured), rtol=1e-4)


@pytest.mark.parametrize("times", [1, 1_000])
def test_tables_of_permuted_cells_and_many_records_are_fitted_as_closely(times: int) -> None:
    """Screening tables may hold the model's cells in another order; noise is small beside many records."""
    rng, own, order = np.random.default_rng(1), np.arange(5), np.array([0, 2, 3, 1, 4])
    pairs = [*((a, a + 1) for a in range(7)), *((a, a + 2) for a in range(6)), (0, 7)]
    codes = np.minimum(rng.poisson(rng.gamma(2.0, size=(5_000, 1)), (5_000, 8)), 4)
    measured = []
    for lump, sigma in ((order, 3.0), (own, 1.5)):
        for axes in [*((a,) for a in range(8)), *pairs]:
            counts = rng.normal(0, sigma, [5] * len(axes))
            np.add.at(counts, tuple(lump[codes[:, axis]] for axis in axes), float(times))
            measured.append(Measurement(axes, (lump,) * len(axes), counts, sigma))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(JunctionTree((5,) * 8, tuple(pairs)), measured)
    assert _squares(model, measured) / sum(each.counts.size for each in measured) < 1.1


def _squares(model, measured):
    """Squared errors in sigmas, of all tables."""
    out = 0.0
    for each in measured:
        expected = np.zeros(each.counts.shape)
        np.add.at(expected, np.ix_(*each.lumps), model.records * model.marginal(each.variables))
        out += np.square((expected - each.counts) / each.sigma).sum()
    return out


@given(st.integers(0, 1 << 16), st.integers(1, 500))
def test_systematic_draws_are_within_one_of_their_expectation(seed, rows):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 3, rows)
    weights = rng.dirichlet(np.ones(5), 3)
    weights[:, 2] = 0
    drawn = systematic(groups, weights, rng)
    for group in range(3):
        counts = np.bincount(drawn[groups == group], minlength=5)
        expected = (groups == group).sum() * weights[group] / weights[group].sum()
        assert (np.abs(counts - expected) <= 2 + 1e-9).all()
        assert counts[2] == 0


@pytest.mark.parametrize("seed", range(3))
def test_rows_have_the_pairs_of_the_model(seed):
    counts, measured = _tables(seed)
    model = fitted(CHAIN, measured)
    codes = model.draw(20_000, np.random.default_rng(seed))
    for each in measured:
        drawn = np.zeros(each.counts.shape)
        np.add.at(drawn, tuple(codes[:, axis] for axis in each.variables), 1)
        assert np.abs(drawn - each.counts).max() < 15


def test_pairs_outside_the_model_give_one_way_counts_of_their_noise():
    counts, _ = _tables(0)
    rng, sigma = np.random.default_rng(0), 10.0
    found = []
    for _ in range(400):
        pairs = [
            _measured(
                axes, counts.sum(axis=3 - sum(axes)) + rng.normal(0, sigma, [SIZES[each] for each in axes]), sigma
            )
            for axes in ((0, 1), (0, 2))
        ]
        first, second, _ = margins(pairs)
        found.append(first.counts)
    assert (first.variables, second.variables) == ((0,), (1,))
    assert np.allclose(np.mean(found, axis=0), counts.sum(axis=(1, 2)), atol=4 * first.sigma / 20)
    assert np.allclose(np.std(found, axis=0), first.sigma, rtol=0.2)
    assert np.isclose(first.sigma, sigma * np.sqrt(4 + 2) / 2)
