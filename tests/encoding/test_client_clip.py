"""A client's whole vector never exceeds the declared norm, exactly, whatever its records are."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.encoding import clip_vector, flatten, layout_of, to_real, weighted_square_norm
from privstats.errors import DataError
from privstats.testing import class_schemas, records, ridge_schemas

SCHEMAS = st.one_of(class_schemas(), ridge_schemas())
FACTORS = st.floats(1e-6, 1e6)


def _case(data):
    schema = data.draw(SCHEMAS)
    X, y = data.draw(records(schema, min_records=1))
    weights = {name: data.draw(FACTORS) for name in schema.statistics}
    return schema, flatten(ps.measure(schema, X, y)), weights


@given(st.data(), st.floats(1e-9, 1e9))
def test_the_weighted_norm_is_never_above_the_bound(data, norm):
    schema, vector, weights = _case(data)
    clipped = clip_vector(schema, vector, weights, norm)
    assert weighted_square_norm(schema, clipped.vector, weights) <= Fraction(norm) ** 2
    assert (np.abs(clipped.vector) <= np.abs(vector)).all()
    assert (np.sign(clipped.vector) * np.sign(vector) >= 0).all()


@given(st.data(), st.floats(0.01, 3.0))
def test_a_vector_is_cut_to_the_bound_and_no_shorter_than_rounding_needs(data, part):
    schema, vector, weights = _case(data)
    norm = math.sqrt(weighted_square_norm(schema, vector, weights)) * part
    if norm == 0:
        return
    clipped = clip_vector(schema, vector, weights, norm)
    if part > 1.001:
        assert clipped.shrink == 1.0
    else:
        assert math.isclose(clipped.shrink, min(part, 1.0), rel_tol=2e-9)
    expected = [math.trunc(int(v) * Fraction(clipped.shrink)) for v in vector]
    assert clipped.vector.tolist() == expected


@given(st.data())
def test_the_square_norm_is_that_of_the_real_matrices(data):
    schema, vector, weights = _case(data)
    real = to_real(schema, vector)
    expected = 0.0
    for name in schema.statistics:
        array = getattr(real, name if isinstance(schema, ps.ClassSchema) else f"fold_{name}")
        expected += weights[name] * np.square(array).sum()
    assert math.isclose(float(weighted_square_norm(schema, vector, weights)), expected, rel_tol=1e-12)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=6, max_size=6), st.floats(1e-300, 1e300))
def test_entries_of_any_size_are_handled(values, norm):
    schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
    vector = np.array(values, np.int64)
    weights = {"N": 1.0, "A": 2.0}
    expected = sum(
        Fraction(weights[segment.statistic])
        * Fraction(sum(int(v) ** 2 for v in vector[where]))
        / Fraction(segment.scale) ** 2
        for segment, where in zip(layout_of(schema).segments, layout_of(schema).slices, strict=True)
    )
    assert weighted_square_norm(schema, vector, weights) == expected
    clipped = clip_vector(schema, vector, weights, norm)
    assert weighted_square_norm(schema, clipped.vector, weights) <= Fraction(norm) ** 2


def test_a_client_of_one_worst_case_record_passes_at_the_joint_sensitivity():
    schema = ps.ClassSchema(2, 4, "NAB", clip_norm=2.0, grid_bits=10)
    vector = flatten(ps.measure(schema, np.array([[2.0, 0, 0, 0]]), np.array([0])))
    weights = {"N": 3.0, "A": 0.5, "B": 0.25}
    norm = math.sqrt(3.0 + 0.5 * 4 + 0.25 * 16)  # docs/proofs/sensitivity.md: w_N + w_A R^2 + W R^4
    assert clip_vector(schema, vector, weights, norm).shrink == 1.0
    assert clip_vector(schema, 2 * vector, weights, norm).shrink == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize(
    ("weights", "norm", "message"),
    [
        ({"N": 1.0}, 1.0, "weights must name N, A and no other, got N"),
        ({"N": 1.0, "A": 1.0, "B": 1.0}, 1.0, "weights must name N, A and no other, got N"),
        ({"N": 1.0, "A": 0.0}, 1.0, "weights"),
        ({"N": 1.0, "A": math.inf}, 1.0, "weights"),
        ({"N": 1.0, "A": 1.0}, -1.0, "norm"),
        ({"N": 1.0, "A": 1.0}, math.nan, "norm"),
    ],
)
def test_weights_and_bounds_that_make_no_sense_are_refused(weights, norm, message):
    schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
    with pytest.raises(DataError, match=message):
        clip_vector(schema, np.ones(6, np.int64), weights, norm)
