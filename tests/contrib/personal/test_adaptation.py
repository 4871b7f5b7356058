"""What a client's own records say: each closed form against the plain one, and folds that prove before they change."""

import math

import numpy as np
import pytest

from privstats.contrib.personal.adaptation import PULLS, Adapter, choose_pull, label_shares, offset


def test_label_shares_are_laplaces():
    np.testing.assert_allclose(label_shares(np.array([0, 0, 2]), 4), np.array([3, 1, 2, 1]) / 7)


def test_the_offset_goes_from_all_of_the_shift_to_none_of_it():
    residuals = np.array([[1.0, 2.0], [3.0, 6.0]])
    assert offset(residuals, 0.0).tolist() == [2.0, 4.0]
    assert offset(residuals, 1.0).tolist() == [1.0, 2.0]
    assert offset(residuals, math.inf).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("records", [1, 4, 30])
def test_the_adapter_is_ridge_toward_the_identity(records):
    rng = np.random.default_rng(records)
    rows, targets, centre = rng.normal(size=(records, 6)), rng.normal(size=(records, 6)), rng.normal(size=6)
    adapter = Adapter.of(rows, targets, centre)
    Z, T = rows - centre, targets - centre
    for pull in PULLS:
        ridge = min(pull, 1e12) * np.trace(Z.T @ Z) / 6 * np.eye(6)
        plain = np.linalg.solve(Z.T @ Z + ridge, Z.T @ T + ridge)
        np.testing.assert_allclose(adapter.matrix(pull), plain, atol=1e-7)
        np.testing.assert_allclose(adapter.moved(rows, pull), centre + Z @ plain, atol=1e-7)


def test_an_adapter_of_records_that_do_not_vary_changes_nothing():
    same = np.ones((3, 4))
    np.testing.assert_array_equal(Adapter.of(same, same + 1, np.ones(4)).matrix(0.0), np.eye(4))


def judged(better, spread, rng):
    """A judge under which the pull at place ``better`` gains 1 a record, give or take."""

    def judge(train, held):
        assert not set(train) & set(held)
        return [(place == better) + spread * rng.standard_normal(len(held)) for place in range(len(PULLS))]

    return judge


def test_folds_take_what_is_proved_better_and_else_the_strongest_pull():
    rng = np.random.default_rng(0)
    index = np.arange(100) % 3
    assert choose_pull(index, judged(2, 0.1, rng)) == PULLS[2]
    assert choose_pull(index, lambda _, held: [np.zeros(len(held))] * len(PULLS)) == math.inf
    assert choose_pull(index[:1], judged(2, 0.1, rng)) == math.inf


def test_folds_hold_every_record_out_once_and_spread_the_classes():
    index, seen = np.repeat([0, 1], [20, 5]), []

    def judge(train, held):
        seen.append(held)
        assert sorted([*train, *held]) == list(range(25))
        assert (index[held] == 1).sum() == 1
        return [np.zeros(len(held))] * len(PULLS)

    choose_pull(index, judge)
    assert sorted(np.concatenate(seen)) == list(range(25))
