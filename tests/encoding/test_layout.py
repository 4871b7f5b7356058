"""Moments survive the flat vector, and noisy vectors read as real units."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.encoding import flatten, layout_of, to_real, unflatten
from privstats.errors import DataError
from privstats.schema import COUNT_SCALE
from privstats.testing import class_schemas, records, ridge_schemas

SCHEMAS = st.one_of(class_schemas(), ridge_schemas())


@given(st.data())
def test_flatten_and_unflatten_are_inverse(data):
    schema = data.draw(SCHEMAS)
    moments = ps.measure(schema, *data.draw(records(schema)))
    assert unflatten(schema, flatten(moments)) == moments


@given(st.data())
def test_flat_vectors_add_as_moments_do(data):
    schema = data.draw(SCHEMAS)
    first, second = (ps.measure(schema, *data.draw(records(schema))) for _ in range(2))
    assert np.array_equal(flatten(first) + flatten(second), flatten(first + second))


@given(st.data())
def test_an_exact_vector_reads_the_same_in_real_units(data):
    schema = data.draw(SCHEMAS)
    moments = ps.measure(schema, *data.draw(records(schema)))
    assert to_real(schema, flatten(moments)) == moments.real()


@given(st.data())
def test_one_record_keeps_every_entry_within_its_segments_bound(data):
    schema = data.draw(SCHEMAS)
    X, y = data.draw(records(schema, min_records=1, max_records=1))
    vector = flatten(ps.measure(schema, X, y))
    layout = layout_of(schema)
    for segment, where in zip(layout.segments, layout.slices, strict=True):
        assert np.abs(vector[where]).max(initial=0) <= segment.bound, segment.name


def test_a_symmetric_block_is_its_diagonal_then_its_upper_triangle():
    schema = ps.ClassSchema(2, 3, "NAB", clip_norm=1.0, grid_bits=3)
    B = np.array([[1, 4, 5], [4, 2, 6], [5, 6, 3]])
    moments = ps.ClassMoments(schema, N=np.array([1, 2]), A=np.zeros((2, 3), int), B=B)
    assert flatten(moments).tolist() == [COUNT_SCALE, 2 * COUNT_SCALE, *[0] * 6, 1, 2, 3, 4, 5, 6]


def test_fractional_counts_are_refused_as_moments_and_read_as_real():
    schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
    vector = np.arange(6, dtype=np.int64)
    with pytest.raises(DataError, match="to_real"):
        unflatten(schema, vector)
    assert to_real(schema, vector).N.tolist() == [0.0, 1 / COUNT_SCALE]


def test_a_vector_of_another_size_is_refused():
    schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
    with pytest.raises(DataError, match=r"int64 \(6,\), got int64 \(5,\)"):
        to_real(schema, np.zeros(5, np.int64))


def test_memory_of_the_process_reaches_no_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that sends a letter twice has a segment that nothing fills."""

    class Twice(ps.MeanSchema):
        sent = property(lambda self: 2 * self.table)  # type: ignore[assignment]

    exact: Any = ps.MeanSchema.containers()[0]
    moments = exact(Twice(2, clip_norm=1.0), np.array([1, 2]))
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, 7, dtype))
    assert ps.encoding.flatten(moments).tolist() == [1, 2, 0, 0]
