"""Table one with few records of a group: Student's t, where a normal quantile would be too short."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import privstats as ps
from privstats import inference as inf
from privstats import session
from privstats.randomness import seeded
from tests import made

SCHEMA = ps.ClassSchema(2, 2, "NAD", 8.0, grid_bits=16)


def exact(*groups):
    """A release without noise of one column in two groups, and a column of 0."""
    X = np.concatenate(groups)[:, None] * [1.0, 0.0]
    y = np.repeat([0, 1], [len(group) for group in groups])
    return ps.Release.exact(SCHEMA, ps.measure(SCHEMA, X, y))


@pytest.mark.parametrize("records", [2, 3, 5, 10])
def test_means_of_few_records_are_missed_in_one_of_twenty(records):
    rng, missed = np.random.default_rng(records), []
    for _ in range(600):
        found = inf.table_one(exact(rng.normal(size=records), rng.normal(size=40)))
        missed.append((found.low > 0)[:, 0] | (found.high < 0)[:, 0])
    assert np.mean(missed, axis=0).tolist() == pytest.approx([0.05, 0.05], abs=0.028)


def test_without_noise_the_interval_is_student_s():
    rng = np.random.default_rng(1)
    groups = [np.round(rng.normal(size=n) * 256) / 256 for n in (4, 9)]
    for alpha in (0.2, 0.05, 0.01):
        found = inf.table_one(exact(*groups), alpha=alpha)
        for group, low, high in zip(groups, found.low, found.high, strict=True):
            theirs = scipy.stats.ttest_1samp(group, 0.0).confidence_interval(1 - alpha)
            assert (low[0], high[0]) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_noise_of_a_known_level_takes_no_degrees_of_freedom():
    """Welch and Satterthwaite: the quantile lies between the normal one and that of N - 1 degrees."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1], [20, 40])
    plan = made.plan(SCHEMA, ps.Cohort(2, 2, 200), made.promise("central", epsilon=30.0, delta=1e-6))
    release = session.aggregate_unmasked(plan, [ps.measure(SCHEMA, X[k::2], y[k::2]) for k in range(2)], seeded(1))
    found, sigma = inf.table_one(release), release.sigma
    n, mean = float(found.counts[0]), float(found.means[0, 0])
    sampling = float(found.deviations[0, 0]) ** 2 / n
    noise = (sigma["A"] ** 2 + mean**2 * sigma["N"] ** 2) / n**2
    degrees = (sampling + noise) ** 2 / (sampling**2 / (n - 1))
    margin = float((found.high - found.low)[0, 0]) / 2
    assert margin == pytest.approx(scipy.stats.t.isf(0.025, degrees) * (sampling + noise) ** 0.5, rel=1e-9)
    assert n - 1 < degrees < 200


def test_columns_that_are_constant_and_exact_have_p_values():
    same, other = np.full(5, 0.5), np.full(3, 0.25)
    assert inf.table_one(exact(same, same)).pvalues.tolist() == [1.0, 1.0]
    found = inf.table_one(exact(same, other))
    assert found.pvalues.tolist() == [0.0, 1.0]
    assert found.low.tolist() == found.high.tolist() == [[0.5, 0.0], [0.25, 0.0]]
