"""Sums of one or two records are the records: to the last digit in reals, and to the grid under quantisation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privstats import ClassSchema, measure
from privstats.errors import DataError
from threat_models.attacks.inversion import baseline, one_record, pair_from_moments, pair_from_squares
from threat_models.attacks.matching import match

INTEGERS = arrays(np.int64, (2, 6), elements=st.integers(-5000, 5000))


def moments_of(rows):
    return rows.sum(axis=0), rows.T @ rows, np.square(rows).sum(axis=0)


def test_the_sum_of_one_record_is_the_record():
    row = np.random.default_rng(0).standard_normal((1, 64))
    assert np.array_equal(one_record(row.sum(axis=0)), row)


@pytest.mark.parametrize("seed", range(5))
def test_two_records_are_read_off_real_sums_to_1e9(seed):
    rows = np.random.default_rng(seed).standard_normal((2, 64))
    A, S, D = moments_of(rows)
    found = pair_from_moments(A, S)
    assert np.abs(rows - found[match(rows, found).order]).max() < 1e-9
    assert pair_from_squares(A, D).found(rows, 1e-6) == 1.0
    assert np.median(np.abs(np.sort(rows, axis=0)[1] - pair_from_squares(A, D).high)) < 1e-9


@given(INTEGERS)
def test_two_records_on_a_grid_are_exact(rows):
    A, S, D = moments_of(rows)
    found = pair_from_moments(A, S)
    assert {tuple(row) for row in found} == {tuple(row) for row in rows}
    pairs = pair_from_squares(A, D)
    assert np.array_equal(np.stack([pairs.low, pairs.high]), np.sort(rows, axis=0))


def test_two_records_of_a_real_upload_are_their_quantised_selves():
    """Through the library's own clip and grid: rounding to 2^-12 of the clip norm hides nothing."""
    X = np.random.default_rng(1).standard_normal((3, 16))
    schema = ClassSchema(2, 16, "NAS", clip_norm=8.0)
    moments = measure(schema, X, np.array([0, 0, 1]))
    step = 8.0 / 2**schema.grid_bits
    pair = pair_from_moments(moments.A[0], moments.S[0]) * step
    assert match(X[:2], pair).errors.max() < 16 * step
    assert np.abs(one_record(moments.A[1]) * step - X[2]).max() <= step
    again = measure(schema, X[:1], np.array([0]))  # the grid point itself comes out, not something near it
    assert any(np.array_equal(row, again.A[0] * step) for row in pair)


def test_squares_leave_open_which_record_has_which_value():
    rows = np.array([[1, 5], [4, 2]])
    A, S, D = moments_of(rows)
    other = np.array([[1, 2], [4, 5]])
    assert pair_from_squares(A, D).found(other, 0) == 1.0
    assert not np.array_equal(other.T @ other, S)


def test_sums_of_three_records_are_refused_on_the_grid():
    A, S, _ = moments_of(np.random.default_rng(2).integers(-50, 50, (3, 4)))
    with pytest.raises(DataError, match="two integer records"):
        pair_from_moments(A, S)


def test_noise_costs_the_attack_what_it_adds_and_no_more():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((2, 64))
    A, S, D = moments_of(rows)
    noise = rng.standard_normal(S.shape) * 1e-3
    found = pair_from_moments(A + 1e-3 * rng.standard_normal(64), S + (noise + noise.T) / 2)
    assert 1e-6 < match(rows, found).errors.max() < 1e-2
    assert pair_from_squares(A, D - 1.0).found(rows, 1e9) == 1.0  # no NaN where noise is below 0 under the root


def test_without_the_release_the_attacker_says_the_public_mean():
    public = np.arange(12.0).reshape(4, 3)
    assert np.array_equal(baseline(public, 2), [[4.5, 5.5, 6.5]] * 2)
    rows = np.random.default_rng(4).standard_normal((2, 3))
    assert match(rows, baseline(rows * 0 + public.mean(axis=0), 2)).errors.min() > 0.05
