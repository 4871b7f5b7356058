"""E-values: against the paper's numbers, and against the bounding factor that defines them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats import inference as inf


def test_the_numbers_of_vanderweele_and_ding() -> None:
    """Their first two examples, of 2017: infant formula and respiratory death, and maternal leukaemia."""
    assert [round(each, 2) for each in inf.e_value(3.9, 1.8, 8.7, measure="risk ratio")] == [7.26, 3.0]
    assert [round(each, 2) for each in inf.e_value(0.8, 0.71, 0.91, measure="risk ratio")] == [1.81, 1.43]


@given(st.floats(1e-3, 1e3))
def test_a_confounder_of_that_strength_just_explains_the_ratio(ratio: float) -> None:
    """Two risk ratios E bound the bias by E^2 / (2 E - 1), which is the ratio itself (Ding and VanderWeele 2016)."""
    found = inf.e_value(ratio, ratio / 2, ratio * 2, measure="risk ratio")
    assert found.estimate**2 / (2 * found.estimate - 1) == pytest.approx(max(ratio, 1 / ratio), rel=1e-9)
    assert found.limit <= found.estimate
    mirrored = inf.e_value(1 / ratio, 1 / (ratio * 2), 1 / (ratio / 2), measure="risk ratio")
    assert mirrored == pytest.approx(found, rel=1e-9)


@given(st.floats(0.05, 20))
def test_a_common_outcome_needs_less_than_a_rare_one(ratio: float) -> None:
    for measure in ("odds ratio", "hazard ratio"):
        rare, common = (inf.e_value(ratio, ratio, ratio, measure=measure, common=each) for each in (False, True))
        assert common.estimate <= rare.estimate * (1 + 1e-12)
    root = inf.e_value(math.sqrt(ratio), math.sqrt(ratio), math.sqrt(ratio), measure="risk ratio")
    assert inf.e_value(ratio, ratio, ratio, measure="odds ratio", common=True) == pytest.approx(root, rel=1e-9)


def test_an_interval_with_one_in_it_or_without_an_end_is_explained_by_nothing() -> None:
    assert inf.e_value(1.4, 0.9, 2.0, measure="risk ratio").limit == 1
    assert inf.e_value(1.4, 0.0, math.inf, measure="hazard ratio", common=False).limit == 1
    assert inf.e_value(1.0, 1.0, 1.0, measure="risk ratio") == (1.0, 1.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"measure": "difference"}, "measure must be 'risk ratio', 'odds ratio', 'hazard ratio', got 'difference'"),
        ({"measure": "odds ratio"}, "common must be True or False for an odds or hazard ratio"),
        ({"measure": "risk ratio", "common": True}, "common must be True or False for an odds or hazard ratio"),
        ({"measure": "risk ratio", "ratio": -0.3}, "a ratio must be above 0 and inside its interval, got -0.3"),
        ({"measure": "risk ratio", "low": 2.5}, "a ratio must be above 0 and inside its interval"),
    ],
)
def test_what_is_no_ratio_is_refused(call: dict, words: str) -> None:
    with pytest.raises(ps.ReleaseError, match=words):
        inf.e_value(**{"ratio": 2.0, "low": 1.5, "high": 3.0, **call})
