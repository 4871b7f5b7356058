"""SAFLe's head is a ridge regression on indicators: from masked sums, it is the pooled one, and non-linear."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier as Pooled

import privstats as ps
from privstats.contrib.heads.sparse_groups import SparseGroups
from privstats.heads import RidgeClassifier


def rings(records=900, seed=0):
    """Return records whose class no line separates."""
    X = np.random.default_rng(seed).uniform(-1, 1, (records, 2))
    return X, (np.linalg.norm(X, axis=1) > 0.7).astype(int)


GROUPS = SparseGroups(seed=1, low=(-1.0, -1.0), high=(1.0, 1.0), levels=8, group=4, copies=3)


def test_each_group_has_one_indicator_and_no_row_is_clipped():
    X, y = rings(50)
    indicators = GROUPS.apply(X).toarray()
    assert (indicators.reshape(50, GROUPS.groups, -1).sum(axis=2) == 1).all()
    moments = ps.measure(GROUPS.schema(2), GROUPS.apply(X), y).real()
    np.testing.assert_allclose(moments.A.sum(axis=0), indicators.sum(axis=0), atol=0.1)
    assert np.trace(moments.B) == pytest.approx(50 * GROUPS.groups, rel=1e-3)


def test_masked_sums_of_any_split_yield_the_pooled_non_linear_head():
    X, y = rings()
    plan = ps.Plan(schema=GROUPS.schema(2), cohort=ps.Cohort(3, 3, 1_000), privacy=ps.NoPrivacy())
    order = np.argsort(y)  # each party holds one class alone, or nearly so
    parts = [(GROUPS.apply(X[mine]), y[mine]) for mine in np.array_split(order, 3)]
    head = RidgeClassifier(penalty=1.0).fit_release(ps.simulate(plan, parts))
    T, truth = rings(seed=1)
    rows = GROUPS.apply(T).toarray()
    pooled = Pooled(alpha=1.0).fit(GROUPS.apply(X).toarray(), y)
    assert (head.predict(rows) == pooled.predict(rows)).mean() > 0.99
    assert head.score(rows, truth) > 0.9 > Pooled().fit(X, y).score(T, truth) + 0.1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"low": (0.0,)}, "ends of each feature"),
        ({"low": (1.0, -1.0)}, "low below high"),
        ({"levels": 0}, "levels must be 1 to 256, got 0"),
        ({"group": 13}, "group must be 1 to 12, got 13"),
        ({"levels": 200, "group": 12}, "indicators, at most 16,384"),
    ],
)
def test_a_map_out_of_bounds_is_refused_by_name(fields, message):
    with pytest.raises(ps.SchemaError, match=message):
        SparseGroups(**{"seed": 0, "low": (-1.0, -1.0), "high": (1.0, 1.0), "levels": 4, "group": 2} | fields)


@pytest.mark.parametrize("X", [[[0.0]], [0.0, 0.0], [[0.0, np.nan]]])
def test_rows_that_do_not_fit_are_refused(X):
    with pytest.raises(ps.DataError, match="X "):
        GROUPS.apply(X)
