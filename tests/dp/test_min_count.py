"""The minimum count looks at noisy counts only, and errs as often as its formula says."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import privstats as ps
from privstats.dp import (
    destinations,
    doubtful_counts,
    drop_probability,
    noise_copies,
    rounded_gaussian,
    suppressed,
    without_rare,
)
from privstats.encoding.layout import Layout, Segment
from privstats.schema import COUNT_SCALE
from tests import made


def test_classes_below_the_minimum_go_and_the_minimum_itself_stays():
    assert suppressed(np.array([5.0, 19.99, 20.0, -3.0, 700.0]), 20) == (0, 1, 3)


@pytest.mark.parametrize("count", [10, 18, 20, 23, 40])
def test_the_drop_probability_is_the_frequency_of_drops(count):
    sigma, n = 4.0, 200_000
    noise = rounded_gaussian(sigma * ps.schema.COUNT_SCALE, n, ps.randomness.seeded(count)) / ps.schema.COUNT_SCALE
    dropped = len(suppressed(count + noise, 20)) / n
    assert dropped == pytest.approx(drop_probability(count, 20, sigma), abs=5 * 0.5 / np.sqrt(n))


def test_false_drops_of_a_distributed_release_are_as_frequent_as_its_own_noise_says():
    """Every survivor's share is in the sum: .111 of the classes go, where the guaranteed noise would say .065."""
    plan = made.plan(
        ps.ClassSchema(500, 2, "NA", clip_norm=1.0),
        ps.Cohort(clients=20, min_survivors=15, max_records=30_000, colluders=2),
        made.promise("distributed", shares={"N": 0.02, "A": 0.98}),
        min_count=20,
    )
    held = ps.measure(plan.schema, np.zeros((30_000, 2)), np.repeat(np.arange(500), 60))
    shards = [held, *[ps.measure(plan.schema, np.zeros((0, 2)), np.zeros(0, int))] * 19]
    releases = [ps.session.aggregate_unmasked(plan, shards, ps.randomness.seeded(seed)) for seed in range(12)]
    measured = sum(len(release.suppressed) for release in releases) / (12 * 500)
    said = drop_probability(60, 20, releases[0].sigma["N"])
    assert said == drop_probability(60, 20, plan.noise.released_sigma(20)["N"]) == pytest.approx(0.111, abs=0.001)
    assert drop_probability(60, 20, plan.noise.sigma["N"]) == pytest.approx(0.065, abs=0.001)
    assert measured == pytest.approx(said, abs=4 * np.sqrt(said / 6000))


def test_without_noise_the_minimum_is_sharp():
    assert (drop_probability(19, 20, 0), drop_probability(20, 20, 0)) == (1.0, 0.0)


@given(least=st.floats(1, 1e4), sigma=st.floats(0.01, 1e3), p=st.floats(1e-6, 0.4))
def test_outside_the_doubtful_counts_errors_are_rarer_than_asked(least, sigma, p):
    low, high = doubtful_counts(least, sigma, p)
    assert 1 - drop_probability(low, least, sigma) == pytest.approx(p)
    assert drop_probability(high, least, sigma) == pytest.approx(p)
    assert low < least < high


def test_what_is_pooled_stays_whatever_its_letter_is():
    """A second pooled statistic was suppressed and merged by class, as only the letter B was known."""
    layout = Layout(tuple(Segment(*row) for row in (("N", "N", 2, 1.0, 1, False), ("Z", "Z", 4, 1.0, 1, True))))
    vector = np.array([COUNT_SCALE, 30 * COUNT_SCALE, 1, 2, 3, 4], np.int64)
    kept, rare = without_rare(layout, vector, 20, {0: 1})
    assert (rare, kept.tolist()) == ((0,), [0, 31 * COUNT_SCALE, 1, 2, 3, 4])


def test_sums_go_to_the_declared_parent_unless_it_goes_too():
    assert destinations({1, 3, 4, 5}, {1: 0, 3: 4, 4: 0}) == {1: 0, 3: None, 4: 0, 5: None}


@given(
    rare=st.sets(st.integers(0, 5)),
    parents=st.dictionaries(st.integers(3, 5), st.integers(0, 2)),
)  # fmt: skip
@example(rare={3, 5}, parents={3: 0, 4: 1})
def test_noise_copies_count_the_classes_whose_sums_meet(rare, parents):
    """Merging indicator columns by hand gives the copies as squared weights."""
    weights = np.eye(6)
    for child, parent in destinations(rare, parents).items():
        if parent is not None:
            weights[parent] += weights[child]
        weights[child] = 0
    np.testing.assert_array_equal(noise_copies(6, rare, parents), (weights**2).sum(axis=1))
