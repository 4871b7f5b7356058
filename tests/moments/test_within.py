"""Within-client moments: exact integers without the client's own offset, and what heads read in them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats import heads
from privstats.contrib.personal import Personal
from privstats.encoding import flatten, unflatten
from privstats.errors import DataError, ReleaseError, SchemaError
from privstats.kinds import ClassMoments, WithinMoments
from privstats.kinds.within import within_moments
from tests.made import refused

C, D = 3, 4


def schema(pull=0.0, n_max=100, **changes):
    return ps.WithinSchema(C, D, 8.0, pull=pull, n_max=n_max, **changes)


def plain(rows, labels, grid_bits=12):
    """Class moments of integer grid rows, built without ``measure``: shifted rows may be longer than the clip norm."""
    onehot = np.eye(C, dtype=np.int64)[labels]
    whole = ps.ClassSchema(C, D, "NAB", 8.0, grid_bits)
    return ClassMoments(whole, onehot.sum(axis=0), onehot.T @ rows, rows.T @ rows)


def records(count, seed=0, steps=1000):
    rng = np.random.default_rng(seed)
    return rng.integers(-steps, steps, (count, D)), rng.integers(0, C, count)


@pytest.mark.parametrize("pull", [0.0, 0.1, 7.0, 1e6])
@pytest.mark.parametrize("count", [0, 1, 2, 60, 300])
def test_the_sums_are_the_formula_less_a_cut_of_one_step(pull, count):
    rows, labels = records(count)
    found = within_moments(schema(pull), plain(rows, labels))
    z = np.hstack([np.eye(C)[labels], rows])
    over = count + pull * max(1.0, count / 100)
    exact = z.T @ z - np.outer(z.sum(axis=0), z.sum(axis=0)) / (over or 1.0)
    steps = np.block([[found.L / 4096, found.A], [found.A.T, found.B]])
    size = np.where(np.add.outer(np.arange(C + D) < C, np.arange(C + D) < C) == 2, 1 / 4096, 1.0)
    assert (np.abs(steps - exact) <= size * 1.001).all()
    assert (np.abs(steps) <= np.abs(exact) + 1e-6).all()
    assert found.records == count


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 40), far=st.integers(0, 2**40))
@settings(deadline=None, max_examples=60)
def test_a_free_offset_cancels_bit_for_bit(seed, count, far):
    """Also where products of the sums pass 2**63."""
    rng = np.random.default_rng(seed)
    rows, labels = records(count, seed)
    free = schema(0.0)
    shift = rng.integers(-far, far + 1, D) // max(1, count) // 2**12
    assert within_moments(free, plain(rows + shift, labels)) == within_moments(free, plain(rows, labels))


def test_products_beyond_64_bits_are_exact():
    rows, labels = records(3_000, steps=2**19)
    moved = rows + 2**20
    total = int(np.abs(moved.sum(axis=0)).max())
    assert total * total > 2**63
    assert within_moments(schema(), plain(moved, labels, 20)) == within_moments(schema(), plain(rows, labels, 20))


def test_one_record_alone_explains_itself_and_none_is_nothing():
    one = within_moments(schema(0.0), plain(*records(1)))
    assert not one.L.any()
    assert not one.A.any()
    assert not one.B.any()
    empty = ps.measure(schema(0.0), np.zeros((0, D)), np.zeros(0, int))
    assert empty.records == 0
    assert not flatten(empty).any()


def test_a_large_pull_gives_plain_moments():
    moments = plain(*records(50))
    found = within_moments(schema(1e9), moments)
    assert np.abs(found.A - moments.A).max() <= 1 + 1e-3
    assert np.abs(found.B - moments.B).max() <= 50 * 1e6 / 1e3


def test_a_client_above_n_max_weighs_as_one_of_n_max():
    """Four copies of every record, with n_max a quarter of them: the same weight of the offset, four times the sums."""
    rows, labels = records(50)
    small = within_moments(schema(10.0, n_max=50), plain(rows, labels))
    large = within_moments(schema(10.0, n_max=50), plain(np.tile(rows, (4, 1)), np.tile(labels, 4)))
    assert np.abs(large.B - 4 * small.B).max() <= 4
    assert np.abs(large.L - 4 * small.L).max() <= 4
    uncapped = within_moments(schema(10.0, n_max=200), plain(np.tile(rows, (4, 1)), np.tile(labels, 4)))
    assert np.abs(uncapped.B - 4 * small.B).max() > 4


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 30), pull=st.sampled_from([0.0, 1.0, 50.0]))
@settings(deadline=None, max_examples=60)
def test_no_entry_passes_what_the_records_could_add(seed, count, pull):
    """The bound behind the ring's width: what is left of the moments is never larger than the moments could be."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(count, D)) * 10, rng.integers(0, C, count)
    found = ps.measure(schema(pull), X, y)
    for row in found.schema.sent:
        assert np.abs(found.sums(row)).max(initial=0) * row.factor <= count * row.bound(4096)


