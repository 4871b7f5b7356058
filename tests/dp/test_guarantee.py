"""The most that any attacker reaches: the curve of pure epsilon, that of Gaussian DP, and the smaller of both."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.dp import Guarantee, operating_point

RATES = np.linspace(0, 1, 101)[1:]


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0, 50.0, 2000.0])
def test_the_curve_of_pure_epsilon_is_that_of_randomised_response(epsilon):
    """Its two outcomes are seen with e^eps / (1 + e^eps) and the rest, so its curve has one kink; nothing of mu."""
    kept = Guarantee(mu=1e6, pure=epsilon)
    hit = 1 / (1 + math.exp(-epsilon))
    corners = ([0.0, 1 - hit, 1.0], [0.0, hit, 1.0])
    exact = np.interp(RATES, *corners)
    np.testing.assert_allclose(np.array([kept.tpr(rate) for rate in RATES]), exact, atol=1e-12)
    assert (kept.tpr(0.0), kept.auc) == (0.0, pytest.approx(np.trapezoid(corners[1], corners[0])))
    assert kept.operating_point()[2] == pytest.approx(2 * hit - 1, abs=1e-12)


def test_without_pure_epsilon_it_is_that_of_mu():
    for mu in (0.0, 0.27, 3.0, math.inf):
        assert Guarantee(mu).operating_point(0.03) == operating_point(mu, 0.03)
    assert Guarantee(math.inf).operating_point() == (1.0, 1.0, 1.0)


@given(st.floats(0.0, 5.0), st.floats(0.0, 9.0), st.floats(0.0, 1.0, allow_subnormal=False))
def test_of_two_curves_the_smaller_holds_everywhere(mu, epsilon, rate):
    both, pure, gaussian = (Guarantee(*each).operating_point(rate) for each in ((mu, epsilon), (1e6, epsilon), (mu,)))
    assert both == pytest.approx(tuple(map(min, pure, gaussian)), abs=1e-12)
    assert both[0] >= rate * (1 - 1e-9)


def test_groups_multiply_and_releases_add_up():
    assert Guarantee(0.5, 0.7).of_group(3) == Guarantee(1.5, pytest.approx(2.1))
    assert Guarantee(0.5, 0.7).repeated(4) == Guarantee(1.0, 2.8)
    assert Guarantee(0.5).of_group(3).repeated(4) == Guarantee(3.0)
    assert ps.dp.Guarantee is Guarantee
