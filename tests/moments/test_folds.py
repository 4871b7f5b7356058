"""A record's fold depends on nothing but the record, and folds are about equally full."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.moments.record_sums import fold_of_key, key_weights

SCHEMA = ps.RidgeSchema(3, clip_norm=2.0, target_bound=2.0, folds=4)


@given(n=st.integers(3, 30), gone=st.integers(0, 29), seed=st.integers(0, 2**32))
def test_removing_a_record_changes_only_its_own_fold(n, gone, seed):
    """Otherwise the fold-wise sums of two adjacent data sets differ by any number of records, and no noise hides it."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, 3)), rng.standard_normal(n)
    keep = np.arange(n) != gone % n
    whole, without = ps.measure(SCHEMA, X, y), ps.measure(SCHEMA, X[keep], y[keep])
    assert whole == without + ps.measure(SCHEMA, X[~keep], y[~keep])
    assert np.count_nonzero(whole.fold_q - without.fold_q) <= 1


@pytest.mark.parametrize("folds", [2, 3, 5, 10])
@pytest.mark.parametrize("spread", [1, 3, 4000])
def test_folds_are_about_equally_full(folds, spread):
    """Also for records of a few small integers, whose keys are highly regular."""
    records = np.unique(np.random.default_rng(folds).integers(-spread, spread + 1, (6000, 8)), axis=0)
    sizes = np.bincount(fold_of_key(records @ key_weights(8), folds), minlength=folds)
    expected = len(records) / folds
    assert np.all(np.abs(sizes - expected) < 6 * np.sqrt(expected))


def test_the_rule_is_frozen():
    """Parties that disagree on it would still add up, but their folds would mean different records."""
    keys = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1], [4096, -17, 0]]) @ key_weights(3)
    assert fold_of_key(keys, 7).tolist() == [2, 4, 5, 0, 2]