def test_flat_vectors_come_back_and_clients_add(tmp_path):
    parts = [
        ps.measure(schema(5.0), np.random.default_rng(k).normal(size=(20, D)), np.arange(20) % C) for k in range(4)
    ]
    assert unflatten(schema(5.0), flatten(parts[0])) == parts[0]
    plan = ps.Plan(schema=schema(5.0), cohort=ps.Cohort(4, 3, 100), privacy=ps.NoPrivacy())
    release = ps.simulate(plan, parts, {"mask": {2}})
    total = parts[0] + parts[1] + parts[3]
    assert np.array_equal(release.vector, flatten(total))
    assert release.moments == total.real()
    release.save(tmp_path / "r")
    assert (ps.Release.load(tmp_path / "r"), ps.Plan.from_toml(plan.to_toml())) == (release, plan)


def world(clients=6, count=150, spread=3.0):
    rng = np.random.default_rng(5)
    means, shards = 1.5 * rng.standard_normal((C, D)), []
    for _ in range(clients):
        labels = rng.choice(C, count, p=rng.dirichlet(np.full(C, 0.5)))
        shards.append((means[labels] + spread * rng.standard_normal(D) + 0.5 * rng.standard_normal((count, D)), labels))
    return shards


def test_the_means_are_least_squares_with_client_effects():
    shards = world()
    free = ps.WithinSchema(C, D, 60.0, pull=0, n_max=200, grid_bits=20)
    found = sum(ps.measure(free, *shard) for shard in shards).real().means
    y = np.concatenate([labels for _, labels in shards])
    client = np.repeat(np.arange(len(shards)), [len(labels) for _, labels in shards])
    design = np.hstack([np.eye(C)[y], np.eye(len(shards))[client]])
    effects = np.linalg.lstsq(design, np.concatenate([X for X, _ in shards]), rcond=None)[0][:C]
    np.testing.assert_allclose(found - found.mean(axis=0), effects - effects.mean(axis=0), atol=1e-3)


@pytest.mark.parametrize("records", [1e2, 1e12])
def test_noise_along_the_shift_of_all_classes_moves_no_mean_however_many_records_there_are(records):
    """Its eigenvalue is 0 up to rounding, which grows with the records."""
    found = ps.measure(ps.WithinSchema(C, D, 60.0, pull=0, n_max=200), *world()[0]).real()
    means = np.random.default_rng(0).normal(size=(C, D))
    L = records * (C * np.eye(C) - 1 + 1e-13)
    known = replace(found, L=L, A=L @ means + 1e-3 * records)
    np.testing.assert_allclose(known.means, means - means.mean(axis=0), atol=1e-6)


def test_heads_read_it_and_shifted_clients_are_told_apart():
    shards = world()
    cohort = ps.Cohort(len(shards), len(shards), 1_000)

    def accuracy(schema):
        plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
        head = heads.LDA().fit_release(ps.simulate(plan, [(X[::2], y[::2]) for X, y in shards]))
        own = [Personal(head, offset=True, pull=0.05).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) for X, y in shards]
        return np.mean(own)

    assert accuracy(ps.WithinSchema(C, D, 40.0, pull=1, n_max=200)) > 0.97
    assert accuracy(ps.ClassSchema(C, D, "NAB", 40.0)) < 0.95


def test_scatter_is_that_of_the_equivalent_moments():
    shards = world(spread=0.0)
    free = ps.WithinSchema(C, D, 40.0, pull=1e9, n_max=200)
    same = sum(ps.measure(free, *shard) for shard in shards).real().equivalent()
    plain_moments = sum(ps.measure(ps.ClassSchema(C, D, "NAB", 40.0), *shard) for shard in shards).real()
    np.testing.assert_allclose(same.A, plain_moments.A, rtol=1e-3, atol=0.3)
    np.testing.assert_allclose(same.B, plain_moments.B, rtol=1e-3, atol=0.5)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"pull": -1.0}, "pull must be a number between 1e-30 and 1e[+]09, got -1.0: 0 removes"),
        ({"pull": math.inf}, "pull must be a number between"),
        ({"pull": 1e10}, "for more, use a ClassSchema"),
        ({"pull": True}, "pull must be a number"),
        ({"n_max": 0}, "n_max must be at least 1"),
        ({"n_max": 2.5}, "n_max must be an integer"),
        ({"classes": 1}, "classes must be at least 2"),
    ],
)
def test_wrong_schemas_are_one_sentence(wrong, words):
    with pytest.raises(SchemaError, match=words):
        ps.WithinSchema(**{"classes": C, "features": D, "clip_norm": 8.0, "pull": 0.0, "n_max": 5, **wrong})


def test_moments_that_no_records_have_are_refused():
    good = within_moments(schema(), plain(*records(9)))
    refused(DataError, "some are negative", WithinMoments, good.schema, good.N - 100, good.L, good.A, good.B)
    plan = ps.Plan(schema=schema(), cohort=ps.Cohort(2, 2, 100), privacy=ps.NoPrivacy())
    refused(ReleaseError, "no ridge sums", heads.Ridge().fit_release, ps.simulate(plan, [good, good]))
