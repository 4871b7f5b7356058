"""A promise is checked when it is made, in one sentence."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import privstats as ps
from tests.made import refused

GOOD = {"model": "central", "unit": "record", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"delta": 0.0, "model": "distributed"}, "delta = 0 is supported with model='central' only"),
        ({"shares": {"N": 0.5, "A": 0.4}}, "shares must sum to 1"),
        ({"shares": {"N": "half", "A": 0.5}}, "shares"),
        ({"max_records_per_client": 5}, "max_records_per_client"),
        ({"client_clip": 5.0}, "client_clip"),
        ({"unit": "client"}, "max_records_per_client"),
        ({"unit": "client", "max_records_per_client": 9, "adjacency": "replace-one"}, "replace-one"),
        (
            {"unit": "client", "max_records_per_client": 1, "client_clip": 1.0, "adjacency": "replace-one"},
            "except for a PartySchema without client_clip",
        ),
    ],
)
def test_a_promise_that_contradicts_itself_is_refused_by_name(change, field):
    """Single values out of range are refused by their rows: ``tests/plan/test_settings.py``."""
    with pytest.raises(ps.PlanError, match=field) as refused:
        ps.Privacy(**GOOD | change)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"delta": 1e-16}, "give 0, which is pure epsilon with Laplace noise, or a value below 1 / records"),
        ({"delta": 0.5}, "allows complete records to be revealed"),
        ({"epsilon": 0}, "below it the release is nothing but noise"),
        ({"epsilon": 1000}, "above it the promise is empty"),
        ({"epsilon": math.nan}, "give a finite number"),
        ({"epsilon": "1.0"}, "^epsilon must be a number, got the text '1.0'; remove the quotes$"),
        ({"delta": "1e-5"}, "^delta must be a number, got the text '1e-5'; remove the quotes$"),
        ({"epsilon": None}, "got NoneType; give one between 0.001 and 100"),
        ({"unit": "client", "max_records_per_client": 9, "client_clip": 0.5}, "a single record would be clipped"),
        ({"unit": "client", "max_records_per_client": 9, "client_clip": 10}, "nothing would be clipped"),
    ],
)
def test_a_refusal_gives_the_reason_of_its_own_side(change, reason):
    refused(ps.PlanError, reason, ps.Privacy, **GOOD | change)


def test_what_must_be_decided_has_no_default():
    for field in GOOD:
        refused(TypeError, field, ps.Privacy, **{name: value for name, value in GOOD.items() if name != field})


def test_a_unit_is_worth_one_record_its_limit_or_its_clip():
    client = GOOD | {"unit": "client", "max_records_per_client": 40}
    assert (ps.Privacy(**GOOD).group, ps.Privacy(**client).group) == (1, 40)
    assert ps.Privacy(**client, client_clip=6).group == 6


def test_promises_are_values():
    shares = {"N": 0.1, "A": 0.9}
    promise = ps.Privacy(**GOOD, shares=shares)
    shares["N"] = 0.9
    assert (promise.shares, promise) == ({"N": 0.1, "A": 0.9}, ps.Privacy(**GOOD, shares={"A": 0.9, "N": 0.1}))
    assert hash(promise) == hash(ps.Privacy(**GOOD, shares={"A": 0.9, "N": 0.1}))


UNEVEN = [{"N": 0.336012, "A": 0.124643, "B": 0.539344}, {"N": 0.023536, "A": 0.299274, "B": 0.677189}]


def to_six_digits(weights):
    return {name: max(round(weight / sum(weights), 6), 1e-6) for name, weight in zip("NABD", weights, strict=False)}


@given(st.one_of(st.sampled_from(UNEVEN), st.lists(st.integers(1, 10**6), min_size=2, max_size=4).map(to_six_digits)))
def test_a_promise_made_from_the_shares_of_another_is_the_same(shares):
    """Else a plan and its own file differ in a last bit: parties disagree, and nobody can load the release."""
    assume(abs(math.fsum(shares.values()) - 1) < 1e-6)
    once = ps.Privacy(**GOOD, shares=shares).shares
    assert ps.Privacy(**GOOD, shares=once).shares == once
    assert ps.Privacy(**GOOD, shares=dict(reversed(shares.items()))).shares == once
    assert math.fsum(once.values()) == pytest.approx(1, abs=1e-15)
