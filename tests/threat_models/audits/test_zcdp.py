"""The published bound for discrete noise, its conversion, and how much looser than ours it is."""

import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privstats.dp import gaussian_epsilon, gaussian_mu
from threat_models.audits.zcdp import distributed_rho, zcdp_delta, zcdp_epsilon

RHO = st.floats(-6, 2).map(lambda p: 10**p)
DELTA = st.floats(-12, -2).map(lambda p: 10**p)


@given(rho=RHO, delta=DELTA, order=st.floats(-6, 6).map(lambda p: 1 + 10**p))
def test_no_order_gives_a_smaller_epsilon(rho, delta, order):
    with mpmath.workdps(40):
        a = mpmath.mpf(order)
        at_order = a * rho + (mpmath.log(1 / mpmath.mpf(delta)) + (a - 1) * mpmath.log(1 - 1 / a) - mpmath.log(a)) / (
            a - 1
        )
    assert zcdp_epsilon(rho, delta) <= float(at_order) * (1 + 1e-7) + 1e-12


@given(rho=RHO, delta=DELTA)
def test_the_conversion_inverts_itself(rho, delta):
    epsilon = zcdp_epsilon(rho, delta)
    if epsilon > 1e-6:
        assert math.log(zcdp_delta(rho, epsilon)) == pytest.approx(math.log(delta), rel=1e-4)


@given(mu=st.floats(-3, 1).map(lambda p: 10**p), delta=DELTA)
def test_the_conversion_is_never_better_than_the_exact_curve(mu, delta):
    assert zcdp_epsilon(mu * mu / 2, delta) >= gaussian_epsilon(mu, delta) * (1 - 1e-9)


@pytest.mark.parametrize(("epsilon", "looser"), [(0.1, 0.30), (1.0, 0.22), (10.0, 0.09)])
def test_how_much_looser_than_ours_it_is(epsilon, looser):
    mu = gaussian_mu(epsilon, 1e-6)
    assert 0.02 < zcdp_epsilon(mu * mu / 2, 1e-6) / epsilon - 1 < looser


def test_many_wide_shares_cost_what_one_wide_noise_costs():
    assert distributed_rho(100.0, 200.0, 25, 5000) == pytest.approx((100 / (5 * 200)) ** 2 / 2, rel=1e-12)


def test_narrow_shares_cost_more():
    assert distributed_rho(1.0, 0.5, 10, 1000) > 1.5 * (1 / (math.sqrt(10) * 0.5)) ** 2 / 2


@pytest.mark.parametrize(("rho", "delta"), [(0.0, 1e-5), (math.nan, 1e-5), (1.0, 0.0), (1.0, 1.0)])
def test_arguments_out_of_range_are_refused(rho, delta):
    with pytest.raises(ValueError, match="must"):
        zcdp_epsilon(rho, delta)
