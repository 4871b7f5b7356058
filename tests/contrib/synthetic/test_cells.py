"""Fine cells are merged by released counts, and every fine cell lies in one coarse cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.contrib.synthetic.cells import lump, merged, occupied
from privstats.contrib.synthetic.columns import OPEN_EDGES, Hashed, coded, schema_of

COUNTS = st.lists(st.floats(-50, 500), min_size=12, max_size=12).map(np.array)


@given(COUNTS, st.integers(2, 8), st.booleans())
def test_merged_bins_are_few_and_nest(counts, levels, missing):
    fine = ps.Bins("x", tuple(range(12 + (not missing))), missing=missing)
    coarse = merged(fine, counts, 1.0, levels)
    places = lump(fine, coarse)
    assert len(coarse.edges) - 1 <= levels
    assert (coarse.edges[0], coarse.edges[-1]) == (fine.edges[0], fine.edges[-1])
    assert len(places) == len(fine.cells)
    assert set(places[: len(fine.edges) - 1]) == set(range(len(coarse.edges) - 1))
    if missing:
        assert places[-1] == len(coarse.cells) - 1
    inner = places[: len(fine.edges) - 1]
    assert (np.diff(inner) >= 0).all()


@given(COUNTS, st.integers(2, 8))
def test_frequent_categories_keep_their_cell_and_the_others_share_one(counts, levels):
    fine = ps.Categories("x", tuple("abcdefghij"), other=True, missing=True)
    coarse = merged(fine, counts, 10.0, levels)
    assert 2 <= len(coarse.values) <= levels
    assert lump(fine, coarse).tolist() == [
        *(coarse.values.index(each) if each in coarse.values else len(coarse.values) for each in fine.values),
        len(coarse.values),
        len(coarse.values) + 1,
    ]


def test_few_categories_without_a_cell_for_others_stay():
    sex = ps.Categories("sex", ("f", "m"), missing=True)
    assert merged(sex, np.array([5.0, 0.0, 0.0]), 1.0, 2) == sex


def test_many_buckets_share_a_cell_for_the_rare_ones():
    """Tables of pairs of hashed codes would otherwise have a million cells."""
    (buckets,) = schema_of((Hashed("icd", 64),)).variables
    counts = np.zeros(65)
    counts[[3, 40]] = 500.0
    coarse = merged(buckets, counts, 5.0, 4)
    assert coarse.cells == ("3", "40", "other", "missing")
    assert np.bincount(lump(buckets, coarse)).tolist() == [1, 1, 62, 1]


@pytest.mark.parametrize("values", [(20, 90), (-3, -1), (0.01, 0.2), (1e5, 4e6)])
def test_the_cells_of_a_number_without_edges_are_found_whatever_its_range(values):
    """Planted: with each noisy count as it is, half of the mass is noise."""
    columns = (ps.Numeric("x"),)
    (variable,) = schema_of(columns).variables
    rng, low, high = np.random.default_rng(0), *values
    counts = ps.measure(schema_of(columns), coded(columns, {"x": rng.uniform(low, high, 3_000)})).T.ravel()
    noisy = counts + rng.normal(0, 35, counts.shape).round()
    found, sigma = occupied(variable, noisy, 35.0)
    assert sigma == 0.0
    assert _distance(found, counts) < 0.2 < 0.5 < _distance(np.maximum(noisy, 0), counts)
    coarse = merged(variable, found, 35.0, 8)
    assert min(np.bincount(lump(variable, coarse), found)[:-1]) > 0


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


def test_where_noise_hides_all_records_a_number_without_edges_has_no_mass():
    noisy = np.random.default_rng(0).normal(0, 35, len(OPEN_EDGES)).round()
    noisy[:-1] = np.minimum(noisy[:-1], 0)
    (variable,) = schema_of((ps.Numeric("x"),)).variables
    assert not occupied(variable, noisy, 35.0)[0][:-1].any()


def test_other_columns_keep_their_noisy_counts():
    fine, counts = ps.Bins("x", tuple(range(13))), np.arange(12.0)
    assert occupied(fine, counts, 3.0) == (counts, 3.0)


def test_empty_ends_join_the_cells_that_hold_records():
    fine = ps.Bins("x", tuple(range(13)))
    counts = np.array([-3.0, 0, 0, 500, 20, 20, 20, 20, -1, -5, 0, 0])
    assert merged(fine, counts, 1.0, 4).edges[1] > 3
    assert merged(fine, counts, 1.0, 4).edges[-2] < 8
