"""The sums of a calibration: hits and confidence, bounded for every record and every published value."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import privstats as ps
from privstats.kinds.calibration import FACTORS
from privstats.schema.public_values import Published, Values
from tests.moments.test_gradients import HOSTILE, C, D, published, records

SCHEMA = ps.CalibrationSchema(D, C, expected_records=100, course_mu=1.0, transform=(ps.transforms.UnitNorm(),))
FEATURES = arrays.arrays(np.float64, (2, D), elements=st.floats(allow_nan=True, allow_infinity=True))


def in_floats(X: np.ndarray, y: np.ndarray, said: Published) -> np.ndarray:
    """The definition, in real numbers."""
    M, W = (said.read()[name].real for name in "MW")
    z = X / np.linalg.norm(X, axis=1, keepdims=True) @ M
    u = np.hstack([np.sqrt(0.99) * z / np.linalg.norm(z, axis=1, keepdims=True), np.full((len(X), 1), 0.1)])
    sure = []
    for factor in FACTORS:
        p = np.exp(factor * (u @ W.T))
        sure.append((p / p.sum(axis=1, keepdims=True)).max(axis=1))
    right = (u @ W.T).argmax(axis=1) == y
    return np.array([right - sure[0], *np.diff(sure, axis=0)]).sum(axis=1)


def test_the_sums_are_those_of_the_definition_up_to_the_grid() -> None:
    X, y = records(400)
    real = ps.measure(SCHEMA, X, y, published=published()).real()
    np.testing.assert_allclose(real.t, in_floats(X, y, published()), atol=400 * 2**-11)


def test_a_model_that_is_right_for_sure_adds_all_at_the_first_place() -> None:
    """W of one class alone, so large that its probability is 1 at every factor."""
    W = np.zeros((C, D + 1))
    W[1, -1] = 1e4
    said = Published.of({"M": Values.rounded(np.eye(D)), "W": Values.rounded(W)})
    one = 1 << SCHEMA.grid_bits
    right, wrong = (ps.measure(SCHEMA, np.ones((1, D)), [label], published=said).t for label in (1, 0))
    assert (right.tolist(), wrong.tolist()) == ([0] * 11, [-one, *[0] * 10])


def test_two_records_are_further_apart_than_one_is_from_none() -> None:
    """One is right and unsure, since all scores tie; the other is sure and wrong."""
    W = np.zeros((C, D + 1))
    W[1, 0] = 1e4
    said = Published.of({"M": Values.rounded(np.eye(D)), "W": Values.rounded(W)})
    X = np.eye(2, D)[::-1]
    right, wrong = (ps.measure(SCHEMA, X[i : i + 1], [0], published=said).real().t for i in (0, 1))
    assert right[0] == pytest.approx(1 - 1 / C, abs=1e-3)
    assert (
        ps.dp.sensitivity(SCHEMA, "t", "add-remove")
        < np.linalg.norm(right - wrong)
        <= ps.dp.sensitivity(SCHEMA, "t", "replace-one")
    )


def within(schema: ps.CalibrationSchema, t: np.ndarray) -> None:
    """[right] - P with P of at least 1 / C on the grid, and gains of at least 0 that sum to at most 1 - P: the proof of
    the bound rests on that alone."""
    one, first, gains = schema.grid_steps, int(t[0]), t[1:]
    least = one // schema.classes
    assert 0 <= first <= one - least or -one <= first <= -least
    assert (gains >= 0).all()
    assert gains.sum() <= (first if first >= 0 else one + first)
    assert int(t @ t) <= max(one**2, 2 * (one - least) ** 2)


@settings(max_examples=100, deadline=None)
@given(
    X=FEATURES,
    y=st.tuples(st.integers(0, C - 1), st.integers(0, C - 1)),
    M=HOSTILE["M"],
    W=HOSTILE["W"],
    classes=st.sampled_from((2, C)),
    bits=st.integers(2, 20),
)
def test_no_record_and_no_published_value_breaks_the_bound(X, y, M, W, classes, bits):
    schema = replace(SCHEMA, classes=classes, grid_bits=bits)
    said = Published.of({"M": M, "W": Values(W.integers[:classes], W.exponent)})
    one, other = (ps.measure(schema, X[i : i + 1], [y[i] % classes], published=said).t for i in (0, 1))
    for t in (one, other):
        if t.any():  # a record that is not finite adds nothing
            within(schema, t)
    apart = ps.dp.grid_sensitivity(schema, "t", "replace-one")
    assert int((one - other) @ (one - other)) <= apart**2 * (1 + 1e-12)


@pytest.mark.parametrize("classes", [2, 3, 7, 100])
@pytest.mark.parametrize("bits", [3, 12, 20])
def test_a_model_is_never_less_sure_than_of_one_in_so_many(classes: int, bits: int) -> None:
    """All scores tie: the least confidence there is, at every factor, in integers."""
    schema = replace(SCHEMA, classes=classes, grid_bits=bits)
    W = Values(np.zeros((classes, D + 1), np.int64), 0)
    said = Published.of({"M": Values.rounded(np.eye(D)), "W": W})
    wrong = ps.measure(schema, np.ones((1, D)), [1], published=said).t
    assert wrong.tolist() == [-((1 << bits) // classes), *[0] * 10]


def test_batches_and_parts_do_not_change_a_bit_and_what_is_no_number_counts_as_zero() -> None:
    X, y = records(1500)
    whole = ps.measure(SCHEMA, X, y, published=published())
    batches = ((X[at : at + 7], y[at : at + 7]) for at in range(0, 1500, 7))
    assert ps.measure(SCHEMA, batches, published=published()) == whole
    assert sum([ps.measure(SCHEMA, X[i::3], y[i::3], published=published()) for i in range(3)]) == whole
    dirty = ps.measure(SCHEMA, np.vstack([X, [[np.nan] * D]]), np.append(y, 1), published=published())
    assert (dirty, dirty.records) == (whole, 1500)
    assert not ps.measure(SCHEMA, np.zeros((0, D)), np.zeros(0, int), published=published()).t.any()


def test_hostile_values_schemas_and_plans_without_noise_are_refused() -> None:
    hostile = Published.of({**published().read(), "W": Values(np.ones((C, D + 1), np.int64), 65)})
    with pytest.raises(ps.PlanError, match="tiny or enormous"):
        ps.measure(SCHEMA, *records(3), published=hostile)
    for changes, said in (({"clip_norm": 2.0}, "clip_norm at 1"), ({"classes": 1}, "two or more")):
        with pytest.raises(ps.SchemaError, match=said):
            ps.CalibrationSchema(**{"features": D, "classes": C, "expected_records": 9, "course_mu": 1.0, **changes})
    with pytest.raises(ps.PlanError, match="one record alone counts"):
        ps.Plan(schema=SCHEMA, cohort=ps.Cohort(4, 3, 100), privacy=ps.NoPrivacy(), published=published())
