"""Numbers of numpy are numbers: what is made of them is, bit for bit and digest for digest, what Python's make."""

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats import heads, transforms
from privstats.errors import SchemaError
from privstats.python_values import python_value

WHOLE, SINGLE, DOUBLE = np.int64, np.float32, np.float64
PRIVACY = {"model": "central", "unit": "record", "adjacency": "add-remove", "epsilon": 1.0, "delta": 2.0**-17}
CLIENT = {**PRIVACY, "unit": "client", "max_records_per_client": 40, "client_clip": 8.0}
COHORT = {"clients": 3, "min_survivors": 3, "max_records": 100, "colluders": 1}
CLASSES = {"classes": 3, "features": 4, "statistics": "NAB", "clip_norm": 1.0, "grid_bits": 10}
UNIT = transforms.UnitNorm()


def plan(**changes):
    parts = {"schema": CLASSES, "cohort": COHORT, "privacy": PRIVACY, "min_count": 3} | changes
    schema = parts["schema"] if isinstance(parts["schema"], ps.schema.Schema) else ps.ClassSchema(**parts["schema"])
    cohort, privacy = ps.Cohort(**parts["cohort"]), ps.Privacy(**parts["privacy"])
    return ps.Plan(schema=schema, cohort=cohort, privacy=privacy, min_count=parts["min_count"])


def of_numpy(values):
    """The same values as numpy has them: integers as int64, the rest as float32, which holds these exactly."""
    kinds = {int: WHOLE, float: SINGLE}
    return {name: kinds[type(value)](value) if type(value) in kinds else value for name, value in values.items()}


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": of_numpy(CLASSES)},
        {"cohort": of_numpy(COHORT)},
        {"privacy": of_numpy(PRIVACY)},
        {"min_count": WHOLE(3)},
        {"privacy": PRIVACY | {"shares": {"N": SINGLE(0.125), "A": DOUBLE(0.5), "B": SINGLE(0.375)}}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_plan_of_numpys_numbers_is_the_plan(changes):
    usual = {name: value for name, value in changes.items() if "shares" in str(value)}
    made, wanted = plan(**changes), plan(**{name: _python(value) for name, value in usual.items()})
    assert made == wanted
    assert made.digest == wanted.digest
    assert made.to_toml() == wanted.to_toml()


def _python(value):
    return value | {"shares": {name: float(share) for name, share in value["shares"].items()}}


def test_a_promise_for_a_client_takes_them_too():
    assert ps.Privacy(**of_numpy(CLIENT)) == ps.Privacy(**CLIENT)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (transforms.Centre, {"centre": (0.5, 1.0)}),
        (transforms.Scale, {"per": (0.5, 1.0)}),
        (transforms.ConstantFeature, {"value": 0.5}),
        (transforms.GaussianProjection, {"seed": 1, "inputs": 4, "features": 2}),
        (transforms.SparseProjection, {"seed": 1, "inputs": 4, "features": 2, "sparsity": 3}),
        (transforms.OrthogonalProjection, {"seed": 1, "inputs": 4, "features": 2}),
        (transforms.RandomReLU, {"seed": 1, "inputs": 4, "features": 2, "keep_inputs": True}),
        (transforms.RandomFourier, {"seed": 1, "inputs": 4, "features": 2, "bandwidth": 0.5}),
        (transforms.Transport, {"features": 2, "reference": "ab" * 32, "strength": 0.5}),
    ],
)
def test_a_transform_of_numpys_numbers_is_the_transform(kind, values):
    given = {name: np.array(value) if isinstance(value, tuple) else value for name, value in of_numpy(values).items()}
    made = kind(**given)
    assert made == kind(**values)
    assert transforms.to_builtins([made]) == transforms.to_builtins([kind(**values)])
    assert all(type(value) is type(getattr(kind(**values), name)) for name, value in dataclasses.asdict(made).items())


def test_courses_take_them_too():
    first = plan(schema=ps.ClassSchema(**CLASSES, transform=UNIT), min_count=0)
    rounds = {"rounds": 2, "expected_records": 90, "retries": 1, "release_share": 0.25}
    assert ps.Rounds(first, **of_numpy(rounds)).digest == ps.Rounds(first, **rounds).digest
    within = ps.Rounds.within(first, WHOLE(2), expected_records=WHOLE(90))
    assert within.digest == ps.Rounds.within(first, 2, expected_records=90).digest
    assert ps.Stream(first, WHOLE(4)) == ps.Stream(first, 4)
    gaussian = {"features": 4, "clip_norm": 8.0, "shrinkage": 0.125, "rounds": 2}
    assert ps.GaussianSchema(**of_numpy(gaussian)) == ps.GaussianSchema(**gaussian)


