"""Sums within sites: exact integers without the site's own mean, and what one record more does to them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.kinds.sites import less_mean, site_moments
from tests.made import refused

P = 3


def schema(**changes):
    return ps.SitesSchema(P, 8.0, **changes)


def whole(rows, **changes):
    """Moments of integer grid rows, built without ``measure``: shifted rows may be longer than the clip norm."""
    return site_moments(schema(**changes), len(rows), rows.sum(axis=0), rows.T @ rows)


def grid_rows(count, seed=0, steps=1000):
    return np.random.default_rng(seed).integers(-steps, steps, (count, P))


def definition(rows, pull):
    """Q of integer rows as fractions."""
    z = rows.astype(object)
    over = len(rows) + Fraction(pull)
    if over == 0:
        return np.zeros((P, P), object)
    total = z.sum(axis=0) if len(z) else np.zeros(P, object)
    return z.T.dot(z) - np.outer(total, total) * Fraction(1, over)


@given(
    rows=st.lists(st.tuples(*[st.integers(-(2**20), 2**20)] * P), max_size=6),
    new=st.tuples(*[st.integers(-(2**20), 2**20)] * P),
    pull=st.sampled_from([0.0, 0.4, 4.0, 30.0, 1e-9, 1e9]),
)
@settings(deadline=None, max_examples=200)
def test_one_record_more_grows_it_by_rank_one_and_what_is_sent_is_the_cut(rows, new, pull):
    """In exact rationals: dQ = (n + lambda) / (n + 1 + lambda) (z - b)(z - b)', b = s / (n + lambda)."""
    before = np.array(rows, dtype=object).reshape(-1, P)
    after = np.vstack([before, np.array([new], dtype=object)])
    n, z = len(rows) + Fraction(pull), np.array(new, dtype=object)
    grown = definition(after, pull) - definition(before, pull)
    if n == 0:
        assert not grown.any()
    else:
        gap = z - (before.sum(axis=0) if len(rows) else np.zeros(P, object)) * Fraction(1, n)
        assert (grown == np.outer(gap, gap) * (n / (n + 1))).all()
    sent = less_mean(after.T.dot(after), after.sum(axis=0), n + 1)
    assert (sent == np.array([[math.trunc(entry) for entry in row] for row in definition(after, pull)])).all()


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 40), far=st.integers(0, 2**30))
@settings(deadline=None, max_examples=60)
def test_a_site_s_offset_cancels_bit_for_bit(seed, count, far):
    rng = np.random.default_rng(seed)
    rows = grid_rows(count, seed)
    shift = rng.integers(-far, far + 1, P) // max(1, count)
    assert whole(rows + shift) == whole(rows)


def test_products_beyond_64_bits_are_exact():
    rows = grid_rows(3_000, steps=2**19)
    moved = rows + 2**20
    assert int(np.abs(moved.sum(axis=0)).max()) ** 2 > 2**63
    assert whole(moved, grid_bits=20) == whole(rows, grid_bits=20)


@pytest.mark.parametrize("pull", [0.0, 4.0])
def test_no_record_is_nothing_and_one_explains_itself(pull):
    empty = ps.measure(schema(pulls=(pull,)), np.zeros((0, P - 1)), np.zeros(0))
    assert empty.records == 0
    assert not ps.encoding.flatten(empty).any()
    row = grid_rows(1)
    one = whole(row, pulls=(pull,))
    assert one.records == 1
    assert np.array_equal(one.Q[0], np.trunc(np.outer(row, row) * (pull / (1 + pull))))


def shards(sites=5, count=40, seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=(count, P - 1)), rng.normal(size=count)) for _ in range(sites)]


def plan_of(chosen, sites=5, **privacy):
    promise = ps.Privacy(**privacy) if privacy else ps.NoPrivacy()
    return ps.Plan(schema=chosen, cohort=ps.Cohort(sites, sites, 10_000), privacy=promise)


def test_sites_may_be_permuted_but_their_records_not_be_dealt_anew():
    chosen, parts = schema(), shards()
    release = ps.session.aggregate_unmasked(plan_of(chosen), [ps.measure(chosen, *part) for part in parts])
    turned = ps.session.aggregate_unmasked(plan_of(chosen), [ps.measure(chosen, *part) for part in parts[::-1]])
    assert np.array_equal(release.vector, turned.vector)
    (X, y), (Z, w) = parts[:2]
    dealt = [(np.vstack([X[:10], Z[10:]]), np.r_[y[:10], w[10:]]), (np.vstack([Z[:10], X[10:]]), np.r_[w[:10], y[10:]])]
    other = ps.session.aggregate_unmasked(plan_of(chosen), [ps.measure(chosen, *part) for part in dealt + parts[2:]])
    assert release.moments.N == other.moments.N
    assert not np.array_equal(release.vector, other.vector)


def test_columns_are_mapped_and_the_target_is_scaled():
    maps = (ps.transforms.Centre((50.0, 1.0)), ps.transforms.Scale((20.0, 2.0)))
    chosen = schema(transform=maps, target_scale=100.0, grid_bits=20, feature_names=("age", "dose"))
    X, y = shards()[0]
    found = ps.measure(chosen, 50 + 20 * X, 100 * y).real()
    z = np.c_[X * 20 / 20, y]
    z[:, 1] = (50 + 20 * X[:, 1] - 1) / 2
    z /= np.maximum(1, np.linalg.norm(z, axis=1, keepdims=True) / 8)
    assert np.allclose(found.Q[0], z.T @ z - np.outer(z.sum(axis=0), z.sum(axis=0)) / len(z), atol=0.02)
    assert found.N == 40


