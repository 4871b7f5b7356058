"""Pairs are chosen by what one-way tables explain least, from released counts alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.contrib.synthetic import choice
from privstats.contrib.synthetic.choice import MAX_CELLS, Screened, chosen_pairs
from privstats.contrib.synthetic.junction_tree import JunctionTree
from privstats.kinds import CountSchema


def _screened(counts: np.ndarray, sigma: float = 5.0, noise: float = 2.0, seed: int = 0) -> Screened:
    rng, axes = np.random.default_rng(seed), range(counts.ndim)
    tables = {
        (a, b): counts.sum(axis=tuple(each for each in axes if each not in (a, b))) for a in axes for b in axes if a < b
    }
    noisy = {pair: table + rng.normal(0, sigma, table.shape) for pair, table in tables.items()}
    return Screened(noisy, sigma, counts.shape, noise)


def _chain(records: float) -> np.ndarray:
    """Variable 0 decides 1 mostly, 1 decides 2; 3 stands alone."""
    near = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    return records * np.einsum("ab,bc,d->abcd", near / 3, near, np.full(2, 0.5))


def test_a_chain_is_found_and_what_it_explains_is_left_out():
    assert chosen_pairs(_screened(_chain(10_000.0))) == ((0, 1), (1, 2))


def test_a_pair_beyond_the_tree_is_measured_where_the_tree_does_not_explain_it():
    parity = np.zeros((2, 2, 2))
    for a in (0, 1):
        for b in (0, 1):
            parity[a, b, int(a or b)] = [2_700.0, 1_200.0, 1_200.0, 3_900.0][2 * a + b]
    assert len(chosen_pairs(_screened(parity))) == 3


def test_much_noise_leaves_fewer_pairs():
    clear, hidden = (_screened(_chain(10_000.0), noise=noise) for noise in (1.0, 5_000.0))
    assert len(chosen_pairs(hidden)) == 1 < len(chosen_pairs(clear))


def test_the_same_releases_give_the_same_pairs():
    assert chosen_pairs(_screened(_chain(500.0))) == chosen_pairs(_screened(_chain(500.0)))


def test_the_junction_tree_stays_small():
    rng = np.random.default_rng(0)
    size, many = 20, 7
    tables = {(a, b): rng.exponential(100, (4, 4)) for a in range(many) for b in range(a + 1, many)}
    pairs = chosen_pairs(Screened(tables, 0.1, (size,) * many, 0.001))
    assert len(pairs) > many - 1
    assert JunctionTree((size,) * many, pairs).cells <= MAX_CELLS


def test_the_tables_fit_into_a_session():
    """Twelve columns of 60 cells that all go together: 18 of their pairs have as many cells as a session may count."""
    rng = np.random.default_rng(0)
    table = 500 * np.eye(4) + rng.normal(0, 1, (4, 4))
    tables = {(a, b): table + rng.normal(0, 1, (4, 4)) for a in range(12) for b in range(a + 1, 12)}
    pairs = chosen_pairs(Screened(tables, 0.1, (60,) * 12, 1e-6))
    assert 60 * 60 * len(pairs) <= CountSchema.max_cells


def _score(table: np.ndarray, sigma: float, seed: int) -> float:
    """Score the pair 0 x 1 next to eight columns that stand alone, from which margins are known."""
    rng, records = np.random.default_rng(seed), table.sum()
    shares = [table.sum(axis=1) / records, table.sum(axis=0) / records, *[np.full(4, 0.25)] * 8]
    tables = {(a, b): records * np.outer(shares[a], shares[b]) for a in range(10) for b in range(a + 1, 10)}
    tables[0, 1] = table
    noisy = {pair: counts + rng.normal(0, sigma, counts.shape) for pair, counts in tables.items()}
    screened = Screened(noisy, sigma, tuple(map(len, shares)), 1.0)
    return screened.score((0, 1), np.outer(screened.alone[0], screened.alone[1]))


def test_a_score_estimates_the_distance_in_records():
    table = 1_000.0 * (np.full((4, 4), 1.0) + 0.6 * np.outer([1, 1, -1, -1], [1, 1, -1, -1]))
    distance = np.abs(table - 1_000.0).sum()
    scores = [_score(table, 60.0, seed) for seed in range(20)]
    assert 0.7 * distance < np.mean(scores) < distance


def test_columns_that_stand_alone_score_little_and_mostly_nothing():
    table = np.full((4, 4), 1_000.0)
    scores = np.array([_score(table, 60.0, seed) for seed in range(60)])
    assert (scores == 0).mean() > 0.7
    assert scores.max() < 0.05 * table.sum()


def test_an_empty_cell_hides_no_dependence():
    """Cells for missing values hold noise alone, which has no weight."""
    full = 300.0 * (np.full((2, 2), 1.0) + 0.5 * np.outer([1, -1], [1, -1]))
    padded = np.pad(full, ((0, 6), (0, 6)))
    found = [np.mean([_score(table, 60.0, seed) > 0 for seed in range(40)]) for table in (full, padded)]
    assert min(found) > 0.6


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=9).filter(lambda each: sum(each) > 0.1))
def test_contrasts_have_mean_zero_and_variance_one_and_their_norms_are_stated(weights):
    shares = np.array(weights) / sum(weights)
    contrasts, norms = choice._contrasts(shares)
    held = np.maximum(shares, 1e-6) / np.maximum(shares, 1e-6).sum()
    assert contrasts.shape == (len(shares), len(shares) - 1)
    assert np.allclose(contrasts.T @ held, 0, atol=1e-8)
    assert np.allclose(contrasts.T @ (held[:, None] * contrasts), np.eye(len(norms)), atol=1e-7)
    assert np.allclose(np.square(contrasts).sum(axis=0), norms, rtol=1e-6)


@given(st.integers(0, 2**32 - 1))
def test_a_wrong_one_way_count_does_not_move_a_score(seed):
    rng = np.random.default_rng(seed)
    screened = _screened(_chain(10_000.0), seed=seed % 1_000)
    right = screened.independent((0, 1))
    rows, columns = screened.alone[0], screened.alone[1]
    wrong = right + np.outer(rng.normal(0, 0.1, 3), columns) + np.outer(rows, rng.normal(0, 0.1, 3))
    assert screened.score((0, 1), wrong) == pytest.approx(screened.score((0, 1), right), rel=1e-6)


def _switched(columns: int, records: float) -> np.ndarray:
    """A hidden switch: off, all columns have value 0; on, each draws value 1 or 2 by itself."""
    off, on = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.5, 0.5])
    names = "abcdef"[:columns]
    apart = [np.einsum(f"{','.join(names)}->{names}", *[each] * columns) for each in (off, on)]
    return records * (0.4 * apart[0] + 0.6 * apart[1])


def test_each_pair_is_scored_against_the_pairs_before_it(monkeypatch):
    """Without the model of the pairs before, all pairs look alike and are measured."""
    screened = _screened(_switched(6, 20_000.0), sigma=60.0, noise=20.0)
    chosen = chosen_pairs(screened)
    assert 5 <= len(chosen) < 10
    right = choice.projected
    monkeypatch.setattr(choice, "projected", lambda model, pair: np.outer(*(right(model, (each,)) for each in pair)))
    assert len(chosen_pairs.__wrapped__(screened)) == 15


def _remembered_apart() -> bool:
    """Return whether two screenings that differ in their counts alone get pairs of their own."""
    chosen_pairs.cache_clear()
    chain = _screened(_chain(10_000.0))
    turned = Screened(
        {
            (0, 1): chain.tables[0, 2],
            (0, 2): chain.tables[0, 1],
            **{p: t for p, t in chain.tables.items() if p[0] or p[1] > 2},
        },
        chain.sigma,
        chain.sizes,
        chain.noise,
    )
    own = [chosen_pairs.__wrapped__(each) for each in (chain, turned)]
    return own[0] != own[1] and [chosen_pairs(each) for each in (chain, turned)] == own


def test_remembered_pairs_are_those_of_the_same_counts(monkeypatch):
    """Planted: a memory that ignores the counts gives a course the pairs of another one's records."""
    assert _remembered_apart()
    assert _screened(_chain(500.0)) == _screened(_chain(500.0)) != replace(_screened(_chain(500.0)), noise=3.0)
    monkeypatch.setattr(Screened, "_content", property(lambda screened: screened.sizes))
    assert not _remembered_apart()
    chosen_pairs.cache_clear()
