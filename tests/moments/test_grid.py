"""No grid vector leaves the ball, whatever comes in, and each depends on its own row alone."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.moments import quantize
from privstats.testing import class_schemas, records
from privstats.transforms import ConstantFeature, UnitNorm
from privstats.transforms.exact import row_norms, row_sums


@given(st.data())
def test_grid_vectors_stay_in_the_ball_as_integers(data):
    schema = data.draw(class_schemas(max_features=40))
    X, _ = data.draw(records(schema))
    grid = quantize(schema, X)
    assert all(sum(int(v) ** 2 for v in row) <= 4**schema.grid_bits for row in grid)
    if schema.nonnegative:
        assert (grid >= 0).all()


@given(st.data())
def test_a_row_is_snapped_alone_as_in_company(data):
    schema = data.draw(class_schemas(max_features=40))
    X, _ = data.draw(records(schema))
    alone = [quantize(schema, X[i : i + 1])[0] for i in range(len(X))]
    assert np.array_equal(quantize(schema, X), np.reshape(alone, (len(X), schema.features)))


def test_transforms_come_before_the_grid():
    schema = ps.ClassSchema(2, 5, "NA", clip_norm=1.0, transform=(UnitNorm(), ConstantFeature(0.5)))
    X = np.random.default_rng(0).normal(size=(20, 4))
    y = np.arange(20) % 2
    grid = quantize(schema, X)
    assert (grid[:, 4] > 0).all()
    assert np.array_equal(ps.measure(schema, X, y).A, np.stack([grid[y == label].sum(axis=0) for label in (0, 1)]))


@given(st.data())
def test_rows_inside_the_ball_move_by_half_a_step_at_most(data):
    schema = data.draw(class_schemas(max_features=8))
    X, _ = data.draw(records(schema))
    grid = quantize(schema, X)
    inner = schema.grid_steps - math.sqrt(schema.features) / 2
    for row, snapped in zip(np.maximum(X, 0.0) if schema.nonnegative else X, grid, strict=True):
        scaled = [Fraction(float(v)) * Fraction(schema.scale) for v in row]
        if sum(v * v for v in scaled) <= Fraction(inner) ** 2:
            assert all(abs(v - int(q)) <= Fraction(1, 2) + abs(v) / 2**52 for v, q in zip(scaled, snapped, strict=True))


@given(st.data())
def test_clipped_rows_keep_their_direction(data):
    schema = ps.ClassSchema(2, 16, "NA", clip_norm=1.0, grid_bits=12)
    row = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=16, max_size=16)))
    size = data.draw(st.floats(2, 1e300))
    length = np.linalg.norm(row)
    if length > 1e-3:
        grid = quantize(schema, (row / length * size)[None])[0]
        assert np.abs(grid - row / length * (4096 - 2)).max() <= 0.501


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=30))
def test_row_norms_and_sums_are_right_and_ignore_the_order(values):
    rows = np.array([values, sorted(values)])
    measured = row_norms(rows)
    assert measured.norms[0] == measured.norms[1]
    scaled = [Fraction(v) for v in measured.rows[0]]
    exact = sum(v * v for v in scaled)
    low, high = Fraction(measured.norms[0]) - Fraction(measured.error), Fraction(measured.norms[0] + measured.error)
    assert max(low, 0) ** 2 <= exact <= high**2
    first, second = row_sums(rows)
    assert first == second
    assert abs(Fraction(float(first)) - sum(Fraction(v) for v in values)) <= Fraction(max(map(abs, values))) / 2**40
