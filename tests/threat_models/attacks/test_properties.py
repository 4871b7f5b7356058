"""Counts and two-way tables of one-hot features name people's labels and attributes."""

import numpy as np
import pytest

from privstats.errors import DataError
from threat_models.attacks.properties import (
    attribute,
    attribute_baseline,
    label_baseline,
    label_between,
    lone_labels,
    lone_records,
    property_scores,
)

GROUPS = (4, 3, 5)  # sizes of three one-hot attributes; the last is hidden
HIDDEN = np.arange(7, 12)


def people(n, seed, dependence=0.7):
    """One-hot records whose hidden attribute follows the first with some probability."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 4, n), rng.integers(0, 3, n)
    hidden = np.where(rng.random(n) < dependence, first, rng.integers(0, 5, n))
    columns = np.column_stack([first, 4 + second, 7 + hidden])
    return np.eye(12)[columns].sum(axis=1), columns


def test_a_class_of_one_names_its_label():
    assert np.array_equal(lone_labels(np.array([3, 1, 0, 1])), [1, 3])
    assert np.array_equal(lone_labels(np.array([3.2, 1.4, -0.6])), [1])


def test_two_counts_name_the_label_of_whoever_joined_between_them():
    before = np.array([30, 12, 8])
    assert (label_between(before, before + np.array([0, 0, 1])), label_baseline(before)) == (2, 0)


def test_label_inference_fails_as_noise_says_and_is_at_chance_in_much_of_it():
    rng = np.random.default_rng(0)
    before, joined = np.full(10, 50.0), rng.integers(0, 10, 2000)

    def right(sigma):
        guesses = [
            label_between(
                before + sigma * rng.standard_normal(10), before + np.eye(10)[c] + sigma * rng.standard_normal(10)
            )
            for c in joined
        ]
        return np.mean(guesses == joined)

    assert right(0.0) == 1.0
    assert right(0.2) > 0.9
    assert abs(right(100.0) - 0.1) < 0.03


def test_whoever_has_a_column_alone_is_shown_whole():
    rows, _ = people(40, 1)
    rows = np.vstack([rows[rows[:, 11] == 0], np.eye(12)[[0, 5, 11]].sum(axis=0)])
    found = lone_records(rows.T @ rows)
    assert (found == rows[-1]).all(axis=1).any()
    assert all((row == rows).all(axis=1).any() for row in found)
    assert lone_records(2 * rows.T @ rows).shape == (0, 12)


def test_a_hidden_attribute_is_certain_where_only_one_value_occurs_with_what_is_known():
    rows, columns = people(6, 2, dependence=1.0)
    for target in columns:
        guess = attribute(rows.T @ rows, target[:2], HIDDEN)
        assert guess.certain
        assert HIDDEN[guess.guess] == target[2]


def test_tables_of_the_data_beat_the_same_attacker_with_public_tables():
    """Groups of six, as in a small cohort: the target is a sixth of its own table."""
    hits, prior, public = [], [], people(2000, 99)[0]
    for seed in range(150):
        rows, columns = people(6, seed, dependence=0.0)
        hits.append(HIDDEN[attribute(rows.T @ rows, columns[0][:2], HIDDEN).guess] == columns[0][2])
        prior.append(HIDDEN[attribute_baseline(public, columns[0][:2], HIDDEN).guess] == columns[0][2])
    assert np.mean(prior) < 0.35
    assert np.mean(hits) > 0.6


def test_public_tables_are_never_certain_and_probabilities_sum_to_one():
    rows, columns = people(50, 3)
    guess = attribute_baseline(rows, columns[0][:2], HIDDEN)
    assert not guess.certain
    assert guess.probabilities.sum() == pytest.approx(1)
    nothing = attribute(-np.ones((12, 12)), columns[0][:2], HIDDEN)  # noise below every count
    assert np.allclose(nothing.probabilities, 0.2)
    assert not nothing.certain


def test_the_share_of_a_property_is_read_off_the_sums():
    N, A = np.array([10, 40, 0]), np.array([[3, 10], [30, 40], [0, 0]])
    assert np.allclose(property_scores(N, A, 0), [0.3, 0.75, 0.66])


@pytest.mark.parametrize(("candidates", "weight", "says"), [([], 1.0, "at least one column"), ([7], 0.0, "weight")])
def test_attribute_refuses_what_has_no_answer(candidates, weight, says):
    with pytest.raises(DataError, match=says):
        attribute(np.eye(12), np.array([0]), np.array(candidates, dtype=np.intp), weight=weight)
