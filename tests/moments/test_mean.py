"""The sum of all rows: what every other kind sums of them, whatever the labels say."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import privstats as ps
from tests.made import refused

D = 5
SCHEMA = ps.MeanSchema(D, 1.0, transform=(ps.transforms.UnitNorm(),))
ROWS = arrays(np.float64, (2, D), elements=st.floats(-1e6, 1e6))


def records(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, D)), rng.integers(0, 3, n)


def test_it_is_the_sum_over_classes_of_class_sums() -> None:
    X, y = records()
    found = ps.measure(SCHEMA, X, y)
    classes = ps.measure(ps.ClassSchema(3, D, "NA", 1.0, transform=(ps.transforms.UnitNorm(),)), X, y)
    assert (found.x.tolist(), found.records) == (classes.A.sum(axis=0).tolist(), 300)
    assert found.clip_report == classes.clip_report
    assert ps.encoding.flatten(found).size == ps.encoding.layout_of(SCHEMA).size == D


def test_labels_are_counted_and_never_read() -> None:
    X, y = records()
    whole = ps.measure(SCHEMA, X, y)
    for other in (np.array(["ash", "elm", "fir"])[y], y * 2.5, np.stack([y, y], axis=1)):
        assert ps.measure(SCHEMA, X, other) == whole
    assert ps.measure(SCHEMA, ((X[at : at + 7], y[at : at + 7]) for at in range(0, 300, 7))) == whole
    for wrong in (y[1:], np.float64(3)):
        refused(ps.DataError, "one label or target per row", ps.measure, SCHEMA, X, wrong)


@settings(max_examples=100, deadline=None)
@given(X=ROWS, nonnegative=st.booleans())
def test_no_two_records_are_further_apart_than_the_formula_says(X: Any, nonnegative: bool) -> None:
    schema = ps.MeanSchema(D, 1.0, nonnegative=nonnegative)
    one, other = (ps.measure(schema, X[i : i + 1], [0]).x for i in (0, 1))
    steps = 1 << schema.grid_bits
    assert int(one @ one) <= steps**2
    assert int((one - other) @ (one - other)) <= (2 if nonnegative else 4) * steps**2


@pytest.mark.parametrize(("nonnegative", "apart"), [(True, np.sqrt(2)), (False, 2.0)])
def test_some_two_records_are_as_far_apart_as_it_says(nonnegative: bool, apart: float) -> None:
    schema = ps.MeanSchema(2, 1.0, nonnegative=nonnegative)
    other = [[0.0, 1.0]] if nonnegative else [[-1.0, 0.0]]
    one, two = (ps.measure(schema, row, [0]).real().x for row in ([[1.0, 0.0]], other))
    assert np.linalg.norm(one) == ps.dp.sensitivity(schema, "x", "add-remove") == 1.0
    assert np.linalg.norm(one - two) == pytest.approx(apart)
    assert ps.dp.sensitivity(schema, "x", "replace-one") == pytest.approx(apart)


def test_a_schema_checks_its_vectors() -> None:
    refused(ps.SchemaError, "features must be at least 2", ps.MeanSchema, 1, 1.0)