def test_a_ledger_and_a_fit_take_them_too(tmp_path):
    ledger = ps.dp.Ledger.create(tmp_path / "ledger")
    ledger.set_cap("ward", unit="record", adjacency="add-remove", epsilon=SINGLE(2), delta=SINGLE(2.0**-17))
    X, y = np.eye(4)[np.arange(60) % 3], np.arange(60) % 3
    terms = {"epsilon": WHOLE(2), "delta": SINGLE(2.0**-17), "clip_norm": SINGLE(2), "grid_bits": WHOLE(10)}
    terms |= {"classes": np.arange(3), "max_records": WHOLE(100), "transform": UNIT}
    head = heads.LDA().fit_private(X, y, adjacency="add-remove", ledger=ledger, **terms)
    assert head.release_.plan.privacy.epsilon == 2.0
    assert head.release_.plan.schema.transform == (UNIT,)


def test_a_map_alone_is_a_chain_of_one():
    assert ps.ClassSchema(**CLASSES, transform=UNIT) == ps.ClassSchema(**CLASSES, transform=(UNIT,))
    np.testing.assert_array_equal(transforms.apply(UNIT, np.eye(2) * 3), np.eye(2))
    target = {"clip_norm": 1.0, "target_bound": 1.0, "epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove"}
    X = np.eye(4)[np.arange(40) % 4]
    head = heads.Ridge().fit_private(X, X[:, 0], **target, transform=UNIT, ledger="uncharged")
    assert head.release_.plan.schema.transform[0] == UNIT


@pytest.mark.parametrize("wrong", [3, "unit-norm", transforms.UnitNorm, (UNIT, None), None, {"kind": "unit-norm"}])
def test_what_is_no_map_is_one_sentence_wherever_it_is_given(wrong):
    X, y = np.eye(4)[np.arange(40) % 4], np.arange(40) % 2
    terms = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 1.0, "ledger": "uncharged"}
    ridge, softmax = heads.Ridge(), heads.RefinedSoftmax(rounds=1)
    for call in (
        lambda: ps.ClassSchema(**CLASSES, transform=wrong),
        lambda: transforms.apply(wrong, X),
        lambda: heads.LDA().fit_private(X, y, classes=[0, 1], transform=wrong, **terms),
        lambda: ridge.fit_private(X, X[:, 0], target_bound=1.0, transform=wrong, **terms),
        lambda: softmax.fit_private(X, y, classes=[0, 1], expected_records=40, transform=wrong, **terms),
    ):
        with pytest.raises(SchemaError, match="must be a tuple of"):
            call()


def test_truth_values_and_texts_are_still_no_numbers():
    with pytest.raises(ps.PlanError, match="at least 2, got True"):
        ps.Cohort(**COHORT | {"clients": np.bool_(True)})
    with pytest.raises(ps.PlanError, match="got the text"):
        ps.Privacy(**PRIVACY | {"epsilon": np.str_("1")})


@given(st.recursive(st.integers(-9, 9) | st.floats(-1, 1, width=32), lambda each: st.tuples(each, each)))
def test_plain_values_stay_what_they_are_and_numpys_become_them(value):
    assert python_value(value) == value
    assert python_value(_of_numpy(value)) == value
    assert type(python_value(_of_numpy(value))) is type(value)


def _of_numpy(value):
    if isinstance(value, tuple):
        return tuple(map(_of_numpy, value))
    return WHOLE(value) if isinstance(value, int) else SINGLE(value)


def test_parties_that_are_all_empty_are_said():
    nothing = (np.zeros((0, 4)), np.zeros(0, int))
    with pytest.warns(UserWarning, match="no record in X.* noise alone"):
        ps.simulate(plan(), [nothing] * 3)
    with warnings.catch_warnings(action="error"):
        ps.simulate(plan(), [nothing, nothing, (np.eye(1, 4), np.zeros(1, int))])
    terms = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 1.0, "classes": [0, 1]}
    with pytest.warns(UserWarning, match="noise alone"):
        heads.LDA().fit_private(*nothing, ledger="uncharged", **terms)