def test_batches_files_and_frames_measure_the_same(tmp_path):
    pd = pytest.importorskip("pandas", reason="measures a DataFrame, and pandas is not installed")
    chosen = schema(feature_names=("age", "dose"))
    X, y = shards()[0]
    found = ps.measure(chosen, X, y)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    assert ps.measure(chosen, ((X[k : k + 7], y[k : k + 7, None]) for k in range(0, len(X), 7))) == found
    assert ps.measure(chosen, tmp_path / "X.npy", tmp_path / "y.npy") == found
    assert ps.measure(chosen, pd.DataFrame({"dose": X[:, 1], "age": X[:, 0]}), pd.Series(y)) == found
    assert found.clip_report.records == len(X)


def test_a_site_s_sums_go_to_the_group_of_its_place():
    chosen = schema(groups=6)
    parts = [ps.measure(chosen, *part) for part in shards(18)]
    release = ps.session.aggregate_unmasked(plan_of(chosen, 18), parts, ps.randomness.seeded(1))
    alone = schema()
    for group in range(6):
        members = [ps.measure(alone, *part).Q[0] for part in shards(18)[group::6]]
        assert np.array_equal(ps.encoding.unflatten(chosen, release.vector).Q[group], sum(members))
    assert ps.simulate(plan_of(chosen, 18), parts).moments == release.moments
    refused(ps.DataError, "give index=", ps.session.contribution, plan_of(chosen, 18), parts[0])
    refused(ps.DataError, "in a group already", parts[0].for_client(3).for_client, 3)


def test_flat_vectors_and_plans_come_back(tmp_path):
    chosen = schema(pulls=(0.4, 4.0, 30.0), transform=(ps.transforms.ConstantFeature(1.0),))
    moments = ps.measure(chosen, np.ones((9, 1)), np.arange(9.0))
    assert ps.encoding.unflatten(chosen, ps.encoding.flatten(moments)) == moments
    plan = plan_of(chosen, 20)
    assert ps.Plan.from_toml(plan.to_toml()) == plan
    release = ps.session.aggregate_unmasked(plan, [moments] * 20)
    release.save(tmp_path / "r")
    assert (ps.Release.load(tmp_path / "r"), release.moments) == (release, sum([moments] * 20).real())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"pulls": ()}, "1 to 4 numbers"),
        ({"pulls": 4.0}, "1 to 4 numbers"),
        ({"pulls": (1, 2, 3, 4, 5)}, "1 to 4 numbers"),
        ({"pulls": (-1.0,)}, "a pull must be a number between 1e-30 and 1e[+]09, got -1.0: 0 removes"),
        ({"pulls": (math.inf,)}, "a pull must be a number between"),
        ({"pulls": (True,)}, "a pull must be a number between"),
        ({"pulls": (2e9,)}, "for more, use a RidgeSchema"),
        ({"pulls": (4.0, 0.4)}, "pulls must increase"),
        ({"pulls": (4.0, 4.0)}, "pulls must increase"),
        ({"pulls": (0.0, 4.0)}, "cannot be combined"),
        ({"groups": 0}, "groups must be at least 1"),
        ({"groups": 5}, "1, or 6 to 64"),
        ({"groups": 65}, "1, or 6 to 64"),
        ({"groups": 8, "pulls": (1.0, 2.0)}, "cannot be combined"),
        ({"target_scale": 0.0}, "target_scale must be a number"),
        ({"features": 1}, "features must be at least 2"),
        ({"transform": (ps.transforms.ConstantFeature(1.0),)}, "must not hold a ConstantFeature"),
        ({"transform": (ps.transforms.Centre((0.0,) * P),)}, "3 and 1 appended are 4"),
        ({"feature_names": ("a", "b", "y")}, "names 3 columns"),
    ],
)
def test_wrong_schemas_are_one_sentence(wrong, words):
    refused(ps.SchemaError, words, ps.SitesSchema, **{"features": P, "clip_norm": 8.0, **wrong})


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.zeros((4, P)), np.zeros(4), "count the target too"),
        (np.zeros((4, P - 1)), np.zeros(3), "X has 4 rows but y has 3"),
        (np.zeros((4, P - 1)), np.zeros((4, 2)), "y must have shape"),
        (np.zeros((4, P - 1)), ["a", "b", "c", "d"], "y must hold real numbers"),
        (np.zeros((4, P - 1)), None, "y is missing"),
        (np.full((4, P - 1), np.nan), np.zeros(4), "X holds NaN"),
        (np.zeros((4, P - 1)), np.full(4, np.inf), "y holds NaN"),
        (np.array([["a", "b"]]), np.zeros(1), "X must hold real numbers"),
    ],
)
def test_wrong_records_are_one_sentence(X, y, words):
    refused(ps.DataError, words, ps.measure, schema(), X, y)


def test_moments_that_no_records_have_are_refused():
    good = whole(grid_rows(9))
    refused(ps.DataError, "negative", ps.kinds.SiteMoments, good.schema, -1, good.Q)
    refused(ps.SchemaError, "call measure", ps.moments.quantize, schema(), np.zeros((2, P - 1)))
    with pytest.raises(ps.ReleaseError, match="no ridge sums"):
        ps.heads.Ridge().fit_release(ps.session.aggregate_unmasked(plan_of(schema(), 3), [good] * 3))
