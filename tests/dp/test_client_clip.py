"""A clipped client never exceeds the norm that its noise was made for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.dp import calibrate, client_norm, clip_client
from privstats.encoding import flatten, layout_of, weighted_square_norm
from tests import made
from tests.schema import samples

SCHEMAS = [
    ps.ClassSchema(3, 4, "NAB", 1.0),
    ps.ClassSchema(2, 3, "NAS", 2.0),
    ps.RidgeSchema(3, 2, clip_norm=1.0, target_bound=4.0),
]


def promise(clip=5.0, **change):
    limits = {"max_records_per_client": 1000, "client_clip": clip}
    return made.promise(**{"unit": "client", "delta": 1e-6, **limits, **change})


def records(schema, n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, schema.features)) * rng.choice([0.1, 1, 10])
    if isinstance(schema, ps.RidgeSchema):
        return flatten(ps.measure(schema, X, rng.standard_normal((n, schema.targets)) * 3))
    return flatten(ps.measure(schema, X, rng.integers(0, schema.classes, n)))


@pytest.mark.parametrize("schema", SCHEMAS)
@given(n=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_n_records_have_norm_at_most_n(schema, n, seed):
    assert client_norm(schema, promise(), records(schema, n, seed)) <= n * (1 + 1e-12)


@settings(deadline=None)
@given(schema=st.sampled_from(SCHEMAS), seed=st.integers(0, 2**32), size=st.floats(0, 12), clip=st.floats(1, 1000))
def test_no_vector_is_longer_than_the_clip_and_short_ones_are_left_alone(schema, seed, size, clip):
    rng = np.random.default_rng(seed)
    vector = (rng.standard_normal(layout_of(schema).size) * 10**size).astype(np.int64)
    privacy = promise(clip)
    clipped = clip_client(schema, privacy, vector)
    assert clipped.dtype == np.int64
    assert client_norm(schema, privacy, clipped) <= clip
    if client_norm(schema, privacy, vector) <= clip:
        assert clipped is vector
    else:
        direction = clipped / np.abs(clipped).max() if np.abs(clipped).max() > 1e6 else None
        if direction is not None:
            np.testing.assert_allclose(direction, vector / np.abs(vector).max(), atol=1e-5)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_norm_is_what_the_noise_measures(schema):
    """A vector at the clip is exactly mu away from nothing, in units of the calibrated noise."""
    privacy = promise(20.0)
    noise, layout = calibrate(schema, privacy, honest_shares=1), layout_of(schema)
    vector = records(schema, 7, 1)
    parts = zip(layout.segments, layout.slices, strict=True)
    distance = np.sqrt(sum(float(((vector[place] / noise.grid_sigma(s)) ** 2).sum()) for s, place in parts))
    assert distance == pytest.approx(noise.mu * client_norm(schema, privacy, vector) / 20.0)


def test_without_a_clip_nothing_changes_and_a_foreign_shape_is_refused():
    vector = records(SCHEMAS[0], 5, 0)
    assert clip_client(SCHEMAS[0], promise(None), vector) is vector
    with pytest.raises(ps.DataError, match=r"int64 \(20,\), got int64 \(25,\)"):
        clip_client(SCHEMAS[1], promise(), vector)


@pytest.mark.parametrize("schema", samples.PROMISED)
def test_a_client_that_puts_all_its_norm_into_one_statistic_is_worth_no_more_than_the_promise(schema):
    """Of a logistic round one record cannot have both norms at once; a client of many records can."""
    privacy = promise(20.0)
    noise, layout = calibrate(schema, privacy, honest_shares=1), layout_of(schema)
    prices = {statistic: sigma**-2 for statistic, sigma in noise.sigma.items()}
    for segment, where in zip(layout.segments, layout.slices, strict=True):
        if segment.size:
            vector = np.zeros(layout.size, np.int64)
            vector[where.start] = 1 << 58
            clipped = clip_client(schema, privacy, vector)
            assert float(weighted_square_norm(schema, clipped, prices)) ** 0.5 <= noise.mu * (1 + 1e-12), segment.name
